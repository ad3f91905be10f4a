//! Compressed inputs: the same answers as of plain files, however they come; what is damaged is
//! trouble and never a wrong answer.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::pack::{FORMS, gz, packed, zst, zst_of};
use kit::{Place, STRATEGIES, VERBS, expected, overlapping, write_lines};
use petal_testkit::model::LF;
use petal_testkit::nasty::{Recipe, related};

/// Every form of the first input beside every form of the second, in files, redirected and piped.
#[test]
fn any_form_gives_the_same_bytes() {
    let place = Place::new();
    let mut turn = 0;
    for seed in [2, 9] {
        let files = related(seed, Recipe { max_lines: 2000, ..Recipe::small() });
        for form_a in FORMS {
            place.write("a", packed(form_a, &files[0], seed));
            for form_b in FORMS {
                place.write("b", packed(form_b, &files[1], seed + 1));
                let verb = VERBS[turn % 3];
                let expect = expected(verb, &[&files[0], &files[1]], LF);
                let strategy = STRATEGIES[turn / 3 % 4];
                turn += 1;
                let run = format!("$petal {verb} -q -m 8M {strategy}");
                let scripts = [
                    format!("{run} a b"),
                    format!("{run} - b < a"),
                    format!("{run} a - < b"),
                    format!("cat a | {run} - b"),
                    format!("{run} <(cat a) <(cat b)"),
                ];
                // Two of them, shifted each time: every way meets every form on both sides.
                for script in scripts.iter().cycle().skip(turn % 5 + turn / 5).take(2) {
                    let out = place.sh(script).ok();
                    assert!(out == expect, "seed {seed}: {form_a}, {form_b}: {script}");
                }
            }
        }
    }
}

/// Large enough that 8 MiB do not hold it: strategies spill, and read it several times.
#[test]
fn every_strategy_spills_to_the_same_bytes() {
    let place = Place::new();
    let [a, b] = overlapping(400_000, 10, 1);
    write_lines(&place.files.file("a"), a);
    write_lines(&place.files.file("b"), b);
    let (a, b) = (place.read("a"), place.read("b"));
    for (form_a, form_b) in [("gz in members", "zst in frames"), ("zst", "plain"), ("plain", "gz")]
    {
        place.write("pa", packed(form_a, &a, 5));
        place.write("pb", packed(form_b, &b, 6));
        for verb in VERBS {
            let expect = expected(verb, &[&a, &b], LF);
            for (strategy, jobs) in STRATEGIES.into_iter().zip([1, 2, 4, 2]) {
                let words = format!("{verb} -m 8M -j {jobs} {strategy} pa pb");
                assert!(place.run(&words).ok() == expect, "{form_a}, {form_b}: {words}");
            }
        }
    }
}

#[test]
fn filters_are_made_of_and_asked_with_packed_lines() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..20_000);
    write_lines(&place.files.file("b"), 10_000..40_000);
    let (a, b) = (place.read("a"), place.read("b"));
    place.run("build -o plain a").ok();
    place.run("check -o hits plain b").ok();
    for form in FORMS {
        place.write("pa", packed(form, &a, 3));
        place.write("pb", packed(form, &b, 4));
        place.run("build -o f pa").ok();
        assert!(place.read("f") == place.read("plain"), "{form}");
        assert!(place.run("check f pb").ok() == place.read("hits"), "{form}");
        let piped = place.sh("cat pa | \"$petal\" build -o g -n 20000 - && cmp f g");
        assert_eq!(piped.code, Some(0), "{form}: {}", piped.err);
        assert!(place.sh("\"$petal\" check f - < pb").ok() == place.read("hits"), "{form}");
        place.run("add -q g pb").ok();
        place.run("build -q -o h -n 20000 a b").ok();
        assert!(place.read("g") == place.read("h"), "{form}");
        let _ = std::fs::remove_file(place.files.file("s"));
        let _ = std::fs::remove_file(place.files.file("s.exact"));
        assert!(place.run("seen --exact -n 50000 s pa").ok() == a, "{form}");
        let new = expected("diff", &[&b, &a], LF);
        assert!(place.sh("cat pb | \"$petal\" seen s -").ok() == new, "{form}");
    }
}

#[test]
fn packed_nothing_is_nothing() {
    let place = Place::new();
    place.write("a", "x\ny\nx");
    for none in [gz(b""), zst(b""), [gz(b""), gz(b"")].concat()] {
        place.write("none", none);
        for strategy in STRATEGIES {
            for (words, out) in [
                ("common a none", ""),
                ("common none a", ""),
                ("diff a none", "x\ny\n"),
                ("diff none a", ""),
                ("dedup none", ""),
                ("dedup none a none", "x\ny\n"),
            ] {
                let words = format!("{words} {strategy}");
                assert_eq!(place.run(&words).text(), out, "{words}");
            }
        }
    }
}

#[test]
fn what_only_begins_like_packed_data_is_text() {
    let place = Place::new();
    place.write("b", "");
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
            place.write("a", &text);
            let expect = expected("dedup", &[&text], LF);
            assert!(place.run("dedup a").ok() == expect, "{begin:?}");
            assert!(place.run_with("dedup", &text).ok() == expect, "{begin:?}");
            assert!(place.run_with("diff - b", &text).ok() == expect, "{begin:?}");
        }
    }
}

/// In every strategy, at both places, and by the verbs of filters: nothing at `-o`.
#[track_caller]
fn refused(place: &Place, how: &str, says: &str) {
    let _ = std::fs::remove_file(place.files.file("out"));
    for (turn, strategy) in STRATEGIES.into_iter().enumerate() {
        for (verb, names) in
            [(VERBS[turn % 3], "bad a"), (VERBS[(turn + 1) % 3], "a bad"), ("dedup", "a bad")]
        {
            let words = format!("{verb} -q -m 8M {strategy} {names} -o out");
            let line = place.run(&words).trouble();
            assert!(line.contains("bad: ") && line.contains(says), "{how}: {words}: {line}");
            assert!(!place.files.file("out").exists(), "{how}: {words}");
        }
    }
    for words in
        ["dedup --approx bad", "build -o out bad", "build -n 5 -o out bad", "seen out -n 5 bad"]
    {
        let ran = place.run(&format!("{words} -q"));
        assert!(ran.code == Some(2) && ran.err.contains(says), "{how}: {words}: {}", ran.err);
    }
}

#[test]
fn a_file_cut_short_is_trouble() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..30_000);
    let a = place.read("a");
    for form in &FORMS[1..] {
        let whole = packed(form, &a, 7);
        for cut in [5, whole.len() / 3, whole.len() - 1] {
            place.write("bad", &whole[..cut]);
            refused(&place, &format!("{form} cut at {cut}"), "cut short");
        }
        let line = place.sh("cat bad | \"$petal\" dedup -q -o out -").trouble();
        assert!(line.contains("-: ") && line.contains("cut short"), "{line}");
    }
}

#[test]
fn damage_in_the_middle_is_trouble() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..30_000);
    let a = place.read("a");
    for (form, whole) in [("gz", gz(&a)), ("zst", zst(&a))] {
        let mut bad = whole.clone();
        let middle = bad.len() / 2;
        bad[middle..middle + 30].fill(0x55);
        place.write("bad", &bad);
        refused(&place, form, "damaged");
        // Single bits: noticed, or without effect, as in a header's unused fields.
        for at in (0..whole.len()).step_by(whole.len() / 60) {
            let mut bad = whole.clone();
            bad[at] ^= 1 << (at % 8);
            place.write("bad", &bad);
            let ran = place.run("dedup -q -m 8M -o out bad");
            let same = ran.code == Some(0) && (at < 4 || place.read("out") == a);
            assert!(same || ran.code == Some(2), "{form}, byte {at}: {ran:?}");
        }
    }
}

/// Such a frame may change unnoticed, which no reader can help; it must not break anything.
#[test]
fn damage_of_a_frame_without_a_checksum_breaks_nothing() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..30_000);
    let whole = zst_of(&place.read("a"), 19, false);
    for at in (4..whole.len()).step_by(whole.len() / 60) {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        place.write("bad", &bad);
        let ran = place.run("common -q -m 8M -o /dev/null a bad");
        assert!(ran.code == Some(0) || ran.code == Some(2), "byte {at}: {ran:?}");
        assert!(!ran.err.contains("panicked"), "byte {at}: {}", ran.err);
    }
}

#[test]
fn a_window_over_an_eighth_of_the_cap_is_refused() {
    let place = Place::new();
    place.write("a", "x\n");
    // Longer than a small window, else the frame would ask for less.
    place.write("wide", zst_of(&b"x\n".repeat(1 << 20), 26, true));
    for words in ["common a wide", "diff wide a", "dedup wide", "dedup --approx wide"] {
        let line = place.run(&format!("{words} -m 64M -o out")).trouble();
        assert!(line.contains("wide: ") && line.contains("more than the 8 MiB"), "{line}");
        assert!(line.contains("raise -m to "), "{line}");
        assert!(!place.files.file("out").exists());
    }
    assert_eq!(place.run("common a wide -m 1G").text(), "x\n");
    assert_eq!(place.run("dedup wide -m 512M").text(), "x\n");
}

#[test]
fn zeros_behind_a_gzip_file_are_ignored_as_by_zcat() {
    let place = Place::new();
    place.write("a", "x\ny\n");
    place.write("padded", [gz(b"y\nz\n"), vec![0; 1000]].concat());
    for words in ["common a padded", "common padded a", "diff -q a padded --approx"] {
        let ran = place.run(words);
        assert_eq!(ran.text().len(), 2, "{words}");
    }
    assert_eq!(place.sh("\"$petal\" dedup < padded").text(), "y\nz\n");
    assert_eq!(place.sh("cat padded | \"$petal\" dedup").text(), "y\nz\n");
}

/// Some hundred MB of text in each, most lines of it repeated; the files are small.
#[test]
fn the_cap_holds() {
    let place = Place::new();
    write_lines(&place.files.file("one"), 0..900_000);
    write_lines(&place.files.file("two"), 600_000..1_500_000);
    let (one, two) = (place.read("one"), place.read("two"));
    place.write("a", gz(&one).repeat(5));
    place.write("b", zst_of(&two, 20, true).repeat(5));
    for (turn, (cap, jobs, names)) in
        [(8, 16, "a b"), (8, 2, "b a"), (16, 4, "a b"), (64, 2, "b a")].into_iter().enumerate()
    {
        let (verb, strategy) = (VERBS[turn % 3], STRATEGIES[(turn * 3 + 3) % 4]);
        let words = format!("{verb} {strategy} -q -m {cap}M -j {jobs} -c {names}");
        let ran = place.run(&words);
        let over = ran.peak.saturating_sub(cap << 20);
        assert!(over <= 16 << 20, "{words}: {} KiB over the cap", over / 1024);
        let lines = [300_000, 600_000, 1_500_000][turn % 3];
        assert_eq!(ran.text(), format!("{lines}\n"), "{words}");
    }
}
