//! wyhash of 64 bits, in the version that the crate wyhash 0.5 has. Source: Wang Yi 2019, public
//! domain.

/// The constants of the author.
const P: [u64; 6] = [
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
    0x1d8e_4e27_c47d_124f,
    0xeb44_acca_b455_d165,
];

/// Returns the hash of bytes.
#[inline]
pub(crate) fn wyhash(key: &[u8], seed: u64) -> u64 {
    let (blocks, tail) = key.as_chunks::<32>();
    let mut state = seed;
    for block in blocks {
        let (words, _) = block.as_chunks();
        let word = |at: usize| u64::from_le_bytes(words[at]) ^ P[at + 1];
        state = fold(state ^ P[0], fold(word(0), word(1)) ^ fold(word(2), word(3)));
    }
    state ^= P[0];
    if !tail.is_empty() {
        let (first, second) = tail.split_at(tail.len().min(16));
        let mut mixed = mix(state, first, [P[1], P[2]]);
        if !second.is_empty() {
            mixed ^= mix(state, second, [P[3], P[4]]);
        }
        state = mixed;
    }
    fold(state, key.len() as u64 ^ P[5])
}

/// Mixes 1 to 16 bytes into the state.
#[inline]
fn mix(state: u64, bytes: &[u8], with: [u64; 2]) -> u64 {
    let (first, second) = bytes.split_at(bytes.len().min(8));
    if second.is_empty() {
        fold(state, number(first) ^ with[0])
    } else {
        fold(number(first) ^ state, number(second) ^ with[1])
    }
}

/// Multiplies to 128 bits and xors the halves.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Returns the number of 1 to 8 bytes: parts of 4, 2 and 1 bytes, each little-endian, the first
/// part in the highest bits.
#[inline]
fn number(mut bytes: &[u8]) -> u64 {
    let mut number = 0;
    while !bytes.is_empty() {
        let (part, rest) = bytes.split_at(1 << bytes.len().min(4).ilog2());
        let value = part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        number = number << (8 * part.len()) | value;
        bytes = rest;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are of the crate wyhash 0.5.0.
    #[test]
    fn known_values() {
        assert_eq!(wyhash(&[0, 1, 2], 3), 0xb0f9_4152_0b1a_d95d);
        assert_eq!(wyhash(b"poppy", 0x706f_7070_7953_3d42), 16_507_271_990_128_044_474);
    }
}
