//! `check` of several filters, and of keys that are typed at a terminal.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::termios::{LocalModes, tcgetattr};

use crate::common::{TestDir, terminal};

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
fn keys_that_a_filter_refuses_are_not_in_it() {
    let dir = dir();
    let hashes = |length: usize, numbers: std::ops::Range<u32>| -> String {
        numbers.map(|n| format!("{:0length$x}\n", u64::from(n) << 32 | 0xabcd)).collect()
    };
    // Half of all other keys are false positives.
    dir.write("sha1", hashes(40, 0..100));
    dir.run("build --type bloom -p 0.5 -o sha1.petal sha1").ok();
    dir.write("both", hashes(32, 0..100) + &hashes(40, 0..1));
    let run = dir.run("check -c --filter sha1.petal --filter fruit.petal both");
    assert_eq!(run.text(), "1\n");
}

fn check(dir: &TestDir, args: &str, stdin: &OwnedFd) -> Child {
    let mut command = dir.petal(&format!("check {args}"));
    command.stdin(Stdio::from(stdin.try_clone().unwrap()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Types after each prompt, and returns what the program prints on both streams, and its exit code.
fn typed(dir: &TestDir, args: &str, keys: &[&[u8]]) -> (String, String, Option<i32>) {
    let (mut terminal, stdin) = terminal();
    let mut child = check(dir, args, &stdin);
    let mut prompts = child.stderr.take().unwrap();
    let mut printed = Vec::new();
    for key in keys {
        while !printed.ends_with(b"key: ") {
            let mut byte = [0];
            prompts.read_exact(&mut byte).unwrap();
            printed.push(byte[0]);
        }
        printed.push(b'|');
        // All that is typed is hidden, also before the next prompt.
        assert!(!tcgetattr(&stdin).unwrap().local_modes.contains(LocalModes::ECHO));
        terminal.write_all(key).unwrap();
    }
    prompts.read_to_end(&mut printed).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(tcgetattr(&stdin).unwrap().local_modes.contains(LocalModes::ECHO));
    let [out, err] = [output.stdout, printed].map(|text| String::from_utf8(text).unwrap());
    (out, err, output.status.code())
}

#[test]
fn typed_passwords_are_not_shown() {
    let dir = dir();
    // A character is erased, and a key with another case is another one.
    let keys: [&[u8]; 4] = [b"apple\n", b"Apple\n", b"peax\x7fr\n", b"\x04"];
    let known = "known\nnot known\nknown\n".to_owned();
    let prompts = "key: |\nkey: |\nkey: |\nkey: |\n".to_owned();
    assert_eq!(typed(&dir, "sha.petal", &keys), (known, prompts, Some(0)));
    assert_eq!(typed(&dir, "sha.petal", &[b"x\n", b"\x04"]).2, Some(1));
    // Ctrl-C.
    assert_eq!(typed(&dir, "sha.petal", &[b"apple\n", b"x\x03"]).2, Some(130));
    // A key that is refused is not shown, and others follow.
    dir.write("ntlm", "8846F7EAEE8FB117AD06BDD830B7586C\n");
    dir.run("build --query-transform ntlm -o ntlm.petal ntlm").ok();
    let (out, err, code) = typed(&dir, "ntlm.petal", &[b"p\xe4ss\n", b"password\n", b"\x04"]);
    assert_eq!((&*out, code), ("known\n", Some(0)));
    let refused = "key: |\nfound 4 bytes, expected UTF-8, which ntlm hashes\nkey: |\nkey: |\n";
    assert_eq!(err, refused);
}

#[test]
fn signal_shows_what_is_typed_again() {
    let dir = dir();
    let (_terminal, stdin) = terminal();
    let mut child = check(&dir, "sha.petal", &stdin);
    child.stderr.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
    assert!(!tcgetattr(&stdin).unwrap().local_modes.contains(LocalModes::ECHO));
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(tcgetattr(&stdin).unwrap().local_modes.contains(LocalModes::ECHO));
}

#[test]
fn passwords_are_not_typed_where_they_would_be_shown() {
    let dir = dir();
    for (args, other) in [
        ("-v sha.petal", "-v"),
        ("-c sha.petal", "-c"),
        ("--which sha.petal", "--which"),
        ("-o out sha.petal", "-o"),
        ("--allow fruit sha.petal", "--allow"),
        ("--compress gzip sha.petal", "--compress"),
        ("--column 1 sha.petal", "--column"),
        ("--json-key /a sha.petal", "--json-key"),
        ("sha.petal fruit -", "other inputs"),
    ] {
        let (out, err, code) = typed(&dir, args, &[]);
        let with = format!(", with {other}; leave that out, or use a pipe\n");
        assert!(out.is_empty() && err.ends_with(&with) && code == Some(2), "{args}: {err}");
    }
    let (_, err, code) = typed(&dir, "--assert-members words sha.petal", &[]);
    assert!(code == Some(2) && err.contains("--assert-members: 2 of the 4 lines"), "{err}");
    assert_eq!(typed(&dir, "--assert-members fruit sha.petal", &[b"\x04"]).2, Some(1));
}
