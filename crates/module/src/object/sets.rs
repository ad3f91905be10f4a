//! What a filter can be told and asked beside keys that are put in: removals, counts, and what it
//! has in common with others.

use petal::rate::Overlap;
use petal::{Answers, AnyFilter, BloomFilter, ClassicBloomFilter};

use super::{Object, Refusal, hashes};

impl Object {
    /// Takes keys out, each once; whether they were there.
    ///
    /// # Errors
    /// If its type does not delete.
    pub(crate) fn remove_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        removed: &mut Answers,
    ) -> Result<(), Refusal> {
        let Self::Filter(filter) = self else { return Err(Refusal::Type) };
        let hashes = hashes(filter.face().hash_spec(), keys);
        Ok(filter.face_mut()?.remove_hashes(&hashes, removed)?)
    }

    /// How often keys were put in and not taken out, at most.
    ///
    /// # Errors
    /// If its type does not count.
    pub(crate) fn counts<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Vec<u64>, Refusal> {
        let Self::Filter(filter) = self else { return Err(Refusal::Type) };
        let hashes = hashes(filter.face().hash_spec(), keys);
        let count: &dyn Fn(u64) -> u64 = match &**filter {
            AnyFilter::Counting(filter) => &|hash| filter.count_hash(hash),
            AnyFilter::CountingClassic(filter) => &|hash| filter.count_hash(hash),
            AnyFilter::Quotient(filter) => &|hash| filter.count_hash(hash),
            _ => return Err(Refusal::Type),
        };
        Ok(hashes.into_iter().map(count).collect())
    }

    /// Makes this the filter of all keys that are in it or in any of the others, or leaves it as it
    /// is.
    ///
    /// # Errors
    /// If they are not compatible, or it would take more than so many bytes.
    pub(crate) fn unite(&mut self, others: &[&Self], limit: u64) -> Result<(), Refusal> {
        let Self::Filter(ours) = self else { return Err(Refusal::Type) };
        let mut theirs = Vec::with_capacity(others.len());
        for other in others {
            let Self::Filter(other) = other else { return Err(Refusal::Type) };
            ours.check_compatible(other)?;
            theirs.push(other);
        }
        if !matches!(**ours, AnyFilter::Quotient(_)) {
            // What is compatible fits.
            return Ok(theirs.into_iter().try_for_each(|theirs| ours.union(theirs))?);
        }
        let mut united = ours.to_owned_filter()?;
        for theirs in theirs {
            united.union(theirs)?;
            if united.face().memory_usage() > limit {
                return Err(Refusal::Limit);
            }
        }
        **ours = united;
        Ok(())
    }

    /// How much two filters have in common.
    ///
    /// # Errors
    /// If they cannot be compared.
    pub(crate) fn compare(&self, other: &Self) -> Result<Overlap, Refusal> {
        match (self.bits(), other.bits()) {
            (Some(Bits::Blocked(ours)), Some(Bits::Blocked(theirs))) => Ok(ours.compare(theirs)?),
            (Some(Bits::Classic(ours)), Some(Bits::Classic(theirs))) => Ok(ours.compare(theirs)?),
            _ => Err(Refusal::Type),
        }
    }

    /// The Bloom filter that it is or has in it.
    fn bits(&self) -> Option<Bits<'_>> {
        let Self::Filter(filter) = self else { return None };
        Some(match &**filter {
            AnyFilter::Bloom(filter) => Bits::Blocked(filter),
            AnyFilter::Counting(filter) => Bits::Blocked(filter.as_filter()),
            AnyFilter::Classic(filter) => Bits::Classic(filter),
            AnyFilter::CountingClassic(filter) => Bits::Classic(filter.as_filter()),
            _ => return None,
        })
    }
}

enum Bits<'a> {
    Blocked(&'a BloomFilter),
    Classic(&'a ClassicBloomFilter),
}
