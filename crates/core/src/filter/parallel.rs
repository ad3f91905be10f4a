//! Filling the default filter on several threads, which share nothing that they write to.
//!
//! The block of a hash grows with the hash, so a range of hashes is a *run* of neighbouring blocks.
//! In rounds, threads first *sort* their part of the keys: each hash goes to the others of its
//! run. Then they take run after run, and the bits of a run are set by the thread that has it.
//!
//! Invariants: the hashes of a run are inserted in the order of the keys: bits, and how many keys
//! were new, are those of inserting one by one, whatever the number of threads. Memory is
//! [`ROUND`] hashes a thread at most, and comes before anything is inserted.
//!
//! Cost: sorting writes and reads a hash once more, some 3 ns. A run is small enough for a
//! processor's own cache, which gives that back where the filter is far out of it.
//!
//! Source: radix partitioning as in database joins (Manegold, Boncz & Kersten 2002, "Optimizing
//! main-memory join on modern hardware"). Measurements: `docs/design.md`, "Parallel build".

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;

use super::geometry::kernel;
use super::{BloomFilter, HASHED};
use crate::answers::Answers;
use crate::error::Result;
use crate::kernel::blocked::Blocks;
use crate::kernel::{Ready, prefetch, scale};
use crate::key::Key;
use crate::shape::Shape;
use crate::store::{Line, Owned, Store, StoreMut, words_of, words_of_mut};

/// Hashes that a thread sorts in a round: 32 MiB of them.
const ROUND: usize = 1 << 22;
/// Hashes of a run are in pieces of so many.
const PIECE: usize = 1 << 10;
/// Lines of a run, 512 KiB of them: they stay in a processor's own cache.
const RUN: u64 = 1 << 13;
/// There are at most twice as many runs; those of a larger filter are longer. Each has a line that
/// is being written to, and these lines are to stay in the nearest cache.
const MANY_RUNS: u64 = 256;
/// Runs for each thread, so that all have something to do up to the end.
const RUNS_EACH: u64 = 8;
/// Fewer keys than this are inserted before threads have begun.
const FEW: usize = 1 << 17;
/// Into a smaller filter (4 MiB) one thread inserts hashes about as soon as two have sorted them:
/// all of it is in cache, an insert takes 2 ns, sorting 3. At 25 MB two threads are twice as fast as
/// one, at 126 MB a little more. Keys that take longer to hash are sorted into any filter.
const SMALL: u64 = (4 << 20) / Line::BYTES as u64;

impl<S: StoreMut> BloomFilter<S> {
    /// Inserts many keys, on so many threads as far as they are of use. The filter is then the
    /// same as if the keys had been inserted one by one, [`inserted`](Self::inserted) included.
    ///
    /// ```
    /// use petal::BloomFilter;
    ///
    /// let keys: Vec<String> = (0..10_000).map(|id| format!("user:{id}")).collect();
    /// let mut filter = BloomFilter::with_rate(10_000, 0.01)?;
    /// filter.insert_parallel(&keys, std::thread::available_parallelism()?)?;
    /// assert!(keys.iter().all(|key| filter.contains(key)));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: up to 37 MiB of memory for each thread while it works, however many keys there are.
    ///
    /// # Errors
    /// If that memory is refused; nothing has changed then.
    ///
    /// # Panics
    /// If the system refuses a thread. Some of the keys may have been inserted then.
    pub fn insert_parallel<K: Key + Sync>(
        &mut self,
        keys: &[K],
        threads: NonZeroUsize,
    ) -> Result<()> {
        let spec = self.hash;
        let quick = K::words(keys).is_some() && spec.of_words().is_some();
        if let Some(plan) = Plan::new(self.shape, keys.len(), quick, threads) {
            return self.insert_sorted(plan, keys, |keys: &[K], hashes: &mut Vec<u64>| {
                spec.hash_all(keys.iter().map(Key::bytes), hashes);
            });
        }
        let mut new = Answers::new();
        keys.chunks(FEW).for_each(|keys| self.insert_batch(keys, &mut new));
        Ok(())
    }

    /// [`insert_parallel`](Self::insert_parallel) for hashes that the caller made with
    /// [`hash_spec`](Self::hash_spec), or with another hash of 64 bits whose every
    /// bit is random. Plain integers are no such hashes: insert them as keys.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn insert_mixed_hashes_parallel(
        &mut self,
        hashes: &[u64],
        threads: NonZeroUsize,
    ) -> Result<()> {
        if let Some(plan) = Plan::new(self.shape, hashes.len(), true, threads) {
            return self.insert_sorted(plan, hashes, |given: &[u64], hashes: &mut Vec<u64>| {
                hashes.extend_from_slice(given);
            });
        }
        let mut new = Answers::new();
        hashes.chunks(FEW).for_each(|hashes| self.insert_mixed_hashes(hashes, &mut new));
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
            let parts = at_once(work, |(sorted, keys)| {
                sorted.sort(&plan, keys, &hash);
                &*sorted
            });
            let runs = self.store.lines_mut().chunks_mut(plan.run_lines());
            let runs = Mutex::new(runs.enumerate());
            let new = at_once(0..plan.threads, |_| {
                // Not held while the run is worked on.
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
            self.facts.inserted += new.iter().sum::<u64>();
        }
        Ok(())
    }
}

/// Does pieces of work at the same time, each on a thread of its own.
fn at_once<W: Send, R: Send>(work: impl Iterator<Item = W>, act: impl Fn(W) -> R + Sync) -> Vec<R> {
    let act = &act;
    thread::scope(|scope| {
        let threads: Vec<_> = work.map(|work| scope.spawn(move || act(work))).collect();
        let results = threads.into_iter().map(thread::ScopedJoinHandle::join);
        results.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// How the work is divided.
#[derive(Clone, Copy, Debug)]
struct Plan {
    shape: Shape,
    threads: usize,
    /// Keys that a thread sorts in a round.
    part: usize,
    /// A run has two to this blocks.
    shift: u32,
    runs: usize,
}

impl Plan {
    /// The plan for so many keys, of which hashes are there or `quick` to be made; or none, if one
    /// thread is faster.
    fn new(shape: Shape, keys: usize, quick: bool, threads: NonZeroUsize) -> Option<Self> {
        // A few keys in each thread's part are not worth the thread.
        let threads = threads.get().min(keys / (FEW / 2));
        if threads < 2 || quick && shape.lines() < SMALL {
            return None;
        }
        let part = keys.div_ceil(threads);
        let part = part.div_ceil(part.div_ceil(ROUND));
        let blocks = shape.blocks();
        let best = RUN * 8 / u64::from(shape.lanes());
        let enough = blocks / (threads as u64).saturating_mul(RUNS_EACH);
        let shift = best.min(enough).max(blocks / MANY_RUNS).max(1).ilog2();
        let runs = blocks.div_ceil(1 << shift) as usize;
        Some(Self { shape, threads, part, shift, runs })
    }

    /// The run of a hash.
    #[inline(always)]
    fn run(&self, hash: u64) -> usize {
        (scale(hash, self.shape.blocks()) >> self.shift) as usize
    }

    fn run_lines(&self) -> usize {
        (self.shape.lanes() as usize / 8) << self.shift
    }

    /// Inserts hashes of a run into its lines; how many were new.
    fn insert(&self, kernel: Ready, run: usize, lines: &mut [Line], hashes: &[u64]) -> u64 {
        let (shape, first) = (self.shape, (run as u64) << self.shift);
        let mut new = [0; PIECE / 64];
        let new = &mut new[..hashes.len().div_ceil(64)];
        kernel!(shape, |rule| {
            kernel.insert_batch(Blocks::new(rule, lines, first), hashes, new);
        });
        new.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// A thread's hashes of a round, by their run.
struct Sorted {
    memory: Owned,
    /// The pieces of memory that each run has, in order. All but the last are full.
    pieces: Vec<Vec<usize>>,
    /// Where the next hash of each run goes.
    next: Vec<usize>,
}

impl Sorted {
    fn new(plan: &Plan) -> Result<Self> {
        // Each run has one piece that is not full.
        let pieces = plan.part / PIECE + plan.runs;
        let memory = Owned::zeroed((pieces * PIECE / 8) as u64)?;
        Ok(Self { memory, pieces: vec![Vec::new(); plan.runs], next: vec![0; plan.runs] })
    }

    /// Hashes keys, and takes the place of what was there.
    fn sort<K>(&mut self, plan: &Plan, keys: &[K], hash: impl Fn(&[K], &mut Vec<u64>)) {
        for (run, (pieces, next)) in self.pieces.iter_mut().zip(&mut self.next).enumerate() {
            pieces.clear();
            pieces.push(run);
            *next = run * PIECE;
        }
        let memory = words_of_mut(self.memory.lines_mut());
        let mut free = plan.runs;
        let mut hashes = Vec::with_capacity(HASHED);
        let mut places = [0; HASHED];
        for keys in keys.chunks(HASHED) {
            hashes.clear();
            hash(keys, &mut hashes);
            // Places first, hashes later, so that the lines of the places can be asked for in time:
            // for more than some 64 runs the processor does not foresee them by itself.
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

    /// The hashes of a run, in the order of their keys.
    fn of(&self, run: usize) -> impl Iterator<Item = &[u64]> {
        let memory = words_of(self.memory.lines());
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

    /// Hashes without order, of which every third came before.
    fn hashes(len: usize) -> Vec<u64> {
        let fresh =
            |at: usize| (at as u64 ^ 0x5555).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        (0..len).map(|at| fresh(if at % 3 == 2 { at / 2 } else { at })).collect()
    }

    /// Rounds, parts, pieces and runs that end in the middle of things, or have nothing in them.
    #[test]
    fn any_plan_gives_the_filter_of_one_thread() {
        for (blocks, lanes, probes) in
            [(1, 8, 8), (7, 8, 3), (1000, 8, 6), (3, 16, 10), (999, 16, 16)]
        {
            let shape = Shape::new(blocks, lanes, probes).unwrap();
            for len in [1, 100, PIECE, PIECE + 1, 5 * PIECE - 1, 20_000] {
                let hashes = hashes(len);
                let empty =
                    || Filter::empty(shape, Default::default(), Default::default()).unwrap();
                let mut one = empty();
                one.insert_mixed_hashes(&hashes, &mut Answers::new());
                for (threads, part, shift) in [
                    (1, len, 0),
                    (2, len.div_ceil(2), 0),
                    (2, 333, 3),
                    (3, PIECE, 9),
                    (8, 2048, 20),
                ] {
                    let runs = blocks.div_ceil(1 << shift) as usize;
                    let plan = Plan { shape, threads, part, shift, runs };
                    let mut many = empty();
                    let same =
                        |given: &[u64], hashes: &mut Vec<u64>| hashes.extend_from_slice(given);
                    many.insert_sorted(plan, &hashes, same).unwrap();
                    let told = format!("{shape:?}, {len} hashes, {threads} of {part}, {shift}");
                    assert!(many == one, "{told}");
                    assert_eq!(many.inserted(), one.inserted(), "{told}");
                }
            }
        }
    }

    #[test]
    fn all_runs_are_of_use_and_not_too_many() {
        for lanes in [8, 16] {
            for blocks in [1, 2, 1000, 131_072, 1 << 20, 1 << 30, 1 << 50] {
                for threads in [2, 3, 64, 1000] {
                    let shape = Shape::new(blocks, lanes, 6).unwrap();
                    let threads = NonZeroUsize::new(threads).unwrap();
                    let plan = Plan::new(shape, usize::MAX >> 1, false, threads).unwrap();
                    assert!(plan.runs as u64 <= 2 * MANY_RUNS && plan.part <= ROUND);
                    assert_eq!(plan.run(u64::MAX), plan.runs - 1);
                    let enough =
                        plan.runs as u64 >= MANY_RUNS.min(blocks).min(8 * threads.get() as u64);
                    assert!(enough, "{plan:?}");
                }
            }
        }
    }
}
