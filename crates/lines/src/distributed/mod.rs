//! Set operations on several machines: functions over byte ranges of files.
//!
//! An engine (Spark, Dask, a process pool) schedules these functions, retries them, and passes
//! filters around. Everything else is in files of a shared folder. So an engine only has to apply a
//! function to a list of items.
//!
//! A [`FileRange`] is a range of bytes of a file; **a line belongs to the range in which it
//! starts**.
//!
//! | function | reads | writes |
//! |---|---|---|
//! | [`Task::build`] | ranges | a *partial* filter of their lines; optionally one of those seen twice |
//! | [`Task::union`] | partial filters | their union |
//! | [`Task::filter`] | ranges, filters | *survivors*: records of the lines that no filter excludes |
//! | [`Task::build_from_survivors`] | survivors | a partial filter of them, to narrow the other side |
//! | [`Task::join_partition`] | one partition of all survivors | an *answer*: the lines to keep or drop |
//! | [`Task::write_answer`] | one range, all answers | the lines of the answer that start in the range |
//!
//! * `common(A, B)`: build(B), union, filter(A), build_from_survivors, union, filter(B),
//!   join_partition, write_answer.
//! * `dedup(A)`: build(A, twice), union, filter(A, twice), join_partition, write_answer.
//! * `diff(A, B)`: build(B), union, build(A, twice), union, filter(A, either),
//!   build_from_survivors, union, filter(B), join_partition, write_answer.
//!
//! The lines written for the ranges of A, in order, are byte for byte the output of
//! [`SetJob`](crate::SetJob), which runs the same steps.
//!
//! A filter larger than a worker's memory is sharded by hash range:
//!
//! | function | reads | writes |
//! |---|---|---|
//! | [`Task::hash_lines`] | ranges | the hashes of their lines, in order, by shard |
//! | [`Task::build_shard`] | the hashes of one shard | the complete filter of the shard |
//! | [`Task::probe`] | hashes and filter of one shard | a bit for each hash |
//!
//! and [`Task::filter`] takes those bits instead of filters.
//!
//! To build a filter for general use, call [`Task::build`] and [`Task::union`] with
//! [`JobKeys::public`], and write the file with [`Task::publish`].
//!
//! [`Settings::jobs`](crate::Settings::jobs) is the number of threads that read lines: in `build`, `hash_lines`, `filter`,
//! `write_answer`, `check_to_file` and `count`. Functions that read files of the job use one
//! thread: `union`, `build_from_survivors`, `join_partition`, `build_shard`, `probe`.
//!
//! Each function is pure: its output depends on its arguments, its settings and the files it reads.
//! Each output file appears complete or not at all, so a function may run twice, even concurrently.
//! Files are the same on every machine; a truncated or damaged file, or one of another job, is an
//! error. Inputs must not change during a job: a range has the length and modification time of its
//! file, and every function that opens the file compares them.
//!
//! No line is lost: a line of A and of B has one key, and all its bits are set in B's filter. For
//! lines that are twice in A: if one partial filter got both, the second was not new to it and went
//! into its `twice`; if two partial filters did, all bits of the key are set in both, hence in
//! their intersection, which [`union`](Task::union) adds to `twice`. The exact decision compares
//! 128-bit keyed fingerprints; filters only reduce its work.
//!
//! ```
//! use petal::BloomFilter;
//! use petal_lines::distributed::{Narrowing, PartialFilter, Side, SurvivorFiles, Task, plan, split};
//! use petal_lines::{Settings, Outputs, SetOp};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (a, b) = (dir.path().join("a"), dir.path().join("b"));
//! std::fs::write(&a, "cherry\napple\nplum\napple\n")?;
//! std::fs::write(&b, "apple\nfig\ncherry")?;
//! let file = |name: &str| dir.path().join(name);
//! let (a, b) = (split(&[a], 10, &())?, split(&[b], 10, &())?);
//!
//! let settings = Settings::new(64 << 20);
//! let task = Task::new(&settings)?; // its keys go to every worker
//! let size = plan(&settings, &b)?.wanted;
//! task.build(&b, size, &PartialFilter::seen(file("f")))?;
//! let filter = BloomFilter::read_from(std::fs::File::open(file("f"))?)?.0;
//! task.filter(&a, Side::First, Narrowing::Filters(&[&filter]), 1, &file("a.survivors"))?;
//! task.filter(&b, Side::Other, Narrowing::Nothing, 1, &file("b.survivors"))?;
//! let first = SurvivorFiles { files: &[file("a.survivors")], ranges: a.len() as u64 };
//! let other = SurvivorFiles { files: &[file("b.survivors")], ranges: b.len() as u64 };
//! task.join_partition(SetOp::Common, 0, first, &[other], &file("0"))?;
//! let mut out = Vec::new();
//! for range in &a {
//!     task.write_answer(range, &[file("0")], Outputs::to(&mut out))?;
//! }
//! assert_eq!(out, b"cherry\napple\n");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod build;
mod job_files;
mod join;
mod narrow;
mod plan;
mod range;
mod shard_bits;
mod shards;
mod task;
#[cfg(test)]
mod tests;
mod write;

pub use crate::input::FileStamp;
pub use crate::setops::Side;
pub use build::{BuildCounts, FilterSize, PartialFilter};
pub use join::{JoinCounts, SurvivorFiles};
pub use narrow::{Narrowing, SurvivorCounts};
pub use plan::{RangePlan, plan};
pub use range::{FileRange, split};
pub use task::{JobKeys, Task};
pub use write::OutputCounts;
