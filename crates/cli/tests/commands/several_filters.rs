//! `check` of several filters, and of keys that are typed at a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::common::TestDir;

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("fruit", "apple\npear\n");
    dir.write("red", "apple\nCherry\n");
    dir.write("words", "apple\npear\nCHERRY\nplum\n");
    dir.run("build --type static -p 1e-6 -o fruit.petal fruit").ok();
    dir.run("build --type bloom -p 1e-6 --key-transform lowercase -o red.petal red").ok();
    dir.run("build --type static -p 1e-6 --key-transform sha1 -o sha.petal fruit").ok();
    dir
}

#[test]
fn lines_in_one_of_several_filters_are_printed() {
    let dir = dir();
    let cases = [
        ("check --filter fruit.petal --filter red.petal words", "apple\npear\nCHERRY\n"),
        ("check -v --filter fruit.petal --filter red.petal words", "plum\n"),
        ("check -c --filter red.petal words", "2\n"),
        ("check --filter red.petal words words", "apple\nCHERRY\napple\nCHERRY\n"),
        (
            "check --which --filter fruit.petal --filter red.petal --filter sha.petal words",
            "fruit.petal\tapple\nred.petal\tapple\nsha.petal\tapple\nfruit.petal\tpear\n\
             sha.petal\tpear\nred.petal\tCHERRY\n",
        ),
    ];
    for (args, expected) in cases {
        assert_eq!(dir.run(args).text(), expected, "{args}");
    }
    let allowed = "check --allow fruit --filter fruit.petal --filter red.petal words";
    assert_eq!(dir.run(allowed).text(), "CHERRY\n");
    dir.write("green", "plum\n");
    assert_eq!(dir.run("check --filter red.petal green").code, Some(1));
    for (args, expected) in [
        ("check --filter none.petal words", "petal: none.petal: "),
        ("check --filter fruit.petal --filter words words", "petal: words: "),
        ("check --which -v --filter fruit.petal words", "petal: the argument '--which'"),
    ] {
        let run = dir.run(args);
        assert!(
            run.code == Some(2) && run.err.starts_with(expected),
            "{args}: {:?} {}",
            run.code,
            run.err
        );
    }
}

#[test]
fn typed_passwords_are_not_shown() {
    let dir = dir();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let stdin = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, 0.into()).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_petal"))
        .arg("check")
        .arg(dir.path("sha.petal"))
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut terminal = File::from(terminal);
    // A character is erased, and a key with another case is another one.
    let mut prompts = child.stderr.take().unwrap();
    for (at, typed) in ["apple\n", "Apple\n", "peax\u{7f}r\n", "\u{4}"].into_iter().enumerate() {
        let expected = if at == 0 { "key: " } else { "\nkey: " };
        let mut prompt = vec![0; expected.len()];
        prompts.read_exact(&mut prompt).unwrap();
        assert_eq!(String::from_utf8_lossy(&prompt), expected);
        terminal.write_all(typed.as_bytes()).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "known\nnot known\nknown\n");
    assert_eq!(output.status.code(), Some(0));
}
