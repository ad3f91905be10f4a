//! Traits of filters that lines are inserted into and looked up in.
//!
//! Hashing runs on any thread while the filter changes, so the hash function is a value of its own.

use petal::{BatchResults, FilterType, HashSpec, Membership, MembershipMut};

use crate::error::Result;
use crate::scan::BadLine;

/// The hash function of a filter.
pub trait LineHash: Send + Sync {
    /// Returns the maximum number of words of a hash. Batches have fewer lines if there are more
    /// words.
    fn words(&self) -> usize;

    /// Appends the words of each line's hash.
    ///
    /// # Errors
    /// If a line is not a valid key.
    fn hash_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine>;
}

/// A filter that lines can be looked up in.
pub trait LineFilter: Sync {
    /// The hash function.
    type Hash: LineHash;

    /// Returns the hash function.
    fn line_hash(&self) -> Self::Hash;

    /// Returns the number of filters that are asked: more than 1 for those of a group.
    fn filters(&self) -> usize {
        1
    }

    /// Looks up hashes: `found` gets a result for each line, those of the first filter first.
    ///
    /// # Errors
    /// If the filter cannot be read.
    fn contains_hashes(&self, words: &[u64], found: &mut BatchResults) -> Result<()>;
}

/// A filter that lines can be inserted into.
pub trait LineFilterMut: LineFilter + Send {
    /// Returns the hash function of inserted lines. Filters of other programs may refuse some lines.
    fn member_hash(&self) -> Self::Hash {
        self.line_hash()
    }

    /// Inserts hashes in order: `new` gets for each line whether it was absent.
    ///
    /// # Errors
    /// If the filter is full.
    fn insert_hashes(&mut self, words: &[u64], new: &mut BatchResults) -> Result<()>;

    /// Returns the size in bytes.
    fn size_bytes(&self) -> u64;

    /// Returns whether the filter is so full that insertions become slow.
    fn is_nearly_full(&self) -> bool {
        false
    }
}

impl LineHash for HashSpec {
    fn words(&self) -> usize {
        1
    }

    #[inline]
    fn hash_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine> {
        self.hash_all(lines, words);
        Ok(())
    }
}

impl LineFilter for dyn Membership + '_ {
    type Hash = HashSpec;

    fn line_hash(&self) -> HashSpec {
        self.hash_spec()
    }

    fn contains_hashes(&self, words: &[u64], found: &mut BatchResults) -> Result<()> {
        self.contains_mixed_hashes(words, found);
        Ok(())
    }
}

impl LineFilter for dyn MembershipMut + '_ {
    type Hash = HashSpec;

    fn line_hash(&self) -> HashSpec {
        self.hash_spec()
    }

    fn contains_hashes(&self, words: &[u64], found: &mut BatchResults) -> Result<()> {
        self.contains_mixed_hashes(words, found);
        Ok(())
    }
}

/// Load of a quotient filter above which insertions become slow.
const MAX_LOAD: f64 = 0.97;

impl LineFilterMut for dyn MembershipMut + '_ {
    fn insert_hashes(&mut self, words: &[u64], new: &mut BatchResults) -> Result<()> {
        Ok(self.insert_mixed_hashes(words, new)?)
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn is_nearly_full(&self) -> bool {
        self.filter_type() == FilterType::Quotient && self.stats().fill_ratio > MAX_LOAD
    }
}
