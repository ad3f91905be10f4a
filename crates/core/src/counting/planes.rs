//! Operations on all counters of a filter, 64 at a time: a word of bits with its words of planes.
//!
//! They are bitwise, so that the byte order of words does not matter. Cost: one pass.

use crate::store::CacheLine;

/// Returns the number of saturated counters: those with all bits set.
pub(super) fn saturated(bits: &[CacheLine], planes: &[CacheLine], depth: usize) -> u64 {
    let ones = |(bits, planes): (&CacheLine, &[CacheLine])| {
        let all = |word: usize| planes.iter().fold(bits.0[word], |all, plane| all & plane.0[word]);
        (0..8).map(|word| u64::from(all(word).count_ones())).sum::<u64>()
    };
    bits.iter().zip(planes.chunks_exact(depth)).map(ones).sum()
}

/// Returns the first line of bits with a clear bit whose counter is not zero.
pub(super) fn first_unsound(
    bits: &[CacheLine],
    planes: &[CacheLine],
    depth: usize,
) -> Option<usize> {
    let sound = |(bits, planes): (&CacheLine, &[CacheLine])| {
        let counts = |word: usize| planes.iter().fold(0, |any, plane| any | plane.0[word]);
        (0..8).fold(0, |bad, word| bad | counts(word) & !bits.0[word]) == 0
    };
    bits.iter().zip(planes.chunks_exact(depth)).position(|line| !sound(line))
}

/// Adds the counts of another filter, up to the largest count.
///
/// Planes hold count - 1. Where both counts are above zero, the sum is one more than the sum of the
/// planes; this is the carry into the lowest plane.
pub(super) fn add(
    bits: &mut [CacheLine],
    planes: &mut [CacheLine],
    other_bits: &[CacheLine],
    other_planes: &[CacheLine],
    depth: usize,
) {
    let ours = bits.iter_mut().zip(planes.chunks_exact_mut(depth));
    let theirs = other_bits.iter().zip(other_planes.chunks_exact(depth));
    for ((bits, planes), (other_bits, other_planes)) in ours.zip(theirs) {
        for word in 0..8 {
            let mut carry = bits.0[word] & other_bits.0[word];
            bits.0[word] |= other_bits.0[word];
            for (plane, other) in planes.iter_mut().zip(other_planes) {
                let (ours, theirs) = (plane.0[word], other.0[word]);
                plane.0[word] = ours ^ theirs ^ carry;
                carry = ours & theirs | carry & (ours ^ theirs);
            }
            planes.iter_mut().for_each(|plane| plane.0[word] |= carry);
        }
    }
}
