//! `plan VERB INPUTS`: what is foretold comes true.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::pack::gz;
use kit::{Place, overlapping, write_lines};
use serde_json::Value;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// Few enough to be sampled whole: what a sample of more can miss is not the forecast's business.
const LINES: u64 = 40_000;

/// Two files of which a share of the lines is in both.
fn place(percent: u64) -> Place {
    let place = Place::new();
    let [a, b] = overlapping(LINES, percent, 5);
    write_lines(&place.files.file("a"), a);
    write_lines(&place.files.file("b"), b);
    place
}

/// Whether two numbers are within 20 %, or both next to nothing.
fn near(foretold: f64, found: f64, nothing: f64) -> bool {
    (foretold - found).abs() <= found.max(foretold) / 5.0 || foretold.max(found) <= nothing
}

#[test]
fn what_is_foretold_comes_true() {
    for percent in [5, 40] {
        let place = place(percent);
        for verb in ["common a b", "diff a b", "dedup a b"] {
            for way in ["", "--strategy narrow", "--strategy partition", "--strategy memory"] {
                for cap in ["8M", "32M"] {
                    // Memory that overflows is put right on the way, and not foretold.
                    if way.ends_with("memory") && cap == "8M" {
                        continue;
                    }
                    let words = format!("{verb} {way} -m {cap}");
                    let plan = json(&place.run(&format!("plan {words} --json")).ok());
                    place.run(&format!("{words} -o out --report told")).ok();
                    let told = json(&place.read("told"));
                    let both = |field: &str, other: &str| {
                        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
                        (number(&plan[field]), number(&told[other]))
                    };
                    assert_eq!(plan["strategy"], told["strategy"], "{words}: {plan} {told}");
                    for (field, other, nothing) in [
                        ("passes", "passes", 0.0),
                        ("bytes_read", "bytes_read", 0.0),
                        // At the least cap a few megabytes more or less decide.
                        ("spilled", "spilled", 4e6),
                        ("candidates", "candidates", 100.0),
                        ("kept", "kept", 0.0),
                    ] {
                        let (foretold, found) = both(field, other);
                        let same = near(foretold, found, nothing);
                        assert!(same, "{percent} %, {words}: {field}: {foretold}, found {found}");
                    }
                }
            }
        }
    }
}

/// Lines that are repeated: the estimate may be far off, the bounds are not.
#[test]
fn the_bounds_of_distinct_lines_hold() {
    let place = Place::new();
    let urls = |line: u64| format!("https://example.org/{}/{}\n", line % 97, line * line % 9973);
    type Key = fn(u64) -> u64;
    let sets: [(&str, Key, u64); 3] = [
        ("equal", |_| 7, 1),
        ("values", |line| line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40, 1000),
        ("runs", |line| line / 500, 1400),
    ];
    let lines = 700_000;
    for (name, key, kinds) in sets {
        let text: String = (0..lines).map(|line| format!("{:07}\n", key(line) % kinds)).collect();
        place.write(name, text);
    }
    place.write("urls", (0..lines).map(urls).collect::<String>());
    for name in ["equal", "values", "runs", "urls"] {
        let found: u64 = place.run(&format!("dedup -c {name}")).text().trim().parse().unwrap();
        let plan = json(&place.run(&format!("plan dedup {name} --json")).ok());
        let range = |value: &Value| [0, 1].map(|end| value[end].as_u64().unwrap());
        for [least, most] in
            [range(&plan["inputs"][0]["distinct_range"]), range(&plan["kept_range"])]
        {
            assert!(least <= found && found <= most && least < most, "{name}: {found}: {plan}");
        }
        let text = place.run(&format!("plan dedup {name}")).text();
        assert_eq!(text.matches(" (at least ").count(), 2, "{text}");
        for (verb, verb_name) in [("common", "urls"), ("diff", "urls")] {
            let words = format!("{verb} {name} {verb_name}");
            let found: u64 = place.run(&format!("{words} -c")).text().trim().parse().unwrap();
            let plan = json(&place.run(&format!("plan {words} --json")).ok());
            let [least, most] = range(&plan["kept_range"]);
            assert!(least <= found && found <= most, "{words}: {found}: {plan}");
        }
    }
    // All lines are sampled: the numbers are exact.
    place.write("few", "a\nb\na\n");
    let plan = json(&place.run("plan dedup few --json").ok());
    assert_eq!(plan["inputs"][0]["distinct_range"], serde_json::json!([2, 2]));
    assert!(!place.run("plan dedup few").text().contains("at least"));
}

#[test]
fn it_says_so_in_words_and_what_it_cannot_foretell() {
    let place = place(10);
    let text = place.run("plan common a b -m 16M").text();
    for word in ["lines of", "strategy", "passes", "reads", "spills", "false", "time"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    place.write("packed", gz(&place.read("a")));
    assert!(place.run("plan dedup packed").text().contains("lines of"));
    assert!(place.run("plan common a b -c").text().contains("passes"));
    let line = place.run_with("plan common a -", b"x\n").trouble();
    assert!(line.contains("is no file"), "{line}");
    assert!(place.run("plan common a").trouble().contains("name B"));
    assert!(place.run("plan common a nothing").trouble().contains("nothing"));
    assert_eq!(place.run("plan common a b -n 5").code, Some(2));
}
