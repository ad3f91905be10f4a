//! Dropping the duplicates of a shard without sorting it.
//!
//! The keys of a group enter a hash table, and those that are already in it are dropped. The table is
//! cleared before the next group, so that it stays cached; a key's first cell depends on its highest
//! bits in the group. A key whose first cell has another key waits until the end of its batch, so that
//! the loop over all keys has no unpredictable branch. Keys that cluster, which only selected ones do,
//! are sorted instead.
//!
//! Cost: two passes over a group, the second in the cache; a tenth of the time of solving the shard.
//! Memory: 32 bytes per key of a group of mean size over all shards, and 8 per key of a batch.

use core::ops::Range;

use super::super::keys::reserve;
use super::super::sort::drop_duplicates;
use crate::error::Result;
use crate::kernel::scale;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// Cells per key.
const CELLS: usize = 4;
/// Occupied cells that are visited per key before keys are sorted.
const VISITS: usize = 8;
/// An empty cell. Hardly any set has this key, which is in the first group.
const EMPTY: u64 = 0;
/// Keys of a batch.
const BATCH: usize = 4096;

/// The hash table, reused for each shard.
#[derive(Default)]
pub(super) struct DuplicateFinder {
    cells: Vec<u64>,
    /// The keys of a batch whose first cell has another key; behind them unused elements.
    waiting: Vec<u64>,
}

impl DuplicateFinder {
    /// Drops duplicates from some of `groups` equal ranges of hashes; returns how many keys are left,
    /// at the front. The keys of a group are together; `mean` is their mean number over all groups, not
    /// only these, which may have many copies of one key.
    pub(super) fn drop_duplicates(
        &mut self,
        keys: &mut [u64],
        groups: u64,
        mean: usize,
    ) -> Result<usize> {
        let size = CELLS * mean.clamp(1, keys.len().max(1));
        let mut table = Table::new(&mut self.cells, size, groups, VISITS * keys.len())?;
        let missing = keys.len().min(BATCH).saturating_sub(self.waiting.len());
        reserve(&mut self.waiting, missing)?;
        self.waiting.resize(self.waiting.len() + missing, 0);
        let (mut left, mut start) = (0, 0);
        while start < keys.len() {
            let group = scale(keys[start], groups);
            let length = keys[start..].iter().take_while(|&&g| scale(g, groups) == group).count();
            let end = start + length;
            if group == 0 && keys[start..end].contains(&EMPTY) {
                return Ok(sort(keys, left, start));
            }
            table.cells.fill(EMPTY);
            while start < end {
                let batch = start..end.min(start + BATCH);
                start = batch.end;
                let waits = table.insert_first(keys, batch, &mut left, &mut self.waiting);
                for at in 0..waits {
                    let g = self.waiting[at];
                    match table.insert(g) {
                        Some(true) => {
                            keys[left] = g;
                            left += 1;
                        }
                        Some(false) => {}
                        None => {
                            // All of them fit: these keys, or copies of them, were read from before `start`.
                            let rest = waits - at;
                            keys[left..left + rest].copy_from_slice(&self.waiting[at..waits]);
                            return Ok(sort(keys, left + rest, start));
                        }
                    }
                }
            }
        }
        Ok(left)
    }
}

/// A hash table of the keys of a group.
struct Table<'a> {
    cells: &'a mut [u64],
    groups: u64,
    /// Occupied cells that may be visited until keys are sorted instead.
    visits: usize,
}

impl<'a> Table<'a> {
    fn new(cells: &'a mut Vec<u64>, size: usize, groups: u64, visits: usize) -> Result<Self> {
        cells.clear();
        reserve(cells, size)?;
        cells.resize(size, EMPTY);
        Ok(Self { cells, groups, visits })
    }

    /// Returns the first cell of a key.
    #[inline(always)]
    fn first_cell(&self, g: u64) -> usize {
        // The product is the position in the group.
        scale(g.wrapping_mul(self.groups), self.cells.len() as u64) as usize
    }

    /// Adds the keys of a range whose first cell is empty, and moves them to `left`. Those whose first cell
    /// has another key are written to `waiting`; returns their number.
    #[inline(always)]
    fn insert_first(
        &mut self,
        keys: &mut [u64],
        range: Range<usize>,
        left: &mut usize,
        waiting: &mut [u64],
    ) -> usize {
        let (mut waits, mut end) = (0, *left);
        for at in range {
            let g = keys[at];
            let first = self.first_cell(g);
            let cell = &mut self.cells[first];
            let found = *cell;
            // Any of these may be random: no branches.
            *cell = if found == EMPTY { g } else { found };
            keys[end] = g;
            end += usize::from(found == EMPTY);
            waiting[waits] = g;
            waits += usize::from((found != EMPTY) & (found != g));
        }
        *left = end;
        waits
    }

    /// Adds a key; returns whether it is new, or `None` if that took too many visits.
    fn insert(&mut self, g: u64) -> Option<bool> {
        let mut cell = self.first_cell(g);
        while self.cells[cell] != EMPTY && self.cells[cell] != g {
            self.visits = self.visits.checked_sub(1)?;
            cell = if cell + 1 == self.cells.len() { 0 } else { cell + 1 };
        }
        let is_new = self.cells[cell] == EMPTY;
        self.cells[cell] = g;
        Some(is_new)
    }
}

/// Drops duplicates from the first `left` keys and those from `at` on, and returns how many are left.
#[cold]
fn sort(keys: &mut [u64], left: usize, at: usize) -> usize {
    let end = left + keys.len() - at;
    keys.copy_within(at.., left);
    keys[..end].sort_unstable();
    drop_duplicates(&mut keys[..end])
}

#[cfg(test)]
mod tests {
    use super::{BATCH, CELLS, DuplicateFinder};
    use alloc::vec;
    use alloc::vec::Vec;

    /// Checks that the distinct keys are left.
    fn check(keys: &[u64], groups: u64, mean: usize) {
        let mut expected = keys.to_vec();
        expected.sort_unstable();
        expected.dedup();
        let mut keys = keys.to_vec();
        let left = DuplicateFinder::default().drop_duplicates(&mut keys, groups, mean).unwrap();
        keys.truncate(left);
        keys.sort_unstable();
        assert!(keys == expected, "{left} of {} keys", expected.len());
    }

    #[test]
    fn distinct_keys_are_left() {
        // Some keys share their first cell: multiples of this number alone are spread evenly.
        let mixed = |at: u64| (at * at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for keys in [0, 1, 2, 3, 100, if cfg!(miri) { 100 } else { 5000 }] {
            let mut set: Vec<u64> = (1..=keys).map(mixed).collect();
            check(&set, 1, set.len());
            set.extend_from_within(..);
            check(&set, 1, set.len());
            set.sort_unstable();
            // The keys of three groups, without and with the one that is an empty cell.
            check(&set, 3, set.len() / 3);
            set.extend([0, u64::MAX, 0, 0, u64::MAX]);
            check(&set, 1, set.len());
            set.sort_unstable();
            check(&set, 3, set.len() / 3);
            // The second group of three.
            set.retain(|&g| (1 << 63..1 << 63 | 1 << 61).contains(&g));
            check(&set, 3, set.len());
        }
        check(&[7; 300], 1, 300);
    }

    #[test]
    fn memory_does_not_depend_on_copies_of_a_frequent_key() {
        let mut keys = vec![7; 3 * BATCH];
        let mut finder = DuplicateFinder::default();
        assert_eq!(finder.drop_duplicates(&mut keys, 100, 50).unwrap(), 1);
        assert!(finder.waiting.capacity() <= BATCH && finder.cells.capacity() <= 50 * CELLS);
    }

    /// Keys of one cell, of which a table would visit half for each.
    #[test]
    fn keys_that_cluster_are_sorted() {
        let many = if cfg!(miri) { 200 } else { 5000 };
        for first in [0, 1, 1 << 40, u64::MAX - many] {
            let mut keys: Vec<u64> = (first..first + many).rev().collect();
            keys.extend_from_within(50..);
            check(&keys, 1, keys.len());
            check(&keys, 16, keys.len());
        }
        // More keys than cells.
        let mut keys = vec![u64::MAX; 10];
        keys.extend((1..4 * many).chain(1..4 * many));
        check(&keys, 1 << 20, keys.len() / 100);
    }
}
