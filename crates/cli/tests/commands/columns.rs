//! Jobs on columns of CSV: the output is that of the naive model on the keys, as whole records.

use std::collections::HashMap;

use petal_testkit::model::{self, LF};
use petal_testkit::rng::Rng;

use crate::common::pack::{FORMS, compress, gz};
use crate::common::{EXACT_COMMANDS, MEMORY_OVERHEAD, STRATEGIES, TestDir, expected, note_record};

/// A record as it is in the file, without its LF, and the values of its fields.
type Record = (Vec<u8>, Vec<Vec<u8>>);

/// Reads records byte by byte, as RFC 4180 describes them.
fn parse(text: &[u8], separator: u8) -> Vec<Record> {
    let (mut records, mut raw, mut fields, mut field) = (vec![], vec![], vec![], vec![]);
    // `begun`: the field has bytes, or had a quote.
    let (mut quoted, mut begun) = (false, false);
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        at += 1;
        if quoted {
            raw.push(byte);
            if byte != b'"' {
                field.push(byte);
            } else if text.get(at) == Some(&b'"') {
                raw.push(b'"');
                field.push(b'"');
                at += 1;
            } else {
                quoted = false;
            }
        } else if byte == b'\n' {
            // A CR outside of quotes, directly before the LF.
            if raw.last() == Some(&b'\r') {
                field.pop();
            }
            fields.push(std::mem::take(&mut field));
            records.push((std::mem::take(&mut raw), std::mem::take(&mut fields)));
            begun = false;
        } else {
            raw.push(byte);
            if byte == separator {
                fields.push(std::mem::take(&mut field));
                begun = false;
            } else if byte == b'"' && !begun {
                (quoted, begun) = (true, true);
            } else {
                begun = true;
                field.push(byte);
            }
        }
    }
    if !raw.is_empty() {
        if raw.last() == Some(&b'\r') {
            field.pop();
        }
        fields.push(field);
        records.push((raw, fields));
    }
    records
}

/// Values that need quotes, and values that do not.
const VALUES: [&[u8]; 14] = [
    b"",
    b"a",
    b"b",
    b"ab",
    b"a,b",
    b"a\nb",
    b"\n",
    b"\"",
    b"a\"b\"",
    b"\xff\xfe",
    b"a\r\nb",
    b"x;y",
    b"\r",
    b"http://example.org/a?b=c",
];

fn quote(value: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in value {
        quoted.extend_from_slice(if byte == b'"' { b"\"\"" } else { std::slice::from_ref(&byte) });
    }
    quoted.push(b'"');
    quoted
}

/// Writes a value in one of the ways that mean it, or a field with quotes at odd places.
fn field(value: &[u8], separator: u8, rng: &mut Rng) -> Vec<u8> {
    let needs = value.iter().any(|byte| b"\"\n\r".contains(byte) || *byte == separator);
    match rng.below(8) {
        0 => [&quote(value)[..], b"z\"z"].concat(),
        1 => b"a\"\"b\"".to_vec(),
        _ if needs || rng.one_in(3) => quote(value),
        _ => value.to_vec(),
    }
}

/// Writes a file with these columns.
fn csv(names: &[&str], header: bool, records: usize, separator: u8, rng: &mut Rng) -> Vec<u8> {
    let end: &[u8] = if rng.one_in(3) { b"\r\n" } else { b"\n" };
    let mut text = Vec::new();
    if header {
        let names: Vec<_> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        text.extend_from_slice(&names.join(&separator));
        text.extend_from_slice(end);
    }
    let values = 1 + rng.below(VALUES.len());
    for _ in 0..records {
        let number = rng.below(200).to_string();
        let fields = names.iter().map(|name| match *name {
            "id" => number.clone().into_bytes(),
            _ => {
                let mut value = VALUES[rng.below(values)].to_vec();
                if rng.one_in(3) {
                    value.extend_from_slice(rng.below(40).to_string().as_bytes());
                }
                field(&value, separator, rng)
            }
        });
        let fields: Vec<_> = fields.collect();
        text.extend_from_slice(&fields.join(&separator));
        text.extend_from_slice(end);
        if rng.one_in(300) {
            text.extend_from_slice(end);
        }
    }
    if rng.one_in(3) && text.ends_with(b"\n") {
        text.pop();
    }
    text
}

/// Returns the expected output: the header, and for each key of the answer the record that is printed.
fn answer(
    command: &str,
    headers: Option<&[u8]>,
    inputs: &[Vec<Record>],
    wanted: &[Vec<usize>],
) -> Vec<u8> {
    let key = |fields: &[Vec<u8>], columns: &[usize]| {
        let empty = fields.len() == 1 && fields[0].is_empty();
        let field =
            |column: &usize| if empty { String::new() } else { format!("{:?}", fields[*column]) };
        let field = |column: &usize| field(column).replace("[]", "");
        columns.iter().map(field).collect::<Vec<_>>().join("|")
    };
    let mut printed = HashMap::new();
    let mut lists = Vec::new();
    for (records, columns) in inputs.iter().zip(wanted) {
        let mut list = Vec::new();
        for (raw, fields) in records {
            let key = key(fields, columns);
            list.extend_from_slice(key.as_bytes());
            list.push(LF);
            note_record(command, &mut printed, key, raw);
        }
        lists.push(list);
    }
    let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
    let keys = match command {
        "symdiff" => model::symdiff(lists[0], lists[1], LF),
        _ => expected(command, &lists, LF),
    };
    let mut out = headers.map(|header| [header, b"\n"].concat()).unwrap_or_default();
    for key in model::lines(&keys, LF) {
        out.extend_from_slice(printed[std::str::from_utf8(key).unwrap()]);
        out.push(LF);
    }
    out
}

fn job(dir: &TestDir, seed: u64) {
    let mut rng = Rng::new(seed);
    let separator = *rng.pick(b",;\t");
    let records = *rng.pick(&[3, 30, 3000]);
    let by_name = rng.one_in(2);
    let header = by_name || rng.one_in(2);
    let several = rng.one_in(3);
    let command = if rng.one_in(7) { "symdiff" } else { *rng.pick(&EXACT_COMMANDS) };
    let count = if command == "symdiff" { 2 } else { 2 + rng.below(2) };
    let (mut names, mut inputs, mut wanted, mut head, mut before) =
        (vec![], vec![], vec![], None, String::new());
    let pipe = if rng.one_in(3) { Some(rng.below(count)) } else { None };
    for number in 0..count {
        let mut columns = ["id", "url", "lang"];
        if by_name {
            rng.shuffle(&mut columns);
        }
        let place = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let text = csv(&columns, header, rng.below(records + 1), separator, &mut rng);
        let mut parsed = parse(&text, separator);
        if header {
            let header = parsed.remove(0).0;
            head.get_or_insert(header);
        }
        inputs.push(parsed);
        wanted.push(if several { vec![place("url"), place("lang")] } else { vec![place("url")] });
        let name = ["a", "b", "c"][number];
        dir.write(name, compress(rng.pick::<&str>(&FORMS), &text, rng.next_u64()));
        names.push(if pipe == Some(number) {
            before = format!("cat {name} |");
            "-"
        } else {
            name
        });
    }
    let column = match (by_name, several) {
        (true, true) => "url,lang",
        (true, false) => "url",
        (false, true) => "2,3",
        (false, false) => "2",
    };
    let header = if header && !by_name { "--header" } else { "" };
    let separator = match separator {
        b',' => "--separator ,",
        b'\t' => "--separator tab --quote '\"'",
        _ => "--separator ';'",
    };
    let (strategy, jobs) = (rng.pick(&STRATEGIES), rng.pick(&[1, 2, 3, 8]));
    let memory = rng.pick(&["8M", "9M", "64M", "1G"]);
    let work = if pipe.is_none() && rng.one_in(4) { "--work-dir work" } else { "" };
    let names = names.join(" ");
    let script = format!(
        "{before} \"$petal\" {command} -q {strategy} -j {jobs} -m {memory} {work} \
         --column {column} {header} {separator} {names}"
    );
    let output = dir.sh(&script);
    let context = format!("seed {seed}: {script}");
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{context}");
    let answer = answer(command, head.as_deref(), &inputs, &wanted);
    assert!(
        output.out == answer,
        "{context}: {} expected {}",
        String::from_utf8_lossy(&output.out),
        String::from_utf8_lossy(&answer)
    );
}

#[test]
fn keys_are_printed_as_lines() {
    let dir = TestDir::new();
    dir.write(
        "a.csv",
        "\u{feff}id,url,lang\n1,\"http://a,b\",en\n2,http://c,\n3,\"http://a,b\",fr\n4,\"say \"\"x\"\"\",de",
    );
    dir.write("t.tsv", "1\tx,y\n2\t\"z\"\n");
    dir.write(
        "d.jsonl",
        "{\"u\":\"a\\u00e9\\\"\",\"n\":1.50}\n{\"u\":null,\"n\":[1, 2]}\n{\"u\":\"\",\"n\":{}}\n",
    );
    dir.write("two.csv", "a,b\n\"x\ny\",1\n");
    dir.write("keys", "http://a,b\n");
    dir.run("build -q -o f.petal keys").ok();
    for (args, expected) in [
        ("dedup a.csv --column url", "http://a,b\nhttp://c\nsay \"x\"\n"),
        (
            "dedup a.csv --column lang,url",
            "en,\"http://a,b\"\n,http://c\nfr,\"http://a,b\"\nde,\"say \"\"x\"\"\"\n",
        ),
        ("common a.csv#url keys", "http://a,b\n"),
        ("check f.petal a.csv --column url", "http://a,b\nhttp://a,b\n"),
        ("check -v f.petal a.csv --column url", "http://c\nsay \"x\"\n"),
        ("seen -q --exact -n 9 state a.csv --column 2", "url\nhttp://a,b\nhttp://c\nsay \"x\"\n"),
        ("dedup t.tsv --column 2", "x,y\n\"z\"\n"),
        ("dedup d.jsonl --json-key /u", "a\u{e9}\"\nnull\n\n"),
        ("dedup d.jsonl --json-key /n", "1.50\n[1,2]\n{}\n"),
        (
            "dedup d.jsonl --json-key /n --json-key /u",
            "1.50,\"a\u{e9}\"\"\"\n\"[1,2]\",null\n{},\n",
        ),
        ("dedup keys", "http://a,b\n"),
        ("count a.csv --column url", "2\thttp://a,b\n1\thttp://c\n1\tsay \"x\"\n"),
        ("count a.csv --column lang,url --top 1", "1,en,\"http://a,b\"\n"),
        ("count d.jsonl --json-key /u --top 1", "1\ta\u{e9}\"\n"),
    ] {
        assert_eq!(dir.run(&format!("{args} --keys-only -q")).text(), expected, "{args}");
    }
    for inputs in ["two.csv", "a.csv two.csv"] {
        let error = dir.run(&format!("dedup {inputs} --column 1 --header --keys-only")).failure();
        let text = "a key has a line end, so it cannot be printed as a line: 'x\\ny'; leave out --keys-only";
        assert!(error.ends_with(text), "{error}");
        assert_eq!(error.contains("two.csv: "), inputs == "two.csv", "{error}");
    }
    // Keys that are appended to a file follow its last line, whatever is in it.
    for (before, expected) in [("", "\"x\n"), ("old", "old\n\"x\n"), ("a\"b\n", "a\"b\n\"x\n")] {
        dir.write("quote.jsonl", "{\"u\":\"\\\"x\"}\n");
        dir.write("out", before);
        let args = "seen -q -n 9 --keys-only --json-key /u";
        dir.sh(&format!("rm -f state2; \"$petal\" {args} state2 quote.jsonl >> out")).ok();
        assert_eq!(String::from_utf8(dir.read("out")).unwrap(), expected);
        dir.write("more.jsonl", "{\"u\":\"fgh\"}\n");
        dir.sh(&format!("\"$petal\" {args} state2 more.jsonl >> out")).ok();
        assert_eq!(String::from_utf8(dir.read("out")).unwrap(), format!("{expected}fgh\n"));
    }
}

#[test]
fn random_jobs_on_columns_equal_the_model() {
    let dir = TestDir::new();
    (0..300).for_each(|seed| job(&dir, seed));
}

#[test]
#[ignore = "takes several minutes"]
fn many_random_jobs_on_columns_equal_the_model() {
    let dir = TestDir::new();
    (1000..5000).for_each(|seed| job(&dir, seed));
}

const A: &str =
    "id,url,lang\n1,\"http://a,b\",en\r\n2,http://b,de\n3,\"two\nlines\",fr\n1,http://b,xx\n";
const B: &str = "lang,url\nx,\"http://a,b\"\nfr,\"two\nlines\"\n";

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("a.csv", A);
    dir.write("b.csv", B);
    dir
}

#[test]
fn filters_take_the_values_of_columns() {
    let dir = dir();
    dir.run("build -q -o f.petal --type counting b.csv --column url").ok();
    // The keys are those of plain lines.
    dir.write("lines", "http://b\nhttp://a,b\n");
    assert_eq!(dir.run("check f.petal lines").text(), "http://a,b\n");
    let found = "id,url,lang\n1,\"http://a,b\",en\r\n3,\"two\nlines\",fr\n";
    assert_eq!(dir.run("check f.petal a.csv --column 2 --header").text(), found);
    let absent = "id,url,lang\n2,http://b,de\n1,http://b,xx\n";
    assert_eq!(dir.run("check -v f.petal a.csv --column url").text(), absent);
    assert_eq!(dir.run("check -c f.petal a.csv --column url").text(), "2\n");
    dir.write("allowed", "http://a,b\n");
    let allowed = dir.run("check f.petal a.csv --column url --allow allowed").text();
    assert_eq!(allowed, "id,url,lang\n3,\"two\nlines\",fr\n");
    let info = dir.run("info f.petal").text();
    assert!(info.contains(r#""keys":"column \"url\" of CSV with a header""#), "{info}");
    dir.run("add -q f.petal a.csv --column url").ok();
    assert_eq!(dir.run("check -q -c f.petal lines").text(), "2\n");
    dir.write("gone.csv", "url\nhttp://b\nnever there\n");
    dir.run("remove -q f.petal gone.csv --column url --missing missing").ok();
    assert_eq!(dir.read("missing"), b"url\nnever there\n");
}

#[test]
fn dedup_writes_the_header_to_both_outputs() {
    let dir = dir();
    dir.write("a.tsv", A.replace(',', "\t"));
    dir.run("dedup a.csv --column url -o kept --dupes-output dupes").ok();
    assert_eq!(dir.read("dupes"), b"id,url,lang\n1,http://b,xx\n");
    let kept = String::from_utf8(dir.read("kept")).unwrap();
    assert_eq!(format!("{kept}1,http://b,xx\n"), A);
    assert_eq!(dir.run("dedup -c a.tsv --column url --quote \"").text(), "3\n");
    assert_eq!(dir.run("dedup --approx -c -n 100 a.csv --column lang").text(), "4\n");
    // Without a record, the header is printed all the same.
    assert_eq!(dir.run("diff a.csv a.csv --column url").text(), "id,url,lang\n");
}

#[test]
fn seen_prints_the_header_once_in_a_file() {
    let dir = dir();
    let script =
        "for f in a.csv b.csv; do \"$petal\" seen -n 100 s.petal $f --column url >> out; done";
    dir.sh(script).ok();
    let first = "id,url,lang\n1,\"http://a,b\",en\r\n2,http://b,de\n3,\"two\nlines\",fr\n";
    assert_eq!(dir.read("out"), first.as_bytes());
    assert_eq!(dir.run("seen s.petal b.csv --column url").text(), "lang,url\n");
}

#[test]
fn byte_order_mark_is_no_part_of_a_name_or_key() {
    let dir = dir();
    dir.write("m.csv", "\u{feff}\"url\"\nhttp://b\n");
    assert_eq!(dir.run("common m.csv a.csv --column url").text(), "\u{feff}\"url\"\nhttp://b\n");
    dir.write("n.csv", "\u{feff}\"http://a,b\"\nhttp://b\n");
    let args = "common n.csv - --column 1";
    // The output keeps the mark of the first input, before its first record.
    assert_eq!(dir.run_with(args, b"\"http://a,b\"").text(), "\u{feff}\"http://a,b\"\n");
    assert_eq!(dir.run_with(args, b"x").text(), "");
    dir.run("dedup m.csv n.csv --column 1 -o kept --dupes-output dupes").ok();
    assert_eq!(dir.read("kept"), "\u{feff}\"url\"\nhttp://b\n\"http://a,b\"\n".as_bytes());
    assert_eq!(dir.read("dupes"), "\u{feff}http://b\n".as_bytes());
    dir.write("n.csv.gz", gz("\u{feff}\"http://a,b\"\nhttp://b\n".as_bytes()));
    assert_eq!(dir.run("dedup -c n.csv.gz --column 1").text(), "2\n");
}

#[test]
fn inputs_with_other_headers_are_reported() {
    let dir = dir();
    let run = dir.run("dedup a.csv b.csv --column url");
    assert!(
        run.err.starts_with("petal: warning: b.csv has another header than a.csv"),
        "{}",
        run.err
    );
    dir.write("c.csv", A.replacen('\n', "\r\n", 1));
    assert_eq!(dir.run("dedup a.csv c.csv --column url").err, "");
    // Only records of the first input are printed.
    assert_eq!(dir.run("common a.csv b.csv --column url").err, "");
    // Nothing is printed.
    assert_eq!(dir.run("dedup -c a.csv b.csv --column url").err, "");
}

#[test]
fn inputs_with_other_separators_are_reported() {
    let dir = dir();
    dir.write("a.tsv", "id\turl\tlang\n9\thttp://c\ten\n");
    let text = "a.tsv is separated by tabs, a.csv by ',': the output has records of both; convert \
                one first, or correct --separator\n";
    let warning = format!("petal: warning: {text}");
    assert_eq!(dir.run("dedup a.csv a.tsv --column url").err, warning);
    assert_eq!(dir.run("dedup -o /dev/null a.csv a.tsv --column 2").err, warning);
    assert_eq!(dir.run("count a.csv a.tsv --column 2").err, warning);
    assert_eq!(dir.run("common a.csv a.tsv --column url").err, "");
    dir.write("b.tsv", "url\tid\n");
    let both = dir.run("dedup a.csv b.tsv --column url").err;
    assert!(both.contains("separated by tabs") && both.contains("another header"), "{both}");
}

#[test]
fn appending_to_a_file_with_another_header_is_reported() {
    let dir = dir();
    let seen = "\"$petal\" seen -n 100 s.petal --column url";
    for (before, warns) in [
        ("id,url,lang\\n", false),
        ("\\357\\273\\277\"id\",url,lang\\r\\n7,x,y\\n", false),
        ("id,url,lang", false),
        ("", false),
        ("url,id,lang\\n7,x,y\\n", true),
        ("7,x,y\\n", true),
    ] {
        let script = format!("rm -f s.petal; printf '{before}' > out; {seen} a.csv >> out");
        let run = dir.sh(&script);
        assert_eq!(run.code, Some(0), "{}", run.err);
        let text = "petal: warning: standard output begins with another header than a.csv: ";
        assert_eq!(run.err.starts_with(text), warns, "{before}: {}", run.err);
        assert_eq!(run.err.is_empty(), !warns, "{before}: {}", run.err);
    }
}

#[test]
fn keys_of_other_fields_than_those_of_the_filter_are_noted() {
    let dir = dir();
    dir.run("build -q -n 100 -o url.petal b.csv --column url").ok();
    dir.run("build -q -n 100 -o two.petal b.csv --column url,lang").ok();
    let url = "the keys of url.petal are column \"url\", those of this job are ";
    let two = "the keys of two.petal are columns \"url\", \"lang\", those of this job are ";
    let never = "; a key of several fields never equals a key of one";
    for (args, note) in [
        ("check -c url.petal a.csv --column url", String::new()),
        ("check -c url.petal a.csv --column url --header", String::new()),
        ("check -c url.petal b.csv", format!("note: {url}whole lines")),
        ("check -c url.petal a.csv --column lang", format!("note: {url}column \"lang\"")),
        ("seen --dry-run -c url.petal a.csv --column lang", format!("note: {url}column \"lang\"")),
        ("check -c two.petal a.csv --column url,lang", String::new()),
        (
            "check -c two.petal a.csv --column lang,url",
            format!("note: {two}columns \"lang\", \"url\""),
        ),
        ("check -c two.petal a.csv --column url", format!("warning: {two}column \"url\"{never}")),
    ] {
        let found = dir.run(args);
        let expected = if note.is_empty() { note } else { format!("petal: {note}\n") };
        assert_eq!(found.err, expected, "{args}");
        assert_eq!(dir.run(&format!("{args} -q")).err, "", "{args}");
    }
    // The metadata lists the fields of all keys.
    dir.run("build -q -n 100 -o lang.petal b.csv --column lang").ok();
    let merged = dir.run("merge -o both.petal url.petal lang.petal");
    let text =
        "note: the keys of url.petal are column \"url\", those of lang.petal are column \"lang\"";
    assert_eq!(merged.err, format!("petal: {text}\n"));
    let url = r#""column \"url\" of CSV with a header""#;
    let lang = r#""column \"lang\" of CSV with a header""#;
    let keys = |file: &str| dir.run(&format!("info {file}")).text();
    assert!(keys("both.petal").contains(&format!("\"keys\":[{url},{lang}]")));
    for args in ["check -c both.petal a.csv --column lang", "add both.petal a.csv --column url"] {
        assert_eq!(dir.run(args).err, "", "{args}");
    }
    let added = dir.run("add url.petal a.csv --column lang").err;
    assert!(
        added.starts_with("petal: note: the keys of url.petal are column \"url\", "),
        "{added}"
    );
    assert!(keys("url.petal").contains(&format!("\"keys\":[{url},{lang}]")));
    // The first keys of an empty filter decide.
    dir.write("empty", "");
    dir.run("build -q -n 100 -o new.petal empty").ok();
    assert_eq!(dir.run("add new.petal a.csv --column lang").err, "");
    assert!(keys("new.petal").contains(&format!("\"keys\":{lang}")));
}

#[test]
fn empty_input_has_no_records() {
    let dir = dir();
    dir.write("e.csv", "");
    assert_eq!(dir.run("common a.csv e.csv --column url").text(), "id,url,lang\n");
    assert_eq!(dir.run("diff -c a.csv e.csv --column url").text(), "3\n");
    assert_eq!(dir.run("common e.csv a.csv --column url").text(), "");
}

#[test]
fn unusable_columns_and_records_are_errors() {
    let dir = dir();
    dir.write("short.csv", "url,x\na,b\nc\n");
    dir.write("open.csv", "url\na\n\"b\nc\n");
    dir.write("twice.csv", "url,url\na,b\n");
    let long = format!("url\n\"{}", "x\n".repeat(3 << 20));
    dir.write("long.csv", &long);
    let cases = [
        (
            "dedup a.csv --column uri",
            r#"a.csv: has no column "uri", but 3 columns: "id", "url", "lang";"#,
        ),
        ("dedup a.csv --column 4 --header", "a.csv: has 3 columns: "),
        (
            "dedup a.csv --column url --separator ;",
            r#"but 1 column: "id,url,lang"; change --column, or change --separator"#,
        ),
        (
            "dedup twice.csv --column url",
            "twice.csv: has two columns \"url\", 1 and 2; name the column by its number\n",
        ),
        (
            "dedup short.csv --column x",
            "short.csv: the record at byte 10 (line 3): has 1 field, but the key is in field 2;",
        ),
        (
            "dedup open.csv --column url",
            "open.csv: the record at byte 6 (line 3) has a quote that is not closed before the end",
        ),
        (
            "dedup long.csv --column url -m 8M",
            "long.csv: the record at byte 4 (line 2) has a quote that is not closed within 2 MiB",
        ),
        ("check no.petal a.csv --column 0", "columns are counted from 1"),
        ("dedup a.csv --column url, ", "expected names or numbers of columns"),
        ("dedup a.csv --column url -z", "cannot be used with"),
        ("dedup a.csv --header", "--column"),
        (
            "dedup a.csv --json-key /a --header",
            "are for columns, and no input has any; add --column",
        ),
        ("dedup a.csv --json-key /a --separator ;", "are for columns, and no input has any"),
        ("dedup a.csv --column 1 --separator ab", "expected one byte"),
        ("dedup a.csv --column 1 --separator \"", "cannot separate fields"),
    ];
    for (args, why) in cases {
        for jobs in [1, 3] {
            let run = dir.run(&format!("{args} -j {jobs}"));
            assert_eq!(run.code, Some(2), "{args}: {}", run.err);
            assert!(run.err.contains(why), "{args}: {}", run.err);
        }
    }
}

#[test]
fn long_records_stay_within_the_memory_limit() {
    let dir = TestDir::new();
    // Records of almost a quarter of the limit, most of it in one quoted field.
    let field = "x,\n\"\"y".repeat(150_000);
    let mut text = String::from("id,text,url\n");
    for number in 0..40 {
        text.push_str(&format!("{number},\"{field}{}\",u{}\n", number % 7, number % 5));
    }
    dir.write("a.csv", &text);
    for (column, count) in [("url", 5), ("text", 7), ("url,text", 35)] {
        let run = dir.run(&format!("dedup -c -m 8M -j 4 a.csv --column {column}"));
        assert!(run.peak < (8 << 20) + MEMORY_OVERHEAD, "{} bytes", run.peak);
        assert_eq!(run.text(), format!("{count}\n"), "{column}");
    }
}

#[test]
fn another_column_does_not_resume_the_job() {
    let dir = TestDir::new();
    let rows = |from: u32| (from..from + 200_000).map(|n| format!("{n},\"u\n{}\"\n", n / 2));
    dir.write("a.csv", std::iter::once("id,url\n".to_owned()).chain(rows(0)).collect::<String>());
    dir.write(
        "b.csv",
        std::iter::once("id,url\n".to_owned()).chain(rows(100_000)).collect::<String>(),
    );
    let args = "common --strategy partition -m 8M a.csv b.csv --work-dir work -o out --column";
    // Ends after the phases, while it prints: the output directory does not exist any more.
    let mut child = dir.petal(&format!("{args} url")).spawn().unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let journal = dir.files.file("work/petal.journal");
    let done = || {
        let text = std::fs::read(&journal).unwrap_or_default();
        String::from_utf8_lossy(&text).contains("\"done\":")
    };
    while !done() && child.try_wait().unwrap().is_none() {
        assert!(std::time::Instant::now() < end);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let _ = child.kill();
    assert!(child.wait().unwrap().code().is_none(), "the job ended before it was killed");
    for other in ["id", "2 --header", "url --separator ,"] {
        let error = dir.run(&format!("{args} {other} --resume")).failure();
        assert!(error.contains("belongs to another job"), "{error}");
    }
    dir.run(&format!("{args} url --resume")).ok();
    let whole = "id,url\n".len()
        + rows(100_000).take(100_000).step_by(2).map(|row| row.len()).sum::<usize>();
    assert_eq!(dir.read("out").len(), whole);
    assert!(dir.read("out").starts_with(b"id,url\n100000,\"u\n50000\"\n100002,"));
}
