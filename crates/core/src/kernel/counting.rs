//! Counting filters: a small counter for each bit, incremented and decremented by keys.
//!
//! Counters are bit-sliced. In a cache line of 512 *bits*, each bit is 1 if its counter is above
//! zero. The *planes* of the line hold count - 1 in binary, lowest digit first. One operation on a
//! line thus works on 512 counters, and a query reads only the bits. Bits and planes are in
//! separate memory; the planes of a line are adjacent.
//!
//! * An increment adds 1 to each counter of the key, with carries from plane to plane.
//! * A decrement subtracts 1, with borrows.
//! * A counter at its maximum is *saturated*: its true count is unknown, so it is never
//!   decremented, and no key is lost.
//!
//! Invariants of filters that were filled by this code: a counter whose bit is clear is zero in all
//! planes; each position of a key counts once, even if two of its probes coincide.
//!
//! The word-wise code here is the reference for the vector code. Cost: for each cache line of a
//! key, the line and its planes. Source: Fan, Cao, Almeida & Broder 2000, "Summary cache", for
//! counters; carries over bit slices are folklore.

use super::blocked::BlockParams;
use super::classic::{self, ClassicParams};
use super::cpu::KernelHandle;
use super::primitives::prefetch;
use crate::store::CacheLine;

/// Mutable counters of a filter.
pub(crate) struct Counters<'a> {
    pub(crate) bits: &'a mut [CacheLine],
    pub(crate) planes: &'a mut [CacheLine],
    /// Planes per line; at least one.
    pub(crate) depth: usize,
}

/// The outcome of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoveOutcome {
    /// The filter did not contain the key; nothing has changed.
    Absent,
    /// The key was removed once, and the filter still contains it.
    StillPresent,
    /// The key was removed, and the filter does not contain it any more.
    Removed,
}

/// Where the counters of a key are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CounterLayout {
    /// In one cache line.
    OneLine(BlockParams<8>),
    /// In a pair of cache lines.
    LinePair(BlockParams<16>),
    /// Anywhere.
    Classic(ClassicParams),
}

/// The depth with specialised batch code: that of the default counter width of four bits.
const DEFAULT_DEPTH: usize = 3;

/// Keys between prefetch and access: with four lines each, enough to fill a core's line-fill
/// buffers.
const AHEAD: usize = 8;

/// The counter positions of a hash.
pub(super) trait CounterPositions: Copy {
    /// Returns whether all counters are above zero.
    fn contains(self, bits: &[CacheLine], hash: u64) -> bool;

    /// Calls `visit` once for each position.
    fn each(self, hash: u64, visit: impl FnMut(u64));

    /// Calls `visit` for each line that contains a position, perhaps more than once.
    fn each_line(self, hash: u64, visit: impl FnMut(usize));
}

impl<const LANES: usize> CounterPositions for BlockParams<LANES> {
    #[inline(always)]
    fn contains(self, bits: &[CacheLine], hash: u64) -> bool {
        BlockParams::contains(&self, &bits[self.line_range(hash)], hash)
    }

    #[inline(always)]
    fn each(self, hash: u64, visit: impl FnMut(u64)) {
        self.positions(hash).for_each(visit);
    }

    #[inline(always)]
    fn each_line(self, hash: u64, visit: impl FnMut(usize)) {
        self.line_range(hash).for_each(visit);
    }
}

impl CounterPositions for ClassicParams {
    #[inline(always)]
    fn contains(self, bits: &[CacheLine], hash: u64) -> bool {
        ClassicParams::contains(&self, bits, hash)
    }

    #[inline(always)]
    fn each(self, hash: u64, mut visit: impl FnMut(u64)) {
        let mut seen = [0; classic::MAX_PROBES];
        let mut count = 0;
        for position in self.positions(hash) {
            if !seen[..count].contains(&position) {
                seen[count] = position;
                count += 1;
                visit(position);
            }
        }
    }

    #[inline(always)]
    fn each_line(self, hash: u64, mut visit: impl FnMut(usize)) {
        self.positions(hash).for_each(|position| visit(classic::locate(position).0));
    }
}

impl Counters<'_> {
    /// Returns line `at` of the bits, and its planes.
    #[inline(always)]
    pub(super) fn line(&mut self, at: usize) -> (&mut CacheLine, &mut [CacheLine]) {
        (&mut self.bits[at], &mut self.planes[at * self.depth..][..self.depth])
    }

    /// Prefetches line `at` of the bits and its planes.
    #[inline(always)]
    fn prefetch(&self, at: usize) {
        prefetch(self.bits, at);
        let planes = at.wrapping_mul(self.depth);
        (0..self.depth).for_each(|plane| prefetch(self.planes, planes.wrapping_add(plane)));
    }

    /// Adds 1 to a counter. Returns whether it was zero.
    #[inline(always)]
    fn increment(&mut self, position: u64) -> bool {
        let (line, word, bit) = classic::locate(position);
        let bit = bit.to_le();
        let (bits, planes) = self.line(line);
        let old = bits.0[word];
        bits.0[word] = old | bit;
        let mut carry = old & bit;
        for plane in planes.iter_mut() {
            let old = plane.0[word];
            plane.0[word] = old ^ carry;
            carry &= old;
        }
        // On overflow the counter stays at its maximum.
        planes.iter_mut().for_each(|plane| plane.0[word] |= carry);
        old & bit == 0
    }

    /// Subtracts 1 from a counter above zero, unless it is saturated. Returns whether it is zero
    /// now.
    #[inline(always)]
    fn decrement(&mut self, position: u64) -> bool {
        let (line, word, bit) = classic::locate(position);
        let bit = bit.to_le();
        let (bits, planes) = self.line(line);
        let saturated = planes.iter().fold(bit, |saturated, plane| saturated & plane.0[word]);
        let mut borrow = bit & !saturated;
        for plane in planes.iter_mut() {
            let old = plane.0[word];
            plane.0[word] = old ^ borrow;
            borrow &= !old;
        }
        // If the count was 1, all planes have borrowed.
        planes.iter_mut().for_each(|plane| plane.0[word] &= !borrow);
        bits.0[word] &= !borrow;
        borrow != 0
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, positions: impl CounterPositions, hash: u64) -> bool {
        let mut new = false;
        positions.each(hash, |position| new |= self.increment(position));
        new
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, positions: impl CounterPositions, hash: u64) -> RemoveOutcome {
        if !positions.contains(self.bits, hash) {
            return RemoveOutcome::Absent;
        }
        let mut removed = false;
        positions.each(hash, |position| removed |= self.decrement(position));
        if removed { RemoveOutcome::Removed } else { RemoveOutcome::StillPresent }
    }

    /// Calls `update` for hashes in turn and prefetches the lines of later hashes. Writes one result
    /// bit per hash, 64 per word.
    #[inline(always)]
    pub(super) fn batch(
        &mut self,
        positions: impl CounterPositions,
        hashes: &[u64],
        results: &mut [u64],
        update: impl FnMut(&mut Counters<'_>, u64) -> bool,
    ) {
        if self.depth == DEFAULT_DEPTH {
            // With a constant depth the compiler unrolls the loops: that takes half the time.
            let mut constant =
                Counters { bits: self.bits, planes: self.planes, depth: DEFAULT_DEPTH };
            constant.batch_of_any_depth(positions, hashes, results, update);
        } else {
            self.batch_of_any_depth(positions, hashes, results, update);
        }
    }

    #[inline(always)]
    fn batch_of_any_depth(
        &mut self,
        positions: impl CounterPositions,
        hashes: &[u64],
        results: &mut [u64],
        mut update: impl FnMut(&mut Counters<'_>, u64) -> bool,
    ) {
        assert!(results.len() == hashes.len().div_ceil(64), "one word for 64 results");
        for &hash in hashes.iter().take(AHEAD) {
            positions.each_line(hash, |line| self.prefetch(line));
        }
        let mut ahead = hashes.iter().skip(AHEAD);
        for (result, hashes) in results.iter_mut().zip(hashes.chunks(64)) {
            *result = 0;
            for (at, &hash) in hashes.iter().enumerate() {
                if let Some(&hash) = ahead.next() {
                    positions.each_line(hash, |line| self.prefetch(line));
                }
                *result |= u64::from(update(self, hash)) << at;
            }
        }
    }

    /// Calls `remove` for hashes in turn. Returns the number of those that were removed.
    #[inline(always)]
    pub(super) fn remove_batch(
        &mut self,
        positions: impl CounterPositions,
        hashes: &[u64],
        removed: &mut [u64],
        remove: impl Fn(&mut Counters<'_>, u64) -> RemoveOutcome,
    ) -> u64 {
        let mut count = 0;
        self.batch(positions, hashes, removed, |counters, hash| {
            let outcome = remove(counters, hash);
            count += u64::from(outcome == RemoveOutcome::Removed);
            outcome != RemoveOutcome::Absent
        });
        count
    }
}

/// Returns the count of one counter.
#[inline(always)]
pub(crate) fn count(bits: &[CacheLine], planes: &[CacheLine], depth: usize, position: u64) -> u64 {
    let (line, word, bit) = classic::locate(position);
    let digit = |line: &CacheLine| u64::from(u64::from_le(line.0[word]) & bit != 0);
    let planes = &planes[line * depth..][..depth];
    let above = planes.iter().rev().fold(0, |count, plane| count << 1 | digit(plane));
    // In unverified data, planes may be set where the bit is clear.
    digit(&bits[line]) * (above + 1)
}

/// Evaluates an expression with the parameters of a blocked layout, or another one with those of the
/// classic layout, which has portable code only.
macro_rules! by_layout {
    ($layout:expr, |$params:ident| $blocked:expr, $classic:expr) => {
        match $layout {
            Self::OneLine($params) => $blocked,
            Self::LinePair($params) => $blocked,
            Self::Classic($params) => $classic,
        }
    };
}

impl CounterLayout {
    /// Same as [`KernelHandle::increment`].
    pub(crate) fn insert(
        self,
        kernel: KernelHandle,
        mut counters: Counters<'_>,
        hash: u64,
    ) -> bool {
        by_layout!(
            self,
            |params| kernel.increment(params, &mut counters, hash),
            counters.insert(params, hash)
        )
    }

    /// Same as [`KernelHandle::decrement`].
    pub(crate) fn remove(
        self,
        kernel: KernelHandle,
        mut counters: Counters<'_>,
        hash: u64,
    ) -> RemoveOutcome {
        by_layout!(
            self,
            |params| kernel.decrement(params, &mut counters, hash),
            counters.remove(params, hash)
        )
    }

    /// Same as [`KernelHandle::increment_batch`].
    pub(crate) fn insert_batch(
        self,
        kernel: KernelHandle,
        mut counters: Counters<'_>,
        hashes: &[u64],
        new: &mut [u64],
    ) {
        by_layout!(
            self,
            |params| kernel.increment_batch(params, &mut counters, hashes, new),
            counters.batch(params, hashes, new, |counters, hash| counters.insert(params, hash))
        );
    }

    /// Same as [`KernelHandle::decrement_batch`].
    pub(crate) fn remove_batch(
        self,
        kernel: KernelHandle,
        mut counters: Counters<'_>,
        hashes: &[u64],
        removed: &mut [u64],
    ) -> u64 {
        by_layout!(
            self,
            |params| kernel.decrement_batch(params, &mut counters, hashes, removed),
            counters.remove_batch(params, hashes, removed, |counters, hash| {
                counters.remove(params, hash)
            })
        )
    }

    /// Returns the smallest count among the counters of a hash.
    pub(crate) fn count(
        self,
        bits: &[CacheLine],
        planes: &[CacheLine],
        depth: usize,
        hash: u64,
    ) -> u64 {
        let mut min = u64::MAX;
        let visit = |position| min = min.min(count(bits, planes, depth, position));
        by_layout!(self, |params| params.each(hash, visit), params.each(hash, visit));
        min
    }
}
