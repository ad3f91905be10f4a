//! Records of CSV: where they end, and their fields.
//!
//! The rules are those of RFC 4180, read as Python's `csv`, the crate `csv` and DuckDB read them:
//!
//! * A field that begins with `"` is quoted: it may contain separators and line ends, and `""` is a
//!   quote in it. After the closing quote, bytes up to the separator belong to the field as they are.
//! * A quote inside a field that does not begin with one is a byte like any other.
//! * A record ends with LF outside of quotes. A CR directly before it is no part of the last field.
//! * An empty line is a record whose fields are all empty.
//!
//! | module | contents |
//! |---|---|
//! | `columns` | the columns of a key, found in a header by name |
//! | `record` | the fields of a record |
//! | `ends` | the ends of records |

mod columns;
mod ends;
mod record;

pub use columns::{Column, Columns};
pub(crate) use columns::{HeaderProblem, field_values};
pub(crate) use ends::EndScan;

/// Returns at most `most` of the complete CSV records at the start of `bytes`, without their LF.
/// `bytes` begin with a record.
#[must_use]
pub fn csv_records(bytes: &[u8], separator: u8, most: usize) -> Vec<&[u8]> {
    let mut ends = Vec::new();
    match most {
        1 => ends.extend(EndScan::new(separator).first(bytes)),
        _ => EndScan::new(separator).ends(bytes, most, &mut ends),
    }
    let mut start = 0;
    ends.into_iter().map(|end| &bytes[std::mem::replace(&mut start, end + 1)..end]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_complete() {
        let text = b"a,\"b\nc\"\n\n\"d\"\"\n\",e\nf,\"\n";
        let records: [&[u8]; 3] = [b"a,\"b\nc\"", b"", b"\"d\"\"\n\",e"];
        assert_eq!(csv_records(text, b',', usize::MAX), records);
        assert_eq!(csv_records(text, b',', 2), records[..2]);
        assert_eq!(csv_records(text, b',', 1), records[..1]);
        assert_eq!(csv_records(b"\"a\n", b',', 1), [b""; 0]);
        // With another separator the quote in the first record is a byte like any other.
        assert_eq!(csv_records(text, b';', 1), [b"a,\"b"]);
    }
}
