//! Single keys with AVX2, in inline assembly.
//!
//! See [`InlineCode`](crate::kernel::InlineCode). `vzeroupper` is part of the assembly, because callers may
//! use SSE instructions, and so all vector registers are clobbered.
//!
//! Most constants are computed: a load must wait for an earlier store to an address with the same last
//! 12 bits, and the addresses of the blocks are random.
//!
//! In callers that are compiled for AVX2, the code of batches is inlined instead: compilers keep its
//! constants in registers.

use core::arch::asm;
use core::slice::{from_raw_parts, from_raw_parts_mut};

use super::{Avx2, BlockParams, CacheLine, MIX_HIGH, MIX_LOW, Vectors};

/// Whether callers are compiled for AVX2.
const STATIC: bool = cfg!(target_feature = "avx2");

/// What the assembly reads: the shifts to the left that move the field of each lane to the top, and a 1
/// for each of four lanes.
#[repr(align(64))]
struct Constants(#[expect(dead_code, reason = "read by assembly")] [u64; 12]);
const CONSTANTS: &Constants = &Constants([42, 36, 30, 24, 18, 12, 6, 0, 1, 1, 1, 1]);

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

/// Assembly for a line of a key. The given instructions find the fields in `ymm0` and `ymm1`. The
/// instructions in the first brackets run before them.
macro_rules! line_asm {
    (
        [$($ones:literal),*] $fields:expr, $lines:expr, $at:expr, [$($instruction:literal),*],
        options($($option:ident),*) $(, $name:ident = $class:ident(reg) $value:expr)*
    ) => {
        asm!(
            "vmovq xmm0, {fields}",
            "vpbroadcastq ymm0, xmm0",
            $($ones,)*
            "vpsllvq ymm1, ymm0, ymmword ptr [{constants} + 32]",
            "vpsllvq ymm0, ymm0, ymmword ptr [{constants}]",
            // Two shifts need no mask of the bits of a field.
            "vpsrlq ymm1, ymm1, 58",
            "vpsrlq ymm0, ymm0, 58",
            $($instruction,)*
            "vzeroupper",
            fields = in(reg) $fields,
            constants = in(reg) CONSTANTS,
            lines = in(reg) $lines,
            at = in(reg) $at * CacheLine::BYTES,
            $($name = $class(reg) $value,)*
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
            out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
            out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
            out("ymm15") _,
            options(nostack $(, $option)*),
        )
    };
}

/// [`line_asm`] with the bits of the key in `ymm0` and `ymm1`: a 1, or 0 in a lane without a bit of the
/// key, is shifted by each field. `loaded` is `all` with one more load and two instructions less, which
/// is faster where few instructions follow.
macro_rules! bits_asm {
    (
        loaded; $fields:expr, $lines:expr, $at:expr, [$($instruction:literal),*] $($operands:tt)*
    ) => {
        line_asm!(
            ["vmovdqa ymm2, ymmword ptr [{constants} + 64]"]
            $fields, $lines, $at,
            ["vpsllvq ymm0, ymm2, ymm0", "vpsllvq ymm1, ymm2, ymm1", $($instruction),*],
            options(preserves_flags) $($operands)*
        )
    };
    (
        all; $fields:expr, $lines:expr, $at:expr, [$($instruction:literal),*] $($operands:tt)*
    ) => {
        line_asm!(
            ["vpcmpeqd ymm2, ymm2, ymm2", "vpsrlq ymm2, ymm2, 63"]
            $fields, $lines, $at,
            ["vpsllvq ymm0, ymm2, ymm0", "vpsllvq ymm1, ymm2, ymm1", $($instruction),*],
            options(preserves_flags) $($operands)*
        )
    };
    (
        masked $masks:expr;
        $fields:expr, $lines:expr, $at:expr, [$($instruction:literal),*] $($operands:tt)*
    ) => {
        line_asm!(
            [
                "vmovdqa ymm2, ymmword ptr [{masks}]",
                "vmovdqa ymm3, ymmword ptr [{masks} + 32]"
            ]
            $fields, $lines, $at,
            ["vpsllvq ymm0, ymm2, ymm0", "vpsllvq ymm1, ymm3, ymm1", $($instruction),*],
            options(preserves_flags), masks = in(reg) $masks $($operands)*
        )
    };
}

/// Sets the bits of a key in a line, and evaluates to whether any was clear.
macro_rules! insert_line {
    ($lanes:ident $($masks:expr)?; $fields:expr, $lines:expr, $at:expr) => {{
        let equal: u32;
        bits_asm!(
            $lanes $($masks)?; $fields, $lines, $at,
            [
                "vmovdqa ymm2, ymmword ptr [{lines} + {at}]",
                "vmovdqa ymm3, ymmword ptr [{lines} + {at} + 32]",
                "vpor ymm0, ymm2, ymm0",
                "vpor ymm1, ymm3, ymm1",
                "vmovdqa ymmword ptr [{lines} + {at}], ymm0",
                "vmovdqa ymmword ptr [{lines} + {at} + 32], ymm1",
                "vpcmpeqq ymm2, ymm0, ymm2",
                "vpcmpeqq ymm3, ymm1, ymm3",
                "vpand ymm2, ymm2, ymm3",
                "vmovmskpd {equal:e}, ymm2"
            ],
            equal = out(reg) equal
        );
        equal != ALL_SIGNS
    }};
}

/// What `vmovmskpd` returns if the signs of all four lanes are set.
const ALL_SIGNS: u32 = 0b1111;

/// Sets the bits of a key in a line.
macro_rules! set_line {
    ($lanes:ident $($masks:expr)?; $fields:expr, $lines:expr, $at:expr) => {
        bits_asm!(
            $lanes $($masks)?; $fields, $lines, $at,
            [
                "vpor ymm0, ymm0, ymmword ptr [{lines} + {at}]",
                "vpor ymm1, ymm1, ymmword ptr [{lines} + {at} + 32]",
                "vmovdqa ymmword ptr [{lines} + {at}], ymm0",
                "vmovdqa ymmword ptr [{lines} + {at} + 32], ymm1"
            ]
        )
    };
}

/// Tests the bits of a key in a line, and evaluates to whether any is clear.
macro_rules! test_line {
    // The complement of a field moves the bit to the sign of the lane.
    (all; $fields:expr, $lines:expr, $at:expr) => {{
        let set: u32;
        line_asm!(
            [] !$fields, $lines, $at,
            [
                "vmovdqa ymm2, ymmword ptr [{lines} + {at}]",
                "vmovdqa ymm3, ymmword ptr [{lines} + {at} + 32]",
                "vpsllvq ymm0, ymm2, ymm0",
                "vpsllvq ymm1, ymm3, ymm1",
                "vpand ymm0, ymm0, ymm1",
                "vmovmskpd {set:e}, ymm0"
            ],
            options(preserves_flags, readonly), set = out(reg) set
        );
        set != ALL_SIGNS
    }};
    (masked $masks:expr; $fields:expr, $lines:expr, $at:expr) => {{
        let clear: u64;
        line_asm!(
            [] $fields, $lines, $at,
            [
                "vmovdqa ymm2, ymmword ptr [{lines} + {at}]",
                "vmovdqa ymm3, ymmword ptr [{lines} + {at} + 32]",
                "vpsrlvq ymm0, ymm2, ymm0",
                "vpsrlvq ymm1, ymm3, ymm1",
                "vpandn ymm0, ymm0, ymmword ptr [{masks}]",
                "vpandn ymm1, ymm1, ymmword ptr [{masks} + 32]",
                "vpor ymm0, ymm0, ymm1",
                "xor {clear:e}, {clear:e}",
                "vptest ymm0, ymm0",
                "setnz {clear:l}"
            ],
            options(readonly), masks = in(reg) $masks, clear = out(reg) clear
        );
        // `setnz` makes it 0 or 1.
        core::hint::assert_unchecked(clear < 2);
        clear != 0
    }};
}

/// Sets the bits of a hash in its block. Returns whether any of them was clear. `ALL`: the key has a bit in
/// every lane.
///
/// # Safety
/// The machine must have AVX2. The block whose first line is `at` must exist, and nothing else may
/// access it meanwhile.
#[inline(always)]
pub(in crate::kernel) unsafe fn insert<const LANES: usize, const ALL: bool>(
    probes: u32,
    lines: *mut CacheLine,
    at: usize,
    hash: u64,
) -> bool {
    if STATIC {
        // SAFETY: the caller guarantees the block and the instructions.
        return unsafe {
            let block = from_raw_parts_mut(lines.add(at), BlockParams::<LANES>::LINES);
            Vectors::insert::<LANES, ALL>(Avx2::new_unchecked(), probes, block, hash)
        };
    }
    let mut clear = false;
    for line in 0..BlockParams::<LANES>::LINES {
        // SAFETY: reads constants and the mask of a line; reads and writes a line of the block. The
        // caller guarantees the block and the instructions.
        clear |= unsafe {
            if ALL {
                insert_line!(all; fields(line, hash), lines, (at + line))
            } else {
                let masks = masks::<LANES>(probes, line, hash);
                insert_line!(masked masks; fields(line, hash), lines, (at + line))
            }
        };
    }
    clear
}

/// Sets the bits of a hash in its block.
///
/// # Safety
/// As [`insert`].
#[inline(always)]
pub(in crate::kernel) unsafe fn set<const LANES: usize, const ALL: bool>(
    probes: u32,
    lines: *mut CacheLine,
    at: usize,
    hash: u64,
) {
    if STATIC {
        // SAFETY: the caller guarantees the block and the instructions.
        return unsafe {
            let block = from_raw_parts_mut(lines.add(at), BlockParams::<LANES>::LINES);
            Vectors::set::<LANES, ALL>(Avx2::new_unchecked(), probes, block, hash);
        };
    }
    for line in 0..BlockParams::<LANES>::LINES {
        // SAFETY: as in `insert`.
        unsafe {
            if ALL {
                set_line!(loaded; fields(line, hash), lines, (at + line));
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
pub(in crate::kernel) unsafe fn contains<const LANES: usize, const ALL: bool>(
    probes: u32,
    lines: *const CacheLine,
    at: usize,
    hash: u64,
) -> bool {
    if STATIC {
        // SAFETY: the caller guarantees the block and the instructions.
        return unsafe {
            let block = from_raw_parts(lines.add(at), BlockParams::<LANES>::LINES);
            Vectors::contains::<LANES, ALL>(Avx2::new_unchecked(), probes, block, hash)
        };
    }
    let mut clear = false;
    for line in 0..BlockParams::<LANES>::LINES {
        // SAFETY: as in `insert`, without writes.
        clear |= unsafe {
            if ALL {
                test_line!(all; fields(line, hash), lines, (at + line))
            } else {
                let masks = masks::<LANES>(probes, line, hash);
                test_line!(masked masks; fields(line, hash), lines, (at + line))
            }
        };
    }
    !clear
}
