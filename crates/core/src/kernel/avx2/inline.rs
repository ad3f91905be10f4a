//! Single keys with AVX2, in inline assembly.
//!
//! As with AVX-512 (`avx512::inline`): functions with a target feature are never inlined into callers
//! that are compiled for any processor, and the call takes as long as everything else. `vzeroupper` is
//! part of the assembly, because callers may use SSE instructions, and so all vector registers are
//! clobbered.
//!
//! In callers that are compiled for AVX2, the code of batches is inlined instead: compilers keep its
//! constants in registers.

use core::arch::asm;
use core::slice::{from_raw_parts, from_raw_parts_mut};

use super::{BlockParams, BlockProber, CacheLine, MIX_HIGH, MIX_LOW};

/// Whether callers are compiled for AVX2.
const STATIC: bool = cfg!(target_feature = "avx2");

/// The offsets of the fields of the lanes, and the mask of a field.
#[repr(align(64))]
struct Fields(#[expect(dead_code, reason = "read by assembly")] [u64; 12]);
static FIELDS: Fields = Fields([16, 22, 28, 34, 40, 46, 52, 58, 63, 63, 63, 63]);

/// The masks of a key with a bit in every lane.
#[repr(align(64))]
struct Ones([u64; 16]);
static ALL_LANES: Ones = Ones([1; 16]);

/// The probes of a key: the fields of each line, and the masks of its lanes.
struct AsmProbes<const LANES: usize> {
    fields: [u64; 2],
    masks: *const u64,
}

impl<const LANES: usize> AsmProbes<LANES> {
    #[inline(always)]
    fn new(probes: u32, hash: u64) -> Self {
        let low = hash.wrapping_mul(MIX_LOW);
        // A branch costs less than the address of a mask.
        let masks = if probes as usize == LANES {
            ALL_LANES.0.as_ptr()
        } else {
            BlockParams::<LANES>::LANE_MASKS.get(probes, low >> 12).as_ptr()
        };
        Self { fields: [low, hash.wrapping_mul(MIX_HIGH)], masks }
    }
}

/// Assembly for a line of a key: its fields are in `ymm0` and `ymm1` before the given instructions.
macro_rules! line_asm {
    (
        $key:expr, $lines:expr, $at:expr, $line:expr,
        [$($instruction:literal),*] $(, $operand:ident = $class:ident($reg:ident) $value:expr)*
        ; $($option:ident),*
    ) => {
        asm!(
            "vmovq xmm0, {fields}",
            "vpbroadcastq ymm0, xmm0",
            "vpsrlvq ymm1, ymm0, ymmword ptr [{shifts} + 32]",
            "vpsrlvq ymm0, ymm0, ymmword ptr [{shifts}]",
            "vpand ymm1, ymm1, ymmword ptr [{shifts} + 64]",
            "vpand ymm0, ymm0, ymmword ptr [{shifts} + 64]",
            $($instruction,)*
            "vzeroupper",
            fields = in(reg) $key.fields[$line],
            shifts = in(reg) &FIELDS,
            masks = in(reg) $key.masks.wrapping_add(8 * $line),
            lines = in(reg) $lines,
            at = in(reg) ($at + $line) * CacheLine::BYTES,
            $($operand = $class($reg) $value,)*
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
            out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
            out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
            out("ymm15") _,
            options($($option),*),
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
    if STATIC {
        let prober = BlockProber::<LANES>::new(probes);
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
    let key = AsmProbes::<LANES>::new(probes, hash);
    let mut clear = 0;
    for line in 0..BlockParams::<LANES>::LINES {
        let clear_here: u64;
        // SAFETY: reads the shifts and the mask of a line; reads and writes a line of the block. The
        // caller guarantees the block and the instructions. `setnz` makes the result 0 or 1.
        unsafe {
            line_asm!(
                key, lines, at, line,
                [
                    "vmovdqa ymm2, ymmword ptr [{masks}]",
                    "vmovdqa ymm3, ymmword ptr [{masks} + 32]",
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
                clear = out(reg) clear_here;
                nostack
            );
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
    if STATIC {
        let prober = BlockProber::<LANES>::new(probes);
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
    let key = AsmProbes::<LANES>::new(probes, hash);
    for line in 0..BlockParams::<LANES>::LINES {
        // SAFETY: as in `insert`.
        unsafe {
            line_asm!(
                key, lines, at, line,
                [
                    "vmovdqa ymm2, ymmword ptr [{masks}]",
                    "vmovdqa ymm3, ymmword ptr [{masks} + 32]",
                    "vpsllvq ymm0, ymm2, ymm0",
                    "vpsllvq ymm1, ymm3, ymm1",
                    "vpor ymm0, ymm0, ymmword ptr [{lines} + {at}]",
                    "vpor ymm1, ymm1, ymmword ptr [{lines} + {at} + 32]",
                    "vmovdqa ymmword ptr [{lines} + {at}], ymm0",
                    "vmovdqa ymmword ptr [{lines} + {at} + 32], ymm1"
                ];
                nostack, preserves_flags
            );
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
    if STATIC {
        let prober = BlockProber::<LANES>::new(probes);
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
    let key = AsmProbes::<LANES>::new(probes, hash);
    let mut clear = 0;
    for line in 0..BlockParams::<LANES>::LINES {
        let clear_here: u64;
        // SAFETY: as in `insert`, without writes.
        unsafe {
            line_asm!(
                key, lines, at, line,
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
                clear = out(reg) clear_here;
                nostack, readonly
            );
            core::hint::assert_unchecked(clear_here < 2);
        }
        clear |= clear_here;
    }
    clear == 0
}
