//! Bits per key over the measured rate, a line for each type of filter and each rival, and what none can go below. Both
//! axes are logarithmic: a filter that deletes may take eight times the space of one that is made once.

use super::axis::{Axis, reach, short};
use super::family::{RATES, compared_at, keeping, limit, names};
use super::labels::{self, Crowd, Label};
use super::sheet::Sheet;
use super::svg::{Anchor, Canvas, FAINT, INK, Look, Point, look};
use super::words::size;

const WIDE: f64 = 860.0;
const HIGH: f64 = 700.0;
/// Where the axes run: left, top, right, bottom.
const FIELD: (f64, f64, f64, f64) = (56.0, 72.0, 836.0, 650.0);
/// Names stand in a column between the left axis and here, in the order of what they name; those of points beyond the
/// second place stand beside them.
const COLUMN: (f64, f64) = (300.0, 500.0);
/// From the base line of a name in the column to that of the next.
const STEP: f64 = 17.0;

/// Lines that are nowhere farther apart than this, in pixels, share a label.
const TOGETHER: f64 = 6.0;

/// A filter: rates and bits per key.
struct Series<'a> {
    name: &'a str,
    look: Look,
    points: Vec<(f64, f64)>,
}

/// The plot.
pub(super) fn plot(sheet: &Sheet) -> String {
    let series = series(sheet);
    let (left, top, right, bottom) = FIELD;
    let all = || series.iter().flat_map(|series| &series.points);
    let (least, most) = reach(all().map(|point| point.0));
    let (low, high) = if least <= most { (least / 2.0, most * 2.0) } else { (1e-4, 0.02) };
    let high = high.min(0.3);
    let (_, heavy) = reach(all().map(|point| point.1));
    let x = Axis::log(low, high, (COLUMN.0, right));
    let y = Axis::log(limit(high) / 1.05, heavy.max(limit(low)) * 1.15, (bottom, top));

    let mut canvas = Canvas::new(WIDE, HIGH);
    let title = "The family: bits per key, by measured false-positive rate";
    let keys = compared_at(sheet).map_or(String::new(), |n| format!("{} keys. ", size(n)));
    let below = "Both scales are logarithmic. Lower, and further left, is better.";
    canvas.title(title, &format!("{keys}{below}"));
    for tick in y.ticks() {
        let at = y.at(tick);
        canvas.grid((left, at), (right, at));
        canvas.words((left - 8.0, at + 4.0), &short(tick), Anchor::End, 12.0, FAINT);
    }
    for tick in x.ticks() {
        let at = x.at(tick);
        canvas.grid((at, top), (at, bottom));
        let words = format!("{} %", short(tick * 100.0));
        canvas.words((at, bottom + 18.0), &words, Anchor::Middle, 12.0, FAINT);
    }
    canvas.words((right, bottom + 38.0), "measured false-positive rate", Anchor::End, 12.0, FAINT);

    let rates = (0..=100).map(|step| low * (high / low).powf(f64::from(step) / 100.0));
    let bound: Vec<Point> = rates.map(|rate| (x.at(rate), y.at(limit(rate)))).collect();
    canvas.line(&bound, INK, 1.5, "6 4");
    let words = "no filter can be below: log₂(1/rate)".to_owned();
    let mut labels = vec![Label { at: bound[60], words, color: INK }];
    let mut lines = vec![bound];
    let mut marks = Vec::new();
    let mut drawn: Vec<(Vec<Point>, &Series, String)> = Vec::new();
    for series in &series {
        let line: Vec<Point> =
            series.points.iter().map(|&(rate, bits)| (x.at(rate), y.at(bits))).collect();
        let near = |(other, of, _): &&mut (Vec<Point>, &Series, String)| {
            ours(of.name) == ours(series.name) && together(other, &line)
        };
        if let Some((_, of, words)) = drawn.iter_mut().find(near) {
            let more = series.name.strip_prefix(of.name).unwrap_or(series.name);
            *words += ", ";
            *words += more.trim_start();
            continue;
        }
        canvas.line(&line, series.look.line, series.look.width, series.look.dash);
        for &at in &line {
            canvas.mark(at, &series.look);
        }
        marks.extend(line.iter().copied());
        lines.push(line.clone());
        drawn.push((line, series, series.name.to_owned()));
    }
    let mut column = Vec::new();
    for (line, series, words) in drawn {
        // Beside the finest rate, where lines have parted most.
        let Some(&at) = line.last() else { continue };
        let label = Label { at, words, color: series.look.ink };
        if at.0 < COLUMN.1 { column.push(label) } else { labels.push(label) }
    }
    in_column(&mut canvas, column);
    let area = (left + 4.0, top + 2.0, right - 2.0, bottom - 2.0);
    labels::write(&mut canvas, &labels, &Crowd { area, marks, lines });
    canvas.finish(title)
}

/// Names one below the other, as near to the height of their points as they can be, each led to its point.
fn in_column(canvas: &mut Canvas, mut labels: Vec<Label>) {
    labels.sort_by(|a, b| a.at.1.total_cmp(&b.at.1));
    let (_, top, _, bottom) = FIELD;
    let mut heights: Vec<f64> = Vec::new();
    for label in &labels {
        let free = heights.last().map_or(top + STEP, |above| above + STEP);
        heights.push(free.max(label.at.1));
    }
    // From below: each goes up towards its point and half of what those below it lack.
    let mut most = bottom - STEP;
    for (at, height) in heights.iter_mut().enumerate().rev() {
        let crowd = (*height - labels[at].at.1) / 2.0;
        *height = (*height - crowd).min(most).max(top + STEP * (at as f64 + 1.0));
        most = *height - STEP;
    }
    for (label, height) in labels.iter().zip(heights) {
        let end = (COLUMN.0 - 24.0, height);
        canvas.line(&[(end.0 + 4.0, height), label.at], FAINT, 0.6, "");
        canvas.words((end.0, height + 4.0), &label.words, Anchor::End, 12.0, label.color);
    }
}

fn ours(name: &str) -> bool {
    name.starts_with("petal")
}

fn together(a: &[Point], b: &[Point]) -> bool {
    let near = |(a, b): (&Point, &Point)| (a.0 - b.0).hypot(a.1 - b.1) < TOGETHER;
    a.len() == b.len() && a.iter().zip(b).all(near)
}

/// Every filter, at every rate; none without points.
fn series(sheet: &Sheet) -> Vec<Series<'_>> {
    let Some(n) = compared_at(sheet) else { return Vec::new() };
    let mut found = Vec::new();
    for name in names(sheet) {
        let mut points: Vec<(f64, f64)> = RATES
            .iter()
            .filter_map(|&rate| {
                let row = keeping(sheet, name, n, rate)?;
                Some((row.measured_rate.filter(|&rate| rate > 0.0)?, row.bits_per_key?))
            })
            .collect();
        points.dedup();
        if !points.is_empty() {
            found.push(Series { name, look: look(name, "avx512"), points });
        }
    }
    found
}
