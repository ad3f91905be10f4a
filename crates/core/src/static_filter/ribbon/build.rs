//! Building a ribbon, layer by layer: sort the hashes, cut them into shards, solve each shard.
//!
//! A shard is a range of sorted hashes; each thread takes the next shard
//! when it is free. The keys that a shard bumps are moved to the front of its range, and together are
//! the keys of the next layer. The last layer has extra rows, and is solved again with other seeds
//! until all its keys fit.
//!
//! Invariants: the filter depends on the set of hashes, the rate and the seed, not on their order,
//! duplicates or threads.
//!
//! Memory: twice the hashes, 16 bytes per key, beside the filter; the filter a second time while its
//! parts are joined; one megabyte per thread.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;

use super::super::Wanted;
use super::super::sort::{compact, cut_off, drop_duplicates, reserve, share_work, sort};
use super::RibbonTable;
use super::layout::{HALVES, LayerParams, MAX_COLUMNS, MAX_LAYERS, MAX_SEGMENTS, RibbonLayout};
use super::solve::Solver;
use crate::error::{Error, Result};
use crate::kernel::ribbon::{Layer, WIDTH, remix, unmix};
use crate::math;
use crate::store::{Owned, StoreMut, lines_as_half_words_mut};

/// The number of keys per row of a layer that bumps: enough to fill nearly all rows
/// (docs/design/filters/static.md).
const LOAD: f64 = 1.05;
/// The largest number of rows of a shard. Each takes 8 bytes while the shard is solved.
const SHARD: u64 = 1 << 15;
/// The largest number of keys of the last layer.
const LAST: usize = 1024;
/// The number of attempts to solve the last layer, which becomes larger from time to time.
const TRIES: u64 = 400;
/// Returns the factor below 1 by which the target rate is lowered. It allows for uneven bumping,
/// which has more effect with fewer keys; with too few keys to bump any, the factor is 0.999.
fn aim(keys: u64) -> f64 {
    0.999 - if keys > LAST as u64 { 0.5 / (keys as f64).sqrt() } else { 0.0 }
}

/// Builds a ribbon of hashes, which are overwritten, and returns it with the number of distinct
/// hashes. `spare` has the same length.
pub(in super::super) fn build(
    hashes: &mut [u64],
    spare: &mut [u64],
    wanted: &Wanted,
) -> Result<(RibbonTable<Owned>, u64)> {
    let (mut layout, mut share) = columns_for(wanted.rate, 0)?;
    let mut parts = Vec::new();
    let (mut keys, mut left) = (0, hashes.len());
    while left > 0 {
        let number = layout.layers().len() as u64;
        let seed = if number == 0 { wanted.seed } else { 0 };
        let few = left <= LAST || number + 1 == MAX_LAYERS;
        if few {
            hashes[..left].sort_unstable();
            left = drop_duplicates(&mut hashes[..left]);
        } else {
            let mix = |hash| remix(hash, seed);
            left = sort(&mut hashes[..left], &mut spare[..left], mix, wanted.threads)?;
        }
        let hashes = &mut hashes[..left];
        if number == 0 {
            keys = left as u64;
            (layout, share) = columns_for(wanted.rate, keys)?;
        }
        if !few && left <= LAST {
            // Duplicates were dropped, and few hashes are left.
            hashes.iter_mut().for_each(|hash| *hash = unmix(*hash, seed));
        }
        if few || left <= LAST {
            parts.push(last_layer(&mut layout, hashes, seed, share)?);
            break;
        }
        let layer = layout.push(plan(left as u64, seed, share), false)?;
        let part = Part::new(&layer)?;
        let (part, bumped) = solve(&layer, part, hashes, wanted.threads)?;
        parts.push(part);
        left = bumped;
    }
    let (cuts, rows) = join_parts(&layout, parts)?;
    Ok((RibbonTable::from_parts(layout, cuts, rows), keys))
}

/// Returns a layout without layers for this rate, and the share of queries that compare one column
/// more. The rate of hash collisions is subtracted first.
fn columns_for(rate: f64, keys: u64) -> Result<(RibbonLayout, f64)> {
    let floor = math::hash_floor(keys);
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

/// Returns the number of segments with one column more, so that a share `share` of all keys uses it:
/// both segments of an equation must be wide.
fn wide(segments: u64, share: f64) -> u64 {
    if share == 0.0 { 0 } else { ((segments as f64 * share).ceil() as u64 + 1).min(segments) }
}

/// The cuts and rows of one layer.
struct Part {
    cuts: Owned,
    rows: Owned,
}

impl Part {
    fn new(layer: &Layer) -> Result<Self> {
        let cuts = layer.shards * layer.cuts_each;
        let rows = layer.rows_of(layer.shards * layer.segments) - layer.rows_at;
        let zeroed = |halves: u64| Owned::zeroed(halves.div_ceil(HALVES));
        Ok(Self { cuts: zeroed(cuts)?, rows: zeroed(rows)? })
    }
}

/// Solves the last layer. `raw` are the distinct hashes of the layer before.
fn last_layer(layout: &mut RibbonLayout, raw: &[u64], seed: u64, share: f64) -> Result<Part> {
    let mut keys = Vec::new();
    reserve(&mut keys, raw.len())?;
    let mut solver = Solver::default();
    let max_hashes = MAX_SEGMENTS * WIDTH / 2;
    for attempt in (0..TRIES).filter(|_| (raw.len() as u64) < max_hashes) {
        let seed = seed.wrapping_add(attempt << 32);
        keys.clear();
        keys.extend(raw.iter().map(|&hash| remix(hash, seed)));
        keys.sort_unstable();
        let rows = raw.len() as u64 * 9 / 8 + WIDTH;
        let segments = rows.div_ceil(WIDTH).max(2);
        let segments = (segments + attempt / 4 * segments.div_ceil(32)).min(MAX_SEGMENTS);
        let numbers = LayerParams { seed, shards: 1, segments, wide: wide(segments, share) };
        let mut tried = layout.clone();
        let layer = tried.push(numbers, true)?;
        if solver.eliminate_all(&layer, &keys)? {
            let mut part = Part::new(&layer)?;
            let halves = layer.rows_of(segments) - layer.rows_at;
            let rows = &mut lines_as_half_words_mut(part.rows.lines_mut())[..halves as usize];
            solver.substitute(&layer, 0, rows);
            *layout = tried;
            return Ok(part);
        }
    }
    Err(Error::invalid("hashes", "hashes that look random", "hashes that fit no filter"))
}

/// Joins the parts of all layers.
fn join_parts(layout: &RibbonLayout, parts: Vec<Part>) -> Result<(Owned, Owned)> {
    let mut cuts = Owned::zeroed(layout.cut_lines())?;
    let mut rows = Owned::zeroed(layout.row_lines())?;
    let copy = |to: &mut [u32], from: &mut Owned, at: u64| {
        let to = &mut to[at as usize..];
        let from = lines_as_half_words_mut(from.lines_mut());
        // The last line of a layer has unused half words.
        let length = from.len().min(to.len());
        to[..length].copy_from_slice(&from[..length]);
    };
    for (layer, mut part) in layout.layers().iter().zip(parts) {
        copy(lines_as_half_words_mut(cuts.lines_mut()), &mut part.cuts, layer.cuts_at);
        copy(lines_as_half_words_mut(rows.lines_mut()), &mut part.rows, layer.rows_at);
    }
    Ok((cuts, rows))
}

// ---- Solving ------------------------------------------------------------------------------------

/// Solves all shards of a layer. Moves the bumped keys to the front and returns their number.
fn solve(
    layer: &Layer,
    mut part: Part,
    keys: &mut [u64],
    threads: NonZeroUsize,
) -> Result<(Part, usize)> {
    let shards = layer.shards as usize;
    // The length, and the number of bumped keys.
    let mut runs = Vec::new();
    reserve(&mut runs, shards)?;
    runs.resize(shards, (0, 0));
    let mut keys_left = &mut *keys;
    let mut rows_left = lines_as_half_words_mut(part.rows.lines_mut());
    let mut cuts_left = lines_as_half_words_mut(part.cuts.lines_mut());
    let work = (0..).zip(&mut runs).map(|(shard, run)| {
        let end = keys_left.partition_point(|&g| layer.locate(g).shard <= shard);
        let (first, behind) = (shard * layer.segments, (shard + 1) * layer.segments);
        let rows = layer.rows_of(behind) - layer.rows_of(first);
        let keys = cut_off(&mut keys_left, end);
        let rows = cut_off(&mut rows_left, rows as usize);
        let cuts = cut_off(&mut cuts_left, layer.cuts_each as usize);
        (shard, keys, rows, cuts, run)
    });
    share_work(work, threads, Solver::default, |solver, (shard, keys, rows, cuts, run)| {
        *run = (keys.len(), solver.eliminate(layer, keys, cuts)?);
        solver.substitute(layer, shard, rows);
        Ok(())
    })?;
    let bumped = compact(keys, runs.into_iter());
    Ok((part, bumped))
}
