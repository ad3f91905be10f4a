//! FNV-1 of 64 bits: multiply, then xor. Source: Fowler, Noll & Vo; RFC 9923.

/// Returns the hash of bytes.
#[inline]
pub(crate) fn fnv1(key: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    key.iter().fold(BASIS, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(fnv1(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1(b"a"), 0xaf63_bd4c_8601_b7be);
        assert_eq!(fnv1(b"foobar"), 0x340d_8765_a4dd_a9c2);
    }
}
