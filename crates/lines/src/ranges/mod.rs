//! The set verbs past one machine: functions over byte ranges of files.
//!
//! An engine (Spark, Dask, a pool of processes) only schedules these functions, runs them again
//! where one was lost, and hands filters round. Everything else goes through files in a folder that
//! all workers see. So an engine needs no more than to apply a function to a list of items.
//!
//! A [`Range`] is some bytes of a file; **a line belongs to the range in which it starts**.
//!
//! | function | reads | writes |
//! |---|---|---|
//! | [`Task::build`] | ranges | a *partial* filter of their lines; if asked, one of those seen twice |
//! | [`Task::union`] | partials | their union |
//! | [`Task::filter`] | ranges, filters | *survivors*: records of the lines that no filter rules out |
//! | [`Task::build_back`] | survivors | a partial filter of them, to narrow the other side |
//! | [`Task::exact`] | one partition of all survivors | an *answer*: which lines are kept, or dropped |
//! | [`Task::take`] | one range, all answers | the lines of the answer that start in the range |
//!
//! * `common(A, B)`: build(B), union, filter(A), build_back, union, filter(B), exact, take.
//! * `dedup(A)`: build(A, twice), union, filter(A, twice), exact, take.
//! * `diff(A, B)`: build(B), union, build(A, twice), union, filter(A, either), build_back, union,
//!   filter(B), exact, take.
//!
//! What is taken from the ranges of A, one after the other, is byte for byte what
//! [`SetJob`](crate::SetJob) prints, which does the same steps.
//!
//! Where the filter is larger than a worker's memory it is sharded by hash range:
//!
//! | function | reads | writes |
//! |---|---|---|
//! | [`Task::keys`] | ranges | the hashes of their lines, in order, by shard |
//! | [`Task::build_shard`] | the hashes of one shard | the filter of the shard, complete |
//! | [`Task::probe`] | hashes and filter of one shard | a bit for each hash |
//!
//! and [`Task::filter`] takes those bits instead of filters.
//!
//! A filter of its own, for others to ask, is what [`Task::build`] and [`Task::union`] come to with
//! keys that everybody knows ([`JobKeys::public`]), put into a file by [`Task::publish`].
//!
//! [`Settings::jobs`] are the threads that read lines: of `build` and `keys`, which put them into
//! filters or deal them, `filter`, `take`, `check_to` and `count`. What reads files of the job works
//! in one thread: `union`, `build_back`, `exact`, `build_shard`, `probe`.
//!
//! Each function is pure: what it writes depends on its arguments, its settings and the files it
//! reads. Each file that it writes appears whole or not at all; so a function may run twice, even
//! at once. Files are the same on every machine; one that is cut, damaged or of
//! another job is an error. Inputs must not change while a job lasts: a range carries the
//! length of its file and when that was changed, and whoever opens it compares them.
//!
//! Why no line is lost: a line of A and of B has one key, and all its bits are set in B's filter.
//! Of lines that are twice in A: if one partial got both, the second was not new to it, and went
//! into its `twice`; if two partials did, all bits of the key are set in both, hence in their
//! intersection, which [`union`](Task::union) puts into `twice`. The exact decision is by keyed
//! fingerprints of 128 bits; filters only spare it work.
//!
//! ```
//! use petal::{BloomFilter, Membership};
//! use petal_lines::ranges::{AllOf, Narrow, Partial, Side, Task, plan, split};
//! use petal_lines::{Settings, Sinks, Verb};
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
//! task.build(&b, size, &Partial::seen(file("f")))?;
//! let filter = BloomFilter::read_from(std::fs::File::open(file("f"))?)?.0;
//! task.filter(&a, Side::First, Narrow::Filters(&[&filter]), 1, &file("a.survivors"))?;
//! task.filter(&b, Side::Other, Narrow::Nothing, 1, &file("b.survivors"))?;
//! let first = AllOf { files: &[file("a.survivors")], ranges: a.len() as u64 };
//! let other = AllOf { files: &[file("b.survivors")], ranges: b.len() as u64 };
//! task.exact(Verb::Common, 0, first, &[other], &file("0"))?;
//! let mut out = Vec::new();
//! for range in &a {
//!     task.take(range, &[file("0")], Sinks::to(&mut out))?;
//! }
//! assert_eq!(out, b"cherry\napple\n");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod decide;
mod fill;
mod plan;
mod shards;
mod take;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::fingerprint::Hashes;
use crate::input::{self, Contents, Input, Source};
use crate::progress::Progress;
use crate::sections::{MOST_RANGES, NO_RANGES};
use crate::settings::Settings;
use crate::steps::Steps;

pub use crate::input::Stamp;
pub use decide::{AllOf, Decided, Narrow, Side, Survivors};
pub use fill::{Built, Partial, Size};
pub use plan::{Planned, plan};
pub use take::Taken;

/// Bits of a position within a range: what is above is the range's number.
const OFFSET_BITS: u32 = MOST_RANGES.leading_zeros() + 1;

/// Lines of a file: those that start in a range of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its place in the order of its input, from 0.
    pub number: u64,
    /// The file.
    pub path: PathBuf,
    /// The first byte.
    pub start: u64,
    /// The byte behind the last. Of a packed file, all of it must be one range.
    pub end: u64,
    /// What the file was when it was cut.
    pub stamp: Stamp,
}

/// Cuts files, taken as one input, into ranges of about `size` bytes each; of a packed file, all is
/// one range. Files without a byte have none.
///
/// Cost: opens every file.
///
/// # Errors
/// If one is missing, cannot be read, or is no file; if there would be more than 2²⁴ ranges, or if
/// the job is cancelled.
pub fn split(paths: &[PathBuf], size: u64, progress: &dyn Progress) -> Result<Vec<Range>> {
    let size = size.clamp(1, 1 << (OFFSET_BITS - 1));
    let mut ranges = Vec::new();
    for path in paths {
        check_cancelled(progress)?;
        // What they contain is checked by those who read lines.
        let input = open(path, &Arc::new(Contents::new(b'\n', true)))?;
        let ((length, whole), stamp) = input.file_length().zip(input.stamp()).ok_or_else(|| {
            Error::range(
                input.name(),
                0,
                0,
                "it is no file that can be read again; save it to one first",
            )
        })?;
        let parts = if whole { 1 } else { length.div_ceil(size) };
        if ranges.len() as u64 + parts > MOST_RANGES {
            let problem = "it makes more than 2^24 ranges; cut into larger ones";
            return Err(Error::range(input.name(), 0, length, problem));
        }
        // Of equal size, so that no worker gets a scrap.
        let cut = |part: u64| (u128::from(length) * u128::from(part) / u128::from(parts)) as u64;
        for part in 0..parts {
            let number = ranges.len() as u64;
            let (start, end) = (cut(part), cut(part + 1));
            ranges.push(Range { number, path: path.clone(), start, end, stamp });
        }
    }
    Ok(ranges)
}

fn check_cancelled(progress: &dyn Progress) -> Result<()> {
    if progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
}

fn open(path: &std::path::Path, contents: &Arc<Contents>) -> Result<Input> {
    let mut inputs = Input::open_all(&[Source::Path(path.to_owned())], 0, contents)?;
    Ok(inputs.swap_remove(0))
}

/// The keys of the hashes of one job: its workers must all have them, and nobody else.
///
/// Whoever chooses lines and knows the keys can make an exact answer wrong; for all others it
/// takes chance (see docs/design.md).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JobKeys([u64; 3]);

impl std::fmt::Debug for JobKeys {
    /// Keys do not belong in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JobKeys")
    }
}

impl JobKeys {
    /// As many bytes as keys take.
    pub const BYTES: usize = 24;

    /// Fresh ones.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> Result<Self> {
        Ok(Self(Hashes::random()?.keys()))
    }

    /// Those of filters that everybody is to make alike and to ask: the hash of any filter, with
    /// the seed 0. Not for exact answers, and not for lines that an adversary chooses.
    #[must_use]
    pub fn public() -> Self {
        Self([0; 3])
    }

    /// Those that came from another worker.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at: usize| bytes[at * 8..].first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
        Self([word(0), word(1), word(2)])
    }

    /// For other workers.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(self.0.map(u64::to_le_bytes).as_flattened());
        bytes
    }
}

/// One worker's part in a job: settings of its own, and the keys of all.
pub struct Task<'a> {
    settings: &'a Settings<'a>,
    hashes: Hashes,
    /// Tells files of this job from those of others, and says nothing of its keys.
    job: u64,
}

impl<'a> Task<'a> {
    /// The first task of a job: [`job_keys`](Self::job_keys) are to be given to all others.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn new(settings: &'a Settings<'a>) -> Result<Self> {
        Ok(Self::with_keys(settings, JobKeys::random()?))
    }

    /// Another task of a job.
    #[must_use]
    pub fn with_keys(settings: &'a Settings<'a>, keys: JobKeys) -> Self {
        let hashes =
            if keys == JobKeys::public() { Hashes::public() } else { Hashes::with_keys(keys.0) };
        let job = hashes.fingerprint(b"the name of the job").high;
        Self { settings, hashes, job }
    }

    /// The keys of the job.
    #[must_use]
    pub fn job_keys(&self) -> JobKeys {
        JobKeys(self.hashes.keys())
    }

    /// The ranges as inputs, and the memory divided for them.
    fn open(&self, ranges: &[Range]) -> Result<(Budget, Vec<Input>)> {
        let budget = Budget::new(self.settings.memory, self.settings.jobs)?;
        let contents = self.settings.contents();
        let portion = |range: &Range| {
            let Range { start, end, .. } = *range;
            let bad =
                |problem| Err(Error::range(&range.path.to_string_lossy(), start, end, problem));
            if range.number >= MOST_RANGES {
                return bad("its number is above 2^24; cut into larger ranges");
            }
            if end.saturating_sub(start) > 1 << OFFSET_BITS {
                return bad("it is longer than 2^40 bytes; cut into smaller ranges");
            }
            let input = open(&range.path, &contents)?;
            if input.stamp().is_some_and(|now| now != range.stamp) {
                return Err(Error::changed(input.name()));
            }
            input.portion(input::Range { start, end })
        };
        let inputs = ranges.iter().map(portion).collect::<Result<Vec<_>>>()?;
        let packed = inputs.iter().any(Input::may_be_packed);
        Ok((if packed { budget.with_decoder() } else { budget }, inputs))
    }

    fn steps(&self, budget: Budget) -> Steps<'_> {
        Steps { pass: self.settings.pass(budget), hashes: &self.hashes }
    }
}

/// The numbers of the first range and the last.
fn numbers(ranges: &[Range]) -> (u64, u64) {
    let ends = ranges.first().zip(ranges.last());
    ends.map_or(NO_RANGES, |(first, last)| (first.number, last.number))
}

/// An error unless ranges follow each other.
fn check_order<'r>(ranges: impl IntoIterator<Item = &'r Range>) -> Result<()> {
    let mut next = None;
    for Range { number, path, start, end, .. } in ranges {
        if next.is_some_and(|next| next != *number) {
            let problem = "its number does not follow that of the range before; keep the order";
            return Err(Error::range(&path.to_string_lossy(), *start, *end, problem));
        }
        next = Some(number.wrapping_add(1));
    }
    Ok(())
}

/// Where the positions of a range begin.
fn base(range: &Range) -> u64 {
    range.number << OFFSET_BITS
}
