//! Filling the default filter on several threads, without shared writes.
//!
//! The block of a hash is monotonic in the hash, so that a range of hashes is a *run* of neighbouring
//! blocks. In each round, threads first *sort* their part of the keys by run. Then each takes run
//! after run, and sets the bits of its runs alone.
//!
//! Invariants: the hashes of a run are inserted in the order of the keys, so that bits and number of
//! new keys equal those of inserting one by one, for any number of threads. The memory, at most
//! [`ROUND`] hashes per thread, is allocated before any insert.
//!
//! Cost: sorting writes and reads each hash once more, about 3 ns. A run fits a core's own cache,
//! which saves more than that if the filter is much larger than the caches.
//!
//! Source: radix partitioning as in database joins (Manegold, Boncz & Kersten 2002, "Optimizing
//! main-memory join on modern hardware").

use core::num::NonZeroUsize;
use std::sync::Mutex;

use super::BloomFilter;
use super::layout::kernel;
use crate::batch::CHUNK;
use crate::error::Result;
use crate::kernel::blocked::BlockRange;
use crate::kernel::{KernelHandle, prefetch, scale};
use crate::key::Key;
use crate::layout::BlockedLayout;
use crate::results::BatchResults;
use crate::store::{CacheLine, Owned, Store, StoreMut, lines_as_words, lines_as_words_mut};
use crate::threads::{run_each, useful_threads};

/// The number of hashes that a thread sorts in a round, 32 MiB.
const ROUND: usize = 1 << 22;
/// The number of hashes in a piece of a run.
const PIECE: usize = 1 << 10;
/// The number of lines of a run, 512 KiB, which fit a core's own cache.
const RUN: u64 = 1 << 13;
/// Half of the largest number of runs; larger filters have longer runs. Sorting writes to one line of
/// each run, and these lines must stay in the nearest cache.
const MANY_RUNS: u64 = 256;
/// The number of runs per thread, so that all threads finish at about the same time.
const RUNS_EACH: u64 = 8;
/// The number of keys that are inserted in the time that threads take to start.
const FEW: usize = 1 << 17;
/// The number of lines (4 MiB) below which one thread inserts hashes as fast as two: the filter is in
/// cache, an insert takes 2 ns, sorting 3. At 25 MB two threads are twice as fast as one, at 126 MB a
/// little more. Keys that must be hashed are sorted for filters of any size.
const SMALL: u64 = (4 << 20) / CacheLine::BYTES as u64;

impl<S: StoreMut> BloomFilter<S> {
    /// Inserts many keys without results, on up to `threads` threads. The filter is the same for any
    /// number of threads. Unlike after [`put_batch`](Self::put_batch),
    /// [`inserted`](crate::Membership::inserted) stays exact.
    ///
    /// ```
    /// use petal::BloomFilter;
    ///
    /// let keys: Vec<String> = (0..10_000).map(|id| format!("user:{id}")).collect();
    /// let mut filter = BloomFilter::with_fpr(10_000, 0.01)?;
    /// filter.put_batch_on(&keys, std::thread::available_parallelism()?)?;
    /// assert!(keys.iter().all(|key| filter.contains(key)));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: up to 37 MiB of memory per thread, for any number of keys.
    ///
    /// # Errors
    /// If memory allocation fails; the filter is then unchanged.
    pub fn put_batch_on<K>(&mut self, keys: &[K], threads: NonZeroUsize) -> Result<()>
    where
        K: Key + Sync,
    {
        let spec = self.hash;
        let quick = K::words(keys).is_some() && spec.word_hasher().is_some();
        if let Some(plan) = Plan::new(self.layout, keys.len(), quick, threads) {
            return self.insert_sorted(plan, keys, |keys: &[K], hashes: &mut Vec<u64>| {
                spec.hash_all(keys.iter().map(Key::bytes), hashes);
            });
        }
        let mut new = BatchResults::new();
        keys.chunks(FEW).for_each(|keys| self.insert_batch(keys, &mut new));
        Ok(())
    }

    fn insert_sorted<K: Sync>(
        &mut self,
        plan: Plan,
        keys: &[K],
        hash: impl Fn(&[K], &mut Vec<u64>) + Sync,
    ) -> Result<()> {
        let kernel = self.kernel;
        let parts = (0..plan.threads).map(|_| Sorted::new(&plan));
        let mut parts = parts.collect::<Result<Vec<_>>>()?;
        for keys in keys.chunks(plan.part * plan.threads) {
            let work = parts.iter_mut().zip(keys.chunks(plan.part));
            let parts = run_each(work, |(sorted, keys)| {
                sorted.sort(&plan, keys, &hash);
                &*sorted
            });
            let runs = self.store.lines_mut().chunks_mut(plan.run_lines());
            let runs = Mutex::new(runs.enumerate());
            let new = run_each(0..plan.threads, |_| {
                // The lock is not held while the run is filled.
                let next = || runs.lock().ok()?.next();
                let mut new = 0;
                while let Some((run, lines)) = next() {
                    for part in &parts {
                        part.of(run)
                            .for_each(|hashes| new += plan.insert(kernel, run, lines, hashes));
                    }
                }
                new
            });
            self.info.inserted += new.iter().sum::<u64>();
        }
        Ok(())
    }
}

/// The division of the work.
#[derive(Clone, Copy, Debug)]
struct Plan {
    layout: BlockedLayout,
    threads: usize,
    /// The number of keys that a thread sorts in a round.
    part: usize,
    /// A run has 2^`shift` blocks.
    shift: u32,
    runs: usize,
}

impl Plan {
    /// Returns the plan for `keys` keys, or `None` if one thread is faster. `quick`: hashing is
    /// cheap.
    fn new(layout: BlockedLayout, keys: usize, quick: bool, threads: NonZeroUsize) -> Option<Self> {
        // A thread must have enough keys to be worth its start.
        let threads = useful_threads(threads, keys / (FEW / 2)).get();
        if threads < 2 || quick && layout.lines() < SMALL {
            return None;
        }
        let part = keys.div_ceil(threads);
        let part = part.div_ceil(part.div_ceil(ROUND));
        let blocks = layout.blocks();
        let best = RUN * 8 / u64::from(layout.lanes());
        let enough = blocks / (threads as u64).saturating_mul(RUNS_EACH);
        let shift = best.min(enough).max(blocks / MANY_RUNS).max(1).ilog2();
        let runs = blocks.div_ceil(1 << shift) as usize;
        Some(Self { layout, threads, part, shift, runs })
    }

    /// Returns the run of a hash.
    #[inline(always)]
    fn run(&self, hash: u64) -> usize {
        (scale(hash, self.layout.blocks()) >> self.shift) as usize
    }

    fn run_lines(&self) -> usize {
        (self.layout.lanes() as usize / 8) << self.shift
    }

    /// Inserts hashes of a run into its lines; returns how many were new.
    fn insert(
        &self,
        kernel: KernelHandle,
        run: usize,
        lines: &mut [CacheLine],
        hashes: &[u64],
    ) -> u64 {
        let (layout, first) = (self.layout, (run as u64) << self.shift);
        let mut new = [0; PIECE / 64];
        let new = &mut new[..hashes.len().div_ceil(64)];
        kernel!(layout, |params| {
            kernel.insert_batch(BlockRange::new(params, lines, first), hashes, new);
        });
        new.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// The hashes of one thread in a round, by run.
struct Sorted {
    memory: Owned,
    /// The pieces of memory of each run, in order. All but the last are full.
    pieces: Vec<Vec<usize>>,
    /// The position of the next hash of each run.
    next: Vec<usize>,
}

impl Sorted {
    fn new(plan: &Plan) -> Result<Self> {
        // Each run has one piece that is not full.
        let pieces = plan.part / PIECE + plan.runs;
        let memory = Owned::zeroed((pieces * PIECE / 8) as u64)?;
        Ok(Self { memory, pieces: vec![Vec::new(); plan.runs], next: vec![0; plan.runs] })
    }

    /// Hashes keys and sorts them by run; the previous round is overwritten.
    fn sort<K>(&mut self, plan: &Plan, keys: &[K], hash: impl Fn(&[K], &mut Vec<u64>)) {
        for (run, (pieces, next)) in self.pieces.iter_mut().zip(&mut self.next).enumerate() {
            pieces.clear();
            pieces.push(run);
            *next = run * PIECE;
        }
        let memory = lines_as_words_mut(self.memory.lines_mut());
        let mut free = plan.runs;
        let mut hashes = Vec::with_capacity(CHUNK);
        let mut places = [0; CHUNK];
        for keys in keys.chunks(CHUNK) {
            hashes.clear();
            hash(keys, &mut hashes);
            // Positions first, hashes later, so that the lines of the positions can be prefetched:
            // the hardware prefetcher does not follow more than about 64 runs.
            for (&hash, place) in hashes.iter().zip(&mut places) {
                let run = plan.run(hash);
                let next = &mut self.next[run];
                *place = *next;
                *next += 1;
                prefetch(memory, *place);
                if next.is_multiple_of(PIECE) {
                    self.pieces[run].push(free);
                    *next = free * PIECE;
                    free += 1;
                }
            }
            for (&hash, &place) in hashes.iter().zip(&places) {
                memory[place] = hash;
            }
        }
    }

    /// Returns the hashes of a run, in the order of their keys.
    fn of(&self, run: usize) -> impl Iterator<Item = &[u64]> {
        let memory = lines_as_words(self.memory.lines());
        self.pieces[run].iter().map(move |piece| {
            let piece = piece * PIECE..(piece + 1) * PIECE;
            let end = if piece.contains(&self.next[run]) { self.next[run] } else { piece.end };
            &memory[piece.start..end]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;
    use crate::membership::Membership as _;

    /// Unordered hashes, every third a duplicate.
    fn hashes(len: usize) -> Vec<u64> {
        let fresh =
            |at: usize| (at as u64 ^ 0x5555).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        (0..len).map(|at| fresh(if at % 3 == 2 { at / 2 } else { at })).collect()
    }

    /// Rounds, parts, pieces and runs that are partly filled or empty.
    #[test]
    fn any_plan_gives_the_filter_of_one_thread() {
        for (blocks, lanes, probes) in
            [(1, 8, 8), (7, 8, 3), (1000, 8, 6), (3, 16, 10), (999, 16, 16)]
        {
            let layout = BlockedLayout::new(blocks, lanes, probes).unwrap();
            // Those of a crowd are in one run, or in few.
            let crowds: [fn(u64) -> u64; 5] = [
                |hash| hash,
                |hash| hash >> 40,
                |hash| !(hash >> 40),
                |_| 7,
                |hash| hash & 1 << 63,
            ];
            let lens = [1, 100, PIECE, PIECE + 1, 5 * PIECE - 1, 20_000];
            for (len, crowd) in lens.into_iter().flat_map(|len| crowds.map(|crowd| (len, crowd))) {
                let hashes: Vec<u64> = hashes(len).into_iter().map(crowd).collect();
                let empty =
                    || Filter::empty(layout, Default::default(), Default::default()).unwrap();
                let mut one = empty();
                one.insert_mixed_hashes(&hashes, &mut BatchResults::new());
                for (threads, part, shift) in [
                    (1, len, 0),
                    (2, len.div_ceil(2), 0),
                    (2, 333, 3),
                    (3, PIECE, 9),
                    (8, 2048, 20),
                ] {
                    let runs = blocks.div_ceil(1 << shift) as usize;
                    let plan = Plan { layout, threads, part, shift, runs };
                    let mut many = empty();
                    let same =
                        |given: &[u64], hashes: &mut Vec<u64>| hashes.extend_from_slice(given);
                    many.insert_sorted(plan, &hashes, same).unwrap();
                    let case = format!("{layout:?}, {len} hashes, {threads} of {part}, {shift}");
                    assert!(many == one, "{case}");
                    assert_eq!(many.inserted(), one.inserted(), "{case}");
                }
            }
        }
    }

    #[test]
    fn number_of_runs_is_within_bounds() {
        for lanes in [8, 16] {
            for blocks in [1, 2, 1000, 131_072, 1 << 20, 1 << 30, 1 << 50] {
                for threads in [2, 3, 64, 1000] {
                    let layout = BlockedLayout::new(blocks, lanes, 6).unwrap();
                    let threads = NonZeroUsize::new(threads).unwrap();
                    let plan = Plan::new(layout, usize::MAX >> 1, false, threads).unwrap();
                    assert!(plan.runs as u64 <= 2 * MANY_RUNS && plan.part <= ROUND);
                    assert_eq!(plan.run(u64::MAX), plan.runs - 1);
                    let enough =
                        plan.runs as u64 >= MANY_RUNS.min(blocks).min(8 * plan.threads as u64);
                    assert!(enough, "{plan:?}");
                }
            }
        }
    }
}
