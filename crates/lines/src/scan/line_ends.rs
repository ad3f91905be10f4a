//! Finding line ends.
//!
//! Compares 64 bytes at a time and collects the results in one word whose set bits are line ends.
//! `memchr` restarts the search after each line end, which takes twice as long on lines of about
//! 60 bytes. Processors other than x86-64 with AVX2 use `memchr`.

#![allow(unsafe_code)]

/// Appends the positions of the first `max` delimiters in `bytes`, ascending.
pub(super) fn line_ends(delimiter: u8, bytes: &[u8], max: usize, ends: &mut Vec<usize>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
        // SAFETY: the processor has both features that the function requires.
        return unsafe { avx2(delimiter, bytes, max, ends) };
    }
    ends.extend(memchr::memchr_iter(delimiter, bytes).take(max));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1")]
fn avx2(delimiter: u8, bytes: &[u8], max: usize, ends: &mut Vec<usize>) {
    use std::arch::x86_64::{
        _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
    };
    const BLOCK: usize = 64;
    let wanted = _mm256_set1_epi8(delimiter.cast_signed());
    let full = ends.len().saturating_add(max);
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate() {
        let (halves, _) = block.as_chunks::<32>();
        let [low, high] = [0, 1].map(|half| {
            // SAFETY: reads the 32 bytes of `halves[half]`; the load needs no alignment.
            let bytes = unsafe { _mm256_loadu_si256(halves[half].as_ptr().cast()) };
            _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, wanted)).cast_unsigned()
        });
        let mut found = u64::from(high) << 32 | u64::from(low);
        while found != 0 {
            ends.push(number * BLOCK + found.trailing_zeros() as usize);
            found &= found - 1;
        }
        // The last block may add more than `max`.
        if ends.len() >= full {
            return ends.truncate(full);
        }
    }
    let done = blocks.len() * BLOCK;
    let rest = memchr::memchr_iter(delimiter, &bytes[done..]).map(|at| done + at);
    ends.extend(rest.take(full - ends.len()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    #[test]
    fn line_ends_equal_a_naive_search() {
        let mut rng = Rng::new(7);
        for length in (0..300).chain([1000, 4096]) {
            for one_in in [1, 2, 9, 70] {
                let byte = |_| if rng.one_in(one_in) { b'\n' } else { b'\x8a' };
                let bytes: Vec<_> = (0..length).map(byte).collect();
                let naive: Vec<_> = (0..length).filter(|&at| bytes[at] == b'\n').collect();
                for max in [0, 1, 63, 64, 65, usize::MAX] {
                    let mut ends = Vec::new();
                    line_ends(b'\n', &bytes, max, &mut ends);
                    assert_eq!(ends, naive[..naive.len().min(max)], "{length} {one_in} {max}");
                }
            }
        }
    }
}
