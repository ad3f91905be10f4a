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
