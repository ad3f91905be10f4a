//! The filters have the names that `cargo x figures` looks for, and the rates that they were made for.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::fs;

use petal::Kernel;
use petal_bench::harness::library::Model;
use petal_bench::harness::{Form, KeyKind, RANDOM_READS, RunPlan, family, rounds::run};
use petal_bench::paths::root;
use petal_bench_vs::{family as rivals, rivals as bloom_rivals};

const KEYS: u64 = 10_000;

#[test]
fn the_table_has_every_rival() {
    let script = fs::read_to_string(root().join("crates/bench/figures/filters.py")).unwrap();
    let (_, pairs) = script.split_once("\nPAIRS").unwrap();
    let (pairs, _) = pairs.split_once("\n]\n").unwrap();
    let (ours, rivals) = (family::all(KEYS, 0.01).unwrap(), rivals::all(KEYS, 0.01, || 0).unwrap());
    for name in rivals.iter().map(|case| &case.filter) {
        assert!(pairs.contains(&format!("(\"{name}\", ")), "{name}");
    }
    // All names of the pairs are those of filters.
    for name in pairs.split('"').skip(1).step_by(2) {
        assert!(ours.iter().chain(&rivals).any(|case| case.filter == name), "{name}");
    }
}

#[test]
fn the_targets_have_the_names_of_filters() {
    let script = fs::read_to_string(root().join("crates/bench/figures/filters.py")).unwrap();
    let batch =
        |model: Model| model.case(KEYS, KeyKind::Hash, Form::Batch, Kernel::Portable).unwrap();
    let models = [Model::Rate(0.01), Model::Rate(0.001), Model::Pair, Model::Classic(0.01)];
    let ours = models.map(|model| batch(model).filter);
    let others = bloom_rivals::all(KEYS).unwrap();
    let others: Vec<_> = others.into_iter().map(|case| case.filter).collect();
    for name in ["sbbf-rs-safe", "fastbloom foldhash"] {
        assert!(others.iter().any(|other| other == name), "{name}: {others:?}");
    }
    for name in ours.iter().map(String::as_str).chain(["sbbf-rs-safe", "fastbloom foldhash"]) {
        assert!(script.contains(&format!("(\"{name}\", 0.0")), "{name}");
    }
    let script = fs::read_to_string(root().join("crates/bench/figures/rows.py")).unwrap();
    assert!(script.contains(&format!("RANDOM_READS = \"{RANDOM_READS}\"")));
}

/// The tests of the script read rows with this header.
#[test]
fn rows_have_the_columns_that_the_script_reads() {
    let plan =
        RunPlan { keys: KEYS, rounds: 1, absent_keys: 1000, chunk: KEYS, time_whole_fill: true };
    let row = run("test", plan, &mut family::all(KEYS, 0.01).unwrap(), &|_| ()).unwrap().remove(0);
    let columns: Vec<_> = row.fields().iter().map(|(name, _)| *name).collect();
    let tests = fs::read_to_string(root().join("crates/bench/tests/test_figures.py")).unwrap();
    assert!(tests.replace("\"\n    \"", "").contains(&columns.join(",")), "{columns:?}");
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
