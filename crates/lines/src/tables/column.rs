//! The columns of a key in a schema, and the text of their values.
//!
//! | type | text |
//! |---|---|
//! | string, binary | its bytes |
//! | integer | decimal digits, with `-` if negative |
//! | boolean | `true`, `false` |
//! | float | the shortest digits that give the number again: `1.5`, `1.0`, `1e16`, `1e-7`, `NaN`, `inf` |
//! | decimal | digits with the point at its place: `-12.30` |
//! | date | `2026-11-23` |
//! | time | `15:04:05`, and as many digits of the second as are not zero at the end |
//! | timestamp | `2026-11-23T15:04:05`, with digits of the second as a time, and `Z` if it is an instant |
//! | duration | the number of its units, as Parquet stores it, which has no such type |
//! | UUID | `f81d4fae-7dec-11d0-a765-00a0c91e6bf6` |
//! | `arrow.json`, `arrow.bool8` | as a string, as a boolean |
//! | dictionary | the text of its value |
//! | null | the byte ff, as in JSON |
//!
//! Other types cannot be keys. Nor can other extension types of Arrow, which give the stored values
//! another meaning; Parquet has types of its own. A member of a structure is named by its path,
//! `page.url`; it is null if the structure is.

use std::io::Write as _;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use crate::keys::{Column, append_with_length, rows};

/// The key of `null`.
const NULL: u8 = 0xff;

/// What the stored values of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Themselves.
    Stored,
    Uuid,
    /// `false` if 0.
    Boolean,
}

impl Meaning {
    /// Returns that of a column in an Arrow schema; `None`: it has an extension type that is not known.
    fn of(field: &Field) -> Option<Self> {
        let extension = field.metadata().get(EXTENSION_TYPE_NAME_KEY).map(String::as_str);
        match (extension, field.data_type()) {
            (None, _) => Some(Self::Stored),
            (Some("arrow.json"), data_type) => data_type.is_string().then_some(Self::Stored),
            (Some("arrow.uuid"), DataType::FixedSizeBinary(16)) => Some(Self::Uuid),
            (Some("arrow.bool8"), DataType::Int8) => Some(Self::Boolean),
            _ => None,
        }
    }
}

/// A column of a key in a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPath {
    /// Index of the column, or of the structure that contains it.
    pub(super) root: usize,
    /// The names of the members that lead to it.
    pub(super) members: Vec<String>,
    pub(super) meaning: Meaning,
}

impl KeyPath {
    /// Returns the columns of a key.
    ///
    /// # Errors
    /// If the schema does not have a column, has its name twice, or its type has no text.
    pub(super) fn find(schema: &Schema, columns: &[Column]) -> Result<Vec<Self>, String> {
        columns.iter().map(|column| Self::find_one(schema, column)).collect()
    }

    fn find_one(schema: &Schema, column: &Column) -> Result<Self, String> {
        let (mut path, field, shown) = match column {
            Column::Number(number) => {
                let field = schema.fields().get(number - 1).ok_or_else(|| {
                    let columns = count_columns(schema.fields().len());
                    format!("has {columns}, expected a column {number}")
                })?;
                (Self::new(number - 1, vec![]), field, number.to_string())
            }
            Column::Name(name) => {
                let (path, field) = Self::named(schema, name)?;
                (path, field, format!("{name:?}"))
            }
        };
        if let DataType::Struct(members) = field.data_type() {
            let names: Vec<_> = members.iter().take(8).map(|field| field.name().as_str()).collect();
            return Err(format!(
                "column {shown} is a structure; name one of its members after a point: {}",
                names.join(", ")
            ));
        }
        if !has_text(field.data_type()) {
            return Err(format!(
                "column {shown} has the type {}, expected strings, numbers, dates or times",
                field.data_type()
            ));
        }
        path.meaning = Meaning::of(field).ok_or_else(|| {
            let name = field.metadata().get(EXTENSION_TYPE_NAME_KEY).map_or("", String::as_str);
            format!(
                "column {shown} has the extension type {name:?} of {}, expected strings, numbers, \
                 dates or times; convert it to one of these",
                field.data_type()
            )
        })?;
        Ok(path)
    }

    fn new(root: usize, members: Vec<String>) -> Self {
        Self { root, members, meaning: Meaning::Stored }
    }

    /// Returns the column with this name, or with this path.
    fn named<'a>(schema: &'a Schema, name: &str) -> Result<(Self, &'a Arc<Field>), String> {
        let mut found =
            schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
        match (found.next(), found.next()) {
            (Some((root, field)), None) => return Ok((Self::new(root, vec![]), field)),
            (Some((one, _)), Some((two, _))) => {
                return Err(format!(
                    "has two columns {name:?}, {} and {}; take one by its number",
                    one + 1,
                    two + 1
                ));
            }
            (None, _) => {}
        }
        let nested = schema.fields().iter().enumerate().find_map(|(root, field)| {
            let rest = name.strip_prefix(field.name().as_str())?.strip_prefix('.')?;
            let (members, field) = member(field, rest)?;
            Some((Self::new(root, members), field))
        });
        nested.ok_or_else(|| {
            if schema.fields().is_empty() {
                return format!("has no columns, expected a column {name:?}");
            }
            let mut names: Vec<_> =
                schema.fields().iter().take(20).map(|f| format!("{:?}", f.name())).collect();
            if schema.fields().len() > names.len() {
                names.push(format!("{} more", schema.fields().len() - names.len()));
            }
            format!("has no column {name:?}, but {}", names.join(", "))
        })
    }
}

/// Returns a number of columns as text: `1 column`.
pub(super) fn count_columns(count: usize) -> String {
    match count {
        0 => "no columns".to_owned(),
        1 => "1 column".to_owned(),
        _ => format!("{count} columns"),
    }
}

/// Returns the member at a path, and the names that lead to it.
fn member<'a>(field: &'a Arc<Field>, path: &str) -> Option<(Vec<String>, &'a Arc<Field>)> {
    let DataType::Struct(fields) = field.data_type() else { return None };
    fields.iter().find_map(|field| {
        let rest = path.strip_prefix(field.name().as_str())?;
        if rest.is_empty() {
            return Some((vec![field.name().clone()], field));
        }
        let (mut members, found) = member(field, rest.strip_prefix('.')?)?;
        members.insert(0, field.name().clone());
        Some((members, found))
    })
}

/// Returns whether values of the type have a text.
fn has_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => has_text(value),
        data_type => {
            data_type.is_integer()
                || data_type.is_floating()
                || data_type.is_string()
                || matches!(
                    data_type,
                    DataType::Null
                        | DataType::Boolean
                        | DataType::Binary
                        | DataType::LargeBinary
                        | DataType::BinaryView
                        | DataType::FixedSizeBinary(_)
                        | DataType::Date32
                        | DataType::Date64
                        | DataType::Time32(_)
                        | DataType::Time64(_)
                        | DataType::Timestamp(..)
                        | DataType::Duration(_)
                        | DataType::Decimal32(..)
                        | DataType::Decimal64(..)
                        | DataType::Decimal128(..)
                        | DataType::Decimal256(..)
                )
        }
    }
}

/// The keys of a batch of rows.
pub(super) struct KeyBatch {
    columns: Vec<KeyColumn>,
    pub(super) rows: usize,
}

/// The values of a column of a key.
struct KeyColumn {
    values: ArrayRef,
    /// The structures that contain it.
    around: Vec<ArrayRef>,
    meaning: Meaning,
}

impl KeyBatch {
    /// Returns the keys of a batch with only some columns. The root of a path is an index in the
    /// batch.
    pub(super) fn new(batch: &RecordBatch, paths: &[KeyPath]) -> Result<Self, String> {
        let missing = || "a batch of rows lacks a column".to_owned();
        let column = |path: &KeyPath| {
            let mut values = batch.columns().get(path.root).cloned().ok_or_else(missing)?;
            let mut around = Vec::new();
            for name in &path.members {
                let inner = values.as_struct_opt().and_then(|values| values.column_by_name(name));
                let inner = inner.cloned().ok_or_else(missing)?;
                around.push(std::mem::replace(&mut values, inner));
            }
            Ok(KeyColumn { values, around, meaning: path.meaning })
        };
        let columns = paths.iter().map(column).collect::<Result<_, String>>()?;
        Ok(Self { columns, rows: batch.num_rows() })
    }

    /// Appends the key of a row.
    pub(super) fn append(&self, row: usize, key: &mut Vec<u8>) -> Result<(), String> {
        match &self.columns[..] {
            [one] => one.append(row, key),
            several => several
                .iter()
                .try_for_each(|column| append_with_length(key, |key| column.append(row, key))),
        }
    }

    /// Appends the frame of a row.
    pub(super) fn append_frame(
        &self,
        row: usize,
        id: rows::RowId,
        bytes: &mut Vec<u8>,
    ) -> Result<(), String> {
        rows::append_frame(id, bytes, |key| self.append(row, key))
    }
}

impl KeyColumn {
    fn append(&self, row: usize, key: &mut Vec<u8>) -> Result<(), String> {
        if self.around.iter().any(|around| around.is_null(row)) {
            key.push(NULL);
            return Ok(());
        }
        let values = self.values.as_ref();
        if self.meaning == Meaning::Stored || values.is_null(row) {
            return append_text(values, row, key);
        }
        let uuid =
            values.as_fixed_size_binary_opt().and_then(|uuids| uuids.value(row).first_chunk());
        match (uuid, values.as_primitive_opt::<Int8Type>()) {
            (Some(uuid), _) => append_uuid(*uuid, key),
            (None, Some(booleans)) => {
                let text = if booleans.value(row) == 0 { "false" } else { "true" };
                key.extend_from_slice(text.as_bytes());
            }
            (None, None) => return append_text(values, row, key),
        }
        Ok(())
    }
}

/// Appends the text of a UUID.
fn append_uuid(uuid: [u8; 16], key: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (number, byte) in uuid.into_iter().enumerate() {
        if matches!(number, 4 | 6 | 8 | 10) {
            key.push(b'-');
        }
        key.extend([byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]));
    }
}

/// Appends the text of a value.
fn append_text(values: &dyn Array, row: usize, key: &mut Vec<u8>) -> Result<(), String> {
    if values.is_null(row) {
        key.push(NULL);
        return Ok(());
    }
    macro_rules! shown {
        ($type:ty) => {
            write!(key, "{}", values.as_primitive::<$type>().value(row))
        };
    }
    macro_rules! decimal {
        ($type:ty) => {
            key.write_all(values.as_primitive::<$type>().value_as_string(row).as_bytes())
        };
    }
    macro_rules! number {
        ($type:ty) => {
            i64::from(values.as_primitive::<$type>().value(row))
        };
    }
    // Writing to a vector does not fail.
    let _ = match values.data_type() {
        DataType::Utf8View => return bytes(values.as_string_view().value(row).as_bytes(), key),
        DataType::Utf8 => return bytes(values.as_string::<i32>().value(row).as_bytes(), key),
        DataType::LargeUtf8 => return bytes(values.as_string::<i64>().value(row).as_bytes(), key),
        DataType::BinaryView => return bytes(values.as_binary_view().value(row), key),
        DataType::Binary => return bytes(values.as_binary::<i32>().value(row), key),
        DataType::LargeBinary => return bytes(values.as_binary::<i64>().value(row), key),
        DataType::FixedSizeBinary(_) => {
            return bytes(values.as_fixed_size_binary().value(row), key);
        }
        DataType::Dictionary(..) => {
            let dictionary = values.as_any_dictionary();
            let at = dictionary.normalized_keys_at(row)?;
            return append_text(dictionary.values().as_ref(), at, key);
        }
        DataType::Null => {
            key.push(NULL);
            Ok(())
        }
        DataType::Boolean => write!(key, "{}", values.as_boolean().value(row)),
        DataType::Int8 => shown!(Int8Type),
        DataType::Int16 => shown!(Int16Type),
        DataType::Int32 => shown!(Int32Type),
        DataType::Int64 => shown!(Int64Type),
        DataType::UInt8 => shown!(UInt8Type),
        DataType::UInt16 => shown!(UInt16Type),
        DataType::UInt32 => shown!(UInt32Type),
        DataType::UInt64 => shown!(UInt64Type),
        DataType::Float16 => {
            write!(key, "{:?}", values.as_primitive::<Float16Type>().value(row).to_f32())
        }
        DataType::Float32 => write!(key, "{:?}", values.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => write!(key, "{:?}", values.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        DataType::Duration(TimeUnit::Second) => shown!(DurationSecondType),
        DataType::Duration(TimeUnit::Millisecond) => shown!(DurationMillisecondType),
        DataType::Duration(TimeUnit::Microsecond) => shown!(DurationMicrosecondType),
        DataType::Duration(TimeUnit::Nanosecond) => shown!(DurationNanosecondType),
        DataType::Date32 => write_date(key, number!(Date32Type)),
        DataType::Date64 => write_date(key, number!(Date64Type).div_euclid(86_400_000)),
        DataType::Time32(TimeUnit::Second) => write_time(key, number!(Time32SecondType), 0),
        DataType::Time32(_) => write_time(key, number!(Time32MillisecondType), 3),
        DataType::Time64(TimeUnit::Microsecond) => {
            write_time(key, number!(Time64MicrosecondType), 6)
        }
        DataType::Time64(_) => write_time(key, number!(Time64NanosecondType), 9),
        DataType::Timestamp(unit, zone) => {
            let (ticks, digits) = match unit {
                TimeUnit::Second => (number!(TimestampSecondType), 0),
                TimeUnit::Millisecond => (number!(TimestampMillisecondType), 3),
                TimeUnit::Microsecond => (number!(TimestampMicrosecondType), 6),
                TimeUnit::Nanosecond => (number!(TimestampNanosecondType), 9),
            };
            let day = 86_400 * 10_i64.pow(digits);
            let _ = write_date(key, ticks.div_euclid(day));
            key.push(b'T');
            let _ = write_time(key, ticks.rem_euclid(day), digits);
            write!(key, "{}", if zone.is_some() { "Z" } else { "" })
        }
        other => return Err(format!("has a value of the type {other}, which has no text")),
    };
    Ok(())
}

fn bytes(value: &[u8], key: &mut Vec<u8>) -> Result<(), String> {
    key.extend_from_slice(value);
    Ok(())
}

/// Writes the day with this number from 1970-01-01 on, in the Gregorian calendar. Source: Howard
/// Hinnant's `civil_from_days`.
fn write_date(key: &mut Vec<u8>, days: i64) -> std::io::Result<()> {
    // Days from 0000-03-01 on; the range of days fits because ticks are at least days.
    let shifted = i128::from(days) + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    let sign = if year < 0 { "-" } else { "" };
    write!(key, "{sign}{:04}-{month:02}-{day:02}", year.abs())
}

/// Writes the time of a day in ticks of 10^-`digits` seconds.
fn write_time(key: &mut Vec<u8>, ticks: i64, digits: u32) -> std::io::Result<()> {
    let second = 10_i64.pow(digits);
    let (seconds, mut fraction) = (ticks.div_euclid(second), ticks.rem_euclid(second));
    let (hour, minute, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    write!(key, "{hour:02}:{minute:02}:{seconds:02}")?;
    if fraction == 0 {
        return Ok(());
    }
    let mut width = digits as usize;
    while fraction % 10 == 0 {
        (fraction, width) = (fraction / 10, width - 1);
    }
    write!(key, ".{fraction:0width$}")
}

/// The key of a row of a dictionary.
trait DictionaryKey {
    /// Returns the index of a row's value.
    fn normalized_keys_at(&self, row: usize) -> Result<usize, String>;
}

impl DictionaryKey for dyn arrow_array::array::AnyDictionaryArray + '_ {
    fn normalized_keys_at(&self, row: usize) -> Result<usize, String> {
        let keys = self.keys();
        macro_rules! key {
            ($type:ty) => {
                usize::try_from(keys.as_primitive::<$type>().value(row)).ok()
            };
        }
        let at = match keys.data_type() {
            DataType::Int8 => key!(Int8Type),
            DataType::Int16 => key!(Int16Type),
            DataType::Int32 => key!(Int32Type),
            DataType::Int64 => key!(Int64Type),
            DataType::UInt8 => key!(UInt8Type),
            DataType::UInt16 => key!(UInt16Type),
            DataType::UInt32 => key!(UInt32Type),
            DataType::UInt64 => key!(UInt64Type),
            _ => None,
        };
        at.filter(|at| *at < self.values().len())
            .ok_or_else(|| "has an index outside of its dictionary".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_columns_are_errors_that_count_columns() {
        let error = |fields: Vec<Field>, column| {
            KeyPath::find(&Schema::new(fields), &[column]).unwrap_err()
        };
        let one = vec![Field::new("u", DataType::Utf8, true)];
        assert_eq!(error(one, Column::Number(2)), "has 1 column, expected a column 2");
        assert_eq!(error(vec![], Column::Number(1)), "has no columns, expected a column 1");
        let named = Column::Name("u".to_owned());
        assert_eq!(error(vec![], named), "has no columns, expected a column \"u\"");
    }

    #[test]
    fn extension_types_without_a_known_meaning_are_errors() {
        let found = |name: &str, data_type: DataType| {
            let metadata = [(EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned())];
            let field = Field::new("u", data_type, true).with_metadata(metadata);
            let path = KeyPath::find(&Schema::new(vec![field]), &[Column::Number(1)]);
            path.map(|paths| paths[0].meaning)
        };
        assert_eq!(found("arrow.uuid", DataType::FixedSizeBinary(16)), Ok(Meaning::Uuid));
        assert_eq!(found("arrow.bool8", DataType::Int8), Ok(Meaning::Boolean));
        for text in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
            assert_eq!(found("arrow.json", text), Ok(Meaning::Stored));
        }
        let uuids = DataType::FixedSizeBinary(16);
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(uuids));
        for (name, data_type) in [
            ("arrow.opaque", DataType::Binary),
            ("geoarrow.wkb", DataType::Binary),
            ("arrow.uuid", DataType::Utf8),
            ("arrow.uuid", dictionary),
            ("arrow.bool8", DataType::UInt8),
            ("arrow.json", DataType::Binary),
            ("", DataType::Int8),
        ] {
            let text =
                format!("column 1 has the extension type {name:?} of {data_type}, expected ");
            assert!(found(name, data_type).unwrap_err().starts_with(&text), "{text}");
        }
    }
}
