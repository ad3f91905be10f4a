//! The filters of the family benchmark have the names that `cargo x figures` looks for.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::collections::BTreeSet;

use petal_bench::figures::rival_ratios::pairs;
use petal_bench::harness::family;
use petal_bench::harness::{RunPlan, rounds::run};
use petal_bench_vs::family as rivals;

const KEYS: u64 = 10_000;

#[test]
fn every_rival_has_a_pair() {
    let cases = rivals::all(KEYS, 0.01, || 0).unwrap();
    let measured: BTreeSet<&str> = cases.iter().map(|one| one.filter.as_str()).collect();
    let compared: BTreeSet<&str> = pairs().map(|(rival, _)| rival).collect();
    assert_eq!(measured, compared);
    let cases = family::all(KEYS, 0.01).unwrap();
    let measured: BTreeSet<&str> = cases.iter().map(|one| one.filter.as_str()).collect();
    let compared: BTreeSet<&str> = pairs().map(|(_, petal)| petal).collect();
    assert!(compared.is_subset(&measured), "{compared:?} of {measured:?}");
}

#[test]
fn every_type_keeps_its_keys_and_rate() {
    let plan =
        RunPlan { keys: KEYS, rounds: 2, absent_keys: 200_000, chunk: KEYS, time_whole_fill: true };
    for rate in [0.01, 0.001] {
        let mut cases = family::all(KEYS, rate).unwrap();
        let timed: usize = cases.iter().map(|one| one.operations.len()).sum();
        let rows = run("test", plan, &mut cases, &|_| ()).unwrap();
        assert_eq!(rows.len(), timed);
        for row in rows {
            let measured = row.measured_rate.unwrap();
            let rate = row.target_rate.unwrap();
            assert!(measured < rate * 1.3, "{}: {measured} of {rate}", row.filter);
            assert!(row.bits_per_key.unwrap() > -rate.log2(), "{row:?}");
        }
    }
}
