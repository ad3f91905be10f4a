//! Single keys in a line of eight lanes, by instructions that have names.
//!
//! Functions with vector instructions are never inlined into callers that are compiled for any
//! processor: the call, and the clearing of vectors that it brings, takes as long as all the
//! rest. What is written in assembly is. Vectors 16 and up need no clearing.
//!
//! The compiler sees an address and an answer. So the same code does for a line of one owner and
//! for one that other threads change meanwhile: what that means is in [`shared`](super::shared).

use std::arch::asm;

use super::{Line, MIX_LOW};

/// What the instructions of one key need besides the key.
#[repr(C, align(64))]
struct Constants {
    /// Where the fields of the lanes begin.
    shifts: [u64; 8],
    /// For all numbers of probes and all starts, a one in each lane that is marked.
    ones: [[[u64; 8]; 8]; 16],
}

static CONSTANTS: Constants = {
    let mut ones = [[[0; 8]; 8]; 16];
    let mut at = 0;
    while at < 16 * 64 {
        let (probes, start, lane) = (at / 64, at / 8 % 8, at % 8);
        ones[probes][start][lane] = ((lane + 8 - start) % 8 < probes) as u64;
        at += 1;
    }
    Constants { shifts: [16, 22, 28, 34, 40, 46, 52, 58], ones }
};

/// As [`blocked::insert`](super::super::blocked::insert), of one key in its line of eight lanes.
///
/// # Safety
/// The machine has the instructions of this kernel.
#[inline(always)]
pub(in super::super) unsafe fn insert(probes: u32, line: *mut Line, hash: u64) -> bool {
    let low = hash.wrapping_mul(MIX_LOW);
    let ones = &CONSTANTS.ones[probes as usize % 16][(low >> 12) as usize % 8];
    let missed: u32;
    // SAFETY: reads the constants, reads and writes the line; the caller answers for the rest.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {low}",
            "vpsrlvq zmm16, zmm16, zmmword ptr [{shifts}]",
            "vmovdqa64 zmm17, zmmword ptr [{ones}]",
            "vprolvq zmm16, zmm17, zmm16",
            "vmovdqa64 zmm17, zmmword ptr [{line}]",
            "vporq zmm18, zmm16, zmm17",
            "vpcmpq k1, zmm17, zmm18, 4",
            "vmovdqa64 zmmword ptr [{line}], zmm18",
            "kmovb {missed:e}, k1",
            low = in(reg) low,
            shifts = in(reg) &CONSTANTS.shifts,
            ones = in(reg) ones,
            line = in(reg) line,
            missed = lateout(reg) missed,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _,
            options(nostack),
        );
    }
    missed != 0
}

/// As [`blocked::contains`](super::super::blocked::contains), of one key in its line of eight lanes.
///
/// # Safety
/// The machine has the instructions of this kernel.
#[inline(always)]
pub(in super::super) unsafe fn contains(probes: u32, line: *const Line, hash: u64) -> bool {
    let low = hash.wrapping_mul(MIX_LOW);
    let ones = &CONSTANTS.ones[probes as usize % 16][(low >> 12) as usize % 8];
    let missed: u32;
    // SAFETY: reads the constants and the line; the caller answers for the rest.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {low}",
            "vpsrlvq zmm16, zmm16, zmmword ptr [{shifts}]",
            "vmovdqa64 zmm17, zmmword ptr [{ones}]",
            "vprolvq zmm16, zmm17, zmm16",
            "vpandq zmm17, zmm16, zmmword ptr [{line}]",
            "vpcmpq k1, zmm16, zmm17, 4",
            "kmovb {missed:e}, k1",
            low = in(reg) low,
            shifts = in(reg) &CONSTANTS.shifts,
            ones = in(reg) ones,
            line = in(reg) line,
            missed = lateout(reg) missed,
            out("zmm16") _, out("zmm17") _, out("k1") _,
            // Not `pure`: looked at twice, a line that others change need not be the same.
            options(readonly, nostack),
        );
    }
    missed == 0
}
