//! The part of a Parquet footer that concerns one column: the type of its values, and for each row
//! group the location of its Bloom filter.
//!
//! ```text
//! FileMetaData  2 schema: a list, a node before its children   4 row groups: a list
//! SchemaElement 1 type  2 length  4 name  5 children  6 converted type  7 scale  8 precision
//!               10 logical type
//! RowGroup      1 columns: a list, in the order of the schema's leaves      3 rows
//! ColumnChunk   1 another file  3 ColumnMetaData  8 and 9 encryption
//! ColumnMetaData 1 type  3 path  14 offset of the filter  15 its length
//! ```
//!
//! Cost: one pass over the footer; other columns are skipped.

use super::column_type::{ColumnType, MAX_DECIMAL_BYTES, MAX_PRECISION, Stored, Text};
use crate::encoding::thrift::{Kind, Reader};
use crate::error::{Error, Result};

/// A row group, with the location of one column's filter.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RowGroup {
    /// Number of rows.
    pub rows: u64,
    pub(super) column_type: ColumnType,
    pub(super) filter: Option<FilterLocation>,
}

impl RowGroup {
    /// Returns true if the column has a filter in this row group.
    #[must_use]
    pub fn has_filter(&self) -> bool {
        self.filter.is_some()
    }
}

/// The location of a filter, as stated by the footer.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterLocation {
    pub(super) at: u64,
    length: Option<u64>,
}

impl FilterLocation {
    fn new(at: i64, length: Option<i32>) -> Result<Self> {
        let bad = |what, found: i64| Error::bad_file(what, "1 or more", found);
        Ok(Self {
            at: u64::try_from(at).map_err(|_| bad("offset of a Bloom filter", at))?,
            length: length
                .map(|length| match length {
                    1.. => Ok(length.cast_unsigned().into()),
                    _ => Err(bad("length of a Bloom filter", length.into())),
                })
                .transpose()?,
        })
    }

    /// Returns its end offset, which must be within the `body` bytes before the footer.
    pub(super) fn end(self, body: u64) -> Result<u64> {
        if !(4..body).contains(&self.at) {
            let expected = format!("4 or more, before the footer at {body}");
            return Err(Error::bad_file("offset of a Bloom filter", expected, self.at));
        }
        let result = body - self.at;
        match self.length {
            Some(length) if length > result => {
                let expected = format!("{result} bytes at most before the footer");
                Err(Error::bad_file("length of a Bloom filter", expected, length))
            }
            length => Ok(self.at + length.unwrap_or(result)),
        }
    }
}

/// Returns all row groups in order, for one column.
pub(super) fn row_groups(footer: &[u8], column: &str) -> Result<Vec<RowGroup>> {
    let read = || {
        let (mut reader, mut last) = (Reader::new(footer), 0);
        let (mut leaf, mut groups) = (None, None);
        while let Some(field) = reader.field(&mut last)? {
            match (field.id, field.kind) {
                (2, Kind::List) => leaf = Some(schema(&mut reader, column)?),
                (4, Kind::List) => {
                    let Some(leaf) = &leaf else { return Err(missing("schema")) };
                    groups = Some(groups_of(&mut reader, leaf)?);
                }
                _ => reader.skip(field.kind)?,
            }
        }
        groups.ok_or_else(|| missing("list of row groups"))
    };
    read().map_err(|error| error.in_file("footer"))
}

/// A column of values: its index, its path, its physical type, and how it is hashed.
struct Leaf<'a> {
    number: usize,
    path: &'a str,
    physical: i32,
    column_type: ColumnType,
}

/// Maximum nesting of column groups.
const DEPTH: usize = 100;
/// Columns listed in the error for a missing column.
const NAMED: usize = 8;

/// A column group whose children are being read.
struct Open<'a, 'b> {
    children: usize,
    name: &'b [u8],
    /// The rest of the wanted path below this group, if it matches so far.
    rest: Option<&'a [u8]>,
}

/// Finds the column in the schema.
fn schema<'a>(reader: &mut Reader<'_>, column: &'a str) -> Result<Leaf<'a>> {
    let mut open = Vec::<Open<'_, '_>>::new();
    let (mut leaves, mut found, mut names, mut near) = (0, None, Vec::new(), Vec::new());
    for at in 0..structs(reader)? {
        let node = Node::read(reader)?;
        while open.pop_if(|group| group.children == 0).is_some() {}
        let path = match open.last_mut() {
            // The root, whose name is not part of a path.
            None if at == 0 => {
                open.push(Open {
                    children: node.children,
                    name: b"",
                    rest: Some(column.as_bytes()),
                });
                continue;
            }
            None => return Err(Error::bad_file("schema", "one root", "another behind it")),
            Some(group) => {
                group.children -= 1;
                group.rest
            }
        };
        if node.children > 0 {
            let rest = path.and_then(|path| path.strip_prefix(node.name)?.strip_prefix(b"."));
            if open.len() >= DEPTH {
                return Err(Error::bad_file("schema", format!("{DEPTH} levels at most"), "more"));
            }
            open.push(Open { children: node.children, name: node.name, rest });
            continue;
        }
        if names.len() < NAMED {
            names.push(path_of(&open, node.name));
        }
        let below = open.get(1).is_some_and(|group| group.name == column.as_bytes());
        if below && near.len() < NAMED {
            near.push(path_of(&open, node.name));
        }
        if path == Some(node.name) && found.replace((leaves, node)).is_some() {
            return Err(Error::refused(format!("two columns are named '{column}'")));
        }
        leaves += 1;
    }
    if open.iter().any(|group| group.children > 0) {
        return Err(Error::bad_file("schema", "more columns", "its end"));
    }
    let Some((number, node)) = found else {
        // Prefer columns below a group of that name.
        let names = if near.is_empty() { names } else { near };
        let more = if leaves > names.len() { ", ..." } else { "" };
        let names = names.join(", ");
        return Err(Error::refused(format!("it has no column '{column}', but {names}{more}")));
    };
    let physical = node.physical.ok_or_else(|| missing("type of a column"))?;
    Ok(Leaf { number, path: column, physical, column_type: node.column_type(physical, column)? })
}

/// Returns the path of a column, truncated for messages.
fn path_of(open: &[Open<'_, '_>], name: &[u8]) -> String {
    const SHOWN: usize = 40;
    let names = open.iter().skip(1).map(|group| group.name).chain([name]);
    // A name may contain any bytes; messages are one line.
    let names = names.map(|name| String::from_utf8_lossy(&name[..name.len().min(SHOWN)]));
    let names: Vec<_> = names.map(|name| name.escape_debug().to_string()).collect();
    names.join(".")
}

/// A node of the schema.
#[derive(Clone, Copy, Default)]
struct Node<'a> {
    name: &'a [u8],
    /// 0 for a column of values.
    children: usize,
    physical: Option<i32>,
    length: i32,
    converted: Option<i32>,
    scale: i32,
    precision: i32,
    logical: Option<Annotation>,
}

/// What the numbers or bytes of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Annotation {
    /// A value of this text, which is not a decimal.
    Text(Text),
    Decimal {
        scale: i32,
        precision: i32,
    },
    /// A type whose values are no keys.
    Other(&'static str),
}

impl<'a> Node<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let (mut node, mut last) = (Self::default(), 0);
        while let Some(field) = reader.field(&mut last)? {
            match (field.id, field.kind) {
                (1, Kind::I32) => node.physical = Some(reader.i32()?),
                (2, Kind::I32) => node.length = reader.i32()?,
                (4, Kind::Binary) => node.name = reader.binary()?,
                (5, Kind::I32) => {
                    let children = reader.i32()?;
                    node.children = usize::try_from(children).map_err(|_| {
                        Error::bad_file("children in the schema", "0 or more", children)
                    })?;
                }
                (6, Kind::I32) => node.converted = Some(reader.i32()?),
                (7, Kind::I32) => node.scale = reader.i32()?,
                (8, Kind::I32) => node.precision = reader.i32()?,
                (10, Kind::Struct) => node.logical = logical_type(reader)?,
                _ => reader.skip(field.kind)?,
            }
        }
        Ok(node)
    }

    /// Returns the annotation: the logical type, or the converted type of older files.
    fn annotation(&self) -> Annotation {
        let timestamp = |digits| Text::Timestamp { digits, instant: true };
        let text = match self.converted {
            _ if self.logical.is_some() => return self.logical.unwrap_or(PLAIN),
            Some(5) => {
                return Annotation::Decimal { scale: self.scale, precision: self.precision };
            }
            Some(6) => Text::Date,
            Some(7) => Text::Time(3),
            Some(8) => Text::Time(6),
            Some(9) => timestamp(3),
            Some(10) => timestamp(6),
            Some(11..=14) => Text::Unsigned,
            Some(15..=18) => Text::Integer,
            Some(21) => return Annotation::Other("INTERVAL"),
            // None, and the types of text.
            _ => Text::Bytes,
        };
        Annotation::Text(text)
    }

    /// Returns how keys are hashed as values of this column.
    fn column_type(&self, physical: i32, column: &str) -> Result<ColumnType> {
        let Some(name) = usize::try_from(physical).ok().and_then(|number| TYPES.get(number)) else {
            return Err(Error::bad_file("type of a column", "0 to 7", physical));
        };
        let refused = |problem: String| Error::refused(format!("its column '{column}' {problem}"));
        let stored = match physical {
            1 => Stored::Int32,
            2 => Stored::Int64,
            6 => Stored::Bytes,
            7 => Stored::Fixed(usize::try_from(self.length).unwrap_or_default()),
            _ => {
                return Err(refused(format!(
                    "is of type {name}; only BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32 and INT64 can \
                     be queried"
                )));
            }
        };
        let annotation = self.annotation();
        let text = match (annotation, stored) {
            (PLAIN, Stored::Int32 | Stored::Int64) => Some(Text::Integer),
            (PLAIN, _) => Some(Text::Bytes),
            (Annotation::Text(text), Stored::Int32) => {
                matches!(text, Text::Integer | Text::Unsigned | Text::Date | Text::Time(3))
                    .then_some(text)
            }
            (Annotation::Text(text), Stored::Int64) => {
                let is_time = matches!(text, Text::Time(6..) | Text::Timestamp { .. });
                (is_time || matches!(text, Text::Integer | Text::Unsigned)).then_some(text)
            }
            (Annotation::Text(Text::Uuid), Stored::Fixed(16)) => Some(Text::Uuid),
            (Annotation::Decimal { scale, precision }, _) => {
                let precision = u8::try_from(precision).ok();
                let precision = precision.filter(|digits| (1..=MAX_PRECISION).contains(digits));
                let scale = u8::try_from(scale).ok().filter(|scale| Some(*scale) <= precision);
                let fits = match stored {
                    Stored::Fixed(length) => (1..=MAX_DECIMAL_BYTES).contains(&length),
                    _ => true,
                };
                let decimal = |(scale, precision)| Text::Decimal { scale, precision };
                scale.zip(precision).filter(|_| fits).map(decimal)
            }
            _ => None,
        };
        let text = text.ok_or_else(|| {
            let meaning = match annotation {
                Annotation::Other(name) => name.to_owned(),
                Annotation::Decimal { scale, precision } => {
                    format!("DECIMAL({precision}, {scale})")
                }
                Annotation::Text(text) => text.name().to_owned(),
            };
            refused(format!("is of type {meaning}, stored as {name}, and cannot be queried"))
        })?;
        Ok(ColumnType { text, stored })
    }
}

/// No annotation, or one of text.
const PLAIN: Annotation = Annotation::Text(Text::Bytes);

/// Names of the physical types.
const TYPES: [&str; 8] =
    ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"];

/// Reads a logical type, a union.
fn logical_type(reader: &mut Reader<'_>) -> Result<Option<Annotation>> {
    let (mut found, mut last) = (None, 0);
    while let Some(field) = reader.field(&mut last)? {
        if field.kind != Kind::Struct {
            reader.skip(field.kind)?;
            continue;
        }
        let values = Values::read(reader)?;
        let digits = values.unit.map(|unit| 3 * unit);
        found = Some(match (field.id, digits) {
            (5, _) => Annotation::Decimal { scale: values.first, precision: values.second },
            (6, _) => Annotation::Text(Text::Date),
            (7, Some(digits)) => Annotation::Text(Text::Time(digits)),
            (8, Some(digits)) => {
                Annotation::Text(Text::Timestamp { digits, instant: values.is_true })
            }
            (10, _) if values.is_false => Annotation::Text(Text::Unsigned),
            (10, _) => Annotation::Text(Text::Integer),
            // STRING, ENUM, JSON, BSON, VARIANT, GEOMETRY, GEOGRAPHY.
            (1 | 4 | 12 | 13 | 16..=18, _) => PLAIN,
            (11, _) => Annotation::Other("UNKNOWN"),
            (14, _) => Annotation::Text(Text::Uuid),
            (15, _) => Annotation::Other("FLOAT16"),
            _ => Annotation::Other("(unknown)"),
        });
    }
    Ok(found)
}

/// The fields of a logical type: two numbers, a truth value, a unit of time.
#[derive(Default)]
struct Values {
    first: i32,
    second: i32,
    is_true: bool,
    is_false: bool,
    /// 1 to 3: milliseconds, microseconds, nanoseconds.
    unit: Option<u8>,
}

impl Values {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut values, mut last) = (Self::default(), 0);
        while let Some(field) = reader.field(&mut last)? {
            match (field.id, field.kind) {
                (1, Kind::I32) => values.first = reader.i32()?,
                (2, Kind::I32) => values.second = reader.i32()?,
                (1 | 2, Kind::True) => values.is_true = true,
                (1 | 2, Kind::False) => values.is_false = true,
                (2, Kind::Struct) => {
                    let mut last = 0;
                    while let Some(field) = reader.field(&mut last)? {
                        let unit = u8::try_from(field.id).ok();
                        values.unit = unit.filter(|unit| (1..=3).contains(unit));
                        reader.skip(field.kind)?;
                    }
                }
                (_, kind) => reader.skip(kind)?,
            }
        }
        Ok(values)
    }
}

/// Returns all row groups.
fn groups_of(reader: &mut Reader<'_>, leaf: &Leaf<'_>) -> Result<Vec<RowGroup>> {
    (0..structs(reader)?).map(|_| group(reader, leaf)).collect()
}

fn group(reader: &mut Reader<'_>, leaf: &Leaf<'_>) -> Result<RowGroup> {
    let (mut filter, mut rows, mut last) = (None, None, 0);
    while let Some(field) = reader.field(&mut last)? {
        match (field.id, field.kind) {
            (1, Kind::List) => {
                let columns = structs(reader)?;
                if columns <= leaf.number {
                    let expected = format!("{} or more", leaf.number + 1);
                    return Err(Error::bad_file("columns of a row group", expected, columns));
                }
                for number in 0..columns {
                    if number == leaf.number {
                        filter = Some(chunk(reader, leaf)?);
                    } else {
                        reader.skip(Kind::Struct)?;
                    }
                }
            }
            (3, Kind::I64) => {
                let found = reader.i64()?;
                let bad = |_| Error::bad_file("rows of a row group", "0 or more", found);
                rows = Some(u64::try_from(found).map_err(bad)?);
            }
            _ => reader.skip(field.kind)?,
        }
    }
    let rows = rows.ok_or_else(|| missing("number of rows"))?;
    let filter = filter.ok_or_else(|| missing("list of columns"))?;
    Ok(RowGroup { rows, column_type: leaf.column_type, filter })
}

/// Returns the location of the column's filter in one row group.
fn chunk(reader: &mut Reader<'_>, leaf: &Leaf<'_>) -> Result<Option<FilterLocation>> {
    let (mut filter, mut elsewhere, mut encrypted, mut last) = (None, false, false, 0);
    while let Some(field) = reader.field(&mut last)? {
        match (field.id, field.kind) {
            (1, Kind::Binary) => elsewhere = !reader.binary()?.is_empty(),
            (3, Kind::Struct) => filter = Some(metadata(reader, leaf)?),
            (8 | 9, kind) => {
                encrypted = true;
                reader.skip(kind)?;
            }
            (_, kind) => reader.skip(kind)?,
        }
    }
    let column = leaf.path;
    if encrypted {
        return Err(Error::refused(format!("its column '{column}' is encrypted")));
    }
    if elsewhere {
        return Err(Error::refused(format!("its column '{column}' is in another file")));
    }
    filter.ok_or_else(|| missing("metadata of a column"))
}

fn metadata(reader: &mut Reader<'_>, leaf: &Leaf<'_>) -> Result<Option<FilterLocation>> {
    let (mut offset, mut length, mut last) = (None, None, 0);
    let (mut physical, mut path_is_right) = (None, false);
    while let Some(field) = reader.field(&mut last)? {
        match (field.id, field.kind) {
            (1, Kind::I32) => physical = Some(reader.i32()?),
            (3, Kind::List) => path_is_right = is_path(reader, leaf.path)?,
            (14, Kind::I64) => offset = Some(reader.i64()?),
            (15, Kind::I32) => length = Some(reader.i32()?),
            _ => reader.skip(field.kind)?,
        }
    }
    if physical != Some(leaf.physical) {
        let found = physical.map_or("none".to_owned(), |physical| physical.to_string());
        return Err(Error::bad_file("type of a column", leaf.physical, found));
    }
    if !path_is_right {
        return Err(Error::bad_file("path of a column", leaf.path, "another"));
    }
    offset.map(|offset| FilterLocation::new(offset, length)).transpose()
}

/// Returns true if a list of names equals this path.
fn is_path(reader: &mut Reader<'_>, path: &str) -> Result<bool> {
    let (count, kind) = reader.list()?;
    if kind != Kind::Binary {
        return Err(Error::bad_file("path of a column", "a list of names", format!("{kind:?}")));
    }
    let mut rest = Some(path.as_bytes());
    for at in 0..count {
        let name = reader.binary()?;
        rest = rest.filter(|_| at == 0).or_else(|| rest?.strip_prefix(b"."));
        rest = rest.and_then(|rest| rest.strip_prefix(name));
    }
    Ok(rest == Some(b""))
}

/// Returns the length of a list of structs.
fn structs(reader: &mut Reader<'_>) -> Result<usize> {
    match reader.list()? {
        (0, _) => Ok(0),
        (count, Kind::Struct) => Ok(count),
        (_, kind) => Err(Error::bad_file("list", "structs in it", format!("{kind:?}"))),
    }
}

fn missing(what: &'static str) -> Error {
    Error::bad_file(what, "one", "none")
}
