//! Jobs on values of JSON lines: the output is that of the naive model on the keys, as whole lines.

use std::collections::HashMap;

use petal_testkit::model::{self, LF};
use petal_testkit::rng::Rng;
use serde_json::{Map, Value, json};

use crate::common::pack::{FORMS, compress};
use crate::common::{EXACT_COMMANDS, STRATEGIES, TestDir, expected, note_record};

const NAMES: [&str; 6] = ["url", "a", "b/c~", "", "é", "n"];
const STRINGS: [&str; 9] =
    ["", "a", "null", "1", "é\u{1f338}", "a\"b\\c/", "two\nlines\r", "\u{0}\u{7f}", "[1]"];

fn value(depth: u32, rng: &mut Rng) -> Value {
    match rng.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(rng.one_in(2)),
        2 => json!(rng.below(5)),
        3 => json!(-1.5),
        4 | 5 => json!(rng.pick(&STRINGS)),
        6 => (0..rng.below(4)).map(|_| value(depth - 1, rng)).collect(),
        _ => object(depth - 1, rng),
    }
}

fn object(depth: u32, rng: &mut Rng) -> Value {
    let mut members = Map::new();
    for _ in 0..rng.below(5) {
        members.insert((*rng.pick(&NAMES)).to_owned(), value(depth, rng));
    }
    Value::Object(members)
}

/// Writes a value with white space and, unless `strict`, with escapes that need not be.
fn write(value: &Value, strict: bool, rng: &mut Rng, out: &mut String) {
    match value {
        Value::Array(values) => {
            out.push('[');
            for (number, value) in values.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                out.push_str(rng.pick::<&str>(&["", " ", "\r\t"]));
                write(value, strict, rng, out);
                out.push_str(rng.pick::<&str>(&["", " "]));
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (number, (name, value)) in members.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                string(name, strict, rng, out);
                out.push_str(rng.pick::<&str>(&["", " "]));
                out.push(':');
                out.push_str(rng.pick::<&str>(&["", "\t"]));
                write(value, strict, rng, out);
                out.push_str(rng.pick::<&str>(&["", " "]));
            }
            out.push('}');
        }
        Value::String(text) => string(text, strict, rng, out),
        other => out.push_str(&other.to_string()),
    }
}

fn string(text: &str, strict: bool, rng: &mut Rng, out: &mut String) {
    if strict || rng.one_in(2) {
        return out.push_str(&Value::from(text).to_string());
    }
    out.push('"');
    for unit in text.encode_utf16() {
        out.push_str(&format!("\\u{unit:04x}"));
    }
    out.push('"');
}

/// Returns the key of a value as documented.
fn key(value: Option<&Value>) -> Vec<u8> {
    match value {
        None | Some(Value::Null) => b"\xff".to_vec(),
        Some(Value::String(text)) => text.clone().into_bytes(),
        Some(nested @ (Value::Array(_) | Value::Object(_))) => {
            [b"\xfe", nested.to_string().as_bytes()].concat()
        }
        Some(other) => other.to_string().into_bytes(),
    }
}

const POINTERS: [&[&str]; 6] =
    [&["/url"], &["/a/1"], &["/b~1c~0/"], &["/é", "/url"], &[""], &["/n/url/0"]];

fn job(dir: &TestDir, seed: u64) {
    let mut rng = Rng::new(seed);
    let pointers = *rng.pick(&POINTERS);
    let records = *rng.pick(&[3, 30, 2000]);
    let count = 2 + rng.below(2);
    let (command, strategy) = (*rng.pick(&EXACT_COMMANDS), *rng.pick(&STRATEGIES));
    let (mut names, mut lists, mut printed, mut before) = (vec![], vec![], HashMap::new(), "");
    for number in 0..count {
        let (mut text, mut list) = (Vec::new(), Vec::new());
        if rng.one_in(8) {
            text.extend_from_slice("\u{feff}".as_bytes());
        }
        for _ in 0..rng.below(records + 1) {
            let record = if rng.one_in(50) { None } else { Some(object(2, &mut rng)) };
            let at = |pointer: &&str| record.as_ref().and_then(|record| record.pointer(pointer));
            let keys: Vec<_> = pointers.iter().map(|pointer| key(at(pointer))).collect();
            // The key of an array or object depends on how its strings are written.
            let strict = keys.iter().any(|key| key.starts_with(b"\xfe"));
            let mut line = String::new();
            match &record {
                Some(record) => write(record, strict, &mut rng, &mut line),
                None => line.push(' '),
            }
            let token = format!("{keys:?}");
            list.extend_from_slice(token.as_bytes());
            list.push(LF);
            text.extend_from_slice(line.as_bytes());
            text.push(LF);
            note_record(command, &mut printed, token, line);
        }
        lists.push(list);
        let name = ["a", "b", "c"][number];
        dir.write(name, compress(rng.pick::<&str>(&FORMS), &text, rng.next_u64()));
        if before.is_empty() && rng.one_in(4) {
            before = ["cat a |", "cat b |", "cat c |"][number];
            names.push("-");
        } else {
            names.push(name);
        }
    }
    let keys: Vec<_> = pointers.iter().map(|pointer| format!("--json-key '{pointer}'")).collect();
    let (keys, names, jobs) = (keys.join(" "), names.join(" "), rng.pick(&[1, 2, 3, 8]));
    let memory = rng.pick(&["8M", "64M"]);
    let script =
        format!("{before} \"$petal\" {command} -q {strategy} -j {jobs} -m {memory} {keys} {names}");
    let output = dir.sh(&script);
    let context = format!("seed {seed}: {script}");
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{context}");
    let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
    let mut answer = Vec::new();
    for token in model::lines(&expected(command, &lists, LF), LF) {
        answer.extend_from_slice(printed[std::str::from_utf8(token).unwrap()].as_bytes());
        answer.push(LF);
    }
    let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    assert!(output.out == answer, "{context}: {} expected {}", shown(&output.out), shown(&answer));
}

#[test]
fn random_jobs_on_json_equal_the_model() {
    let dir = TestDir::new();
    (0..300).for_each(|seed| job(&dir, seed));
}

#[test]
fn filters_take_strings_as_plain_lines() {
    let dir = TestDir::new();
    dir.write("a.jsonl", "{\"url\":\"http:\\/\\/a\",\"n\":1}\n{\"url\":\"b\",\"n\":null}\n{}\n");
    dir.run("build -q -o f.petal a.jsonl --json-key /url").ok();
    dir.write("lines", "http://a\nc\n");
    assert_eq!(dir.run("check f.petal lines").text(), "http://a\n");
    let found = "{\"url\":\"http:\\/\\/a\",\"n\":1}\n{\"url\":\"b\",\"n\":null}\n{}\n";
    assert_eq!(dir.run("check f.petal a.jsonl --json-key /url").text(), found);
    assert_eq!(dir.run("dedup -c a.jsonl --json-key /n").text(), "2\n");
    assert_eq!(dir.run("dedup -c a.jsonl --json-key /n --json-key /url").text(), "3\n");
    let info = dir.run("info f.petal").text();
    assert!(info.contains(r#""keys":"value \"/url\" of JSON""#), "{info}");
    let seen = "seen -q -n 10 s.petal a.jsonl --json-key /n";
    assert_eq!(dir.run(seen).text().lines().count(), 2);
    assert_eq!(dir.run(seen).text(), "");
}

#[test]
fn pointers_that_find_no_value_are_reported() {
    let dir = TestDir::new();
    dir.write("a", "{\"u\":1,\"v\":null}\n{\"u\":2}\n{}\n");
    dir.write("b", "{\"v\":1}\n");
    dir.write("empty", "");
    let warning = |what: &str, hint: &str| {
        format!("petal: warning: no record of {what}, so all of them are equal there; {hint}\n")
    };
    let check = "check --json-key";
    let comma = "a comma is part of the name, so repeat --json-key for several values";
    let cases = [
        ("dedup a empty --json-key /u", String::new()),
        ("dedup a --json-key /url", warning("a has a value at /url", check)),
        ("dedup a --json-key /u,/v", warning("a has a value at /u,/v", comma)),
        ("count a b --json-key /n", warning("a and another input have a value at /n", check)),
        ("dedup a b --json-key /u", warning("b has a value at /u", check)),
        ("common a b --json-key /u", warning("b has a value at /u", check)),
        ("diff a b --approx -q --json-key /u", String::new()),
        ("build -n 9 -o f a --json-key /u --json-key /v", warning("a has a value at /v", check)),
        ("seen -n 9 s a --json-key /n", warning("a has a value at /n", check)),
    ];
    for (args, expected) in cases {
        for strategy in ["", " -j 3 -m 8M"] {
            let found = dir.run(&format!("{args}{strategy}"));
            assert_eq!(found.code, Some(0), "{args}: {}", found.err);
            assert_eq!(found.err, expected, "{args}{strategy}");
        }
    }
    let piped = dir.run_with("check -c f --json-key /x --json-key /u -", b"{\"u\":1}\n").err;
    assert!(piped.contains("no record of standard input has a value at /x, "), "{piped}");
    for strategy in STRATEGIES {
        let found = dir.run(&format!("dedup a {strategy} --json-key /n"));
        assert_eq!(found.err, warning("a has a value at /n", check), "{strategy}");
    }
}

#[test]
fn values_before_the_table_was_full_are_remembered() {
    let dir = TestDir::new();
    let record = |number: u32| match number {
        0..100 => format!("{{\"n\":{number},\"u\":1}}\n"),
        _ => format!("{{\"n\":{number}}}\n"),
    };
    let records: String = (0..400_000).map(record).collect();
    let args = "dedup -c -m 8M --json-key /n --json-key /u --report report";
    let run = dir.run_with(args, records.as_bytes());
    let report = String::from_utf8(dir.read("report")).unwrap();
    assert!(report.contains("memory, then partition"), "{report}");
    assert!(!run.err.contains("value at"), "{}", run.err);
    assert_eq!(run.text(), "400000\n");
}

#[test]
fn lines_that_are_no_json_are_errors() {
    let dir = TestDir::new();
    dir.write("a", "{\"a\":1}\n{\"a\":1,}\n");
    dir.write("deep", "[".repeat(1 << 20));
    let cases = [
        (
            "dedup a --json-key /a",
            "a: the record at byte 8 (line 2): is no JSON: trailing comma at its byte 8; correct",
        ),
        (
            "dedup deep --json-key /a",
            "deep: the record at byte 1 (line 1): is no JSON: EOF while parsing",
        ),
        ("dedup a --json-key a", "expected a JSON pointer, such as /a"),
        ("dedup a --json-key /a~", "~ is written ~0"),
        ("dedup a --json-key /a --column 1", "cannot be used with"),
        ("dedup a --json-key /a -z", "cannot be used with"),
    ];
    for (args, why) in cases {
        let run = dir.run(args);
        assert_eq!(run.code, Some(2), "{args}: {}", run.err);
        assert!(run.err.contains(why), "{args}: {}", run.err);
    }
}
