//! A filter for any type that is `Hash`: in memory only.

use std::fmt;
use std::hash::{Hash, Hasher as _};
use std::marker::PhantomData;

use siphasher::sip::SipHasher13;

use super::BloomFilter;
use crate::error::Result;

/// A [`BloomFilter`] of values of one type that is `Hash`.
///
/// It has no way into a file: what `derive(Hash)` feeds to a hasher differs between compilers,
/// platforms and versions of a type, and a filter read back under another encoding would say *no*
/// to keys it holds. For filters to be kept, use keys with a stable encoding ([`crate::Key`]).
///
/// ```
/// use petal::TypedBloomFilter;
///
/// let mut seen = TypedBloomFilter::<(u32, &str)>::with_rate(1000, 0.01)?;
/// assert!(seen.insert(&(7, "seven")));
/// assert!(seen.contains(&(7, "seven")));
/// # Ok::<_, petal::Error>(())
/// ```
pub struct TypedBloomFilter<T: ?Sized> {
    filter: BloomFilter,
    key: [u64; 2],
    keys: PhantomData<fn(&T)>,
}

impl<T: Hash + ?Sized> TypedBloomFilter<T> {
    /// The smallest filter that keeps the false-positive rate `rate` with `keys` keys. Its hash
    /// is SipHash-1-3 with a key of zeros; see [`with_key`](Self::with_key).
    ///
    /// # Errors
    /// As [`BloomFilter::with_rate`](super::Filter::with_rate).
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self> {
        Ok(Self { filter: BloomFilter::with_rate(keys, rate)?, key: [0; 2], keys: PhantomData })
    }

    /// The same filter, still empty, with a secret key for its hash: for values that an adversary
    /// may choose.
    #[must_use]
    pub fn with_key(mut self, key: [u64; 2]) -> Self {
        self.filter.clear();
        self.key = key;
        self
    }

    fn hash(&self, value: &T) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.key[0], self.key[1]);
        value.hash(&mut hasher);
        hasher.finish()
    }

    /// Inserts a value; whether it was new.
    pub fn insert(&mut self, value: &T) -> bool {
        self.filter.insert_mixed_hash(self.hash(value))
    }

    /// Whether the value may have been inserted. `false` is certain.
    #[must_use]
    pub fn contains(&self, value: &T) -> bool {
        self.filter.contains_mixed_hash(self.hash(value))
    }

    /// An estimate of the distinct values inserted.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        self.filter.estimated_len()
    }

    /// The false-positive rate that the bits give as they are now.
    #[must_use]
    pub fn estimated_rate(&self) -> f64 {
        self.filter.estimated_rate()
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.filter.clear();
    }
}

impl<T: ?Sized> fmt::Debug for TypedBloomFilter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedBloomFilter").field("filter", &self.filter).finish_non_exhaustive()
    }
}
