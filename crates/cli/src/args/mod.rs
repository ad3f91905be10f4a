//! The definition of the command line; the only module that uses clap.
//!
//! Help, completions and man pages are generated from these definitions.

mod compress;
mod count;
mod documents;
mod examples;
mod fields;
mod filters;
mod foreign;
mod hints;
mod inputs;
mod keys;
mod manual;
#[cfg(test)]
mod options_page;
mod plan;
mod probe;
mod records;
mod secret;
mod setops;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{
    Arg, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint,
};
use petal_lines::{MemoryLimit, Source};

use crate::error::{Failure, Outcome, exit_code};
use crate::process::streams::is_stdout_closed;

pub(crate) use compress::{CompressArgs, CompressionArg};
pub(crate) use count::{CountArgs, CountSort};
pub(crate) use documents::DocumentArgs;
use examples::*;
pub(crate) use fields::{FieldArgs, RowArgs};
pub(crate) use filters::{
    AddArgs, BuildArgs, CheckArgs, Clock, CompareArgs, ExplainArgs, FilterTypeArg, FreezeArgs,
    InfoArgs, MergeArgs, NoteArgs, RemoveArgs, SeenArgs, ShrinkArgs, VerifyArgs,
};
pub(crate) use foreign::{ForeignArgs, FormatArg};
pub(crate) use inputs::{Inputs, ListArgs, SetInputs, source};
use keys::KeyArgs;
pub(crate) use manual::{completions, man_page, man_pages};
pub(crate) use plan::PlanArgs;
pub(crate) use probe::ProbeArgs;
pub(crate) use secret::SecretArgs;
pub(crate) use setops::{
    ApproxArgs, CommonArgs, DedupArgs, KeepArg, ResultArgs, SetArgs, SymDiffArgs,
};

/// Parses the arguments of the process. Prints help and usage errors; returns the exit code, which
/// is 2 for usage errors and for help that cannot be printed.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    parse_from(std::env::args_os())
}

pub(crate) fn parse_from(args: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let args: Vec<_> = args.into_iter().collect();
    read(&args).map_err(|error| {
        if error.use_stderr() {
            hints::print(&error, &args);
            return ExitCode::from(2);
        }
        exit_code(match is_stdout_closed() {
            true => Err(Failure::closed_stdout()),
            false => {
                let printed = error.print().and_then(|()| io::stdout().flush());
                printed.map(|()| Outcome::Done).map_err(Failure::of_stdout)
            }
        })
    })
}

fn read(args: &[OsString]) -> Result<Cli, clap::Error> {
    // Not part of `Cli`: completions would show the hidden option.
    let kernel = Arg::new("kernel").long("kernel").value_name("NAME").global(true).hide(true);
    let mut command = Cli::command().arg(kernel).mut_subcommands(accept_hyphens);
    let parsed = command.try_get_matches_from_mut(args);
    let mut matches = parsed.map_err(|error| hints::explained(error, &mut command, args))?;
    let named = |of: &clap::ArgMatches| of.get_one::<String>("command").cloned();
    let again = match matches.subcommand() {
        Some(("help", help)) => Some(help_args(&command, named(help).as_ref())),
        // For the error of an unknown command.
        Some(("man", man)) => named(man)
            .filter(|name| command.find_subcommand(name).is_none())
            .map(|name| vec![command.get_name().to_owned(), name]),
        _ => None,
    };
    if let Some(again) = again {
        let args: Vec<_> = again.iter().map(OsString::from).collect();
        let parsed = command.try_get_matches_from_mut(&args);
        matches = parsed.map_err(|error| hints::explained(error, &mut command, &args))?;
    }
    if let Some((name, given)) = matches.subcommand()
        && let Some(problem) = fields::problem(given)
        && let Some(command) = command.find_subcommand_mut(name)
    {
        return Err(command.error(clap::error::ErrorKind::ValueValidation, problem));
    }
    let mut cli = Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
    cli.kernel = matches.get_one("kernel").cloned();
    Ok(cli)
}

/// The names of values that are numbers.
const NUMBERS: [&str; 6] = ["SIZE", "N", "K", "BITS", "RATE", "TIME"];

/// Accepts a hyphen at the start of a number, so that the message for `-n -5` is about the number:
/// otherwise it advises to write `--`, which makes an input of `-5`.
fn accept_hyphens(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| {
        let names = arg.get_value_names().unwrap_or_default();
        let is_number =
            arg.get_long().is_some() && names.iter().any(|name| NUMBERS.contains(&name.as_str()));
        if is_number { arg.allow_hyphen_values(true) } else { arg }
    })
}

/// Returns the arguments that print the help of a command; for an unknown command, those of a usage
/// error that suggests a similar one.
fn help_args(program: &clap::Command, command: Option<&String>) -> Vec<String> {
    let mut args = vec![program.get_name().to_owned()];
    if let Some(name) = command {
        args.push(name.clone());
        if program.find_subcommand(name).is_none() {
            return args;
        }
    }
    args.push("--help".to_owned());
    args
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Exact set operations on line files far larger than memory, and the filters that make them
/// fast.
///
/// A line is the bytes up to LF (or NUL with -z), including CR and bytes that are not UTF-8.
/// Inputs are files, pipes, or - for standard input.
#[derive(Debug, Parser)]
#[command(
    name = "petal",
    version,
    styles = STYLES,
    max_term_width = 80,
    disable_help_subcommand = true,
    // A later option replaces an earlier one: aliases and scripts set defaults.
    args_override_self = true,
    after_help = "\
Examples:
  petal common a.txt b.txt              lines of a.txt that are also in b.txt
  petal common a.txt b.txt -m 4G -o c   with 4 GiB of memory, into a file
  petal diff new.txt seen.txt           lines of new.txt not in seen.txt
  petal dedup logs/*.txt                distinct lines, in input order
  petal build -o bad.petal hosts.txt    filter of all lines, 1 % false positives
  petal check bad.petal requests.txt    lines that may be in the filter
  petal seen -n 1e6 old.petal new.txt   lines that no run has printed yet
  petal plan -n 5e9 --size 4G           rate of 5 billion keys in 4 GiB
  petal help build                      all options of a command

A later option replaces an earlier one of the same name.

Exit codes: 0 done (check, probe: found lines or files), 1 check or probe found
none, 2 error, 130 ended by a signal."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Name of the kernel, for tests and benchmarks.
    #[arg(skip)]
    pub(crate) kernel: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the distinct lines of A that occur in every other input
    #[command(after_help = COMMON_EXAMPLES)]
    Common(CommonArgs),
    /// Print the distinct lines of A that occur in no other input
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(SetArgs),
    /// Print the distinct lines that occur in only one of A and B
    #[command(after_help = SYMDIFF_EXAMPLES)]
    Symdiff(SymDiffArgs),
    /// Print the distinct lines of all inputs, in order
    #[command(visible_alias = "uniq", after_help = DEDUP_EXAMPLES)]
    Dedup(DedupArgs),
    /// Print how often each distinct line occurs in all inputs together
    #[command(after_help = COUNT_EXAMPLES)]
    Count(CountArgs),
    /// Build a filter file from lines
    #[command(after_help = BUILD_EXAMPLES)]
    Build(BuildArgs),
    /// Add lines to a filter file
    #[command(after_help = ADD_EXAMPLES)]
    Add(AddArgs),
    /// Remove lines from a filter file of a type that supports it
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(RemoveArgs),
    /// Print the lines that may be in a filter (-v: the others)
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Print the Parquet files that may contain a key (-v: the others)
    #[command(after_help = PROBE_EXAMPLES)]
    Probe(ProbeArgs),
    /// Print lines that no run has printed; remember them in a filter
    #[command(after_help = SEEN_EXAMPLES)]
    Seen(SeenArgs),
    /// Write the union of filter files of the same type and hash
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Write a smaller filter of the same lines
    #[command(after_help = SHRINK_EXAMPLES)]
    Shrink(ShrinkArgs),
    /// Write a counting filter without its counters, for lookups only
    #[command(after_help = FREEZE_EXAMPLES)]
    Freeze(FreezeArgs),
    /// Estimate how many lines two filter files have in common
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Describe a filter file: type, size, contents, estimated rate
    #[command(after_help = INFO_EXAMPLES)]
    Info(InfoArgs),
    /// Show how a filter answers a query of a key: hash, positions, bits
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Check filter files for damage; exit with 2 if there is any
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Size a filter from capacity, rate and memory, or estimate a job
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Show the JSON report of a job: its numbers, or a page with charts
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Print the help of a command, like COMMAND --help
    #[command(after_help = HELP_EXAMPLES)]
    Help(HelpArgs),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print a man page, or write all pages to a directory
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArgs),
}

/// Arguments of all commands that read lines.
#[derive(Args, Debug)]
pub(crate) struct EngineArgs {
    /// Maximum memory, e.g. 4G, 512M or 50% of RAM
    #[arg(short, long, value_name = "SIZE", default_value = "50%", value_parser = MemoryLimit::parse)]
    pub(crate) memory: MemoryLimit,
    /// Directory for temporary files [default: $TMPDIR or /tmp]
    #[arg(short = 'T', long, value_name = "DIR")]
    pub(crate) temp_dir: Option<PathBuf>,
    /// Number of threads [default: all processors]
    #[arg(
        short, long, visible_alias = "threads", value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..),
    )]
    pub(crate) jobs: Option<u16>,
    /// Lines end in NUL instead of LF, in inputs and output
    #[arg(short = 'z', long, visible_short_alias = '0')]
    pub(crate) null: bool,
    /// Read inputs as lines even if they look like binary files or UTF-16
    #[arg(long)]
    pub(crate) text: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

/// How much is printed on stderr.
#[derive(Args, Clone, Debug)]
pub(crate) struct Verbosity {
    /// Print only errors on stderr
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print each phase of the job on stderr: its name, bytes and seconds
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Show progress on stderr; auto: if stderr is a terminal
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
pub(crate) struct ReportArgs {
    /// Report that --report has written, - for standard input
    #[arg(value_name = "REPORT")]
    report: PathBuf,
    /// Write an HTML page with charts to FILE instead of printing, - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl ReportArgs {
    pub(crate) fn source(&self) -> Source {
        Source::from_arg(&self.report)
    }
}

/// Shells with completion scripts.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell to print the script for
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Args, Debug)]
pub(crate) struct HelpArgs {
    /// Command [default: the list of commands]
    #[arg(value_name = "COMMAND", value_hint = ValueHint::Other)]
    command: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Command [default: the page of the program]
    #[arg(value_name = "COMMAND", value_hint = ValueHint::Other)]
    pub(crate) command: Option<String>,
    /// Directory for petal.1 and the pages of all commands; created if missing
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_definitions_are_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn messages_for_negative_numbers_name_the_number() {
        for (args, message) in [
            ("dedup a -m -5M", "'-5M' is no size"),
            ("dedup a -m -5", "'-5' is no size"),
            ("dedup a -m -j 2", "'-j' is no size"),
            ("plan -n -5 -p 1%", "'-5' is not a whole number above 0"),
            ("plan -n 5 -p -1", "'-1' is not a rate between 0 and 1"),
            ("plan --bits -1 -k 3", "'-1' is not a whole number above 0"),
            ("seen f a -n 5 --window -7d", "'-7d' is not a duration"),
            ("build -o f a --seed -1", "'-1' is not a whole number from 0 to"),
            ("build -o f a -k -1", "-1 is not in 1..=64"),
            ("dedup a -j -1", "-1 is not in 1..=65535"),
            ("count a --top -1", "'-1' is not a whole number above 0; write 1, 10 or 1,000"),
            ("common a b --at-least -1", "-1 is not in 1..=126"),
            ("shrink f -o g --factor -2", "'-2' is not a factor"),
        ] {
            let error = usage_error(args);
            assert!(error.contains(message), "{error}");
        }
    }

    fn usage_error(args: &str) -> String {
        let args: Vec<_> =
            ["petal"].into_iter().chain(args.split(' ')).map(OsString::from).collect();
        hints::line(&read(&args).unwrap_err(), &args)
    }

    #[test]
    fn usage_errors_are_one_line_with_the_next_step() {
        for (args, line) in [
            ("foo", "unrecognized subcommand 'foo'; see `petal --help`"),
            ("help foo", "unrecognized subcommand 'foo'; see `petal --help`"),
            ("help chek", "unrecognized subcommand 'chek'; a similar subcommand exists: 'check'"),
            ("man chek", "unrecognized subcommand 'chek'; a similar subcommand exists: 'check'"),
            ("intersect a b", "unrecognized subcommand 'intersect'; use `petal common`"),
            ("except a count", "unrecognized subcommand 'except'; use `petal diff`"),
            ("contains f a", "unrecognized subcommand 'contains'; use `petal check`"),
            ("help anew", "unrecognized subcommand 'anew'; use `petal seen`"),
            (
                "union a b",
                "unrecognized subcommand 'union'; use `petal dedup`, or `petal merge` for filters",
            ),
            (
                "unique a",
                "unrecognized subcommand 'unique'; use `petal dedup`, or `petal dedup -u` for lines \
                 that occur once",
            ),
            (
                "plan count a",
                "'count' cannot be estimated; petal plan estimates common, diff, symdiff and dedup",
            ),
            ("dedup --nothing", "unexpected argument '--nothing' found; see `petal dedup --help`"),
            (
                "uniq --cuont",
                "unexpected argument '--cuont' found; a similar argument exists: '--count'",
            ),
            (
                "dedup -v",
                "unexpected argument '-v' found; '-v' is an option of petal check, petal probe",
            ),
            (
                "dedup -#url",
                "unexpected argument '-#' found; for standard input write /dev/stdin#, for another name \
                 write -- before it",
            ),
            ("dedup -j 0", "--jobs: 0 is not in 1..=65535; see `petal dedup --help`"),
            ("dedup -m 4", "--memory: '4' has no unit; write 4M or 4G, or a share like 50%"),
            (
                "dedup --progress perhaps",
                "invalid value 'perhaps' for '--progress <WHEN>' [possible values: auto, always, \
                 never]; see `petal dedup --help`",
            ),
            (
                "merge -o f",
                "the following required arguments were not provided: <FILTER>...; see `petal merge \
                 --help`",
            ),
            (
                "dedup -d -u",
                "the argument '--only-duplicates' cannot be used with '--only-unique'; leave out one \
                 of them",
            ),
        ] {
            assert_eq!(usage_error(args), line, "{args}");
        }
    }

    #[test]
    fn names_of_commands_are_those_of_the_help() {
        for command in Cli::command().get_subcommands() {
            let hidden = command.get_all_aliases().count() - command.get_visible_aliases().count();
            assert_eq!(hidden, 0, "{}", command.get_name());
        }
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().unwrap_or_else(|| panic!("{}", command.get_name()));
            let help = help.to_string();
            let lines =
                help.lines().filter_map(|line| line.split_once("petal ").map(|(_, rest)| rest));
            let mut parsed_examples = 0;
            for line in lines {
                let line = line.split("  ").next().unwrap_or(line);
                let line = line.split(" | ").next().unwrap_or(line);
                let line = line.split(" && ").next().unwrap_or(line);
                let line = line.split(" >").next().unwrap_or(line);
                let args = ["petal"].into_iter().chain(line.split_whitespace());
                let parsed = Cli::try_parse_from(args);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                parsed_examples += 1;
            }
            assert!(parsed_examples > 0, "{}", command.get_name());
        }
    }
}
