//! The blocked layout with AVX-512: a line, eight lanes, is one vector; and so are eight hashes.
//!
//! Places, products and lanes of eight hashes are computed together. Then, per line of a key: a
//! shift brings each lane's field to the bottom, a one is rotated by it (which takes it modulo 64
//! for free), and a test says which lanes miss their bit. An insertion stores the line with the
//! bits. The lanes that a key leaves alone are masked out; where a key marks all lanes (`ALL`)
//! there is no mask.
//!
//! What a key misses is one byte, zero if nothing; eight such bytes become eight answers at once.
//! A key is so few instructions that a processor, which works on hundreds of them at a time, sees
//! far enough ahead by itself as long as lines come from a cache: only those of a filter of
//! [`ASKED_FOR_FROM`] lines or more are asked for.
//!
//! Bits and answers are those of [`Rule`]; the tests of this room hold it to that.
//!
//! [`inline`] has single keys, [`counting`] counters, [`ribbon`] ribbons, [`ring`] generations side
//! by side, [`shared`] the lines that other threads change meanwhile.

pub(super) mod counting;
pub(super) mod inline;
pub(super) mod ribbon;
pub(super) mod ring;
pub(super) mod shared;

use std::arch::x86_64::*;
use std::ops::Deref;
use std::slice::{from_raw_parts, from_raw_parts_mut};

use super::batch::{GROUP, Hashes, batch};
use super::blocked::{Blocks, MIX_HIGH, MIX_LOW, Rule};
use super::scale;
use crate::store::Line;

/// Below so many lines (8 MiB), asking for them costs more than it brings.
const ASKED_FOR_FROM: usize = (8 << 20) / Line::BYTES;

/// As [`Blocks::insert_batch`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(super) fn insert_batch<const LANES: usize>(
    blocks: Blocks<LANES, &mut [Line]>,
    hashes: impl Hashes,
    new: &mut [u64],
) {
    if blocks.rule.probes as usize == LANES {
        insert_groups::<LANES, true, _>(blocks, hashes, new);
    } else {
        insert_groups::<LANES, false, _>(blocks, hashes, new);
    }
}

/// As [`Blocks::contains_batch`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(super) fn contains_batch<const LANES: usize>(
    blocks: Blocks<LANES, &[Line]>,
    hashes: impl Hashes,
    found: &mut [u64],
) {
    let load = |line: &Line| load_words(&line.0);
    if blocks.rule.probes as usize == LANES {
        contains_groups::<LANES, true, _, _>(blocks, hashes, found, ASKED_FOR_FROM, load);
    } else {
        contains_groups::<LANES, false, _, _>(blocks, hashes, found, ASKED_FOR_FROM, load);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn insert_groups<const LANES: usize, const ALL: bool, H: Hashes>(
    blocks: Blocks<LANES, &mut [Line]>,
    hashes: H,
    new: &mut [u64],
) {
    let look = |blocks: &mut Blocks<LANES, &mut [Line]>, group: &Group, missed: &mut Missed| {
        for (key, missed) in missed.iter_mut().enumerate() {
            let first = blocks.lines.as_mut_ptr().wrapping_byte_add(group.at[key] as usize);
            // SAFETY: `prepare` has seen that all lines of the block are there.
            let block = unsafe { from_raw_parts_mut(first, Rule::<LANES>::LINES) };
            *missed = set::<LANES, ALL>(block, &group.marks(key));
        }
    };
    let prepare = |blocks: &Blocks<_, _>, hashes: &_, group: &mut _| {
        prepare(blocks, hashes, group, ASKED_FOR_FROM);
    };
    batch(blocks, hashes, new, prepare, look, |missed| !nothing(missed));
}

/// Looks for hashes among lines of either kind, which `load` loads.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn contains_groups<const LANES: usize, const ALL: bool, L, H: Hashes>(
    blocks: Blocks<LANES, &[L]>,
    hashes: H,
    found: &mut [u64],
    asked_for_from: usize,
    load: impl Fn(&L) -> __m512i,
) {
    let prepare = |blocks: &Blocks<_, _>, hashes: &_, group: &mut _| {
        prepare(blocks, hashes, group, asked_for_from);
    };
    let look = |blocks: &mut Blocks<LANES, &[L]>, group: &Group, missed: &mut Missed| {
        // SAFETY: the group was prepared for these lines.
        unsafe { look_for::<LANES, ALL, L>(blocks.lines, group, missed, &load) };
    };
    batch(blocks, hashes, found, prepare, look, |missed| nothing(missed));
}

/// Looks for the keys of a group.
///
/// # Safety
/// [`prepare`] has placed the group among these lines.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn look_for<const LANES: usize, const ALL: bool, L>(
    lines: &[L],
    group: &Group,
    missed: &mut Missed,
    load: impl Fn(&L) -> __m512i,
) {
    for (key, missed) in missed.iter_mut().enumerate() {
        let first = lines.as_ptr().wrapping_byte_add(group.at[key] as usize);
        // SAFETY: the caller answers for it that all lines of the block are there.
        let block = unsafe { from_raw_parts(first, Rule::<LANES>::LINES) };
        *missed = miss::<LANES, ALL, L>(block, &group.marks(key), &load);
    }
}

/// For each key of a group, a bit for each lane in which it missed its bit (for both its lines).
type Missed = [u8; GROUP];

/// Eight keys on their way, each by its place in the row.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Group {
    /// Where its block begins, in bytes.
    at: [u64; GROUP],
    /// The fields of its lanes, those of the second line in `high`.
    low: [u64; GROUP],
    high: [u64; GROUP],
    /// A bit for each lane that it marks.
    masks: [u64; GROUP],
}

impl Group {
    #[inline(always)]
    fn marks<const LANES: usize>(&self, key: usize) -> Marks<LANES> {
        Marks { low: self.low[key], high: self.high[key], mask: self.masks[key] as u16 }
    }
}

/// Computes eight keys' marks and places, and asks for their lines if there are so many lines.
///
/// # Panics
/// If a block is not among the lines.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn prepare<const LANES: usize, L, D: Deref<Target = [L]>>(
    blocks: &Blocks<LANES, D>,
    hashes: &[u64; GROUP],
    group: &mut Group,
    asked_for_from: usize,
) {
    let Rule { blocks: range, probes } = blocks.rule;
    let keys = load_words(hashes);
    let low = _mm512_mullo_epi64(keys, splat(MIX_LOW));
    group.low = words(low);
    if LANES == 16 {
        group.high = words(_mm512_mullo_epi64(keys, splat(MIX_HIGH)));
    }
    if probes as usize != LANES {
        let starts = _mm512_and_si512(_mm512_srli_epi64::<12>(low), splat(LANES as u64 - 1));
        let down = _mm512_sub_epi64(splat(LANES as u64), starts);
        group.masks = words(_mm512_srlv_epi64(splat(twice::<LANES>(probes).into()), down));
    }
    let block = if range >> 32 == 0 {
        scale_short(keys, splat(range))
    } else {
        load_words(&hashes.map(|hash| scale(hash, range)))
    };
    let block = _mm512_sub_epi64(block, splat(blocks.first));
    let there = blocks.lines.len() / Rule::<LANES>::LINES;
    assert!(_mm512_cmplt_epu64_mask(block, splat(there as u64)) == !0, "a block that is not here");
    let bytes =
        if LANES == 16 { _mm512_slli_epi64::<7>(block) } else { _mm512_slli_epi64::<6>(block) };
    group.at = words(bytes);
    // Of the whole filter: a run of its blocks is as far away as the rest.
    if range as usize * Rule::<LANES>::LINES >= asked_for_from {
        group.at.iter().for_each(|&at| blocks.prefetch(at as usize / Line::BYTES));
    }
}

/// [`scale`] of eight hashes for a range below 2^32: two products of 32 bits and their carry.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn scale_short(hashes: __m512i, range: __m512i) -> __m512i {
    let low = _mm512_mul_epu32(hashes, range);
    let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hashes), range);
    _mm512_srli_epi64::<32>(_mm512_add_epi64(high, _mm512_srli_epi64::<32>(low)))
}

/// A bit for each lane that is marked, from start 0, twice over and in one row: shifted down by
/// L-r they are those of start r.
#[inline(always)]
fn twice<const LANES: usize>(probes: u32) -> u32 {
    let window = (1 << probes) - 1;
    window << LANES | window
}

/// The lanes and fields of one key.
struct Marks<const LANES: usize> {
    low: u64,
    high: u64,
    mask: u16,
}

impl<const LANES: usize> Marks<LANES> {
    #[inline(always)]
    fn fields(&self, line: usize) -> u64 {
        if line == 0 { self.low } else { self.high }
    }

    #[inline(always)]
    fn mask(&self, line: usize) -> u8 {
        (self.mask >> (8 * line)) as u8
    }

    /// The bits of a line's lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    fn bits<const ALL: bool>(&self, line: usize) -> __m512i {
        let shifts = _mm512_setr_epi64(16, 22, 28, 34, 40, 46, 52, 58);
        let fields = _mm512_srlv_epi64(splat(self.fields(line)), shifts);
        if ALL {
            _mm512_rolv_epi64(splat(1), fields)
        } else {
            _mm512_maskz_rolv_epi64(self.mask(line), splat(1), fields)
        }
    }
}

/// Which lanes of a block miss their bit, those of both its lines together.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn miss<const LANES: usize, const ALL: bool, L>(
    block: &[L],
    marks: &Marks<LANES>,
    load: impl Fn(&L) -> __m512i,
) -> u8 {
    let mut missed = 0;
    for (at, line) in block.iter().enumerate().take(Rule::<LANES>::LINES) {
        let (mask, bits) = (marks.mask(at), marks.bits::<ALL>(at));
        let words = load(line);
        missed |= if ALL {
            _mm512_testn_epi64_mask(words, bits)
        } else {
            _mm512_mask_testn_epi64_mask(mask, words, bits)
        };
    }
    missed
}

/// Sets the bits in a block; which lanes missed theirs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn set<const LANES: usize, const ALL: bool>(block: &mut [Line], marks: &Marks<LANES>) -> u8 {
    let missed = miss::<LANES, ALL, _>(block, marks, |line| load_words(&line.0));
    for (at, line) in block.iter_mut().enumerate() {
        line.0 = words(_mm512_or_si512(load_words(&line.0), marks.bits::<ALL>(at)));
    }
    missed
}

/// Which of 64 keys missed nothing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn nothing(missed: &[Missed; 8]) -> u64 {
    // SAFETY: 64 bytes, and the load needs no alignment.
    let missed = unsafe { _mm512_loadu_si512(missed.as_ptr().cast()) };
    _mm512_testn_epi8_mask(missed, missed)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn splat(word: u64) -> __m512i {
    _mm512_set1_epi64(word as i64)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn load_words(words: &[u64; 8]) -> __m512i {
    // SAFETY: 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn words(vector: __m512i) -> [u64; 8] {
    // SAFETY: both are 64 bytes of any bits.
    unsafe { std::mem::transmute(vector) }
}
