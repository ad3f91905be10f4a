//! The fields of a record that make its key.

use std::fmt;

use super::checksums;
use super::csv::{Columns, Dialect};
use super::hex_shape::Described;
use super::json::{JsonValues, NULL};
use super::rows::{self, RowKeys};

/// The part of a record that is its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fields {
    /// The whole line.
    #[default]
    Line,
    /// Columns of a CSV record.
    Columns(Columns),
    /// Values of a JSON record. Each line is one record.
    Json(JsonValues),
    /// The hash in a line of a checksum file, as of `sha1sum` or `hashdeep`; of several hashes the one
    /// with this number of digits. The key of a comment is empty.
    Checksum(Option<u64>),
    /// Columns of the rows of a table. Made from [`Columns`] for an input that is a table; not for
    /// callers.
    Rows(RowKeys),
    /// The text at the first of these places of a JSON record: its key is where it is in the record. Made
    /// by jobs on the parts of texts; not for callers.
    Text(JsonValues),
}

impl Fields {
    /// Returns the number of fields.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Line | Self::Checksum(_) | Self::Text(_) => 1,
            Self::Columns(columns) => columns.columns.len(),
            Self::Json(values) => values.0.len(),
            Self::Rows(keys) => keys.columns,
        }
    }

    /// Returns the values of a JSON record.
    pub(crate) fn json_values(&self) -> Option<&JsonValues> {
        match self {
            Self::Json(values) | Self::Text(values) => Some(values),
            _ => None,
        }
    }

    /// Returns how fields are printed: as the columns are read, with commas by default.
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Columns(columns) => columns.dialect(columns.separator.unwrap_or(b',')),
            _ => Dialect::RFC,
        }
    }

    /// Returns whether a field of a record is `null` or missing. Only JSON and tables have such fields.
    pub(super) fn any_null(&self, record: &[u8]) -> Result<bool, String> {
        match self {
            Self::Json(values) | Self::Text(values) => values.any_null(record),
            Self::Rows(keys) => {
                let key = rows::key(record);
                Ok(match keys.columns {
                    1 => key == [NULL],
                    _ => rows::fields(key).any(|field| field == [NULL]),
                })
            }
            Self::Line | Self::Columns(_) | Self::Checksum(_) => Ok(false),
        }
    }

    /// Appends the fields of a record to `key`.
    pub(crate) fn append(&self, record: &[u8], key: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Line => {
                key.extend_from_slice(record);
                Ok(())
            }
            Self::Columns(columns) => columns.append(record, key),
            Self::Json(values) => values.append(record, key),
            Self::Text(values) => values.append_place(record, key),
            Self::Checksum(length) => {
                let hash = checksums::hash(record, *length).ok_or_else(|| {
                    let found = Described { key: record, is_secret: false };
                    format!("found {found}, expected a hash and a file name")
                })?;
                key.extend_from_slice(hash);
                Ok(())
            }
            Self::Rows(_) => {
                key.extend_from_slice(rows::key(record));
                Ok(())
            }
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line => f.write_str("line"),
            Self::Columns(columns) => columns.fmt(f),
            Self::Json(values) | Self::Text(values) => values.fmt(f),
            Self::Checksum(_) => f.write_str("checksum"),
            Self::Rows(keys) => keys.fmt(f),
        }
    }
}
