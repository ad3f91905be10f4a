//! Single keys with AVX-512, in inline assembly.
//!
//! See [`InlineCode`](crate::kernel::InlineCode). Vector registers from 16 on need no `vzeroupper`.
//!
//! The compiler sees only an address and a result, so the same code works for lines that other
//! threads modify: see [`shared`](super::shared).

use core::arch::asm;

use super::{BlockParams, CacheLine, MIX_HIGH, MIX_LOW};

/// What the assembly reads: the offsets of the fields of the lanes, and 1.
#[repr(align(64))]
struct Constants(#[expect(dead_code, reason = "read by assembly")] [u64; 9]);
/// A constant, because a static has its address in a table: a load in every caller.
const CONSTANTS: &Constants = &Constants([16, 22, 28, 34, 40, 46, 52, 58, 1]);

/// Assembly for the only line of a key with a bit in every lane: `zmm16` has the fields of the lanes.
macro_rules! all_lanes_asm {
    (
        $hash:expr, $lines:expr, $at:expr, [$($instruction:literal),*], options($($option:ident),*)
        $(, clear = $clear:ident)?
    ) => {
        asm!(
            "vpbroadcastq zmm16, {fields}",
            "vpsrlvq zmm16, zmm16, zmmword ptr [{constants}]",
            $($instruction,)*
            fields = in(reg) $hash.wrapping_mul(MIX_LOW),
            constants = in(reg) CONSTANTS,
            lines = in(reg) $lines,
            at = in(reg) $at * CacheLine::BYTES,
            $(clear = lateout(reg) $clear,)?
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _,
            options(nostack, preserves_flags $(, $option)*),
        )
    };
}

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

/// Sets the bits of a hash in its block. Returns whether any of them was clear. `ALL`: the key has a bit in
/// every lane.
///
/// # Safety
/// The machine must have the instructions of this kernel. The block whose first line is `at` must
/// exist, and nothing else may store to it meanwhile.
#[inline(always)]
pub(in crate::kernel) unsafe fn insert<const LANES: usize, const ALL: bool>(
    probes: u32,
    lines: *mut CacheLine,
    at: usize,
    hash: u64,
) -> bool {
    if LANES == 8 && ALL {
        let clear: u32;
        // SAFETY: reads constants; reads and writes the line. The caller guarantees the line and the
        // instructions.
        unsafe {
            all_lanes_asm!(
                hash,
                lines,
                at,
                [
                    "vpbroadcastq zmm17, qword ptr [{constants} + 64]",
                    "vprolvq zmm16, zmm17, zmm16",
                    "vmovdqa64 zmm17, zmmword ptr [{lines} + {at}]",
                    "vporq zmm18, zmm16, zmm17",
                    "vpcmpq k1, zmm17, zmm18, 4",
                    "vmovdqa64 zmmword ptr [{lines} + {at}], zmm18",
                    "kmovb {clear:e}, k1"
                ],
                options(),
                clear = clear
            );
        }
        return clear != 0;
    }
    let key = AsmProbes::<LANES>::new(probes, hash);
    let mut clear = 0;
    for line in 0..BlockParams::<LANES>::LINES {
        let clear_here: u32;
        // SAFETY: reads the offsets and the mask of a line; reads and writes a line of the block. The
        // caller guarantees the block and the instructions.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {fields}",
                "vpsrlvq zmm16, zmm16, zmmword ptr [{constants}]",
                "vmovdqa64 zmm17, zmmword ptr [{masks} + {start}]",
                "vprolvq zmm16, zmm17, zmm16",
                "vmovdqa64 zmm17, zmmword ptr [{lines} + {at}]",
                "vporq zmm18, zmm16, zmm17",
                "vpcmpq k1, zmm17, zmm18, 4",
                "vmovdqa64 zmmword ptr [{lines} + {at}], zmm18",
                "kmovb {clear:e}, k1",
                fields = in(reg) key.fields[line],
                constants = in(reg) CONSTANTS,
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
    if LANES == 8 && ALL {
        // SAFETY: as in `insert`.
        unsafe {
            all_lanes_asm!(
                hash,
                lines,
                at,
                [
                    "vpbroadcastq zmm17, qword ptr [{constants} + 64]",
                    "vprolvq zmm16, zmm17, zmm16",
                    "vporq zmm16, zmm16, zmmword ptr [{lines} + {at}]",
                    "vmovdqa64 zmmword ptr [{lines} + {at}], zmm16"
                ],
                options()
            );
        }
        return;
    }
    // SAFETY: the caller guarantees the block and the instructions. To test the old bits takes one
    // instruction.
    unsafe { insert::<LANES, ALL>(probes, lines, at, hash) };
}

/// Returns whether all bits of a hash are set in its block.
///
/// # Safety
/// The machine must have the instructions of this kernel. The block whose first line is `at` must
/// exist.
#[inline(always)]
pub(in crate::kernel) unsafe fn contains<const LANES: usize, const ALL: bool>(
    probes: u32,
    lines: *const CacheLine,
    at: usize,
    hash: u64,
) -> bool {
    if LANES == 8 && ALL {
        let clear: u32;
        // SAFETY: as in `insert`, without writes.
        unsafe {
            all_lanes_asm!(
                hash,
                lines,
                at,
                [
                    "vmovdqa64 zmm17, zmmword ptr [{lines} + {at}]",
                    "vprorvq zmm16, zmm17, zmm16",
                    "vptestnmq k1, zmm16, qword ptr [{constants} + 64]{{1to8}}",
                    "kmovb {clear:e}, k1"
                ],
                // Not `pure`: two reads of a line that other threads modify may differ.
                options(readonly),
                clear = clear
            );
        }
        return clear == 0;
    }
    let key = AsmProbes::<LANES>::new(probes, hash);
    let mut clear = 0;
    for line in 0..BlockParams::<LANES>::LINES {
        let clear_here: u32;
        // SAFETY: as in `insert`, without writes.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {fields}",
                "vpsrlvq zmm16, zmm16, zmmword ptr [{constants}]",
                "vmovdqa64 zmm17, zmmword ptr [{masks} + {start}]",
                "vprolvq zmm16, zmm17, zmm16",
                "vpandq zmm17, zmm16, zmmword ptr [{lines} + {at}]",
                "vpcmpq k1, zmm16, zmm17, 4",
                "kmovb {clear:e}, k1",
                fields = in(reg) key.fields[line],
                constants = in(reg) CONSTANTS,
                masks = in(reg) key.masks,
                start = in(reg) key.start + CacheLine::BYTES * line,
                lines = in(reg) lines,
                at = in(reg) (at + line) * CacheLine::BYTES,
                clear = lateout(reg) clear_here,
                out("zmm16") _, out("zmm17") _, out("k1") _,
                // Not `pure`, as above.
                options(readonly, nostack, preserves_flags),
            );
        }
        clear |= clear_here;
    }
    clear == 0
}
