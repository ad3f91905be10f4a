//! `count`: prints how often each distinct line occurs.

use std::cmp::Reverse;
use std::collections::HashMap;

use petal_testkit::rng::Rng;

use crate::common::TestDir;

/// The output for these lines, computed in memory.
fn model(lines: &[String], sorted: bool) -> String {
    let mut counts = HashMap::new();
    lines.iter().for_each(|line| *counts.entry(line).or_insert(0u64) += 1);
    let mut rows: Vec<_> =
        lines.iter().filter_map(|line| Some((counts.remove(line)?, line))).collect();
    if sorted {
        rows.sort_by_key(|(count, _)| Reverse(*count));
    }
    rows.iter().map(|(count, line)| format!("{count}\t{line}\n")).collect()
}

#[test]
fn counts_are_exact_at_every_memory_limit_and_from_pipes() {
    let dir = TestDir::new();
    let mut rng = Rng::new(5);
    // More distinct lines than the least memory holds, some of them frequent.
    let line = |rng: &mut Rng| match rng.one_in(3) {
        true => format!("https://example.org/{}", rng.below(50)),
        false => format!("https://example.org/page/{}", rng.below(400_000)),
    };
    let lines: Vec<_> = (0..500_000).map(|_| line(&mut rng)).collect();
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    dir.write("a", &text);
    for (sort, expected) in [("appearance", model(&lines, false)), ("count", model(&lines, true))] {
        for options in ["-m 8M -j 1", "-m 8M -j 3", "-m 1G"] {
            let found = dir.run(&format!("count --sort {sort} {options} a")).text();
            assert!(found == expected, "{sort} {options}");
        }
        let piped = dir.run_with(&format!("count --sort {sort} -q -m 8M -"), text.as_bytes());
        assert!(piped.text() == expected, "{sort}");
        let top: String = expected.split_inclusive('\n').take(9).collect();
        if sort == "count" {
            assert_eq!(dir.run("count --top 9 -m 8M a").text(), top);
        }
    }
    dir.assert_no_temp_files();
}

#[test]
fn options_select_lines() {
    let dir = TestDir::new();
    dir.write("a", "b\na\nb\n\nc\n");
    dir.write("b", "c\nd\nb");
    assert_eq!(dir.run("count a b").text(), "3\tb\n1\ta\n1\t\n2\tc\n1\td\n");
    assert_eq!(dir.run("count --min-count 2 a b").text(), "3\tb\n2\tc\n");
    assert_eq!(dir.run("count --top 3 a b").text(), "3\tb\n2\tc\n1\ta\n");
    assert_eq!(dir.run("count -o out a").text(), "");
    assert_eq!(dir.read("out"), b"2\tb\n1\ta\n1\t\n1\tc\n");
    assert_eq!(dir.run_with("count -z", b"x\0y\0x\0").text(), "2\tx\0\x31\ty\0");
    assert_eq!(dir.run_with("count", b"").text(), "");
    assert_eq!(dir.run("count --top 1 --sort count a").text(), "2\tb\n");
    let error = dir.run("count --top 1 --sort appearance a").failure();
    assert!(error.contains("--top: prints the most frequent lines first; leave out"), "{error}");
}

#[test]
fn records_with_one_key_are_counted_together() {
    let dir = TestDir::new();
    dir.write(
        "a.csv",
        "id,url\n1,http://A.example/\n2,\"x\ny\"\n3,http://a.example/\n4,\"x\ny\"\n",
    );
    let found = dir.run("count --column url --key-transform lowercase a.csv").text();
    assert_eq!(found, "count,id,url\n2,1,http://A.example/\n2,2,\"x\ny\"\n");
    // Also from a pipe, sorted, with another separator and with a byte order mark.
    let text = dir.read("a.csv");
    let piped = dir.run_with("count -q --top 1 --column url --key-transform lowercase -", &text);
    assert_eq!(piped.text(), "count,id,url\n2,1,http://A.example/\n");
    dir.write("m.tsv", "\u{feff}u\tv\r\na\tb\r\na\tc\r\n");
    let found = dir.run("count --column u m.tsv").text();
    assert_eq!(found, "\u{feff}count\tu\tv\r\n2\ta\tb\r\n");
    let found = dir.run("count --column 2 m.tsv").text();
    assert_eq!(found, "\u{feff}1\tu\tv\r\n1\ta\tb\r\n1\ta\tc\r\n");
    let found = dir.run_with("count -q --column 1 --separator ; -", b"a;b\na;c\n");
    assert_eq!(found.text(), "2;a;b\n");
    dir.write("a.jsonl", "{\"u\":1}\n{\"u\": 1, \"v\":2}\n{}\n");
    let found = dir.run("count --json-key /u a.jsonl").text();
    assert_eq!(found, "2\t{\"u\":1}\n1\t{}\n");
}
