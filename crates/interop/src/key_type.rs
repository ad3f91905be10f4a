//! The encoding of a key into the bytes that another program hashes. No format records it.
//!
//! Guava's funnels, Spark's types and Parquet's columns write the same files for different keys. A
//! lookup with the wrong key type reports the key as absent.

use crate::error::{Error, Result};

/// The encoding of the keys of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyType {
    /// The bytes unchanged: UTF-8 strings and byte arrays.
    #[default]
    Text,
    /// The UTF-16 code units of text, little-endian: Guava's `unencodedCharsFunnel`.
    Utf16,
    /// A decimal 64-bit integer, as 8 bytes, little-endian.
    Int64,
    /// A decimal 32-bit integer, as 4 bytes, little-endian.
    Int32,
    /// A decimal unsigned 64-bit integer, as 8 bytes, little-endian.
    Uint64,
    /// A decimal unsigned 32-bit integer, as 4 bytes, little-endian.
    Uint32,
    /// The bytes without a trailing CR: lines of a CRLF file, as Go's `bufio.Scanner` reads them.
    TextCrlf,
    /// The bytes as Python prints a `bytes` object: `b'...'`, with escapes. Programs that hash
    /// `str(key)` hash this.
    PythonBytes,
    /// The bytes followed by 0xff: `Hash` of Rust's `str` and `String`.
    RustStr,
    /// The number of bytes, as 8 bytes little-endian, followed by the bytes: `Hash` of Rust's
    /// `[u8]` and `Vec<u8>`.
    RustSlice,
}

impl KeyType {
    /// All key types.
    pub const ALL: [Self; 10] = [
        Self::Text,
        Self::Utf16,
        Self::Int64,
        Self::Int32,
        Self::Uint64,
        Self::Uint32,
        Self::TextCrlf,
        Self::PythonBytes,
        Self::RustStr,
        Self::RustSlice,
    ];

    /// Returns the name, as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Utf16 => "utf16",
            Self::Int64 => "int64",
            Self::Int32 => "int32",
            Self::Uint64 => "uint64",
            Self::Uint32 => "uint32",
            Self::TextCrlf => "text-crlf",
            Self::PythonBytes => "python-bytes",
            Self::RustStr => "rust-str",
            Self::RustSlice => "rust-slice",
        }
    }

    /// Returns the key type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key_type| key_type.name() == name)
    }

    /// Returns true if the encoding of an empty key is not empty, so that programs that skip empty
    /// keys do not skip it.
    pub(crate) fn fills_empty_keys(self) -> bool {
        matches!(self, Self::PythonBytes | Self::RustStr | Self::RustSlice)
    }

    /// Returns the one of these key types that has the same numbers in as many bits or more; for
    /// [`Uint64`](Self::Uint64) that may be [`Int64`](Self::Int64), which has only numbers below
    /// 2^63.
    #[must_use]
    pub fn wider(self, key_types: &[Self]) -> Option<Self> {
        let wider: &[Self] = match self {
            Self::Int32 => &[Self::Int64],
            Self::Uint32 | Self::Uint64 => &[Self::Uint64, Self::Int64],
            _ => &[],
        };
        wider.iter().copied().find(|key_type| key_types.contains(key_type))
    }

    /// Passes the encoding of a key to a function. `space` is a reusable buffer.
    ///
    /// # Errors
    /// If the key is not text, or not a number of this size.
    #[inline]
    pub fn with_bytes<T>(
        self,
        key: &[u8],
        space: &mut Vec<u8>,
        then: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        Ok(match self {
            Self::Text => then(key),
            Self::Utf16 => {
                space.clear();
                let text = str::from_utf8(key).map_err(|_| Error::key("UTF-8 text", key))?;
                let units = text.encode_utf16();
                space.extend(units.flat_map(u16::to_le_bytes));
                then(space)
            }
            Self::Int64 => {
                let number: i64 = number(key, "a whole number of 64 bits, in decimal")?;
                then(&number.to_le_bytes())
            }
            Self::Int32 => {
                let number: i32 = number(key, "a whole number of 32 bits, in decimal")?;
                then(&number.to_le_bytes())
            }
            Self::Uint64 => {
                let expected = "a whole number of 64 bits without a sign, in decimal";
                then(&number::<u64>(key, expected)?.to_le_bytes())
            }
            Self::Uint32 => {
                let expected = "a whole number of 32 bits without a sign, in decimal";
                then(&number::<u32>(key, expected)?.to_le_bytes())
            }
            Self::TextCrlf => then(key.strip_suffix(b"\r").unwrap_or(key)),
            Self::PythonBytes => {
                space.clear();
                put_python_bytes(key, space);
                then(space)
            }
            Self::RustStr => {
                space.clear();
                space.extend_from_slice(key);
                space.push(0xff);
                then(space)
            }
            Self::RustSlice => {
                space.clear();
                space.extend((key.len() as u64).to_le_bytes());
                space.extend_from_slice(key);
                then(space)
            }
        })
    }
}

/// Parses a decimal number.
fn number<N: std::str::FromStr>(key: &[u8], expected: &'static str) -> Result<N> {
    let text = str::from_utf8(key).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| Error::key(expected, key))
}

/// Appends Python's `repr()` of a `bytes` object.
fn put_python_bytes(key: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let quote = if key.contains(&b'\'') && !key.contains(&b'"') { b'"' } else { b'\'' };
    out.extend([b'b', quote]);
    for &byte in key {
        match byte {
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\\' => out.extend(b"\\\\"),
            byte if byte == quote => out.extend([b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            byte => {
                let digits = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
                out.extend([b'\\', b'x', digits[0], digits[1]]);
            }
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_types_encode_to_the_expected_bytes() {
        let bytes = |key_type: KeyType, key: &str| {
            key_type.with_bytes(key.as_bytes(), &mut Vec::new(), <[u8]>::to_vec)
        };
        assert_eq!(bytes(KeyType::Text, "é").unwrap(), [0xc3, 0xa9]);
        assert_eq!(bytes(KeyType::Utf16, "é🌸").unwrap(), [0xe9, 0, 0x3c, 0xd8, 0x38, 0xdf]);
        assert_eq!(bytes(KeyType::Int64, "-2").unwrap(), (-2i64).to_le_bytes());
        assert_eq!(bytes(KeyType::Int32, "7").unwrap(), [7, 0, 0, 0]);
        assert_eq!(bytes(KeyType::Uint64, "18446744073709551615").unwrap(), [0xff; 8]);
        assert_eq!(bytes(KeyType::Uint32, "4294967295").unwrap(), [0xff; 4]);
        assert_eq!(bytes(KeyType::TextCrlf, "a\r\r").unwrap(), b"a\r");
        assert_eq!(bytes(KeyType::TextCrlf, "a\rb").unwrap(), b"a\rb");
        assert_eq!(bytes(KeyType::RustStr, "é").unwrap(), [0xc3, 0xa9, 0xff]);
        assert_eq!(bytes(KeyType::RustSlice, "é").unwrap(), [2, 0, 0, 0, 0, 0, 0, 0, 0xc3, 0xa9]);
        for (key_type, key) in [
            (KeyType::Int32, "2147483648"),
            (KeyType::Int64, ""),
            (KeyType::Int64, "1 "),
            (KeyType::Uint64, "-1"),
            (KeyType::Uint32, "4294967296"),
        ] {
            assert!(bytes(key_type, key).unwrap_err().is_key());
        }
        assert!(KeyType::Utf16.with_bytes(&[0xff], &mut Vec::new(), |_| ()).is_err());
    }

    /// The expected values are `repr(bytes(...))` of Python 3.11.
    #[test]
    fn python_bytes_equal_repr() {
        let repr = |key: &[u8]| {
            let repr = KeyType::PythonBytes.with_bytes(key, &mut Vec::new(), <[u8]>::to_vec);
            String::from_utf8(repr.unwrap()).unwrap()
        };
        assert_eq!(repr(b""), "b''");
        assert_eq!(repr(b"it's"), "b\"it's\"");
        assert_eq!(repr(b"it's \"so\""), "b'it\\'s \"so\"'");
        assert_eq!(repr("\t\n\r\0\\~\x7f\u{e9}".as_bytes()), r"b'\t\n\r\x00\\~\x7f\xc3\xa9'");
    }
}
