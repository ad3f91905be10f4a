//! Whole Parquet files: those that pyarrow and DuckDB wrote, answered as DuckDB answers them, and
//! files that lie.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use std::io::Cursor;

use common::{Golden, manifest};
use petal_interop::{ParquetAnswer, ParquetFile, ParquetProbe, Result};
use petal_testkit::rng::Rng;

const COLUMN: &str = "key";

fn golden_files() -> Vec<Golden> {
    manifest().into_iter().filter(|golden| golden.format == "parquet-file").collect()
}

fn probe<K: AsRef<str>>(keys: &[K]) -> ParquetProbe {
    let mut probe = ParquetProbe::new();
    keys.iter().for_each(|key| probe.push(key.as_ref().as_bytes()));
    probe
}

/// The answer of each row group.
fn ask(bytes: &[u8], column: &str, keys: &ParquetProbe) -> Result<Vec<ParquetAnswer>> {
    let mut file = ParquetFile::open(Cursor::new(bytes))?;
    let groups = file.row_groups(column)?;
    groups.iter().map(|group| file.ask(group, keys)).collect()
}

fn may_hold(bytes: &[u8], key: &str) -> bool {
    let answers = ask(bytes, COLUMN, &probe(&[key])).unwrap();
    answers.iter().any(|answer| *answer != ParquetAnswer::No)
}

#[test]
fn no_member_is_missed_and_each_is_found_alone_or_among_others() {
    for golden in golden_files() {
        let (bytes, members) = (golden.bytes(), golden.members());
        for member in &members {
            assert!(may_hold(&bytes, member), "{}: {member}", golden.file);
        }
        let all = ask(&bytes, COLUMN, &probe(&members)).unwrap();
        assert!(all.iter().all(|answer| *answer == ParquetAnswer::Maybe), "{}", golden.file);
        // One that is there among many that mostly are not.
        let mut most = vec![members[0].clone()];
        most.extend(golden.asked().into_iter().filter(|key| !members.contains(key)));
        assert!(ask(&bytes, COLUMN, &probe(&most)).unwrap().contains(&ParquetAnswer::Maybe));
    }
}

#[test]
fn files_are_answered_as_duckdb_answers() {
    let mut asked = 0;
    for golden in golden_files() {
        let Some(expect) = golden.answers() else { continue };
        let bytes = golden.bytes();
        let asked_keys = golden.asked();
        let found = asked_keys.iter().map(|key| if may_hold(&bytes, key) { '1' } else { '0' });
        assert_eq!(found.collect::<String>(), expect, "{}", golden.file);
        asked += 1;
    }
    assert!(asked >= 5, "{asked}");
}

#[test]
fn row_groups_answer_for_themselves() {
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
                groups.iter().zip(ask(&bytes, COLUMN, &probe(&[member])).unwrap())
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
fn absent_keys_are_held_at_the_planned_rate_or_less() {
    for golden in golden_files().iter().filter(|golden| golden.keys >= 200) {
        let bytes = golden.bytes();
        let asked = 20_000;
        let number = |at: i64| {
            if golden.form.name() == "text" {
                format!("absent {at}")
            } else {
                (1_000_000_000 + at).to_string()
            }
        };
        let members = golden.members();
        let absent = (0..asked).map(number).filter(|key| !members.contains(key));
        let held = absent.filter(|key| may_hold(&bytes, key)).count();
        let groups = ParquetFile::open(Cursor::new(&bytes)).unwrap().row_groups(COLUMN).unwrap();
        let planned = 1.0 - (1.0 - golden.rate).powf(groups.len() as f64);
        let rate = held as f64 / asked as f64;
        assert!(rate < planned * 1.15, "{}: {rate}, planned {planned}", golden.file);
    }
}

fn one(name: &str) -> Vec<u8> {
    golden_files().iter().find(|golden| golden.file == name).unwrap().bytes()
}

#[test]
fn what_cannot_be_asked_is_told() {
    let (text, ints) = (one("pyarrow-five.parquet"), one("pyarrow-ints.parquet"));
    let five = probe(&["a"]);
    let none = ask(&text, "nothing", &five).unwrap_err();
    assert!(none.is_refused());
    assert_eq!(none.to_string(), "it has no column 'nothing', but key");
    let bad = ask(&ints, COLUMN, &probe(&["1", "-7", "3000000000"])).unwrap_err();
    assert_eq!((bad.is_key(), bad.key_number()), (true, Some(3)), "{bad}");
    // No keys are nowhere.
    assert_eq!(ask(&text, COLUMN, &ParquetProbe::new()).unwrap(), [ParquetAnswer::No]);

    let mut encrypted = text.clone();
    let end = encrypted.len();
    encrypted[end - 1] = b'E';
    assert!(ask(&encrypted, COLUMN, &five).unwrap_err().is_refused());
    let large = ParquetFile::open_within(Cursor::new(&text), 100).unwrap_err();
    assert!(large.is_refused(), "{large}");
}

#[test]
fn what_is_cut_short_is_malformed() {
    let bytes = one("pyarrow-text-groups.parquet");
    let keys = probe(&["absent"]);
    for length in (0..bytes.len()).step_by(7) {
        let error = ask(&bytes[..length], COLUMN, &keys).unwrap_err();
        assert!(error.is_malformed(), "{length}: {error}");
    }
    for claimed in [0, u32::MAX, bytes.len() as u32 - 11] {
        let mut bytes = bytes.clone();
        let at = bytes.len() - 8;
        bytes[at..at + 4].copy_from_slice(&claimed.to_le_bytes());
        assert!(ask(&bytes, COLUMN, &keys).unwrap_err().is_malformed(), "{claimed}");
    }
}

/// No bit in the footer or in a filter's header makes it panic or read out of bounds, and keys
/// that were found are still found unless the error is told.
#[test]
fn every_flipped_bit_is_survived() {
    for name in ["pyarrow-longs-groups.parquet", "duckdb-longs.parquet", "pyarrow-five.parquet"] {
        let bytes = one(name);
        let keys = probe(&["1", "2"]);
        let footer = u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().unwrap()) as usize;
        let mut told = 0;
        for at in bytes.len() - 8 - footer..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                told += u64::from(ask(&bytes, COLUMN, &keys).is_err());
            }
        }
        assert!(told > footer as u64, "{name}: {told}");
    }
}

#[test]
fn random_bytes_are_survived() {
    let (mut rng, keys) = (Rng::new(7), probe(&["1", "2"]));
    let bytes = one("pyarrow-longs-groups.parquet");
    let footer = u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().unwrap()) as usize;
    for _ in 0..20_000 {
        let mut bytes = bytes.clone();
        for _ in 0..=rng.below(8) {
            let at = bytes.len() - 8 - rng.below(footer) - 1;
            bytes[at] = rng.next_u64() as u8;
        }
        let _ = ask(&bytes, COLUMN, &keys);
    }
}
