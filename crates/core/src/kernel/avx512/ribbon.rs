//! Ribbons with AVX-512: sixteen columns of a key are one vector.
//!
//! The columns of both segments are cut down to the equation and added; each lane is folded to
//! its parity by shifts, the last four bits by a table of sixteen bits; what differs from the
//! fingerprint is a mask. Answers are those of the portable form.

use std::arch::x86_64::*;

use crate::kernel::ribbon::{Ribbon, Run};

/// Columns of a vector.
const LANES: usize = 16;
/// Bit i is the parity of i.
const PARITY: i32 = 0x6996;

/// As [`Ribbon::batch`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) fn batch(ribbon: Ribbon<'_>, hashes: &[u64], found: &mut [u64]) {
    ribbon.batch(hashes, found, |rows, run| {
        assert!(run.far.max(run.near) + run.columns <= rows.len());
        // SAFETY: both runs are there.
        unsafe { agrees(rows.as_ptr(), run) }
    });
}

/// Whether a run of bits is as it should be.
///
/// # Safety
/// The half words of both segments are there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) unsafe fn agrees(rows: *const u32, run: &Run) -> bool {
    let (low, high) = (_mm512_set1_epi32(run.low as i32), _mm512_set1_epi32(run.high as i32));
    let mut first = 0;
    while first < run.columns {
        let there = _bzhi_u32(u32::MAX, (run.columns - first) as u32) as __mmask16;
        // SAFETY: lanes that are masked out are not read; the others are columns of the run, for
        // which the caller answers.
        let (near, far) = unsafe {
            let near = _mm512_maskz_loadu_epi32(there, rows.add(run.near + first).cast());
            (near, _mm512_maskz_loadu_epi32(there, rows.add(run.far + first).cast()))
        };
        let bits = _mm512_and_si512(near, low);
        // bits ^ (far & high)
        let bits = _mm512_ternarylogic_epi32::<0x78>(bits, far, high);
        let bits = _mm512_xor_si512(bits, _mm512_srli_epi32::<16>(bits));
        let bits = _mm512_xor_si512(bits, _mm512_srli_epi32::<8>(bits));
        let bits = _mm512_xor_si512(bits, _mm512_srli_epi32::<4>(bits));
        let four = _mm512_and_si512(bits, _mm512_set1_epi32(15));
        let parity = _mm512_srlv_epi32(_mm512_set1_epi32(PARITY), four);
        let odd = _mm512_test_epi32_mask(parity, _mm512_set1_epi32(1));
        if (odd ^ (run.fingerprint >> first) as __mmask16) & there != 0 {
            return false;
        }
        first += LANES;
    }
    true
}
