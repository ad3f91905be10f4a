//! MurmurHash2 with 32 bits, and MurmurHash64A. Source: Appleby 2008, public domain.

/// MurmurHash64A.
#[inline]
pub(crate) fn x64(key: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let (words, tail) = key.as_chunks();
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M);
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> 47;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}

/// MurmurHash2.
#[inline]
pub(crate) fn x32(key: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let (words, tail) = key.as_chunks();
    let mut hash = seed ^ key.len() as u32;
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> 24;
        hash = hash.wrapping_mul(M) ^ word.wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verification of SMHasher by the author: keys of 0 to 255 bytes, each with another seed,
    /// and the hash of all those hashes.
    fn verification(hash: impl Fn(&[u8], u32) -> Vec<u8>) -> u32 {
        let bytes: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> =
            (0..256).flat_map(|length| hash(&bytes[..length], 256 - length as u32)).collect();
        u32::from_le_bytes(hash(&hashes, 0)[..4].try_into().unwrap())
    }

    #[test]
    fn known_values() {
        assert_eq!(verification(|key, seed| x32(key, seed).to_le_bytes().to_vec()), 0x2786_4c1e);
        let x64 = |key: &[u8], seed: u32| x64(key, seed.into()).to_le_bytes().to_vec();
        assert_eq!(verification(x64), 0x1f0d_3804);
    }
}
