//! The vector quotient layout: blocks of one cache line, each a small quotient filter, and two
//! blocks for every key.
//!
//! A hash selects a *first block*, a *bucket* in it and a *tag*. The *second block* follows from the
//! first one, the bucket and the tag, and the first one follows from the second in the same way. So
//! all keys with the same bucket, tag and pair of blocks are equal for the filter: any of their copies
//! can be removed for any of them, wherever it is.
//!
//! A block of `slots` slots has, from its first byte on:
//!
//! * one *plane* of `slots` bits for each bit of a tag: bit i of plane j is bit j of the tag in slot
//!   i;
//! * a *header* in the rest of the line: for each bucket in turn one bit 1 for each of its tags, and
//!   then a bit 0. The remaining bits are 0.
//!
//! Tags are in the order of their buckets; free slots are at the end, and their bits are 0. An empty
//! block is all zeros. A tag is compared with all slots at once, plane by plane, and selection in the
//! header returns the slots of a bucket.
//!
//! A tag goes into the first block; if that is full, into the second one; if that is full too, one of
//! the tags in the two blocks moves to its own other block. Only if none can is the filter full.
//!
//! Cost: one cache line for inserting and removing most keys; two lines for queries, and for the 4 % of
//! keys that are in their second block when a filter is filled to its capacity.
//! Source: Pandey, Conway, Durie, Bender, Farach-Colton & Johnson 2021, "Vector quotient filters:
//! overcoming the time/space trade-off in filter design". Planes instead of tags of 8 or 16 bits allow
//! tags of any width, and moving a tag allows a higher load.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod batch;
mod block;
mod check;
mod header;
mod operations;
mod planes;
mod shape;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use check::BlockFault;
pub(crate) use operations::Operations;
pub(crate) use shape::{BlockShape, Fingerprint, PairParams, Place};
pub(crate) use table::PairTable;
