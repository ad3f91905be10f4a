//! Ribbons with AVX2: eight columns of a key are one vector.
//!
//! The columns of both segments are masked by the equation and added; each lane is folded upwards to
//! its parity by shifts, the last four bits by a table of sixteen bits. Results are those of the
//! portable code.

use core::arch::x86_64::*;

use super::Avx2;
use crate::kernel::dispatch::Ribbons;
use crate::kernel::ribbon::{KeyBits, Ribbon};

/// Columns of a vector.
const LANES: usize = 8;
/// Bit 31 - i is the parity of i.
const PARITY: u32 = 0x6996 << 16;

impl Ribbons for Avx2 {
    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn ribbon_contains(ribbon: Ribbon<'_>, hash: u64) -> bool {
        ribbon.contains(hash, |rows, key_bits| matches(rows, key_bits))
    }

    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn ribbon_batch(ribbon: Ribbon<'_>, hashes: &[u64], found: &mut [u64]) {
        ribbon.batch(hashes, found, |rows, key_bits| matches(rows, key_bits));
    }
}

/// Returns whether the bits of a key have the expected values, without an unpredictable branch.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn matches(rows: &[u32], key_bits: &KeyBits) -> bool {
    assert!(key_bits.far.max(key_bits.near) + key_bits.columns <= rows.len());
    let (low, high) =
        (_mm256_set1_epi32(key_bits.low as i32), _mm256_set1_epi32(key_bits.high as i32));
    let (mut first, mut differences) = (0, 0);
    while first < key_bits.columns {
        let columns = (key_bits.columns - first).min(LANES);
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let lanes = _mm256_cmpgt_epi32(_mm256_set1_epi32(columns as i32), lanes);
        // SAFETY: lanes that are masked out are not read; the others are columns of the key, which
        // exist by the assertion.
        let (near, far) = unsafe {
            let near =
                _mm256_maskload_epi32(rows.as_ptr().add(key_bits.near + first).cast(), lanes);
            (near, _mm256_maskload_epi32(rows.as_ptr().add(key_bits.far + first).cast(), lanes))
        };
        let bits = _mm256_xor_si256(_mm256_and_si256(near, low), _mm256_and_si256(far, high));
        let bits = _mm256_xor_si256(bits, _mm256_slli_epi32::<16>(bits));
        let bits = _mm256_xor_si256(bits, _mm256_slli_epi32::<8>(bits));
        let bits = _mm256_xor_si256(bits, _mm256_slli_epi32::<4>(bits));
        let four = _mm256_srli_epi32::<28>(bits);
        let parity = _mm256_sllv_epi32(_mm256_set1_epi32(PARITY as i32), four);
        let odd = _mm256_movemask_ps(_mm256_castsi256_ps(parity)) as u32;
        differences |= _bzhi_u32(odd ^ key_bits.fingerprint >> first, columns as u32);
        first += LANES;
    }
    differences == 0
}

#[cfg(test)]
mod tests {
    use super::PARITY;

    #[test]
    fn table_has_the_parity_of_four_bits() {
        for bits in 0..16u32 {
            assert_eq!(PARITY << bits >> 31, bits.count_ones() & 1, "{bits}");
        }
    }
}
