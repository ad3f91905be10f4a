//! Keys to look up in many Parquet files, hashed once for each column type.
//!
//! Numbers are hashed as a column stores them, little-endian; text and bytes unchanged. Cost: the
//! bytes of the keys, 8 bytes per key, and 8 bytes per key and type.

use std::sync::OnceLock;

use xxhash_rust::xxh64::xxh64;

use super::footer::ColumnType;
use crate::error::{Error, Result};

/// Keys as text or bytes; numbers in decimal.
#[derive(Debug, Default)]
pub struct ParquetKeys {
    text: Vec<u8>,
    /// End offset of each key.
    ends: Vec<usize>,
    bytes: OnceLock<Hashes>,
    int32: OnceLock<Hashes>,
    uint32: OnceLock<Hashes>,
    int64: OnceLock<Hashes>,
    uint64: OnceLock<Hashes>,
}

/// Distinct hashes, sorted; or the index of the first key that cannot be hashed.
type Hashes = std::result::Result<Vec<u64>, usize>;

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
        let Self { bytes, int32, uint32, int64, uint64, .. } = self;
        for stale in [bytes, int32, uint32, int64, uint64] {
            stale.take();
        }
    }

    /// Returns the keys in order.
    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    /// Returns the hashes of all keys as values of a column, sorted.
    pub(super) fn hashes(&self, column_type: ColumnType) -> Result<&[u64]> {
        let refused = |number: usize| {
            let key = self.keys().nth(number).unwrap_or_default();
            Error::key(column_type.expected(), key).at_key(number as u64 + 1)
        };
        if let ColumnType::Fixed(length) = column_type
            && let Some(number) = self.keys().position(|key| key.len() != length)
        {
            return Err(refused(number));
        }
        let cell = match column_type {
            ColumnType::Bytes | ColumnType::Fixed(_) => &self.bytes,
            ColumnType::Int32 => &self.int32,
            ColumnType::Uint32 => &self.uint32,
            ColumnType::Int64 => &self.int64,
            ColumnType::Uint64 => &self.uint64,
        };
        let hashes = cell.get_or_init(|| {
            let each =
                self.keys().enumerate().map(|(number, key)| hash(column_type, key).ok_or(number));
            let mut hashes = each.collect::<std::result::Result<Vec<_>, _>>()?;
            hashes.sort_unstable();
            hashes.dedup();
            Ok(hashes)
        });
        hashes.as_deref().map_err(|number| refused(*number))
    }
}

/// Returns the hash of a key as a column stores it; `None` if it cannot be a value.
fn hash(column_type: ColumnType, key: &[u8]) -> Option<u64> {
    let hash = |bytes: &[u8]| xxh64(bytes, 0);
    Some(match column_type {
        ColumnType::Bytes | ColumnType::Fixed(_) => hash(key),
        ColumnType::Int32 => hash(&number::<i32>(key)?.to_le_bytes()),
        ColumnType::Uint32 => hash(&number::<u32>(key)?.to_le_bytes()),
        ColumnType::Int64 => hash(&number::<i64>(key)?.to_le_bytes()),
        ColumnType::Uint64 => hash(&number::<u64>(key)?.to_le_bytes()),
    })
}

fn number<N: std::str::FromStr>(key: &[u8]) -> Option<N> {
    str::from_utf8(key).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parquet_keys(keys: &[&str]) -> ParquetKeys {
        let mut parquet_keys = ParquetKeys::new();
        keys.iter().for_each(|key| parquet_keys.push(key.as_bytes()));
        parquet_keys
    }

    #[test]
    fn keys_are_hashed_as_the_column_stores_them() {
        let hashes =
            |keys: &[&str], column_type| parquet_keys(keys).hashes(column_type).unwrap().to_vec();
        assert_eq!(hashes(&[""], ColumnType::Bytes), [0xef46_db37_51d8_e999]);
        assert_eq!(hashes(&["a", "a"], ColumnType::Fixed(1)), [xxh64(b"a", 0)]);
        assert_eq!(hashes(&["-2"], ColumnType::Int32), [xxh64(&(-2i32).to_le_bytes(), 0)]);
        assert_eq!(hashes(&["4294967294"], ColumnType::Uint32), hashes(&["-2"], ColumnType::Int32));
        assert_eq!(hashes(&["-2"], ColumnType::Int64), [xxh64(&(-2i64).to_le_bytes(), 0)]);
        assert_eq!(
            hashes(&["18446744073709551614"], ColumnType::Uint64),
            hashes(&["-2"], ColumnType::Int64)
        );
        assert!(hashes(&["1", "2", "3", "4"], ColumnType::Int64).is_sorted());
        assert_eq!(hashes(&[], ColumnType::Int64), []);
    }

    #[test]
    fn error_names_the_first_invalid_key() {
        let cases = [
            (["1", "x", ""], ColumnType::Int64, 2),
            (["1", "2", "3000000000"], ColumnType::Int32, 3),
            (["-1", "2", "3"], ColumnType::Uint32, 1),
            (["-1", "2", "3"], ColumnType::Uint64, 1),
            (["ab", "abc", "ab"], ColumnType::Fixed(2), 2),
        ];
        for (keys, column_type, number) in cases {
            let error = parquet_keys(&keys).hashes(column_type).unwrap_err();
            assert_eq!((error.is_key(), error.key_number()), (true, Some(number)), "{error}");
        }
    }

    #[test]
    fn key_added_later_is_looked_up() {
        let mut parquet_keys = parquet_keys(&["1"]);
        assert_eq!(parquet_keys.hashes(ColumnType::Int64).unwrap().len(), 1);
        parquet_keys.push(b"2");
        assert_eq!(parquet_keys.hashes(ColumnType::Int64).unwrap().len(), 2);
    }
}
