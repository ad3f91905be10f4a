//! The error type of the file engine: plain data that is made where the error is found.
//!
//! `Display` prints *where: what; what to do* with the names of fields of this library. Front ends
//! print the same with the names of their flags or parameters, see [`Error::text`].

mod advice;
mod shared;

use std::fmt::{self, Write as _};
use std::io;

pub use advice::{Advice, Setting, type_names};

/// The result of every fallible function in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can tell apart of errors; the text has the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An input cannot be read, or is not what the job expects.
    Input,
    /// A line cannot be a key of the filter.
    Key,
    /// A setting is missing, or wrong for these inputs.
    Setting,
    /// The job needs more memory than its limit, or than the system has.
    Memory,
    /// Lines that a [`LineBuffer`](crate::LineBuffer) keeps need more memory than they may use.
    LineBuffer,
    /// The filter takes no more lines.
    Full,
    /// Another error of a filter of petal, or of its file. The source is a [`petal::Error`].
    Filter,
    /// An error of a filter that the caller implements, which is the source.
    OtherFilter,
    /// The output of the result cannot be written.
    Output,
    /// The output of the lines that are not in the result cannot be written.
    RestOutput,
    /// A file beside inputs and outputs cannot be used: a temporary file, or one of a job in several
    /// processes, a fingerprint log, or the filter of a job that saves it.
    File,
    /// The system has no random bytes.
    System,
    /// The caller cancelled the job.
    Cancelled,
}

/// The error of a job on line files.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    subject: Option<String>,
    position: Option<Position>,
    setting: Option<Setting>,
    problem: String,
    advice: Vec<Advice>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Where a line or a record begins in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    /// "line" or "record".
    unit: &'static str,
    offset: u64,
    /// Whether the number of the line is to be counted.
    counted: bool,
    /// The number of the line in the input, from 1, if it is known.
    line: Option<u64>,
}

/// How an error is made.
impl Error {
    /// Returns an error; `problem` is a clause, or a predicate of the subject.
    pub(crate) fn new(kind: ErrorKind, problem: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            subject: None,
            position: None,
            setting: None,
            problem: problem.into(),
            advice: Vec::new(),
            source: None,
        }))
    }

    /// Returns the error of an input; `problem` is a predicate.
    pub(crate) fn input(name: &str, problem: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, problem).of(name)
    }

    /// Returns the error of a setting; `problem` is a clause.
    pub(crate) fn setting_is(setting: Setting, problem: impl Into<String>) -> Self {
        Self::new(ErrorKind::Setting, problem).of_setting(setting)
    }

    /// Names the input, file or directory of the error.
    pub(crate) fn of(mut self, subject: impl fmt::Display) -> Self {
        self.0.subject = Some(subject.to_string());
        self
    }

    /// Names the setting that is wrong.
    pub(crate) fn of_setting(mut self, setting: Setting) -> Self {
        self.0.setting = Some(setting);
        self
    }

    /// Adds where the line begins. The problem continues its sentence: " is long", or ": a reason".
    pub(crate) fn at_line(mut self, offset: u64) -> Self {
        self.0.position = Some(Position { unit: "line", offset, counted: false, line: None });
        self
    }

    /// Adds where the record begins. The problem continues its sentence, as that of a line.
    pub(crate) fn at_record(mut self, offset: u64) -> Self {
        self.0.position = Some(Position { unit: "record", offset, counted: true, line: None });
        self
    }

    /// Adds where the line begins, and its number once it is counted.
    pub(crate) fn at_counted_line(mut self, offset: u64) -> Self {
        self.0.position = Some(Position { unit: "line", offset, counted: true, line: None });
        self
    }

    /// Adds where the line begins, and its number.
    pub(crate) fn at_numbered_line(mut self, offset: u64, line: u64) -> Self {
        let line = Some(line);
        self.0.position = Some(Position { unit: "line", offset, counted: false, line });
        self
    }

    /// Adds where the record begins, and the number of its line.
    pub(crate) fn at_numbered_record(mut self, offset: u64, line: u64) -> Self {
        let line = Some(line);
        self.0.position = Some(Position { unit: "record", offset, counted: false, line });
        self
    }

    /// Adds one way to avoid the error.
    pub(crate) fn advise(mut self, advice: impl Into<Advice>) -> Self {
        self.0.advice.push(advice.into());
        self
    }

    /// Adds several ways to avoid the error.
    pub(crate) fn advise_any(mut self, advice: impl IntoIterator<Item = Advice>) -> Self {
        self.0.advice.extend(advice);
        self
    }

    /// Adds the source.
    pub(crate) fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Replaces a way to avoid the error, if the error has it, by one that suits the caller better.
    #[must_use]
    pub fn replace_advice(mut self, old: &Advice, new: impl Into<Advice>) -> Self {
        if let Some(found) = self.0.advice.iter_mut().find(|advice| *advice == old) {
            *found = new.into();
        }
        self
    }

    /// Advises to take the hashes out of records: they are listed, not queried.
    pub(crate) fn of_listed_keys(mut self) -> Self {
        for advice in &mut self.0.advice {
            if let Advice::MatchKeys(shape) = *advice {
                *advice = Advice::TakeHashes(shape);
            }
        }
        self
    }

    /// Adds the number of the line on which the record of this error begins.
    /// `count` gets the offset of the record.
    pub(crate) fn count_line(&mut self, count: impl FnOnce(u64) -> Option<u64>) {
        if let Some(position) = &mut self.0.position
            && position.counted
        {
            position.line = count(position.offset);
        }
    }

    /// Wraps the error of a filter that implements [`LineFilterMut`](crate::LineFilterMut).
    #[must_use]
    pub fn of_filter(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::OtherFilter, error.to_string()).caused_by(error)
    }
}

/// What an error says.
impl Error {
    /// Returns what the error is about.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the input, file or directory that the error is about, as the caller named it.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    /// Returns where the line or the record begins in the input, in bytes, if the error is of one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        Some(self.0.position?.offset)
    }

    /// Returns the setting that is wrong, if one is.
    #[must_use]
    pub fn setting(&self) -> Option<Setting> {
        self.0.setting
    }

    /// Returns what to do about the error: any one of the returned ways is enough.
    #[must_use]
    pub fn advice(&self) -> &[Advice] {
        &self.0.advice
    }

    /// Returns the I/O error that caused this one.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        self.cause()
    }

    /// Returns the error of a filter of petal that this one wraps.
    #[must_use]
    pub fn filter_error(&self) -> Option<&petal::Error> {
        self.cause()
    }

    /// Returns the source if it has this type.
    pub(crate) fn cause<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.0.source.as_ref()?.downcast_ref()
    }

    /// Returns true if the reader of an output closed the pipe, which is no failure of the job.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        matches!(self.0.kind, ErrorKind::Output | ErrorKind::RestOutput)
            && self.io_error().is_some_and(closed)
    }

    /// Returns true if a disk is full, or the user's share of it.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.io_error().is_some_and(is_disk_full)
    }

    /// Returns the text with the names of a front end: `name` names a setting, `word` words advice,
    /// for example with [`Advice::text`].
    pub fn text(
        &self,
        name: impl Fn(Setting) -> &'static str,
        word: impl Fn(&Advice) -> String,
    ) -> String {
        let Inner { subject, position, setting, problem, advice, .. } = &*self.0;
        let mut text = match (subject, setting) {
            (Some(subject), _) => format!("{subject}: "),
            (None, Some(setting)) => format!("{}: ", name(*setting)),
            (None, None) => String::new(),
        };
        if let Some(Position { unit, offset, line, .. }) = position {
            let _ = write!(text, "the {unit} at byte {offset}");
            let _ = line.map_or(Ok(()), |line| write!(text, " (line {line})"));
        }
        text.push_str(problem);
        for (number, advice) in advice.iter().enumerate() {
            text.push_str(if number == 0 { "; " } else { ", or " });
            text.push_str(&word(advice));
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Setting::name, |advice| advice.text("set", Setting::name)))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&**self.0.source.as_ref()?)
    }
}

impl From<petal::Error> for Error {
    fn from(error: petal::Error) -> Self {
        // An error of temporary files came through the library.
        let error = match error.is_io() {
            true => match io::Error::from(error).downcast::<Self>() {
                Ok(ours) => return ours,
                Err(other) => other.into(),
            },
            false => error,
        };
        let kind = match error {
            _ if error.is_full() => ErrorKind::Full,
            _ if error.is_alloc() => ErrorKind::Memory,
            _ => ErrorKind::Filter,
        };
        Self::new(kind, error.to_string()).caused_by(error)
    }
}

/// Returns the text of an I/O error without Rust's `(os error N)`.
#[must_use]
pub fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

/// Returns true if a disk is full, or the user's share of it.
#[must_use]
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
