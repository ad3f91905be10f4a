//! The hash with the AES instructions of x86-64.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_loadu_si128,
    _mm_set_epi64x, _mm_setzero_si128, _mm_xor_si128,
};

use super::{BLOCK, GROUP, Key, ROUNDS, last_block};

/// Passes the hash of each line to `each`.
#[target_feature(enable = "avx,aes")]
pub(super) fn for_each<'a>(
    key: &Key,
    lines: impl Iterator<Item = &'a [u8]>,
    mut each: impl FnMut(u128),
) {
    let rounds = key.rounds.map(|round| register(round));
    for line in lines {
        each(hash(key, &rounds, line));
    }
}

#[inline]
#[target_feature(enable = "avx,aes")]
fn hash(key: &Key, rounds: &[__m128i; ROUNDS], line: &[u8]) -> u128 {
    let (mut whole, tail) = line.as_chunks();
    let mut sum = _mm_setzero_si128();
    loop {
        let (group, rest) = whole.split_at(whole.len().min(GROUP));
        for (block, mask) in group.iter().zip(&key.masks) {
            sum = _mm_xor_si128(sum, permute(rounds, load(block), *mask));
        }
        if group.len() < GROUP {
            if !tail.is_empty() {
                let block = match line.last_chunk() {
                    Some(block) => load(block),
                    None => register(last_block(line)),
                };
                sum = _mm_xor_si128(sum, permute(rounds, block, key.masks[group.len()]));
            }
            break;
        }
        sum = permute(rounds, sum, key.chain);
        whole = rest;
    }
    let (low, high) = (_mm_cvtsi128_si64(sum), _mm_extract_epi64::<1>(sum));
    u128::from(high.cast_unsigned()) << 64 | u128::from(low.cast_unsigned() ^ line.len() as u64)
}

#[inline]
#[target_feature(enable = "avx,aes")]
fn permute(rounds: &[__m128i; ROUNDS], block: __m128i, mask: u128) -> __m128i {
    let mut block = _mm_xor_si128(block, register(mask));
    for round in rounds {
        block = _mm_aesenc_si128(block, *round);
    }
    block
}

#[inline]
#[target_feature(enable = "avx")]
fn load(block: &[u8; BLOCK]) -> __m128i {
    // SAFETY: the block has 16 bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx")]
fn register(block: u128) -> __m128i {
    _mm_set_epi64x((block >> 64) as i64, block as i64)
}
