//! Counters with AVX-512: those of a line are raised and lowered by one vector for each plane.

use std::arch::x86_64::*;

use super::{Marks, load_words, twice, words};
use crate::kernel::blocked::{MIX_HIGH, MIX_LOW, Rule};
use crate::kernel::counting::{Counters, Removed};
use crate::store::Line;

/// As the law's.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) fn insert<const LANES: usize>(
    rule: Rule<LANES>,
    counters: &mut Counters<'_>,
    hash: u64,
) -> bool {
    let marks = marks(rule, hash);
    let mut missed = 0;
    for (number, at) in rule.lines_of(hash).enumerate() {
        let (bits, planes) = counters.line(at);
        missed |= raise(bits, planes, marks.bits::<false>(number));
    }
    missed != 0
}

/// As the law's.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) fn remove<const LANES: usize>(
    rule: Rule<LANES>,
    counters: &mut Counters<'_>,
    hash: u64,
) -> Removed {
    let marks = marks(rule, hash);
    let mut missed = 0;
    for (number, at) in rule.lines_of(hash).enumerate() {
        let bits = marks.bits::<false>(number);
        missed |= any(_mm512_andnot_si512(load_words(&counters.bits[at].0), bits));
    }
    if missed != 0 {
        return Removed::Absent;
    }
    let mut cleared = 0;
    for (number, at) in rule.lines_of(hash).enumerate() {
        let (bits, planes) = counters.line(at);
        cleared |= lower(bits, planes, marks.bits::<false>(number));
    }
    if cleared != 0 { Removed::Gone } else { Removed::Fewer }
}

/// As the law's.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) fn insert_batch<const LANES: usize>(
    rule: Rule<LANES>,
    counters: &mut Counters<'_>,
    hashes: &[u64],
    new: &mut [u64],
) {
    counters.batch(rule, hashes, new, |counters, hash| insert(rule, counters, hash));
}

/// As the law's.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) fn remove_batch<const LANES: usize>(
    rule: Rule<LANES>,
    counters: &mut Counters<'_>,
    hashes: &[u64],
    removed: &mut [u64],
) -> u64 {
    let mut gone = 0;
    counters.batch(rule, hashes, removed, |counters, hash| {
        let removed = remove(rule, counters, hash);
        gone += u64::from(removed == Removed::Gone);
        removed != Removed::Absent
    });
    gone
}

#[inline(always)]
fn marks<const LANES: usize>(rule: Rule<LANES>, hash: u64) -> Marks<LANES> {
    let low = hash.wrapping_mul(MIX_LOW);
    let start = (low >> 12) as u32 % LANES as u32;
    let mask = (twice::<LANES>(rule.probes) >> (LANES as u32 - start)) as u16;
    Marks { low, high: hash.wrapping_mul(MIX_HIGH), mask }
}

/// Adds one to the counters that are marked; which lanes have some that were zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn raise(bits: &mut Line, planes: &mut [Line], marked: __m512i) -> u8 {
    let old = load_words(&bits.0);
    bits.0 = words(_mm512_or_si512(old, marked));
    let mut carry = _mm512_and_si512(old, marked);
    for plane in planes.iter_mut() {
        let old = load_words(&plane.0);
        plane.0 = words(_mm512_xor_si512(old, carry));
        carry = _mm512_and_si512(old, carry);
    }
    if any(carry) != 0 {
        // Beyond the largest count: back to it.
        for plane in planes {
            plane.0 = words(_mm512_or_si512(load_words(&plane.0), carry));
        }
    }
    any(_mm512_andnot_si512(old, marked))
}

/// Takes one off the counters that are marked, which are above zero, unless they are stuck; which
/// lanes have some that are zero now.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn lower(bits: &mut Line, planes: &mut [Line], marked: __m512i) -> u8 {
    let mut stuck = marked;
    for plane in planes.iter() {
        stuck = _mm512_and_si512(stuck, load_words(&plane.0));
    }
    let mut borrow = _mm512_andnot_si512(stuck, marked);
    for plane in planes.iter_mut() {
        let old = load_words(&plane.0);
        plane.0 = words(_mm512_xor_si512(old, borrow));
        borrow = _mm512_andnot_si512(old, borrow);
    }
    // They were one: all planes have borrowed.
    for plane in planes {
        plane.0 = words(_mm512_andnot_si512(borrow, load_words(&plane.0)));
    }
    bits.0 = words(_mm512_andnot_si512(borrow, load_words(&bits.0)));
    any(borrow)
}

/// The lanes in which any bit is set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn any(words: __m512i) -> u8 {
    _mm512_test_epi64_mask(words, words)
}
