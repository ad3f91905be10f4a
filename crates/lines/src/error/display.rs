//! The texts of errors: the problem, and the advice that follows it.

use std::fmt;
use std::io;

use petal::FilterType;

use super::Error;
use super::kind::{Advice, ErrorKind, Setting, io_text, is_disk_full};
use crate::{format_count, format_keys, format_rate, format_size};

/// The text of an error without setting and advice.
struct Problem<'a>(&'a ErrorKind);

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
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
            ErrorKind::TableWithoutColumns { input, format } => {
                write!(f, "{input}: is {format}, expected lines")
            }
            ErrorKind::UnreadableTable { input, format, problem } => {
                write!(f, "{input}: cannot read as {format}: {problem}")
            }
            ErrorKind::UnusableColumn { input, problem, .. } => write!(f, "{input}: {problem}"),
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
            ErrorKind::LineTooLong { input, offset, limit } => write!(
                f,
                "{input}: the line at byte {offset} is longer than {}, a quarter of the memory limit",
                format_size(*limit)
            ),
            ErrorKind::InvalidLine { input, offset, reason } => {
                write!(f, "{input}: the line at byte {offset}: {reason}")
            }
            ErrorKind::InvalidRecord { input, offset, reason } => {
                write!(f, "{input}: the record at byte {offset}: {reason}")
            }
            ErrorKind::OpenQuotes { input, offset, limit: None } => write!(
                f,
                "{input}: the record at byte {offset} has a quote that is not closed before the end \
                 of the input"
            ),
            ErrorKind::OpenQuotes { input, offset, limit: Some(limit) } => write!(
                f,
                "{input}: the record at byte {offset} has a quote that is not closed within {}, a \
                 quarter of the memory limit",
                format_size(*limit)
            ),
            ErrorKind::InvalidHeader { input, problem, .. } => write!(f, "{input}: {problem}"),
            ErrorKind::ByteRange { input, start, end, problem } => {
                write!(f, "{input}: bytes {start} to {end}: {problem}")
            }
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

    /// Returns the setting that is wrong, if one is.
    #[must_use]
    pub fn setting(&self) -> Option<Setting> {
        Some(match self.kind() {
            ErrorKind::MemoryLimitTooLow { .. } => Setting::MemoryLimit,
            ErrorKind::UnknownInputSize => Setting::Fpr,
            ErrorKind::WorkDir { .. }
            | ErrorKind::WorkFile { .. }
            | ErrorKind::UnfinishedJob { .. }
            | ErrorKind::MemoryLimitBelowJob { .. } => Setting::WorkDir,
            ErrorKind::NotForType { setting, .. }
            | ErrorKind::ConflictingSettings { setting, .. } => *setting,
            ErrorKind::MissingSetting { .. } | ErrorKind::NotBuiltFromLines { .. } => {
                Setting::FilterType
            }
            ErrorKind::FprTooLow { .. } | ErrorKind::UnattainableFpr { .. } => Setting::Fpr,
            ErrorKind::MissingFpr { .. } => Setting::MemoryLimit,
            ErrorKind::MaxCapacityTooLow { .. } => Setting::MaxCapacity,
            ErrorKind::UncountableInput => Setting::Capacity,
            _ => return None,
        })
    }

    /// Returns what to do about the error: any one of the returned ways is enough.
    #[must_use]
    pub fn advice(&self) -> Vec<Advice> {
        use Advice::{Change, Enable, Lower, Omit, Raise, RebuildWithHigher, Specify, UseType};
        let other = |text: &str| Advice::Other(text.to_owned());
        match self.kind() {
            ErrorKind::DirectoryInput { .. } => vec![other("name the files in it instead")],
            ErrorKind::InputChanged { .. } => {
                vec![other("run again when no other program writes to it")]
            }
            ErrorKind::StreamTwice { .. } => vec![other("save it to a file first")],
            ErrorKind::NotLines { conversion, .. } => {
                vec![Advice::Other(conversion.clone()), Enable(Setting::Text)]
            }
            ErrorKind::TableWithoutColumns { .. } => {
                vec![Specify(Setting::Columns), Enable(Setting::Text)]
            }
            ErrorKind::UnreadableTable { .. } => {
                vec![other("write the file again, or remove it from the inputs")]
            }
            ErrorKind::UnusableColumn { rows: true, .. } => vec![Enable(Setting::KeysOnly)],
            ErrorKind::UnusableColumn { .. } => vec![Change(Setting::Columns)],
            ErrorKind::TableMemory { needed_limit, .. } => {
                vec![Advice::RaiseMemoryLimitTo(*needed_limit)]
            }
            ErrorKind::DifferentTables { .. } => {
                vec![Enable(Setting::KeysOnly), other("run one job for each")]
            }
            ErrorKind::RowsNotTaken { .. } => {
                vec![Specify(Setting::Output), Enable(Setting::KeysOnly)]
            }
            ErrorKind::LogBesideRows => {
                vec![Raise(Setting::MemoryLimit), Enable(Setting::KeysOnly)]
            }
            ErrorKind::NotATable { .. } => vec![Omit(Setting::KeysOnly)],
            ErrorKind::ZstdWindow { window, needed_limit, .. } => {
                let raise = match needed_limit {
                    Some(limit) => Some(Advice::RaiseMemoryLimitTo(*limit)),
                    None => window.is_none().then_some(Raise(Setting::MemoryLimit)),
                };
                raise.into_iter().chain([other("decompress it first")]).collect()
            }
            ErrorKind::DecompressionMemory { needed_limit, .. } => {
                let raise = match needed_limit {
                    Some(limit) => Advice::RaiseMemoryLimitTo(*limit),
                    None => Raise(Setting::MemoryLimit),
                };
                vec![raise, other("decompress it first")]
            }
            ErrorKind::LineTooLong { .. } => {
                vec![Raise(Setting::MemoryLimit), Advice::CheckDelimiter]
            }
            ErrorKind::OpenQuotes { limit: None, .. } => {
                vec![other("close the quote"), Change(Setting::Separator)]
            }
            ErrorKind::OpenQuotes { .. } => {
                vec![other("close the quote"), Raise(Setting::MemoryLimit)]
            }
            ErrorKind::InvalidHeader { repeated: true, .. } => {
                vec![other("name the column by its number")]
            }
            ErrorKind::InvalidHeader { .. } => {
                vec![Change(Setting::Columns), Change(Setting::Separator)]
            }
            ErrorKind::NotAFile { .. } => vec![other("save it to a file first")],
            ErrorKind::NoApproximateMode => vec![other("run an exact job")],
            ErrorKind::UnknownInputSize | ErrorKind::UncountableInput => {
                vec![Specify(Setting::Capacity)]
            }
            ErrorKind::MemoryLimitTooLow { .. } => vec![Raise(Setting::MemoryLimit)],
            ErrorKind::FilterTooLarge { alternative, .. } => {
                vec![Raise(Setting::MemoryLimit), alternative.clone()]
            }
            ErrorKind::TooManyBits { .. } => {
                vec![Raise(Setting::MemoryLimit), Lower(Setting::Bits)]
            }
            ErrorKind::AllowListTooLong { .. } => vec![Raise(Setting::MemoryLimit)],
            ErrorKind::LinesTooLarge { .. } => vec![other("give fewer lines")],
            ErrorKind::TooManyLines { .. } => vec![UseType(&[FilterType::Bloom])],
            ErrorKind::FilterOutgrown { .. } => {
                vec![Raise(Setting::MemoryLimit), RebuildWithHigher(Setting::Fpr)]
            }
            ErrorKind::Alloc { .. } => vec![Lower(Setting::MemoryLimit)],
            ErrorKind::TempFile { source, .. } if is_disk_full(source) => vec![
                other("free some space"),
                Change(Setting::TempDir),
                Raise(Setting::MemoryLimit),
            ],
            ErrorKind::TempFile { .. } => vec![Change(Setting::TempDir)],
            ErrorKind::WorkFile { source, .. } if is_disk_full(source) => {
                vec![other("free some space and run again"), Enable(Setting::Resume)]
            }
            ErrorKind::WorkFile { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => {
                vec![other("remove the directory and run again")]
            }
            ErrorKind::WorkFile { .. } => vec![Change(Setting::WorkDir)],
            ErrorKind::UnfinishedJob { .. } => {
                vec![Enable(Setting::Resume), other("remove the directory")]
            }
            ErrorKind::MemoryLimitBelowJob { minimum, .. } => {
                vec![Advice::RaiseMemoryLimitTo(*minimum)]
            }
            ErrorKind::WriteOutput { source, .. } if is_disk_full(source) => {
                vec![other("free some space"), Change(Setting::Output)]
            }
            ErrorKind::Damaged { .. } => {
                vec![other("restore it"), other("remove it and its filter to start over")]
            }
            ErrorKind::NotForType { setting, types: [], .. } => vec![Omit(*setting)],
            ErrorKind::NotForType { setting, types, .. } => vec![Omit(*setting), UseType(types)],
            ErrorKind::MissingSetting { any_of, .. } => {
                any_of.iter().copied().map(Specify).collect()
            }
            ErrorKind::ConflictingSettings { conflicts, .. } => {
                conflicts.iter().copied().map(Omit).collect()
            }
            ErrorKind::FprTooLow { .. } => {
                vec![Raise(Setting::Fpr), UseType(&[FilterType::Bloom, FilterType::Wide])]
            }
            ErrorKind::MissingFpr { .. } => vec![Specify(Setting::Fpr)],
            ErrorKind::MaxCapacityTooLow { .. } => vec![Raise(Setting::MaxCapacity)],
            ErrorKind::UnattainableFpr { .. } => {
                vec![Raise(Setting::Fpr), UseType(&[FilterType::Wide])]
            }
            ErrorKind::Contradiction { .. } => {
                vec![other("remove them from one side"), Advice::FindCommonLines]
            }
            ErrorKind::FilterFull => vec![other("build a larger one")],
            ErrorKind::FullAt { advice, .. } => advice.clone(),
            ErrorKind::NoRandomness => vec![other("try again")],
            _ => Vec::new(),
        }
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
