//! The division of the memory limit.
//!
//! The peak resident memory of the whole process stays below the limit plus [`MEMORY_OVERHEAD`].
//!
//! | share | size | used for |
//! |---|---|---|
//! | lines | limit / 4 | one over-long line at a time, held by one worker |
//! | work | the rest | filters, fingerprint tables, records before they are written to disk |
//! | decoder | limit / 8 and a little, taken from the work share | the window of a zstd input, if an input may be compressed |
//! | objects | limit / 16 up to 64 MiB and 8 MiB, taken from the work share | blocks of an object of a store, if an input is one, and the HTTP client |
//! | descriptions | what they need, at most 3/4 of the work share | the columns and row groups of inputs that are tables, and those of an output |
//! | rows | a quarter of the rest of the work share, if an input is a table | reading and writing the rows of a result |
//! | buffers | 4 MiB, or limit / 32 up to 64 MiB | chunks, hashes and output of all workers |
//!
//! The first 4 MiB of buffers are part of the overhead, as are the program, its libraries and its
//! thread stacks. Larger buffers are taken from the work share.

use crate::error::{Error, Result};
use crate::input::decoder_memory;
use crate::remote::{MIN_MEMORY_OF_OBJECTS, objects_memory};

const MIB: u64 = 1 << 20;

/// The lowest memory limit of a job, in bytes.
pub const MIN_MEMORY: u64 = 8 * MIB;

/// Memory that the process may use beyond the limit, in bytes: code, stacks and the first buffers.
pub const MEMORY_OVERHEAD: u64 = 16 * MIB;

/// Buffers that are part of the overhead.
const FREE_BUFFERS: u64 = 4 * MIB;

/// Memory of a worker in multiples of the chunk size: the chunk (up to three times as long if its
/// last line is long), its line ends, hashes and results.
const PER_CHUNK: u64 = 6;

const MIN_CHUNK: u64 = 16 << 10;
/// On some machines the kernel copies larger pieces from the page cache at a third of the speed.
const MAX_CHUNK: u64 = MIB * 2 / 3;

/// The division of a job's memory limit. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// The memory limit.
    pub(crate) limit: u64,
    /// For filters, tables and records.
    pub(crate) work: u64,
    /// Maximum length of a line.
    pub(crate) longest_line: u64,
    /// Number of worker threads that the limit allows.
    pub(crate) workers: usize,
    /// Bytes that a worker reads at a time.
    pub(crate) chunk: usize,
    /// Memory for the decoder of a compressed input; taken from the work share if there is one.
    pub(crate) decoder: u64,
    /// Memory for reading and writing rows; 0 unless an input is a table.
    pub(crate) rows: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64, jobs: usize) -> Result<Self> {
        if limit < MIN_MEMORY {
            return Err(Error::memory_too_small(limit, MIN_MEMORY));
        }
        let buffers = (limit / 32).clamp(FREE_BUFFERS, 64 * MIB);
        let most_workers = buffers / (PER_CHUNK * MIN_CHUNK);
        let workers = (jobs.max(1) as u64).min(most_workers);
        let chunk = (buffers / (PER_CHUNK * workers)).min(MAX_CHUNK);
        let longest_line = limit / 4;
        Ok(Self {
            limit,
            work: limit - longest_line - (buffers - FREE_BUFFERS),
            longest_line,
            workers: workers as usize,
            chunk: chunk as usize,
            decoder: decoder_memory(limit),
            rows: 0,
        })
    }

    /// Takes the memory of a decoder from the work share.
    pub(crate) fn with_decoder(self) -> Self {
        Self { work: self.work - self.decoder.min(self.work / 2), ..self }
    }

    /// Takes the memory of objects from the work share. Returns an error if the limit is too low.
    pub(crate) fn with_objects(self) -> Result<Self> {
        if self.limit < MIN_MEMORY_OF_OBJECTS {
            return Err(Error::memory_too_small(self.limit, MIN_MEMORY_OF_OBJECTS));
        }
        Ok(Self { work: self.work - objects_memory(self.limit), ..self })
    }

    /// Returns the memory that what describes tables may take.
    pub(crate) fn descriptions(&self) -> u64 {
        self.work / 4 * 3
    }

    /// Takes the memory of tables from the work share: what describes them, and that for rows.
    pub(crate) fn with_tables(self, described: u64) -> Self {
        let work = self.work - described.min(self.descriptions());
        Self { rows: work / 4, work: work - work / 4, ..self }
    }

    /// Takes the memory of the workers' keys from the work share: a key is at most `growth` times as
    /// long as its record, and the buffers for changes to it are a part of that.
    pub(crate) fn with_keys(self, growth: u64) -> Self {
        let keys = self.workers as u64 * 2 * growth * self.chunk as u64;
        Self { work: self.work - keys.min(self.work / 4), ..self }
    }

    /// Maximum number of lines in a batch. Bounds the memory per line if lines are very short.
    pub(crate) fn batch_lines(&self) -> usize {
        (self.chunk / 16).max(1)
    }
}

/// Memory for reading beside a filter, if the limit is at least twice that.
const READING: u64 = 32 * MIB;

/// Returns the largest filter in bytes that a job may fill within a memory limit.
#[must_use]
pub fn memory_for_filter(limit: u64) -> u64 {
    limit - READING.min(limit / 2)
}

/// Memory reserved for records besides a filter that could use all of it.
pub(crate) fn least_records(work: u64) -> u64 {
    (work / 16).min(256 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn shares_never_exceed_the_limit() {
        for shift in 23..45 {
            for jobs in [1, 2, 4, 64, 1000] {
                let budget = Budget::new(1 << shift, jobs).unwrap();
                let buffers = budget.workers as u64 * budget.chunk as u64 * PER_CHUNK;
                let used = budget.work + budget.longest_line + buffers;
                assert!(used <= budget.limit + FREE_BUFFERS, "{budget:?}");
                assert!(budget.work >= budget.limit / 2 && budget.workers >= 1);
                assert!(budget.chunk as u64 >= MIN_CHUNK);
            }
        }
    }

    #[test]
    fn objects_and_a_decoder_leave_memory_for_work() {
        for limit in [32 << 20, 33 << 20, 100 << 20, 1 << 30, 1 << 40] {
            let budget = Budget::new(limit, 64).unwrap().with_keys(100).with_decoder();
            let budget = budget.with_objects().unwrap();
            assert!(budget.work >= limit / 16, "{budget:?}");
        }
        let low = Budget::new((32 << 20) - 1, 1).unwrap().with_objects();
        assert_eq!(low.unwrap_err().kind(), ErrorKind::Memory);
    }

    #[test]
    fn limit_below_the_minimum_is_an_error() {
        assert_eq!(Budget::new(MIN_MEMORY - 1, 1).unwrap_err().kind(), ErrorKind::Memory);
        assert!(Budget::new(MIN_MEMORY, 1).is_ok());
    }
}
