//! The table of docs/interop.md is what the tests hold.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use common::manifest;
use petal_interop::{Foreign, Format};

/// The cells of the row that begins with this name.
fn row<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let begins = format!("| {name} |");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with(&begins)).collect();
    assert_eq!(rows.len(), 1, "rows of {name}");
    rows[0].trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn the_table_is_what_the_tests_hold() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/interop.md");
    let page = std::fs::read_to_string(page).unwrap();
    let golden = manifest();
    for format in Format::ALL {
        let cells = row(&page, &format!("`{format}`"));
        let [_, read, write, ask, add, merge, known, forms, tested, _, _] = cells[..] else {
            panic!("{format}: {cells:?}");
        };
        let own: Vec<_> = golden.iter().filter(|file| file.format() == Some(format)).collect();
        assert!(own.iter().any(|file| file.answers().is_some()), "{format}");
        assert_eq!([read, ask], ["✓"; 2], "{format}");
        assert_eq!(write, "✓", "{format}");
        assert_eq!(known.starts_with("yes"), format.is_told_by_its_bytes(), "{format}");
        for file in &own {
            assert!(tested.contains(&file.version), "{format}: {}", file.version);
        }

        // What can be done with a filter, by doing it.
        let file = own.iter().find(|file| file.answers().is_some()).unwrap();
        let told: Vec<_> = file.filter().facts().forms.iter().map(|form| form.name()).collect();
        assert_eq!(forms.trim_end_matches(": URLs"), told.join(", "), "{format}");
        let fresh = Foreign::with_rate(format, 100, 0.01);
        let added = fresh.is_ok_and(|mut fresh| fresh.insert(b"7").is_ok());
        assert_eq!(add, if added { "✓" } else { "-" }, "{format}");
        let (mut ours, theirs) = (file.filter(), file.filter());
        assert_eq!(merge, if ours.union(&theirs).is_ok() { "✓" } else { "-" }, "{format}");
    }
    let whole = row(&page, "Parquet files");
    for file in golden.iter().filter(|file| file.format == "parquet-file") {
        assert!(whole[8].contains(&file.version), "{}", file.version);
    }
}
