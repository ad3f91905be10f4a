//! The output of `common`, `diff` and `dedup` is that of naive models, for all numbers of threads,
//! memory limits, strategies and kinds of input.

use petal_testkit::line_files::{FileSpec, overlapping_files};
use petal_testkit::model::{LF, NUL};

use crate::common::{
    self, EXACT_COMMANDS, STRATEGIES, TestDir, expected, overlapping, write_lines,
};

/// Three difficult files with all commands.
fn nasty(delimiter: u8, flag: &str) {
    let dir = TestDir::new();
    for seed in 0..6 {
        let spec = FileSpec { delimiter, ..FileSpec::small() };
        let files = overlapping_files(seed + 100 * u64::from(delimiter), spec);
        for (name, file) in ["a", "b", "c"].iter().zip(&files) {
            dir.write(name, file);
        }
        let inputs: Vec<_> = files.iter().map(Vec::as_slice).collect();
        let mut turn = seed as usize;
        for command in EXACT_COMMANDS {
            for count in [2, 3] {
                let expect = expected(command, &inputs[..count], delimiter);
                let names = &"a b c"[..2 * count - 1];
                for strategy in STRATEGIES {
                    // Each strategy is run with each number of threads and memory limit.
                    turn += 1;
                    let (jobs, memory) = ([1, 2, 4][turn % 3], ["-m8M", "-m64M", ""][turn / 3 % 3]);
                    let args = format!("{command} {flag} {strategy} -j {jobs} {memory} {names}");
                    assert!(dir.run(&args).ok() == expect, "seed {seed}: {args}");
                }
                let lines = expect.iter().filter(|&&byte| byte == delimiter).count();
                let counted = dir.run(&format!("{command} {flag} -c {names}")).text();
                assert_eq!(counted, format!("{lines}\n"), "seed {seed}: {command} {names}");
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
fn every_kind_of_input_gives_the_same_output() {
    let dir = TestDir::new();
    for seed in [3, 8] {
        let files = overlapping_files(seed, FileSpec { max_lines: 2000, ..FileSpec::small() });
        dir.write("a", &files[0]);
        dir.write("b", &files[1]);
        let inputs = [files[0].as_slice(), files[1].as_slice()];
        for command in EXACT_COMMANDS {
            let expect = expected(command, &inputs, LF);
            for strategy in STRATEGIES {
                let command = format!("$petal {command} -q -m 8M {strategy}");
                for script in [
                    format!("{command} - b < a"),
                    format!("{command} a - < b"),
                    format!("cat a | {command} - b"),
                    format!("cat b | {command} a -"),
                    format!("{command} <(cat a) <(cat b)"),
                ] {
                    assert!(dir.sh(&script).ok() == expect, "seed {seed}: {script}");
                }
            }
        }
    }
}

#[test]
fn symmetric_difference_equals_the_model() {
    let dir = TestDir::new();
    for seed in 0..6 {
        let files = overlapping_files(seed, FileSpec { max_lines: 3000, ..FileSpec::small() });
        dir.write("a", &files[0]);
        dir.write("b", &files[1]);
        let expect = petal_testkit::model::symdiff(&files[0], &files[1], LF);
        for strategy in STRATEGIES {
            for inputs in ["a b", "<(cat a) b", "a - < b"] {
                let script = format!("$petal symdiff -q -m 8M {strategy} {inputs}");
                assert!(dir.sh(&script).ok() == expect, "seed {seed}: {script}");
            }
        }
    }
}

#[test]
fn fifos_are_inputs() {
    let dir = TestDir::new();
    let files = overlapping_files(5, FileSpec { max_lines: 3000, ..FileSpec::small() });
    for (number, command) in EXACT_COMMANDS.into_iter().enumerate() {
        let names = ["a", "b"].map(|name| format!("{name}{number}"));
        dir.fifo(&names[0], files[0].clone());
        dir.fifo(&names[1], files[1].clone());
        let output = dir.run(&format!("{command} -m 8M {} {}", names[0], names[1]));
        if command != "dedup" {
            assert!(output.err.contains("cannot be read twice"), "{}", output.err);
        }
        assert!(output.ok() == expected(command, &[&files[0], &files[1]], LF), "{command}");
    }
}

/// All lines of a FIFO are read, whatever its first and last bytes are.
#[test]
fn slow_pausing_and_empty_writers_are_inputs() {
    let dir = TestDir::new();
    for (script, expect) in [
        ("mkfifo p; (sleep 0.3; printf 'b\\na\\nb\\n' > p) & $petal dedup p; rm p", "b\na\n"),
        ("mkfifo p; { printf 'a\\n'; sleep 0.3; echo b; } > p & $petal dedup p; rm p", "a\nb\n"),
        ("mkfifo p; sleep 0.3 > p & $petal dedup p; rm p", ""),
        ("mkfifo p; echo a > b; (sleep 0.3; echo a > p) & $petal common b p; rm p b", "a\n"),
        ("$petal dedup <(sleep 0.3) <(true) <(echo a)", "a\n"),
        ("true | $petal dedup /dev/stdin", ""),
        ("(sleep 0.3; echo a) | $petal dedup /dev/stdin", "a\n"),
    ] {
        assert_eq!(dir.sh(script).ok(), expect.as_bytes(), "{script}");
    }
}

/// Files too large for 8 MiB, so that strategies spill.
#[test]
fn every_overlap_gives_the_same_output_with_and_without_spilling() {
    let dir = TestDir::new();
    for (percent, lines) in [(0, 300_000), (10, 500_000), (100, 300_000)] {
        let [a, b] = overlapping(lines, percent, percent + 1);
        write_lines(&dir.files.file("a"), a);
        write_lines(&dir.files.file("b"), b);
        let (a, b) = (dir.read("a"), dir.read("b"));
        for (number, command) in EXACT_COMMANDS.into_iter().enumerate() {
            let expect = expected(command, &[&a, &b], LF);
            let narrow_or_partition = STRATEGIES[2 + (percent as usize / 10 + number) % 2];
            for (jobs, rest) in [(1, "-m 8M"), (4, "-m 8M"), (2, "")] {
                let args = format!("{command} -j {jobs} {rest} a b");
                assert!(dir.run(&args).ok() == expect, "{percent} %: {args}");
            }
            for strategy in [STRATEGIES[1], narrow_or_partition] {
                let args = format!("{command} {strategy} -j 2 -m 8M a b");
                assert!(dir.run(&args).ok() == expect, "{percent} %: {args}");
            }
        }
    }
}

#[test]
fn pipe_larger_than_memory_is_partitioned() {
    let dir = TestDir::new();
    let [a, b] = overlapping(500_000, 50, 4);
    write_lines(&dir.files.file("a"), a);
    write_lines(&dir.files.file("b"), b);
    let (a, b) = (dir.read("a"), dir.read("b"));
    for command in EXACT_COMMANDS {
        let script = format!("$petal {command} -q -m 8M -j 4 <(cat a) <(cat b)");
        assert!(dir.sh(&script).ok() == expected(command, &[&a, &b], LF), "{command}");
    }
}

#[test]
fn the_real_lists_have_113_hosts_in_common() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    let [a, b] = ["a.txt", "b.txt"].map(|name| format!("{data}/{name}"));
    let output = common::run(["common", &a, &b]);
    assert_eq!(output.err, "");
    assert_eq!(output.text().lines().count(), 113);
}

#[test]
fn empty_inputs_and_one_file_twice() {
    let dir = TestDir::new();
    dir.write("none", "");
    dir.write("a", "x\ny\nx");
    for (args, out) in [
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
        ("common --at-least 1 a none a", "x\ny\n"),
        ("common --at-least 2 a none a", ""),
        ("common --at-least 2 a a none a", "x\ny\n"),
        ("symdiff a none", "x\ny\n"),
        ("symdiff none a", "x\ny\n"),
        ("symdiff a a", ""),
        ("dedup --keep first a", "x\ny\n"),
        ("dedup --keep last a a", "y\nx\n"),
        ("dedup -d a", "x\n"),
        ("uniq -u a", "y\n"),
        ("dedup -u a a", ""),
        ("dedup --only-duplicates none", ""),
        ("dedup --only-unique none", ""),
        ("common /dev/null /dev/null", ""),
    ] {
        let output = dir.run(&format!("{args} -q"));
        assert_eq!(output.text(), out, "{args}");
    }
}

#[test]
fn file_names_need_not_be_utf8() {
    let dir = TestDir::new();
    let odd = common::odd_path(dir.files.path(), b"b\xff\n");
    std::fs::write(&odd, "y\nx").unwrap();
    dir.write("a", "x\nz\n");
    let mut command = dir.petal("common a");
    command.arg(&odd);
    assert_eq!(common::run_with_input(command, b"").text(), "x\n");
}

#[test]
fn approximate_common_loses_no_line_and_estimates_wrong_ones() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..300_000);
    write_lines(&dir.files.file("b"), 250_000..600_000);
    let right = dir.run("common a b").text();
    assert_eq!(right.lines().count(), 50_000);
    // A rate of 10 % gives many wrong lines.
    let output = dir.run("common --approx -p 0.1 a b");
    let notes = output.err.clone();
    let text = output.text();
    let printed: std::collections::HashSet<_> = text.lines().collect();
    assert_eq!(printed.len(), text.lines().count(), "each line is printed once");
    assert!(right.lines().all(|line| printed.contains(line)), "a common line was lost");
    let wrong = (printed.len() - 50_000) as u64;
    // Before the job an upper bound, afterwards an estimate.
    let number = |line: &str, label: &str| -> f64 {
        let rest = line.split(label).nth(1).unwrap_or_else(|| panic!("{notes}"));
        rest.split([' ', ')']).next().unwrap().replace(',', "").parse().unwrap()
    };
    let lines: Vec<_> = notes.lines().collect();
    assert_eq!(lines.len(), 2, "{notes}");
    let (most, best) = (number(lines[0], "about "), number(lines[1], "about "));
    // The note states the error of its estimate, which includes the variance of the filter's rate.
    let error = number(lines[1], "(standard error ");
    assert!((wrong as f64 - best).abs() <= 4.0 * error, "{wrong} wrong: {notes}");
    assert!(error <= 2.0 * best.sqrt(), "{notes}");
    // The bound assumes that none of the 300,000 lines are in `b`.
    assert!(most >= best && (most / best - 1.2).abs() < 0.05, "{most} {best}");
    // --quiet prints no notes. The lines may differ, because the hash key is random.
    assert_eq!(dir.run("common -q --approx a b").err, "");
}

#[test]
fn approximate_diff_and_dedup_invent_no_line() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..100_000);
    write_lines(&dir.files.file("b"), 50_000..150_000);
    for (command, all) in [("diff", 50_000), ("dedup", 150_000)] {
        let right = dir.run(&format!("{command} a b")).text();
        let right: std::collections::HashSet<_> = right.lines().collect();
        let output = dir.run(&format!("{command} --approx -p 0.05 a b"));
        let lost = output.err.lines().last().unwrap_or_default().to_owned();
        let text = output.text();
        assert!(text.lines().all(|line| right.contains(line)));
        let count = text.lines().count();
        assert!((all * 90 / 100..all).contains(&count), "{command}: {count} of {all}");
        let lost = lost.split("about ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "");
        let lost: f64 = lost.parse().unwrap();
        let truth = (all - count) as f64;
        assert!((lost - truth).abs() < 6.0 * truth.sqrt() + 1.0, "{lost} {truth}");
    }
}
