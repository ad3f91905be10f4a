//! Letters and code points of keys.

/// Returns a key without white space at both ends: space, tab, LF, CR, VT and FF, which Python's
/// `bytes.strip` removes. `trim_ascii` leaves VT.
pub(super) fn trim(key: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t'..=b'\r');
    let Some(start) = key.iter().position(is_text) else { return &[] };
    let end = key.iter().rposition(is_text).map_or(start, |last| last + 1);
    &key[start..end]
}

/// Appends a key with its ASCII letters in lowercase.
pub(super) fn lowercase(key: &[u8], to: &mut Vec<u8>) {
    let start = to.len();
    to.extend_from_slice(key);
    to[start..].make_ascii_lowercase();
}

/// Appends a key with its ASCII letters in uppercase.
pub(super) fn uppercase(key: &[u8], to: &mut Vec<u8>) {
    let start = to.len();
    to.extend_from_slice(key);
    to[start..].make_ascii_uppercase();
}

/// Appends a key with all letters in lowercase; as it is if it is not UTF-8.
pub(super) fn lowercase_unicode(key: &[u8], to: &mut Vec<u8>) {
    match std::str::from_utf8(key) {
        Ok(text) if !text.is_ascii() => to.extend_from_slice(text.to_lowercase().as_bytes()),
        Ok(_) => lowercase(key, to),
        Err(_) => to.extend_from_slice(key),
    }
}

/// Appends a key in normalization form C; as it is if it is not UTF-8.
#[cfg(feature = "url-keys")]
pub(super) fn nfc(key: &[u8], to: &mut Vec<u8>) {
    use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};
    match std::str::from_utf8(key) {
        Ok(text) if !text.is_ascii() && is_nfc_quick(text.chars()) != IsNormalized::Yes => {
            let mut bytes = [0; 4];
            for code_point in text.nfc() {
                to.extend_from_slice(code_point.encode_utf8(&mut bytes).as_bytes());
            }
        }
        _ => to.extend_from_slice(key),
    }
}
