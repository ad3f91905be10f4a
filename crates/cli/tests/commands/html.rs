//! The pages of `--html`: well-formed, self-contained, with the numbers of the JSON output.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use petal_testkit::rng::Rng;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Value, json};

use crate::common::{STRATEGIES, TestDir, odd_path, overlapping, run_with_input, write_lines};

/// Parses a page, and checks what holds for all pages.
#[track_caller]
fn parsed(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let page =
        Document::parse_with_options(html, options).unwrap_or_else(|e| panic!("{e}: {html}"));
    for loaded in
        ["http:", "https:", "//", "src=", "url(", "@import", "<script", "onload", "<iframe"]
    {
        assert!(!html.to_lowercase().contains(loaded), "{loaded}");
    }
    let links = page.descendants().filter_map(|node| node.attribute("href"));
    assert_eq!(links.collect::<Vec<_>>(), ["data:,"]);
    let charts: Vec<_> = page.descendants().filter(|node| node.has_tag_name("svg")).collect();
    for chart in &charts {
        let drawn = chart.descendants().filter(|node| {
            ["polyline", "rect", "line", "polygon"].contains(&node.tag_name().name())
        });
        assert!(drawn.count() > 2 && chart.attribute("aria-label").is_some(), "{chart:?}");
        // The style sheet has a rule for each color.
        for part in chart.descendants() {
            for color in [part.attribute("fill"), part.attribute("stroke")].into_iter().flatten() {
                assert!(color == "none" || html.contains(&format!("=\"{color}\"]{{")), "{color}");
            }
        }
    }
    let has = |class, chart: &&Node<'_, '_>| chart.attribute("class") == Some(class);
    let classes = |class| charts.iter().filter(move |chart| has(class, chart));
    assert_eq!(classes("wide").count(), classes("narrow").count());
    let title = page.descendants().find(|node| node.has_tag_name("title")).and_then(|n| n.text());
    assert_eq!(title, page.descendants().find(|n| n.has_tag_name("h1")).and_then(|n| n.text()));
    page
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

/// Returns the headings of the figures.
fn figures(page: &Document<'_>) -> Vec<String> {
    let figures = page.descendants().filter(|node| node.has_tag_name("figure"));
    figures.map(|node| text(node.descendants().find(|n| n.has_tag_name("h2")).unwrap())).collect()
}

/// Returns the exact value of a cell, or its text.
fn value(cell: Node<'_, '_>) -> String {
    let data = cell.descendants().find(|node| node.has_tag_name("data"));
    data.map_or_else(|| text(cell), |data| data.attribute("value").unwrap().to_owned())
}

/// Returns the values of the fields.
fn fields(page: &Document<'_>) -> BTreeMap<String, String> {
    let cells = page.descendants().filter_map(|node| Some((node.attribute("data-field")?, node)));
    cells.map(|(field, node)| (field.to_owned(), value(node))).collect()
}

/// Returns the rows of the tables with a head, after their head.
fn tables(page: &Document<'_>) -> Vec<Vec<Vec<String>>> {
    let tables = page.descendants().filter(|node| node.attribute("class") == Some("values"));
    let cells = |row: Node<'_, '_>| {
        row.children().filter(|cell| cell.has_tag_name("td")).map(value).collect::<Vec<_>>()
    };
    let rows = |table: Node<'_, '_>| {
        let rows = table.descendants().filter(|node| node.has_tag_name("tr"));
        rows.map(cells).filter(|row| !row.is_empty()).collect()
    };
    tables.map(rows).collect()
}

#[track_caller]
fn assert_number(found: &str, expected: &Value, what: &str) {
    let found: f64 = found.parse().unwrap_or_else(|_| panic!("{what}: {found}"));
    let expected = expected.as_f64().unwrap_or_else(|| panic!("{what}: {expected}"));
    assert!((found - expected).abs() <= expected.abs() * 1e-12, "{what}: {found} {expected}");
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn page_of_a_plan_has_the_numbers_of_the_plan() {
    let dir = TestDir::new();
    for (args, curves) in [
        ("-n 1e6 -p 1%", 2),
        ("-n 1e6 -p 1e-9", 2),
        ("-n 5e9 --size 4G", 2),
        ("-n 1 -p 50%", 2),
        ("--type quotient -n 1e6 -p 0.1%", 1),
        ("--type vector-quotient -n 1e6 -p 0.1%", 1),
        ("--type counting -n 1e6 -p 0.1%", 1),
        ("--type scalable -n 1e6 -p 1%", 1),
        ("--type windowed -n 1e6 -p 1%", 1),
        ("--type static -n 1e6 -p 1%", 0),
    ] {
        let html = dir.run(&format!("plan {args} --html -")).text();
        let page = parsed(&html);
        let plans = json_of(&dir.run(&format!("plan {args} --json")).ok());
        let plans = plans["plans"].as_array().unwrap();
        // Each cell of the text is in the page.
        let shown = text(page.root_element());
        for line in dir.run(&format!("plan {args}")).text().lines() {
            let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            cells.for_each(|cell| assert!(shown.contains(cell), "{args}: {cell}"));
        }
        if curves == 0 {
            assert_eq!(figures(&page), [""; 0]);
            continue;
        }
        assert_eq!(figures(&page), ["False-positive rate by number of keys"], "{args}");
        let tables = tables(&page);
        let rates = tables.last().unwrap();
        assert_eq!(rates[0][0], "planned");
        assert_eq!(rates[2][0], "2 × planned");
        for (at, plan) in plans.iter().enumerate() {
            assert_number(&rates[0][1], &plan["capacity"], args);
            assert_number(&rates[0][2 + at], &plan["fpr"], args);
            assert_number(&rates[2][2 + at], &plan["fpr_at_double_capacity"], args);
        }
        assert_eq!(rates[0].len(), 2 + curves, "{args}");
        assert!(html.matches("<polyline").count() >= 2 * curves, "{args}");
    }
}

/// Options of types without blocks.
const NO_BLOCKS: [&str; 5] = ["classic", "quotient", "vector-quotient", "static", "--not-in"];

#[test]
fn page_of_a_filter_has_the_numbers_of_info() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..20_000);
    write_lines(&dir.files.file("b"), 30_000..31_000);
    let (curve, histogram) = ("False-positive rate by number of keys", "Blocks by fill");
    for (args, has_curve) in [
        ("-n 50000", true),
        ("-n 2000", true),
        ("-n 20000 --type classic", true),
        ("-n 20000 --type counting", true),
        ("-n 20000 --type quotient", true),
        ("--growing", true),
        ("--last 5000", true),
        ("--type static", false),
        ("--not-in b", false),
        ("--format guava -n 20000", true),
        ("--format parquet -n 20000", false),
        ("--format redisbloom -n 20000", true),
    ] {
        dir.run(&format!("build -q {args} -o f a")).ok();
        dir.run("info f --html page.html").ok();
        let html = String::from_utf8(dir.read("page.html")).unwrap();
        let page = parsed(&html);
        let info = json_of(&dir.run("info f --json").ok());
        let blocks: Vec<u64> = match info["block_fills"].as_array() {
            Some(blocks) => blocks.iter().filter_map(Value::as_u64).collect(),
            None => Vec::new(),
        };
        let has_blocks = !blocks.is_empty();
        assert_eq!(
            has_blocks,
            !args.starts_with("--format") && !NO_BLOCKS.iter().any(|t| args.contains(t)),
            "{args}"
        );
        let expected = [(has_curve, curve), (has_blocks, histogram)];
        let expected = expected.into_iter().filter(|figure| figure.0).map(|figure| figure.1);
        assert_eq!(figures(&page), expected.collect::<Vec<_>>(), "{args}");
        let shown = text(page.root_element());
        let lines = dir.run("info f").text();
        for line in lines.lines().filter(|line| !line.starts_with([' ', 'b'])) {
            assert!(shown.contains(line[10..].trim()), "{args}: {line}");
        }
        let tables = tables(&page);
        if has_curve && !info["estimated_len"].is_null() && info["type"] != "windowed" {
            let now = tables[0].iter().find(|row| row[0] == "now").unwrap();
            // Foreign filters have an estimate with decimals; the page rounds it.
            let estimated_len = info["estimated_len"].as_f64().unwrap();
            assert!(
                (now[1].parse::<f64>().unwrap() - estimated_len).abs() <= 0.5,
                "{args}: {now:?}"
            );
            // The rate is calculated from the keys, the estimate from the bits.
            let (rate, estimate) = (now[2].parse::<f64>().unwrap(), info["estimated_fpr"].as_f64());
            let ratio = rate / estimate.unwrap();
            assert!((0.5..2.0).contains(&ratio), "{args}: {rate} {estimate:?}");
        }
        if has_blocks {
            let counts: Vec<u64> =
                tables.last().unwrap().iter().map(|row| row[1].parse().unwrap()).collect();
            let first = blocks.iter().position(|count| *count > 0).unwrap();
            assert_eq!(counts, blocks[first..first + counts.len()], "{args}");
            assert_eq!(counts.iter().sum::<u64>(), blocks.iter().sum::<u64>(), "{args}");
        }
    }
    let warning = "overfull:";
    dir.run("build -q -n 200 -o f a").ok();
    assert!(parsed(&dir.run("info f --html -").text()).descendants().any(|node| {
        node.attribute("class") == Some("warning") && text(node).contains(warning)
    }));
    dir.run("build -q -n 1000 -o empty /dev/null").ok();
    parsed(&dir.run("info empty --html -").text());
}

#[test]
fn page_of_an_estimate_has_the_numbers_of_the_estimate() {
    let dir = TestDir::new();
    let [a, b] = overlapping(40_000, 20, 5);
    write_lines(&dir.files.file("a"), a);
    write_lines(&dir.files.file("b"), b);
    for args in ["common a b -m 8M", "diff a b -c", "dedup a b -m 8M --strategy partition"] {
        let html = dir.run(&format!("plan {args} -j 2 --html -")).text();
        let page = parsed(&html);
        assert_eq!(figures(&page), ["Memory and temporary disk", "Lines"], "{args}");
        let estimate = json_of(&dir.run(&format!("plan {args} -j 2 --json")).ok());
        let fields = fields(&page);
        for field in ["passes", "memory_limit_bytes", "jobs"] {
            assert_number(&fields[field], &estimate[field], field);
        }
        assert_eq!(estimate["strategy"], fields["strategy"]);
        // All lines are sampled; the keys of the hashes differ.
        assert_number(&fields["kept"], &estimate["kept"], "kept");
        let inputs = &tables(&page)[0];
        for (row, input) in inputs.iter().zip(estimate["inputs"].as_array().unwrap()) {
            for (cell, field) in row[1..].iter().zip(["bytes", "lines", "distinct"]) {
                assert_number(cell, &input[field], field);
            }
        }
    }
}

#[test]
fn page_of_a_report_has_the_numbers_of_the_report() {
    let dir = TestDir::new();
    let [a, b] = overlapping(120_000, 20, 5);
    write_lines(&dir.files.file("a"), a);
    write_lines(&dir.files.file("b"), b);
    for command in ["common a b", "diff a b", "dedup a b"] {
        for mode in STRATEGIES.into_iter().chain(["--approx -q", "--work-dir work"]) {
            for memory in ["8M", "256M"] {
                let args = format!("{command} {mode} -m {memory} -j 2");
                dir.run(&format!("{args} -o out --report r.json")).ok();
                check_report(&dir, &args);
            }
        }
    }
}

/// Checks the page of `r.json`.
#[track_caller]
fn check_report(dir: &TestDir, args: &str) {
    let report = json_of(&dir.read("r.json"));
    let html = dir.run("report r.json --html -").text();
    let page = parsed(&html);
    let fields = fields(&page);
    for (field, found) in &fields {
        match &report[field.as_str()] {
            Value::String(expected) => assert_eq!(found, expected, "{args}"),
            expected => assert_number(found, expected, field),
        }
    }
    let always = ["kept", "first_lines", "seconds", "spilled", "disk_peak_bytes", "passes"];
    assert!(always.iter().all(|field| fields.contains_key(*field)), "{args}: {fields:?}");
    let has_disk = report["disk_peak_bytes"].as_u64() > Some(0);
    let disk = if has_disk { &["Temporary disk over time"][..] } else { &[] };
    let expected =
        [&["Memory over time"][..], disk, &["Phases over time", "Lines surviving each phase"]];
    assert_eq!(figures(&page), expected.concat(), "{args}");
    let phases = report["phases"].as_array().unwrap();
    let rows = &tables(&page)[0];
    assert_eq!(rows.len(), phases.len(), "{args}");
    for (row, phase) in rows.iter().zip(phases) {
        assert_eq!(phase["what"], row[0], "{args}");
        for (cell, field) in row[2..].iter().zip(["seconds", "bytes", "lines", "survivors"]) {
            match &phase[field] {
                Value::Null => assert_eq!(cell, "–", "{args}: {field}"),
                expected => assert_number(cell, expected, field),
            }
        }
        let shown = phase["survivors"].as_u64().map(|lines| format!("{} survive", count(lines)));
        assert!(shown.is_none_or(|shown| html.contains(&shown)), "{args}: {phase}");
    }
}

/// Formats a number with thousands separators.
fn count(number: u64) -> String {
    petal_lines::format_count(number)
}

#[test]
fn report_of_a_resumed_job_marks_earlier_phases() {
    let dir = TestDir::new();
    let [a, b] = overlapping(120_000, 20, 5);
    write_lines(&dir.files.file("a"), a);
    write_lines(&dir.files.file("b"), b);
    let args = "diff --strategy partition a b -m 8M -j 1 --work-dir work";
    // The output cannot be written, so the finished phases remain.
    dir.run(&format!("{args} -o /dev/full")).failure();
    dir.run(&format!("{args} --resume -o out --report r.json")).ok();
    let report = json_of(&dir.read("r.json"));
    assert!(report["resumed"].as_u64() > Some(0), "{report}");
    let page = dir.run("report r.json --html -").text();
    let rows = &tables(&parsed(&page))[0];
    let earlier = rows.iter().filter(|row| row[1] == "earlier run").count();
    assert!(earlier > 0 && earlier < rows.len(), "{rows:?}");
    assert!(page.contains(&format!("Not shown: {earlier} phases of earlier runs")), "{page}");
    let disk = report["disk_peak_bytes"].as_u64();
    assert!(disk > report["spilled"].as_u64(), "records of the first run count: {report}");
}

/// Names that would begin an element, end an attribute or a style, or change the direction of text, and
/// one that is not UTF-8. A name has no slash.
const NAMES: [&[u8]; 5] = [
    b"<script>alert(1)<@script>",
    b"\"'><img onerror=x>&amp;",
    b"]]>--><@style><@svg>{{",
    b"\xff\xfe<b>\x01",
    "\u{202e}gpj".as_bytes(),
];

#[test]
fn hostile_file_names_are_text() {
    let dir = TestDir::new();
    for name in NAMES {
        let input = odd_path(dir.files.path(), name);
        std::fs::write(&input, "x\ny\n").unwrap();
        let lossy = String::from_utf8_lossy(name);
        let shown: String = lossy
            .chars()
            .map(|c| if c.is_control() || c == '\u{202e}' { '\u{fffd}' } else { c })
            .collect();
        let with_input = |before: &str, after: &str| {
            let mut command = dir.petal(before);
            command.arg(OsStr::from_bytes(name)).args(after.split(' '));
            run_with_input(command, b"").text()
        };
        with_input("dedup", "-o out --report r.json");
        let report = dir.run("report r.json --html -").text();
        let plan = with_input("plan dedup", "--html -");
        let filter = odd_path(dir.files.path(), &[name, b".petal"].concat());
        dir.run("build -q -o f out").ok();
        std::fs::rename(dir.files.file("f"), &filter).unwrap();
        let mut info = dir.petal("info --html -");
        info.arg(&filter);
        let info = run_with_input(info, b"").text();
        for html in [report, plan, info] {
            let page = parsed(&html);
            assert!(text(page.root_element()).contains(&shown), "{shown}: {html}");
            let known = [
                "html", "head", "body", "main", "meta", "link", "title", "style", "h1", "h2", "p",
                "table", "thead", "tbody", "tr", "th", "td", "div", "data", "figure", "svg",
                "text", "line", "rect", "polyline", "polygon", "circle", "ul", "li", "i", "footer",
            ];
            for node in page.descendants().filter(Node::is_element) {
                assert!(known.contains(&node.tag_name().name()), "{:?}", node.tag_name());
                assert!(node.attribute("onerror").is_none());
            }
        }
        std::fs::remove_file(input).unwrap();
    }
}

/// A small report.
fn small_report(dir: &TestDir) -> Value {
    dir.write("a", "x\ny\nx\n");
    dir.run("dedup a -o out --report r.json").ok();
    json_of(&dir.read("r.json"))
}

#[test]
fn invalid_reports_are_errors() {
    let dir = TestDir::new();
    let report = small_report(&dir);
    let with = |field: &str, value: Value| {
        let mut report = report.clone();
        report[field] = value;
        report.to_string().into_bytes()
    };
    let without = |fields: &[&str]| {
        let mut report = report.clone();
        fields.iter().for_each(|field| drop(report.as_object_mut().unwrap().remove(*field)));
        report.to_string().into_bytes()
    };
    let phase = |field: &str, value: Value| {
        let mut report = report.clone();
        report["phases"][0][field] = value;
        report.to_string().into_bytes()
    };
    let text = report.to_string();
    let number = |from: &str, to: &str| text.replacen(from, to, 1).into_bytes();
    let seconds = format!("\"seconds\":{}", report["seconds"]);
    assert!(text.contains(&seconds));
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", vec![], "EOF"),
        ("text", b"no report".to_vec(), "expected ident"),
        ("binary", b"\xff\xfe\0\x01".to_vec(), "expected value"),
        ("list", b"[]".to_vec(), "no field 'version'"),
        ("null", b"null".to_vec(), "no field 'version'"),
        ("other object", b"{\"a\": 1}".to_vec(), "no field 'version'"),
        ("deep", b"[".repeat(1_000_000), "recursion limit"),
        ("older", without(&["version", "samples", "command", "inputs"]), "older version of petal"),
        ("newer", with("version", json!(3)), "a report of version 3, expected 2"),
        ("odd version", with("version", json!("<b>")), "a report of version"),
        ("no phases", without(&["phases"]), "missing field `phases`"),
        ("no samples", without(&["samples"]), "missing field `samples`"),
        ("negative", with("kept", json!(-1)), "invalid value"),
        ("a text", with("kept", json!("many\u{1b}[31m")), "invalid type"),
        ("too many bytes", with("spilled", json!(u64::MAX)), "spilled is out of range"),
        ("too long", with("seconds", json!(1e300)), "seconds is out of range"),
        ("before the start", with("seconds", json!(-1.0)), "seconds is out of range"),
        ("not a number", number(&seconds, "\"seconds\":1e999"), "number out of range"),
        ("phase", phase("seconds", json!(1e300)), "'phases' is out of range"),
        ("phase lines", phase("lines", json!(u64::MAX)), "'phases' is out of range"),
        ("phase start", phase("start", json!(-5)), "'phases' is out of range"),
        ("samples", with("samples", json!([[1.0, u64::MAX, 0]])), "'samples' is out of range"),
        ("short sample", with("samples", json!([[1.0]])), "invalid length"),
        ("many samples", with("samples", json!(vec![(0.0, 0, 0); 10_001])), "more than 10000"),
        ("many inputs", with("inputs", json!(vec!["a"; 10_001])), "more than 10000"),
        ("large", [&b" ".repeat(16 << 20)[..], b"{}"].concat(), "larger than 16 MiB"),
    ];
    for (name, bytes, expected) in cases {
        dir.write("bad.json", &bytes);
        dir.write("page.html", "before");
        let line = dir.run("report bad.json --html page.html").failure();
        assert!(line.starts_with("petal: bad.json: ") && line.contains(expected), "{name}: {line}");
        assert!(!line.contains(char::is_control), "{name}: {line}");
        assert_eq!(dir.read("page.html"), b"before", "{name}");
    }
    for length in (0..text.len()).step_by(41) {
        dir.write("bad.json", &text[..length]);
        dir.run("report bad.json --html page.html").failure();
    }
    dir.write("good.json", text);
    dir.run("report good.json --html page.html").ok();
}

/// A report with any bytes changed gives a page or an error, and never ends otherwise.
#[test]
fn damaged_reports_give_a_page_or_an_error() {
    let dir = TestDir::new();
    let text = small_report(&dir).to_string();
    let mut rng = Rng::new(20);
    let mut pages = 0;
    for _ in 0..400 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len());
            bytes[at] = b"0123456789-e.,:\"[]{}<>&\\ \xff\0n"[rng.below(28)];
        }
        dir.write("bad.json", &bytes);
        let output = dir.run("report bad.json --html -");
        match output.code {
            Some(0) => {
                parsed(&output.text());
                pages += 1;
            }
            _ => drop(output.failure()),
        }
    }
    assert!(pages > 10, "{pages}");
}

/// Values at the limits of what is accepted are drawn.
#[test]
fn extreme_reports_have_a_page() {
    let dir = TestDir::new();
    let mut report = small_report(&dir);
    let most = 1u64 << 60;
    let phase = |start: Value, seconds: f64, lines: u64, survivors: Value| {
        json!({"what": "x".repeat(1000), "start": start, "seconds": seconds, "bytes": lines,
               "lines": lines, "survivors": survivors})
    };
    for samples in [json!([]), json!([[0.0, 0, 0]]), json!([[1e10, most, most], [0.0, 1, 1]])] {
        for phases in [
            json!([]),
            json!([phase(json!(null), 0.0, 0, json!(null))]),
            json!([phase(json!(1e10), 1e10, most, json!(most)), phase(json!(0), 0.0, 0, json!(0))]),
            Value::from(vec![phase(json!(1.0), 1e-9, 1, json!(0)); 10_000]),
        ] {
            for (seconds, bytes) in [(0.0, 0), (1e-9, 1), (1e10, most)] {
                report["samples"] = samples.clone();
                report["phases"] = phases.clone();
                report["seconds"] = seconds.into();
                for field in ["memory_limit_bytes", "memory_peak_bytes", "disk_peak_bytes", "kept"]
                {
                    report[field] = bytes.into();
                }
                report["false_promised"] = json!(-1e308);
                dir.write("r.json", report.to_string());
                parsed(&dir.run("report r.json --html -").text());
            }
        }
    }
}

#[test]
fn report_without_a_page_is_a_table() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nx\n");
    dir.write("b", "y\nz\n");
    for (args, lines) in [
        ("common", ["lines of the result        1", "lines of the first input   3"]),
        ("symdiff", ["lines of the result        2", "lines of all inputs        5"]),
        ("dedup", ["lines of the result        3", "lines of all inputs        5"]),
    ] {
        dir.run(&format!("{args} a b -o out --report r.json")).ok();
        let table = dir.run("report r.json").text();
        let begin = format!("command                    {args}\ninput                      a\n");
        assert!(table.starts_with(&begin), "{table}");
        assert!(lines.iter().all(|line| table.lines().any(|other| other == *line)), "{table}");
        assert_eq!(dir.run_with("report -", &dir.read("r.json")).text(), table);
    }
}

#[test]
fn pages_are_written_like_other_outputs() {
    let dir = TestDir::new();
    small_report(&dir);
    dir.run("build -q -o f a").ok();
    let commands = ["report r.json", "info f", "plan -n 1e6 -p 1%", "plan dedup a"];
    for command in commands {
        dir.write("page.html", "before");
        let output = dir.run(&format!("{command} --html page.html"));
        assert_eq!(output.err, "", "{command}");
        assert_eq!(output.text(), "", "{command}");
        let page = dir.read("page.html");
        assert!(page.starts_with(b"<!DOCTYPE html>"), "{command}");
        assert_eq!(dir.run(&format!("{command} --html -")).ok().len(), page.len(), "{command}");
        let line = dir.run(&format!("{command} --html .")).failure();
        assert!(line.contains("is a directory"), "{command}: {line}");
        let line = dir.run(&format!("{command} --html no/such/dir")).failure();
        assert!(line.contains("no/such/dir: cannot write"), "{command}: {line}");
        let line = dir.run(&format!("{command} --html /dev/full")).failure();
        assert!(line.contains("/dev/full: cannot write: no space left"), "{command}: {line}");
    }
    for (command, file) in [("report r.json", "r.json"), ("info f", "f"), ("plan dedup a", "a")] {
        let before = dir.read(file);
        let line = dir.run(&format!("{command} --html ./{file}")).failure();
        assert!(line.contains("same file as the input"), "{command}: {line}");
        assert_eq!(dir.read(file), before);
    }
    let page = dir.run_with("report - --html -", &dir.read("r.json")).text();
    assert_eq!(page, dir.run("report r.json --html -").text());
    assert!(dir.run("report missing --html -").failure().contains("missing: cannot read: no such"));
    assert!(dir.run("report . --html -").failure().contains(".: cannot read: is a directory"));
    let line = dir.run("report missing").failure();
    assert!(line.contains("missing: cannot read: no such"), "{line}");
    for usage in ["info f --json --html -", "plan -n 1 -p 1% --json --html -"] {
        assert_eq!(dir.run(usage).code, Some(2), "{usage}");
    }
}
