//! `cargo x lab` at a small size.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::path::PathBuf;

use petal_bench::paths::root;
use petal_bench_vs::lab::claims::{self, case, sample_case};
use petal_bench_vs::lab::java_sample::{DEFAULT_SIZE, SIZE_IN_COMMENT};
use petal_bench_vs::lab::measure::{Measured, measure};
use petal_bench_vs::lab::ways::{Places, RATE, WAYS, Way};
use petal_bench_vs::rows::Row;

const KEYS: u64 = 10_000;

fn places() -> Places {
    Places { temp: PathBuf::from(env!("CARGO_TARGET_TMPDIR")), postgres: None }
}

fn small(name: &str) -> Measured {
    measure(Way::named(name).unwrap(), KEYS, &places()).unwrap()
}

#[test]
fn exact_ways_have_no_wrong_answers_and_filters_keep_their_rate() {
    let ways = WAYS.into_iter().filter(|way| !way.name.starts_with("PostgreSQL"));
    for way in ways {
        let measured = measure(way, KEYS, &places()).unwrap();
        let (wrong, new) = measured.false_positives;
        assert_eq!(measured.false_negatives, (0, KEYS / 2), "{}", way.name);
        assert_eq!(new, KEYS / 2, "{}", way.name);
        if way.exact {
            assert_eq!(wrong, 0, "{}", way.name);
        } else if way.target().is_some() {
            // 50 are expected; six standard deviations are 43.
            let expected = new as f64 * RATE;
            assert!((7.0..93.0).contains(&(wrong as f64)), "{}: {wrong} of {expected}", way.name);
        }
        assert_eq!(measured.deletes, way.exact, "{}", way.name);
        assert!(measured.insert_ns > 0.0 && measured.query_ns > 0.0, "{}", way.name);
        assert_eq!(measured.disk_bytes > 0, way.is_database(), "{}", way.name);
    }
}

#[test]
fn databases_and_petals_files_survive_a_restart() {
    let survivors =
        ["SQLite, 1,024 rows a transaction", "petal's default", "petal's static filter"];
    for name in survivors {
        assert!(small(name).survives_restart, "{name}");
    }
    assert!(!small("`HashSet<String>`").survives_restart);
}

#[test]
fn claims_are_measured_near_their_formulas() {
    let rows = claims::measure(20_000).unwrap();
    let rate = |case: &str, size: u64| {
        let same = |row: &&Row| row.case == case && row.size == size && row.figure == "rate";
        rows.iter().find(same).map(|row| row.value).unwrap()
    };
    for (bits, k) in claims::SETTINGS {
        let expected = (1.0 - (-f64::from(k) / bits).exp()).powi(k as i32);
        // Of 80,000 new URLs.
        let slack = 6.0 * (expected / 80_000.0).sqrt() + 1e-4;
        let measured = rate(&case(bits, k), 20_000);
        assert!((measured - expected).abs() < slack, "{bits}, {k}: {measured} of {expected}");
    }
    // 2^25 bits hold 20,000 random URLs almost without error.
    assert!(rate(&sample_case(claims::RANDOM, DEFAULT_SIZE), 20_000) < 1e-3);
    assert!(rate(&sample_case(claims::RANDOM, SIZE_IN_COMMENT), 20_000) < 1e-3);
}

#[test]
fn the_script_of_the_page_has_all_ways() {
    let script = std::fs::read_to_string(root().join("crates/bench/figures/lab.py")).unwrap();
    for way in WAYS {
        assert!(script.contains(&format!("\"{}\",", way.name)), "{}", way.name);
    }
}
