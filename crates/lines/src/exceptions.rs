//! Lines that a filter shall not be believed about: an exact set, held in memory.
//!
//! A filter's false positives are always the same ones. Those that somebody has found can be
//! listed, and from then on are no more: a line in the list is answered *no*, whatever the filter
//! says. Lines are told apart by 128 bits of SipHash under a key of this run, as everywhere else
//! where lines are decided: for n lines in the list and q asked the probability of any wrong
//! answer is at most nq / 2^128.
//!
//! Cost: [`Table::BYTES_PER_ENTRY`] bytes a distinct line; a fingerprint for each line that the
//! filter seems to know, and no more for the others.

use crate::error::{Error, Result};
use crate::fingerprint::Hashes;
use crate::input::Source;
use crate::pass::{Batch, Flow, Scratch};
use crate::settings::Settings;
use crate::table::Table;

/// An exact set of lines, held in memory.
pub struct Exceptions {
    hashes: Hashes,
    lines: Table,
}

impl Exceptions {
    /// The lines of the inputs, within what the cap leaves for work.
    ///
    /// # Errors
    /// If an input cannot be read, or the cap is too small for its lines.
    pub fn read(settings: &Settings<'_>, inputs: &[Source]) -> Result<Self> {
        let names: Vec<_> = inputs.iter().map(ToString::to_string).collect();
        let (budget, inputs) = settings.open(inputs)?;
        let inputs: Vec<_> = inputs.iter().collect();
        let hashes = Hashes::random()?;
        let mut lines = Table::new(budget.work, 0)?;
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.prints.clear();
            hashes.fingerprints(batch.lines(), &mut scratch.prints);
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            for &print in &scratch.prints {
                if lines.entry(print, 0)?.is_err() {
                    return Err(Error::list_too_long(&names.join(" "), settings.memory));
                }
            }
            Ok(Flow::Go)
        };
        settings.pass(budget).run("listing", &inputs, map, fold)?;
        Ok(Self { hashes, lines })
    }

    /// How many distinct lines it holds.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.lines.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the line is one of them.
    #[must_use]
    pub fn contains(&self, line: &[u8]) -> bool {
        self.lines.contains(self.hashes.fingerprint(line))
    }
}
