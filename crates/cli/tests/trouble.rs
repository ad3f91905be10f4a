//! Trouble: exit code 2, one line on stderr that says what to do, and nothing left behind.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Stdio;

use kit::{Place, skipped, write_lines};

/// Runs into trouble, with every word of `says` in the one line.
#[track_caller]
fn trouble(place: &Place, words: &str, says: &[&str]) {
    let line = place.run(words).trouble();
    for say in says {
        assert!(line.contains(say), "{words}: {line}");
    }
}

#[test]
fn inputs_that_cannot_be_read() {
    let place = Place::new();
    place.write("a", "x\n");
    for verb in ["common a", "diff a", "dedup a"] {
        for output in ["", "-o out"] {
            trouble(
                &place,
                &format!("{verb} missing {output}"),
                &["missing: cannot read: no such"],
            );
            trouble(&place, &format!("{verb} . {output}"), &[".: is a directory"]);
        }
    }
    trouble(&place, "common missing a", &["missing: cannot read"]);
    trouble(&place, "build -o f missing", &["missing: cannot read"]);
    trouble(&place, "build -o f .", &[".: is a directory"]);
    trouble(&place, "common - -", &["standard input", "twice"]);
    trouble(&place, "dedup a -T missing --strategy partition", &["missing", "-T"]);
    place.run("build -o f a").ok();
    for words in
        ["check f missing", "check f .", "add f missing", "check missing a", "info missing"]
    {
        trouble(&place, words, &["petal: "]);
    }
    assert_eq!(place.files.names(), ["a", "f"]);
}

#[test]
fn a_file_one_may_not_read() {
    let place = Place::new();
    place.write("a", "x\n");
    place.write("b", "x\n");
    let secret = place.files.file("b");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let words = if fs::read(&secret).is_err() {
        "\"$petal\" common a b"
    } else if place.sh("setpriv --reuid 65534 --clear-groups \"$petal\" --version").code == Some(0)
    {
        // Root may read anything: be nobody.
        "exec setpriv --reuid 65534 --clear-groups \"$petal\" common a b"
    } else {
        return skipped("a_file_one_may_not_read", "as root, and nobody cannot run the program");
    };
    let line = place.sh(words).trouble();
    assert!(line.contains("b: cannot read: permission denied"), "{line}");
}

#[test]
fn words_that_are_wrong() {
    let place = Place::new();
    place.write("a", "x\n");
    // clap says these in several lines, with the usage; the code is what scripts see.
    for words in [
        "common a",
        "common",
        "nonsense",
        "diff a",
        "build a",
        "common a a -m 4",
        "common a a -m x",
        "common a a -m 0%",
        "common a a -m 101%",
        "common a a -j 0",
        "build -o f -n 0 a",
        "build -o f -n 1.5 a",
        "build -o f -p 0 a",
        "build -o f -p 1 a",
        "build -o f -p x a",
        "common a a --exact --approx",
        "common a a -p 0.1",
        "common a a -c -o f",
        "common a a -v",
        "plan -k 0",
        "common a a --progress perhaps",
        "merge -o f",
        "info",
    ] {
        let ran = place.run(words);
        assert_eq!((ran.code, ran.out.len()), (Some(2), 0), "{words}");
        assert!(ran.err.starts_with("error: ") || words.is_empty(), "{words}: {}", ran.err);
    }
    let ran = place.run("common a a -m 4");
    assert!(ran.err.contains("'4' has no unit; write 4M or 4G"), "{}", ran.err);
    assert_eq!(place.files.names(), ["a"]);
}

#[test]
fn too_little_memory() {
    let place = Place::new();
    place.write("a", "x\n");
    for verb in ["common a a", "diff a a", "dedup a", "common --approx a a"] {
        trouble(&place, &format!("{verb} -m 7M -o out"), &["-m", "7 MiB", "8 MiB", "raise"]);
        trouble(&place, &format!("{verb} -m 1K"), &["-m", "8 MiB"]);
    }
    // A filter larger than its cap: both ways out.
    trouble(&place, "build -o f -n 1e7 -p 0.001 -m 8M a", &["raise -m", "leave out -p"]);
    // What fits there would say yes to most things: no way out.
    trouble(&place, "build -o f -n 1e7 -p 0.001 -m 1M a", &["raise -m", "fewer keys with -n"]);
    let line = place.run_with("common --approx -n 1e9 -p 1e-6 -m 8M a -", b"x\n").trouble();
    assert!(line.contains("-m") && line.contains("-p"), "{line}");
    let line = place.run_with("common --approx -p 1e-6 a -", b"x\n").trouble();
    assert!(line.contains("say with -n"), "{line}");
    trouble(&place, "plan -n 1e7 -p 0.001 -m 1M", &["rate"]);
    place.run("build -o f -n 20_000_000 -p 0.01 a").ok();
    trouble(&place, "check -m 8M f a", &["f: the filter takes", "raise -m"]);
    trouble(&place, "add -m 8M f a", &["f: the filter takes", "raise -m"]);
    trouble(&place, "merge -m 8M -o g f f", &["f: the filter takes", "raise -m"]);
    assert_eq!(place.files.names(), ["a", "f"]);
}

#[test]
fn a_pipe_cannot_be_counted() {
    let place = Place::new();
    let line = place.run_with("build -o f -", b"x\ny\n").trouble();
    assert!(line.contains("-n"), "{line}");
    assert_eq!(place.files.names(), [""; 0]);
    place.run_with("build -o f -n 2 -", b"x\ny\n").ok();
}

#[test]
fn a_line_of_a_quarter_of_the_cap_works_and_one_byte_more_is_an_error() {
    let place = Place::new();
    let quarter = 2 << 20;
    let mut bytes = b"short\n".to_vec();
    bytes.resize(6 + quarter, b'x');
    place.write("fits", &bytes);
    bytes.push(b'x');
    place.write("long", &bytes);
    place.write("b", b"short\n");
    for way in ["", "--strategy narrow", "--strategy partition", "--strategy memory", "--approx"] {
        for jobs in [1, 4] {
            let flags = format!("-q -m 8M -j {jobs} {way}");
            let out = place.run(&format!("common {flags} fits fits")).ok();
            assert_eq!(out.len(), 6 + quarter + 1);
            for words in ["common long b", "common b long", "diff long b", "dedup b long"] {
                for output in ["-o out", "-c"] {
                    let says = ["long: the line at byte 6 is longer than 2 MiB", "raise -m"];
                    trouble(&place, &format!("{words} {flags} {output}"), &says);
                }
            }
        }
    }
    let line = place.run_with("dedup -m 8M -c -", &bytes).trouble();
    assert!(line.contains("-: the line at byte 6 is longer"), "{line}");
    assert_eq!(place.files.names(), ["b", "fits", "long"]);
}

#[test]
fn filter_files_that_are_none() {
    let place = Place::new();
    place.write("a", "x\ny\nz\n");
    place.run("build -o whole a").ok();
    let whole = place.read("whole");
    place.write("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    place.write("text", "just some text\n".repeat(50));
    place.write("none", "");
    place.write("cut", &whole[..whole.len() - 1]);
    place.write("stub", &whole[..20]);
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    place.write("flipped", &flipped);
    let mut newer = whole.clone();
    // The version is the two bytes behind the magic of eight: docs/format.md.
    newer[8] = 0xfe;
    place.write("newer", &newer);
    for name in ["png", "text", "none", "cut", "stub", "flipped", "newer"] {
        for words in [
            format!("info {name}"),
            format!("info --json {name}"),
            format!("verify {name}"),
            format!("add {name} a"),
            format!("merge -o out whole {name}"),
            format!("merge -o out {name} whole"),
        ] {
            let before = place.read(name);
            trouble(&place, &words, &[&format!("{name}: ")]);
            assert!(place.read(name) == before && !place.files.file("out").exists(), "{words}");
        }
        // `check` opens a file without reading it all: a flipped bit in the body is `verify`'s.
        if name != "flipped" {
            trouble(&place, &format!("check {name} a"), &[&format!("{name}: ")]);
        }
    }
    trouble(&place, "info newer", &["version"]);
    trouble(&place, "info png", &["not a petal file"]);
    trouble(&place, "info .", &["is a directory"]);
    assert_eq!(place.run("verify whole").text(), "whole: sound\n");
}

#[test]
fn filters_that_do_not_go_together() {
    let place = Place::new();
    place.write("a", "x\n");
    place.run("build -o f -n 1000 a").ok();
    place.run("build -o larger -n 100000 a").ok();
    place.run("build -o classic -n 1000 --type classic a").ok();
    place.run("build -o keyed -n 1000 --keyed a").ok();
    for other in ["larger", "classic", "keyed"] {
        trouble(&place, &format!("merge -o out f {other}"), &[&format!("{other}: ")]);
    }
    trouble(&place, "merge -o out f larger", &["in common", "same -n and -p", "--fold"]);
    assert!(!place.files.file("out").exists());
    assert!(place.run("merge --fold -o out f larger").err.contains("note: folded from"));
    assert_eq!(place.run("check -c out a").text(), "1\n");
}

#[test]
fn an_output_that_is_an_input() {
    let place = Place::new();
    place.write("a", "x\ny\n");
    place.write("b", "y\n");
    fs::hard_link(place.files.file("a"), place.files.file("hard")).unwrap();
    std::os::unix::fs::symlink("a", place.files.file("soft")).unwrap();
    for output in ["a", "./a", "hard", "soft"] {
        for words in ["common a b", "diff b a", "dedup a", "common soft b"] {
            trouble(&place, &format!("{words} -o {output}"), &["is the same file as the input"]);
        }
    }
    trouble(&place, "build -o a a", &["is the same file as the input"]);
    // The shell has emptied `a` when the program starts; `>>` has not.
    let line = place.sh("exec \"$petal\" common b a >> a").trouble();
    assert!(line.contains("standard output: is the same file"), "{line}");
    assert_eq!(place.read("a"), b"x\ny\n");
    let line = place.sh("exec \"$petal\" common a b > a").trouble();
    assert!(line.contains("standard output: is the same file"), "{line}");
    let line = place.sh("exec \"$petal\" dedup < b >> b").trouble();
    assert!(line.contains("standard output: is the same file"), "{line}");
    place.run("build -o f b").ok();
    trouble(&place, "check f b -o f", &["same file"]);
    trouble(&place, "add f f", &["same file"]);
    trouble(&place, "merge -o f f f", &["same file"]);
}

#[test]
fn an_output_that_cannot_be_written() {
    let place = Place::new();
    place.write("a", "x\n");
    trouble(&place, "dedup a -o .", &[".: is a directory"]);
    trouble(&place, "dedup a -o no/such/dir", &["no/such/dir: cannot write: no such file"]);
    trouble(&place, "build a -o no/such/dir", &["no/such/dir: cannot write"]);
    trouble(&place, "dedup a -o /dev/full", &["/dev/full: cannot write: no space left"]);
    let line = place.sh("exec \"$petal\" dedup a > /dev/full").trouble();
    assert!(line.contains("no space left"), "{line}");
    let line = place.sh("exec \"$petal\" dedup -c a > /dev/full").trouble();
    assert!(line.contains("no space left"), "{line}");
    place.run("build -o f a").ok();
    let line = place.sh("exec \"$petal\" info f > /dev/full").trouble();
    assert!(line.contains("no space left"), "{line}");
}

#[test]
fn a_full_disk() {
    let place = Place::new();
    let probe = "mkdir -p full && mount -t tmpfs -o size=1m none full";
    let inside = |script: &str| {
        let script = format!("{probe} && {{ {script}; }}");
        kit::ran_with(
            place.shell(&format!("exec unshare -rm bash -c '{}'", script.replace('\'', "'\\''"))),
            b"",
        )
    };
    if inside("true").code != Some(0) {
        return skipped("a_full_disk", "no namespaces or no mounts here");
    }
    write_lines(&place.files.file("a"), 0..200_000);
    write_lines(&place.files.file("b"), 100_000..300_000);
    // While spilling, in each way to spill.
    for way in ["--strategy narrow", "--strategy partition"] {
        for verb in ["common", "diff", "dedup"] {
            let script = format!(
                "\"$petal\" {verb} {way} -m 8M -T full -o out a a b; r=$?; ls -A full; exit $r"
            );
            let line = inside(&script).trouble();
            assert!(line.contains("full: no space left while"), "{script}: {line}");
            assert!(!place.files.file("out").exists());
        }
    }
    let line = inside("cat a | \"$petal\" common -q -T full b -").trouble();
    assert!(line.contains("full: no space left while copying"), "{line}");
    // While writing the output: an old file stays as it was.
    place.run("build -q -n 4e6 -o f a").ok();
    place.run("build -q -n 1e6 --type counting -p 1e-9 -o c a").ok();
    for words in [
        "dedup a",
        "common --strategy partition a a",
        "build -n 1e7 a",
        "build -p 1e-9 --type static a b",
        "diff --approx a b",
        "merge f f",
        "shrink f -p 1e-6",
        "freeze c",
    ] {
        let quiet = if words.starts_with("freeze") { "" } else { "-q" };
        let script = format!(
            "echo old > full/out; \"$petal\" {words} {quiet} -o full/out; r=$?; \
             [ \"$(cat full/out)\" = old ] && [ \"$(ls -A full)\" = out ] || echo harm; exit $r"
        );
        let line = inside(&script).trouble();
        assert!(line.contains("no space left"), "{words}: {line}");
    }
    // A filter that takes more than half of the disk can be read there, and not replaced.
    place.run("build -q -n 120_000 --type counting -o half a").ok();
    for words in ["add full/half b", "remove full/half b --missing /dev/null"] {
        let script = format!(
            "cp half full/; \"$petal\" {words} -q; r=$?; \
             cmp half full/half && [ \"$(ls -A full)\" = half ] || echo harm; exit $r"
        );
        let line = inside(&script).trouble();
        assert!(line.contains("no space left"), "{words}: {line}");
    }
}

#[test]
fn an_output_that_is_full_is_named() {
    let place = Place::new();
    place.write("a", "x\ny\nx\n");
    std::os::unix::fs::symlink("/dev/full", place.files.file("full")).unwrap();
    place.run("build -o f a").ok();
    for words in ["dedup a -o full", "dedup a --dupes-output full -o out", "check f a -o full"] {
        trouble(&place, words, &["full: cannot write: no space left on device"]);
    }
    let line = place.sh("exec \"$petal\" dedup a --dupes-output out > full").trouble();
    assert!(line.contains("standard output: cannot write: no space left"), "{line}");
}

#[test]
fn a_directory_for_temporary_data_is_checked_first() {
    let place = Place::new();
    place.write("a", "x\n");
    place.write("file", "");
    for verb in ["common a a", "diff a a", "dedup a", "dedup a -o out", "common --approx a a"] {
        for dir in ["missing", "file"] {
            trouble(&place, &format!("{verb} -T {dir}"), &[&format!("{dir}: "), "-T"]);
        }
    }
    trouble(&place, "common a a --work-dir file", &["--work-dir file: "]);
    assert_eq!(place.files.names(), ["a", "file"]);
}

#[test]
fn nobody_reads_on() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..200_000);
    place.run("build -q -o f a").ok();
    for words in [
        "dedup a",
        "common a a",
        "common --strategy partition a a",
        "diff --strategy narrow a b",
        "common --approx -q a a",
        "check f a",
    ] {
        place.write("b", "");
        let ran = place.sh(&format!("\"$petal\" {words} | head -n 1; exit ${{PIPESTATUS[0]}}"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{words}");
        assert_eq!(ran.out.iter().filter(|&&byte| byte == b'\n').count(), 1, "{words}");
    }
    for words in ["info f", "--help", "plan -n 5 -p 0.1", "verify f", "dedup -c a"] {
        let ran = place.sh(&format!("\"$petal\" {words} | true; exit ${{PIPESTATUS[0]}}"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{words}");
    }
}

#[test]
fn a_closed_standard_output_or_input_is_no_crash() {
    let place = Place::new();
    place.write("a", "x\n");
    place.run("build -o f a").ok();
    for words in ["dedup a", "dedup -c a", "common a a", "check f a", "info f", "seen -n 9 s a"] {
        let line = place.sh(&format!("exec \"$petal\" {words} >&-")).trouble();
        assert!(line.contains("standard output: is closed"), "{words}: {line}");
    }
    // What prints nothing there needs it not, and /dev/null takes anything.
    assert_eq!(place.sh("exec \"$petal\" dedup a -o out >&-").code, Some(0));
    assert_eq!(place.read("out"), b"x\n");
    assert_eq!(place.sh("exec \"$petal\" dedup a > /dev/null").code, Some(0));
    assert_eq!(place.sh("exec \"$petal\" dedup a <> /dev/null >&0").code, Some(0));
    let ran = place.sh("\"$petal\" dedup - <&-");
    assert!(ran.code == Some(0) || ran.code == Some(2), "{ran:?}");
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

/// The names of these are links that lead to nothing by themselves.
#[test]
fn an_output_may_be_a_pipe_by_name() {
    let place = Place::new();
    place.write("a", "x\ny\nx\n");
    for words in ["dedup a -o /dev/stdout | cat", "dedup a -o >(cat) | cat"] {
        let ran = place.sh(&format!("\"$petal\" {words}"));
        assert_eq!((&ran.out[..], ran.err.as_str()), (&b"x\ny\n"[..], ""), "{words}");
    }
}

#[test]
fn an_existing_output_keeps_permissions_and_link_until_success() {
    let place = Place::new();
    place.write("a", "x\ny\n");
    place.write("out", "old\n");
    let out = place.files.file("out");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("out", place.files.file("link")).unwrap();
    let before = kit::look(&out);
    trouble(&place, "common a missing -o link", &["missing"]);
    assert_eq!(kit::look(&out), before);
    place.run("dedup a -o link").ok();
    assert_eq!(place.read("out"), b"x\ny\n");
    assert!(fs::symlink_metadata(place.files.file("link")).unwrap().is_symlink());
    assert_eq!(fs::metadata(&out).unwrap().mode() & 0o7777, 0o640);
    // A new one gets what the umask leaves, like a file made by the shell.
    let ran =
        place.sh("umask 027; \"$petal\" dedup a -o new; \"$petal\" build -o f a; stat -c %a new f");
    assert_eq!(ran.text(), "640\n640\n");
    // A link to nothing is followed too.
    std::os::unix::fs::symlink("target", place.files.file("dangling")).unwrap();
    place.run("dedup a -o dangling").ok();
    assert!(fs::symlink_metadata(place.files.file("dangling")).unwrap().is_symlink());
    assert_eq!(place.read("target"), b"x\ny\n");
}

#[test]
fn a_signal_leaves_nothing_and_touches_nothing() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..1_500_000);
    write_lines(&place.files.file("b"), 700_000..2_000_000);
    place.write("out", "old\n");
    let before = kit::look(&place.files.file("out"));
    for (signal, code) in [("KILL", None), ("INT", Some(130)), ("TERM", Some(130))] {
        for words in [
            "common --strategy partition -m 8M -j 2 a b -o out",
            "diff --strategy narrow -m 8M -j 2 a b -o out",
            "dedup --strategy partition -m 8M -j 1 a b -o out",
            "build -j 1 -o out a b",
            // Copies standard input, which does not end, to the folder for temporary data.
            "common --strategy partition a - -o out",
        ] {
            let mut command = place.petal(words);
            command.args(["--progress", "always"]).stderr(Stdio::piped()).stdin(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut endless = child.stdin.take().unwrap();
            endless.write_all(&vec![b'\n'; 1 << 16]).ok();
            // The first words come when the work has begun.
            let mut stderr = BufReader::new(child.stderr.take().unwrap());
            stderr.read_line(&mut String::new()).unwrap();
            let sent = std::process::Command::new("kill")
                .args([format!("-{signal}"), child.id().to_string()])
                .status();
            assert!(sent.unwrap().success());
            let status = kit::wait(&mut child, 30);
            assert_eq!(status.code(), code, "{signal}: {words}: {status}");
            place.nothing_left();
            assert_eq!(place.files.names(), ["a", "b", "out"]);
            assert_eq!(kit::look(&place.files.file("out")), before, "{signal}: {words}");
        }
    }
}

/// A worker that waits for a writer must not keep the program when nobody reads its output.
#[test]
fn a_reader_that_is_gone_ends_it_while_the_writer_still_thinks() {
    let place = Place::new();
    let mut petal = place.petal("dedup -j 4");
    let mut petal = petal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(petal.stdout.take());
    let mut writer = petal.stdin.take().unwrap();
    writer.write_all(b"a line\n").unwrap();
    // The writer stays open: only the closed output can end it.
    assert_eq!(kit::wait(&mut petal, 60).code(), Some(0));
    drop(writer);
}

/// Redirected input is a file like any other: changed between passes it is an error.
#[test]
fn redirected_input_that_changes_is_an_error() {
    let place = Place::new();
    place.write("a", "1\n2\n3\n".repeat(200_000));
    // The second input comes through a pipe whose writer changes the first one meanwhile.
    let script = "\"$petal\" diff -q -m 8M --strategy partition - \
                  <(sleep 1; printf 9 | dd of=a bs=1 seek=2 conv=notrunc 2>/dev/null; echo x) < a";
    assert!(place.sh(script).trouble().contains("changed while"));
}
