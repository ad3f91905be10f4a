//! The allow list of a query: lines that are reported as absent although the filter may report them
//! as present.
//!
//! The false positives of a filter are always the same. Known ones can be listed, and are then
//! corrected. Lines are compared by their 128-bit fingerprints under a key of this run: for n lines
//! in the list and q queries, the probability of any wrong result is at most nq / 2^128.
//!
//! Cost: [`Table::BYTES_PER_ENTRY`] bytes per distinct line; a fingerprint for each line that the
//! filter reports as present.

use std::ops::ControlFlow;

use crate::error::{Advice, Error, ErrorKind, Result, Setting};
use crate::fingerprint::{LineHasher, Table};
use crate::input::Source;
use crate::job_context::JobContext;
use crate::numbers::format_size;
use crate::scan::{Batch, Scratch};
use crate::settings::Settings;

/// An exact set of lines in memory.
pub struct AllowList {
    hasher: LineHasher,
    lines: Table,
}

impl AllowList {
    /// Reads the lines of inputs within the memory limit.
    ///
    /// # Errors
    /// If an input cannot be read, or the memory limit is too low for its lines.
    pub fn read(settings: &Settings<'_>, inputs: &[Source]) -> Result<Self> {
        let names: Vec<_> = inputs.iter().map(ToString::to_string).collect();
        let (context, inputs) = JobContext::open_for_filters(settings, inputs)?;
        let inputs: Vec<_> = inputs.iter().collect();
        let hasher = LineHasher::random()?;
        let mut lines = Table::new(context.budget.work, 0)?;
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.fingerprint(batch, &hasher);
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            for &fingerprint in &scratch.fingerprints {
                if lines.entry(fingerprint, 0)?.is_err() {
                    let limit = format_size(settings.memory_limit);
                    let problem = format!(
                        "has too many lines for the memory that the filter leaves of {limit}"
                    );
                    return Err(Error::new(ErrorKind::Memory, problem)
                        .of(names.join(" "))
                        .advise(Advice::Raise(Setting::MemoryLimit)));
                }
            }
            Ok(ControlFlow::Continue(()))
        };
        context.pass().run("listing", &inputs, map, fold)?;
        Ok(Self { hasher, lines })
    }

    /// Returns the number of distinct lines.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.lines.len()
    }

    /// Returns whether there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the set contains a line.
    #[must_use]
    pub fn contains(&self, line: &[u8]) -> bool {
        self.lines.contains(self.hasher.fingerprint(line))
    }
}
