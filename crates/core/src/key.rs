//! The types of keys, and their bytes.
//!
//! A key is its bytes, the same in every language and program. Text is its UTF-8 bytes. An integer
//! of up to 64 bits is the 8 little-endian bytes of its value in two's complement, so that `1u8`,
//! `1i32` and `1u64` are the same key; a 128-bit integer is its 16 little-endian bytes. A `char` is text of
//! one character. An IP address is its text, as in a list of lines.
//!
//! Other types that implement [`Hash`](core::hash::Hash), such as tuples and structs, can be
//! inserted into a [`TypedBloomFilter`](crate::TypedBloomFilter).

use alloc::borrow::Cow;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::fmt::{self, Write as _};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::num::NonZero;

use crate::hash::HashSpec;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// A key with a stable encoding. Sealed.
///
/// Implemented for byte strings, text, integers and IP addresses, and for references, `Box`, `Rc`, `Arc` and
/// `Cow` of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key with a stable encoding",
    label = "keys are byte strings, text, integers and IP addresses",
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
    [] NonZero<u8> => |key| u64::from(key.get()).to_le_bytes();
    [] NonZero<u16> => |key| u64::from(key.get()).to_le_bytes();
    [] NonZero<u32> => |key| u64::from(key.get()).to_le_bytes();
    [] NonZero<u64> => |key| key.get().to_le_bytes();
    [] NonZero<usize> => |key| (key.get() as u64).to_le_bytes();
    [] NonZero<u128> => |key| key.get().to_le_bytes();
    [] NonZero<i8> => |key| i64::from(key.get()).to_le_bytes();
    [] NonZero<i16> => |key| i64::from(key.get()).to_le_bytes();
    [] NonZero<i32> => |key| i64::from(key.get()).to_le_bytes();
    [] NonZero<i64> => |key| key.get().to_le_bytes();
    [] NonZero<isize> => |key| (key.get() as i64).to_le_bytes();
    [] NonZero<i128> => |key| key.get().to_le_bytes();
    [] char => |key| ShortText::of(key);
    [] IpAddr => |key| ShortText::of(key);
    [] Ipv4Addr => |key| ShortText::of(key);
    [] Ipv6Addr => |key| ShortText::of(key);
    ['a, K: Key + ToOwned + ?Sized] Cow<'a, K> => |key| (**key).bytes();
    [K: Key + ?Sized] &K => |key| (**key).bytes();
    [K: Key + ?Sized] Box<K> => |key| (**key).bytes();
    [K: Key + ?Sized] Rc<K> => |key| (**key).bytes();
    [K: Key + ?Sized] Arc<K> => |key| (**key).bytes();
}

/// The longest text of an IP address: `0000:0000:0000:0000:0000:ffff:255.255.255.255`.
const LONGEST: usize = 45;

/// A text that needs no allocation.
struct ShortText {
    bytes: [u8; LONGEST],
    len: usize,
}

impl ShortText {
    /// Returns the text of a character or an address.
    fn of(value: &impl fmt::Display) -> Self {
        let mut text = Self { bytes: [0; LONGEST], len: 0 };
        // Longer texts do not occur.
        let _ = write!(text, "{value}");
        text
    }
}

impl fmt::Write for ShortText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.len + part.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl AsRef<[u8]> for ShortText {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
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
    fn smart_pointers_are_the_keys_that_they_own() {
        fn hash(key: impl Key) -> u64 {
            key.hash_with(&HashSpec::default())
        }
        let text: &str = "key";
        let (boxed, shared, counted): (Box<str>, Arc<str>, Rc<[u8]>) =
            (text.into(), text.into(), text.as_bytes().into());
        let cows = [Cow::Borrowed(text), Cow::Owned(text.to_owned())].map(hash);
        let bytes: Cow<'_, [u8]> = text.as_bytes().into();
        let all = [hash(boxed), hash(shared), hash(counted), hash(bytes), cows[0], cows[1]];
        assert_eq!(all, [hash(text); 6]);
        assert_eq!(hash(Arc::new(7u8)), hash(7u64));
    }

    #[test]
    fn numbers_that_are_not_zero_are_integers() {
        let hash = HashSpec::default();
        assert_eq!(NonZero::new(-2i16).unwrap().hash_with(&hash), (-2i64).hash_with(&hash));
        assert_eq!(NonZero::<u64>::MAX.hash_with(&hash), u64::MAX.hash_with(&hash));
        assert_eq!(NonZero::<u128>::MIN.hash_with(&hash), 1u128.hash_with(&hash));
    }

    #[test]
    fn characters_and_addresses_are_their_text() {
        let hash = HashSpec::default();
        for character in ['a', 'ß', '花', '🌸'] {
            assert_eq!(character.hash_with(&hash), character.to_string().hash_with(&hash));
        }
        let longest = "1111:2222:3333:4444:5555:6666:7777:8888";
        for text in ["192.0.2.1", "::1", "::ffff:255.255.255.255", longest] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(address.hash_with(&hash), text.hash_with(&hash));
            let same = match address {
                IpAddr::V4(address) => address.hash_with(&hash),
                IpAddr::V6(address) => address.hash_with(&hash),
            };
            assert_eq!(same, text.hash_with(&hash));
        }
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
