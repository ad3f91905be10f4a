//! Bits per key over the measured rate, a line for each type of filter and each rival, and what none can go below. Both
//! axes are logarithmic: a filter that deletes may take eight times the space of one that is made once.

use super::axis::{Axis, reach, short};
use super::family::{RATES, compared_at, keeping, limit, names};
use super::labels::{self, Crowd, Label};
use super::sheet::Sheet;
use super::svg::{Anchor, Canvas, FAINT, INK, Look, Point, look};
use super::words::size;

const WIDE: f64 = 860.0;
const HIGH: f64 = 600.0;
/// Where the axes run: left, top, right, bottom.
const FIELD: (f64, f64, f64, f64) = (56.0, 72.0, 836.0, 550.0);

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
    let x = Axis::log(low, high, (left, right));
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
    let mut labels = vec![Label { at: bound[30], words, color: INK }];
    let mut lines = vec![bound];
    let mut marks = Vec::new();
    for Series { name, look, points } in &series {
        let line: Vec<Point> =
            points.iter().map(|&(rate, bits)| (x.at(rate), y.at(bits))).collect();
        canvas.line(&line, look.line, look.width, look.dash);
        for &at in &line {
            canvas.mark(at, look);
        }
        // Beside the finest rate, where lines have parted most.
        let words = (*name).to_owned();
        labels.extend(line.last().map(|&at| Label { at, words, color: look.ink }));
        marks.extend(line.iter().copied());
        lines.push(line);
    }
    let area = (left + 4.0, top + 2.0, right - 2.0, bottom - 2.0);
    labels::write(&mut canvas, &labels, &Crowd { area, marks, lines });
    canvas.finish(title)
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
