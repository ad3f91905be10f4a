//! `cargo x figures` finds the rows of real runs: filters have the same names in both.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::num::NonZeroUsize;

use petal::Kernel;
use petal_bench::figures::results::Results;
use petal_bench::figures::targets::{Verdict, targets};
use petal_bench::harness::library::{Model, build};
use petal_bench::harness::rows::{HEADER, Row};
use petal_bench::harness::{CHUNK, Case, Form, KeyKind, RANDOM_READS, RunPlan, rounds::run};
use petal_bench::stats::csv_row;
use petal_bench_vs::{random_reads, rivals};

/// Small enough to run in seconds.
const PLAN: RunPlan =
    RunPlan { keys: 20_000, rounds: 2, absent_keys: 100_000, chunk: CHUNK, time_whole_fill: false };
/// The sizes with targets.
const SIZES: [u64; 4] = [100_000, 1_000_000, 50_000_000, 400_000_000];

fn petal(model: Model, kind: KeyKind, form: Form) -> Case {
    model.case(PLAN.keys, kind, form, Kernel::Portable).unwrap()
}

fn own() -> Vec<Case> {
    let batch = |model| petal(model, KeyKind::Hash, Form::Batch);
    let mut all: Vec<Case> = [Model::Rate(0.01), Model::Rate(0.001), Model::Pair].map(batch).into();
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).unwrap();
        all.push(build(PLAN.keys, 0.01, KeyKind::Number, Kernel::Portable, threads).unwrap());
    }
    all
}

fn with_rivals() -> Vec<Case> {
    let one = Model::Rate(0.01);
    let mut all = vec![
        petal(one, KeyKind::Hash, Form::Batch),
        petal(one, KeyKind::Hash, Form::Single),
        petal(one, KeyKind::Number, Form::Batch),
        petal(Model::Classic(0.01), KeyKind::Number, Form::Batch),
    ];
    all.extend(rivals::all(PLAN.keys).unwrap());
    for distance in random_reads::DISTANCES {
        all.push(random_reads::case(1 << 20, PLAN.keys, distance).unwrap());
    }
    all
}

#[test]
fn every_target_finds_its_rows() {
    let rows_of =
        |suite: &str, mut cases: Vec<Case>| run(suite, PLAN, &mut cases, &|_| ()).unwrap();
    let rows = [rows_of("own", own()), rows_of("rivals", with_rivals())].concat();
    // The same rows for every size: only names, kinds and operations matter here.
    let of_size = |n: u64| rows.iter().map(move |row| Row { n, ..row.clone() }.csv());
    let text = csv_row(&HEADER) + &SIZES.into_iter().flat_map(of_size).collect::<String>();
    let results = Results::parse(&text).unwrap();

    assert_eq!(results.rows.len(), SIZES.len() * rows.len());
    for n in SIZES {
        for suite in ["own", "rivals"] {
            let found = results.rows.iter().any(|row| {
                let rated = row.measured_rate.is_some() && row.absent_keys.is_some();
                let one = row.filter == "petal 1 %" && row.target_rate == Some(0.01);
                row.suite == suite && row.n == n && one && rated
            });
            assert!(found, "{suite}, {n}");
        }
        assert!(
            results.best_random_reads(n).is_some_and(|name| name.starts_with(RANDOM_READS)),
            "{n}"
        );
    }
    for target in targets(&results) {
        let (work, parts) = (&target.work, &target.parts);
        assert_ne!(target.verdict(), Verdict::NotInTheCsv, "{work}: {parts:?}");
        // A part that is missed must not hide one without rows.
        assert!(parts.iter().all(|(_, value)| value.is_some()), "{work}: {parts:?}");
    }
}
