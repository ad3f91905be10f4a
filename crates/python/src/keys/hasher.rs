//! Hashes of keys, computed without a lock.

use petal::HashSpec;
use petal_interop::Hasher;
use pyo3::PyResult;
use pyo3::exceptions::PyTypeError;

use super::Key;
use crate::error::IntoPyErr;

/// The hash function of a filter. Its result for a key is one 64-bit word or several.
#[derive(Clone)]
pub(crate) enum KeyHasher {
    Native(HashSpec),
    /// The hash function of another program; if the flag is set, an `int` is hashed as its decimal
    /// digits.
    Foreign(Hasher, bool),
    /// The function `xxhash64` of Spark's SQL, which hashes dates and other types in ways of its own.
    SparkSql(Hasher),
}

impl KeyHasher {
    /// Appends the hash of a key to `hashes`.
    #[inline]
    pub(crate) fn hash_bytes(&mut self, key: &[u8], hashes: &mut Vec<u64>) -> PyResult<()> {
        match self {
            Self::Native(spec) => hashes.push(spec.hash(key)),
            Self::Foreign(hasher, _) | Self::SparkSql(hasher) => {
                hasher.hash(key, hashes).map_err(IntoPyErr::into_py_err)?;
            }
        }
        Ok(())
    }

    /// Appends the hashes of keys to `hashes`. Faster than one key at a time.
    #[inline]
    pub(crate) fn hash_all<K: AsRef<[u8]>>(
        &mut self,
        mut keys: impl Iterator<Item = K>,
        hashes: &mut Vec<u64>,
    ) -> PyResult<()> {
        match self {
            Self::Native(spec) => spec.hash_all(keys, hashes),
            Self::Foreign(..) | Self::SparkSql(_) => {
                return keys.try_for_each(|key| self.hash_bytes(key.as_ref(), hashes));
            }
        }
        Ok(())
    }

    /// Appends the hash of a key from Python to `hashes`.
    #[inline]
    pub(crate) fn hash_key(&mut self, key: Key<'_>, hashes: &mut Vec<u64>) -> PyResult<()> {
        if matches!((&self, key), (Self::SparkSql(_), Key::Bool(_) | Key::Object(_))) {
            return Err(PyTypeError::new_err(
                "keys: expected strings, bytes or integers, whose hashes are those of Spark; use \
                 xxhash64 in SQL for other types",
            ));
        }
        let as_digits = matches!(self, Self::Foreign(_, true));
        self.hash_bytes(KeyBuf::default().encode(key, as_digits), hashes)
    }
}

/// A buffer for the bytes of an integer key.
#[derive(Default)]
pub(crate) struct KeyBuf {
    little_endian: [u8; 8],
    digits: String,
}

impl KeyBuf {
    /// Returns the bytes of a key; those of an integer are its decimal digits if `as_digits` is set.
    #[inline]
    pub(crate) fn encode<'a>(&'a mut self, key: Key<'a>, as_digits: bool) -> &'a [u8] {
        match key {
            Key::Bytes(bytes) | Key::Object(bytes) => bytes,
            Key::Bool(flag) => self.encode(Key::Int(flag.into()), as_digits),
            Key::Int(number) if as_digits => {
                self.digits = number.to_string();
                self.digits.as_bytes()
            }
            Key::Int(number) => {
                self.little_endian = number.to_le_bytes();
                &self.little_endian
            }
        }
    }
}
