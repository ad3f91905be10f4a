//! Writing a `.petal` file.

use std::io::Write;

use super::header::{HEADER, MOST_METADATA};
use super::image::Image;
use crate::error::{Error, Result};
use crate::store::bytes_of;

/// Writes header, metadata, padding and data.
///
/// Cost: one pass over the data for its checksum, one to write it.
pub(crate) fn write(mut out: impl Write, image: &Image<'_>, metadata: &str) -> Result<()> {
    let metadata = metadata.as_bytes();
    if metadata.len() as u64 > MOST_METADATA {
        return Err(Error::invalid("metadata", "at most 1 MiB of JSON", metadata.len()));
    }
    let header = image.sealed(metadata.len() as u64, image.sum());
    out.write_all(&header.to_bytes(metadata))?;
    out.write_all(metadata)?;
    let padding = header.data_at() as usize - HEADER - metadata.len();
    out.write_all(&vec![0; padding])?;
    for part in image.parts() {
        out.write_all(bytes_of(part))?;
    }
    out.flush()?;
    Ok(())
}
