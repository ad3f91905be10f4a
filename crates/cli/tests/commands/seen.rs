//! `seen`: prints each line once across runs, and loses none if a run is interrupted.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use petal_testkit::rng::Rng;
use petal_testkit::{bounds, corrupt, model};

use crate::common::{self, MEMORY_OVERHEAD, RunOutput, TestDir, skipped, write_lines};

/// Bytes of a page of a fingerprint log.
const PAGE: usize = 4096;
/// A rate at which no test has a false positive.
const SURE: &str = "-p 1e-12";
/// The two ways to avoid false positives.
const MODES: [&str; 2] = [SURE, "--exact -p 50%"];

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")).collect()
}

#[track_caller]
fn failure(output: RunOutput, message: &[&str]) {
    let line = output.failure();
    assert!(message.iter().all(|part| line.contains(part)), "{line}");
}

/// Starts a run; returns its standard input and output.
fn open(dir: &TestDir, args: &str) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut command = dir.petal(args);
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
    for mode in MODES {
        for jobs in [1, 4] {
            let dir = TestDir::new();
            let run = |args: &str| dir.run(&format!("seen -j {jobs} {args}"));
            dir.write("a", "pear\n\napple\npear\n\ncherry");
            dir.write("b", "fig\napple\nfig\r\nfig\n");
            assert_eq!(run(&format!("-n 1e5 {mode} f a a")).text(), "pear\n\napple\ncherry\n");
            assert_eq!(run("f a b").text(), "fig\nfig\r\n");
            // The options of the first run may be repeated.
            assert_eq!(run(&format!("-n 1e5 {mode} f a b")).text(), "");
            let large = dir.files.file("large");
            write_lines(&large, (0..60_000).map(|i| i * 7 % 40_000));
            let once = model::dedup(&[&dir.read("large")[..]], b'\n');
            assert!(run("f large b").ok() == once, "{mode}");
            assert_eq!(run("-c f large").text(), "0\n");
            let kept: &[&str] = if mode == SURE { &["f"] } else { &["f", "f.exact"] };
            let names = dir.files.names();
            assert_eq!(names[..1], ["a"]);
            assert_eq!(names[2..2 + kept.len()], *kept, "{names:?}");
        }
    }
}

#[test]
fn nul_count_link_and_alias() {
    let dir = TestDir::new();
    let run = |args: &str, input: &[u8]| dir.run_with(args, input);
    assert_eq!(run("seen -n 9 -p 1e-6 -z f", b"a\nb\0c\0a\nb").ok(), b"a\nb\0c\0");
    assert_eq!(run("seen -c f -", b"a\nb\nc\na\n").text(), "2\n");
    // -c remembers lines too: `a` was new there.
    assert_eq!(run("seen f", b"a\nb\nc\nd\n").text(), "d\n");
    std::os::unix::fs::symlink("f", dir.files.file("link")).unwrap();
    assert_eq!(run("seen link", b"d\ne\n").text(), "e\n");
    assert!(fs::symlink_metadata(dir.files.file("link")).unwrap().is_symlink());
    assert_eq!(run("seen f", b"e\n").text(), "");
    // `check` and `add` use the same file.
    assert_eq!(run("check -v f", b"e\ng\n").text(), "g\n");
    run("add f", b"g\n").ok();
    assert_eq!(run("seen f", b"g\nh\n").text(), "h\n");
    assert_eq!(dir.files.names(), ["f", "link"]);
}

#[test]
fn other_settings_than_at_the_first_run_are_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    failure(dir.run("seen f a"), &["f: does not exist", "-n"]);
    failure(dir.run("seen -n 5 f missing"), &["missing: cannot read"]);
    failure(dir.run("seen -n 5 no/f a"), &["no/f", "cannot write"]);
    failure(dir.run("seen -n 5 . a"), &["."]);
    failure(dir.run("seen -n 5 -m 7M f a"), &["-m"]);
    failure(dir.run("seen -n 1e9 -m 64M f a"), &["raise -m"]);
    assert_eq!(dir.files.names(), ["a"]);
    // Without input lines the file is created all the same.
    assert_eq!(dir.run("seen -n 5 f").text(), "");
    for args in ["-n 6", "-p 2%", "-n 5 -p 0.5"] {
        failure(dir.run(&format!("seen {args} f a")), &["was created for 5 lines at 1 %"]);
    }
    failure(dir.run("seen --exact f a"), &["without --exact"]);
    failure(dir.run("seen f f"), &["same file"]);
    failure(dir.sh("exec \"$petal\" seen f a >> f"), &["same file"]);
    failure(dir.run("seen a a"), &["a: "]);
    assert_eq!(dir.run("seen f a").text(), "x\n");
    assert_eq!(dir.files.names(), ["a", "f"]);
}

#[test]
fn overfull_seen_warns_once_and_keeps_its_rate() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..20_000);
    let output = dir.run("seen -n 20000 -p 10% f a");
    assert_eq!(output.err, "");
    // The rate grows from 0 to the target rate.
    let withheld = 20_000 - lines(&output.out).len() as u64;
    assert!(withheld > 100, "{withheld}");
    assert!(withheld <= bounds::binomial_range(20_000, 0.1, 0.999_999).1, "{withheld}");
    write_lines(&dir.files.file("b"), 50_000..80_000);
    let output = dir.run("seen f b");
    assert_eq!(output.err.lines().count(), 1, "{}", output.err);
    assert!(output.err.starts_with("petal: warning: the filter was planned for 20,000 keys"));
    assert_eq!(dir.run("seen -q f b").err, "");
}

#[test]
fn exact_prints_every_line_with_a_full_filter() {
    let dir = TestDir::new();
    // More lines than the table holds at this memory limit, so they are saved several times.
    write_lines(&dir.files.file("a"), (0..500_000).map(|i| i * 7 % 400_000));
    let (a, all) = (dir.read("a"), model::dedup(&[&dir.read("a")[..]], b'\n'));
    for jobs in [1, 4] {
        let output = dir.run(&format!("seen --exact -q -n 10 -p 50% -m 8M -j {jobs} f a"));
        assert!(output.peak <= (8 << 20) + MEMORY_OVERHEAD, "peak {} KiB", output.peak / 1024);
        assert!(output.ok() == all);
        let again = [&a[..], b"new\n", &a[..1000], b"\nnew\n"].concat();
        let output = dir.run_with("seen -q -m 8M f -", &again);
        assert!(output.peak <= (8 << 20) + MEMORY_OVERHEAD, "peak {} KiB", output.peak / 1024);
        let out = output.text();
        assert!(out.starts_with("new\n") && out.lines().count() <= 2, "{out}");
        let output = dir.run("seen f /dev/null");
        assert!(output.err.contains("note:") && output.err.contains("slow"), "{}", output.err);
        assert_eq!(fs::metadata(dir.files.file("f.exact")).unwrap().len() % 16, 0);
        fs::remove_file(dir.files.file("f")).unwrap();
        fs::remove_file(dir.files.file("f.exact")).unwrap();
    }
}

#[test]
fn mismatched_filter_and_log_are_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\n");
    for filter in ["f", "g"] {
        assert_eq!(dir.run(&format!("seen --exact -n 5 {filter} a")).text(), "x\ny\n");
    }
    let (exact, other) = (dir.read("f.exact"), dir.read("g.exact"));
    let gone = dir.files.file("f.exact");
    fs::remove_file(&gone).unwrap();
    failure(dir.run("seen f a"), &["f.exact: is missing"]);
    assert!(!gone.exists());
    dir.write("f.exact", &other);
    failure(dir.run("seen f a"), &["f.exact: does not belong to f"]);
    dir.write("f.exact", &exact);
    dir.run("build -q -o h a").ok();
    dir.write("h.exact", &exact);
    failure(dir.run("seen h a"), &["h.exact: does not belong to h"]);
    // `add` would change the filter and not its log.
    failure(dir.run("add f a"), &["f: ", "petal seen"]);
    assert_eq!(dir.run("seen f a").text(), "");
    fs::remove_file(dir.files.file("f")).unwrap();
    failure(dir.run("seen --exact -n 5 f a"), &["f.exact: has 2 fingerprints", "f is missing"]);
    assert_eq!(dir.read("f.exact"), exact);
}

#[test]
fn damaged_fingerprint_log_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nz\n");
    dir.run("seen --exact -n 5 f a").ok();
    let whole = dir.read("f.exact");
    assert_eq!(whole.len(), 2 * PAGE);
    let flips = corrupt::bit_flips(&whole).step_by(1511).map(|(_, bytes)| bytes);
    let cuts = corrupt::truncations(&whole).step_by(501).map(<[u8]>::to_vec);
    let mut hostile: Vec<_> = flips.chain(cuts).collect();
    hostile.extend([b"just some text\n".repeat(500), vec![0xff; 2 * PAGE], vec![0; 2 * PAGE]]);
    for bytes in hostile {
        dir.write("f.exact", &bytes);
        failure(dir.run("seen f a"), &["f.exact: "]);
        assert!(dir.read("f.exact") == bytes);
    }
    fs::remove_file(dir.files.file("f.exact")).unwrap();
    fs::create_dir(dir.files.file("f.exact")).unwrap();
    failure(dir.run("seen f a"), &["f.exact: is not a regular file"]);
}

/// A save appends a page to the log. What an interrupted one leaves is cut by the next.
#[test]
fn later_runs_append_to_the_fingerprint_log() {
    let dir = TestDir::new();
    dir.run_with("seen --exact -n 50 -p 50% f", b"a\nb\n").ok();
    let (inode, first) = common::inode_and_content(&dir.files.file("f.exact"));
    assert_eq!(first.len(), 2 * PAGE);
    let mut before = first;
    for (at, line) in ["c\n", "d\n", "e\n"].iter().enumerate() {
        for rest in corrupt::extensions(&before).map(|longer| longer[before.len()..].to_vec()) {
            // A dry run changes no file.
            dir.write("f.exact", [&before[..], &rest].concat());
            let lines = format!("a\nb\n{line}").into_bytes();
            assert_eq!(dir.run_with("seen --dry-run f", &lines).text(), *line);
            assert_eq!(dir.read("f.exact").len(), before.len() + rest.len());
        }
        let lines = format!("a\nb\n{line}").into_bytes();
        assert_eq!(dir.run_with("seen f", &lines).text(), *line);
        let (same, after) = common::inode_and_content(&dir.files.file("f.exact"));
        assert_eq!((same, after.len()), (inode, (3 + at) * PAGE));
        assert!(after.starts_with(&before));
        assert_eq!(dir.run_with("seen f", &lines).text(), "");
        before = after;
    }
    // Damage before the last complete save.
    let mut damaged = before.clone();
    damaged[3 * PAGE] ^= 1;
    dir.write("f.exact", &damaged);
    failure(dir.run_with("seen f", b"a\n"), &["f.exact: a page does not match its checksum"]);
    assert!(dir.read("f.exact") == damaged);
}

#[test]
fn lines_are_printed_at_once_and_saved_on_a_signal() {
    for (mode, name) in MODES.into_iter().zip(["INT", "TERM"]) {
        let dir = TestDir::new();
        // The second input is never reached.
        dir.write("f2", "other\n");
        let (mut child, mut input, mut output) = open(&dir, &format!("seen -n 9 {mode} f - f2"));
        drop((input.write_all(b"one\ntwo\n"), input.flush()));
        assert_eq!((line(&mut output), line(&mut output)), ("one\n".into(), "two\n".into()));
        input.write_all(b"half a li").unwrap();
        signal(&child, name);
        assert_eq!(common::wait(&mut child, 30).code(), Some(130), "{name}");
        assert_eq!(line(&mut output), "");
        assert_eq!(dir.run_with("seen f", b"one\ntwo\nhalf a li\n").text(), "half a li\n");
        assert!(!dir.files.file("f.lock").exists());
    }
}

#[test]
fn signal_in_the_middle_of_a_file_saves_its_lines() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..400_000);
    let (mut child, _input, mut output) = open(&dir, &format!("seen -n 1e6 {SURE} f a"));
    let mut first = vec![0; 1000];
    output.read_exact(&mut first).unwrap();
    signal(&child, "INT");
    output.read_to_end(&mut first).unwrap();
    assert_eq!(common::wait(&mut child, 30).code(), Some(130));
    let rest = dir.run("seen f a").ok();
    assert!([first, rest].concat() == dir.read("a"));
}

#[test]
fn seen_saves_regularly() {
    for mode in MODES {
        let dir = TestDir::new();
        let args = format!("seen -n 9 {mode} --save-every 0 f -");
        let (mut child, mut input, mut output) = open(&dir, &args);
        input.write_all(b"one\n").unwrap();
        assert_eq!(line(&mut output), "one\n");
        // Lines are printed before they are saved: wait until they are.
        let exact = if mode == SURE { "f" } else { "f.exact" };
        let saved =
            || fs::metadata(dir.files.file(exact)).is_ok_and(|data| data.len() > PAGE as u64);
        while !saved() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        signal(&child, "KILL");
        assert_eq!(common::wait(&mut child, 30).code(), None);
        // The lock ended with the process; the file remains.
        assert!(dir.files.file("f.lock").exists());
        assert_eq!(dir.run_with("seen f", b"one\ntwo\n").text(), "two\n");
        assert!(!dir.files.file("f.lock").exists());
    }
}

#[test]
fn kill_loses_no_line() {
    for mode in MODES {
        let dir = TestDir::new();
        // Each line twice, so that the output of a batch fits the buffer and is not flushed early.
        write_lines(&dir.files.file("a"), (0..600_000).map(|i| i / 2));
        let all = dir.read("a");
        let mut printed: HashSet<Vec<u8>> = HashSet::new();
        for round in 1..=8 {
            let args = format!("seen -q -n 1e6 {mode} -m 32M -j {round} --save-every 0 f a");
            let (mut child, _input, mut output) = open(&dir, &args);
            // In every other round the output is not read: lines in the pipe's buffer must not be
            // saved as printed. Later rounds may print less.
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
            common::wait(&mut child, 30);
            output.read_to_end(&mut out).unwrap();
            printed.extend(lines(&out).into_iter().map(<[u8]>::to_vec));
        }
        let output = dir.run("seen -q f a");
        assert_eq!(output.code, Some(0), "{}", output.err);
        printed.extend(lines(&output.out).into_iter().map(<[u8]>::to_vec));
        let missing = lines(&all).into_iter().filter(|line| !printed.contains(*line)).count();
        assert_eq!((missing, printed.len()), (0, 300_000), "{mode}");
        assert_eq!(dir.run("seen -q f a").text(), "", "{mode}");
    }
}

#[test]
fn unread_lines_are_not_remembered() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..200_000);
    for mode in MODES {
        let args =
            format!("\"$petal\" seen -n 1e6 {mode} f a | head -n 1; exit ${{PIPESTATUS[0]}}");
        let output = dir.sh(&args);
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
        assert_eq!(dir.files.names(), ["a"], "{mode}");
        let output = dir.sh(&format!("exec \"$petal\" seen -n 1e6 {mode} f a > /dev/full"));
        failure(output, &["no space left"]);
        let output = dir.sh(&format!("exec \"$petal\" seen -c -n 1e6 {mode} f a > /dev/full"));
        failure(output, &["no space left"]);
        assert_eq!(dir.files.names(), ["a"], "{mode}");
    }
    // Also with an existing filter.
    dir.run_with("seen -n 1e6 -p 1e-12 f", b"early\n").ok();
    let before = common::inode_and_content(&dir.files.file("f"));
    dir.sh("\"$petal\" seen f a | head -n 1").ok();
    assert_eq!(common::inode_and_content(&dir.files.file("f")), before);
    assert!(dir.run("seen f a").ok() == dir.read("a"));
}

#[test]
fn failing_input_saves_the_printed_lines() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.write("b", [b"y\n".to_vec(), vec![b'z'; 3 << 20]].concat());
    let output = dir.run(&format!("seen -n 9 {SURE} -m 8M -j 1 f a b"));
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("b: the line at byte 2 is longer"), "{}", output.err);
    assert_eq!(output.out, b"x\n");
    assert_eq!(dir.run_with("seen f", b"x\ny\n").text(), "y\n");
}

#[test]
fn full_disk_keeps_the_old_filter() {
    let dir = TestDir::new();
    let inside = |script: &str| {
        let script = format!("mkdir -p full && mount -t tmpfs -o size=1m none full && {script}");
        let script = script.replace('\'', "'\\''");
        common::run_with_input(dir.shell(&format!("exec unshare -rm bash -c '{script}'")), b"")
    };
    if inside("true").code != Some(0) {
        return skipped("full_disk_keeps_the_old_filter", "no namespaces or no mounts here");
    }
    write_lines(&dir.files.file("a"), 0..200_000);
    let output =
        inside("{ \"$petal\" seen -n 1e7 full/f a > /dev/null; r=$?; ls -A full; exit $r; }");
    failure(output, &["full/f: cannot write: no space left"]);
    // The filter fits the disk, the log does not: lines are printed again, and none is lost.
    let script = "{ head -n 9 a | \"$petal\" seen --exact -n 1e4 full/f > /dev/null; \
                  \"$petal\" seen -q full/f a > /dev/null; r=$?; ls -A full >&2; \
                  \"$petal\" seen -q full/f <(head -n 20 a); exit $r; }";
    let output = inside(script);
    assert_eq!(output.code, Some(2));
    let errors: Vec<_> = output.err.lines().collect();
    assert!(errors[0].contains("full/f.exact: cannot write: no space left"), "{}", output.err);
    assert_eq!(errors[1..], ["f", "f.exact"]);
    assert_eq!(lines(&output.out), lines(&dir.read("a"))[9..20]);
}

/// A partial last line of the output file gets a line end, and is not joined to the next line.
#[test]
fn partial_last_line_is_terminated_before_appending() {
    for (delimiter, zero) in [("\n", ""), ("\0", "-z")] {
        let dir = TestDir::new();
        let append = |input: &str, shell: &str| {
            dir.write("input", input.replace(';', delimiter));
            let args = format!("\"$petal\" seen -n 99 {SURE} {zero} f input {shell}");
            let output = dir.sh(&args);
            assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
        };
        let holds = |text: &str| {
            let text = text.replace(';', delimiter);
            assert_eq!(String::from_utf8(dir.read("new")).unwrap(), text, "{zero}");
        };
        dir.write("new", "torn");
        // No line to print: nothing is written.
        append("", ">> new");
        holds("torn");
        append("one;two;", ">> new");
        holds("torn;one;two;");
        append("three;", ">> new");
        holds("torn;one;two;three;");
        dir.write("new", "torn");
        // Opened for reading and writing at offset 0: overwritten on purpose.
        append("four and more;", "1<> new");
        holds("four and more;");
        append("six;", "> new");
        holds("six;");
        // Opened for reading and writing, at the end.
        dir.write("new", "torn");
        let script =
            format!("exec 4<> new; cat <&4 > /dev/null; \"$petal\" seen {zero} f - <<< seven >&4");
        dir.sh(&script).ok();
        let read = String::from_utf8(dir.read("new")).unwrap();
        assert!(read.starts_with(&format!("torn{delimiter}seven")), "{read:?}");
    }
    // A file that cannot be read: a warning.
    let dir = TestDir::new();
    dir.write("new", "torn");
    let output = dir.sh(&format!(
        "chmod 200 new; [ -r new ] && exit 7; \"$petal\" seen -n 99 {SURE} f - <<< one >> new"
    ));
    if output.code == Some(7) {
        return skipped(
            "partial_last_line_is_terminated_before_appending",
            "every file can be read here",
        );
    }
    assert!(
        output.err.contains("cannot read the end of the file: permission denied"),
        "{}",
        output.err
    );
}

/// `petal seen F < log >> new`, ended within its first line by a signal or a full disk: the line is
/// printed again on a new line.
#[test]
fn appended_lines_survive_a_kill_and_a_full_disk() {
    // Longer than 1 KiB, the unit of `ulimit -f`.
    let line_of = |at: usize| format!("{at} {}\n", "word ".repeat(600));
    for mode in MODES {
        for (trap, code) in [("", None), ("trap '' XFSZ;", Some(2))] {
            let dir = TestDir::new();
            let args = format!("seen -n 99 {mode} f < log >> new");
            dir.write("new", "");
            let mut all = Vec::new();
            let mut torn = HashSet::new();
            for at in 0..5 {
                all.push(line_of(at));
                dir.write("log", all.concat());
                for _ in 0..=at % 2 {
                    let limit = dir.read("new").len() / 1024 + 1;
                    let script = format!("{trap} ulimit -f {limit}; exec \"$petal\" {args}");
                    let output = common::run_with_input(dir.shell(&script), b"");
                    assert_eq!(output.code, code, "{}", output.err);
                    let new = dir.read("new");
                    assert_eq!(new.len(), limit * 1024);
                    let last = new.rsplit(|byte| *byte == b'\n').next().unwrap();
                    torn.insert([last, b"\n"].concat());
                }
                dir.sh(&format!("exec \"$petal\" {args}")).ok();
            }
            let new = dir.read("new");
            let (parts, whole): (Vec<&[u8]>, Vec<_>) =
                lines(&new).into_iter().partition(|line| torn.contains(*line));
            assert!(whole.concat() == all.concat().into_bytes(), "{mode} {trap}");
            assert!(parts.len() >= 5 && new.ends_with(b"\n"), "{}", parts.len());
        }
    }
}

#[test]
fn one_run_at_a_time() {
    let dir = TestDir::new();
    let (mut child, mut input, mut output) = open(&dir, &format!("seen -n 9 {SURE} f -"));
    input.write_all(b"one\n").unwrap();
    assert_eq!(line(&mut output), "one\n");
    failure(dir.run_with("seen -n 9 f", b"two\n"), &["f: another run is using it"]);
    std::os::unix::fs::symlink("f", dir.files.file("link")).unwrap();
    failure(dir.run_with("seen -n 9 link", b"two\n"), &["f: another run is using it"]);
    failure(dir.run_with("add f", b"two\n"), &["f: another run is using it"]);
    dir.run_with("seen -n 9 g", b"two\n").ok();
    drop(input);
    assert_eq!(common::wait(&mut child, 30).code(), Some(0));
    assert_eq!(dir.run_with("seen f", b"one\ntwo\n").text(), "two\n");
}

#[test]
fn memory_stays_below_the_limit() {
    let dir = TestDir::new();
    let short = |n: u64| format!("{:x}\n", n * 5).into_bytes();
    let bytes: Vec<u8> = (0..500_000).flat_map(short).collect();
    dir.write("a", &bytes);
    dir.write("long", [vec![b'x'; 2 << 20], vec![b'\n'], vec![b'y'; 2 << 20]].concat());
    for (mode, jobs) in [("--exact -n 1e6", 1), ("--exact -n 10", 16), ("-n 2e6", 4)] {
        for save in ["", "--save-every 0"] {
            let args = format!("seen -q {mode} -p 1% -m 8M -j {jobs} {save}");
            let output = dir.sh(&format!("exec \"$petal\" {args} f a long a > /dev/null"));
            assert_eq!(output.code, Some(0), "{args}: {}", output.err);
            assert!(
                output.peak <= (8 << 20) + MEMORY_OVERHEAD,
                "{args}: peak {} KiB",
                output.peak / 1024
            );
            for name in dir.files.names().iter().filter(|name| name.starts_with('f')) {
                fs::remove_file(dir.files.file(name)).unwrap();
            }
        }
    }
}

/// Returns lines of random numbers below `distinct`.
fn random_lines(count: u64, distinct: u64, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..count).flat_map(|_| format!("{}\n", rng.next_u64() % distinct).into_bytes()).collect()
}

/// Returns the lines that `seen --last` prints, from a model with exact generations.
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

/// The output does not depend on the size of batches, which depends on memory and threads: it is
/// that of a model which handles one line at a time.
#[test]
fn last_drops_the_same_lines_for_every_batch_size() {
    let dir = TestDir::new();
    let once = |bytes: &[u8]| model::dedup(&[bytes], b'\n');
    let few = random_lines(20_000, 100, 1);
    dir.write("few", &few);
    let many = random_lines(100_000, 20_000, 2);
    dir.write("many", &many);
    for (input, lasts, expected) in
        [("few", &[200, 150, 101, 100][..], once(&few)), ("many", &[30_000], once(&many))]
    {
        for last in lasts {
            for (memory, jobs) in [("8M", 1), ("64M", 1), ("64M", 4), ("1G", 2)] {
                let args = format!("seen -q --last {last} -p 1e-9 -m {memory} -j {jobs} f");
                let out = dir.run(&format!("{args} {input}")).ok();
                let lines = lines(&out).len();
                assert!(out == expected, "{args} {input}: {lines} lines");
                fs::remove_file(dir.files.file("f")).unwrap();
            }
        }
    }
    // Windows smaller than the number of distinct lines.
    let input = random_lines(30_000, 900, 3);
    dir.write("input", &input);
    for last in [1, 40, 500, 800] {
        let expected = first_in_window(&lines(&input), last);
        for (memory, jobs) in [("8M", 1), ("64M", 4), ("1G", 1)] {
            let args = format!("seen -q --last {last} -p 1e-9 -m {memory} -j {jobs} f input");
            assert!(dir.run(&args).ok() == expected, "{args}");
            fs::remove_file(dir.files.file("f")).unwrap();
        }
        // From a pipe, whose batches are the lines that have arrived.
        let args = format!("seen -q --last {last} -p 1e-9 f -");
        let (mut child, mut feed, mut output) = open(&dir, &args);
        let reader = std::thread::spawn(move || {
            let mut out = Vec::new();
            output.read_to_end(&mut out).map(|_| out)
        });
        for piece in input.chunks(777) {
            feed.write_all(piece).unwrap();
        }
        drop(feed);
        assert_eq!(common::wait(&mut child, 30).code(), Some(0));
        assert!(reader.join().unwrap().unwrap() == expected, "{args}");
        fs::remove_file(dir.files.file("f")).unwrap();
    }
}

/// Filters of all types that support `add`, with several batch sizes.
#[test]
fn every_type_of_filter_prints_each_line_once() {
    let dir = TestDir::new();
    let input = random_lines(40_000, 3000, 4);
    dir.write("input", &input);
    dir.write("none", "");
    let expected = model::dedup(&[&input], b'\n');
    let fixed = ["bloom", "classic", "counting", "counting-classic", "quotient"];
    let fixed = fixed.map(|kind| format!("--type {kind} -n 4000"));
    let growing =
        ["--type scalable -n 10", "--type quotient -n 10 --max-capacity 4000", "--last 3000"];
    for kind in fixed.iter().map(String::as_str).chain(growing) {
        for (memory, jobs) in [("8M", 1), ("64M", 4)] {
            dir.run(&format!("build -q {kind} -p 1e-9 -o f none")).ok();
            let out = dir.run(&format!("seen -q -m {memory} -j {jobs} f input")).ok();
            assert!(out == expected, "{kind} -m {memory} -j {jobs}: {}", lines(&out).len());
            assert_eq!(dir.run("seen -q f input").text(), "", "{kind}");
        }
    }
}

/// A line printed within the window is dropped; a repeat does not extend the window.
#[test]
fn lines_are_printed_again_after_the_window() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..1000);
    write_lines(&dir.files.file("b"), 5000..6000);
    let day = |day: u64| 1_000_000_000 + day * 86_400;
    let seen = |args: &str, on: u64| dir.run(&format!("seen {args} --now {}", day(on))).ok();
    let (a, b) = (dir.read("a"), dir.read("b"));
    let twice = "--window 7d -n 10_000 -p 1e-6 w a a";
    assert!(seen(twice, 0) == a);
    // Dropped lines do not extend the window.
    for on in [1, 4, 7] {
        assert_eq!(seen("w a", on), b"", "day {on}");
    }
    assert!(seen("w a b", 6) == b);
    assert!(seen(twice, 10) == a, "after a week and at most a third of one");
    assert!(seen("w b a", 11).is_empty() && seen("w a b", 16) == b);
    // By count: the last 1,000 lines printed.
    assert!(dir.run("seen --last 1000 -p 1e-6 l a").ok() == a);
    assert_eq!(dir.run("seen l a a").ok(), b"");
    assert!(dir.run("seen l b").ok() == b && dir.run("seen l b").ok().is_empty());
    let again = dir.run("seen l -c a").text().trim().parse::<u64>().unwrap();
    assert!(again > 300, "{again}");
    // A filter made by `build` can be used too.
    dir.run(&format!("build -q --window 7d -n 9000 -p 1e-6 -o built a --now {}", day(0))).ok();
    assert!(seen("built a b", 3) == b);
    for (args, message) in [
        (
            "--window 7d new a",
            "new: does not exist yet; specify with -n the number of lines in the window",
        ),
        ("--window 6d w a", "w: was created for 10,000 lines in 7d at 1.00e-6; leave"),
        ("--last 10_000 w a", "leave out --last, or"),
        ("--last 999 l a", "l: was created for 1,000 lines (the last ones) at"),
        ("--window 7d l a", "leave out --window, or"),
        ("-n 1000 l a", "leave out -n, or"),
        ("-n 1e8 --window 7d -m 8M new a", "raise -m"),
    ] {
        let line = dir.run(&format!("seen {args}")).failure();
        assert!(line.contains(message), "{args}: {line}");
    }
    dir.run("seen -n 1000 plain a").ok();
    let line = dir.run("seen --window 7d plain a").failure();
    assert!(line.contains("lines in all runs at 1 %; leave out --window, or"), "{line}");
    for args in ["--exact --window 7d", "--exact --last 5", "--last 5 --window 7d", "--last 5 -n 5"]
    {
        assert_eq!(dir.run(&format!("seen {args} x a")).code, Some(2), "{args}");
    }
}

/// Only the settings that differ are to be left out.
#[test]
fn settings_that_differ_from_the_filter_are_named() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.run("seen -n 5 -p 1% f a").ok();
    for (flags, advice) in [
        ("-n 6", "leave out -n, or"),
        ("-p 2%", "leave out -p, or"),
        ("-n 5 -p 2%", "leave out -p, or"),
        ("-n 6 -p 2%", "leave out -n and -p, or"),
        ("-n 6 --window 7d", "leave out -n and --window, or"),
    ] {
        let line = dir.run(&format!("seen {flags} f a")).failure();
        assert!(line.contains("was created for 5 lines") && line.contains(advice), "{line}");
    }
    dir.run("seen -n 5 -p 1% f a").ok();
    dir.run("build -q -o unplanned --bits 999 -k 3 a").ok();
    let line = dir.run("seen -n 6 unplanned a").failure();
    assert!(line.contains("was created without a capacity; leave out -n, or"), "{line}");
}

#[test]
fn followed_files_are_read_as_they_grow_and_rotate() {
    let dir = TestDir::new();
    dir.write("log", "one\ntwo\nthr");
    dir.write("other", "");
    let mut command = dir.petal(&format!("seen --follow -n 1e4 {SURE} f log other"));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let append = |name: &str, text: &str| {
        let file = fs::File::options().append(true).open(dir.files.file(name));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    };
    assert_eq!([line(&mut output), line(&mut output)], ["one\n", "two\n"]);
    append("log", "ee\none\n");
    assert_eq!(line(&mut output), "three\n");
    append("other", "two\nfour\n");
    assert_eq!(line(&mut output), "four\n");
    fs::rename(dir.files.file("log"), dir.files.file("log.1")).unwrap();
    append("log.1", "five");
    dir.write("log", "six\nthree\nseven\n");
    let mut rotated = [line(&mut output), line(&mut output), line(&mut output)];
    rotated.sort();
    assert_eq!(rotated, ["five\n", "seven\n", "six\n"]);
    signal(&child, "INT");
    assert_eq!(common::wait(&mut child, 30).code(), Some(130));
    assert_eq!(line(&mut output), "");
    // All printed lines are remembered.
    assert_eq!(dir.run("seen f log log.1 other").text(), "");
}

#[test]
fn followed_json_is_compared_by_values() {
    let dir = TestDir::new();
    dir.write("log", "{\"u\":1}\n{\"v\":2,\"u\":1}\n{\"u\":2}\n{\"u\"");
    let mut command = dir.petal(&format!("seen --follow -n 1e4 {SURE} f log --json-key /u"));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    assert_eq!([line(&mut output), line(&mut output)], ["{\"u\":1}\n", "{\"u\":2}\n"]);
    let log = fs::File::options().append(true).open(dir.files.file("log"));
    log.unwrap().write_all(b":3}\n").unwrap();
    assert_eq!(line(&mut output), "{\"u\":3}\n");
    signal(&child, "INT");
    assert_eq!(common::wait(&mut child, 30).code(), Some(130));
    let run = dir.run("seen f log --follow --json-key /u -c");
    assert!(run.code == Some(2) && run.err.contains("cannot be used with"), "{}", run.err);
}

#[test]
fn followed_csv_is_compared_by_columns() {
    let dir = TestDir::new();
    dir.write("log.csv", "");
    let args = format!("seen --follow -n 1e4 {SURE} f log.csv --column id");
    let mut child = dir.petal(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let append = |text: &str| {
        let file = fs::File::options().append(true).open(dir.files.file("log.csv"));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    };
    append("x,i");
    append("d\n\"a\n");
    append("b\",1\nc,1\nd,2\n\"e\n");
    let mut lines = |number| (0..number).map(|_| line(&mut output)).collect::<String>();
    assert_eq!(lines(4), "x,id\n\"a\nb\",1\nd,2\n");
    append("\",3\nlast,4");
    assert_eq!(lines(2), "\"e\n\",3\n");
    fs::rename(dir.files.file("log.csv"), dir.files.file("log.1.csv")).unwrap();
    dir.write("log.csv", "x,id\nnew,4\nnew,5\n");
    assert_eq!(lines(2), "last,4\nnew,5\n");
    signal(&child, "INT");
    assert_eq!(common::wait(&mut child, 30).code(), Some(130));
    assert_eq!(line(&mut output), "");
    assert_eq!(dir.run("seen f log.1.csv log.csv --column id").text(), "x,id\n");
    // Ctrl-C also ends the wait for a header.
    dir.write("empty.csv", "");
    let mut child = dir.petal("seen --follow f empty.csv --column id").spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal(&child, "INT");
    assert_eq!(common::wait(&mut child, 30).code(), Some(130));
}

#[test]
fn followed_csv_without_the_column_is_an_error() {
    let dir = TestDir::new();
    dir.write("log.csv", "x,id\n1,2\n");
    dir.write("other.csv", "id,x\n1,2\n");
    dir.write("tabs.tsv", "id\tx\n");
    for (files, text) in [
        ("log.csv --column y", "log.csv: has no column \"y\""),
        ("log.csv other.csv --column id", "other.csv: its header differs from that of log.csv"),
        (
            "log.csv tabs.tsv --column id",
            "tabs.tsv: cannot read: its fields are separated by another",
        ),
        ("log.csv --column 3", "has 2 fields, but the key is in field 3"),
    ] {
        // The records before the error are printed.
        let run = dir.run(&format!("seen --follow -n 9 f {files}"));
        assert!(run.code == Some(2) && run.err.contains(text), "{files}: {}", run.err);
    }
}

#[test]
fn follow_refuses_what_cannot_grow() {
    let dir = TestDir::new();
    dir.write("log", "one\n");
    failure(dir.run("seen --follow -n 9 f missing"), &["missing", "no such file"]);
    failure(dir.run("seen --follow -n 9 f log ."), &[".: ", "is a directory"]);
    let error = dir.run("seen --follow -n 9 f -").failure();
    let text = "standard input cannot be followed; name a file, or leave out --follow";
    assert_eq!(error, format!("petal: {text}"));
    assert!(!dir.files.file("f").exists());
}

#[test]
fn dry_run_changes_no_file() {
    for mode in MODES {
        let dir = TestDir::new();
        dir.write("a", "one\ntwo\none\n");
        dir.write("b", "two\nthree\n");
        let run = |args: &str| dir.run(&format!("seen --dry-run {args}"));
        assert_eq!(run(&format!("-n 1e4 {mode} f a")).text(), "one\ntwo\n");
        assert!(!dir.files.file("f").exists() && !dir.files.file("f.exact").exists());
        assert_eq!(dir.run(&format!("seen -n 1e4 {mode} f a")).text(), "one\ntwo\n");
        let before = dir.read("f");
        for _ in 0..2 {
            assert_eq!(run("f a b").text(), "three\n");
            assert_eq!(run("-c f a b").text(), "1\n");
        }
        assert_eq!(dir.read("f"), before);
        assert_eq!(dir.run("seen f b").text(), "three\n");
    }
}

/// A dry run reads what the other run saved last.
#[test]
fn dry_run_needs_no_lock() {
    for mode in MODES {
        let dir = TestDir::new();
        dir.write("a", "one\n");
        dir.write("b", "one\ntwo\n");
        dir.run(&format!("seen -n 1e4 {mode} f a")).ok();
        let start = || dir.petal("seen --follow f a").stdout(Stdio::piped()).spawn().unwrap();
        let mut child = start();
        while dir.run("seen f a").code == Some(0) {
            // The run that asks for the lock may have had it when the follower started.
            if child.try_wait().unwrap().is_some() {
                child = start();
            }
        }
        assert_eq!(dir.run("seen --dry-run f a b").text(), "two\n");
        failure(dir.run("seen f b"), &["f: another run is using it"]);
        signal(&child, "INT");
        assert_eq!(common::wait(&mut child, 30).code(), Some(130));
        assert_eq!(dir.run("seen f b").text(), "two\n");
    }
}
