//! The rows of real contests are what `cargo x figures` looks for: neither side can rename a filter alone.
#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

use std::num::NonZeroUsize;

use petal::Kernel;
use petal_bench::contest::petal::{Model, build};
use petal_bench::contest::rounds::{CHUNK, Plan, run};
use petal_bench::contest::rows::{HEADER, Row};
use petal_bench::contest::{Contestant, Form, Kind, LIMIT};
use petal_bench::figures::sheet::Sheet;
use petal_bench::figures::targets::{Verdict, targets};
use petal_bench::summary::csv_row;
use petal_bench_vs::{line_reads, rivals};

/// Few enough for seconds.
const PLAN: Plan =
    Plan { keys: 20_000, rounds: 2, judged: 100_000, chunk: CHUNK, whole_fill: false };
/// The sizes that targets speak of.
const SIZES: [u64; 4] = [100_000, 1_000_000, 50_000_000, 400_000_000];

fn petal(model: Model, kind: Kind, form: Form) -> Contestant {
    model.contestant(PLAN.keys, kind, form, Kernel::Portable).unwrap()
}

fn own() -> Vec<Contestant> {
    let batch = |model| petal(model, Kind::Hash, Form::Batch);
    let mut all: Vec<Contestant> =
        [Model::Rate(0.01), Model::Rate(0.001), Model::Pair].map(batch).into();
    for kind in [Kind::Hash, Kind::Number] {
        for threads in [1, 2] {
            let threads = NonZeroUsize::new(threads).unwrap();
            all.push(build(PLAN.keys, 0.01, kind, Kernel::Portable, threads).unwrap());
        }
    }
    all
}

fn beside_rivals() -> Vec<Contestant> {
    let one = Model::Rate(0.01);
    let mut all = vec![
        petal(one, Kind::Hash, Form::Batch),
        petal(one, Kind::Hash, Form::Single),
        petal(one, Kind::Number, Form::Batch),
        petal(Model::Classic(0.01), Kind::Number, Form::Batch),
    ];
    all.extend(rivals::all(PLAN.keys).unwrap());
    for distance in line_reads::DISTANCES {
        all.push(line_reads::contestant(1 << 20, PLAN.keys, distance).unwrap());
    }
    all
}

#[test]
fn every_target_finds_its_rows() {
    let rows_of = |suite: &str, mut contestants: Vec<Contestant>| {
        run(suite, PLAN, &mut contestants, &|_| ()).unwrap()
    };
    let rows = [rows_of("own", own()), rows_of("rivals", beside_rivals())].concat();
    // As if they were of every size: names, kinds and operations are what is looked for, not times.
    let of_size = |n: u64| rows.iter().map(move |row| Row { n, ..row.clone() }.csv());
    let text = csv_row(&HEADER) + &SIZES.into_iter().flat_map(of_size).collect::<String>();
    let sheet = Sheet::read(&text).unwrap();

    assert_eq!(sheet.rows.len(), SIZES.len() * rows.len());
    for n in SIZES {
        for suite in ["own", "rivals"] {
            let found = sheet.rows.iter().any(|row| {
                let rated = row.measured_rate.is_some() && row.absent_keys.is_some();
                let one = row.filter == "petal 1 %" && row.target_rate == Some(0.01);
                row.suite == suite && row.n == n && one && rated
            });
            assert!(found, "{suite}, {n}");
        }
        assert!(sheet.limit(n).is_some_and(|name| name.starts_with(LIMIT)), "{n}");
    }
    for target in targets(&sheet) {
        let (work, parts) = (&target.work, &target.parts);
        assert_ne!(target.verdict(), Verdict::NotInTheCsv, "{work}: {parts:?}");
        // A part that is missed must not hide one that is not there.
        assert!(parts.iter().all(|(_, value)| value.is_some()), "{work}: {parts:?}");
    }
}
