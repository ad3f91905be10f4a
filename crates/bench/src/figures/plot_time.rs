//! ns per key over the number of keys: petal's 1 % filter by kernel, the rivals, and what the machine allows.

use super::axis::{Axis, reach, short};
use super::labels::{self, Crowd, Label};
use super::sheet::{BUILD, Row, Sheet};
use super::svg::{Anchor, Canvas, FAINT, Look, Point, look, width};
use super::targets::PETAL;
use super::words::{kernel, size};
use crate::contest::LIMIT;

const WIDE: f64 = 860.0;
const HIGH: f64 = 520.0;
/// Where the axes run: left, top, right, bottom. Labels of the last points stand to the right of it.
const FIELD: (f64, f64, f64, f64) = (56.0, 72.0, 670.0, 470.0);
/// The rate at which all are compared, where they have one.
const RATE: f64 = 0.01;

struct Series {
    words: String,
    look: Look,
    points: Vec<(u64, f64)>,
}

/// The plot of one operation.
pub(super) fn plot(sheet: &Sheet, operation: &str) -> String {
    let mut series = series(sheet, operation);
    let (left, top, right, bottom) = FIELD;
    let all = || series.iter().flat_map(|series| &series.points);
    let (least, most) = reach(all().map(|point| point.0 as f64));
    let (fast, slow) = reach(all().map(|point| point.1));
    let x = Axis::log(least, most, (left + 14.0, right - 6.0));
    let y = Axis::log(fast / 1.3, slow * 1.3, (bottom, top));

    let mut canvas = Canvas::new(WIDE, HIGH);
    let what = match operation {
        "absent" => "Asking for keys that are absent",
        "insert" => "Inserting keys",
        other => other,
    };
    let title = format!("{what}: ns per key, by keys in the filter");
    canvas.title(
        &title,
        "About 1 %, one thread, log scales. petal in batches, rivals key by key. Hashes are given where not said otherwise. Lower is better.",
    );
    for tick in y.ticks() {
        let at = y.at(tick);
        canvas.grid((left, at), (right, at));
        canvas.words((left - 8.0, at + 4.0), &short(tick), Anchor::End, 12.0, FAINT);
    }
    let mut written = f64::NEG_INFINITY;
    for n in sheet.sizes() {
        let (at, words) = (x.at(n as f64), size(n));
        if !all().any(|point| point.0 == n) || at - written < width(&words, 12.0) + 6.0 {
            continue;
        }
        canvas.grid((at, top), (at, bottom));
        canvas.words((at, bottom + 18.0), &words, Anchor::Middle, 12.0, FAINT);
        written = at;
    }
    canvas.words((right, bottom + 38.0), "keys in the filter", Anchor::End, 12.0, FAINT);

    // Ours last, above the others.
    series.reverse();
    let place = |point: &(u64, f64)| (x.at(point.0 as f64), y.at(point.1));
    let lines: Vec<Vec<Point>> =
        series.iter().map(|series| series.points.iter().map(place).collect()).collect();
    for (series, line) in series.iter().zip(&lines) {
        canvas.line(line, series.look.line, series.look.width, series.look.dash);
        for point in line {
            canvas.mark(*point, &series.look);
        }
    }
    let label = |(series, line): (&Series, &Vec<Point>)| {
        let (at, color) = (*line.last()?, series.look.ink);
        Some(Label { at, words: series.words.clone(), color })
    };
    let mut labels: Vec<Label> = series.iter().zip(&lines).filter_map(label).collect();
    // From the right, where it is fullest, and from above.
    labels.sort_by(|a, b| b.at.0.total_cmp(&a.at.0).then(a.at.1.total_cmp(&b.at.1)));
    let area = (left + 4.0, top - 6.0, WIDE - 8.0, bottom - 2.0);
    labels::write(&mut canvas, &labels, &Crowd { area, marks: lines.concat(), lines });
    canvas.finish(&title)
}

/// Petal's kernels, fastest first, then the limit, then the rivals in their order; none without points.
fn series(sheet: &Sheet, operation: &str) -> Vec<Series> {
    let mut found = Vec::new();
    for name in ["avx512", "neon", "avx2", "portable"] {
        let words = format!("petal, {}", kernel(name));
        let ours = |row: &Row| {
            PETAL.is_of(row)
                && row.form == "batch"
                && row.keys == "hash"
                && row.kernel == name
                && row.operation == operation
        };
        found.push(Series { words, look: look("petal", name), points: points(sheet, ours) });
    }
    // The best distance at each size makes one line.
    let limit = |row: &Row| sheet.limit(row.n) == Some(&row.filter);
    found.push(Series { words: LIMIT.into(), look: look(LIMIT, ""), points: points(sheet, limit) });

    let mut rivals: Vec<&str> = Vec::new();
    for row in &sheet.rows {
        let other = !row.filter.starts_with("petal") && !row.filter.starts_with(LIMIT);
        if other && !rivals.contains(&row.filter.as_str()) {
            rivals.push(&row.filter);
        }
    }
    for name in rivals {
        let rows =
            || sheet.rows.iter().filter(|row| row.filter == name && row.operation == operation);
        // One kind of keys for all of a line: hashes, where it takes them.
        let kinds = ["hash", "u64", "bytes", "-"];
        let kind = kinds.into_iter().find(|kind| rows().any(|row| row.keys == *kind));
        let Some(kind) = kind else { continue };
        // Some rivals have no 1 % to offer.
        let has_rate = rows().any(|row| row.target_rate == Some(RATE));
        let meant = |row: &Row| {
            row.filter == name
                && row.operation == operation
                && row.keys == kind
                && (!has_rate || row.target_rate == Some(RATE))
        };
        let words = match kind {
            "u64" => format!("{name}, 64-bit keys"),
            "bytes" => format!("{name}, byte keys"),
            _ => name.to_owned(),
        };
        found.push(Series { words, look: look(name, ""), points: points(sheet, meant) });
    }
    found.retain(|series| !series.points.is_empty());
    found
}

/// At each size the fastest row that is meant, of the rivals' suite if it is there: those were timed together.
fn points(sheet: &Sheet, meant: impl Fn(&Row) -> bool) -> Vec<(u64, f64)> {
    let at = |n: u64| {
        ["rivals", "own"].iter().find_map(|suite| {
            let rows = sheet.rows.iter().filter(|row| {
                row.n == n && row.suite == *suite && row.threads == 1 && row.operation != BUILD
            });
            let times = rows.filter(|row| meant(row)).map(|row| row.ns_median);
            times.min_by(f64::total_cmp)
        })
    };
    sheet.sizes().into_iter().filter_map(|n| Some((n, at(n)?))).collect()
}
