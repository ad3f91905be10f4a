//! A table with its kernel, and the loops over many hashes.

use super::check::{CheckProgress, TableCounts, TableFault};
use super::fill::Filler;
use super::fingerprints::Fingerprints;
use super::params::{HEADER_BYTES, SLOTS, TableParams};
use super::update::InsertOutcome;
use crate::kernel::cpu::KernelHandle;
use crate::kernel::primitives::{prefetch, scale};
use crate::kernel::select::Select;
use crate::store::{CacheLine, lines_as_bytes, lines_as_bytes_mut};

/// Keys between prefetch and access.
const AHEAD: usize = 24;
/// The likely distance of a run from its preferred slot, for prefetching. At the planned fill the
/// mean shift is 9 slots.
const LIKELY_SHIFT: usize = 6;

/// A table; its cache lines are an argument of each call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    params: TableParams,
    /// Number of possible fingerprints, to which hashes are scaled.
    range: u64,
    kernel: KernelHandle,
}

/// The outcome of an insertion of many hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchInserted {
    /// Number of hashes processed.
    pub(crate) hashes: usize,
    /// Number of them that were new.
    pub(crate) new: u64,
    /// Number of slots that they use; each copy uses one.
    pub(crate) slots: u64,
    /// Whether there was no slot for the next hash.
    pub(crate) full: bool,
}

impl Table {
    /// Creates a table.
    pub(crate) fn new(params: TableParams, range: u64, kernel: KernelHandle) -> Self {
        Self { params, range, kernel }
    }

    /// Returns the fingerprint of a hash.
    #[inline]
    pub(crate) fn fingerprint(&self, hash: u64) -> u64 {
        scale(hash, self.range)
    }

    /// Returns whether the table contains the fingerprint of a hash.
    #[inline]
    pub(crate) fn contains(&self, lines: &[CacheLine], hash: u64) -> bool {
        let (bytes, fingerprint) = (lines_as_bytes(lines), self.fingerprint(hash));
        self.kernel.quotient_contains(self.params, bytes, fingerprint)
    }

    /// Returns the number of copies of the fingerprint of a hash.
    pub(crate) fn count(&self, lines: &[CacheLine], hash: u64) -> u64 {
        let (bytes, fingerprint) = (lines_as_bytes(lines), self.fingerprint(hash));
        self.kernel.quotient_count(self.params, bytes, fingerprint)
    }

    /// Inserts the fingerprint of a hash. If the table contains it, adds a copy if `duplicates`.
    #[inline]
    pub(crate) fn insert(
        &self,
        lines: &mut [CacheLine],
        hash: u64,
        duplicates: bool,
    ) -> InsertOutcome {
        let (bytes, fingerprint) = (lines_as_bytes_mut(lines), self.fingerprint(hash));
        self.prefetch_update(bytes, hash);
        self.kernel.quotient_insert(self.params, bytes, fingerprint, duplicates)
    }

    /// Removes one copy of the fingerprint of a hash. Returns the number of copies before.
    #[inline]
    pub(crate) fn remove(&self, lines: &mut [CacheLine], hash: u64) -> u64 {
        let (bytes, fingerprint) = (lines_as_bytes_mut(lines), self.fingerprint(hash));
        self.prefetch_update(bytes, hash);
        self.kernel.quotient_remove(self.params, bytes, fingerprint)
    }

    /// Looks up many hashes. `found` has one word for 64 hashes and must be 0.
    pub(crate) fn contains_batch(&self, lines: &[CacheLine], hashes: &[u64], found: &mut [u64]) {
        let bytes = lines_as_bytes(lines);
        self.kernel.quotient_contains_batch(self, bytes, hashes, found)
    }

    /// Inserts hashes in turn, from index `first` on, until they use `max_slots` slots or there is no
    /// slot for one. Adds copies of those present if `duplicates`. A result is true if that hash was
    /// new.
    pub(crate) fn insert_batch(
        &self,
        lines: &mut [CacheLine],
        hashes: &[u64],
        first: usize,
        (max_slots, duplicates): (u64, bool),
        new: &mut [u64],
    ) -> BatchInserted {
        let bytes = lines_as_bytes_mut(lines);
        self.kernel.quotient_insert_batch(self, bytes, hashes, first, (max_slots, duplicates), new)
    }

    /// Returns all fingerprints in ascending order.
    pub(crate) fn walk<'a>(&self, lines: &'a [CacheLine]) -> Fingerprints<'a> {
        Fingerprints::new(self.params, lines_as_bytes(lines))
    }

    /// Fills lines of zeros with fingerprints in ascending order. Returns whether all found a slot.
    pub(crate) fn fill(
        &self,
        lines: &mut [CacheLine],
        mut fingerprints: impl Iterator<Item = u64>,
    ) -> bool {
        let mut fill = Filler::new(self.params, lines_as_bytes_mut(lines));
        let all = fingerprints.all(|fingerprint| fill.push(fingerprint));
        self.finish(fill);
        all
    }

    fn finish(&self, fill: Filler<'_>) {
        self.kernel.quotient_finish(fill);
    }

    #[inline(always)]
    pub(in crate::kernel) fn contains_all(
        &self,
        select: impl Select,
        bytes: &[u8],
        hashes: &[u64],
        found: &mut [u64],
    ) {
        for hash in hashes.iter().take(AHEAD) {
            self.prefetch_lookup(bytes, *hash);
        }
        for (at, hash) in hashes.iter().enumerate() {
            if let Some(later) = hashes.get(at + AHEAD) {
                self.prefetch_lookup(bytes, *later);
            }
            let yes = self.params.contains(select, bytes, self.fingerprint(*hash));
            if let Some(word) = found.get_mut(at / 64) {
                *word |= u64::from(yes) << (at % 64);
            }
        }
    }

    #[inline(always)]
    pub(in crate::kernel) fn insert_all(
        &self,
        select: impl Select,
        bytes: &mut [u8],
        hashes: &[u64],
        first: usize,
        (max_slots, duplicates): (u64, bool),
        new: &mut [u64],
    ) -> BatchInserted {
        let mut inserted_batch = BatchInserted::default();
        for hash in hashes.iter().skip(first).take(AHEAD) {
            self.prefetch_update(bytes, *hash);
        }
        for (at, hash) in hashes.iter().enumerate().skip(first) {
            if inserted_batch.slots == max_slots {
                break;
            }
            if let Some(later) = hashes.get(at + AHEAD) {
                self.prefetch_update(bytes, *later);
            }
            let inserted = self.params.insert(select, bytes, self.fingerprint(*hash), duplicates);
            if inserted == InsertOutcome::Full {
                inserted_batch.full = true;
                break;
            }
            let yes = u64::from(inserted == InsertOutcome::New);
            if let Some(word) = new.get_mut(at / 64) {
                *word |= yes << (at % 64);
            }
            inserted_batch.new += yes;
            inserted_batch.slots += u64::from(inserted != InsertOutcome::AlreadyPresent);
            inserted_batch.hashes += 1;
        }
        inserted_batch
    }

    /// Prefetches the lines that a lookup of a hash reads.
    #[inline]
    pub(crate) fn prefetch(&self, lines: &[CacheLine], hash: u64) {
        self.prefetch_lookup(lines_as_bytes(lines), hash);
    }

    /// In a loop at index `at` of the hashes, prefetches the lines of a later hash.
    #[inline]
    pub(crate) fn prefetch_ahead(&self, lines: &[CacheLine], hashes: &[u64], at: usize) {
        if let Some(later) = hashes.get(at + AHEAD) {
            self.prefetch_lookup(lines_as_bytes(lines), *later);
        }
    }

    /// Checks that a table with `quotients` quotients is sound: exactly the bits that inserts of its
    /// fingerprints would set. Cost: one pass.
    pub(crate) fn check(
        &self,
        lines: &[CacheLine],
        quotients: u64,
        progress: CheckProgress,
    ) -> Result<TableCounts, TableFault> {
        self.params.check(lines_as_bytes(lines), quotients, progress)
    }

    /// Continues the check with the first `available` lines.
    pub(crate) fn check_early(
        &self,
        lines: &[CacheLine],
        available: usize,
        quotients: u64,
        progress: &mut CheckProgress,
    ) -> Result<(), TableFault> {
        let blocks = available.saturating_mul(CacheLine::BYTES) / self.params.block_at(1);
        self.params.check_blocks(
            lines_as_bytes(lines),
            quotients,
            blocks.min(self.params.blocks),
            progress,
        )
    }

    /// Returns the cache line in which a block begins.
    pub(crate) fn line_of(&self, block: usize) -> usize {
        self.params.block_at(block) / CacheLine::BYTES
    }

    /// Prefetches the lines that an update of a hash changes, including those of the next block.
    #[inline(always)]
    fn prefetch_update(&self, bytes: &[u8], hash: u64) {
        self.prefetch_lookup(bytes, hash);
        let quotient = self.params.quotient(self.fingerprint(hash));
        let next = self.params.block_at(quotient / SLOTS + 1);
        prefetch(bytes, next);
    }

    /// Prefetches the lines that a lookup of a hash reads.
    #[inline(always)]
    fn prefetch_lookup(&self, bytes: &[u8], hash: u64) {
        let quotient = self.params.quotient(self.fingerprint(hash));
        let at = self.params.block_at(quotient / SLOTS);
        let slot = quotient % SLOTS + LIKELY_SHIFT;
        prefetch(bytes, at);
        prefetch(bytes, at + HEADER_BYTES + slot * self.params.width as usize / 8);
    }
}
