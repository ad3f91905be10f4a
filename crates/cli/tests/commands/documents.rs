//! `dedup --unit`: texts without the parts that occur earlier, one output for each input.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;

use petal_testkit::rng::Rng;
use serde_json::{Value, json};

use crate::common::TestDir;
use crate::common::pack;
use crate::compressed_outputs::decoded;

/// Documents of lines, of which many repeat.
fn documents(rng: &mut Rng, count: usize, lines: usize) -> Vec<Vec<String>> {
    let document = |_| (0..rng.below(20)).map(|_| format!("Zeile {}", rng.below(lines))).collect();
    (0..count).map(document).collect()
}

fn jsonl(documents: &[Vec<String>]) -> String {
    let record = |lines: &Vec<String>| format!("{}\n", json!({"id": 1, "text": lines.join("\n")}));
    documents.iter().map(record).collect()
}

/// The texts without lines that occur earlier.
fn expected(documents: &[Vec<String>], seen: &mut HashSet<String>) -> Vec<String> {
    let mut left = vec![];
    for lines in documents {
        let new: Vec<_> = lines.iter().filter(|line| seen.insert((*line).clone())).collect();
        left.push(new.into_iter().map(String::as_str).collect::<Vec<_>>().join("\n"));
    }
    left
}

fn texts(output: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(output).unwrap();
    let value =
        |line| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned();
    text.lines().map(value).collect()
}

const UNIT: &str = "dedup --json-key /text --unit line";

#[test]
fn outputs_have_the_names_and_the_compression_of_the_inputs() {
    let (dir, mut rng) = (TestDir::new(), Rng::new(1));
    let inputs: Vec<_> = (0..5).map(|_| documents(&mut rng, 300, 900)).collect();
    let names = ["a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "d.jsonl.lz4", "e.jsonl.xz"];
    fs::create_dir(dir.files.file("in")).unwrap();
    for (name, input) in names.iter().zip(&inputs) {
        let text = jsonl(input).into_bytes();
        let packed = match name.rsplit('.').next() {
            Some("gz") => pack::gz(&text),
            Some("zst") => pack::zst(&text),
            Some("xz") => pack::xz(&text),
            Some("lz4") => pack::lz4(&text),
            _ => text,
        };
        dir.write(&format!("in/{name}"), packed);
    }
    let mut seen = HashSet::new();
    let expected: Vec<_> = inputs.iter().map(|input| expected(input, &mut seen)).collect();
    for options in ["", "-j 1 -m 24M", "--files-from list"] {
        let _ = fs::remove_dir_all(dir.files.file("out"));
        let inputs: Vec<_> = names.iter().map(|name| format!("in/{name}")).collect();
        dir.write("list", inputs.join("\n"));
        let inputs = if options.contains("list") { String::new() } else { inputs.join(" ") };
        let run = dir.run(&format!("{UNIT} -o out {options} {inputs}"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.out.is_empty());
        for (name, expected) in names.iter().zip(&expected) {
            let name = name.trim_end_matches(".xz");
            let output = dir.read(&format!("out/{name}"));
            let output = match name.split_once(".jsonl.") {
                Some((_, extension)) => decoded(extension, &output),
                None => output,
            };
            assert_eq!(&texts(&output), expected, "{name}");
        }
        let counts = run.err.strip_prefix("petal: note: ").expect("a summary");
        assert!(counts.ends_with("1,500 documents, 0 dropped\n"), "{counts}");
    }
    // The outputs have no repeats.
    dir.run(&format!("{UNIT} -q -o again --recursive out")).ok();
    for name in &names[..4] {
        assert_eq!(dir.read(&format!("again/{name}")), dir.read(&format!("out/{name}")));
    }
}

/// More parts than the memory limit has space for.
#[test]
fn same_outputs_for_any_memory_limit_and_threads() {
    let (dir, mut rng) = (TestDir::new(), Rng::new(2));
    let inputs = [40_000, 30_000].map(|count| documents(&mut rng, count, 900_000));
    dir.write("a.jsonl", jsonl(&inputs[0]));
    dir.write("b.jsonl.gz", pack::gz(jsonl(&inputs[1]).as_bytes()));
    let mut seen = HashSet::new();
    let expected = inputs.map(|input| expected(&input, &mut seen));
    for (options, strategy) in [
        ("-m 1G -j 1", "memory"),
        ("-m 1G -j 4", "memory"),
        ("-m 8M -j 1", "memory, then partition"),
        ("-m 8M -j 4", "memory, then partition"),
    ] {
        let names = "a.jsonl b.jsonl.gz";
        let args = format!("{UNIT} {options} --compress none -o out --report report {names}");
        dir.run(&args).ok();
        assert!(texts(&dir.read("out/a.jsonl")) == expected[0], "{options}");
        assert!(texts(&dir.read("out/b.jsonl.gz")) == expected[1], "{options}");
        let report: Value = serde_json::from_slice(&dir.read("report")).unwrap();
        assert_eq!(report["strategy"], strategy, "{options}");
        assert_eq!(report["kept"], 70_000);
        let parts = &report["parts"];
        let kept = expected.iter().flatten().map(|text| text.lines().count()).sum::<usize>();
        assert_eq!(parts["kept"], kept as u64);
        assert_eq!(
            parts["read"].as_u64().unwrap(),
            parts["kept"].as_u64().unwrap() + parts["repeated"].as_u64().unwrap()
        );
        dir.run("report report").ok();
    }
}

#[test]
fn documents_are_dropped_as_the_options_say() {
    let dir = TestDir::new();
    let text = |lines: &str| format!("{{\"text\":\"{lines}\"}}\n");
    let input = [r"a\nb", r"a\nb\nc", r"a\nd\ne", "", r"b\na"].map(text).concat();
    dir.write("a", &input);
    for (options, kept, summary) in [
        ("", &[r"a\nb", "c", r"d\ne", "", ""][..], "10 lines, 5 repeated; 5 documents, 0 dropped"),
        ("--min-parts 1", &[r"a\nb", "c", r"d\ne"], "10 lines, 5 repeated; 5 documents, 2 dropped"),
        ("--min-parts 2", &[r"a\nb", r"d\ne"], "10 lines, 5 repeated; 5 documents, 3 dropped"),
        (
            "--drop-if 1",
            &[r"a\nb", "c", r"d\ne", ""],
            "10 lines, 5 repeated; 5 documents, 1 dropped",
        ),
        ("--drop-if 60%", &[r"a\nb", r"d\ne", ""], "10 lines, 5 repeated; 5 documents, 2 dropped"),
        ("--drop-if 1/3 --min-parts 1", &[r"a\nb"], "10 lines, 5 repeated; 5 documents, 4 dropped"),
    ] {
        let run = dir.run(&format!("{UNIT} {options} -o out a"));
        assert_eq!(run.err, format!("petal: note: {summary}\n"), "{options}");
        let kept: String = kept.iter().map(|lines| text(lines)).collect();
        assert_eq!(String::from_utf8(dir.read("out/a")).unwrap(), kept, "{options}");
        assert!(dir.run(&format!("{UNIT} {options} -q -o out a")).err.is_empty());
    }
}

#[test]
fn outputs_that_would_replace_something_are_errors() {
    let dir = TestDir::new();
    fs::create_dir(dir.files.file("sub")).unwrap();
    for name in ["a", "b", "sub/a"] {
        dir.write(name, "{\"text\":\"x\\nx\"}\n");
    }
    for (args, problem) in [
        ("-o out a sub/a", "sub/a: has the name of a, and both would be out/a; rename one of them"),
        ("-o . a", ".: has the input a; write to another directory"),
        ("-o sub a b sub/a", "sub/a: has the name of a"),
        ("-o - a", "-o: - is one output, and each file has its own; name a directory"),
        ("-o out /dev/stdin", "/dev/stdin: has no file name for its output"),
        ("-o out a#/t", "a#/t: its name says what its key is"),
        ("-o b a", "b: is a file, expected a directory; name another"),
        ("-o out -", "-: has no file name for its output; save it to a file first"),
        ("-o out --report ./out/a a", "./out/a: is used for two outputs; name another file"),
        ("-o out --report out/a a", "out/a: is used for two outputs; name another file"),
        ("-o out --bad-records out/a a", "out/a: is used for two outputs; name another file"),
        ("-o no/out a", "no/out: cannot write: "),
        ("a", "--output"),
        ("-o out -d a", "--only-duplicates"),
        ("-o out -c a", "--count"),
        ("-o out --dupes-output c a", "--dupes-output"),
        ("-o out --work-dir w a", "--work-dir"),
        ("-o out --resume a", "--resume"),
        (
            "-o out --bad-records skip --key-transform unhex a",
            "--key-transform: refuses some parts",
        ),
    ] {
        let error = dir.run(&format!("{UNIT} {args}")).failure();
        assert!(error.contains(problem), "{args}: {error}");
        assert!(!dir.files.file("out").exists(), "{args}");
    }
    for (args, problem) in [
        (
            "--unit sentence -o out a",
            "--unit: expected a text in JSON; only lines need none; specify --json-key",
        ),
        ("--unit line -o out --min-parts 2 a", "--json-key"),
        ("--min-parts 2 --json-key /text a", "--unit"),
        ("--drop-if 2 --unit line -o out --json-key /text a", "'2' is not a share"),
        ("--json-key /a --json-key /b --unit line -o out a", "--json-key: names several values"),
        ("--column 1 --unit line -o out a", "--column"),
    ] {
        let error = dir.run(&format!("dedup {args}")).failure();
        assert!(error.contains(problem), "{args}: {error}");
    }
    // A job that fails leaves no incomplete output.
    dir.write("c", "{\"text\":\"x\"}\n{\"text\":1}\n");
    let error = dir.run(&format!("{UNIT} -q -o out b c")).failure();
    assert!(
        error.contains(
            "c: the record at byte 13 (line 2): has a number at \"/text\", expected a text"
        ),
        "{error}"
    );
    let left = fs::read_dir(dir.files.file("out")).into_iter().flatten();
    let left = left.map(|entry| entry.unwrap().file_name());
    assert!({ left }.all(|name| name == "b"));
    let run = dir.run(&format!("{UNIT} --bad-records bad -o out b c"));
    assert!(run.err.contains("left out 1 record without a key"), "{}", run.err);
    assert_eq!(dir.read("bad"), b"{\"text\":1}\n");
}

#[test]
fn approximate_jobs_report_what_they_lost() {
    let (dir, mut rng) = (TestDir::new(), Rng::new(3));
    dir.write("a", jsonl(&documents(&mut rng, 2000, 30_000)));
    let run = dir.run(&format!("{UNIT} --approx -n 30000 -p 1% -o out a"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("lines were lost (standard error"), "{}", run.err);
    // Without -n the filter is as large as the files need.
    let run = dir.run(&format!("{UNIT} --approx -m 4G -o out a"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.peak < 64 << 20, "{}", run.peak);
}

#[test]
fn lines_of_files_and_of_pipes_are_removed() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nx\n");
    let run = dir.sh("mkfifo f; printf 'y\\nz' > f & $petal dedup --unit line -o out a f; wait");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!((dir.read("out/a"), dir.read("out/f")), (b"x\ny\n".to_vec(), b"z\n".to_vec()));
    assert!(run.err.contains("note: 5 lines, 2 repeated\n"), "{}", run.err);
}

/// No file is written if one of the outputs is an input, the list or another output, under any name.
#[test]
fn outputs_that_are_the_same_file_are_errors() {
    let dir = TestDir::new();
    let text = "{\"text\":\"x\"}\n";
    for name in ["s", "hard", "list", "own"] {
        fs::create_dir(dir.files.file(name)).unwrap();
    }
    for name in ["a", "b", "s/b", "own/q"] {
        dir.write(name, text);
    }
    dir.write("own/q.xz", pack::xz(text.as_bytes()));
    dir.write("list/a", "a\nb\n");
    let link = |to: &str, from: &str| symlink(to, dir.files.file(from)).unwrap();
    link("b", "s/a");
    link("../a", "hard/b");
    link("new/a", "report");
    fs::create_dir(dir.files.file("new")).unwrap();
    for (args, problem) in [
        ("a b -o s", "s/b: is used for two outputs; name another file"),
        ("a b -o hard", "hard/b: is the same file as the input a; write to another directory"),
        ("--files-from list/a -o list", "list/a: is the same file as the input list/a"),
        ("a b -o new --report report", "report: is used for two outputs; name another file"),
        ("own/q.xz -o own", "own: has the input own/q.xz; write to another directory"),
        ("--files-from list/a --bad-records list/a -o new", "list/a: is an input, too"),
    ] {
        let error = dir.run(&format!("{UNIT} {args}")).failure();
        assert!(error.contains(problem), "{args}: {error}");
        for name in ["a", "b", "s/b", "own/q"] {
            assert_eq!(dir.read(name), text.as_bytes(), "{args}");
        }
        assert_eq!(dir.read("list/a"), b"a\nb\n");
        assert!(!dir.files.file("new/a").exists(), "{args}");
    }
    // A file that is no input is replaced.
    dir.run(&format!("{UNIT} -q a -o own")).ok();
    dir.run(&format!("{UNIT} -q own/q -o new")).ok();
    dir.run(&format!("{UNIT} -q own/q -o new")).ok();
    assert_eq!(dir.read("new/q"), text.as_bytes());
}

/// A directory that was made for a job that fails goes.
#[test]
fn job_that_fails_leaves_no_empty_directory() {
    let dir = TestDir::new();
    dir.write("a", "{\"text\":1}\n");
    for args in ["a", "no-such-file", "a --report no/report"] {
        dir.run(&format!("{UNIT} -o out {args}")).failure();
        assert!(!dir.files.file("out").exists(), "{args}");
    }
}

#[test]
fn notes_are_those_of_texts() {
    let dir = TestDir::new();
    dir.write("a", "x\r\ny\r\n");
    dir.write("b", "x\nz\n");
    let run = dir.run("dedup --unit line -o out a b");
    assert_eq!(run.err, "petal: note: 4 lines, 1 repeated\n");
    let a = "{\"id\":1}\n{\"text\":null}\n";
    dir.write("a", a);
    let run = dir.run(&format!("{UNIT} -o out --min-parts 1 --drop-if 1% a"));
    let warning = "petal: warning: no document of a has a text at /text, so all of them stay as they \
                   are; check --json-key\n";
    let note = "petal: note: 0 lines, 0 repeated; 2 documents, 0 dropped\n";
    assert_eq!(run.err, format!("{warning}{note}"));
    assert_eq!(dir.read("out/a"), a.as_bytes());
}
