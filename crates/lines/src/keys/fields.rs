//! The fields of a record that make its key.

use std::fmt;

/// The part of a record that is its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fields {
    /// The whole line.
    #[default]
    Line,
}

impl Fields {
    /// Appends the fields of a record to `key`.
    pub(super) fn append(&self, record: &[u8], key: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Line => key.extend_from_slice(record),
        }
        Ok(())
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line => f.write_str("line"),
        }
    }
}
