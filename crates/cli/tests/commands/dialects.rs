//! Separators, quotes and escapes of CSV and TSV, and the line ends of records.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use crate::common::{TestDir, pack};

/// Lines of TSV whose titles have a quote at the start, which no other quote closes.
fn films(lines: u32) -> String {
    let title = |number: u32| if number % 50 == 7 { "\"Heroes" } else { "Film" };
    (0..lines).map(|number| format!("{number}\t{} {number}\n", title(number))).collect()
}

#[test]
fn quotes_of_tsv_are_bytes() {
    let dir = TestDir::new();
    let text = films(3000);
    dir.write("t.tsv", &text);
    dir.write("t.tab.gz", pack::gz(text.as_bytes()));
    dir.write("t", &text);
    dir.write("ids", (0..3000).map(|number| format!("{number}\n")).collect::<String>());
    for input in ["t.tsv", "t.tab.gz", "t", "t --separator tab", "t --quote none"] {
        for jobs in ["-j 1", "-j 3 -m 8M"] {
            let dedup = dir.run(&format!("dedup -q --column 1 {jobs} {input}"));
            assert!(dedup.text() == text, "{input}");
        }
        assert_eq!(dir.run(&format!("diff -qc --column 1 {input} ids")).text(), "0\n", "{input}");
        assert_eq!(dir.run(&format!("diff -qc --column 1 ids {input}")).text(), "0\n", "{input}");
    }
    assert!(dir.run_with("dedup -q --column 1 -", text.as_bytes()).text() == text);
    dir.write("a.tsv", "name\nK T Theatre\n\"K T\" Theatre\n");
    dir.write("b.tsv", "name\n\"K T\" Theatre\n");
    let common = dir.run("common --column name a.tsv b.tsv");
    assert_eq!(common.err, "");
    assert_eq!(common.text(), "name\n\"K T\" Theatre\n");
    assert_eq!(dir.run("count -c --column name a.tsv").code, Some(2));
    assert_eq!(dir.run("count --column name b.tsv").text(), "count\tname\n1\t\"K T\" Theatre\n");
    dir.run("build -q -o f b.tsv --column name").ok();
    assert_eq!(dir.run_with("check f -", b"\"K T\" Theatre\n").text(), "\"K T\" Theatre\n");
}

#[test]
fn followed_tsv_has_no_quotes() {
    let dir = TestDir::new();
    for (name, start) in [("log.tsv", ""), ("log", "0\t\"x y\n")] {
        dir.write(name, start);
        let args = format!("seen --follow -q -n 1e4 --exact {name}.f {name} --column 1");
        let mut child = dir.petal(&args).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut file = fs::File::options().append(true).open(dir.files.file(name)).unwrap();
        for line in start.lines().chain(["1\t\"a", "2\tb", "3\t\"c"]) {
            if start.lines().all(|written| written != line) {
                writeln!(file, "{line}").unwrap();
            }
            let mut printed = String::new();
            output.read_line(&mut printed).unwrap();
            assert_eq!(printed, format!("{line}\n"), "{name}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn quote_and_escape_are_read_as_specified() {
    let dir = TestDir::new();
    for (text, args, distinct) in [
        ("\"a\tb\"\t1\n\"a\tb\"\t2\nc\t3\n", "--separator tab --quote \"", 2),
        ("\"a\tb\"\t1\n\"a\tb\"\t2\nc\t3\n", "--separator tab", 2),
        ("'a,b',1\n'a,c',2\n", "--separator , --quote '", 2),
        ("'a,b',1\n'a,c',2\n", "--separator ,", 1),
        ("a\\\nb\t1\na\\\nb\t2\n", "--separator tab --escape \\", 1),
        ("a\\\tb\t1\na\\\tc\t2\n", "--separator tab --escape \\", 2),
        ("\"a\\\"\n\",1\n\"a\\\"\n\",2\n", "--separator , --escape \\", 1),
        ("\"a\",1\na,2\n", "--separator , --quote none", 2),
    ] {
        for command in ["dedup -qc", "count -q", "seen -qc -n 9 f"] {
            let _ = fs::remove_file(dir.files.file("f"));
            let run = dir.run_with(&format!("{command} --column 1 {args} -"), text.as_bytes());
            let counted = run.text();
            let found = match counted.trim().parse() {
                Ok(number) => number,
                Err(_) => records(&counted, args),
            };
            assert_eq!(found, distinct, "{command} {args} {text:?}");
        }
    }
    // The record that a quote or an escape continues is printed whole.
    let text = "a\\\nb\t1\n\"c\nd\"\t2\n";
    let run =
        dir.run_with("dedup --column 1 --separator tab --quote \" --escape \\ -", text.as_bytes());
    assert_eq!(run.err, "");
    assert_eq!(run.text(), text);
}

/// Returns the number of records that `count` printed; each has a number after its last separator.
fn records(text: &str, args: &str) -> usize {
    let separator = if args.contains("tab") { '\t' } else { ',' };
    let ends = |line: &&str| {
        line.rsplit(separator).next().is_some_and(|last| last.parse::<u32>().is_ok())
            && line.contains(separator)
    };
    text.lines().filter(ends).count()
}

#[test]
fn bytes_with_two_meanings_are_usage_errors() {
    let dir = TestDir::new();
    dir.write("a.csv", "1,2\n");
    for (args, why) in [
        ("--separator \"", "'\"' cannot separate fields and quote or escape them too"),
        ("--separator ; --quote ;", "';' cannot separate fields and quote or escape them too"),
        ("--escape ,", "',' may separate fields; specify the separator"),
        ("--quote ab", "expected one byte"),
        ("--escape", "a value is required"),
    ] {
        let run = dir.run(&format!("dedup a.csv --column 1 {args}"));
        assert!(run.code == Some(2) && run.err.contains(why), "{args}: {}", run.err);
    }
    for option in ["--quote none", "--escape \\"] {
        let run = dir.run(&format!("dedup a.csv {option}"));
        assert!(run.code == Some(2) && run.err.contains("--column"), "{option}: {}", run.err);
        let run = dir.run(&format!("dedup a.csv --json-key /a {option}"));
        assert!(run.code == Some(2) && run.err.contains("add --column"), "{option}: {}", run.err);
    }
}

#[test]
fn quotes_that_may_be_meant_otherwise_are_reported_once() {
    let dir = TestDir::new();
    let quoted = "petal: warning: columns of t.tsv begin and end with a quote, which belongs to the \
                  key because tabs separate columns; if the quotes only enclose them, use --quote \
                  '\"', otherwise --quote none\n";
    dir.write("t.tsv", "id\tname\n1\t\"a \"\"b\"\"\"\n2\t\"c\"\n");
    dir.write("plain.tsv", "id\tname\n1\t\"a\n2\tc\"\n");
    for (args, err) in [
        ("dedup t.tsv --column name", quoted),
        ("common t.tsv t.tsv --column name,id", quoted),
        ("dedup t.tsv --column id", ""),
        ("dedup t.tsv --column name --quote none", ""),
        ("dedup t.tsv --column name --quote \"", ""),
        ("dedup plain.tsv --column name", ""),
    ] {
        assert_eq!(dir.run(args).err, err, "{args}");
    }
    let lines = |number: usize| "line\n".repeat(number - 1);
    dir.write("long.csv", format!("id,text\n1,\"{}\"\n2,\"{}\"\n", lines(100), lines(101)));
    let run = dir.run("dedup long.csv --column id");
    let long = "petal: warning: quotes of long.csv go over many lines, 101 in the record at byte 508; \
                if a quote is a byte like any other there, use --quote none\n";
    assert_eq!(run.err, long);
}

#[test]
fn separator_follows_from_the_first_records() {
    let dir = TestDir::new();
    let cities = "1\tParis, France\n2\tRome, Italy\n1\tParis, Texas\n";
    let note = |separator: &str| {
        format!(
            "petal: note: the columns of standard input are separated by {separator}, as the first \
             records show; if they are not, use --separator\n"
        )
    };
    let run = dir.run_with("dedup --column 1 -", cities.as_bytes());
    assert_eq!(run.err, note("tabs"));
    assert_eq!(run.text(), "1\tParis, France\n2\tRome, Italy\n");
    for (separator, text) in [
        ("';'", "id;x\n1;a\n2;a\n1;b\n"),
        ("'|'", "id|x\n1|a;b\n2|\n1|b\n"),
        ("','", "id,x\n1,a|b\n2,a|b;c\n1,b\n"),
    ] {
        let run = dir.run_with("dedup --column id -", text.as_bytes());
        assert_eq!(run.err, if separator == "','" { String::new() } else { note(separator) });
        assert_eq!(run.text().lines().count(), 3, "{text}");
        for name in ["t", "t.txt.gz"] {
            let packed = if name == "t" { text.into() } else { pack::gz(text.as_bytes()) };
            dir.write(name, packed);
            assert_eq!(dir.run(&format!("dedup -qc --column 1 {name}")).text(), "3\n", "{text}");
        }
        // The name decides, and every record has another byte.
        dir.write("t.csv", text);
        let run = dir.run("dedup -c --column 1 t.csv");
        let found = separator.replace("','", "");
        let warning = format!(
            "petal: warning: some records of t.csv have no ',', but all have {found}; check \
             --separator\n"
        );
        assert_eq!(run.err, if found.is_empty() { String::new() } else { warning }, "{text}");
        assert_eq!(dir.run("dedup -qc --column 1 t.csv --separator ;").code, Some(0));
    }
    // One column of text.
    dir.write("one.csv", "id\n1\n2\n");
    assert_eq!(dir.run("dedup -c --column id one.csv").err, "");
    let error = dir.run_with("dedup --column 2 --separator ; -", b"a,b\n").failure();
    assert!(error.ends_with("or change the separator (';')"), "{error}");
}

#[test]
fn separator_that_the_first_records_do_not_show_is_an_error() {
    let dir = TestDir::new();
    let films = "1,Heat,Action|Crime\n2,Up,Comedy|Family\n1,Heat,Action|Drama\n";
    let prices = "1,5;2,5\n1,7;3,5\n";
    for (text, input, separators) in
        [(films, "-", "'|' and by ','"), (prices, "p", "';' and by ','")]
    {
        dir.write("p", text);
        let error = dir.run_with(&format!("dedup --column 1 {input}"), text.as_bytes()).failure();
        let problem = format!("its first records are divided evenly by {separators}");
        let expected = format!("petal: {input}: {problem}; specify --separator");
        assert_eq!(error.trim_end(), expected);
    }
    let run = dir.run_with("dedup -c --column 1 --separator , -", films.as_bytes());
    assert_eq!(run.err, "");
    assert_eq!(run.text(), "2\n");
    // A followed file says so too, and does not wait for more records.
    let error = dir.run("seen --follow -n 99 f p --column 1").failure();
    assert!(error.contains("p: its first records are divided evenly"), "{error}");
    // Quotes that would be inside fields rule a separator out.
    let agents = "10.0.0.1,\"Mozilla/5.0 (X11; Linux x86_64)\",200\n".repeat(3);
    let run = dir.run_with("dedup --column 2 -", agents.as_bytes());
    assert_eq!(run.err, "");
    assert_eq!(run.text().lines().count(), 1);
}

/// Decimal commas are in some records, the separator is in all.
#[test]
fn separator_that_some_records_lack_is_reported() {
    let dir = TestDir::new();
    dir.write("eu.csv", "id;price\n1;2,5\n2;2,5\n1;2,7\n");
    let warning = "petal: warning: some records of eu.csv have no ',', but all have ';'; check \
                   --separator\n";
    assert_eq!(dir.run("dedup -c --column 1 eu.csv").err, warning);
    assert_eq!(dir.run("dedup -c --column 1 --separator ; eu.csv").err, "");
    dir.write("all.csv", "1,a;b\n2,b;c\n3,;\n");
    assert_eq!(dir.run("dedup -c --column 1 all.csv").err, "");
    // The header has none.
    dir.write("eu.csv", "id;price\n1;2,5\n2;2,5\n1;2,7\n");
    assert_eq!(dir.run("dedup -c --column 1 --header eu.csv").err, warning);
    assert_eq!(dir.run("dedup -c --column 1 --header --separator ; eu.csv").err, "");
    dir.write("tags.csv", "id,tags\n1,a;b\n2,b;c\n");
    for args in ["--column id", "--column 1 --header", "--column 1"] {
        assert_eq!(dir.run(&format!("dedup -c {args} tags.csv")).err, "", "{args}");
    }
}

#[test]
fn separator_that_records_after_a_title_have_is_reported() {
    let dir = TestDir::new();
    let table = "id;name\n1;a\n2;b\n1;c, d\n";
    for title in ["Report 2024\n", "Report, January 2024\n\n", "Report\nof 2024\n"] {
        for name in ["any.txt", "any.csv", "any.txt.gz"] {
            let text = format!("{title}{table}");
            let packed = if name == "any.txt.gz" { pack::gz(text.as_bytes()) } else { text.into() };
            dir.write(name, packed);
            for args in ["--column 1", "--column 1 --header", "--column 1 -j 1 -m 8M"] {
                let warning = format!(
                    "petal: warning: some records of {name} have no ',', but all after a title have \
                     ';'; check --separator\n"
                );
                assert_eq!(dir.run(&format!("dedup -c {args} {name}")).err, warning, "{title}");
            }
            assert_eq!(dir.run(&format!("dedup -c --column 1 --separator ; {name}")).err, "");
        }
    }
    // Both bytes are in all records after the title, so nothing is known.
    dir.write("both.csv", "Report\n1,a;b\n2,b;c\n");
    assert_eq!(dir.run("dedup -c --column 1 both.csv").err, "");
}

/// What a killed run has written of a record is closed, and the record is printed again.
#[test]
fn torn_record_is_ended_before_others_are_appended() {
    let dir = TestDir::new();
    dir.write("in.csv", "id,u\n1,plain\n2,\"x y\"\n3,plain\n");
    dir.write("first.csv", "id,u\n1,plain\n");
    let note = "petal: note: standard output ends within a quoted column; it is closed, and the \
                record is printed again if the inputs have it\n";
    let rest = "2,\"x y\"\n3,plain\n";
    for (torn, end) in
        [("2,\"x", "\"\n"), ("2,\"x\n", "\"\n"), ("2,\"x y\"", "\n"), ("2,", "\n"), ("", "")]
    {
        let _ = fs::remove_file(dir.files.file("f"));
        dir.sh("\"$petal\" seen -n 99 f first.csv --column id > new.csv").ok();
        let before = dir.read("new.csv");
        dir.write("new.csv", [&before, torn.as_bytes()].concat());
        let run = dir.sh("\"$petal\" seen f in.csv --column id >> new.csv");
        assert_eq!(run.err, if end == "\"\n" { note } else { "" }, "{torn:?}");
        let expected = format!("id,u\n1,plain\n{torn}{end}{rest}");
        assert_eq!(String::from_utf8(dir.read("new.csv")).unwrap(), expected, "{torn:?}");
        // Nothing new: the file stays as it is.
        dir.sh("\"$petal\" seen f in.csv --column id >> new.csv").ok();
        assert_eq!(dir.read("new.csv"), expected.as_bytes());
    }
}

#[test]
fn torn_record_is_ended_if_any_input_has_quotes() {
    let dir = TestDir::new();
    dir.write("in.tsv", "id\tu\n2\tx\n");
    dir.write("in.csv", "id,u\n3,y\n");
    for inputs in ["in.tsv in.csv", "in.csv in.tsv"] {
        let _ = fs::remove_file(dir.files.file("f"));
        dir.write("new.csv", "id,u\n2,\"x");
        dir.sh(&format!("\"$petal\" seen -qn 99 f {inputs} --column id >> new.csv")).ok();
        let text = String::from_utf8(dir.read("new.csv")).unwrap();
        assert!(text.starts_with("id,u\n2,\"x\"\n"), "{inputs}: {text}");
    }
}

#[test]
fn cr_without_lf_is_reported() {
    let dir = TestDir::new();
    for (name, text) in [
        ("a", "one\rtwo\r"),
        ("c", "one\rtwo\r"),
        ("a.csv", "id,url\r1,x\r2,y\r"),
        ("b", "one\r\ntwo\r\n"),
    ] {
        dir.write(name, text);
    }
    let warning = |input: &str| {
        format!(
            "petal: warning: {input} CR between lines but no LF, so everything is one line; convert \
             it with tr '\\r' '\\n'\n"
        )
    };
    for (args, input) in [
        ("dedup -c a", "a has"),
        ("dedup -c a c", "a and another input have"),
        ("common a c", "c has"),
        ("dedup -c a --key-transform trim", "a has"),
        ("dedup -c a.csv --column id", "a.csv has"),
        ("build -o f a.csv --column 2 --header", "a.csv has"),
    ] {
        let run = dir.run(args);
        assert!(run.err.contains(&warning(input)), "{args}: {}", run.err);
    }
    for args in ["dedup -c b", "dedup -c a -z", "dedup -c a --text", "dedup -qc a"] {
        assert_eq!(dir.run(args).err, "", "{args}");
    }
    let run = dir.run_with("dedup -c -", b"one\rtwo");
    assert_eq!(run.err, warning("standard input has"));
    // The first LF may come late.
    let progress: String = (0..2000).map(|percent| format!("{percent}%\r")).collect();
    for args in ["dedup -c -", "dedup -c - --column 1"] {
        let run = dir.run_with(args, format!("{progress}done\nsecond\nthird\n").as_bytes());
        assert_eq!((run.err.as_str(), &run.out[..]), ("", &b"3\n"[..]), "{args}");
    }
}

/// The line is that of the file, whatever the records, the threads and the compression.
#[test]
fn errors_of_records_name_their_line() {
    let dir = TestDir::new();
    let rows: String = (0..40_000).map(|row| format!("{row},\"two\nlines\"\n")).collect();
    let csv = format!("\u{feff}id,\"te\nxt\"\n{rows}short\n");
    let json: String = (0..60_000).map(|row| format!("{{\"a\":{row}}}\n")).collect();
    let json = format!("{json}{{\n");
    let tsv = format!("id\tx\n{}short\n", "1\t2\n".repeat(100_000));
    let open = format!("{rows}\n1,\"x\n");
    for (name, text, args, line) in [
        ("a.csv", &csv, "--column 2 --header", 80_003),
        ("a.jsonl", &json, "--json-key /a", 60_001),
        ("a.tsv", &tsv, "--column x", 100_002),
        ("open.csv", &open, "--column 1", 80_002),
    ] {
        dir.write(name, text);
        dir.write("packed.gz", pack::gz(text.as_bytes()));
        let byte = text.lines().take(line - 1).map(|line| line.len() + 1).sum::<usize>();
        let shown = format!("the record at byte {byte} (line {line})");
        for input in [name, "packed.gz", "-"] {
            for options in ["-j 1 -m 64M", "-j 3 -m 64M"] {
                let command = format!("dedup -qc {args} {options} {input}");
                let input = if input == "-" { text.as_bytes() } else { b"" };
                let error = dir.run_with(&command, input).failure();
                assert!(error.contains(&shown), "{command}: {error}, expected {shown}");
            }
        }
    }
}
