//! Bars: what the kernels take in cache, by operation.

use super::axis::{Axis, reach, short};
use super::sheet::{Pick, Sheet};
use super::svg::{Anchor, Canvas, FAINT, INK, look};
use super::targets::{PETAL, hashed};
use super::words::{kernel, ns, size};

const WIDE: f64 = 860.0;
const HIGH: f64 = 420.0;
/// Where the axes run: left, top, right, bottom.
const FIELD: (f64, f64, f64, f64) = (56.0, 72.0, 836.0, 350.0);
const OPERATIONS: [(&str, &str); 4] = [
    ("insert", "insert"),
    ("absent", "ask, absent"),
    ("present", "ask, present"),
    ("mixed", "ask, mixed"),
];

/// The plot, of the smallest size that there is.
pub(super) fn plot(sheet: &Sheet) -> String {
    let there =
        |n: u64, kernel: &str| OPERATIONS.iter().any(|it| time(sheet, n, it.0, kernel).is_some());
    let all = ["portable", "avx2", "avx512", "neon"];
    let n = sheet.sizes().into_iter().find(|&n| all.iter().any(|kernel| there(n, kernel)));
    let n = n.unwrap_or_default();
    let kernels: Vec<&str> = all.into_iter().filter(|kernel| there(n, kernel)).collect();

    let (left, top, right, bottom) = FIELD;
    let times =
        OPERATIONS.iter().flat_map(|it| kernels.iter().map(|kernel| time(sheet, n, it.0, kernel)));
    let (_, slow) = reach(times.flatten());
    let y = Axis::linear(0.0, slow * 1.1, (bottom, top));
    let mut canvas = Canvas::new(WIDE, HIGH);
    let title = format!("Kernels in cache: ns per key, {} keys", size(n));
    canvas.title(
        &title,
        "petal's 1 % filter, batches of 64-bit hashes that are given, one thread. Lower is better.",
    );
    for tick in y.ticks() {
        let at = y.at(tick);
        canvas.grid((left, at), (right, at));
        canvas.words((left - 8.0, at + 4.0), &short(tick), Anchor::End, 12.0, FAINT);
    }
    let group = (right - left) / OPERATIONS.len() as f64;
    let step = (group - 20.0) / kernels.len().max(1) as f64;
    for (at, (operation, words)) in OPERATIONS.iter().enumerate() {
        let start = left + group * at as f64 + 10.0;
        for (at, name) in kernels.iter().enumerate() {
            let Some(time) = time(sheet, n, operation, name) else { continue };
            let (x, end) = (start + step * at as f64, y.at(time));
            let middle = x + step / 2.0;
            canvas.bar((x + 4.0, end), step - 8.0, bottom - end, look("petal", name).line);
            canvas.words((middle, end - 6.0), &ns(time), Anchor::Middle, 12.0, INK);
            canvas.words((middle, bottom + 16.0), kernel(name), Anchor::Middle, 11.0, FAINT);
        }
        canvas.words(
            (start + (group - 20.0) / 2.0, bottom + 40.0),
            words,
            Anchor::Middle,
            13.0,
            INK,
        );
    }
    canvas.line(&[(left, bottom), (right, bottom)], FAINT, 1.0, "");
    canvas.finish(&title)
}

fn time(sheet: &Sheet, n: u64, operation: &str, kernel: &str) -> Option<f64> {
    let pick = Pick { operation, kernel, ..hashed(PETAL, n) };
    sheet.pick("own", &pick).map(|row| row.ns_median)
}
