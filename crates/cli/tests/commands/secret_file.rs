//! Filters whose secret is in a file of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::TestDir;

/// Returns a directory with lines and a filter of them whose secret is in `key`.
fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("a", "one\ntwo\n");
    dir.write("b", "three\n");
    dir.run("build -q -n 9 --keyed --secret-file key -o f a").ok();
    dir
}

#[test]
fn secret_is_created_for_its_owner_and_is_not_in_the_filter() {
    let dir = dir();
    let mode =
        |name: &str| fs::metadata(dir.files.file(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("key"), 0o600);
    assert_ne!(mode("f") & 0o044, 0);
    let digits = String::from_utf8(dir.read("key")).unwrap();
    #[allow(clippy::big_endian_bytes, reason = "the first digits are the highest")]
    let key = u128::from_str_radix(digits.trim_end(), 16).unwrap().to_be_bytes();
    let file = dir.read("f");
    for half in key.chunks(8) {
        assert!(!file.windows(8).any(|bytes| bytes == half));
    }
    // The same secret as digits and as bytes gives the same file, and is not changed.
    dir.write("bytes", key);
    dir.run("build -q -n 9 --keyed --secret-file bytes -o g a").ok();
    assert!(dir.read("g") == file && dir.read("bytes") == key);
    assert!(dir.run("build -n 9 --secret-file key -o g a").failure().contains("--keyed"));
    let error = dir.run("build -n 9 --keyed --secret-file key -o key a").failure();
    assert!(error.contains("key: is the same file as the input"), "{error}");
    let error = dir.run("build -n 9 --keyed --secret-file a -o g a").failure();
    assert!(error.contains("expected 32 hexadecimal digits or 16 bytes"), "{error}");
}

#[test]
fn every_command_needs_the_secret_that_answers_or_changes() {
    let dir = dir();
    dir.run("build -q -n 9 --keyed --secret-file other -o g b").ok();
    dir.run("build -q -n 9 --type counting --keyed --secret-file key -o counting a").ok();
    dir.run("build -q --window 1d -n 9 --keyed --secret-file key -o windowed a").ok();
    let before = dir.read("f");
    for args in [
        "check f a",
        "check windowed a",
        "add f b",
        "remove counting b",
        "seen f b",
        "merge -o out f f",
        "compare f f",
        "shrink f -o out",
        "freeze counting -o out",
        "explain f one",
    ] {
        let error = dir.run(args).failure();
        assert!(
            error.contains("name that file with --secret-file, or in PETAL_SECRET_FILE"),
            "{error}"
        );
        let error = dir.run(&format!("{args} --secret-file other")).failure();
        assert!(error.contains("was built with another secret than that of other"), "{error}");
        let error = dir.run(&format!("{args} --secret-file none")).failure();
        assert!(error.contains("none: cannot read"), "{error}");
        assert!(dir.read("f") == before, "{args}");
        dir.run(&format!("{args} --secret-file key")).ok();
        dir.write("f", &before);
    }
    let found = dir.sh("PETAL_SECRET_FILE=key \"$petal\" check -q f a b");
    assert_eq!(found.text(), "one\ntwo\n");
    assert!(dir.run("merge -o out f g --secret-file key").failure().contains("g: was built"));
}

#[test]
fn filter_is_described_and_verified_without_its_secret() {
    let dir = dir();
    let text = dir.run("info f").text();
    assert!(text.contains("siphash-1-3-apart, keyed: the secret is apart"), "{text}");
    assert!(dir.run("info --json f").text().contains("\"secret_apart\": true"));
    assert_eq!(dir.run("verify f").text(), "f: valid\n");
    let mut file = dir.read("f");
    // The check value.
    file[50] ^= 1;
    dir.write("f", file);
    for args in ["verify f", "info f", "check f a --secret-file key"] {
        assert!(dir.run(args).failure().contains("damaged: header checksum"), "{args}");
    }
}
