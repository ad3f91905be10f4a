//! Completions and man pages: shells and man can read them, and they know every verb.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::process::{Command, Stdio};

use kit::{Place, ran_with, run, skipped};

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// The verbs that the help shows.
fn verbs() -> Vec<String> {
    let help = run(["-h"]).text();
    let list = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let names = list.unwrap().lines().filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn shells_can_read_their_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).text();
        for word in verbs().iter().map(String::as_str).chain(["expected", "memory", "null"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        place.write(shell, &script);
        if is_there(shell) {
            let mut command = Command::new(shell);
            command.args(["-n", &place.path(shell)]);
            let ran = ran_with(command, b"");
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{shell}");
        } else {
            skipped("shells_can_read_their_completions", &format!("no {shell} here"));
        }
    }
    assert_eq!(run(["completions", "tcsh"]).code, Some(2));
}

#[test]
fn bash_completes_verbs_and_flags() {
    let place = Place::new();
    place.write("script", run(["completions", "bash"]).ok());
    let complete = |words: &str, word: &str| {
        let last = words.split(' ').count();
        let script = format!(
            ". ./script; COMP_WORDS=({words} {word}); COMP_CWORD={last}; _petal petal {word} x; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        place.sh(&script).text()
    };
    assert_eq!(complete("petal", "se"), "seen\n");
    assert!(complete("petal seen", "--ex").contains("--exact\n"));
}

#[test]
fn there_is_a_man_page_for_every_verb() {
    let place = Place::new();
    assert_eq!(place.run("man --dir new/man1").text(), "");
    let mut expected: Vec<_> = verbs().iter().map(|verb| format!("petal-{verb}.1")).collect();
    expected.push("petal.1".to_owned());
    expected.sort();
    let folder = place.files.file("new/man1");
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, expected);
    for name in &names {
        let page = std::fs::read_to_string(folder.join(name)).unwrap();
        let title = name.trim_end_matches(".1");
        for part in [".TH", title, ".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH EXAMPLES"] {
            assert!(page.contains(part), "{name}: {part}");
        }
        assert!(!page.contains("strategy") && !page.contains("save\\-every"), "{name}");
    }
    assert_eq!(place.run("man").ok(), std::fs::read(folder.join("petal.1")).unwrap());
    place.write("file", "");
    assert!(place.run("man --dir file").trouble().contains("file: cannot write"));
    // As a reader sees them.
    if !is_there("man") {
        return skipped("there_is_a_man_page_for_every_verb", "no man here");
    }
    for name in &names {
        let script = format!("MANWIDTH=100 MANROFFSEQ= man --warnings -P cat -l new/man1/{name}");
        let ran = place.sh(&script);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
        let text = String::from_utf8(ran.out).unwrap();
        assert!(text.contains("EXAMPLES") && text.contains("petal "), "{name}");
    }
}
