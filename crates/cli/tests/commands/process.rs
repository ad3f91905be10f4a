//! The process around petal: standard streams, descriptors, signals, and who owns the files.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::process::Stdio;

use crate::common::{self, TestDir, skipped};

#[test]
#[cfg(target_os = "linux")]
fn closed_standard_input_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.run("build -o f a").ok();
    for args in [
        "diff a -",
        "common - a",
        "symdiff a -",
        "dedup",
        "count -",
        "build -o new -",
        "build -o new -n 9 -",
        "build -o new --not-in - a",
        "add f -",
        "check f -",
        "check --allow - f a",
        "seen -n 9 new",
        "plan common a -",
        "report -",
        "diff a /dev/stdin",
        "dedup /dev/fd/0",
        "dedup /proc/self/fd/0",
    ] {
        for closed in ["<&-", "0> out"] {
            // The name of a descriptor opens its file again.
            if closed != "<&-" && (args.contains("/fd/0") || args.contains("/dev/stdin")) {
                continue;
            }
            let line = dir.sh(&format!("exec \"$petal\" {args} {closed}")).failure();
            let said = ["it is closed, or open for writing only", "bad file descriptor"];
            assert!(said.iter().any(|text| line.contains(text)), "{args}: {line}");
        }
    }
    assert_eq!(dir.sh("exec \"$petal\" dedup a - < /dev/null").text(), "x\n");
    assert_eq!(dir.sh("exec \"$petal\" dedup a <&-").text(), "x\n");
    assert_eq!(dir.sh("exec \"$petal\" dedup a 2>&-").text(), "x\n");
    assert_eq!(dir.sh("exec \"$petal\" dedup a <&- 2>&- | cat").text(), "x\n");
    assert!(!dir.files.file("new").exists());
}

#[test]
fn standard_output_that_cannot_be_written_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    for args in ["--help", "--version", "help", "help build", "build -h", "man", "completions bash"]
    {
        let line = dir.sh(&format!("exec \"$petal\" {args} > /dev/full")).failure();
        assert!(line.contains("standard output: cannot write: no space left"), "{args}: {line}");
        let line = dir.sh(&format!("exec \"$petal\" {args} >&-")).failure();
        assert!(line.contains("standard output: is closed"), "{args}: {line}");
    }
    let line = dir.sh("exec \"$petal\" dedup a 1< a").failure();
    assert!(line.contains("standard output: "), "{line}");
    let line = dir.sh("exec \"$petal\" seen -n 9 f a > /dev/full").failure();
    let expected = "petal: standard output: cannot write: no space left on device; free some space or \
                    write to another disk";
    assert_eq!(line, expected);
}

/// The shell writes to the same file before and after, through the descriptor that petal gets.
#[test]
fn descriptors_are_written_where_they_stand() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nx\n");
    dir.write("old", "old\n");
    symlink("/dev/stdout", dir.files.file("link")).unwrap();
    dir.run("build -n 9 -o filter a").ok();
    let filter = dir.read("filter");
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link", "/proc/self/../self/fd/1"] {
        for redirection in ["> out", ">> out", "1<> out"] {
            dir.sh(&format!("{{ echo 1; \"$petal\" dedup a -o {name}; echo 2; }} {redirection}"))
                .ok();
            assert_eq!(dir.read("out"), b"1\nx\ny\n2\n", "{name} {redirection}");
            fs::remove_file(dir.files.file("out")).unwrap();
        }
        dir.sh(&format!("{{ echo 1; \"$petal\" build -n 9 -o {name} a; }} > out")).ok();
        assert_eq!(dir.read("out"), [b"1\n", &filter[..]].concat(), "{name}");
    }
    dir.sh("{ echo 1 >&5; \"$petal\" dedup -c a --dupes-output /dev/fd/5; echo 2 >&5; } 5> out")
        .ok();
    assert_eq!(dir.read("out"), b"1\nx\n2\n");
    dir.sh("{ echo 1; \"$petal\" dedup a -o b --report /dev/stderr; echo 2; } 2> out >&2").ok();
    let out = String::from_utf8(dir.read("out")).unwrap();
    assert!(out.starts_with("1\n{") && out.ends_with("}\n2\n"), "{out}");
    dir.sh("{ echo 1; \"$petal\" plan -n 9 -p 1% --html /dev/stdout; } >> old").ok();
    assert!(dir.read("old").starts_with(b"old\n1\n<!"));
    assert_eq!(dir.sh("\"$petal\" dedup a -o /dev/stdout | cat").text(), "x\ny\n");
    // A file is neither read and written at once, nor used twice.
    let line = dir.sh("exec \"$petal\" dedup a -o /dev/stdout >> a").failure();
    assert!(line.contains("/dev/stdout: is the same file as the input a"), "{line}");
    for more in ["--dupes-output -", "--report /dev/fd/1"] {
        for to in ["> out", "| cat; exit ${PIPESTATUS[0]}"] {
            let line = dir.sh(&format!("\"$petal\" dedup a -o /dev/stdout {more} {to}")).failure();
            assert!(line.contains("is used for two outputs"), "{more}: {line}");
        }
    }
    // Filters that are changed are files, and a descriptor that is not open is none.
    for (args, problem) in [
        ("add /dev/fd/5 a 5<> filter", "is an open descriptor, which cannot be replaced"),
        ("seen -n 9 /dev/stdout a > out", "is an open descriptor, which cannot be replaced"),
        ("dedup a -o /dev/fd/77", "/dev/fd/77: cannot write: bad file descriptor"),
    ] {
        let line = dir.sh(&format!("exec \"$petal\" {args}")).failure();
        assert!(line.contains(problem), "{args}: {line}");
    }
    assert_eq!(dir.read("filter"), filter);
}

#[test]
fn loop_of_links_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    symlink("two", dir.files.file("one")).unwrap();
    symlink("one", dir.files.file("two")).unwrap();
    for args in [
        "dedup a -o one",
        "build -o one a",
        "dedup -c a --report one",
        "add one a",
        "seen -n 9 one a",
    ] {
        let line = dir.run(args).failure();
        assert!(line.contains("one: cannot") && line.contains("symbolic links"), "{args}: {line}");
    }
    assert!(dir.run("common a one").failure().contains("one: cannot read: too many levels"));
    for name in ["one", "two"] {
        assert!(fs::symlink_metadata(dir.files.file(name)).unwrap().is_symlink());
    }
}

/// The next program in a group of the shell continues where petal has stopped reading.
#[test]
fn redirected_input_is_consumed() {
    let dir = TestDir::new();
    dir.write("a", "1\n2\n1\n3\n");
    dir.run("build -n 9 -o f a").ok();
    for args in
        ["dedup -", "count", "check f -", "common --strategy partition - a", "diff - f --text"]
    {
        let first = dir.sh(&format!("\"$petal\" {args} < a")).text();
        assert_eq!(dir.sh(&format!("(\"$petal\" {args}; cat) < a")).text(), first, "{args}");
    }
    // It begins at the offset of the descriptor, also if it is read twice.
    assert_eq!(dir.sh("(read line; \"$petal\" dedup -; cat) < a").text(), "2\n1\n3\n");
    let built = "(read line; \"$petal\" build -o new -; cat) < a; \"$petal\" check -c new a";
    assert_eq!(dir.sh(built).text(), "4\n");
}

/// Files of the kernel have another size than they report.
#[test]
#[cfg(target_os = "linux")]
fn files_of_the_kernel_are_read() {
    let dir = TestDir::new();
    for path in ["/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state"]
    {
        let Ok(text) = fs::read_to_string(path) else { continue };
        assert_eq!(
            dir.run(&format!("dedup -c {path}")).text(),
            format!("{}\n", text.lines().count())
        );
        assert_eq!(dir.sh(&format!("\"$petal\" dedup - < {path}")).text(), text);
    }
}

/// Waits until a running job has begun, sends it a signal, and returns its exit code when the writer of
/// its input has ended.
fn code_after(dir: &TestDir, signal: &str, ignored: &str) -> Option<i32> {
    let mut command = dir.shell(&format!(
        "trap '' {ignored} USR1; exec \"$petal\" dedup --progress always --strategy partition - -o out"
    ));
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&b"x\n".repeat(1 << 15)).unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut String::new()).unwrap();
    let sent = std::process::Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    // A job that goes on reads this; one that has ended need not.
    let _ = input.write_all(b"y\n");
    drop(input);
    std::io::copy(&mut stderr, &mut std::io::sink()).unwrap();
    common::wait(&mut child, 30).code()
}

#[test]
fn signals_that_are_ignored_at_the_start_stay_ignored() {
    let dir = TestDir::new();
    for signal in ["HUP", "INT", "TERM"] {
        assert_eq!(code_after(&dir, signal, signal), Some(0), "{signal}");
        assert_eq!(dir.read("out"), b"x\ny\n");
        fs::remove_file(dir.files.file("out")).unwrap();
    }
    assert_eq!(code_after(&dir, "HUP", "INT"), Some(130));
    assert_eq!(code_after(&dir, "TERM", "HUP INT"), Some(130));
    assert!(!dir.files.file("out").exists());
    dir.assert_no_temp_files();
}

#[test]
fn files_with_secrets_are_created_for_their_owner_only() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    let mode = |name: &str| fs::metadata(dir.files.file(name)).unwrap().mode() & 0o777;
    let run = |args: &str| dir.sh(&format!("umask 022; \"$petal\" {args}")).ok();
    run("build --keyed -n 9 -o keyed a");
    run("build --keyed --type counting -n 9 -o counting a");
    run("merge -o merged keyed keyed");
    run("shrink keyed -o smaller");
    run("freeze counting -o frozen");
    run("seen -n 9 seen a");
    run("seen -n 9 --exact exact a");
    for name in ["keyed", "counting", "merged", "smaller", "frozen", "seen", "exact", "exact.exact"]
    {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    run("build -n 9 -o public a");
    assert_eq!(mode("public"), 0o644);
    // An existing file keeps what its owner has chosen.
    fs::set_permissions(dir.files.file("seen"), fs::Permissions::from_mode(0o640)).unwrap();
    dir.write("b", "y\n");
    run("seen seen b");
    assert_eq!(mode("seen"), 0o640);
}

/// Returns false if the test runs without the rights that it needs.
fn is_root(test: &str) -> bool {
    let scratch = TestDir::new();
    let path = scratch.write("a", "");
    let may = chown(&path, Some(12345), Some(12345)).is_ok();
    if !may {
        skipped(test, "only root may change the owner of a file");
    }
    may
}

#[test]
fn replaced_files_keep_owner_group_mode_and_attributes() {
    if !is_root("replaced_files_keep_owner_group_mode_and_attributes") {
        return;
    }
    let dir = TestDir::new();
    dir.write("a", "x\n");
    dir.write("b", "y\n");
    dir.run("seen -n 9 --exact seen a").ok();
    dir.run("build -n 9 -o filter a").ok();
    dir.write("out", "old\n");
    let names = ["seen", "seen.exact", "filter", "out"].map(|name| dir.files.file(name));
    let has_attributes = names.iter().all(|path| {
        rustix::fs::setxattr(path, "user.note", b"kept", rustix::fs::XattrFlags::empty()).is_ok()
    });
    for path in &names {
        fs::set_permissions(path, fs::Permissions::from_mode(0o660)).unwrap();
        chown(path, Some(12345), Some(54321)).unwrap();
    }
    let inodes = names.each_ref().map(|path| fs::metadata(path).unwrap().ino());
    dir.run("seen seen b").ok();
    dir.run("add filter b").ok();
    dir.run("dedup a -o out").ok();
    for (path, inode) in names.iter().zip(inodes) {
        let data = fs::metadata(path).unwrap();
        assert_eq!(
            (data.uid(), data.gid(), data.mode() & 0o7777),
            (12345, 54321, 0o660),
            "{path:?}"
        );
        // The log of fingerprints is appended to.
        let is_log = path.extension().is_some();
        assert_eq!(data.ino() == inode, is_log, "{path:?}");
        let mut value = [0; 8];
        let got = rustix::fs::getxattr(path, "user.note", &mut value);
        assert!(!has_attributes || got == Ok(4), "{path:?}");
    }
}

/// A user who may write a file, but not give another one to its owner.
#[test]
fn file_of_another_user_is_written_in_place() {
    if !is_root("file_of_another_user_is_written_in_place") {
        return;
    }
    let dir = TestDir::new();
    let as_user = "setpriv --reuid 12345 --regid 12345 --clear-groups \"$petal\"";
    if dir.sh(&format!("{as_user} --version")).code != Some(0) {
        return skipped(
            "file_of_another_user_is_written_in_place",
            "other users cannot run the program",
        );
    }
    dir.write("a", "x\n");
    dir.write("b", "y\n");
    dir.run("seen -n 9 --exact seen a").ok();
    dir.write("out", "old, and longer than the new contents\n");
    // As in /tmp, where only owners may rename.
    for folder in [0o777, 0o1777] {
        fs::set_permissions(dir.files.path(), fs::Permissions::from_mode(folder)).unwrap();
        let names = ["seen", "seen.exact", "out"].map(|name| dir.files.file(name));
        for path in &names {
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        }
        let before = names.each_ref().map(|path| fs::metadata(path).unwrap());
        dir.sh(&format!(
            "{as_user} dedup a -o out && {as_user} seen seen b && {as_user} seen seen a b"
        ))
        .ok();
        assert_eq!(dir.read("out"), b"x\n");
        for (path, before) in names.iter().zip(before) {
            let now = fs::metadata(path).unwrap();
            let of = |data: &fs::Metadata| (data.uid(), data.gid(), data.mode(), data.ino());
            assert_eq!(of(&now), of(&before), "{path:?}");
        }
        assert_eq!(dir.files.names(), ["a", "b", "out", "seen", "seen.exact"]);
        dir.run("verify seen").ok();
    }
    // A copy that an earlier run has left is not overwritten, and nothing is read.
    dir.write("out.petal-backup", "old\n");
    let text = "or was killed meanwhile; wait for it, or restore or remove";
    let run = dir.sh(&format!("{{ {as_user} dedup - -o out || cat; }} < a"));
    assert!(
        run.err.contains(&format!("out: cannot write: another run is writing the file, {text}"))
    );
    assert_eq!(run.text(), "x\n");
    // The file that it belongs to may be half written.
    for name in ["seen", "seen.exact"] {
        dir.write(&format!("{name}.petal-backup"), "old\n");
        let line = dir.run("seen seen a").failure();
        assert!(line.contains(&format!("{name}: cannot read: ")) && line.contains(text), "{line}");
        fs::remove_file(dir.files.file(&format!("{name}.petal-backup"))).unwrap();
    }
}

/// The file that a copy belongs to may be half written, whatever its format and whatever reads it.
#[test]
fn filter_beside_a_copy_of_its_old_contents_is_not_read() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    for (name, options) in
        [("own", ""), ("other", "--format guava"), ("packed", "--format dcso --gzip")]
    {
        dir.run(&format!("build -n 9 {options} -o {name} a")).ok();
        let copy = format!("{name}.petal-backup");
        dir.write(&copy, "old\n");
        for command in [
            format!("check {name} a"),
            format!("add {name} a"),
            format!("info {name}"),
            format!("verify {name}"),
            format!("merge -o out {name} {name}"),
        ] {
            let line = dir.run(&command).failure();
            assert!(line.contains(&format!("restore or remove {copy}")), "{command}: {line}");
        }
        fs::remove_file(dir.files.file(&copy)).unwrap();
        dir.run(&format!("verify {name}")).ok();
    }
}
