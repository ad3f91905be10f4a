//! Writing a `.petal` file.

use std::io::Write;

use super::header::{HEADER, MAX_METADATA};
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
