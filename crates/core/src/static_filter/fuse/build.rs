//! Building a binary fuse filter: divide the hashes into shards, solve each shard.
//!
//! Each thread takes the next shard when it is free. A shard that cannot be solved is tried with
//! other multipliers, which change three of the four slots of a key. If these fail, too, all hashes are
//! mixed with another seed: attempts with different seeds are independent. After some seeds all shards
//! become larger.
//!
//! Hashes are not sorted, because the filter does not depend on their order. A shard with duplicates
//! cannot be solved: if its first attempt fails, its duplicates are dropped, and it is solved again. The
//! other shards are kept, unless there are so few keys left that a filter of them has other dimensions.
//! Before that, duplicates are dropped from all shards if a sample has any ([`Keys::has_many_duplicates`]),
//! and from the next shards as long as one in four has had some, because that takes less time than
//! an attempt that fails.
//!
//! Invariants: the filter depends on the set of hashes and the rate, not on their order, duplicates
//! or threads.
//!
//! Memory: twice the hashes, 16 bytes per key, beside the filter; for each thread 8 bytes per slot of a
//! shard, and a table of duplicates ([`DuplicateFinder`]): 32 bytes per key of a mean group, at most 13 MB.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;

use super::super::Wanted;
use super::super::keys::{default_keys, reserve};
use super::super::ranges::{Mix, RangedKeys, not_random};
use super::super::sort::{compact, cut_off, partition, share_work};
use super::duplicates::DuplicateFinder;
use super::peel::{MAX_KEYS, Solver};
use super::{FuseTable, hash_floor, lines_of};
use crate::error::{Error, Result};
use crate::kernel::blocked::{MIX_HIGH, MIX_LOW};
use crate::kernel::fuse::{FuseParams, MAX_BITS, WAYS, fuse_hash, mixer};
use crate::kernel::scale;
use crate::math;
use crate::store::{CacheLine, Owned, StoreMut, lines_as_words_mut};

/// The largest mean number of keys of a shard.
const SHARD: u64 = 3 << 17;
/// The number of multipliers that a shard tries, of seeds that are tried for each size, and how often all
/// shards become larger by a sixteenth.
const MULTIPLIERS: u64 = 8;
const SEEDS: u64 = 8;
const ROUNDS: u64 = 20;

/// The number of keys of a group that is near in memory, and the largest number of groups, unless there
/// are more shards.
const GROUP: usize = 1 << 13;
const MAX_GROUPS: usize = 2048;

/// The largest number of keys for which the dimensions with the fewest cache lines are found by
/// trying, the multipliers and logarithms of segments that are tried, the number of keys from
/// which the last logarithm is not, and the slots per 100 keys below which hardly any set is solved
/// (docs/design/filters.md).
const DENSE_UP_TO: u64 = 256;
const DENSE_MULTIPLIERS: u64 = 32;
const DENSE_SEGMENTS: [u64; 4] = [3, 4, 5, 2];
const DENSE_LAST_BELOW: u64 = 48;
const DENSE_SLOTS: u64 = 128;
const LINE_BITS: u64 = 8 * CacheLine::BYTES as u64;

/// The number of standard deviations above the mean from which a group has many copies of a hash.
const SIGMAS_OF_GROUP: usize = 8;
/// The share of hashes that are searched for duplicates before all shards are solved, and their
/// largest number.
const SAMPLED: usize = 64;
const MAX_SAMPLE: usize = 4096;
/// The least number of hashes of which a sample is searched.
const SAMPLE_FROM: usize = 4096;

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

/// Builds a filter of hashes and returns it with the number of distinct hashes. `spare` has the same
/// length.
pub(in super::super) fn build(
    hashes: &[u64],
    spare: &mut [u64],
    wanted: &Wanted,
) -> Result<(FuseTable<Owned>, u64)> {
    let mut keys = Keys::new(hashes, spare, wanted.threads);
    let groups = keys.mix(0);
    if keys.has_many_duplicates(&groups)? {
        keys.drop_duplicates()?;
    }
    let before = keys.count();
    let mut solved = keys.solve(wanted.rate);
    // An error is not returned yet: without duplicates, memory or the rate may suffice. Another attempt
    // differs only if keys were dropped, or may still have duplicates.
    let can_differ = keys.count() < before || !keys.distinct;
    if can_differ && !matches!(solved, Ok(Some(_))) {
        if keys.seed != 0 {
            keys.mix(0);
        }
        keys.drop_duplicates()?;
        solved = keys.solve(wanted.rate);
    }
    match solved? {
        Some(table) => Ok((table, keys.count())),
        None => Err(not_random()),
    }
}

/// Returns the hash of the first seed.
pub(in super::super) fn first_hash() -> Mix {
    Mix { function: |hash, seed| fuse_hash(hash, mixer(seed)), inverse: None, seed: 0 }
}

/// [`build`] from ranges of [`first_hash`]. Only the first seed is tried: that it fails with that
/// number of keys is improbable.
pub(in super::super) fn build_from_ranges(
    keys: &mut RangedKeys<'_>,
    wanted: &Wanted,
) -> Result<(FuseTable<Owned>, u64)> {
    let (spill, threads) = (keys.spill(), wanted.threads);
    let max_keys = spill.max_keys();
    let most_shards = shards_of(keys.count());
    let mut lengths = Vec::new();
    reserve(&mut lengths, most_shards as usize)?;
    lengths.resize(most_shards as usize, 0u64);
    keys.for_each_range::<u64>(max_keys, threads, |keys| {
        keys.iter().for_each(|&g| lengths[scale(g, most_shards) as usize] += 1);
        Ok(())
    })?;
    let distinct = lengths.iter().sum();
    if distinct <= max_keys as u64 {
        let hashes: Vec<u64> = keys.all_in_memory(max_keys, threads)?;
        let mut spare = default_keys(hashes.len())?;
        return build(&hashes, &mut spare, wanted);
    }
    let shards = shards_of(distinct);
    let each = (most_shards / shards) as usize;
    let longest = lengths.chunks(each).map(|lengths| lengths.iter().sum()).max().unwrap_or(0);
    if longest > MAX_KEYS {
        return Err(not_random());
    }
    let params = SlotPlan::new(wanted.rate, distinct, 0)?.params(shards, longest, 0)?;
    let max_keys = spill.beside::<u64>(lines_of(&params) * CacheLine::BYTES as u64)?.max_keys();
    let mut data = Owned::zeroed(lines_of(&params))?;
    let (slots, multipliers) =
        lines_as_words_mut(data.lines_mut()).split_at_mut(params.slot_words() as usize);
    let (mut slots_left, mut multipliers_left) = (slots, multipliers);
    keys.for_each_run::<u64>(shards, max_keys, threads, |run, keys| {
        let mut keys_left = &*keys;
        let work = run.map(|shard| {
            let end = keys_left.partition_point(|&g| params.shard(g) <= shard);
            let keys;
            (keys, keys_left) = keys_left.split_at(end);
            let words = cut_off(&mut slots_left, words_of(&params, shard));
            (shard, keys, words, cut_off(&mut multipliers_left, 1))
        });
        share_work(work, threads, Solver::default, |solver, (shard, keys, words, multiplier)| {
            for attempt in 0..MULTIPLIERS {
                if solver.solve(&params, keys, multiplier_of(attempt))? {
                    solver.write_slots(&params, shard, words);
                    multiplier[0] = multiplier_of(attempt).to_le();
                    return Ok(());
                }
            }
            Err(not_random())
        })
    })?;
    Ok((FuseTable::from_parts(params, data), distinct))
}

/// Returns the number of words of a shard of several.
fn words_of(params: &FuseParams, shard: u64) -> usize {
    // Several shards have segments of at least 64 slots, so each begins with a word.
    let word = |shard: u64| params.bit_of(shard * params.stride()).div_ceil(64);
    (word(shard + 1) - word(shard)) as usize
}

/// Returns the multiplier of an attempt.
fn multiplier_of(attempt: u64) -> u64 {
    MIX_LOW.wrapping_add((2 * attempt).wrapping_mul(MIX_HIGH))
}

/// The hashes of all keys, shard by shard.
struct Keys<'a> {
    raw: &'a [u64],
    /// The hashes, mixed with the seed.
    hashes: &'a mut [u64],
    threads: NonZeroUsize,
    seed: u64,
    /// The number of hashes of each shard with those that were dropped, which are at its end.
    lengths: Vec<usize>,
    /// The number of hashes that were not dropped.
    left: Vec<usize>,
    /// Groups of a shard.
    parts: usize,
    /// Whether there are no duplicates.
    distinct: bool,
}

/// The sizes of all shards of a filter.
#[derive(Clone, Copy)]
struct ShardSizes {
    shards: u64,
    /// The number of keys of the largest shard.
    max_keys: u64,
    slots: SlotPlan,
}

impl ShardSizes {
    /// Returns the dimensions of a round.
    fn round(&self, round: u64) -> Result<FuseParams> {
        self.slots.params(self.shards, self.max_keys, round)
    }
}

impl<'a> Keys<'a> {
    /// Returns the keys of these hashes, which are not mixed yet.
    fn new(raw: &'a [u64], spare: &'a mut [u64], threads: NonZeroUsize) -> Self {
        let (lengths, left) = (Vec::new(), Vec::new());
        Self { raw, hashes: spare, threads, seed: 0, lengths, left, parts: 1, distinct: false }
    }

    /// Mixes all hashes with a seed and divides them into shards; returns the lengths of their groups.
    fn mix(&mut self, seed: u64) -> Vec<usize> {
        let (keys, mixer) = (self.raw.len(), mixer(seed));
        let shards = shards_of(keys as u64) as usize;
        // A whole number of groups for each shard.
        let parts = (MAX_GROUPS / shards.max(1)).min(keys / (GROUP * shards).max(1)).max(1);
        let groups = (shards * parts).max(1);
        let mix = |hash| fuse_hash(hash, mixer);
        let groups = partition(self.raw, self.hashes, groups, mix, self.threads);
        self.lengths = groups.chunks(parts).take(shards).map(|group| group.iter().sum()).collect();
        self.left.clone_from(&self.lengths);
        (self.parts, self.seed, self.distinct) = (parts, seed, false);
        groups
    }

    /// Mixes the hashes with another seed and drops duplicates, if there were any.
    fn mix_again(&mut self, seed: u64) -> Result<()> {
        let distinct = self.count() == self.raw.len() as u64;
        self.mix(seed);
        if distinct {
            self.distinct = true;
            return Ok(());
        }
        self.drop_duplicates()
    }

    /// Returns the number of hashes that were not dropped.
    fn count(&self) -> u64 {
        self.left.iter().sum::<usize>() as u64
    }

    /// Returns the number of groups of these shards, and the mean number of hashes of a group, dropped
    /// ones included.
    fn groups(&self, shards: u64) -> (u64, usize) {
        let groups = shards * self.parts as u64;
        (groups, self.hashes.len().div_ceil((groups as usize).max(1)))
    }

    fn sizes(&self, rate: f64) -> Result<ShardSizes> {
        let (keys, max_keys) = (self.count(), self.left.iter().max().copied().unwrap_or(0));
        let slots = SlotPlan::new(rate, keys, self.seed)?;
        Ok(ShardSizes { shards: shards_of(keys), max_keys: max_keys as u64, slots })
    }

    /// Returns true if it pays to drop duplicates before all shards are solved: a group is so large
    /// that a hash has many copies, or a sample has duplicates.
    fn has_many_duplicates(&self, groups: &[usize]) -> Result<bool> {
        let keys = self.hashes.len();
        if keys < SAMPLE_FROM {
            return Ok(false);
        }
        let mean = keys / groups.len();
        let max_length = mean + SIGMAS_OF_GROUP * mean.isqrt();
        if groups.len() > 1 && groups.iter().any(|&length| length > max_length) {
            return Ok(true);
        }
        // The sample has all copies of its hashes: it is a range of them, which begins with 0.
        let size = (keys / SAMPLED).min(MAX_SAMPLE) as u64;
        let end = u64::MAX / keys as u64 * size;
        let mut sample = Vec::new();
        reserve(&mut sample, groups[0])?;
        sample.extend(self.hashes[..groups[0]].iter().copied().filter(|&g| g < end));
        let all = sample.len();
        let ranges = u64::MAX / end.max(1);
        Ok(DuplicateFinder::default().drop_duplicates(&mut sample, ranges, all)? < all)
    }

    /// Drops the duplicates of all shards, and divides the keys that are left into shards.
    fn drop_duplicates(&mut self) -> Result<()> {
        let shards = self.lengths.len() as u64;
        if !self.distinct {
            let (groups, mean) = self.groups(shards);
            let mut rest = &mut *self.hashes;
            let work = self.lengths.iter().zip(&mut self.left);
            let work = work.map(|(&length, left)| (cut_off(&mut rest, length), left));
            share_work(work, self.threads, DuplicateFinder::default, |finder, (keys, left)| {
                *left = finder.drop_duplicates(&mut keys[..*left], groups, mean)?;
                Ok(())
            })?;
        }
        compact(self.hashes, self.lengths.iter().copied().zip(self.left.iter().copied()));
        // Fewer keys may have fewer shards, each of which has the keys of several.
        let merged = (shards / shards_of(self.count()).max(1)).max(1);
        self.lengths = self.left.chunks(merged as usize).map(|left| left.iter().sum()).collect();
        self.left.clone_from(&self.lengths);
        self.distinct = true;
        Ok(())
    }

    /// Returns a filter; `None` if there is none, or if the dimensions are not those of a filter of
    /// the keys that are left without duplicates. The seed must be 0.
    fn solve(&mut self, rate: f64) -> Result<Option<FuseTable<Owned>>> {
        let sizes = self.sizes(rate)?;
        let max_keys = sizes.max_keys;
        if max_keys > MAX_KEYS {
            return Ok(None);
        }
        let first = sizes.round(0)?;
        // Few keys: with fewer cache lines than in the first round, then with as many.
        let lines = if (1..=DENSE_UP_TO).contains(&max_keys) { lines_of(&first) } else { 0 };
        let dense = |lines| {
            let params = move |log| sizes.slots.dense_params(max_keys, lines, log).transpose();
            let segments = if max_keys < DENSE_LAST_BELOW { 4 } else { 3 };
            let found = DENSE_SEGMENTS.into_iter().take(segments).filter_map(params);
            found.map(|params| params.map(|params| (params, DENSE_MULTIPLIERS)))
        };
        let plans = (1..lines).flat_map(dense).chain([Ok((first, MULTIPLIERS))]);
        for plan in plans.chain((lines..=lines).flat_map(dense)) {
            let (params, multipliers) = plan?;
            let before = self.count();
            let solved = self.solve_with(&params, multipliers)?;
            // Shards that are solved have no duplicates, and those of the others were dropped.
            self.distinct = true;
            if self.count() < before {
                let sizes = self.sizes(rate)?;
                let same = sizes.max_keys > DENSE_UP_TO && sizes.round(0)? == params;
                return Ok(solved.filter(|_| same).map(|data| FuseTable::from_parts(params, data)));
            }
            if let Some(data) = solved {
                return Ok(Some(FuseTable::from_parts(params, data)));
            }
        }
        for seed in 1..SEEDS * ROUNDS {
            self.mix_again(seed)?;
            let sizes = self.sizes(rate)?;
            if sizes.max_keys > MAX_KEYS {
                continue;
            }
            let params = sizes.round(seed / SEEDS)?;
            if let Some(data) = self.solve_with(&params, MULTIPLIERS)? {
                return Ok(Some(FuseTable::from_parts(params, data)));
            }
        }
        Ok(None)
    }
}

/// Returns a number of bits that a filter of `keys` distinct keys does not exceed, unless its hashes
/// are very unusual: several shards may differ by some standard deviations, and small filters may
/// need some rounds. It is not less for more keys.
pub(in super::super) fn planned_bits(keys: u64, rate: f64) -> Result<u64> {
    let shards = shards_of(keys);
    let max_keys = match keys.div_ceil(shards.max(1)) {
        mean if shards > 1 => mean + SIGMAS * mean.isqrt(),
        all => all,
    };
    let slots = SlotPlan::new(rate, keys, 0)?;
    let lines = |max_keys| {
        slots.params(shards, max_keys, Size::of(max_keys).rounds).map(|params| lines_of(&params))
    };
    // With fewer keys more rounds may be needed.
    let fewer = SIZES.iter().map(|size| size.keys).filter(|&from| (1..=max_keys).contains(&from));
    let mut largest = lines(max_keys)?;
    for from in fewer {
        largest = largest.max(lines(from - 1)?);
    }
    Ok(largest * LINE_BITS)
}

/// Returns the number of shards of a filter.
fn shards_of(keys: u64) -> u64 {
    if keys == 0 { 0 } else { keys.div_ceil(SHARD).next_power_of_two() }
}

/// The part of the rate that collisions of hashes may add to it.
const NEGLIGIBLE: f64 = 1e-6;

/// The bits of slots.
#[derive(Clone, Copy)]
struct SlotPlan {
    bits: u64,
    /// The share of queries that compare one more bit.
    share: f64,
    seed: u64,
}

impl SlotPlan {
    fn new(rate: f64, keys: u64, seed: u64) -> Result<Self> {
        let floor = hash_floor(keys);
        // A rate of 2^-8 has slots of 8 bits, not more of them for the last millionth.
        let aim = if floor < rate * NEGLIGIBLE { rate } else { rate - floor };
        let (bits, share) = math::static_columns(aim);
        if u64::from(bits) > MAX_BITS {
            return Err(Error::unattainable(keys, rate, floor));
        }
        Ok(Self { bits: bits.into(), share, seed })
    }

    /// Returns dimensions for shards of at most `most` keys, which are larger in each round.
    fn params(&self, shards: u64, max_keys: u64, round: u64) -> Result<FuseParams> {
        let &Size { log_segment, starts, .. } = Size::of(max_keys);
        let starts = ((max_keys * starts / 1000) >> log_segment).max(1);
        let starts = starts + round * starts.div_ceil(16);
        self.params_of(shards, log_segment, starts)
    }

    /// Returns the dimensions with segments of 2^`log_segment` slots that fill this number of cache
    /// lines; `None` if that is too few slots.
    fn dense_params(&self, keys: u64, lines: u64, log_segment: u64) -> Result<Option<FuseParams>> {
        let max_starts = (lines * LINE_BITS / self.bits.max(1)) >> log_segment;
        for starts in (1..=max_starts).rev() {
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
        FuseParams::new(shards, segments, log_segment, bits, wide, self.seed)
    }
}

/// What a thread keeps from shard to shard.
#[derive(Default)]
struct Scratch {
    solver: Solver,
    finder: DuplicateFinder,
    /// The number of shards so far, and of those that had duplicates.
    shards: u32,
    with_duplicates: u32,
}

impl Keys<'_> {
    /// Solves all shards, each with one of this number of multipliers, and drops the duplicates of those that
    /// cannot be solved with them; `None` if a shard is not solved.
    fn solve_with(&mut self, params: &FuseParams, attempts: u64) -> Result<Option<Owned>> {
        let (groups, mean) = self.groups(params.shards());
        let mut data = Owned::zeroed(lines_of(params))?;
        let (slots, multipliers) =
            lines_as_words_mut(data.lines_mut()).split_at_mut(params.slot_words() as usize);
        let mut unsolved = Vec::new();
        reserve(&mut unsolved, self.lengths.len())?;
        unsolved.resize(self.lengths.len(), true);
        let (mut slots_left, mut keys_left) = (slots, &mut *self.hashes);
        let keys = self.lengths.iter().zip(&mut self.left);
        let work = (0..).zip(keys).zip(multipliers.iter_mut().zip(&mut unsolved));
        let work = work.map(|((shard, (&length, left)), (multiplier, unsolved))| {
            let keys = cut_off(&mut keys_left, length);
            let words = cut_off(&mut slots_left, words_of(params, shard));
            (shard, keys, left, words, multiplier, unsolved)
        });
        let distinct = self.distinct;
        share_work(
            work,
            self.threads,
            Scratch::default,
            |scratch, (shard, keys, left, words, multiplier, unsolved)| {
                let Scratch { solver, finder, shards, with_duplicates } = scratch;
                let before = *left;
                let mut searched = distinct;
                if !searched && *with_duplicates * 4 > *shards {
                    *left = finder.drop_duplicates(&mut keys[..before], groups, mean)?;
                    searched = true;
                }
                let mut next = 0;
                while next < attempts {
                    let tried = multiplier_of(next);
                    if solver.solve(params, &keys[..*left], tried)? {
                        solver.write_slots(params, shard, words);
                        *multiplier = tried.to_le();
                        *unsolved = false;
                        break;
                    }
                    next += 1;
                    // Duplicates have the same slots with any multiplier.
                    if !searched {
                        searched = true;
                        *left = solver.drop_duplicates(&mut keys[..before])?;
                        if *left < before && params.shards() == 1 {
                            // Without them all keys may have other dimensions.
                            break;
                        }
                        next = if *left < before { 0 } else { next };
                    }
                }
                *shards += 1;
                *with_duplicates += u32::from(*left < before);
                Ok(())
            },
        )?;
        Ok((!unsolved.contains(&true)).then_some(data))
    }
}
