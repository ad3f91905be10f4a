//! Ribbons with AVX-512: eight columns of a key are one vector.
//!
//! Not sixteen: a load asks the memory also for the lanes that it masks out, and those lie in
//! lines that nobody asked for in time. Out of cache that took three times as long.
//!
//! The columns of both segments are cut down to the equation and added; each lane is folded to
//! its parity by shifts, the last four bits by a table of sixteen bits; what differs from the
//! fingerprint is a mask. Answers are those of the portable form.

use std::arch::x86_64::*;

use crate::kernel::ribbon::{Ribbon, Run};

/// Columns of a vector.
const LANES: usize = 8;
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

/// Whether a run of bits is as it should be. Without a branch on it: nothing could foresee it.
///
/// # Safety
/// The half words of both segments are there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) unsafe fn agrees(rows: *const u32, run: &Run) -> bool {
    let (low, high) = (_mm256_set1_epi32(run.low as i32), _mm256_set1_epi32(run.high as i32));
    let (mut first, mut wrong) = (0, 0);
    while first < run.columns {
        let there = _bzhi_u32(u32::MAX, (run.columns - first) as u32) as __mmask8;
        // SAFETY: lanes that are masked out are not read; the others are columns of the run, for
        // which the caller answers.
        let (near, far) = unsafe {
            let near = _mm256_maskz_loadu_epi32(there, rows.add(run.near + first).cast());
            (near, _mm256_maskz_loadu_epi32(there, rows.add(run.far + first).cast()))
        };
        let bits = _mm256_and_si256(near, low);
        // bits ^ (far & high)
        let bits = _mm256_ternarylogic_epi32::<0x78>(bits, far, high);
        let bits = _mm256_xor_si256(bits, _mm256_srli_epi32::<16>(bits));
        let bits = _mm256_xor_si256(bits, _mm256_srli_epi32::<8>(bits));
        let bits = _mm256_xor_si256(bits, _mm256_srli_epi32::<4>(bits));
        let four = _mm256_and_si256(bits, _mm256_set1_epi32(15));
        let parity = _mm256_srlv_epi32(_mm256_set1_epi32(PARITY), four);
        let odd = _mm256_test_epi32_mask(parity, _mm256_set1_epi32(1));
        wrong |= (odd ^ (run.fingerprint >> first) as __mmask8) & there;
        first += LANES;
    }
    wrong == 0
}
