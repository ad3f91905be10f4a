//! The table of docs/reference/interop.md equals what the tests show.

use petal_interop::{ForeignFilter, Format};

use crate::common::manifest;

/// Returns the cells of the row with this name.
fn row<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let begins = format!("| {name} |");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with(&begins)).collect();
    assert_eq!(rows.len(), 1, "rows of {name}");
    rows[0].trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn table_of_the_page_equals_the_tests() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/interop.md");
    let page = std::fs::read_to_string(page).unwrap();
    let golden = manifest();
    for format in Format::ALL {
        let cells = row(&page, &format!("`{format}`"));
        let [_, read, write, query, add, merge, known, key_types, tested, _, _] = cells[..] else {
            panic!("{format}: {cells:?}");
        };
        let own: Vec<_> = golden.iter().filter(|file| file.format() == Some(format)).collect();
        assert!(own.iter().any(|file| file.answers().is_some()), "{format}");
        assert_eq!([read, query], ["✓"; 2], "{format}");
        assert_eq!(write, "✓", "{format}");
        assert_eq!(known.starts_with("yes"), format.is_recognizable(), "{format}");
        for file in &own {
            assert!(tested.contains(&file.version), "{format}: {}", file.version);
        }

        // The operations that a filter supports, by trying them.
        let file = own.iter().find(|file| file.answers().is_some()).unwrap();
        let names: Vec<_> =
            file.filter().stats().key_types.iter().map(|form| form.name()).collect();
        assert_eq!(key_types.trim_end_matches(": URLs"), names.join(", "), "{format}");
        let fresh = ForeignFilter::with_fpr(format, 100, 0.01);
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
