//! Polynomials with the carry-less multiplication of AArch64.

#![allow(unsafe_code)]

use std::arch::aarch64::vmull_p64;

use super::{Fingerprint, Point};

/// Passes the fingerprint of each line to `each`.
#[target_feature(enable = "neon,aes")]
pub(super) fn for_each<'a>(
    point: &Point,
    lines: impl Iterator<Item = &'a [u8]>,
    mut each: impl FnMut(Fingerprint),
) {
    for line in lines {
        // SAFETY: this function has the features that the multiplication requires.
        each(point.fingerprint(line, |a, b| unsafe { vmull_p64(a, b) }));
    }
}
