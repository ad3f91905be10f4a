//! The set operations `common`, `diff` and `dedup` on the lines of files.
//!
//! | module | contents |
//! |---|---|
//! | `job`, `report` | a set operation as the caller specifies it, and its report |
//! | `set_semantics` | the meaning of the operations, on fingerprints |
//! | `planning` | samples of inputs, the cost model, the choice of a strategy |
//! | `exact` | exact jobs: the strategies, resuming, estimates |
//! | `positions`, `print` | sets of line positions, and printing by position |
//! | `approximate` | approximate jobs |

mod approximate;
mod exact;
mod job;
mod planning;
mod positions;
mod print;
mod report;
mod set_semantics;
#[cfg(test)]
mod tests;

pub(crate) use approximate::{expected_losses, filter_within, lost_lines};
pub use exact::{Bounds, Counting, InputEstimate, JobEstimate, Side, forget_work};
pub(crate) use exact::{
    FIRST_RECORD, HASH_LOG_MEMORY, HashSink, JobPasses, JoinResult, LineSelector, Partition,
    PartitionJoin, Partitioning, RecordSink, contains_any, partitioning, write_table,
};
pub use job::{Mode, SetJob};
pub use planning::Strategy;
pub(crate) use planning::{Sample, filter_bytes, filter_fpr};
pub(crate) use positions::{Polarity, PositionIter, PositionSet, PositionWriter, Spans};
pub(crate) use print::{print_positions, starts as positions_of_inputs};
pub use report::{PartCounts, Phase, Report};
pub use set_semantics::SetOp;
