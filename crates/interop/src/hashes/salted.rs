//! pybloom-live's hash functions: one with enough bits for all positions of a key, or, if none has
//! enough, several salted rounds of one. The salt of round i is the hash of i as 4 bytes; the key
//! follows it. Source: files written by version 4.0.0.

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use xxhash_rust::xxh3::Xxh3;

use crate::encoding::bytes::{le16, le32, le64, to_be128};

/// Bytes of the longest hash.
const LONGEST: usize = 64;

/// A hash function, and how its output is divided into numbers.
#[derive(Clone, Debug)]
pub(crate) struct Salted {
    function: Function,
    /// Bytes per number.
    piece: usize,
    /// Numbers per key.
    count: usize,
    salts: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
enum Function {
    Xxh128,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Salted {
    /// Returns the function for `count` positions below `bits`.
    pub(crate) fn new(count: usize, bits: u64) -> Self {
        let piece = match bits {
            0x8000_0000.. => 8,
            0x8000.. => 4,
            _ => 2,
        };
        let function = match 8 * piece * count {
            385.. => Function::Sha512,
            257.. => Function::Sha384,
            161.. => Function::Sha256,
            129.. => Function::Sha1,
            _ => Function::Xxh128,
        };
        let rounds = count.div_ceil(function.bytes() / piece);
        let salt = |round: usize| {
            let mut salt = [0; LONGEST];
            function.hash(&(round as u32).to_le_bytes(), &[], &mut salt);
            salt[..function.bytes()].to_vec()
        };
        Self { function, piece, count, salts: (0..rounds).map(salt).collect() }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.function {
            Function::Xxh128 => "XXH128",
            Function::Sha1 => "SHA-1",
            Function::Sha256 => "SHA-256",
            Function::Sha384 => "SHA-384",
            Function::Sha512 => "SHA-512",
        }
    }

    /// Appends the numbers of a key.
    pub(crate) fn hash(&self, key: &[u8], numbers: &mut Vec<u64>) {
        let mut left = self.count;
        for salt in &self.salts {
            let mut hash = [0; LONGEST];
            self.function.hash(salt, key, &mut hash);
            let here = left.min(self.function.bytes() / self.piece);
            left -= here;
            numbers.extend((0..here).map(|at| self.number(&hash, at * self.piece)));
        }
    }

    fn number(&self, hash: &[u8], at: usize) -> u64 {
        let number = match self.piece {
            2 => le16(hash, at).map(u64::from),
            4 => le32(hash, at).map(u64::from),
            _ => le64(hash, at),
        };
        number.unwrap_or_default()
    }
}

impl Function {
    /// Bytes of a hash.
    fn bytes(self) -> usize {
        match self {
            Self::Xxh128 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => LONGEST,
        }
    }

    /// Writes the hash of a salt followed by a key to the start of `out`.
    fn hash(self, salt: &[u8], key: &[u8], out: &mut [u8; LONGEST]) {
        fn of<D: Digest>(salt: &[u8], key: &[u8], out: &mut [u8; LONGEST]) {
            let sum = D::new().chain_update(salt).chain_update(key).finalize();
            out[..sum.len()].copy_from_slice(&sum);
        }
        match self {
            Self::Xxh128 => {
                let mut state = Xxh3::new();
                state.update(salt);
                state.update(key);
                out[..16].copy_from_slice(&to_be128(state.digest128()));
            }
            Self::Sha1 => of::<Sha1>(salt, key, out),
            Self::Sha256 => of::<Sha256>(salt, key, out),
            Self::Sha384 => of::<Sha384>(salt, key, out),
            Self::Sha512 => of::<Sha512>(salt, key, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_hash_with_enough_bits_is_used() {
        let chosen = |count, bits| {
            let salted = Salted::new(count, bits);
            let mut numbers = Vec::new();
            salted.hash(b"key", &mut numbers);
            assert_eq!(numbers.len(), count);
            (salted.name(), salted.piece, salted.salts.len())
        };
        assert_eq!(chosen(8, 32_767), ("XXH128", 2, 1));
        assert_eq!(chosen(8, 32_768), ("SHA-256", 4, 1));
        assert_eq!(chosen(9, 1000), ("SHA-1", 2, 1));
        assert_eq!(chosen(5, 40_000), ("SHA-1", 4, 1));
        assert_eq!(chosen(24, 1000), ("SHA-384", 2, 1));
        assert_eq!(chosen(33, 1000), ("SHA-512", 2, 2));
        assert_eq!(chosen(2, 1 << 31), ("XXH128", 8, 1));
        assert_eq!(chosen(1000, 1 << 31), ("SHA-512", 8, 125));
    }
}
