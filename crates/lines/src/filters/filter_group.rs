//! Several filters that are asked in one pass.

use std::borrow::Cow;
use std::sync::Arc;

use petal::BatchResults;

use super::line_filter::{LineFilter, LineHash};
use crate::error::Result;
use crate::keys::{Transform, transform_key};
use crate::scan::BadLine;

/// Filters that are asked together. Each has a hash function and key transforms of its own.
///
/// A key that the transforms of all filters refuse is an error.
///
/// Cost: that of each filter; a copy of each key for each filter.
#[derive(Default)]
pub struct FilterGroup<'a> {
    filters: Vec<Box<dyn Lookup + 'a>>,
    hash: GroupHash,
}

/// The hash functions of a [`FilterGroup`]: the words of all lines for the first filter are followed by
/// those for the next one. Before those of a filter there is a word for each line: 1 if the line is a key of
/// that filter, 0 if the filter refuses it.
#[derive(Clone, Default)]
pub struct GroupHash(Vec<Arc<MemberHash>>);

struct MemberHash {
    hash: Box<dyn AnyLineHash>,
    transforms: Vec<Transform>,
}

impl MemberHash {
    /// Appends the hashes of keys, of which some have none, from the transforms or from this hash function;
    /// their words are 0. Sets the problems of those keys.
    fn hash_keys(&self, keys: &mut [Result<Cow<'_, [u8]>, String>], words: &mut Vec<u64>) {
        let mut at = 0;
        while at < keys.len() {
            let rest = &mut keys[at..];
            let end = rest.iter().position(Result::is_err).unwrap_or(rest.len());
            let start = words.len();
            let hashed = |end: usize, words: &mut Vec<u64>| {
                let mut valid = rest[..end].iter().flatten().map(|key| &**key);
                self.hash.hash_lines(&mut valid, words)
            };
            let end = match hashed(end, words) {
                Ok(()) => end,
                Err(BadLine { line, why }) => {
                    words.truncate(start);
                    // It was no problem before.
                    let _ = hashed(line, words);
                    rest[line] = Err(why);
                    line
                }
            };
            let refused = usize::from(end < rest.len());
            words.resize(start + (end + refused) * self.hash.words(), 0);
            at += end + refused;
        }
    }
}

impl<'a> FilterGroup<'a> {
    /// Adds a filter whose keys are changed by these transforms before they are looked up.
    pub fn push<F>(&mut self, filter: &'a F, transforms: Vec<Transform>)
    where
        F: LineFilter<Hash: 'static> + ?Sized,
    {
        self.hash.0.push(Arc::new(MemberHash { hash: Box::new(filter.line_hash()), transforms }));
        self.filters.push(Box::new(filter));
    }
}

impl LineFilter for FilterGroup<'_> {
    type Hash = GroupHash;

    fn line_hash(&self) -> GroupHash {
        self.hash.clone()
    }

    fn filters(&self) -> usize {
        self.filters.len()
    }

    fn contains_hashes(&self, words: &[u64], found: &mut BatchResults) -> Result<()> {
        let lines = words.len() / LineHash::words(&self.hash).max(1);
        let mut each = Vec::with_capacity(self.filters.len());
        let mut left = words;
        for (filter, member) in self.filters.iter().zip(&self.hash.0) {
            let (are_keys, others) = left.split_at(lines);
            let (words, others) = others.split_at(lines * member.hash.words());
            let mut found = BatchResults::new();
            filter.contains_hashes(words, &mut found)?;
            each.push((are_keys, found));
            left = others;
        }
        found.fill_with(lines * each.len(), |at| {
            let (are_keys, found) = &each[at / lines];
            are_keys[at % lines] == 1 && found.get(at % lines)
        });
        Ok(())
    }
}

impl LineHash for GroupHash {
    fn words(&self) -> usize {
        self.0.iter().map(|member| 1 + member.hash.words()).sum()
    }

    fn hash_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine> {
        let lines: Vec<_> = lines.collect();
        let (mut accepted, mut problems) = (vec![false; lines.len()], vec![None; lines.len()]);
        let mut keys = Vec::with_capacity(lines.len());
        for member in self.0.iter().map(|member| &**member) {
            keys.clear();
            keys.extend(lines.iter().map(|&line| match &member.transforms[..] {
                [] => Ok(Cow::Borrowed(line)),
                transforms => transform_key(line, transforms).map(Cow::Owned),
            }));
            let start = words.len();
            words.resize(start + lines.len(), 0);
            member.hash_keys(&mut keys, words);
            // A key that a filter refuses is not in it, but may be in another one.
            for (at, key) in keys.drain(..).enumerate() {
                words[start + at] = u64::from(key.is_ok());
                accepted[at] |= key.is_ok();
                problems[at] = problems[at].take().or(key.err());
            }
        }
        // Empty keys are those of comments.
        let is_bad = |line: &usize| !accepted[*line] && !lines[*line].is_empty();
        match (0..lines.len()).find(is_bad).map(|line| (line, problems[line].take())) {
            Some((line, Some(why))) => Err(BadLine { line, why }),
            _ => Ok(()),
        }
    }
}

/// A [`LineFilter`] of any type.
trait Lookup: Sync {
    fn contains_hashes(&self, words: &[u64], found: &mut BatchResults) -> Result<()>;
}

impl<F: LineFilter + ?Sized> Lookup for &F {
    fn contains_hashes(&self, words: &[u64], found: &mut BatchResults) -> Result<()> {
        F::contains_hashes(self, words, found)
    }
}

/// A [`LineHash`] of any type.
trait AnyLineHash: Send + Sync {
    fn words(&self) -> usize;

    fn hash_lines(
        &self,
        lines: &mut dyn Iterator<Item = &[u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine>;
}

impl<H: LineHash + Send> AnyLineHash for H {
    fn words(&self) -> usize {
        LineHash::words(self)
    }

    fn hash_lines(
        &self,
        lines: &mut dyn Iterator<Item = &[u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine> {
        LineHash::hash_lines(self, lines, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that contains all lines, of which it takes only those that are a digit.
    struct Digits;

    impl LineHash for Digits {
        fn words(&self) -> usize {
            2
        }

        fn hash_lines<'a>(
            &self,
            lines: impl Iterator<Item = &'a [u8]>,
            words: &mut Vec<u64>,
        ) -> Result<(), BadLine> {
            for (line, key) in lines.enumerate() {
                words.push(7);
                match key {
                    [b'0'..=b'9'] => words.push(u64::from(key[0])),
                    _ => return Err(BadLine { line, why: "no digit".to_owned() }),
                }
            }
            Ok(())
        }
    }

    impl LineFilter for Digits {
        type Hash = Self;

        fn line_hash(&self) -> Self {
            Self
        }

        fn contains_hashes(&self, words: &[u64], found: &mut BatchResults) -> Result<()> {
            found.fill_with(words.len() / 2, |_| true);
            Ok(())
        }
    }

    #[test]
    fn lines_that_a_filter_refuses_are_not_in_it() {
        let mut group = FilterGroup::default();
        group.push(&Digits, vec![Transform::Unhex]);
        group.push(&Digits, Vec::new());
        let hash = group.line_hash();
        // One line is a key of both filters, after its change or before.
        let lines: [&[u8]; 5] = [b"1", b"x", b"31", b"", b"2"];
        let mut words = Vec::new();
        let bad = LineHash::hash_lines(&hash, lines.into_iter(), &mut words).unwrap_err();
        assert_eq!(bad.line, 1);
        let lines: [&[u8]; 4] = [b"1", b"31", b"", b"2"];
        words.clear();
        LineHash::hash_lines(&hash, lines.into_iter(), &mut words).unwrap();
        assert_eq!(words[4..8], [0, 0, 7, u64::from(b'1')], "{words:?}");
        let mut found = BatchResults::new();
        group.contains_hashes(&words, &mut found).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [1, 4, 7]);
    }
}
