//! `cargo x figures` on a CSV with invented figures: parsing, paired ratios, targets, page and plots.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use petal_bench::figures::page::replace;
use petal_bench::figures::results::{Query, Results};
use petal_bench::figures::targets::{Target, Verdict, targets, upper_bound};
use petal_bench::figures::write;
use petal_bench::harness::RANDOM_READS;
use petal_bench::harness::rows::paired;
use petal_testkit::bounds::binomial_range;

const FIXTURE: &str = include_str!("fixtures/invented-filters.csv");
const PAGE: &str = "before\n<!-- figures: targets -->\nold\n<!-- /figures -->\nafter\n";
const PLOTS: [&str; 3] = ["filters-absent.svg", "filters-insert.svg", "filters-kernels.svg"];
const HEADER: &str = "suite,n,filter,target_rate,bits_per_key,measured_rate,absent_keys,keys,form,\
    kernel,operation,threads,ns_median,ns_by_round";

/// Parses these lines below the header.
fn results(lines: &[&str]) -> Results {
    Results::parse(&format!("{HEADER}\n{}\n", lines.join("\n"))).unwrap()
}

/// Returns the only target with this work and this text.
fn target(results: &Results, work: &str, wanted: &str) -> Target {
    let found: Vec<Target> = targets(results)
        .into_iter()
        .filter(|it| it.work.starts_with(work) && it.wanted.contains(wanted))
        .collect();
    assert_eq!(found.len(), 1, "{work} | {wanted}: {found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn columns_are_found_by_name() {
    let results = Results::parse(FIXTURE).unwrap();
    assert!(results.notes[0].contains("invented"), "{:?}", results.notes);
    let row = &results.rows[0];
    assert_eq!((row.suite.as_str(), row.n, row.filter.as_str()), ("own", 100_000, "petal 1 %"));
    assert_eq!((row.target_rate, row.bits_per_key), (Some(0.01), Some(9.93)));
    assert_eq!((row.kernel.as_str(), row.threads), ("portable", 1));
    assert_eq!(row.ns_by_round.len(), 5);
    let limit = results.rows.iter().find(|row| row.filter.starts_with(RANDOM_READS)).unwrap();
    assert_eq!((limit.target_rate, limit.measured_rate), (None, None));

    let turned = "threads,ns_by_round,ns_median,operation,kernel,form,keys,measured_rate,\
        bits_per_key,target_rate,filter,n,suite,absent_keys\n\
        1,2.5;1.5,2,absent,-,single,u64,,9.5,0.01,\"a, b\",1000,rivals,5000\n";
    let results = Results::parse(turned).unwrap();
    assert_eq!(results.rows[0].filter, "a, b");
    assert_eq!(results.rows[0].ns_by_round, [2.5, 1.5]);
    assert_eq!(results.rows[0].absent_keys, Some(5000));
}

#[test]
fn invalid_csv_is_an_error_with_its_line() {
    let row = "own,1000,petal 1 %,0.01,9.9,0.01,10000,hash,batch,avx2,absent,1,2,2;2";
    let wrong = [
        (format!("# a\n{HEADER}\n{row}\n{row},1\n"), "line 4: 15 fields, expected 14"),
        (format!("{HEADER}\n{}\n", row.replace("1000", "1e3")), "n is not a number"),
        (format!("{HEADER}\n{}\n", row.replace("2;2", "2;;2")), "ns_by_round"),
        (format!("{HEADER}\n{}\n", row.replace("2;2", "2;0")), "is not a time"),
        (format!("{HEADER}\n{}\n", row.replace("2;2", "NaN")), "is not a time"),
        (HEADER.replace("kernel,", ""), "no column `kernel`"),
        (HEADER.replace("absent_keys,", ""), "no column `absent_keys`"),
        ("# nothing\n".to_owned(), "no header"),
    ];
    for (text, expected) in wrong {
        let problem = Results::parse(&text).unwrap_err();
        assert!(problem.contains(expected), "{expected}: {problem}");
    }
}

#[test]
fn ratios_are_medians_of_paired_ratios() {
    // Another process slows down two of three rounds for both.
    let (slow, fast) = ([4.0, 40.0, 42.0], [2.0, 20.0, 14.0]);
    assert_eq!(paired(&fast, &slow), Some(2.0));
    assert_eq!(paired(&fast[..2], &slow), None);
    assert_eq!(paired(&[], &[]), None);

    let results = results(&[
        "rivals,1000,a,,,,,u64,single,-,absent,1,40,4;40;42",
        "rivals,1000,b,,,,,u64,single,-,absent,1,14,2;20;14",
        "own,1000,c,,,,,u64,single,-,absent,1,14,2;20;14",
    ]);
    let query = |filter| Query {
        filter,
        n: 1000,
        rate: None,
        keys: "u64",
        form: "",
        kernel: "",
        operation: "absent",
        threads: 1,
    };
    assert_eq!(results.ratio(&query("a"), &query("b")), Some(2.0));
    assert_eq!(results.ratio(&query("a"), &query("c")), None, "different suites");
}

#[test]
fn a_query_without_kernel_finds_the_fastest() {
    let results = Results::parse(FIXTURE).unwrap();
    let query = Query {
        filter: "petal 1 %",
        n: 100_000,
        rate: None,
        keys: "hash",
        form: "batch",
        kernel: "",
        operation: "absent",
        threads: 1,
    };
    assert_eq!(results.find("own", &query).unwrap().kernel, "avx512");
    let portable = Query { kernel: "portable", ..query };
    assert_eq!(results.find("own", &portable).unwrap().kernel, "portable");
}

#[test]
fn targets_are_met_missed_or_not_in_the_csv() {
    let results = Results::parse(FIXTURE).unwrap();
    let batch = target(&results, "1 %, n = 10⁵, mixed hashes, batch", "sbbf");
    assert_eq!((batch.verdict(), batch.verdict_in_words().as_str()), (Verdict::Met, "met"));
    assert!(batch.measured().starts_with("insert: 0.6"), "{}", batch.measured());
    let single = target(&results, "1 %, n = 10⁵, mixed hashes, single", "sbbf");
    assert_eq!(single.verdict(), Verdict::NotMet);
    let fastbloom = target(&results, "1 %, n = 10⁶, 64-bit keys", "6 ×");
    assert_eq!(fastbloom.verdict(), Verdict::Met, "{}", fastbloom.measured());
    let reads = target(&results, "1 %, n = 4·10⁸", "random line reads");
    assert_eq!(reads.verdict(), Verdict::Met, "{}", reads.measured());
    assert_eq!(target(&results, "1 %, space", "10.1").verdict(), Verdict::Met);
    assert_eq!(target(&results, "0.1 % in line pairs", "15.1").verdict(), Verdict::Met);

    let build = target(&results, "build on two threads", "1.85");
    assert_eq!(build.verdict_in_words(), "not in the CSV");
    assert_eq!(build.measured(), "");
    let nothing = Results::parse(HEADER).unwrap();
    for target in targets(&nothing) {
        assert_eq!(target.verdict_in_words(), "not in the CSV", "{}", target.work);
    }
}

#[test]
fn a_missed_part_is_named() {
    let ours = "rivals,100000,petal 1 %,0.01,9.93,0.01,10000000,hash,batch,avx2";
    let rival = "rivals,100000,sbbf-rs-safe,0.01,10.5,0.01,10000000,hash,single,-";
    let rows = |insert: &str| {
        results(&[
            &format!("{ours},insert,1,{insert},{insert};{insert}"),
            &format!("{rival},insert,1,4,4;4"),
            &format!("{ours},absent,1,3,3;3"),
            &format!("{rival},absent,1,4,4;4"),
        ])
    };
    let name = "1 %, n = 10⁵, mixed hashes, batch";
    let missed = target(&rows("3.2"), name, "sbbf");
    assert_eq!(missed.verdict_in_words(), "not met: insert");
    assert_eq!(missed.measured(), "insert: 0.800, absent: 0.750");
    // A value equal to the bound meets it; there is no row for present keys.
    let open = target(&rows("3"), name, "sbbf");
    assert_eq!(open.verdict_in_words(), "not in the CSV: present");
}

#[test]
fn builds_on_two_threads_are_compared_with_one() {
    let row = |n: u64, keys: &str, threads: u32, rounds: &str| {
        format!("own,{n},petal 1 %,0.01,9.93,,,{keys},batch,avx2,build,{threads},4,{rounds}")
    };
    let build = |two: &str| {
        let results = results(&[
            &row(10_000_000, "hash", 1, "8;9;12"),
            &row(10_000_000, "hash", 2, two),
            &row(10_000_000, "u64", 1, "8;9;12"),
            &row(10_000_000, "u64", 2, "4;4;6"),
            // There is no target below 4 MiB.
            &row(1_000_000, "hash", 1, "8;9;12"),
            &row(1_000_000, "hash", 2, "8;9;12"),
        ]);
        target(&results, "build on two threads", "1.85")
    };
    assert_eq!(build("4;5;6.2").measured(), "hash, n = 10⁷: 1.935, u64, n = 10⁷: 2.00");
    assert_eq!(build("4;5;6.2").verdict(), Verdict::Met);
    assert_eq!(build("5;5;7").verdict_in_words(), "not met: hash, n = 10⁷");
}

#[test]
fn random_reads_are_those_of_the_best_distance() {
    let results = results(&[
        "rivals,400000000,petal 1 %,0.01,10.1,,,hash,batch,avx2,absent,1,3,3;3",
        "rivals,400000000,petal 1 %,0.01,10.1,,,hash,batch,avx2,present,1,3,3;3",
        "rivals,400000000,\"random line reads, 16 ahead\",,10.1,,,hash,batch,,absent,1,4,4;4",
        "rivals,400000000,\"random line reads, 32 ahead\",,10.1,,,hash,batch,,absent,1,2,2;2",
        "rivals,50000000,\"random line reads, 16 ahead\",,10.1,,,hash,batch,,absent,1,1,1;1",
    ]);
    let limit = |n| results.best_random_reads(n);
    assert_eq!(limit(400_000_000), Some("random line reads, 32 ahead"));
    assert_eq!(limit(50_000_000), Some("random line reads, 16 ahead"));
    assert_eq!(limit(100_000), None);
    let reads = target(&results, "1 %, n = 4·10⁸", RANDOM_READS);
    assert_eq!((reads.measured().as_str(), reads.verdict()), ("absent: 1.500", Verdict::NotMet));
}

#[test]
fn the_upper_bound_of_a_rate_is_binomial() {
    let tries = 10_000_000;
    let most = upper_bound(0.01, tries);
    // 0.1 % on either side.
    let exact = binomial_range(tries, 0.01, 0.998).1 as f64;
    assert!((most * tries as f64 - exact).abs() < 5.0, "{most} {exact}");

    let measured_rate = |rate: f64| {
        let row = "rivals,100000,petal 1 %,0.01,9.93,RATE,10000000,hash,batch,avx2,absent,1,2,2";
        let results = results(&[&row.replace("RATE", &rate.to_string())]);
        target(&results, "1 %, n = 10⁵, measured rate", "at most 1.010 %, the upper 99.9 % bound")
    };
    // A rate below the target meets it.
    assert_eq!([0.009, most, 0.0101].map(|rate| measured_rate(rate).verdict()), [Verdict::Met; 3]);
    let missed = measured_rate(0.010_101);
    assert_eq!((missed.verdict(), missed.measured().as_str()), (Verdict::NotMet, "1.0101 %"));
}

#[test]
fn missed_target_is_marked_in_the_table() {
    let row =
        |n: u64, bits: f64| format!("own,{n},petal 1 %,0.01,{bits},,,hash,batch,avx2,absent,1,2,2");
    let results = results(&[&row(100_000, 10.102), &row(1_000_000, 10.1)]);
    let space = target(&results, "1 %, space", "10.1");
    assert_eq!(space.measured(), "n = 10⁵: 10.102, n = 10⁶: 10.10");
    assert_eq!(space.verdict_in_words(), "not met: n = 10⁵");
}

#[test]
fn only_text_between_markers_is_replaced() {
    let page = "a\n<!-- figures: x -->\nold\n<!-- /figures -->\nb\n";
    let new = "a\n<!-- figures: x -->\n\nnew\n\n<!-- /figures -->\nb\n";
    assert_eq!(replace(page, "x", "new\n").unwrap(), new);
    assert_eq!(replace(new, "x", "new\n").unwrap(), new);
    assert_eq!(
        replace(page, "y", "new").unwrap_err(),
        "the marker `<!-- figures: y -->` is missing"
    );
    let open = "<!-- figures: x -->\n<!-- figures: y -->\n<!-- /figures -->\n";
    assert!(replace(open, "x", "new").unwrap_err().contains("`<!-- /figures -->` is missing"));
}

/// Makes a root folder with a page and a CSV in `results/`.
fn root(name: &str, page: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&root);
    for folder in ["docs/performance", "results/machine"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("docs/performance/README.md"), page).unwrap();
    fs::write(root.join("results/machine/2000-01-02.csv"), FIXTURE).unwrap();
    root
}

#[test]
fn a_second_run_changes_nothing() {
    let root = root("figures-twice", PAGE);
    // An older file, and one of another benchmark.
    fs::write(root.join("results/machine/1999-12-31.csv"), "old").unwrap();
    fs::write(root.join("results/machine/2000-01-03-server.csv"), "other").unwrap();
    let first = write(&root, None).unwrap();
    assert!(first.sources[0].ends_with("2000-01-02.csv"));
    assert_eq!(first.changed.len(), 1 + PLOTS.len());
    let page = fs::read_to_string(root.join("docs/performance/README.md")).unwrap();
    assert!(
        page.starts_with("before\n") && page.ends_with("\nafter\n") && !page.contains("\nold\n")
    );
    assert!(page.contains("`results/machine/2000-01-02.csv`"));
    for plot in PLOTS {
        let svg = fs::read_to_string(root.join("docs/performance/plots").join(plot)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{plot}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{plot}");
    }
    assert_eq!(write(&root, None).unwrap().changed, Vec::<PathBuf>::new());

    // The page has only the name of a CSV outside the repository.
    let elsewhere = Path::new(env!("CARGO_TARGET_TMPDIR")).join("elsewhere.csv");
    fs::write(&elsewhere, FIXTURE).unwrap();
    write(&root, Some(&elsewhere)).unwrap();
    let page = fs::read_to_string(root.join("docs/performance/README.md")).unwrap();
    assert!(page.contains("Rows: `elsewhere.csv`"));
}

#[test]
fn the_files_benchmark_gives_the_chart_of_the_readme() {
    let root = root("figures-files", PAGE);
    let rows = "lines_per_file,lines_common,line_bytes,work,tool,config,wall_s,peak_rss_bytes,trouble\n\
                10000000,1000000,65,common,petal,-m 128M,2,104857600,\n";
    fs::write(root.join("results/machine/2000-01-03-files.csv"), rows).unwrap();
    let report = write(&root, None).unwrap();
    let chart = Path::new("docs/performance/plots/common.svg");
    assert!(report.changed.iter().any(|file| file == chart), "{:?}", report.changed);
    assert!(fs::read_to_string(root.join(chart)).unwrap().contains("petal common -m 128M"));
}

#[test]
fn an_empty_csv_gives_plots() {
    let root = root("figures-empty", PAGE);
    fs::write(root.join("empty.csv"), HEADER).unwrap();
    let report = write(&root, Some(Path::new("empty.csv"))).unwrap();
    assert_eq!(report.changed.len(), 1 + PLOTS.len());
    for plot in PLOTS {
        let svg = fs::read_to_string(root.join("docs/performance/plots").join(plot)).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{plot}");
    }
}

#[test]
fn a_missing_marker_is_an_error_and_nothing_is_written() {
    let page = PAGE.replace("<!-- figures: targets -->", "");
    let root = root("figures-marker", &page);
    let problem = write(&root, None).unwrap_err();
    assert_eq!(
        problem,
        "docs/performance/README.md: the marker `<!-- figures: targets -->` is missing"
    );
    assert_eq!(fs::read_to_string(root.join("docs/performance/README.md")).unwrap(), page);
    assert!(!root.join("docs/performance/plots").exists());
}

#[test]
fn two_files_of_one_date_are_an_error() {
    let root = root("figures-machines", PAGE);
    fs::create_dir_all(root.join("results/other")).unwrap();
    fs::write(root.join("results/other/2000-01-02.csv"), FIXTURE).unwrap();
    assert!(write(&root, None).unwrap_err().contains("select one with --from"));
    assert!(write(&root, Some(Path::new("results/other/2000-01-02.csv"))).is_ok());
}

#[test]
fn the_page_has_all_markers() {
    let page = include_str!("../../../docs/performance/README.md");
    assert!(replace(page, "targets", "x").is_ok());
    for plot in PLOTS {
        assert!(page.contains(&format!("(plots/{plot})")), "{plot}");
    }
}
