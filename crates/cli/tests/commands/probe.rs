//! `probe` on Parquet files written by pyarrow and DuckDB, and on files that cannot be read.

use std::fs;
use std::path::PathBuf;

use crate::common::{self, TestDir};

fn foreign() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/foreign")
}

fn keys(name: &str) -> Vec<String> {
    let text = fs::read_to_string(foreign().join("keys").join(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A directory with the golden files under short names.
fn dir() -> TestDir {
    let dir = TestDir::new();
    for (name, file) in [
        ("text", "pyarrow-text.parquet"),
        ("five", "pyarrow-five.parquet"),
        ("groups", "pyarrow-text-groups.parquet"),
        ("longs", "pyarrow-longs-groups.parquet"),
        ("ints", "pyarrow-ints.parquet"),
        ("duck", "duckdb-text.parquet"),
    ] {
        dir.write(name, fs::read(foreign().join(file)).unwrap());
    }
    dir
}

/// Returns a Parquet file of one row group, whose column `key` has no filter.
fn without_filter() -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let metadata = [&[0x15, 12, 0x29, 0x18][..], &text("key"), &[0]].concat();
    let footer = [
        &[0x15, 2, 0x19, 0x2c, 0x48][..],
        &text("root"),
        &[0x15, 2, 0, 0x15, 12, 0x38],
        &text("key"),
        &[0, 0x16, 18, 0x19, 0x1c, 0x19, 0x1c, 0x3c],
        &metadata,
        &[0, 0x26, 18, 0, 0],
    ]
    .concat();
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", &footer[..], &length, b"PAR1"].concat()
}

#[test]
fn files_that_may_contain_a_key_are_printed_in_order() {
    let dir = dir();
    let (text, five) = (keys("text.txt"), keys("five.txt"));
    dir.write("keys", format!("{}\n{}\n", five[0], five[3]));
    let args = "probe --column key --keys keys";
    let output = dir.run(&format!("{args} text five duck"));
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_eq!(String::from_utf8(output.out).unwrap(), "five\n");
    assert_eq!(dir.run(&format!("{args} -v text five duck")).text(), "text\nduck\n");
    assert_eq!(dir.run(&format!("{args} -c five five")).text(), "2\n");
    let none = dir.run(&format!("{args} text"));
    assert_eq!((none.code, none.out.len(), none.err.as_str()), (Some(1), 0, ""));
    assert_eq!(dir.run(&format!("{args} -c text")).out, b"0\n");
    // Keys from standard input, names from a list, several numbers of threads.
    let list = (0..500).map(|at| if at % 3 == 0 { "five\n" } else { "text\n" });
    let list = list.collect::<String>();
    dir.write("list", format!("duck\n{list}"));
    for jobs in [1, 2, 7] {
        let args = format!("probe --column key -j {jobs} --files-from list -o out");
        assert_eq!(dir.run_with(&args, format!("{}\n", text[7]).as_bytes()).text(), "");
        let expect = format!("duck\n{}", list.replace("five\n", ""));
        assert_eq!(String::from_utf8(dir.read("out")).unwrap(), expect);
    }
    let found = dir.run_with("probe --column key --keys keys --files-from -", b"text\nfive");
    assert_eq!(found.text(), "five\n");
}

/// The names of `--files-from` are no keys.
#[test]
fn names_of_files_are_not_transformed() {
    let dir = dir();
    fs::rename(dir.files.file("five"), dir.files.file("DEAD BEEF")).unwrap();
    dir.write("list", "DEAD BEEF\ntext\n");
    let args = "probe --column key --files-from list --key-transform";
    for transform in ["lowercase", "trim,lowercase"] {
        let run = dir.run_with(&format!("{args} {transform}"), b"HELLO\n");
        assert_eq!(run.err, "");
        assert_eq!(run.text(), "DEAD BEEF\n");
    }
    // Neither are their line ends those of keys.
    let run = dir.run_with("probe --column key --files-from list", b"hello\r\n");
    assert_eq!((run.code, run.out.len()), (Some(1), 0));
    assert!(!run.err.contains("list"), "{}", run.err);
}

#[test]
fn row_groups_are_printed_with_their_number_and_rows() {
    let dir = dir();
    let longs = keys("longs.txt");
    let args = "probe --column key --row-groups longs";
    for (number, key) in [(0, &longs[3]), (2, &longs[599])] {
        let out = dir.run_with(args, format!("{key}\n").as_bytes()).text();
        assert!(out.contains(&format!("longs\t{number}\t200\n")), "{out}");
    }
    let all = longs.join("\n");
    let out = dir.run_with(args, all.as_bytes()).text();
    assert_eq!(out, "longs\t0\t200\nlongs\t1\t200\nlongs\t2\t200\n");
    assert_eq!(dir.run_with(&format!("{args} -c"), all.as_bytes()).text(), "3\n");
    assert_eq!(dir.run_with(&format!("{args} -v"), all.as_bytes()).code, Some(1));
    assert_eq!(dir.run_with(&format!("{args} -v -c"), b"").text(), "3\n");
}

#[test]
fn lines_may_end_in_nul() {
    let dir = dir();
    fs::rename(dir.files.file("five"), dir.files.file("odd\nname")).unwrap();
    dir.write("keys", format!("{}\0{}", keys("five.txt")[0], "x"));
    let args = "probe -z --column key --keys keys --files0-from -";
    assert_eq!(dir.run_with(args, b"text\0odd\nname\0").text(), "odd\nname\0");
}

#[test]
fn row_groups_without_filter_match_and_give_a_note() {
    let dir = dir();
    dir.write("bare", without_filter());
    let args = "probe --column key --keys keys text bare";
    dir.write("keys", "nowhere\n");
    let output = dir.run(args);
    assert_eq!((output.code, &output.out[..]), (Some(0), &b"bare\n"[..]));
    assert_eq!(
        output.err,
        "petal: note: 1 of 2 row groups, in 1 of 2 files, have no Bloom filter for 'key' and may \
         contain any key\n"
    );
    let quiet = dir.run(&format!("{args} -q --row-groups"));
    assert_eq!((quiet.err.as_str(), &quiet.out[..]), ("", &b"bare\t0\t9\n"[..]));
    assert_eq!(dir.run(&format!("{args} -q -v")).text(), "text\n");
}

#[test]
fn error_in_one_file_does_not_stop_the_others() {
    let dir = dir();
    let five = format!("{}\n", keys("five.txt")[0]);
    dir.write("keys", &five);
    let cut = dir.read("five");
    dir.write("cut", &cut[..cut.len() - 1]);
    dir.write("tiny", "PAR1");
    let args = "probe --column key --keys keys";
    for (file, message) in [
        ("cut", "cut: not a valid Parquet file: its end: expected PAR1, found "),
        ("tiny", "tiny: not a valid Parquet file: length"),
        ("missing", "missing: cannot read: no such file"),
        (".", ".: is a directory, expected a Parquet file"),
        ("/dev/null", "/dev/null: is not a regular file"),
    ] {
        let output = dir.run(&format!("{args} {file} five"));
        assert_eq!((output.code, &output.out[..]), (Some(2), &b"five\n"[..]), "{}", output.err);
        assert_eq!(output.err.lines().count(), 1);
        assert!(output.err.starts_with(&format!("petal: {message}")), "{}", output.err);
        // An output file is written completely or not at all.
        let line = dir.run(&format!("{args} {file} five -o out")).failure();
        assert!(line.contains(message), "{line}");
        assert!(!dir.files.file("out").exists());
        dir.run(&format!("{args} {file} five -c")).failure();
    }
    let two = dir.run(&format!("{args} cut missing tiny"));
    let found: Vec<_> = two.err.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(found, ["cut", "missing", "tiny"]);
    let other = dir.run("probe --column url --keys keys five").failure();
    assert_eq!(other, "petal: five: it has no column 'url', but key");
}

#[test]
fn invalid_keys_stop_the_command() {
    let dir = dir();
    let args = "probe --column key --keys keys";
    dir.write("keys", "17\nseven\n");
    let line = dir.run(&format!("{args} longs")).failure();
    assert_eq!(
        line,
        "petal: keys: line 2: 'seven' is not a key: expected a whole number of 64 bits, in decimal \
         (column 'key' of longs)"
    );
    dir.write("keys", "3000000000\n");
    dir.write("empty-line", "five\n\nints\n");
    assert!(dir.run(&format!("{args} longs")).code.is_some_and(|code| code < 2));
    assert!(dir.run(&format!("{args} ints")).failure().contains("keys: line 1: '3000000000'"));
    for (args, message) in [
        ("probe --column key --files-from -", "-: is named twice"),
        ("probe --column key --keys missing five", "missing: cannot read"),
        ("probe --column key --keys keys --files-from missing", "missing: cannot read"),
        ("probe --column key --keys keys five -o five", "same file as the input"),
        ("probe --column key --keys keys -m 1M five", "1 MiB is too little"),
    ] {
        let line = dir.run(args).failure();
        assert!(line.contains(message), "{line}");
    }
    for args in ["probe --keys keys five", "probe --column key --keys keys"] {
        assert_eq!(dir.run(args).code, Some(2), "{args}");
    }
    let line = dir.run("probe --column key --keys keys --files-from empty-line").failure();
    assert!(line.contains("empty-line: name 2: expected the name of a file"), "{line}");
    // Errors of earlier files are reported too.
    dir.write("keys", "seven\n");
    let output = dir.run(&format!("{args} missing longs"));
    let found: Vec<_> = output.err.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!((output.code, found), (Some(2), vec!["missing", "keys"]), "{}", output.err);
    dir.write("keys", "a key that needs memory\n".repeat(200_000));
    let line = dir.run("probe --column key --keys keys -m 8M five").failure();
    assert!(line.contains("keys: its lines take more than a quarter of the 8 MiB"), "{line}");
}

/// A value of each column of a file, and one that no row has.
#[test]
fn keys_are_converted_by_the_logical_type() {
    let dir = TestDir::new();
    let tables = foreign().join("../tables");
    for name in ["types.parquet", "money.parquet"] {
        dir.write(name, fs::read(tables.join(name)).unwrap());
    }
    for (file, column, present, absent, invalid) in [
        ("money", "int32", "997", "996", "99700.001"),
        ("money", "int32", "-12.3", "12.3", "x"),
        ("types", "fixed", "997.000", "99700", "1e3"),
        ("types", "fixed", "-12.30", "-12.31", "-12.301"),
        ("types", "date", "2026-11-23", "2026-11-24", "20780"),
        ("types", "time", "15:04:05", "15:04:06", "54245000000"),
        ("types", "millis", "2026-11-23T15:04:05.25", "2026-11-23T15:04:05", "1795446245250"),
        ("types", "micros", "2026-11-23T15:04:05.25Z", "2026-11-23T15:04:05Z", "2026-11-23"),
        ("types", "nanos", "2026-11-23T15:04:05.25", "2026-11-23T15:04:05", "x"),
        (
            "types",
            "uuid",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            &"f".repeat(32),
            "sixteen bytes ..",
        ),
    ] {
        let args = format!("probe --column {column} {file}.parquet");
        let run = |key: &str| dir.run_with(&args, key.as_bytes());
        assert_eq!(run(present).text(), format!("{file}.parquet\n"), "{column} {present}");
        assert_eq!(run(absent).code, Some(1), "{column} {absent}");
        let line = run(invalid).failure();
        assert!(line.contains(&format!("line 1: '{invalid}' is not a key: expected ")), "{line}");
    }
    // A filter does not know whether a value is null.
    let line = dir.run_with("probe --column date types.parquet", b"2026-11-23\n\xff").failure();
    assert!(line.contains("line 2: ") && line.contains("nothing about nulls"), "{line}");
}

#[test]
fn progress_counts_files() {
    let dir = dir();
    dir.write("keys", "x\n");
    let output = dir.run("probe --column key --keys keys text five --progress always -o out");
    assert!(output.err.contains("petal: probing: 1 of 2 files\n"), "{}", output.err);
    dir.write("keys", common::pack::gz(b"nowhere\n"));
    assert_eq!(dir.run("probe --column key --keys keys five -c").code, Some(1));
}
