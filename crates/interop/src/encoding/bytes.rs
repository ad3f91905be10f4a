//! Bounds-checked numbers in bytes, in either byte order.
#![expect(clippy::big_endian_bytes, reason = "the programs of the JVM, Go and Squid write so")]

/// Returns the bytes at an offset; `None` if out of bounds.
#[inline]
pub(crate) fn at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(crate) fn be16(bytes: &[u8], place: usize) -> Option<u16> {
    at(bytes, place).map(u16::from_be_bytes)
}

pub(crate) fn be32(bytes: &[u8], place: usize) -> Option<u32> {
    at(bytes, place).map(u32::from_be_bytes)
}

pub(crate) fn be64(bytes: &[u8], place: usize) -> Option<u64> {
    at(bytes, place).map(u64::from_be_bytes)
}

pub(crate) fn le16(bytes: &[u8], place: usize) -> Option<u16> {
    at(bytes, place).map(u16::from_le_bytes)
}

pub(crate) fn le32(bytes: &[u8], place: usize) -> Option<u32> {
    at(bytes, place).map(u32::from_le_bytes)
}

pub(crate) fn le64(bytes: &[u8], place: usize) -> Option<u64> {
    at(bytes, place).map(u64::from_le_bytes)
}

pub(crate) fn lef64(bytes: &[u8], place: usize) -> Option<f64> {
    at(bytes, place).map(f64::from_le_bytes)
}

/// Returns the big-endian bytes.
pub(crate) fn to_be32(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Returns the big-endian bytes.
pub(crate) fn to_be64(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Returns the big-endian bytes.
pub(crate) fn to_be128(number: u128) -> [u8; 16] {
    number.to_be_bytes()
}

/// Writes bytes at an offset if they fit.
pub(crate) fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..what.len())) {
        place.copy_from_slice(what);
    }
}
