//! Writing a `.petal` file.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::header::{HEADER, MAX_METADATA};
use super::persist::Save;
use super::serialized::SerializedView;
use crate::error::{Error, Result};
use crate::store::lines_as_bytes;

/// Writes header, metadata, padding and data.
///
/// Cost: one pass over the data for its checksum, one to write it.
pub(crate) fn write(
    out: &mut dyn Write,
    filter: &SerializedView<'_>,
    metadata: &str,
) -> Result<()> {
    let metadata = metadata.as_bytes();
    if metadata.len() as u64 > MAX_METADATA {
        return Err(Error::invalid("metadata", "at most 1 MiB of JSON", metadata.len()));
    }
    let header = filter.complete_header(metadata.len() as u64, filter.checksum());
    out.write_all(&header.to_bytes(metadata))?;
    out.write_all(metadata)?;
    let padding = header.data_at() as usize - HEADER - metadata.len();
    out.write_all(&vec![0; padding])?;
    for part in filter.parts() {
        out.write_all(lines_as_bytes(part))?;
    }
    out.flush()?;
    Ok(())
}

/// Returns the bytes of the file of a filter without metadata.
pub(crate) fn to_bytes(filter: &SerializedView<'_>) -> Result<Vec<u8>> {
    let len = filter.complete_header(0, 0).file_length();
    let mut bytes = Vec::new();
    usize::try_from(len)
        .ok()
        .and_then(|len| bytes.try_reserve_exact(len).ok())
        .ok_or_else(|| Error::alloc(len))?;
    write(&mut bytes, filter, "")?;
    Ok(bytes)
}

/// Writes a new file in the folder of `path`, and renames it when it is complete.
pub(crate) fn save(filter: &impl Save, path: &Path) -> Result<()> {
    replace_file(path, |file| write(file, &filter.serialized(), ""))
}

/// Writes a file, which replaces an earlier one only when it is complete.
///
/// # Errors
/// If writing fails; the earlier file is then unchanged.
pub fn replace_file(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    /// No two files of a process have one name.
    static NUMBER: AtomicU32 = AtomicU32::new(0);

    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-{number}.part", std::process::id()));
    let part = path.with_file_name(name);
    let mut file = File::options().write(true).create_new(true).open(&part)?;
    let written = write(&mut file)
        .and_then(|()| Ok(file.sync_all()?))
        .and_then(|()| Ok(fs::rename(&part, path)?));
    if written.is_err() {
        // The first error says more.
        let _ = fs::remove_file(&part);
    }
    written
}
