//! Errors that are found in several places.

use std::io;
use std::path::Path;

use super::{Advice, Error, ErrorKind, Setting, io_text, is_disk_full};
use crate::keys::Fields;
use crate::numbers::{format_count, format_rate, format_size};

/// Errors of inputs.
impl Error {
    /// Returns an error of reading an input.
    pub(crate) fn read(input: &str, source: io::Error) -> Self {
        // A decoder returns its own error inside of an I/O error, without the name of the input.
        let source = match source.downcast::<Self>() {
            Ok(found) if found.kind() == ErrorKind::Input && found.subject().is_none() => {
                return found.of(input);
            }
            Ok(found) => return found,
            Err(source) => source,
        };
        if source.kind() == io::ErrorKind::IsADirectory {
            return Self::directory(input);
        }
        let problem = format!("cannot read: {}", io_text(&source));
        Self::input(input, problem).caused_by(source)
    }

    pub(crate) fn directory(input: &str) -> Self {
        Self::input(input, "is a directory, expected a file of lines")
            .advise("name the files in it instead")
    }

    /// An input that is not as it was opened; `change` is a clause.
    pub(crate) fn changed(input: &str, change: &str) -> Self {
        Self::input(input, format!("changed while it was being read: {change}"))
            .advise("run again when no other program writes to it")
    }

    /// An input in another format; `conversion` is a clause.
    pub(crate) fn not_lines(input: &str, format: &str, conversion: String) -> Self {
        Self::input(input, format!("is {format}, expected lines"))
            .advise(conversion)
            .advise(Advice::Enable(Setting::Text))
    }

    /// A byte range that cannot be read; `problem` is a clause.
    pub(crate) fn range(input: &str, start: u64, end: u64, problem: &str) -> Self {
        Self::input(input, format!("bytes {start} to {end}: {problem}"))
    }

    /// A record with these fields, or the line of one, that is longer than the longest.
    pub(crate) fn line_too_long(input: &str, offset: u64, limit: u64, fields: &Fields) -> Self {
        let limit = format_size(limit);
        // Parts of records need LF.
        let is_line = matches!(fields, Fields::Line | Fields::Checksum(_));
        Self::input(input, format!(" is longer than {limit}, a quarter of the memory limit"))
            .at_line(offset)
            .advise(Advice::Raise(Setting::MemoryLimit))
            .advise_any(is_line.then_some(Advice::CheckDelimiter))
    }

    /// A quote that is not closed before the end of the input.
    pub(crate) fn open_quotes(input: &str, offset: u64) -> Self {
        Self::input(input, " has a quote that is not closed before the end of the input")
            .at_record(offset)
            .advise("close the quote")
            .advise(Advice::Change(Setting::Separator))
            .advise(Advice::Change(Setting::Quote))
    }

    /// Advises to correct the name of the input, whose fragment says what its keys are.
    pub(crate) fn of_fragment(self) -> Self {
        let separator = "write the separator after # as in &separator=;";
        self.replace_advice(&Advice::Change(Setting::Columns), "change the column after #")
            .replace_advice(&Advice::Change(Setting::Separator), separator)
            .replace_advice(&Advice::Specify(Setting::Separator), separator)
    }

    /// A quote that is not closed within the longest record.
    pub(crate) fn long_quotes(input: &str, offset: u64, limit: u64) -> Self {
        let problem = format!(
            " has a quote that is not closed within {}, a quarter of the memory limit",
            format_size(limit)
        );
        Self::input(input, problem)
            .at_record(offset)
            .advise("close the quote")
            .advise(Advice::Change(Setting::Quote))
            .advise(Advice::Raise(Setting::MemoryLimit))
    }

    /// A CSV file whose first records several bytes divide evenly.
    pub(crate) fn ambiguous_separator(input: &str, separators: [u8; 2]) -> Self {
        let [one, two] = separators.map(|byte| byte.escape_ascii().to_string());
        let problem = format!("its first records are divided evenly by '{one}' and by '{two}'");
        Self::input(input, problem).advise(Advice::Specify(Setting::Separator))
    }

    /// A zstd window that does not fit, for [`read`](Self::read) to add the name of the input.
    pub(crate) fn zstd_window(window: Option<u64>, limit: u64, needed_limit: Option<u64>) -> Self {
        let size = match window {
            Some(window) => format!("{}, more than", format_size(window)),
            None => "larger than".to_owned(),
        };
        let problem = format!(
            "cannot read: its zstd window is {size} the {} that fit an eighth of the memory limit",
            format_size(limit)
        );
        let raise = match needed_limit {
            Some(limit) => Some(Advice::raise_limit_to(limit)),
            None => window.is_none().then_some(Advice::Raise(Setting::MemoryLimit)),
        };
        Self::new(ErrorKind::Input, problem).advise_any(raise).advise("decompress it first")
    }

    /// Columns of a table that cannot be keys or be written; `problem` is a clause.
    pub(crate) fn unusable_column(input: &str, problem: String) -> Self {
        Self::input(input, problem).advise(Advice::Change(Setting::Columns))
    }

    /// Rows that cannot be in one output with those of `first`; `difference` is a predicate.
    pub(crate) fn different_tables(input: &str, first: &str, difference: &str) -> Self {
        Self::input(input, format!("{difference}, so its rows cannot follow those of {first}"))
            .advise(Advice::Enable(Setting::KeysOnly))
            .advise("run one job for each")
    }
}

/// Errors of settings and memory.
impl Error {
    pub(crate) fn no_approximate_mode() -> Self {
        Self::new(ErrorKind::Setting, "this set operation has no approximate mode")
            .advise("run an exact job")
    }

    pub(crate) fn memory_too_small(limit: u64, minimum: u64) -> Self {
        let (limit, minimum) = (format_size(limit), format_size(minimum));
        Self::new(ErrorKind::Memory, format!("{limit} is too little, at least {minimum} is needed"))
            .of_setting(Setting::MemoryLimit)
            .advise(Advice::Raise(Setting::MemoryLimit))
    }

    /// A filter that does not fit `available` bytes, which `limit` names; `raise` is the setting for more.
    pub(crate) fn filter_too_large(
        capacity: u64,
        fpr: f64,
        needed: u64,
        available: u64,
        limit: &str,
        raise: Setting,
    ) -> Self {
        let (capacity, fpr) = (format_count(capacity), format_rate(fpr));
        let (needed, available) = (format_size(needed), format_size(available));
        let problem = format!(
            "{capacity} keys at a false-positive rate of {fpr} take {needed}, more than \
             {available}, {limit}"
        );
        Self::new(ErrorKind::Memory, problem).advise(Advice::Raise(raise))
    }

    pub(crate) fn alloc(bytes: u64) -> Self {
        let size = format_size(bytes);
        Self::new(ErrorKind::Memory, format!("out of memory: the system refused {size}"))
            .advise(Advice::Lower(Setting::MemoryLimit))
    }
}

/// Errors of files that a job writes, and of the system.
impl Error {
    /// A file in the work directory; `action` is a participle: "writing the journal".
    pub(crate) fn in_work_dir(dir: &Path, action: &str, source: io::Error) -> Self {
        let (problem, advice) = match source.kind() {
            _ if is_disk_full(&source) => (
                "no space left".to_owned(),
                vec!["free some space and run again".into(), Advice::Enable(Setting::Resume)],
            ),
            io::ErrorKind::UnexpectedEof => (
                "its records are damaged, found".to_owned(),
                vec!["remove the directory and run again".into()],
            ),
            _ => (io_text(&source), vec![Advice::Change(Setting::WorkDir)]),
        };
        Self::new(ErrorKind::File, format!("{problem} while {action}"))
            .of(dir.display())
            .of_setting(Setting::WorkDir)
            .advise_any(advice)
            .caused_by(source)
    }

    /// A work directory that cannot be used; `problem` says what to do.
    pub(crate) fn work_dir(dir: &Path, problem: impl Into<String>) -> Self {
        Self::setting_is(Setting::WorkDir, problem).of(dir.display())
    }

    /// A file of a distributed job that is missing, damaged, or of another job.
    pub(crate) fn work(file: &Path, problem: impl Into<String>) -> Self {
        Self::new(ErrorKind::File, problem).of(file.display())
    }

    /// An I/O error of a file of a distributed job; `doing` is a participle: "read".
    pub(crate) fn work_io(file: &Path, doing: &str, source: &io::Error) -> Self {
        Self::work(file, format!("cannot be {doing}: {}", io_text(source)))
    }

    pub(crate) fn write(source: io::Error) -> Self {
        Self::of_output(ErrorKind::Output, source)
    }

    /// An error of writing the lines that are not in the result.
    pub(crate) fn write_rest(source: io::Error) -> Self {
        Self::of_output(ErrorKind::RestOutput, source)
    }

    /// An error of writing the records without a key.
    pub(crate) fn write_bad(source: io::Error) -> Self {
        let problem = format!("cannot write: {}", io_text(&source));
        Self::setting_is(Setting::BadRecords, problem).caused_by(source)
    }

    fn of_output(kind: ErrorKind, source: io::Error) -> Self {
        // Rows are read while they are written, and the error may be one of reading.
        let source = match source.downcast::<Self>() {
            Ok(found) => return found,
            Err(source) => source,
        };
        let error = match is_disk_full(&source) {
            true => Self::new(kind, "no space left")
                .advise("free some space")
                .advise(Advice::Change(Setting::Output)),
            false => Self::new(kind, format!("cannot write: {}", io_text(&source))),
        };
        error.of("output").caused_by(source)
    }

    pub(crate) fn random() -> Self {
        Self::new(ErrorKind::System, "the system returned no random bytes").advise("try again")
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the job was cancelled")
    }
}
