//! The numbers of `--report`, as far as a test can check them.

use std::io::{BufWriter, Write as _};
use std::ops::Range;

use petal_testkit::bounds::binomial_range;
use serde_json::Value;

use crate::common::{MEMORY_OVERHEAD, SET_COMMANDS, STRATEGIES, TestDir, write_lines};

const FIELDS: [&str; 25] = [
    "version",
    "command",
    "inputs",
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
    "memory_limit_bytes",
    "memory_peak_bytes",
    "disk_peak_bytes",
    "jobs",
    "left_out",
    "samples",
];

/// Writes short lines, so that a small memory limit leaves few filter bits for each.
fn write_numbers(dir: &TestDir, name: &str, numbers: Range<u64>) {
    let file = std::fs::File::create(dir.files.file(name)).unwrap();
    let mut out = BufWriter::new(file);
    numbers.for_each(|number| writeln!(out, "{number}").unwrap());
    out.flush().unwrap();
}

/// Runs a job and checks what holds for all reports.
#[track_caller]
fn report(dir: &TestDir, args: &str) -> Value {
    let start = std::time::Instant::now();
    let output = dir.run(&format!("{args} --report report"));
    let (whole, peak) = (start.elapsed().as_secs_f64(), output.peak);
    output.ok();
    let report: Value = serde_json::from_slice(&dir.read("report")).unwrap();
    let names: Vec<_> = report.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, FIELDS, "{args}");
    let number = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"));
    let phases = report["phases"].as_array().unwrap();
    let passes = phases
        .iter()
        .filter(|phase| !["sampling", "deciding"].contains(&phase["what"].as_str().unwrap()));
    assert_eq!(number("passes"), passes.count() as u64, "{report}");
    let bytes = phases.iter().map(|phase| phase["bytes"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(number("bytes_read"), bytes, "{report}");
    // In whole nanoseconds, the unit of the clock.
    let nanoseconds = |value: &Value| (value.as_f64().unwrap() * 1e9).round() as u64;
    let sum = phases.iter().map(|phase| nanoseconds(&phase["seconds"])).sum::<u64>();
    assert!(sum <= nanoseconds(&report["seconds"]), "{report}");
    assert!(report["seconds"].as_f64() < Some(whole), "{report}");
    assert!(
        number("memory_peak_bytes") <= number("memory_limit_bytes") + MEMORY_OVERHEAD,
        "{report}"
    );
    // The report's peak is taken before the end; this one may be sampled.
    assert!(peak <= number("memory_limit_bytes") + MEMORY_OVERHEAD, "{report}");
    assert!(report["false_found"].as_u64().unwrap_or(0) <= number("candidates"), "{report}");
    assert_eq!(report["false_found"].is_null(), number("candidates") == 0, "{report}");
    assert!(number("kept") <= number("first_lines"), "{report}");
    assert_eq!(report["command"], args.split(' ').next().unwrap(), "{report}");
    check_phases(&report);
    check_samples(&report);
    report
}

/// Phases follow each other, and none has more survivors than lines.
#[track_caller]
fn check_phases(report: &Value) {
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{report}"));
    let mut end = 0.0;
    for phase in report["phases"].as_array().unwrap() {
        assert!(number(&phase["start"]) >= end - 1e-6, "{phase}: {report}");
        end = number(&phase["start"]) + number(&phase["seconds"]);
        let (lines, survivors) = (phase["lines"].as_u64(), phase["survivors"].as_u64());
        let reads = phase["what"] != "deciding" && phase["what"] != "printing";
        assert!(!reads || survivors <= lines, "{phase}: {report}");
    }
    assert!(end <= number(&report["seconds"]) + 1e-6, "{report}");
    // The last phase passes on the result, unless an earlier one has printed a part of it.
    let last = report["phases"].as_array().unwrap().last().unwrap();
    let whole = !report["strategy"].as_str().unwrap().contains("memory, then");
    assert!(
        !whole || last["what"] == "matching" || last["survivors"] == report["kept"],
        "{report}"
    );
}

/// Samples are in order, and within the peaks and the time.
#[track_caller]
fn check_samples(report: &Value) {
    let samples = report["samples"].as_array().unwrap();
    assert!(!samples.is_empty() && samples.len() <= 201, "{report}");
    let mut before = 0.0;
    for sample in samples {
        let [seconds, memory, disk] = [0, 1, 2].map(|at| sample[at].as_f64().unwrap());
        assert!(seconds >= before && memory > 0.0, "{sample}: {report}");
        assert!(disk <= report["disk_peak_bytes"].as_f64().unwrap(), "{sample}: {report}");
        before = seconds;
    }
    let spilled = report["spilled"].as_u64().unwrap();
    assert!(report["disk_peak_bytes"].as_u64().unwrap() >= spilled, "{report}");
}

#[test]
fn report_fields_agree_with_the_result() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..300_000);
    write_lines(&dir.files.file("b"), 250_000..500_000);
    let size = dir.read("a").len() as u64 + dir.read("b").len() as u64;
    for (command, kept, first) in
        [("common", 50_000, 300_000), ("diff", 250_000, 300_000), ("dedup", 500_000, 550_000)]
    {
        for (strategy, memory) in STRATEGIES.into_iter().zip([8, 64, 8, 8]) {
            for output in ["-o out", "-c"] {
                let args = format!("{command} {strategy} -m {memory}M -j 2 {output} a b");
                let report = report(&dir, &args);
                assert_eq!(report["kept"], kept, "{args}: {report}");
                assert_eq!(report["first_lines"], first, "{args}: {report}");
                assert_eq!(report["memory_limit_bytes"], memory << 20, "{args}");
                assert_eq!((&report["jobs"], &report["resumed"]), (&2.into(), &0.into()), "{args}");
                assert_eq!(report["wrong"], 0.0, "{args}");
                assert!(report["bytes_read"].as_u64() >= Some(size), "{args}: {report}");
                if let Some(name) = strategy.strip_prefix("--strategy ") {
                    assert!(report["strategy"].as_str().unwrap().starts_with(name), "{report}");
                }
                let spills = report["strategy"] == "partition" && memory == 8;
                assert!(!spills || report["spilled"].as_u64() > Some(1 << 20), "{args}: {report}");
            }
        }
    }
}

/// Jobs that start in memory and continue on disk count no line twice.
#[test]
fn lines_are_counted_once_when_memory_does_not_suffice() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), (0..600_000).chain(0..100_000));
    dir.write("b", "x\n");
    for script in [
        "dedup --strategy memory $flags a",
        "diff --strategy memory $flags a b",
        "dedup $flags <(cat a)",
        "diff $flags <(cat a) b",
    ] {
        let output = dir.sh(&format!("flags='-q -m 8M -c --report report'; $petal {script}"));
        assert_eq!(output.text(), "600000\n", "{script}");
        let report: Value = serde_json::from_slice(&dir.read("report")).unwrap();
        assert_eq!(report["strategy"], "memory, then partition", "{script}");
        assert_eq!(report["first_lines"], 700_000, "{script}: {report}");
    }
}

/// Each line that is not in the filter is a false candidate with the predicted rate.
#[test]
fn false_candidates_match_the_predicted_rate() {
    let dir = TestDir::new();
    write_numbers(&dir, "a", 5_900_000..8_000_000);
    write_numbers(&dir, "b", 0..6_000_000);
    for (command, strangers) in [("common", 2_000_000), ("diff", 2_000_000), ("dedup", 8_000_000)] {
        for run in 0..3 {
            let args = format!("{command} --strategy narrow -m 8M -o /dev/null a b");
            let report = report(&dir, &args);
            let promised = report["false_promised"].as_f64().unwrap();
            assert!(promised > 10_000.0, "a filter of that size has false positives: {report}");
            let (low, high) = binomial_range(strangers, promised / strangers as f64, 0.999_999);
            let found = report["false_found"].as_u64().unwrap();
            assert!((low..=high).contains(&found), "{run}: {args}: {low}..={high}: {report}");
        }
    }
}

#[test]
fn every_field_is_documented() {
    let page = include_str!("../../../../docs/reference/cli-plan.md");
    for field in FIELDS {
        assert!(page.contains(&format!("\n- `{field}`: ")), "{field}");
    }
}

/// The estimate of an approximate job, with a filter that is nearly too small.
#[test]
fn lost_lines_match_the_estimate() {
    let dir = TestDir::new();
    write_numbers(&dir, "a", 5_900_000..8_000_000);
    write_numbers(&dir, "b", 0..6_000_000);
    for (command, right) in [("diff", 2_000_000), ("dedup", 8_000_000)] {
        let report = report(&dir, &format!("{command} --approx -q -m 8M -o /dev/null a b"));
        let lost = right - report["kept"].as_u64().unwrap();
        let wrong = report["wrong"].as_f64().unwrap();
        let (low, high) = binomial_range(right, wrong / right as f64, 0.999_999);
        assert!((low..=high).contains(&lost), "{command}: {lost} not in {low}..={high}: {report}");
        assert_eq!(report["strategy"], "approximate");
    }
}

#[test]
fn overfull_filter_has_no_estimate() {
    let dir = TestDir::new();
    write_numbers(&dir, "a", 0..20_000);
    write_numbers(&dir, "b", 20_000..40_000);
    for args in ["diff a -", "dedup -"] {
        // The number of lines of a pipe is unknown.
        let args = format!("{args} --approx -n 10 -p 0.5 -q -o /dev/null --report found");
        dir.run_with(&args, &dir.read("b")).ok();
        let found: Value = serde_json::from_slice(&dir.read("found")).unwrap();
        assert!(found["wrong"].is_null() && found["wrong_error"].is_null(), "{args}: {found}");
    }
}

#[test]
fn two_outputs_are_two_files() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nx\n");
    std::os::unix::fs::symlink("out", dir.files.file("link")).unwrap();
    for (one, two) in [("out", "out"), ("out", "./out"), ("out", "link"), ("./out", "../{}/out")] {
        let folder = dir.files.path().file_name().unwrap().to_str().unwrap();
        let two = two.replace("{}", folder);
        for args in [
            format!("dedup a -o {one} --report {two}"),
            format!("dedup a -o {one} --dupes-output {two}"),
            format!("dedup a -c --dupes-output {one} --report {two}"),
            format!("dedup a -o {two} --dupes-output other --report {one}"),
        ] {
            let line = dir.run(&args).failure();
            assert!(line.contains("two outputs"), "{args}: {line}");
        }
    }
    for args in ["dedup a --report a", "dedup a --dupes-output ./a"] {
        assert!(dir.run(args).failure().contains("same file as the input"), "{args}");
    }
    assert_eq!(dir.files.names(), ["a", "link"]);
    dir.run("dedup a -o /dev/null --report /dev/null").ok();
    // Standard output counts as an output.
    for args in [
        "dedup a --dupes-output -",
        "dedup a --report -",
        "dedup a -c --report -",
        "dedup a -c --dupes-output -",
        "dedup a -o - --dupes-output -",
        "dedup a -o out --dupes-output - --report -",
    ] {
        let line = dir.run(args).failure();
        assert!(line.contains("standard output") || line.contains("-: is named"), "{line}");
    }
    for flag in ["--dupes-output", "--report"] {
        let output = dir.sh(&format!("\"$petal\" dedup a {flag} same > same"));
        assert!(output.failure().contains("two outputs"), "{flag}");
        assert_eq!(dir.read("same"), b"");
    }
    assert!(dir.run("dedup a -o out --report -").text().starts_with('{'));
}

#[test]
fn unwritable_report_is_an_error_before_any_work() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    for command in SET_COMMANDS {
        for mode in ["", "--approx -q"] {
            let args = format!("{command} {mode} a a --report no/such/dir");
            let line = dir.run(&args).failure();
            assert!(line.contains("no/such/dir: cannot write"), "{args}: {line}");
            let line = dir.run(&format!("{command} {mode} a a --report . -o out")).failure();
            assert!(line.contains("is a directory"), "{line}");
        }
    }
    // Detected at the end; the output is not written either.
    let line = dir.run("dedup a --report /dev/full -o out").failure();
    assert!(line.contains("/dev/full: cannot write: no space left"), "{line}");
    assert_eq!(dir.files.names(), ["a"]);
}

/// A pass that ends because a table is full counts the lines and bytes before the next one begins.
#[test]
fn every_line_is_counted_once_when_a_table_becomes_full() {
    const LINES: u64 = 400_000;
    let dir = TestDir::new();
    let text: String = (0..LINES).map(|i| format!("line-{:09}\n", i.min(LINES / 10 * 9))).collect();
    dir.write("a", &text);
    let counts = ["1", "2", "3"].map(|jobs| {
        dir.run(&format!("dedup a --strategy memory -m 8M -j {jobs} -o out --report report")).ok();
        let report: serde_json::Value = serde_json::from_slice(&dir.read("report")).unwrap();
        assert_eq!(report["strategy"], "memory, then partition");
        let phases = report["phases"].as_array().unwrap();
        ["comparing", "reading"].map(|what| {
            let phase = phases.iter().find(|phase| phase["what"] == what).unwrap();
            [&phase["lines"], &phase["bytes"]].map(|number| number.as_u64().unwrap())
        })
    });
    let [[lines, bytes], [more_lines, more_bytes]] = counts[0];
    assert_eq!([lines + more_lines, bytes + more_bytes], [LINES, text.len() as u64]);
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}
