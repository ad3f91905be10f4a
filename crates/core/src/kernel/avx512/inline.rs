//! Single keys with AVX-512, in inline assembly.
//!
//! Functions with a target feature are never inlined into callers that are compiled for any
//! processor; the call, with its `vzeroupper`, takes as long as everything else. Inline assembly is
//! inlined. Vector registers from 16 on need no `vzeroupper`.
//!
//! The compiler sees only an address and a result, so the same code works for lines that other
//! threads modify: see [`shared`](super::shared).

use core::arch::asm;

use super::{BlockParams, CacheLine, MIX_HIGH, MIX_LOW};

/// The offsets of the fields of the lanes.
#[repr(align(64))]
struct Shifts(#[expect(dead_code, reason = "read by assembly")] [u64; 8]);
static SHIFTS: Shifts = Shifts([16, 22, 28, 34, 40, 46, 52, 58]);

/// The probes of a key: the fields of each line, and a mask of its lanes.
struct AsmProbes<const LANES: usize> {
    fields: [u64; 2],
    /// The masks of all starts, and the offset of this key's mask in bytes; the address addition is
    /// part of the instruction.
    masks: &'static [[u64; LANES]; LANES],
    start: usize,
}

impl<const LANES: usize> AsmProbes<LANES> {
    #[inline(always)]
    fn new(probes: u32, hash: u64) -> Self {
        let low = hash.wrapping_mul(MIX_LOW);
        let start = (low >> 12) as usize % LANES * size_of::<[u64; LANES]>();
        let masks = BlockParams::<LANES>::LANE_MASKS.all_starts(probes);
        Self { fields: [low, hash.wrapping_mul(MIX_HIGH)], masks, start }
    }
}

/// Sets the bits of a hash in its block. Returns whether any of them was clear.
///
/// # Safety
/// The machine must have the instructions of this kernel. The block whose first line is `at` must
/// exist, and nothing else may store to it meanwhile.
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
        let clear_here: u32;
        // SAFETY: reads the shifts and the mask of a line; reads and writes a line of the block. The
        // caller guarantees the block and the instructions.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {fields}",
                "vpsrlvq zmm16, zmm16, zmmword ptr [{shifts}]",
                "vmovdqa64 zmm17, zmmword ptr [{masks} + {start}]",
                "vprolvq zmm16, zmm17, zmm16",
                "vmovdqa64 zmm17, zmmword ptr [{lines} + {at}]",
                "vporq zmm18, zmm16, zmm17",
                "vpcmpq k1, zmm17, zmm18, 4",
                "vmovdqa64 zmmword ptr [{lines} + {at}], zmm18",
                "kmovb {clear:e}, k1",
                fields = in(reg) key.fields[line],
                shifts = in(reg) &SHIFTS,
                masks = in(reg) key.masks,
                start = in(reg) key.start + CacheLine::BYTES * line,
                lines = in(reg) lines,
                at = in(reg) (at + line) * CacheLine::BYTES,
                clear = lateout(reg) clear_here,
                out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _,
                options(nostack, preserves_flags),
            );
        }
        clear |= clear_here;
    }
    clear != 0
}

/// Returns whether all bits of a hash are set in its block.
///
/// # Safety
/// The machine must have the instructions of this kernel. The block whose first line is `at` must
/// exist.
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
        let clear_here: u32;
        // SAFETY: as in `insert`, without writes.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {fields}",
                "vpsrlvq zmm16, zmm16, zmmword ptr [{shifts}]",
                "vmovdqa64 zmm17, zmmword ptr [{masks} + {start}]",
                "vprolvq zmm16, zmm17, zmm16",
                "vpandq zmm17, zmm16, zmmword ptr [{lines} + {at}]",
                "vpcmpq k1, zmm16, zmm17, 4",
                "kmovb {clear:e}, k1",
                fields = in(reg) key.fields[line],
                shifts = in(reg) &SHIFTS,
                masks = in(reg) key.masks,
                start = in(reg) key.start + CacheLine::BYTES * line,
                lines = in(reg) lines,
                at = in(reg) (at + line) * CacheLine::BYTES,
                clear = lateout(reg) clear_here,
                out("zmm16") _, out("zmm17") _, out("k1") _,
                // Not `pure`: two reads of a line that other threads modify may differ.
                options(readonly, nostack, preserves_flags),
            );
        }
        clear |= clear_here;
    }
    clear == 0
}
