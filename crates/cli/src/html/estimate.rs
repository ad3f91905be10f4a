//! The page of an estimated job.

use petal_lines::{Bounds, JobEstimate};

use super::axis::{Axis, bytes};
use super::chart::{Row, RowChart};
use super::job::lines_axis;
use super::page::{Cell, Fact, Figure, Page};
use super::palette::Color;
use crate::error::Result;
use crate::text;

/// The estimate of a job and its settings.
pub(crate) struct EstimatePage<'a> {
    pub(crate) command: &'a str,
    pub(crate) estimate: &'a JobEstimate,
    /// The names of the inputs of the estimate.
    pub(crate) names: &'a [String],
    pub(crate) memory_limit: u64,
    pub(crate) jobs: usize,
    /// The range of the time.
    pub(crate) time: String,
}

/// Returns the page of an estimate.
pub(crate) fn page(job: &EstimatePage<'_>) -> Result<Page> {
    let title = format!("petal plan {}", job.command);
    let subtitle = match job.estimate.full_scan {
        true => "Estimated from a full scan of the inputs",
        false => "Estimated from samples of the inputs",
    };
    let mut page = Page::new(title, subtitle);
    page.facts(&facts(job));
    add_inputs(&mut page, job);
    add_sizes(&mut page, job)?;
    add_lines(&mut page, job)?;
    Ok(page)
}

fn number(value: u64) -> Cell {
    Cell::number(value, text::count(value))
}

fn size(bytes: u64) -> Cell {
    Cell::number(bytes, text::size(bytes))
}

fn facts(job: &EstimatePage<'_>) -> Vec<Fact> {
    let estimate = job.estimate;
    let fact = |field, label: &str, value| (field, label.to_owned(), value);
    let range = |field, range, format| {
        bounds(range, format).map(|text| fact(field, "range of this", text.into()))
    };
    let with_range = |value: Fact, range: Option<Fact>| [Some(value), range].into_iter().flatten();
    let mut facts: Vec<Fact> = Vec::new();
    facts.extend(with_range(
        fact("kept", "lines of the result", number(estimate.kept)),
        range("kept_range", estimate.kept_range, text::count),
    ));
    facts.push(fact("seconds", "time", job.time.as_str().into()));
    facts.push(fact("memory_limit_bytes", "memory limit", size(job.memory_limit)));
    facts.extend(with_range(
        fact("spilled", "temporary disk", size(estimate.spilled)),
        range("spilled_range", estimate.spilled_range, text::size),
    ));
    facts.extend(with_range(
        fact("bytes_read", "input read", size(estimate.bytes_read)),
        range("bytes_read_range", estimate.bytes_read_range, text::size),
    ));
    facts.extend(with_range(
        fact("passes", "passes over inputs", number(estimate.passes)),
        range("passes_range", estimate.passes_range, text::count),
    ));
    facts.push(fact("strategy", "strategy", estimate.strategy.into()));
    facts.extend(with_range(
        fact("candidates", "candidates after the filter", number(estimate.candidates)),
        range("candidates_range", estimate.candidates_range, text::count),
    ));
    facts.extend(with_range(
        fact("false_candidates", "false positives among them", number(estimate.false_candidates)),
        range("false_candidates_range", estimate.false_candidates_range, text::count),
    ));
    facts.push(fact("jobs", "threads", number(job.jobs as u64)));
    facts
}

/// Formats bounds; `None` if they are equal.
pub(crate) fn bounds(range: Bounds, format: fn(u64) -> String) -> Option<String> {
    let lower = format(range.lower);
    match range.upper {
        Some(upper) if upper == range.lower => None,
        Some(upper) => Some(format!("{lower} to {}", format(upper))),
        None => Some(format!("at least {lower}")),
    }
}

fn add_inputs(page: &mut Page, job: &EstimatePage<'_>) {
    let rows = job.names.iter().zip(&job.estimate.inputs).map(|(name, input)| {
        let distinct = input.distinct.min(input.lines);
        let range = bounds(input.distinct_range, text::count).unwrap_or_default();
        let cells = [name.as_str().into(), size(input.bytes), number(input.lines)];
        cells.into_iter().chain([number(distinct), range.into()]).collect()
    });
    let head = ["input", "size", "lines", "distinct lines", "range of distinct lines"];
    page.table("Inputs", &head, &rows.collect::<Vec<_>>());
}

/// Adds the sizes of inputs, memory and temporary disk.
fn add_sizes(page: &mut Page, job: &EstimatePage<'_>) -> Result<()> {
    let inputs = job.estimate.inputs.iter().map(|input| input.bytes).sum::<u64>();
    let sizes = [
        ("inputs", inputs, Color::Muted),
        ("read in all passes", job.estimate.bytes_read, Color::Muted),
        ("memory limit", job.memory_limit, Color::Limit),
        ("temporary disk", job.estimate.spilled, Color::Second),
    ];
    let max = sizes.iter().map(|size| size.1).max().unwrap_or(0) as f64;
    let unit = bytes(max);
    let row = |(name, bytes, color): (&str, u64, Color)| Row {
        text: format!("{name}: {}", text::size(bytes)),
        bars: vec![(0.0, bytes as f64 / unit.size, color)],
    };
    let chart = RowChart {
        x: Axis::linear(max / unit.size * 1.04, unit.name.to_owned()),
        rows: sizes.into_iter().map(row).collect(),
    };
    let figure = Figure {
        heading: "Memory and temporary disk",
        text: "The memory limit holds for every size of the inputs; what does not fit is written to \
               temporary disk.",
        legend: &[],
    };
    page.figure(&figure, |width| chart.svg(width))
}

/// Adds the lines of the inputs, the candidates and the result.
fn add_lines(page: &mut Page, job: &EstimatePage<'_>) -> Result<()> {
    let estimate = job.estimate;
    let names = job.names.iter().map(|name| name.chars().take(40).collect::<String>());
    let inputs = names.zip(estimate.inputs.iter().map(|input| (input.lines, Color::Pale)));
    let after = [
        ("candidates".to_owned(), (estimate.candidates, Color::Second)),
        ("result".to_owned(), (estimate.kept, Color::Main)),
    ];
    let rows: Vec<_> = inputs
        .take(MAX_INPUTS)
        .chain(after)
        .map(|(name, (lines, color))| Row {
            text: format!("{name}: {}", text::count(lines)),
            bars: vec![(1.0, lines.max(1) as f64, color)],
        })
        .collect();
    let chart = RowChart { x: lines_axis(rows.iter()), rows };
    let figure = Figure {
        heading: "Lines",
        text: "Lines of the inputs, lines that the first filter cannot rule out, and lines of the \
               result. Logarithmic scale.",
        legend: &[],
    };
    page.figure(&figure, |width| chart.svg(width))
}

/// The largest number of inputs in the chart.
const MAX_INPUTS: usize = 20;
