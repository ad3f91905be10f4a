//! What a server answers, in either protocol, to the byte: nothing is made equal that is not sent equal.

use std::io::{self, BufRead, Read};

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    /// A bulk string that is not there: RESP2 only.
    NoBulk,
    /// An array that is not there: RESP2 only.
    NoArray,
    Array(Vec<Reply>),
    /// The rest is RESP3's.
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
    /// Reads one answer; its bytes are appended to `raw`.
    pub(crate) fn read(from: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<Self> {
        let start = raw.len();
        if from.read_until(b'\n', raw)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&raw[start..]).trim_end_matches("\r\n").to_owned();
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| strange(&line))?;
        let number = || rest.parse::<i64>().map_err(|_| strange(&line));
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
            _ => return Err(strange(&line)),
        })
    }

    /// The number of an integer.
    pub(crate) fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            other => panic!("no integer: {other:?}"),
        }
    }

    /// The numbers of an array of integers.
    pub(crate) fn ints(&self) -> Vec<i64> {
        self.items().iter().map(Self::int).collect()
    }

    /// The answers in an array.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            other => panic!("no array: {other:?}"),
        }
    }

    /// The bytes of a string.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            Self::Simple(text) => text.as_bytes(),
            other => panic!("no string: {other:?}"),
        }
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// The text of an error.
    pub(crate) fn error(&self) -> &str {
        match self {
            Self::Error(text) => text,
            other => panic!("no error: {other:?}"),
        }
    }

    /// Whether it is the `OK` of a command without other answer.
    pub(crate) fn is_ok(&self) -> bool {
        *self == Self::Simple("OK".into())
    }

    /// Panics unless [`Self::is_ok`].
    #[track_caller]
    pub(crate) fn ok(&self) {
        assert!(self.is_ok(), "no OK: {self:?}");
    }

    /// Whether it is an error.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// The value beside a name in a flat array of names and values.
    pub(crate) fn field(&self, name: &str) -> &Self {
        let at = self.items().iter().step_by(2).position(|field| field.text() == name);
        &self.items()[2 * at.unwrap_or_else(|| panic!("no {name} in {self:?}")) + 1]
    }
}

/// A command as it is sent.
pub(crate) fn command<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.as_ref().len()).as_bytes());
        bytes.extend_from_slice(word.as_ref());
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

fn strange(line: &str) -> io::Error {
    io::Error::other(format!("an answer that begins {line:?}"))
}
