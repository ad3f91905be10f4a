//! Building a binary fuse filter: sort the hashes, cut them into shards, solve each shard.
//!
//! A shard is a range of sorted hashes; each thread takes the next shard when it is free. A shard
//! that cannot be solved is tried with other multipliers, and if these fail, too, all shards become larger.
//!
//! Invariants: the filter depends on the set of hashes and the rate, not on their order, duplicates
//! or threads.
//!
//! Memory: twice the hashes, 16 bytes per key, beside the filter; three megabytes per thread.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;
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

/// The number of keys of a group that is near in memory, and the largest number of groups.
const GROUP: usize = 1 << 13;
const MAX_GROUPS: usize = 2048;

/// The number of keys from which the first round succeeds, and the last round that fewer need.
const SURE: u64 = 5793;
const SMALL_ROUNDS: u64 = 4;
/// The number of standard deviations by which a plan allows the largest shard to exceed the mean.
const SIGMAS: u64 = 6;

/// For each logarithm of a segment, the smallest number of keys of a shard with such segments, and
/// the number of slots per 1000 keys in which keys may start. 2^(0.6 log2 n) slots are the best
/// segment of n keys; with the numbers of slots about one attempt in two succeeds below 1000 keys,
/// nearly every one above (docs/design/filters.md).
const SIZES: [(u64, u64); 12] = [
    (0, 1000),
    (2, 700),
    (6, 800),
    (18, 850),
    (57, 980),
    (181, 1030),
    (575, 1110),
    (1825, 1150),
    (5793, 1130),
    (18_390, 1100),
    (58_390, 1080),
    (185_364, 1070),
];

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
    // Without duplicates, which is known if the shards are solved, there is no need to sort. After an
    // error there are fewer keys, which may be enough.
    if let Ok(Some(table)) = all.solve(wanted) {
        return Ok((table, all.hashes.len() as u64));
    }
    let left = sort_groups(spare, hashes, &lengths, wanted.threads)?;
    let hashes = &hashes[..left];
    let distinct = Keys { hashes, ends: shard_ends(hashes)?, distinct: true };
    match distinct.solve(wanted)? {
        Some(table) => Ok((table, left as u64)),
        None => Err(Error::invalid("hashes", "hashes that look random", "hashes that fit no filter")),
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
        let slots = SlotPlan::new(wanted.rate, self.hashes.len() as u64)?;
        let begins = [0].iter().chain(&self.ends);
        let most = self.ends.iter().zip(begins).map(|(end, begin)| end - begin).max().unwrap_or(0);
        if most as u64 <= MAX_KEYS {
            for round in 0..ROUNDS {
                let params = slots.params(self.ends.len() as u64, most as u64, round)?;
                match self.solve_with(&params, round, wanted.threads)? {
                    Solved::Yes(data) => return Ok(Some(FuseTable::from_parts(params, data))),
                    Solved::Duplicates => break,
                    Solved::No => (),
                }
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
/// need some rounds.
pub(in super::super) fn planned_bits(keys: u64, rate: f64) -> Result<u64> {
    let shards = shards_of(keys);
    let most = match keys.div_ceil(shards.max(1)) {
        mean if shards > 1 => mean + SIGMAS * mean.isqrt(),
        all => all,
    };
    let round = if keys < SURE { SMALL_ROUNDS } else { 0 };
    let params = SlotPlan::new(rate, keys)?.params(shards, most, round)?;
    Ok(lines_of(&params) * 8 * CacheLine::BYTES as u64)
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
        let size = |&(from, _): &(u64, u64)| from <= most;
        let log_segment = SIZES.iter().rposition(size).unwrap_or(0);
        let starts = ((most * SIZES[log_segment].1 / 1000) >> log_segment).max(1);
        let starts = starts + round * starts.div_ceil(16);
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
        FuseParams::new(shards, segments, log_segment as u64, bits, wide)
    }
}

impl Keys<'_> {
    /// Solves all shards.
    fn solve_with(&self, params: &FuseParams, round: u64, threads: NonZeroUsize) -> Result<Solved> {
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
                for attempt in round * MULTIPLIERS..(round + 1) * MULTIPLIERS {
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

/// Returns whether a key is there twice.
fn has_duplicates(keys: &[u64]) -> Result<bool> {
    let mut sorted = Vec::new();
    reserve(&mut sorted, keys.len())?;
    sorted.extend_from_slice(keys);
    sorted.sort_unstable();
    Ok(sorted.windows(2).any(|pair| pair[0] == pair[1]))
}
