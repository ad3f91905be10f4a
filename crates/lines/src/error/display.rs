//! The texts of errors: the problem, and how problem, setting and advice are joined.
//!
//! The sections are those of [`ErrorKind`].

use std::fmt;
use std::io;

use petal::FilterType;

use super::Error;
use super::kind::{ErrorKind, Setting, io_text, is_disk_full};
use crate::{format_count, format_keys, format_rate, format_size};

/// The text of an error without setting and advice.
struct Problem<'a>(&'a ErrorKind);

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Inputs.
            ErrorKind::ReadInput { input, source } => {
                write!(f, "{input}: cannot read: {}", io_text(source))
            }
            ErrorKind::DirectoryInput { input } => {
                write!(f, "{input}: is a directory, expected a file of lines")
            }
            ErrorKind::InputChanged { input, change } => {
                write!(f, "{input}: changed while it was being read: {change}")
            }
            ErrorKind::StreamTwice { first, second } if first == second => {
                write!(f, "{first}: is named twice, but can be read only once")
            }
            ErrorKind::StreamTwice { first, second } => {
                write!(f, "{second}: is the same stream as {first}, which can be read only once")
            }
            ErrorKind::NotLines { input, format, .. } => {
                write!(f, "{input}: is {format}, expected lines")
            }
            // Tables.
            ErrorKind::TableWithoutColumns { input, format } => {
                write!(f, "{input}: is {format}, expected lines")
            }
            ErrorKind::UnreadableTable { input, format, problem } => {
                write!(f, "{input}: cannot read as {format}: {problem}")
            }
            ErrorKind::UnsupportedTable { input, problem }
            | ErrorKind::UnusableColumn { input, problem, .. } => write!(f, "{input}: {problem}"),
            ErrorKind::TableMemory { input, part, needed, available, .. } => write!(
                f,
                "{input}: {part} takes {}, more than the {} of the memory limit for it",
                format_size(*needed),
                format_size(*available)
            ),
            ErrorKind::DifferentTables { input, first, difference } => {
                write!(f, "{input}: {difference}, so its rows cannot follow those of {first}")
            }
            ErrorKind::RowsNotTaken { input, format } => {
                write!(f, "{input}: its rows are binary data in {format}, not text")
            }
            ErrorKind::LogBesideRows => f.write_str(
                "the new rows have more fingerprints than fit the memory limit, and none can be saved \
                 before the output is complete",
            ),
            ErrorKind::NotATable { input } => {
                write!(f, "{input}: has lines, expected a table")
            }
            // Compressed inputs.
            ErrorKind::ZstdWindow { input, window, limit, .. } => {
                let limit = format_size(*limit);
                match window {
                    Some(window) => write!(
                        f,
                        "{input}: cannot read: its zstd window is {}, more than the {limit} that \
                         fit an eighth of the memory limit",
                        format_size(*window)
                    ),
                    None => write!(
                        f,
                        "{input}: cannot read: its zstd window is larger than the {limit} that \
                         fit an eighth of the memory limit"
                    ),
                }
            }
            ErrorKind::DecompressionMemory { input, format, needed, available, .. } => {
                let available = format_size(*available);
                match needed {
                    Some(needed) => write!(
                        f,
                        "{input}: cannot read: decompressing its {format} data needs {}, more than \
                         the {available} that fit an eighth of the memory limit",
                        format_size(*needed)
                    ),
                    None => write!(
                        f,
                        "{input}: cannot read: decompressing its {format} data needs more than \
                         the {available} that fit an eighth of the memory limit"
                    ),
                }
            }
            // Lines and records.
            ErrorKind::LineTooLong { input, offset, limit } => write!(
                f,
                "{input}: the line at byte {offset} is longer than {}, a quarter of the memory limit",
                format_size(*limit)
            ),
            ErrorKind::InvalidLine { input, offset, reason } => {
                write!(f, "{input}: the line at byte {offset}: {reason}")
            }
            ErrorKind::InvalidRecord { input, offset, line, reason } => {
                write!(f, "{input}: the record at byte {offset}{}: {reason}", Line(*line))
            }
            ErrorKind::OpenQuotes { input, offset, line, limit: None } => write!(
                f,
                "{input}: the record at byte {offset}{} has a quote that is not closed before the \
                 end of the input",
                Line(*line)
            ),
            ErrorKind::OpenQuotes { input, offset, line, limit: Some(limit) } => write!(
                f,
                "{input}: the record at byte {offset}{} has a quote that is not closed within {}, a \
                 quarter of the memory limit",
                Line(*line),
                format_size(*limit)
            ),
            ErrorKind::InvalidHeader { input, problem, .. } => write!(f, "{input}: {problem}"),
            ErrorKind::AmbiguousSeparator { input, separators: [one, two] } => {
                let [one, two] = [one, two].map(|byte| byte.escape_ascii());
                write!(f, "{input}: its first records are divided evenly by '{one}' and by '{two}'")
            }
            ErrorKind::ByteRange { input, start, end, problem } => {
                write!(f, "{input}: bytes {start} to {end}: {problem}")
            }
            // Inputs and operations that a mode does not support.
            ErrorKind::NotAFile { input } => {
                write!(f, "{input}: is not a file, so its lines cannot be sampled")
            }
            ErrorKind::NoApproximateMode => {
                f.write_str("this set operation has no approximate mode")
            }
            ErrorKind::UnknownInputSize => {
                f.write_str("the size of an input that is not a file is unknown")
            }
            ErrorKind::UncountableInput => {
                f.write_str("an input that can be read only once cannot be counted first")
            }
            // Memory.
            ErrorKind::MemoryLimitTooLow { memory_limit, minimum } => write!(
                f,
                "{} is too little, at least {} is needed",
                format_size(*memory_limit),
                format_size(*minimum)
            ),
            ErrorKind::FilterTooLarge {
                capacity, fpr, needed, available, default_limit, ..
            } => write!(
                f,
                "{} keys at a false-positive rate of {} take {}, more than {}, {}",
                format_count(*capacity),
                format_rate(*fpr),
                format_size(*needed),
                format_size(*available),
                limit_name(*default_limit)
            ),
            ErrorKind::TooManyBits { bits, needed, available, default_limit } => write!(
                f,
                "a filter of {} bits takes {}, more than {}, {}",
                format_count(*bits),
                format_size(*needed),
                format_size(*available),
                limit_name(*default_limit)
            ),
            ErrorKind::AllowListTooLong { inputs, memory_limit } => write!(
                f,
                "{inputs}: has too many lines for the memory that the filter leaves of {}",
                format_size(*memory_limit)
            ),
            ErrorKind::LinesTooLarge { inputs, available } => write!(
                f,
                "{inputs}: its lines take more than the {} of memory for them",
                format_size(*available)
            ),
            ErrorKind::TooManyLines { inputs, memory_limit } => write!(
                f,
                "{inputs}: the hashes of its lines do not fit {} of memory",
                format_size(*memory_limit)
            ),
            ErrorKind::FilterOutgrown { size, memory_limit } => write!(
                f,
                "the filter has grown to {}, more than the limit of {}",
                format_size(*size),
                format_size(*memory_limit)
            ),
            ErrorKind::Alloc { bytes } => {
                write!(f, "out of memory: the system refused {}", format_size(*bytes))
            }
            // Files that a job writes.
            ErrorKind::TempFile { dir, action, source } if is_disk_full(source) => {
                write!(f, "{}: no space left while {action}", dir.display())
            }
            ErrorKind::TempFile { dir, action, source } => {
                write!(f, "{}: temporary file: {} while {action}", dir.display(), io_text(source))
            }
            ErrorKind::WorkFile { dir, action, source } => match source.kind() {
                _ if is_disk_full(source) => {
                    write!(f, "{}: no space left while {action}", dir.display())
                }
                io::ErrorKind::UnexpectedEof => {
                    write!(f, "{}: its records are damaged, found while {action}", dir.display())
                }
                _ => write!(f, "{}: {} while {action}", dir.display(), io_text(source)),
            },
            ErrorKind::WorkDir { dir, problem } => write!(f, "{}: {problem}", dir.display()),
            ErrorKind::UnfinishedJob { dir } => {
                write!(f, "{}: it contains an unfinished job", dir.display())
            }
            ErrorKind::MemoryLimitBelowJob { dir, minimum } => write!(
                f,
                "{}: its job began with a memory limit of {}",
                dir.display(),
                format_size(*minimum)
            ),
            ErrorKind::WriteOutput { source, .. } if is_disk_full(source) => {
                f.write_str("output: no space left")
            }
            ErrorKind::WriteOutput { source, .. } => {
                write!(f, "output: cannot write: {}", io_text(source))
            }
            ErrorKind::Damaged { file, problem } => write!(f, "{file}: {problem}"),
            ErrorKind::FingerprintLog { source } => {
                write!(f, "the fingerprint log: cannot read: {}", io_text(source))
            }
            // The caller adds the name of the file.
            ErrorKind::Save { source } => f.write_str(&io_text(source)),
            ErrorKind::WorkerFile { file, problem } => write!(f, "{}: {problem}", file.display()),
            // The specification of a filter.
            ErrorKind::NotForType { filter_type, reason, .. } => {
                write!(f, "a {filter_type} filter {reason}")
            }
            ErrorKind::MissingSetting { filter_type, .. } => match filter_type {
                FilterType::Cascade => {
                    f.write_str("a cascade filter needs the lines that it must not contain")
                }
                _ => write!(f, "a {filter_type} filter needs a limit after which it forgets lines"),
            },
            ErrorKind::ConflictingSettings { setting: Setting::LeastSpace, .. } => {
                f.write_str("capacity and false-positive rate determine the size")
            }
            ErrorKind::ConflictingSettings { .. } => {
                f.write_str("determines the lines in the filter, so other limits conflict with it")
            }
            ErrorKind::FprTooLow { filter_type, minimum } => write!(
                f,
                "a {filter_type} filter has at most 32 bits for a line, and {minimum:e} is the \
                 lowest rate of that"
            ),
            ErrorKind::MissingFpr { filter_type } => {
                write!(f, "memory alone does not determine the size of a {filter_type} filter")
            }
            ErrorKind::MaxCapacityTooLow { max_capacity, capacity } => write!(
                f,
                "{} is less than the initial capacity of {}",
                format_keys(*max_capacity),
                format_count(*capacity)
            ),
            ErrorKind::NotBuiltFromLines { filter_type } => {
                write!(f, "a {filter_type} filter cannot be built from lines")
            }
            ErrorKind::UnattainableFpr { filter_type, fpr } => write!(
                f,
                "a {filter_type} filter has 64-bit hashes, which collide too often for {}",
                format_rate(*fpr)
            ),
            ErrorKind::Contradiction { inputs, lines } => write!(
                f,
                "{inputs}: {} {} in the other inputs too",
                format_count(*lines),
                if *lines == 1 { "line is" } else { "lines are" },
            ),
            // Filters.
            ErrorKind::FilterFull => f.write_str("the filter is full"),
            ErrorKind::FullAt { inserted, capacity, crowded, .. } => write!(
                f,
                "full at {}, planned for {}{}",
                format_keys(*inserted),
                format_count(*capacity),
                if *crowded { ": one line occurs too often" } else { "" }
            ),
            ErrorKind::Filter(error) => error.fmt(f),
            ErrorKind::OtherFilter(error) => error.fmt(f),
            // The system, and the caller.
            ErrorKind::NoRandomness => f.write_str("the system returned no random bytes"),
            ErrorKind::Cancelled => f.write_str("the job was cancelled"),
        }
    }
}

impl Error {
    /// Returns the text of the problem, without the setting and without advice.
    pub fn problem(&self) -> impl fmt::Display + '_ {
        Problem(self.kind())
    }
}

/// Names the limit of a filter that is too large.
fn limit_name(is_default: bool) -> &'static str {
    if is_default { "half of the memory of this machine" } else { "the limit" }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.setting() {
            // The problem begins with the path.
            Some(Setting::WorkDir) | None => {}
            Some(setting) => write!(f, "{setting}: ")?,
        }
        self.problem().fmt(f)?;
        for (number, advice) in self.advice().iter().enumerate() {
            write!(f, "{}{advice}", if number == 0 { "; " } else { ", or " })?;
        }
        Ok(())
    }
}

/// The line beside a byte, if it is known.
struct Line(Option<u64>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, " (line {line})"))
    }
}
