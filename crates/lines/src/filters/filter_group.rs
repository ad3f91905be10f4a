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
/// those for the next one.
#[derive(Clone, Default)]
pub struct GroupHash(Vec<Arc<MemberHash>>);

struct MemberHash {
    hash: Box<dyn AnyLineHash>,
    transforms: Vec<Transform>,
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
            let (words, others) = left.split_at(lines * member.hash.words());
            let mut found = BatchResults::new();
            filter.contains_hashes(words, &mut found)?;
            each.push(found);
            left = others;
        }
        found.fill_with(lines * each.len(), |at| each[at / lines].get(at % lines));
        Ok(())
    }
}

impl LineHash for GroupHash {
    fn words(&self) -> usize {
        self.0.iter().map(|member| member.hash.words()).sum()
    }

    fn hash_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine> {
        let lines: Vec<_> = lines.collect();
        let (mut accepted, mut problems) = (vec![false; lines.len()], vec![None; lines.len()]);
        for MemberHash { hash, transforms } in self.0.iter().map(|member| &**member) {
            let mut keys = Vec::with_capacity(lines.len());
            for (at, &line) in lines.iter().enumerate() {
                // A key that the transforms refuse is not in this filter, but may be in another one.
                let key = match transform_key(line, transforms) {
                    Ok(key) => {
                        accepted[at] = true;
                        Cow::Owned(key)
                    }
                    Err(problem) => {
                        problems[at] = Some(problem);
                        Cow::Borrowed(line)
                    }
                };
                keys.push(key);
            }
            hash.hash_lines(&mut keys.iter().map(|key| &**key), words)?;
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
