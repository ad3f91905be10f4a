//! What is said to people: help, notes, progress.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::{Place, run, write_lines};

const EVERY_VERB: [&str; 18] = [
    "common",
    "diff",
    "dedup",
    "build",
    "add",
    "remove",
    "check",
    "probe",
    "seen",
    "merge",
    "shrink",
    "freeze",
    "compare",
    "info",
    "verify",
    "plan",
    "completions",
    "man",
];

#[test]
fn every_verb_has_help_with_examples() {
    for verb in EVERY_VERB {
        for flag in ["--help", "-h"] {
            let ran = run([verb, flag]);
            assert_eq!(ran.err, "");
            let text = ran.text();
            assert!(
                text.contains("\nExamples:\n") && text.contains(&format!("petal {verb} ")),
                "{verb}"
            );
            // The hidden flags stay hidden.
            assert!(!text.contains("--strategy") && !text.contains("--save-every"), "{verb}");
        }
    }
}

#[test]
fn alone_it_shows_the_way() {
    let ran = run([""; 0]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.is_empty());
    for verb in EVERY_VERB {
        assert!(ran.err.contains(verb), "{}", ran.err);
    }
    let help = run(["--help"]).text();
    assert!(help.contains("Examples:") && help.contains("Exit codes:"));
    assert_eq!(run(["--version"]).text(), format!("petal {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_pipe_sees_progress_only_when_asked() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..200_000);
    for words in ["dedup a -o out", "common a a -o out --strategy partition -m 8M", "build -o f a"]
    {
        assert_eq!(place.run(words).err, "", "{words}");
        let ran = place.run(&format!("{words} --progress always"));
        assert!(ran.err.lines().count() >= 1, "{words}");
        assert!(ran.err.lines().all(|line| line.starts_with("petal: ") && !line.contains('\x1b')));
        assert_eq!(place.run(&format!("{words} --progress never")).err, "");
        assert_eq!(place.run(&format!("{words} -q --progress always")).err, "");
    }
}

#[test]
fn quiet_silences_notes_but_no_result_and_no_error() {
    let place = Place::new();
    place.write("a", "x\ny\n");
    let note = place.run_with("common a -", b"y\n");
    assert_eq!(note.err.lines().count(), 1);
    assert!(note.err.contains("note: standard input cannot be read twice; copying it to "));
    let quiet = place.run_with("common -q a -", b"y\n");
    assert_eq!((quiet.err.as_str(), quiet.out.as_slice()), ("", &b"y\n"[..]));
    assert_eq!(place.run("dedup -q -c a").text(), "2\n");
    place.run("dedup -q missing").trouble();
    assert_eq!(place.run("build -o f /dev/null").err.lines().count(), 1);
}
