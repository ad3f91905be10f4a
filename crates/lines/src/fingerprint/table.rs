//! A hash table of fingerprints with a small state each, within a memory limit.
//!
//! Open addressing with linear probing over two parallel arrays. The low half of the fingerprint
//! determines by multiply-shift the cache line at which probing begins, so their number need not be a
//! power of two. Partitions use the high half; in a table that may be filled by partition it determines
//! the line. Fingerprints are keyed and random: an adversary cannot choose lines with the same slot.
//!
//! Cost: for states of one byte 17 bytes per slot, of which at most 7 in 8 are used: [`Table::BYTES_PER_ENTRY`] bytes per
//! entry. A lookup reads two cache lines, rarely three, more if the table is almost full. The table
//! doubles while the old and the new arrays fit the limit together, then grows to the remaining memory,
//! then returns [`Full`].

use petal::embed::{Words, prefetch};

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// The table has reached its memory limit. Its entries are unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A set of fingerprints.
pub(crate) type FingerprintSet = FingerprintMap<()>;

/// A map from fingerprints to states of one byte.
pub(crate) type Table = FingerprintMap<u8>;

/// A map from fingerprints to states.
pub(crate) struct FingerprintMap<S> {
    /// Two words for each slot, and unused ones.
    words: Words,
    /// A state for each slot.
    states: Vec<S>,
    used: usize,
    /// Whether the high half of a fingerprint determines the slot.
    by_high: bool,
    /// Memory limit of the arrays in bytes, including both generations while growing.
    allowance: u64,
    /// How many entries are expected, to grow at once.
    expected: u64,
}

const MIN_SLOTS: u64 = 1 << 10;
/// Slots of a cache line.
const LINE: u64 = 4;

/// Number of fingerprints from prefetching one to looking it up.
const AHEAD: usize = 16;

/// In a loop over fingerprints at index `at`: returns those to prefetch.
#[inline]
pub(crate) fn ahead(fingerprints: &[Fingerprint], at: usize) -> &[Fingerprint] {
    let next = if at == 0 { 0 } else { at + AHEAD - 1 };
    fingerprints.get(next..fingerprints.len().min(at + AHEAD)).unwrap_or_default()
}

impl<S: Copy + Default> FingerprintMap<S> {
    const SLOT: u64 = (size_of::<Fingerprint>() + size_of::<S>()) as u64;

    /// Bytes per entry of a table at its maximum load.
    pub(crate) const BYTES_PER_ENTRY: u64 = Self::SLOT * 8 / 7 + 1;

    /// Returns the number of entries that fit into `allowance` bytes.
    pub(crate) fn capacity(allowance: u64) -> u64 {
        allowance / Self::BYTES_PER_ENTRY
    }

    /// Returns the number of entries that a table of at most `allowance` bytes can contain if it
    /// begins with space for `expected` entries: while it grows, both generations take memory.
    pub(crate) fn capacity_after_growth(allowance: u64, expected: u64) -> u64 {
        Self::capacity_grown_from(allowance, Self::slots_for(allowance, expected))
    }

    fn capacity_grown_from(allowance: u64, mut slots: u64) -> u64 {
        while let Some(more) = Self::grown(allowance, slots, 0) {
            slots = more;
        }
        slots / 8 * 7
    }

    /// [`capacity_after_growth`](Self::capacity_after_growth) of this table.
    pub(crate) fn final_capacity(&self) -> u64 {
        Self::capacity_grown_from(self.allowance, self.states.len() as u64)
    }

    /// Returns the number of slots after growing; `None` if the table cannot grow.
    fn grown(allowance: u64, slots: u64, expected: u64) -> Option<u64> {
        let wanted = Self::slots_for(allowance, expected).max(slots * 2);
        let more = (allowance / Self::SLOT).saturating_sub(slots).min(wanted) / LINE * LINE;
        // A slightly larger table would be full again soon, after moving all entries.
        (more >= slots + slots / 4).then_some(more)
    }

    /// An empty table of at most `allowance` bytes, with initial space for `expected` entries.
    pub(crate) fn new(allowance: u64, expected: u64) -> Result<Self> {
        let (words, states) = arrays(Self::slots_for(allowance, expected))?;
        Ok(Self { words, states, used: 0, by_high: false, allowance, expected: 0 })
    }

    /// [`new`](Self::new) with slots in the order of partitions: inserting one partition after the other
    /// stays in the cache.
    pub(crate) fn in_partition_order(allowance: u64, expected: u64) -> Result<Self> {
        Ok(Self { by_high: true, ..Self::new(allowance, expected)? })
    }

    /// Empties the table and changes its limit. Reuses its memory if the size fits, which is faster
    /// than new memory.
    pub(crate) fn renew(&mut self, allowance: u64, expected: u64) -> Result<()> {
        let slots = Self::slots_for(allowance, expected) as usize;
        let capacity = self.states.capacity().min(self.words.get().len() / 2);
        if slots > capacity || slots < capacity / 2 {
            // Free the old arrays first: both may not fit.
            (self.words, self.states) = (Words::zeroed(0)?, Vec::new());
            *self = Self::new(allowance, expected)?;
            return Ok(());
        }
        self.words.get_mut()[..2 * slots].fill(0);
        self.states.clear();
        self.states.resize(slots, S::default());
        (self.used, self.allowance) = (0, allowance);
        Ok(())
    }

    /// Changes the limit, to no less than the table takes.
    pub(crate) fn set_allowance(&mut self, allowance: u64) {
        self.allowance = allowance;
    }

    /// Returns the memory of the arrays in bytes.
    pub(crate) fn memory_usage(&self) -> u64 {
        self.states.len() as u64 * Self::SLOT
    }

    fn slots_for(allowance: u64, expected: u64) -> u64 {
        // Load 2/3 if memory allows: at 7/8, a lookup of an absent fingerprint takes about thirty
        // steps.
        let wanted = expected.saturating_add(expected / 2).saturating_add(MIN_SLOTS);
        wanted.min((allowance / Self::SLOT).max(8)) / LINE * LINE
    }

    /// Announces the number of entries: if the table must grow, it gets space for them.
    pub(crate) fn expect(&mut self, entries: u64) {
        self.expected = entries;
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> u64 {
        self.used as u64
    }

    /// Prefetches the slots of fingerprints. The cache misses of a batch overlap; those of separate
    /// lookups hardly do.
    #[inline]
    pub(crate) fn prefetch(&self, fingerprints: &[Fingerprint]) {
        for fingerprint in fingerprints {
            let at = self.slot(*fingerprint);
            prefetch(self.words.get(), 2 * at);
            prefetch(&self.states, at);
        }
    }

    /// In a loop that looks up fingerprints in order, at index `at`: prefetches the slots of a later one.
    #[inline]
    pub(crate) fn prefetch_ahead(&self, fingerprints: &[Fingerprint], at: usize) {
        self.prefetch(ahead(fingerprints, at));
    }

    /// Returns whether a fingerprint is in the table.
    #[inline]
    pub(crate) fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.at(self.find(fingerprint)) == fingerprint
    }

    /// Returns the state of a fingerprint; `None` if it is not in the table.
    #[inline]
    pub(crate) fn get_mut(&mut self, fingerprint: Fingerprint) -> Option<&mut S> {
        let at = self.find(fingerprint);
        (self.at(at) == fingerprint).then(|| &mut self.states[at])
    }

    /// Returns the state of a fingerprint, inserted as `fresh` if it was absent (then `true`).
    #[inline]
    pub(crate) fn entry(
        &mut self,
        fingerprint: Fingerprint,
        fresh: S,
    ) -> Result<Result<(bool, &mut S), Full>> {
        let mut at = self.find(fingerprint);
        let new = self.at(at) != fingerprint;
        if new {
            if (self.used + 1) * 8 > self.states.len() * 7 {
                if self.grow()?.is_err() {
                    return Ok(Err(Full));
                }
                at = self.find(fingerprint);
            }
            self.put(at, fingerprint);
            self.states[at] = fresh;
            self.used += 1;
        }
        Ok(Ok((new, &mut self.states[at])))
    }

    /// Iterates over the entries in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Fingerprint, S)> + '_ {
        let entries = slots(&self.words).zip(&self.states);
        entries.filter(|(p, _)| *p != Fingerprint::default()).map(|(p, &s)| (p, s))
    }

    /// Iterates over the fingerprints in [order](Fingerprint::order). A group of used slots between
    /// free ones has all fingerprints whose first slots are in it, so each group is sorted alone.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = Fingerprint> + '_ {
        let slots = self.states.len();
        let used = move |at: usize| {
            (at < slots).then(|| self.at(at)).filter(|there| *there != Fingerprint::default())
        };
        let (mut at, mut group, mut next) = (0, Vec::new(), 0);
        std::iter::from_fn(move || {
            while next == group.len() && at <= slots {
                group.clear();
                next = 0;
                while let Some(there) = used(at) {
                    // Those of the last group may go on at the first slot.
                    if self.slot(there) <= at {
                        group.push(there);
                    }
                    at += 1;
                }
                if at == slots {
                    let first = (0..slots).map_while(|at| Some((at, used(at)?)));
                    let first = first.filter(|(at, there)| self.slot(*there) > *at);
                    group.extend(first.map(|(_, there)| there));
                }
                at += 1;
                group.sort_unstable_by_key(|there| there.order());
            }
            next += 1;
            group.get(next - 1).copied()
        })
    }

    /// Calls `change` with every state.
    pub(crate) fn for_each_state(&mut self, mut change: impl FnMut(&mut S)) {
        for (fingerprint, state) in slots(&self.words).zip(&mut self.states) {
            if fingerprint != Fingerprint::default() {
                change(state);
            }
        }
    }

    /// Returns the first slot to probe, which begins a cache line.
    #[inline]
    fn slot(&self, fingerprint: Fingerprint) -> usize {
        let half = if self.by_high { fingerprint.high } else { fingerprint.low };
        let lines = self.states.len() as u64 / LINE;
        ((u128::from(half) * u128::from(lines)) >> 64) as usize * LINE as usize
    }

    /// Returns the fingerprint in a slot; zero if it is free.
    #[inline]
    fn at(&self, slot: usize) -> Fingerprint {
        let [high, low] = self.words.get().as_chunks().0[slot];
        Fingerprint { high, low }
    }

    #[inline]
    fn put(&mut self, slot: usize, Fingerprint { high, low }: Fingerprint) {
        self.words.get_mut().as_chunks_mut().0[slot] = [high, low];
    }

    /// Returns the slot of the fingerprint, or the free slot where it belongs. There always is one.
    #[inline]
    fn find(&self, fingerprint: Fingerprint) -> usize {
        let slots = self.states.len();
        let mut at = self.slot(fingerprint);
        loop {
            let there = self.at(at);
            if there == fingerprint || there == Fingerprint::default() {
                return at;
            }
            at += 1;
            if at == slots {
                at = 0;
            }
        }
    }

    fn grow(&mut self) -> Result<Result<(), Full>> {
        let Some(more) = Self::grown(self.allowance, self.states.len() as u64, self.expected)
        else {
            return Ok(Err(Full));
        };
        let (words, states) = arrays(more)?;
        let words = std::mem::replace(&mut self.words, words);
        let states = std::mem::replace(&mut self.states, states);
        for (fingerprint, state) in slots(&words).zip(states) {
            if fingerprint != Fingerprint::default() {
                let at = self.find(fingerprint);
                self.put(at, fingerprint);
                self.states[at] = state;
            }
        }
        Ok(Ok(()))
    }
}

fn arrays<S: Copy + Default>(slots: u64) -> Result<(Words, Vec<S>)> {
    let slot = (size_of::<Fingerprint>() + size_of::<S>()) as u64;
    let refused = || Error::alloc(slots.saturating_mul(slot));
    let count = usize::try_from(slots).map_err(|_| refused())?;
    let mut states = Vec::new();
    states.try_reserve_exact(count).map_err(|_| refused())?;
    let words = Words::zeroed(slots.saturating_mul(2)).map_err(|_| refused())?;
    states.resize(count, S::default());
    Ok((words, states))
}

/// Returns the fingerprints in all slots.
fn slots(words: &Words) -> impl Iterator<Item = Fingerprint> + '_ {
    words.get().as_chunks().0.iter().map(|&[high, low]| Fingerprint { high, low })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn fingerprint(i: u64) -> Fingerprint {
        // Few distinct low halves: long probe runs, wrap-around at the end of the arrays.
        Fingerprint { high: i, low: (i % 7).wrapping_mul(0x2492_4924_9249_2492).wrapping_sub(1) }
    }

    #[test]
    fn equals_a_hash_map_while_it_grows() {
        let mut table = Table::new(1 << 20, 0).unwrap();
        let mut model = HashMap::new();
        for i in (0..3000).chain(0..3000) {
            let (new, state) = table.entry(fingerprint(i), (i % 250) as u8).unwrap().unwrap();
            assert_eq!(new, !model.contains_key(&i));
            *state = state.wrapping_add(1);
            *model.entry(i).or_insert((i % 250) as u8) = *state;
        }
        assert_eq!(table.len(), 3000);
        for i in 0..4000 {
            assert_eq!(table.get_mut(fingerprint(i)).copied(), model.get(&i).copied(), "{i}");
            assert_eq!(table.contains(fingerprint(i)), model.contains_key(&i));
        }
        let found: HashMap<_, _> = table.iter().map(|(p, s)| (p.high, s)).collect();
        assert_eq!(found, model);
    }

    #[test]
    fn sorted_fingerprints_are_all_in_order() {
        for count in [0, 1, 3, 890, 3000] {
            let mut table = FingerprintSet::new(1 << 20, 0).unwrap();
            // Many belong into the last slots, and go on at the first.
            let random = |i: u64| match i % 3 {
                0 => Fingerprint { high: i, low: u64::MAX - i % 4 },
                _ => Fingerprint { high: i, low: i.wrapping_mul(0x9e37_79b9_7f4a_7c15) },
            };
            let mut expected: Vec<_> = (1..=count).map(random).collect();
            for fingerprint in &expected {
                assert!(table.entry(*fingerprint, ()).unwrap().unwrap().0);
            }
            expected.sort_by_key(|one| one.order());
            assert!(table.sorted().eq(expected), "{count}");
        }
    }

    #[test]
    fn renewed_table_equals_a_new_one() {
        let mut table = Table::new(1 << 20, 3000).unwrap();
        for (allowance, expected) in [(1 << 20, 3000), (1 << 20, 2000), (1 << 20, 10), (5000, 900)]
        {
            for i in 0..200 {
                assert!(table.entry(fingerprint(i), 7).unwrap().unwrap().0);
            }
            table.renew(allowance, expected).unwrap();
            assert_eq!((table.len(), table.iter().count()), (0, 0));
            assert!(table.get_mut(fingerprint(1)).is_none());
            assert!(table.states.len() as u64 * Table::SLOT <= allowance.max(8 * Table::SLOT));
        }
    }

    #[test]
    fn growing_table_gets_space_for_the_expected_entries() {
        let mut table = FingerprintSet::new(4 << 20, 0).unwrap();
        table.expect(100_000);
        for i in 0..1000 {
            assert!(table.entry(fingerprint(i), ()).unwrap().unwrap().0);
        }
        assert!((150_000..160_000).contains(&table.states.len()), "{}", table.states.len());
        assert!((0..1000).all(|i| table.contains(fingerprint(i))));
        // More than the limit allows.
        let mut table = FingerprintSet::new(1 << 20, 0).unwrap();
        table.expect(u64::MAX);
        for i in 0..1000 {
            assert!(table.entry(fingerprint(i), ()).unwrap().unwrap().0);
        }
        assert_eq!(table.states.len(), (1 << 16) - 1024);
    }

    #[test]
    fn full_table_is_reported_and_keeps_its_entries() {
        for allowance in [100, 20_000, 100_000, 333_333] {
            let mut table = Table::new(allowance, 0).unwrap();
            let mut count = 0u64;
            let random = |i: u64| Fingerprint {
                high: i + 1,
                low: (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            };
            while table.entry(random(count), 1).unwrap().is_ok() {
                count += 1;
            }
            assert_eq!(table.len(), count);
            assert!(table.states.len() as u64 * Table::SLOT <= allowance.max(8 * Table::SLOT));
            assert!(count * Table::SLOT * 4 > allowance, "{count} entries in {allowance} bytes");
            assert!((0..count).all(|i| table.get_mut(random(i)).is_some()));
        }
        // The memory allocated at the start is all used.
        let mut table = Table::new(1_000_000, u64::MAX).unwrap();
        let mut count = 0;
        while table.entry(fingerprint(count), 1).unwrap().is_ok() {
            count += 1;
        }
        assert!(count >= Table::capacity(1_000_000), "{count}");
    }
}
