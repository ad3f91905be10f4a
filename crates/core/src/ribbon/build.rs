//! From hashes to rows: layer after layer, sorted, cut into shards, solved by many threads.
//!
//! The hashes of a layer are sorted: into groups, then each group within a processor's cache.
//! Equal ones, neighbours now, are dropped. A shard is a run of sorted hashes; whoever is free
//! takes the next one. Keys that a shard bumps come to the front of its run, and all of them
//! together are the keys of the next layer. The last layer has some room to spare, and is tried
//! with other seeds until all its keys fit.
//!
//! Invariants: what comes out depends on the set of hashes, the rate and the seed: not on order,
//! repetition or threads.
//!
//! Memory: twice the hashes, 16 bytes a key, beside the filter, and the filter a second time while
//! its parts are put together; a megabyte a thread.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::slice::IterMut;
use std::sync::Mutex;
use std::thread;

use super::layout::{HALVES, Layout, MOST_COLUMNS, MOST_LAYERS, MOST_SEGMENTS, Numbers};
use super::solve::Solver;
use crate::error::{Error, Result};
use crate::kernel::ribbon::{Layer, WIDTH, remix, unmix};
use crate::kernel::scale;
use crate::rate;
use crate::store::{Owned, StoreMut, halves_of_mut};

/// Keys for each row of a layer that bumps: so many more than there are rows that nearly all rows
/// are taken (docs/design.md).
const LOAD: f64 = 1.05;
/// Rows of a shard, at most: 8 bytes each while it is solved.
const SHARD: u64 = 1 << 15;
/// So few keys are the last layer's.
const LAST: usize = 1024;
/// How often the last layer is tried. It is larger from time to time.
const TRIES: u64 = 400;
/// Hashes of a group to be sorted at once, and the most groups.
const GROUP: usize = 1 << 14;
const MOST_GROUPS: usize = 2048;
/// What the rate is aimed below: bumping is not quite even, and the less so the fewer keys there
/// are, down to those of which none is bumped.
fn aim(keys: u64) -> f64 {
    0.999 - if keys > LAST as u64 { 0.5 / (keys as f64).sqrt() } else { 0.0 }
}

/// What was built.
pub(super) struct Built {
    pub(super) layout: Layout,
    pub(super) cuts: Owned,
    pub(super) rows: Owned,
    pub(super) keys: u64,
}

/// What is wanted.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) rate: f64,
    /// Filters with different seeds err independently.
    pub(super) seed: u64,
    pub(super) threads: NonZeroUsize,
}

/// Makes room for so many more, or tells that there is none.
pub(super) fn room<T>(vec: &mut Vec<T>, more: usize) -> Result<()> {
    let refused = |_| Error::alloc((more as u64).saturating_mul(size_of::<T>() as u64));
    vec.try_reserve_exact(more).map_err(refused)
}

/// A filter of hashes, which are overwritten. `spare` is as long.
pub(super) fn build(hashes: &mut [u64], spare: &mut [u64], wanted: &Wanted) -> Result<Built> {
    let (mut layout, mut share) = columns_for(wanted.rate, 0)?;
    let mut parts = Vec::new();
    let (mut keys, mut left) = (0, hashes.len());
    while left > 0 {
        let number = layout.layers().len() as u64;
        let seed = if number == 0 { wanted.seed } else { 0 };
        let few = left <= LAST || number + 1 == MOST_LAYERS;
        if few {
            hashes[..left].sort_unstable();
            left = drop_same(&mut hashes[..left]);
        } else {
            left = sort(&mut hashes[..left], &mut spare[..left], seed, wanted.threads)?;
        }
        let hashes = &mut hashes[..left];
        if number == 0 {
            keys = left as u64;
            (layout, share) = columns_for(wanted.rate, keys)?;
        }
        if !few && left <= LAST {
            // So many were the same that these are few.
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
    let (cuts, rows) = put_together(&layout, parts)?;
    Ok(Built { layout, cuts, rows, keys })
}

/// A layout without layers for this rate of so many keys, and the share of queries that compare
/// one column more. The hash's part of the rate is not for the columns to take.
fn columns_for(rate: f64, keys: u64) -> Result<(Layout, f64)> {
    let floor = rate::hash_floor(keys);
    let (columns, share) = rate::mixture((rate - floor) * aim(keys));
    if u64::from(columns) > MOST_COLUMNS {
        return Err(Error::unattainable(keys, rate, floor));
    }
    Ok((Layout::new(columns.into())?, share))
}

/// The layer for so many keys.
fn plan(keys: u64, seed: u64, share: f64) -> Numbers {
    let rows = keys as f64 / LOAD;
    let shards = (rows / SHARD as f64).ceil().max(1.0);
    let segments = (rows / shards / WIDTH as f64).round().max(2.0) as u64;
    let shards = shards as u64;
    Numbers { seed, shards, segments, wide: wide(shards * segments, share) }
}

/// Segments with one column more, so that this share of all keys has it: the two segments of an
/// equation must both be wide.
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

/// The last layer. `raw`, which differ, are those of the layer before.
fn last_layer(layout: &mut Layout, raw: &[u64], seed: u64, share: f64) -> Result<Part> {
    let mut keys = Vec::new();
    room(&mut keys, raw.len())?;
    let mut solver = Solver::default();
    let most = MOST_SEGMENTS * WIDTH / 2;
    for attempt in (0..TRIES).filter(|_| (raw.len() as u64) < most) {
        let seed = seed.wrapping_add(attempt << 32);
        keys.clear();
        keys.extend(raw.iter().map(|&hash| remix(hash, seed)));
        keys.sort_unstable();
        let rows = raw.len() as u64 * 9 / 8 + WIDTH;
        let segments = rows.div_ceil(WIDTH).max(2);
        let segments = (segments + attempt / 4 * segments.div_ceil(32)).min(MOST_SEGMENTS);
        let numbers = Numbers { seed, shards: 1, segments, wide: wide(segments, share) };
        let mut tried = layout.clone();
        let layer = tried.push(numbers, true)?;
        if solver.eliminate_all(&layer, &keys)? {
            let mut part = Part::new(&layer)?;
            let halves = layer.rows_of(segments) - layer.rows_at;
            let rows = &mut halves_of_mut(part.rows.lines_mut())[..halves as usize];
            solver.substitute(&layer, 0, rows);
            *layout = tried;
            return Ok(part);
        }
    }
    Err(Error::invalid("hashes", "hashes that look random", "hashes that fit no filter"))
}

/// The parts of all layers, one behind the other.
fn put_together(layout: &Layout, parts: Vec<Part>) -> Result<(Owned, Owned)> {
    let mut cuts = Owned::zeroed(layout.cut_lines())?;
    let mut rows = Owned::zeroed(layout.row_lines())?;
    let copy = |to: &mut [u32], from: &mut Owned, at: u64| {
        let to = &mut to[at as usize..];
        let from = halves_of_mut(from.lines_mut());
        // Behind the half words of a layer there are those that fill its last line.
        let length = from.len().min(to.len());
        to[..length].copy_from_slice(&from[..length]);
    };
    for (layer, mut part) in layout.layers().iter().zip(parts) {
        copy(halves_of_mut(cuts.lines_mut()), &mut part.cuts, layer.cuts_at);
        copy(halves_of_mut(rows.lines_mut()), &mut part.rows, layer.rows_at);
    }
    Ok((cuts, rows))
}

// ---- Sorting ------------------------------------------------------------------------------------

/// Makes the hashes those of a layer, sorts them and drops what is there twice; how many are
/// left, at the front.
///
/// Cost: reads and writes each hash four times, two of them out of cache.
fn sort(hashes: &mut [u64], spare: &mut [u64], seed: u64, threads: NonZeroUsize) -> Result<usize> {
    let groups = (hashes.len() / GROUP).clamp(1, MOST_GROUPS);
    let group_of = |g: u64| scale(g, groups as u64) as usize;
    let part = hashes.len().div_ceil(threads.get()).max(1);
    let counts = at_once(hashes.chunks_mut(part), |hashes| {
        let mut counts = vec![0; groups];
        for hash in hashes {
            *hash = remix(*hash, seed);
            counts[group_of(*hash)] += 1;
        }
        counts
    });
    // A group's place is divided among the threads.
    let lengths: Vec<usize> =
        (0..groups).map(|group| counts.iter().map(|counts| counts[group]).sum()).collect();
    let mut places: Vec<Vec<IterMut<'_, u64>>> = counts.iter().map(|_| Vec::new()).collect();
    let mut rest = &mut *spare;
    for group in 0..groups {
        for (counts, places) in counts.iter().zip(&mut places) {
            let (place, behind) = rest.split_at_mut(counts[group]);
            places.push(place.iter_mut());
            rest = behind;
        }
    }
    at_once(hashes.chunks(part).zip(places), |(hashes, mut places)| {
        for &g in hashes {
            if let Some(place) = places[group_of(g)].next() {
                *place = g;
            }
        }
    });
    let mut left = vec![0; groups];
    let (mut sources, mut targets) = (&*spare, &mut *hashes);
    let work = lengths.iter().zip(&mut left).map(|(&length, left)| {
        let source;
        (source, sources) = sources.split_at(length);
        let (target, behind) = std::mem::take(&mut targets).split_at_mut(length);
        targets = behind;
        (source, target, left)
    });
    share_out(work, threads, Vec::new, |counts, (source, target, left)| {
        sort_group(source, target, groups as u64, counts)?;
        *left = drop_same(target);
        Ok(())
    })?;
    Ok(close_up(hashes, lengths.into_iter().zip(left)))
}

/// Sorts a group from one place to another: by its next digits, so many that hardly any two are
/// the same, and then for good.
fn sort_group(
    source: &[u64],
    target: &mut [u64],
    groups: u64,
    counts: &mut Vec<u32>,
) -> Result<()> {
    let digits = source.len();
    if digits as u64 > u64::from(u32::MAX) {
        target.copy_from_slice(source);
        target.sort_unstable();
        return Ok(());
    }
    let digit = |g: u64| scale(g.wrapping_mul(groups), digits as u64) as usize;
    counts.clear();
    room(counts, digits)?;
    counts.resize(digits, 0);
    source.iter().for_each(|&g| counts[digit(g)] += 1);
    let mut sum = 0;
    for count in counts.iter_mut() {
        sum += *count;
        *count = sum;
    }
    for &g in source {
        let count = &mut counts[digit(g)];
        *count -= 1;
        target[*count as usize] = g;
    }
    // Now a count is where its digit begins.
    let mut begin = 0;
    for end in counts.iter().skip(1).map(|&end| end as usize).chain([digits]) {
        if end - begin > 1 {
            target[begin..end].sort_unstable();
        }
        begin = end;
    }
    Ok(())
}

/// Drops what is there twice; how many are left, at the front.
fn drop_same(sorted: &mut [u64]) -> usize {
    let mut left = 0;
    for at in 0..sorted.len() {
        if at == 0 || sorted[at] != sorted[left - 1] {
            sorted[left] = sorted[at];
            left += 1;
        }
    }
    left
}

/// Brings to the front what is left at the front of each run, of which length and what is left
/// are given; how many they are.
fn close_up(hashes: &mut [u64], runs: impl Iterator<Item = (usize, usize)>) -> usize {
    let (mut begin, mut to) = (0, 0);
    for (length, left) in runs {
        if begin != to {
            hashes.copy_within(begin..begin + left, to);
        }
        begin += length;
        to += left;
    }
    to
}

// ---- Solving ------------------------------------------------------------------------------------

/// Solves all shards of a layer. The keys it bumps come to the front; how many they are.
fn solve(
    layer: &Layer,
    mut part: Part,
    keys: &mut [u64],
    threads: NonZeroUsize,
) -> Result<(Part, usize)> {
    let shards = layer.shards as usize;
    // Length, and how many are bumped.
    let mut runs = Vec::new();
    room(&mut runs, shards)?;
    runs.resize(shards, (0, 0));
    let mut keys_left = &mut *keys;
    let mut rows_left = halves_of_mut(part.rows.lines_mut());
    let mut cuts_left = halves_of_mut(part.cuts.lines_mut());
    let work = (0..).zip(&mut runs).map(|(shard, run)| {
        // Nearly as long as the others: the end is near there.
        let end = keys_left.partition_point(|&g| layer.place(g).shard <= shard);
        let (first, behind) = (shard * layer.segments, (shard + 1) * layer.segments);
        let rows = layer.rows_of(behind) - layer.rows_of(first);
        let keys = cut_off(&mut keys_left, end);
        let rows = cut_off(&mut rows_left, rows as usize);
        let cuts = cut_off(&mut cuts_left, layer.cuts_each as usize);
        (shard, keys, rows, cuts, run)
    });
    share_out(work, threads, Solver::default, |solver, (shard, keys, rows, cuts, run)| {
        *run = (keys.len(), solver.eliminate(layer, keys, cuts)?);
        solver.substitute(layer, shard, rows);
        Ok(())
    })?;
    let bumped = close_up(keys, runs.into_iter());
    Ok((part, bumped))
}

/// The first so many; the others are left.
fn cut_off<'a, T>(left: &mut &'a mut [T], length: usize) -> &'a mut [T] {
    let (first, behind) = std::mem::take(left).split_at_mut(length);
    *left = behind;
    first
}

// ---- Threads ------------------------------------------------------------------------------------

/// Does pieces of work, each by the thread that is free, which has tools of its own.
fn share_out<W: Send, T>(
    work: impl Iterator<Item = W> + Send,
    threads: NonZeroUsize,
    tools: impl Fn() -> T + Sync,
    act: impl Fn(&mut T, W) -> Result<()> + Sync,
) -> Result<()> {
    let work = Mutex::new(work);
    // Not held while the work is done.
    let next = || work.lock().ok()?.next();
    let results = at_once(0..threads.get(), |_| {
        let mut tools = tools();
        while let Some(work) = next() {
            act(&mut tools, work)?;
        }
        Ok(())
    });
    results.into_iter().collect()
}

/// Does pieces of work at the same time, each on a thread of its own; a single one on this.
pub(super) fn at_once<W: Send, R: Send>(
    work: impl ExactSizeIterator<Item = W>,
    act: impl Fn(W) -> R + Sync,
) -> Vec<R> {
    let act = &act;
    if work.len() < 2 {
        return work.map(act).collect();
    }
    thread::scope(|scope| {
        let threads: Vec<_> = work.map(|work| scope.spawn(move || act(work))).collect();
        let results = threads.into_iter().map(thread::ScopedJoinHandle::join);
        results.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
