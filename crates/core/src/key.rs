//! The types of keys, and their bytes.
//!
//! A key is its bytes, the same in every language and program. Text is its UTF-8 bytes. An integer
//! of up to 64 bits is the 8 little-endian bytes of its value in two's complement, so that `1u8`,
//! `1i32` and `1u64` are the same key; a 128-bit integer is its 16 little-endian bytes.
//!
//! Other types that implement [`Hash`](core::hash::Hash), such as tuples and structs, can be
//! inserted into a [`TypedBloomFilter`](crate::TypedBloomFilter).

use crate::hash::HashSpec;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// A key with a stable encoding. Sealed.
///
/// Implemented for byte strings, text and integers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key with a stable encoding",
    label = "keys are byte strings, text and integers",
    note = "a `TypedBloomFilter` takes values of any type that implements `Hash`"
)]
pub trait Key: sealed::Sealed {
    /// Returns the bytes of the key.
    fn bytes(&self) -> impl AsRef<[u8]>;

    /// Returns the keys as 64-bit words, if they are words.
    #[doc(hidden)]
    fn words(_keys: &[Self]) -> Option<&[u64]>
    where
        Self: Sized,
    {
        None
    }

    /// Returns the 64-bit hash of the key.
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
    [] u8 => |key| u64::from(*key).to_le_bytes();
    [] u16 => |key| u64::from(*key).to_le_bytes();
    [] u32 => |key| u64::from(*key).to_le_bytes();
    [] usize => |key| (*key as u64).to_le_bytes();
    [] u128 => |key| key.to_le_bytes();
    [] i8 => |key| i64::from(*key).to_le_bytes();
    [] i16 => |key| i64::from(*key).to_le_bytes();
    [] i32 => |key| i64::from(*key).to_le_bytes();
    [] i64 => |key| key.to_le_bytes();
    [] isize => |key| (*key as i64).to_le_bytes();
    [] i128 => |key| key.to_le_bytes();
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
    fn text_and_byte_strings_are_the_same_key() {
        let hash = HashSpec::default();
        let expected = hash.hash(b"key");
        assert_eq!("key".hash_with(&hash), expected);
        assert_eq!(String::from("key").hash_with(&hash), expected);
        assert_eq!(b"key".hash_with(&hash), expected);
        assert_eq!((&&b"key"[..]).hash_with(&hash), expected);
        assert_eq!(vec![b'k', b'e', b'y'].hash_with(&hash), expected);
    }

    #[test]
    fn integers_of_all_widths_up_to_64_bits_are_the_same_key() {
        let hash = HashSpec::default();
        let one = hash.hash(&[1, 0, 0, 0, 0, 0, 0, 0]);
        let ones = [
            1u8.hash_with(&hash),
            1u16.hash_with(&hash),
            1u32.hash_with(&hash),
            1u64.hash_with(&hash),
            1usize.hash_with(&hash),
            1i8.hash_with(&hash),
            1i16.hash_with(&hash),
            1i32.hash_with(&hash),
            1i64.hash_with(&hash),
            1isize.hash_with(&hash),
        ];
        assert_eq!(ones, [one; 10]);
        let minus_two = hash.hash(&(-2i64).to_le_bytes());
        let minus_twos =
            [(-2i8).hash_with(&hash), (-2i16).hash_with(&hash), (-2i32).hash_with(&hash)];
        assert_eq!(minus_twos, [minus_two; 3]);
        assert_eq!((-2i64).hash_with(&hash), (u64::MAX - 1).hash_with(&hash));
        assert_eq!(0x0102_u64.hash_with(&hash), hash.hash(&[2, 1, 0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn integers_of_128_bits_are_16_bytes() {
        let hash = HashSpec::default();
        let mut bytes = [0; 16];
        bytes[0] = 1;
        assert_eq!(1u128.hash_with(&hash), hash.hash(&bytes));
        assert_eq!(1i128.hash_with(&hash), hash.hash(&bytes));
        assert_ne!(1u128.hash_with(&hash), 1u64.hash_with(&hash));
    }
}
