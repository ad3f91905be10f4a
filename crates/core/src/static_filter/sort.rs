//! Sorting hashes and dividing work, for the builders of both layouts.
//!
//! Hashes are sorted into groups, then each group within a core's cache. Duplicates, now neighbours,
//! are dropped.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;
use core::slice::IterMut;

use super::keys::{HashedKey, reserve};
use crate::error::Result;
use crate::kernel::scale;
use crate::threads::{run_each, useful_threads};

/// The number of hashes of a group that is sorted at once, and the largest number of groups.
const GROUP: usize = 1 << 14;
const MAX_GROUPS: usize = 2048;

/// Replaces the hashes by others, sorts them and drops duplicates; returns how many are left, at the
/// front.
///
/// Cost: reads and writes each hash four times, two of them out of cache.
pub(super) fn sort<K: HashedKey>(
    hashes: &mut [K],
    spare: &mut [K],
    mix: impl Fn(u64) -> u64 + Sync,
    threads: NonZeroUsize,
) -> Result<usize> {
    let groups = (hashes.len() / GROUP).clamp(1, MAX_GROUPS);
    let lengths = partition(hashes, spare, groups, mix, threads);
    sort_groups(spare, hashes, &lengths, threads)
}

/// Mixes hashes and writes them to `spare`, which has the same length, in groups of neighbouring hashes;
/// returns the lengths of the groups. Within a group they are in no order.
pub(super) fn partition<K: HashedKey>(
    hashes: &[K],
    spare: &mut [K],
    groups: usize,
    mix: impl Fn(u64) -> u64 + Sync,
    threads: NonZeroUsize,
) -> Vec<usize> {
    let group_of = |g: u64| scale(g, groups as u64) as usize;
    let part = hashes.len().div_ceil(threads.get()).max(1);
    let counts = run_each(hashes.chunks(part), |hashes| {
        let mut counts = vec![0; groups];
        hashes.iter().for_each(|&hash| counts[group_of(mix(hash.hash()))] += 1);
        counts
    });
    // The space of a group is divided among the threads.
    let mut places: Vec<Vec<IterMut<'_, K>>> = counts.iter().map(|_| Vec::new()).collect();
    let mut rest = &mut *spare;
    for group in 0..groups {
        for (counts, places) in counts.iter().zip(&mut places) {
            places.push(cut_off(&mut rest, counts[group]).iter_mut());
        }
    }
    run_each(hashes.chunks(part).zip(places), |(hashes, mut places)| {
        for &hash in hashes {
            let g = mix(hash.hash());
            if let Some(place) = places[group_of(g)].next() {
                *place = hash.with_hash(g);
            }
        }
    });
    (0..groups).map(|group| counts.iter().map(|counts| counts[group]).sum()).collect()
}

/// Sorts the groups of [`partition`] from `source` to `target`, which has the same length, and drops
/// duplicates; returns how many are left, at the front.
pub(super) fn sort_groups<K: HashedKey>(
    mut source: &[K],
    target: &mut [K],
    lengths: &[usize],
    threads: NonZeroUsize,
) -> Result<usize> {
    let mut left = vec![0; lengths.len()];
    let mut rest = &mut *target;
    let work = lengths.iter().zip(&mut left).map(|(&length, left)| {
        let group;
        (group, source) = source.split_at(length);
        (group, cut_off(&mut rest, length), left)
    });
    share_work(work, threads, Vec::new, |counts, (source, target, left)| {
        sort_group(source, target, lengths.len() as u64, counts)?;
        *left = drop_duplicates(target);
        Ok(())
    })?;
    Ok(compact(target, lengths.iter().copied().zip(left)))
}

/// Sorts a group from `source` to `target`: by its next digits, enough that few are equal, then
/// completely.
fn sort_group<K: HashedKey>(
    source: &[K],
    target: &mut [K],
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
    reserve(counts, digits)?;
    counts.resize(digits, 0);
    source.iter().for_each(|&g| counts[digit(g.hash())] += 1);
    let mut sum = 0;
    for count in counts.iter_mut() {
        sum += *count;
        *count = sum;
    }
    for &g in source {
        let count = &mut counts[digit(g.hash())];
        *count -= 1;
        target[*count as usize] = g;
    }
    // Each count is now the start of its digit.
    let mut start = 0;
    for end in counts.iter().skip(1).map(|&end| end as usize).chain([digits]) {
        if end - start > 1 {
            target[start..end].sort_unstable();
        }
        start = end;
    }
    Ok(())
}

/// Drops duplicates; returns how many are left, at the front.
pub(super) fn drop_duplicates<K: HashedKey>(sorted: &mut [K]) -> usize {
    let mut left = 0;
    for at in 0..sorted.len() {
        if at == 0 || sorted[at] != sorted[left - 1] {
            sorted[left] = sorted[at];
            left += 1;
        }
    }
    left
}

/// Moves the remaining elements of all runs to the front and returns their number. Each run is given
/// by its length and the number of elements that remain at its front.
pub(super) fn compact<K: HashedKey>(
    hashes: &mut [K],
    runs: impl Iterator<Item = (usize, usize)>,
) -> usize {
    let (mut start, mut to) = (0, 0);
    for (length, left) in runs {
        if start != to {
            hashes.copy_within(start..start + left, to);
        }
        start += length;
        to += left;
    }
    to
}

/// Splits off the first `length` elements.
pub(super) fn cut_off<'a, T>(left: &mut &'a mut [T], length: usize) -> &'a mut [T] {
    let (first, behind) = core::mem::take(left).split_at_mut(length);
    *left = behind;
    first
}

/// Runs pieces of work on `threads` threads; each thread takes the next piece when it is free, and
/// has its own scratch memory.
#[cfg(feature = "std")]
pub(super) fn share_work<W: Send, T>(
    work: impl Iterator<Item = W> + Send,
    threads: NonZeroUsize,
    scratch: impl Fn() -> T + Sync,
    act: impl Fn(&mut T, W) -> Result<()> + Sync,
) -> Result<()> {
    let threads = useful_threads(threads, work.size_hint().1.unwrap_or(usize::MAX));
    let work = std::sync::Mutex::new(work);
    // The lock is not held during the work.
    let next = || work.lock().ok()?.next();
    let results = run_each(0..threads.get(), |_| {
        let mut scratch = scratch();
        while let Some(work) = next() {
            act(&mut scratch, work)?;
        }
        Ok(())
    });
    results.into_iter().collect()
}

#[cfg(not(feature = "std"))]
pub(super) fn share_work<W, T>(
    mut work: impl Iterator<Item = W>,
    _threads: NonZeroUsize,
    scratch: impl Fn() -> T,
    act: impl Fn(&mut T, W) -> Result<()>,
) -> Result<()> {
    let mut scratch = scratch();
    work.try_for_each(|work| act(&mut scratch, work))
}
