//! Single keys, by instructions that have names.
//!
//! Functions with vector instructions are never inlined into callers that are compiled for any
//! processor: the call, and the clearing of vectors that it brings, takes as long as all the
//! rest. What is written in assembly is. Vectors 16 and up need no clearing.
//!
//! The compiler sees an address and an answer. So the same code does for lines of one owner and
//! for those that other threads change meanwhile: what that means is in [`shared`](super::shared).

use std::arch::asm;

use super::{Line, MIX_HIGH, MIX_LOW, Rule};

/// Where the fields of the lanes begin.
#[repr(align(64))]
struct Shifts(#[expect(dead_code, reason = "read by assembly")] [u64; 8]);
static SHIFTS: Shifts = Shifts([16, 22, 28, 34, 40, 46, 52, 58]);

/// A key: the fields of each of its lines, and a one for each lane that it marks.
struct Marks<const LANES: usize> {
    fields: [u64; 2],
    /// A row of [`Rule::ONES`], and how many bytes on those of this key begin. Instructions add
    /// for free.
    ones: &'static [[u64; LANES]; LANES],
    start: usize,
}

impl<const LANES: usize> Marks<LANES> {
    #[inline(always)]
    fn of(probes: u32, hash: u64) -> Self {
        let low = hash.wrapping_mul(MIX_LOW);
        let start = (low >> 12) as usize % LANES * size_of::<[u64; LANES]>();
        let ones = Rule::<LANES>::ONES.row(probes);
        Self { fields: [low, hash.wrapping_mul(MIX_HIGH)], ones, start }
    }
}

/// Sets the bits of a hash in its block; whether any of them was clear.
///
/// # Safety
/// The machine has the instructions of this kernel. The block whose first line is at `at` is among
/// the lines, and nobody else stores to it meanwhile.
#[inline(always)]
pub(in super::super) unsafe fn insert<const LANES: usize>(
    probes: u32,
    lines: *mut Line,
    at: usize,
    hash: u64,
) -> bool {
    let marks = Marks::<LANES>::of(probes, hash);
    let mut missed = 0;
    for line in 0..Rule::<LANES>::LINES {
        let missed_here: u32;
        // SAFETY: reads the shifts and the eight ones of a line; reads and writes a line, for which
        // the caller answers, as for the instructions.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {fields}",
                "vpsrlvq zmm16, zmm16, zmmword ptr [{shifts}]",
                "vmovdqa64 zmm17, zmmword ptr [{ones} + {start}]",
                "vprolvq zmm16, zmm17, zmm16",
                "vmovdqa64 zmm17, zmmword ptr [{lines} + {at}]",
                "vporq zmm18, zmm16, zmm17",
                "vpcmpq k1, zmm17, zmm18, 4",
                "vmovdqa64 zmmword ptr [{lines} + {at}], zmm18",
                "kmovb {missed:e}, k1",
                fields = in(reg) marks.fields[line],
                shifts = in(reg) &SHIFTS,
                ones = in(reg) marks.ones,
                start = in(reg) marks.start + Line::BYTES * line,
                lines = in(reg) lines,
                at = in(reg) (at + line) * Line::BYTES,
                missed = lateout(reg) missed_here,
                out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _,
                options(nostack, preserves_flags),
            );
        }
        missed |= missed_here;
    }
    missed != 0
}

/// Whether all bits of a hash are set in its block.
///
/// # Safety
/// The machine has the instructions of this kernel. The block whose first line is at `at` is among
/// the lines.
#[inline(always)]
pub(in super::super) unsafe fn contains<const LANES: usize>(
    probes: u32,
    lines: *const Line,
    at: usize,
    hash: u64,
) -> bool {
    let marks = Marks::<LANES>::of(probes, hash);
    let mut missed = 0;
    for line in 0..Rule::<LANES>::LINES {
        let missed_here: u32;
        // SAFETY: as in `insert`, but nothing is written.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {fields}",
                "vpsrlvq zmm16, zmm16, zmmword ptr [{shifts}]",
                "vmovdqa64 zmm17, zmmword ptr [{ones} + {start}]",
                "vprolvq zmm16, zmm17, zmm16",
                "vpandq zmm17, zmm16, zmmword ptr [{lines} + {at}]",
                "vpcmpq k1, zmm16, zmm17, 4",
                "kmovb {missed:e}, k1",
                fields = in(reg) marks.fields[line],
                shifts = in(reg) &SHIFTS,
                ones = in(reg) marks.ones,
                start = in(reg) marks.start + Line::BYTES * line,
                lines = in(reg) lines,
                at = in(reg) (at + line) * Line::BYTES,
                missed = lateout(reg) missed_here,
                out("zmm16") _, out("zmm17") _, out("k1") _,
                // Not `pure`: looked at twice, a line that others change need not be the same.
                options(readonly, nostack, preserves_flags),
            );
        }
        missed |= missed_here;
    }
    missed == 0
}
