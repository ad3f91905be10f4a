//! The promise about memory: peak resident memory of the process stays under the cap plus
//! 16 MiB, for any input, any number of threads, any way to do it.
//!
//! The matrix is covered sparsely here; the test marked `ignore` goes through all of it.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use kit::{Place, Ran, VERBS, write_lines};

const MIB: u64 = 1 << 20;
const SLACK: u64 = 16 * MIB;
const WAYS: [&str; 5] =
    ["", "--strategy memory", "--strategy narrow", "--strategy partition", "--approx"];

#[track_caller]
fn within(ran: &Ran, cap: u64, what: &str) {
    assert_eq!(ran.code, Some(0), "{what}: {}", ran.err);
    let over = ran.peak.saturating_sub(cap * MIB);
    assert!(over <= SLACK, "{what}: peak {} KiB over the cap of {cap} MiB", over / 1024);
}

/// One run of a verb on two inputs; results go nowhere.
fn measured(place: &Place, verb: &str, way: &str, cap: u64, jobs: u64, inputs: &str) {
    let words = format!("{verb} {way} -q -m {cap}M -j {jobs} -o /dev/null {inputs}");
    within(&place.run(&words), cap, &words);
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

/// Pairs of files, each hard in its own way.
fn pairs(place: &Place, mib: u64, cap: u64) -> Vec<(&'static str, String)> {
    let file = |name: &str| place.files.file(name);
    let bytes = mib * MIB;
    // Nothing but line ends, against lines of one byte.
    fill(&file("empty"), bytes, |_| vec![b'\n'; 1 << 16]);
    fill(&file("byte"), bytes, |n| {
        (0..1u64 << 15).flat_map(|at| [(n * 7 + at * 13) as u8 | 16, b'\n']).collect()
    });
    // Lines of 2 to 9 bytes, nearly all distinct.
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
    // A thousand lines, over and over.
    write_lines(&file("few-a"), (0..bytes / 45).map(|at| at * 7 % 1000));
    write_lines(&file("few-b"), (0..bytes / 45).map(|at| at * 11 % 1500));
    // Lines up to the limit, and short ones between them.
    let long = |salt: u8| {
        move |n: u64| {
            let mut line = vec![b'a' + salt; (cap * MIB / 4) as usize - (n % 3) as usize];
            line.extend(format!("\nshort {n}\n{}\n", n % 3).as_bytes());
            line.remove(0);
            let cut = n.is_multiple_of(2) as usize * 11 + 11;
            line.drain(..cut);
            line
        }
    };
    fill(&file("long-a"), bytes, long(0));
    fill(&file("long-b"), bytes, long((cap % 2) as u8));
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
fn holds_for_every_kind_of_line_verb_and_way() {
    let place = Place::new();
    let mut turn = 0;
    for (_, files) in pairs(&place, 12, 8) {
        for verb in VERBS {
            // Every way meets every verb and every number of threads over the kinds of lines.
            for step in 0..2 {
                let way = WAYS[(turn * 2 + step) % WAYS.len()];
                let jobs = [1, 2, 4, 16, 64][(turn + step) % 5];
                measured(&place, verb, way, 8, jobs, &files);
            }
            turn += 1;
        }
    }
}

#[test]
fn holds_for_larger_caps() {
    let place = Place::new();
    for (number, (_, files)) in pairs(&place, 30, 32).into_iter().enumerate() {
        let verb = VERBS[number % 3];
        measured(&place, verb, WAYS[number % 5], 32, [64, 4, 16][number % 3], &files);
        measured(&place, VERBS[(number + 1) % 3], WAYS[(number + 2) % 5], 100, 16, &files);
    }
}

#[test]
fn holds_for_pipes() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..400_000);
    write_lines(&place.files.file("b"), 200_000..500_000);
    fill(&place.files.file("ends"), 20 * MIB, |_| vec![b'\n'; 1 << 16]);
    for (verb, inputs) in [
        ("common", "- b < <(cat a)"),
        ("common", "<(cat a) <(cat b)"),
        ("diff", "a - < <(cat b)"),
        ("dedup", "<(cat a b) <(cat a)"),
        ("dedup", "< <(cat ends)"),
        ("diff", "<(cat ends) b"),
    ] {
        for (way, jobs) in [("", 16), ("--approx", 2)] {
            let script =
                format!("exec $petal {verb} {way} -q -m 8M -j {jobs} -o /dev/null {inputs}");
            within(&place.sh(&script), 8, &script);
        }
    }
}

#[test]
fn a_short_pipe_takes_little_of_a_large_cap() {
    let place = Place::new();
    place.write("b", "y\n");
    for words in ["dedup", "dedup -", "diff - b", "diff b -", "common - b", "common b -"] {
        for cap in ["-m 2G", ""] {
            let mut command = place.petal(&format!("{words} -q -o /dev/null {cap}"));
            command.current_dir(place.files.path());
            let ran = kit::ran_with(command, b"x\ny\n");
            assert!(ran.code == Some(0) && ran.peak < SLACK, "{words}: {} {}", ran.peak, ran.err);
        }
    }
}

#[test]
fn holds_for_many_inputs() {
    let place = Place::new();
    for number in 0..2000u64 {
        let numbers = (0..150).map(|at| number * 100 + at);
        write_lines(&place.files.file(&format!("part-{number:04}")), numbers);
    }
    for (cap, jobs, way) in [(8, 4, ""), (8, 64, "--strategy partition"), (32, 2, "--approx")] {
        let words = format!("dedup -q {way} -c -m {cap}M -j {jobs} part-*");
        let ran = place.sh(&format!("exec $petal {words}"));
        within(&ran, cap, &words);
        if way != "--approx" {
            assert_eq!(ran.text(), "200050\n");
        }
    }
    let parts: String = (0..20).map(|n| format!("b-{n} ")).collect();
    write_lines(&place.files.file("a"), 0..150_000);
    for number in 0..20 {
        write_lines(&place.files.file(&format!("b-{number}")), number * 1000..200_000);
    }
    for (way, jobs) in WAYS.into_iter().zip([1, 4, 2, 64, 16]) {
        let words = format!("common -c -q -m 8M {way} -j {jobs} a {parts}");
        let ran = place.run(&words);
        within(&ran, 8, &words);
        if way != "--approx" {
            assert_eq!(ran.text(), "131000\n", "{words}");
        }
    }
}

#[test]
fn holds_for_check_and_add() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..500_000);
    place.run("build -q -o f -n 1000000 -p 0.001 a").ok();
    // A filter of 1.8 MB counts: its pages are mapped.
    for (words, cap) in [("check -q -m 8M -j 16 -o /dev/null f a", 8), ("add -q -m 8M f a", 8)] {
        within(&place.run(words), cap, words);
    }
}

#[test]
#[ignore = "the long form: the whole matrix, some ten minutes"]
fn holds_for_the_whole_matrix() {
    let place = Place::new();
    let mut broken = Vec::new();
    for cap in [8, 32, 100] {
        for (what, files) in pairs(&place, 50, cap) {
            for verb in VERBS {
                for way in WAYS {
                    for jobs in [1, 2, 4, 16, 64] {
                        let words =
                            format!("{verb} {way} -q -m {cap}M -j {jobs} -o /dev/null {files}");
                        let ran = place.run(&words);
                        let over = ran.peak as i64 - (cap * MIB) as i64;
                        if ran.code != Some(0) || over > SLACK as i64 {
                            broken.push(format!("{what}: {words}: {} KiB {}", over >> 10, ran.err));
                        }
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
