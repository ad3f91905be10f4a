//! What lines can be asked of and put into: filters of the library, and any other that hashes a
//! line to words and answers for words.
//!
//! Hashing goes on on any thread; so how lines become words is a value of its own, apart from the
//! filter that changes meanwhile.

use petal::{Answers, FilterType, HashSpec, Membership, MembershipMut};

use crate::error::Result;

/// How lines become the words that a filter is asked with.
pub trait LineHash: Sync {
    /// Words that each line comes to, at most: the more, the fewer lines are taken at a time.
    fn words(&self) -> usize;

    /// Appends the words of each line, as many for each as the filter takes.
    ///
    /// # Errors
    /// If a line cannot be a key of that filter.
    fn hash_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine>;
}

/// A line that is no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Which of the lines, counted from 0.
    pub line: usize,
    /// Why, and what is expected.
    pub why: String,
}

/// A filter that can be asked about lines.
pub trait LineFilter: Sync {
    /// How lines become its words.
    type Hash: LineHash;

    /// How lines become its words.
    fn line_hash(&self) -> Self::Hash;

    /// Whether lines may be in it, by their words; `found` gets an answer for each.
    fn holds(&self, words: &[u64], found: &mut Answers);
}

/// A filter that lines can be put into.
pub trait LineFilterMut: LineFilter + Send {
    /// How lines that are to be put in become its words: other makes of filter refuse some.
    fn member_hash(&self) -> Self::Hash {
        self.line_hash()
    }

    /// Puts lines in by their words, in order; `new` tells of each whether it certainly was not in.
    ///
    /// # Errors
    /// If the filter takes no more.
    fn put(&mut self, words: &[u64], new: &mut Answers) -> Result<()>;

    /// Bytes that it takes.
    fn bytes(&self) -> u64;

    /// Whether it is so full that more lines would take long to put in.
    fn is_crammed(&self) -> bool {
        false
    }
}

impl LineHash for HashSpec {
    fn words(&self) -> usize {
        Self::words(self)
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

    fn holds(&self, words: &[u64], found: &mut Answers) {
        self.contains_mixed_hashes(words, found);
    }
}

impl LineFilter for dyn MembershipMut + '_ {
    type Hash = HashSpec;

    fn line_hash(&self) -> HashSpec {
        self.hash_spec()
    }

    fn holds(&self, words: &[u64], found: &mut Answers) {
        self.contains_mixed_hashes(words, found);
    }
}

/// Share of a table's slots up to which more lines are put into it.
const MOST_LOAD: f64 = 0.97;

impl LineFilterMut for dyn MembershipMut + '_ {
    fn put(&mut self, words: &[u64], new: &mut Answers) -> Result<()> {
        Ok(self.insert_mixed_hashes(words, new)?)
    }

    fn bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn is_crammed(&self) -> bool {
        self.filter_type() == FilterType::Quotient && self.fill_ratio() > MOST_LOAD
    }
}
