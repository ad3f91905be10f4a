//! RedisBloom's Bloom and cuckoo filters, bit for bit: after the same commands, memory, RDB fields
//! and chunks are identical. The hashes and layer sizes are in `petal_interop::redisbloom`. Its other
//! values are kept as they are.
//!
//! Memory is allocated before a filter is changed, so a rejected command changes nothing.
//!
//! Source: captures of RedisBloom 2.8.20, and replies of the running program.

mod bloom;
mod byte_arrays;
mod cuckoo;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz_checks;
#[cfg(test)]
mod golden_tests;
mod sketch;
#[cfg(test)]
mod trace_tests;

pub(crate) use bloom::Bloom;
pub(crate) use cuckoo::{Cuckoo, CuckooParams, MAX_ANNOUNCED_LAYERS};
pub(crate) use sketch::{Sketch, SketchType};
