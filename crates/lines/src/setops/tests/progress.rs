//! The total that a job expects compared with what it reports.

use std::sync::Mutex;

use super::{OPS, Setting, budget, overlapping, run_with};
use crate::progress::Progress;
use crate::setops::planning::Strategy;
use crate::setops::set_semantics::SetOp;

/// The totals that a job expected, each with the bytes that it reported afterwards.
#[derive(Default)]
struct Totals(Mutex<Vec<(u64, u64)>>);

impl Progress for Totals {
    fn expect_total(&self, bytes: u64) {
        self.0.lock().unwrap().push((bytes, 0));
    }

    fn advance(&self, bytes: u64) {
        if let Some((_, done)) = self.0.lock().unwrap().last_mut() {
            *done += bytes;
        }
    }
}

/// Returns the totals of a job, and its strategy.
fn totals(files: &[Vec<u8>], setting: &Setting) -> (Vec<(u64, u64)>, String) {
    let totals = Totals::default();
    let strategy = run_with(files, setting, &totals).1.strategy.into_owned();
    (totals.0.into_inner().unwrap(), strategy)
}

/// Checks that the last total is about the bytes that were reported.
fn check(totals: &[(u64, u64)], context: &str) {
    let (expected, done) = totals.last().copied().unwrap();
    let ratio = expected as f64 / done as f64;
    assert!((0.8..1.3).contains(&ratio), "{context}: {totals:?}");
}

#[test]
fn expected_total_is_about_what_is_reported() {
    for shared in [0.0, 0.0005, 0.2, 1.0] {
        let files = overlapping(40_009, shared);
        for op in OPS.into_iter().filter(|op| *op != SetOp::AtLeast(2)) {
            for strategy in [Strategy::Memory, Strategy::Narrow, Strategy::Partition] {
                for print in [true, false] {
                    let work = if strategy == Strategy::Memory { 64 << 20 } else { 1 << 20 };
                    let (budget, strategy) = (budget(work, 2, 4096), Some(strategy));
                    let (delimiter, streams) = (b'\n', 0);
                    let setting = Setting { op, budget, strategy, delimiter, streams, print };
                    let (totals, name) = totals(&files, &setting);
                    check(&totals, &format!("{shared} {op:?} {strategy:?} {name} {print}"));
                }
            }
        }
    }
}

#[test]
fn total_is_corrected_when_the_table_becomes_full() {
    let files = overlapping(40_009, 0.2);
    // `DedupLast` has no table of lines.
    for op in OPS.into_iter().filter(|op| !matches!(op, SetOp::AtLeast(2) | SetOp::DedupLast)) {
        let (budget, strategy) = (budget(200_000, 2, 4096), Some(Strategy::Memory));
        let setting = Setting { op, budget, strategy, delimiter: b'\n', streams: 0, print: true };
        let (totals, name) = totals(&files, &setting);
        assert_eq!((totals.len(), &*name), (2, "memory, then partition"), "{op:?}");
        check(&totals, &format!("{op:?}"));
    }
}
