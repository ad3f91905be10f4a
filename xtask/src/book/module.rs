//! The module of the interactive pages, stored in a script.

use std::fs;
use std::path::Path;

use crate::step::Result;

/// Writes a script that has the bytes of a module in base64, so that a page works from a file, too.
pub(super) fn write(module: &Path, script: &Path) -> Result {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let bytes = fs::read(module).map_err(|error| failed(module, error))?;
    let text = format!("const petalWasm = \"{}\";\n", base64(&bytes));
    fs::write(script, text).map_err(|error| failed(script, error))
}

/// Encodes bytes in base64 (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() { digit.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
