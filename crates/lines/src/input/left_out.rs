//! Records that are left out of the inputs of a job, as the rules of its keys say, and the error of those
//! that are not.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{LineWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::compression::compressed_extension;
use super::source::Source;
use crate::error::{Advice, Error, ErrorKind, Result, Setting, io_text};
use crate::files::atomic_file::canonical_path;
use crate::keys::{Fields, KeyProblem};
use crate::numbers::format_count;

/// The records that a job has left out. Clones share them.
///
/// A record is counted once, however often its input is read; so is one of an input whose name is given twice.
#[derive(Clone, Default)]
pub struct LeftOutRecords(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    counts: LeftOutCounts,
    first_bad: Option<BadRecord>,
    /// The position in each input, by its name and identity, from which on no record was counted.
    counted_to: HashMap<String, u64>,
    sink: Option<Sink>,
}

/// Where records without a key go.
enum Sink {
    /// A file that no record was written to.
    Path(PathBuf),
    File(LineWriter<File>),
}

impl Sink {
    /// Opens the file, unless it is open.
    fn file(&mut self) -> Result<&mut LineWriter<File>> {
        if let Self::Path(path) = self {
            let is_special = std::fs::metadata(&*path).is_ok_and(|data| !data.is_file());
            let file = File::options().write(true).create_new(!is_special).open(&*path);
            let file = file.map_err(|error| {
                let problem = format!("cannot create: {}", io_text(&error));
                Error::new(ErrorKind::File, problem).of(path.display())
            })?;
            *self = Self::File(LineWriter::new(file));
        }
        match self {
            Self::File(file) => Ok(file),
            // It is open.
            Self::Path(path) => Err(Error::new(ErrorKind::File, "is not open").of(path.display())),
        }
    }
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

/// A record without a key.
struct BadRecord {
    input: String,
    /// The line on which it begins, from 1.
    line: u64,
    problem: String,
}

/// Why a record is left out.
pub(super) enum Reason {
    Bad(String),
    Null,
    Empty,
}

impl LeftOutRecords {
    /// Writes the records without a key to a file: each as it was, with an LF, as soon as it is read. The
    /// first one creates the file, so that no input and no earlier result is lost; a device may exist.
    ///
    /// # Errors
    /// If the file exists, or is one of the inputs.
    pub fn write_bad_to(&self, path: &Path, inputs: &[Source]) -> Result<()> {
        let failed = |problem: &str| {
            let error = Error::new(ErrorKind::File, problem).of(path.display());
            error.advise(Advice::Change(Setting::BadRecords))
        };
        match std::fs::metadata(path) {
            Ok(data) if inputs.iter().any(|input| input.is(&data)) => {
                return Err(failed("is an input, too"));
            }
            Ok(data) if data.is_file() => return Err(failed("exists already").advise("remove it")),
            _ if compressed_extension(path).is_some() => {
                return Err(failed("would not be compressed"));
            }
            _ => {}
        }
        self.lock().sink = Some(Sink::Path(path.to_owned()));
        Ok(())
    }

    /// Returns whether this is the file for records without a key.
    #[must_use]
    pub fn writes_to(&self, path: &Path) -> bool {
        match &self.lock().sink {
            Some(Sink::Path(own)) => canonical_path(own) == canonical_path(path),
            _ => false,
        }
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> LeftOutCounts {
        self.lock().counts
    }

    /// Returns what was left out, with the first record without a key; `None` if nothing was.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        let state = self.lock();
        let LeftOutCounts { bad, nulls, empty } = state.counts;
        let kinds =
            [(bad, "without a key"), (nulls, "with a null value"), (empty, "with an empty key")];
        let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<_> = kinds
            .map(|(count, kind)| {
                let records = if count == 1 { "record" } else { "records" };
                format!("{} {records} {kind}", format_count(count))
            })
            .collect();
        if let (Some(BadRecord { input, line, problem }), Some(part)) =
            (&state.first_bad, parts.first_mut())
        {
            // The rest says how to correct it.
            let problem = problem.split("; ").next().unwrap_or_default();
            let first = if bad == 1 { "" } else { "the first " };
            part.push_str(&format!(" ({first}at {input} line {line}: {problem})"));
        }
        (!parts.is_empty()).then(|| format!("left out {}", parts.join(", ")))
    }

    /// Counts a record, which begins at this byte and line, unless it was counted.
    pub(super) fn add(
        &self,
        [input, id]: [&str; 2],
        (at, line): (u64, u64),
        record: &[u8],
        reason: Reason,
    ) -> Result<()> {
        let mut state = self.lock();
        match state.counted_to.get_mut(id) {
            Some(counted) if at < *counted => return Ok(()),
            Some(counted) => *counted = at + 1,
            None => drop(state.counted_to.insert(id.to_owned(), at + 1)),
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
                let file = sink.file()?;
                let written = file.write_all(record).and_then(|()| file.write_all(b"\n"));
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

/// Returns the error of a record without a key, at this byte of the file, on this line if it is known.
pub(crate) fn no_key(
    name: &str,
    fields: &Fields,
    problem: KeyProblem,
    at: u64,
    line: Option<u64>,
) -> Error {
    let error = Error::input(name, format!(": {}", problem.text));
    let error = match (fields, line) {
        (Fields::Line | Fields::Checksum(_), None) => error.at_counted_line(at),
        (Fields::Line | Fields::Checksum(_), Some(line)) => error.at_numbered_line(at, line),
        (_, None) => error.at_record(at),
        (_, Some(line)) => error.at_numbered_record(at, line),
    };
    match fields {
        Fields::Checksum(_) if problem.other_shape.is_none() => {
            error.advise(Advice::Omit(Setting::Sums))
        }
        _ => error.advise_any(problem.other_shape.map(Advice::MatchKeys)),
    }
}
