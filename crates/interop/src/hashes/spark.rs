//! Spark's variant of the 32-bit MurmurHash3: four-byte words as in the original, but each byte of
//! the tail is mixed in as a signed word of its own. Source: the results of Spark's sketch library;
//! Appleby 2011.

use xxhash_rust::xxh64::xxh64;

/// Returns `xxhash64` of Spark SQL for one column: XXH64 with Spark's seed. Integers are hashed as
/// the bytes of their type, little-endian.
#[inline]
pub(crate) fn xxhash64(key: &[u8]) -> u64 {
    xxh64(key, 42)
}

/// Returns the hash of bytes.
#[inline]
pub(crate) fn murmur3(key: &[u8], seed: u32) -> u32 {
    let (words, tail) = key.as_chunks();
    let hash = words.iter().fold(seed, |hash, word| mixed(hash, u32::from_le_bytes(*word)));
    let signed = |byte: u8| i32::from(byte.cast_signed()).cast_unsigned();
    let hash = tail.iter().fold(hash, |hash, byte| mixed(hash, signed(*byte)));
    let hash = hash ^ key.len() as u32;
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

fn mixed(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // Whole words: equal to the original.
        assert_eq!(murmur3(b"", 0), 0);
        assert_eq!(murmur3(b"", 1), 0x514e_28b7);
        assert_eq!(murmur3(b"test", 0), 0xba6b_d213);
        assert_eq!(murmur3(b"test", 0x9747_b28c), 0x704b_81dc);
        // With a tail: Spark's results.
        for (key, hash, other) in [
            ("a", 0x2b03_8801, 0x69d8_9ff4),
            ("hello", 0xb21f_6e00, 0x31d1_9e46),
            ("漢字é", 0xe6b2_4e29, 0x9327_3eb3),
            ("ééé", 0x928e_b73f, 0xa375_4ca7),
        ] {
            assert_eq!(murmur3(key.as_bytes(), 0), hash, "{key}");
            assert_eq!(murmur3(key.as_bytes(), (-7_i32).cast_unsigned()), other, "{key}");
        }
    }

    #[test]
    fn hashes_equal_spark_sql() {
        // `select xxhash64(...)` of Spark 4.3, as unsigned numbers.
        for (key, hash) in [
            (&b""[..], 0x98b1_582b_0977_e704),
            (b"a", 0x88e4_fe59_adf7_b0cc),
            ("https://example.com/ä".as_bytes(), 0xe524_7a5e_028c_3a05),
            (&1_i64.to_le_bytes(), 0x9ed5_0fd5_9358_d232),
        ] {
            assert_eq!(xxhash64(key), hash, "{key:?}");
        }
    }
}
