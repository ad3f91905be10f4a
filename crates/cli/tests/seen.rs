//! `seen`: every line once, across runs, and whatever ends a run, none is lost.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use kit::{Place, Ran, skipped, write_lines};
use petal_testkit::rng::Rng;
use petal_testkit::{bounds, corrupt, model};

/// A rate at which no test sees a line withheld.
const SURE: &str = "-p 1e-12";
/// The two ways to be sure.
const WAYS: [&str; 2] = [SURE, "--exact -p 50%"];

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")).collect()
}

#[track_caller]
fn trouble(ran: Ran, says: &[&str]) {
    let line = ran.trouble();
    assert!(says.iter().all(|say| line.contains(say)), "{line}");
}

/// A run whose standard input is ours to write.
fn open(place: &Place, words: &str) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut command = place.petal(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, input, BufReader::new(output))
}

fn line(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn every_line_once_in_order_within_a_run_and_across_runs() {
    for way in WAYS {
        for jobs in [1, 4] {
            let place = Place::new();
            let run = |words: &str| place.run(&format!("seen -j {jobs} {words}"));
            place.write("a", "pear\n\napple\npear\n\ncherry");
            place.write("b", "fig\napple\nfig\r\nfig\n");
            assert_eq!(run(&format!("-n 1e5 {way} f a a")).text(), "pear\n\napple\ncherry\n");
            assert_eq!(run("f a b").text(), "fig\nfig\r\n");
            // The same words again are no contradiction.
            assert_eq!(run(&format!("-n 1e5 {way} f a b")).text(), "");
            let large = place.files.file("large");
            write_lines(&large, (0..60_000).map(|i| i * 7 % 40_000));
            let once = model::dedup(&[&place.read("large")[..]], b'\n');
            assert!(run("f large b").ok() == once, "{way}");
            assert_eq!(run("-c f large").text(), "0\n");
            let kept: &[&str] = if way == SURE { &["f"] } else { &["f", "f.exact"] };
            let names = place.files.names();
            assert_eq!(names[..1], ["a"]);
            assert_eq!(names[2..2 + kept.len()], *kept, "{names:?}");
        }
    }
}

#[test]
fn nul_count_link_and_alias() {
    let place = Place::new();
    let run = |words: &str, input: &[u8]| place.run_with(words, input);
    assert_eq!(run("seen -n 9 -p 1e-6 -z f", b"a\nb\0c\0a\nb").ok(), b"a\nb\0c\0");
    assert_eq!(run("seen -c f -", b"a\nb\nc\na\n").text(), "2\n");
    // What was counted is remembered: `a`, for `c` came in before.
    assert_eq!(run("anew f", b"a\nb\nc\nd\n").text(), "d\n");
    std::os::unix::fs::symlink("f", place.files.file("link")).unwrap();
    assert_eq!(run("seen link", b"d\ne\n").text(), "e\n");
    assert!(fs::symlink_metadata(place.files.file("link")).unwrap().is_symlink());
    assert_eq!(run("seen f", b"e\n").text(), "");
    // `add` and `check` know the same lines.
    assert_eq!(run("check -v f", b"e\ng\n").text(), "g\n");
    run("add f", b"g\n").ok();
    assert_eq!(run("seen f", b"g\nh\n").text(), "h\n");
    assert_eq!(place.files.names(), ["f", "link"]);
}

#[test]
fn words_that_the_file_cannot_keep() {
    let place = Place::new();
    place.write("a", "x\n");
    trouble(place.run("seen f a"), &["f: does not exist", "-n"]);
    trouble(place.run("seen -n 5 f missing"), &["missing: cannot read"]);
    trouble(place.run("seen -n 5 no/f a"), &["no/f", "cannot write"]);
    trouble(place.run("seen -n 5 . a"), &["."]);
    trouble(place.run("seen -n 5 -m 7M f a"), &["-m"]);
    trouble(place.run("seen -n 1e9 -m 64M f a"), &["raise -m"]);
    assert_eq!(place.files.names(), ["a"]);
    // Nothing came in: the file is there all the same.
    assert_eq!(place.run("seen -n 5 f").text(), "");
    for words in ["-n 6", "-p 2%", "-n 5 -p 0.5"] {
        trouble(place.run(&format!("seen {words} f a")), &["made for 5 lines at 1 %"]);
    }
    trouble(place.run("seen --exact f a"), &["without --exact"]);
    trouble(place.run("seen f f"), &["same file"]);
    trouble(place.sh("exec \"$petal\" seen f a >> f"), &["same file"]);
    trouble(place.run("seen a a"), &["a: "]);
    assert_eq!(place.run("seen f a").text(), "x\n");
    assert_eq!(place.files.names(), ["a", "f"]);
}

#[test]
fn more_lines_than_planned_are_told_once_and_no_more_than_promised_are_withheld() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..20_000);
    let ran = place.run("seen -n 20000 -p 10% f a");
    assert_eq!(ran.err, "");
    // The rate grows from nothing to what was asked for.
    let withheld = 20_000 - lines(&ran.out).len() as u64;
    assert!(withheld > 100, "{withheld}");
    assert!(withheld <= bounds::binomial_range(20_000, 0.1, 0.999_999).1, "{withheld}");
    write_lines(&place.files.file("b"), 50_000..80_000);
    let ran = place.run("seen f b");
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.starts_with("petal: warning: the filter was planned for 20,000 keys"));
    assert_eq!(place.run("seen -q f b").err, "");
}

#[test]
fn exact_prints_every_line_though_the_filter_is_full() {
    let place = Place::new();
    // More than the table of this cap holds: it must save on the way.
    write_lines(&place.files.file("a"), (0..500_000).map(|i| i * 7 % 400_000));
    let (a, all) = (place.read("a"), model::dedup(&[&place.read("a")[..]], b'\n'));
    for jobs in [1, 4] {
        let ran = place.run(&format!("seen --exact -q -n 10 -p 50% -m 8M -j {jobs} f a"));
        assert!(ran.peak <= 24 << 20, "peak {} KiB", ran.peak / 1024);
        assert!(ran.ok() == all);
        let again = [&a[..], b"new\n", &a[..1000], b"\nnew\n"].concat();
        let ran = place.run_with("seen -q -m 8M f -", &again);
        assert!(ran.peak <= 24 << 20, "peak {} KiB", ran.peak / 1024);
        let out = ran.text();
        assert!(out.starts_with("new\n") && out.lines().count() <= 2, "{out}");
        let ran = place.run("seen f /dev/null");
        assert!(ran.err.contains("note:") && ran.err.contains("slow"), "{}", ran.err);
        assert_eq!(fs::metadata(place.files.file("f.exact")).unwrap().len() % 16, 0);
        fs::remove_file(place.files.file("f")).unwrap();
        fs::remove_file(place.files.file("f.exact")).unwrap();
    }
}

#[test]
fn files_that_do_not_go_together() {
    let place = Place::new();
    place.write("a", "x\ny\n");
    for filter in ["f", "g"] {
        assert_eq!(place.run(&format!("seen --exact -n 5 {filter} a")).text(), "x\ny\n");
    }
    let (exact, other) = (place.read("f.exact"), place.read("g.exact"));
    let gone = place.files.file("f.exact");
    fs::remove_file(&gone).unwrap();
    trouble(place.run("seen f a"), &["f.exact: is gone"]);
    assert!(!gone.exists());
    place.write("f.exact", &other);
    trouble(place.run("seen f a"), &["f.exact: does not belong to f"]);
    place.write("f.exact", &exact);
    place.run("build -q -o h a").ok();
    place.write("h.exact", &exact);
    trouble(place.run("seen h a"), &["h.exact: does not belong to h"]);
    // A filter alone would be told of lines that its fingerprints are not.
    trouble(place.run("add f a"), &["f: ", "petal seen"]);
    assert_eq!(place.run("seen f a").text(), "");
    fs::remove_file(place.files.file("f")).unwrap();
    trouble(place.run("seen --exact -n 5 f a"), &["f.exact: remembers 2 lines", "f is gone"]);
    assert_eq!(place.read("f.exact"), exact);
}

#[test]
fn a_hostile_file_of_fingerprints() {
    let place = Place::new();
    place.write("a", "x\ny\nz\n");
    place.run("seen --exact -n 5 f a").ok();
    let whole = place.read("f.exact");
    assert_eq!(whole.len(), 64 + 3 * 16);
    let flips = corrupt::bit_flips(&whole).step_by(11).map(|(_, bytes)| bytes);
    let cuts = corrupt::truncations(&whole).step_by(7).map(<[u8]>::to_vec);
    let mut hostile: Vec<_> = flips.chain(cuts).chain(corrupt::extensions(&whole)).collect();
    hostile.extend([b"just some text\n".repeat(50), vec![0xff; 112], vec![0; 112]]);
    for bytes in hostile {
        place.write("f.exact", &bytes);
        trouble(place.run("seen f a"), &["f.exact: "]);
        assert!(place.read("f.exact") == bytes);
    }
    fs::remove_file(place.files.file("f.exact")).unwrap();
    fs::create_dir(place.files.file("f.exact")).unwrap();
    trouble(place.run("seen f a"), &["f.exact: is no regular file"]);
}

#[test]
fn lines_come_at_once_and_a_signal_saves_them() {
    for (way, name) in WAYS.into_iter().zip(["INT", "TERM"]) {
        let place = Place::new();
        // The second input is never come to.
        place.write("f2", "other\n");
        let (mut child, mut input, mut output) = open(&place, &format!("seen -n 9 {way} f - f2"));
        drop((input.write_all(b"one\ntwo\n"), input.flush()));
        assert_eq!((line(&mut output), line(&mut output)), ("one\n".into(), "two\n".into()));
        input.write_all(b"half a li").unwrap();
        signal(&child, name);
        assert_eq!(kit::wait(&mut child, 30).code(), Some(130), "{name}");
        assert_eq!(line(&mut output), "");
        assert_eq!(place.run_with("seen f", b"one\ntwo\nhalf a li\n").text(), "half a li\n");
        assert!(!place.files.file("f.lock").exists());
    }
}

#[test]
fn a_file_is_left_in_the_middle_on_a_signal() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..400_000);
    let (mut child, _input, mut output) = open(&place, &format!("seen -n 1e6 {SURE} f a"));
    let mut first = vec![0; 1000];
    output.read_exact(&mut first).unwrap();
    signal(&child, "INT");
    output.read_to_end(&mut first).unwrap();
    assert_eq!(kit::wait(&mut child, 30).code(), Some(130));
    let rest = place.run("seen f a").ok();
    assert!([first, rest].concat() == place.read("a"));
}

#[test]
fn it_saves_from_time_to_time() {
    for way in WAYS {
        let place = Place::new();
        let words = format!("seen -n 9 {way} --save-every 0 f -");
        let (mut child, mut input, mut output) = open(&place, &words);
        input.write_all(b"one\n").unwrap();
        assert_eq!(line(&mut output), "one\n");
        // Printed before it is saved: wait for that.
        let exact = if way == SURE { "f" } else { "f.exact" };
        let saved = || fs::metadata(place.files.file(exact)).is_ok_and(|data| data.len() > 64);
        while !saved() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        signal(&child, "KILL");
        assert_eq!(kit::wait(&mut child, 30).code(), None);
        // The lock went with the process; its file is of no account.
        assert!(place.files.file("f.lock").exists());
        assert_eq!(place.run_with("seen f", b"one\ntwo\n").text(), "two\n");
        assert!(!place.files.file("f.lock").exists());
    }
}

#[test]
fn a_kill_loses_no_line() {
    for way in WAYS {
        let place = Place::new();
        // Each line twice: what a batch prints then fits its buffer, and waits there.
        write_lines(&place.files.file("a"), (0..600_000).map(|i| i / 2));
        let all = place.read("a");
        let mut printed: HashSet<Vec<u8>> = HashSet::new();
        for round in 1..=8 {
            let words = format!("seen -q -n 1e6 {way} -m 32M -j {round} --save-every 0 f a");
            let (mut child, _input, mut output) = open(&place, &words);
            // Every other time nobody reads: what waits for a reader must not be saved. Later
            // rounds may have less to say.
            let mut out = vec![0; if round % 2 == 0 { 500_000 * round } else { 0 }];
            std::thread::sleep(std::time::Duration::from_millis(if out.is_empty() {
                300
            } else {
                0
            }));
            let mut got = 0;
            while got < out.len() {
                match output.read(&mut out[got..]).unwrap() {
                    0 => break,
                    more => got += more,
                }
            }
            out.truncate(got);
            signal(&child, "KILL");
            kit::wait(&mut child, 30);
            output.read_to_end(&mut out).unwrap();
            printed.extend(lines(&out).into_iter().map(<[u8]>::to_vec));
        }
        let ran = place.run("seen -q f a");
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        printed.extend(lines(&ran.out).into_iter().map(<[u8]>::to_vec));
        let missing = lines(&all).into_iter().filter(|line| !printed.contains(*line)).count();
        assert_eq!((missing, printed.len()), (0, 300_000), "{way}");
        assert_eq!(place.run("seen -q f a").text(), "", "{way}");
    }
}

#[test]
fn what_nobody_read_is_not_remembered() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..200_000);
    for way in WAYS {
        let words =
            format!("\"$petal\" seen -n 1e6 {way} f a | head -n 1; exit ${{PIPESTATUS[0]}}");
        let ran = place.sh(&words);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert_eq!(place.files.names(), ["a"], "{way}");
        let ran = place.sh(&format!("exec \"$petal\" seen -n 1e6 {way} f a > /dev/full"));
        trouble(ran, &["no space left"]);
        let ran = place.sh(&format!("exec \"$petal\" seen -c -n 1e6 {way} f a > /dev/full"));
        trouble(ran, &["no space left"]);
        assert_eq!(place.files.names(), ["a"], "{way}");
    }
    // With a memory that is there already, too.
    place.run_with("seen -n 1e6 -p 1e-12 f", b"early\n").ok();
    let before = kit::look(&place.files.file("f"));
    place.sh("\"$petal\" seen f a | head -n 1").ok();
    assert_eq!(kit::look(&place.files.file("f")), before);
    assert!(place.run("seen f a").ok() == place.read("a"));
}

#[test]
fn an_input_that_fails_leaves_what_was_printed_saved() {
    let place = Place::new();
    place.write("a", "x\n");
    place.write("b", [b"y\n".to_vec(), vec![b'z'; 3 << 20]].concat());
    let ran = place.run(&format!("seen -n 9 {SURE} -m 8M -j 1 f a b"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("b: the line at byte 2 is longer"), "{}", ran.err);
    assert_eq!(ran.out, b"x\n");
    assert_eq!(place.run_with("seen f", b"x\ny\n").text(), "y\n");
}

#[test]
fn a_full_disk_keeps_the_old_memory() {
    let place = Place::new();
    let inside = |script: &str| {
        let script = format!("mkdir -p full && mount -t tmpfs -o size=1m none full && {script}");
        let script = script.replace('\'', "'\\''");
        kit::ran_with(place.shell(&format!("exec unshare -rm bash -c '{script}'")), b"")
    };
    if inside("true").code != Some(0) {
        return skipped("a_full_disk_keeps_the_old_memory", "no namespaces or no mounts here");
    }
    write_lines(&place.files.file("a"), 0..200_000);
    let ran = inside("{ \"$petal\" seen -n 1e7 full/f a > /dev/null; r=$?; ls -A full; exit $r; }");
    trouble(ran, &["full/f: cannot write: no space left"]);
    // The filter fits, the fingerprints do not: the lines come again, and none twice is lost.
    let script = "{ head -n 9 a | \"$petal\" seen --exact -n 1e4 full/f > /dev/null; \
                  \"$petal\" seen -q full/f a > /dev/null; r=$?; ls -A full >&2; \
                  \"$petal\" seen -q full/f <(head -n 20 a); exit $r; }";
    let ran = inside(script);
    assert_eq!(ran.code, Some(2));
    let said: Vec<_> = ran.err.lines().collect();
    assert!(said[0].contains("full/f.exact: cannot write: no space left"), "{}", ran.err);
    assert_eq!(said[1..], ["f", "f.exact"]);
    assert_eq!(lines(&ran.out), lines(&place.read("a"))[9..20]);
}

/// A torn line stays as a line of its own.
#[test]
fn a_torn_last_line_is_ended_before_lines_are_appended() {
    for (delimiter, zero) in [("\n", ""), ("\0", "-z")] {
        let place = Place::new();
        let append = |input: &str, shell: &str| {
            place.write("input", input.replace(';', delimiter));
            let words = format!("\"$petal\" seen -n 99 {SURE} {zero} f input {shell}");
            let ran = place.sh(&words);
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        };
        let holds = |text: &str| {
            let text = text.replace(';', delimiter);
            assert_eq!(String::from_utf8(place.read("new")).unwrap(), text, "{zero}");
        };
        place.write("new", "torn");
        // No line to print: nothing is written.
        append("", ">> new");
        holds("torn");
        append("one;two;", ">> new");
        holds("torn;one;two;");
        append("three;", ">> new");
        holds("torn;one;two;three;");
        place.write("new", "torn");
        // Read and written, from its beginning: it is overwritten on purpose.
        append("four and more;", "1<> new");
        holds("four and more;");
        append("six;", "> new");
        holds("six;");
        // At its end.
        place.write("new", "torn");
        let script =
            format!("exec 4<> new; cat <&4 > /dev/null; \"$petal\" seen {zero} f - <<< seven >&4");
        place.sh(&script).ok();
        let read = String::from_utf8(place.read("new")).unwrap();
        assert!(read.starts_with(&format!("torn{delimiter}seven")), "{read:?}");
    }
    // A file that only may be written: a warning.
    let place = Place::new();
    place.write("new", "torn");
    let ran = place.sh(&format!(
        "chmod 200 new; [ -r new ] && exit 7; \"$petal\" seen -n 99 {SURE} f - <<< one >> new"
    ));
    if ran.code == Some(7) {
        return skipped("a_torn_last_line", "every file can be read here");
    }
    assert!(ran.err.contains("cannot read how the file ends: permission denied"), "{}", ran.err);
}

/// `petal seen F < log >> new`, ended in the middle of its first line by a signal or by the error of
/// a full disk: the line is not lost, and not joined to what is there of it.
#[test]
fn appended_lines_survive_a_kill_and_a_full_disk() {
    // Longer than the steps in which a shell limits the size of files.
    let line_of = |at: usize| format!("{at} {}\n", "word ".repeat(600));
    for way in WAYS {
        for (trap, code) in [("", None), ("trap '' XFSZ;", Some(2))] {
            let place = Place::new();
            let words = format!("seen -n 99 {way} f < log >> new");
            place.write("new", "");
            let mut all = Vec::new();
            let mut torn = HashSet::new();
            for at in 0..5 {
                all.push(line_of(at));
                place.write("log", all.concat());
                for _ in 0..=at % 2 {
                    let limit = place.read("new").len() / 1024 + 1;
                    let script = format!("{trap} ulimit -f {limit}; exec \"$petal\" {words}");
                    let ran = kit::ran_with(place.shell(&script), b"");
                    assert_eq!(ran.code, code, "{}", ran.err);
                    let new = place.read("new");
                    assert_eq!(new.len(), limit * 1024);
                    let last = new.rsplit(|byte| *byte == b'\n').next().unwrap();
                    torn.insert([last, b"\n"].concat());
                }
                place.sh(&format!("exec \"$petal\" {words}")).ok();
            }
            let new = place.read("new");
            let (parts, whole): (Vec<&[u8]>, Vec<_>) =
                lines(&new).into_iter().partition(|line| torn.contains(*line));
            assert!(whole.concat() == all.concat().into_bytes(), "{way} {trap}");
            assert!(parts.len() >= 5 && new.ends_with(b"\n"), "{}", parts.len());
        }
    }
}

#[test]
fn one_run_at_a_time() {
    let place = Place::new();
    let (mut child, mut input, mut output) = open(&place, &format!("seen -n 9 {SURE} f -"));
    input.write_all(b"one\n").unwrap();
    assert_eq!(line(&mut output), "one\n");
    trouble(place.run_with("seen -n 9 f", b"two\n"), &["f: another run is using it"]);
    std::os::unix::fs::symlink("f", place.files.file("link")).unwrap();
    trouble(place.run_with("seen -n 9 link", b"two\n"), &["f: another run is using it"]);
    trouble(place.run_with("add f", b"two\n"), &["f: another run is using it"]);
    place.run_with("seen -n 9 g", b"two\n").ok();
    drop(input);
    assert_eq!(kit::wait(&mut child, 30).code(), Some(0));
    assert_eq!(place.run_with("seen f", b"one\ntwo\n").text(), "two\n");
}

#[test]
fn memory_stays_under_the_cap() {
    let place = Place::new();
    let short = |n: u64| format!("{:x}\n", n * 5).into_bytes();
    let bytes: Vec<u8> = (0..500_000).flat_map(short).collect();
    place.write("a", &bytes);
    place.write("long", [vec![b'x'; 2 << 20], vec![b'\n'], vec![b'y'; 2 << 20]].concat());
    for (way, jobs) in [("--exact -n 1e6", 1), ("--exact -n 10", 16), ("-n 2e6", 4)] {
        for save in ["", "--save-every 0"] {
            let words = format!("seen -q {way} -p 1% -m 8M -j {jobs} {save}");
            let ran = place.sh(&format!("exec \"$petal\" {words} f a long a > /dev/null"));
            assert_eq!(ran.code, Some(0), "{words}: {}", ran.err);
            assert!(ran.peak <= 24 << 20, "{words}: peak {} KiB", ran.peak / 1024);
            for name in place.files.names().iter().filter(|name| name.starts_with('f')) {
                fs::remove_file(place.files.file(name)).unwrap();
            }
        }
    }
}

/// Lines of random values below `distinct`.
fn random_lines(count: u64, distinct: u64, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..count).flat_map(|_| format!("{}\n", rng.next_u64() % distinct).into_bytes()).collect()
}

/// Lines that none of the last `last` printed is equal to, by exact generations.
fn first_in_window(lines: &[&[u8]], last: usize) -> Vec<u8> {
    let mut generations: VecDeque<HashSet<&[u8]>> = vec![HashSet::new(); 4].into();
    let mut out = Vec::new();
    for line in lines {
        if generations.iter().any(|lines| lines.contains(line)) {
            continue;
        }
        if generations[0].len() == last.div_ceil(3) {
            generations.pop_back();
            generations.push_front(HashSet::new());
        }
        generations[0].insert(line);
        out.extend_from_slice(line);
    }
    out
}

/// The answer does not depend on how many lines go through at once: not on the memory, not on the
/// threads, and it is that of one line a run.
#[test]
fn last_withholds_the_same_lines_for_any_batch() {
    let place = Place::new();
    let once = |bytes: &[u8]| model::dedup(&[bytes], b'\n');
    let few = random_lines(20_000, 100, 1);
    place.write("few", &few);
    let many = random_lines(100_000, 20_000, 2);
    place.write("many", &many);
    for (input, lasts, expected) in
        [("few", &[200, 150, 101, 100][..], once(&few)), ("many", &[30_000], once(&many))]
    {
        for last in lasts {
            for (memory, jobs) in [("8M", 1), ("64M", 1), ("64M", 4), ("1G", 2)] {
                let words = format!("seen -q --last {last} -p 1e-9 -m {memory} -j {jobs} f");
                let out = place.run(&format!("{words} {input}")).ok();
                let lines = lines(&out).len();
                assert!(out == expected, "{words} {input}: {lines} lines");
                fs::remove_file(place.files.file("f")).unwrap();
            }
        }
    }
    // Windows smaller than what comes again, against a model that takes one line at a time.
    let input = random_lines(30_000, 900, 3);
    place.write("input", &input);
    for last in [1, 40, 500, 800] {
        let expected = first_in_window(&lines(&input), last);
        for (memory, jobs) in [("8M", 1), ("64M", 4), ("1G", 1)] {
            let words = format!("seen -q --last {last} -p 1e-9 -m {memory} -j {jobs} f input");
            assert!(place.run(&words).ok() == expected, "{words}");
            fs::remove_file(place.files.file("f")).unwrap();
        }
        // From a pipe, of which a batch is what has come.
        let words = format!("seen -q --last {last} -p 1e-9 f -");
        let (mut child, mut feed, mut output) = open(&place, &words);
        let reader = std::thread::spawn(move || {
            let mut out = Vec::new();
            output.read_to_end(&mut out).map(|_| out)
        });
        for piece in input.chunks(777) {
            feed.write_all(piece).unwrap();
        }
        drop(feed);
        assert_eq!(kit::wait(&mut child, 30).code(), Some(0));
        assert!(reader.join().unwrap().unwrap() == expected, "{words}");
        fs::remove_file(place.files.file("f")).unwrap();
    }
}

/// Of every type that takes lines: each line once, for any batch.
#[test]
fn every_type_of_filter_prints_each_line_once() {
    let place = Place::new();
    let input = random_lines(40_000, 3000, 4);
    place.write("input", &input);
    place.write("none", "");
    let expected = model::dedup(&[&input], b'\n');
    let fixed = ["bloom", "classic", "counting", "counting-classic", "quotient", "wide"];
    let fixed = fixed.map(|kind| format!("--type {kind} -n 4000"));
    let growing = ["--type scalable -n 10", "--type quotient -n 10 --up-to 4000", "--last 3000"];
    for kind in fixed.iter().map(String::as_str).chain(growing) {
        for (memory, jobs) in [("8M", 1), ("64M", 4)] {
            place.run(&format!("build -q {kind} -p 1e-9 -o f none")).ok();
            let out = place.run(&format!("seen -q -m {memory} -j {jobs} f input")).ok();
            assert!(out == expected, "{kind} -m {memory} -j {jobs}: {}", lines(&out).len());
            assert_eq!(place.run("seen -q f input").text(), "", "{kind}");
        }
    }
}

/// What was printed within the window is withheld, however often it came since; then it is due.
#[test]
fn a_window_makes_lines_due_again() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..1000);
    write_lines(&place.files.file("b"), 5000..6000);
    let day = |day: u64| 1_000_000_000 + day * 86_400;
    let seen = |words: &str, on: u64| place.run(&format!("seen {words} --now {}", day(on))).ok();
    let (a, b) = (place.read("a"), place.read("b"));
    let twice = "--window 7d -n 10_000 -p 1e-6 w a a";
    assert!(seen(twice, 0) == a);
    // To come again does not put it off.
    for on in [1, 4, 7] {
        assert_eq!(seen("w a", on), b"", "day {on}");
    }
    assert!(seen("w a b", 6) == b);
    assert!(seen(twice, 10) == a, "a week, and a third of one at most");
    assert!(seen("w b a", 11).is_empty() && seen("w a b", 16) == b);
    // By count: the last so many lines printed.
    assert!(place.run("seen --last 1000 -p 1e-6 l a").ok() == a);
    assert_eq!(place.run("seen l a a").ok(), b"");
    assert!(place.run("seen l b").ok() == b && place.run("seen l b").ok().is_empty());
    let again = place.run("seen l -c a").text().trim().parse::<u64>().unwrap();
    assert!(again > 300, "{again}");
    // One that `build` made does as well.
    place.run(&format!("build -q --window 7d -n 9000 -p 1e-6 -o built a --now {}", day(0))).ok();
    assert!(seen("built a b", 3) == b);
    for (words, says) in [
        ("--window 7d new a", "new: does not exist yet; say with -n how many lines it is to"),
        ("--window 6d w a", "w: was made for 10,000 lines within 7d at 1.00e-6; leave"),
        ("--last 10_000 w a", "leave out -n, -p and --window, or"),
        ("--last 999 l a", "l: was made for 1,000 lines that came last at"),
        ("--window 7d l a", "leave out -p and --last, or"),
        ("-n 1000 l a", "leave out -p and --last, or"),
        ("-n 1e8 --window 7d -m 8M new a", "raise -m"),
    ] {
        let line = place.run(&format!("seen {words}")).trouble();
        assert!(line.contains(says), "{words}: {line}");
    }
    place.run("seen -n 1000 plain a").ok();
    let line = place.run("seen --window 7d plain a").trouble();
    assert!(line.contains("lines in all at 1 %; leave out --window and --last"), "{line}");
    for words in
        ["--exact --window 7d", "--exact --last 5", "--last 5 --window 7d", "--last 5 -n 5"]
    {
        assert_eq!(place.run(&format!("seen {words} x a")).code, Some(2), "{words}");
    }
}
