//! The loop of all batches: prefetches cache lines early and accesses them later.
//!
//! Hashes are processed in groups of [`GROUP`]. A group is *prepared*: its positions are computed
//! and their cache lines prefetched. [`AHEAD`] groups later it is *processed*. Many cache misses
//! overlap at any time, which makes filters larger than the cache fast.

use crate::store::CacheLine;

/// Minimum number of cache lines (8 MiB) of a filter for which prefetching pays.
pub(super) const PREFETCH_FROM: usize = (8 << 20) / CacheLine::BYTES;
/// The same (512 KiB) for kernels with more instructions per key, which have fewer keys in flight.
pub(super) const PREFETCH_EARLY_FROM: usize = (512 << 10) / CacheLine::BYTES;
/// Hashes that are prepared together: the number in the widest vector.
pub(super) const GROUP: usize = 8;
/// Groups between preparation and processing: enough to fill a core's line-fill buffers.
const AHEAD: usize = 4;

/// The source of the hashes of a batch.
pub trait HashSource: Copy {
    /// Returns one word per hash.
    fn words(&self) -> &[u64];

    /// Computes the hashes of a group of these words.
    fn hash_group(&self, words: &[u64; GROUP], hashes: &mut [u64; GROUP]);
}

/// The words are hashes.
impl HashSource for &[u64] {
    #[inline(always)]
    fn words(&self) -> &[u64] {
        self
    }

    #[inline(always)]
    fn hash_group(&self, words: &[u64; GROUP], hashes: &mut [u64; GROUP]) {
        *hashes = *words;
    }
}

/// Keys of one word each, which are hashed while earlier groups are processed.
#[derive(Clone, Copy)]
pub(crate) struct UnhashedKeys<'a, F> {
    pub(crate) words: &'a [u64],
    pub(crate) hash: F,
}

impl<F: Fn(u64) -> u64 + Copy> HashSource for UnhashedKeys<'_, F> {
    #[inline(always)]
    fn words(&self) -> &[u64] {
        self.words
    }

    #[inline(always)]
    fn hash_group(&self, words: &[u64; GROUP], hashes: &mut [u64; GROUP]) {
        for (&word, hash) in words.iter().zip(hashes) {
            // SAFETY: a borrowed word. Volatile, because compilers vectorise the eight hashes, which
            // are products of 128 bits; that is slower than scalar code.
            unsafe { core::ptr::write_volatile(hash, (self.hash)(word)) };
        }
    }
}

/// Returns all hashes in turn.
#[inline(always)]
pub(super) fn one_by_one(hashes: impl HashSource) -> impl Iterator<Item = u64> {
    let mut made = [0; GROUP];
    (0..hashes.words().len()).map(move |at| {
        if at % GROUP == 0 {
            let words = &hashes.words()[at..];
            let group = words.first_chunk().copied();
            let padded = || core::array::from_fn(|at| *words.get(at).unwrap_or(&0));
            hashes.hash_group(&group.unwrap_or_else(padded), &mut made);
        }
        made[at % GROUP]
    })
}

/// Processes all hashes in turn, without results. `prefetch` is called a group earlier.
#[inline(always)]
pub(super) fn for_each_hash(
    hashes: impl HashSource,
    mut prefetch: impl FnMut(u64),
    mut process: impl FnMut(u64),
) {
    let (whole, rest) = hashes.words().as_chunks::<GROUP>();
    let (mut hashed, mut next) = ([0; GROUP], [0; GROUP]);
    if let Some((first, whole)) = whole.split_first() {
        hashes.hash_group(first, &mut hashed);
        for group in whole {
            hashes.hash_group(group, &mut next);
            next.iter().for_each(|&hash| prefetch(hash));
            hashed.iter().for_each(|&hash| process(hash));
            hashed = next;
        }
        hashed.iter().for_each(|&hash| process(hash));
    }
    let group = core::array::from_fn(|at| *rest.get(at).unwrap_or(&0));
    hashes.hash_group(&group, &mut hashed);
    hashed.iter().take(rest.len()).for_each(|&hash| process(hash));
}

/// Processes hashes in turn, in groups and without prefetching, and writes one result bit per hash to
/// `results`, 64 per word. For filters that fit a cache: out-of-order execution hides its latency.
///
/// `process` has one result bit for each hash of a group.
#[inline(always)]
pub(super) fn in_groups(
    hashes: impl HashSource,
    results: &mut [u64],
    mut process: impl FnMut(&[u64; GROUP]) -> u8,
) {
    in_groups_with(hashes, results, |group, outcome| *outcome = process(group), join);
}

/// [`in_groups`] with an outcome `O` for each group; `combine` converts the outcomes of eight groups
/// to a word of results.
///
/// The last group is padded with its last hash; to process a key twice has no effect.
///
/// Always inlined, so that it is compiled for the instructions of the caller.
#[inline(always)]
pub(super) fn in_groups_with<O: Default>(
    hashes: impl HashSource,
    results: &mut [u64],
    mut process: impl FnMut(&[u64; GROUP], &mut O),
    combine: impl Fn(&[O; 8]) -> u64,
) {
    let words = hashes.words();
    assert!(results.len() == words.len().div_ceil(64), "one word for 64 results");
    let mut hashed = [0; GROUP];
    let mut outcomes: [O; 8] = Default::default();
    for (result, words) in results.iter_mut().zip(words.chunks(64)) {
        let (whole, rest) = words.as_chunks::<GROUP>();
        for (outcome, group) in outcomes.iter_mut().zip(whole) {
            hashes.hash_group(group, &mut hashed);
            process(&hashed, outcome);
        }
        if let (Some(&last), Some(outcome)) = (rest.last(), outcomes.get_mut(whole.len())) {
            let group = core::array::from_fn(|at| *rest.get(at).unwrap_or(&last));
            hashes.hash_group(&group, &mut hashed);
            process(&hashed, outcome);
        }
        *result = combine(&outcomes) & (!0 >> (64 - words.len()));
    }
}

/// Processes hashes in turn and writes one result bit per hash to `results`, 64 per word.
///
/// `prepare` fills the state `G` of a group, `process` accesses the cache lines and returns an
/// outcome `O` for the group, and `combine` converts the outcomes of eight groups to a word of
/// results. The last group is padded with its last hash; to process a key twice has no effect.
///
/// Always inlined, so that it is compiled for the instructions of the caller.
#[inline(always)]
pub(super) fn batch<L, G: Default, O: Default>(
    mut lines: L,
    hashes: impl HashSource,
    results: &mut [u64],
    prepare: impl Fn(&L, &[u64; GROUP], &mut G),
    process: impl Fn(&mut L, &G, &mut O),
    combine: impl Fn(&[O; 8]) -> u64,
) {
    let words = hashes.words();
    assert!(results.len() == words.len().div_ceil(64), "one word for 64 results");
    let (whole, rest) = words.as_chunks::<GROUP>();
    let last = rest.last().map(|&last| core::array::from_fn(|at| *rest.get(at).unwrap_or(&last)));
    let mut ahead = whole.iter().chain(&last);
    // Hashes are computed some groups before they are prepared: reading a vector is slow as long as
    // the stores of its words are in flight.
    let mut hashed: [[u64; GROUP]; AHEAD] = Default::default();
    let mut prepared: [G; AHEAD] = Default::default();
    for (place, group) in prepared.iter_mut().zip(ahead.by_ref()) {
        hashes.hash_group(group, &mut hashed[0]);
        prepare(&lines, &hashed[0], place);
    }
    for (hashed, group) in hashed.iter_mut().zip(ahead.by_ref()) {
        hashes.hash_group(group, hashed);
    }
    let groups = words.len().div_ceil(GROUP);
    let mut outcomes: [O; 8] = Default::default();
    for (result, first) in results.iter_mut().zip((0..groups).step_by(8)) {
        for (at, outcome) in outcomes.iter_mut().enumerate().take(groups - first) {
            let (place, hashed) = (&mut prepared[at % AHEAD], &mut hashed[at % AHEAD]);
            process(&mut lines, place, outcome);
            if first + at + AHEAD < groups {
                prepare(&lines, hashed, place);
                if let Some(group) = ahead.next() {
                    hashes.hash_group(group, hashed);
                }
            }
        }
        *result = combine(&outcomes);
    }
    let remainder = words.len() % 64;
    if let (Some(result), 1..) = (results.last_mut(), remainder) {
        *result &= !(!0 << remainder);
    }
}

/// A prepared group of the kernels that process one hash at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct PreparedGroup {
    /// The first cache line of the block of each hash.
    pub(super) first_lines: [usize; GROUP],
    pub(super) hashes: [u64; GROUP],
}

/// Calls `test` for each key of a group and returns the results as bits.
#[inline(always)]
pub(super) fn test_each<T>(
    keys: impl IntoIterator<Item = T>,
    mut test: impl FnMut(T) -> bool,
) -> u8 {
    // Shifted in from the top: with `1 << at` the compiler emits a branch on the result, which is
    // unpredictable if present and absent keys are mixed.
    keys.into_iter().fold(0, |results, key| results >> 1 | u8::from(test(key)) << 7)
}

/// Combines the results of eight groups.
#[inline(always)]
pub(super) fn join(results: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*results)
}
