//! Compressed inputs give the same output as plain files. Damaged ones are errors and never give a
//! wrong output.

use petal_testkit::line_files::{FileSpec, overlapping_files};
use petal_testkit::model::LF;

use crate::common;
use crate::common::pack::{FORMS, bz2, compress, gz, lz4, xz, zst, zst_of};
use crate::common::{
    MEMORY_OVERHEAD, SET_COMMANDS, STRATEGIES, TestDir, expected, overlapping, write_lines,
};

/// All pairs of compressions, in files, redirected and piped.
#[test]
fn every_compression_gives_the_same_output() {
    let dir = TestDir::new();
    let mut turn = 0;
    for seed in [2, 9] {
        let files = overlapping_files(seed, FileSpec { max_lines: 2000, ..FileSpec::small() });
        for form_a in FORMS {
            dir.write("a", compress(form_a, &files[0], seed));
            for form_b in FORMS {
                dir.write("b", compress(form_b, &files[1], seed + 1));
                let command = SET_COMMANDS[turn % 3];
                let expect = expected(command, &[&files[0], &files[1]], LF);
                let strategy = STRATEGIES[turn / 3 % 4];
                turn += 1;
                let run = format!("$petal {command} -q -m 8M {strategy}");
                let scripts = [
                    format!("{run} a b"),
                    format!("{run} - b < a"),
                    format!("{run} a - < b"),
                    format!("cat a | {run} - b"),
                    format!("{run} <(cat a) <(cat b)"),
                ];
                // Two scripts of the list in turn: each is run with each form on both sides.
                for script in scripts.iter().cycle().skip(turn % 5 + turn / 5).take(2) {
                    let out = dir.sh(script).ok();
                    assert!(out == expect, "seed {seed}: {form_a}, {form_b}: {script}");
                }
            }
        }
    }
}

/// Files too large for 8 MiB, so that strategies spill and read them several times.
#[test]
fn every_strategy_gives_the_same_output_when_spilling() {
    let dir = TestDir::new();
    let [a, b] = overlapping(400_000, 10, 1);
    write_lines(&dir.files.file("a"), a);
    write_lines(&dir.files.file("b"), b);
    let (a, b) = (dir.read("a"), dir.read("b"));
    for (form_a, form_b) in [("gz in members", "zst in frames"), ("zst", "plain"), ("plain", "gz")]
    {
        dir.write("pa", compress(form_a, &a, 5));
        dir.write("pb", compress(form_b, &b, 6));
        for command in SET_COMMANDS {
            let expect = expected(command, &[&a, &b], LF);
            for (strategy, jobs) in STRATEGIES.into_iter().zip([1, 2, 4, 2]) {
                let args = format!("{command} -m 8M -j {jobs} {strategy} pa pb");
                assert!(dir.run(&args).ok() == expect, "{form_a}, {form_b}: {args}");
            }
        }
    }
}

#[test]
fn filters_are_built_from_and_checked_with_compressed_lines() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..20_000);
    write_lines(&dir.files.file("b"), 10_000..40_000);
    let (a, b) = (dir.read("a"), dir.read("b"));
    dir.run("build -o plain a").ok();
    dir.run("check -o hits plain b").ok();
    for form in FORMS {
        dir.write("pa", compress(form, &a, 3));
        dir.write("pb", compress(form, &b, 4));
        dir.run("build -o f pa").ok();
        assert!(dir.read("f") == dir.read("plain"), "{form}");
        assert!(dir.run("check f pb").ok() == dir.read("hits"), "{form}");
        let piped = dir.sh("cat pa | \"$petal\" build -o g -n 20000 - && cmp f g");
        assert_eq!(piped.code, Some(0), "{form}: {}", piped.err);
        assert!(dir.sh("\"$petal\" check f - < pb").ok() == dir.read("hits"), "{form}");
        dir.run("add -q g pb").ok();
        dir.run("build -q -o h -n 20000 a b").ok();
        assert!(dir.read("g") == dir.read("h"), "{form}");
        let _ = std::fs::remove_file(dir.files.file("s"));
        let _ = std::fs::remove_file(dir.files.file("s.exact"));
        assert!(dir.run("seen --exact -n 50000 s pa").ok() == a, "{form}");
        let new = expected("diff", &[&b, &a], LF);
        assert!(dir.sh("cat pb | \"$petal\" seen s -").ok() == new, "{form}");
    }
}

#[test]
fn compressed_empty_file_is_empty() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nx");
    for none in [gz(b""), zst(b""), [gz(b""), gz(b"")].concat()] {
        dir.write("none", none);
        for strategy in STRATEGIES {
            for (args, out) in [
                ("common a none", ""),
                ("common none a", ""),
                ("diff a none", "x\ny\n"),
                ("diff none a", ""),
                ("dedup none", ""),
                ("dedup none a none", "x\ny\n"),
            ] {
                let args = format!("{args} {strategy}");
                assert_eq!(dir.run(&args).text(), out, "{args}");
            }
        }
    }
}

#[test]
fn text_that_begins_like_compressed_data_is_text() {
    let dir = TestDir::new();
    dir.write("b", "");
    for begin in [
        &b"\x1f"[..],
        b"\x1f\x8b",
        b"\x1f\x8b\x07",
        b"\x28\xb5\x2f",
        b"\x28\xb5\x2f\xfe",
        b"(\xb5/\n\xfd",
        b"P*M\x19",
        b"P*M",
        b"\x1f\n\x8b\x08",
    ] {
        for rest in [&b""[..], b"\nx\ny", b"z\n"] {
            let text = [begin, rest].concat();
            dir.write("a", &text);
            let expect = expected("dedup", &[&text], LF);
            assert!(dir.run("dedup a").ok() == expect, "{begin:?}");
            assert!(dir.run_with("dedup", &text).ok() == expect, "{begin:?}");
            assert!(dir.run_with("diff - b", &text).ok() == expect, "{begin:?}");
        }
    }
}

/// Fails unless all commands and strategies refuse the file `bad` and write no output.
#[track_caller]
fn refused(dir: &TestDir, how: &str, message: &str) {
    let _ = std::fs::remove_file(dir.files.file("out"));
    for (turn, strategy) in STRATEGIES.into_iter().enumerate() {
        for (command, names) in [
            (SET_COMMANDS[turn % 3], "bad a"),
            (SET_COMMANDS[(turn + 1) % 3], "a bad"),
            ("dedup", "a bad"),
        ] {
            let args = format!("{command} -q -m 8M {strategy} {names} -o out");
            let line = dir.run(&args).failure();
            assert!(line.contains("bad: ") && line.contains(message), "{how}: {args}: {line}");
            assert!(!dir.files.file("out").exists(), "{how}: {args}");
        }
    }
    for args in
        ["dedup --approx bad", "build -o out bad", "build -n 5 -o out bad", "seen out -n 5 bad"]
    {
        let output = dir.run(&format!("{args} -q"));
        assert!(
            output.code == Some(2) && output.err.contains(message),
            "{how}: {args}: {}",
            output.err
        );
    }
}

#[test]
fn truncated_compressed_file_is_an_error() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..30_000);
    let a = dir.read("a");
    for form in &FORMS[1..] {
        let whole = compress(form, &a, 7);
        // Shorter beginnings may be text.
        let magic = match form.split(' ').next() {
            Some("gz") => 3..=3,
            Some("xz") => 6..=6,
            Some("bz2") => 10..=14,
            _ => 4..=4,
        };
        for cut in magic.clone().chain([20, whole.len() / 3, whole.len() - 1]) {
            dir.write("bad", &whole[..cut]);
            refused(&dir, &format!("{form} cut at {cut}"), "cut short");
        }
        for cut in magic.chain([whole.len() - 1]) {
            dir.write("bad", &whole[..cut]);
            let line = dir.sh("cat bad | \"$petal\" dedup -q -o out -").failure();
            assert!(line.contains("-: ") && line.contains("cut short"), "{form}, {cut}: {line}");
        }
    }
}

#[test]
fn damage_in_the_middle_is_an_error() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..30_000);
    let a = dir.read("a");
    for (form, whole) in
        [("gz", gz(&a)), ("zst", zst(&a)), ("xz", xz(&a)), ("bz2", bz2(&a)), ("lz4", lz4(&a))]
    {
        let mut bad = whole.clone();
        let middle = bad.len() / 2;
        bad[middle..middle + 30].fill(0x55);
        dir.write("bad", &bad);
        refused(&dir, form, "damaged");
        // A flipped bit is an error, or has no effect: unused header fields, for example.
        for at in (0..whole.len()).step_by(whole.len() / 60) {
            let mut bad = whole.clone();
            bad[at] ^= 1 << (at % 8);
            dir.write("bad", &bad);
            let output = dir.run("dedup -q -m 8M -o out bad");
            // Without its first bytes it is text.
            let magic = if form == "bz2" { 15 } else { 6 };
            let same = output.code == Some(0) && (at < magic || dir.read("out") == a);
            assert!(same || output.code == Some(2), "{form}, byte {at}: {output:?}");
        }
    }
}

/// Damage in such a frame cannot be detected, but must not crash the program.
#[test]
fn damaged_frame_without_checksum_does_not_crash() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..30_000);
    let whole = zst_of(&dir.read("a"), 19, false);
    for at in (4..whole.len()).step_by(whole.len() / 60) {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        dir.write("bad", &bad);
        let output = dir.run("common -q -m 8M -o /dev/null a bad");
        assert!(output.code == Some(0) || output.code == Some(2), "byte {at}: {output:?}");
        assert!(!output.err.contains("panicked"), "byte {at}: {}", output.err);
    }
}

#[test]
fn zstd_window_over_an_eighth_of_the_limit_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    // Longer than a small window; a shorter frame would need a smaller window.
    dir.write("wide", zst_of(&b"x\n".repeat(1 << 20), 26, true));
    for args in ["common a wide", "diff wide a", "dedup wide", "dedup --approx wide"] {
        let line = dir.run(&format!("{args} -m 64M -o out")).failure();
        assert!(line.contains("wide: ") && line.contains("more than the 8 MiB"), "{line}");
        assert!(line.contains("raise -m to "), "{line}");
        assert!(!dir.files.file("out").exists());
    }
    assert_eq!(dir.run("common a wide -m 1G").text(), "x\n");
    assert_eq!(dir.run("dedup wide -m 512M").text(), "x\n");
}

/// Files that the programs have written, with their options.
#[test]
fn files_of_other_programs_are_read() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..30_000);
    let a = dir.read("a");
    let half = a.len() / 2;
    dir.write("one", &a[..half]);
    dir.write("two", &a[half..]);
    let programs = [
        "xz -c a",
        "xz -9e -c a",
        "xz -1 --check=sha256 --block-size=100000 -c a",
        "xz --check=none -c a",
        "xz --delta=dist=4 --lzma2 -c a",
        "xz -c one && xz -c two",
        "bzip2 -c a",
        "bzip2 -1 -c one && bzip2 -c two",
        "lz4 -c a",
        "lz4 -9 -B4 -BD --content-size -c a",
        "lz4 --no-frame-crc -BX -c a",
        "lz4 -B5 -c one && lz4 -B7 -BD -c two",
    ];
    for pack in programs {
        let program = pack.split(' ').next().unwrap();
        if std::process::Command::new(program).arg("--version").output().is_err() {
            common::skipped("files_of_other_programs_are_read", program);
            continue;
        }
        assert_eq!(dir.sh(&format!("({pack}) > p 2>/dev/null")).code, Some(0), "{pack}");
        assert!(dir.run("dedup -m 1G p").ok() == a, "{pack}");
        assert!(dir.sh("cat p | \"$petal\" dedup -m 1G --text").ok() == a, "{pack}");
    }
}

#[test]
fn decompression_over_an_eighth_of_the_limit_is_an_error() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    let mut options = lzma_rust2::XzOptions::with_preset(6);
    options.lzma_options.dict_size = 8 << 20;
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    std::io::Write::write_all(&mut writer, b"x\n").unwrap();
    dir.write("wide", writer.finish().unwrap());
    for args in ["common a wide", "diff wide a", "dedup wide", "dedup --approx wide"] {
        let line = dir.run(&format!("{args} -m 32M -o out")).failure();
        assert!(
            line.contains("wide: cannot read: decompressing its xz data needs 8.1 MiB"),
            "{line}"
        );
        assert!(line.contains("raise -m to 65 MiB, or decompress it first"), "{line}");
        assert!(!dir.files.file("out").exists());
    }
    assert_eq!(dir.run("common a wide -m 65M").text(), "x\n");
}

#[test]
fn zeros_behind_a_gzip_file_are_ignored_as_by_zcat() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\n");
    dir.write("padded", [gz(b"y\nz\n"), vec![0; 1000]].concat());
    for args in ["common a padded", "common padded a", "diff -q a padded --approx"] {
        let output = dir.run(args);
        assert_eq!(output.text().len(), 2, "{args}");
    }
    assert_eq!(dir.sh("\"$petal\" dedup < padded").text(), "y\nz\n");
    assert_eq!(dir.sh("cat padded | \"$petal\" dedup").text(), "y\nz\n");
}

/// Small files of several hundred MB of text, with many repeated lines.
#[test]
fn remove_stays_below_the_memory_limit() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("one"), 0..900_000);
    write_lines(&dir.files.file("two"), 600_000..1_500_000);
    let (one, two) = (dir.read("one"), dir.read("two"));
    dir.write("a", gz(&one).repeat(5));
    dir.write("b", zst_of(&two, 20, true).repeat(5));
    for (turn, (memory, jobs, names)) in
        [(8, 16, "a b"), (8, 2, "b a"), (16, 4, "a b"), (64, 2, "b a")].into_iter().enumerate()
    {
        let (command, strategy) = (SET_COMMANDS[turn % 3], STRATEGIES[(turn * 3 + 3) % 4]);
        let args = format!("{command} {strategy} -q -m {memory}M -j {jobs} -c {names}");
        let output = dir.run(&args);
        let over = output.peak.saturating_sub(memory << 20);
        assert!(over <= MEMORY_OVERHEAD, "{args}: {} KiB over the limit", over / 1024);
        let lines = [300_000, 600_000, 1_500_000][turn % 3];
        assert_eq!(output.text(), format!("{lines}\n"), "{args}");
    }
}
