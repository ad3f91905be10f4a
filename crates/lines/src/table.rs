//! A set of fingerprints with one byte of state each, in at most so much memory.
//!
//! Open addressing with linear probing over two parallel arrays; the slot comes from the
//! fingerprint's low half (partitions use the high half), by multiply-shift, so sizes need not
//! be powers of two. Fingerprints are keyed and random, hence an adversary cannot pile them up.
//!
//! Cost: 17 bytes a slot, at most 7 of 8 slots used: [`Table::BYTES_PER_ENTRY`] bytes an entry;
//! one or two cache lines a look-up, more when it is almost full. It grows by doubling while old
//! and new fit the allowance together, then takes what is left, then reports [`Full`].

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// A table at the end of its memory. What was in it is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Fingerprints with a state each.
pub(crate) struct Table {
    prints: Vec<Fingerprint>,
    states: Vec<u8>,
    used: usize,
    /// Bytes that both arrays may take, while growing too.
    allowance: u64,
}

const SLOT: u64 = size_of::<Fingerprint>() as u64 + 1;
const LEAST_SLOTS: u64 = 1 << 10;

impl Table {
    /// What an entry costs in a table that is as full as it may be, in bytes.
    pub(crate) const BYTES_PER_ENTRY: u64 = SLOT * 8 / 7 + 1;

    /// How many entries an allowance of so many bytes has room for.
    pub(crate) fn capacity(allowance: u64) -> u64 {
        allowance / Self::BYTES_PER_ENTRY
    }

    /// An empty table that may take `allowance` bytes and starts out with room for `expected`.
    pub(crate) fn new(allowance: u64, expected: u64) -> Result<Self> {
        let slots = Self::slots_for(allowance, expected);
        let mut table = Self { prints: Vec::new(), states: Vec::new(), used: 0, allowance };
        (table.prints, table.states) = arrays(slots)?;
        Ok(table)
    }

    /// Empties it, for about so many fingerprints to come and with another allowance. Keeps its
    /// memory if that is of use: new memory costs more.
    pub(crate) fn renew(&mut self, allowance: u64, expected: u64) -> Result<()> {
        let slots = Self::slots_for(allowance, expected) as usize;
        if slots > self.prints.capacity() || slots < self.prints.capacity() / 2 {
            // The old one goes first: there may not be room for both.
            (self.prints, self.states) = (Vec::new(), Vec::new());
            *self = Self::new(allowance, expected)?;
            return Ok(());
        }
        self.prints.clear();
        self.prints.resize(slots, Fingerprint::default());
        self.states.clear();
        self.states.resize(slots, 0);
        (self.used, self.allowance) = (0, allowance);
        Ok(())
    }

    fn slots_for(allowance: u64, expected: u64) -> u64 {
        // Two of three slots used, if there is room: at seven of eight, a look-up of what is not
        // there takes some thirty steps.
        let wanted = expected.saturating_add(expected / 2).saturating_add(LEAST_SLOTS);
        wanted.min((allowance / SLOT).max(8))
    }

    /// How many fingerprints are in it.
    pub(crate) fn len(&self) -> u64 {
        self.used as u64
    }

    /// Brings the slots of fingerprints into the cache: their misses overlap, those of look-ups
    /// one after the other hardly do.
    #[inline]
    pub(crate) fn touch(&self, prints: &[Fingerprint]) {
        let touch = |sum: u64, print: &Fingerprint| {
            let at = self.slot(*print);
            sum.wrapping_add(self.prints[at].low).wrapping_add(self.states[at].into())
        };
        std::hint::black_box(prints.iter().fold(0, touch));
    }

    /// Whether a fingerprint is in the table.
    #[inline]
    pub(crate) fn contains(&self, print: Fingerprint) -> bool {
        self.prints[self.find(print)] == print
    }

    /// The state of a fingerprint, if it is in the table.
    #[inline]
    pub(crate) fn get_mut(&mut self, print: Fingerprint) -> Option<&mut u8> {
        let at = self.find(print);
        (self.prints[at] == print).then(|| &mut self.states[at])
    }

    /// The state of a fingerprint, put in as `fresh` if it was not there (then `true`).
    #[inline]
    pub(crate) fn entry(
        &mut self,
        print: Fingerprint,
        fresh: u8,
    ) -> Result<Result<(bool, &mut u8), Full>> {
        let mut at = self.find(print);
        let new = self.prints[at] != print;
        if new {
            if (self.used + 1) * 8 > self.prints.len() * 7 {
                if self.grow()?.is_err() {
                    return Ok(Err(Full));
                }
                at = self.find(print);
            }
            self.prints[at] = print;
            self.states[at] = fresh;
            self.used += 1;
        }
        Ok(Ok((new, &mut self.states[at])))
    }

    /// Every fingerprint with its state, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Fingerprint, u8)> + '_ {
        let entries = self.prints.iter().zip(&self.states);
        entries.filter(|(p, _)| **p != Fingerprint::default()).map(|(&p, &s)| (p, s))
    }

    /// Changes every state.
    pub(crate) fn for_each_state(&mut self, mut change: impl FnMut(&mut u8)) {
        for (print, state) in self.prints.iter().zip(&mut self.states) {
            if *print != Fingerprint::default() {
                change(state);
            }
        }
    }

    /// Where the search for a fingerprint begins.
    #[inline]
    fn slot(&self, print: Fingerprint) -> usize {
        ((u128::from(print.low) * self.prints.len() as u128) >> 64) as usize
    }

    /// Where the fingerprint is, or the free slot where it would go. There is always a free one.
    #[inline]
    fn find(&self, print: Fingerprint) -> usize {
        let slots = self.prints.len();
        let mut at = self.slot(print);
        loop {
            let there = self.prints[at];
            if there == print || there == Fingerprint::default() {
                return at;
            }
            at += 1;
            if at == slots {
                at = 0;
            }
        }
    }

    fn grow(&mut self) -> Result<Result<(), Full>> {
        let old = self.prints.len() as u64;
        let room = (self.allowance / SLOT).saturating_sub(old);
        let slots = room.min(old * 2);
        // A little more room would soon be full again, at the price of moving everything.
        if slots < old + old / 4 {
            return Ok(Err(Full));
        }
        let (prints, states) = arrays(slots)?;
        let prints = std::mem::replace(&mut self.prints, prints);
        let states = std::mem::replace(&mut self.states, states);
        for (print, state) in prints.into_iter().zip(states) {
            if print != Fingerprint::default() {
                let at = self.find(print);
                self.prints[at] = print;
                self.states[at] = state;
            }
        }
        Ok(Ok(()))
    }
}

fn arrays(slots: u64) -> Result<(Vec<Fingerprint>, Vec<u8>)> {
    let refused = || Error::alloc(slots.saturating_mul(SLOT));
    let count = usize::try_from(slots).map_err(|_| refused())?;
    let (mut prints, mut states) = (Vec::new(), Vec::new());
    prints.try_reserve_exact(count).map_err(|_| refused())?;
    states.try_reserve_exact(count).map_err(|_| refused())?;
    prints.resize(count, Fingerprint::default());
    states.resize(count, 0);
    Ok((prints, states))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn print(i: u64) -> Fingerprint {
        // Few distinct low halves: long probe runs, wrap-around at the end of the arrays.
        Fingerprint { high: i, low: (i % 7).wrapping_mul(0x2492_4924_9249_2492).wrapping_sub(1) }
    }

    #[test]
    fn equals_a_hash_map_while_it_grows() {
        let mut table = Table::new(1 << 20, 0).unwrap();
        let mut model = HashMap::new();
        for i in (0..3000).chain(0..3000) {
            let (new, state) = table.entry(print(i), (i % 250) as u8).unwrap().unwrap();
            assert_eq!(new, !model.contains_key(&i));
            *state = state.wrapping_add(1);
            *model.entry(i).or_insert((i % 250) as u8) = *state;
        }
        assert_eq!(table.len(), 3000);
        for i in 0..4000 {
            assert_eq!(table.get_mut(print(i)).copied(), model.get(&i).copied(), "{i}");
            assert_eq!(table.contains(print(i)), model.contains_key(&i));
        }
        let found: HashMap<_, _> = table.iter().map(|(p, s)| (p.high, s)).collect();
        assert_eq!(found, model);
    }

    #[test]
    fn renewed_is_as_good_as_new() {
        let mut table = Table::new(1 << 20, 3000).unwrap();
        for (allowance, expected) in [(1 << 20, 3000), (1 << 20, 2000), (1 << 20, 10), (5000, 900)]
        {
            for i in 0..200 {
                assert!(table.entry(print(i), 7).unwrap().unwrap().0);
            }
            table.renew(allowance, expected).unwrap();
            assert_eq!((table.len(), table.iter().count()), (0, 0));
            assert!(table.get_mut(print(1)).is_none());
            assert!(table.prints.capacity() as u64 * SLOT <= allowance.max(8 * SLOT));
        }
    }

    #[test]
    fn full_is_reported_and_keeps_what_was_there() {
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
            assert!(table.prints.capacity() as u64 * SLOT <= allowance.max(8 * SLOT));
            assert!(count * SLOT * 4 > allowance, "{count} entries in {allowance} bytes");
            assert!((0..count).all(|i| table.get_mut(random(i)).is_some()));
        }
        // Room asked for at the start is all used.
        let mut table = Table::new(1_000_000, u64::MAX).unwrap();
        let mut count = 0;
        while table.entry(print(count), 1).unwrap().is_ok() {
            count += 1;
        }
        assert!(count >= Table::capacity(1_000_000), "{count}");
    }
}
