//! Records that are left out of the inputs of a job, as the rules of its keys say.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// The records that a job has left out. Clones share them.
///
/// A record is counted once, however often its input is read; so is one of an input that is named twice.
#[derive(Clone, Default)]
pub struct LeftOutRecords(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    counts: LeftOutCounts,
    first_bad: Option<BadRecord>,
    /// The position in each input from which on no record was counted.
    counted_to: HashMap<String, u64>,
    sink: Option<Box<dyn Write + Send>>,
}

/// How many records a job has left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOutCounts {
    /// Records without a key.
    pub bad: u64,
    /// Records with a value that is `null` or missing.
    pub nulls: u64,
    /// Records with an empty key.
    pub empty: u64,
}

impl LeftOutCounts {
    /// Returns the number of all records that were left out.
    #[must_use]
    pub fn total(self) -> u64 {
        self.bad + self.nulls + self.empty
    }
}

/// A record without a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// The input.
    pub input: String,
    /// The line on which it begins, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub problem: String,
}

/// Why a record is left out.
pub(super) enum Reason {
    Bad(String),
    Null,
    Empty,
}

impl LeftOutRecords {
    /// Writes the records without a key to `sink` from now on, each as it was, with an LF.
    pub fn write_bad_to(&self, sink: Box<dyn Write + Send>) {
        self.lock().sink = Some(sink);
    }

    /// Writes what is buffered, and forgets the sink.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish_bad(&self) -> io::Result<()> {
        let sink = self.lock().sink.take();
        sink.map_or(Ok(()), |mut sink| sink.flush())
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> LeftOutCounts {
        self.lock().counts
    }

    /// Returns the first record without a key that was left out.
    #[must_use]
    pub fn first_bad(&self) -> Option<BadRecord> {
        self.lock().first_bad.clone()
    }

    /// Counts a record, which begins at this byte and line, unless it was counted.
    pub(super) fn add(
        &self,
        input: &str,
        (at, line): (u64, u64),
        record: &[u8],
        reason: Reason,
    ) -> Result<()> {
        let mut state = self.lock();
        match state.counted_to.get_mut(input) {
            Some(counted) if at < *counted => return Ok(()),
            Some(counted) => *counted = at + 1,
            None => drop(state.counted_to.insert(input.to_owned(), at + 1)),
        }
        let problem = match reason {
            Reason::Null => {
                state.counts.nulls += 1;
                return Ok(());
            }
            Reason::Empty => {
                state.counts.empty += 1;
                return Ok(());
            }
            Reason::Bad(problem) => problem,
        };
        state.counts.bad += 1;
        let bad = || BadRecord { input: input.to_owned(), line, problem };
        state.first_bad.get_or_insert_with(bad);
        match &mut state.sink {
            Some(sink) => {
                let written = sink.write_all(record).and_then(|()| sink.write_all(b"\n"));
                written.map_err(Error::write_bad)
            }
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LeftOutRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts().fmt(f)
    }
}
