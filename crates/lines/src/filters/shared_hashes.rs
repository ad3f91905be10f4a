//! Lines of two lists that have equal hashes: whether the lines themselves are equal.
//!
//! A second hash under a random key decides. Different lines have both hashes in common with a probability
//! of 2⁻⁶⁴ for each pair whose first hashes are equal.

use petal::HashSpec;

use super::line_filter::LineHash;
use super::spec::random_key;
use crate::error::Result;
use crate::scan::BadLine;

/// Two hashes of a line, one after the other.
pub(super) struct TwoHashes {
    first: HashSpec,
    second: HashSpec,
}

impl TwoHashes {
    /// Returns this hash, and one with a new random key.
    pub(super) fn beside(first: HashSpec) -> Result<Self> {
        Ok(Self { first, second: HashSpec::keyed(random_key()?) })
    }
}

impl LineHash for &TwoHashes {
    fn words(&self) -> usize {
        2
    }

    fn hash_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine> {
        words.extend(lines.flat_map(|line| [self.first.hash(line), self.second.hash(line)]));
        Ok(())
    }
}

/// The members whose hashes are also those of other lines.
pub(super) struct SharedHashes<'a> {
    /// In ascending order.
    hashes: &'a [u64],
    max_lines: usize,
    is_full: bool,
    /// Both hashes of distinct members, in ascending order after [`sort`](Self::sort).
    members: Vec<[u64; 2]>,
    /// Whether a line of the other list is equal to the member at this place.
    found: Vec<bool>,
}

impl<'a> SharedHashes<'a> {
    /// `hashes` are the hashes that both lists have, in ascending order.
    pub(super) fn new(hashes: &'a [u64], max_lines: usize) -> Self {
        Self { hashes, max_lines, is_full: false, members: Vec::new(), found: Vec::new() }
    }

    /// Adds members: two hashes for each.
    pub(super) fn add_members(&mut self, words: &[u64]) {
        for pair in words.as_chunks::<2>().0 {
            if self.is_full || self.hashes.binary_search(&pair[0]).is_err() {
                continue;
            }
            if self.members.len() == self.max_lines {
                self.sort();
                // Of very many different lines with equal hashes, some are enough.
                self.is_full = self.members.len() > self.max_lines / 2;
            }
            self.members.push(*pair);
        }
    }

    fn sort(&mut self) {
        self.members.sort_unstable();
        self.members.dedup();
    }

    /// Ends the members.
    pub(super) fn end_members(&mut self) {
        self.sort();
        self.found.resize(self.members.len(), false);
    }

    /// Compares lines of the other list: two hashes for each.
    pub(super) fn compare(&mut self, words: &[u64]) {
        for pair in words.as_chunks::<2>().0 {
            if let Ok(at) = self.members.binary_search(pair) {
                self.found[at] = true;
            }
        }
    }

    /// Returns the number of distinct lines that both lists have.
    pub(super) fn equal_lines(&self) -> u64 {
        self.found.iter().filter(|found| **found).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of equal lines of members and other lines, each with both hashes.
    fn equal(members: &[[u64; 2]], others: &[[u64; 2]], max_lines: usize) -> u64 {
        let mut shared = SharedHashes::new(&[3, 5, 8], max_lines);
        members.chunks(2).for_each(|members| shared.add_members(members.as_flattened()));
        shared.end_members();
        others.chunks(3).for_each(|others| shared.compare(others.as_flattened()));
        shared.equal_lines()
    }

    #[test]
    fn only_lines_with_two_equal_hashes_are_equal() {
        let members = [[3, 1], [4, 1], [5, 2], [3, 1], [8, 7], [8, 6]];
        assert_eq!(
            equal(&members, &[[3, 2], [5, 1], [8, 8]], 9),
            0,
            "only the first hash is equal"
        );
        assert_eq!(equal(&members, &[[4, 1], [1, 1]], 9), 0, "hashes that are not in both lists");
        assert_eq!(equal(&members, &[[3, 1], [3, 1], [8, 6], [8, 9]], 9), 2);
        assert_eq!(equal(&members, &[], 9), 0);
        assert_eq!(equal(&[], &members, 9), 0);
    }

    #[test]
    fn memory_for_members_is_limited() {
        let members: Vec<_> = (0..100).map(|n| [3, n / 25]).collect();
        assert_eq!(equal(&members, &members, 10), 4, "repeated lines take no more memory");
        let different: Vec<_> = (0..100).map(|n| [3, n]).collect();
        assert_eq!(equal(&different, &different, 10), 11);
    }
}
