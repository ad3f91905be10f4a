//! `cargo x figures` on invented rows of the family benchmark: their tables in docs/performance/README.md and their plot.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use petal_bench::figures::page::replace;
use petal_bench::figures::write;

const FIXTURE: &str = include_str!("fixtures/invented-family.csv");
const FILTERS: &str = include_str!("fixtures/invented-filters.csv");
const MARKERS: [&str; 6] = ["targets", "space", "speed", "ratios", "avx2", "source"];
const PLOT: &str = "docs/performance/plots/family-space.svg";

fn markers(names: &[&str]) -> String {
    let marker = |name: &&str| format!("<!-- figures: {name} -->\n<!-- /figures -->\n");
    names.iter().map(marker).collect()
}

/// Makes a root folder with the page, and rows of the family benchmark in `results/`.
fn root(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&root);
    for folder in ["docs/performance", "results/machine"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let page = format!("before\n{}after\n", markers(&MARKERS));
    fs::write(root.join("docs/performance/README.md"), page).unwrap();
    fs::write(root.join("results/machine/2000-01-03-family.csv"), FIXTURE).unwrap();
    root
}

/// Returns the page of the fixture, as lines.
fn page(name: &str) -> Vec<String> {
    let root = root(name);
    let from = Path::new("results/machine/2000-01-03-family.csv");
    write(&root, Some(from)).unwrap();
    let page = fs::read_to_string(root.join("docs/performance/README.md")).unwrap();
    assert!(page.starts_with("before\n") && page.ends_with("after\n"), "{page}");
    page.lines().map(str::to_owned).collect()
}

/// Returns the only line that begins like this.
fn line<'a>(page: &'a [String], begin: &str) -> &'a str {
    let found: Vec<&String> = page.iter().filter(|line| line.starts_with(begin)).collect();
    assert_eq!(found.len(), 1, "{begin}: {found:#?}");
    found[0]
}

#[test]
fn space_is_that_of_the_smallest_row_with_the_target_rate() {
    let page = page("family-space");
    assert_eq!(
        line(&page, "| *no filter can be below* |"),
        "| *no filter can be below* | 6.64 | | 9.97 | | 13.29 | |"
    );
    assert_eq!(
        line(&page, "| xorf fuse | 9.05 | 0.39"),
        "| xorf fuse | 9.05 | 0.3900 % | 18.10 | 0.001500 % | 18.10 | 0.001500 % |"
    );
    // A rate above the target is bold; there are no rows for lower rates.
    assert_eq!(
        line(&page, "| growable-bloom-filter grown | 13.20 | **"),
        "| growable-bloom-filter grown | 13.20 | **3.700 %** | | | | |"
    );
    // Its target is 3.1 %.
    assert!(line(&page, "| cuckoofilter full | 8.40 | 3.000 % |").ends_with("| | | | |"));
}

#[test]
fn times_are_those_of_the_first_rate() {
    let page = page("family-speed");
    assert_eq!(
        line(&page, "| petal bloom | 10.10 | 2.00 "),
        "| petal bloom | 10.10 | 2.00 (4.00) | 2.00 (4.00) | 2.00 (12.0) |  |"
    );
    assert_eq!(
        line(&page, "| petal bloom | 10.10 | 10.0 |"),
        "| petal bloom | 10.10 | 10.0 |  |  |  |"
    );
    assert_eq!(
        line(&page, "| petal static | 6.90 | 80"),
        "| petal static | 6.90 | 80.0 | 10.0 |  |  |"
    );
    assert!(line(&page, "| qfilter | 19.10 | 40").ends_with("| 40.0 | 8.00 |  | 60.0 |"));
}

#[test]
fn ahead_is_decided_by_paired_ratios() {
    let page = page("family-beside");
    // The median of 2/8, 20/80 and 2/4 is a quarter.
    assert_eq!(
        line(&page, "| fastbloom foldhash | petal bloom | 10⁶ |"),
        "| fastbloom foldhash | petal bloom | 10⁶ | 1.05, 1.09, 1.08 | 0.25 (0.50) | 0.25 (0.50) | 0.25 (1.50) \
         |  | space, present key by key |"
    );
    assert_eq!(
        line(&page, "| qfilter | petal vector quotient | 10⁶ |"),
        "| qfilter | petal vector quotient | 10⁶ | 0.50 | 0.50 | 1.25 |  | 0.50 | absent |"
    );
    assert_eq!(
        line(&page, "| xorf fuse | petal static | 10⁶ |"),
        "| xorf fuse | petal static | 10⁶ | 0.76 | 2.00 | 2.50 |  |  | fill, absent |"
    );
    // The other size has only one operation.
    assert_eq!(
        line(&page, "| fastbloom foldhash | petal bloom | 5·10⁷ |"),
        "| fastbloom foldhash | petal bloom | 5·10⁷ | 1.05 | 0.11 |  |  |  | space |"
    );
    // Pairs without rows of both are left out.
    assert!(!page.iter().any(|line| line.contains("petal scalable")));
}

#[test]
fn all_tables_are_updated_from_the_newest_rows() {
    let root = root("family-both");
    let missing = write(&root, None).unwrap_err();
    assert!(missing.starts_with("no results/"), "{missing}");
    fs::write(root.join("results/machine/2000-01-02.csv"), FILTERS).unwrap();
    // An older file.
    fs::write(root.join("results/machine/1999-01-03-family.csv"), "old").unwrap();
    let report = write(&root, None).unwrap();
    assert_eq!(report.sources.len(), 2);
    assert!(report.sources[1].ends_with("2000-01-03-family.csv"), "{:?}", report.sources);
    assert!(report.changed.iter().any(|file| file == Path::new(PLOT)), "{:?}", report.changed);
    let svg = fs::read_to_string(root.join(PLOT)).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("petal bloom"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert_eq!(write(&root, None).unwrap().changed, Vec::<PathBuf>::new());
}

#[test]
fn rows_with_avx2_have_a_table_of_their_own() {
    let root = root("family-avx2");
    fs::write(root.join("results/machine/2000-01-02.csv"), FILTERS).unwrap();
    fs::write(root.join("results/machine/1999-01-04-family-avx2.csv"), FIXTURE).unwrap();
    let report = write(&root, None).unwrap();
    assert_eq!(report.sources.len(), 3);
    let page = fs::read_to_string(root.join("docs/performance/README.md")).unwrap();
    let (_, avx2) = page.split_once("<!-- figures: avx2 -->").unwrap();
    let (avx2, _) = avx2.split_once("<!-- /figures -->").unwrap();
    assert!(avx2.contains("1999-01-04-family-avx2.csv"), "{avx2}");
    assert!(avx2.contains("| qfilter | petal vector quotient | 10⁶ |"), "{avx2}");
    assert!(page.contains("2000-01-03-family.csv"), "{page}");
}

#[test]
fn rows_without_rate_and_space_give_a_page_and_a_plot() {
    let root = root("family-bare");
    let header = FIXTURE.lines().nth(2).unwrap();
    let bare = format!("{header}\nfamily,1000000,a,,,,,u64,single,,absent,1,2,2\n");
    fs::write(root.join("bare.csv"), bare).unwrap();
    write(&root, Some(Path::new("bare.csv"))).unwrap();
    let svg = fs::read_to_string(root.join(PLOT)).unwrap();
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn the_page_has_all_markers() {
    let page = include_str!("../../../docs/performance/README.md");
    for name in MARKERS {
        assert!(replace(page, name, "x").is_ok(), "{name}");
    }
    assert!(page.contains("(plots/family-space.svg)"));
}
