//! Keys: the bytes by which records are compared, hashed and looked up.
//!
//! Without a [`KeySpec`] the key of a line is the line. A key specification takes [`Fields`] out of
//! each record and changes them with [`Transform`]s, in this order. The output is always the record
//! as it was read.
//!
//! Invariant: the key depends only on the bytes of the record, and for columns that are found by
//! name on the header of its input. It is the same in every pass, on every thread and machine.

mod buffer;
mod csv;
mod fields;
mod json;
mod transform;

use std::fmt;

pub(crate) use buffer::Keys;
pub(crate) use csv::EndScan;
pub use csv::{Column, Columns};
pub use fields::Fields;
pub use json::{JsonPointer, JsonValues};
pub use transform::Transform;

/// How the key of a record is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeySpec {
    /// The fields of the record that make the key.
    pub fields: Fields,
    /// Changes to the key, in order.
    pub transforms: Vec<Transform>,
}

impl KeySpec {
    /// Returns whether the key of a record is the record.
    #[must_use]
    pub fn is_line(&self) -> bool {
        self.fields == Fields::Line && self.transforms.is_empty()
    }

    /// Returns the specification for inputs that list keys, one per line: the same transforms.
    #[must_use]
    pub fn of_listed_keys(&self) -> Self {
        Self { fields: Fields::Line, transforms: self.transforms.clone() }
    }

    /// Appends the key of a record to `key`.
    ///
    /// # Errors
    /// If the record does not have the fields; the text says what is wrong.
    pub(crate) fn append_key(
        &self,
        record: &[u8],
        spare: &mut Vec<u8>,
        key: &mut Vec<u8>,
    ) -> Result<(), String> {
        let Some((last, before)) = self.transforms.split_last() else {
            return self.fields.append(record, key);
        };
        let mut from = Vec::new();
        std::mem::swap(&mut from, spare);
        from.clear();
        let taken = self.fields.append(record, &mut from);
        for transform in before {
            let mut to = Vec::with_capacity(from.len());
            transform.append(&from, &mut to);
            from = to;
        }
        last.append(&from, key);
        *spare = from;
        taken
    }
}

/// Bytes of a length in a key of several fields.
const LENGTH: usize = size_of::<u32>();

/// Appends one of several fields of a key: its length in four bytes, then what `append` appends.
fn append_with_length(
    key: &mut Vec<u8>,
    append: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
) -> Result<(), String> {
    let start = key.len() + LENGTH;
    key.resize(start, 0);
    append(key)?;
    let length = u32::try_from(key.len() - start).map_err(|_| "has a field of more than 4 GiB")?;
    key[start - LENGTH..start].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// The text of a specification: equal for equal specifications, for journals.
impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fields)?;
        self.transforms.iter().try_for_each(|transform| write!(f, ",{transform}"))
    }
}
