//! What every filter can be asked, whatever its type: the face that the command line, a server or
//! another language sees.
//!
//! Two sealed traits, to be used through references to `dyn`: one call for a whole batch of
//! hashes. Within this library nothing is called through them for a single key.
//!
//! A batch has [`HashSpec::words`] words for each key, as [`HashSpec::hash_all`] puts them: one,
//! or for a [`WideBloomFilter`](crate::WideBloomFilter) two, the low one first. Answers are as
//! many as keys; words at the end that are no whole hash are ignored.

use std::fmt;
use std::io::Write;

use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::rate;

/// A filter of any type. Sealed.
///
/// ```
/// use petal::{Answers, BloomFilter, Membership};
///
/// let mut bloom = BloomFilter::with_rate(1000, 0.01)?;
/// bloom.insert("one");
/// let filter: &dyn Membership = &bloom;
/// let hashes = [filter.hash_spec().hash(b"one")];
/// let mut found = Answers::new();
/// filter.contains_mixed_hashes(&hashes, &mut found);
/// assert!(found.get(0));
/// # Ok::<_, petal::Error>(())
/// ```
pub trait Membership: sealed::Sealed + fmt::Debug + Send + Sync {
    /// Its type.
    fn filter_type(&self) -> FilterType;

    /// How keys become hashes.
    fn hash_spec(&self) -> HashSpec;

    /// Its geometry in words: what it is made of, and how much of it.
    fn describe(&self) -> String;

    /// The same as numbers, by name.
    fn geometry(&self) -> Vec<(&'static str, u64)>;

    /// Whether keys may have been inserted, by their hashes, of as many words each as
    /// `hash_spec().words()`; `found` gets an answer for each key.
    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers);

    /// Bytes that its data take, in memory or in a file.
    fn size_bytes(&self) -> u64;

    /// Bytes of memory that it takes in all. A mapped file's pages are not counted.
    fn memory_usage(&self) -> u64;

    /// Keys it was planned for; 0 if there was no plan.
    fn planned_keys(&self) -> u64;

    /// The false-positive rate it was planned for; 0 if there was no plan.
    fn target_rate(&self) -> f64;

    /// How many inserts were new; after set operations an estimate of the distinct keys, always
    /// finite.
    fn inserted(&self) -> u64;

    /// An estimate of the distinct keys it holds; infinite if it is full. After an intersection an
    /// upper bound: see [`Filter::estimated_len`](crate::Filter::estimated_len).
    fn estimated_len(&self) -> f64;

    /// The false-positive rate with so many distinct keys, by calculation.
    fn expected_rate(&self, keys: u64) -> f64;

    /// The false-positive rate as it is now, whatever was planned.
    fn estimated_rate(&self) -> f64;

    /// The share of its bits, counters or slots that are in use.
    fn fill_ratio(&self) -> f64;

    /// How many keys more it holds at the rate planned for; `None` where that is no number: if
    /// there was no plan, if it grows or forgets, or if it takes no keys at all
    /// ([`FilterType::is_fixed`]).
    fn capacity_left(&self) -> Option<u64>;

    /// Whether it errs more often than planned.
    ///
    /// A filter that was filled to its plan may have come to a little more than its rate by
    /// chance: see [`rate::overfull`].
    fn is_overfull(&self) -> bool {
        rate::overfull(self.target_rate(), self.estimated_rate(), self.size_bytes() * 8)
    }

    /// How many of its blocks have a fill in each of so many equal steps from empty to full;
    /// nothing for types without blocks.
    fn block_fills(&self, steps: usize) -> Vec<u64> {
        let _ = steps;
        Vec::new()
    }

    /// Writes it as a `.petal` file, with free-form metadata (JSON, or nothing).
    ///
    /// # Errors
    /// If the metadata is longer than 1 MiB, or writing fails.
    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()>;
}

/// A filter of any type that can be changed. Sealed.
pub trait MembershipMut: Membership {
    /// Inserts keys by their hashes, of as many words each as `hash_spec().words()`, as if one by
    /// one; `new` gets an answer for each key. Types that delete take a key twice that comes twice,
    /// and hold it until it is removed twice.
    ///
    /// # Errors
    /// If the filter cannot take more; those before the one that was refused are in it, and
    /// nothing is lost.
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()>;

    /// Removes keys by their hashes, as above, as if one by one; `removed` gets an answer for each:
    /// no if it was certainly not in the filter.
    ///
    /// # Errors
    /// If this type of filter cannot delete.
    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut Answers) -> Result<()> {
        let _ = (hashes, removed);
        Err(Error::unsupported(self.filter_type().name(), "deletes no keys"))
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}
