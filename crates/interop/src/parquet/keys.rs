//! Keys to look up in many Parquet files, hashed once for each column type.
//!
//! Cost: the bytes of the keys, 8 bytes per key, and 8 bytes per key for each of two types: those of
//! the columns that were queried last. The few keys with several hashes take more.

use std::sync::{Arc, Mutex, PoisonError};

use super::column_type::ColumnType;
use crate::error::{Error, Result};

/// Keys as text, as `petal --column` prints the values of a column.
#[derive(Debug, Default)]
pub struct ParquetKeys {
    text: Vec<u8>,
    /// End offset of each key.
    ends: Vec<usize>,
    /// The hashes for some column types, the one added last at the end.
    hashes: Mutex<Vec<(ColumnType, Hashes)>>,
}

/// Distinct hashes, sorted.
pub(super) type Hashes = Arc<Vec<u64>>;

/// Column types whose hashes are kept.
const TYPES: usize = 2;

impl ParquetKeys {
    /// Makes an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key.
    pub fn push(&mut self, key: &[u8]) {
        self.text.extend_from_slice(key);
        self.ends.push(self.text.len());
        self.hashes.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the keys in order.
    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    /// Returns the hashes of all keys as values of a column.
    pub(super) fn hashes(&self, column_type: ColumnType) -> Result<Hashes> {
        let mut kept = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(kept, _)| *kept == column_type) {
            // The one used last is at the end.
            kept[at..].rotate_left(1);
            return Ok(Arc::clone(&kept[kept.len() - 1].1));
        }
        let mut hashes = Vec::with_capacity(self.ends.len());
        for (key, number) in self.keys().zip(1..) {
            let invalid = || Error::key(column_type.expected(key), key).at_key(number);
            column_type.append_hashes(key, &mut hashes).ok_or_else(invalid)?;
        }
        hashes.sort_unstable();
        hashes.dedup();
        if kept.len() == TYPES {
            kept.remove(0);
        }
        let hashes = Arc::new(hashes);
        kept.push((column_type, Arc::clone(&hashes)));
        Ok(hashes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::column_type::{Stored, Text};
    use super::*;

    const INT64: ColumnType = ColumnType { text: Text::Integer, stored: Stored::Int64 };

    fn parquet_keys(keys: &[&str]) -> ParquetKeys {
        let mut parquet_keys = ParquetKeys::new();
        keys.iter().for_each(|key| parquet_keys.push(key.as_bytes()));
        parquet_keys
    }

    #[test]
    fn hashes_are_distinct_and_sorted() {
        let keys = parquet_keys(&["1", "2", "3", "4", "02"]);
        let hashes = keys.hashes(INT64).unwrap();
        assert!(hashes.is_sorted() && hashes.len() == 4);
        for stored in [Stored::Int32, Stored::Bytes, Stored::Int64] {
            keys.hashes(ColumnType { stored, ..INT64 }).unwrap();
        }
        assert_eq!(keys.hashes(INT64).unwrap(), hashes);
        assert!(parquet_keys(&[]).hashes(INT64).unwrap().is_empty());
    }

    #[test]
    fn error_names_the_first_invalid_key() {
        let column = |text, stored| ColumnType { text, stored };
        let cases = [
            (["1", "x", ""], INT64, 2),
            (["1", "2", "3000000000"], column(Text::Integer, Stored::Int32), 3),
            (["-1", "2", "3"], column(Text::Unsigned, Stored::Int64), 1),
            (["ab", "abc", "ab"], column(Text::Bytes, Stored::Fixed(2)), 2),
        ];
        for (keys, column_type, number) in cases {
            let error = parquet_keys(&keys).hashes(column_type).unwrap_err();
            assert_eq!((error.is_key(), error.key_number()), (true, Some(number)), "{error}");
        }
    }

    #[test]
    fn key_added_later_is_looked_up() {
        let mut parquet_keys = parquet_keys(&["1"]);
        assert_eq!(parquet_keys.hashes(INT64).unwrap().len(), 1);
        parquet_keys.push(b"2");
        assert_eq!(parquet_keys.hashes(INT64).unwrap().len(), 2);
    }
}
