//! MurmurHash3_x64_128 and MurmurHash3_x86_32. Source: Appleby 2011, public domain.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Returns MurmurHash3_x64_128: the first and the second half of the hash.
#[inline]
pub(crate) fn x64_128(key: &[u8], seed: u64) -> [u64; 2] {
    let (blocks, tail) = key.as_chunks();
    let state = blocks.iter().fold([seed; 2], block);
    end(state, tail, key.len())
}

/// Returns the hash with seed 0 of a key, and of the key followed by a byte 1, in one pass, for
/// Go's bits-and-blooms/bloom.
#[inline]
pub(crate) fn x64_128_twice(key: &[u8]) -> [u64; 4] {
    let (blocks, tail) = key.as_chunks();
    let state = blocks.iter().fold([0; 2], block);
    let mut longer = [0; 16];
    longer[..tail.len()].copy_from_slice(tail);
    longer[tail.len()] = 1;
    let [a, b] = end(state, tail, key.len());
    let [c, d] = if tail.len() == 15 {
        end(block(state, &longer), &[], key.len() + 1)
    } else {
        end(state, &longer[..=tail.len()], key.len() + 1)
    };
    [a, b, c, d]
}

/// Mixes in a whole block.
#[inline]
fn block([mut h1, mut h2]: [u64; 2], block: &[u8; 16]) -> [u64; 2] {
    let [k1, k2] = halves(block);
    h1 ^= first(k1);
    h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
    h2 ^= second(k2);
    h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    [h1, h2]
}

/// Mixes in the tail and the length.
#[inline]
fn end([mut h1, mut h2]: [u64; 2], tail: &[u8], length: usize) -> [u64; 2] {
    if !tail.is_empty() {
        let mut block = [0; 16];
        block[..tail.len()].copy_from_slice(tail);
        let [k1, k2] = halves(&block);
        h1 ^= first(k1);
        h2 ^= second(k2);
    }
    h1 ^= length as u64;
    h2 ^= length as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    [h1, h2.wrapping_add(h1)]
}

fn halves(block: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*block);
    [both as u64, (both >> 64) as u64]
}

fn first(k1: u64) -> u64 {
    k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn second(k2: u64) -> u64 {
    k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

/// MurmurHash3_x86_32.
#[inline]
pub(crate) fn x86_32(key: &[u8], seed: u32) -> u32 {
    let mixed = |block: [u8; 4]| {
        let word = u32::from_le_bytes(block);
        word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
    };
    let (blocks, tail) = key.as_chunks::<4>();
    let mut hash = seed;
    for block in blocks {
        hash = (hash ^ mixed(*block)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let mut block = [0; 4];
    block[..tail.len()].copy_from_slice(tail);
    hash ^= mixed(block);
    hash ^= key.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(x64_128(b"", 0), [0, 0]);
        // Results of other implementations, in their order of halves.
        assert_eq!(x64_128(b"hello", 0), [0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19]);
        assert_eq!(
            x64_128(b"The quick brown fox jumps over the lazy dog", 0),
            [0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347]
        );
    }

    #[test]
    fn double_hash_equals_two_hashes() {
        let key: Vec<u8> = (0..40).collect();
        for length in 0..key.len() {
            let longer = [&key[..length], &[1]].concat();
            let ([a, b], [c, d]) = (x64_128(&key[..length], 0), x64_128(&longer, 0));
            assert_eq!(x64_128_twice(&key[..length]), [a, b, c, d], "{length} bytes");
        }
    }

    #[test]
    fn known_values_of_32_bits() {
        // Results of the Python package mmh3.
        for (key, seed, hash) in [
            ("", 0, 0),
            ("", 1, 0x514e_28b7),
            ("a", 0, 0x3c25_69b2),
            ("hello", 0x30002, 0x6ad0_3a69),
            ("abcd", 7, 0x54fc_ecbb),
            ("abcdef", 1, 0xdcec_560f),
        ] {
            assert_eq!(x86_32(key.as_bytes(), seed), hash, "{key} {seed}");
        }
    }
}
