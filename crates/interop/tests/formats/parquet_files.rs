//! Whole Parquet files: those written by pyarrow and DuckDB, with DuckDB's answers, and invalid
//! ones.

use std::io::Cursor;

use petal_interop::{ParquetAnswer, ParquetFile, ParquetKeys, Result};
use petal_testkit::rng::Rng;

use crate::common::{Golden, manifest};

const COLUMN: &str = "key";

fn golden_files() -> Vec<Golden> {
    manifest().into_iter().filter(|golden| golden.format == "parquet-file").collect()
}

fn parquet_keys<K: AsRef<str>>(keys: &[K]) -> ParquetKeys {
    let mut parquet_keys = ParquetKeys::new();
    keys.iter().for_each(|key| parquet_keys.push(key.as_ref().as_bytes()));
    parquet_keys
}

/// Returns the answer of each row group.
fn query(bytes: &[u8], column: &str, keys: &ParquetKeys) -> Result<Vec<ParquetAnswer>> {
    let mut file = ParquetFile::open(Cursor::new(bytes))?;
    let groups = file.row_groups(column)?;
    groups.iter().map(|group| file.query(group, keys)).collect()
}

fn may_hold(bytes: &[u8], key: &str) -> bool {
    let answers = query(bytes, COLUMN, &parquet_keys(&[key])).unwrap();
    answers.iter().any(|answer| *answer != ParquetAnswer::No)
}

#[test]
fn every_member_is_found_alone_and_in_batches() {
    for golden in golden_files() {
        let (bytes, members) = (golden.bytes(), golden.members());
        for member in &members {
            assert!(may_hold(&bytes, member), "{}: {member}", golden.file);
        }
        let all = query(&bytes, COLUMN, &parquet_keys(&members)).unwrap();
        assert!(all.iter().all(|answer| *answer == ParquetAnswer::Maybe), "{}", golden.file);
        // One present key among many absent ones.
        let mut most = vec![members[0].clone()];
        most.extend(golden.queried().into_iter().filter(|key| !members.contains(key)));
        assert!(
            query(&bytes, COLUMN, &parquet_keys(&most)).unwrap().contains(&ParquetAnswer::Maybe)
        );
    }
}

#[test]
fn answers_equal_duckdb() {
    let mut queried = 0;
    for golden in golden_files() {
        let Some(expect) = golden.answers() else { continue };
        let bytes = golden.bytes();
        let asked_keys = golden.queried();
        let found = asked_keys.iter().map(|key| if may_hold(&bytes, key) { '1' } else { '0' });
        assert_eq!(found.collect::<String>(), expect, "{}", golden.file);
        queried += 1;
    }
    assert!(queried >= 5, "{queried}");
}

#[test]
fn row_groups_are_queried_separately() {
    let mut seen = 0;
    for golden in golden_files().iter().filter(|golden| golden.variant.ends_with("-groups")) {
        let (bytes, members) = (golden.bytes(), golden.members());
        let file = ParquetFile::open(Cursor::new(&bytes)).unwrap();
        let groups = file.row_groups(COLUMN).unwrap();
        assert!(groups.len() > 1, "{}", golden.file);
        assert_eq!(groups.iter().map(|group| group.rows).sum::<u64>(), members.len() as u64);
        let mut others = [0, 0];
        for (at, member) in members.iter().enumerate() {
            let mut from = 0;
            for (group, answer) in
                groups.iter().zip(query(&bytes, COLUMN, &parquet_keys(&[member])).unwrap())
            {
                let rows = from..from + group.rows as usize;
                from = rows.end;
                if rows.contains(&at) {
                    assert_eq!(answer, ParquetAnswer::Maybe, "{}: {member}", golden.file);
                } else {
                    others[usize::from(answer == ParquetAnswer::Maybe)] += 1;
                }
            }
        }
        let rate = f64::from(others[1]) / f64::from(others[0] + others[1]);
        assert!(rate < golden.rate * 1.2, "{}: {rate} of {others:?}", golden.file);
        seen += 1;
    }
    assert!(seen >= 2, "{seen}");
}

#[test]
fn measured_rate_is_at_most_the_target() {
    for golden in golden_files().iter().filter(|golden| golden.keys >= 200) {
        let bytes = golden.bytes();
        let queried = 20_000;
        let number = |at: i64| {
            if golden.form.name() == "text" {
                format!("absent {at}")
            } else {
                (1_000_000_000 + at).to_string()
            }
        };
        let members = golden.members();
        let absent = (0..queried).map(number).filter(|key| !members.contains(key));
        let held = absent.filter(|key| may_hold(&bytes, key)).count();
        let groups = ParquetFile::open(Cursor::new(&bytes)).unwrap().row_groups(COLUMN).unwrap();
        let planned = 1.0 - (1.0 - golden.rate).powf(groups.len() as f64);
        let rate = held as f64 / queried as f64;
        assert!(rate < planned * 1.15, "{}: {rate}, planned {planned}", golden.file);
    }
}

fn one(name: &str) -> Vec<u8> {
    golden_files().iter().find(|golden| golden.file == name).unwrap().bytes()
}

#[test]
fn unqueryable_columns_are_errors() {
    let (text, ints) = (one("pyarrow-five.parquet"), one("pyarrow-ints.parquet"));
    let five = parquet_keys(&["a"]);
    let none = query(&text, "nothing", &five).unwrap_err();
    assert!(none.is_refused());
    assert_eq!(none.to_string(), "it has no column 'nothing', but key");
    let bad = query(&ints, COLUMN, &parquet_keys(&["1", "-7", "3000000000"])).unwrap_err();
    assert_eq!((bad.is_key(), bad.key_number()), (true, Some(3)), "{bad}");
    // An empty list of keys matches nothing.
    assert_eq!(query(&text, COLUMN, &ParquetKeys::new()).unwrap(), [ParquetAnswer::No]);

    let mut encrypted = text.clone();
    let end = encrypted.len();
    encrypted[end - 1] = b'E';
    assert!(query(&encrypted, COLUMN, &five).unwrap_err().is_refused());
    let large = ParquetFile::open_within(Cursor::new(&text), 100).unwrap_err();
    assert!(large.is_refused(), "{large}");
}

#[test]
fn truncated_files_are_malformed() {
    let bytes = one("pyarrow-text-groups.parquet");
    let keys = parquet_keys(&["absent"]);
    for length in (0..bytes.len()).step_by(7) {
        let error = query(&bytes[..length], COLUMN, &keys).unwrap_err();
        assert!(error.is_malformed(), "{length}: {error}");
    }
    for claimed in [0, u32::MAX, bytes.len() as u32 - 11] {
        let mut bytes = bytes.clone();
        let at = bytes.len() - 8;
        bytes[at..at + 4].copy_from_slice(&claimed.to_le_bytes());
        assert!(query(&bytes, COLUMN, &keys).unwrap_err().is_malformed(), "{claimed}");
    }
}

/// No flipped bit in the footer or in a filter header causes a panic or a read out of bounds, and
/// members are still found unless there is an error.
#[test]
fn flipped_bits_cause_no_panic() {
    for name in ["pyarrow-longs-groups.parquet", "duckdb-longs.parquet", "pyarrow-five.parquet"] {
        let bytes = one(name);
        let keys = parquet_keys(&["1", "2"]);
        let footer = u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().unwrap()) as usize;
        let mut errors = 0;
        for at in bytes.len() - 8 - footer..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                errors += u64::from(query(&bytes, COLUMN, &keys).is_err());
            }
        }
        assert!(errors > footer as u64, "{name}: {errors}");
    }
}

#[test]
fn random_bytes_cause_no_panic() {
    let (mut rng, keys) = (Rng::new(7), parquet_keys(&["1", "2"]));
    let bytes = one("pyarrow-longs-groups.parquet");
    let footer = u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().unwrap()) as usize;
    for _ in 0..20_000 {
        let mut bytes = bytes.clone();
        for _ in 0..=rng.below(8) {
            let at = bytes.len() - 8 - rng.below(footer) - 1;
            bytes[at] = rng.next_u64() as u8;
        }
        let _ = query(&bytes, COLUMN, &keys);
    }
}
