//! `dedup --dupes-output`: the answer and the rest are the input, line for line; and what comes of
//! outputs that end early.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::collections::HashSet;

use kit::pack::gz;
use kit::{Place, STRATEGIES, VERBS, overlapping, write_lines};
use petal_testkit::model::{LF, NUL, join, lines};
use petal_testkit::nasty::{Recipe, related};

/// First appearances, and the later ones.
fn split(inputs: &[&[u8]], delimiter: u8) -> [Vec<u8>; 2] {
    let mut seen = HashSet::new();
    let all = inputs.iter().flat_map(|input| lines(input, delimiter));
    let (first, later): (Vec<_>, Vec<_>) = all.partition(|line| seen.insert(*line));
    [join(first, delimiter), join(later, delimiter)]
}

#[test]
fn answer_and_duplicates_are_the_input() {
    for (delimiter, flag) in [(LF, ""), (NUL, "-z")] {
        for seed in 0..8 {
            let place = Place::new();
            let files = related(seed, Recipe { delimiter, ..Recipe::small() });
            let inputs: Vec<_> = files.iter().take(3).map(Vec::as_slice).collect();
            place.write("a", inputs[0]);
            place.write("b", inputs[1]);
            place.write("c", gz(inputs[2]));
            let [first, later] = split(&inputs, delimiter);
            for strategy in STRATEGIES {
                let words = format!("dedup {flag} {strategy} -m 8M --dupes-output later a b c");
                assert!(place.run(&words).ok() == first, "seed {seed}: {words}");
                assert!(place.read("later") == later, "seed {seed}: {words}");
                place.run(&format!("{words} -o first")).ok();
                assert!(place.read("first") == first && place.read("later") == later, "{words}");
                let counted = place.run(&format!("{words} -c")).text();
                let count = lines(&first, delimiter).len();
                assert_eq!(counted, format!("{count}\n"), "seed {seed}: {words}");
                assert!(place.read("later") == later, "seed {seed}: {words}");
            }
        }
    }
}

/// Large enough to be printed from marks, in many chunks.
#[test]
fn the_same_when_it_spills_and_through_pipes() {
    let place = Place::new();
    let [a, b] = overlapping(400_000, 30, 8);
    write_lines(&place.files.file("a"), a);
    write_lines(&place.files.file("b"), b);
    let mut whole = place.read("b");
    // The last line has no end, and comes up again at the end of the next input.
    whole.pop();
    place.write("b", &whole);
    let [first, later] = split(&[&place.read("a"), &whole, &whole], LF);
    for strategy in STRATEGIES {
        for names in ["a b b", "a <(cat b) b"] {
            let script =
                format!("$petal dedup -q -m 8M {strategy} --dupes-output later -o first {names}");
            place.sh(&script).ok();
            assert!(place.read("first") == first && place.read("later") == later, "{script}");
        }
    }
}

#[test]
fn an_approximate_answer_and_its_rest_are_the_input() {
    let place = Place::new();
    let [a, _] = overlapping(300_000, 30, 9);
    write_lines(&place.files.file("a"), a);
    let a = place.read("a");
    place.run("dedup --approx -q -p 0.05 -o first --dupes-output later a").ok();
    let (first, later) = (place.read("first"), place.read("later"));
    let mut both = [lines(&first, LF), lines(&later, LF)].concat();
    let mut all = lines(&a, LF);
    for part in [&first, &later] {
        let mut rest = all.iter();
        assert!(lines(part, LF).iter().all(|line| rest.any(|other| other == line)), "order");
    }
    both.sort_unstable();
    all.sort_unstable();
    assert!(both == all && lines(&later, LF).len() > 6000);
}

#[test]
fn nobody_reads_on_or_the_disk_is_full_in_every_strategy() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..200_000);
    write_lines(&place.files.file("b"), (0..200_000).map(|at| at * 2));
    for verb in VERBS {
        for strategy in STRATEGIES {
            for jobs in [1, 4] {
                let words = format!("\"$petal\" {verb} {strategy} -m 8M -j {jobs} a b");
                let ran = place.sh(&format!("{words} | head -n 1; exit ${{PIPESTATUS[0]}}"));
                assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{words}");
                assert_eq!(ran.out.iter().filter(|&&byte| byte == LF).count(), 1, "{words}");
                let line = place.sh(&format!("{words} > /dev/full")).trouble();
                assert!(line.contains("no space left"), "{words}: {line}");
            }
        }
    }
}

/// An output that is a file is whole, or its lack is said.
#[test]
fn a_reader_of_one_output_that_is_gone_is_trouble_for_the_other() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..200_000);
    for strategy in STRATEGIES {
        for script in [
            "{} --dupes-output later a a | head -n 1; exit ${PIPESTATUS[0]}",
            "mkfifo pipe; head -n 1 pipe & {} --dupes-output pipe -o later a a > later.out; \
             r=$?; wait; rm -f pipe later.out; exit $r",
        ] {
            let petal = format!("\"$petal\" dedup {strategy} -m 8M");
            let script = script.replace("{}", &petal);
            let ran = place.sh(&script);
            assert_eq!(ran.code, Some(2), "{script}: {}", ran.err);
            assert!(ran.err.contains("reader"), "{script}: {}", ran.err);
            assert!(!place.files.file("later").exists(), "{script}");
        }
        let line = place.run(&format!("dedup {strategy} --dupes-output /dev/full a a -o out"));
        assert!(line.trouble().contains("no space left") && !place.files.file("out").exists());
    }
}
