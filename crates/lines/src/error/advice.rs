//! What to do about an error, and the settings that it names.

use petal::FilterType;

use crate::keys::OtherShape;
use crate::numbers::{format_rate, format_size, shown_size};

/// A setting that an error names. Front ends print the name that their users set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The maximum size of a filter.
    Size,
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
    /// The changes to keys.
    KeyTransform,
    /// Whether the keys are hashes in lines of checksum files.
    Sums,
    /// Whether the lines are keys with counts.
    Counts,
    /// What happens with records without a key.
    BadRecords,
    /// How keys with a value that is `null` compare.
    Nulls,
    /// How empty keys compare.
    Empty,
    /// The number of lines before the records.
    SkipLines,
    /// The start of lines that are no records.
    Comment,
    /// The parts of texts that are compared.
    Unit,
    /// The values of JSON records that are compared.
    JsonKey,
}

impl Setting {
    /// Returns the name of the field or parameter of this library.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MemoryLimit => "memory_limit",
            Self::Size => "size",
            Self::Fpr => "fpr",
            Self::Capacity => "capacity",
            Self::MaxCapacity => "max_capacity",
            Self::FilterType => "filter_type",
            Self::Bits => "bits",
            Self::Probes => "probes",
            Self::LeastSpace => "least_space",
            Self::CounterWidth => "width",
            Self::Growing => "growing",
            Self::Window => "window",
            Self::Last => "last",
            Self::NotIn => "not_in",
            Self::Output => "the output",
            Self::TempDir => "temp_dir",
            Self::WorkDir => "work_dir",
            Self::Resume => "resume",
            Self::NullDelimiter => "delimiter to NUL",
            Self::Text => "text",
            Self::Separator => "separator",
            Self::Quote => "quote",
            Self::Columns => "columns",
            Self::KeysOnly => "keys_only",
            Self::KeyTransform => "key_transform",
            Self::Sums => "checksum",
            Self::Counts => "counted",
            Self::BadRecords => "bad_records",
            Self::Nulls => "nulls",
            Self::Empty => "empty",
            Self::SkipLines => "skip_lines",
            Self::Comment => "comment",
            Self::Unit => "unit",
            Self::JsonKey => "json_key",
        }
    }
}

/// One way to avoid an error.
#[derive(Clone, Debug, PartialEq)]
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
    /// Query keys with as many hexadecimal digits as the filter's keys.
    MatchKeys(OtherShape),
    /// Build the filter from the hashes alone, of which the records are a part.
    TakeHashes(OtherShape),
    /// Read tables with a build that has the feature `parquet`.
    BuildWithTables,
    /// Anything else: a whole clause that names no setting.
    Other(String),
}

impl Advice {
    /// Advises a memory limit as it is printed, so that the limit that a person enters is enough.
    pub(crate) fn raise_limit_to(bytes: u64) -> Self {
        Self::RaiseMemoryLimitTo(shown_size(bytes))
    }

    /// Returns the text with the names of a front end; `enable` is its verb for enabling a setting.
    pub fn text(&self, enable: &str, name: impl Fn(Setting) -> &'static str) -> String {
        match self {
            Self::Raise(setting) => format!("raise {}", name(*setting)),
            Self::RaiseMemoryLimitTo(bytes) => {
                format!("raise {} to {}", name(Setting::MemoryLimit), format_size(*bytes))
            }
            Self::Lower(setting) => format!("lower {}", name(*setting)),
            Self::Specify(setting) => format!("specify {}", name(*setting)),
            Self::Change(setting) => format!("change {}", name(*setting)),
            Self::Omit(setting) => format!("leave out {}", name(*setting)),
            Self::Enable(setting) => format!("{enable} {}", name(*setting)),
            Self::AcceptFpr(fpr) => {
                format!("accept {} as {}", format_rate(*fpr), name(Setting::Fpr))
            }
            Self::OmitFpr(fpr) => {
                format!("leave out {} to get {}", name(Setting::Fpr), format_rate(*fpr))
            }
            Self::UseType(types) => {
                format!("use {} {}", name(Setting::FilterType), type_names(types))
            }
            Self::RebuildWithHigher(setting) => {
                format!("build it again with a higher {}", name(*setting))
            }
            Self::RebuildWith(setting) => format!("build it again with {}", name(*setting)),
            Self::CheckDelimiter => {
                format!("{enable} {} if lines end in NUL", name(Setting::NullDelimiter))
            }
            Self::FindCommonLines => "find them as the lines common to both".to_owned(),
            Self::MatchKeys(shape) if shape.after == Some(b' ') => {
                format!("{enable} {} for lines of checksum files", name(Setting::Sums))
            }
            Self::MatchKeys(shape) => {
                let (columns, transform) = (name(Setting::Columns), name(Setting::KeyTransform));
                let digests = shape.digests().map(|names| format!(" ({names})"));
                format!(
                    "take the column of the hashes with {columns}, or compute them with {transform}{}",
                    digests.unwrap_or_default()
                )
            }
            Self::TakeHashes(shape) if shape.after == Some(b':') => {
                format!("{enable} {} for lines of HASH:COUNT", name(Setting::Counts))
            }
            Self::TakeHashes(_) => {
                format!("take the column of the hashes with {}", name(Setting::Columns))
            }
            Self::BuildWithTables => {
                "build petal with its default features to read its columns".to_owned()
            }
            Self::Other(text) => text.clone(),
        }
    }
}

impl From<&str> for Advice {
    fn from(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

impl From<String> for Advice {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

/// Returns the names of types of filters: "counting or quotient".
#[must_use]
pub fn type_names(types: &[FilterType]) -> String {
    types.iter().map(|filter_type| filter_type.name()).collect::<Vec<_>>().join(" or ")
}
