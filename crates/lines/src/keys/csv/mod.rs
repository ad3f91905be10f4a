//! Records of CSV: where they end, and their fields.
//!
//! The rules are those of RFC 4180, read as Python's `csv`, the crate `csv` and DuckDB read them:
//!
//! * A field that begins with `"` is quoted: it may contain separators and line ends, and `""` is a
//!   quote in it. After the closing quote, bytes up to the separator belong to the field as they are.
//! * A quote inside a field that does not begin with one is a byte like any other. So is every quote
//!   if tabs separate the fields: TSV (text/tab-separated-values) has no quotes.
//! * A [`Dialect`] may have another quote or none, and an escape: the byte after it belongs to the
//!   field whatever it is, in quotes and outside, as for `escapechar` of Python.
//! * A record ends with LF outside of quotes. A CR directly before it is no part of the last field.
//! * An empty line is a record whose fields are all empty.
//!
//! | module | contents |
//! |---|---|
//! | `columns` | the columns of a key, found in a header by name |
//! | `dialect` | the bytes between, around and within fields |
//! | `guess` | the separator that the first records show |
//! | `record` | the fields of a record |
//! | `ends` | the ends of records |

mod columns;
mod dialect;
mod ends;
mod guess;
mod record;

pub use columns::{Column, Columns};
pub(crate) use columns::{HeaderProblem, field_values};
pub use dialect::{Dialect, Quoting};
pub(crate) use ends::EndScan;
pub use ends::csv_records;
pub(crate) use guess::{SEPARATORS, guess_separator};
pub(crate) use record::Fields as FieldsOfRecord;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_complete() {
        let text = b"a,\"b\nc\"\n\n\"d\"\"\n\",e\nf,\"\n";
        let records: [&[u8]; 3] = [b"a,\"b\nc\"", b"", b"\"d\"\"\n\",e"];
        let rfc = Dialect::RFC;
        assert_eq!(csv_records(text, rfc, usize::MAX), records);
        assert_eq!(csv_records(text, rfc, 2), records[..2]);
        assert_eq!(csv_records(text, rfc, 1), records[..1]);
        assert_eq!(csv_records(b"\"a\n", rfc, 1), [b""; 0]);
        // With another separator the quote in the first record is a byte like any other.
        assert_eq!(csv_records(text, Dialect { separator: b';', ..rfc }, 1), [b"a,\"b"]);
        let none = Dialect { quote: None, ..rfc };
        assert_eq!(csv_records(text, none, 2), [&b"a,\"b"[..], b"c\""]);
        let escape = Dialect { escape: Some(b'\\'), ..none };
        assert_eq!(csv_records(b"a\\\nb\\\\\nc\n", escape, 9), [&b"a\\\nb\\\\"[..], b"c"]);
    }
}
