//! Keys that look equal but are spelled differently, with CRLF line ends or hexadecimal in another case,
//! give a warning wherever keys are read.

use std::path::Path;

use crate::common::{TestDir, run_with_input};

const MIXED: &str = "warning: the lines of crlf end with CRLF, the keys of lines do not";

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("lines", "one\ntwo\nthree\n");
    dir.write("crlf", "one\r\ntwo\r\nthree\r\n");
    dir.write("records.csv", "id,name\none,1\r\ntwo,2\r\n");
    dir
}

/// Runs a command, which must give exactly this warning.
fn warned(dir: &TestDir, command: &str, code: i32, warning: &str) {
    let output = dir.run(command);
    assert_eq!(output.code, Some(code), "{command}: {}", output.err);
    assert_eq!(output.err.lines().count(), 1, "{command}: {}", output.err);
    assert!(output.err.contains(warning), "{command}: {}", output.err);
    let quiet = dir.run(&format!("{command} -q"));
    assert_eq!(quiet.err, "", "{command}");
}

#[test]
fn lists_are_compared_with_the_inputs() {
    let dir = dir();
    dir.run("build -o f lines").ok();
    warned(&dir, "check -c --allow crlf f lines", 0, MIXED);
    warned(&dir, "build -o c --not-in crlf lines", 0, MIXED);
    warned(&dir, "build -o c --format filter-cascade --not-in crlf lines", 0, MIXED);
    // The lines that a filter does not contain are not recorded.
    dir.run("build -q -o c --not-in crlf lines").ok();
    assert!(!dir.run("info --json c").text().contains("line_ends"));
    // Without the CR, the same lines on both sides are an error.
    let same = dir.run("build -o c --key-transform strip-cr --not-in crlf lines").failure();
    assert!(same.contains("3 lines"), "{same}");
}

#[test]
fn first_crlf_may_come_late() {
    let dir = dir();
    let many: String = (0..60_000).map(|line| format!("line {line}\n")).collect();
    dir.write("many", &many);
    dir.write("late", format!("{many}one\r\n"));
    let some = "warning: some lines of late end with CRLF and others with LF";
    for command in ["dedup -o out late", "common -o out late many", "build -o f late"] {
        warned(&dir, command, 0, some);
    }
    // A filter records both.
    assert!(dir.run("info --json f").text().contains("\"line_ends\": \"LF and CRLF\""));
    // That matters only where nothing is found.
    warned(&dir, "check -c f lines", 1, "some lines in f end with CRLF and others with LF");
    assert_eq!(dir.run("check -c f many").err, "");
    assert_eq!(dir.run("add f many").err, "");
    let output = dir.run_with("dedup -o out", &dir.read("late"));
    assert!(output.err.contains("some lines of standard input end with CRLF"), "{}", output.err);
}

#[test]
fn filters_of_other_programs_and_probe_warn_of_crlf() {
    let dir = dir();
    let warning = "warning: the lines of crlf end with CRLF, and the CR is part of the key; remove it \
                   with --key-transform strip-cr";
    for format in [
        "parquet",
        "guava",
        "guava-32",
        "spark-v1",
        "spark-v2",
        "redisbloom",
        "dcso",
        "poppy",
        "go-bloom",
        "squid-digest",
        "datasketches",
        "rbloom",
        "hadoop-jenkins",
        "hadoop-murmur",
        "pybloom",
    ] {
        dir.run(&format!("build --format {format} -n 1000 -o f lines")).ok();
        warned(&dir, &format!("check --format {format} -c f crlf"), 1, warning);
        dir.run(&format!("build -q --format {format} -n 1000 -o g lines")).ok();
        warned(&dir, &format!("add --format {format} g crlf"), 0, warning);
        warned(&dir, &format!("build --format {format} -n 1000 -o h crlf"), 0, warning);
        let strip = format!("check --format {format} -c --key-transform strip-cr f crlf");
        assert_eq!(dir.run(&strip).err, "");
        assert_eq!(dir.run(&format!("check --format {format} -c f lines")).err, "");
    }
    dir.run("build --format dcso --key-type text-crlf -n 1000 -o f crlf").ok();
    assert_eq!(dir.run("check -c --key-type text-crlf f crlf").err, "");
    let failure = dir.run("check --assert-members crlf f lines").failure();
    assert!(failure.contains("use --key-type text-crlf, which finds all"), "{failure}");
    dir.run("build --format guava -n 1000 -o g lines").ok();
    let failure = dir.run("check --assert-members crlf g lines").failure();
    assert!(failure.contains("remove it with --key-transform strip-cr"), "{failure}");

    let table =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/foreign/pyarrow-text.parquet");
    std::fs::copy(table, dir.files.file("t.parquet")).unwrap();
    warned(&dir, "probe -c --column key --keys crlf t.parquet", 1, warning);
    let output = dir.run("probe -c --column key --key-transform strip-cr --keys crlf t.parquet");
    assert_eq!(output.err, "");
}

#[test]
fn filters_with_other_line_ends_give_a_warning_when_they_are_merged_or_compared() {
    let dir = dir();
    dir.run("build -o lf lines").ok();
    dir.run("build -o cr crlf").ok();
    let (to_lf, to_cr) = (
        "the lines of cr end with CRLF, those in lf do not",
        "the lines of lf end with LF, those in cr with CRLF",
    );
    warned(&dir, "merge -o both lf cr", 0, to_lf);
    warned(&dir, "merge -o other cr lf", 0, to_cr);
    assert!(dir.run("compare lf cr").err.contains(to_lf));
    let some = "some lines in both end with CRLF and others with LF";
    dir.write("four", "four\n");
    warned(&dir, "check -c both four", 1, some);
    warned(&dir, "merge -o more both lf", 0, some);
    for command in ["check -c both lines", "check -c both crlf", "add both lines"] {
        assert_eq!(dir.run(command).err, "", "{command}");
    }
    dir.run("build -o two lines").ok();
    assert_eq!(dir.run("merge -o out lf two").err, "");
    // An empty filter has no lines that end in one way.
    dir.write("none", "");
    dir.run("build -q -n 3 -o none.f none").ok();
    assert_eq!(dir.run("merge -o out none.f cr").err, "");
    assert!(dir.run("info --json out").text().contains("\"line_ends\": \"CRLF\""));
}

/// The CR of a CSV record is not part of a field.
#[test]
fn fields_are_compared_with_lines() {
    let dir = dir();
    dir.run("build -o f --column id records.csv").ok();
    assert_eq!(dir.run("check -c f lines").err.lines().filter(|l| l.contains("CRLF")).count(), 0);
    let output = dir.run("check -c f crlf");
    assert!(
        output.err.contains("the lines of crlf end with CRLF, those in f do not"),
        "{}",
        output.err
    );
    dir.run("build -o g crlf").ok();
    let output = dir.run("check -c --column id g records.csv");
    assert!(output.err.contains("those in g with CRLF"), "{}", output.err);
}

#[test]
fn hexadecimal_keys_are_found_in_another_case_or_give_a_warning() {
    let dir = dir();
    dir.write("lower", "0aff\n12\nbe:ef-00\n");
    dir.write("upper", "0AFF\n12\nBE:EF-00\n");
    dir.write("digits", "12\n34\n");
    dir.write("mixed", "0aFF\n12\n");
    let found = |command: &str, count: &str| {
        let output = dir.run(command);
        assert_eq!((&*output.out, &*output.err), (count.as_bytes(), ""), "{command}");
    };
    dir.run("build -n 100 -o l lower").ok();
    dir.run("build -n 100 -o u upper").ok();
    dir.run("build -n 100 --type counting -o counting upper").ok();
    assert!(dir.run("info --json l").text().contains("\"case\": \"lower\""));
    found("check -c l upper", "3\n");
    found("check -c u lower", "3\n");
    found("check -c -v u lower", "0\n");
    let removed = dir.run("remove counting lower");
    assert!(removed.err.contains("those in counting in uppercase"), "{}", removed.err);
    for command in ["check -c l lower", "check -c l digits", "check l mixed", "check -c l lines"] {
        assert_eq!(dir.run(command).err, "", "{command}");
    }
    // Numbers fit both; then both cases, or other keys, are in the filter.
    warned(&dir, "merge -o both.f l u", 0, "the keys of u are hexadecimal in uppercase");
    assert!(!dir.run("info --json both.f").text().contains("\"hex\""));
    dir.run("add l digits").ok();
    found("check -c l upper", "3\n");
    dir.run("add l lines").ok();
    assert_eq!(dir.run("check -c l upper").err, "");
    // The transform is recorded, and removes the difference.
    dir.run("build -o t --key-transform lowercase upper").ok();
    assert_eq!(dir.run("check -c t lower").err, "");
    assert_eq!(dir.run("check -c t upper").err, "");
    // One column of many.
    dir.write("upper.csv", "id,sha1\n1,0AFF\n2,BEEF00\n");
    dir.run("build -n 100 -o l lower").ok();
    found("check -c --column sha1 l upper.csv", "1\n");
    // Without a filter.
    let files =
        "warning: the keys of lower are hexadecimal in lowercase, those of upper in uppercase";
    for command in ["common lower upper -c", "diff upper lower -o out", "dedup -o out lower upper"]
    {
        let output = dir.run(command);
        assert!(output.err.contains(files), "{command}: {}", output.err);
        assert_eq!(dir.run(&format!("{command} --text")).err, "", "{command}");
    }
    // State of `seen`.
    dir.run("seen -n 100 s lower").ok();
    let output = dir.run("seen s upper");
    assert!(
        output.err.contains("the keys of upper are hexadecimal in uppercase"),
        "{}",
        output.err
    );
    assert_eq!(dir.run("seen s upper").err, "");
}

/// `explain` asks for one key, which is compared with those of the filter, too.
#[test]
fn explained_key_in_another_spelling_gives_a_warning() {
    let dir = dir();
    dir.write("upper", "0AFF\n12\n");
    dir.write("both", "one\r\ntwo\n");
    for (filter, input) in [("u", "upper"), ("lf", "lines"), ("cr", "crlf"), ("both.f", "both")] {
        dir.run(&format!("build -q -n 100 -o {filter} {input}")).ok();
    }
    dir.run("build -n 100 -o t --key-transform lowercase upper").ok();
    let explained = |filter: &str, key: &str| {
        let mut command = dir.petal("explain");
        command.args([filter, key]);
        let output = run_with_input(command, b"");
        assert_eq!(output.code, Some(0), "{}", output.err);
        assert!(output.out.starts_with(b"key "));
        output.err
    };
    for (filter, key, warning) in [
        (
            "lf",
            "one\r",
            "the key ends with CRLF, those in lf do not: the CR is part of the line, so \
                         lines that look equal differ; build the filter with --key-transform strip-cr",
        ),
        ("cr", "one", "the key ends with LF, those in cr with CRLF"),
        ("both.f", "one", "some lines in both.f end with CRLF and others with LF"),
    ] {
        let err = explained(filter, key);
        assert!(err.starts_with(&format!("petal: warning: {warning}")), "{filter}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
    for (filter, key) in [
        ("u", "0AFF"),
        ("u", "12"),
        ("u", "word"),
        ("t", "0AFF"),
        ("lf", "one"),
        ("cr", "one\r"),
        ("both.f", "two"),
    ] {
        assert_eq!(explained(filter, key), "", "{filter} {key:?}");
    }
}
