//! Parquet and Arrow inputs of the program: with the feature `parquet` rows, without it an error.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod common;

use std::path::{Path, PathBuf};

use common::TestDir;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn dir() -> TestDir {
    let dir = TestDir::new();
    for name in ["a.parquet", "b.parquet", "a.arrow", "a.arrows"] {
        dir.write(name, std::fs::read(golden("tables").join(name)).unwrap());
    }
    dir.write("v1.feather", b"FEA1\0\0\0\0rest");
    dir
}

#[test]
fn tables_without_columns_are_errors() {
    let dir = dir();
    for (name, what) in [
        ("a.parquet", "a Parquet file"),
        ("a.arrow", "an Arrow file"),
        ("a.arrows", "an Arrow stream"),
    ] {
        for args in ["dedup", "dedup --json-key /url", "build -o f"] {
            let line = dir.run(&format!("{args} {name}")).failure();
            assert!(line.contains(&format!("{name}: is {what}, expected lines; ")), "{line}");
            assert!(line.ends_with(", or use --text"), "{line}");
        }
        // The bytes as lines.
        dir.run(&format!("dedup --text -q {name}")).ok();
    }
    let line = dir.run("dedup v1.feather").failure();
    assert!(
        line.contains("is a Feather file of version 1, expected lines; write it again"),
        "{line}"
    );
}

#[test]
fn tables_are_no_filters() {
    let dir = dir();
    dir.write("lines", "a\n");
    for args in ["info a.parquet", "check a.parquet lines", "add a.parquet lines"] {
        let line = dir.run(args).failure();
        let expected =
            "a.parquet: is a whole Parquet file; query the filters in it with petal probe";
        assert!(line.ends_with(expected), "{line}");
    }
}

#[cfg(feature = "parquet")]
mod with_feature {
    use petal_testkit::pages::{Block, read, root};

    use super::*;

    /// The URLs of `a.parquet` in order, each once.
    const URLS: &str = "http://a.example/\nhttp://b.example/?q=x,y\n\nsay \"hi\"\n\u{e4}\n";

    /// The keys of a file, as lines.
    fn keys(dir: &TestDir, file: &str) -> String {
        let bytes = dir.run(&format!("dedup --column url --keys-only {file}")).ok();
        String::from_utf8(bytes.into_iter().map(|b| if b == 0xff { b'~' } else { b }).collect())
            .unwrap()
    }

    #[test]
    fn files_of_pyarrow_are_read() {
        let dir = dir();
        for file in ["a.parquet", "a.arrow", "a.arrows"] {
            assert_eq!(keys(&dir, file), format!("{URLS}~\n"), "{file}");
            let ids = dir.run(&format!("dedup --column id --keys-only {file}")).text();
            assert_eq!(ids, "1\n2\n3\n4\n5\n6\n7\n8\n");
            assert_eq!(dir.run(&format!("dedup -c --column page.host,day {file}")).text(), "7\n");
            dir.run(&format!("dedup --column url -o out {file}")).ok();
            assert_eq!(keys(&dir, "out"), format!("{URLS}~\n"), "{file}");
            let ids = dir.run("dedup --column id --keys-only out").text();
            assert_eq!(ids, "1\n2\n4\n5\n6\n7\n", "{file}");
            // To standard output, and from redirected standard input.
            let out = dir.sh(&format!("\"$petal\" dedup --column url - < {file} > out2"));
            out.ok();
            assert_eq!(dir.read("out"), dir.read("out2"));
            let line = dir.sh(&format!("cat {file} | \"$petal\" dedup --column url -")).failure();
            assert!(line.contains("; save it to a file that is not compressed"), "{line}");
        }
    }

    #[test]
    fn rows_are_compared_with_lines_and_kept_by_seen() {
        let dir = dir();
        dir.write("urls", "http://b.example/?q=x,y\nother\n");
        dir.run("build -q -p 1e-9 -o f urls").ok();
        dir.run("check f --column url a.parquet -o out").ok();
        assert_eq!(keys(&dir, "out"), "http://b.example/?q=x,y\n");
        dir.run("diff a.parquet b.parquet --column url -o out").ok();
        assert_eq!(keys(&dir, "out"), "\nsay \"hi\"\n\u{e4}\n~\n");
        dir.run("build -q -p 1e-9 --column url -o g a.parquet").ok();
        assert_eq!(dir.run("check g urls").text(), "http://b.example/?q=x,y\n");
        dir.sh("\"$petal\" seen -q -n 100 --exact s b.parquet --column url > one").ok();
        assert_eq!(keys(&dir, "one"), "http://b.example/?q=x,y\nhttp://a.example/\nnew\n");
        dir.sh("\"$petal\" seen -q s a.parquet --column url > two").ok();
        assert_eq!(keys(&dir, "two"), "\nsay \"hi\"\n\u{e4}\n~\n");
        let line = dir.sh("\"$petal\" seen -q s a.parquet --column url >> two").failure();
        assert!(
            line.contains("its rows are binary data in Parquet, not text; redirect standard output to a new file"),
            "{line}"
        );
        let count = dir.run("count --column url --keys-only --top 1 a.parquet").text();
        assert_eq!(count, "2\thttp://a.example/\n");
        let count = dir.run("count --column url,day --keys-only b.parquet").text();
        let days = "2,\"http://b.example/?q=x,y\",2026-11-23\n1,http://a.example/,2026-11-23\n\
                    1,new,2026-11-24\n";
        assert_eq!(count, days);
    }

    #[test]
    fn settings_for_csv_are_said_to_have_no_effect() {
        let dir = dir();
        dir.write("c.csv", "id;url\n");
        let note = "petal: note: a.parquet has columns of its own; --separator, --quote, --escape and \
                    --header are for CSV and have no effect\n";
        for (args, expected) in [
            ("a.parquet --separator ;", note),
            ("a.parquet --header", note),
            ("a.parquet b.parquet --quote none", note),
            ("a.parquet --escape x", note),
            ("a.parquet --keys-only --header", note),
            ("a.parquet --keys-only --separator ;", ""),
            ("a.parquet", ""),
        ] {
            assert_eq!(dir.run(&format!("dedup -c --column url {args}")).err, expected, "{args}");
        }
        assert_eq!(dir.run("common -c --column url --separator ; a.parquet c.csv").err, "");
        let quoted = dir.run("dedup --column url,id --keys-only --separator | --quote ' a.parquet");
        assert!(quoted.out.starts_with(b"http://a.example/|1\nhttp://b.example/?q=x,y|2\n"));
    }

    #[test]
    fn commands_of_the_book_run() {
        let dir = dir();
        for (from, to) in [
            ("a.parquet", "pages.parquet"),
            ("b.parquet", "today.parquet"),
            ("a.arrow", "pages.arrow"),
        ] {
            dir.write(to, std::fs::read(golden("tables").join(from)).unwrap());
        }
        dir.write("seen.csv", "url\nhttp://a.example/\n");
        let page = read(&root().join("docs/guides/parquet.md"));
        let needs = |block: &&Block| block.not_run.as_deref() == Some("run by the test of tables");
        let commands = page.blocks.iter().filter(needs);
        for command in commands.flat_map(|block| block.commands("$ ").unwrap()) {
            let run = dir.sh(&command.text.replacen("petal ", "\"$petal\" ", 1));
            assert_eq!(run.text(), command.shown, "{}", command.text);
        }
        for (file, expected) in [
            ("distinct.parquet", format!("{URLS}~\nnew\n")),
            ("new.parquet", "http://b.example/?q=x,y\nhttp://a.example/\nnew\n".to_owned()),
            ("again.arrow", "http://a.example/\n".to_owned()),
        ] {
            assert_eq!(keys(&dir, file), expected, "{file}");
        }
        dir.read("known.parquet");
    }

    #[test]
    fn errors_are_one_line() {
        let dir = dir();
        dir.write("c.csv", "url\nx\n");
        dir.sh("head -c 700 a.parquet > cut.parquet; head -c 700 a.arrow > cut.arrow").ok();
        for (args, expected) in [
            (
                "dedup --column uri a.parquet",
                "a.parquet: has no column \"uri\", but \"id\", \"url\", \"page\"",
            ),
            (
                "dedup --column page a.arrow",
                "column \"page\" is a structure; name one of its members",
            ),
            ("dedup --column tags a.arrows", "column \"tags\" has the type List("),
            (
                "dedup --column url a.parquet c.csv",
                "c.csv: has lines, not rows, so its rows cannot",
            ),
            (
                "dedup --column url a.arrow a.parquet",
                "a.parquet: is a Parquet file, so its rows cannot follow",
            ),
            (
                "count --column url a.parquet",
                "its rows are binary data, which cannot follow a count; use --keys-only",
            ),
            (
                "plan dedup a.parquet",
                "a.parquet: is a Parquet file, expected lines; specify --column, or use --text",
            ),
            ("dedup --column url cut.parquet", "cut.parquet: cannot read as Parquet: "),
            (
                "dedup --column url cut.arrow",
                "cut.arrow: cannot read as Arrow IPC: it does not end as",
            ),
            (
                "dedup --column url a.parquet -o /dev/full",
                "/dev/full: cannot write: no space left on device",
            ),
            (
                "dedup --column url a.arrow -o /dev/full",
                "/dev/full: cannot write: no space left on device",
            ),
        ] {
            let line = dir.run(args).failure();
            assert!(line.contains(expected), "{args}: {line}");
        }
    }

    #[test]
    fn keys_of_probe_are_those_of_columns() {
        let dir = TestDir::new();
        for name in ["types.parquet", "types.arrow", "money.parquet"] {
            dir.write(name, std::fs::read(golden("tables").join(name)).unwrap());
        }
        let cases = [
            ("money.parquet", "int32", "997.00\n-12.30\n"),
            ("types.parquet", "fixed", "997.00\n-12.30\n"),
            ("types.parquet", "date", "2026-11-23\n1969-12-31\n"),
            ("types.parquet", "time", "15:04:05\n00:00:00\n"),
            ("types.parquet", "millis", "2026-11-23T15:04:05.25\n"),
            ("types.parquet", "micros", "2026-11-23T15:04:05.25Z\n"),
            ("types.parquet", "nanos", "2026-11-23T15:04:05.25\n"),
            (
                "types.parquet",
                "uuid",
                "f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n00000000-0000-0000-0000-000000000000\n",
            ),
        ];
        for (file, column, expected) in cases {
            let keys = |file: &str| {
                let mut keys =
                    dir.run(&format!("dedup -q --column {column} --keys-only {file}")).ok();
                // Of null.
                if keys.ends_with(b"\xff\n") {
                    keys.truncate(keys.len() - 2);
                }
                String::from_utf8(keys).unwrap()
            };
            assert_eq!(keys(file), expected, "{column}");
            if file == "types.parquet" {
                assert_eq!(keys("types.arrow"), expected, "{column}");
            }
            for key in expected.lines() {
                let found =
                    dir.run_with(&format!("probe --column {column} {file}"), key.as_bytes());
                assert_eq!(found.text(), format!("{file}\n"), "{column} {key}");
            }
        }
    }

    /// Bits whose change makes the library panic, in the descriptions of batches.
    #[test]
    fn damaged_tables_print_one_line() {
        let dir = dir();
        let whole = dir.read("a.arrow");
        for (at, bit) in [(1899, 2), (1919, 3), (1949, 2), (3030, 7), (3175, 6)] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            dir.write("bad.arrow", bytes);
            let line = dir.run("dedup --column url -o out bad.arrow").failure();
            assert!(line.contains("bad.arrow: cannot read as Arrow IPC: "), "{line}");
        }
    }

    /// 16 MiB in a release; the code of a test build is larger, most with all features.
    const OVERHEAD: u64 = 24 << 20;

    /// Files that are much smaller than their values, and one with many columns.
    #[test]
    fn memory_of_rows_is_limited() {
        let dir = TestDir::new();
        for name in ["zeros.parquet", "lists.parquet"] {
            dir.write(name, std::fs::read(golden("tables").join(name)).unwrap());
        }
        let columns = std::fs::read(golden("tables/columns.parquet.zst")).unwrap();
        dir.write("columns.parquet", zstd::decode_all(&columns[..]).unwrap());
        for (file, column, rows) in [("lists", "id", "500"), ("columns", "c7", "2")] {
            let run = dir.run(&format!("dedup -q -m 8M --column {column} -o out {file}.parquet"));
            assert!(run.peak <= (8 << 20) + OVERHEAD, "{file}: {} KiB", run.peak >> 10);
            run.ok();
            let kept = dir.run(&format!("dedup -q -c --column {column} out")).text();
            assert_eq!(kept, format!("{rows}\n"));
        }
        // A list cannot be divided; the limit in the error is enough.
        let run = dir.run("dedup -q -m 8M --column id -o out zeros.parquet");
        assert!(run.peak <= (8 << 20) + OVERHEAD, "{} KiB", run.peak >> 10);
        let line = run.failure();
        let (_, limit) = line.split_once("; raise -m to ").unwrap();
        let limit: u64 = limit.strip_suffix(" MiB").unwrap().parse().unwrap();
        let run = dir.run(&format!("dedup -q -m {limit}M --column id -o out zeros.parquet"));
        assert!(run.peak <= (limit << 20) + OVERHEAD, "{} KiB", run.peak >> 10);
        run.ok();
    }

    /// Returns a Parquet file of two rows of numbers, 7 and 8, in this many columns. All columns have the
    /// same page.
    fn wide(columns: u64) -> Vec<u8> {
        fn varint(mut number: u64) -> Vec<u8> {
            let mut bytes = vec![];
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
            bytes
        }
        // In Thrift's compact protocol.
        let number = |header: u8, number: u64| [vec![header], varint(2 * number)].concat();
        let text = |text: &str| [&varint(text.len() as u64), text.as_bytes()].concat();
        let list = |length: u64| [vec![0x19, 0xfc], varint(length)].concat();
        let name = |column: u64| format!("column_{column}");
        let page_header = [
            number(0x15, 0), // a data page
            number(0x15, 8),
            number(0x15, 8),
            vec![0x2c],
            number(0x15, 2), // values
            number(0x15, 0), // plain
            number(0x15, 3),
            number(0x15, 3),
            vec![0, 0],
        ];
        let page = [page_header.concat(), vec![7, 0, 0, 0, 8, 0, 0, 0]].concat();
        let length = page.len() as u64;
        let mut footer = [number(0x15, 1), list(columns + 1), vec![0x48], text("schema")].concat();
        footer.extend([number(0x15, columns), vec![0]].concat());
        for column in 0..columns {
            let element =
                [number(0x15, 1), number(0x25, 0), vec![0x18], text(&name(column)), vec![0]];
            footer.extend(element.concat());
        }
        footer.extend([number(0x16, 2), list(1), list(columns)].concat());
        for column in 0..columns {
            let chunk = [
                number(0x26, 4),
                vec![0x1c],
                number(0x15, 1),
                vec![0x19, 0x15, 0], // plain
                vec![0x19, 0x18],
                text(&name(column)),
                number(0x15, 0),
                number(0x16, 2),
                number(0x16, length),
                number(0x16, length),
                number(0x26, 4), // where the page is
                vec![0, 0],
            ];
            footer.extend(chunk.concat());
        }
        footer.extend([number(0x16, columns * length), number(0x16, 2), vec![0, 0]].concat());
        let footer_length = (footer.len() as u32).to_le_bytes();
        [b"PAR1", &page[..], &footer, &footer_length, b"PAR1"].concat()
    }

    /// What describes the columns is a part of the limit; the limit in an error is enough.
    #[test]
    fn memory_of_many_columns_is_limited() {
        let dir = TestDir::new();
        for (columns, limit) in [(20_000, "64M"), (30_000, "8M")] {
            dir.write("wide.parquet", wide(columns));
            let args = "dedup -q --column column_7 wide.parquet -o out -m";
            let line = dir.run(&format!("{args} {limit}")).failure();
            let (_, raised) = line.split_once("; raise -m to ").unwrap();
            let raised: u64 = raised.strip_suffix(" MiB").unwrap().parse().unwrap();
            let run = dir.run(&format!("{args} {raised}M"));
            assert!(run.peak <= (raised << 20) + OVERHEAD, "{raised}: {} KiB", run.peak >> 10);
            run.ok();
            let keys = dir.run("dedup --column column_9 --keys-only out").text();
            assert_eq!(keys, "7\n8\n");
        }
    }

    /// Compares with DuckDB on random files: `peers/tables/compare.py`.
    #[test]
    #[ignore = "needs PETAL_PEERS"]
    fn rows_equal_those_of_duckdb() {
        let python = Path::new(&std::env::var("PETAL_PEERS").unwrap()).join("python/bin/python");
        let script = golden("../peers/tables/compare.py");
        let run = std::process::Command::new(python)
            .arg(script)
            .args([env!("CARGO_BIN_EXE_petal"), "160", "1"])
            .status();
        assert!(run.unwrap().success());
    }
}
