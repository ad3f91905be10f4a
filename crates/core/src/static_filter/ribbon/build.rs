//! Building a ribbon, layer by layer: sort the hashes, cut them into shards, solve each shard.
//!
//! A shard is a range of sorted hashes; each thread takes the next shard
//! when it is free. The keys that a shard bumps are moved to the front of its range, and together are
//! the keys of the next layer. The last layer has extra rows, and is solved again with other seeds
//! until all its keys fit.
//!
//! Keys that do not fit in memory are in ranges of sorted hashes. A first pass over them counts distinct
//! hashes, which give the dimensions of the layer. A second one solves the shards of one range after
//! the other.
//!
//! Invariants: the filter depends on the set of hashes, the rate and the seed, not on their order,
//! duplicates, threads, or place.
//!
//! Memory: twice the hashes, 16 bytes per key, or twice those of a range; the filter, and a twelfth of
//! it in reserve; one megabyte per thread.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;
use core::ops::Range;

use super::super::Wanted;
use super::super::collector::{CollectedKeys, KeyCollector};
use super::super::keys::{HashedKey, default_keys, grow, reserve};
use super::super::ranges::{Mix, RangedKeys, Spill, not_random};
use super::super::sort::{compact, cut_off, drop_duplicates, share_work, sort};
use super::RibbonTable;
use super::layout::{LayerParams, MAX_COLUMNS, MAX_LAYERS, MAX_SEGMENTS, RibbonLayout};
use super::solve::Solver;
use crate::error::{Error, Result};
use crate::kernel::ribbon::{Layer, WIDTH, remix, unmix};
use crate::math;
use crate::store::{CacheLine, Owned, Store, StoreMut, lines_as_half_words_mut};

/// The number of keys per row of a layer that bumps: enough to fill nearly all rows
/// (docs/design/filters.md).
const LOAD: f64 = 1.05;
/// The largest number of rows of a shard. Each takes 8 bytes while the shard is solved.
const SHARD: u64 = 1 << 15;
/// The largest number of keys of the last layer.
const LAST: usize = 1024;
/// The number of attempts to solve the last layer, which becomes larger from time to time.
const TRIES: u64 = 400;
/// The largest number of hashes that an error about two lists has.
const MAX_CONTRADICTIONS: usize = 1 << 20;
/// The first layer reserves this part of its size for the others, which are 6 % of it.
const RESERVE: u64 = 12;

/// Returns the factor below 1 by which the target rate is lowered. It allows for uneven bumping,
/// which has more effect with fewer keys; with too few keys to bump any, the factor is 0.999.
fn aim(keys: u64) -> f64 {
    0.999 - if keys > LAST as u64 { 0.5 / (keys as f64).sqrt() } else { 0.0 }
}

/// Builds a ribbon of hashes, which are overwritten, and returns it with the number of distinct
/// hashes. `spare` has the same length.
pub(in super::super) fn build<K: HashedKey>(
    hashes: &mut [K],
    spare: &mut [K],
    wanted: &Wanted,
) -> Result<(RibbonTable<Owned>, u64)> {
    let mut builder = RibbonBuilder::new(wanted)?;
    builder.add_layers(hashes, spare)?;
    builder.finish()
}

/// [`build`] from ranges of [`layer_hash`], whose distinct keys are counted unless their number is known.
pub(in super::super) fn build_from_ranges<K: HashedKey>(
    keys: &mut RangedKeys<'_>,
    distinct: Option<usize>,
    wanted: &Wanted,
) -> Result<(RibbonTable<Owned>, u64)> {
    let mut builder = RibbonBuilder::new(wanted)?;
    // The memory of each layer's keys is what the rows so far leave of this.
    let spill = keys.spill();
    let mut next = builder.add_layer_of_ranges::<K>(keys, distinct, spill)?;
    loop {
        match next {
            CollectedKeys::Ranges(mut keys) => {
                next = builder.add_layer_of_ranges(&mut keys, None, spill)?;
            }
            CollectedKeys::Memory(mut hashes) => {
                let mut spare = default_keys::<K>(hashes.len())?;
                builder.add_layers(&mut hashes, &mut spare)?;
                return builder.finish();
            }
        }
    }
}

/// Returns the hash of a layer.
pub(in super::super) fn layer_hash(seed: u64) -> Mix {
    Mix { function: remix, inverse: Some(unmix), seed }
}

/// The layers that are built so far.
struct RibbonBuilder<'a> {
    wanted: &'a Wanted,
    layout: RibbonLayout,
    /// The share of queries that compare one column more.
    share: f64,
    /// At least the half words of the layout.
    cuts: Owned,
    rows: Owned,
    /// The number of distinct keys of the first layer.
    keys: u64,
}

/// The half words of a layer.
struct LayerData<'a> {
    cuts: &'a mut [u32],
    rows: &'a mut [u32],
}

impl<'a> RibbonBuilder<'a> {
    fn new(wanted: &'a Wanted) -> Result<Self> {
        let (layout, share) = columns_for(wanted, 0)?;
        let (cuts, rows) = (Owned::zeroed(0)?, Owned::zeroed(0)?);
        Ok(Self { wanted, layout, share, cuts, rows, keys: 0 })
    }

    /// Returns the seed of the next layer.
    fn seed(&self) -> u64 {
        if self.layout.layers().is_empty() { self.wanted.seed } else { 0 }
    }

    /// Whether the next layer must be the last.
    fn is_last(&self) -> bool {
        self.layout.layers().len() as u64 + 1 == MAX_LAYERS
    }

    /// Notes the number of keys of the first layer.
    fn count(&mut self, keys: usize) -> Result<()> {
        if self.layout.layers().is_empty() {
            self.keys = keys as u64;
            (self.layout, self.share) = columns_for(self.wanted, self.keys)?;
        }
        Ok(())
    }

    /// Adds all layers from keys in memory.
    fn add_layers<K: HashedKey>(&mut self, hashes: &mut [K], spare: &mut [K]) -> Result<()> {
        let mut left = hashes.len();
        while left > 0 {
            let (seed, threads) = (self.seed(), self.wanted.threads);
            let few = left <= LAST || self.is_last();
            if few {
                hashes[..left].sort_unstable();
                left = drop_duplicates(&mut hashes[..left]);
            } else {
                let mix = |hash| remix(hash, seed);
                left = sort(&mut hashes[..left], &mut spare[..left], mix, threads)?;
            }
            let hashes = &mut hashes[..left];
            let mut both = Vec::new();
            find_in_both(hashes, |g| if few { g } else { unmix(g, seed) }, &mut both)?;
            refuse(both)?;
            self.count(left)?;
            if !few && left <= LAST {
                // Duplicates were dropped, and few hashes are left.
                hashes.iter_mut().for_each(|key| *key = key.with_hash(unmix(key.hash(), seed)));
            }
            if few || left <= LAST {
                return self.add_last_layer(hashes, seed);
            }
            let layer = self.layout.push(plan(left as u64, seed, self.share), false)?;
            let data = self.data_of(&layer)?;
            left = solve(&layer, data, 0..layer.shards, hashes, threads)?;
        }
        Ok(())
    }

    /// Adds a layer from keys in ranges, and returns those of the next one. Few keys are returned
    /// without a layer. `spill` has the memory of rows and keys.
    fn add_layer_of_ranges<'s, K: HashedKey>(
        &mut self,
        keys: &mut RangedKeys<'s>,
        distinct: Option<usize>,
        spill: Spill<'s>,
    ) -> Result<CollectedKeys<'s, K>> {
        let (seed, threads) = (self.seed(), self.wanted.threads);
        let max_keys = self.beside::<K>(spill)?.max_keys();
        let distinct = match distinct {
            Some(distinct) => distinct,
            None => {
                let (mut both, mut distinct) = (Vec::new(), 0);
                keys.for_each_range::<K>(max_keys, threads, |keys| {
                    distinct += keys.len();
                    find_in_both(keys, |g| unmix(g, seed), &mut both)
                })?;
                refuse(both)?;
                distinct
            }
        };
        if distinct <= max_keys {
            return keys.all_in_memory(max_keys, threads).map(CollectedKeys::Memory);
        }
        if self.is_last() {
            return Err(not_random());
        }
        self.count(distinct)?;
        let layer = self.layout.push(plan(distinct as u64, seed, self.share), false)?;
        self.data_of(&layer)?;
        let beside = self.beside::<K>(spill)?;
        let mut next = KeyCollector::new(Some(beside), layer_hash(0));
        keys.for_each_run::<K>(layer.shards, beside.max_keys(), threads, |shards, keys| {
            let bumped = solve(&layer, self.data_of(&layer)?, shards, keys, threads)?;
            next.extend(&keys[..bumped])
        })?;
        Ok(next.finish())
    }

    /// Adds the last layer. `raw` are the distinct hashes of the layer before.
    fn add_last_layer<K: HashedKey>(&mut self, raw: &[K], seed: u64) -> Result<()> {
        let mut keys = Vec::new();
        reserve(&mut keys, raw.len())?;
        let mut solver = Solver::default();
        let max_hashes = MAX_SEGMENTS * WIDTH / 2;
        for attempt in (0..TRIES).filter(|_| (raw.len() as u64) < max_hashes) {
            let seed = seed.wrapping_add(attempt << 32);
            keys.clear();
            keys.extend(raw.iter().map(|key| key.with_hash(remix(key.hash(), seed))));
            keys.sort_unstable();
            let mut tried = self.layout.clone();
            let numbers = last_plan(raw.len() as u64, seed, attempt, self.share);
            let layer = tried.push(numbers, true)?;
            if solver.eliminate_all(&layer, &keys)? {
                self.layout = tried;
                solver.substitute(&layer, 0, self.data_of(&layer)?.rows);
                return Ok(());
            }
        }
        Err(not_random())
    }

    /// Returns the memory beside the layers so far.
    fn beside<'s, K>(&self, spill: Spill<'s>) -> Result<Spill<'s>> {
        let lines = self.cuts.lines().len() + self.rows.lines().len();
        spill.beside::<K>((lines * CacheLine::BYTES) as u64)
    }

    /// Returns the half words of the newest layer.
    fn data_of(&mut self, layer: &Layer) -> Result<LayerData<'_>> {
        enlarge(&mut self.cuts, self.layout.cut_lines())?;
        enlarge(&mut self.rows, self.layout.row_lines())?;
        let cuts = &mut lines_as_half_words_mut(self.cuts.lines_mut())
            [layer.cuts_at as usize..self.layout.cuts() as usize];
        let rows = &mut lines_as_half_words_mut(self.rows.lines_mut())
            [layer.rows_at as usize..self.layout.rows() as usize];
        Ok(LayerData { cuts, rows })
    }

    fn finish(mut self) -> Result<(RibbonTable<Owned>, u64)> {
        self.cuts.shorten(self.layout.cut_lines())?;
        self.rows.shorten(self.layout.row_lines())?;
        Ok((RibbonTable::from_parts(self.layout, self.cuts, self.rows), self.keys))
    }
}

/// Makes space for `len` lines, and for a few more.
fn enlarge(lines: &mut Owned, len: u64) -> Result<()> {
    let old = lines.lines().len();
    if len > old as u64 {
        let mut new = Owned::zeroed(len + len / RESERVE + 16)?;
        new.lines_mut()[..old].copy_from_slice(lines.lines());
        *lines = new;
    }
    Ok(())
}

/// Appends the hashes that are in both lists, up to a limit. The keys are sorted.
fn find_in_both<K: HashedKey>(
    keys: &[K],
    hash_of: impl Fn(u64) -> u64,
    both: &mut Vec<u64>,
) -> Result<()> {
    if !K::HAS_LIST {
        return Ok(());
    }
    let pairs = keys.windows(2).filter(|pair| pair[0].hash() == pair[1].hash());
    for pair in pairs.take(MAX_CONTRADICTIONS - both.len()) {
        grow(both, 1)?;
        both.push(hash_of(pair[0].hash()));
    }
    Ok(())
}

/// Returns an error if hashes are in both lists.
fn refuse(mut both: Vec<u64>) -> Result<()> {
    both.sort_unstable();
    if both.is_empty() { Ok(()) } else { Err(Error::contradiction(both)) }
}

/// Returns a layout without layers for this rate, and the share of queries that compare one column
/// more. The rate of hash collisions is subtracted first.
fn columns_for(wanted: &Wanted, keys: u64) -> Result<(RibbonLayout, f64)> {
    if let Some(columns) = wanted.columns {
        return Ok((RibbonLayout::new(columns)?, 0.0));
    }
    let (rate, floor) = (wanted.rate, math::hash_floor(keys));
    let (columns, share) = math::static_columns((rate - floor) * aim(keys));
    if u64::from(columns) > MAX_COLUMNS {
        return Err(Error::unattainable(keys, rate, floor));
    }
    Ok((RibbonLayout::new(columns.into())?, share))
}

/// Returns the parameters of a layer for `keys` keys.
fn plan(keys: u64, seed: u64, share: f64) -> LayerParams {
    let rows = keys as f64 / LOAD;
    let shards = (rows / SHARD as f64).ceil().max(1.0);
    let segments = (rows / shards / WIDTH as f64).round().max(2.0) as u64;
    let shards = shards as u64;
    LayerParams { seed, shards, segments, wide: wide(shards * segments, share) }
}

/// Returns the parameters of the last layer for `keys` keys, which is larger after some attempts.
fn last_plan(keys: u64, seed: u64, attempt: u64, share: f64) -> LayerParams {
    let segments = (keys.saturating_mul(9) / 8 + WIDTH).div_ceil(WIDTH).max(2);
    let segments = (segments + attempt / 4 * segments.div_ceil(32)).min(MAX_SEGMENTS);
    LayerParams { seed, shards: 1, segments, wide: wide(segments, share) }
}

/// The share of keys that a layer bumps, measured (docs/design/filters.md).
const BUMPED: f64 = 0.0558;

/// Returns the approximate number of bits of a ribbon of `keys` distinct keys: the exact number depends
/// on the keys that are bumped.
pub(in super::super) fn planned_bits(keys: u64, rate: f64) -> Result<u64> {
    let wanted = Wanted { rate, columns: None, seed: 0, threads: NonZeroUsize::MIN };
    let (mut layout, share) = columns_for(&wanted, keys)?;
    let mut left = keys;
    while left > 0 {
        if left <= LAST as u64 || layout.layers().len() as u64 + 1 == MAX_LAYERS {
            layout.push(last_plan(left, 0, 0, share), true)?;
            break;
        }
        layout.push(plan(left, 0, share), false)?;
        left = (left as f64 * BUMPED) as u64;
    }
    let lines = layout.layers().len() as u64 + layout.cut_lines() + layout.row_lines();
    Ok(lines * CacheLine::BYTES as u64 * 8)
}

/// Returns the number of segments with one column more, so that a share `share` of all keys uses it:
/// both segments of an equation must be wide.
fn wide(segments: u64, share: f64) -> u64 {
    if share == 0.0 { 0 } else { ((segments as f64 * share).ceil() as u64 + 1).min(segments) }
}

// ---- Solving ------------------------------------------------------------------------------------

/// Solves some shards of a layer, whose keys these are. Moves the bumped keys to the front and returns
/// their number.
fn solve<K: HashedKey>(
    layer: &Layer,
    data: LayerData<'_>,
    shards: Range<u64>,
    keys: &mut [K],
    threads: NonZeroUsize,
) -> Result<usize> {
    // The length, and the number of bumped keys.
    let number = (shards.end - shards.start) as usize;
    let mut runs = Vec::new();
    reserve(&mut runs, number)?;
    runs.resize(number, (0, 0));
    let rows_of = |shard: u64| layer.rows_of(shard * layer.segments) - layer.rows_at;
    let mut keys_left = &mut *keys;
    let mut rows_left = &mut data.rows[rows_of(shards.start) as usize..];
    let mut cuts_left = &mut data.cuts[(shards.start * layer.cuts_each) as usize..];
    let work = shards.zip(&mut runs).map(|(shard, run)| {
        let end = keys_left.partition_point(|key| layer.locate(key.hash()).shard <= shard);
        let keys = cut_off(&mut keys_left, end);
        let rows = cut_off(&mut rows_left, (rows_of(shard + 1) - rows_of(shard)) as usize);
        let cuts = cut_off(&mut cuts_left, layer.cuts_each as usize);
        (shard, keys, rows, cuts, run)
    });
    share_work(work, threads, Solver::default, |solver, (shard, keys, rows, cuts, run)| {
        *run = (keys.len(), solver.eliminate(layer, keys, cuts)?);
        solver.substitute(layer, shard, rows);
        Ok(())
    })?;
    Ok(compact(keys, runs.into_iter()))
}
