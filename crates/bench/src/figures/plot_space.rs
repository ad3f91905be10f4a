//! Bits per key over the measured rate: every filter, the textbook's optimum, and what no filter can go below.

use petal::rate::classic_bits;

use super::axis::{Axis, reach, short};
use super::labels::{self, Crowd, Label};
use super::sheet::{Row, Sheet};
use super::svg::{Anchor, Canvas, FAINT, INK, Point, look};

const WIDE: f64 = 860.0;
const HIGH: f64 = 560.0;
/// Where the axes run: left, top, right, bottom.
const FIELD: (f64, f64, f64, f64) = (56.0, 72.0, 836.0, 510.0);
/// The size at which filters are compared, or the nearest that there is.
const KEYS: f64 = 1e6;
/// Marks nearer than this, in pixels, share a label.
const TOGETHER: f64 = 5.0;

/// A curve: bits per key at a rate.
type Curve = fn(f64) -> f64;

const CURVES: [(&str, &str, Curve); 2] = [
    ("classic filter, best case", "", |rate| classic_bits(1, rate)),
    ("no filter can be below: log₂(1/rate)", "6 4", |rate| -rate.log2()),
];

/// The plot.
pub(super) fn plot(sheet: &Sheet) -> String {
    let rows = rows(sheet);
    let (left, top, right, bottom) = FIELD;
    let (least, most) = reach(rows.iter().filter_map(|row| row.measured_rate));
    let (low, high) = if least <= most { (least / 2.2, most * 2.2) } else { (0.001, 0.1) };
    let high = high.min(0.5);
    let (_, heavy) = reach(rows.iter().filter_map(|row| row.bits_per_key));
    let x = Axis::log(low, high, (left, right));
    let lightest = -high.log2();
    let y = Axis::linear(
        (lightest - 0.5).floor(),
        heavy.max(classic_bits(1, low)).ceil() + 0.5,
        (bottom, top),
    );

    let mut canvas = Canvas::new(WIDE, HIGH);
    let title = "Space: bits per key, by measured false-positive rate";
    canvas.title(title, "Filters of about a million keys; the rate is on a log scale. Lower, and further left, is better.");
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

    let mut labels = Vec::new();
    let mut lines: Vec<Vec<Point>> = Vec::new();
    for (words, dash, bits) in CURVES {
        let rates = (0..=100).map(|step| low * (high / low).powf(f64::from(step) / 100.0));
        let line: Vec<Point> = rates.map(|rate| (x.at(rate), y.at(bits(rate)))).collect();
        canvas.line(&line, "#777777", 1.5, dash);
        // Straight, for bits grow with the logarithm of the rate; so words can go along it, between 0.1 % and 1 %,
        // where most filters are.
        canvas.words_along((line[28], line[100]), words, FAINT);
        lines.push(line[28..70].iter().map(|(x, y)| (x + 3.0, y - 11.0)).collect());
        lines.push(line);
    }
    let mut marks: Vec<(Point, Vec<&Row>)> = Vec::new();
    for row in &rows {
        let (Some(rate), Some(bits)) = (row.measured_rate, row.bits_per_key) else { continue };
        let at = (x.at(rate), y.at(bits));
        canvas.mark(at, &look(&row.filter, "avx512"));
        let near = |(other, of): &&mut (Point, Vec<&Row>)| {
            ours(of[0]) == ours(row) && (other.0 - at.0).hypot(other.1 - at.1) < TOGETHER
        };
        match marks.iter_mut().find(near) {
            Some((_, of)) => of.push(row),
            None => marks.push((at, vec![row])),
        }
    }
    for (at, of) in &marks {
        let color = if of.len() == 1 || ours(of[0]) { look(&of[0].filter, "").ink } else { INK };
        labels.push(Label { at: *at, words: names(of), color });
    }
    let area = (left + 4.0, top + 2.0, right - 2.0, bottom - 2.0);
    let marks = marks.iter().map(|mark| mark.0).collect();
    labels::write(&mut canvas, &labels, &Crowd { area, marks, lines });
    canvas.finish(title)
}

fn ours(row: &Row) -> bool {
    row.filter.starts_with("petal")
}

/// The names of filters in one place; `petal` is said once.
fn names(rows: &[&Row]) -> String {
    let short = |(at, row): (usize, &&Row)| {
        let name = if at > 0 { row.filter.strip_prefix("petal ") } else { None };
        name.unwrap_or(&row.filter).to_owned()
    };
    rows.iter().enumerate().map(short).collect::<Vec<_>>().join(", ")
}

/// For each filter and rate asked for the row nearest to [`KEYS`] that tells rate and space.
fn rows(sheet: &Sheet) -> Vec<&Row> {
    let far = |row: &Row| (row.n as f64 / KEYS).ln().abs();
    let mut found: Vec<&Row> = Vec::new();
    for row in &sheet.rows {
        let drawn = row.measured_rate.is_some_and(|rate| rate > 0.0) && row.bits_per_key.is_some();
        if !drawn {
            continue;
        }
        let same =
            |other: &&mut &Row| other.filter == row.filter && other.target_rate == row.target_rate;
        match found.iter_mut().find(same) {
            Some(other) if far(row) < far(other) => *other = row,
            Some(_) => {}
            None => found.push(row),
        }
    }
    found
}
