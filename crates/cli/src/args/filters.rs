//! What the verbs of filter files take.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use petal::FilterType;
use petal_interop::{Format, KeyForm};

use super::foreign::{Foreign, Known, Written, formats, forms};
use super::{Engine, Inputs, Memory, Read};
use crate::text::{parse_count, parse_duration, parse_rate};

/// Which filter to make; each has the name that files and messages give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Blocked: one cache line a key
    Bloom,
    /// The textbook's: a little smaller, several cache lines a key
    Classic,
    /// As bloom, with a counter for each bit: lines can be removed again
    Counting,
    /// As classic, with a counter for each bit
    CountingClassic,
    /// A table without keys: lines can be removed again, and it can grow
    Quotient,
    /// Layers that keep the rate for any number of lines
    Scalable,
    /// What came last: forgets lines after --window or --last
    Windowed,
    /// Made once of all lines, never changed: the least space
    Static,
    /// As static, and never wrong about the lines of --not-in
    Cascade,
    /// On 128-bit hashes, for rates that 64 bits cannot keep
    Wide,
}

impl Kind {
    pub(crate) fn filter_type(self) -> FilterType {
        match self {
            Self::Bloom => FilterType::Bloom,
            Self::Classic => FilterType::Classic,
            Self::Counting => FilterType::Counting,
            Self::CountingClassic => FilterType::CountingClassic,
            Self::Quotient => FilterType::Quotient,
            Self::Scalable => FilterType::Scalable,
            Self::Windowed => FilterType::Windowed,
            Self::Static => FilterType::Static,
            Self::Cascade => FilterType::Cascade,
            Self::Wide => FilterType::Wide,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct BuildArgs {
    /// The filter file to make
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Keys to plan for [default: the number of lines, counted first]
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count)]
    pub(crate) expected: Option<u64>,
    /// False-positive rate to plan for [default: 1%, or with -m and no --format the best that fits]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fpr: Option<f64>,
    /// Cap on the filter's size: 4G, 512M, 50%; static and cascade take up to 24 bytes a line
    /// more while they are made
    #[arg(short, long, value_name = "SIZE", value_parser = Memory::parse)]
    pub(crate) memory: Option<Memory>,
    /// The type of filter [default: bloom, or what the words below ask for]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<Kind>,
    /// Make a filter that grows: scalable, or with --type quotient one of that type
    #[arg(long)]
    pub(crate) growing: bool,
    /// Make a quotient filter that grows, to so many lines [default of one: 16 times -n]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) up_to: Option<u64>,
    /// Make a filter of the lines of the last TIME: 30s, 15m, 12h, 7d, 2w; -n is how many come in it
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) window: Option<u64>,
    /// Make a filter of the last N lines
    #[arg(
        long, value_name = "N", value_parser = parse_count,
        conflicts_with_all = ["window", "expected"],
    )]
    pub(crate) last: Option<u64>,
    #[command(flatten)]
    pub(crate) clock: Clock,
    /// Make a cascade, which is never wrong about the lines of FILE either: it holds none of them
    #[arg(long, value_name = "FILE")]
    pub(crate) not_in: Option<PathBuf>,
    /// Of counting types: bits of a counter, 2 to 8 [default: 4]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(2..=8))]
    pub(crate) width: Option<u32>,
    /// Seed of the hash, no secret: other seeds err on other lines [default: 0]
    #[arg(long, value_name = "N", conflicts_with = "keyed", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Hash with a secret random key: for lines that an adversary may choose
    #[arg(long)]
    pub(crate) keyed: bool,
    /// Make another program's filter, sized as that program would
    #[arg(
        long, value_name = "FORMAT", value_parser = formats(),
        conflicts_with_all = [
            "kind", "growing", "up_to", "window", "last", "width", "seed", "keyed",
        ],
    )]
    pub(crate) format: Option<Format>,
    /// What lines are as keys of the other program [default: text]
    #[arg(long = "as", value_name = "FORM", value_parser = forms(), requires = "format")]
    pub(crate) form: Option<KeyForm>,
    /// Pack the other program's file with gzip
    #[arg(long, requires = "format")]
    pub(crate) gzip: bool,
    #[command(flatten)]
    pub(crate) read: Read,
}

/// What time it is.
#[derive(Args, Clone, Debug)]
pub(crate) struct Clock {
    #[arg(long, hide = true, value_name = "SECONDS")]
    now: Option<u64>,
}

impl Clock {
    /// Seconds since the epoch of Unix; a clock that is before it stands still.
    pub(crate) fn now(&self) -> u64 {
        let told = || SystemTime::now().duration_since(UNIX_EPOCH);
        self.now.unwrap_or_else(|| told().map_or(0, |since| since.as_secs()))
    }
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// The filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) foreign: Foreign,
    #[command(flatten)]
    pub(crate) known: Known,
    #[command(flatten)]
    pub(crate) clock: Clock,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

#[derive(Args, Debug)]
pub(crate) struct RemoveArgs {
    /// The filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Write the lines that were certainly not in the filter to a file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) missing: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Print the lines the filter certainly does not hold
    #[arg(short = 'v', long)]
    pub(crate) invert: bool,
    /// Count the lines of LIST as not held, whatever the filter says: known false positives
    #[arg(long, value_name = "LIST")]
    pub(crate) allow: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) foreign: Foreign,
    #[command(flatten)]
    pub(crate) known: Known,
    /// Print only the number of lines
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) count: bool,
    /// Write to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) clock: Clock,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

#[derive(Args, Debug)]
pub(crate) struct SeenArgs {
    /// The filter file that remembers; made by the first run
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Lines to plan for, of all runs together; the first run needs it
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count)]
    pub(crate) expected: Option<u64>,
    /// Share of new lines that may be withheld when so many are in [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fpr: Option<f64>,
    /// Remember what was printed within the last TIME: 30s, 15m, 12h, 7d, 2w; -n is how many lines
    /// are printed in it
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) window: Option<u64>,
    /// Remember the last N lines that were printed
    #[arg(
        long, value_name = "N", value_parser = parse_count,
        conflicts_with_all = ["window", "expected"],
    )]
    pub(crate) last: Option<u64>,
    #[command(flatten)]
    pub(crate) clock: Clock,
    /// Withhold no line: keep exact fingerprints in FILTER.exact, 16 bytes for each line
    /// [default: as the first run did]
    #[arg(long, conflicts_with_all = ["window", "last"])]
    pub(crate) exact: bool,
    /// Print only the number of new lines
    #[arg(short, long)]
    pub(crate) count: bool,
    #[arg(long, hide = true, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) save_every: f64,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => Ok(seconds),
        _ => Err(format!("'{text}' is no number of seconds")),
    }
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    /// The filter file to make
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The filters to unite; one whose size is a multiple of another's is folded to that
    #[arg(value_name = "FILTER", required = true)]
    pub(crate) filters: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) written: Written,
    /// Fold to whatever all sizes have in common, be it next to nothing
    #[arg(long)]
    pub(crate) fold: bool,
    /// Cap on memory: 4G, 512M, 50%
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = Memory::parse)]
    pub(crate) memory: Memory,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ShrinkArgs {
    /// The filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    /// The filter file to make
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// As small as this false-positive rate allows [default: the rate it was planned for]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fpr: Option<f64>,
    /// So many times smaller
    #[arg(
        long, value_name = "N", conflicts_with = "fpr",
        value_parser = clap::value_parser!(u64).range(2..),
    )]
    pub(crate) by: Option<u64>,
    /// Cap on memory: 4G, 512M, 50%
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = Memory::parse)]
    pub(crate) memory: Memory,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FreezeArgs {
    /// The filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    /// The filter file to make
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// A filter file
    #[arg(value_name = "A")]
    pub(crate) left: PathBuf,
    /// Another one
    #[arg(value_name = "B")]
    pub(crate) right: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// The filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) written: Written,
    /// Cap on memory, for what is packed: 4G, 512M, 50%
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = Memory::parse)]
    pub(crate) memory: Memory,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The filter files
    #[arg(value_name = "FILTER", required = true)]
    pub(crate) filters: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) written: Written,
    /// Cap on memory, for what is packed: 4G, 512M, 50%
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = Memory::parse)]
    pub(crate) memory: Memory,
    /// Print nothing when all is well
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_one_name_everywhere() {
        for kind in Kind::value_variants() {
            let name = kind.to_possible_value().unwrap();
            assert_eq!(name.get_name(), kind.filter_type().name());
        }
    }
}
