//! `probe`: which Parquet files may hold any of some keys, and what is said of those that cannot
//! be asked. The files are those that pyarrow and DuckDB wrote.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::fs;
use std::path::PathBuf;

use kit::Place;

fn foreign() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/foreign")
}

fn keys(name: &str) -> Vec<String> {
    let text = fs::read_to_string(foreign().join("keys").join(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A place with golden files, by short names.
fn place() -> Place {
    let place = Place::new();
    for (name, file) in [
        ("text", "pyarrow-text.parquet"),
        ("five", "pyarrow-five.parquet"),
        ("groups", "pyarrow-text-groups.parquet"),
        ("longs", "pyarrow-longs-groups.parquet"),
        ("ints", "pyarrow-ints.parquet"),
        ("duck", "duckdb-text.parquet"),
    ] {
        place.write(name, fs::read(foreign().join(file)).unwrap());
    }
    place
}

/// A Parquet file of one row group, whose column `key` has no filter; written by hand.
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
fn files_that_may_hold_a_key_are_printed_in_order() {
    let place = place();
    let (text, five) = (keys("text.txt"), keys("five.txt"));
    place.write("keys", format!("{}\n{}\n", five[0], five[3]));
    let words = "probe --column key --keys keys";
    let ran = place.run(&format!("{words} text five duck"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(String::from_utf8(ran.out).unwrap(), "five\n");
    assert_eq!(place.run(&format!("{words} -v text five duck")).text(), "text\nduck\n");
    assert_eq!(place.run(&format!("{words} -c five five")).text(), "2\n");
    let none = place.run(&format!("{words} text"));
    assert_eq!((none.code, none.out.len(), none.err.as_str()), (Some(1), 0, ""));
    assert_eq!(place.run(&format!("{words} -c text")).out, b"0\n");
    // Keys from standard input, names from a list, on any number of threads.
    let list = (0..500).map(|at| if at % 3 == 0 { "five\n" } else { "text\n" });
    let list = list.collect::<String>();
    place.write("list", &list);
    for jobs in [1, 2, 7] {
        let words = format!("probe --column key -j {jobs} --files-from list duck -o out");
        assert_eq!(place.run_with(&words, format!("{}\n", text[7]).as_bytes()).text(), "");
        let expect = format!("duck\n{}", list.replace("five\n", ""));
        assert_eq!(String::from_utf8(place.read("out")).unwrap(), expect);
    }
    let found = place.run_with("probe --column key --keys keys --files-from -", b"text\nfive");
    assert_eq!(found.text(), "five\n");
}

#[test]
fn row_groups_are_printed_with_their_number_and_rows() {
    let place = place();
    let longs = keys("longs.txt");
    let words = "probe --column key --row-groups longs";
    for (number, key) in [(0, &longs[3]), (2, &longs[599])] {
        let out = place.run_with(words, format!("{key}\n").as_bytes()).text();
        assert!(out.contains(&format!("longs\t{number}\t200\n")), "{out}");
    }
    let all = longs.join("\n");
    let out = place.run_with(words, all.as_bytes()).text();
    assert_eq!(out, "longs\t0\t200\nlongs\t1\t200\nlongs\t2\t200\n");
    assert_eq!(place.run_with(&format!("{words} -c"), all.as_bytes()).text(), "3\n");
    assert_eq!(place.run_with(&format!("{words} -v"), all.as_bytes()).code, Some(1));
    assert_eq!(place.run_with(&format!("{words} -v -c"), b"").text(), "3\n");
}

#[test]
fn lines_may_end_in_nul() {
    let place = place();
    fs::rename(place.files.file("five"), place.files.file("odd\nname")).unwrap();
    place.write("keys", format!("{}\0{}", keys("five.txt")[0], "x"));
    let words = "probe -z --column key --keys keys --files-from -";
    assert_eq!(place.run_with(words, b"text\0odd\nname\0").text(), "odd\nname\0");
}

#[test]
fn what_has_no_filter_may_hold_anything_and_is_noted() {
    let place = place();
    place.write("bare", without_filter());
    let words = "probe --column key --keys keys text bare";
    place.write("keys", "nowhere\n");
    let ran = place.run(words);
    assert_eq!((ran.code, &ran.out[..]), (Some(0), &b"bare\n"[..]));
    assert_eq!(
        ran.err,
        "petal: note: 1 of 2 row groups, in 1 of 2 files, have no Bloom filter for 'key' and may \
         hold anything\n"
    );
    let quiet = place.run(&format!("{words} -q --row-groups"));
    assert_eq!((quiet.err.as_str(), &quiet.out[..]), ("", &b"bare\t0\t9\n"[..]));
    assert_eq!(place.run(&format!("{words} -q -v")).text(), "text\n");
}

#[test]
fn trouble_with_one_file_is_told_and_the_others_are_examined() {
    let place = place();
    let five = format!("{}\n", keys("five.txt")[0]);
    place.write("keys", &five);
    let cut = place.read("five");
    place.write("cut", &cut[..cut.len() - 1]);
    place.write("tiny", "PAR1");
    let words = "probe --column key --keys keys";
    for (file, says) in [
        ("cut", "cut: no sound Parquet file: its end: expected PAR1, found "),
        ("tiny", "tiny: no sound Parquet file: length"),
        ("missing", "missing: cannot read: no such file"),
        (".", ".: is a directory, expected a Parquet file"),
        ("/dev/null", "/dev/null: is no regular file"),
    ] {
        let ran = place.run(&format!("{words} {file} five"));
        assert_eq!((ran.code, &ran.out[..]), (Some(2), &b"five\n"[..]), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1);
        assert!(ran.err.starts_with(&format!("petal: {says}")), "{}", ran.err);
        // Of a file that is to be written, all or nothing.
        let line = place.run(&format!("{words} {file} five -o out")).trouble();
        assert!(line.contains(says), "{line}");
        assert!(!place.files.file("out").exists());
        place.run(&format!("{words} {file} five -c")).trouble();
    }
    let two = place.run(&format!("{words} cut missing tiny"));
    let told: Vec<_> = two.err.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(told, ["cut", "missing", "tiny"]);
    let other = place.run("probe --column url --keys keys five").trouble();
    assert_eq!(other, "petal: five: it has no column 'url', but key");
}

#[test]
fn keys_that_are_none_end_the_run() {
    let place = place();
    let words = "probe --column key --keys keys";
    place.write("keys", "17\nseven\n");
    let line = place.run(&format!("{words} longs")).trouble();
    assert_eq!(
        line,
        "petal: keys: line 2: 'seven' is no key: expected a whole number of 64 bits, in decimal \
         (column 'key' of longs)"
    );
    place.write("keys", "3000000000\n");
    place.write("empty-line", "five\n\nints\n");
    assert!(place.run(&format!("{words} longs")).code.is_some_and(|code| code < 2));
    assert!(place.run(&format!("{words} ints")).trouble().contains("keys: line 1: '3000000000'"));
    for (words, says) in [
        ("probe --column key --files-from - five", "standard input is named twice"),
        ("probe --column key --keys missing five", "missing: cannot read"),
        ("probe --column key --keys keys --files-from missing", "missing: cannot read"),
        ("probe --column key --keys keys five -o five", "same file as the input"),
        ("probe --column key --keys keys -m 1M five", "1 MiB is too little"),
    ] {
        let line = place.run(words).trouble();
        assert!(line.contains(says), "{line}");
    }
    for words in ["probe --keys keys five", "probe --column key --keys keys"] {
        assert_eq!(place.run(words).code, Some(2), "{words}");
    }
    let line = place.run("probe --column key --keys keys --files-from empty-line").trouble();
    assert!(line.contains("empty-line: line 2: expected the name of a file"), "{line}");
    // What was wrong with a file before is told as well.
    place.write("keys", "seven\n");
    let ran = place.run(&format!("{words} missing longs"));
    let told: Vec<_> = ran.err.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!((ran.code, told), (Some(2), vec!["missing", "keys"]), "{}", ran.err);
    place.write("keys", "a key that takes room\n".repeat(200_000));
    let line = place.run("probe --column key --keys keys -m 8M five").trouble();
    assert!(line.contains("keys: its lines take more than a quarter of the 8 MiB"), "{line}");
}

#[test]
fn progress_counts_files() {
    let place = place();
    place.write("keys", "x\n");
    let ran = place.run("probe --column key --keys keys text five --progress always -o out");
    assert!(ran.err.contains("petal: probing: 1 of 2 files\n"), "{}", ran.err);
    let packed = kit::pack::gz(b"nowhere\n");
    place.write("keys", packed);
    assert_eq!(place.run("probe --column key --keys keys five -c").code, Some(1));
}
