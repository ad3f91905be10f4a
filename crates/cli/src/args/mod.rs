//! The words of the command line, and nothing else: the only room that sees clap.
//!
//! Help, completions and man pages all come from the definitions here.

mod examples;
mod pages;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Arg, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use petal_lines::{Source, Strategy, Verb};

use examples::*;
pub(crate) use pages::{completions, man_pages};

use crate::text::{parse_count, parse_rate, parse_size};

/// Parses the process's arguments. Help and usage errors are printed here; usage errors exit
/// with 2, like every other trouble.
pub(crate) fn parse() -> Result<Petal, ExitCode> {
    parse_from(std::env::args_os())
}

pub(crate) fn parse_from(words: impl IntoIterator<Item = OsString>) -> Result<Petal, ExitCode> {
    read(words).map_err(|error| {
        // `--help | head` may find nobody reading: nothing to say then.
        let _ = error.print();
        if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
    })
}

fn read(words: impl IntoIterator<Item = OsString>) -> Result<Petal, clap::Error> {
    // Known here only: what makes completions shows hidden options too.
    let kernel = Arg::new("kernel").long("kernel").value_name("NAME").global(true).hide(true);
    let mut command = Petal::command().arg(kernel);
    let matches = command.try_get_matches_from_mut(words)?;
    let mut petal = Petal::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
    petal.kernel = matches.get_one("kernel").cloned();
    Ok(petal)
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Exact set operations on line files far larger than memory, and the filters that make them
/// fast.
///
/// A line is the bytes up to LF (or NUL with -z); CR, NUL and bytes that are not UTF-8 belong to
/// it. Inputs are files, pipes, or - for standard input.
#[derive(Debug, Parser)]
#[command(
    name = "petal",
    version,
    styles = STYLES,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  petal common a.txt b.txt              lines of a.txt that are in b.txt too
  petal common a.txt b.txt -m 4G -o c   the same within 4 GiB of memory, into a file
  petal diff new.txt seen.txt           lines of new.txt that are not in seen.txt
  petal dedup logs/*.txt                distinct lines, in order of first appearance
  petal build -o bad.petal hosts.txt    a filter of all lines, 1 % false positives
  petal check bad.petal requests.txt    lines that the filter may hold
  petal seen -n 1e6 old.petal new.txt   lines that no run has printed yet
  petal plan -n 5e9 -m 4G               what rate 4 GiB give for 5 billion keys

Exit codes: 0 done (check: something printed), 1 check found nothing, 2 trouble,
130 ended by a signal."
)]
pub(crate) struct Petal {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The kernel to work with, by name: for tests and benches.
    #[arg(skip)]
    pub(crate) kernel: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the distinct lines of A that occur in every other input
    #[command(alias = "intersect", after_help = COMMON_EXAMPLES)]
    Common(SetArgs),
    /// Print the distinct lines of A that occur in no other input
    #[command(aliases = ["exclude", "subtract"], after_help = DIFF_EXAMPLES)]
    Diff(SetArgs),
    /// Print the distinct lines of all inputs, in order of first appearance
    #[command(visible_alias = "uniq", after_help = DEDUP_EXAMPLES)]
    Dedup(DedupArgs),
    /// Make a filter file of all lines
    #[command(alias = "create", after_help = BUILD_EXAMPLES)]
    Build(BuildArgs),
    /// Put more lines into a filter file
    #[command(alias = "insert", after_help = ADD_EXAMPLES)]
    Add(AddArgs),
    /// Print the lines that a filter may hold (-v: those it certainly does not)
    #[command(alias = "query", after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Print the lines never seen before, and remember them in a filter file across runs
    #[command(alias = "anew", after_help = SEEN_EXAMPLES)]
    Seen(SeenArgs),
    /// Unite filter files of the same shape and hash
    #[command(alias = "join", after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Describe a filter file: shape, contents, false-positive rate now
    #[command(alias = "show", after_help = INFO_EXAMPLES)]
    Info(InfoArgs),
    /// Examine every byte of filter files; exit with 2 on any damage
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Size a filter from two or three of keys, rate, memory, probes; or foretell a job
    #[command(alias = "size", after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Print a script that completes petal's words in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print the man page, or write one for every verb into a directory
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArgs),
}

/// What all verbs that read lines share.
#[derive(Args, Debug)]
pub(crate) struct Engine {
    /// Cap on memory: 4G, 512M, or a share of what the process may use, like 50%
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = Memory::parse)]
    pub(crate) memory: Memory,
    /// Directory for temporary data [default: $TMPDIR or /tmp]
    #[arg(short = 'T', long, value_name = "DIR")]
    pub(crate) temp_dir: Option<PathBuf>,
    /// Threads to work with [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Lines end in NUL instead of LF, in inputs and output
    #[arg(short = 'z', long)]
    pub(crate) null: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// How much is said on stderr.
#[derive(Args, Clone, Debug)]
pub(crate) struct Talk {
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Show progress on stderr: auto is on a terminal only
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) progress: When,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// A cap on memory as asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Memory {
    Bytes(u64),
    /// Of what the process may use.
    Percent(f64),
}

impl Memory {
    fn parse(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            return parse_size(text)
                .map(Self::Bytes)
                .map_err(|error| format!("{error}, or a share like 50%"));
        };
        match percent.parse::<f64>() {
            Ok(share) if share > 0.0 && share <= 100.0 => Ok(Self::Percent(share)),
            _ => Err(format!("'{text}' is no share of memory; write 1% to 100%")),
        }
    }
}

/// Exact or approximate.
#[derive(Args, Debug)]
pub(crate) struct Answer {
    /// No false line and none lost, whatever the input [default]
    #[arg(long, conflicts_with = "approx")]
    exact: bool,
    /// One pass over each input, filters decide; the wrong lines to expect are told on stderr
    #[arg(long)]
    pub(crate) approx: bool,
    /// With --approx: distinct lines to plan for [default: as many as files seem to have; of a
    /// pipe nothing is known, and all of the memory is used]
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count, requires = "approx")]
    pub(crate) expected: Option<u64>,
    /// With --approx: false-positive rate to plan for [default: the best the memory allows]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate, requires = "approx")]
    pub(crate) fpr: Option<f64>,
    #[arg(long, hide = true, value_name = "NAME", conflicts_with = "approx")]
    pub(crate) strategy: Option<Way>,
    /// Print only the number of lines
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) count: bool,
    /// Write to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write what was done as JSON: lines, candidates, passes, bytes, memory, seconds per phase
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Keep what finished phases have brought in DIR until the job is done, so that it can be
    /// resumed; records and filters go there instead of -T
    #[arg(long, value_name = "DIR", conflicts_with = "approx")]
    pub(crate) work_dir: Option<PathBuf>,
    /// Go on from the last finished phase in --work-dir, if there is one
    #[arg(long, requires = "work_dir")]
    pub(crate) resume: bool,
}

/// A strategy by name: for tests and benches.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Way {
    Memory,
    Narrow,
    Partition,
}

impl From<Way> for Strategy {
    fn from(way: Way) -> Self {
        match way {
            Way::Memory => Self::Memory,
            Way::Narrow => Self::Narrow,
            Way::Partition => Self::Partition,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// The input whose lines are printed, in its order
    #[arg(value_name = "A")]
    first: PathBuf,
    /// What it is compared with
    #[arg(value_name = "B", required = true)]
    others: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) answer: Answer,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

impl SetArgs {
    pub(crate) fn inputs(&self) -> (Vec<Source>, Vec<Source>) {
        (sources(std::slice::from_ref(&self.first)), sources(&self.others))
    }
}

#[derive(Args, Debug)]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Write the lines that are not printed, the later appearances, to a file, in order
    #[arg(long, value_name = "FILE")]
    pub(crate) dupes_output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) answer: Answer,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

#[derive(Args, Debug)]
pub(crate) struct Inputs {
    /// Inputs, - for standard input [default: -]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Inputs {
    pub(crate) fn sources(&self) -> Vec<Source> {
        if self.files.is_empty() { vec![Source::Stdin] } else { sources(&self.files) }
    }
}

fn sources(files: &[PathBuf]) -> Vec<Source> {
    files.iter().map(Source::from_arg).collect()
}

/// Which filter to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Blocked: one cache line a key
    Bloom,
    /// The textbook's: a little smaller, several cache lines a key
    Classic,
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
    /// False-positive rate to plan for [default: 1%, or with -m the best that fits]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fpr: Option<f64>,
    /// Cap on the filter's size: 4G, 512M, 50%
    #[arg(short, long, value_name = "SIZE", value_parser = Memory::parse)]
    pub(crate) memory: Option<Memory>,
    /// The type of filter
    #[arg(long = "type", value_name = "TYPE", default_value = "bloom")]
    pub(crate) kind: Kind,
    /// Hash with a secret random key: for lines that an adversary may choose
    #[arg(long)]
    pub(crate) keyed: bool,
    #[command(flatten)]
    pub(crate) read: Read,
}

/// How lines are read where memory is not the matter.
#[derive(Args, Debug)]
pub(crate) struct Read {
    /// Threads to work with [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Lines end in NUL instead of LF
    #[arg(short = 'z', long)]
    pub(crate) null: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// The filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
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
    /// Print only the number of lines
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) count: bool,
    /// Write to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
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
    /// Withhold no line: keep exact fingerprints in FILTER.exact, 16 bytes for each line
    /// [default: as the first run did]
    #[arg(long)]
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
    /// The filters to unite
    #[arg(value_name = "FILTER", required = true)]
    pub(crate) filters: Vec<PathBuf>,
    /// Cap on memory: 4G, 512M, 50%
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = Memory::parse)]
    pub(crate) memory: Memory,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// The filter file
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The filter files
    #[arg(value_name = "FILTER", required = true)]
    pub(crate) filters: Vec<PathBuf>,
    /// Print nothing when all is well
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    /// Foretell this job on INPUTS instead of sizing a filter
    #[arg(value_name = "VERB", requires = "inputs")]
    pub(crate) verb: Option<SetVerb>,
    /// The inputs of the job, as the verb takes them; they are sampled
    #[arg(value_name = "INPUTS")]
    inputs: Vec<PathBuf>,
    /// Keys
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count, conflicts_with = "verb")]
    pub(crate) expected: Option<u64>,
    /// False-positive rate
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate, conflicts_with = "verb")]
    pub(crate) fpr: Option<f64>,
    /// Memory of the filter, or cap of the job: 4G, 512M, 50%
    #[arg(short, long, value_name = "SIZE", value_parser = Memory::parse)]
    pub(crate) memory: Option<Memory>,
    /// Probes: bits set for a key
    #[arg(
        short = 'k', long, value_name = "K", conflicts_with = "verb",
        value_parser = clap::value_parser!(u32).range(1..=16),
    )]
    pub(crate) probes: Option<u32>,
    /// Of a job: threads to work with [default: all processors]
    #[arg(
        short, long, value_name = "N", requires = "verb",
        value_parser = clap::value_parser!(u16).range(1..),
    )]
    pub(crate) jobs: Option<u16>,
    /// Of a job: lines end in NUL instead of LF
    #[arg(short = 'z', long, requires = "verb")]
    pub(crate) null: bool,
    /// Of a job: lines are only to be counted
    #[arg(short, long, requires = "verb")]
    pub(crate) count: bool,
    #[arg(long, hide = true, value_name = "NAME", requires = "verb")]
    pub(crate) strategy: Option<Way>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl PlanArgs {
    /// The first input of the job, or all of them, and what it is compared with.
    pub(crate) fn inputs(&self) -> (Vec<Source>, Vec<Source>) {
        let first = if self.verb == Some(SetVerb::Dedup) { self.inputs.len() } else { 1 };
        let (first, others) = self.inputs.split_at(first.min(self.inputs.len()));
        (sources(first), sources(others))
    }
}

/// The verbs that are sets' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SetVerb {
    Common,
    Diff,
    Dedup,
}

impl From<SetVerb> for Verb {
    fn from(verb: SetVerb) -> Self {
        match verb {
            SetVerb::Common => Self::Common,
            SetVerb::Diff => Self::Diff,
            SetVerb::Dedup => Self::Dedup,
        }
    }
}

/// Shells whose words can be completed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Where to write petal.1 and a page for each verb; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_arguments_is_sound() {
        Petal::command().debug_assert();
    }

    #[test]
    fn every_verb_has_examples_and_they_parse() {
        for verb in Petal::command().get_subcommands() {
            let help = verb.get_after_help().unwrap_or_else(|| panic!("{}", verb.get_name()));
            let help = help.to_string();
            let lines =
                help.lines().filter_map(|line| line.split_once("petal ").map(|(_, rest)| rest));
            let mut seen = 0;
            for line in lines {
                let line = line.split("  ").next().unwrap_or(line);
                let line = line.split(" | ").next().unwrap_or(line);
                let line = line.split(" && ").next().unwrap_or(line);
                let line = line.split(" >").next().unwrap_or(line);
                let words = ["petal"].into_iter().chain(line.split_whitespace());
                let parsed = Petal::try_parse_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                seen += 1;
            }
            assert!(seen > 0, "{}", verb.get_name());
        }
    }

    #[test]
    fn memory_has_a_unit_or_is_a_share() {
        assert_eq!(Memory::parse("50%"), Ok(Memory::Percent(50.0)));
        assert_eq!(Memory::parse("4G"), Ok(Memory::Bytes(4 << 30)));
        for bad in ["0%", "101%", "%", "4", "x%", ""] {
            assert!(Memory::parse(bad).is_err(), "{bad}");
        }
    }
}
