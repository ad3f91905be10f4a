//! `plan COMMAND INPUTS`: estimates a job from samples of its inputs.

use petal_lines::{JobEstimate, MemoryLimit, Mode, SetJob, SetOp, Settings};
use serde_json::json;

use super::{op_name, print, setops, write_page};
use crate::args::PlanArgs;
use crate::error::{Failure, Outcome, Result};
use crate::html::estimate::{EstimatePage, page};
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(op: SetOp, args: &PlanArgs) -> Result<Outcome> {
    let (first, others) = args.inputs();
    check_inputs(op, others.len())?;
    let mut settings = Settings::new(args.memory.unwrap_or(MemoryLimit::DEFAULT).bytes());
    settings.jobs = args.jobs.map_or(settings.jobs, usize::from);
    settings.delimiter = if args.null { 0 } else { b'\n' };
    settings.text = args.text;
    let progress = ProgressReporter::silent(false);
    settings.progress = &progress;
    let names: Vec<_> = first.iter().chain(&others).map(ToString::to_string).collect();
    let mode = Mode::Exact { strategy: args.strategy.map(Into::into) };
    let count = first.len();
    let sources: Vec<_> = first.iter().chain(&others).cloned().collect();
    let estimate = SetJob { op, first, others, mode }.estimate(&settings, !args.count)?;
    if let Some(path) = &args.html {
        let [min, max] = estimate.seconds;
        let page = page(&EstimatePage {
            command: op_name(op),
            estimate: &estimate,
            names: &joined(&names, count),
            memory_limit: settings.memory_limit,
            jobs: settings.jobs,
            time: times(min, max),
        })?;
        write_page(path, &sources, &page)?;
        return Ok(Outcome::Done);
    }
    print(&if args.json {
        let mut value = json!(estimate);
        value["memory_limit_bytes"] = settings.memory_limit.into();
        value["jobs"] = settings.jobs.into();
        format!("{value:#}\n")
    } else {
        table(&estimate, &names, count, &settings)
    })?;
    Ok(Outcome::Done)
}

/// Returns an error unless the operation takes this number of inputs besides the first.
fn check_inputs(op: SetOp, others: usize) -> Result<()> {
    let text = match (op, others) {
        (SetOp::Dedup | SetOp::Duplicates | SetOp::Unique, _) => return Ok(()),
        (_, 0) => "plan: the second input is missing; name an input to compare with".to_owned(),
        (SetOp::SymDiff, 2..) => {
            format!("plan: symdiff compares two inputs, not {}; leave out the others", others + 1)
        }
        (SetOp::AtLeast(number), _) => return setops::check_at_least(number, others),
        _ => return Ok(()),
    };
    Err(Failure::Message(text))
}

/// Formats the inputs and the estimate. The first `first` names are one input.
fn table(
    estimate: &JobEstimate,
    names: &[String],
    first: usize,
    settings: &Settings<'_>,
) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| text.push_str(&format!("{name:<17} {value}\n"));
    for (name, input) in joined(names, first).iter().zip(&estimate.inputs) {
        row(
            name,
            format!(
                "{}, about {} lines of {} bytes, {} of them distinct{}",
                text::size(input.bytes),
                text::count(input.lines),
                text::significant(input.bytes as f64 / input.lines.max(1) as f64),
                text::count(input.distinct.min(input.lines)),
                bounds(input.distinct_range),
            ),
        );
    }
    let [min, max] = estimate.seconds;
    row("memory", format!("{} at most", text::size(settings.memory_limit)));
    row("strategy", estimate.strategy.to_owned());
    row("passes", estimate.passes.to_string());
    row("reads", text::size(estimate.bytes_read));
    row("temporary disk", text::size(estimate.spilled));
    row("candidates", text::count(estimate.candidates));
    row("false positives", text::count(estimate.false_candidates));
    let lines = text::count(estimate.kept);
    row("result", format!("about {lines} lines{}", bounds(estimate.kept_range)));
    row("time", format!("{} with {} threads", times(min, max), settings.jobs));
    text
}

/// Joins the names of the first input.
fn joined(names: &[String], first: usize) -> Vec<String> {
    let others = names[first..].iter().cloned();
    [names[..first].join(" ")].into_iter().chain(others).collect()
}

/// Formats the bounds of an estimate; empty if it is exact.
fn bounds([min, max]: [u64; 2]) -> String {
    if min == max {
        return String::new();
    }
    format!(" (at least {}, at most {})", text::count(min), text::count(max))
}

/// Formats a range of durations; one duration if both ends read the same.
fn times(min: f64, max: f64) -> String {
    match [time(min), time(max)] {
        [min, max] if min == max => min,
        [min, max] => format!("{min} to {max}"),
    }
}

/// Formats a duration in seconds, minutes or hours.
fn time(seconds: f64) -> String {
    match seconds {
        0.0..120.0 => format!("{} s", text::significant((seconds * 10.0).ceil() / 10.0)),
        120.0..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
