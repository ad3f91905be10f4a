//! Filters that lines can be taken out of again.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::{Place, write_lines};

const TYPES: [(&str, &str); 2] = [("counting", "bloom"), ("counting-classic", "classic")];

/// Lists `a` (1,000 lines), `b` (500 of them), `c` (the others), `x` (strangers), and a counting
/// filter `f` of `a`.
fn place(kind: &str) -> Place {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..1000);
    write_lines(&place.files.file("b"), 0..500);
    write_lines(&place.files.file("c"), 500..1000);
    write_lines(&place.files.file("x"), 5000..5100);
    place.run(&format!("build -q --type {kind} -p 1e-6 -o f a")).ok();
    place
}

fn json(place: &Place, words: &str) -> serde_json::Value {
    serde_json::from_str(&place.run(words).text()).unwrap()
}

#[test]
fn what_is_removed_is_gone_and_nothing_else() {
    for (kind, _) in TYPES {
        let place = place(kind);
        for jobs in [1, 4] {
            place.run(&format!("build -q --type {kind} -p 1e-6 -o f a")).ok();
            let ran = place.run(&format!("remove -j {jobs} f b"));
            assert_eq!((ran.code, ran.err.as_str(), ran.out.len()), (Some(0), "", 0));
            assert!(place.run("check f a").ok() == place.read("c"));
            assert_eq!(place.run("verify f").text(), "f: sound\n");
            // As if they had never come.
            place.run(&format!("build -q --type {kind} -n 1000 -p 1e-6 -o g c")).ok();
            assert!(place.read("f") == place.read("g"), "{kind}");
        }
        // A line that came twice is there until it is removed twice.
        place.run("add f c").ok();
        place.run("remove f c").ok();
        assert!(place.run("check f a").ok() == place.read("c"));
        place.run_with("remove f -", &place.read("c")).ok();
        assert_eq!(place.run("check -c f a").out, b"0\n");
        // Next to nothing: a counter that came to its end stays there.
        assert!(json(&place, "info --json f")["fill_ratio"].as_f64().unwrap() < 0.001);
    }
}

#[test]
fn lines_that_were_not_in_it_are_counted_and_listed() {
    for (kind, _) in TYPES {
        let place = place(kind);
        let ran = place.run("remove f x b x");
        assert_eq!(ran.err, "petal: note: 200 of 700 lines were not in the filter\n");
        assert_eq!((ran.code, ran.out.len()), (Some(0), 0));
        assert_eq!(place.run("remove -q f x").err, "");
        let x = place.read("x");
        for missing in ["gone", "-"] {
            place.run(&format!("build -q --type {kind} -p 1e-6 -o f a")).ok();
            let ran = place.run(&format!("remove -q f b x --missing {missing}"));
            let out = ran.ok();
            assert!(if missing == "-" { out } else { place.read(missing) } == x);
            assert!(place.run("check f a").ok() == place.read("c"));
        }
        place.run("remove f c --missing none").ok();
        assert_eq!(place.read("none"), b"");
    }
}

#[test]
fn trouble_leaves_the_filter_as_it_was() {
    let place = place("counting");
    let before = kit::look(&place.files.file("f"));
    for (words, says) in [
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
        // What is missing is written only if something is.
        let words = words.replace("f b --missing /dev", "f x --missing /dev");
        let line = place.run(&words).trouble();
        assert!(line.contains(says), "{words}: {line}");
        assert!(kit::look(&place.files.file("f")) == before, "{words}");
    }
    write_lines(&place.files.file("many"), 10_000..200_000);
    let ran = place.sh("\"$petal\" remove f many --missing - | true; exit ${PIPESTATUS[0]}");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("nothing was removed"), "{}", ran.err);
    assert!(kit::look(&place.files.file("f")) == before);
    // Another run has it.
    place.write("f.lock", "");
    let script = "exec 9<f.lock; flock 9; \"$petal\" remove f b";
    assert!(place.sh(script).trouble().contains("another run is using it"));
    assert!(kit::look(&place.files.file("f")) == before);
}

#[test]
fn frozen_it_is_the_plain_filter() {
    for (kind, plain) in TYPES {
        let place = place(kind);
        place.run("freeze f -o frozen").ok();
        place.run(&format!("build -q --type {plain} -p 1e-6 -o plain a")).ok();
        assert!(place.read("frozen") == place.read("plain"), "{kind}");
        let size =
            |filter: &str| json(&place, &format!("info --json {filter}"))["size_bytes"].as_u64();
        assert_eq!(size("f").unwrap(), size("plain").unwrap() * 4);
        // Plain and counting ones can be compared, but not united.
        assert_eq!(json(&place, "compare --json f plain")["jaccard"]["value"], 1.0);
        assert!(place.run("merge -o m f plain").trouble().contains("plain: "));
        assert!(place.run("freeze plain -o g").trouble().contains("plain: a "));
        assert!(place.run("freeze f -o f").trouble().contains("same file"));
        assert!(place.run("shrink f -o g").trouble().contains("cannot be shrunk"));
        // Of what is left only.
        place.run("remove f b").ok();
        place.run("freeze f -o frozen").ok();
        assert!(place.run("check frozen a").ok() == place.read("c"));
    }
}

#[test]
fn counts_are_added_in_a_merge() {
    for (kind, _) in TYPES {
        let place = place(kind);
        place.run(&format!("build -q --type {kind} -n 1000 -p 1e-6 -o g b")).ok();
        place.run("merge -o m f g").ok();
        assert_eq!(place.run("check -c m a").text(), "1000\n");
        place.run("remove m b").ok();
        assert_eq!(place.run("check -c m a").text(), "1000\n", "once each is left");
        place.run("remove m b").ok();
        assert!(place.run("check m a").ok() == place.read("c"));
    }
}

#[test]
fn width_and_memory() {
    let place = place("counting");
    for width in [2, 8] {
        let words = format!("build -q --type counting --width {width} -p 1e-6 -o g a");
        place.run(&words).ok();
        let info = json(&place, "info --json g");
        assert_eq!((&info["shape"]["width"], &info["type"]), (&width.into(), &"counting".into()));
    }
    let line = place.run("build --width 4 -o g a").trouble();
    assert!(line.contains("--width: a bloom filter has no counters"), "{line}");
    assert_eq!(place.run("build --type counting --width 9 -o g a").code, Some(2));
    for (kind, _) in TYPES {
        place.run(&format!("build -q --type {kind} -n 100000 -m 256K -o g a")).ok();
        let size = json(&place, "info --json g")["size_bytes"].as_u64().unwrap();
        assert!(size <= 256 << 10 && size > 250 << 10, "{kind} {size}");
        let line = place.run(&format!("build --type {kind} -n 1e6 -p 1% -m 1M -o h a")).trouble();
        assert!(line.contains("more than 1 MiB, -m"), "{line}");
    }
}

/// At 10 % many lines have the fingerprint of another one: each needs a copy of its own.
#[test]
fn what_is_removed_from_a_quotient_filter_is_no_other_line() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..20_000);
    write_lines(&place.files.file("half"), 0..10_000);
    write_lines(&place.files.file("rest"), 10_000..20_000);
    for words in ["-n 20_000", "-n 2000 --growing", "", "-n 20_000 --keyed"] {
        place.run(&format!("build -q --type quotient -p 10% {words} -o f a")).ok();
        let ran = place.run("remove f half");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{words}");
        assert_eq!(place.run("check -c f rest").text(), "10000\n", "{words}");
        let ran = place.run("remove f rest");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{words}");
        assert_eq!(place.run("check -c f a").out, b"0\n", "{words}");
    }
}

#[test]
fn a_line_that_came_twice_is_there_until_it_is_removed_twice() {
    for kind in ["counting", "counting-classic", "quotient"] {
        let place = Place::new();
        place.run_with(&format!("build -q --type {kind} -n 10 -o f -"), b"a\na\nb\n").ok();
        for left in ["a\nb\n", "b\n"] {
            place.run_with("remove f -", b"a\n").ok();
            assert_eq!(place.run_with("check f -", b"a\nb\n").text(), left, "{kind}");
        }
        place.run_with("add f -", b"b\n").ok();
        place.run_with("remove f -", b"b\n").ok();
        assert_eq!(place.run_with("check f -", b"a\nb\n").text(), "b\n", "{kind}");
    }
}

/// Whoever only asks for what is new puts a line in once, however often it comes.
#[test]
fn lines_that_keep_coming_do_not_fill_a_quotient_filter() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..1000);
    place.run_with("build -q --type quotient -n 1000 -p 1e-6 -o f -", b"").ok();
    assert!(place.run("seen f a").ok() == place.read("a"));
    for _ in 0..3 {
        assert_eq!(place.run("seen f a").ok(), b"");
    }
    place.run("remove f a").ok();
    assert_eq!(place.run("check -c f a").out, b"0\n");
    write_lines(&place.files.file("many"), 5000..9000);
    assert!(place.run("seen -c f many").trouble().contains("f: full at 1,"));
}

/// A line that comes more often than a counter counts cannot be taken out again; that is said.
#[test]
fn counters_that_are_stuck_are_told() {
    let place = Place::new();
    let often: String = (0..50).flat_map(|_| (0..5).map(|line| format!("{line}\n"))).collect();
    place.write("often", &often);
    for kind in ["counting", "counting-classic"] {
        for (width, at, further) in [(2, 2, "--width 8, or"), (4, 8, "--width 8, or")] {
            let says = format!(" counters are stuck at {at} and never lowered: ");
            let ran = place.run(&format!("build --type {kind} --width {width} -o f often"));
            assert!(ran.err.contains(&says) && ran.err.contains(further), "{}", ran.err);
            let info = place.run("info f").text();
            let row = info.lines().find(|line| line.starts_with("counters  ")).expect("a row");
            assert!(!row.contains("  0 stuck") && row.contains(&format!("stuck at {at}")), "{row}");
            assert!(place.run("remove f often").err.contains(&says));
            assert_eq!(place.run("check -c f often").text(), "250\n");
            assert_eq!(place.run("remove -q f often").err, "");
        }
        let ran = place.run(&format!("build --type {kind} --width 8 -o f often"));
        assert_eq!(ran.err, "");
        assert!(place.run("info f").text().contains("\ncounters  0 stuck at 128"));
        assert!(place.run("add f often often often").err.contains("build --type quotient"));
        // What comes of chance is no matter for a note.
        write_lines(&place.files.file("once"), 0..20_000);
        for width in [2, 3, 4] {
            let ran = place.run(&format!("build --type {kind} --width {width} -o f once"));
            assert_eq!(ran.err, "", "{kind} {width}");
        }
    }
}
