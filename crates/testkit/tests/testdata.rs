//! Checks the lists in `testdata/` against `testdata/MANIFEST.md`, with the reference models.

use std::path::Path;

use petal_testkit::model::{LF, common, dedup, diff, lines};

fn read(name: &str) -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

#[test]
fn counts_equal_the_manifest() {
    let (a, b) = (read("a.txt"), read("b.txt"));
    let count = |bytes: &[u8]| lines(bytes, LF).len();
    assert_eq!((count(&a), count(&b)), (8_352, 6_236));
    assert_eq!((count(&dedup(&[&a], LF)), count(&dedup(&[&b], LF))), (7_078, 5_624));
    assert_eq!(count(&common(&a, &[&b], LF)), 113);
    assert_eq!(count(&diff(&a, &[&b], LF)), 6_965);
    assert_eq!(count(&dedup(&[&a, &b], LF)), 12_589);
}

#[test]
fn common_lines_are_not_sorted() {
    let common_lines = common(&read("a.txt"), &[&read("b.txt")], LF);
    assert!(!lines(&common_lines, LF).is_sorted());
}
