//! Mapping a filter file.

use std::fs::File;
use std::path::Path;

use petal::Mapped;

/// Maps a file.
///
/// # Errors
/// If that fails.
#[expect(unsafe_code, reason = "a mapped file may not change")]
pub(super) fn mapped(file: &Path) -> Result<Mapped, String> {
    let opened = File::open(file).map_err(|e| format!("{}: {e}", file.display()))?;
    // SAFETY: only this process has the file, and it does not write to it any more.
    unsafe { Mapped::open(&opened) }.map_err(|e| e.to_string())
}
