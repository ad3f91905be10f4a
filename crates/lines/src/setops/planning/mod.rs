//! Planning of set operations: sizes from samples, costs, and the choice of a strategy.

mod block_reader;
pub(super) mod block_sample;
pub(super) mod cost;
mod filter_size;
pub(super) mod full_scan;
mod hash_sample;
mod interval;
mod job_counts;
mod planner;
mod sample;

pub(super) use filter_size::{capacity_for_bytes, estimated_insertions};
pub(crate) use filter_size::{filter_bytes, fpr as filter_fpr};
pub(super) use hash_sample::{HashSample, depth_of};
pub(super) use interval::{CONFIDENCE, Interval};
pub(super) use job_counts::{BaseCounts, InputCounts, JobCounts};
pub use planner::Strategy;
pub(super) use planner::{InputSizes, Place, Plan};
pub(super) use sample::MAX_DECOMPRESSED;
pub(crate) use sample::Sample;
