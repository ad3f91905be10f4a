//! The ends of records: line ends, or the ends of CSV records.

use super::line_ends::line_ends;
use crate::input::Input;
use crate::keys::{Dialect, EndScan, rows};

/// How the records of an input end. All ends are one byte, which is not part of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordEnds {
    /// With this byte, anywhere.
    Line(u8),
    /// With an LF that is not inside quotes and not escaped.
    Csv(Dialect),
    /// As their frames say.
    Frame,
}

impl RecordEnds {
    /// Returns how the records of an input end.
    pub(crate) fn of(input: &Input, delimiter: u8) -> Self {
        if input.is_table() {
            return Self::Frame;
        }
        match input.csv_dialect() {
            Some(dialect) if !dialect.is_lines() => Self::Csv(dialect),
            _ => Self::Line(delimiter),
        }
    }

    /// Appends the positions of the first `max` ends in `bytes`, ascending. `bytes` begins with a
    /// record.
    pub(crate) fn find(self, bytes: &[u8], max: usize, ends: &mut Vec<usize>) {
        match self {
            Self::Line(delimiter) => line_ends(delimiter, bytes, max, ends),
            Self::Csv(dialect) => EndScan::new(dialect).ends(bytes, max, ends),
            Self::Frame => {
                let mut start = 0;
                while ends.len() < max
                    && let Some(end) = rows::first_end(&bytes[start..])
                {
                    ends.push(start + end);
                    start += end + 1;
                }
            }
        }
    }

    /// Returns the position of the first end. `bytes` begins with a record.
    pub(crate) fn first(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Line(delimiter) => memchr::memchr(delimiter, bytes),
            Self::Csv(dialect) => EndScan::new(dialect).first(bytes),
            Self::Frame => rows::first_end(bytes),
        }
    }

    /// Returns the position of the first end. `bytes` begins anywhere; of CSV it may begin inside
    /// quotes, as far as its own quotes show that.
    pub(crate) fn first_from_anywhere(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Csv(dialect) => EndScan::anywhere(dialect, bytes).first(bytes),
            Self::Line(_) | Self::Frame => self.first(bytes),
        }
    }

    /// Returns a search for the last end in a text that comes in pieces.
    pub(super) fn last(self) -> LastEnd {
        match self {
            Self::Line(delimiter) => LastEnd::Line(delimiter),
            Self::Csv(dialect) => LastEnd::Csv(EndScan::new(dialect)),
            Self::Frame => LastEnd::Frame(rows::FrameScan::default()),
        }
    }
}

/// Finds the last end in consecutive pieces of a text.
pub(super) enum LastEnd {
    Line(u8),
    Csv(EndScan),
    Frame(rows::FrameScan),
}

impl LastEnd {
    /// Returns the position of the last end in the next piece.
    pub(super) fn find(&mut self, piece: &[u8]) -> Option<usize> {
        match self {
            Self::Line(delimiter) => memchr::memrchr(*delimiter, piece),
            Self::Csv(scan) => scan.last(piece),
            Self::Frame(scan) => scan.last_end(piece),
        }
    }

    /// Returns whether the text so far ends inside quotes.
    pub(super) fn is_quoted(&self) -> bool {
        matches!(self, Self::Csv(scan) if scan.is_quoted())
    }
}
