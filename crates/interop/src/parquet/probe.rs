//! Keys to ask many Parquet files for, hashed once for each type that a column has.
//!
//! Numbers are hashed as a column stores them, the low byte first; text and bytes as they are.
//! Cost: the bytes of the keys, 8 bytes more for each, and 8 bytes for each type.

use std::sync::OnceLock;

use xxhash_rust::xxh64::xxh64;

use super::footer::Values;
use crate::error::{Error, Result};

/// Keys as text or bytes; numbers are written in decimal.
#[derive(Debug, Default)]
pub struct Probe {
    text: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    bytes: OnceLock<Hashes>,
    int32: OnceLock<Hashes>,
    uint32: OnceLock<Hashes>,
    int64: OnceLock<Hashes>,
    uint64: OnceLock<Hashes>,
}

/// Hashes, each once, the smallest first; or the first key that has none.
type Hashes = std::result::Result<Vec<u64>, usize>;

impl Probe {
    /// Without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One key more.
    pub fn push(&mut self, key: &[u8]) {
        self.text.extend_from_slice(key);
        self.ends.push(self.text.len());
        let Self { bytes, int32, uint32, int64, uint64, .. } = self;
        for stale in [bytes, int32, uint32, int64, uint64] {
            stale.take();
        }
    }

    /// The keys, in order.
    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    /// The hashes of all keys as values of a column, the smallest first.
    pub(super) fn hashes(&self, values: Values) -> Result<&[u64]> {
        let refused = |number: usize| {
            let key = self.keys().nth(number).unwrap_or_default();
            Error::key(values.expected(), key).at_key(number as u64 + 1)
        };
        if let Values::Fixed(length) = values
            && let Some(number) = self.keys().position(|key| key.len() != length)
        {
            return Err(refused(number));
        }
        let place = match values {
            Values::Bytes | Values::Fixed(_) => &self.bytes,
            Values::Int32 => &self.int32,
            Values::Uint32 => &self.uint32,
            Values::Int64 => &self.int64,
            Values::Uint64 => &self.uint64,
        };
        let hashes = place.get_or_init(|| {
            let each = self.keys().enumerate().map(|(number, key)| hash(values, key).ok_or(number));
            let mut hashes = each.collect::<std::result::Result<Vec<_>, _>>()?;
            hashes.sort_unstable();
            hashes.dedup();
            Ok(hashes)
        });
        hashes.as_deref().map_err(|number| refused(*number))
    }
}

/// The hash of a key as a column stores it, if it can.
fn hash(values: Values, key: &[u8]) -> Option<u64> {
    let hash = |bytes: &[u8]| xxh64(bytes, 0);
    Some(match values {
        Values::Bytes | Values::Fixed(_) => hash(key),
        Values::Int32 => hash(&number::<i32>(key)?.to_le_bytes()),
        Values::Uint32 => hash(&number::<u32>(key)?.to_le_bytes()),
        Values::Int64 => hash(&number::<i64>(key)?.to_le_bytes()),
        Values::Uint64 => hash(&number::<u64>(key)?.to_le_bytes()),
    })
}

fn number<N: std::str::FromStr>(key: &[u8]) -> Option<N> {
    str::from_utf8(key).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(keys: &[&str]) -> Probe {
        let mut probe = Probe::new();
        keys.iter().for_each(|key| probe.push(key.as_bytes()));
        probe
    }

    #[test]
    fn keys_are_hashed_as_a_column_stores_them() {
        let hashes = |keys: &[&str], values| probe(keys).hashes(values).unwrap().to_vec();
        assert_eq!(hashes(&[""], Values::Bytes), [0xef46_db37_51d8_e999]);
        assert_eq!(hashes(&["a", "a"], Values::Fixed(1)), [xxh64(b"a", 0)]);
        assert_eq!(hashes(&["-2"], Values::Int32), [xxh64(&(-2i32).to_le_bytes(), 0)]);
        assert_eq!(hashes(&["4294967294"], Values::Uint32), hashes(&["-2"], Values::Int32));
        assert_eq!(hashes(&["-2"], Values::Int64), [xxh64(&(-2i64).to_le_bytes(), 0)]);
        assert_eq!(
            hashes(&["18446744073709551614"], Values::Uint64),
            hashes(&["-2"], Values::Int64)
        );
        assert!(hashes(&["1", "2", "3", "4"], Values::Int64).is_sorted());
        assert_eq!(hashes(&[], Values::Int64), []);
    }

    #[test]
    fn the_first_key_that_is_none_is_told() {
        let cases = [
            (["1", "x", ""], Values::Int64, 2),
            (["1", "2", "3000000000"], Values::Int32, 3),
            (["-1", "2", "3"], Values::Uint32, 1),
            (["-1", "2", "3"], Values::Uint64, 1),
            (["ab", "abc", "ab"], Values::Fixed(2), 2),
        ];
        for (keys, values, number) in cases {
            let error = probe(&keys).hashes(values).unwrap_err();
            assert_eq!((error.is_key(), error.key_number()), (true, Some(number)), "{error}");
        }
    }

    #[test]
    fn a_key_that_comes_later_is_asked_too() {
        let mut probe = probe(&["1"]);
        assert_eq!(probe.hashes(Values::Int64).unwrap().len(), 1);
        probe.push(b"2");
        assert_eq!(probe.hashes(Values::Int64).unwrap().len(), 2);
    }
}
