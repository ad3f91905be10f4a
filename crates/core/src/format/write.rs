//! Writing a `.petal` file.

use std::io::Write;

use xxhash_rust::xxh3::xxh3_64;

use super::header::{HEADER, Header, MOST_METADATA};
use crate::error::{Error, Result};

/// Writes header, metadata, padding and data. The lengths and the checksums of `header` are
/// filled in here.
///
/// Cost: one pass over the data for its checksum, one to write it.
pub(crate) fn write(
    mut out: impl Write,
    mut header: Header,
    metadata: &str,
    data: &[u8],
) -> Result<()> {
    let metadata = metadata.as_bytes();
    if metadata.len() as u64 > MOST_METADATA {
        return Err(Error::invalid("metadata", "at most 1 MiB of JSON", metadata.len()));
    }
    header.metadata_length = metadata.len() as u64;
    header.data_length = data.len() as u64;
    header.data_sum = xxh3_64(data);
    out.write_all(&header.to_bytes(metadata))?;
    out.write_all(metadata)?;
    let padding = header.data_at() as usize - HEADER - metadata.len();
    out.write_all(&vec![0; padding])?;
    out.write_all(data)?;
    out.flush()?;
    Ok(())
}
