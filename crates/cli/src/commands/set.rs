//! `common`, `diff` and `dedup`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use petal_lines::aside::real;
use petal_lines::{Mode, Report, SetJob, Settings, Sinks, Source, Verb, forget_work};
use serde_json::json;

use super::{print, prints, settings};
use crate::args::{Answer, DedupArgs, Engine, SetArgs};
use crate::exit::{Failure, Outcome, Result, cannot_write};
use crate::memory;
use crate::output::{Output, name_output};
use crate::progress::Teller;
use crate::text;

pub(super) fn compare(verb: Verb, args: &SetArgs) -> Result<Outcome> {
    let (first, others) = args.inputs();
    Run { verb, first, others, dupes: None, answer: &args.answer, engine: &args.engine }.run()
}

pub(super) fn dedup(args: &DedupArgs) -> Result<Outcome> {
    let (answer, engine) = (&args.answer, &args.engine);
    let (first, dupes) = (args.inputs.sources(), args.dupes_output.as_deref());
    Run { verb: Verb::Dedup, first, others: Vec::new(), dupes, answer, engine }.run()
}

struct Run<'a> {
    verb: Verb,
    first: Vec<Source>,
    others: Vec<Source>,
    /// Where lines of the first input go that are not in the answer.
    dupes: Option<&'a Path>,
    answer: &'a Answer,
    engine: &'a Engine,
}

impl Run<'_> {
    fn run(self) -> Result<Outcome> {
        let Self { verb, first, others, dupes, answer, engine } = self;
        let teller = Teller::new(&engine.talk, prints(answer.count, answer.output.as_deref()));
        let mut settings = settings(engine, &teller);
        settings.work_dir.clone_from(&answer.work_dir);
        if engine.temp_dir.is_some() {
            settings.check_temp_dir()?;
        }
        settings.resume = answer.resume;
        let mode = if answer.approx {
            Mode::Approx { keys: answer.expected, rate: answer.fpr }
        } else {
            Mode::Exact { strategy: answer.strategy.map(Into::into) }
        };
        let all: Vec<_> = first.iter().chain(&others).cloned().collect();
        let to = |path: &Path| (path != Path::new("-")).then(|| path.to_owned());
        let answer_to = answer.output.as_deref().filter(|_| !answer.count).and_then(to);
        let others_to = [dupes, answer.report.as_deref()].into_iter().flatten().map(to);
        refuse_twice(&[answer_to].into_iter().chain(others_to).collect::<Vec<_>>())?;
        let open = |path| Output::open(path, &all);
        let mut kept = (!answer.count).then(|| open(answer.output.as_deref())).transpose()?;
        let mut rest = dupes.map(|path| open(Some(path))).transpose()?;
        let mut told = answer.report.as_deref().map(|path| open(Some(path))).transpose()?;

        let sinks = Sinks {
            kept: kept.as_mut().map(|output| output.file() as _),
            rest: rest.as_mut().map(|output| output.file() as _),
        };
        let report = SetJob { verb, first, others, mode }.run(&settings, sinks);
        teller.finish();
        // Of two outputs the other one is wanted still, and will not be whole.
        let report = report.map_err(|error| match error.is_broken_pipe() && dupes.is_some() {
            true => Failure::Plain(ONE_LEFT.to_owned()),
            false => {
                name_output(error, kept.as_ref().map(Output::name), rest.as_ref().map(Output::name))
            }
        })?;
        if answer.count {
            print(&format!("{}\n", report.kept))?;
        }
        if let Some(output) = &mut told {
            let name = answer.report.as_deref().unwrap_or(Path::new("-")).display();
            let written = output.file().write_all(json(&report, &settings).as_bytes());
            written.map_err(|error| Failure::Plain(cannot_write(&name.to_string(), &error)))?;
        }
        // What cannot be resumed any more must be safe, wherever it went.
        let synced = answer.work_dir.is_some();
        let outputs = [kept, rest, told].into_iter().flatten();
        outputs.into_iter().try_for_each(|output| output.finish_synced(synced))?;
        // Not before the answer is where it belongs.
        answer.work_dir.as_deref().into_iter().for_each(forget_work);
        if answer.approx {
            tell_wrong(verb, &report, &teller);
        }
        Ok(Outcome::Done)
    }
}

const ONE_LEFT: &str = "output: its reader is gone, and the other output is not whole; let it \
                        read on, or write to a file";

/// No file can hold two outputs, and neither can standard output, which is `None`.
fn refuse_twice(outputs: &[Option<PathBuf>]) -> Result<()> {
    let mut seen = Vec::new();
    for output in outputs {
        let (name, file) = match output {
            Some(path) => (path.display().to_string(), Some(real(path))),
            None => ("standard output".to_owned(), stdout_file()),
        };
        // A device takes anything from anybody, a pipe does not.
        let device = file.as_ref().is_some_and(|file| file.exists() && !file.is_file());
        if seen.contains(&file) && !device {
            return Err(Failure::Plain(format!("{name}: is named for two outputs; name another")));
        }
        seen.push(file);
    }
    Ok(())
}

/// The path of the file that standard output goes to, if it is one.
fn stdout_file() -> Option<PathBuf> {
    let path = std::fs::read_link("/proc/self/fd/1").ok()?;
    path.is_file().then_some(path)
}

/// The report, and what only the program knows.
fn json(report: &Report, settings: &Settings<'_>) -> String {
    let mut value = json!(report);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("memory_cap_bytes".to_owned(), settings.memory.into());
        fields.insert("memory_peak_bytes".to_owned(), memory::peak().into());
        fields.insert("jobs".to_owned(), settings.jobs.into());
    }
    format!("{value:#}\n")
}

/// What an approximate answer is worth.
fn tell_wrong(verb: Verb, report: &Report, teller: &Teller) {
    if report.wrong.is_nan() {
        teller.say("warning: the filter is over-full: more lines were lost than can be told; raise -n or -m");
        return;
    }
    let (kept, wrong) = (text::count(report.kept), text::significant(report.wrong));
    let error = text::significant(report.wrong_error);
    teller.say(&match verb {
        Verb::Common => {
            format!("note: {kept} lines; about {wrong} of them are wrong (standard error {error})")
        }
        Verb::Diff | Verb::Dedup => {
            format!("note: {kept} lines; about {wrong} more were lost (standard error {error})")
        }
    });
    if report.repeats_possible {
        teller.say("note: memory ran out for what was printed: some lines may be repeated");
    }
}
