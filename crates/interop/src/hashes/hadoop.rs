//! Hadoop's two 32-bit hash functions: Jenkins' lookup3 (`hashlittle`), and MurmurHash2 with the
//! tail of a key in reverse order and with signed bytes. Source: the results of Hadoop's client
//! library; Jenkins 2006 and Appleby 2008, both public domain.

/// Returns Jenkins' hash of at least one byte.
#[inline]
pub(crate) fn jenkins(key: &[u8], seed: u32) -> u32 {
    let [mut a, mut b, mut c] =
        [0xdead_beef_u32.wrapping_add(key.len() as u32).wrapping_add(seed); 3];
    // The last block is mixed differently, even if it is complete.
    let last = key.len().saturating_sub(1) / 12 * 12;
    let (whole, rest) = key.split_at(last);
    for block in whole.as_chunks::<12>().0 {
        let [x, y, z] = thirds(block);
        [a, b, c] = [a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z)];
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
    }
    let mut block = [0; 12];
    block[..rest.len()].copy_from_slice(rest);
    let [x, y, z] = thirds(&block);
    [a, b, c] = [a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z)];
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

fn thirds(block: &[u8; 12]) -> [u32; 3] {
    let word = |at| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    [word(0), word(4), word(8)]
}

/// Returns Hadoop's MurmurHash2 of bytes.
#[inline]
pub(crate) fn murmur2(key: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let (words, tail) = key.as_chunks();
    let mut hash = seed ^ key.len() as u32;
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (word ^ word >> 24).wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (shift, byte) in [0, 8, 16].into_iter().zip(tail.iter().rev()) {
            hash ^= (i32::from(byte.cast_signed()) << shift).cast_unsigned();
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // Jenkins' own test vectors.
        let text = b"Four score and seven years ago";
        assert_eq!(jenkins(text, 0), 0x1777_0551);
        assert_eq!(jenkins(text, 1), 0xcd62_8161);
        // Hadoop's results: a tail of each length, with negative bytes, and whole blocks.
        for (key, hashes, murmurs) in [
            ("a", [0x58d6_8708, 0x5b4f_d270], [0x9268_5f5e, 0x1eb4_6e11]),
            ("é", [0xe93a_01fc, 0x39f4_85a2], [0xe91c_0273, 0xb469_0128]),
            ("漢", [0x0648_53b2, 0xb8f7_e508], [0x8046_957d, 0x756a_5884]),
            ("four", [0xf887_5cc1, 0x823a_e6c2], [0x4ffe_8b0e, 0xb933_9a75]),
            ("twelve bytes", [0x597b_94ce, 0x788b_ae59], [0xdaff_b1c2, 0xdbcd_20d0]),
            ("twenty-four bytes of it!", [0x2ee6_57f4, 0x314d_2426], [0xe538_a260, 0x324d_c9e5]),
            ("more than twelve bytes é", [0x0c71_022f, 0xfc7b_85fd], [0xf289_df08, 0xb41c_8afd]),
        ] {
            for (seed, at) in [(0, 0), (-7_i32, 1)] {
                let (key, seed) = (key.as_bytes(), seed.cast_unsigned());
                assert_eq!(jenkins(key, seed), hashes[at], "{key:?}");
                assert_eq!(murmur2(key, seed), murmurs[at], "{key:?}");
            }
        }
    }
}
