//! Solving one shard: peeling, then assignment in reverse.
//!
//! A slot of a single key determines its key last of all: it is free to make the XOR of the key's
//! slots right. Peeling removes such keys, one after the other, until none is left, or until every
//! slot has several keys and the shard cannot be solved with this multiplier.
//!
//! While keys are peeled, a slot is a word of 32 bits: its number of keys at the top, and the XOR of
//! their indices. The slot of a peeled key keeps its index. Keys are nearly in the order of
//! their first slots, so that the slots of near keys are near each other and stay cached. Their exact
//! order has no effect: the slots of peeled keys wait in the order of slots.
//!
//! Memory: 8 bytes per slot. Source: Graf & Lemire 2022, "Binary fuse filters:
//! fast and smaller than xor filters".

use super::super::keys::reserve;
use crate::error::Result;
use crate::kernel::fuse::FuseParams;
use crate::kernel::prefetch;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// The position of the number of keys in a slot, and the increment of one key.
const COUNT: u32 = 24;
const ONE: u32 = 1 << COUNT;
/// The largest number of keys of a shard: indices are below the number of keys of a slot.
pub(super) const MAX_KEYS: u64 = 1 << COUNT;
/// A slot with this number of keys may overflow.
const TOO_MANY: u32 = 255 << COUNT;

/// Slots between prefetching a key and reading it.
const AHEAD: usize = 16;

/// The slots of a shard, reused for each shard.
#[derive(Default)]
pub(super) struct Solver {
    slots: Vec<u32>,
    /// The slots of peeled keys in their order; behind them slots with a single key. One more than
    /// slots, so that there is always an end to write to.
    order: Vec<u32>,
    /// The number of peeled keys.
    peeled: usize,
    /// For keys that were not peeled: a bit for each key that was, and their values.
    marks: Vec<u64>,
    unpeeled: Vec<u64>,
}

impl Solver {
    /// Computes the slots for these keys; returns false if that is impossible.
    pub(super) fn solve(
        &mut self,
        params: &FuseParams,
        keys: &[u64],
        multiplier: u64,
    ) -> Result<bool> {
        let stride = params.stride() as usize;
        self.slots.clear();
        reserve(&mut self.slots, stride)?;
        self.slots.resize(stride, 0);
        let missing = (stride + 1).saturating_sub(self.order.len());
        reserve(&mut self.order, missing)?;
        self.order.resize(self.order.len() + missing, 0);
        self.peeled = 0;
        if self.count(params, keys, multiplier) {
            self.peeled = self.peel(params, keys, multiplier);
        }
        if self.peeled < keys.len() {
            return Ok(false);
        }
        self.assign(params, keys, multiplier);
        Ok(true)
    }

    /// Drops the duplicates of the keys of the last attempt, which failed; returns how many are left, at
    /// the front. Keys with duplicates are never peeled, and most others are, unless a
    /// slot has more keys than it counts: then none is.
    pub(super) fn drop_duplicates(&mut self, keys: &mut [u64]) -> Result<usize> {
        let Self { slots, order, peeled, marks, unpeeled } = self;
        let words = keys.len().div_ceil(64);
        marks.clear();
        reserve(marks, words)?;
        marks.resize(words, 0);
        for &slot in &order[..*peeled] {
            let index = slots[slot as usize];
            marks[index as usize / 64] |= 1 << (index % 64);
        }
        unpeeled.clear();
        reserve(unpeeled, keys.len() - *peeled)?;
        let mut left = 0;
        for at in 0..keys.len() {
            let g = keys[at];
            if marks[at / 64] >> (at % 64) & 1 != 0 {
                keys[left] = g;
                left += 1;
            } else {
                unpeeled.push(g);
            }
        }
        unpeeled.sort_unstable();
        unpeeled.dedup();
        let end = left + unpeeled.len();
        keys[left..end].copy_from_slice(unpeeled);
        Ok(end)
    }

    /// Adds all keys to their slots; returns false if a slot has too many.
    fn count(&mut self, params: &FuseParams, keys: &[u64], multiplier: u64) -> bool {
        let mut too_many = false;
        for (index, &g) in (0..).zip(keys) {
            for slot in params.slots_in_shard(g, multiplier).slots {
                let word = &mut self.slots[slot as usize];
                let more = word.wrapping_add(ONE) ^ index;
                *word = more;
                too_many |= more >= TOO_MANY;
            }
        }
        !too_many
    }

    /// Peels keys; returns their number.
    fn peel(&mut self, params: &FuseParams, keys: &[u64], multiplier: u64) -> usize {
        // Slots with a single key wait in `order`, behind those of peeled keys. Each slot waits at
        // most once. There are no unpredictable branches on the number of keys of a slot.
        let (mut peeled, mut next, mut end) = (0, 0, 0);
        for (slot, word) in (0..).zip(&self.slots) {
            self.order[end] = slot;
            end += usize::from(word >> COUNT == 1);
        }
        while next < end {
            let slot = self.order[next];
            prefetch_key(keys, &self.slots, self.order.get(next + AHEAD));
            next += 1;
            let word = self.slots[slot as usize];
            if word >> COUNT != 1 {
                continue;
            }
            let index = word ^ ONE;
            self.order[peeled] = slot;
            peeled += 1;
            for other in params.slots_in_shard(keys[index as usize], multiplier).slots {
                let word = &mut self.slots[other as usize];
                let left = word.wrapping_sub(ONE) ^ index;
                *word = left;
                self.order[end] = other as u32;
                end += usize::from(left >> COUNT == 1);
            }
            self.slots[slot as usize] = index;
        }
        peeled
    }

    /// Computes the slots of peeled keys, the last one first. Slots of no key are 0.
    fn assign(&mut self, params: &FuseParams, keys: &[u64], multiplier: u64) {
        let order = &self.order[..keys.len()];
        for (at, &slot) in order.iter().enumerate().rev() {
            let ahead = at.checked_sub(AHEAD).and_then(|at| order.get(at));
            prefetch_key(keys, &self.slots, ahead);
            let index = self.slots[slot as usize];
            let key = params.slots_in_shard(keys[index as usize], multiplier);
            // The slot of the key is its index, which cancels out.
            let sum = key
                .slots
                .into_iter()
                .fold(key.fingerprint ^ index, |sum, slot| sum ^ self.slots[slot as usize]);
            self.slots[slot as usize] = sum;
        }
    }

    /// Writes the bits of the slots of a shard to its words, which are zero.
    pub(super) fn write_slots(&self, params: &FuseParams, shard: u64, words: &mut [u64]) {
        let stride = params.stride();
        let wide = params.wide_slots().saturating_sub(shard * stride).min(stride) as usize;
        let (wide, narrow) = self.slots.split_at(wide);
        let mut bit = 0;
        for (slots, bits) in [(wide, params.bits() + 1), (narrow, params.bits())] {
            let mask = (1 << bits) - 1;
            for &slot in slots {
                let value = u64::from(slot) & mask;
                let (word, shift) = (bit / 64, bit % 64);
                if let Some(word) = words.get_mut(word as usize) {
                    *word |= value << shift;
                }
                if shift + bits > 64 {
                    words[word as usize + 1] |= value >> (64 - shift);
                }
                bit += bits;
            }
        }
        words.iter_mut().for_each(|word| *word = word.to_le());
    }
}

/// Prefetches the key of a slot, which has a single key or is that of a peeled key.
#[inline]
fn prefetch_key(keys: &[u64], slots: &[u32], slot: Option<&u32>) {
    if let Some(word) = slot.and_then(|&slot| slots.get(slot as usize)) {
        prefetch(keys, (word & (ONE - 1)) as usize);
    }
}
