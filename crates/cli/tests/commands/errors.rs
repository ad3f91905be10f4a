//! Errors: exit code 2, one line on stderr that says what to do, and no files left behind.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};

use crate::common::{self, STRATEGIES, TestDir, skipped, write_lines};

/// Fails unless the command fails with one line that contains all parts of `message`.
#[track_caller]
fn failure(dir: &TestDir, args: &str, message: &[&str]) {
    let line = dir.run(args).failure();
    for part in message {
        assert!(line.contains(part), "{args}: {line}");
    }
}

#[test]
fn unreadable_inputs_are_errors() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    for command in ["common a", "diff a", "dedup a"] {
        for output in ["", "-o out"] {
            failure(
                &dir,
                &format!("{command} missing {output}"),
                &["missing: cannot read: no such"],
            );
            failure(&dir, &format!("{command} . {output}"), &[".: is a directory"]);
        }
    }
    failure(&dir, "common missing a", &["missing: cannot read"]);
    failure(&dir, "build -o f missing", &["missing: cannot read"]);
    failure(&dir, "build -o f .", &[".: is a directory"]);
    failure(&dir, "common - -", &["-: is named twice"]);
    let same = "is the same stream as";
    for (args, message) in [
        ("common -c - /dev/stdin", same),
        ("symdiff /dev/fd/0 -", same),
        ("diff /dev/stdin /dev/stdin", "is named twice"),
        ("dedup a /dev/fd/0 /dev/stdin", same),
        ("build -n 9 -o f /dev/stdin -", same),
    ] {
        let line = dir.run_with(args, b"x\ny\n").failure();
        assert!(line.contains(message) && line.contains("read only once"), "{args}: {line}");
    }
    failure(&dir, "dedup a -T missing --strategy partition", &["missing", "-T"]);
    // It has no writer, so that reading would wait.
    assert!(Command::new("mkfifo").arg(dir.files.file("p")).status().unwrap().success());
    failure(&dir, "dedup p p", &["p: is named twice"]);
    failure(&dir, "common p ./p", &["./p: is the same stream as p"]);
    std::fs::remove_file(dir.files.file("p")).unwrap();
    dir.run("build -o f a").ok();
    for args in ["check f missing", "check f .", "add f missing", "check missing a", "info missing"]
    {
        failure(&dir, args, &["petal: "]);
    }
    assert_eq!(dir.files.names(), ["a", "f"]);
}

/// No line of `a` is in `b`, but an error in another input is found all the same.
#[test]
fn errors_do_not_depend_on_the_strategy() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\n".repeat(100));
    dir.write("b", "z\n");
    let lines: String = (0..20_000).map(|line| format!("{line}\n")).collect();
    let packed = common::pack::gz(lines.as_bytes());
    dir.write("cut.gz", &packed[..packed.len() - 9]);
    dir.write("long", [lines.as_bytes(), &vec![b'x'; 3 << 20], lines.as_bytes()].concat());
    for strategy in STRATEGIES {
        for order in ["a b BAD", "b a BAD", "a BAD b"] {
            for (bad, problem) in [("cut.gz", "cut short"), ("long", "longer than 2 MiB")] {
                let args = format!("common -m 8M {strategy} {}", order.replace("BAD", bad));
                failure(&dir, &args, &[bad, problem]);
            }
        }
    }
}

#[test]
fn unreadable_file_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.write("b", "x\n");
    let secret = dir.files.file("b");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let args = if fs::read(&secret).is_err() {
        "\"$petal\" common a b"
    } else if dir.sh("setpriv --reuid 65534 --clear-groups \"$petal\" --version").code == Some(0) {
        // Root may read every file: run as an unprivileged user.
        "exec setpriv --reuid 65534 --clear-groups \"$petal\" common a b"
    } else {
        return skipped(
            "unreadable_file_is_an_error",
            "running as root, and other users cannot run the program",
        );
    };
    let line = dir.sh(args).failure();
    assert!(line.contains("b: cannot read: permission denied"), "{line}");
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    for args in [
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
        let line = dir.run(args).failure();
        assert!(line.contains("; "), "{args}: {line}");
    }
    // Without any arguments: the usage.
    let output = dir.run("");
    assert_eq!((output.code, output.out.len()), (Some(2), 0));
    assert!(output.err.contains("See `petal --help`"), "{}", output.err);
    assert_eq!(dir.files.names(), ["a"]);
}

#[test]
fn swapped_arguments_are_explained() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.run("build -q -o f a").ok();
    dir.run("build -q --format guava -o guava a").ok();
    for command in ["check", "add", "remove", "seen", "explain"] {
        for filter in ["f", "guava"] {
            for other in ["a", "no-file"] {
                // A missing filter is one that `seen` creates.
                if (command, other) != ("seen", "no-file") {
                    let expected = format!(
                        "{other}: is not a filter, but {filter} is; name the filter first: petal \
                         {command} {filter} {other}"
                    );
                    failure(&dir, &format!("{command} {other} {filter}"), &[&expected]);
                }
            }
        }
        let line = dir.run(&format!("{command} a a")).failure();
        assert!(!line.contains("name the filter first"), "{line}");
    }
    // A damaged filter is one.
    let whole = dir.read("f");
    dir.write("cut", &whole[..whole.len() - 1]);
    failure(&dir, "check cut f", &["cut: damaged"]);
    assert_eq!(dir.files.names(), ["a", "cut", "f", "guava"]);
}

#[test]
fn too_little_memory_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    for command in ["common a a", "diff a a", "dedup a", "common --approx a a"] {
        failure(&dir, &format!("{command} -m 7M -o out"), &["-m", "7 MiB", "8 MiB", "raise"]);
        failure(&dir, &format!("{command} -m 1K"), &["-m", "8 MiB"]);
    }
    // A filter larger than the limit: both remedies.
    failure(&dir, "build -o f -n 1e7 -p 0.001 --size 8M a", &["raise --size", "leave out -p"]);
    // The rate of a filter of that size would be useless, so leaving out -p is not advised.
    failure(&dir, "build -o f -n 1e7 -p 0.001 --size 1M a", &["raise --size", "or lower -n"]);
    let line = dir.run_with("common --approx -n 1e9 -p 1e-6 -m 8M a -", b"x\n").failure();
    assert!(line.contains("-m") && line.contains("-p"), "{line}");
    let line = dir.run_with("common --approx -p 1e-6 a -", b"x\n").failure();
    assert!(line.contains("; specify -n"), "{line}");
    // The limit of the process is less than the filter, and less than any job needs.
    failure(&dir, "build -o f -n 1e7 -p 0.001 -m 8M a", &["the memory limit leaves; raise -m"]);
    failure(&dir, "build -o f -n 10 -m 7M a", &["-m", "7 MiB", "8 MiB", "raise"]);
    failure(&dir, "plan -n 1e7 -p 0.001 --size 1M", &["rate"]);
    dir.run("build -o f -n 20_000_000 -p 0.01 a").ok();
    failure(&dir, "check -m 8M f a", &["f: the filter takes", "raise -m"]);
    failure(&dir, "add -m 8M f a", &["f: the filter takes", "raise -m"]);
    failure(&dir, "merge -m 8M -o g f f", &["f: the filter takes", "raise -m"]);
    assert_eq!(dir.files.names(), ["a", "f"]);
}

#[test]
fn build_from_pipe_needs_a_capacity() {
    let dir = TestDir::new();
    let line = dir.run_with("build -o f -", b"x\ny\n").failure();
    assert!(line.contains("-n"), "{line}");
    assert_eq!(dir.files.names(), [""; 0]);
    dir.run_with("build -o f -n 2 -", b"x\ny\n").ok();
}

#[test]
fn line_over_a_quarter_of_the_memory_limit_is_an_error() {
    let dir = TestDir::new();
    let quarter = 2 << 20;
    let mut bytes = b"short\n".to_vec();
    bytes.resize(6 + quarter, b'x');
    dir.write("fits", &bytes);
    bytes.push(b'x');
    dir.write("long", &bytes);
    dir.write("b", b"short\n");
    for mode in ["", "--strategy narrow", "--strategy partition", "--strategy memory", "--approx"] {
        for jobs in [1, 4] {
            let flags = format!("-q -m 8M -j {jobs} {mode}");
            let out = dir.run(&format!("common {flags} fits fits")).ok();
            assert_eq!(out.len(), 6 + quarter + 1);
            for args in ["common long b", "common b long", "diff long b", "dedup b long"] {
                for output in ["-o out", "-c"] {
                    let message = ["long: the line at byte 6 is longer than 2 MiB", "raise -m"];
                    failure(&dir, &format!("{args} {flags} {output}"), &message);
                }
            }
        }
    }
    let line = dir.run_with("dedup -m 8M -c -", &bytes).failure();
    assert!(line.contains("-: the line at byte 6 is longer"), "{line}");
    assert_eq!(dir.files.names(), ["b", "fits", "long"]);
}

#[test]
fn invalid_filter_files_are_errors() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nz\n");
    dir.run("build -o whole a").ok();
    let whole = dir.read("whole");
    dir.write("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    dir.write("text", "just some text\n".repeat(50));
    dir.write("none", "");
    dir.write("cut", &whole[..whole.len() - 1]);
    dir.write("stub", &whole[..20]);
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    dir.write("flipped", &flipped);
    let mut newer = whole.clone();
    // The version is in the two bytes after the magic of 8 bytes: docs/reference/format.md.
    newer[8] = 0xfe;
    dir.write("newer", &newer);
    for name in ["png", "text", "none", "cut", "stub", "flipped", "newer"] {
        for args in [
            format!("info {name}"),
            format!("info --json {name}"),
            format!("verify {name}"),
            format!("add {name} a"),
            format!("merge -o out whole {name}"),
            format!("merge -o out {name} whole"),
        ] {
            let before = dir.read(name);
            failure(&dir, &args, &[&format!("{name}: ")]);
            assert!(dir.read(name) == before && !dir.files.file("out").exists(), "{args}");
        }
        // `check` maps the file without verifying the checksum of its body.
        if name != "flipped" {
            failure(&dir, &format!("check {name} a"), &[&format!("{name}: ")]);
        }
    }
    failure(&dir, "info newer", &["version"]);
    failure(&dir, "info png", &["not a petal file"]);
    failure(&dir, "info .", &["is a directory"]);
    assert_eq!(dir.run("verify whole").text(), "whole: valid\n");
}

#[test]
fn incompatible_filters_are_errors() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.run("build -o f -n 1000 a").ok();
    dir.run("build -o larger -n 100000 a").ok();
    dir.run("build -o classic -n 1000 --type classic a").ok();
    dir.run("build -o keyed -n 1000 --keyed a").ok();
    for other in ["larger", "classic", "keyed"] {
        failure(&dir, &format!("merge -o out f {other}"), &[&format!("{other}: ")]);
    }
    failure(&dir, "merge -o out f larger", &["divides both", "same -n and -p", "--fold"]);
    assert!(!dir.files.file("out").exists());
    assert!(dir.run("merge --fold -o out f larger").err.contains("note: folded from"));
    assert_eq!(dir.run("check -c out a").text(), "1\n");
}

#[test]
fn output_that_is_an_input_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\n");
    dir.write("b", "y\n");
    fs::hard_link(dir.files.file("a"), dir.files.file("hard")).unwrap();
    std::os::unix::fs::symlink("a", dir.files.file("soft")).unwrap();
    for output in ["a", "./a", "hard", "soft"] {
        for args in ["common a b", "diff b a", "dedup a", "common soft b"] {
            failure(&dir, &format!("{args} -o {output}"), &["is the same file as the input"]);
        }
    }
    failure(&dir, "build -o a a", &["is the same file as the input"]);
    // `>` empties the file before the program starts; `>>` does not.
    let line = dir.sh("exec \"$petal\" common b a >> a").failure();
    assert!(line.contains("standard output: is the same file"), "{line}");
    assert_eq!(dir.read("a"), b"x\ny\n");
    let line = dir.sh("exec \"$petal\" common a b > a").failure();
    assert!(line.contains("standard output: is the same file"), "{line}");
    let line = dir.sh("exec \"$petal\" dedup < b >> b").failure();
    assert!(line.contains("standard output: is the same file"), "{line}");
    dir.run("build -o f b").ok();
    failure(&dir, "check f b -o f", &["same file"]);
    failure(&dir, "add f f", &["same file"]);
    failure(&dir, "merge -o f f f", &["same file"]);
}

#[test]
fn unwritable_output_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    failure(&dir, "dedup a -o .", &[".: is a directory"]);
    failure(&dir, "dedup a -o no/such/dir", &["no/such/dir: cannot write: no such file"]);
    failure(&dir, "build a -o no/such/dir", &["no/such/dir: cannot write"]);
    failure(&dir, "dedup a -o /dev/full", &["/dev/full: cannot write: no space left"]);
    let line = dir.sh("exec \"$petal\" dedup a > /dev/full").failure();
    assert!(line.contains("no space left"), "{line}");
    let line = dir.sh("exec \"$petal\" dedup -c a > /dev/full").failure();
    assert!(line.contains("no space left"), "{line}");
    dir.run("build -o f a").ok();
    let line = dir.sh("exec \"$petal\" info f > /dev/full").failure();
    assert!(line.contains("no space left"), "{line}");
}

#[test]
fn full_disk_is_an_error() {
    let dir = TestDir::new();
    let probe = "mkdir -p full && mount -t tmpfs -o size=1m none full";
    let inside = |script: &str| {
        let script = format!("{probe} && {{ {script}; }}");
        common::run_with_input(
            dir.shell(&format!("exec unshare -rm bash -c '{}'", script.replace('\'', "'\\''"))),
            b"",
        )
    };
    if inside("true").code != Some(0) {
        return skipped("full_disk_is_an_error", "no namespaces or no mounts here");
    }
    write_lines(&dir.files.file("a"), 0..200_000);
    write_lines(&dir.files.file("b"), 100_000..300_000);
    // While spilling, with each strategy that spills.
    for mode in ["--strategy narrow", "--strategy partition"] {
        for command in ["common", "diff", "dedup"] {
            let script = format!(
                "\"$petal\" {command} {mode} -m 8M -T full -o out a a b; r=$?; ls -A full; exit $r"
            );
            let line = inside(&script).failure();
            assert!(line.contains("full: no space left while"), "{script}: {line}");
            assert!(!dir.files.file("out").exists());
        }
    }
    for kind in ["static", "static-fuse", "cascade --not-in none"] {
        dir.write("none", "x\n");
        let args = format!("build --type {kind} -q -m 8M -T full -o out a a b");
        let line = inside(&format!("\"$petal\" {args}; r=$?; ls -A full; exit $r")).failure();
        assert!(line.contains("full: no space left while"), "{args}: {line}");
        assert!(!dir.files.file("out").exists());
    }
    let line = inside("cat a | \"$petal\" common -q -T full b -").failure();
    assert!(line.contains("full: no space left while copying"), "{line}");
    // While writing the output: an existing file is not changed.
    dir.run("build -q -n 4e6 -o f a").ok();
    dir.run("build -q -n 1e6 --type counting -p 1e-9 -o c a").ok();
    for args in [
        "dedup a",
        "common --strategy partition a a",
        "build -n 1e7 a",
        "build -p 1e-9 --type static a b",
        "diff --approx a b",
        "merge f f",
        "shrink f -p 1e-6",
        "freeze c",
    ] {
        let quiet = if args.starts_with("freeze") { "" } else { "-q" };
        let script = format!(
            "echo old > full/out; \"$petal\" {args} {quiet} -o full/out; r=$?; \
             [ \"$(cat full/out)\" = old ] && [ \"$(ls -A full)\" = out ] || echo harm; exit $r"
        );
        let line = inside(&script).failure();
        assert!(line.contains("no space left"), "{args}: {line}");
    }
    // A filter that takes more than half of the disk cannot be replaced atomically.
    dir.run("build -q -n 120_000 --type counting -o half a").ok();
    for args in ["add full/half b", "remove full/half b --missing /dev/null"] {
        let script = format!(
            "cp half full/; \"$petal\" {args} -q; r=$?; \
             cmp half full/half && [ \"$(ls -A full)\" = half ] || echo harm; exit $r"
        );
        let line = inside(&script).failure();
        assert!(line.contains("no space left"), "{args}: {line}");
    }
}

#[test]
fn full_output_is_named_in_the_error() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nx\n");
    std::os::unix::fs::symlink("/dev/full", dir.files.file("full")).unwrap();
    dir.run("build -o f a").ok();
    for args in ["dedup a -o full", "dedup a --dupes-output full -o out", "check f a -o full"] {
        failure(&dir, args, &["full: cannot write: no space left on device"]);
    }
    let line = dir.sh("exec \"$petal\" dedup a --dupes-output out > full").failure();
    assert!(line.contains("standard output: cannot write: no space left"), "{line}");
}

#[test]
fn missing_temp_dir_is_an_error_before_any_work() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.write("file", "");
    for command in ["common a a", "diff a a", "dedup a", "dedup a -o out", "common --approx a a"] {
        for temp_dir in ["missing", "file"] {
            failure(&dir, &format!("{command} -T {temp_dir}"), &[&format!("{temp_dir}: "), "-T"]);
        }
    }
    failure(&dir, "common a a --work-dir file", &["--work-dir file: "]);
    assert_eq!(dir.files.names(), ["a", "file"]);
}

#[test]
fn closed_pipe_is_not_an_error() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..200_000);
    dir.run("build -q -o f a").ok();
    for args in [
        "dedup a",
        "common a a",
        "common --strategy partition a a",
        "diff --strategy narrow a b",
        "common --approx -q a a",
        "check f a",
    ] {
        dir.write("b", "");
        let output = dir.sh(&format!("\"$petal\" {args} | head -n 1; exit ${{PIPESTATUS[0]}}"));
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{args}");
        assert_eq!(output.out.iter().filter(|&&byte| byte == b'\n').count(), 1, "{args}");
    }
    for args in ["info f", "--help", "plan -n 5 -p 0.1", "verify f", "dedup -c a"] {
        let output = dir.sh(&format!("\"$petal\" {args} | true; exit ${{PIPESTATUS[0]}}"));
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{args}");
    }
}

#[test]
fn closed_standard_output_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.run("build -o f a").ok();
    for args in ["dedup a", "dedup -c a", "common a a", "check f a", "info f", "seen -n 9 s a"] {
        let line = dir.sh(&format!("exec \"$petal\" {args} >&-")).failure();
        assert!(line.contains("standard output: is closed"), "{args}: {line}");
    }
    // Not an error if nothing is printed there, or for /dev/null.
    assert_eq!(dir.sh("exec \"$petal\" dedup a -o out >&-").code, Some(0));
    assert_eq!(dir.read("out"), b"x\n");
    assert_eq!(dir.sh("exec \"$petal\" dedup a > /dev/null").code, Some(0));
    assert_eq!(dir.sh("exec \"$petal\" dedup a <> /dev/null >&0").code, Some(0));
}

/// `/dev/stdout` and `>(cat)` are links to pipes, which have no directory to rename in.
#[test]
fn output_may_be_a_fifo() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nx\n");
    for args in ["dedup a -o /dev/stdout | cat", "dedup a -o >(cat) | cat"] {
        let output = dir.sh(&format!("\"$petal\" {args}"));
        assert_eq!((&output.out[..], output.err.as_str()), (&b"x\ny\n"[..], ""), "{args}");
    }
}

#[test]
fn an_existing_output_keeps_permissions_and_link_until_success() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\n");
    dir.write("out", "old\n");
    let out = dir.files.file("out");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("out", dir.files.file("link")).unwrap();
    let before = common::inode_and_content(&out);
    failure(&dir, "common a missing -o link", &["missing"]);
    assert_eq!(common::inode_and_content(&out), before);
    dir.run("dedup a -o link").ok();
    assert_eq!(dir.read("out"), b"x\ny\n");
    assert!(fs::symlink_metadata(dir.files.file("link")).unwrap().is_symlink());
    assert_eq!(fs::metadata(&out).unwrap().mode() & 0o7777, 0o640);
    // A new file has the permissions of the umask, like a file created by the shell.
    let output =
        dir.sh("umask 027; \"$petal\" dedup a -o new; \"$petal\" build -o f a; stat -c %a new f");
    assert_eq!(output.text(), "640\n640\n");
    // A dangling link is followed too.
    std::os::unix::fs::symlink("target", dir.files.file("dangling")).unwrap();
    dir.run("dedup a -o dangling").ok();
    assert!(fs::symlink_metadata(dir.files.file("dangling")).unwrap().is_symlink());
    assert_eq!(dir.read("target"), b"x\ny\n");
}

#[test]
fn signal_removes_temporary_files_and_keeps_outputs() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..1_500_000);
    write_lines(&dir.files.file("b"), 700_000..2_000_000);
    dir.write("out", "old\n");
    let before = common::inode_and_content(&dir.files.file("out"));
    for (signal, code) in [("KILL", None), ("INT", Some(130)), ("TERM", Some(130))] {
        for args in [
            "common --strategy partition -m 8M -j 2 a b -o out",
            "diff --strategy narrow -m 8M -j 2 a b -o out",
            "dedup --strategy partition -m 8M -j 1 a b -o out",
            "build -j 1 -o out a b",
            "build --type static -m 8M -j 1 -o out a b",
            // Copies standard input, which does not end, to the temporary directory.
            "common --strategy partition a - -o out",
        ] {
            let mut command = dir.petal(args);
            command.args(["--progress", "always"]).stderr(Stdio::piped()).stdin(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut endless = child.stdin.take().unwrap();
            endless.write_all(&vec![b'\n'; 1 << 16]).ok();
            // The first line of progress is printed after the job started.
            let mut stderr = BufReader::new(child.stderr.take().unwrap());
            stderr.read_line(&mut String::new()).unwrap();
            let sent = std::process::Command::new("kill")
                .args([format!("-{signal}"), child.id().to_string()])
                .status();
            assert!(sent.unwrap().success());
            let status = common::wait(&mut child, 30);
            assert_eq!(status.code(), code, "{signal}: {args}: {status}");
            dir.assert_no_temp_files();
            assert_eq!(dir.files.names(), ["a", "b", "out"]);
            assert_eq!(
                common::inode_and_content(&dir.files.file("out")),
                before,
                "{signal}: {args}"
            );
        }
    }
}

/// A thread that waits for input must not keep the process alive after the output was closed.
#[test]
fn closed_pipe_ends_seen_while_input_is_open() {
    let dir = TestDir::new();
    let mut petal = dir.petal("dedup -j 4");
    let mut petal = petal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(petal.stdout.take());
    let mut writer = petal.stdin.take().unwrap();
    writer.write_all(b"a line\n").unwrap();
    // The input stays open: only the closed output can end the process.
    assert_eq!(common::wait(&mut petal, 60).code(), Some(0));
    drop(writer);
}

/// Redirected standard input is a file; a change between two passes is an error.
#[test]
fn redirected_input_that_changes_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "1\n2\n3\n".repeat(200_000));
    // The writer of the second input, a pipe, changes the first input.
    let script = "\"$petal\" diff -q -m 8M --strategy partition - \
                  <(sleep 1; printf 9 | dd of=a bs=1 seek=2 conv=notrunc 2>/dev/null; echo x) < a";
    assert!(dir.sh(script).failure().contains("changed while"));
}

#[test]
fn addresses_of_filters_are_refused() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.run("build -q -n 9 -o f a").ok();
    for args in [
        "add ADDRESS a",
        "remove ADDRESS a",
        "seen ADDRESS a",
        "seen -n 9 ADDRESS a",
        "seen --dry-run -n 9 ADDRESS a",
        "merge -o out f ADDRESS",
        "merge -o out ADDRESS f",
        "shrink ADDRESS -o out",
        "freeze ADDRESS -o out",
        "compare f ADDRESS",
        "info ADDRESS",
        "explain ADDRESS x",
        "verify ADDRESS",
        "probe --column key --keys a ADDRESS",
    ] {
        let line = dir.run(&args.replace("ADDRESS", "s3://b/x.petal")).failure();
        let expected = "petal: s3://b/x.petal: is an address, expected a file; download it first";
        assert_eq!(line, expected, "{args}");
    }
    let line = dir.run("add https://me:secret@h/x.petal a").failure();
    assert!(line.contains("h/x.petal: is an address") && !line.contains("secret"), "{line}");
    // `check` asks for parts of it, if the build can.
    if cfg!(not(feature = "object-store")) {
        let line = dir.run("check s3://b/x.petal a").failure();
        assert!(
            line.contains("s3://b/x.petal: cannot read: this petal was built without"),
            "{line}"
        );
    }
    assert_eq!(dir.files.names(), ["a", "f"]);
    // A file of this name.
    dir.sh("mkdir -p s3:/b; cp f s3:/b/x.petal").ok();
    assert_eq!(dir.run("check s3://b/x.petal a").text(), "x\n");
}
