//! Ribbons with AVX-512: eight columns of a key are one vector.
//!
//! Sixteen columns were three times slower for ribbons larger than the cache: a masked load also
//! accesses the lanes that it masks out, whose cache lines were not prefetched.
//!
//! The columns of both segments are masked by the equation and added; each lane is folded to its
//! parity by shifts, the last four bits by a table of sixteen bits; a mask has the differences from
//! the fingerprint. Results are those of the portable code.

use core::arch::x86_64::*;

use super::Avx512;
use crate::kernel::dispatch::Ribbons;
use crate::kernel::ribbon::{KeyBits, Ribbon};

/// Columns of a vector.
const LANES: usize = 8;
/// Bit i is the parity of i.
const PARITY: i32 = 0x6996;

impl Ribbons for Avx512 {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn ribbon_contains(ribbon: Ribbon<'_>, hash: u64) -> bool {
        ribbon.contains(hash, |rows, key_bits| matches(rows, key_bits))
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn ribbon_batch(ribbon: Ribbon<'_>, hashes: &[u64], found: &mut [u64]) {
        ribbon.batch(hashes, found, |rows, key_bits| matches(rows, key_bits));
    }
}

/// Returns whether the bits of a key have the expected values, without an unpredictable branch.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn matches(rows: &[u32], key_bits: &KeyBits) -> bool {
    assert!(key_bits.far.max(key_bits.near) + key_bits.columns <= rows.len());
    let (low, high) =
        (_mm256_set1_epi32(key_bits.low as i32), _mm256_set1_epi32(key_bits.high as i32));
    let (mut first, mut differences) = (0, 0);
    while first < key_bits.columns {
        let mask = _bzhi_u32(u32::MAX, (key_bits.columns - first) as u32) as __mmask8;
        // SAFETY: lanes that are masked out are not read; the others are columns of the key, which
        // exist by the assertion.
        let (near, far) = unsafe {
            let near =
                _mm256_maskz_loadu_epi32(mask, rows.as_ptr().add(key_bits.near + first).cast());
            (near, _mm256_maskz_loadu_epi32(mask, rows.as_ptr().add(key_bits.far + first).cast()))
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
        differences |= (odd ^ (key_bits.fingerprint >> first) as __mmask8) & mask;
        first += LANES;
    }
    differences == 0
}
