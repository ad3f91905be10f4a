//! Parses replies of both protocols without any conversion.

use std::io::{self, BufRead, Read};

/// A reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    /// A null bulk string: RESP2 only.
    NoBulk,
    /// A null array: RESP2 only.
    NoArray,
    Array(Vec<Reply>),
    /// RESP3 only, like all below.
    Null,
    Bool(bool),
    Double(String),
    BigNumber(String),
    Verbatim(Vec<u8>),
    Map(Vec<(Reply, Reply)>),
    Set(Vec<Reply>),
    Push(Vec<Reply>),
}

impl Reply {
    /// Reads a reply; its bytes are appended to `raw`.
    pub(crate) fn read(from: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<Self> {
        let start = raw.len();
        if from.read_until(b'\n', raw)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&raw[start..]).trim_end_matches("\r\n").to_owned();
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| unexpected(&line))?;
        let number = || rest.parse::<i64>().map_err(|_| unexpected(&line));
        Ok(match kind {
            "+" => Self::Simple(rest.into()),
            "-" => Self::Error(rest.into()),
            ":" => Self::Int(number()?),
            "_" => Self::Null,
            "#" => Self::Bool(rest == "t"),
            "," => Self::Double(rest.into()),
            "(" => Self::BigNumber(rest.into()),
            "$" if rest == "-1" => Self::NoBulk,
            "*" if rest == "-1" => Self::NoArray,
            "$" => Self::Bulk(bulk(from, number()?, raw)?),
            "=" => Self::Verbatim(bulk(from, number()?, raw)?),
            "*" => Self::Array(many(from, number()?, raw)?),
            "~" => Self::Set(many(from, number()?, raw)?),
            ">" => Self::Push(many(from, number()?, raw)?),
            "%" => {
                let pairs = many(from, 2 * number()?, raw)?;
                Self::Map(pairs.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
            }
            _ => return Err(unexpected(&line)),
        })
    }

    /// Returns an integer.
    pub(crate) fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            other => panic!("not an integer: {other:?}"),
        }
    }

    /// Returns the integers of an array.
    pub(crate) fn ints(&self) -> Vec<i64> {
        self.items().iter().map(Self::int).collect()
    }

    /// Returns the elements of an array.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            other => panic!("not an array: {other:?}"),
        }
    }

    /// Returns the bytes of a string.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            Self::Simple(text) => text.as_bytes(),
            other => panic!("not a string: {other:?}"),
        }
    }

    /// Returns the text of a string.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Returns the text of an error.
    pub(crate) fn error(&self) -> &str {
        match self {
            Self::Error(text) => text,
            other => panic!("not an error: {other:?}"),
        }
    }

    /// Returns whether the reply is `OK`.
    pub(crate) fn is_ok(&self) -> bool {
        *self == Self::Simple("OK".into())
    }

    /// Panics unless the reply is `OK`.
    #[track_caller]
    pub(crate) fn ok(&self) {
        assert!(self.is_ok(), "not OK: {self:?}");
    }

    /// Returns whether the reply is an error.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Returns the value after a name in a flat array.
    pub(crate) fn field(&self, name: &str) -> &Self {
        let at = self.items().iter().step_by(2).position(|field| field.text() == name);
        &self.items()[2 * at.unwrap_or_else(|| panic!("no {name} in {self:?}")) + 1]
    }
}

/// Encodes a command.
pub(crate) fn command<W: AsRef<[u8]>>(args: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.as_ref().len()).as_bytes());
        bytes.extend_from_slice(arg.as_ref());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn bulk(from: &mut impl BufRead, length: i64, raw: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let (start, length) = (raw.len(), usize::try_from(length).unwrap());
    from.take(length as u64 + 2).read_to_end(raw)?;
    if raw.len() < start + length + 2 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(raw[start..start + length].to_vec())
}

fn many(from: &mut impl BufRead, count: i64, raw: &mut Vec<u8>) -> io::Result<Vec<Reply>> {
    (0..count).map(|_| Reply::read(from, raw)).collect()
}

fn unexpected(line: &str) -> io::Error {
    io::Error::other(format!("unexpected reply {line:?}"))
}
