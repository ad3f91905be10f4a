//! Counting filters with AVX-512: one vector per plane increments or decrements the counters of a
//! cache line.

use core::arch::x86_64::*;

use super::{Avx512, VectorProbes, load_words, repeated_mask, words};
use crate::kernel::blocked::{BlockParams, MIX_HIGH, MIX_LOW};
use crate::kernel::counting::{Counters, RemoveOutcome};
use crate::kernel::dispatch::Counting;
use crate::store::CacheLine;

/// Same as `Counters::insert`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn insert<const LANES: usize>(
    params: BlockParams<LANES>,
    counters: &mut Counters<'_>,
    hash: u64,
) -> bool {
    let key = key_probes(params, hash);
    let mut clear = 0;
    for (number, at) in params.line_range(hash).enumerate() {
        let (bits, planes) = counters.line(at);
        clear |= increment(bits, planes, key.bits::<false>(number));
    }
    clear != 0
}

/// Same as `Counters::remove`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn remove<const LANES: usize>(
    params: BlockParams<LANES>,
    counters: &mut Counters<'_>,
    hash: u64,
) -> RemoveOutcome {
    let key = key_probes(params, hash);
    let mut clear = 0;
    for (number, at) in params.line_range(hash).enumerate() {
        let bits = key.bits::<false>(number);
        clear |= any(_mm512_andnot_si512(load_words(&counters.bits[at].0), bits));
    }
    if clear != 0 {
        return RemoveOutcome::Absent;
    }
    let mut cleared = 0;
    for (number, at) in params.line_range(hash).enumerate() {
        let (bits, planes) = counters.line(at);
        cleared |= decrement(bits, planes, key.bits::<false>(number));
    }
    if cleared != 0 { RemoveOutcome::Removed } else { RemoveOutcome::StillPresent }
}

impl Counting for Avx512 {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn increment<const LANES: usize>(
        params: BlockParams<LANES>,
        counters: &mut Counters<'_>,
        hash: u64,
    ) -> bool {
        insert(params, counters, hash)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn decrement<const LANES: usize>(
        params: BlockParams<LANES>,
        counters: &mut Counters<'_>,
        hash: u64,
    ) -> RemoveOutcome {
        remove(params, counters, hash)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn increment_batch<const LANES: usize>(
        params: BlockParams<LANES>,
        counters: &mut Counters<'_>,
        hashes: &[u64],
        new: &mut [u64],
    ) {
        counters.batch(params, hashes, new, |counters, hash| insert(params, counters, hash));
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn decrement_batch<const LANES: usize>(
        params: BlockParams<LANES>,
        counters: &mut Counters<'_>,
        hashes: &[u64],
        removed: &mut [u64],
    ) -> u64 {
        counters
            .remove_batch(params, hashes, removed, |counters, hash| remove(params, counters, hash))
    }
}

/// Returns the probes of a hash.
#[inline(always)]
fn key_probes<const LANES: usize>(params: BlockParams<LANES>, hash: u64) -> VectorProbes<LANES> {
    let low = hash.wrapping_mul(MIX_LOW);
    let start = (low >> 12) as u32 % LANES as u32;
    let mask = (repeated_mask::<LANES>(params.probes) >> (LANES as u32 - start)) as u16;
    VectorProbes { low, high: hash.wrapping_mul(MIX_HIGH), mask }
}

/// Adds 1 to the selected counters. Returns the lanes in which some of them were zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn increment(bits: &mut CacheLine, planes: &mut [CacheLine], selected: __m512i) -> u8 {
    let old = load_words(&bits.0);
    bits.0 = words(_mm512_or_si512(old, selected));
    let mut carry = _mm512_and_si512(old, selected);
    for plane in planes.iter_mut() {
        let old = load_words(&plane.0);
        plane.0 = words(_mm512_xor_si512(old, carry));
        carry = _mm512_and_si512(old, carry);
    }
    if any(carry) != 0 {
        // On overflow counters stay at their maximum.
        for plane in planes {
            plane.0 = words(_mm512_or_si512(load_words(&plane.0), carry));
        }
    }
    any(_mm512_andnot_si512(old, selected))
}

/// Subtracts 1 from the selected counters, which are above zero, unless they are saturated. Returns
/// the lanes in which some of them are zero now.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn decrement(bits: &mut CacheLine, planes: &mut [CacheLine], selected: __m512i) -> u8 {
    let mut saturated = selected;
    for plane in planes.iter() {
        saturated = _mm512_and_si512(saturated, load_words(&plane.0));
    }
    let mut borrow = _mm512_andnot_si512(saturated, selected);
    for plane in planes.iter_mut() {
        let old = load_words(&plane.0);
        plane.0 = words(_mm512_xor_si512(old, borrow));
        borrow = _mm512_andnot_si512(old, borrow);
    }
    // If a count was 1, all planes have borrowed.
    for plane in planes {
        plane.0 = words(_mm512_andnot_si512(borrow, load_words(&plane.0)));
    }
    bits.0 = words(_mm512_andnot_si512(borrow, load_words(&bits.0)));
    any(borrow)
}

/// Returns the lanes in which any bit is set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn any(words: __m512i) -> u8 {
    _mm512_test_epi64_mask(words, words)
}
