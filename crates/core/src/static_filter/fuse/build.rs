//! Building a binary fuse filter: divide the hashes into shards, solve each shard.
//!
//! Each thread takes the next shard when it is free. A shard that cannot be solved is tried with
//! other multipliers, and if these fail, too, all shards become larger.
//!
//! Hashes are not sorted, because the filter does not depend on their order. A shard with duplicates
//! cannot be solved: if an attempt fails, its keys are searched for duplicates, and if there are any,
//! all hashes are sorted, duplicates dropped, and all shards solved again.
//!
//! Invariants: the filter depends on the set of hashes and the rate, not on their order, duplicates
//! or threads.
//!
//! Memory: twice the hashes, 16 bytes per key, beside the filter; for each thread 8 bytes per slot of a
//! shard, and 8 per key while it is searched for duplicates: seven megabytes.
//!
//! Cost: a duplicate may double the time, because all shards are solved again.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use super::super::builder::Wanted;
use super::super::sort::{cut_off, partition, reserve, share_work, sort_groups};
use super::peel::{MAX_KEYS, Solver};
use super::{FuseTable, hash_floor, lines_of};
use crate::error::{Error, Result};
use crate::kernel::blocked::{MIX_HIGH, MIX_LOW};
use crate::kernel::fuse::{FuseParams, MAX_BITS, WAYS, fuse_hash};
use crate::math;
use crate::store::{CacheLine, Owned, StoreMut, lines_as_words_mut};

/// The largest mean number of keys of a shard.
const SHARD: u64 = 3 << 17;
/// The number of multipliers that a shard tries, and how often all shards become larger by a sixteenth.
const MULTIPLIERS: u64 = 8;
const ROUNDS: u64 = 20;

/// The number of keys of a group that is near in memory, and the largest number of groups, unless there
/// are more shards.
const GROUP: usize = 1 << 13;
const MAX_GROUPS: usize = 2048;

/// The largest number of keys for which the dimensions with the fewest cache lines are found by
/// trying, the multipliers and logarithms of segments that are tried, and the slots per 100 keys
/// below which hardly any set is solved (docs/design/filters.md).
const DENSE_UP_TO: u64 = 256;
const DENSE_MULTIPLIERS: u64 = 32;
const DENSE_SEGMENTS: [u64; 4] = [3, 4, 5, 2];
const DENSE_SLOTS: u64 = 127;
const LINE_BITS: u64 = 8 * CacheLine::BYTES as u64;

/// The number of standard deviations by which a plan allows the largest shard to exceed the mean.
const SIGMAS: u64 = 6;

/// The size of a shard with at least a number of keys.
struct Size {
    keys: u64,
    log_segment: u64,
    /// The number of slots per 1000 keys in which keys may start.
    starts: u64,
    /// The last round that is needed, with overwhelming probability.
    rounds: u64,
}

/// 2^(0.6 log2 n) slots are the best segment of n keys. With the numbers of slots about one attempt
/// in two succeeds below 1000 keys, nearly every one above (docs/design/filters.md).
const SIZES: [Size; 15] = [
    Size::new(0, 0, 1000, 4),
    Size::new(2, 1, 700, 4),
    Size::new(6, 2, 800, 4),
    Size::new(18, 3, 850, 4),
    Size::new(57, 4, 980, 4),
    Size::new(181, 5, 1030, 4),
    Size::new(270, 5, 1090, 4),
    Size::new(400, 5, 1140, 4),
    Size::new(575, 6, 1110, 2),
    Size::new(900, 6, 1150, 2),
    Size::new(1825, 7, 1150, 1),
    Size::new(5793, 8, 1130, 0),
    Size::new(18_390, 9, 1100, 0),
    Size::new(58_390, 10, 1080, 0),
    Size::new(185_364, 11, 1070, 0),
];

impl Size {
    const fn new(keys: u64, log_segment: u64, starts: u64, rounds: u64) -> Self {
        Self { keys, log_segment, starts, rounds }
    }

    /// Returns the size of a shard with this number of keys.
    fn of(keys: u64) -> &'static Self {
        SIZES.iter().rfind(|size| size.keys <= keys).unwrap_or(&SIZES[0])
    }
}

/// Builds a filter of hashes, which are overwritten, and returns it with the number of distinct
/// hashes. `spare` has the same length.
pub(in super::super) fn build(
    hashes: &mut [u64],
    spare: &mut [u64],
    wanted: &Wanted,
) -> Result<(FuseTable<Owned>, u64)> {
    let shards = shards_of(hashes.len() as u64) as usize;
    // A whole number of groups for each shard.
    let parts = (MAX_GROUPS / shards.max(1)).min(hashes.len() / (GROUP * shards).max(1)).max(1);
    let lengths = partition(hashes, spare, (shards * parts).max(1), fuse_hash, wanted.threads);
    let ends = lengths.chunks(parts).scan(0, |end, lengths| {
        *end += lengths.iter().sum::<usize>();
        Some(*end)
    });
    let all = Keys { hashes: spare, ends: ends.take(shards).collect(), distinct: false };
    // If the shards are solved there are no duplicates, so there is no need to sort. An error is not
    // returned yet: without duplicates, memory or the rate may suffice.
    if let Ok(Some(table)) = all.solve(wanted) {
        return Ok((table, all.hashes.len() as u64));
    }
    let left = sort_groups(spare, hashes, &lengths, wanted.threads)?;
    let hashes = &hashes[..left];
    let distinct = Keys { hashes, ends: shard_ends(hashes)?, distinct: true };
    match distinct.solve(wanted)? {
        Some(table) => Ok((table, left as u64)),
        None => {
            Err(Error::invalid("hashes", "hashes that look random", "hashes that fit no filter"))
        }
    }
}

/// The hashes of all keys, shard by shard.
struct Keys<'a> {
    hashes: &'a [u64],
    /// The end of each shard.
    ends: Vec<usize>,
    /// Whether there are no duplicates.
    distinct: bool,
}

impl Keys<'_> {
    /// Returns a filter; `None` if there is none, or if there are duplicates.
    fn solve(&self, wanted: &Wanted) -> Result<Option<FuseTable<Owned>>> {
        let slots = &SlotPlan::new(wanted.rate, self.hashes.len() as u64)?;
        let begins = [0].iter().chain(&self.ends);
        let most = self.ends.iter().zip(begins).map(|(end, begin)| end - begin).max().unwrap_or(0);
        let (shards, most) = (self.ends.len() as u64, most as u64);
        if most > MAX_KEYS {
            return Ok(None);
        }
        let round = |round| {
            let attempts = round * MULTIPLIERS..(round + 1) * MULTIPLIERS;
            slots.params(shards, most, round).map(|params| (params, attempts))
        };
        // Few keys: with fewer cache lines than in the first round, then with as many.
        let lines = if (1..=DENSE_UP_TO).contains(&most) { lines_of(&round(0)?.0) } else { 0 };
        let dense = |lines| {
            let params = move |log| slots.dense_params(most, lines, log).transpose();
            let found = DENSE_SEGMENTS.into_iter().filter_map(params);
            found.map(|params| params.map(|params| (params, 0..DENSE_MULTIPLIERS)))
        };
        let plans = (1..lines).flat_map(dense).chain([round(0)]);
        let plans = plans.chain((lines..=lines).flat_map(dense)).chain((1..ROUNDS).map(round));
        for plan in plans {
            let (params, attempts) = plan?;
            match self.solve_with(&params, attempts, wanted.threads)? {
                Solved::Yes(data) => return Ok(Some(FuseTable::from_parts(params, data))),
                Solved::Duplicates => break,
                Solved::No => (),
            }
        }
        Ok(None)
    }
}

/// Whether all shards are solved.
enum Solved {
    Yes(Owned),
    No,
    /// There are duplicates.
    Duplicates,
}

/// Returns a number of bits that a filter of `keys` distinct keys does not exceed, unless its hashes
/// are very unusual: several shards may differ by some standard deviations, and small filters may
/// need some rounds. It is not less for more keys.
pub(in super::super) fn planned_bits(keys: u64, rate: f64) -> Result<u64> {
    let shards = shards_of(keys);
    let most = match keys.div_ceil(shards.max(1)) {
        mean if shards > 1 => mean + SIGMAS * mean.isqrt(),
        all => all,
    };
    let slots = SlotPlan::new(rate, keys)?;
    let lines =
        |most| slots.params(shards, most, Size::of(most).rounds).map(|params| lines_of(&params));
    // With fewer keys more rounds may be needed.
    let fewer = SIZES.iter().map(|size| size.keys).filter(|&from| (1..=most).contains(&from));
    let mut largest = lines(most)?;
    for from in fewer {
        largest = largest.max(lines(from - 1)?);
    }
    Ok(largest * LINE_BITS)
}

/// Returns the number of shards of a filter.
fn shards_of(keys: u64) -> u64 {
    if keys == 0 { 0 } else { keys.div_ceil(SHARD).next_power_of_two() }
}

/// Returns the end of each shard in sorted hashes.
fn shard_ends(hashes: &[u64]) -> Result<Vec<usize>> {
    let shards = shards_of(hashes.len() as u64);
    // Only the number of shards matters.
    let params = FuseParams::new(shards, WAYS, 0, 0, 0)?;
    let mut ends = Vec::new();
    reserve(&mut ends, shards as usize)?;
    let mut begin = 0;
    for shard in 0..shards {
        begin += hashes[begin..].partition_point(|&g| params.shard(g) <= shard);
        ends.push(begin);
    }
    Ok(ends)
}

/// The part of the rate that collisions of hashes may add to it.
const NEGLIGIBLE: f64 = 1e-6;

/// The bits of slots.
struct SlotPlan {
    bits: u64,
    /// The share of queries that compare one more bit.
    share: f64,
}

impl SlotPlan {
    fn new(rate: f64, keys: u64) -> Result<Self> {
        let floor = hash_floor(keys);
        // A rate of 2^-8 has slots of 8 bits, not more of them for the last millionth.
        let aim = if floor < rate * NEGLIGIBLE { rate } else { rate - floor };
        let (bits, share) = math::static_columns(aim);
        if u64::from(bits) > MAX_BITS {
            return Err(Error::unattainable(keys, rate, floor));
        }
        Ok(Self { bits: bits.into(), share })
    }

    /// Returns dimensions for shards of at most `most` keys, which are larger in each round.
    fn params(&self, shards: u64, most: u64, round: u64) -> Result<FuseParams> {
        let &Size { log_segment, starts, .. } = Size::of(most);
        let starts = ((most * starts / 1000) >> log_segment).max(1);
        let starts = starts + round * starts.div_ceil(16);
        self.params_of(shards, log_segment, starts)
    }

    /// Returns the dimensions with segments of 2^`log_segment` slots that fill this number of cache
    /// lines; `None` if that is too few slots.
    fn dense_params(&self, keys: u64, lines: u64, log_segment: u64) -> Result<Option<FuseParams>> {
        let most = (lines * LINE_BITS / self.bits.max(1)) >> log_segment;
        for starts in (1..=most).rev() {
            let params = self.params_of(1, log_segment, starts)?;
            if lines_of(&params) <= lines {
                let enough = params.stride() * 100 >= keys * DENSE_SLOTS;
                return Ok(enough.then_some(params));
            }
        }
        Ok(None)
    }

    /// Returns dimensions with `starts` segments in each shard in which keys start.
    fn params_of(&self, shards: u64, log_segment: u64, starts: u64) -> Result<FuseParams> {
        let segments = starts + WAYS - 1;
        // Keys that start in the last segments are not wide, because their slots are not all wide.
        let wide_starts = (self.share * (shards * starts) as f64).ceil() as u64;
        let (bits, wide) = if wide_starts == 0 {
            (self.bits, 0)
        } else if wide_starts >= shards * starts && self.bits < MAX_BITS {
            (self.bits + 1, 0)
        } else {
            let full = (wide_starts - 1) / starts;
            (self.bits, full * segments + (wide_starts - full * starts) + WAYS - 1)
        };
        FuseParams::new(shards, segments, log_segment, bits, wide)
    }
}

impl Keys<'_> {
    /// Solves all shards.
    fn solve_with(
        &self,
        params: &FuseParams,
        attempts: Range<u64>,
        threads: NonZeroUsize,
    ) -> Result<Solved> {
        let mut data = Owned::zeroed(lines_of(params))?;
        let (slots, multipliers) =
            lines_as_words_mut(data.lines_mut()).split_at_mut(params.slot_words() as usize);
        let mut unsolved = Vec::new();
        reserve(&mut unsolved, self.ends.len())?;
        unsolved.resize(self.ends.len(), true);
        let (mut slots_left, mut begin) = (slots, 0);
        let work = (0..).zip(&self.ends).zip(multipliers.iter_mut().zip(&mut unsolved));
        let work = work.map(|((shard, &end), (multiplier, unsolved))| {
            let keys = &self.hashes[begin..end];
            begin = end;
            // Several shards have segments of at least 64 slots, so each begins with a word.
            let word = |shard: u64| params.bit_of(shard * params.stride()).div_ceil(64);
            let words = cut_off(&mut slots_left, (word(shard + 1) - word(shard)) as usize);
            (shard, keys, words, multiplier, unsolved)
        });
        let duplicates = AtomicBool::new(false);
        share_work(
            work,
            threads,
            Solver::default,
            |solver, (shard, keys, words, multiplier, unsolved)| {
                for attempt in attempts.clone() {
                    if duplicates.load(Ordering::Relaxed) {
                        break;
                    }
                    let tried = MIX_LOW.wrapping_add((2 * attempt).wrapping_mul(MIX_HIGH));
                    if solver.solve(params, keys, tried)? {
                        solver.write_slots(params, shard, words);
                        *multiplier = tried.to_le();
                        *unsolved = false;
                        break;
                    }
                    // Duplicates have the same slots with any multiplier.
                    if attempt == 0 && !self.distinct && has_duplicates(keys)? {
                        duplicates.store(true, Ordering::Relaxed);
                    }
                }
                Ok(())
            },
        )?;
        Ok(match (duplicates.into_inner(), unsolved.contains(&true)) {
            (true, _) => Solved::Duplicates,
            (_, true) => Solved::No,
            _ => Solved::Yes(data),
        })
    }
}

/// Returns whether a key occurs twice.
fn has_duplicates(keys: &[u64]) -> Result<bool> {
    let mut sorted = Vec::new();
    reserve(&mut sorted, keys.len())?;
    sorted.extend_from_slice(keys);
    sorted.sort_unstable();
    Ok(sorted.windows(2).any(|pair| pair[0] == pair[1]))
}
