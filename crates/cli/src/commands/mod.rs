//! The commands, one file each, and what they share.

mod add;
mod ask;
mod assert_members;
mod build;
mod check;
mod compare;
mod count;
mod documents;
mod estimate;
mod explain;
mod foreign;
mod foreign_info;
mod freeze;
mod info;
mod manual;
mod merge;
mod plan;
mod probe;
mod remove;
mod report;
mod saturation;
mod seen;
mod setops;
mod shrink;
mod verify;

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;

use petal::{AnyFilter, Kernel};
use petal_lines::{ErrorKind, KeySpec, SetOp, Settings, Source};

use crate::args::{Cli, Clock, Command, EngineArgs, FieldArgs};
use crate::error::{Failure, Outcome, Result, messages};
use crate::files::output::Output;
use crate::html::Page;
use crate::process::streams::is_stdout_closed;
use crate::terminal::progress::ProgressReporter;

/// Runs the command.
pub(crate) fn run(args: Cli) -> Result<Outcome> {
    if let Some(name) = &args.kernel {
        force_kernel(name)?;
    }
    match args.command {
        Command::Common(args) => setops::common(&args),
        Command::Diff(args) => setops::compare(SetOp::Diff, &args),
        Command::Symdiff(args) => setops::symdiff(&args),
        Command::Dedup(args) => match args.documents.unit {
            Some(unit) => documents::run(&args, unit.into()),
            None => setops::dedup(&args),
        },
        Command::Count(args) => count::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Add(args) => add::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Seen(args) => seen::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Shrink(args) => shrink::run(&args),
        Command::Freeze(args) => freeze::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Report(args) => report::run(&args),
        // The parser has printed the help.
        Command::Help(_) => Ok(Outcome::Done),
        Command::Completions(args) => manual::complete(&args),
        Command::Man(args) => manual::man(&args),
    }
}

/// Makes the process use the kernel of this name.
fn force_kernel(name: &str) -> Result<()> {
    let failed = |text: String| Err(Failure::Message(format!("--kernel: {text}")));
    let Some(kernel) = Kernel::from_name(name) else {
        let all = kernel_names(Kernel::ALL.into_iter());
        return failed(format!("'{name}' is not a kernel; use one of {all}"));
    };
    if !kernel.is_available() {
        let available =
            kernel_names(Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()));
        return failed(format!("this processor does not support {name}; use one of {available}"));
    }
    kernel.force();
    Ok(())
}

fn kernel_names(kernels: impl Iterator<Item = Kernel>) -> String {
    kernels.map(Kernel::name).collect::<Vec<_>>().join(", ")
}

/// Returns the command of a set operation, with the option that selects it.
fn op_name(op: SetOp) -> &'static str {
    match op {
        SetOp::Common => "common",
        SetOp::AtLeast(_) => "common --at-least",
        SetOp::Diff => "diff",
        SetOp::SymDiff => "symdiff",
        SetOp::Dedup => "dedup",
        SetOp::DedupLast => "dedup --keep last",
        SetOp::Duplicates => "dedup --only-duplicates",
        SetOp::Unique => "dedup --only-unique",
    }
}

/// Returns the settings of the file engine for a job on these inputs.
fn settings<'a>(
    engine: &EngineArgs,
    fields: &FieldArgs,
    inputs: &[Source],
    progress: &'a ProgressReporter,
) -> Result<Settings<'a>> {
    let mut settings = Settings::new(engine.memory.bytes());
    if let Some(jobs) = engine.jobs {
        settings.jobs = jobs.into();
    }
    if let Some(dir) = &engine.temp_dir {
        settings.temp_dir.clone_from(dir);
    }
    if engine.null {
        settings.delimiter = 0;
    }
    settings.text = engine.text;
    settings.keys = Arc::new(engine.keys.spec(fields));
    check_csv(&settings.keys, inputs)?;
    settings.progress = progress;
    settings.left_out = progress.left_out().clone();
    if let Some(path) = engine.keys.bad_file() {
        settings.left_out.write_bad_to(path, inputs)?;
    }
    Ok(settings)
}

/// Returns an error if options for CSV were given and no input has columns.
fn check_csv(keys: &KeySpec, inputs: &[Source]) -> Result<()> {
    if !Source::leave_csv_unused(inputs, keys) {
        return Ok(());
    }
    Err(Failure::Message(
        "--separator, --quote, --escape, --header: are for columns, and no input has any; add --column, \
         or name columns after # of an input"
            .to_owned(),
    ))
}

/// Adds the name of the filter file to an error of the filter.
fn filter_failure(path: &Path) -> impl Fn(petal_lines::Error) -> Failure + '_ {
    |error| match error.kind() {
        ErrorKind::OtherFilter | ErrorKind::Full => {
            Failure::Message(format!("{}: {}", path.display(), messages::lines(&error)))
        }
        _ => error.into(),
    }
}

/// The failure of a note for a filter file.
fn bad_note(problem: String) -> Failure {
    Failure::Message(format!("--metadata: {problem}"))
}

/// Advances the clock of a windowed filter.
fn advance(filter: &mut AnyFilter, clock: &Clock) {
    if let AnyFilter::Windowed(filter) = filter {
        filter.advance_to(clock.now());
    }
}

/// Returns true if lines go to standard output.
fn prints_lines(count: bool, output: Option<&Path>) -> bool {
    !count && output.is_none_or(|path| path == Path::new("-"))
}

/// Returns whether an output is a terminal; `None` is standard output.
fn is_terminal(output: Option<&Path>) -> bool {
    let Some(path) = output.filter(|path| *path != Path::new("-")) else {
        return std::io::stdout().is_terminal();
    };
    // Opening a FIFO would wait for its reader.
    let is_device = fs::metadata(path).is_ok_and(|data| data.file_type().is_char_device());
    is_device && fs::File::options().write(true).open(path).is_ok_and(|file| file.is_terminal())
}

/// Writes a page to a file, or to standard output with `-`. The file may not be one of the inputs.
fn write_page(path: &Path, inputs: &[Source], page: &Page) -> Result<()> {
    let mut output = Output::open(Some(path), inputs)?;
    let written = output.write_all(page.html().as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| output.failed(error))?;
    output.finish()
}

/// Prints a result on standard output.
fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<()> {
    if is_stdout_closed() {
        return Err(Failure::closed_stdout());
    }
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::of_stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_option_selects_the_kernel() {
        // The command itself fails: it should read nothing and print nothing.
        let command = ["verify", "-q", "/dev/null/no filter"];
        let available = || Kernel::ALL.into_iter().filter(|kernel| kernel.is_available());
        for (before, forced) in available().flat_map(|a| available().map(move |b| (a, b))) {
            let option = ["--kernel", forced.name()];
            for args in [[&["petal"], &option[..], &command], [&["petal"], &command, &option]] {
                before.force();
                let cli = crate::args::parse_from(args.concat().iter().map(Into::into)).unwrap();
                assert!(run(cli).is_err());
                assert_eq!(Kernel::current(), forced, "{args:?}");
            }
        }
    }
}
