//! Counters of a whole filter at once: 64 at a time, a word of bits with its words of planes.
//!
//! All is done bit by bit, so that words need not be turned. Cost: one pass.

use crate::store::Line;

/// How many counters are stuck: all of their bits are set.
pub(super) fn stuck(bits: &[Line], planes: &[Line], depth: usize) -> u64 {
    let ones = |(bits, planes): (&Line, &[Line])| {
        let all = |word: usize| planes.iter().fold(bits.0[word], |all, plane| all & plane.0[word]);
        (0..8).map(|word| u64::from(all(word).count_ones())).sum::<u64>()
    };
    bits.iter().zip(planes.chunks_exact(depth)).map(ones).sum()
}

/// The first line of bits with a counter that is zero and yet counts.
pub(super) fn first_unsound(bits: &[Line], planes: &[Line], depth: usize) -> Option<usize> {
    let sound = |(bits, planes): (&Line, &[Line])| {
        let counts = |word: usize| planes.iter().fold(0, |any, plane| any | plane.0[word]);
        (0..8).fold(0, |bad, word| bad | counts(word) & !bits.0[word]) == 0
    };
    bits.iter().zip(planes.chunks_exact(depth)).position(|line| !sound(line))
}

/// Adds the counts of others, up to the largest.
///
/// Planes hold count - 1: where both are above zero the sum is one more than that of the planes,
/// which is the carry that the lowest plane begins with.
pub(super) fn add(
    bits: &mut [Line],
    planes: &mut [Line],
    other_bits: &[Line],
    other_planes: &[Line],
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
