//! The quotient layout: a hash table of remainders without keys, in blocks of 64 slots.
//!
//! A fingerprint is a quotient, which is the number of its preferred slot, and a remainder of
//! `width` bits. The remainders of one quotient are adjacent and ascending: a *run*. Runs are in the
//! order of their quotients. A run starts at its preferred slot or, if that is occupied, after the
//! previous run. Block b has 17 + 8 · width bytes:
//!
//! * its *offset*, one byte: how many slots from its first on contain runs of quotients before the
//!   block; 255 means 255 or more;
//! * a word *occupied*: bit i is set if quotient 64 b + i has a run;
//! * a word *ends*: bit i is set if slot 64 b + i is the last slot of a run;
//! * 64 bit-packed remainders; those of free slots are 0.
//!
//! The runs of the block's own quotients end at the first run ends after the slots counted by the
//! offset, in their order: rank in *occupied* and select in *ends* find any run.
//!
//! Runs do not wrap around: slots after that of the last quotient take the overflow. Every walk goes
//! in one direction and stops at the end of the table, whatever the bits are; reads after the end
//! return 0.
//!
//! Cost: two cache lines per query on average. An insert or a removal moves all slots up to the next
//! free one, `width` words for each block of them.
//! Source: Bender et al. 2012, "Don't thrash"; Pandey, Bender, Johnson & Patro 2017, "A
//! general-purpose counting filter" (the rank-and-select form).

#[cfg(target_arch = "x86_64")]
mod avx2;
mod check;
mod fill;
mod fingerprints;
mod params;
mod table;
#[cfg(test)]
mod tests;
mod update;

pub(crate) use check::{CheckProgress, TableCounts, TableFault};
pub(crate) use fill::Filler;
pub(crate) use params::{MAX_WIDTH, SLOTS, TableParams};
pub(crate) use table::{BatchInserted, Table};
pub(crate) use update::InsertOutcome;
