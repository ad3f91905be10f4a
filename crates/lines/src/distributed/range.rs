//! Byte ranges of files. A line belongs to the range in which it starts.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::input::{ContentChecks, FileStamp, Input, Source, open_all, split_fragment};
use crate::progress::Progress;
use crate::temp::{MAX_RANGES, NO_RANGES};

/// Bits of a position within a range; the bits above are the range's number.
pub(super) const OFFSET_BITS: u32 = MAX_RANGES.leading_zeros() + 1;

/// A byte range of a file: the lines that start in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// Its number in the order of its input, from 0.
    pub number: u64,
    /// The file.
    pub path: PathBuf,
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte. A compressed file must be one range.
    pub end: u64,
    /// The identity of the file when it was split.
    pub stamp: FileStamp,
}

/// Splits files, taken as one input, into ranges of about `size` bytes each. A compressed file is
/// one range; an empty file has none.
///
/// Cost: opens every file.
///
/// # Errors
/// If a file is missing, cannot be read, or is not a regular file; if there would be more than 2²⁴
/// ranges, or if the job is cancelled.
pub fn split(paths: &[PathBuf], size: u64, progress: &dyn Progress) -> Result<Vec<FileRange>> {
    let size = size.clamp(1, 1 << (OFFSET_BITS - 1));
    let mut ranges = Vec::new();
    for path in paths {
        check_cancelled(progress)?;
        // The content is checked when lines are read.
        let input = open(path, &Arc::new(ContentChecks::new(b'\n', true)))?;
        let ((length, whole), stamp) = input.file_length().zip(input.stamp()).ok_or_else(|| {
            Error::range(
                input.name(),
                0,
                0,
                "it is no file that can be read again; save it to one first",
            )
        })?;
        let parts = if whole { 1 } else { length.div_ceil(size) };
        if ranges.len() as u64 + parts > MAX_RANGES {
            let problem = "it makes more than 2^24 ranges; cut into larger ones";
            return Err(Error::range(input.name(), 0, length, problem));
        }
        // Equal sizes, so that no worker gets a small rest.
        let cut = |part: u64| (u128::from(length) * u128::from(part) / u128::from(parts)) as u64;
        for part in 0..parts {
            let number = ranges.len() as u64;
            let (start, end) = (cut(part), cut(part + 1));
            ranges.push(FileRange { number, path: path.clone(), start, end, stamp });
        }
    }
    Ok(ranges)
}

pub(super) fn check_cancelled(progress: &dyn Progress) -> Result<()> {
    if progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
}

pub(super) fn open(path: &std::path::Path, checks: &Arc<ContentChecks>) -> Result<Input> {
    if split_fragment(path).1.is_some() {
        let problem = "has keys of its own, which a job on several machines does not take";
        return Err(Error::input(&path.to_string_lossy(), problem)
            .advise("leave out the # and what follows it"));
    }
    let mut inputs = open_all(&[Source::Path(path.to_owned())], 0, |_| Arc::clone(checks))?;
    Ok(inputs.swap_remove(0))
}

/// Returns the numbers of the first and last range.
pub(super) fn numbers(ranges: &[FileRange]) -> (u64, u64) {
    let ends = ranges.first().zip(ranges.last());
    ends.map_or(NO_RANGES, |(first, last)| (first.number, last.number))
}

/// Checks that ranges are consecutive.
pub(super) fn check_order<'r>(ranges: impl IntoIterator<Item = &'r FileRange>) -> Result<()> {
    let mut next = None;
    for FileRange { number, path, start, end, .. } in ranges {
        if next.is_some_and(|next| next != *number) {
            let problem = "its number does not follow that of the range before; keep the order";
            return Err(Error::range(&path.to_string_lossy(), *start, *end, problem));
        }
        next = Some(number.wrapping_add(1));
    }
    Ok(())
}

/// Returns the first position of a range.
pub(super) fn base(range: &FileRange) -> u64 {
    range.number << OFFSET_BITS
}
