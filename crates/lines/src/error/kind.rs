//! The causes of errors, the settings they concern, and what a user can do about them.

use std::fmt;
use std::io;
use std::path::PathBuf;

use petal::FilterType;

/// The cause of an [`Error`](super::Error), with its values.
///
/// Inputs are named as the caller named them; offsets and sizes are in bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    // Inputs.
    /// An input cannot be opened or read.
    ReadInput {
        /// The input.
        input: String,
        /// The cause.
        source: io::Error,
    },
    /// An input is a directory.
    DirectoryInput {
        /// The input.
        input: String,
    },
    /// An input changed while it was being read.
    InputChanged {
        /// The input.
        input: String,
        /// What changed, as a clause.
        change: &'static str,
    },
    /// A stream, such as standard input, is named twice.
    StreamTwice {
        /// The first name.
        first: String,
        /// The second name, which may be the same.
        second: String,
    },
    /// An input is in a format that is not lines.
    NotLines {
        /// The input.
        input: String,
        /// The format, as a predicate: "a zip archive".
        format: &'static str,
        /// How to convert the input to lines.
        conversion: String,
    },
    // Tables.
    /// An input is a table, but no columns of it are named, or this build does not read tables.
    TableWithoutColumns {
        /// The input.
        input: String,
        /// The format, as a predicate: "a Parquet file".
        format: &'static str,
    },
    /// A table cannot be read.
    UnreadableTable {
        /// The input.
        input: String,
        /// The name of the format: "Parquet".
        format: &'static str,
        /// The reason, as the reader of the format words it.
        problem: String,
    },
    /// A table has columns of types that cannot be read.
    UnsupportedTable {
        /// The input.
        input: String,
        /// The column and its type, as a clause.
        problem: String,
    },
    /// A column of a table cannot be a key, or a column of rows cannot be written.
    UnusableColumn {
        /// The input.
        input: String,
        /// The column and the reason, as a clause.
        problem: String,
        /// Whether keys of other columns can be printed.
        rows: bool,
    },
    /// A part of a table does not fit the memory limit.
    TableMemory {
        /// The input.
        input: String,
        /// The part, with its article: "a page".
        part: &'static str,
        /// The memory that it needs.
        needed: u64,
        /// The memory for it.
        available: u64,
        /// A memory limit that is enough.
        needed_limit: u64,
    },
    /// Rows of inputs with different columns, or of different formats, would be in one output.
    DifferentTables {
        /// The input.
        input: String,
        /// The first input.
        first: String,
        /// The difference, as a predicate of the input.
        difference: String,
    },
    /// The output does not take the rows of a table, which are binary.
    RowsNotTaken {
        /// The input.
        input: String,
        /// The name of the format: "Parquet".
        format: &'static str,
    },
    /// The fingerprint log is full before the file of rows is complete.
    LogBesideRows,
    /// Only keys are to be printed, but an input is no table.
    NotATable {
        /// The input.
        input: String,
    },
    // Compressed inputs.
    /// The window of a zstd input does not fit the memory limit.
    ZstdWindow {
        /// The input.
        input: String,
        /// The window, if the header of the input has it.
        window: Option<u64>,
        /// The largest window that fits.
        limit: u64,
        /// The memory limit that the window needs; `None` if it is unknown or no limit is enough.
        needed_limit: Option<u64>,
    },
    /// Decompressing an xz, bzip2 or lz4 input needs more memory than the limit allows.
    DecompressionMemory {
        /// The input.
        input: String,
        /// The name of the compression format.
        format: &'static str,
        /// The memory, if the first header of the input has it.
        needed: Option<u64>,
        /// The memory that is available for it.
        available: u64,
        /// The memory limit that is enough; `None` if it is unknown.
        needed_limit: Option<u64>,
    },
    // Lines and records.
    /// A line is longer than a quarter of the memory limit.
    LineTooLong {
        /// The input.
        input: String,
        /// Where the line begins.
        offset: u64,
        /// The longest line that fits.
        limit: u64,
    },
    /// A line cannot be a key of the filter.
    InvalidLine {
        /// The input.
        input: String,
        /// Where the line begins.
        offset: u64,
        /// The reason.
        reason: String,
    },
    /// A record has no key.
    InvalidRecord {
        /// The input.
        input: String,
        /// Where the record begins.
        offset: u64,
        /// The line on which it begins, from 1, if known.
        line: Option<u64>,
        /// The reason, and what to do.
        reason: String,
    },
    /// A quoted field is not closed.
    OpenQuotes {
        /// The input.
        input: String,
        /// Where its record begins.
        offset: u64,
        /// The line on which it begins, from 1, if known.
        line: Option<u64>,
        /// The longest record that fits; `None` if the input ended before.
        limit: Option<u64>,
    },
    /// The header of an input does not have the columns of the key.
    InvalidHeader {
        /// The input.
        input: String,
        /// The reason, as a predicate.
        problem: String,
        /// Whether it has the name of a column twice.
        repeated: bool,
    },
    /// Several bytes divide the first records of an input evenly.
    AmbiguousSeparator {
        /// The input.
        input: String,
        /// Two of the bytes.
        separators: [u8; 2],
    },
    /// A byte range of an input cannot be read.
    ByteRange {
        /// The input.
        input: String,
        /// Start of the range.
        start: u64,
        /// End of the range.
        end: u64,
        /// The reason.
        problem: &'static str,
    },
    // Inputs and operations that a mode does not support.
    /// A stream cannot be sampled for an estimate.
    NotAFile {
        /// The input.
        input: String,
    },
    /// The set operation cannot be decided by filters alone.
    NoApproximateMode,
    /// The capacity of an approximate job on a stream is missing.
    UnknownInputSize,
    /// The lines of a stream cannot be counted before they are read.
    UncountableInput,

    // Memory.
    /// The memory limit is below the minimum of this job.
    MemoryLimitTooLow {
        /// The limit.
        memory_limit: u64,
        /// The minimum.
        minimum: u64,
    },
    /// A filter does not fit the memory.
    FilterTooLarge {
        /// The number of keys.
        capacity: u64,
        /// The false-positive rate.
        fpr: f64,
        /// The size of the filter.
        needed: u64,
        /// The memory for it.
        available: u64,
        /// Whether `available` is the default of half the memory of the machine.
        default_limit: bool,
        /// What to do instead of raising the limit.
        alternative: Advice,
    },
    /// A filter of a given number of bits does not fit the memory.
    TooManyBits {
        /// The number of bits, or of counters.
        bits: u64,
        /// The size of the filter.
        needed: u64,
        /// The memory for it.
        available: u64,
        /// Whether `available` is the default of half the memory of the machine.
        default_limit: bool,
    },
    /// The lines of the allow list do not fit in memory.
    AllowListTooLong {
        /// The inputs of the list.
        inputs: String,
        /// The memory limit.
        memory_limit: u64,
    },
    /// Lines that are kept in memory take more than is available.
    LinesTooLarge {
        /// The inputs of these lines.
        inputs: String,
        /// The memory for them.
        available: u64,
    },
    /// The hashes of a filter that is built at once do not fit in memory.
    TooManyLines {
        /// The inputs.
        inputs: String,
        /// The memory limit.
        memory_limit: u64,
    },
    /// A growing filter has become larger than the memory limit.
    FilterOutgrown {
        /// The size of the filter.
        size: u64,
        /// The memory limit.
        memory_limit: u64,
    },
    /// The system refused to allocate memory.
    Alloc {
        /// Size of the allocation.
        bytes: u64,
    },

    // Files that a job writes.
    /// A temporary file failed.
    TempFile {
        /// The temporary directory.
        dir: PathBuf,
        /// What was being done: "writing records".
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A file in the work directory failed.
    WorkFile {
        /// The work directory.
        dir: PathBuf,
        /// What was being done: "writing the journal".
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The work directory cannot be used for this job.
    WorkDir {
        /// The work directory.
        dir: PathBuf,
        /// The reason, and what to do.
        problem: String,
    },
    /// The work directory contains an unfinished job that was not to be resumed.
    UnfinishedJob {
        /// The work directory.
        dir: PathBuf,
    },
    /// The job in the work directory began with a higher memory limit.
    MemoryLimitBelowJob {
        /// The work directory.
        dir: PathBuf,
        /// The memory limit of that job.
        minimum: u64,
    },
    /// An output cannot be written.
    WriteOutput {
        /// Whether it is the output of the lines that are not in the result.
        rest: bool,
        /// The cause.
        source: io::Error,
    },
    /// A fingerprint log is damaged.
    Damaged {
        /// The file.
        file: String,
        /// The damage, as a clause.
        problem: &'static str,
    },
    /// A fingerprint log cannot be read.
    FingerprintLog {
        /// The cause.
        source: io::Error,
    },
    /// A filter or a fingerprint log cannot be saved.
    Save {
        /// The cause.
        source: io::Error,
    },
    /// A file of a distributed job is missing, damaged, or of another job.
    WorkerFile {
        /// The file.
        file: PathBuf,
        /// The reason.
        problem: String,
    },

    // The specification of a filter.
    /// A setting is not for this type of filter.
    NotForType {
        /// The setting.
        setting: Setting,
        /// The type.
        filter_type: FilterType,
        /// The reason, as a predicate: "has no counters".
        reason: &'static str,
        /// The types that take the setting.
        types: &'static [FilterType],
    },
    /// A type of filter needs one of these settings.
    MissingSetting {
        /// The type.
        filter_type: FilterType,
        /// The settings.
        any_of: &'static [Setting],
    },
    /// A setting already determines what another one sets.
    ConflictingSettings {
        /// The setting.
        setting: Setting,
        /// The settings to leave out.
        conflicts: &'static [Setting],
    },
    /// The false-positive rate is too low for a filter that is built at once.
    FprTooLow {
        /// The type.
        filter_type: FilterType,
        /// The lowest rate of that type.
        minimum: f64,
    },
    /// Memory alone does not determine the size of this type of filter.
    MissingFpr {
        /// The type.
        filter_type: FilterType,
    },
    /// The maximum capacity is below the initial one.
    MaxCapacityTooLow {
        /// The maximum.
        max_capacity: u64,
        /// The initial capacity.
        capacity: u64,
    },
    /// A filter of this type cannot be built from lines.
    NotBuiltFromLines {
        /// The type.
        filter_type: FilterType,
    },
    /// The type of filter cannot reach the false-positive rate.
    UnattainableFpr {
        /// The type.
        filter_type: FilterType,
        /// The rate.
        fpr: f64,
    },
    /// Lines are among the members and among the known non-members.
    Contradiction {
        /// The inputs of the non-members.
        inputs: String,
        /// The number of these lines.
        lines: u64,
    },

    // Filters.
    /// The filter takes no more lines.
    FilterFull,
    /// The filter takes no more lines; its numbers are known.
    FullAt {
        /// Keys in the filter.
        inserted: u64,
        /// The capacity that it was planned for.
        capacity: u64,
        /// Whether one line occurs too often, while most slots are free.
        crowded: bool,
        /// What to do.
        advice: Vec<Advice>,
    },
    /// A filter of petal, or its file.
    Filter(petal::Error),
    /// A filter that the caller implements.
    OtherFilter(Box<dyn std::error::Error + Send + Sync>),
    // The system, and the caller.
    /// The system has no random bytes.
    NoRandomness,
    /// The caller cancelled the job.
    Cancelled,
}

/// A setting that an error concerns. Front ends show it under the name that their users set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// The memory limit.
    MemoryLimit,
    /// The false-positive rate.
    Fpr,
    /// The number of lines to plan for.
    Capacity,
    /// The number of lines that a quotient filter may grow to.
    MaxCapacity,
    /// The type of filter.
    FilterType,
    /// The number of bits of the filter.
    Bits,
    /// The number of bits that a line sets.
    Probes,
    /// Whether the filter has the fewest bits for its rate.
    LeastSpace,
    /// The width of a counter.
    CounterWidth,
    /// Whether the filter grows.
    Growing,
    /// The time after which a filter forgets lines.
    Window,
    /// The number of lines after which a filter forgets.
    Last,
    /// The known non-members of a cascade.
    NotIn,
    /// The output.
    Output,
    /// The temporary directory.
    TempDir,
    /// The work directory.
    WorkDir,
    /// Whether the job in the work directory is resumed.
    Resume,
    /// Whether lines end in NUL.
    NullDelimiter,
    /// Whether inputs are read as lines even if they are in another format.
    Text,
    /// The separator of CSV fields.
    Separator,
    /// The quote of CSV fields.
    Quote,
    /// The columns of the key.
    Columns,
    /// Whether only the keys of rows are printed.
    KeysOnly,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MemoryLimit => "the memory limit",
            Self::Fpr => "the false-positive rate",
            Self::Capacity => "the capacity",
            Self::MaxCapacity => "the maximum capacity",
            Self::FilterType => "the filter type",
            Self::Bits => "the number of bits",
            Self::Probes => "the number of probes",
            Self::LeastSpace => "the least space",
            Self::CounterWidth => "the counter width",
            Self::Growing => "growing",
            Self::Window => "the window",
            Self::Last => "the number of last lines",
            Self::NotIn => "the known non-members",
            Self::Output => "the output",
            Self::TempDir => "the temporary directory",
            Self::WorkDir => "the work directory",
            Self::Resume => "resume",
            Self::NullDelimiter => "NUL as the delimiter",
            Self::Text => "reading as text",
            Self::Separator => "the separator",
            Self::Quote => "the quote",
            Self::Columns => "the columns",
            Self::KeysOnly => "printing only keys",
        })
    }
}

/// One way to avoid an error.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Advice {
    /// Raise the setting.
    Raise(Setting),
    /// Raise the memory limit to this number of bytes.
    RaiseMemoryLimitTo(u64),
    /// Lower the setting.
    Lower(Setting),
    /// Set the setting, which has no value now.
    Specify(Setting),
    /// Set the setting to another value.
    Change(Setting),
    /// Leave out the setting.
    Omit(Setting),
    /// Enable the setting.
    Enable(Setting),
    /// Accept this false-positive rate.
    AcceptFpr(f64),
    /// Leave out the false-positive rate, which gives this one.
    OmitFpr(f64),
    /// Use one of these types of filter.
    UseType(&'static [FilterType]),
    /// Build the filter again with a higher value of the setting.
    RebuildWithHigher(Setting),
    /// Build the filter again with the setting.
    RebuildWith(Setting),
    /// Use NUL as the delimiter, if lines end in NUL.
    CheckDelimiter,
    /// Find the lines that both inputs contain.
    FindCommonLines,
    /// Read tables with a build that has the feature `parquet`.
    BuildWithTables,
    /// Anything else: a whole clause that names no setting.
    Other(String),
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raise(setting) => write!(f, "raise {setting}"),
            Self::RaiseMemoryLimitTo(bytes) => {
                write!(f, "raise the memory limit to {}", crate::format_size(*bytes))
            }
            Self::Lower(setting) => write!(f, "lower {setting}"),
            Self::Specify(setting) => write!(f, "specify {setting}"),
            Self::Change(setting) => write!(f, "change {setting}"),
            Self::Omit(setting) => write!(f, "leave out {setting}"),
            Self::Enable(setting) => write!(f, "enable {setting}"),
            Self::AcceptFpr(fpr) => {
                write!(f, "accept a false-positive rate of {}", crate::format_rate(*fpr))
            }
            Self::OmitFpr(fpr) => {
                write!(f, "leave out the false-positive rate to get {}", crate::format_rate(*fpr))
            }
            Self::UseType(types) => write!(f, "use the filter type {}", type_names(types)),
            Self::RebuildWithHigher(setting) => {
                write!(f, "build the filter again and raise {setting}")
            }
            Self::RebuildWith(setting) => write!(f, "build the filter again with {setting}"),
            Self::CheckDelimiter => f.write_str("set NUL as the delimiter if lines end in NUL"),
            Self::FindCommonLines => f.write_str("find these lines as those common to both"),
            Self::BuildWithTables => {
                f.write_str("build petal with the cargo feature `parquet` to read its columns")
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// Returns the names of types of filters: "counting or quotient".
#[must_use]
pub fn type_names(types: &[FilterType]) -> String {
    types.iter().map(|filter_type| filter_type.name()).collect::<Vec<_>>().join(" or ")
}

/// Returns the text of an I/O error without Rust's `(os error N)`.
pub(super) fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

/// Whether an I/O error is that of a full disk.
pub(super) fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
