//! A Bloom filter of values of any type that implements `Hash`.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{Hash, Hasher as _};
use core::marker::PhantomData;

use siphasher::sip::SipHasher13;

use super::BloomFilter;
use crate::byte_size::ByteSize;
use crate::error::Result;
use crate::membership::Membership as _;
use crate::stats::Stats;

/// A [`BloomFilter`] of values of one type that implements `Hash`: tuples, enums, structs with
/// `#[derive(Hash)]`.
///
/// It cannot be written to a file: the bytes that `derive(Hash)` feeds to a hasher differ between
/// compilers, platforms and versions of a type, so that a filter read back might not contain its
/// keys. For files use keys with a stable encoding ([`Key`](crate::Key)).
///
/// ```
/// use petal::TypedBloomFilter;
///
/// #[derive(Hash)]
/// struct Visit {
///     user: u32,
///     page: String,
/// }
///
/// let mut seen = TypedBloomFilter::<Visit>::with_fpr(1000, 0.01)?;
/// assert!(seen.insert(&Visit { user: 7, page: "/".into() }));
/// assert!(seen.contains(&Visit { user: 7, page: "/".into() }));
///
/// // Texts need no `String`, as in a `HashSet`.
/// let mut names = TypedBloomFilter::<String>::with_fpr(1000, 0.01)?;
/// assert!(names.insert("petal") && names.contains("petal"));
///
/// let mut pairs = TypedBloomFilter::<(u32, &str)>::with_fpr(1000, 0.01)?;
/// assert!(pairs.insert(&(7, "seven")));
/// # Ok::<_, petal::Error>(())
/// ```
pub struct TypedBloomFilter<T: ?Sized> {
    filter: BloomFilter,
    secret: [u64; 2],
    values: PhantomData<fn(&T)>,
}

impl<T: Hash + ?Sized> TypedBloomFilter<T> {
    /// Creates the smallest filter with a false-positive rate of at most `fpr` at `capacity`
    /// values. Its hash is SipHash-1-3 with a secret of zeros; see
    /// [`with_secret`](Self::with_secret).
    ///
    /// # Errors
    /// As [`BloomFilter::with_fpr`](super::Filter::with_fpr).
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        BloomFilter::with_fpr(capacity, fpr).map(Self::from_filter)
    }

    /// Creates the filter with the lowest false-positive rate at `capacity` values that takes at
    /// most `memory`.
    ///
    /// # Errors
    /// As [`BloomFilter::with_memory`](super::Filter::with_memory).
    pub fn with_memory(capacity: u64, memory: ByteSize) -> Result<Self> {
        BloomFilter::with_memory(capacity, memory).map(Self::from_filter)
    }

    fn from_filter(filter: BloomFilter) -> Self {
        Self { filter, secret: [0; 2], values: PhantomData }
    }

    /// Sets the secret of the hash and removes all values: for values that an adversary may choose.
    #[must_use]
    pub fn with_secret(mut self, secret: [u64; 2]) -> Self {
        self.filter.clear();
        self.secret = secret;
        self
    }

    fn hash<Q: Hash + ?Sized>(&self, value: &Q) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret[0], self.secret[1]);
        value.hash(&mut hasher);
        hasher.finish()
    }

    /// Inserts a value, or what it borrows as, and returns true if it was new.
    pub fn insert<Q>(&mut self, value: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.filter.insert_mixed_hash(self.hash(value))
    }

    /// Returns true if the value may have been inserted, false if it certainly was not.
    #[must_use]
    pub fn contains<Q>(&self, value: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.filter.contains_mixed_hash(self.hash(value))
    }

    /// Returns the numbers of the filter as it is now.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.filter.stats()
    }

    /// Copies the filter. Unlike `clone`, it returns an error if memory allocation fails.
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Self { filter: self.filter.try_clone()?, secret: self.secret, values: PhantomData })
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.filter.clear();
    }
}

impl<T: ?Sized> Clone for TypedBloomFilter<T> {
    fn clone(&self) -> Self {
        Self { filter: self.filter.clone(), secret: self.secret, values: PhantomData }
    }
}

impl<T: ?Sized> PartialEq for TypedBloomFilter<T> {
    /// Compares secret, size and bits.
    fn eq(&self, other: &Self) -> bool {
        self.secret == other.secret && self.filter == other.filter
    }
}

impl<T: Hash> Extend<T> for TypedBloomFilter<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| _ = self.insert(&value));
    }
}

impl<T: ?Sized> fmt::Debug for TypedBloomFilter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The hash of the filter is not used, and the secret is not shown.
        f.debug_struct("TypedBloomFilter")
            .field("layout", &self.filter.layout())
            .field("inserted", &self.filter.inserted())
            .field("hash", &"siphash-1-3")
            .finish_non_exhaustive()
    }
}
