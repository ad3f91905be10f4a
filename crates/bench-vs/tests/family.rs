//! The names of the family's contestants are those that `cargo x figures` compares: neither side can rename one alone.
#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

use std::collections::BTreeSet;

use petal_bench::contest::family;
use petal_bench::contest::rounds::{Plan, run};
use petal_bench::figures::beside::pairs;
use petal_bench_vs::family as rivals;

const KEYS: u64 = 10_000;

#[test]
fn every_rival_has_its_counterpart() {
    let contestants = rivals::all(KEYS, 0.01, || 0).unwrap();
    let there: BTreeSet<&str> = contestants.iter().map(|one| one.filter.as_str()).collect();
    let compared: BTreeSet<&str> = pairs().map(|(rival, _)| rival).collect();
    assert_eq!(there, compared);
    let contestants = family::all(KEYS, 0.01).unwrap();
    let there: BTreeSet<&str> = contestants.iter().map(|one| one.filter.as_str()).collect();
    let compared: BTreeSet<&str> = pairs().map(|(_, petal)| petal).collect();
    assert!(compared.is_subset(&there), "{compared:?} of {there:?}");
}

#[test]
fn every_type_keeps_its_rate_and_loses_no_key() {
    let plan = Plan { keys: KEYS, rounds: 2, judged: 200_000, chunk: KEYS, whole_fill: true };
    for rate in [0.01, 0.001] {
        let mut contestants = family::all(KEYS, rate).unwrap();
        let timed: usize = contestants.iter().map(|one| one.operations.len()).sum();
        let rows = run("test", plan, &mut contestants, &|_| ()).unwrap();
        assert_eq!(rows.len(), timed);
        for row in rows {
            let (measured, _) = row.measured.unwrap();
            let rate = row.target.unwrap();
            assert!(measured < rate * 1.3, "{}: {measured} of {rate}", row.filter);
            assert!(row.bits_per_key > -rate.log2(), "{row:?}");
        }
    }
}
