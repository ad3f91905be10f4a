//! Lines that an adversary prepares to collide under the published hash do no harm where petal
//! draws a key: in approximate verbs, in `seen`, and in filters built with `--keyed`.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::Place;
use petal_testkit::collide::{RAPID, WIDE};

/// Lines of each family in a file.
const EACH: u64 = 500;
/// A rate at which no test sees a false positive.
const SURE: &str = "-p 1e-9";

/// Distinct lines of all families, `EACH` of each from number `first` on.
fn prepared(first: u64) -> Vec<u8> {
    let lines = |number| RAPID.map(|family| [family.key(number), b"\n".to_vec()].concat()).concat();
    (first..first + EACH).flat_map(lines).collect()
}

fn place() -> Place {
    let place = Place::new();
    place.write("a", prepared(0));
    place.write("b", prepared(EACH));
    place
}

#[test]
fn approximate_verbs_tell_prepared_lines_apart() {
    let place = place();
    for way in ["--approx -q", "--exact -q"] {
        let rate = if way.starts_with("--approx") { SURE } else { "" };
        let run = |words: &str| place.run(&format!("{words} {way} {rate}")).ok();
        assert!(run("dedup a") == place.read("a"), "dedup {way}");
        assert!(run("diff a b") == place.read("a"), "diff {way}");
        assert!(run("common a b").is_empty(), "common {way}");
        assert!(run("common b a a").is_empty(), "common {way} of three");
        assert!(run("common a a") == place.read("a"), "common {way} of a file with itself");
    }
    let noted = place.run(&format!("dedup --approx {SURE} -o /dev/null a")).err;
    let lost = noted.lines().last().and_then(|line| line.split("about ").nth(1)).expect("a note");
    let lost: f64 = lost.split(' ').next().unwrap().parse().unwrap();
    assert!(lost < 0.01, "{noted}");
}

#[test]
fn seen_tells_prepared_lines_apart() {
    for kind in ["-n 1e5", "-n 1e5 --window 1d", "--last 1e5", "-n 1e5 --exact"] {
        let place = place();
        let run = |words: &str| place.run(&format!("seen {words}")).ok();
        assert!(run(&format!("{kind} {SURE} f a")) == place.read("a"), "{kind}");
        assert!(run("f a b") == place.read("b"), "{kind}");
        assert!(place.run("info f").text().contains("siphash-1-3"), "{kind}");
        // Another file has another key.
        run(&format!("{kind} {SURE} g a b"));
        assert_ne!(place.read("f")[48..64], place.read("g")[48..64], "{kind}");
    }
}

/// Files of earlier versions, and those that `build` made, keep their hash.
#[test]
fn seen_keeps_the_hash_of_a_file() {
    let place = place();
    place.run(&format!("build -q -n 1e5 {SURE} -o f /dev/null")).ok();
    place.write("plain", "one\ntwo\n");
    assert_eq!(place.run("seen f plain").text(), "one\ntwo\n");
    assert_eq!(place.run("seen f plain").text(), "");
    assert!(place.run("info f").text().contains("rapidhash-v3\n"));
    // Of each family one line is new at most: this hash is public.
    let new: usize = place.run("seen -c f a").text().trim().parse().unwrap();
    assert!((1..=RAPID.len()).contains(&new), "{new}");
}

#[test]
fn keyed_filters_do_not_hold_prepared_strangers() {
    let place = place();
    let lines = EACH * RAPID.len() as u64;
    for kind in ["bloom", "classic", "counting", "quotient", "scalable", "static"] {
        for (keyed, found) in [("--keyed", 0), ("--seed 7", lines)] {
            // Equal fingerprints overflow a quotient filter: that is an error, no answer.
            if kind == "quotient" && found > 0 {
                continue;
            }
            let words = format!("build -q --type {kind} {SURE} {keyed} -o f a");
            place.run(&words).ok();
            let strangers = String::from_utf8(place.run("check -c f b").out).unwrap();
            assert_eq!(strangers, format!("{found}\n"), "{kind} {keyed}");
            assert_eq!(place.run("check -c f a").text(), format!("{lines}\n"), "{kind} {keyed}");
        }
    }
    place.write("a", WIDE.lines(EACH));
    place.write("b", WIDE.lines(2 * EACH));
    for (keyed, found) in [("--keyed", EACH), ("", 2 * EACH)] {
        place.run(&format!("build -q --type wide -p 1e-15 {keyed} -o f a")).ok();
        assert_eq!(place.run("check -c f b").text(), format!("{found}\n"), "wide {keyed}");
    }
}
