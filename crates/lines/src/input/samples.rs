//! The first bytes of a compressed file or a table, and the length that follows from them.

use std::io::Read;
use std::sync::Arc;

use super::Input;
use super::compression::{self, Codec};
use super::range_reader::RangeReader;
use super::selected_records::SelectedRecords;
use crate::error::{Error, Result};
use crate::files::CheckTime;
use crate::tables::Table;

/// The decompressed length of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecompressedLength {
    /// The whole input was decompressed.
    Exact(u64),
    /// Extrapolated from the beginning of the input.
    Estimate(u64),
}

/// Calls `show` with the first `max` bytes of a compressed file, block by block, and returns its
/// decompressed length. `None` for other inputs. The decoder may use `memory` bytes.
pub(crate) fn decompressed_sample(
    input: &Input,
    max: u64,
    memory: u64,
    show: impl FnMut(&[u8]),
) -> Result<Option<DecompressedLength>> {
    if let Some(selected) = input.open_selected(memory, &())? {
        return selected_sample(input, selected, max, memory, show).map(Some);
    }
    if let Some(table) = &input.table {
        return table_sample(input, table, max, memory, show).map(Some);
    }
    let Some(codec) = input.codec() else { return Ok(None) };
    compressed_sample(input, codec, max, memory, show).map(Some)
}

/// Calls `show` with the first `max` bytes of a compressed file, and returns its decompressed length.
fn compressed_sample(
    input: &Input,
    codec: Codec,
    max: u64,
    memory: u64,
    mut show: impl FnMut(&[u8]),
) -> Result<DecompressedLength> {
    let (file, range) = input.file(CheckTime::Before, &())?;
    let packed = RangeReader::new(file.sequential(), range, None);
    let mut checked = None;
    let show = |block: &[u8]| {
        checked.get_or_insert_with(|| input.checks.check(&input.name, block, Some(codec)));
        show(block);
    };
    let (went, took) = compression::sample(codec, packed, max, memory, show)
        .map_err(|error| Error::read(&input.name, error))?;
    checked.unwrap_or(Ok(()))?;
    if went < max {
        return Ok(DecompressedLength::Exact(went));
    }
    let share = took.max(1) as f64 / (range.end - range.start).max(1) as f64;
    Ok(DecompressedLength::Estimate((went as f64 / share) as u64))
}

/// Calls `show` with the first records that are left of an input, about `max` bytes, and returns the
/// length of all that are left.
fn selected_sample(
    input: &Input,
    mut selected: SelectedRecords,
    max: u64,
    memory: u64,
    mut show: impl FnMut(&[u8]),
) -> Result<DecompressedLength> {
    let (mut buffer, mut bytes) = (vec![0; 64 << 10], 0);
    while bytes < max {
        match selected.read(&mut buffer).map_err(|error| Error::read(&input.name, error))? {
            0 => return Ok(DecompressedLength::Exact(bytes)),
            got => {
                show(&buffer[..got]);
                bytes += got as u64;
            }
        }
    }
    let all = match (&input.table, input.codec(), input.range()) {
        (Some(table), ..) => length_of(table_sample(input, table, max, memory, |_| ())?),
        (_, Some(codec), _) => length_of(compressed_sample(input, codec, max, memory, |_| ())?),
        (_, None, Some(range)) => range.end - range.start,
        (_, None, None) => selected.taken(),
    };
    let share = bytes as f64 / selected.taken().max(1) as f64;
    Ok(DecompressedLength::Estimate((all as f64 * share) as u64))
}

fn length_of(length: DecompressedLength) -> u64 {
    match length {
        DecompressedLength::Exact(bytes) | DecompressedLength::Estimate(bytes) => bytes,
    }
}

/// Calls `show` with the first frames of a table, about `max` bytes, and returns the length of all
/// frames.
fn table_sample(
    input: &Input,
    table: &Arc<Table>,
    max: u64,
    memory: u64,
    mut show: impl FnMut(&[u8]),
) -> Result<DecompressedLength> {
    let mut stream = table.keys(memory)?;
    let (mut buffer, mut bytes) = (vec![0; 64 << 10], 0);
    while bytes < max {
        match stream.read(&mut buffer).map_err(|error| Error::read(&input.name, error))? {
            0 => return Ok(DecompressedLength::Exact(bytes)),
            got => {
                show(&buffer[..got]);
                bytes += got as u64;
            }
        }
    }
    let share = table.rows() as f64 / stream.row().max(1) as f64;
    Ok(DecompressedLength::Estimate((bytes as f64 * share) as u64))
}
