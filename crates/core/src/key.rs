//! What may be a key, and which bytes stand for it.
//!
//! The contract is the same in every language and program: a key *is* its bytes. Text is its
//! UTF-8 bytes; `u64` and `u128` are their 8 and 16 bytes, little-endian. Other integers have no
//! encoding on purpose: `1u32` and `1u64` would be two different keys that look like one.
//!
//! Anything else that is `Hash` can be used in memory only, with
//! [`TypedBloomFilter`](crate::TypedBloomFilter).

use crate::hash::HashSpec;

/// A key with a stable encoding. Sealed.
pub trait Key: sealed::Sealed {
    /// The bytes that stand for the key.
    fn bytes(&self) -> impl AsRef<[u8]>;

    /// The keys as words, if that is what they are.
    #[doc(hidden)]
    fn words(_keys: &[Self]) -> Option<&[u64]>
    where
        Self: Sized,
    {
        None
    }

    /// The key's hash.
    #[inline]
    fn hash_with(&self, hash: &HashSpec) -> u64 {
        hash.hash(self.bytes().as_ref())
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! keys {
    ($([$($generic:tt)*] $type:ty => |$key:ident| $bytes:expr;)*) => {$(
        impl<$($generic)*> sealed::Sealed for $type {}
        impl<$($generic)*> Key for $type {
            #[inline]
            fn bytes(&self) -> impl AsRef<[u8]> {
                let $key = self;
                $bytes
            }
        }
    )*};
}

keys! {
    [] [u8] => |key| key;
    [] Vec<u8> => |key| key;
    [const N: usize] [u8; N] => |key| key;
    [] str => |key| key.as_bytes();
    [] String => |key| key.as_bytes();
    [] u128 => |key| key.to_le_bytes();
}

impl sealed::Sealed for u64 {}
impl Key for u64 {
    #[inline]
    fn bytes(&self) -> impl AsRef<[u8]> {
        self.to_le_bytes()
    }

    #[inline]
    fn words(keys: &[Self]) -> Option<&[u64]> {
        Some(keys)
    }
}

impl<K: Key + ?Sized> sealed::Sealed for &K {}
impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn bytes(&self) -> impl AsRef<[u8]> {
        (**self).bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_many_types() {
        let hash = HashSpec::default();
        let expect = hash.hash(b"key");
        assert_eq!("key".hash_with(&hash), expect);
        assert_eq!(String::from("key").hash_with(&hash), expect);
        assert_eq!(b"key".hash_with(&hash), expect);
        assert_eq!((&&b"key"[..]).hash_with(&hash), expect);
        assert_eq!(vec![b'k', b'e', b'y'].hash_with(&hash), expect);
        assert_eq!(0x0102_u64.hash_with(&hash), hash.hash(&[2, 1, 0, 0, 0, 0, 0, 0]));
        assert_ne!(1u128.hash_with(&hash), 1u64.hash_with(&hash));
    }
}
