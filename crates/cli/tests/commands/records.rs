//! Records that are left out: the output is that of the naive model on the records that are left.

use std::collections::HashMap;
use std::path::Path;

use petal_testkit::model::{self, LF};
use petal_testkit::rng::Rng;

use crate::common::pack::{self, FORMS, compress};
use crate::common::{EXACT_COMMANDS, STRATEGIES, TestDir, expected, note_record, odd_path};

/// What a record is.
#[derive(Clone, PartialEq)]
enum Kind {
    Key(String),
    Null,
    Empty,
    Bad,
}

/// How the inputs of a job are written.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Csv,
    Lines,
    /// A JSON text: an array, or values one after the other.
    Text,
}

/// Returns a record as it is in the file and as it is printed.
fn record(form: Form, rng: &mut Rng) -> (String, String, Kind) {
    let value = rng.pick(&["a", "b", "c", "dé", "e f"]).to_string();
    let value = value + rng.pick::<&str>(&["", "1", "22"]);
    let other = rng.below(3);
    if form == Form::Csv {
        let (text, kind) = match rng.below(10) {
            0 => (format!("short{other}"), Kind::Bad),
            1 => (format!("{other},"), Kind::Empty),
            2 => (String::new(), Kind::Empty),
            3 => (format!("\"#\n\"\",\",{value}"), Kind::Key(value)),
            4 => (format!("{other},\"{value}\r\n\",x"), Kind::Key(value + "\r\n")),
            _ => (format!("{other},{value}"), Kind::Key(value)),
        };
        return (text.clone(), text, kind);
    }
    let (text, kind) = match rng.below(10) {
        0 if form == Form::Lines => {
            let bad = ["{\"u\":1", "nope", "{\"u\":\"a\"} x", "\"\u{7}\"", "}"];
            (rng.pick(&bad).to_string(), Kind::Bad)
        }
        0 | 1 => (r#"{"u":null}"#.to_owned(), Kind::Null),
        2 => (format!(r#"{{"v":[{other}, "]"]}}"#), Kind::Null),
        3 => (r#"{"u":""}"#.to_owned(), Kind::Empty),
        _ => (format!(r#"{{"v": {{"w":"[{{"}},"u":"{value}"}}"#), Kind::Key(value)),
    };
    if form == Form::Lines || rng.one_in(2) {
        return (text.clone(), text, kind);
    }
    let pretty = text.replacen('{', "{\n ", 1).replacen(':', " :\r\n\t", 1);
    let compact = text.replacen("v\": {", "v\":{", 1).replacen(", \"]", ",\"]", 1);
    (pretty, compact, kind)
}

/// Returns records as a file of this form.
fn file(form: Form, records: &[(String, String, Kind)], rng: &mut Rng) -> String {
    let mut text = String::new();
    match form {
        Form::Text if rng.one_in(2) => {
            let separators = [",", ",\n", " ,\n# note ]\n"];
            text.push_str(rng.pick::<&str>(&["[", " [\n", "# note [\n[\n"]));
            for (number, (record, ..)) in records.iter().enumerate() {
                text.push_str(if number > 0 { rng.pick::<&str>(&separators) } else { "" });
                text.push_str(record);
            }
            text.push_str(rng.pick::<&str>(&["]", "\n]\n"]));
        }
        Form::Text => {
            // The first line shows that values span lines.
            text.push_str("{\n\"u\":null}");
            for (record, ..) in records {
                text.push_str(rng.pick::<&str>(&["", " ", "\n", "\n# note {\n"]));
                text.push_str(record);
            }
        }
        Form::Csv | Form::Lines => {
            let begin = if form == Form::Csv { "k,v\n" } else { "" };
            text.push_str(rng.pick::<&str>(&["", "# \"note\n"]));
            text.push_str(begin);
            for (record, ..) in records {
                text.push_str(if rng.one_in(20) { "# a \"note, {\n" } else { "" });
                text.push_str(record);
                text.push('\n');
            }
            if rng.one_in(4) && text.len() > begin.len() && !text.ends_with("\n\n") {
                text.pop();
            }
        }
    }
    text
}

fn job(dir: &TestDir, seed: u64) {
    let mut rng = Rng::new(seed);
    let form = *rng.pick(&[Form::Csv, Form::Lines, Form::Text]);
    let (command, strategy) = (*rng.pick(&EXACT_COMMANDS), *rng.pick(&STRATEGIES));
    let [nulls, empty] = [0; 2].map(|_| *rng.pick(&["one", "distinct", "drop"]));
    let (skipped, most) = (rng.below(3), *rng.pick(&[3, 40, 3000]));
    let (mut names, mut lists, mut shown, mut before) = (vec![], vec![], HashMap::new(), "");
    let (mut bad, mut counts) = (String::new(), [0; 3]);
    for number in 0..2 + rng.below(2) {
        let all: Vec<_> = (0..rng.below(most + 1)).map(|_| record(form, &mut rng)).collect();
        let text = file(form, &all, &mut rng);
        let start = ("", String::from(r#"{"u":null}"#), Kind::Null);
        let is_values = form == Form::Text && text.starts_with("{\n\"u\":null}");
        let start = is_values.then_some(&start).map(|(_, text, kind)| (text, kind));
        let mut list = Vec::new();
        let records = all.iter().map(|(_, printed, kind)| (printed, kind));
        for (place, (printed, kind)) in start.into_iter().chain(records).enumerate() {
            let unique = format!("distinct {number} {place}");
            let (token, alike, counted) = match kind {
                Kind::Key(key) => (format!("key {key:?}"), "one", 0),
                Kind::Null => ("null".to_owned(), nulls, 1),
                Kind::Empty => ("empty".to_owned(), empty, 2),
                Kind::Bad => {
                    bad.push_str(printed);
                    bad.push('\n');
                    (String::new(), "drop", 0)
                }
            };
            let token = match alike {
                "drop" => {
                    counts[counted] += 1;
                    continue;
                }
                "distinct" => unique,
                _ => token,
            };
            list.extend_from_slice(token.as_bytes());
            list.push(LF);
            note_record(command, &mut shown, token, printed.clone());
        }
        lists.push(list);
        let name = ["a", "b", "c"][number];
        let text = ["", "a title\n", "two\n\"lines\n"][skipped].to_owned() + &text;
        dir.write(name, compress(rng.pick::<&str>(&FORMS), text.as_bytes(), rng.next_u64()));
        if before.is_empty() && rng.one_in(4) {
            before = ["cat a |", "cat b |", "cat c |"][number];
            names.push("-");
        } else {
            names.push(name);
        }
    }
    let (names, jobs) = (names.join(" "), rng.pick(&[1, 2, 3]));
    let key = if form == Form::Csv { "--column v --separator ," } else { "--json-key /u" };
    let script = format!(
        "{before} \"$petal\" {command} -q {strategy} -j {jobs} -m 8M {key} --nulls {nulls} --empty \
         {empty} --comment '#' --skip-lines {skipped} --bad-records bad --report report {names} -o out"
    );
    _ = std::fs::remove_file(dir.path("bad"));
    let output = dir.sh(&script);
    let context = format!("seed {seed}: {script}");
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{context}");
    let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
    let mut answer = String::from(if form == Form::Csv { "k,v\n" } else { "" });
    for token in model::lines(&expected(command, &lists, LF), LF) {
        answer.push_str(&shown[std::str::from_utf8(token).unwrap()]);
        answer.push('\n');
    }
    let out = String::from_utf8(dir.read("out")).unwrap();
    assert!(out == answer, "{context}: {out} expected {answer}");
    // Other commands may end before they have read all inputs.
    if command.starts_with("dedup") {
        let report: serde_json::Value = serde_json::from_slice(&dir.read("report")).unwrap();
        let found = ["bad", "nulls", "empty"].map(|name| report["left_out"][name].as_u64());
        assert_eq!(found, counts.map(Some), "{context}");
        // A stream is read first, to a copy.
        let in_any_order = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        let found = std::fs::read_to_string(dir.path("bad")).unwrap_or_default();
        assert_eq!(in_any_order(&found), in_any_order(&bad), "{context}");
        assert!(found == bad || !before.is_empty(), "{context}");
    }
}

#[test]
fn random_jobs_equal_the_model_on_the_records_that_are_left() {
    let dir = TestDir::new();
    (0..300).for_each(|seed| job(&dir, seed));
}

#[test]
fn jobs_that_spill_and_resume_leave_out_the_same_records() {
    let dir = TestDir::new();
    let mut text = String::from("# preamble\nid,url\n");
    let mut answer = String::from("id,url\n");
    for number in 0..300_000 {
        text.push_str(&format!("{number},http://example.org/{number}\n"));
        answer.push_str(&format!("{number},http://example.org/{number}\n"));
        if number % 1000 == 0 {
            text.push_str("ragged\n# note \"\n,\n");
        }
    }
    dir.write("a.csv", &text);
    let args = "dedup a.csv -m 8M --column url --comment # --bad-records bad --empty drop --work-dir \
                work --strategy partition --report report";
    for resume in [false, true] {
        _ = std::fs::remove_file(dir.path("bad"));
        if resume {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            // The output is closed, so the job ends with its phases kept.
            let mut child = dir.petal(args).stdout(writer).spawn().unwrap();
            child.wait().unwrap();
            assert!(dir.files.names().contains(&"work".to_owned()), "{:?}", dir.files.names());
        }
        _ = std::fs::remove_file(dir.path("bad"));
        let args = if resume { format!("{args} --resume") } else { args.to_owned() };
        let output = dir.run(&args);
        assert_eq!(output.code, Some(0), "{}", output.err);
        assert!(output.out == answer.as_bytes(), "{resume}");
        let summary = "petal: warning: left out 300 records without a key (the first at a.csv line 4: \
                       has 1 field, ";
        assert!(output.err.contains(summary), "{}", output.err);
        assert!(output.err.contains("), 300 records with an empty key\n"), "{}", output.err);
        assert_eq!(dir.read("bad"), "ragged\n".repeat(300).as_bytes());
        let report = String::from_utf8(dir.read("report")).unwrap();
        assert_eq!(report.contains("\"resumed\": 0"), !resume, "{report}");
    }
}

#[test]
fn filters_are_built_from_and_queried_with_the_records_that_are_left() {
    let dir = TestDir::new();
    dir.write("a", "# c\n{\"u\":\"x\"}\nbad\n{}\n{\"u\":\"y\"}\n");
    let rules = "--json-key /u --comment # --bad-records skip --nulls drop";
    let built = dir.run(&format!("build -o f a {rules}"));
    assert_eq!(built.code, Some(0), "{}", built.err);
    assert!(built.err.contains("left out 1 record without a key (at a line 3: is no JSON"));
    assert!(built.err.contains(", 1 record with a null value"), "{}", built.err);
    assert!(dir.run("info f").text().contains("2"));
    let found = "{\"u\":\"x\"}\n{\"u\":\"y\"}\n";
    assert_eq!(dir.run(&format!("check f a -q {rules}")).text(), found);
    assert_eq!(dir.run(&format!("check f a -q -v -c {rules}")).code, Some(1));
    assert_eq!(dir.run(&format!("seen -q -n 9 s a {rules}")).text(), found);
    assert_eq!(dir.run(&format!("count -q a {rules}")).text().lines().count(), 2);
    for command in ["build -o f", "check f", "seen -n 9 s"] {
        let error = dir.run(&format!("{command} a --json-key /u --nulls distinct")).failure();
        assert!(error.contains("--nulls: a filter cannot tell a key from equal ones"), "{error}");
    }
}

#[test]
fn transforms_and_lines_have_bad_and_empty_keys() {
    let dir = TestDir::new();
    dir.write("a", "6162\nxyz\n\n6162\n \n");
    let run = dir.run("dedup a --key-transform unhex --bad-records skip");
    assert_eq!(run.out, b"6162\n\n");
    assert!(run.err.contains("left out 2 records without a key (the first at a line 2: "));
    let run = dir.run("dedup a --key-transform trim --empty drop -q");
    assert_eq!(run.out, b"6162\nxyz\n");
    assert_eq!(dir.run("dedup a --key-transform trim --empty distinct").out, b"6162\nxyz\n\n \n");
    assert_eq!(dir.run("dedup a --skip-lines 1").out, b"xyz\n\n6162\n \n");
    assert_eq!(dir.run("dedup a --skip-lines 9").out, b"");
    dir.write("one", "a");
    assert_eq!(dir.run("dedup one --skip-lines 1").out, b"");
    dir.write("z", "HEAD\0a\0b\0");
    dir.write("z.gz", pack::gz(b"HEAD\0a\0b\0"));
    for file in ["z", "z.gz", "-"] {
        let run = dir.run_with(&format!("count -0 --skip-lines 1 {file}"), b"HEAD\0a\0b\0");
        assert_eq!(run.out, b"1\ta\x001\tb\0", "{file}");
    }
    // A transform refuses the empty line, which has no key.
    let hash = "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8\n\n";
    dir.write("hashes", hash);
    dir.run("build -q --query-transform sha1 --empty drop -o f hashes").ok();
    assert_eq!(dir.run_with("check -c f", b"password\n").text(), "1\n");
    // Names that look equal are different files.
    let odd = [b"x\xff".as_slice(), b"x\xfe"].map(|name| odd_path(Path::new(&dir.path(".")), name));
    odd.iter().for_each(|path| std::fs::write(path, "bad\n").unwrap());
    let run = dir.sh("$petal dedup x* --key-transform unhex --bad-records odd");
    assert!(run.err.contains("left out 2 records without a key"), "{}", run.err);
    assert_eq!(dir.read("odd"), b"bad\nbad\n");
    dir.write("z", "#1\n\0a\0#2\0a\0");
    assert_eq!(dir.run("dedup z -z --comment #").out, b"a\0");
}

#[test]
fn errors_name_the_place_in_the_file_and_both_options() {
    let dir = TestDir::new();
    dir.write("a.csv", "title\n# c\nu,v\n1,2\n# \"\n3\n");
    dir.write("j", "[{\"u\":1},\n{\"u\":2}");
    dir.write("k", "[{\"u\":1} {\"u\":2}]");
    dir.write("open.csv", "u,v\n1,2\n3,\"4\n");
    dir.write("list", "j\n");
    let cases = [
        (
            "dedup a.csv --skip-lines 1 --comment # --column v",
            "a.csv: the record at byte 22 (line 6): has 1 field",
        ),
        (
            "dedup j --json-key /u",
            "j: the record at byte 17 (line 2): is no JSON: the file ends within an array",
        ),
        (
            "dedup k --json-key /u",
            "k: the record at byte 9 (line 1): is no JSON: expected a value, or a comma",
        ),
        (
            "dedup open.csv --column v --comment #",
            "open.csv: the record at byte 8 has a quote that is not closed",
        ),
        (
            "dedup a.csv --bad-records a.csv --column 1",
            "a.csv: is an input, too; change --bad-records",
        ),
        (
            "dedup a.csv --bad-records j --column 1",
            "j: exists already; change --bad-records, or remove it",
        ),
        ("dedup a.csv --bad-records b.gz --column 1", "b.gz: would not be compressed; change"),
        ("count a.csv --bad-records x -o ./x --column 1", "is used for two outputs"),
        ("build a.csv --bad-records x -o x --column 1", "is used for two outputs"),
        ("build --counts --skip-lines 1 -o f a.csv", "cannot be used with"),
        ("dedup --files-from list -o list", "list: is the same file as the input list"),
        ("count --files-from list -o list", "list: is the same file as the input list"),
        ("dedup a.csv --bad-records x -o x --column 1", "is used for two outputs"),
        ("seen -n 9 x a.csv --bad-records x --column 1", "is used for two outputs"),
        ("seen -n 9 --exact x a.csv --bad-records ./x.exact --column 1", "is used for two outputs"),
        (
            "build a.csv --keyed --secret-file x -o y --bad-records x --column 1",
            "is used for two outputs",
        ),
        ("dedup a.csv --bad-records -", "expected stop, skip or the name of a file"),
        (
            "seen -n 9 s a.csv --follow --skip-lines 1",
            "--skip-lines: a file that is followed may be replaced",
        ),
        (
            "seen -n 9 s j --follow --json-key /u --nulls distinct",
            "--nulls: a filter cannot tell a key from equal ones",
        ),
    ];
    for (args, why) in cases {
        let error = dir.run(args);
        assert_eq!(error.code, Some(2), "{args}");
        assert!(error.err.contains(why) && error.err.lines().count() == 1, "{args}: {}", error.err);
    }
    let run = dir.run("dedup open.csv --column v --bad-records bad");
    assert_eq!((run.code, &run.out[..]), (Some(0), &b"u,v\n1,2\n"[..]), "{}", run.err);
    assert_eq!(dir.read("bad"), b"3,\"4\n\n");
    let run = dir.run("dedup j --json-key /u --bad-records skip");
    assert_eq!((run.code, &run.out[..]), (Some(0), &b"{\"u\":1}\n{\"u\":2}\n"[..]), "{}", run.err);
    assert!(run.err.contains("(at j line 2: is no JSON: the file ends within an array"));
}

#[test]
fn header_with_two_equal_names_is_reported() {
    let dir = TestDir::new();
    dir.write("a.csv", "u,v,u\n1,2,3\n");
    let run = dir.run("dedup a.csv --column v");
    assert_eq!(run.code, Some(0));
    let warning = "the header of a.csv has two columns with the name \"u\", 1 and 3";
    assert!(run.err.contains(warning), "{}", run.err);
}
