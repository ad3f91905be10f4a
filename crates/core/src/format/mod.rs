//! The `.petal` file: docs/format.md in code.
//!
//! * [`header`]: the fixed header, its offsets and what makes it valid;
//! * [`read`]: any bytes give an error or what is needed for a valid filter;
//! * [`write`]: the same bytes for the same filter, on every machine.
//!
//! Opening looks at the header and at lengths, never at the data; [`read::verify`] looks at every
//! byte. Nothing is allocated from a number that was not compared with bytes that are there.

pub(crate) mod header;
pub(crate) mod read;
pub(crate) mod write;
