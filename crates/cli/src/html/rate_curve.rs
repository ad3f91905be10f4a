//! The figure of the false-positive rate by the number of keys.

use super::axis::{Axis, count, rate_tick};
use super::chart::{Guide, Line, LineChart};
use super::page::{Cell, Figure, Page};
use super::palette::Color;
use crate::error::Result;
use crate::text;

/// The rate of a filter by its number of keys.
pub(crate) struct RateCurve<'a> {
    pub(crate) name: String,
    pub(crate) rate: Box<dyn Fn(u64) -> f64 + 'a>,
}

/// A number of keys to mark: its label in the chart, and in the table.
pub(super) struct Mark {
    pub(crate) keys: u64,
    pub(crate) label: &'static str,
}

const POINTS: u64 = 120;
/// The lowest rate that is shown, relative to the rate at the mark.
const DEPTH: f64 = 1e-4;
/// The color of each curve.
const COLORS: [Color; 2] = [Color::Main, Color::Second];

/// Adds the figure, up to two and a half times the largest mark, and a table of its values.
pub(super) fn add(page: &mut Page, curves: &[RateCurve<'_>], marks: &[Mark]) -> Result<()> {
    let marked = marks.iter().map(|mark| mark.keys).max().unwrap_or(0).max(1);
    let last = (marked as f64 * 2.5).min(1e18);
    let unit = count(last);
    let lines: Vec<_> = curves
        .iter()
        .zip(COLORS.into_iter().cycle())
        .map(|(curve, color)| (color, points(curve, last)))
        .collect();
    let (low, high) = range(curves, marked, &lines);
    let guides = || {
        let guide =
            |mark: &Mark| Guide::Vertical(mark.keys as f64 / unit.size, mark.label.to_owned());
        marks.iter().map(guide).collect()
    };
    let chart = LineChart {
        x: Axis::linear(last / unit.size, unit.label("keys")),
        y: Axis::log(low, high, "rate".to_owned(), rate_tick),
        height: 320,
        lines: lines
            .iter()
            .map(|(color, points)| Line {
                color: *color,
                points: clip(points, low, unit.size),
                area: false,
            })
            .collect(),
        guides: guides(),
    };
    let legend: Vec<_> = match curves {
        [_] => Vec::new(),
        _ => lines.iter().zip(curves).map(|(line, curve)| (line.0, curve.name.clone())).collect(),
    };
    let figure = Figure {
        heading: "False-positive rate by number of keys",
        text: "The share of absent keys that the filter reports as present. A filter that holds more \
               keys than planned still finds all of them; only this rate grows. Logarithmic scale.",
        legend: &legend,
    };
    page.figure(&figure, |width| chart.svg(width))?;
    add_table(page, curves, marks);
    Ok(())
}

fn points(curve: &RateCurve<'_>, last: f64) -> Vec<(u64, f64)> {
    let keys =
        (1..=POINTS).map(|step| (last / POINTS as f64 * step as f64).round().max(1.0) as u64);
    let points = keys.map(|keys| (keys, (curve.rate)(keys)));
    points.filter(|(_, rate)| rate.is_finite() && *rate > 0.0).collect()
}

/// Returns the powers of ten around the rates to show.
fn range(curves: &[RateCurve<'_>], marked: u64, lines: &[(Color, Vec<(u64, f64)>)]) -> (f64, f64) {
    let at_mark = curves.iter().map(|curve| (curve.rate)(marked)).filter(|rate| *rate > 0.0);
    let at_mark = at_mark.fold(1.0, f64::min);
    let rates = || lines.iter().flat_map(|line| &line.1).map(|point| point.1);
    let low = rates().fold(at_mark, f64::min).max(at_mark * DEPTH);
    let high = rates().fold(at_mark, f64::max);
    (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil()).min(1.0))
}

/// Returns the points from the first one that is at least `low`.
fn clip(points: &[(u64, f64)], low: f64, unit: f64) -> Vec<(f64, f64)> {
    let shown = points.iter().filter(|point| point.1 >= low);
    shown.map(|&(keys, rate)| (keys as f64 / unit, rate)).collect()
}

/// The rates at the marks, and at multiples of the last one.
fn add_table(page: &mut Page, curves: &[RateCurve<'_>], marks: &[Mark]) {
    let Some(planned) = marks.last() else { return };
    let mut keys: Vec<(String, u64)> =
        marks.iter().map(|mark| (mark.label.to_owned(), mark.keys)).collect();
    for (times, factor) in [("1.5", 3), ("2", 4), ("2.5", 5)] {
        let more = (u128::from(planned.keys) * factor / 2).min(u128::from(u64::MAX)) as u64;
        keys.push((format!("{times} × {}", planned.label), more));
    }
    let rows: Vec<_> = keys
        .into_iter()
        .map(|(label, keys)| {
            let rates = curves.iter().map(|curve| (curve.rate)(keys));
            let rates = rates.map(|rate| Cell::number(rate, text::rate(rate)));
            [label.into(), Cell::number(keys, text::count(keys))].into_iter().chain(rates).collect()
        })
        .collect();
    let names = curves.iter().map(|curve| match curves.len() {
        1 => "rate",
        _ => curve.name.as_str(),
    });
    let head: Vec<_> = ["", "keys"].into_iter().chain(names).collect();
    page.table("", &head, &rows);
}
