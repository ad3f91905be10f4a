//! Single keys with AVX2, in inline assembly.
//!
//! As with AVX-512 (`avx512::inline`): functions with a target feature are never inlined into callers
//! that are compiled for any processor, and the call takes as long as everything else. `vzeroupper` is
//! part of the assembly, because callers may use SSE instructions, and so all vector registers are
//! clobbered.
//!
//! Constants are computed where that is possible: a load must wait for an earlier store to an address
//! with the same last 12 bits, and the addresses of the blocks are random.
//!
//! In callers that are compiled for AVX2, the code of batches is inlined instead: compilers keep its
//! constants in registers.

use core::arch::asm;
use core::slice::{from_raw_parts, from_raw_parts_mut};

use super::{BlockParams, BlockProber, CacheLine, MIX_HIGH, MIX_LOW};

/// Whether callers are compiled for AVX2.
const STATIC: bool = cfg!(target_feature = "avx2");

/// The offsets of the fields of the lanes.
#[repr(align(64))]
struct Shifts(#[expect(dead_code, reason = "read by assembly")] [u64; 8]);
static SHIFTS: Shifts = Shifts([16, 22, 28, 34, 40, 46, 52, 58]);

/// The key's fields in a line.
#[inline(always)]
fn fields(line: usize, hash: u64) -> u64 {
    hash.wrapping_mul(if line == 0 { MIX_LOW } else { MIX_HIGH })
}

/// The masks of the key's lanes in a line.
#[inline(always)]
fn masks<const LANES: usize>(probes: u32, line: usize, hash: u64) -> *const u64 {
    let start = hash.wrapping_mul(MIX_LOW) >> 12;
    BlockParams::<LANES>::LANE_MASKS.get(probes, start)[8 * line..].as_ptr()
}

/// Assembly for a line of a key. The given instructions find the fields in `ymm0` and `ymm1`, and a 1
/// for each lane with a bit of the key in `ymm2` and `ymm3`.
macro_rules! line_asm {
    (all; $($rest:tt)*) => {
        line_asm!(
            [
                "vpsrlq ymm2, ymm3, 5",
                "vmovdqa ymm3, ymm2"
            ]
            $($rest)*
        )
    };
    (masked $masks:expr; $($rest:tt)*) => {
        line_asm!(
            [
                "vmovdqa ymm2, ymmword ptr [{masks}]",
                "vmovdqa ymm3, ymmword ptr [{masks} + 32]"
            ]
            $($rest)*,
            masks = in(reg) $masks
        )
    };
    (
        [$($ones:literal),*] $fields:expr, $lines:expr, $at:expr, [$($instruction:literal),*],
        options($($option:ident),*) $(, $name:ident = $class:ident(reg) $value:expr)*
    ) => {
        asm!(
            "vmovq xmm0, {fields}",
            "vpbroadcastq ymm0, xmm0",
            // The mask of a field, 63.
            "vpcmpeqd ymm3, ymm3, ymm3",
            "vpsrlq ymm3, ymm3, 58",
            "vpsrlvq ymm1, ymm0, ymmword ptr [{shifts} + 32]",
            "vpsrlvq ymm0, ymm0, ymmword ptr [{shifts}]",
            "vpand ymm1, ymm1, ymm3",
            "vpand ymm0, ymm0, ymm3",
            $($ones,)*
            $($instruction,)*
            "vzeroupper",
            fields = in(reg) $fields,
            shifts = in(reg) &SHIFTS,
            lines = in(reg) $lines,
            at = in(reg) $at * CacheLine::BYTES,
            $($name = $class(reg) $value,)*
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
            out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
            out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
            out("ymm15") _,
            options($($option),*),
        )
    };
}

/// Sets the bits of a key in a line; `clear` is 1 if any was clear, else 0.
macro_rules! insert_line {
    ($lanes:ident $($masks:expr)?; $fields:expr, $lines:expr, $at:expr, $clear:ident) => {
        line_asm!(
            $lanes $($masks)?; $fields, $lines, $at,
            [
                "vpsllvq ymm0, ymm2, ymm0",
                "vpsllvq ymm1, ymm3, ymm1",
                "vmovdqa ymm2, ymmword ptr [{lines} + {at}]",
                "vmovdqa ymm3, ymmword ptr [{lines} + {at} + 32]",
                "vpandn ymm4, ymm2, ymm0",
                "vpandn ymm5, ymm3, ymm1",
                "vpor ymm0, ymm2, ymm0",
                "vpor ymm1, ymm3, ymm1",
                "vmovdqa ymmword ptr [{lines} + {at}], ymm0",
                "vmovdqa ymmword ptr [{lines} + {at} + 32], ymm1",
                "vpor ymm4, ymm4, ymm5",
                "xor {clear:e}, {clear:e}",
                "vptest ymm4, ymm4",
                "setnz {clear:l}"
            ],
            options(nostack), clear = out(reg) $clear
        )
    };
}

/// Sets the bits of a key in a line.
macro_rules! set_line {
    ($lanes:ident $($masks:expr)?; $fields:expr, $lines:expr, $at:expr) => {
        line_asm!(
            $lanes $($masks)?; $fields, $lines, $at,
            [
                "vpsllvq ymm0, ymm2, ymm0",
                "vpsllvq ymm1, ymm3, ymm1",
                "vpor ymm0, ymm0, ymmword ptr [{lines} + {at}]",
                "vpor ymm1, ymm1, ymmword ptr [{lines} + {at} + 32]",
                "vmovdqa ymmword ptr [{lines} + {at}], ymm0",
                "vmovdqa ymmword ptr [{lines} + {at} + 32], ymm1"
            ],
            options(nostack, preserves_flags)
        )
    };
}

/// Tests the bits of a key in a line; `clear` is 1 if any is clear, else 0.
macro_rules! test_line {
    ($lanes:ident $($masks:expr)?; $fields:expr, $lines:expr, $at:expr, $clear:ident) => {
        line_asm!(
            $lanes $($masks)?; $fields, $lines, $at,
            [
                "vmovdqa ymm4, ymmword ptr [{lines} + {at}]",
                "vmovdqa ymm5, ymmword ptr [{lines} + {at} + 32]",
                "vpsrlvq ymm0, ymm4, ymm0",
                "vpsrlvq ymm1, ymm5, ymm1",
                "vpandn ymm0, ymm0, ymm2",
                "vpandn ymm1, ymm1, ymm3",
                "vpor ymm0, ymm0, ymm1",
                "xor {clear:e}, {clear:e}",
                "vptest ymm0, ymm0",
                "setnz {clear:l}"
            ],
            options(nostack, readonly), clear = out(reg) $clear
        )
    };
}

/// Sets the bits of a hash in its block. Returns whether any of them was clear.
///
/// # Safety
/// The machine must have AVX2. The block whose first line is `at` must exist, and nothing else may
/// access it meanwhile.
#[inline(always)]
pub(in super::super) unsafe fn insert<const LANES: usize>(
    probes: u32,
    lines: *mut CacheLine,
    at: usize,
    hash: u64,
) -> bool {
    let prober = BlockProber::<LANES>::new(probes);
    if STATIC {
        // SAFETY: the caller guarantees the block and the instructions.
        return unsafe {
            let block = from_raw_parts_mut(lines.add(at), BlockParams::<LANES>::LINES);
            if prober.all_lanes() {
                prober.insert::<true>(block, hash)
            } else {
                prober.insert::<false>(block, hash)
            }
        };
    }
    let mut clear = 0;
    for line in 0..BlockParams::<LANES>::LINES {
        let clear_here: u64;
        // SAFETY: reads the shifts and the mask of a line; reads and writes a line of the block. The
        // caller guarantees the block and the instructions. `setnz` makes the result 0 or 1.
        unsafe {
            if prober.all_lanes() {
                insert_line!(all; fields(line, hash), lines, (at + line), clear_here);
            } else {
                let masks = masks::<LANES>(probes, line, hash);
                insert_line!(masked masks; fields(line, hash), lines, (at + line), clear_here);
            }
            core::hint::assert_unchecked(clear_here < 2);
        }
        clear |= clear_here;
    }
    clear != 0
}

/// Sets the bits of a hash in its block.
///
/// # Safety
/// As [`insert`].
#[inline(always)]
pub(in super::super) unsafe fn set<const LANES: usize>(
    probes: u32,
    lines: *mut CacheLine,
    at: usize,
    hash: u64,
) {
    let prober = BlockProber::<LANES>::new(probes);
    if STATIC {
        // SAFETY: the caller guarantees the block and the instructions.
        return unsafe {
            let block = from_raw_parts_mut(lines.add(at), BlockParams::<LANES>::LINES);
            if prober.all_lanes() {
                prober.set::<true>(block, hash);
            } else {
                prober.set::<false>(block, hash);
            }
        };
    }
    for line in 0..BlockParams::<LANES>::LINES {
        // SAFETY: as in `insert`.
        unsafe {
            if prober.all_lanes() {
                set_line!(all; fields(line, hash), lines, (at + line));
            } else {
                let masks = masks::<LANES>(probes, line, hash);
                set_line!(masked masks; fields(line, hash), lines, (at + line));
            }
        }
    }
}

/// Returns whether all bits of a hash are set in its block.
///
/// # Safety
/// The machine must have AVX2. The block whose first line is `at` must exist.
#[inline(always)]
pub(in super::super) unsafe fn contains<const LANES: usize>(
    probes: u32,
    lines: *const CacheLine,
    at: usize,
    hash: u64,
) -> bool {
    let prober = BlockProber::<LANES>::new(probes);
    if STATIC {
        // SAFETY: the caller guarantees the block and the instructions.
        return unsafe {
            let block = from_raw_parts(lines.add(at), BlockParams::<LANES>::LINES);
            if prober.all_lanes() {
                prober.contains::<true>(block, hash)
            } else {
                prober.contains::<false>(block, hash)
            }
        };
    }
    let mut clear = 0;
    for line in 0..BlockParams::<LANES>::LINES {
        let clear_here: u64;
        // SAFETY: as in `insert`, without writes.
        unsafe {
            if prober.all_lanes() {
                test_line!(all; fields(line, hash), lines, (at + line), clear_here);
            } else {
                let masks = masks::<LANES>(probes, line, hash);
                test_line!(masked masks; fields(line, hash), lines, (at + line), clear_here);
            }
            core::hint::assert_unchecked(clear_here < 2);
        }
        clear |= clear_here;
    }
    clear == 0
}
