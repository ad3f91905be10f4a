//! The file engine of petal: set operations on line files far larger than memory, and filters
//! filled from and asked with lines.
//!
//! A *line* is the bytes up to a delimiter (LF, or NUL); the delimiter is not part of it, every
//! other byte is. The last line may lack its delimiter; lines printed always have one.
//!
//! ```
//! use petal_lines::{Mode, SetJob, Settings, Sinks, Source, Verb};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (a, b) = (dir.path().join("a"), dir.path().join("b"));
//! std::fs::write(&a, "cherry\napple\nplum\napple\n")?;
//! std::fs::write(&b, "apple\nfig\ncherry")?;
//!
//! let mut out = Vec::new();
//! let job = SetJob {
//!     verb: Verb::Common,
//!     first: vec![Source::from_arg(a)],
//!     others: vec![Source::from_arg(b)],
//!     mode: Mode::Exact { strategy: None },
//! };
//! let report = job.run(&Settings::new(64 << 20), Sinks::to(&mut out))?;
//! assert_eq!(out, b"cherry\napple\n");
//! assert_eq!(report.kept, 2);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! Memory is a promise: the process stays under the cap it was given plus [`SLACK`]; what does
//! not fit goes to a nameless temporary file, or to the work directory of a job that can be
//! resumed. Output is the same bytes for any number of workers
//! and any amount of memory. The engine knows of no terminal and no command line: progress
//! leaves through [`Progress`], results as a [`Report`].

mod approx;
pub mod aside;
mod budget;
mod cap;
mod chunks;
mod error;
mod exact;
mod exceptions;
mod filters;
mod fingerprint;
mod input;
mod judge;
mod ledger;
mod line_filter;
mod listed;
mod lock;
mod marks;
mod pass;
mod plan;
mod print;
mod progress;
pub mod ranges;
mod readable;
mod recipe;
mod report;
mod resolve;
mod sections;
mod seen;
mod settings;
mod spill;
mod steps;
mod table;
#[cfg(test)]
mod tests;
mod vector;

pub use budget::{LEAST_MEMORY, SLACK};
pub use cap::Cap;
pub use error::{Error, Names, Result};
pub use exact::{Forecast, Sampled, forget_work};
pub use exceptions::Exceptions;
pub use filters::{Check, Checked, Filled, Removed, check, count_lines, fill, hashes, remove};
pub use fingerprint::fingerprints;
pub use input::Source;
pub use judge::Verb;
pub use ledger::Ledger;
pub use line_filter::{BadLine, LineFilter, LineFilterMut, LineHash};
pub use listed::Listed;
pub use lock::Lock;
pub use plan::Strategy;
pub use print::Sinks;
pub use progress::{Note, Progress};
pub use readable::{readable_count, readable_keys, readable_number, readable_rate, readable_size};
pub use recipe::{METADATA, Made, Recipe, explain_full};
pub use report::{Phase, Report};
pub use seen::{Memory, Novel, seen};
pub use settings::Settings;

use approx::Approx;
use exact::{Exact, Journal};
use fingerprint::Hashes;
use input::{Input, Temp};
use print::Printer;

/// Whether the answer must be exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// No false line and none lost.
    Exact {
        /// The way to do it; chosen by a cost model if `None`.
        strategy: Option<Strategy>,
    },
    /// One pass over each input; filters decide.
    Approx {
        /// Lines to expect of inputs whose size cannot be known.
        keys: Option<u64>,
        /// The false-positive rate to plan for; without one, the best that the memory allows.
        rate: Option<f64>,
    },
}

/// A set operation on the lines of files.
#[derive(Clone, Debug)]
pub struct SetJob {
    /// Which operation.
    pub verb: Verb,
    /// The input whose lines are printed, in its order; several are taken as one.
    pub first: Vec<Source>,
    /// What it is compared with, ignored by [`Verb::Dedup`]; with nothing to compare with, all
    /// verbs are `Dedup`.
    pub others: Vec<Source>,
    /// Exact or approximate.
    pub mode: Mode,
}

impl SetJob {
    /// Does it.
    ///
    /// # Errors
    /// When an input cannot be read, changes meanwhile, or has a line longer than a quarter of
    /// the memory; when the output or temporary files cannot be written; when the memory is too
    /// small; when the work directory holds another job. What was written to the sinks by then is
    /// right, but not all of it.
    pub fn run(&self, settings: &Settings<'_>, sinks: Sinks<'_>) -> Result<Report> {
        let sources = self.sources();
        let (budget, mut inputs) = settings.open(&sources)?;
        let verb = self.verb.with_others(sources.len() - self.first.len());
        let mut printer = Printer::new(sinks, settings.delimiter, budget.chunk);
        let (delimiter, progress) = (settings.delimiter, settings.progress);
        match self.mode {
            Mode::Exact { strategy } => {
                let journal = |dir| {
                    let (resume, cap, first) = (settings.resume, budget.cap, self.first.len());
                    let inputs = &mut inputs;
                    Journal::open(dir, resume, cap, verb, delimiter, inputs, first, progress)
                };
                let journal = settings.work_dir.as_deref().map(journal).transpose()?;
                let begun = journal.as_ref().and_then(Journal::hashes);
                let job = Exact {
                    verb,
                    budget,
                    delimiter,
                    temp: Temp::new(&settings.temp_dir),
                    progress,
                    strategy,
                    hashes: begun.map_or_else(Hashes::random, Ok)?,
                    journal: journal.as_ref(),
                };
                let (first, others) = self.split(inputs);
                job.run(first, others, &mut printer)
            }
            Mode::Approx { keys, rate } => {
                let hashes = Hashes::random()?;
                let job = Approx { verb, budget, delimiter, progress, hashes, keys, rate };
                let (first, others) = self.split(inputs);
                job.run(&first, &others, &mut printer)
            }
        }
    }

    /// Foretells what an exact job would do, from samples of its inputs; `prints` unless lines
    /// are only to be counted.
    ///
    /// # Errors
    /// When an input cannot be read or is no file; when the memory is too small.
    pub fn forecast(&self, settings: &Settings<'_>, prints: bool) -> Result<Forecast> {
        let sources = self.sources();
        let (budget, inputs) = settings.open(&sources)?;
        let strategy = match self.mode {
            Mode::Exact { strategy } => strategy,
            Mode::Approx { .. } => None,
        };
        let job = Exact {
            verb: self.verb.with_others(sources.len() - self.first.len()),
            budget,
            delimiter: settings.delimiter,
            temp: Temp::new(&settings.temp_dir),
            progress: settings.progress,
            strategy,
            hashes: Hashes::random()?,
            journal: None,
        };
        let (first, others) = self.split(inputs);
        job.forecast(&first, &others, prints)
    }

    /// All inputs, the first ones first.
    fn sources(&self) -> Vec<Source> {
        let others = if self.verb == Verb::Dedup { &[][..] } else { &self.others };
        self.first.iter().chain(others).cloned().collect()
    }

    fn split(&self, mut first: Vec<Input>) -> (Vec<Input>, Vec<Input>) {
        let others = first.split_off(self.first.len());
        (first, others)
    }
}
