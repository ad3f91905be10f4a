//! The columns that make the key of a CSV record.

use std::fmt;

use super::dialect::{Dialect, Quoting};
use super::guess::SEPARATORS;
use super::record::{Field, Fields};
use crate::keys::append_with_length;

/// A column of a CSV file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// The column with this name in the header.
    Name(String),
    /// The column with this number, counted from 1.
    Number(usize),
}

/// The columns of CSV records that make the key.
///
/// The key of one column is the value of the field: without the quotes around it, with one quote for
/// two. The key of several columns has before each value its length in bytes, as four bytes in
/// little-endian order, so different values never make the same key.
///
/// A record with too few fields has no key. The fields of an empty line are all empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Columns {
    /// The columns, in the order of the key.
    pub columns: Vec<Column>,
    /// The byte between fields. `None`: a tab in inputs whose name ends in `.tsv` or `.tab`, before
    /// the ending of a compressed file; a comma in those named `.csv`; in others a tab, `|`, `;` or
    /// comma, whatever divides the first two lines evenly. If several do, a tab; without it they are an
    /// error.
    pub separator: Option<u8>,
    /// Which byte encloses fields.
    pub quoting: Quoting,
    /// The byte after this one has no special meaning. `None`: no byte escapes another.
    pub escape: Option<u8>,
    /// Whether the first record of each input is a header even if no column is found by name.
    pub header: bool,
}

/// Why the columns of a key are not found in a header.
#[derive(Debug)]
pub(crate) struct HeaderProblem {
    /// The problem, as a predicate.
    pub(crate) text: String,
    /// Whether the header has the name of a column twice.
    pub(crate) repeated: bool,
}

/// Endings of the names of compressed files.
const COMPRESSED: [&str; 6] = [".gz", ".zst", ".xz", ".bz2", ".lz4", ".zstd"];

impl Columns {
    /// Returns the columns that a list names: names and numbers, separated by commas, themselves
    /// quoted as in CSV. What is quoted is a name.
    ///
    /// # Errors
    /// If the list is empty, has an empty part, the number 0 or an open quote.
    pub fn parse_list(list: &str) -> Result<Vec<Column>, String> {
        let mut scan = super::EndScan::new(Dialect::RFC);
        scan.last(list.as_bytes());
        if scan.is_quoted() {
            return Err("a quote is not closed".to_owned());
        }
        Fields::new(list.as_bytes(), Dialect::RFC).map(|part| Self::parse_part(part)).collect()
    }

    fn parse_part(part: Field<'_>) -> Result<Column, String> {
        let text = String::from_utf8(part.value()).map_err(|error| error.to_string())?;
        if text.is_empty() {
            return Err("expected names or numbers of columns, separated by commas".to_owned());
        }
        if part.is_quoted() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Column::Name(text));
        }
        match text.parse() {
            Ok(0) => Err("columns are counted from 1".to_owned()),
            Ok(number) => Ok(Column::Number(number)),
            Err(_) => Err(format!("{text} is too large for the number of a column")),
        }
    }

    /// Returns the byte that a text names: itself, or a tab.
    ///
    /// # Errors
    /// If it is no byte.
    pub fn parse_byte(text: &str) -> Result<u8, String> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(b'\t'),
            [byte] => Ok(*byte),
            _ => Err("expected one byte, e.g. ';' or tab".to_owned()),
        }
    }

    /// Returns whether the first record of each input is a header.
    #[must_use]
    pub fn has_header(&self) -> bool {
        self.header || self.columns.iter().any(|column| matches!(column, Column::Name(_)))
    }

    /// Checks that the bytes between, around and within fields differ.
    ///
    /// # Errors
    /// If they cannot; the text says why.
    pub fn check(&self) -> Result<(), String> {
        let quote = match self.quoting {
            Quoting::BySeparator => self.dialect(self.separator.unwrap_or(b',')).quote,
            Quoting::None => None,
            Quoting::Byte(quote) => Some(quote),
        };
        let separators = self.separator.as_slice();
        let separators = if separators.is_empty() { &SEPARATORS } else { separators };
        let conflict = [quote, self.escape].into_iter().flatten().find(|b| separators.contains(b));
        let all = [self.separator, quote, self.escape];
        if all.iter().flatten().any(|byte| b"\r\n".contains(byte)) {
            return Err("a line end cannot separate, quote or escape fields".to_owned());
        }
        match (conflict, self.separator) {
            (None, _) => Ok(()),
            (Some(byte), Some(_)) => {
                let byte = shown_byte(byte);
                Err(format!("'{byte}' cannot separate fields and quote or escape them too"))
            }
            (Some(byte), None) => {
                Err(format!("'{}' may separate fields; specify the separator", shown_byte(byte)))
            }
        }
    }

    /// Returns the dialect of records whose fields are separated by this byte.
    pub(crate) fn dialect(&self, separator: u8) -> Dialect {
        Dialect::new(separator, self.quoting, self.escape)
    }

    /// Returns the dialect of an input with this name; `None` if it depends on the first records.
    #[must_use]
    pub fn dialect_of(&self, name: &str) -> Option<Dialect> {
        let lower = name.to_ascii_lowercase();
        let plain = COMPRESSED.iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
        let has_ending = |endings: &[&str]| endings.iter().any(|end| plain.ends_with(end));
        let separator = self.separator.or_else(|| {
            if has_ending(&[".tsv", ".tab"]) {
                Some(b'\t')
            } else {
                has_ending(&[".csv"]).then_some(b',')
            }
        });
        separator.map(|separator| self.dialect(separator))
    }

    /// Returns these columns by their numbers in an input with this dialect and header.
    ///
    /// # Errors
    /// If the header does not have a column, or has its name twice.
    pub(crate) fn resolved(
        &self,
        dialect: Dialect,
        header: Option<&[u8]>,
    ) -> Result<Self, HeaderProblem> {
        let names = match header {
            Some(header) => field_values(header, dialect),
            None => Vec::new(),
        };
        let missing = |text| Err(HeaderProblem { text, repeated: false });
        let number = |column: &Column| match column {
            Column::Number(number) if header.is_some() && *number > names.len() => {
                missing(format!("has {}, expected a column {number}", shown_columns(&names)))
            }
            Column::Number(number) => Ok(*number),
            Column::Name(wanted) => {
                let mut found = (1..).zip(&names).filter(|(_, name)| *name == wanted.as_bytes());
                match (found.next(), found.next()) {
                    (Some((number, _)), None) => Ok(number),
                    (None, _) => {
                        missing(format!("has no column {wanted:?}, but {}", shown_columns(&names)))
                    }
                    (Some((one, _)), Some((two, _))) => {
                        let text = format!("has two columns {wanted:?}, {one} and {two}");
                        Err(HeaderProblem { text, repeated: true })
                    }
                }
            }
        };
        let columns = self.columns.iter().map(|column| number(column).map(Column::Number));
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(Self { columns, header: header.is_some(), ..self.in_dialect(dialect) })
    }

    /// Returns these columns in records of a dialect.
    pub(crate) fn in_dialect(&self, dialect: Dialect) -> Self {
        Self { separator: Some(dialect.separator), ..self.clone() }
    }

    /// Appends the key of a record without its LF. The columns are resolved.
    pub(crate) fn append(&self, record: &[u8], key: &mut Vec<u8>) -> Result<(), String> {
        let dialect = self.dialect(self.separator.unwrap_or(b','));
        if let [Column::Number(number)] = self.columns[..] {
            return match Fields::new(record, dialect).nth(number - 1) {
                Some(field) => {
                    field.append(key);
                    Ok(())
                }
                None => missing(record, dialect, number),
            };
        }
        // Columns in ascending order are found in one reading.
        let (mut fields, mut next) = (Fields::new(record, dialect), 1);
        for column in &self.columns {
            let Column::Number(number) = *column else {
                return Err(format!("the number of column {column} is unknown"));
            };
            if number < next {
                (fields, next) = (Fields::new(record, dialect), 1);
            }
            let field = fields.nth(number - next);
            next = number + 1;
            append_with_length(key, |key| match field {
                Some(field) => {
                    field.append(key);
                    Ok(())
                }
                None => missing(record, dialect, number),
            })?;
        }
        Ok(())
    }
}

/// Returns the values of the fields of a record without its LF.
pub(crate) fn field_values(record: &[u8], dialect: Dialect) -> Vec<Vec<u8>> {
    Fields::new(record, dialect).map(Field::value).collect()
}

/// Returns the error of a record without a field, unless it is an empty line.
#[cold]
fn missing(record: &[u8], dialect: Dialect, number: usize) -> Result<(), String> {
    if matches!(record, b"" | b"\r") {
        return Ok(());
    }
    Err(match Fields::new(record, dialect).count() {
        1 => format!(
            "has 1 field, but the key is in field {number}; correct or remove the record, or change \
             the separator ('{}')",
            shown_byte(dialect.separator)
        ),
        fields => format!(
            "has {fields} fields, but the key is in field {number}; correct or remove the record"
        ),
    })
}

/// Returns a byte for a message.
fn shown_byte(byte: u8) -> String {
    match byte {
        b'\t' => "tab".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => byte.escape_ascii().to_string(),
    }
}

/// Number of columns of a header that an error shows.
const SHOWN: usize = 8;

/// Returns the columns of a header, for an error: `3 columns: "a", "b", "c"`.
fn shown_columns(names: &[Vec<u8>]) -> String {
    let shown = |name: &Vec<u8>| {
        let name = String::from_utf8_lossy(name);
        match name.char_indices().nth(40) {
            Some((end, _)) => format!("{:?}...", &name[..end]),
            None => format!("{name:?}"),
        }
    };
    let mut list: Vec<_> = names.iter().take(SHOWN).map(shown).collect();
    if names.len() > SHOWN {
        list.push("...".to_owned());
    }
    let columns = if names.len() == 1 { "column" } else { "columns" };
    format!("{} {columns}: {}", names.len(), list.join(", "))
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name:?}"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// The columns as text: `column "url" of CSV with a header`.
impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.columns.len() == 1 { "column " } else { "columns " })?;
        for (number, column) in self.columns.iter().enumerate() {
            write!(f, "{}{column}", if number == 0 { "" } else { ", " })?;
        }
        f.write_str(" of CSV")?;
        if self.has_header() {
            f.write_str(" with a header")?;
        }
        if let Some(separator) = self.separator {
            write!(f, ", separated by {:?}", char::from(separator))?;
        }
        match self.quoting {
            Quoting::BySeparator => {}
            Quoting::None => f.write_str(", without quotes")?,
            Quoting::Byte(quote) => write!(f, ", quoted by {:?}", char::from(quote))?,
        }
        match self.escape {
            Some(escape) => write!(f, ", escaped by {:?}", char::from(escape)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(list: &str) -> Columns {
        Columns { columns: Columns::parse_list(list).unwrap(), ..Columns::default() }
    }

    #[test]
    fn lists_have_names_numbers_and_quoted_names() {
        let name = |name: &str| Column::Name(name.to_owned());
        let list = Columns::parse_list(r#"url,2,"a,""b""","3",é"#).unwrap();
        assert_eq!(list, [name("url"), Column::Number(2), name("a,\"b\""), name("3"), name("é")]);
        for (bad, why) in [
            ("", "expected names"),
            ("a,", "expected names"),
            ("0", "counted from 1"),
            ("\"a", "not closed"),
            ("99999999999999999999", "too large"),
        ] {
            assert!(Columns::parse_list(bad).unwrap_err().contains(why), "{bad}");
        }
    }

    #[test]
    fn dialect_follows_the_name_of_the_input() {
        let any = columns("1");
        let tabs = ["a.tsv", "A.TSV.gz", "/x/y.tab", "y.tab.zst"];
        let tsv = Dialect { separator: b'\t', quote: None, escape: None };
        assert!(tabs.iter().all(|name| any.dialect_of(name) == Some(tsv)));
        let commas = ["a.csv", "a.tsv.csv", "A.CSV.xz"];
        assert!(commas.iter().all(|name| any.dialect_of(name) == Some(Dialect::RFC)));
        assert!(["-", "tsv", "a.gz", "a.txt"].iter().all(|name| any.dialect_of(name).is_none()));
        let other = Columns { separator: Some(b';'), escape: Some(b'\\'), ..any.clone() };
        let expected = Dialect { separator: b';', escape: Some(b'\\'), ..Dialect::RFC };
        assert_eq!(other.dialect_of("a.tsv"), Some(expected));
        let quoted = Columns { quoting: Quoting::Byte(b'"'), ..any };
        assert_eq!(quoted.dialect_of("a.tsv"), Some(Dialect { separator: b'\t', ..Dialect::RFC }));
    }

    #[test]
    fn bytes_with_two_meanings_are_errors() {
        let check = |separator, quoting, escape| {
            Columns { separator, quoting, escape, ..columns("1") }.check()
        };
        assert_eq!(check(None, Quoting::BySeparator, Some(b'\\')), Ok(()));
        assert_eq!(check(Some(b'"'), Quoting::None, None), Ok(()));
        assert_eq!(check(Some(b'\t'), Quoting::BySeparator, Some(b'"')), Ok(()));
        assert_eq!(check(Some(b';'), Quoting::Byte(b','), None), Ok(()));
        for (separator, quoting, escape, problem) in [
            (
                Some(b'"'),
                Quoting::BySeparator,
                None,
                "'\"' cannot separate fields and quote or escape them too",
            ),
            (
                Some(b';'),
                Quoting::None,
                Some(b';'),
                "';' cannot separate fields and quote or escape them too",
            ),
            (None, Quoting::Byte(b'|'), None, "'|' may separate fields; specify the separator"),
            (
                None,
                Quoting::Byte(b'\n'),
                None,
                "a line end cannot separate, quote or escape fields",
            ),
        ] {
            assert_eq!(check(separator, quoting, escape), Err(problem.to_owned()));
        }
    }

    #[test]
    fn names_are_found_in_the_header_of_each_input() {
        let wanted = columns("url,lang");
        let numbers = |header: &str| wanted.resolved(Dialect::RFC, Some(header.as_bytes()));
        let found = |one, two| vec![Column::Number(one), Column::Number(two)];
        assert_eq!(numbers("id,url,lang").unwrap().columns, found(2, 3));
        assert_eq!(numbers("\"lang\",\"url\"\r").unwrap().columns, found(2, 1));
        let error = numbers("id,url").unwrap_err();
        assert!(!error.repeated);
        assert_eq!(error.text, r#"has no column "lang", but 2 columns: "id", "url""#);
        let error = numbers("url,lang,url").unwrap_err();
        assert!(error.repeated && error.text.contains("two columns \"url\", 1 and 3"));
        let error = columns("3").resolved(Dialect::RFC, Some(b"a;b")).unwrap_err();
        assert_eq!(error.text, r#"has 1 column: "a;b", expected a column 3"#);
    }

    #[test]
    fn keys_of_several_columns_are_distinct() {
        let key = |list: &str, record: &str| {
            let mut key = Vec::new();
            let resolved = columns(list).resolved(Dialect::RFC, None).unwrap();
            resolved.append(record.as_bytes(), &mut key).map(|()| key)
        };
        assert_eq!(key("2", "a,\"b\"\"\",c").unwrap(), b"b\"");
        assert_eq!(key("3,1", "a,b,\"\"\r").unwrap(), b"\0\0\0\0\x01\0\0\0a");
        assert_eq!(key("1,1,2", "a,bc").unwrap(), b"\x01\0\0\0a\x01\0\0\0a\x02\0\0\0bc");
        assert_ne!(key("1,2", "a,bc").unwrap(), key("1,2", "ab,c").unwrap());
        assert_eq!(key("7", "").unwrap(), b"");
        assert_eq!(key("7,1", "\r").unwrap(), [0; 8]);
        let error = key("7", "a,b").unwrap_err();
        assert_eq!(error, "has 2 fields, but the key is in field 7; correct or remove the record");
        assert!(key("1,3", "a,b").unwrap_err().contains("field 3"));
    }
}
