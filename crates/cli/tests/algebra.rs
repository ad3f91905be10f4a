//! Filters without their lines: united at different sizes, made smaller, compared.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::{Place, write_lines};

/// Lists `a` (10,000 lines) and `b` (10,000 lines), of which 4,000 are in both, and filters of
/// them: `fa` and `fb` of one size, `large` of `a` in a size to which that is a divisor.
fn place(kind: &str) -> Place {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..10_000);
    write_lines(&place.files.file("b"), 6_000..16_000);
    let build = |words: &str| place.run(&format!("build -q --type {kind} {words}")).ok();
    build("-p 0.001 -n 20_000 -o fa a");
    build("-p 0.001 -n 20_000 -o fb b");
    place
}

fn json(place: &Place, words: &str) -> serde_json::Value {
    serde_json::from_str(&place.run(words).text()).unwrap()
}

fn size(place: &Place, filter: &str) -> u64 {
    json(place, &format!("info --json {filter}"))["size_bytes"].as_u64().unwrap()
}

/// A number of blocks or bits that has many divisors.
fn divisor(place: &Place, filter: &str, kind: &str) -> u64 {
    let shape = &json(place, &format!("info --json {filter}"))["shape"];
    let extent = shape[if kind == "bloom" { "blocks" } else { "bits" }].as_u64().unwrap();
    (2..).find(|by| extent.is_multiple_of(*by)).unwrap()
}

#[test]
fn a_shrunk_filter_holds_the_same_lines_at_the_rate_asked_for() {
    for kind in ["bloom", "classic"] {
        let place = place(kind);
        // Planned for five times the lines: most of it is not needed.
        place.run(&format!("build -q --type {kind} -p 0.001 -n 100_000 -o big a")).ok();
        place.run("shrink big -o small").ok();
        assert!(size(&place, "small") * 3 < size(&place, "big"), "{kind}");
        assert_eq!(place.run("check -c small a").text(), "10000\n");
        let rate = |filter: &str| {
            json(&place, &format!("info --json {filter}"))["rate_now"].as_f64().unwrap()
        };
        assert!(rate("big") < 1e-4 && rate("small") <= 0.001, "{kind}");
        place.run("shrink big -o smaller -p 5%").ok();
        assert!(size(&place, "smaller") < size(&place, "small") && rate("smaller") <= 0.05);
        assert_eq!(place.run("check -c smaller a").text(), "10000\n");
        assert_eq!(place.run("verify smaller").text(), "smaller: sound\n");
        // Metadata go along.
        assert_eq!(
            json(&place, "info --json small")["metadata"],
            json(&place, "info --json big")["metadata"]
        );
        // By a divisor: as if built that small.
        let by = divisor(&place, "big", kind);
        place.run(&format!("shrink big -o part --by {by}")).ok();
        assert!(size(&place, "part").abs_diff(size(&place, "big") / by) < 64);
        assert_eq!(place.run("check -c part a").text(), "10000\n");
        let no = place.run(&format!("shrink big -o part --by {}", 1_000_000_007)).trouble();
        assert!(no.contains("big: --by: 1,000,000,007 does not divide its"), "{no}");
        // Smaller than is good is said.
        let ran =
            place.run(&format!("shrink smaller -o part --by {}", divisor(&place, "smaller", kind)));
        assert!(ran.code == Some(0), "{}", ran.err);
        assert!(ran.err.contains("warning: the false-positive rate is "), "{}", ran.err);
        // Nothing to gain is said, and done all the same.
        let ran = place.run("shrink small -o same");
        assert!(
            ran.err.starts_with("petal: note: small is as small as that allows"),
            "{}",
            ran.err
        );
        assert!(place.run("check -c same a").text() == "10000\n");
        let no = place.run("shrink big -o none -p 1e-13").trouble();
        assert!(no.contains("big: rate: ") && !place.files.file("none").exists(), "{no}");
        assert!(place.run("shrink big -o big").trouble().contains("same file"));
        assert!(place.run("shrink -m 8K big -o none").trouble().contains("raise -m"));
        assert!(place.run("shrink a -o none").trouble().contains("a: not a petal file"));
        assert_eq!(place.run("shrink big -o none -p 5% --by 2").code, Some(2));
    }
}

#[test]
fn filters_of_different_sizes_are_merged_at_a_common_one() {
    for kind in ["bloom", "classic"] {
        let place = place(kind);
        let by = divisor(&place, "fb", kind);
        place.run(&format!("shrink fb -o half --by {by}")).ok();
        for words in ["fa half", "half fa"] {
            let ran = place.run(&format!("merge -o both {words}"));
            let folds = words.starts_with("fa");
            assert_eq!(ran.err.contains("note: folded from"), folds, "{}", ran.err);
            assert_eq!(size(&place, "both"), size(&place, "half"));
            assert_eq!(place.run("check -c both a b").text(), "20000\n");
        }
        // Bit for bit what comes of folding first.
        place.run(&format!("shrink fa -o halfa --by {by}")).ok();
        place.run("merge -q -o expect halfa half").ok();
        let rate =
            |filter: &str| json(&place, &format!("info --json {filter}"))["fill_ratio"].clone();
        assert_eq!(rate("both"), rate("expect"));
    }
}

#[test]
fn compare_tells_what_two_filters_have_in_common() {
    for kind in ["bloom", "classic"] {
        let place = place(kind);
        let found = json(&place, "compare --json fa fb");
        for (name, expect) in [("union", 16_000.0), ("intersection", 4_000.0), ("jaccard", 0.25)] {
            let number = |field: &str| found[name][field].as_f64().unwrap();
            let (value, error) = (number("value"), number("error"));
            assert!(
                (value - expect).abs() <= 5.0 * error && error < expect / 10.0,
                "{kind} {name}: {value} {error}"
            );
        }
        assert_eq!((&found["left"]["file"], &found["right"]["type"]), (&"fa".into(), &kind.into()));
        let text = place.run("compare fa fb").text();
        for (name, value) in
            [("left  ", "fa: 10,"), ("right  ", "fb: "), ("both  ", ""), ("jaccard", "2")]
        {
            let line = text.lines().find(|line| line.starts_with(name)).expect(name);
            assert!(line[name.len()..].trim_start().starts_with(value), "{line}");
            assert!(line.contains(" +- "), "{line}");
        }
        let itself = json(&place, "compare --json fa fa");
        assert_eq!(itself["jaccard"]["value"], 1.0);
        // Sizes may differ, types and hashes may not.
        let by = divisor(&place, "fb", kind);
        place.run(&format!("shrink fb -o half --by {by}")).ok();
        let jaccard = json(&place, "compare --json half fa")["jaccard"]["value"].as_f64().unwrap();
        assert!((jaccard - 0.25).abs() < 0.05, "{jaccard}");
        let other = if kind == "bloom" { "classic" } else { "bloom" };
        place.run(&format!("build -q --type {other} -o other a")).ok();
        let line = place.run("compare fa other").trouble();
        assert!(line.contains("other: ") && line.contains(kind) && line.contains(other), "{line}");
        place.run(&format!("build -q --type {kind} -p 0.001 -n 20_000 --seed 7 -o seeded a")).ok();
        assert!(
            place
                .run("compare fa seeded")
                .trouble()
                .contains("seeded: the filters differ in their hash")
        );
        assert!(place.run("compare fa a").trouble().contains("a: not a petal file"));
        assert!(place.run("compare fa missing").trouble().contains("missing: cannot read"));
    }
}

#[test]
fn where_sizes_have_little_in_common_little_is_known() {
    let place = place("bloom");
    // 395 and 1,973 blocks, a prime: of both together one block is left.
    place.run("build -q -n 20_000 -o small a").ok();
    place.run("build -q -n 100_000 -o large b").ok();
    let found = json(&place, "compare --json small large");
    for (side, keys) in [("left", 10_000.0), ("right", 10_000.0)] {
        let known = found[side]["keys"]["value"].as_f64().unwrap();
        assert!((known - keys).abs() < 300.0, "{found}");
        assert!(found[side]["only_keys"].is_null(), "{found}");
    }
    for name in ["union", "intersection", "jaccard"] {
        assert!(found[name]["value"].is_null() && found[name]["error"].is_null(), "{found}");
    }
    let text = place.run("compare small large").text();
    assert!(
        text.contains("\nboth        unknown: their sizes have too little in common\n"),
        "{text}"
    );
    assert!(text.starts_with("left        small: ") && !text.contains("full"), "{text}");
    let no = place.run("shrink small -o x --by 2").trouble();
    assert!(no.ends_with("--by: 2 does not divide its 395 blocks; take 5"), "{no}");
    // One that is full is said to be.
    place.run("build -q -n 10 -o full a").ok();
    place.run("build -q -n 10 -o one -").ok();
    let text = place.run("compare full one").text();
    assert!(text.starts_with("left        full: full; bloom"), "{text}");
    assert!(text.contains("jaccard     unknown: a filter is full"), "{text}");
    for words in ["--type quotient", "--growing", "--type static", "--type wide"] {
        place.run(&format!("build -q {words} -o other a")).ok();
        let line = place.run("compare small other").trouble();
        assert!(line.contains("other: a ") && line.contains("cannot be compared; bloom"), "{line}");
    }
    place.run("build -q --type counting -o counting a").ok();
    let line = place.run("merge -o x small counting").trouble();
    assert!(
        line.contains("counting: a counting filter") && line.contains("petal freeze"),
        "{line}"
    );
}
