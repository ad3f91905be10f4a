//! The file engine of petal: set operations on line files far larger than memory, and filters
//! filled from and asked with lines.
//!
//! A *line* is the bytes up to a delimiter (LF, or NUL); the delimiter is not part of it, every
//! other byte is. The last line may lack its delimiter; lines printed always have one.
//!
//! ```
//! use petal_lines::{Mode, SetJob, Settings, Source, Verb};
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
//! let report = job.run(&Settings::new(64 << 20), Some(&mut out))?;
//! assert_eq!(out, b"cherry\napple\n");
//! assert_eq!(report.kept, 2);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! Memory is a promise: the process stays under the cap it was given plus [`SLACK`]; what does
//! not fit goes to a nameless temporary file. Output is the same bytes for any number of workers
//! and any amount of memory. The engine knows of no terminal and no command line: progress
//! leaves through [`Progress`], results as a [`Report`].

mod approx;
mod budget;
mod error;
mod exact;
mod filters;
mod fingerprint;
mod input;
mod judge;
mod ledger;
mod pass;
mod plan;
mod print;
mod progress;
mod report;
mod resolve;
mod runs;
mod seen;
mod settings;
mod spill;
mod table;
#[cfg(test)]
mod tests;

use std::io::Write;

pub use budget::{LEAST_MEMORY, SLACK};
pub use error::{Error, Result, readable_size};
pub use filters::{Checked, Filled, check, count_lines, fill};
pub use input::Source;
pub use judge::Verb;
pub use ledger::Ledger;
pub use plan::Strategy;
pub use progress::{Note, Progress};
pub use report::Report;
pub use seen::{Memory, Novel, seen};
pub use settings::Settings;

use approx::Approx;
use exact::Exact;
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
    /// Does it. Lines go to `sink`; without one they are only counted.
    ///
    /// # Errors
    /// When an input cannot be read, changes meanwhile, or has a line longer than a quarter of
    /// the memory; when the output or temporary files cannot be written; when the memory is too
    /// small. What was written to the sink by then is right, but not all of it.
    pub fn run(
        &self,
        settings: &Settings<'_>,
        sink: Option<&mut (dyn Write + Send)>,
    ) -> Result<Report> {
        let budget = settings.budget()?;
        let others = if self.verb == Verb::Dedup { &[][..] } else { &self.others };
        let sources: Vec<_> = self.first.iter().chain(others).cloned().collect();
        let mut first = Input::look_at(&sources)?;
        let others = first.split_off(self.first.len());
        let hashes = Hashes::random()?;
        let verb = self.verb.with_others(others.len());
        let mut printer = Printer::new(sink, settings.delimiter, budget.chunk);
        let (delimiter, progress) = (settings.delimiter, settings.progress);
        match self.mode {
            Mode::Exact { strategy } => {
                let temp = Temp::new(&settings.temp_dir);
                let job = Exact { verb, budget, delimiter, temp, progress, strategy, hashes };
                job.run(first, others, &mut printer)
            }
            Mode::Approx { keys, rate } => {
                let job = Approx { verb, budget, delimiter, progress, hashes, keys, rate };
                job.run(&first, &others, &mut printer)
            }
        }
    }
}
