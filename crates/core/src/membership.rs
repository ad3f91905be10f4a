//! The traits that all types of filters share, for code that does not depend on the type.
//!
//! Both traits are sealed and object-safe. A call handles a batch of hashes, so that dynamic
//! dispatch costs nothing per key. The results have one bit for each key.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::fmt;
#[cfg(feature = "std")]
use std::io::Write;

use crate::error::{Error, Result};
use crate::explanation::Explanation;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::math;
use crate::results::BatchResults;

/// A filter of any type. Sealed.
///
/// ```
/// use petal::{BatchResults, BloomFilter, Membership};
///
/// let mut bloom = BloomFilter::with_fpr(1000, 0.01)?;
/// bloom.insert("one");
/// let filter: &dyn Membership = &bloom;
/// let hashes = [filter.hash_spec().hash(b"one")];
/// let mut found = BatchResults::new();
/// filter.contains_mixed_hashes(&hashes, &mut found);
/// assert!(found.get(0));
/// # Ok::<_, petal::Error>(())
/// ```
pub trait Membership: crate::format::persist::Save + fmt::Debug + Send + Sync {
    /// Returns the type of the filter.
    fn filter_type(&self) -> FilterType;

    /// Returns how keys are hashed.
    fn hash_spec(&self) -> HashSpec;

    /// Describes the layout in words: "16 blocks of 512 bits, 8 probes".
    fn describe(&self) -> String;

    /// Returns the parameters of the layout, by name.
    fn parameters(&self) -> Vec<(&'static str, u64)>;

    /// Looks up keys by their hashes. `found` is true for each key that may have been inserted,
    /// false for keys that were certainly not.
    ///
    /// Hashes are made with [`hash_spec`](Self::hash_spec), or with another hash function whose
    /// every output bit is random. Plain integers are not such hashes: insert them as keys.
    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults);

    /// Explains the answer to a query of one key: what the filter reads, and what it finds.
    ///
    /// For people and teaching: a query with [`contains_mixed_hashes`](Self::contains_mixed_hashes)
    /// is much faster.
    fn explain_mixed_hash(&self, hash: u64) -> Explanation;

    /// Returns the size of the filter's data in bytes, in memory or in a file.
    fn size_bytes(&self) -> u64;

    /// Returns the total memory of the filter in bytes. Pages of a mapped file do not count.
    fn memory_usage(&self) -> u64;

    /// Returns the capacity: the number of distinct keys that the filter was planned for; 0 if it
    /// was made without a plan, from bits and probes.
    fn capacity(&self) -> u64 {
        self.info().capacity
    }

    /// Returns the false-positive rate that the filter was planned for; 0 if it was made without
    /// a plan.
    fn target_fpr(&self) -> f64 {
        self.info().target_fpr
    }

    /// Returns how many inserts were new; in quotient and vector quotient filters, the number of keys
    /// with all their copies.
    ///
    /// After a union or intersection it is an estimate of the number of distinct keys, always
    /// finite, with the standard errors of [`Filter::compare`](crate::Filter::compare). So it is
    /// after inserts that do not count
    /// ([`insert_uncounted`](crate::Filter::insert_uncounted)); it then reads the whole filter.
    fn inserted(&self) -> u64 {
        self.info().inserted
    }

    /// Estimates the number of distinct keys from the filter's data; infinite if the filter is
    /// full. A [`VectorQuotientFilter`](crate::VectorQuotientFilter) counts every copy of a key.
    ///
    /// After an intersection it is an upper bound: bits that different keys of the two filters
    /// set by chance stay set and count. [`inserted`](Self::inserted) is then the better estimate.
    ///
    /// Cost: reads the whole filter.
    fn estimated_len(&self) -> f64;

    /// Returns the false-positive rate with `keys` distinct keys, by calculation.
    fn expected_fpr(&self, keys: u64) -> f64;

    /// Returns the false-positive rate of the filter as it is now, from its data.
    ///
    /// Cost: reads the whole filter.
    fn estimated_fpr(&self) -> f64;

    /// Returns the share of bits, counters or slots in use.
    ///
    /// Cost: reads the whole filter.
    fn fill_ratio(&self) -> f64;

    /// Returns how many more keys fit at the target rate.
    ///
    /// `None` if the filter was made without a plan, grows, forgets old keys, or takes no keys at
    /// all ([`FilterType::is_fixed`]).
    ///
    /// Cost: reads the whole filter.
    fn capacity_left(&self) -> Option<u64> {
        None
    }

    /// Returns true if the false-positive rate is above the target by more than chance explains:
    /// see [`math::is_overfull`].
    ///
    /// Cost: reads the whole filter.
    fn is_overfull(&self) -> bool {
        math::is_overfull(self.target_fpr(), self.estimated_fpr(), self.size_bytes() * 8)
    }

    /// Returns a histogram of the blocks by fill ratio, with `steps` equal steps from empty to
    /// full; empty for types without blocks.
    fn block_fills(&self, steps: usize) -> Vec<u64> {
        let _ = steps;
        Vec::new()
    }

    /// Writes the filter as a `.petal` file with `metadata`, free text such as JSON.
    ///
    /// The same filter gives the same bytes on every machine; docs/reference/format.md describes them.
    ///
    /// # Errors
    /// If the metadata is longer than 1 MiB, or writing fails.
    #[cfg(feature = "std")]
    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        crate::format::write::write(out, &self.serialized(), metadata)
    }
}

/// Formats a number with its noun: "1 layer", "2 layers".
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A filter of any type that can be changed. Sealed.
pub trait MembershipMut: Membership {
    /// Inserts keys by their hashes, in order; `new` is true for each key that was new.
    ///
    /// Types that support deletion count a key that is inserted twice, and contain it until it is
    /// removed twice.
    ///
    /// # Errors
    /// If the filter takes no more keys. The keys before the one that failed are in the filter,
    /// and no key is lost.
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()>;

    /// Removes keys by their hashes, in order; `removed` is false for each key that was certainly
    /// not in the filter.
    ///
    /// # Errors
    /// If this type of filter does not support deletion.
    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut BatchResults) -> Result<()> {
        let _ = (hashes, removed);
        Err(Error::unsupported(
            self.filter_type().name(),
            "deletes no keys",
            "use counting, counting-classic, quotient or vector-quotient",
        ))
    }
}
