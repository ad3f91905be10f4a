//! The words of the command line, and nothing else: the only room that sees clap.
//!
//! Help, completions and man pages all come from the definitions here.

mod examples;
mod filters;
mod foreign;
mod pages;
mod plan;
mod probe;
mod sets;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Arg, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
pub(crate) use petal_lines::Cap as Memory;
use petal_lines::Source;

use examples::*;
pub(crate) use filters::{
    AddArgs, BuildArgs, CheckArgs, Clock, CompareArgs, FreezeArgs, InfoArgs, Kind, MergeArgs,
    RemoveArgs, SeenArgs, ShrinkArgs, VerifyArgs,
};
pub(crate) use foreign::{Foreign, Written};
pub(crate) use pages::{completions, man_pages};
pub(crate) use plan::PlanArgs;
pub(crate) use probe::ProbeArgs;
pub(crate) use sets::{Answer, DedupArgs, SetArgs};

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

Exit codes: 0 done (check, probe: something printed), 1 check or probe found nothing,
2 trouble, 130 ended by a signal."
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
    /// Take lines out of a filter file of a type that can delete
    #[command(alias = "delete", after_help = REMOVE_EXAMPLES)]
    Remove(RemoveArgs),
    /// Print the lines that a filter may hold (-v: those it certainly does not)
    #[command(alias = "query", after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Print the Parquet files that may hold any of these keys (-v: hold none)
    #[command(after_help = PROBE_EXAMPLES)]
    Probe(ProbeArgs),
    /// Print the lines never seen before, and remember them in a filter file across runs
    #[command(alias = "anew", after_help = SEEN_EXAMPLES)]
    Seen(SeenArgs),
    /// Unite filter files of the same type and hash
    #[command(alias = "join", after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Make a smaller filter of the same lines, as small as a rate allows
    #[command(alias = "fold", after_help = SHRINK_EXAMPLES)]
    Shrink(ShrinkArgs),
    /// Write a counting filter without its counters, for those who only ask
    #[command(after_help = FREEZE_EXAMPLES)]
    Freeze(FreezeArgs),
    /// Estimate how many lines two filter files have in common
    #[command(alias = "overlap", after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
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
    /// Read inputs as lines even if they look like binary files or UTF-16, and do not warn
    #[arg(long)]
    pub(crate) text: bool,
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

/// How lines are read where memory is not the matter.
#[derive(Args, Debug)]
pub(crate) struct Read {
    /// Threads to work with [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Lines end in NUL instead of LF
    #[arg(short = 'z', long)]
    pub(crate) null: bool,
    /// Read inputs as lines even if they look like binary files or UTF-16, and do not warn
    #[arg(long)]
    pub(crate) text: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
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
}
