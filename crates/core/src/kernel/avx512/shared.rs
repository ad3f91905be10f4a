//! Cache lines that other threads modify, with AVX-512.
//!
//! In Rust a vector load of such a line is a data race. Lines are therefore loaded and stored in
//! inline assembly, which is opaque to the compiler: a load counts as eight relaxed loads of the
//! line's words, and a store as eight relaxed stores. The operations on the words are the same as
//! for plain lines.
//!
//! # Guarantees of the processor
//!
//! Intel's and AMD's manuals guarantee that accesses of aligned 8 bytes, and with AVX of aligned 16
//! bytes, are atomic. They guarantee nothing for 64 bytes, although all known processors access
//! each aligned 8 of them atomically. This code does *not* need that. A key has at most one bit in a
//! word, so a query reads one bit from each word, and a bit cannot be torn: the result is that of
//! an atomic load of the word at the time when the bit was read. A torn store is not visible
//! either: only the holder of the block's stripe stores, and it changes at most one bit in a word,
//! so it undoes no bit of another thread. The code relies only on guarantees for accesses of any
//! width: memory is coherent, and loads and stores each keep their order, so the stripe is unlocked
//! last.

use core::arch::asm;
use core::arch::x86_64::*;

use super::{
    Avx512, CacheLine, ClearLanes, GROUP, Group, HashSource, PREFETCH_FROM, VectorProbes, batch,
    contains_groups, inline,
};
use super::{all_set, clear_lanes, prepare, test_group};
use crate::kernel::blocked::{BlockRange, by_lanes};
use crate::kernel::dispatch::Shared;
use crate::kernel::shared::SharedBlocks;
use crate::store::AtomicCacheLine;

impl Shared for Avx512 {
    #[inline(always)]
    unsafe fn shared_contains<const LANES: usize>(
        blocks: SharedBlocks<'_, LANES>,
        hash: u64,
    ) -> bool {
        let block = blocks.block(blocks.params.first_line(hash));
        // SAFETY: the caller guarantees the instructions; the lines exist, and are only read.
        unsafe {
            by_lanes!(blocks.params, ALL => {
                inline::contains::<LANES, ALL>(blocks.params.probes, as_ptr(block), 0, hash)
            })
        }
    }

    #[inline(always)]
    unsafe fn shared_insert<const LANES: usize>(
        blocks: SharedBlocks<'_, LANES>,
        hash: u64,
    ) -> bool {
        // SAFETY: the caller guarantees the instructions.
        if unsafe { Self::shared_contains(blocks, hash) } {
            return false;
        }
        let (probes, at) = (blocks.params.probes, blocks.params.first_line(hash));
        let block = as_ptr(blocks.block(at));
        // SAFETY: as above; no other thread stores to the block while its stripe is locked.
        blocks.with_lock(at, || unsafe {
            by_lanes!(blocks.params, ALL => inline::insert::<LANES, ALL>(probes, block, 0, hash))
        })
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn shared_contains_batch<const LANES: usize>(
        blocks: SharedBlocks<'_, LANES>,
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        let load = |line: &AtomicCacheLine| load(line);
        let lines = BlockRange::new(blocks.params, blocks.lines, 0);
        // Without locks, small filters need no prefetching, as with plain lines.
        by_lanes!(blocks.params, ALL => {
            contains_groups::<LANES, ALL, _, _>(lines, hashes, found, PREFETCH_FROM, load);
        });
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn shared_insert_batch<const LANES: usize>(
        blocks: SharedBlocks<'_, LANES>,
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        by_lanes!(blocks.params, ALL => insert_groups::<LANES, ALL, _>(&blocks, hashes, new));
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn insert_groups<const LANES: usize, const ALL: bool, H: HashSource>(
    blocks: &SharedBlocks<LANES>,
    hashes: H,
    new: &mut [u64],
) {
    type Lines<'a, const LANES: usize> = BlockRange<LANES, &'a [AtomicCacheLine]>;
    let prepare = |lines: &Lines<LANES>, hashes: &_, group: &mut _| {
        // Always prefetch: a locked instruction limits out-of-order execution.
        prepare(lines, hashes, group, 0);
    };
    let process = |lines: &mut Lines<LANES>, group: &Group, clear: &mut ClearLanes| {
        // SAFETY: the group was prepared for these lines.
        unsafe { test_group::<LANES, ALL, _>(lines.lines, group, clear, |line| load(line)) };
        if *clear == [0; GROUP] {
            return;
        }
        // Request ownership of the lines and stripes to write to while earlier keys wait. Not
        // before the test: threads that insert mostly known keys should not take lines from others.
        for (key, _) in clear.iter().enumerate().filter(|(_, clear)| **clear != 0) {
            let at = group.at[key] as usize / CacheLine::BYTES;
            blocks.block(at).iter().for_each(prefetch_write);
            prefetch_write(blocks.stripe(at));
        }
        for (key, clear) in clear.iter_mut().enumerate().filter(|(_, clear)| **clear != 0) {
            let at = group.at[key] as usize / CacheLine::BYTES;
            let (block, key_probes) = (blocks.block(at), group.probes(key));
            // An earlier key of the group may have set the missing bits.
            *clear = blocks.with_lock(at, || set_bits::<LANES, ALL>(block, &key_probes)).into();
        }
    };
    let lines = BlockRange::new(blocks.params, blocks.lines, 0);
    batch(lines, hashes, new, prepare, process, |clear| !all_set(clear));
}

/// Sets the bits in a block whose stripe is locked. Returns whether any of them was clear.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn set_bits<const LANES: usize, const ALL: bool>(
    block: &[AtomicCacheLine],
    key_probes: &VectorProbes<LANES>,
) -> bool {
    let clear = clear_lanes::<LANES, ALL, _>(block, key_probes, |line| load(line));
    for (at, line) in block.iter().enumerate() {
        store(line, _mm512_or_si512(load(line), key_probes.bits::<ALL>(at)));
    }
    clear != 0
}

/// Returns a pointer to the block for inline assembly.
#[inline(always)]
fn as_ptr(block: &[AtomicCacheLine]) -> *mut CacheLine {
    block.as_ptr().cast_mut().cast()
}

/// Prefetches for writing.
#[inline(always)]
fn prefetch_write<T>(here: &T) {
    // SAFETY: a hint without effect on memory.
    unsafe {
        asm!("prefetchw [{here}]", here = in(reg) here, options(readonly, nostack, preserves_flags));
    }
}

/// Loads the words of a line, each by a relaxed load.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn load(line: &AtomicCacheLine) -> __m512i {
    let words: __m512i;
    // SAFETY: reads an existing, aligned line. Not `pure`, because other threads modify it.
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

/// Stores words to a line, each by a relaxed store. The caller must hold the stripe.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn store(line: &AtomicCacheLine, words: __m512i) {
    // SAFETY: writes to an existing, aligned line, whose words are atomic and may be written through
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
