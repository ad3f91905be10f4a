//! Help, notes and progress.

use crate::common::{TestDir, run, write_lines};

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
fn no_arguments_print_the_help() {
    let output = run([""; 0]);
    assert_eq!(output.code, Some(2));
    assert!(output.out.is_empty());
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
