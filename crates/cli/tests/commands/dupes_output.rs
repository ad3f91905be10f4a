//! `dedup --dupes-output`: both outputs together have all lines of the input. Also outputs that
//! cannot be written completely.

use std::collections::HashSet;

use petal_testkit::line_files::{FileSpec, overlapping_files};
use petal_testkit::model::{LF, NUL, join, lines};

use crate::common::pack::gz;
use crate::common::{EXACT_COMMANDS, STRATEGIES, TestDir, overlapping, write_lines};

/// Returns the distinct lines and the repeats.
fn split(inputs: &[&[u8]], delimiter: u8) -> [Vec<u8>; 2] {
    let mut seen = HashSet::new();
    let all = inputs.iter().flat_map(|input| lines(input, delimiter));
    let (first, later): (Vec<_>, Vec<_>) = all.partition(|line| seen.insert(*line));
    [join(first, delimiter), join(later, delimiter)]
}

#[test]
fn result_and_duplicates_are_the_input() {
    for (delimiter, flag) in [(LF, ""), (NUL, "-z")] {
        for seed in 0..8 {
            let dir = TestDir::new();
            let files = overlapping_files(seed, FileSpec { delimiter, ..FileSpec::small() });
            let inputs: Vec<_> = files.iter().take(3).map(Vec::as_slice).collect();
            dir.write("a", inputs[0]);
            dir.write("b", inputs[1]);
            dir.write("c", gz(inputs[2]));
            let [first, later] = split(&inputs, delimiter);
            for strategy in STRATEGIES {
                let args = format!("dedup {flag} {strategy} -m 8M --dupes-output later a b c");
                assert!(dir.run(&args).ok() == first, "seed {seed}: {args}");
                assert!(dir.read("later") == later, "seed {seed}: {args}");
                dir.run(&format!("{args} -o first")).ok();
                assert!(dir.read("first") == first && dir.read("later") == later, "{args}");
                let counted = dir.run(&format!("{args} -c")).text();
                let count = lines(&first, delimiter).len();
                assert_eq!(counted, format!("{count}\n"), "seed {seed}: {args}");
                assert!(dir.read("later") == later, "seed {seed}: {args}");
            }
        }
    }
}

/// Large enough to be printed from recorded positions, in many chunks.
#[test]
fn same_output_when_spilling_and_through_pipes() {
    let dir = TestDir::new();
    let [a, b] = overlapping(400_000, 30, 8);
    write_lines(&dir.files.file("a"), a);
    write_lines(&dir.files.file("b"), b);
    let mut whole = dir.read("b");
    // The last line is not terminated, and occurs again at the end of the next input.
    whole.pop();
    dir.write("b", &whole);
    let [first, later] = split(&[&dir.read("a"), &whole, &whole], LF);
    for strategy in STRATEGIES {
        for names in ["a b b", "a <(cat b) b"] {
            let script =
                format!("$petal dedup -q -m 8M {strategy} --dupes-output later -o first {names}");
            dir.sh(&script).ok();
            assert!(dir.read("first") == first && dir.read("later") == later, "{script}");
        }
    }
}

#[test]
fn approximate_result_and_duplicates_are_the_input() {
    let dir = TestDir::new();
    let [a, _] = overlapping(300_000, 30, 9);
    write_lines(&dir.files.file("a"), a);
    let a = dir.read("a");
    dir.run("dedup --approx -q -p 0.05 -o first --dupes-output later a").ok();
    let (first, later) = (dir.read("first"), dir.read("later"));
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
fn closed_pipe_and_full_disk_in_every_strategy() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..200_000);
    write_lines(&dir.files.file("b"), (0..200_000).map(|at| at * 2));
    for command in EXACT_COMMANDS {
        for strategy in STRATEGIES {
            for jobs in [1, 4] {
                let args = format!("\"$petal\" {command} {strategy} -m 8M -j {jobs} a b");
                let output = dir.sh(&format!("{args} | head -n 1; exit ${{PIPESTATUS[0]}}"));
                assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{args}");
                assert_eq!(output.out.iter().filter(|&&byte| byte == LF).count(), 1, "{args}");
                let line = dir.sh(&format!("{args} > /dev/full")).failure();
                assert!(line.contains("no space left"), "{args}: {line}");
            }
        }
    }
}

/// An output file is complete, or there is an error.
#[test]
fn closed_pipe_with_a_second_output_is_an_error() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..200_000);
    for strategy in STRATEGIES {
        for script in [
            "{} --dupes-output later a a | head -n 1; exit ${PIPESTATUS[0]}",
            "mkfifo pipe; head -n 1 pipe & {} --dupes-output pipe -o later a a > later.out; \
             r=$?; wait; rm -f pipe later.out; exit $r",
        ] {
            let petal = format!("\"$petal\" dedup {strategy} -m 8M");
            let script = script.replace("{}", &petal);
            let output = dir.sh(&script);
            assert_eq!(output.code, Some(2), "{script}: {}", output.err);
            assert!(output.err.contains("reader"), "{script}: {}", output.err);
            assert!(!dir.files.file("later").exists(), "{script}");
        }
        let line = dir.run(&format!("dedup {strategy} --dupes-output /dev/full a a -o out"));
        assert!(line.failure().contains("no space left") && !dir.files.file("out").exists());
    }
}
