//! The page of a finished job, from its report.

use super::axis::{Axis, bytes, count_tick, seconds};
use super::chart::{Guide, Line, LineChart, Row, RowChart};
use super::job_report::{JobReport, PhaseReport};
use super::page::{Cell, Fact, Figure, Page};
use super::palette::Color;
use crate::error::Result;
use crate::text;

/// The largest number of rows in a chart, and of inputs in the subtitle.
const MAX_ROWS: usize = 40;
const MAX_INPUTS: usize = 6;

/// Returns the main numbers of a report as a table for a terminal.
pub(crate) fn table(report: &JobReport) -> String {
    let mut table = String::new();
    let mut row = |label: &str, value: &str| {
        table.push_str(&text::escaped(&format!("{label:<27}{value}")));
        table.push('\n');
    };
    row("command", &report.command);
    report.inputs.iter().for_each(|input| row("input", input));
    facts(report).iter().for_each(|(_, label, value)| row(label, value.text()));
    table
}

/// Returns the page of a report.
pub(crate) fn page(report: &JobReport) -> Result<Page> {
    let inputs = report.inputs.iter().take(MAX_INPUTS).map(String::as_str);
    let mut subtitle = inputs.collect::<Vec<_>>().join(", ");
    if let more @ 1.. = report.inputs.len().saturating_sub(MAX_INPUTS) {
        subtitle.push_str(&format!(" and {} more", text::count(more as u64)));
    }
    let mut page = Page::new(format!("petal {}", report.command), subtitle);
    if report.repeats_possible {
        page.warning("Printed lines no longer fitted in memory, so some lines may be repeated.");
    }
    page.facts(&facts(report));
    add_memory(&mut page, report)?;
    add_disk(&mut page, report)?;
    add_times(&mut page, report)?;
    add_survivors(&mut page, report)?;
    add_phases(&mut page, &report.phases);
    Ok(page)
}

fn number(value: u64) -> Cell {
    Cell::number(value, text::count(value))
}

fn size(bytes: u64) -> Cell {
    Cell::number(bytes, text::size(bytes))
}

fn time(seconds: f64) -> Cell {
    Cell::number(seconds, time_text(seconds))
}

/// Formats a time to the millisecond.
fn time_text(seconds: f64) -> String {
    format!("{} s", text::significant((seconds * 1000.0).round() / 1000.0))
}

fn facts(report: &JobReport) -> Vec<Fact> {
    let fact = |field, label: &str, value| (field, label.to_owned(), value);
    let sums_inputs =
        ["symdiff", "dedup"].iter().any(|command| report.command.starts_with(command));
    let first = if sums_inputs { "lines of all inputs" } else { "lines of the first input" };
    let mut facts = vec![
        fact("kept", "lines of the result", number(report.kept)),
        fact("first_lines", first, number(report.first_lines)),
        fact("seconds", "time", time(report.seconds)),
        fact("memory_peak_bytes", "peak memory", size(report.memory_peak_bytes)),
        fact("memory_limit_bytes", "memory limit", size(report.memory_limit_bytes)),
        fact("disk_peak_bytes", "peak temporary disk", size(report.disk_peak_bytes)),
        fact("spilled", "records written", size(report.spilled)),
        fact("bytes_read", "input read", size(report.bytes_read)),
        fact("passes", "passes over inputs", number(report.passes)),
        fact("strategy", "strategy", report.strategy.as_str().into()),
        fact("jobs", "threads", number(report.jobs)),
    ];
    if report.candidates > 0 {
        facts.push(fact("candidates", "candidates after the filter", number(report.candidates)));
    }
    if let Some(found) = report.false_found {
        facts.push(fact("false_found", "false positives found", number(found)));
    }
    if let Some(promised) = report.false_promised {
        let shown = text::count(promised.clamp(0.0, 1e18).round() as u64);
        facts.push(fact(
            "false_promised",
            "false positives expected",
            Cell::number(promised, shown),
        ));
    }
    if report.records > 0 {
        facts.push(fact("records", "lines compared exactly", number(report.records)));
    }
    if report.strategy == "approximate" {
        let estimate = |value: Option<f64>| match value {
            Some(value) => Cell::number(value, text::significant(value)),
            None => "unknown: the filter is overfull".into(),
        };
        facts.push(fact("wrong", "wrong lines, estimated", estimate(report.wrong)));
        facts.push(fact("wrong_error", "standard error of them", estimate(report.wrong_error)));
    }
    if report.resumed > 0 {
        facts.push(fact("resumed", "phases of earlier runs", number(report.resumed)));
    }
    facts
}

/// Returns the samples of one value as a line, in these units; from 0 to the end of the run.
fn series(
    report: &JobReport,
    of: fn(&(f64, u64, u64)) -> u64,
    [x, y]: [f64; 2],
) -> Vec<(f64, f64)> {
    let point = |sample: &(f64, u64, u64)| (sample.0 / x, of(sample) as f64 / y);
    let mut points: Vec<_> = report.samples.iter().map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) {
        points.insert(0, (0.0, first.1));
        points.push(((report.seconds / x).max(last.0), last.1));
    }
    points
}

/// Returns the largest time of the samples and the run, in seconds.
fn end(report: &JobReport) -> f64 {
    let samples = report.samples.iter().map(|sample| sample.0);
    let phases = report.phases.iter().filter_map(|phase| Some(phase.start? + phase.seconds));
    samples.chain(phases).fold(report.seconds, f64::max)
}

fn time_axis(report: &JobReport) -> (Axis, f64) {
    let end = end(report);
    let unit = seconds(end);
    (Axis::linear(end / unit.size, unit.name.to_owned()), unit.size)
}

/// Adds the memory over time, with the limit.
fn add_memory(page: &mut Page, report: &JobReport) -> Result<()> {
    let sampled = report.samples.iter().map(|sample| sample.1).max().unwrap_or(0);
    if sampled == 0 {
        page.paragraph("The report has no samples of memory: this system does not provide them.");
        return Ok(());
    }
    let limit = report.memory_limit_bytes;
    let peak = sampled.max(report.memory_peak_bytes);
    // A limit far above the peak would flatten the curve.
    let shows_limit = limit / 20 <= peak;
    let top = if shows_limit { peak.max(limit) } else { peak } as f64 * 1.12;
    let unit = bytes(top);
    let (x, second) = time_axis(report);
    let guide = Guide::Horizontal(limit as f64 / unit.size, "memory limit".to_owned());
    let chart = LineChart {
        x,
        y: Axis::linear(top / unit.size, unit.name.to_owned()),
        height: 260,
        lines: vec![Line {
            color: Color::Main,
            points: series(report, |sample| sample.1, [second, unit.size]),
            area: true,
        }],
        guides: if shows_limit { vec![guide] } else { Vec::new() },
    };
    let figure = Figure {
        heading: "Memory over time",
        text: &format!(
            "Resident memory of the process in {}. Peak: {}; limit: {}, plus 16 MiB for the program.",
            unit.name,
            text::size(report.memory_peak_bytes),
            text::size(limit),
        ),
        legend: &[],
    };
    page.figure(&figure, |width| chart.svg(width))
}

/// Adds the temporary disk over time.
fn add_disk(page: &mut Page, report: &JobReport) -> Result<()> {
    let sampled = report.samples.iter().map(|sample| sample.2).max().unwrap_or(0);
    let peak = sampled.max(report.disk_peak_bytes);
    if peak == 0 {
        page.paragraph("The job needed no temporary disk.");
        return Ok(());
    }
    let limit = report.memory_limit_bytes;
    let shows_limit = (limit / 4..=limit.saturating_mul(20)).contains(&peak);
    let top = if shows_limit { peak.max(limit) } else { peak } as f64 * 1.12;
    let unit = bytes(top);
    let (x, second) = time_axis(report);
    let guide = Guide::Horizontal(limit as f64 / unit.size, "memory limit".to_owned());
    let chart = LineChart {
        x,
        y: Axis::linear(top / unit.size, unit.name.to_owned()),
        height: 220,
        lines: vec![Line {
            color: Color::Second,
            points: series(report, |sample| sample.2, [second, unit.size]),
            area: true,
        }],
        guides: if shows_limit { vec![guide] } else { Vec::new() },
    };
    let figure = Figure {
        heading: "Temporary disk over time",
        text: &format!(
            "Records and copied inputs in {}. Peak: {}, which is {} % of the memory limit.",
            unit.name,
            text::size(report.disk_peak_bytes),
            text::significant(report.disk_peak_bytes as f64 / limit.max(1) as f64 * 100.0),
        ),
        legend: &[],
    };
    page.figure(&figure, |width| chart.svg(width))
}

/// Adds a bar for each phase of this run.
fn add_times(page: &mut Page, report: &JobReport) -> Result<()> {
    let (x, second) = time_axis(report);
    let phases = report.phases.iter().filter_map(|phase| Some((phase, phase.start?)));
    let row = |(phase, start): (&PhaseReport, f64)| Row {
        text: format!("{}: {}", shortened(&phase.what), time_text(phase.seconds)),
        bars: vec![(start / second, (start + phase.seconds) / second, Color::Main)],
    };
    let rows: Vec<_> = phases.take(MAX_ROWS).map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let chart = RowChart { x, rows };
    let earlier = report.phases.iter().filter(|phase| phase.start.is_none()).count();
    let earlier = match earlier {
        0 => String::new(),
        phases => format!(" Not shown: {phases} phases of earlier runs."),
    };
    let figure = Figure {
        heading: "Phases over time",
        text: &format!("When each phase of this run began and ended.{earlier}"),
        legend: &[],
    };
    page.figure(&figure, |width| chart.svg(width))
}

/// Adds the lines that each phase read and passed on.
fn add_survivors(page: &mut Page, report: &JobReport) -> Result<()> {
    let phases = report.phases.iter();
    let phases = phases.filter(|phase| phase.lines > 0 || phase.survivors.is_some());
    let rows: Vec<_> = phases.take(MAX_ROWS).map(lines_row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let chart = RowChart { x: lines_axis(rows.iter()), rows };
    let figure = Figure {
        heading: "Lines surviving each phase",
        text: "Lines that a phase read, and those that it did not rule out: candidates, then records \
               to compare, then the result. Phases that only fill a filter rule out nothing. \
               Logarithmic scale.",
        legend: &[(Color::Pale, "read".to_owned()), (Color::Main, "surviving".to_owned())],
    };
    page.figure(&figure, |width| chart.svg(width))
}

fn lines_row(phase: &PhaseReport) -> Row {
    let mut texts = Vec::new();
    let mut bars = Vec::new();
    if phase.lines > 0 {
        texts.push(format!("{} read", text::count(phase.lines)));
        bars.push((1.0, phase.lines as f64, Color::Pale));
    }
    if let Some(survivors) = phase.survivors {
        texts.push(format!("{} survive", text::count(survivors)));
        bars.push((1.0, survivors.max(1) as f64, Color::Main));
    }
    Row { text: format!("{}: {}", shortened(&phase.what), texts.join(", ")), bars }
}

/// Returns a logarithmic axis for all bars.
pub(super) fn lines_axis<'a>(rows: impl Iterator<Item = &'a Row>) -> Axis {
    let max = rows.flat_map(|row| &row.bars).map(|bar| bar.1).fold(1.0, f64::max);
    Axis::log(1.0, max * 1.1, "lines".to_owned(), count_tick)
}

/// Names of phases are short; those of a damaged report may not be.
fn shortened(name: &str) -> String {
    name.chars().take(24).collect()
}

fn add_phases(page: &mut Page, phases: &[PhaseReport]) {
    if phases.is_empty() {
        return;
    }
    let row = |phase: &PhaseReport| {
        vec![
            phase.what.as_str().into(),
            phase.start.map_or("earlier run".into(), time),
            time(phase.seconds),
            size(phase.bytes),
            number(phase.lines),
            phase.survivors.map_or("–".into(), number),
        ]
    };
    let head = ["phase", "start", "time", "input read", "lines read", "surviving"];
    page.table("Phases", &head, &phases.iter().map(row).collect::<Vec<_>>());
}
