//! Shells can load the completions, `man` can show the pages, and both include all commands.

use std::process::{Command, Stdio};

use crate::common::{TestDir, run, run_with_input, skipped};

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// Returns the commands in the help.
fn commands() -> Vec<String> {
    let help = run(["-h"]).text();
    let list = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let names = list.unwrap().lines().filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn shells_can_read_their_completions() {
    let dir = TestDir::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).text();
        for word in commands().iter().map(String::as_str).chain(["capacity", "memory", "null"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        dir.write(shell, &script);
        if is_there(shell) {
            let mut command = Command::new(shell);
            command.args(["-n", &dir.path(shell)]);
            let output = run_with_input(command, b"");
            assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{shell}");
        } else {
            skipped("shells_can_read_their_completions", &format!("no {shell} here"));
        }
    }
    assert_eq!(run(["completions", "tcsh"]).code, Some(2));
}

#[test]
fn bash_completes_commands_and_options() {
    let dir = TestDir::new();
    dir.write("script", run(["completions", "bash"]).ok());
    let complete = |args: &str, word: &str| {
        let last = args.split(' ').count();
        let script = format!(
            ". ./script; COMP_WORDS=({args} {word}); COMP_CWORD={last}; _petal petal {word} x; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        dir.sh(&script).text()
    };
    assert_eq!(complete("petal", "se"), "seen\n");
    assert!(complete("petal seen", "--ex").contains("--exact\n"));
}

#[test]
fn every_command_has_a_man_page() {
    let dir = TestDir::new();
    assert_eq!(dir.run("man --dir new/man1").text(), "");
    let mut expected: Vec<_> =
        commands().iter().map(|command| format!("petal-{command}.1")).collect();
    expected.push("petal.1".to_owned());
    expected.sort();
    let folder = dir.files.file("new/man1");
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
    assert_eq!(dir.run("man").ok(), std::fs::read(folder.join("petal.1")).unwrap());
    for command in commands() {
        let page = std::fs::read(folder.join(format!("petal-{command}.1"))).unwrap();
        assert_eq!(dir.run(&format!("man {command}")).ok(), page, "{command}");
    }
    assert_eq!(dir.run("man uniq").ok(), dir.run("man dedup").ok());
    assert!(dir.run("man chekc").failure().contains("a similar subcommand exists: 'check'"));
    assert!(dir.run("man dedup --dir new").failure().contains("'--dir <DIR>'"));
    dir.write("file", "");
    assert!(dir.run("man --dir file").failure().contains("file: cannot write"));
    // As `man` renders them.
    if !is_there("man") {
        return skipped("every_command_has_a_man_page", "man is not installed");
    }
    for name in &names {
        let script = format!("MANWIDTH=100 MANROFFSEQ= man --warnings -P cat -l new/man1/{name}");
        let output = dir.sh(&script);
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{name}");
        let text = String::from_utf8(output.out).unwrap();
        assert!(text.contains("EXAMPLES") && text.contains("petal "), "{name}");
    }
}
