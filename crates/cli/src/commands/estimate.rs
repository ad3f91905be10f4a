//! `plan COMMAND INPUTS`: estimates a job from a full scan or from samples of its inputs.

use std::sync::Arc;

use petal_lines::{
    Bounds, Counting, JobEstimate, MemoryLimit, Mode, SetJob, SetOp, Settings, Source,
};
use serde_json::json;

use super::{check_csv, op_name, print, setops, write_page};
use crate::args::{PlanArgs, When};
use crate::error::{Failure, Outcome, Result};
use crate::files::inputs::{compared, inputs_to_sample};
use crate::html::estimate::{EstimatePage, bounds, page};
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(op: SetOp, args: &PlanArgs) -> Result<Outcome> {
    let (first, others) = inputs_of(op, args)?;
    check_inputs(op, others.len())?;
    let mut settings = Settings::new(args.memory.unwrap_or(MemoryLimit::DEFAULT).bytes());
    settings.jobs = args.jobs.map_or(settings.jobs, usize::from);
    settings.delimiter = if args.null { 0 } else { b'\n' };
    settings.text = args.text;
    settings.keys = Arc::new(args.key_spec());
    check_csv(&settings.keys, &[&first[..], &others].concat())?;
    let progress = ProgressReporter::silent(false);
    settings.progress = &progress;
    let names: Vec<_> = first.iter().chain(&others).map(ToString::to_string).collect();
    let mode = Mode::Exact { strategy: args.strategy.map(Into::into) };
    let count = first.len();
    let sources: Vec<_> = first.iter().chain(&others).cloned().collect();
    let counting = match args.full_scan {
        When::Auto => Counting::Auto,
        When::Always => Counting::FullScan,
        When::Never => Counting::Sample,
    };
    let job = SetJob { op, first, others, mode };
    let estimate = job.estimate(&settings, !args.count, counting).map_err(Failure::from)?;
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

/// Returns the first input and those to compare with; for an operation on all inputs, these and none.
fn inputs_of(op: SetOp, args: &PlanArgs) -> Result<(Vec<Source>, Vec<Source>)> {
    let memory_limit = args.memory.unwrap_or(MemoryLimit::DEFAULT).bytes();
    if matches!(op, SetOp::Dedup | SetOp::DedupLast | SetOp::Duplicates | SetOp::Unique) {
        return Ok((inputs_to_sample(&args.inputs, &args.lists, memory_limit)?, Vec::new()));
    }
    let (first, others) = match args.inputs.split_first() {
        Some((first, others)) => (Some(first.as_path()), others),
        None => (None, &[][..]),
    };
    compared(first, others, &args.lists, memory_limit)
}

/// Returns an error unless the operation takes this number of inputs besides the first.
fn check_inputs(op: SetOp, others: usize) -> Result<()> {
    let text = match (op, others) {
        (SetOp::Dedup | SetOp::DedupLast | SetOp::Duplicates | SetOp::Unique, _) => return Ok(()),
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
    let range = |value: String, range: Bounds, format: fn(u64) -> String| {
        let bounds = bounds(range, format).map(|bounds| format!(" ({bounds})"));
        format!("{value}{}", bounds.unwrap_or_default())
    };
    let count = |value: u64, bounds| range(text::count(value), bounds, text::count);
    let size = |value: u64, bounds| range(text::size(value), bounds, text::size);
    for (name, input) in joined(names, first).iter().zip(&estimate.inputs) {
        let length = text::significant(input.bytes as f64 / input.lines.max(1) as f64);
        row(
            name,
            format!(
                "{}, {} lines of {length} bytes, {} of them distinct",
                size(input.bytes, input.bytes_range),
                count(input.lines, input.lines_range),
                count(input.distinct.min(input.lines), input.distinct_range),
            ),
        );
    }
    let [min, max] = estimate.seconds;
    row("memory", format!("{} at most", text::size(settings.memory_limit)));
    row("strategy", estimate.strategy.to_owned());
    row("passes", count(estimate.passes, estimate.passes_range));
    row("reads", size(estimate.bytes_read, estimate.bytes_read_range));
    row("temporary disk", size(estimate.spilled, estimate.spilled_range));
    row("candidates", count(estimate.candidates, estimate.candidates_range));
    row("false positives", count(estimate.false_candidates, estimate.false_candidates_range));
    row("result", format!("{} lines", count(estimate.kept, estimate.kept_range)));
    row("time", format!("{} with {} threads", times(min, max), settings.jobs));
    let confidence = text::significant(estimate.confidence * 100.0);
    row(
        "ranges",
        match estimate.full_scan {
            true => format!("hold with {confidence} % confidence; all lines were read"),
            false if estimate.bytes_read_range.upper.is_none() => format!(
                "hold with {confidence} % confidence, some without an upper bound: only the beginning \
                 of a compressed input was read; add --full-scan"
            ),
            false => {
                format!(
                    "hold with {confidence} % confidence, from samples; narrower by --full-scan"
                )
            }
        },
    );
    text
}

/// Joins the names of the first input.
fn joined(names: &[String], first: usize) -> Vec<String> {
    let others = names[first..].iter().cloned();
    let first_name = match &names[..first] {
        [one, _, _, _, ..] => format!("{one} and {} others", text::count(first as u64 - 1)),
        few => few.join(" "),
    };
    [first_name].into_iter().chain(others).collect()
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
