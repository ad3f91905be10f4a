//! Rows of tables as records in a stream.
//!
//! A row becomes a *frame*: the length of what follows in four bytes, the number of the row in eight,
//! and the key; then the delimiter of the input. Numbers are in little-endian order. The key of one
//! column is its text; of several columns each has its length before it, as in a key of CSV fields.
//!
//! Invariant: frames of one table have ascending row numbers.

#![cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "tables are refused"))]

use std::fmt;

/// Bytes of the length before a frame.
const LENGTH: usize = size_of::<u32>();

/// Bytes of a frame before its key.
pub(crate) const HEAD: usize = LENGTH + size_of::<u64>();

/// Bits of a row's number in its table; those above are the number of the table in its job.
const ROW_BITS: u32 = 40;

/// The number of rows that no table reaches. A job has fewer than 2^24 tables.
pub(crate) const MAX_ROWS: u64 = 1 << ROW_BITS;

/// The number of a row, and of its table in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowId {
    pub(crate) table: u64,
    pub(crate) row: u64,
}

impl RowId {
    fn to_bits(self) -> u64 {
        self.table << ROW_BITS | self.row
    }

    fn of_bits(bits: u64) -> Self {
        Self { table: bits >> ROW_BITS, row: bits & (MAX_ROWS - 1) }
    }
}

/// The key columns of rows, whose frames have the keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowKeys {
    /// Number of columns.
    pub(super) columns: usize,
}

impl RowKeys {
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns }
    }
}

impl fmt::Display for RowKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("columns of rows")
    }
}

/// Appends a frame without its delimiter. `append` appends the key.
///
/// # Errors
/// If the key is longer than 4 GiB, or `append` fails.
pub(crate) fn append_frame(
    id: RowId,
    bytes: &mut Vec<u8>,
    append: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
) -> Result<(), String> {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; LENGTH]);
    bytes.extend_from_slice(&id.to_bits().to_le_bytes());
    append(bytes)?;
    let length = u32::try_from(bytes.len() - start - LENGTH).map_err(|_| super::TOO_LONG)?;
    bytes[start..start + LENGTH].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Returns the key of a frame.
pub(crate) fn key(frame: &[u8]) -> &[u8] {
    frame.get(HEAD..).unwrap_or_default()
}

/// Returns the fields of a key of several columns.
pub(crate) fn fields(mut key: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = key.split_first_chunk::<LENGTH>()?;
        let (field, rest) = rest.split_at((u32::from_le_bytes(*length) as usize).min(rest.len()));
        key = rest;
        Some(field)
    })
}

/// Returns the end of the frame at the start of `bytes`: the position of its delimiter. `None` if
/// `bytes` does not have it.
pub(crate) fn first_end(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*bytes.first_chunk()?);
    Some(LENGTH + length as usize).filter(|end| *end < bytes.len())
}

/// Finds frames in a stream that comes in pieces.
#[derive(Default)]
pub(crate) struct FrameScan {
    head: [u8; HEAD],
    /// Bytes in `head`.
    filled: usize,
    /// Bytes of the key that are missing.
    left: usize,
}

/// The next part of a stream of frames.
pub(crate) enum Part<'a> {
    /// A frame begins.
    Row(RowId),
    /// Bytes of its key.
    Key(&'a [u8]),
    /// Its delimiter: the frame ends.
    End,
}

impl FrameScan {
    /// Removes the next part from the start of `bytes`. `None` if `bytes` is empty.
    pub(crate) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Part<'a>> {
        if self.filled < HEAD {
            let take = (HEAD - self.filled).min(bytes.len());
            let (head, rest) = bytes.split_at(take);
            self.head[self.filled..self.filled + take].copy_from_slice(head);
            (self.filled, *bytes) = (self.filled + take, rest);
            if self.filled < HEAD {
                return None;
            }
            let (length, id) = self.head.split_at(LENGTH);
            let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
            self.left = length.saturating_sub(HEAD - LENGTH);
            return Some(Part::Row(RowId::of_bits(u64::from_le_bytes(
                id.try_into().unwrap_or_default(),
            ))));
        }
        if bytes.is_empty() {
            return None;
        }
        if self.left == 0 {
            (self.filled, *bytes) = (0, &bytes[1..]);
            return Some(Part::End);
        }
        let (key, rest) = bytes.split_at(self.left.min(bytes.len()));
        (self.left, *bytes) = (self.left - key.len(), rest);
        Some(Part::Key(key))
    }

    /// Returns the position of the last delimiter of a frame in the next piece.
    pub(crate) fn last_end(&mut self, piece: &[u8]) -> Option<usize> {
        let (mut rest, mut last) = (piece, None);
        while let Some(part) = self.next(&mut rest) {
            if let Part::End = part {
                last = Some(piece.len() - rest.len() - 1);
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_in_pieces_of_any_size() {
        let keys: [&[u8]; 4] = [b"", b"a\nb", b"\x0c\0\0\0", &[7; 300]];
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for (row, key) in (0..).zip(keys) {
            let id = RowId { table: 3, row };
            append_frame(id, &mut bytes, |bytes| {
                bytes.extend_from_slice(key);
                Ok(())
            })
            .unwrap();
            ends.push(bytes.len());
            bytes.push(b'\n');
        }
        for size in [1, 2, 5, 12, 13, 400, 1000] {
            let (mut scan, mut found, mut key) = (FrameScan::default(), Vec::new(), Vec::new());
            for piece in bytes.chunks(size) {
                let mut rest = piece;
                while let Some(part) = scan.next(&mut rest) {
                    match part {
                        Part::Row(id) => found.push((id, Vec::new())),
                        Part::Key(more) => key.extend_from_slice(more),
                        Part::End => found.last_mut().unwrap().1 = std::mem::take(&mut key),
                    }
                }
            }
            let expected =
                (0..).zip(keys).map(|(row, key)| (RowId { table: 3, row }, key.to_vec()));
            assert!(found.into_iter().eq(expected), "{size}");
            let (mut scan, mut last) = (FrameScan::default(), None);
            for (number, piece) in bytes.chunks(size).enumerate() {
                last = scan.last_end(piece).map(|at| number * size + at).or(last);
            }
            assert_eq!(last, ends.last().copied());
        }
        for cut in 0..=ends[0] {
            assert_eq!(first_end(&bytes[..cut]), None);
        }
        assert_eq!(first_end(&bytes), Some(ends[0]));
        assert_eq!(key(&bytes[ends[0] + 1..ends[1]]), b"a\nb");
    }
}
