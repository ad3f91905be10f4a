//! Inputs whose keys differ: the fragment of a name says what the key is.

use std::collections::HashMap;

use petal_testkit::model::{self, LF};
use petal_testkit::rng::Rng;

use crate::common::pack::{FORMS, compress};
use crate::common::{EXACT_COMMANDS, STRATEGIES, TestDir, expected, note_record};

const KEYS: [&str; 10] =
    ["", "a", "b,c", "say \"hi\"", "x;y", "tab\there", "é\u{1f338}", " a ", "#", "http://a/?b=c&d"];

/// How records of a file are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Lines,
    /// With a header, and columns in this order.
    Named {
        separator: char,
        swapped: bool,
    },
    Numbered(char),
    Json,
}

impl Kind {
    fn random(rng: &mut Rng) -> Self {
        let separator = *rng.pick(&[',', ';', '|']);
        match rng.below(4) {
            0 => Self::Lines,
            1 => Self::Named { separator, swapped: rng.one_in(2) },
            2 => Self::Numbered(separator),
            _ => Self::Json,
        }
    }

    /// Returns whether records of both may be in one output.
    fn prints_like(self, other: Self) -> bool {
        let kind = |kind| match kind {
            Self::Lines => 0,
            Self::Named { .. } | Self::Numbered(_) => 1,
            Self::Json => 2,
        };
        kind(self) == kind(other)
    }

    fn fragment(self) -> String {
        match self {
            Self::Lines => "#".to_owned(),
            Self::Named { separator, .. } => format!("#k%26y&separator={separator}"),
            Self::Numbered(separator) => format!("#2&header=no&separator={separator}&format=csv"),
            Self::Json => "#/v/0/k~1".to_owned(),
        }
    }

    fn header(self) -> Option<String> {
        match self {
            Self::Named { separator, swapped: false } => Some(format!("n{separator}k&y")),
            Self::Named { separator, swapped: true } => Some(format!("k&y{separator}n")),
            _ => None,
        }
    }

    fn record(self, number: usize, key: &str) -> String {
        let quoted = || format!("\"{}\"", key.replace('"', "\"\""));
        match self {
            Self::Lines => key.to_owned(),
            Self::Named { separator, swapped: true } => format!("{}{separator}{number}", quoted()),
            Self::Named { separator, .. } | Self::Numbered(separator) => {
                format!("{number}{separator}{}", quoted())
            }
            Self::Json => serde_json::json!({"n": number, "v": [{"k/": key}]}).to_string(),
        }
    }
}

fn job(dir: &TestDir, seed: u64) {
    let mut rng = Rng::new(seed);
    let command = if rng.one_in(7) { "symdiff" } else { *rng.pick(&EXACT_COMMANDS) };
    let count = if command == "symdiff" { 2 } else { 2 + rng.below(2) };
    let records = *rng.pick(&[3, 30, 3000]);
    let prints_all = command.starts_with("dedup") || command == "symdiff";
    let (mut names, mut lists, mut printed, mut kinds) = (vec![], vec![], HashMap::new(), vec![]);
    let (mut before, mut head) = (String::new(), None);
    for number in 0..count {
        let mut kind = Kind::random(&mut rng);
        while prints_all && kinds.first().is_some_and(|first| !kind.prints_like(*first)) {
            kind = Kind::random(&mut rng);
        }
        kinds.push(kind);
        let (mut text, mut list) = (String::new(), String::new());
        if let Some(header) = kind.header() {
            text.push_str(&header);
            text.push('\n');
            if prints_all || number == 0 {
                head.get_or_insert(header);
            }
        }
        for at in 0..rng.below(records + 1) {
            let mut key = (*rng.pick(&KEYS)).to_owned();
            if rng.one_in(2) {
                key.push_str(&rng.below(40).to_string());
            }
            let record = kind.record(at, &key);
            text.push_str(&record);
            text.push('\n');
            list.push_str(&key);
            list.push('\n');
            if prints_all || number == 0 {
                note_record(command, &mut printed, key, record);
            }
        }
        lists.push(list);
        let name = ["a", "b#1", "c"][number];
        dir.write(name, compress(rng.pick::<&str>(&FORMS), text.as_bytes(), rng.next_u64()));
        let fragment = kind.fragment();
        names.push(if before.is_empty() && rng.one_in(5) {
            before = format!("cat '{name}' |");
            format!("'/dev/stdin{fragment}'")
        } else {
            format!("'{name}{fragment}'")
        });
    }
    let (strategy, jobs) = (rng.pick(&STRATEGIES), rng.pick(&[1, 2, 3, 8]));
    let (memory, names) = (rng.pick(&["8M", "64M"]), names.join(" "));
    // A fragment is more than the options.
    let options = rng.pick::<&str>(&["", "--column nothing --escape '\\'", "--json-key /nothing"]);
    let script = format!(
        "{before} \"$petal\" {command} -q {strategy} -j {jobs} -m {memory} {options} {names}"
    );
    let output = dir.sh(&script);
    let context = format!("seed {seed}: {script}");
    assert_eq!(output.code, Some(0), "{context}: {}", output.err);
    let lists: Vec<_> = lists.iter().map(String::as_bytes).collect();
    let keys = match command {
        "symdiff" => model::symdiff(lists[0], lists[1], LF),
        _ => expected(command, &lists, LF),
    };
    let mut answer = head.map(|header| header + "\n").unwrap_or_default();
    for key in model::lines(&keys, LF) {
        answer.push_str(&printed[str::from_utf8(key).unwrap()]);
        answer.push('\n');
    }
    let found = String::from_utf8_lossy(&output.out);
    assert!(found == answer, "{context}: {found} expected {answer}");
}

#[test]
fn random_jobs_on_inputs_of_other_keys_equal_the_model() {
    let dir = TestDir::new();
    (0..300).for_each(|seed| job(&dir, seed));
}

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("a.csv", "id,url\n1,x\n2,y\n3,x\n");
    dir.write("b.ssv", "y;10\nz;20\n");
    dir.write("c.jsonl", "{\"u\":\"x\",\"n\":2}\n{\"u\":\"w\"}\n");
    dir.write("d", "y\nw\n");
    dir
}

#[test]
fn filters_take_the_keys_of_each_input() {
    let dir = dir();
    dir.run("build -q --type counting -p 1e-9 -o f a.csv#url b.ssv#1&separator=; d").ok();
    assert_eq!(dir.run("check f c.jsonl#/u").text(), "{\"u\":\"x\",\"n\":2}\n{\"u\":\"w\"}\n");
    assert_eq!(dir.run("check f --column 1 b.ssv").text(), "y;10\nz;20\n");
    let info = dir.run("info f").text();
    assert!(
        info.contains(r#""keys":["column \"url\" of CSV with a header","column 1 of CSV"#),
        "{info}"
    );
    dir.run("remove -q f a.csv#url --missing missing").ok();
    assert_eq!(dir.read("missing"), b"id,url\n");
    assert_eq!(dir.run("check -q -c f c.jsonl#/u").text(), "1\n");
    dir.run("add -q f c.jsonl#/u --assert-members b.ssv#1&separator=;").ok();
    assert_eq!(dir.run("check -q -c f c.jsonl#/u").text(), "2\n");
    let allowed = "check -q f c.jsonl#/u --allow a.csv#url";
    assert_eq!(dir.run(allowed).text(), "{\"u\":\"w\"}\n");
    dir.run("build -q -p 1e-9 -o g d --not-in b.ssv#2&separator=;&header=no").ok();
    assert_eq!(dir.run("check -q -c g b.ssv#2&separator=;").out, b"0\n");
    // Records of both kinds are counted, but not printed.
    assert_eq!(dir.run("check -q -c f a.csv#url c.jsonl#/u").text(), "5\n");
    let line = dir.run("check f a.csv#url c.jsonl#/u").failure();
    assert!(
        line.contains(
            "c.jsonl: has records of JSON, which cannot follow the records of CSV of a.csv"
        ),
        "{line}"
    );
}

#[test]
fn other_verbs_take_the_keys_of_each_input() {
    let dir = dir();
    assert_eq!(dir.run("count -q b.ssv#1&separator=; --min-count 1").text(), "1;y;10\n1;z;20\n");
    assert_eq!(dir.run("dedup -c a.csv#url c.jsonl#/u d#").text(), "3\n");
    assert_eq!(dir.run("seen -q -c -n 100 s a.csv#url").text(), "2\n");
    assert_eq!(dir.run("seen -q s c.jsonl#/u").text(), "{\"u\":\"w\"}\n");
    let plan = dir.run("plan common --json a.csv#url c.jsonl#/u").text();
    assert!(plan.contains("\"kept\": 1,"), "{plan}");
    dir.write("list", "a.csv#url\nd#\n");
    assert_eq!(dir.run("diff --files-from list").text(), "id,url\n1,x\n");
    // One file with two keys.
    dir.write("links.csv", "from,to\na,b\nc,a\n");
    let both = dir.run("common links.csv#from links.csv#to").text();
    assert_eq!(both, "from,to\na,b\n");
    let left = dir.run("dedup -c --bad-records skip a.csv#3 a.csv#4");
    assert!(left.err.contains("left out 8 records"), "{}", left.err);
    std::fs::create_dir(dir.files.file("in")).unwrap();
    dir.write("in/x#1.csv", "id,url\n7,x\n");
    assert_eq!(dir.run("common -c a.csv#url --recursive in#url").text(), "1\n");
    let report = "common -q a.csv#url d --report report";
    dir.run(report).ok();
    assert!(String::from_utf8(dir.read("report")).unwrap().contains("\"a.csv#url\""));
}

#[test]
fn file_of_the_whole_name_has_no_fragment() {
    let dir = dir();
    dir.write("a.csv#url", "whole\n");
    assert_eq!(dir.run("dedup a.csv#url").text(), "whole\n");
    assert_eq!(dir.run("dedup -c a.csv#url#").text(), "1\n");
    let line = dir.run("dedup a#b.csv").failure();
    assert!(line.contains("a#b.csv: cannot read: no such file"), "{line}");
}

#[test]
fn standard_input_has_a_fragment_and_other_arguments_keep_their_hyphen() {
    let dir = dir();
    for name in ["/dev/stdin#url", "-- '-#url'", "--files-from list"] {
        dir.write("list", "-#url\n");
        let script = format!("cat a.csv | \"$petal\" dedup {name}");
        assert_eq!(dir.sh(&script).text(), "id,url\n1,x\n2,y\n", "{name}");
    }
    let script = "cat a.csv | \"$petal\" diff -- d '-#url'";
    assert_eq!(dir.sh(script).text(), "w\n");
    dir.write("keys", "-#key\n");
    dir.run("build -q -p 1e-9 -o f keys").ok();
    let explained = dir.run("explain --json f -- -#key").text();
    assert!(explained.contains("\"key\": \"-#key\""), "{explained}");
    dir.write("commented", "-#note\nx\n");
    assert_eq!(dir.run("dedup commented --comment=-#").text(), "x\n");
    dir.run("dedup -q d -o-#out").ok();
    assert_eq!(dir.read("-#out"), b"y\nw\n");
    for args in ["dedup -#url", "dedup commented --comment -#", "explain f -#key"] {
        let line = dir.run(args).failure();
        assert!(line.contains("for standard input write /dev/stdin#"), "{args}: {line}");
    }
}

#[test]
fn files_of_a_directory_have_its_fragment_whatever_is_beside_them() {
    let dir = dir();
    std::fs::create_dir(dir.files.file("in")).unwrap();
    dir.write("in/k.csv", "id,url\n7,x\n");
    dir.write("in/k.csv#url", "id,url\n8,y\n");
    let expected = "id,url\n7,x\n8,y\n";
    assert_eq!(dir.run("dedup --recursive in#url").text(), expected);
    assert_eq!(dir.run("dedup -c --recursive in#").text(), "3\n");
    assert_eq!(dir.run("common -c --at-least 1 --recursive a.csv#url in#url").text(), "2\n");
    let plan = dir.run("plan dedup --json --full-scan --recursive in#url").text();
    assert!(plan.contains("\"kept\": 2,"), "{plan}");
    // Filters have no keys of their own.
    std::fs::create_dir(dir.files.file("filters")).unwrap();
    dir.run("build -q -o filters/f d").ok();
    for command in ["verify", "merge -o g"] {
        let line = dir.run(&format!("{command} --recursive filters#url")).failure();
        assert!(line.contains("filters#url: cannot read: no such file"), "{line}");
        dir.run(&format!("{command} --recursive filters")).ok();
    }
}

#[test]
fn advice_is_about_the_name_that_has_the_key() {
    let dir = dir();
    let long = "x".repeat(3 << 20);
    dir.write("l.jsonl", format!("{{\"u\":\"x\"}}\n{{\"u\":\"{long}\"}}\n"));
    dir.write("l.csv", format!("1,{long}\n"));
    for args in ["l.jsonl#/u", "--json-key /u l.jsonl", "l.csv#1", "--column 1 l.csv"] {
        for records in ["", "--bad-records skip"] {
            let line = dir.run(&format!("dedup -m 8M {records} {args}")).failure();
            assert!(line.ends_with("a quarter of the memory limit; raise -m"), "{line}");
        }
    }
    let line = dir.run("dedup -m 8M l.csv").failure();
    assert!(line.contains("or use -z if lines end in NUL"), "{line}");
    dir.write("q.csv", "id,url\n1,\"x\n");
    dir.write("q", "id,url\n\"x\n");
    for name in ["q.csv#url", "q#2&separator=,", "q.csv#2&header=no"] {
        for options in ["", "--comment %", "--strategy partition"] {
            let line = dir.run(&format!("dedup {options} {name}")).failure();
            let advice = "; close the quote, or write the separator after # as in &separator=;, or change --quote";
            assert!(line.ends_with(advice), "{line}");
        }
    }
    let line = dir.run("dedup --column 2 q.csv").failure();
    assert!(
        line.ends_with("; close the quote, or change --separator, or change --quote"),
        "{line}"
    );
}

#[test]
fn options_for_columns_need_an_input_with_columns() {
    let dir = dir();
    dir.write("q", "'a;b';1\n'c';2\n");
    dir.write("e", "n|k\n1|a\\|b\n");
    dir.write("keys", "a;b\na|b\n");
    for (options, name, expected) in [
        ("--quote ' --separator ;", "q#1", "'a;b';1\n"),
        ("--json-key /u --quote '", "q#1&separator=;", "'a;b';1\n"),
        ("--escape \\ --separator | --header", "e#2", "n|k\n1|a\\|b\n"),
    ] {
        let keys = "keys#";
        assert_eq!(dir.run(&format!("common {options} {name} {keys}")).text(), expected);
        let plan = dir.run(&format!("plan common --json {options} {name} {keys}")).text();
        assert!(plan.contains("\"kept\": 1,"), "{options}: {plan}");
    }
    dir.run("build -q -p 1e-9 -o f keys").ok();
    // Lists are read by the options too.
    assert_eq!(dir.run("check -q f --quote ' keys --allow q#1&separator=;").text(), "a|b\n");
    dir.write("m", "'a;b';1\n");
    dir.run("add -q f d --quote ' --separator ; --assert-members m#1").ok();
    let line = dir.run("build -o g keys --quote ' --not-in q#1&separator=;").failure();
    assert!(line.contains("1 line is in the other inputs too"), "{line}");
    for option in ["--quote '", "--separator ;", "--escape \\", "--header"] {
        for command in ["dedup", "count", "build -o f", "plan dedup", "dedup --json-key /u"] {
            for name in ["d", "d#", "c.jsonl#/u"] {
                let line = dir.run(&format!("{command} {option} {name}")).failure();
                assert!(
                    line.contains("are for columns, and no input has any; add --column"),
                    "{line}"
                );
            }
        }
    }
}

#[test]
fn contradictions_are_errors_of_one_line() {
    let dir = dir();
    for (args, problem) in [
        ("dedup a.csv#", ""),
        ("dedup a.csv#/a&format=csv", "has format=csv, but its key is a value in JSON"),
        ("dedup a.csv#url&header=no", "has header=no, but the column \"url\" is found by its name"),
        (
            "dedup a.csv#url&quote=x",
            "\"quote\" is not a setting, expected separator, header or format",
        ),
        (
            "dedup a.csv#none",
            "; change the column after #, or write the separator after # as in &separator=;",
        ),
        (
            "dedup -z a.csv#url",
            "a.csv#url: its keys are parts of records, which end with LF; leave out -z",
        ),
        ("dedup -z d a.csv#/u", "leave out -z"),
        (
            "common a.csv#id,url d",
            "d: its keys have 1 field, which never equal those of a.csv#id,url with 2",
        ),
        (
            "dedup a.csv#url d",
            "d: has lines, which cannot follow the records of CSV of a.csv in one output",
        ),
        (
            "symdiff c.jsonl#/u d",
            "d: has lines, which cannot follow the records of JSON of c.jsonl",
        ),
        ("count a.csv#url c.jsonl#/u", "cannot follow the records of CSV"),
        ("seen -n 9 s a.csv#url d", "cannot follow the records of CSV"),
        ("seen --follow -n 9 s a.csv#url d", "d: its keys are others than those of a.csv#url"),
        ("dedup a.csv#1&separator=\"", "cannot separate fields and quote"),
        (
            "dedup --column 1 --separator , --escape ; a.csv a.csv#1&separator=;",
            "cannot separate fields and quote or escape",
        ),
        (
            "dedup --keys-only a.csv#url a.csv#1",
            "its keys are at another place than those of a.csv; leave out --keys-only",
        ),
        ("dedup no#\u{7}x,", "expected names or numbers of columns"),
        ("check --sums f c.jsonl#/u", "its name says what its keys are"),
    ] {
        if args.starts_with("check") {
            dir.run("build -q -o f d").ok();
        }
        let run = dir.run(args);
        if problem.is_empty() {
            run.ok();
            continue;
        }
        let line = run.failure();
        assert!(line.contains(problem), "{args}: {line}");
    }
}

#[test]
fn hostile_names_are_errors_of_one_line() {
    let dir = dir();
    let mut rng = Rng::new(40);
    const PARTS: [&str; 16] = [
        "#",
        "&",
        "=",
        "/u",
        "%",
        "%23",
        "url",
        "1",
        ",",
        "\"",
        "separator",
        "header",
        "no",
        "format",
        "csv",
        "~",
    ];
    for _ in 0..300 {
        let parts: String = (0..rng.below(7)).map(|_| *rng.pick(&PARTS)).collect();
        let run = dir.run(&format!("dedup -c -q a.csv#{parts}"));
        match run.code {
            Some(0) => {}
            _ => drop(run.failure()),
        }
    }
}
