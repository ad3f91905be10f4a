//! Percent escapes.

/// A set of bytes.
pub(super) type ByteSet = [bool; 256];

/// Returns the letters and digits of ASCII, `-._~`, and the given bytes.
pub(super) const fn unreserved_and(others: &[u8]) -> ByteSet {
    let mut set = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        set[byte] = b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
        byte += 1;
    }
    let mut at = 0;
    while at < others.len() {
        set[others[at] as usize] = true;
        at += 1;
    }
    set
}

/// Appends `%XX`.
pub(super) fn push_escape(byte: u8, to: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    to.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// Appends bytes; those that are not in `safe` are escaped.
pub(super) fn quote(mut bytes: &[u8], safe: &ByteSet, to: &mut Vec<u8>) {
    while let Some(at) = bytes.iter().position(|byte| !safe[usize::from(*byte)]) {
        to.extend_from_slice(&bytes[..at]);
        push_escape(bytes[at], to);
        bytes = &bytes[at + 1..];
    }
    to.extend_from_slice(bytes);
}

/// Returns the byte of an escape at the start of `bytes`.
pub(super) fn escape_at(bytes: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    match bytes {
        [b'%', high, low, ..] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

/// Appends bytes with their escapes replaced, once.
pub(super) fn unquote(mut bytes: &[u8], to: &mut Vec<u8>) {
    while let Some(at) = memchr::memchr(b'%', bytes) {
        to.extend_from_slice(&bytes[..at]);
        let escaped = escape_at(&bytes[at..]);
        to.push(escaped.unwrap_or(b'%'));
        bytes = &bytes[at + if escaped.is_some() { 3 } else { 1 }..];
    }
    to.extend_from_slice(bytes);
}
