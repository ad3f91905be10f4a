//! The hash with the AES instructions of AArch64.

#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint8x16_t, vaeseq_u8, vaesmcq_u8, vdupq_n_u8, vreinterpretq_p128_u8, vreinterpretq_u8_p128,
};

use super::Key;

/// Passes the hash of each line to `each`.
#[target_feature(enable = "neon,aes")]
pub(super) fn for_each<'a>(
    key: &Key,
    lines: impl Iterator<Item = &'a [u8]>,
    mut each: impl FnMut(u128),
) {
    let round = |block: u128, key: u128| {
        let block: uint8x16_t = vreinterpretq_u8_p128(block);
        // The instruction adds a key before the substitution, where this hash adds none.
        let mixed = vaesmcq_u8(vaeseq_u8(block, vdupq_n_u8(0)));
        vreinterpretq_p128_u8(mixed) ^ key
    };
    for line in lines {
        each(key.hash(line, round));
    }
}
