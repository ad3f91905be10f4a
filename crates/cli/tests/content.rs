//! Inputs that are not lines are refused, in files and pipes, by every command that reads lines;
//! byte order marks and mixed line ends are warned of.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::process::Command;

use kit::{Place, skipped};

fn utf16(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

const COMMANDS: [&str; 15] = [
    "common lines FILE",
    "common FILE lines -o out",
    "diff lines FILE -c",
    "diff --approx lines FILE",
    "dedup lines FILE",
    "dedup --approx FILE",
    "build -o out lines FILE",
    "build -o out --type static FILE",
    "build -o out --not-in FILE lines",
    "add f FILE",
    "check f FILE",
    "check --allow FILE f lines",
    "remove counting FILE",
    "seen -n 100 fresh FILE",
    "plan dedup FILE",
];

fn place() -> Place {
    let place = Place::new();
    place.write("lines", "one\ntwo\nthree\n");
    place.run("build -o f lines").ok();
    place.run("build -o counting --type counting lines").ok();
    place.write("utf16", utf16("one\ntwo\nthree\n"));
    place
}

#[test]
fn every_command_refuses_what_is_not_lines() {
    let place = place();
    let filter = place.read("f");
    for (file, says) in [("utf16", "is text in UTF-16"), ("f", "is a petal filter")] {
        for command in COMMANDS {
            if (command, file) == ("add f FILE", "f") {
                continue;
            }
            let line = place.run(&command.replace("FILE", file)).trouble();
            assert!(line.contains(&format!("{file}: {says}, expected lines")), "{command}: {line}");
            assert!(line.contains("--text"), "{command}: {line}");
        }
    }
    assert!(place.read("f") == filter);
    assert!(!place.files.names().iter().any(|name| name == "out" || name.starts_with("fresh")));
}

#[test]
fn a_pipe_is_refused_like_a_file() {
    let place = place();
    let bytes = place.read("utf16");
    for command in COMMANDS {
        // Planning takes files alone; a filter of an unknown number of lines needs a capacity.
        let command = match command {
            "plan dedup FILE" => continue,
            "build -o out lines FILE" => "build -n 10 -o out lines FILE",
            "build -o out --not-in FILE lines" => continue,
            other => other,
        };
        let ran = place.run_with(&command.replace("FILE", "-"), &bytes);
        let last = ran.err.lines().last().unwrap_or_default();
        assert_eq!(ran.code, Some(2), "{command}: {}", ran.err);
        assert!(last.contains("-: is text in UTF-16"), "{command}: {last}");
        assert!(last.contains("pipe it through `iconv -f UTF-16 -t UTF-8`"), "{command}: {last}");
    }
}

#[test]
fn compressed_and_archived_files_name_the_program_that_reads_them() {
    let place = place();
    let lines: String = (0..5000).map(|line| format!("line {line}\n")).collect();
    place.write("text", lines);
    let programs = [
        ("xz -c text > p", "xz -dc p"),
        ("xz --format=lzma -c text > p", "xz -dc p"),
        ("bzip2 -c text > p", "bzip2 -dc p"),
        ("bzip2 -c /dev/null > p", "bzip2 -dc p"),
        ("lz4 -c text > p 2>/dev/null", "lz4 -dc p"),
        ("zip -q p.zip text && mv p.zip p", "unzip -p p"),
    ];
    for (pack, remedy) in programs {
        let program = pack.split(' ').next().unwrap();
        if Command::new(program).arg("--version").output().is_err() {
            skipped("compressed_and_archived_files_name_the_program_that_reads_them", program);
            continue;
        }
        assert_eq!(place.sh(pack).code, Some(0), "{pack}");
        let line = place.run("common text p").trouble();
        assert!(line.contains("p: is ") && line.contains(remedy), "{pack}: {line}");
        let ran = place.sh("cat p | \"$petal\" dedup");
        assert!(ran.code == Some(2) && ran.out.is_empty(), "{pack}: {}", ran.err);
    }
}

#[test]
fn text_reads_it_all_the_same() {
    let place = place();
    let bytes = place.read("utf16");
    let lines = place.run("dedup --text utf16").ok();
    assert!(lines.starts_with(&bytes[..8]));
    assert!(place.run_with("dedup --text", &bytes).ok() == lines);
    place.run("build --text -o out utf16").ok();
    assert!(place.run("check --text out utf16").ok() == lines);
    place.run("plan dedup --text utf16").ok();
    place.write("crlf", "\u{feff}one\r\n");
    assert_eq!(place.run("common --text lines crlf -c").err, "");
}

#[test]
fn marks_and_mixed_line_ends_are_warned_of_once() {
    let place = place();
    place.write("crlf", "one\r\ntwo\r\n");
    place.write("mark", "\u{feff}one\ntwo\n");
    for command in
        ["common lines crlf", "diff crlf lines", "dedup lines crlf", "plan diff lines crlf"]
    {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{command}: {}", ran.err);
        assert!(ran.err.contains("warning: the lines of crlf end with CRLF"), "{}", ran.err);
        assert!(
            ran.err.contains("lines end with LF") && ran.err.contains("tr -d '\\r'"),
            "{}",
            ran.err
        );
    }
    for command in ["common lines mark", "dedup mark", "check f mark", "build -o out mark"] {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{command}: {}", ran.err);
        assert!(ran.err.contains("warning: mark begins with a byte order mark"), "{}", ran.err);
        assert!(ran.err.contains("sed '1s/^\\xEF\\xBB\\xBF//'"), "{}", ran.err);
        if !command.starts_with("build") {
            assert_eq!(place.run(&format!("{command} -q")).err, "", "{command}");
        }
    }
    // A pipe, and a compressed file.
    let ran = place.run_with("dedup lines -", b"\xef\xbb\xbfone\r\n");
    assert!(ran.err.contains("standard input begins with a byte order mark"), "{}", ran.err);
    assert!(ran.err.contains("the lines of standard input end with CRLF"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);
    place.write("packed", kit::pack::gz(b"one\r\n"));
    let ran = place.run("common lines packed");
    assert!(ran.err.contains("the lines of packed end with CRLF"), "{}", ran.err);
    // All alike: nothing to say.
    for command in ["dedup crlf", "common crlf crlf", "common lines lines", "common -z crlf lines"]
    {
        assert_eq!(place.run(command).err, "", "{command}");
    }
}
