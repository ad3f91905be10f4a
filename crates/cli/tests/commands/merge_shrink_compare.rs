//! `merge` of different sizes, `shrink` and `compare`.

use crate::common::{TestDir, write_lines};

/// A directory with `a` and `b`, 10,000 lines each, 4,000 of them in both; their filters `fa` and
/// `fb` of one size, and `large`, a filter of `a` whose size is a multiple of that.
fn dir(kind: &str) -> TestDir {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..10_000);
    write_lines(&dir.files.file("b"), 6_000..16_000);
    let build = |args: &str| dir.run(&format!("build -q --type {kind} {args}")).ok();
    build("-p 0.001 -n 20_000 -o fa a");
    build("-p 0.001 -n 20_000 -o fb b");
    dir
}

fn json(dir: &TestDir, args: &str) -> serde_json::Value {
    serde_json::from_str(&dir.run(args).text()).unwrap()
}

fn size(dir: &TestDir, filter: &str) -> u64 {
    json(dir, &format!("info --json {filter}"))["size_bytes"].as_u64().unwrap()
}

/// A number of blocks or bits with many divisors.
fn divisor(dir: &TestDir, filter: &str, kind: &str) -> u64 {
    let shape = &json(dir, &format!("info --json {filter}"))["layout"];
    let extent = shape[if kind == "bloom" { "blocks" } else { "bits" }].as_u64().unwrap();
    (2..).find(|by| extent.is_multiple_of(*by)).unwrap()
}

#[test]
fn shrink_keeps_lines_and_reaches_the_rate() {
    for kind in ["bloom", "classic"] {
        let dir = dir(kind);
        // The capacity is five times the number of lines, so the filter can be shrunk.
        dir.run(&format!("build -q --type {kind} -p 0.001 -n 100_000 -o big a")).ok();
        dir.run("shrink big -o small").ok();
        assert!(size(&dir, "small") * 3 < size(&dir, "big"), "{kind}");
        assert_eq!(dir.run("check -c small a").text(), "10000\n");
        let rate = |filter: &str| {
            json(&dir, &format!("info --json {filter}"))["estimated_fpr"].as_f64().unwrap()
        };
        assert!(rate("big") < 1e-4 && rate("small") <= 0.001, "{kind}");
        dir.run("shrink big -o smaller -p 5%").ok();
        assert!(size(&dir, "smaller") < size(&dir, "small") && rate("smaller") <= 0.05);
        assert_eq!(dir.run("check -c smaller a").text(), "10000\n");
        assert_eq!(dir.run("verify smaller").text(), "smaller: valid\n");
        // The metadata are kept.
        assert_eq!(
            json(&dir, "info --json small")["metadata"],
            json(&dir, "info --json big")["metadata"]
        );
        // The result of --factor is equal to a filter built at that size.
        let by = divisor(&dir, "big", kind);
        dir.run(&format!("shrink big -o part --factor {by}")).ok();
        assert!(size(&dir, "part").abs_diff(size(&dir, "big") / by) < 64);
        assert_eq!(dir.run("check -c part a").text(), "10000\n");
        let no = dir.run(&format!("shrink big -o part --factor {}", 1_000_000_007)).failure();
        assert!(no.contains("big: --factor: 1,000,000,007 does not divide its"), "{no}");
        // A size that is too small for the rate gives a warning.
        let output =
            dir.run(&format!("shrink smaller -o part --factor {}", divisor(&dir, "smaller", kind)));
        assert!(output.code == Some(0), "{}", output.err);
        assert!(
            output.err.contains("warning: the estimated false-positive rate is "),
            "{}",
            output.err
        );
        // A filter that cannot be smaller is written with a note.
        let output = dir.run("shrink small -o same");
        assert!(
            output.err.starts_with("petal: note: small cannot be smaller than "),
            "{}",
            output.err
        );
        assert!(dir.run("check -c same a").text() == "10000\n");
        let no = dir.run("shrink big -o none -p 1e-13").failure();
        assert!(
            no.contains("big: cannot shrink to a rate of 1.00e-13: the filter's estimated rate is")
                && no.ends_with("; specify a higher rate with -p")
                && !dir.files.file("none").exists(),
            "{no}"
        );
        assert!(dir.run("shrink big -o big").failure().contains("same file"));
        assert!(dir.run("shrink -m 8K big -o none").failure().contains("raise -m"));
        assert!(dir.run("shrink a -o none").failure().contains("a: not a petal file"));
        assert_eq!(dir.run("shrink big -o none -p 5% --factor 2").code, Some(2));
    }
}

#[test]
fn filters_of_different_sizes_are_merged_at_a_common_one() {
    for kind in ["bloom", "classic"] {
        let dir = dir(kind);
        let by = divisor(&dir, "fb", kind);
        dir.run(&format!("shrink fb -o half --factor {by}")).ok();
        for args in ["fa half", "half fa"] {
            let output = dir.run(&format!("merge -o both {args}"));
            let folds = args.starts_with("fa");
            assert_eq!(output.err.contains("note: folded from"), folds, "{}", output.err);
            assert_eq!(size(&dir, "both"), size(&dir, "half"));
            assert_eq!(dir.run("check -c both a b").text(), "20000\n");
        }
        // Equal to the merge of filters that were shrunk first.
        dir.run(&format!("shrink fa -o halfa --factor {by}")).ok();
        dir.run("merge -q -o expect halfa half").ok();
        let rate =
            |filter: &str| json(&dir, &format!("info --json {filter}"))["fill_ratio"].clone();
        assert_eq!(rate("both"), rate("expect"));
    }
}

#[test]
fn compare_estimates_the_overlap() {
    for kind in ["bloom", "classic"] {
        let dir = dir(kind);
        let found = json(&dir, "compare --json fa fb");
        for (name, expect) in [("union", 16_000.0), ("intersection", 4_000.0), ("jaccard", 0.25)] {
            let number = |field: &str| found[name][field].as_f64().unwrap();
            let (value, error) = (number("value"), number("error"));
            assert!(
                (value - expect).abs() <= 5.0 * error && error < expect / 10.0,
                "{kind} {name}: {value} {error}"
            );
        }
        assert_eq!((&found["left"]["file"], &found["right"]["type"]), (&"fa".into(), &kind.into()));
        let text = dir.run("compare fa fb").text();
        for (name, value) in
            [("left  ", "fa: 10,"), ("right  ", "fb: "), ("both  ", ""), ("jaccard", "2")]
        {
            let line = text.lines().find(|line| line.starts_with(name)).expect(name);
            assert!(line[name.len()..].trim_start().starts_with(value), "{line}");
            assert!(line.contains(" +- "), "{line}");
        }
        let itself = json(&dir, "compare --json fa fa");
        assert_eq!(itself["jaccard"]["value"], 1.0);
        // Sizes may differ; types and hashes must be equal.
        let by = divisor(&dir, "fb", kind);
        dir.run(&format!("shrink fb -o half --factor {by}")).ok();
        let jaccard = json(&dir, "compare --json half fa")["jaccard"]["value"].as_f64().unwrap();
        assert!((jaccard - 0.25).abs() < 0.05, "{jaccard}");
        let other = if kind == "bloom" { "classic" } else { "bloom" };
        dir.run(&format!("build -q --type {other} -o other a")).ok();
        let line = dir.run("compare fa other").failure();
        assert!(line.contains("other: ") && line.contains(kind) && line.contains(other), "{line}");
        dir.run(&format!("build -q --type {kind} -p 0.001 -n 20_000 --seed 7 -o seeded a")).ok();
        assert!(
            dir.run("compare fa seeded")
                .failure()
                .contains("seeded: the filters differ in their hash")
        );
        assert!(dir.run("compare fa a").failure().contains("a: not a petal file"));
        assert!(dir.run("compare fa missing").failure().contains("missing: cannot read"));
    }
}

#[test]
fn compare_of_sizes_with_small_common_divisor_is_unknown() {
    let dir = dir("bloom");
    // 395 and 1,973 blocks; 1,973 is a prime, so the greatest common divisor is 1.
    dir.run("build -q -n 20_000 -o small a").ok();
    dir.run("build -q -n 100_000 -o large b").ok();
    let found = json(&dir, "compare --json small large");
    for (side, keys) in [("left", 10_000.0), ("right", 10_000.0)] {
        let known = found[side]["keys"]["value"].as_f64().unwrap();
        assert!((known - keys).abs() < 300.0, "{found}");
        assert!(found[side]["only_keys"].is_null(), "{found}");
    }
    for name in ["union", "intersection", "jaccard"] {
        assert!(found[name]["value"].is_null() && found[name]["error"].is_null(), "{found}");
    }
    let text = dir.run("compare small large").text();
    assert!(
        text.contains("\nboth        unknown: the common size of both is too small\n"),
        "{text}"
    );
    assert!(text.starts_with("left        small: ") && !text.contains("full"), "{text}");
    let no = dir.run("shrink small -o x --factor 2").failure();
    assert!(no.ends_with("--factor: 2 does not divide its 395 blocks; use 5"), "{no}");
    // A full filter is reported.
    dir.run("build -q -n 10 -o full a").ok();
    dir.write("line", "x\n");
    dir.run("build -q -n 10 -o one line").ok();
    let text = dir.run("compare full one").text();
    assert!(text.starts_with("left        full: full; bloom"), "{text}");
    assert!(text.contains("jaccard     unknown: a filter is full"), "{text}");
    for args in ["--type quotient", "--growing", "--type static"] {
        dir.run(&format!("build -q {args} -o other a")).ok();
        let line = dir.run("compare small other").failure();
        assert!(
            line.contains("other: a ") && line.contains("cannot be compared; only bloom"),
            "{line}"
        );
    }
    dir.run("build -q --type counting -o counting a").ok();
    let line = dir.run("merge -o x small counting").failure();
    assert!(
        line.contains("counting: a counting filter") && line.contains("petal freeze"),
        "{line}"
    );
}

/// Lines that are in both filters stay when those of one filter are removed.
#[test]
fn merged_filter_keeps_the_lines_of_each_when_those_of_the_other_are_removed() {
    let dir = TestDir::new();
    let lines = |range: std::ops::Range<u32>| range.map(|n| format!("{n}\n")).collect::<String>();
    dir.write("a", lines(0..2000));
    dir.write("b", lines(1500..3500));
    for kind in ["quotient", "vector-quotient", "counting", "counting-classic"] {
        for name in ["a", "b"] {
            dir.run(&format!("build -q --type {kind} -n 5000 -p 1e-3 -o {name}.petal {name}")).ok();
        }
        dir.run("merge -o both a.petal b.petal").ok();
        dir.run("remove -q both a").ok();
        assert_eq!(dir.run("check -c both b").text(), "2000\n", "{kind}");
    }
    let text = dir.run("info b.petal").text();
    assert!(text.contains(" distinct; "), "{text}");
    dir.run("build -q --type vector-quotient -n 5000 -o vqf a a").ok();
    let text = dir.run("info vqf").text();
    assert!(text.contains("4,000 with copies\n"), "{text}");
}

/// Suggested factors are near the one that was given.
#[test]
fn useful_factors_are_suggested() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    // A prime number of blocks, and a power of two.
    for (bits, factor, advice) in [
        (6143 * 512, 7, "does not divide its 6,143 blocks; nor does a factor near it"),
        (4096 * 512, 7, "does not divide its 4,096 blocks; use 4 or 8"),
        (6143 * 512, 6000, "use 6,143"),
        (1009 * 2 * 512, 7, "does not divide its 2,018 blocks; use 2"),
    ] {
        dir.run(&format!("build -q -o f --bits {bits} -k 8 a")).ok();
        let line = dir.run(&format!("shrink f -o g --factor {factor}")).failure();
        assert!(line.contains(advice), "{line}");
    }
    assert_eq!(dir.run("shrink f -o g --factor 1").code, Some(2));
    dir.run("shrink f -o g --factor 1,009").ok();
}
