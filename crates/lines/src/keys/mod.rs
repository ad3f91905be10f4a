//! Keys: the bytes by which records are compared, hashed and looked up.
//!
//! Without a [`KeySpec`] the key of a line is the line. A key specification takes [`Fields`] out of
//! each record and changes them with [`Transform`]s, in this order. The output is always the record
//! as it was read.
//!
//! Invariant: the key depends only on the bytes of the record, and for columns that are found by
//! name on the header of its input. It is the same in every pass, on every thread and machine.

mod buffer;
mod checksums;
mod csv;
mod fields;
mod found_values;
mod hex_shape;
mod json;
mod parts;
mod record_rules;
pub(crate) mod rows;
mod spelling;
mod transform;

use std::fmt;

pub(crate) use buffer::{Keys, Spare};
pub use csv::{Column, Columns, Dialect, Quoting, csv_records};
pub(crate) use csv::{EndScan, HeaderProblem, field_values, guess_separator};
pub use fields::Fields;
pub(crate) use found_values::{Finding, FoundValues, note_findings};
pub(crate) use hex_shape::{HexCase, HexDigits};
pub use hex_shape::{HexShape, OtherShape};
pub use json::{JsonPointer, JsonValues, json_values};
pub(crate) use json::{ValuePart, ValueScan, append_compact, is_text, json_text};
pub use parts::PartUnit;
pub(crate) use parts::{PartRules, Parts, count_parts};
pub(crate) use record_rules::KeyKind;
pub use record_rules::{Alike, RecordRules};
pub use rows::RowKeys;
pub(crate) use spelling::{LineEnds, SeenSpelling};
pub use spelling::{Spelling, SpellingDifference};
use transform::Refused;
pub use transform::{Transform, parse_transforms, transform_key, transforms_text};

/// How the key of a record is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeySpec {
    /// The fields of the record that make the key.
    pub fields: Fields,
    /// How inputs are read whose names have [columns](crate::Source::of_name), if `fields` are none. Its
    /// own columns have no effect.
    pub csv: Columns,
    /// Changes to the key, in order.
    pub transforms: Vec<Transform>,
    /// Which records are compared.
    pub records: RecordRules,
}

impl KeySpec {
    /// Returns whether the key of a record is the record.
    #[must_use]
    pub fn is_line(&self) -> bool {
        self.fields == Fields::Line && self.transforms.is_empty() && !self.records.makes_distinct()
    }

    /// Returns whether the keys of these records are the records. It may say no if they are.
    pub(crate) fn keeps<'a>(&self, records: impl Iterator<Item = &'a [u8]>) -> bool {
        match &self.transforms[..] {
            [Transform::ToCase(shape)] => {
                let is_line = self.fields == Fields::Line && !self.records.makes_distinct();
                is_line && shape.has(records)
            }
            _ => self.is_line(),
        }
    }

    /// Returns how many times longer than its record a key can be.
    pub(crate) fn max_growth(&self) -> u64 {
        Transform::max_growth(&self.transforms)
    }

    /// Returns whether a transform refuses some keys.
    pub(crate) fn refuses_keys(&self) -> bool {
        self.transforms.iter().any(Transform::refuses)
    }

    /// Returns the specification for a filter that is queried after the transforms `queries`: if these
    /// compute digests, it refuses keys that cannot equal one, and changes the others to their case.
    #[must_use]
    pub fn queried_after(&self, queries: &[Transform]) -> Self {
        let mut transforms = self.transforms.clone();
        transforms.extend(Transform::to_shape_of(queries, &self.transforms));
        Self { transforms, ..self.clone() }
    }

    /// Returns the specification for inputs that list keys, one per line unless their names say
    /// otherwise: the same transforms.
    #[must_use]
    pub fn of_listed_keys(&self) -> Self {
        Self { csv: self.csv.clone(), transforms: self.transforms.clone(), ..Self::default() }
    }

    /// Returns the key of a record without its line end. Columns must be given by their numbers.
    ///
    /// # Errors
    /// If the record does not have the fields, or a transform refuses one; the text says what is wrong.
    pub fn key(&self, record: &[u8]) -> Result<Vec<u8>, String> {
        let mut key = Vec::new();
        self.append_key(record, &mut Spare::default(), &mut key).map_err(|problem| problem.text)?;
        Ok(key)
    }

    /// Appends the key of a record to `key`, unless the rules treat it differently. Returns what it is.
    ///
    /// # Errors
    /// As of [`append_key`](Self::append_key).
    pub(crate) fn append_kind(
        &self,
        record: &[u8],
        spare: &mut Spare,
        key: &mut Vec<u8>,
    ) -> Result<KeyKind, KeyProblem> {
        let RecordRules { nulls, empty, .. } = self.records;
        if nulls != Alike::One && self.fields.any_null(record)? {
            return Ok(KeyKind::Null);
        }
        let start = key.len();
        if let Err(problem) = self.append_key(record, spare, key) {
            key.truncate(start);
            // A transform may refuse an empty key.
            let is_empty = empty != Alike::One
                && self.fields.append(record, key).is_ok()
                && key.len() == start;
            key.truncate(start);
            return if is_empty { Ok(KeyKind::Empty) } else { Err(problem) };
        }
        let own = &key[start..];
        let is_empty =
            || own.is_empty() || self.fields.count() > 1 && rows::fields(own).all(<[u8]>::is_empty);
        if empty != Alike::One && is_empty() {
            key.truncate(start);
            return Ok(KeyKind::Empty);
        }
        Ok(KeyKind::Plain)
    }

    /// Appends the key of a record to `key`.
    ///
    /// # Errors
    /// If the record does not have the fields, or a transform refuses one.
    pub(crate) fn append_key(
        &self,
        record: &[u8],
        spare: &mut Spare,
        key: &mut Vec<u8>,
    ) -> Result<(), KeyProblem> {
        match (&self.transforms[..], &self.fields) {
            ([], fields) => fields.append(record, key)?,
            ([one], Fields::Line) => {
                one.append(record, key).map_err(|Refused| self.refused(one, record))?;
            }
            (_, fields) if fields.count() == 1 => {
                spare.from.clear();
                fields.append(record, &mut spare.from)?;
                // A comment has no hash.
                if matches!(fields, Fields::Checksum(_)) && spare.from.is_empty() {
                    return Ok(());
                }
                self.transform(spare, key)?;
            }
            (_, fields) => {
                let mut joined = std::mem::take(&mut spare.fields);
                joined.clear();
                fields.append(record, &mut joined)?;
                self.transform_each(&joined, spare, key)?;
                spare.fields = joined;
            }
        }
        Ok(())
    }

    /// Appends the transformed bytes of `spare.from` to `key`.
    fn transform(&self, spare: &mut Spare, key: &mut Vec<u8>) -> Result<(), KeyProblem> {
        let Some((last, before)) = self.transforms.split_last() else {
            key.extend_from_slice(&spare.from);
            return Ok(());
        };
        for transform in before {
            spare.to.clear();
            let appended = transform.append(&spare.from, &mut spare.to);
            appended.map_err(|Refused| self.refused(transform, &spare.from))?;
            std::mem::swap(&mut spare.from, &mut spare.to);
        }
        last.append(&spare.from, key).map_err(|Refused| self.refused(last, &spare.from))
    }

    /// Says why one of the transforms refused a key.
    fn refused(&self, transform: &Transform, key: &[u8]) -> KeyProblem {
        let other_shape = match transform {
            Transform::ToCase(shape) => shape.length.map(|digits| OtherShape::new(key, digits)),
            _ => None,
        };
        KeyProblem { text: transform.refusal(key, &self.transforms), other_shape }
    }

    /// Appends several fields to `key`, each transformed for itself. `joined` has each after its
    /// length.
    fn transform_each(
        &self,
        mut joined: &[u8],
        spare: &mut Spare,
        key: &mut Vec<u8>,
    ) -> Result<(), KeyProblem> {
        while let Some((length, rest)) = joined.split_first_chunk::<LENGTH>() {
            let length = (u32::from_le_bytes(*length) as usize).min(rest.len());
            let (field, rest) = rest.split_at(length);
            spare.from.clear();
            spare.from.extend_from_slice(field);
            append_with_length(key, |key| self.transform(spare, key))?;
            joined = rest;
        }
        Ok(())
    }
}

/// Why a record has no key.
#[derive(Debug)]
pub(crate) struct KeyProblem {
    /// A predicate of the record, or a clause.
    pub(crate) text: String,
    /// How the key differs if it has another shape than those of the filter.
    pub(crate) other_shape: Option<OtherShape>,
}

impl From<String> for KeyProblem {
    fn from(text: String) -> Self {
        Self { text, other_shape: None }
    }
}

const TOO_LONG: &str = "has a field of more than 4 GiB";

/// Bytes of a length in a key of several fields.
const LENGTH: usize = size_of::<u32>();

/// Appends one of several fields of a key: its length in four bytes, then what `append` appends.
pub(crate) fn append_with_length<E: From<String>>(
    key: &mut Vec<u8>,
    append: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = key.len() + LENGTH;
    key.resize(start, 0);
    append(key)?;
    let length = u32::try_from(key.len() - start).map_err(|_| TOO_LONG.to_owned())?;
    key[start - LENGTH..start].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// The text of a specification: equal for equal specifications, for journals.
impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fields)?;
        self.transforms.iter().try_for_each(|transform| write!(f, ",{transform}"))?;
        self.records.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_fields_is_transformed() {
        let columns = |list: &str| Columns {
            columns: Columns::parse_list(list).unwrap(),
            separator: Some(b','),
            ..Columns::default()
        };
        let key = |fields: Fields, transforms: &str, record: &str| {
            let transforms = parse_transforms(transforms).unwrap();
            let spec = KeySpec { fields, transforms, ..KeySpec::default() };
            let mut key = Vec::new();
            spec.append_key(record.as_bytes(), &mut Spare::default(), &mut key).unwrap();
            key
        };
        // A length may be the code of a letter or of a space.
        let long = "B".repeat(65);
        let record = format!("{long}, c ,{}", " ".repeat(32));
        let lower = "b".repeat(65);
        let expected = [&[65, 0, 0, 0][..], lower.as_bytes(), &[0; 4], b"\x01\0\0\0c"];
        let three = Fields::Columns(columns("1,3,2"));
        assert_eq!(key(three.clone(), "lowercase,trim", &record), expected.concat());
        assert_eq!(key(three, "trim,lowercase", &record), expected.concat());
        assert_eq!(key(Fields::Columns(columns("2")), "trim", &record), b"c");
        assert_eq!(key(Fields::Line, "trim,lowercase", " A\r"), b"a");
    }
}
