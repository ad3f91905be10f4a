//! What `--report` says of a job is true, as far as it can be known from outside.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::io::{BufWriter, Write as _};
use std::ops::Range;

use kit::{Place, STRATEGIES, VERBS, write_lines};
use petal_testkit::bounds::binomial_range;
use serde_json::Value;

const FIELDS: [&str; 19] = [
    "strategy",
    "kept",
    "first_lines",
    "passes",
    "bytes_read",
    "spilled",
    "candidates",
    "false_found",
    "false_promised",
    "records",
    "wrong",
    "wrong_error",
    "repeats_possible",
    "resumed",
    "seconds",
    "phases",
    "memory_cap_bytes",
    "memory_peak_bytes",
    "jobs",
];

/// Short lines, so that a small cap leaves a filter few bits for each.
fn write_numbers(place: &Place, name: &str, numbers: Range<u64>) {
    let file = std::fs::File::create(place.files.file(name)).unwrap();
    let mut out = BufWriter::new(file);
    numbers.for_each(|number| writeln!(out, "{number}").unwrap());
    out.flush().unwrap();
}

/// Runs a job and checks all of its report that holds for any.
#[track_caller]
fn report(place: &Place, words: &str) -> Value {
    let begun = std::time::Instant::now();
    let ran = place.run(&format!("{words} --report told"));
    let (whole, peak) = (begun.elapsed().as_secs_f64(), ran.peak);
    ran.ok();
    let told: Value = serde_json::from_slice(&place.read("told")).unwrap();
    let names: Vec<_> = told.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, FIELDS, "{words}");
    let number = |name: &str| told[name].as_u64().unwrap_or_else(|| panic!("{name}: {told}"));
    let phases = told["phases"].as_array().unwrap();
    let passes = phases
        .iter()
        .filter(|phase| !["sampling", "deciding"].contains(&phase["what"].as_str().unwrap()));
    assert_eq!(number("passes"), passes.count() as u64, "{told}");
    let bytes = phases.iter().map(|phase| phase["bytes"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(number("bytes_read"), bytes, "{told}");
    // In whole nanoseconds, which is what the clock has.
    let nanoseconds = |value: &Value| (value.as_f64().unwrap() * 1e9).round() as u64;
    let sum = phases.iter().map(|phase| nanoseconds(&phase["seconds"])).sum::<u64>();
    assert!(sum <= nanoseconds(&told["seconds"]), "{told}");
    assert!(told["seconds"].as_f64() < Some(whole), "{told}");
    assert!(number("memory_peak_bytes") <= number("memory_cap_bytes") + (16 << 20), "{told}");
    // Its own figure is taken just before the end; ours may be a sample.
    assert!(peak <= number("memory_cap_bytes") + (16 << 20), "{told}");
    assert!(told["false_found"].as_u64().unwrap_or(0) <= number("candidates"), "{told}");
    assert_eq!(told["false_found"].is_null(), number("candidates") == 0, "{told}");
    assert!(number("kept") <= number("first_lines"), "{told}");
    told
}

#[test]
fn every_field_is_there_and_agrees_with_the_answer() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..300_000);
    write_lines(&place.files.file("b"), 250_000..500_000);
    let size = place.read("a").len() as u64 + place.read("b").len() as u64;
    for (verb, kept, first) in
        [("common", 50_000, 300_000), ("diff", 250_000, 300_000), ("dedup", 500_000, 550_000)]
    {
        for (strategy, cap) in STRATEGIES.into_iter().zip([8, 64, 8, 8]) {
            for output in ["-o out", "-c"] {
                let words = format!("{verb} {strategy} -m {cap}M -j 2 {output} a b");
                let told = report(&place, &words);
                assert_eq!(told["kept"], kept, "{words}: {told}");
                assert_eq!(told["first_lines"], first, "{words}: {told}");
                assert_eq!(told["memory_cap_bytes"], cap << 20, "{words}");
                assert_eq!((&told["jobs"], &told["resumed"]), (&2.into(), &0.into()), "{words}");
                assert_eq!(told["wrong"], 0.0, "{words}");
                assert!(told["bytes_read"].as_u64() >= Some(size), "{words}: {told}");
                if let Some(name) = strategy.strip_prefix("--strategy ") {
                    assert!(told["strategy"].as_str().unwrap().starts_with(name), "{told}");
                }
                let spills = told["strategy"] == "partition" && cap == 8;
                assert!(!spills || told["spilled"].as_u64() > Some(1 << 20), "{words}: {told}");
            }
        }
    }
}

/// Streams are judged in memory and go on from disk: no line is counted twice.
#[test]
fn lines_are_counted_once_when_memory_does_not_suffice() {
    let place = Place::new();
    write_lines(&place.files.file("a"), (0..600_000).chain(0..100_000));
    place.write("b", "x\n");
    for script in [
        "dedup --strategy memory $flags a",
        "diff --strategy memory $flags a b",
        "dedup $flags <(cat a)",
        "diff $flags <(cat a) b",
    ] {
        let ran = place.sh(&format!("flags='-q -m 8M -c --report told'; $petal {script}"));
        assert_eq!(ran.text(), "600000\n", "{script}");
        let told: Value = serde_json::from_slice(&place.read("told")).unwrap();
        assert_eq!(told["strategy"], "memory, then partition", "{script}");
        assert_eq!(told["first_lines"], 700_000, "{script}: {told}");
    }
}

/// Of lines that are strangers to the filter, each is a false candidate with the rate promised.
#[test]
fn as_many_false_candidates_are_found_as_promised() {
    let place = Place::new();
    write_numbers(&place, "a", 5_900_000..8_000_000);
    write_numbers(&place, "b", 0..6_000_000);
    for (verb, strangers) in [("common", 2_000_000), ("diff", 2_000_000), ("dedup", 8_000_000)] {
        for run in 0..3 {
            let words = format!("{verb} --strategy narrow -m 8M -o /dev/null a b");
            let told = report(&place, &words);
            let promised = told["false_promised"].as_f64().unwrap();
            assert!(promised > 10_000.0, "a filter that small errs: {told}");
            let (low, high) = binomial_range(strangers, promised / strangers as f64, 0.999_999);
            let found = told["false_found"].as_u64().unwrap();
            assert!((low..=high).contains(&found), "{run}: {words}: {low}..={high}: {told}");
        }
    }
}

#[test]
fn every_field_is_documented() {
    let page = include_str!("../../../docs/cli.md");
    for field in FIELDS {
        assert!(page.contains(&format!("\n| `{field}` | ")), "{field}");
    }
}

/// The best estimate of an approximate job, with a filter that is nearly too small.
#[test]
fn as_many_lines_are_lost_as_an_approximate_job_says() {
    let place = Place::new();
    write_numbers(&place, "a", 5_900_000..8_000_000);
    write_numbers(&place, "b", 0..6_000_000);
    for (verb, right) in [("diff", 2_000_000), ("dedup", 8_000_000)] {
        let told = report(&place, &format!("{verb} --approx -q -m 8M -o /dev/null a b"));
        let lost = right - told["kept"].as_u64().unwrap();
        let wrong = told["wrong"].as_f64().unwrap();
        let (low, high) = binomial_range(right, wrong / right as f64, 0.999_999);
        assert!((low..=high).contains(&lost), "{verb}: {lost} not in {low}..={high}: {told}");
        assert_eq!(told["strategy"], "approximate");
    }
}

#[test]
fn nothing_is_estimated_of_an_overfull_filter() {
    let place = Place::new();
    write_numbers(&place, "a", 0..20_000);
    write_numbers(&place, "b", 20_000..40_000);
    for words in ["diff a -", "dedup -"] {
        // Of a pipe the number of lines is not known.
        let words = format!("{words} --approx -n 10 -p 0.5 -q -o /dev/null --report found");
        place.run_with(&words, &place.read("b")).ok();
        let found: Value = serde_json::from_slice(&place.read("found")).unwrap();
        assert!(found["wrong"].is_null() && found["wrong_error"].is_null(), "{words}: {found}");
    }
}

#[test]
fn two_outputs_are_two_files() {
    let place = Place::new();
    place.write("a", "x\ny\nx\n");
    std::os::unix::fs::symlink("out", place.files.file("link")).unwrap();
    for (one, two) in [("out", "out"), ("out", "./out"), ("out", "link"), ("./out", "../{}/out")] {
        let folder = place.files.path().file_name().unwrap().to_str().unwrap();
        let two = two.replace("{}", folder);
        for words in [
            format!("dedup a -o {one} --report {two}"),
            format!("dedup a -o {one} --dupes-output {two}"),
            format!("dedup a -c --dupes-output {one} --report {two}"),
            format!("dedup a -o {two} --dupes-output other --report {one}"),
        ] {
            let line = place.run(&words).trouble();
            assert!(line.contains("two outputs"), "{words}: {line}");
        }
    }
    for words in ["dedup a --report a", "dedup a --dupes-output ./a"] {
        assert!(place.run(words).trouble().contains("same file as the input"), "{words}");
    }
    assert_eq!(place.files.names(), ["a", "link"]);
    place.run("dedup a -o /dev/null --report /dev/null").ok();
    // Standard output is one of them, wherever it goes.
    for words in [
        "dedup a --dupes-output -",
        "dedup a --report -",
        "dedup a -c --report -",
        "dedup a -o - --dupes-output -",
        "dedup a -o out --dupes-output - --report -",
    ] {
        let line = place.run(words).trouble();
        assert!(line.contains("standard output") || line.contains("-: is named"), "{line}");
    }
    for flag in ["--dupes-output", "--report"] {
        let ran = place.sh(&format!("\"$petal\" dedup a {flag} same > same"));
        assert!(ran.trouble().contains("two outputs"), "{flag}");
        assert_eq!(place.read("same"), b"");
    }
    assert!(place.run("dedup a -o out --report -").text().starts_with('{'));
}

#[test]
fn a_report_that_cannot_be_written_is_trouble_before_any_work() {
    let place = Place::new();
    place.write("a", "x\n");
    for verb in VERBS {
        for way in ["", "--approx -q"] {
            let words = format!("{verb} {way} a a --report no/such/dir");
            let line = place.run(&words).trouble();
            assert!(line.contains("no/such/dir: cannot write"), "{words}: {line}");
            let line = place.run(&format!("{verb} {way} a a --report . -o out")).trouble();
            assert!(line.contains("is a directory"), "{line}");
        }
    }
    // Found out at the end; then there is no answer either.
    let line = place.run("dedup a --report /dev/full -o out").trouble();
    assert!(line.contains("/dev/full: cannot write: no space left"), "{line}");
    assert_eq!(place.files.names(), ["a"]);
}
