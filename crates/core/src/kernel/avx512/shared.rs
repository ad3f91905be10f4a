//! Lines that other threads change meanwhile, with AVX-512.
//!
//! To Rust a vector load of such a line is a data race. So lines are loaded and stored in assembly,
//! into which the compiler does not look: to it, and to the rules of the language, a load is eight
//! relaxed loads of the line's words, and a store eight relaxed stores. What is done with the
//! words is the code of all lines.
//!
//! # What the processor promises, and what is relied on
//!
//! Intel's and AMD's manuals promise that aligned 8 bytes, and with AVX aligned 16 bytes, are
//! loaded and stored as one. Of 64 bytes they promise nothing; that each aligned 8 of them are one
//! is what all known processors do. It is *not* relied on. A key has at most one bit in a word,
//! so a look takes one bit from each word, and a bit is not torn: the answer is that of a whole load
//! of the word at the moment in which the bit was read. Nor does a store that comes in pieces show:
//! it is made by the one who holds the block's stripe, puts back the words as they were but for
//! one bit in some, and nobody else stores to any of them, so no bit of another is undone. What
//! is relied on is what holds for accesses of any width: memory is coherent, and loads among
//! loads and stores among stores keep their order, so that giving the stripe back comes last.

use std::arch::asm;
use std::arch::x86_64::*;

use super::super::blocked::Blocks;
use super::super::shared::SharedBlocks;
use super::{
    ASKED_FOR_FROM, GROUP, Group, Hashes, Line, Marks, Missed, batch, contains_groups, inline,
};
use super::{look_for, miss, nothing, prepare};
use crate::store::AtomicLine;

/// As [`SharedBlocks::contains`].
///
/// # Safety
/// The machine has the instructions of this kernel.
#[inline(always)]
pub(in super::super) unsafe fn contains<const LANES: usize>(
    blocks: &SharedBlocks<LANES>,
    hash: u64,
) -> bool {
    let block = blocks.block(blocks.rule.at(hash));
    // SAFETY: the caller answers for the instructions; the lines are there, and looking at them is
    // loading their words.
    unsafe { inline::contains::<LANES>(blocks.rule.probes, here(block), 0, hash) }
}

/// As [`SharedBlocks::insert`].
///
/// # Safety
/// The machine has the instructions of this kernel.
#[inline(always)]
pub(in super::super) unsafe fn insert<const LANES: usize>(
    blocks: &SharedBlocks<LANES>,
    hash: u64,
) -> bool {
    // SAFETY: the caller answers for it.
    if unsafe { contains(blocks, hash) } {
        return false;
    }
    let at = blocks.rule.at(hash);
    let block = blocks.block(at);
    // SAFETY: as above; nobody else stores to the block while its stripe is held.
    let set = || unsafe { inline::insert::<LANES>(blocks.rule.probes, here(block), 0, hash) };
    blocks.with_stripe(at, set)
}

/// As [`SharedBlocks::contains_batch`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) fn contains_batch<const LANES: usize>(
    blocks: &SharedBlocks<LANES>,
    hashes: impl Hashes,
    found: &mut [u64],
) {
    let load = |line: &AtomicLine| load(line);
    let lines = Blocks::new(blocks.rule, blocks.lines, 0);
    // Nothing is locked: as with lines of one owner, small filters need no asking.
    if blocks.rule.probes as usize == LANES {
        contains_groups::<LANES, true, _, _>(lines, hashes, found, ASKED_FOR_FROM, load);
    } else {
        contains_groups::<LANES, false, _, _>(lines, hashes, found, ASKED_FOR_FROM, load);
    }
}

/// As [`SharedBlocks::insert_batch`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) fn insert_batch<const LANES: usize>(
    blocks: &SharedBlocks<LANES>,
    hashes: impl Hashes,
    new: &mut [u64],
) {
    if blocks.rule.probes as usize == LANES {
        insert_groups::<LANES, true, _>(blocks, hashes, new);
    } else {
        insert_groups::<LANES, false, _>(blocks, hashes, new);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn insert_groups<const LANES: usize, const ALL: bool, H: Hashes>(
    blocks: &SharedBlocks<LANES>,
    hashes: H,
    new: &mut [u64],
) {
    type Lines<'a, const LANES: usize> = Blocks<LANES, &'a [AtomicLine]>;
    let prepare = |lines: &Lines<LANES>, hashes: &_, group: &mut _| {
        // Always asked for: a locked instruction keeps the processor from seeing far ahead.
        prepare(lines, hashes, group, 0);
    };
    let look = |lines: &mut Lines<LANES>, group: &Group, missed: &mut Missed| {
        // SAFETY: the group was prepared for these lines.
        unsafe { look_for::<LANES, ALL, _>(lines.lines, group, missed, |line| load(line)) };
        if *missed == [0; GROUP] {
            return;
        }
        // Another core may have what is written to, and gives it away while the keys before wait.
        // Only now: who mostly meets known keys leaves lines and stripes to others.
        for (key, _) in missed.iter().enumerate().filter(|(_, missed)| **missed != 0) {
            let at = group.at[key] as usize / Line::BYTES;
            blocks.block(at).iter().for_each(own);
            own(blocks.stripe(at));
        }
        for (key, missed) in missed.iter_mut().enumerate().filter(|(_, missed)| **missed != 0) {
            let at = group.at[key] as usize / Line::BYTES;
            let (block, marks) = (blocks.block(at), group.marks(key));
            // One of these before may have set what was missed.
            *missed = blocks.with_stripe(at, || set::<LANES, ALL>(block, &marks)).into();
        }
    };
    let lines = Blocks::new(blocks.rule, blocks.lines, 0);
    batch(lines, hashes, new, prepare, look, |missed| !nothing(missed));
}

/// Sets the bits in a block, the stripe of which is held; whether any was clear.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn set<const LANES: usize, const ALL: bool>(block: &[AtomicLine], marks: &Marks<LANES>) -> bool {
    let missed = miss::<LANES, ALL, _>(block, marks, |line| load(line));
    for (at, line) in block.iter().enumerate() {
        store(line, _mm512_or_si512(load(line), marks.bits::<ALL>(at)));
    }
    missed != 0
}

/// The block as assembly knows it.
#[inline(always)]
fn here(block: &[AtomicLine]) -> *mut Line {
    block.as_ptr().cast_mut().cast()
}

/// Asks for what will be written to soon.
#[inline(always)]
fn own<T>(here: &T) {
    // SAFETY: a hint; it changes nothing.
    unsafe {
        asm!("prefetchw [{here}]", here = in(reg) here, options(readonly, nostack, preserves_flags));
    }
}

/// The words of a line, each by a relaxed load.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn load(line: &AtomicLine) -> __m512i {
    let words: __m512i;
    // SAFETY: reads a line that is there, and aligned. Not `pure`, for others change it.
    unsafe {
        asm!(
            "vmovdqa64 {words}, zmmword ptr [{line}]",
            line = in(reg) line,
            words = out(zmm_reg) words,
            options(readonly, nostack, preserves_flags),
        );
    }
    words
}

/// Puts words into a line, each by a relaxed store; for whoever holds the stripe.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn store(line: &AtomicLine, words: __m512i) {
    // SAFETY: writes to a line that is there, aligned, and whose words may be written to through
    // a shared borrow.
    unsafe {
        asm!(
            "vmovdqa64 zmmword ptr [{line}], {words}",
            line = in(reg) line,
            words = in(zmm_reg) words,
            options(nostack, preserves_flags),
        );
    }
}
