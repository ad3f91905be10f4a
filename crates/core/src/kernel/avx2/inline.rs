//! Single keys with AVX2, in inline assembly.
//!
//! As with AVX-512 (`avx512::inline`): functions with a target feature are never inlined into callers
//! that are compiled for any processor, and the call takes as long as everything else. `vzeroupper` is
//! part of the assembly, because callers may use SSE instructions, and so all vector registers are
//! clobbered.

use core::arch::asm;

use super::{BlockParams, CacheLine, MIX_HIGH, MIX_LOW};

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
    let key = AsmProbes::<LANES>::new(probes, hash);
    let mut clear = 0;
    for line in 0..BlockParams::<LANES>::LINES {
        let clear_here: u8;
        // SAFETY: reads the shifts and the mask of a line; reads and writes a line of the block. The
        // caller guarantees the block and the instructions.
        unsafe {
            asm!(
                "vmovq xmm0, {fields}",
                "vpbroadcastq ymm0, xmm0",
                "vpsrlvq ymm1, ymm0, ymmword ptr [{shifts}]",
                "vpsrlvq ymm0, ymm0, ymmword ptr [{shifts} + 32]",
                "vpand ymm1, ymm1, ymmword ptr [{shifts} + 64]",
                "vpand ymm0, ymm0, ymmword ptr [{shifts} + 64]",
                "vmovdqa ymm2, ymmword ptr [{masks}]",
                "vmovdqa ymm3, ymmword ptr [{masks} + 32]",
                "vpsllvq ymm1, ymm2, ymm1",
                "vpsllvq ymm0, ymm3, ymm0",
                "vmovdqa ymm2, ymmword ptr [{line}]",
                "vmovdqa ymm3, ymmword ptr [{line} + 32]",
                "vpandn ymm4, ymm2, ymm1",
                "vpandn ymm5, ymm3, ymm0",
                "vpor ymm2, ymm2, ymm1",
                "vpor ymm3, ymm3, ymm0",
                "vmovdqa ymmword ptr [{line}], ymm2",
                "vmovdqa ymmword ptr [{line} + 32], ymm3",
                "vpor ymm4, ymm4, ymm5",
                "vptest ymm4, ymm4",
                "setnz {clear}",
                "vzeroupper",
                fields = in(reg) key.fields[line],
                shifts = in(reg) &FIELDS,
                masks = in(reg) key.masks.wrapping_add(8 * line),
                line = in(reg) lines.wrapping_add(at + line),
                clear = lateout(reg_byte) clear_here,
                out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
                out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
                out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
                out("ymm15") _,
                options(nostack),
            );
        }
        clear |= clear_here;
    }
    clear != 0
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
    let key = AsmProbes::<LANES>::new(probes, hash);
    let mut clear = 0;
    for line in 0..BlockParams::<LANES>::LINES {
        let clear_here: u8;
        // SAFETY: as in `insert`, without writes.
        unsafe {
            asm!(
                "vmovq xmm0, {fields}",
                "vpbroadcastq ymm0, xmm0",
                "vpsrlvq ymm1, ymm0, ymmword ptr [{shifts}]",
                "vpsrlvq ymm0, ymm0, ymmword ptr [{shifts} + 32]",
                "vpand ymm1, ymm1, ymmword ptr [{shifts} + 64]",
                "vpand ymm0, ymm0, ymmword ptr [{shifts} + 64]",
                "vmovdqa ymm2, ymmword ptr [{masks}]",
                "vmovdqa ymm3, ymmword ptr [{masks} + 32]",
                "vpsllvq ymm1, ymm2, ymm1",
                "vpsllvq ymm0, ymm3, ymm0",
                "vmovdqa ymm2, ymmword ptr [{line}]",
                "vmovdqa ymm3, ymmword ptr [{line} + 32]",
                "vpandn ymm1, ymm2, ymm1",
                "vpandn ymm0, ymm3, ymm0",
                "vpor ymm0, ymm0, ymm1",
                "vptest ymm0, ymm0",
                "setnz {clear}",
                "vzeroupper",
                fields = in(reg) key.fields[line],
                shifts = in(reg) &FIELDS,
                masks = in(reg) key.masks.wrapping_add(8 * line),
                line = in(reg) lines.wrapping_add(at + line),
                clear = lateout(reg_byte) clear_here,
                out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
                out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
                out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
                out("ymm15") _,
                options(nostack, readonly),
            );
        }
        clear |= clear_here;
    }
    clear == 0
}
