//! Commands that read lines refuse binary inputs in files and pipes, and warn of byte order marks
//! and mixed line ends.

use std::process::Command;

use crate::common::{self, TestDir, run_with_input, skipped};

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

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("lines", "one\ntwo\nthree\n");
    dir.run("build -o f lines").ok();
    dir.run("build -o counting --type counting lines").ok();
    dir.write("utf16", utf16("one\ntwo\nthree\n"));
    dir
}

#[test]
fn every_command_refuses_what_is_not_lines() {
    let dir = dir();
    let filter = dir.read("f");
    for (file, message) in [("utf16", "is text in UTF-16"), ("f", "is a petal filter")] {
        for command in COMMANDS {
            if (command, file) == ("add f FILE", "f") {
                continue;
            }
            let line = dir.run(&command.replace("FILE", file)).failure();
            assert!(
                line.contains(&format!("{file}: {message}, expected lines")),
                "{command}: {line}"
            );
            assert!(line.contains("--text"), "{command}: {line}");
        }
    }
    assert!(dir.read("f") == filter);
    assert!(!dir.files.names().iter().any(|name| name == "out" || name.starts_with("fresh")));
}

#[test]
fn binary_pipe_is_an_error_like_a_file() {
    let dir = dir();
    let bytes = dir.read("utf16");
    for command in COMMANDS {
        // `plan` reads only files; `build` needs a capacity for a pipe.
        let command = match command {
            "plan dedup FILE" => continue,
            "build -o out lines FILE" => "build -n 10 -o out lines FILE",
            "build -o out --not-in FILE lines" => continue,
            other => other,
        };
        let output = dir.run_with(&command.replace("FILE", "-"), &bytes);
        let last = output.err.lines().last().unwrap_or_default();
        assert_eq!(output.code, Some(2), "{command}: {}", output.err);
        assert!(last.contains("-: is text in UTF-16"), "{command}: {last}");
        assert!(last.contains("pipe it through `iconv -f UTF-16 -t UTF-8`"), "{command}: {last}");
    }
}

#[test]
fn unsupported_compression_names_the_program_that_reads_it() {
    let dir = dir();
    let lines: String = (0..5000).map(|line| format!("line {line}\n")).collect();
    dir.write("text", lines);
    let programs = [
        ("xz --format=lzma -c text > p", "xz -dc p"),
        ("zip -q p.zip text && mv p.zip p", "unzip -p p"),
        ("tar cf p text", "tar -xOf p"),
        ("rm -f p; ar rc p text", "ar p p"),
    ];
    for (pack, remedy) in programs {
        let program = pack.rsplit("; ").next().unwrap().split(' ').next().unwrap();
        if Command::new(program).arg("--version").output().is_err() {
            skipped("unsupported_compression_names_the_program_that_reads_it", program);
            continue;
        }
        assert_eq!(dir.sh(pack).code, Some(0), "{pack}");
        let line = dir.run("common text p").failure();
        assert!(line.contains("p: is ") && line.contains(remedy), "{pack}: {line}");
        let output = dir.sh("cat p | \"$petal\" dedup");
        assert!(output.code == Some(2) && output.out.is_empty(), "{pack}: {}", output.err);
    }
}

/// The command in the error prints the lines, as it is pasted.
#[test]
fn advice_for_what_is_inside_compressed_data_works() {
    let dir = dir();
    dir.write("text", "one\ntwo\nthree\n");
    let inside = [
        ("tar", "tar cf inside text"),
        ("zip", "zip -q inside.zip text && mv inside.zip inside"),
        ("ar", "ar rc inside text"),
        ("iconv", "iconv -f UTF-8 -t UTF-16 text > inside"),
        ("gzip", "gzip -c text > inside"),
        ("zstd", "zstd -qc text > inside"),
        ("xz", "xz -c text > inside"),
        ("bzip2", "bzip2 -c text > inside"),
        ("lz4", "lz4 -c text > inside 2>/dev/null"),
    ];
    let has = |program: &&str| dir.sh(&format!("command -v {program}")).code == Some(0);
    for (program, pack) in inside.iter().filter(|(program, _)| has(program)) {
        dir.sh(&format!("rm -f inside; {pack}"));
        for codec in ["gzip", "zstd", "xz"].iter().filter(|codec| has(codec)) {
            dir.sh(&format!("{codec} -c < inside > 'my packed' 2>/dev/null"));
            let line = dir.sh("\"$petal\" dedup 'my packed'");
            assert_eq!(
                (line.code, &line.out[..]),
                (Some(2), &b""[..]),
                "{pack}, {codec}: {}",
                line.err
            );
            let command = line.err.split('`').nth(1).unwrap_or_default().to_owned();
            let output = dir.sh(&format!("({command}) | \"$petal\" dedup -"));
            assert_eq!(output.code, Some(0), "{pack}, {codec}: {command}: {}", output.err);
            assert_eq!(output.text(), "one\ntwo\nthree\n", "{pack}, {codec}: {command}");
            let piped = dir.sh("\"$petal\" dedup - < 'my packed'").err;
            assert!(piped.contains(&format!("`{codec} -dc")), "{program}: {piped}");
            if piped.contains("pipe it through") {
                let command = piped.split('`').nth(1).unwrap_or_default().to_owned();
                let output = dir.sh(&format!("cat 'my packed' | {command} | \"$petal\" dedup -"));
                assert_eq!(output.text(), "one\ntwo\nthree\n", "{pack}, {codec}: {command}");
            }
        }
    }
}

#[test]
fn file_name_in_a_command_is_quoted() {
    let dir = dir();
    for (name, quoted) in [
        ("my list.txt", "'my list.txt'"),
        ("it's", r"'it'\''s'"),
        ("$(reboot)", "'$(reboot)'"),
        ("\u{fc}ber/utf16", "\u{fc}ber/utf16"),
    ] {
        let path = dir.files.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, utf16("one\ntwo\nthree\n")).unwrap();
        let mut command = dir.petal("dedup");
        command.arg(name);
        let output = run_with_input(command, b"");
        assert_eq!(output.code, Some(2), "{}", output.err);
        assert!(output.err.contains(&format!("-t UTF-8 {quoted}`")), "{}", output.err);
    }
}

#[test]
fn text_option_reads_binary_files_as_lines() {
    let dir = dir();
    let bytes = dir.read("utf16");
    let lines = dir.run("dedup --text utf16").ok();
    assert!(lines.starts_with(&bytes[..8]));
    assert!(dir.run_with("dedup --text", &bytes).ok() == lines);
    dir.run("build --text -o out utf16").ok();
    assert!(dir.run("check --text out utf16").ok() == lines);
    dir.run("plan dedup --text utf16").ok();
    dir.write("crlf", "\u{feff}one\r\n");
    assert_eq!(dir.run("common --text lines crlf -c").err, "");
}

#[test]
fn filter_of_lines_with_other_line_ends_gives_a_warning() {
    let dir = dir();
    dir.write("crlf", "one\r\ntwo\r\n");
    let warned = |args: &str, code, warning: &str| {
        let output = dir.run(args);
        assert_eq!(output.code, Some(code), "{args}: {}", output.err);
        assert_eq!(output.err.lines().count(), usize::from(!warning.is_empty()), "{}", output.err);
        assert!(output.err.contains(warning), "{args}: {}", output.err);
    };
    let to_lf = "warning: the lines of crlf end with CRLF, those in f do not";
    let to_crlf = "warning: the lines of lines end with LF, those in g with CRLF";
    warned("build -o g crlf", 0, "");
    assert!(dir.run("info --json g").text().contains("\"line_ends\": \"CRLF\""));
    assert!(!dir.run("info --json f").text().contains("line_ends"));
    warned("check f lines", 0, "");
    warned("check f crlf", 1, to_lf);
    warned("check -q f crlf", 1, "");
    warned("check --text f crlf", 1, "");
    warned("check g crlf", 0, "");
    warned("check g lines", 1, to_crlf);
    warned("add f crlf", 0, to_lf);
    warned("add g crlf", 0, "");
    warned("seen -n 100 s crlf", 0, "");
    warned("seen s crlf", 0, "");
    warned("seen s lines", 0, "warning: the lines of lines end with LF, those in s with CRLF");
    // A filter without lines takes the line ends of the first ones.
    dir.write("empty", "");
    warned("build -q -n 10 -o e empty", 0, "");
    warned("add e crlf", 0, "");
    warned("check e crlf", 0, "");
}

#[test]
fn byte_order_marks_and_mixed_line_ends_give_one_warning() {
    let dir = dir();
    dir.write("crlf", "one\r\ntwo\r\n");
    dir.write("mark", "\u{feff}one\ntwo\n");
    for command in
        ["common lines crlf", "diff crlf lines", "dedup lines crlf", "plan diff lines crlf"]
    {
        let output = dir.run(command);
        assert_eq!(
            (output.code, output.err.lines().count()),
            (Some(0), 1),
            "{command}: {}",
            output.err
        );
        assert!(output.err.contains("warning: the lines of crlf end with CRLF"), "{}", output.err);
        assert!(
            output.err.contains("the keys of lines do not")
                && output.err.contains("--key-transform strip-cr"),
            "{}",
            output.err
        );
    }
    for command in ["common lines mark", "dedup mark", "check f mark", "build -o out mark"] {
        let output = dir.run(command);
        assert_eq!(
            (output.code, output.err.lines().count()),
            (Some(0), 1),
            "{command}: {}",
            output.err
        );
        assert!(
            output.err.contains("warning: mark begins with a byte order mark"),
            "{}",
            output.err
        );
        assert!(output.err.contains("sed '1s/^\\xEF\\xBB\\xBF//'"), "{}", output.err);
        if !command.starts_with("build") {
            assert_eq!(dir.run(&format!("{command} -q")).err, "", "{command}");
        }
    }
    // In a pipe, and in a compressed file.
    let output = dir.run_with("dedup lines -", b"\xef\xbb\xbfone\r\n");
    assert!(output.err.contains("standard input begins with a byte order mark"), "{}", output.err);
    assert!(output.err.contains("the lines of standard input end with CRLF"), "{}", output.err);
    assert_eq!(output.err.lines().count(), 2, "{}", output.err);
    dir.write("crlf.gz", common::pack::gz(b"one\r\n"));
    let output = dir.run("common lines crlf.gz");
    assert!(output.err.contains("the lines of crlf.gz end with CRLF"), "{}", output.err);
    dir.write("both", "one\r\ntwo\n");
    let output = dir.run("dedup both");
    assert!(output.err.contains("warning: some lines of both end with CRLF and others with LF"));
    assert_eq!(output.err.lines().count(), 1, "{}", output.err);
    // No warning if all inputs have the same line ends.
    for command in ["dedup crlf", "common crlf crlf", "common lines lines", "common -z crlf lines"]
    {
        assert_eq!(dir.run(command).err, "", "{command}");
    }
}
