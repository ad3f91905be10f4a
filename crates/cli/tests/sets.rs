//! The set verbs print what the naive models print: the same bytes for any number of threads,
//! any cap, any strategy, any kind of input.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::{Place, STRATEGIES, VERBS, expected, overlapping, write_lines};
use petal_testkit::model::{LF, NUL};
use petal_testkit::nasty::{Recipe, related};

/// Three nasty files, and everything that can be asked of them.
fn nasty(delimiter: u8, flag: &str) {
    let place = Place::new();
    for seed in 0..6 {
        let recipe = Recipe { delimiter, ..Recipe::small() };
        let files = related(seed + 100 * u64::from(delimiter), recipe);
        for (name, file) in ["a", "b", "c"].iter().zip(&files) {
            place.write(name, file);
        }
        let inputs: Vec<_> = files.iter().map(Vec::as_slice).collect();
        let mut turn = seed as usize;
        for verb in VERBS {
            for count in [2, 3] {
                let expect = expected(verb, &inputs[..count], delimiter);
                let names = &"a b c"[..2 * count - 1];
                for strategy in STRATEGIES {
                    // Every number of threads and every cap comes up with every strategy.
                    turn += 1;
                    let (jobs, cap) = ([1, 2, 4][turn % 3], ["-m8M", "-m64M", ""][turn / 3 % 3]);
                    let words = format!("{verb} {flag} {strategy} -j {jobs} {cap} {names}");
                    assert!(place.run(&words).ok() == expect, "seed {seed}: {words}");
                }
                let lines = expect.iter().filter(|&&byte| byte == delimiter).count();
                let counted = place.run(&format!("{verb} {flag} -c {names}")).text();
                assert_eq!(counted, format!("{lines}\n"), "seed {seed}: {verb} {names}");
            }
        }
    }
}

#[test]
fn nasty_lines_equal_the_model() {
    nasty(LF, "");
}

#[test]
fn nasty_lines_that_end_in_nul_equal_the_model() {
    nasty(NUL, "-z");
}

#[test]
fn any_kind_of_input_gives_the_same() {
    let place = Place::new();
    for seed in [3, 8] {
        let files = related(seed, Recipe { max_lines: 2000, ..Recipe::small() });
        place.write("a", &files[0]);
        place.write("b", &files[1]);
        let inputs = [files[0].as_slice(), files[1].as_slice()];
        for verb in VERBS {
            let expect = expected(verb, &inputs, LF);
            for strategy in STRATEGIES {
                let verb = format!("$petal {verb} -q -m 8M {strategy}");
                for script in [
                    format!("{verb} - b < a"),
                    format!("{verb} a - < b"),
                    format!("cat a | {verb} - b"),
                    format!("cat b | {verb} a -"),
                    format!("{verb} <(cat a) <(cat b)"),
                ] {
                    assert!(place.sh(&script).ok() == expect, "seed {seed}: {script}");
                }
            }
        }
    }
}

#[test]
fn fifos_are_inputs() {
    let place = Place::new();
    let files = related(5, Recipe { max_lines: 3000, ..Recipe::small() });
    for (number, verb) in VERBS.into_iter().enumerate() {
        let names = ["a", "b"].map(|name| format!("{name}{number}"));
        place.fifo(&names[0], files[0].clone());
        place.fifo(&names[1], files[1].clone());
        let ran = place.run(&format!("{verb} -m 8M {} {}", names[0], names[1]));
        if verb != "dedup" {
            assert!(ran.err.contains("cannot be read twice"), "{}", ran.err);
        }
        assert!(ran.ok() == expected(verb, &[&files[0], &files[1]], LF), "{verb}");
    }
}

/// However a stream by name begins and ends, its lines are all there.
#[test]
fn writers_may_come_late_pause_or_say_nothing() {
    let place = Place::new();
    for (script, expect) in [
        ("mkfifo p; (sleep 0.3; printf 'b\\na\\nb\\n' > p) & $petal dedup p; rm p", "b\na\n"),
        ("mkfifo p; { printf 'a\\n'; sleep 0.3; echo b; } > p & $petal dedup p; rm p", "a\nb\n"),
        ("mkfifo p; sleep 0.3 > p & $petal dedup p; rm p", ""),
        ("mkfifo p; echo a > b; (sleep 0.3; echo a > p) & $petal common b p; rm p b", "a\n"),
        ("$petal dedup <(sleep 0.3) <(true) <(echo a)", "a\n"),
        ("true | $petal dedup /dev/stdin", ""),
        ("(sleep 0.3; echo a) | $petal dedup /dev/stdin", "a\n"),
    ] {
        assert_eq!(place.sh(script).ok(), expect.as_bytes(), "{script}");
    }
}

/// Large enough that 8 MiB do not hold it: strategies spill.
#[test]
fn every_overlap_spilled_or_not_gives_the_same_bytes() {
    let place = Place::new();
    for (percent, lines) in
        [(0, 300_000), (1, 400_000), (10, 500_000), (90, 400_000), (100, 300_000)]
    {
        let [a, b] = overlapping(lines, percent, percent + 1);
        write_lines(&place.files.file("a"), a);
        write_lines(&place.files.file("b"), b);
        let (a, b) = (place.read("a"), place.read("b"));
        for (number, verb) in VERBS.into_iter().enumerate() {
            let expect = expected(verb, &[&a, &b], LF);
            let narrow_or_partition = STRATEGIES[2 + (percent as usize / 10 + number) % 2];
            for (jobs, rest) in [(1, "-m 8M"), (4, "-m 8M"), (2, "-m 64M"), (2, "")] {
                let words = format!("{verb} -j {jobs} {rest} a b");
                assert!(place.run(&words).ok() == expect, "{percent} %: {words}");
            }
            for strategy in [STRATEGIES[1], narrow_or_partition] {
                let words = format!("{verb} {strategy} -j 2 -m 8M a b");
                assert!(place.run(&words).ok() == expect, "{percent} %: {words}");
            }
        }
    }
}

#[test]
fn a_pipe_too_large_for_memory_goes_on_as_partitions() {
    let place = Place::new();
    let [a, b] = overlapping(500_000, 50, 4);
    write_lines(&place.files.file("a"), a);
    write_lines(&place.files.file("b"), b);
    let (a, b) = (place.read("a"), place.read("b"));
    for verb in VERBS {
        let script = format!("$petal {verb} -q -m 8M -j 4 <(cat a) <(cat b)");
        assert!(place.sh(&script).ok() == expected(verb, &[&a, &b], LF), "{verb}");
    }
}

#[test]
fn the_real_lists_have_113_hosts_in_common() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    let [a, b] = ["a.txt", "b.txt"].map(|name| format!("{data}/{name}"));
    let ran = kit::run(["common", &a, &b]);
    assert_eq!(ran.err, "");
    assert_eq!(ran.text().lines().count(), 113);
}

#[test]
fn empty_inputs_and_one_file_twice() {
    let place = Place::new();
    place.write("none", "");
    place.write("a", "x\ny\nx");
    for (words, out) in [
        ("common a none", ""),
        ("common none a", ""),
        ("diff a none", "x\ny\n"),
        ("diff none a", ""),
        ("dedup none none", ""),
        ("dedup", ""),
        ("common a a", "x\ny\n"),
        ("diff a a", ""),
        ("dedup a a", "x\ny\n"),
        ("uniq a", "x\ny\n"),
        ("common /dev/null /dev/null", ""),
    ] {
        let ran = place.run(&format!("{words} -q"));
        assert_eq!(ran.text(), out, "{words}");
    }
}

#[test]
fn names_that_are_not_utf8_are_names() {
    let place = Place::new();
    let odd = kit::odd_path(place.files.path(), b"b\xff\n");
    std::fs::write(&odd, "y\nx").unwrap();
    place.write("a", "x\nz\n");
    let mut command = place.petal("common a");
    command.arg(&odd);
    assert_eq!(kit::ran_with(command, b"").text(), "x\n");
}

#[test]
fn approximate_common_loses_no_line_and_says_how_many_are_wrong() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..300_000);
    write_lines(&place.files.file("b"), 250_000..600_000);
    let right = place.run("common a b").text();
    assert_eq!(right.lines().count(), 50_000);
    // A rate of a tenth: many wrong lines.
    let ran = place.run("common --approx -p 0.1 a b");
    let notes = ran.err.clone();
    let text = ran.text();
    let printed: std::collections::HashSet<_> = text.lines().collect();
    assert_eq!(printed.len(), text.lines().count(), "no line twice");
    assert!(right.lines().all(|line| printed.contains(line)), "a common line was lost");
    let wrong = (printed.len() - 50_000) as u64;
    // Before: at most so many. After: the best estimate.
    let [before, after] = ["about "; 2].map(|word| word);
    let number = |line: &str, mark: &str| -> f64 {
        let rest = line.split(mark).nth(1).unwrap_or_else(|| panic!("{notes}"));
        rest.split(' ').next().unwrap().replace(',', "").parse().unwrap()
    };
    let lines: Vec<_> = notes.lines().collect();
    assert_eq!(lines.len(), 2, "{notes}");
    let (most, best) = (number(lines[0], before), number(lines[1], after));
    // 250,000 lines of a are not in b.
    let rate = best / 250_000.0;
    let (low, high) = petal_testkit::bounds::binomial_range(250_000, rate, 0.9999);
    assert!((low..=high).contains(&wrong), "{wrong} wrong, estimated {best}");
    // At most as if none of the 300,000 were in b.
    assert!(most >= best && (most / best - 1.2).abs() < 0.05, "{most} {best}");
    // Quiet: the same lines, hash keys aside, and not a word.
    assert_eq!(place.run("common -q --approx a b").err, "");
}

#[test]
fn approximate_diff_and_dedup_invent_no_line() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..100_000);
    write_lines(&place.files.file("b"), 50_000..150_000);
    for (verb, all) in [("diff", 50_000), ("dedup", 150_000)] {
        let right = place.run(&format!("{verb} a b")).text();
        let right: std::collections::HashSet<_> = right.lines().collect();
        let ran = place.run(&format!("{verb} --approx -p 0.05 a b"));
        let lost = ran.err.lines().last().unwrap_or_default().to_owned();
        let text = ran.text();
        assert!(text.lines().all(|line| right.contains(line)));
        let count = text.lines().count();
        assert!((all * 90 / 100..all).contains(&count), "{verb}: {count} of {all}");
        let lost = lost.split("about ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "");
        let lost: f64 = lost.parse().unwrap();
        let truth = (all - count) as f64;
        assert!((lost - truth).abs() < 6.0 * truth.sqrt() + 1.0, "{lost} {truth}");
    }
}
