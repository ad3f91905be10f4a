//! The memory limit of a job and its division.

mod budget;
mod limit;

pub(crate) use budget::{Budget, least_records};
pub use budget::{MEMORY_OVERHEAD, MIN_MEMORY, memory_for_filter};
pub use limit::MemoryLimit;
