//! The peak resident memory of the process is at most the memory limit plus 16 MiB, for all inputs,
//! numbers of threads and strategies.
//!
//! Most tests run a sample of the combinations; the test marked `ignore` runs all of them.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod common;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use common::{EXACT_COMMANDS, MEMORY_OVERHEAD, RunOutput, SET_COMMANDS, TestDir, write_lines};

const MIB: u64 = 1 << 20;
const MODES: [&str; 5] =
    ["", "--strategy memory", "--strategy narrow", "--strategy partition", "--approx"];

#[track_caller]
fn within(output: &RunOutput, limit: u64, what: &str) {
    assert_eq!(output.code, Some(0), "{what}: {}", output.err);
    let over = output.peak.saturating_sub(limit * MIB);
    assert!(
        over <= MEMORY_OVERHEAD,
        "{what}: peak {} KiB over the limit of {limit} MiB",
        over / 1024
    );
}

/// Runs a set command and checks its peak memory.
fn measured(dir: &TestDir, command: &str, mode: &str, limit: u64, jobs: u64, inputs: &str) {
    let args = format!("{command} {mode} -q -m {limit}M -j {jobs} -o /dev/null {inputs}");
    within(&dir.run(&args), limit, &args);
}

fn fill(path: &Path, bytes: u64, mut block: impl FnMut(u64) -> Vec<u8>) {
    let mut out = BufWriter::with_capacity(1 << 16, File::create(path).unwrap());
    let (mut written, mut number) = (0, 0);
    while written < bytes {
        let block = block(number);
        out.write_all(&block).unwrap();
        (written, number) = (written + block.len() as u64, number + 1);
    }
    out.flush().unwrap();
}

/// Returns pairs of difficult inputs, with a description of each.
fn pairs(dir: &TestDir, mib: u64, limit: u64) -> Vec<(&'static str, String)> {
    let file = |name: &str| dir.files.file(name);
    let bytes = mib * MIB;
    // Empty lines, and lines of one byte.
    fill(&file("empty"), bytes, |_| vec![b'\n'; 1 << 16]);
    fill(&file("byte"), bytes, |n| {
        (0..1u64 << 15).flat_map(|at| [(n * 7 + at * 13) as u8 | 16, b'\n']).collect()
    });
    // Lines of 2 to 9 bytes, nearly all of them distinct.
    let short = |salt: u64| {
        move |n: u64| {
            let lines = (n << 10..(n + 1) << 10).map(|at| format!("{:x}\n", (at ^ salt) * 5));
            lines.collect::<String>().into_bytes()
        }
    };
    fill(&file("short-a"), bytes, short(0));
    fill(&file("short-b"), bytes, short(3 << 16));
    write_lines(&file("url-a"), 0..bytes / 45);
    write_lines(&file("url-b"), bytes / 50..bytes / 25);
    // A thousand lines, repeated.
    write_lines(&file("few-a"), (0..bytes / 45).map(|at| at * 7 % 1000));
    write_lines(&file("few-b"), (0..bytes / 45).map(|at| at * 11 % 1500));
    // Lines of up to the maximum length, and short lines between them.
    let long = |salt: u8| {
        move |n: u64| {
            let mut line = vec![b'a' + salt; (limit * MIB / 4) as usize - (n % 3) as usize];
            line.extend(format!("\nshort {n}\n{}\n", n % 3).as_bytes());
            line.remove(0);
            let cut = n.is_multiple_of(2) as usize * 11 + 11;
            line.drain(..cut);
            line
        }
    };
    fill(&file("long-a"), bytes, long(0));
    fill(&file("long-b"), bytes, long((limit % 2) as u8));
    [
        ("nothing but line ends", "empty byte"),
        ("lines of one byte", "byte empty"),
        ("short lines", "short-a short-b"),
        ("urls", "url-a url-b"),
        ("many repeats", "few-a few-b"),
        ("long lines", "long-a long-b"),
    ]
    .map(|(what, files)| (what, files.to_owned()))
    .into()
}

#[test]
fn holds_for_all_lines_commands_and_modes() {
    let dir = TestDir::new();
    let mut turn = 0;
    for (_, files) in pairs(&dir, 12, 8) {
        for command in SET_COMMANDS {
            // Over all kinds of lines, each mode is run with each command and number of threads.
            for step in 0..2 {
                let mode = MODES[(turn * 2 + step) % MODES.len()];
                let jobs = [1, 2, 4, 16, 64][(turn + step) % 5];
                measured(&dir, command, mode, 8, jobs, &files);
            }
            turn += 1;
        }
    }
}

#[test]
fn holds_for_selections_by_count() {
    let dir = TestDir::new();
    let mut turn = 0;
    for (_, files) in pairs(&dir, 12, 8) {
        for command in EXACT_COMMANDS.into_iter().filter(|name| !SET_COMMANDS.contains(name)) {
            let mode = MODES[turn % (MODES.len() - 1)];
            measured(&dir, command, mode, 8, [1, 4, 16][turn % 3], &files);
            turn += 1;
        }
    }
}

#[test]
fn holds_for_larger_limits() {
    let dir = TestDir::new();
    for (number, (_, files)) in pairs(&dir, 30, 32).into_iter().enumerate() {
        let command = SET_COMMANDS[number % 3];
        measured(&dir, command, MODES[number % 5], 32, [64, 4, 16][number % 3], &files);
        measured(&dir, SET_COMMANDS[(number + 1) % 3], MODES[(number + 2) % 5], 100, 16, &files);
    }
}

#[test]
fn holds_for_pipes() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..400_000);
    write_lines(&dir.files.file("b"), 200_000..500_000);
    fill(&dir.files.file("ends"), 20 * MIB, |_| vec![b'\n'; 1 << 16]);
    for (command, inputs) in [
        ("common", "- b < <(cat a)"),
        ("common", "<(cat a) <(cat b)"),
        ("diff", "a - < <(cat b)"),
        ("dedup", "<(cat a b) <(cat a)"),
        ("dedup", "< <(cat ends)"),
        ("diff", "<(cat ends) b"),
    ] {
        for (mode, jobs) in [("", 16), ("--approx", 2)] {
            let script =
                format!("exec $petal {command} {mode} -q -m 8M -j {jobs} -o /dev/null {inputs}");
            within(&dir.sh(&script), 8, &script);
        }
    }
}

#[test]
fn short_pipe_takes_little_memory() {
    let dir = TestDir::new();
    dir.write("b", "y\n");
    for args in ["dedup", "dedup -", "diff - b", "diff b -", "common - b", "common b -"] {
        for limit in ["-m 2G", ""] {
            let mut command = dir.petal(&format!("{args} -q -o /dev/null {limit}"));
            command.current_dir(dir.files.path());
            let output = common::run_with_input(command, b"x\ny\n");
            assert!(
                output.code == Some(0) && output.peak < MEMORY_OVERHEAD,
                "{args}: {} {}",
                output.peak,
                output.err
            );
        }
    }
}

#[test]
fn holds_for_many_inputs() {
    let dir = TestDir::new();
    for number in 0..2000u64 {
        let numbers = (0..150).map(|at| number * 100 + at);
        write_lines(&dir.files.file(&format!("part-{number:04}")), numbers);
    }
    for (limit, jobs, mode) in [(8, 4, ""), (8, 64, "--strategy partition"), (32, 2, "--approx")] {
        let args = format!("dedup -q {mode} -c -m {limit}M -j {jobs} part-*");
        let output = dir.sh(&format!("exec $petal {args}"));
        within(&output, limit, &args);
        if mode != "--approx" {
            assert_eq!(output.text(), "200050\n");
        }
    }
    let parts: String = (0..20).map(|n| format!("b-{n} ")).collect();
    write_lines(&dir.files.file("a"), 0..150_000);
    for number in 0..20 {
        write_lines(&dir.files.file(&format!("b-{number}")), number * 1000..200_000);
    }
    for (mode, jobs) in MODES.into_iter().zip([1, 4, 2, 64, 16]) {
        let args = format!("common -c -q -m 8M {mode} -j {jobs} a {parts}");
        let output = dir.run(&args);
        within(&output, 8, &args);
        if mode != "--approx" {
            assert_eq!(output.text(), "131000\n", "{args}");
        }
    }
}

/// Texts of very many parts, of one long part with escapes, and of usual ones.
#[test]
fn holds_for_parts_of_documents() {
    let dir = TestDir::new();
    let record = |text: &str| format!("{{\"id\": 1, \"text\": \"{text}\"}}\n").into_bytes();
    let number = |n: u64| format!("{:x}", n * 0x9e37_79b9 % (1 << 33));
    let file = |name: &str| dir.files.file(name);
    fill(&file("usual"), 24 * MIB, |n| {
        let lines = (n * 40..n * 40 + 40).map(|line| format!("a line {}\\n", number(line)));
        record(&lines.collect::<String>())
    });
    fill(&file("short"), 24 * MIB, |n| record(&". ".repeat((n % 5000) as usize)));
    fill(&file("many"), 24 * MIB, |n| {
        record(&(n..n + 15_000).map(|line| number(line) + "\\n").collect::<String>())
    });
    fill(&file("long"), 24 * MIB, |n| record(&(number(n) + &"\\u00e9".repeat(300_000))));
    for (unit, names) in [("line", "usual many"), ("sentence", "short usual"), ("line", "long")] {
        for (mode, jobs) in [("", 1), ("", 2), ("", 16), ("--approx", 4)] {
            let args = format!(
                "dedup --unit {unit} --json-key /text {mode} -q -m 8M -j {jobs} -o out {names}"
            );
            within(&dir.run(&args), 8, &args);
        }
    }
}

/// Planning allocates no filter, and counts lines within the memory limit of the job or less.
#[test]
fn plans_take_little_memory() {
    const MOST: u64 = 64 * MIB;
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..700_000);
    write_lines(&dir.files.file("b"), 350_000..1_050_000);
    for args in [
        "plan -n 1e11",
        "plan -n 1e11 -p 1%",
        "plan -n 1e11 -p 0.1% --least-space",
        "plan -n 1e11 -p 1% --type counting-classic",
        "plan -n 1e11 -p 1% --type quotient",
        "plan common a b -m 64G",
        "plan symdiff a b -m 64G --full-scan",
        "plan dedup a b -m 64G --full-scan=never",
        "plan diff a b -m 8M -j 16",
    ] {
        let output = dir.run(args);
        let known = output.code == Some(0) || output.err.contains("not enough");
        assert!(known, "{args}: {}", output.err);
        assert!(output.peak < MOST, "{args}: peak {} KiB", output.peak >> 10);
    }
}

#[test]
fn holds_for_check_and_add() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..500_000);
    dir.run("build -q -o f -n 1000000 -p 0.001 a").ok();
    // The mapped pages of the filter, 1.8 MB, count as memory.
    for (args, limit) in [("check -q -m 8M -j 16 -o /dev/null f a", 8), ("add -q -m 8M f a", 8)] {
        within(&dir.run(args), limit, args);
    }
}

/// Builds static filters of `lines` lines from a pipe in little and in much memory: the same file.
fn static_filters_hold(lines: u64, limit: u64) {
    let dir = TestDir::new();
    for kind in ["static", "static-fuse"] {
        let build = |limit: u64, out: &str| {
            let args = format!("build --type {kind} -p 0.0078125 -q -m {limit}M -o {out}");
            within(&dir.sh(&format!("exec $petal {args} <(seq {lines})")), limit, &args);
        };
        build(limit, "small");
        build(4096, "large");
        assert!(dir.read("small") == dir.read("large"), "{kind}");
        let bits = dir.read("small").len() as f64 * 8.0 / lines as f64;
        let most = if kind == "static" { 7.15 } else { 7.8 };
        assert!(bits < most, "{kind}: {bits} bits for a line");
    }
}

#[test]
fn holds_for_static_filters_from_pipes() {
    static_filters_hold(3_000_000, 16);
}

#[test]
#[ignore = "the long form: 2 · 10⁸ lines, some minutes"]
fn holds_for_large_static_filters() {
    static_filters_hold(20_000_000, 64);
    static_filters_hold(200_000_000, 512);
}

#[test]
#[ignore = "the long form: the whole matrix, some ten minutes"]
fn holds_for_the_whole_matrix() {
    let dir = TestDir::new();
    let mut broken = Vec::new();
    for limit in [8, 32, 100] {
        for (what, files) in pairs(&dir, 50, limit) {
            for command in SET_COMMANDS {
                for mode in MODES {
                    for jobs in [1, 2, 4, 16, 64] {
                        let args = format!(
                            "{command} {mode} -q -m {limit}M -j {jobs} -o /dev/null {files}"
                        );
                        let output = dir.run(&args);
                        let over = output.peak as i64 - (limit * MIB) as i64;
                        if output.code != Some(0) || over > MEMORY_OVERHEAD as i64 {
                            broken.push(format!(
                                "{what}: {args}: {} KiB {}",
                                over >> 10,
                                output.err
                            ));
                        }
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
