//! `cargo x lab` with a real PostgreSQL server, at a small size.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::path::PathBuf;

use petal_bench::paths::root;
use petal_bench_vs::lab::databases::postgres_programs;
use petal_bench_vs::lab::measure::measure;
use petal_bench_vs::lab::ways::{Places, WAYS};

const KEYS: u64 = 10_000;

#[test]
#[ignore = "needs PostgreSQL: cargo x test --foreign"]
fn postgresql_is_exact_survives_a_restart_and_deletes() {
    let peers = std::env::var_os("PETAL_PEERS").map_or(root().join("target/peers"), PathBuf::from);
    let postgres = Some(postgres_programs(&peers).expect("examples/database/install.sh was run"));
    let places = Places { temp: PathBuf::from(env!("CARGO_TARGET_TMPDIR")), postgres };
    let ways: Vec<_> = WAYS.into_iter().filter(|way| way.name.starts_with("PostgreSQL")).collect();
    assert_eq!(ways.len(), 2);
    for way in ways {
        let measured = measure(way, KEYS, &places).unwrap();
        assert_eq!(measured.false_positives, (0, KEYS / 2), "{}", way.name);
        assert_eq!(measured.false_negatives, (0, KEYS / 2), "{}", way.name);
        assert!(measured.survives_restart && measured.deletes, "{}", way.name);
        // A row has 64 bytes of text, in the table and in its index.
        assert!(measured.disk_bytes > 2 * 64 * KEYS, "{}: {}", way.name, measured.disk_bytes);
    }
}
