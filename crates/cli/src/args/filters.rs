//! Arguments of the commands on filter files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use petal::FilterType;
use petal_interop::{Format, KeyType};
use petal_lines::{MemoryLimit, Transform};

use super::foreign::{AssertMembers, ForeignArgs, FormatArg, formats, key_types};
use super::inputs::LISTS;
use super::{CompressArgs, EngineArgs, FieldArgs, Inputs, ListArgs, RowArgs, SecretArgs};
use crate::text::{parse_count, parse_duration, parse_factor, parse_rate, parse_seed};

/// The type of a filter, with the names of files and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FilterTypeArg {
    /// Blocked Bloom filter: one cache line per key
    Bloom,
    /// Textbook Bloom filter: slightly smaller, several cache lines per key
    Classic,
    /// bloom with a counter for each bit: supports removal
    Counting,
    /// classic with a counter for each bit: supports removal
    CountingClassic,
    /// Quotient filter: supports removal and growth
    Quotient,
    /// Quotient filter of cache lines: supports removal in constant time
    #[value(alias = "vqf")]
    VectorQuotient,
    /// Layers that keep the rate for any number of lines
    Scalable,
    /// Sliding window: forgets lines after --window or --last
    Windowed,
    /// Ribbon filter: immutable, the smallest
    Static,
    /// Binary fuse filter: immutable, faster and 7 % larger than static
    StaticFuse,
    /// static without false positives among the lines of --not-in
    Cascade,
}

impl FilterTypeArg {
    pub(crate) fn filter_type(self) -> FilterType {
        match self {
            Self::Bloom => FilterType::Bloom,
            Self::Classic => FilterType::Classic,
            Self::Counting => FilterType::Counting,
            Self::CountingClassic => FilterType::CountingClassic,
            Self::Quotient => FilterType::Quotient,
            Self::VectorQuotient => FilterType::VectorQuotient,
            Self::Scalable => FilterType::Scalable,
            Self::Windowed => FilterType::Windowed,
            Self::Static => FilterType::Static,
            Self::StaticFuse => FilterType::StaticFuse,
            Self::Cascade => FilterType::Cascade,
        }
    }
}

/// Parses a number of probes, which is at most 64 in any type.
pub(super) fn probes() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=64)
}

/// What a writer of filter files notes in them.
#[derive(Args, Debug)]
pub(crate) struct NoteArgs {
    /// Note KEY=TEXT in the filter file, e.g. a source, date or licence; may be repeated
    #[arg(long = "metadata", value_name = "KEY=TEXT", value_parser = parse_note)]
    notes: Vec<(String, String)>,
}

impl NoteArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Returns the metadata with the notes.
    ///
    /// # Errors
    /// The problem of a note.
    pub(crate) fn noted(&self, metadata: &str) -> Result<String, String> {
        self.notes.iter().try_fold(metadata.to_owned(), |metadata, (name, text)| {
            petal_lines::with_note(&metadata, name, text)
        })
    }
}

fn parse_note(text: &str) -> Result<(String, String), String> {
    let (name, note) = text.split_once('=').ok_or("expected KEY=TEXT")?;
    petal_lines::with_note("{}", name, note).map(|_| (name.to_owned(), note.to_owned()))
}

#[derive(Args, Debug)]
pub(crate) struct BuildArgs {
    /// Filter file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Number of keys to plan for [default: the number of lines, counted first]
    #[arg(short = 'n', long, alias = "expected", value_name = "N", value_parser = parse_count)]
    pub(crate) capacity: Option<u64>,
    /// Target false-positive rate [default: 1%, or the lowest that fits --size]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fpr: Option<f64>,
    /// Maximum size of the filter, e.g. 4G, 512M or 50% of RAM [default: what -m leaves]
    #[arg(long, value_name = "SIZE", value_parser = MemoryLimit::parse)]
    pub(crate) size: Option<MemoryLimit>,
    /// Probes: bits that each key sets, 1 to 16; classic and counting-classic to 64
    /// [default: the best number]
    #[arg(short = 'k', long, value_name = "K", value_parser = probes())]
    pub(crate) probes: Option<u32>,
    /// Number of bits (counting types: of counters) instead of --size; with -k and without
    /// -n and -p, the filter has no capacity [default: as -n and -p need]
    #[arg(long, value_name = "BITS", value_parser = parse_count)]
    pub(crate) bits: Option<u64>,
    /// Choose the smallest filter for the rate: 2 % less space at 1 %, 4 % at 0.1 %,
    /// and up to twice the time for a key
    #[arg(long, conflicts_with_all = ["bits", "probes"])]
    pub(crate) least_space: bool,
    /// Type of the filter [default: bloom, or the type that the options below need]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) filter_type: Option<FilterTypeArg>,
    /// Build a filter that grows: scalable, or quotient with --type quotient
    #[arg(long)]
    pub(crate) growing: bool,
    /// Build a quotient filter that grows to N lines [default: 16 times -n]
    #[arg(long, alias = "up-to", value_name = "N", value_parser = parse_count)]
    pub(crate) max_capacity: Option<u64>,
    /// Build a filter that forgets lines after TIME, e.g. 30s, 15m, 12h, 7d or 2w;
    /// -n is the number of lines in TIME
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) window: Option<u64>,
    /// Build a filter of the last N lines
    #[arg(
        long, value_name = "N", value_parser = parse_count,
        conflicts_with_all = ["window", "capacity"],
    )]
    pub(crate) last: Option<u64>,
    #[command(flatten)]
    pub(crate) clock: Clock,
    /// Build a cascade, which never reports a line of FILE as present
    #[arg(long, value_name = "FILE")]
    pub(crate) not_in: Option<PathBuf>,
    /// Bits per counter of counting types, 2 to 8 [default: 4]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(2..=8))]
    pub(crate) width: Option<u32>,
    /// Seed of the hash; not a secret [default: 0]
    #[arg(long, value_name = "N", conflicts_with = "keyed", value_parser = parse_seed)]
    pub(crate) seed: Option<u64>,
    /// Use a keyed hash with a random secret, for lines chosen by an adversary
    #[arg(long)]
    pub(crate) keyed: bool,
    /// Keep the secret in FILE, which is created if missing, and not in the filter
    /// [default: $PETAL_SECRET_FILE]
    #[arg(long, value_name = "FILE", requires = "keyed")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Read lines of KEY:COUNT, without the count; lines whose count is 0 are padding
    #[arg(long, conflicts_with_all = ["column", "json_key", "null", "comment", "skip_lines"])]
    pub(crate) counts: bool,
    /// Read KEY:COUNT, where KEY begins with the name of its file, e.g. 0A1B2.txt;
    /// FILE may be a directory of such files
    #[arg(long, conflicts_with_all = ["column", "json_key", "null", "comment", "skip_lines"])]
    pub(crate) prefix_from_name: bool,
    /// Change queries in this way instead of as the lines, which are digests already,
    /// e.g. sha1,uppercase; the filter records it
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "format")]
    pub(crate) query_transform: Vec<Transform>,
    #[command(flatten)]
    pub(crate) notes: NoteArgs,
    /// Build a filter of another program, with the size that the program would choose
    #[arg(
        long, value_name = "FORMAT", value_parser = formats(),
        conflicts_with_all = [
            "filter_type", "growing", "max_capacity", "window", "last", "width", "seed", "keyed", "secret_file",
            "probes", "bits", "least_space",
        ],
    )]
    pub(crate) format: Option<Format>,
    /// How the other program encodes a line as a key [default: text]
    #[arg(
        long, alias = "as", value_name = "TYPE", value_parser = key_types(), requires = "format",
    )]
    pub(crate) key_type: Option<KeyType>,
    /// Compress the file of the other program with gzip
    #[arg(long, requires = "format")]
    pub(crate) gzip: bool,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// The clock of windowed filters.
#[derive(Args, Clone, Debug)]
pub(crate) struct Clock {
    #[arg(long, hide = true, value_name = "SECONDS")]
    now: Option<u64>,
}

impl Clock {
    /// Returns the seconds since the Unix epoch; 0 if the clock is before it.
    pub(crate) fn now(&self) -> u64 {
        let system = || SystemTime::now().duration_since(UNIX_EPOCH);
        self.now.unwrap_or_else(|| system().map_or(0, |since| since.as_secs()))
    }
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// Filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
    #[command(flatten)]
    pub(crate) assert_members: AssertMembers,
    #[command(flatten)]
    pub(crate) clock: Clock,
    #[command(flatten)]
    pub(crate) notes: NoteArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RemoveArgs {
    /// Filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Write the lines that were not in the filter to FILE; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) missing: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) compress: CompressArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Filter file, or its address: https://… or s3://…, queried in parts
    #[arg(value_name = "FILTER", required_unless_present = "filters")]
    filter: Option<PathBuf>,
    #[command(flatten)]
    inputs: Inputs,
    /// Query this filter instead of FILTER; with several, a line is in one of them
    #[arg(long = "filter", value_name = "FILTER", conflicts_with_all = ["assert_members", "format", "key_type"])]
    filters: Vec<PathBuf>,
    /// Print each line after the name of a filter that contains it and a tab, once
    /// for each such filter
    #[arg(long, conflicts_with_all = ["invert", "count"])]
    pub(crate) which: bool,
    /// Print the lines that are certainly not in the filter
    #[arg(short = 'v', long)]
    pub(crate) invert: bool,
    /// Look up the hashes in the output of sha1sum, md5sum, b2sum, hashdeep and the like
    #[arg(long, conflicts_with_all = ["column", "json_key"])]
    pub(crate) sums: bool,
    /// Treat the lines of LIST as not in the filter: known false positives
    #[arg(long, value_name = "LIST")]
    pub(crate) allow: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
    #[command(flatten)]
    pub(crate) assert_members: AssertMembers,
    /// Print only the number of lines, one total for all inputs
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) count: bool,
    /// Write to FILE, which is replaced atomically [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) compress: CompressArgs,
    #[command(flatten)]
    pub(crate) clock: Clock,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    #[command(flatten)]
    pub(crate) rows: RowArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

impl CheckArgs {
    /// Returns the filters.
    pub(crate) fn filters(&self) -> Vec<&Path> {
        match &self.filters[..] {
            [] => self.filter.iter().map(PathBuf::as_path).collect(),
            filters => filters.iter().map(PathBuf::as_path).collect(),
        }
    }

    /// Returns the inputs: if the filters are named otherwise, FILTER is the first one.
    pub(crate) fn inputs(&self) -> Inputs {
        let mut inputs = self.inputs.clone();
        let first = self.filter.iter().filter(|_| !self.filters.is_empty());
        inputs.files.splice(..0, first.cloned());
        inputs
    }
}

#[derive(Args, Debug)]
pub(crate) struct SeenArgs {
    /// Filter file of the lines seen; the first run creates it
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Number of lines to plan for in all runs together; the first run needs it
    #[arg(short = 'n', long, alias = "expected", value_name = "N", value_parser = parse_count)]
    pub(crate) capacity: Option<u64>,
    /// False-positive rate at that number: the share of new lines dropped [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fpr: Option<f64>,
    /// Forget lines after TIME, e.g. 30s, 15m, 12h, 7d or 2w; -n is the number of
    /// lines in TIME
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) window: Option<u64>,
    /// Remember the last N lines that were printed
    #[arg(
        long, value_name = "N", value_parser = parse_count,
        conflicts_with_all = ["window", "capacity"],
    )]
    pub(crate) last: Option<u64>,
    #[command(flatten)]
    pub(crate) clock: Clock,
    /// Print every new line: keep fingerprints in FILTER.exact, 21 bytes per line
    /// [default: as in the first run]
    #[arg(long, conflicts_with_all = ["window", "last"])]
    pub(crate) exact: bool,
    /// Wait for lines that are appended to the files, as tail -F does; a file that is
    /// replaced (a rotated log) is opened again; Ctrl-C ends and saves
    #[arg(short, long, conflicts_with = "count")]
    pub(crate) follow: bool,
    /// Print the new lines, but do not create or change FILTER; needs no lock
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print only the number of new lines
    #[arg(short, long)]
    pub(crate) count: bool,
    #[arg(long, hide = true, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) save_every: f64,
    #[command(flatten)]
    pub(crate) notes: NoteArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    #[command(flatten)]
    pub(crate) rows: RowArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => Ok(seconds),
        _ => Err(format!("'{text}' is not a number of seconds")),
    }
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    /// Filter file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Filters to merge; a larger filter is folded to the size of a smaller one if its
    /// size is a multiple
    #[arg(value_name = "FILTER", required_unless_present_any = LISTS)]
    pub(crate) filters: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) lists: ListArgs,
    #[command(flatten)]
    pub(crate) format: FormatArg,
    /// Fold to the largest size that divides all sizes, even if it is very small
    #[arg(long)]
    pub(crate) fold: bool,
    #[command(flatten)]
    pub(crate) notes: NoteArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    /// Maximum memory, e.g. 4G, 512M or 50% of RAM
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = MemoryLimit::parse)]
    pub(crate) memory: MemoryLimit,
    /// Print only errors on stderr
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ShrinkArgs {
    /// Filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    /// Filter file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// False-positive rate to allow [default: the target rate of the filter]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fpr: Option<f64>,
    /// Divide the size by N
    #[arg(
        long, alias = "by", value_name = "N", conflicts_with = "fpr", value_parser = parse_factor,
    )]
    pub(crate) factor: Option<u64>,
    #[command(flatten)]
    pub(crate) notes: NoteArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    /// Maximum memory, e.g. 4G, 512M or 50% of RAM
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = MemoryLimit::parse)]
    pub(crate) memory: MemoryLimit,
    /// Print only errors on stderr
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FreezeArgs {
    /// Filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    /// Filter file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) notes: NoteArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// First filter file
    #[arg(value_name = "A")]
    pub(crate) left: PathBuf,
    /// Second filter file
    #[arg(value_name = "B")]
    pub(crate) right: PathBuf,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// Filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArg,
    /// Maximum memory for a compressed file, e.g. 4G, 512M or 50% of RAM
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = MemoryLimit::parse)]
    pub(crate) memory: MemoryLimit,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML page with charts to FILE instead of printing, - for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// Filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    /// Key: a line without its line end
    #[arg(value_name = "KEY")]
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) clock: Clock,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Filter files
    #[arg(value_name = "FILTER", required_unless_present_any = LISTS)]
    pub(crate) filters: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) lists: ListArgs,
    #[command(flatten)]
    pub(crate) format: FormatArg,
    /// Maximum memory for a compressed file, e.g. 4G, 512M or 50% of RAM
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = MemoryLimit::parse)]
    pub(crate) memory: MemoryLimit,
    /// Print nothing about valid files
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_types_have_the_names_of_the_library() {
        for arg in FilterTypeArg::value_variants() {
            let name = arg.to_possible_value().unwrap();
            assert_eq!(name.get_name(), arg.filter_type().name());
        }
    }
}
