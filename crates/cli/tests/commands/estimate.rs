//! The estimates of `plan COMMAND INPUTS` match the reports of the jobs.

use serde_json::Value;

use crate::common::pack::gz;
use crate::common::{TestDir, overlapping, write_lines};

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// Few enough that all lines are sampled, so that the estimates have no sampling error.
const LINES: u64 = 40_000;

/// A directory with two files that share `percent` of their lines.
fn dir(percent: u64) -> TestDir {
    let dir = TestDir::new();
    let [a, b] = overlapping(LINES, percent, 5);
    write_lines(&dir.files.file("a"), a);
    write_lines(&dir.files.file("b"), b);
    dir
}

/// Returns true if two numbers differ by at most 20 %, or both are at most `nothing`.
fn near(estimated: f64, found: f64, nothing: f64) -> bool {
    (estimated - found).abs() <= found.max(estimated) / 5.0 || estimated.max(found) <= nothing
}

#[test]
fn estimates_match_the_job() {
    for percent in [5, 40] {
        let dir = dir(percent);
        for command in [
            "common a b",
            "common --at-least 1 a b",
            "diff a b",
            "symdiff a b",
            "dedup a b",
            "dedup -d a b",
            "dedup -u a b",
        ] {
            for mode in ["", "--strategy narrow", "--strategy partition", "--strategy memory"] {
                for memory in ["8M", "32M"] {
                    // The job changes its strategy when memory is full, which is not estimated.
                    if mode.ends_with("memory") && memory == "8M" {
                        continue;
                    }
                    let args = format!("{command} {mode} -m {memory}");
                    let plan = json(&dir.run(&format!("plan {args} --json")).ok());
                    dir.run(&format!("{args} -o out --report report")).ok();
                    let report = json(&dir.read("report"));
                    let both = |field: &str, other: &str| {
                        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
                        (number(&plan[field]), number(&report[other]))
                    };
                    assert_eq!(plan["strategy"], report["strategy"], "{args}: {plan} {report}");
                    for (field, other, nothing) in [
                        ("passes", "passes", 0.0),
                        ("bytes_read", "bytes_read", 0.0),
                        // At the minimum of memory a few megabytes make a difference.
                        ("spilled", "spilled", 4e6),
                        ("candidates", "candidates", 100.0),
                        ("kept", "kept", 0.0),
                    ] {
                        let (estimated, found) = both(field, other);
                        let same = near(estimated, found, nothing);
                        assert!(same, "{percent} %, {args}: {field}: {estimated}, found {found}");
                    }
                }
            }
        }
    }
}

/// Repeated lines do not mislead a full scan, and the bounds of samples hold.
#[test]
fn the_bounds_of_distinct_lines_hold() {
    let dir = TestDir::new();
    let urls = |line: u64| format!("https://example.org/{}/{}\n", line % 97, line * line % 9973);
    type Key = fn(u64) -> u64;
    let sets: [(&str, Key, u64); 3] = [
        ("equal", |_| 7, 1),
        ("values", |line| line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40, 1000),
        ("runs", |line| line / 500, 1400),
    ];
    let lines = 700_000;
    for (name, key, kinds) in sets {
        let text: String = (0..lines).map(|line| format!("{:07}\n", key(line) % kinds)).collect();
        dir.write(name, text);
    }
    dir.write("urls", (0..lines).map(urls).collect::<String>());
    for name in ["equal", "values", "runs", "urls"] {
        let found: u64 = dir.run(&format!("dedup -c {name}")).text().trim().parse().unwrap();
        let range = |value: &Value| [0, 1].map(|end| value[end].as_u64().unwrap());
        for scan in ["auto", "always", "never"] {
            let args = format!("plan dedup {name} --full-scan={scan}");
            let plan = json(&dir.run(&format!("{args} --json")).ok());
            for [least, most] in
                [range(&plan["inputs"][0]["distinct_range"]), range(&plan["kept_range"])]
            {
                assert!(least <= found && found <= most, "{name}: {found}: {plan}");
                assert!(most - least <= found / 50, "{name}: {found}: {plan}");
            }
            assert_eq!(plan["full_scan"], scan != "never");
            let text = dir.run(&args).text();
            let how = if scan == "never" { "from samples" } else { "all lines were read" };
            assert!(text.contains(how) && text.contains("99 % confidence"), "{text}");
        }
        for (command, other) in [("common", "urls"), ("diff", "urls")] {
            let args = format!("{command} {name} {other}");
            let found: u64 = dir.run(&format!("{args} -c")).text().trim().parse().unwrap();
            let plan = json(&dir.run(&format!("plan {args} --json")).ok());
            let [least, most] = range(&plan["kept_range"]);
            assert!(least <= found && found <= most, "{args}: {found}: {plan}");
        }
    }
    // All lines are sampled, so the numbers are exact.
    dir.write("few", "a\nb\na\n");
    let plan = json(&dir.run("plan dedup few --json").ok());
    assert_eq!(plan["inputs"][0]["distinct_range"], serde_json::json!([2, 2]));
    let text = dir.run("plan dedup few").text();
    assert!(text.contains("3 lines of 2 bytes, 2 of them distinct\n"), "{text}");
    let text =
        |step: u64| (0..3000).map(|line| format!("{}\n", line / 7 * step)).collect::<String>();
    dir.write("sevens", text(7));
    dir.write("threes", text(3));
    for command in ["common", "diff"] {
        let found: u64 =
            dir.run(&format!("{command} -c sevens threes")).text().trim().parse().unwrap();
        let plan = json(&dir.run(&format!("plan {command} sevens threes --json")).ok());
        let [least, most] = [0, 1].map(|end| plan["kept_range"][end].as_u64().unwrap());
        assert!(least <= found && found <= most, "{command}: {found}: {plan}");
    }
}

#[test]
fn estimate_as_text_and_its_errors() {
    let dir = dir(10);
    let text = dir.run("plan common a b -m 16M").text();
    for name in ["lines of", "strategy", "passes", "reads", "temporary disk", "false", "time"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert_eq!(dir.run("plan -n 5 -p 1% --full-scan").code, Some(2));
    assert!(dir.run("plan common a b -c").text().contains("passes"));
    let line = dir.run_with("plan common a -", b"x\n").failure();
    assert!(line.contains("is not a file"), "{line}");
    assert!(dir.run("plan common a").failure().contains("second input is missing"));
    assert!(dir.run("plan common a nothing").failure().contains("nothing"));
    assert_eq!(dir.run("plan common a b -n 5").code, Some(2));
    for (args, text) in [
        ("symdiff a", "second input is missing"),
        ("symdiff a b b", "symdiff compares two inputs, not 3; leave out the others"),
        ("common --at-least 2 a b", "2 is more than the number of other inputs, 1"),
        ("dedup --at-least 1 a b", "--at-least: is an option of plan common; leave it out"),
        ("diff -d a b", "--only-duplicates: is an option of plan dedup; leave it out"),
        ("common -u a b", "--only-unique: is an option of plan dedup; leave it out"),
        ("common --keep last a b", "--keep: is an option of plan dedup; leave it out"),
        ("dedup --keep last -d a", "cannot be used with"),
    ] {
        let line = dir.run(&format!("plan {args}")).failure();
        assert!(line.contains(text), "{args}: {line}");
    }
}

/// Whether the first or the last of equal lines is printed, there are as many; only the page names it.
#[test]
fn last_of_equal_lines_is_estimated() {
    let dir = TestDir::new();
    dir.write("a", (0..5000).map(|n| format!("{}\n", n * n % 1009)).collect::<String>());
    let found: u64 = dir.run("dedup -c --keep last a").text().trim().parse().unwrap();
    let plan = json(&dir.run("plan dedup --keep last --full-scan --json a").ok());
    assert_eq!(plan["kept"], found);
    let page = dir.run("plan dedup --keep last --html - a").text();
    assert!(page.contains("dedup --keep last"));
    let page = dir.run("plan dedup --keep first --html - a").text();
    assert!(!page.contains("dedup --keep last"));
}

/// The keys of records are counted, as the job compares them.
#[test]
fn jobs_on_parts_of_records_are_estimated() {
    let dir = TestDir::new();
    let urls: Vec<_> = (0..3000).map(|n| format!("http://h/{}", n * n % 1009)).collect();
    let csv: String = urls.iter().enumerate().map(|(id, url)| format!("{id},{url}\n")).collect();
    dir.write("a.csv", format!("# comment\nid,url\n{csv}"));
    let json_lines = urls.iter().enumerate();
    let json_lines = json_lines.map(|(id, url)| format!("{{\"id\":{id},\"url\":\"{url}\"}}\n"));
    dir.write("a.jsonl", json_lines.collect::<String>());
    dir.write("upper", urls.join("\n").to_uppercase());
    for args in [
        "dedup --column url --comment # a.csv",
        "dedup --json-key /url a.jsonl",
        "dedup --key-transform lowercase upper",
        "common --column 2 --comment # a.csv a.csv",
    ] {
        let plan = json(&dir.run(&format!("plan {args} --json")).ok());
        dir.run(&format!("{args} -o out --report report")).ok();
        let kept = json(&dir.read("report"))["kept"].clone();
        assert_eq!(plan["kept"], kept, "{args}: {plan}");
    }
    for (args, text) in [
        ("-n 5 --files-from a.csv", "lists of files: need a COMMAND"),
        ("dedup --json-key /url --bad-records x a.jsonl", "plan writes no records; use skip"),
    ] {
        let line = dir.run(&format!("plan {args}")).failure();
        assert!(line.contains(text), "{args}: {line}");
    }
    // Samples, of which every missing value is a key of its own.
    let args = "plan dedup --json-key /no --nulls distinct --full-scan=never --json a.jsonl";
    assert_eq!(json(&dir.run(args).ok())["kept"], 3000);
    for args in ["--column url", "-n 5 --key-transform lowercase", "--json-key /a -n 5"] {
        let line = dir.run(&format!("plan {args}")).failure();
        assert!(line.contains("options of keys and records: need a COMMAND"), "{args}: {line}");
    }
}

#[test]
fn short_compressed_inputs_have_bounds() {
    let dir = dir(10);
    dir.write("b.gz", gz(&dir.read("b")));
    let plan = json(&dir.run("plan common a b.gz --json").ok());
    assert_eq!(plan["full_scan"], true, "{plan}");
    let plan = json(&dir.run("plan common a b.gz --full-scan=never --json").ok());
    assert_eq!(plan["full_scan"], false, "{plan}");
    for range in ["bytes_read_range", "candidates_range", "kept_range"] {
        assert_ne!(plan[range][1], Value::Null, "{range}: {plan}");
    }
    // All lines are read, because the inputs are small.
    assert_eq!(plan["kept"], LINES / 10, "{plan}");
    assert_eq!(plan["kept_range"][0], plan["kept_range"][1], "{plan}");
    let lines = dir.read("b").iter().filter(|&&byte| byte == b'\n').count();
    assert_eq!(plan["inputs"][1]["lines_range"], serde_json::json!([lines, lines]), "{plan}");
}

/// The beginning of a compressed input does not represent its rest, but the other inputs have bounds.
#[test]
fn long_compressed_inputs_have_no_upper_bounds() {
    let dir = dir(10);
    // More than 64 MiB.
    let text: Vec<u8> = dir.read("b").into_iter().cycle().take(70 << 20).collect();
    dir.write("b.gz", gz(&text));
    let plan = json(&dir.run("plan common a b.gz --json").ok());
    let [a, b] = [&plan["inputs"][0], &plan["inputs"][1]];
    assert_eq!(plan["full_scan"], false, "{plan}");
    assert_eq!(a["distinct_range"], serde_json::json!([LINES, LINES]), "{plan}");
    assert_eq!(b["distinct_range"][1], Value::Null, "{plan}");
    assert_eq!(plan["bytes_read_range"][1], Value::Null, "{plan}");
    // No more lines can be in common than the first input has.
    assert_eq!(plan["kept_range"][1], LINES, "{plan}");
    let text = dir.run("plan common a b.gz").text();
    assert!(text.contains("some without an upper bound: only the beginning"), "{text}");
    assert!(text.contains("add --full-scan") && text.contains("(at least "), "{text}");
    let plan = json(&dir.run("plan common a b.gz --full-scan --json").ok());
    assert_eq!(plan["kept"], LINES / 10, "{plan}");
    let plan = json(&dir.run("plan symdiff a b.gz --json").ok());
    assert_eq!(plan["kept_range"][1], Value::Null, "{plan}");
    // Nothing may be left.
    let plan = json(&dir.run("plan symdiff b.gz b.gz --full-scan=never --json").ok());
    assert_eq!(plan["kept_range"], serde_json::json!([0, null]), "{plan}");
}
