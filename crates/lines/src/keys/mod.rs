//! Keys: the bytes by which records are compared, hashed and looked up.
//!
//! Without a [`KeySpec`] the key of a line is the line. A key specification takes [`Fields`] out of
//! each record and changes them with [`Transform`]s, in this order. The output is always the record
//! as it was read.
//!
//! Invariant: the key depends only on the bytes of the record, and for columns that are found by
//! name on the header of its input. It is the same in every pass, on every thread and machine.

mod buffer;
mod fields;
mod transform;

use std::fmt;

pub(crate) use buffer::{Keys, Spare};
pub use fields::Fields;
pub use transform::{Transform, parse_transforms, transform_key, transforms_text};

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

    /// Returns how many times longer than its record a key can be.
    pub(crate) fn max_growth(&self) -> u64 {
        self.transforms.iter().map(Transform::max_growth).max().unwrap_or(1)
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
        spare: &mut Spare,
        key: &mut Vec<u8>,
    ) -> Result<(), String> {
        let Some((last, before)) = self.transforms.split_last() else {
            return self.fields.append(record, key);
        };
        if before.is_empty() && self.fields == Fields::Line {
            last.append(record, key);
            return Ok(());
        }
        spare.from.clear();
        self.fields.append(record, &mut spare.from)?;
        for transform in before {
            spare.to.clear();
            transform.append(&spare.from, &mut spare.to);
            std::mem::swap(&mut spare.from, &mut spare.to);
        }
        last.append(&spare.from, key);
        Ok(())
    }
}

/// The text of a specification: equal for equal specifications, for journals.
impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fields)?;
        self.transforms.iter().try_for_each(|transform| write!(f, ",{transform}"))
    }
}
