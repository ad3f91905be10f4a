//! `--key-transform`: lines are compared after changes to them, printed as they are, and a filter
//! records the changes of its keys.

use crate::common::TestDir;

const URLS: &str = "http://www.Example.com/a/?b=1&c=2\nhttps://other.org/\n";
const VARIANTS: &str = "https://example.com/a?c=2&b=1#x\r\nhttp://new.org/\n";

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("urls", URLS);
    dir.write("variants", VARIANTS);
    dir.write("words", "One\ntwo\n");
    dir.write("upper", "ONE\nthree\n");
    dir
}

#[test]
fn set_operations_compare_changed_lines_and_print_them_as_they_are() {
    let dir = dir();
    let cases = [
        ("common --key-transform lowercase words upper", "One\n"),
        ("diff --key-transform lowercase upper words", "three\n"),
        ("dedup --key-transform lowercase words upper", "One\ntwo\nthree\n"),
        ("common --key-transform url-surt urls variants", "http://www.Example.com/a/?b=1&c=2\n"),
        ("diff --key-transform url-surt variants urls", "http://new.org/\n"),
        ("dedup --key-transform host urls variants -c", "4\n"),
        ("dedup --key-transform registered-domain urls variants -c", "3\n"),
        ("diff --approx --key-transform lowercase upper words", "three\n"),
    ];
    for (args, expected) in cases {
        assert_eq!(dir.run(args).text(), expected, "{args}");
    }
}

#[test]
fn results_are_the_same_at_every_memory_limit() {
    let dir = TestDir::new();
    let upper: String = (0..200_000).map(|n| format!("HTTP://A/?X={}&A={n}\n", n % 7)).collect();
    let lower: String =
        (0..200_000).step_by(2).map(|n| format!("http://a/?a={n}&x={}\n", n % 7)).collect();
    dir.write("upper", upper);
    dir.write("lower", lower);
    for strategy in ["-m 64M", "-m 16M", "-m 16M --jobs 1"] {
        let args = format!("common -c --key-transform lowercase,sort-query upper lower {strategy}");
        assert_eq!(dir.run(&args).text(), "100000\n", "{args}");
    }
}

#[test]
fn filter_uses_its_own_transforms() {
    let dir = dir();
    dir.run("build -o f --key-transform url-surt urls").ok();
    assert_eq!(dir.run("check f variants").text(), "https://example.com/a?c=2&b=1#x\r\n");
    assert_eq!(dir.run("check --key-transform url-surt -c f variants").text(), "1\n");
    dir.run("check --assert-members urls f variants").ok();
    dir.run("add f variants").ok();
    assert_eq!(dir.run("check -c f variants").text(), "2\n");
    let info = dir.run("info f").text();
    assert!(info.contains("changes   url-surt\n"), "{info}");
    assert!(dir.run("info --json f").text().contains("\"key_transform\": \"url-surt\""));
    let explained = dir.run("explain f https://EXAMPLE.com/a/?c=2&b=1").text();
    assert!(explained.contains("com,example)/a?b=1&c=2 (22 bytes, after url-surt)"), "{explained}");
    assert!(explained.contains("yes: the key may be in the filter"), "{explained}");
    dir.run("build -o counting --type counting --key-transform trim,lowercase words").ok();
    dir.run("remove counting upper").ok();
    assert_eq!(dir.run("check -c counting words").text(), "1\n");
    dir.run("build -o window --window 1h -n 10 --key-transform lowercase words").ok();
    assert_eq!(dir.run("check -c window upper").text(), "1\n");
    dir.run("shrink -o small -p 0.5 f").ok();
    assert_eq!(dir.run("check -c small urls").text(), "2\n");
}

/// A list of digests is queried with what was digested.
#[test]
fn queries_have_transforms_of_their_own() {
    let dir = TestDir::new();
    // printf password | sha1sum, and of 123456
    let list =
        "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8\n7C4A8D09CA3762AF61E59520943DC26494F8941B\n";
    dir.write("list", list);
    dir.write("words", "password\nunknown\n123456\n");
    for query in ["sha1,uppercase", "sha1"] {
        // The digits of the list are changed to the case of the queries.
        dir.run(&format!("build -o f --query-transform {query} list")).ok();
        assert_eq!(dir.run("check f words").text(), "password\n123456\n", "{query}");
        assert_eq!(dir.run("check -v f words").text(), "unknown\n", "{query}");
        let explicit = format!("check --key-transform {query} f words");
        assert_eq!(dir.run(&explicit).text(), "password\n123456\n");
        dir.run("check --assert-members list f words").ok();
        let error = dir.run("check --key-transform md5 f words").failure();
        assert!(error.contains("found 32 hexadecimal digits, expected 40"), "{error}");
        let hashes = dir.run("check --key-transform lowercase f list");
        assert_eq!(hashes.text(), list, "hashes are looked up as they are");
        let info = dir.run("info f").text();
        assert!(info.contains(&format!("queries   {query}\n")), "{info}");
        let explained = dir.run("explain f password").text();
        assert!(explained.contains(&format!("after {query})")), "{explained}");
        // Lines are added as they are.
        dir.write("more", "B1B3773A05C0ED0176787A4F1574FF0075F7521E\n");
        dir.run("add f more").ok();
        assert_eq!(dir.run_with("check f -", b"qwerty\n").text(), "qwerty\n");
    }
    // Without transforms, hexadecimal keys are found in either case.
    dir.run("build -o g list").ok();
    dir.write("lower", list.to_lowercase());
    assert_eq!(dir.run("check -c g lower").text(), "2\n");
    // Bytes of digests take half the space in an input, and are found from both texts.
    dir.run("build -o h --key-transform unhex list").ok();
    assert_eq!(dir.run("check -c h lower").text(), "2\n");
}

#[test]
fn other_transforms_than_those_of_the_filter_are_refused() {
    let dir = dir();
    dir.run("build -o f --key-transform trim,lowercase words").ok();
    dir.run("build -o plain --type counting words").ok();
    for args in [
        "check --key-transform lowercase f words",
        "check --key-transform lowercase,trim f words",
        "check --key-transform lowercase plain words",
        "add --key-transform lowercase f words",
        "remove --key-transform lowercase plain words",
    ] {
        let line = dir.run(args).failure();
        let filter = if args.contains("plain") {
            "plain were not changed"
        } else {
            "f were changed by 'trim,lowercase'"
        };
        assert!(line.contains("--key-transform lowercase"), "{args}: {line}");
        assert!(line.contains(filter) && line.contains("leave it out"), "{args}: {line}");
    }
    dir.run("build -o g words").ok();
    for args in ["merge -o m f g", "merge -o m g f", "compare f g"] {
        let line = dir.run(args).failure();
        assert!(line.contains("'trim,lowercase'") && line.contains("not changed"), "{line}");
    }
    dir.run("build -o h --key-transform trim,lowercase upper").ok();
    dir.run("merge -o m f h").ok();
    assert_eq!(dir.run("check -c m upper").text(), "2\n");
    dir.run("compare f h").ok();
}

#[test]
fn seen_keeps_the_transforms_of_its_first_run() {
    let dir = dir();
    for exact in ["", " --exact"] {
        let file = format!("s{}", exact.len());
        let first = format!("seen -n 100 --key-transform lowercase{exact} {file} words");
        assert_eq!(dir.run(&first).text(), "One\ntwo\n");
        assert_eq!(dir.run(&format!("seen{exact} {file} upper")).text(), "three\n");
        let line = dir.run(&format!("seen --key-transform trim{exact} {file} words")).failure();
        assert!(line.contains("were changed by 'lowercase'"), "{line}");
    }
}

#[test]
fn foreign_filters_hash_changed_keys() {
    let dir = dir();
    dir.run("build --format guava -o f --key-transform lowercase words").ok();
    assert_eq!(dir.run("check --key-transform lowercase f upper").text(), "ONE\n");
    assert_eq!(dir.run("check -c f upper").code, Some(1));
}

#[test]
fn transforms_that_remove_the_cr_give_no_warning_of_it() {
    let dir = dir();
    dir.write("crlf", "One\r\ntwo\r\n");
    for list in ["strip-cr", "trim", "lowercase,strip-cr"] {
        let output = dir.run(&format!("common --key-transform {list} words crlf"));
        assert_eq!(output.err, "", "{list}");
        assert_eq!(output.text(), "One\ntwo\n", "{list}");
        dir.run(&format!("build -o f --key-transform {list} words")).ok();
        let output = dir.run("check -c f crlf");
        assert_eq!(output.err, "", "{list}");
        assert_eq!(output.text(), "2\n", "{list}");
    }
    let output = dir.run("common --key-transform lowercase words crlf");
    assert!(output.err.contains("--key-transform strip-cr"), "{}", output.err);
}

#[test]
fn unknown_transforms_are_usage_errors() {
    let dir = dir();
    let output = dir.run("dedup --key-transform trim,urls words");
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("unknown transform; expected trim, lowercase"), "{}", output.err);
    assert_eq!(dir.run("dedup --key-transform strip-query= words").code, Some(2));
}

/// Filters of earlier versions, and those of programs that use the library, have no list.
#[test]
fn filter_without_a_list_takes_lines_as_they_are() {
    let dir = dir();
    dir.run("build -o f words").ok();
    assert!(!dir.run("info --json f").text().contains("key_transform"));
    assert_eq!(dir.run_with("check -c f", b"two\nTWO\n").text(), "1\n");
}
