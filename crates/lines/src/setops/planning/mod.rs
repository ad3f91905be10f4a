//! Planning of set operations: sizes from samples, costs, and the choice of a strategy.

pub(super) mod cost;
mod filter_size;
mod hash_sample;
mod planner;
mod sample;

pub(crate) use filter_size::filter_bytes;
pub(super) use filter_size::{capacity_for_bytes, estimated_insertions};
pub(super) use hash_sample::{HashSample, depth_of};
pub use planner::Strategy;
pub(super) use planner::{InputSizes, Plan};
pub(crate) use sample::Sample;
