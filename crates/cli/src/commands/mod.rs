//! One file for each verb; what they share is here.

mod add;
mod build;
mod check;
mod compare;
mod counters;
mod forecast;
mod foreign;
mod foreign_info;
mod freeze;
mod info;
mod known;
mod merge;
mod pages;
mod plan;
mod probe;
mod remove;
mod seen;
mod set;
mod shrink;
mod verify;

use std::io::Write as _;
use std::path::Path;

use petal::{AnyFilter, Kernel};
use petal_lines::{Settings, Source};

use crate::args::{Clock, Command, Engine, Petal};
use crate::closed;
use crate::exit::{Failure, Outcome, Result};
use crate::progress::Teller;

/// Runs the verb.
pub(crate) fn run(args: Petal) -> Result<Outcome> {
    use petal_lines::Verb;
    if let Some(name) = &args.kernel {
        force(name)?;
    }
    match args.command {
        Command::Common(args) => set::compare(Verb::Common, &args),
        Command::Diff(args) => set::compare(Verb::Diff, &args),
        Command::Dedup(args) => set::dedup(&args),
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
        Command::Verify(args) => verify::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Completions(args) => pages::complete(&args),
        Command::Man(args) => pages::man(&args),
    }
}

/// Makes the kernel of that name the one of this process.
fn force(name: &str) -> Result<()> {
    let trouble = |text: String| Err(Failure::Plain(format!("--kernel: {text}")));
    let Some(kernel) = Kernel::from_name(name) else {
        let all = names(Kernel::ALL.into_iter());
        return trouble(format!("'{name}' is no kernel; write one of {all}"));
    };
    if !kernel.is_there() {
        let there = names(Kernel::ALL.into_iter().filter(|kernel| kernel.is_there()));
        return trouble(format!("this machine has no {name}; it has {there}"));
    }
    kernel.force();
    Ok(())
}

fn names(kernels: impl Iterator<Item = Kernel>) -> String {
    kernels.map(Kernel::name).collect::<Vec<_>>().join(", ")
}

/// What the line engine is told.
fn settings<'a>(engine: &Engine, teller: &'a Teller) -> Settings<'a> {
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
    settings.progress = teller;
    settings
}

/// Standard input can be read once, whatever it is read for.
fn refuse_stdin_twice(sources: &[Source]) -> Result<()> {
    if sources.iter().filter(|source| **source == Source::Stdin).count() > 1 {
        return Err(Failure::Plain(
            "-: standard input is named twice, it can be read once; save it to a file first"
                .to_owned(),
        ));
    }
    Ok(())
}

/// A filter that refused a line, or takes no more of them, is named.
fn refused_by(path: &Path) -> impl Fn(petal_lines::Error) -> Failure + '_ {
    |error| match error.is_of_filter() || error.is_full() {
        true => Failure::Plain(format!("{}: {error}", path.display())),
        false => error.into(),
    }
}

/// Tells a filter that forgets by the clock what time it is.
fn advance(filter: &mut AnyFilter, clock: &Clock) {
    if let AnyFilter::Windowed(filter) = filter {
        filter.advance_to(clock.now());
    }
}

/// Whether lines will go to standard output.
fn prints(count: bool, output: Option<&Path>) -> bool {
    !count && output.is_none_or(|path| path == Path::new("-"))
}

/// Prints a result on standard output.
fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<()> {
    if closed::stdout() {
        return Err(Failure::closed_stdout());
    }
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::of_stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_that_was_told_is_taken() {
        // The verb itself fails: it is to read nothing and print nothing.
        let verb = ["verify", "-q", "/dev/null/no filter"];
        let there = || Kernel::ALL.into_iter().filter(|kernel| kernel.is_there());
        for (before, told) in there().flat_map(|before| there().map(move |told| (before, told))) {
            let option = ["--kernel", told.name()];
            for words in [[&["petal"], &option[..], &verb], [&["petal"], &verb, &option]] {
                before.force();
                let args = crate::args::parse_from(words.concat().iter().map(Into::into)).unwrap();
                assert!(run(args).is_err());
                assert_eq!(Kernel::current(), told, "{words:?}");
            }
        }
    }
}
