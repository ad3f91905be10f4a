//! The `.petal` file format, which docs/reference/format.md describes.
//!
//! * [`kind`]: the types of filters and their numbers in files;
//! * [`header`]: the fixed header: fields, offsets, validity;
//! * [`persist`]: what each type of filter implements, and the ways to read that follow from it;
//! * [`data`]: the data of a file, from a stream or in place;
//! * [`serialized`]: a filter as the bytes of a file, read in pieces;
//! * [`partial`]: data that arrive in pieces;
//! * [`read`], [`write`]: the parts of a file in order.
//!
//! Any bytes give an error or a valid filter. Opening reads the header and the lengths of the parts
//! only; `verify` reads every byte. A length in a
//! file is compared with the number of bytes that are there before memory is allocated for it. The
//! same filter is written as the same bytes on every machine.

pub(crate) mod data;
pub(crate) mod header;
pub(crate) mod kind;
pub(crate) mod partial;
pub(crate) mod persist;
pub(crate) mod read;
pub(crate) mod serialized;
#[cfg(feature = "std")]
pub(crate) mod write;
