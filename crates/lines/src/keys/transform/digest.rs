//! Digests of keys, and hexadecimal text.

use md5::Digest;

/// Appends the digest of a key, in lowercase hexadecimal text.
pub(super) fn append<D: Digest>(key: &[u8], to: &mut Vec<u8>) {
    hex(&D::digest(key), to);
}

/// Appends the NTLM hash of a password: MD4 of its text in UTF-16, little-endian. `None` if it is not
/// UTF-8.
pub(super) fn ntlm(key: &[u8], to: &mut Vec<u8>) -> Option<()> {
    let text = std::str::from_utf8(key).ok()?;
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    append::<md4::Md4>(&units, to);
    Some(())
}

/// Appends bytes as lowercase hexadecimal text.
pub(super) fn hex(bytes: &[u8], to: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    to.extend(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15].map(|at| DIGITS[at as usize])));
}

/// Appends the bytes of hexadecimal text of either case. `None` if the key is no such text.
pub(super) fn unhex(key: &[u8], to: &mut Vec<u8>) -> Option<()> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let (pairs, rest) = key.as_chunks::<2>();
    for [high, low] in pairs {
        to.push((digit(*high)? << 4 | digit(*low)?) as u8);
    }
    rest.is_empty().then_some(())
}
