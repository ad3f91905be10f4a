//! Help, notes and progress.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use crate::common::{TestDir, run, terminal, write_lines};

const COMMANDS: [&str; 21] = [
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
    "explain",
    "verify",
    "plan",
    "report",
    "help",
    "completions",
    "man",
];

#[test]
fn every_command_has_help_with_examples() {
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            let output = run([command, flag]);
            assert_eq!(output.err, "");
            let text = output.text();
            assert!(
                text.contains("\nExamples:\n") && text.contains(&format!("petal {command} ")),
                "{command}"
            );
            // Hidden options are not shown.
            assert!(!text.contains("--strategy") && !text.contains("--save-every"), "{command}");
        }
    }
}

#[test]
fn help_is_a_command_too() {
    for command in COMMANDS.into_iter().chain(["uniq"]) {
        assert_eq!(run(["help", command]).text(), run([command, "--help"]).text());
    }
    assert_eq!(run(["help"]).text(), run(["--help"]).text());
    let output = run(["help", "chekc"]);
    assert_eq!((output.code, output.out.len()), (Some(2), 0));
    assert!(output.err.contains("'chekc'") && output.err.contains("check"), "{}", output.err);
    assert_eq!(run(["help", "build", "add"]).code, Some(2));
}

#[test]
fn no_arguments_print_a_short_usage() {
    let output = run([""; 0]);
    assert_eq!(output.code, Some(2));
    assert!(output.out.is_empty());
    assert!(
        output.err.starts_with("Usage: petal COMMAND [OPTIONS] [INPUTS]\nCommands: common diff ")
    );
    assert!(output.err.lines().count() < 7 && output.err.lines().all(|line| line.len() < 80));
    for command in COMMANDS {
        assert!(output.err.contains(command), "{}", output.err);
    }
    let help = run(["--help"]).text();
    assert!(help.contains("Examples:") && help.contains("Exit codes:"));
    assert_eq!(run(["--version"]).text(), format!("petal {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn progress_without_terminal_needs_always() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..200_000);
    for args in ["dedup a -o out", "common a a -o out --strategy partition -m 8M", "build -o f a"] {
        assert_eq!(dir.run(args).err, "", "{args}");
        let output = dir.run(&format!("{args} --progress always"));
        assert!(output.err.lines().count() >= 1, "{args}");
        assert!(
            output.err.lines().all(|line| line.starts_with("petal: ") && !line.contains('\x1b'))
        );
        assert_eq!(dir.run(&format!("{args} --progress never")).err, "");
        assert_eq!(dir.run(&format!("{args} -q --progress always")).err, "");
    }
}

#[test]
fn quiet_silences_notes_but_no_result_and_no_error() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\n");
    let note = dir.run_with("common a -", b"y\n");
    assert_eq!(note.err.lines().count(), 1);
    assert!(note.err.contains("note: standard input cannot be read twice; copying it to "));
    let quiet = dir.run_with("common -q a -", b"y\n");
    assert_eq!((quiet.err.as_str(), quiet.out.as_slice()), ("", &b"y\n"[..]));
    assert_eq!(dir.run("dedup -q -c a").text(), "2\n");
    dir.run("dedup -q missing").failure();
    assert_eq!(dir.run("build -o f /dev/null").err.lines().count(), 1);
}

#[test]
fn job_on_a_terminal_says_that_it_reads_what_is_typed() {
    let dir = TestDir::new();
    dir.write("b", "two\n");
    let note =
        "petal: note: reading lines from the terminal; end them with Ctrl-D on a line of its own\n";
    for (args, note, expected) in [
        ("dedup", note, "one\ntwo\n"),
        ("diff - b", note, "one\n"),
        ("count -q", "", "2\tone\n1\ttwo\n"),
        ("build -q -n 9 -o f", "", ""),
    ] {
        let (mut user, stdin) = terminal();
        let mut command = dir.petal(args);
        command.stdin(Stdio::from(stdin)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = vec![0; note.len()];
        child.stderr.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(String::from_utf8(said).unwrap(), note);
        user.write_all(b"one\ntwo\none\n\x04").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{args}");
    }
}
