//! `common`, `diff` and `dedup`.

use petal_lines::{Mode, Report, SetJob, Source, Verb};

use super::{print, prints, settings};
use crate::args::{Answer, DedupArgs, Engine, SetArgs};
use crate::exit::{Outcome, Result};
use crate::output::Output;
use crate::progress::Teller;
use crate::text;

pub(super) fn compare(verb: Verb, args: &SetArgs) -> Result<Outcome> {
    let (first, others) = args.inputs();
    run(verb, first, others, &args.answer, &args.engine)
}

pub(super) fn dedup(args: &DedupArgs) -> Result<Outcome> {
    run(Verb::Dedup, args.inputs.sources(), Vec::new(), &args.answer, &args.engine)
}

fn run(
    verb: Verb,
    first: Vec<Source>,
    others: Vec<Source>,
    answer: &Answer,
    engine: &Engine,
) -> Result<Outcome> {
    let teller = Teller::new(&engine.talk, prints(answer.count, answer.output.as_deref()));
    let settings = settings(engine, &teller);
    let mode = if answer.approx {
        Mode::Approx { keys: answer.expected, rate: answer.fpr }
    } else {
        Mode::Exact { strategy: answer.strategy.map(Into::into) }
    };
    let all: Vec<_> = first.iter().chain(&others).cloned().collect();
    let job = SetJob { verb, first, others, mode };
    let report = if answer.count {
        let report = job.run(&settings, None);
        teller.finish();
        let report = report?;
        print(&format!("{}\n", report.kept))?;
        report
    } else {
        let mut output = Output::open(answer.output.as_deref(), &all)?;
        let report = job.run(&settings, Some(output.file()));
        teller.finish();
        let report = report?;
        output.finish()?;
        report
    };
    if answer.approx {
        tell_wrong(verb, &report, &teller);
    }
    Ok(Outcome::Done)
}

/// What an approximate answer is worth.
fn tell_wrong(verb: Verb, report: &Report, teller: &Teller) {
    if report.wrong.is_nan() {
        teller.say("warning: the filter is over-full: more lines were lost than can be told; raise -n or -m");
        return;
    }
    let (kept, wrong) = (text::count(report.kept), text::significant(report.wrong));
    teller.say(&match verb {
        Verb::Common => format!("note: {kept} lines; about {wrong} of them are wrong"),
        Verb::Diff | Verb::Dedup => format!("note: {kept} lines; about {wrong} more were lost"),
    });
    if report.repeats_possible {
        teller.say("note: memory ran out for what was printed: some lines may be repeated");
    }
}
