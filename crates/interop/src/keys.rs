//! From a key as people write it to the bytes that a program hashed: what no format tells.
//!
//! Guava's funnels, Spark's types and Parquet's columns write the same files for different keys.
//! Asked with the wrong form, a filter says a *no* that looks like any other.

use crate::error::{Error, Result};

/// The form that keys have in a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyForm {
    /// The bytes as they are: UTF-8 strings, and anything that is bytes there.
    #[default]
    Text,
    /// The UTF-16 units of text, low byte first: Guava's `unencodedCharsFunnel`.
    Utf16,
    /// A whole number of 64 bits, written in decimal; 8 bytes, low byte first.
    Int64,
    /// A whole number of 32 bits, written in decimal; 4 bytes, low byte first.
    Int32,
}

impl KeyForm {
    /// Every form.
    pub const ALL: [Self; 4] = [Self::Text, Self::Utf16, Self::Int64, Self::Int32];

    /// Its name, as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Utf16 => "utf16",
            Self::Int64 => "int64",
            Self::Int32 => "int32",
        }
    }

    /// The form of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// Hands over the bytes that stand for a key. `space` is kept from key to key.
    ///
    /// # Errors
    /// If the key is no text, or no number of this size.
    #[inline]
    pub fn with_bytes<T>(
        self,
        key: &[u8],
        space: &mut Vec<u8>,
        then: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let text = |expected| str::from_utf8(key).map_err(|_| Error::key(expected, key));
        Ok(match self {
            Self::Text => then(key),
            Self::Utf16 => {
                space.clear();
                let units = text("UTF-8 text")?.encode_utf16();
                space.extend(units.flat_map(u16::to_le_bytes));
                then(space)
            }
            Self::Int64 => {
                let expected = "a whole number of 64 bits, in decimal";
                let number = text(expected)?.parse::<i64>();
                then(&number.map_err(|_| Error::key(expected, key))?.to_le_bytes())
            }
            Self::Int32 => {
                let expected = "a whole number of 32 bits, in decimal";
                let number = text(expected)?.parse::<i32>();
                then(&number.map_err(|_| Error::key(expected, key))?.to_le_bytes())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_bytes() {
        let bytes = |form: KeyForm, key: &str| {
            form.with_bytes(key.as_bytes(), &mut Vec::new(), <[u8]>::to_vec)
        };
        assert_eq!(bytes(KeyForm::Text, "é").unwrap(), [0xc3, 0xa9]);
        assert_eq!(bytes(KeyForm::Utf16, "é🌸").unwrap(), [0xe9, 0, 0x3c, 0xd8, 0x38, 0xdf]);
        assert_eq!(bytes(KeyForm::Int64, "-2").unwrap(), (-2i64).to_le_bytes());
        assert_eq!(bytes(KeyForm::Int32, "7").unwrap(), [7, 0, 0, 0]);
        for (form, key) in
            [(KeyForm::Int32, "2147483648"), (KeyForm::Int64, ""), (KeyForm::Int64, "1 ")]
        {
            assert!(bytes(form, key).unwrap_err().is_key());
        }
        assert!(KeyForm::Utf16.with_bytes(&[0xff], &mut Vec::new(), |_| ()).is_err());
    }
}
