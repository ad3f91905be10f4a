//! The error type of the file engine: cause, input or directory, offset, setting and values.
//!
//! [`Error::kind`] returns the cause with its values, [`Error::setting`] the setting that is wrong,
//! [`Error::advice`] what to do. `Display` joins them in plain words; front ends word
//! setting and advice with the names of their own flags or parameters.

mod advice;
mod display;
mod kind;

use std::io;
use std::path::Path;

pub use kind::{Advice, ErrorKind, Setting, type_names};

use kind::{io_text, is_disk_full};

/// The result of every fallible function in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a job on line files.
#[derive(Debug)]
pub struct Error(Box<ErrorKind>);

impl Error {
    fn new(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }

    /// Returns the cause with its values.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// An error of reading an input.
    pub(crate) fn read(input: &str, source: io::Error) -> Self {
        // A decoder returns its own error inside of an I/O error, without the name of the input.
        let source = match source.downcast::<Self>() {
            Ok(mut found) => {
                if let ErrorKind::ZstdWindow { input: name, .. }
                | ErrorKind::DecompressionMemory { input: name, .. } = &mut *found.0
                {
                    input.clone_into(name);
                }
                return found;
            }
            Err(source) => source,
        };
        if source.kind() == io::ErrorKind::IsADirectory {
            return Self::directory(input);
        }
        Self::new(ErrorKind::ReadInput { input: input.to_owned(), source })
    }

    pub(crate) fn directory(input: &str) -> Self {
        Self::new(ErrorKind::DirectoryInput { input: input.to_owned() })
    }

    pub(crate) fn changed(input: &str, change: &'static str) -> Self {
        Self::new(ErrorKind::InputChanged { input: input.to_owned(), change })
    }

    pub(crate) fn stream_twice(first: &str, second: &str) -> Self {
        let (first, second) = (first.to_owned(), second.to_owned());
        Self::new(ErrorKind::StreamTwice { first, second })
    }

    /// An input in another format; `conversion` is a clause.
    pub(crate) fn not_lines(input: &str, format: &'static str, conversion: String) -> Self {
        Self::new(ErrorKind::NotLines { input: input.to_owned(), format, conversion })
    }

    /// A zstd window that is too large, for [`read`](Self::read) to add the name of the input.
    pub(crate) fn zstd_window(window: Option<u64>, limit: u64, needed_limit: Option<u64>) -> Self {
        Self::new(ErrorKind::ZstdWindow { input: String::new(), window, limit, needed_limit })
    }

    /// Too little memory for a decoder, for [`read`](Self::read) to add the name of the input.
    pub(crate) fn decoder_memory(
        format: &'static str,
        needed: Option<u64>,
        available: u64,
        needed_limit: Option<u64>,
    ) -> Self {
        let input = String::new();
        Self::new(ErrorKind::DecompressionMemory { input, format, needed, available, needed_limit })
    }

    pub(crate) fn line_too_long(input: &str, offset: u64, limit: u64) -> Self {
        Self::new(ErrorKind::LineTooLong { input: input.to_owned(), offset, limit })
    }

    pub(crate) fn bad_line(input: &str, offset: u64, reason: String) -> Self {
        Self::new(ErrorKind::InvalidLine { input: input.to_owned(), offset, reason })
    }

    /// Wraps the error of a filter that implements [`LineFilterMut`](crate::LineFilterMut).
    #[must_use]
    pub fn of_filter(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::OtherFilter(Box::new(error)))
    }

    /// A record without a key: `reason` says why, and what to do.
    pub(crate) fn bad_record(input: &str, offset: u64, reason: String) -> Self {
        Self::new(ErrorKind::InvalidRecord { input: input.into(), offset, line: None, reason })
    }

    /// A quote that is not closed before the end of the input.
    pub(crate) fn open_quotes(input: &str, offset: u64) -> Self {
        Self::new(ErrorKind::OpenQuotes { input: input.into(), offset, line: None, limit: None })
    }

    /// A quote that is not closed within the longest record.
    pub(crate) fn long_quotes(input: &str, offset: u64, limit: u64) -> Self {
        let limit = Some(limit);
        Self::new(ErrorKind::OpenQuotes { input: input.into(), offset, line: None, limit })
    }

    /// Returns where the record of this error begins: its byte, and its line if that is known.
    pub(crate) fn record_mut(&mut self) -> Option<(u64, &mut Option<u64>)> {
        match &mut *self.0 {
            ErrorKind::InvalidRecord { offset, line, .. }
            | ErrorKind::OpenQuotes { offset, line, .. } => Some((*offset, line)),
            _ => None,
        }
    }

    /// A header without a column of the key; `repeated`: it has the name twice.
    pub(crate) fn bad_header(input: &str, problem: String, repeated: bool) -> Self {
        Self::new(ErrorKind::InvalidHeader { input: input.into(), problem, repeated })
    }

    pub(crate) fn ambiguous_separator(input: &str, separators: [u8; 2]) -> Self {
        Self::new(ErrorKind::AmbiguousSeparator { input: input.into(), separators })
    }

    pub(crate) fn memory_too_small(memory_limit: u64, minimum: u64) -> Self {
        Self::new(ErrorKind::MemoryLimitTooLow { memory_limit, minimum })
    }

    pub(crate) fn filter_too_large(capacity: u64, fpr: f64, needed: u64, available: u64) -> Self {
        Self::new(ErrorKind::FilterTooLarge {
            capacity,
            fpr,
            needed,
            available,
            default_limit: false,
            alternative: Advice::Raise(Setting::Fpr),
        })
    }

    pub(crate) fn list_too_long(inputs: &str, memory_limit: u64) -> Self {
        Self::new(ErrorKind::AllowListTooLong { inputs: inputs.to_owned(), memory_limit })
    }

    pub(crate) fn list_too_large(inputs: &str, available: u64) -> Self {
        Self::new(ErrorKind::LinesTooLarge { inputs: inputs.to_owned(), available })
    }

    pub(crate) fn too_many_lines(inputs: &str, memory_limit: u64) -> Self {
        Self::new(ErrorKind::TooManyLines { inputs: inputs.to_owned(), memory_limit })
    }

    pub(crate) fn full() -> Self {
        Self::new(ErrorKind::FilterFull)
    }

    pub(crate) fn outgrown(size: u64, memory_limit: u64) -> Self {
        Self::new(ErrorKind::FilterOutgrown { size, memory_limit })
    }

    pub(crate) fn no_approximate_mode() -> Self {
        Self::new(ErrorKind::NoApproximateMode)
    }

    pub(crate) fn unknown_size() -> Self {
        Self::new(ErrorKind::UnknownInputSize)
    }

    pub(crate) fn unforeseeable(input: &str) -> Self {
        Self::new(ErrorKind::NotAFile { input: input.to_owned() })
    }

    pub(crate) fn alloc(bytes: u64) -> Self {
        Self::new(ErrorKind::Alloc { bytes })
    }

    pub(crate) fn temp(dir: &Path, action: &'static str, source: io::Error) -> Self {
        Self::new(ErrorKind::TempFile { dir: dir.to_owned(), action, source })
    }

    pub(crate) fn in_work_dir(dir: &Path, action: &'static str, source: io::Error) -> Self {
        Self::new(ErrorKind::WorkFile { dir: dir.to_owned(), action, source })
    }

    pub(crate) fn work_dir(dir: &Path, problem: &str) -> Self {
        Self::new(ErrorKind::WorkDir { dir: dir.to_owned(), problem: problem.to_owned() })
    }

    pub(crate) fn write(source: io::Error) -> Self {
        Self::of_output(false, source)
    }

    /// An error of writing the lines that are not in the result.
    pub(crate) fn write_rest(source: io::Error) -> Self {
        Self::of_output(true, source)
    }

    fn of_output(rest: bool, source: io::Error) -> Self {
        // Rows are read while they are written, and the error may be one of reading.
        match source.downcast::<Self>() {
            Ok(found) => found,
            Err(source) => Self::new(ErrorKind::WriteOutput { rest, source }),
        }
    }

    pub(crate) fn damaged(file: &str, problem: &'static str) -> Self {
        Self::new(ErrorKind::Damaged { file: file.to_owned(), problem })
    }

    pub(crate) fn fingerprint_log(source: io::Error) -> Self {
        Self::new(ErrorKind::FingerprintLog { source })
    }

    pub(crate) fn save(source: io::Error) -> Self {
        Self::new(ErrorKind::Save { source })
    }

    pub(crate) fn random() -> Self {
        Self::new(ErrorKind::NoRandomness)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled)
    }

    pub(crate) fn range(input: &str, start: u64, end: u64, problem: &'static str) -> Self {
        Self::new(ErrorKind::ByteRange { input: input.to_owned(), start, end, problem })
    }

    /// An error of a file of a distributed job.
    pub(crate) fn work(file: &Path, problem: impl Into<String>) -> Self {
        Self::new(ErrorKind::WorkerFile { file: file.to_owned(), problem: problem.into() })
    }

    /// An I/O error of a file of a distributed job; `doing` is a participle: "read".
    pub(crate) fn work_io(file: &Path, doing: &str, source: &io::Error) -> Self {
        Self::work(file, format!("cannot be {doing}: {}", io_text(source)))
    }

    pub(crate) fn uncountable() -> Self {
        Self::new(ErrorKind::UncountableInput)
    }

    /// Returns true if [`Progress::cancelled`](crate::Progress::cancelled) ended the job.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.kind(), ErrorKind::Cancelled)
    }

    /// Returns the input that cannot be read, as the caller named it.
    #[must_use]
    pub fn input(&self) -> Option<&str> {
        match self.kind() {
            ErrorKind::ReadInput { input, .. } => Some(input),
            _ => None,
        }
    }

    /// Returns true if a file of a distributed job is missing, damaged, or of another job.
    #[must_use]
    pub fn is_work(&self) -> bool {
        matches!(self.kind(), ErrorKind::WorkerFile { .. })
    }

    /// Returns true if the reader of the output closed the pipe, which is no failure of the job.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::WriteOutput { source, .. } if source.kind() == io::ErrorKind::BrokenPipe
        )
    }

    /// Returns the error of writing an output, and whether the output is that of the lines that
    /// are not in the result.
    #[must_use]
    pub fn write_error(&self) -> Option<(bool, &io::Error)> {
        match self.kind() {
            ErrorKind::WriteOutput { rest, source } => Some((*rest, source)),
            _ => None,
        }
    }

    /// Returns true if a line is longer than a quarter of the memory limit.
    #[must_use]
    pub fn is_line_too_long(&self) -> bool {
        matches!(self.kind(), ErrorKind::LineTooLong { .. })
    }

    /// Returns true if the error is one of a filter that the caller implements.
    #[must_use]
    pub fn is_of_filter(&self) -> bool {
        matches!(self.kind(), ErrorKind::OtherFilter(_))
    }

    /// Returns true if a line cannot be a key of the filter.
    #[must_use]
    pub fn is_bad_line(&self) -> bool {
        matches!(self.kind(), ErrorKind::InvalidLine { .. })
    }

    /// Returns true if lines that are kept in memory take more than is available.
    #[must_use]
    pub fn is_list_too_large(&self) -> bool {
        matches!(self.kind(), ErrorKind::LinesTooLarge { .. })
    }

    /// Returns true if the memory limit is below the minimum of the job.
    #[must_use]
    pub fn is_memory_too_small(&self) -> bool {
        matches!(self.kind(), ErrorKind::MemoryLimitTooLow { .. })
    }

    /// Returns true if the disk of the output or of temporary files is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self.kind() {
            ErrorKind::TempFile { source, .. }
            | ErrorKind::WorkFile { source, .. }
            | ErrorKind::WriteOutput { source, .. } => is_disk_full(source),
            _ => false,
        }
    }

    /// Returns true if the job needs more memory than its limit, or than the system has.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        match self.kind() {
            ErrorKind::MemoryLimitTooLow { .. }
            | ErrorKind::FilterTooLarge { .. }
            | ErrorKind::TooManyBits { .. }
            | ErrorKind::AllowListTooLong { .. }
            | ErrorKind::LinesTooLarge { .. }
            | ErrorKind::TooManyLines { .. }
            | ErrorKind::FilterOutgrown { .. }
            | ErrorKind::Alloc { .. } => true,
            ErrorKind::Filter(error) => error.is_alloc(),
            _ => false,
        }
    }

    /// Returns true if a setting is missing or wrong for these inputs.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::NoApproximateMode
                | ErrorKind::UnknownInputSize
                | ErrorKind::UncountableInput
                | ErrorKind::NotAFile { .. }
                | ErrorKind::WorkDir { .. }
                | ErrorKind::UnfinishedJob { .. }
                | ErrorKind::MemoryLimitBelowJob { .. }
                | ErrorKind::NotForType { .. }
                | ErrorKind::MissingSetting { .. }
                | ErrorKind::ConflictingSettings { .. }
                | ErrorKind::FprTooLow { .. }
                | ErrorKind::MissingFpr { .. }
                | ErrorKind::MaxCapacityTooLow { .. }
                | ErrorKind::NotBuiltFromLines { .. }
                | ErrorKind::UnattainableFpr { .. }
                | ErrorKind::Contradiction { .. }
        )
    }

    /// Returns true if the filter takes no more lines.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self.kind() {
            ErrorKind::FilterFull | ErrorKind::FullAt { .. } => true,
            ErrorKind::Filter(error) => error.is_full(),
            _ => false,
        }
    }

    /// Returns true if an input is the cause, so that the lines before it are processed.
    pub(crate) fn is_of_inputs(&self) -> bool {
        self.is_input() || self.is_line_too_long()
    }

    /// Returns true if an input cannot be opened or read.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::ReadInput { .. }
                | ErrorKind::DirectoryInput { .. }
                | ErrorKind::InputChanged { .. }
                | ErrorKind::StreamTwice { .. }
                | ErrorKind::NotLines { .. }
                | ErrorKind::TableWithoutColumns { .. }
                | ErrorKind::UnreadableTable { .. }
                | ErrorKind::UnsupportedTable { .. }
                | ErrorKind::UnusableColumn { .. }
                | ErrorKind::TableMemory { .. }
                | ErrorKind::DifferentTables { .. }
                | ErrorKind::NotATable { .. }
                | ErrorKind::ZstdWindow { .. }
                | ErrorKind::DecompressionMemory { .. }
                | ErrorKind::ByteRange { .. }
                | ErrorKind::InvalidRecord { .. }
                | ErrorKind::OpenQuotes { .. }
                | ErrorKind::InvalidHeader { .. }
                | ErrorKind::AmbiguousSeparator { .. }
        )
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::ReadInput { source, .. }
            | ErrorKind::TempFile { source, .. }
            | ErrorKind::WorkFile { source, .. }
            | ErrorKind::WriteOutput { source, .. }
            | ErrorKind::FingerprintLog { source }
            | ErrorKind::Save { source } => Some(source),
            ErrorKind::Filter(error) => Some(error),
            _ => None,
        }
    }
}

impl From<petal::Error> for Error {
    fn from(error: petal::Error) -> Self {
        Self::new(ErrorKind::Filter(error))
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self::new(kind)
    }
}
