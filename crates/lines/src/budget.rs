//! The memory cap, divided once: who may hold how much.
//!
//! The promise is about the whole process: its peak resident memory stays under the cap plus
//! [`SLACK`]. The division:
//!
//! | share | size | for |
//! |---|---|---|
//! | lines | cap / 4 | one over-long line, held by the one worker whose turn it is |
//! | work | the rest | filters, fingerprint tables, records on their way to disk |
//! | decoder | cap / 8 and a little, out of the work share | the window of a zstd input, only if one may be packed |
//! | buffers | 4 MiB, or cap / 32 up to 64 MiB | chunks, hashes and output of all workers |
//!
//! The first 4 MiB of buffers live in the slack, beside the program itself, its libraries and
//! its thread stacks; what is above comes out of the work share.

use crate::error::{Error, Result};
use crate::input::decoder_memory;

const MIB: u64 = 1 << 20;

/// The least cap a job can be given, in bytes.
pub const LEAST_MEMORY: u64 = 8 * MIB;

/// What the process may hold beyond the cap, in bytes: code, stacks, the first buffers.
pub const SLACK: u64 = 16 * MIB;

/// Buffers that the slack pays for.
const FREE_BUFFERS: u64 = 4 * MIB;

/// A worker holds its chunk (up to three times the size when its last line is long), and line
/// ends, hashes and answers of it: at most this many times the chunk's size.
const PER_CHUNK: u64 = 6;

const LEAST_CHUNK: u64 = 16 << 10;
const MOST_CHUNK: u64 = MIB;

/// How the memory cap of a job is divided. All sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// The cap as asked for.
    pub(crate) cap: u64,
    /// For filters, tables and records.
    pub(crate) work: u64,
    /// The longest line accepted.
    pub(crate) longest_line: u64,
    /// How many workers the cap allows, at most the jobs asked for.
    pub(crate) workers: usize,
    /// How many bytes of lines a worker takes at a time.
    pub(crate) chunk: usize,
    /// What one decoder of a packed input may hold; out of the work share if there is one.
    pub(crate) decoder: u64,
}

impl Budget {
    pub(crate) fn new(cap: u64, jobs: usize) -> Result<Self> {
        if cap < LEAST_MEMORY {
            return Err(Error::memory_too_small(cap, LEAST_MEMORY));
        }
        let buffers = (cap / 32).clamp(FREE_BUFFERS, 64 * MIB);
        let most_workers = buffers / (PER_CHUNK * LEAST_CHUNK);
        let workers = (jobs.max(1) as u64).min(most_workers);
        let chunk = (buffers / (PER_CHUNK * workers)).min(MOST_CHUNK);
        let longest_line = cap / 4;
        Ok(Self {
            cap,
            work: cap - longest_line - (buffers - FREE_BUFFERS),
            longest_line,
            workers: workers as usize,
            chunk: chunk as usize,
            decoder: decoder_memory(cap),
        })
    }

    /// The same, with a decoder beside the work.
    pub(crate) fn with_decoder(self) -> Self {
        Self { work: self.work - self.decoder.min(self.work / 2), ..self }
    }

    /// Lines a worker takes at a time: bounds what it holds per line when lines are very short.
    pub(crate) fn batch_lines(&self) -> usize {
        (self.chunk / 16).max(1)
    }
}

/// Memory kept free for records beside a filter that could use all there is.
pub(crate) fn least_records(work: u64) -> u64 {
    (work / 16).min(256 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_exceed_the_cap() {
        for shift in 23..45 {
            for jobs in [1, 2, 4, 64, 1000] {
                let budget = Budget::new(1 << shift, jobs).unwrap();
                let buffers = budget.workers as u64 * budget.chunk as u64 * PER_CHUNK;
                let held = budget.work + budget.longest_line + buffers;
                assert!(held <= budget.cap + FREE_BUFFERS, "{budget:?}");
                assert!(budget.work >= budget.cap / 2 && budget.workers >= 1);
                assert!(budget.chunk as u64 >= LEAST_CHUNK);
            }
        }
    }

    #[test]
    fn below_the_least_is_an_error() {
        assert!(Budget::new(LEAST_MEMORY - 1, 1).unwrap_err().is_memory_too_small());
        assert!(Budget::new(LEAST_MEMORY, 1).is_ok());
    }
}
