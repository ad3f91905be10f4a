//! The `.petal` file: docs/format.md in code.
//!
//! * [`kind`]: the types of filters, and their numbers;
//! * [`header`]: the fixed header, its offsets and what makes it valid;
//! * [`form`]: what a type of filter says about its file; from it come all ways to read and write;
//! * [`data`]: the data of a file, taken piece by piece from a stream or from where it lies;
//! * [`image`]: a filter as the bytes that it would have in a file, read piece by piece;
//! * [`parts`]: data that are pushed in pieces, and what they are so far;
//! * [`read`]: any bytes give an error or what is needed for a valid filter;
//! * [`write`]: the same bytes for the same filter, on every machine.
//!
//! Opening looks at the header and at lengths, never at more of the data than says how long its
//! parts are; [`form::verify`] looks at every byte. Nothing is allocated from a number that was
//! not compared with bytes that are there.

pub(crate) mod data;
pub(crate) mod form;
pub(crate) mod header;
pub(crate) mod image;
pub(crate) mod kind;
pub(crate) mod parts;
pub(crate) mod read;
pub(crate) mod write;
