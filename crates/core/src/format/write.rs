//! Writing a `.petal` file.

use std::borrow::Cow;
use std::io::Write;

use xxhash_rust::xxh3::Xxh3;

use super::header::{HEADER, Header, MOST_METADATA};
use crate::error::{Error, Result};
use crate::store::{Line, bytes_of};

/// Writes header, metadata, padding and data. The lengths and the checksums of `header` are
/// filled in here.
///
/// Cost: one pass over the data for its checksum, one to write it.
pub(crate) fn write(
    mut out: impl Write,
    mut header: Header,
    metadata: &str,
    data: &[Cow<'_, [Line]>],
) -> Result<()> {
    let metadata = metadata.as_bytes();
    if metadata.len() as u64 > MOST_METADATA {
        return Err(Error::invalid("metadata", "at most 1 MiB of JSON", metadata.len()));
    }
    header.metadata_length = metadata.len() as u64;
    let mut sum = Xxh3::new();
    data.iter().for_each(|part| sum.update(bytes_of(part)));
    header.data_length = data.iter().map(|part| size_of_val(&**part) as u64).sum();
    header.data_sum = sum.digest();
    out.write_all(&header.to_bytes(metadata))?;
    out.write_all(metadata)?;
    let padding = header.data_at() as usize - HEADER - metadata.len();
    out.write_all(&vec![0; padding])?;
    for part in data {
        out.write_all(bytes_of(part))?;
    }
    out.flush()?;
    Ok(())
}
