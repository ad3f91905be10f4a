//! Vector instructions for what every line costs: finding its end, and its fingerprint.
//!
//! Each function is chosen at run time, once a batch, and gives bit for bit what its portable
//! form gives, which is also what a machine without these instructions uses.
//!
//! The only room of the engine in which `unsafe` is allowed.

#![allow(unsafe_code)]

mod ends;
#[cfg(target_arch = "x86_64")]
mod sip;

pub(crate) use ends::line_ends;

/// Lines that are hashed together.
pub(crate) const LANES: usize = 8;

/// SipHash-2-4-128 of eight lines under one key, first and second half of each; `None` where the
/// machine has no instructions that make this faster than one by one.
///
/// Cost: 18 ns a line of 66 bytes with AVX-512, against 48 ns one by one; lines of unequal length
/// cost as much as the longest of them.
#[inline]
pub(crate) fn sip_2_4_128(key: [u64; 2], lines: &[&[u8]; LANES]) -> Option<[[u64; LANES]; 2]> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the machine has the one feature that the function asks for.
        return Some(unsafe { sip::avx512(key, lines) });
    }
    let _ = (key, lines);
    None
}
