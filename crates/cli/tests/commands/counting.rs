//! `remove` and `freeze`, with counting and quotient filters.

use crate::common::{self, TestDir, write_lines};

const TYPES: [(&str, &str); 2] = [("counting", "bloom"), ("counting-classic", "classic")];

/// A directory with `a` (1,000 lines), `b` (500 of them), `c` (the other 500), `x` (100 lines that
/// are not in `a`), and a counting filter `f` of `a`.
fn dir(kind: &str) -> TestDir {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..1000);
    write_lines(&dir.files.file("b"), 0..500);
    write_lines(&dir.files.file("c"), 500..1000);
    write_lines(&dir.files.file("x"), 5000..5100);
    dir.run(&format!("build -q --type {kind} -p 1e-6 -o f a")).ok();
    dir
}

fn json(dir: &TestDir, args: &str) -> serde_json::Value {
    serde_json::from_str(&dir.run(args).text()).unwrap()
}

#[test]
fn remove_removes_only_the_given_lines() {
    for (kind, _) in TYPES {
        let dir = dir(kind);
        for jobs in [1, 4] {
            dir.run(&format!("build -q --type {kind} -p 1e-6 -o f a")).ok();
            let output = dir.run(&format!("remove -j {jobs} f b"));
            assert_eq!((output.code, output.err.as_str(), output.out.len()), (Some(0), "", 0));
            assert!(dir.run("check f a").ok() == dir.read("c"));
            assert_eq!(dir.run("verify f").text(), "f: valid\n");
            // The file is equal to one without these lines.
            dir.run(&format!("build -q --type {kind} -n 1000 -p 1e-6 -o g c")).ok();
            assert!(dir.read("f") == dir.read("g"), "{kind}");
        }
        // A line that was added twice is present until it is removed twice.
        dir.run("add f c").ok();
        dir.run("remove f c").ok();
        assert!(dir.run("check f a").ok() == dir.read("c"));
        dir.run_with("remove f -", &dir.read("c")).ok();
        assert_eq!(dir.run("check -c f a").out, b"0\n");
        // Almost empty: saturated counters are not decremented.
        assert!(json(&dir, "info --json f")["fill_ratio"].as_f64().unwrap() < 0.001);
    }
}

#[test]
fn missing_lines_are_counted_and_listed() {
    for (kind, _) in TYPES {
        let dir = dir(kind);
        let output = dir.run("remove f x b x");
        assert_eq!(output.err, "petal: note: 200 of 700 lines were not in the filter\n");
        assert_eq!((output.code, output.out.len()), (Some(0), 0));
        assert_eq!(dir.run("remove -q f x").err, "");
        let x = dir.read("x");
        for missing in ["gone", "-"] {
            dir.run(&format!("build -q --type {kind} -p 1e-6 -o f a")).ok();
            let output = dir.run(&format!("remove -q f b x --missing {missing}"));
            let out = output.ok();
            assert!(if missing == "-" { out } else { dir.read(missing) } == x);
            assert!(dir.run("check f a").ok() == dir.read("c"));
        }
        dir.run("remove f c --missing none").ok();
        assert_eq!(dir.read("none"), b"");
    }
}

#[test]
fn failed_remove_keeps_the_filter() {
    let dir = dir("counting");
    let before = common::inode_and_content(&dir.files.file("f"));
    for (args, message) in [
        ("remove f missing", "missing: cannot read"),
        ("remove f b missing", "missing: cannot read"),
        ("remove f f", "same file"),
        ("remove f b --missing f", "same file"),
        ("remove f b --missing b", "same file"),
        ("remove f b --missing no/such", "no/such: cannot write"),
        ("remove f b --missing /dev/full", "--missing /dev/full: no space left, and nothing"),
        ("remove -m 1K f b", "-m"),
        ("remove a b", "a: not a petal file"),
    ] {
        // An output that cannot be written is an error only if a line is missing.
        let args = args.replace("f b --missing /dev", "f x --missing /dev");
        let line = dir.run(&args).failure();
        assert!(line.contains(message), "{args}: {line}");
        assert!(common::inode_and_content(&dir.files.file("f")) == before, "{args}");
    }
    write_lines(&dir.files.file("many"), 10_000..200_000);
    let output = dir.sh("\"$petal\" remove f many --missing - | true; exit ${PIPESTATUS[0]}");
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("nothing was removed"), "{}", output.err);
    assert!(common::inode_and_content(&dir.files.file("f")) == before);
    // Another run holds the lock.
    dir.write("f.lock", "");
    let script = "exec 9<f.lock; flock 9; \"$petal\" remove f b";
    assert!(dir.sh(script).failure().contains("another run is using it"));
    assert!(common::inode_and_content(&dir.files.file("f")) == before);
}

#[test]
fn freeze_gives_the_plain_filter() {
    for (kind, plain) in TYPES {
        let dir = dir(kind);
        dir.run("freeze f -o frozen").ok();
        dir.run(&format!("build -q --type {plain} -p 1e-6 -o plain a")).ok();
        assert!(dir.read("frozen") == dir.read("plain"), "{kind}");
        let size =
            |filter: &str| json(&dir, &format!("info --json {filter}"))["size_bytes"].as_u64();
        assert_eq!(size("f").unwrap(), size("plain").unwrap() * 4);
        // Plain and counting filters can be compared, but not merged.
        assert_eq!(json(&dir, "compare --json f plain")["jaccard"]["value"], 1.0);
        assert!(dir.run("merge -o m f plain").failure().contains("plain: "));
        assert!(dir.run("freeze plain -o g").failure().contains("plain: a "));
        assert!(dir.run("freeze f -o f").failure().contains("same file"));
        assert!(dir.run("shrink f -o g").failure().contains("cannot be shrunk"));
        // After a removal: only the remaining lines.
        dir.run("remove f b").ok();
        dir.run("freeze f -o frozen").ok();
        assert!(dir.run("check frozen a").ok() == dir.read("c"));
    }
}

#[test]
fn counts_are_added_in_a_merge() {
    for (kind, _) in TYPES {
        let dir = dir(kind);
        dir.run(&format!("build -q --type {kind} -n 1000 -p 1e-6 -o g b")).ok();
        dir.run("merge -o m f g").ok();
        assert_eq!(dir.run("check -c m a").text(), "1000\n");
        dir.run("remove m b").ok();
        assert_eq!(dir.run("check -c m a").text(), "1000\n", "each line once");
        dir.run("remove m b").ok();
        assert!(dir.run("check m a").ok() == dir.read("c"));
    }
}

#[test]
fn width_and_memory() {
    let dir = dir("counting");
    for width in [2, 8] {
        let args = format!("build -q --type counting --width {width} -p 1e-6 -o g a");
        dir.run(&args).ok();
        let info = json(&dir, "info --json g");
        assert_eq!((&info["layout"]["width"], &info["type"]), (&width.into(), &"counting".into()));
    }
    let line = dir.run("build --width 4 -o g a").failure();
    assert!(line.contains("--width: a bloom filter has no counters"), "{line}");
    assert_eq!(dir.run("build --type counting --width 9 -o g a").code, Some(2));
    for (kind, _) in TYPES {
        dir.run(&format!("build -q --type {kind} -n 100000 --size 256K -o g a")).ok();
        let size = json(&dir, "info --json g")["size_bytes"].as_u64().unwrap();
        assert!(size <= 256 << 10 && size > 250 << 10, "{kind} {size}");
        let line = dir.run(&format!("build --type {kind} -n 1e6 -p 1% --size 1M -o h a")).failure();
        assert!(line.contains("more than 1 MiB, the limit; raise --size"), "{line}");
    }
}

/// At 10 % many lines have the same hash in the table, and each needs its own copy.
#[test]
fn quotient_remove_affects_no_other_line() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..20_000);
    write_lines(&dir.files.file("half"), 0..10_000);
    write_lines(&dir.files.file("rest"), 10_000..20_000);
    for args in ["-n 20_000", "-n 2000 --growing", "", "-n 20_000 --keyed"] {
        dir.run(&format!("build -q --type quotient -p 10% {args} -o f a")).ok();
        let output = dir.run("remove f half");
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{args}");
        assert_eq!(dir.run("check -c f rest").text(), "10000\n", "{args}");
        let output = dir.run("remove f rest");
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{args}");
        assert_eq!(dir.run("check -c f a").out, b"0\n", "{args}");
    }
}

#[test]
fn line_added_twice_is_removed_twice() {
    for kind in ["counting", "counting-classic", "quotient", "vector-quotient"] {
        let dir = TestDir::new();
        dir.run_with(&format!("build -q --type {kind} -n 10 -o f -"), b"a\na\nb\n").ok();
        for left in ["a\nb\n", "b\n"] {
            dir.run_with("remove f -", b"a\n").ok();
            assert_eq!(dir.run_with("check f -", b"a\nb\n").text(), left, "{kind}");
        }
        dir.run_with("add f -", b"b\n").ok();
        dir.run_with("remove f -", b"b\n").ok();
        assert_eq!(dir.run_with("check f -", b"a\nb\n").text(), "b\n", "{kind}");
    }
}

/// `seen` inserts a repeated line only once.
#[test]
fn repeated_lines_do_not_fill_a_quotient_filter() {
    for kind in ["quotient", "vector-quotient"] {
        let dir = TestDir::new();
        write_lines(&dir.files.file("a"), 0..1000);
        dir.run_with(&format!("build -q --type {kind} -n 1000 -p 1e-6 -o f -"), b"").ok();
        assert!(dir.run("seen f a").ok() == dir.read("a"));
        for _ in 0..3 {
            assert_eq!(dir.run("seen f a").ok(), b"");
        }
        dir.run("remove f a").ok();
        assert_eq!(dir.run("check -c f a").out, b"0\n");
        write_lines(&dir.files.file("many"), 5000..9000);
        assert!(dir.run("seen -c f many").failure().contains("f: full at "), "{kind}");
    }
}

/// A counter that reaches its maximum is never decremented; a note reports it.
#[test]
fn saturated_counters_give_a_note() {
    let dir = TestDir::new();
    let often: String = (0..50).flat_map(|_| (0..5).map(|line| format!("{line}\n"))).collect();
    dir.write("often", &often);
    for kind in ["counting", "counting-classic"] {
        for (width, at, further) in [(2, 2, "--width 8, or"), (4, 8, "--width 8, or")] {
            let message = format!(" counters are saturated at {at} and never decremented: ");
            let output = dir.run(&format!("build --type {kind} --width {width} -o f often"));
            assert!(
                output.err.contains(&message) && output.err.contains(further),
                "{}",
                output.err
            );
            let info = dir.run("info f").text();
            let row = info.lines().find(|line| line.starts_with("counters  ")).expect("a row");
            assert!(
                !row.contains("  0 saturated")
                    && row.contains(&format!(" saturated at {at}, never")),
                "{row}"
            );
            assert!(dir.run("remove f often").err.contains(&message));
            assert_eq!(dir.run("check -c f often").text(), "250\n");
            assert_eq!(dir.run("remove -q f often").err, "");
        }
        let output = dir.run(&format!("build --type {kind} --width 8 -o f often"));
        assert_eq!(output.err, "");
        assert!(
            dir.run("info f").text().contains("\ncounters  0 saturated at 128, never decremented")
        );
        assert!(dir.run("add f often often often").err.contains("build with --type quotient"));
        // No note for the few counters that are saturated by chance.
        write_lines(&dir.files.file("once"), 0..20_000);
        for width in [2, 3, 4] {
            let output = dir.run(&format!("build --type {kind} --width {width} -o f once"));
            assert_eq!(output.err, "", "{kind} {width}");
        }
    }
}
