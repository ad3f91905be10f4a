//! Every type of filter through the same verbs.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::{Place, write_lines};

/// Words that make a filter of each type; whether lines can be added, removed, united.
const TYPES: [(&str, &str, [bool; 3]); 10] = [
    ("bloom", "--type bloom", [true, false, true]),
    ("classic", "--type classic", [true, false, true]),
    ("counting", "--type counting", [true, true, true]),
    ("counting-classic", "--type counting-classic", [true, true, true]),
    ("quotient", "--type quotient", [true, true, true]),
    ("scalable", "--growing", [true, false, false]),
    ("windowed", "--window 5000w --now 1000000", [true, false, false]),
    ("static", "--type static", [false, false, false]),
    ("cascade", "--not-in b", [false, false, false]),
    ("wide", "--type wide", [true, false, true]),
];

/// Lists `a` and `b` without a common line, 2,000 lines each, and 50,000 `strangers`.
fn place() -> Place {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..2000);
    write_lines(&place.files.file("b"), 5000..7000);
    place.write("strangers", (0..50_000).map(|n| format!("no {n}\n")).collect::<String>());
    place
}

fn json(place: &Place, words: &str) -> serde_json::Value {
    serde_json::from_str(&place.run(words).text()).unwrap()
}

/// Room for both lists, for types that are planned.
fn room(kind: &str) -> &'static str {
    match kind {
        "static" | "cascade" => "",
        // Of what may come in a window, a third may come at once.
        "windowed" => "-n 12000",
        _ => "-n 4000",
    }
}

#[test]
fn every_type_is_built_asked_described_and_verified() {
    let place = place();
    for (kind, words, _) in TYPES {
        let room = room(kind);
        let build = |output: &str, more: &str| {
            place.run(&format!("build -q {words} {room} -p 0.01 -o {output} {more} a"))
        };
        build("f", "").ok();
        for more in ["-j 1", "-j 4"] {
            build("g", more).ok();
            assert!(place.read("g") == place.read("f"), "{kind}: the same lines, the same file");
        }
        assert!(place.run("check f a").ok() == place.read("a"), "{kind}");
        let wrong: u64 = String::from_utf8(place.run("check -c f strangers").out)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let (_, most) = petal_testkit::bounds::binomial_range(50_000, 0.01, 0.9999);
        assert!(wrong <= most, "{kind}: {wrong} of {most}");
        assert_eq!(place.run("verify f").text(), "f: sound\n");
        let info = json(&place, "info --json f");
        assert_eq!((&info["type"], &info["overfull"]), (&kind.into(), &false.into()), "{kind}");
        assert!((1950..=2050).contains(&info["estimated_keys"].as_u64().unwrap()), "{info}");
        assert!(info["rate_now"].as_f64().unwrap() <= 0.0102, "{info}");
        assert!(info["shape"].as_object().unwrap().len() >= 2, "{info}");
        let text = place.run("info f").text();
        assert!(text.starts_with(&format!("type      {kind}, ")), "{text}");
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
        // Other hashes: another file, the same answers.
        for more in ["--seed 5", "--keyed"] {
            build("g", more).ok();
            assert!(place.read("g") != place.read("f"), "{kind} {more}");
            assert!(place.run("check g a").ok() == place.read("a"), "{kind} {more}");
        }
        // Damage is found.
        let mut bytes = place.read("f");
        let at = bytes.len() - 40;
        bytes[at] ^= 4;
        place.write("damaged", &bytes);
        place.run("verify damaged").trouble();
        place.run("info damaged").trouble();
    }
}

#[test]
fn what_a_type_cannot_do_is_said_before_anything_is_done() {
    let place = place();
    for (kind, words, [adds, removes, unites]) in TYPES {
        let room = room(kind);
        place.run(&format!("build -q {words} {room} -p 1e-6 -o f a")).ok();
        let does = |verb: &str, can: bool| {
            let before = kit::look(&place.files.file("f"));
            let ran = place.run(verb);
            if can {
                ran.ok();
                return;
            }
            let line = ran.trouble();
            assert!(line.contains("f: a ") && line.contains(kind), "{verb}: {line}");
            assert!(kit::look(&place.files.file("f")) == before, "{verb}");
        };
        does("add -q f b", adds);
        if adds {
            assert!(place.run("check f a b").ok() == [place.read("a"), place.read("b")].concat());
        }
        does("remove -q f b", removes);
        if removes {
            assert!(place.run("check f a b").ok() == place.read("a"), "{kind}");
        }
        place.run(&format!("build -q {words} {room} -p 1e-6 -o f a")).ok();
        if kind != "cascade" {
            place.run(&format!("build -q {words} {room} -p 1e-6 -o g b")).ok();
        } else {
            place.run("build -q --not-in a -p 1e-6 -o g b").ok();
        }
        let ran = place.run("merge -q -o m f g");
        if unites {
            ran.ok();
            assert_eq!(place.run("check -c m a b").text(), "4000\n", "{kind}");
        } else {
            assert!(ran.trouble().contains("g: a "), "{kind}");
        }
    }
}

#[test]
fn a_growing_filter_needs_no_number_and_keeps_its_rate() {
    let place = place();
    write_lines(&place.files.file("many"), 100_000..300_000);
    let many = place.read("many");
    place.run_with("build -q --growing -p 1% -o s -", &many).ok();
    place.run("add s a").ok();
    place.run("build -q --type quotient --growing -p 1% -n 20_000 -o q many").ok();
    place.run("build -q --up-to 1e6 -p 1% -n 2000 -o u many").ok();
    for filter in ["s", "q", "u"] {
        assert_eq!(place.run(&format!("check -c {filter} many")).text(), "200000\n");
        let info = json(&place, &format!("info --json {filter}"));
        assert!(info["rate_now"].as_f64().unwrap() <= 0.01, "{info}");
        assert_eq!(place.run(&format!("check -c {filter} strangers")).code, Some(0));
    }
    // One that does not grow is full some day, and stays what it was.
    place.run("build -q --type quotient -o f a").ok();
    let before = kit::look(&place.files.file("f"));
    let line = place.run("add f many").trouble();
    assert_eq!(
        line.replace(|c: char| c.is_ascii_digit() || c == ',', ""),
        "petal: f: full at  keys planned for ; build it anew with a larger -n or with --growing"
    );
    let line = place.run("build -q --type quotient -n 1000 -o x many").trouble();
    assert!(line.contains("x: full at 1,") && line.contains("planned for 1,000"), "{line}");
    assert!(kit::look(&place.files.file("f")) == before);
    // Emptied, it gives room back.
    let size = |filter: &str| {
        json(&place, &format!("info --json {filter}"))["size_bytes"].as_u64().unwrap()
    };
    place.run("remove -q u many").ok();
    place.run("add u a").ok();
    place.run("shrink u -o small").ok();
    assert!(size("small") * 8 < size("u"));
    assert_eq!(place.run("check -c small a").text(), "2000\n");
    for (words, says) in
        [("shrink u -o x -p 5%", "leave out -p"), ("shrink s -o x", "cannot be shrunk")]
    {
        assert!(place.run(words).trouble().contains(says), "{words}");
    }
}

#[test]
fn a_cascade_is_never_wrong_about_its_lists() {
    let place = place();
    place.run("build -q --not-in strangers -p 10% -o f a").ok();
    assert!(place.run("check f strangers a").ok() == place.read("a"));
    assert_eq!(place.run("check -c f strangers").code, Some(1));
    let info = json(&place, "info --json f");
    assert_eq!((&info["type"], &info["inserted"]), (&"cascade".into(), &2000.into()));
    // A line in both cannot be.
    place
        .write("both", [place.read("b"), b"x\n".to_vec(), place.read("a")[..20].to_vec()].concat());
    place.run("build -q --not-in both -o g b").trouble();
    let line = place.run_with("build --not-in b -o g -", &place.read("b")).trouble();
    assert!(line.contains("b: 2,000 of its lines are in the other inputs too"), "{line}");
    let line = place.run_with("build --not-in - -o g -", b"x\n").trouble();
    assert!(line.contains("standard input is named twice"), "{line}");
    assert!(place.run("build --not-in missing -o g a").trouble().contains("missing: cannot read"));
    assert!(!place.files.file("g").exists());
}

#[test]
fn a_wide_filter_keeps_rates_that_64_bits_cannot() {
    let place = place();
    let line = place.run("build -p 1e-17 -o f a").trouble();
    assert!(line.contains("--type wide"), "{line}");
    place.run("build -q --type wide -p 1e-17 -o f a").ok();
    assert!(place.run("check f a strangers").ok() == place.read("a"));
    let info = json(&place, "info --json f");
    assert!(info["rate_now"].as_f64().unwrap() <= 1e-17 && info["target_rate"] == 1e-17, "{info}");
    place.run("build -q --type wide -n 2000 -m 8K -o f a").ok();
    assert!(json(&place, "info --json f")["size_bytes"].as_u64().unwrap() <= 8192);
}

#[test]
fn words_that_do_not_go_together() {
    let place = place();
    for (words, says) in [
        (
            "--width 4",
            "--width: a bloom filter has no counters; leave it out, or use --type counting or",
        ),
        ("--growing --type bloom", "--growing: a bloom filter does not grow"),
        ("--up-to 1e6 --type scalable", "--up-to: a scalable filter"),
        ("--window 1d --type bloom", "--window: a bloom filter forgets nothing"),
        ("--last 50 --growing --type scalable", "--last: a scalable filter forgets nothing"),
        ("--last 50 --growing", "--growing: a windowed filter does not grow"),
        ("--type windowed", "say with --window 7d or --last 1e6"),
        ("--window 1d -m 1M", "say that with -p"),
        ("--not-in b --type static", "--not-in: a static filter"),
        ("--type cascade", "--not-in which lines"),
        ("--type static -n 5", "-n: a static filter is made of the lines that come"),
        ("--type static -m 1M", "say that with -p"),
        ("--growing -m 1M", "say that with -p"),
        ("--type quotient -m 1M", "say that with -p"),
        ("--type static -p 1e-9 -m 1K", "more than 1 KiB, -m"),
        ("--type quotient -p 1e-9 -m 1K", "more than 1 KiB, -m"),
        ("--up-to 5", "--up-to: 5 keys is less than the 2,000 that"),
        ("--growing --type quotient --up-to 1999", "--up-to: 1,999 keys is less than"),
        ("--type static -p 1e-10", "-p: a static filter has at most 32 bits for a line"),
        ("--not-in b -p 1e-10", "-p: a cascade filter has at most 32 bits for a line"),
        ("--growing -p 1e-19", "-p: a scalable filter has 64-bit hashes"),
        ("--window 1d -n 5000 -p 1e-19", "-p: a windowed filter has 64-bit hashes"),
    ] {
        let line = place.run(&format!("build {words} -o f a")).trouble();
        assert!(line.contains(says), "{words}: {line}");
        assert!(!place.files.file("f").exists(), "{words}");
    }
    for words in [
        "--type nonsense",
        "--seed x",
        "--seed 1 --keyed",
        "--window 1",
        "--window 0s",
        "--last 0",
        "--last 5 --window 1d",
        "--last 5 -n 5",
        "--width 1",
        "--up-to 0",
    ] {
        assert_eq!(place.run(&format!("build {words} -o f a")).code, Some(2), "{words}");
    }
}

#[test]
fn what_is_planned_is_what_is_built() {
    let place = place();
    write_lines(&place.files.file("many"), 0..100_000);
    for (kind, words, _) in TYPES {
        let plan = format!("plan --json --type {kind} -n 100_000 -p 0.1%");
        if kind == "cascade" {
            assert!(place.run(&plan).trouble().contains("depends on both lists"));
            continue;
        }
        let n = match kind {
            "static" => "",
            "windowed" => "--last 100_000",
            _ => "-n 100_000",
        };
        let words = if kind == "windowed" { "" } else { words };
        place.run(&format!("build -q {words} {n} -p 0.1% -o f many")).ok();
        let built = json(&place, "info --json f")["size_bytes"].as_f64().unwrap();
        let plan = &json(&place, &plan)["plans"];
        assert_eq!((&plan[0]["type"], plan.as_array().unwrap().len()), (&kind.into(), 1));
        let planned = plan[0]["size_bytes"].as_f64().unwrap();
        assert!((planned / built - 1.0).abs() < 0.02, "{kind}: {planned} {built}");
        assert!(plan[0]["rate"].as_f64().unwrap() <= 0.001, "{plan}");
        let text = place.run(&format!("plan --type {kind} -n 100_000 -p 0.1%")).text();
        assert!(text.contains(kind) && !text.contains("NaN"), "{text}");
    }
    for (words, says) in [
        ("--type static -n 5", "--type static: is sized by -n and -p; give both"),
        ("--type quotient -n 1e6 -p 1% -m 1M", "more than 1 MiB; give"),
        ("--type static -n 5 -p 1e-12", "its lowest rate is 2.5e-10"),
    ] {
        let line = place.run(&format!("plan {words}")).trouble();
        assert!(line.contains(says), "{words}: {line}");
    }
}

#[test]
fn a_poor_rate_is_told() {
    let place = place();
    for kind in ["bloom", "counting-classic", "wide"] {
        let ran = place.run(&format!("build --type {kind} -m 1K -n 100_000 -o f a"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.err.starts_with("petal: warning: 100,000 keys in "), "{}", ran.err);
        assert_eq!(place.run(&format!("build --type {kind} -m 64K -o f a")).err, "");
    }
    assert_eq!(place.run("build -p 50% -o f a").err, "", "whoever says so knows it");
    place.run_with("build -n 1 -o f -", b"x\n").ok();
    let ran = place.run("add f strangers");
    assert!(ran.err.contains("planned for 1 key and holds more than "), "{}", ran.err);
    let err = place.run("build --seed -1 -o f a").err;
    assert!(err.contains("--seed") && !err.contains("-- -1"), "{err}");
}

#[test]
fn a_window_by_the_clock_forgets_and_a_window_by_count_too() {
    let place = place();
    let day = 86_400;
    let at = |days: u64| 1_000_000_000 + days * day;
    let now = |days: u64| format!("--now {}", at(days));
    place.run(&format!("build -q --window 7d -n 4000 -p 1e-6 -o w {} a", now(0))).ok();
    place.run(&format!("add w {} b", now(5))).ok();
    let check = |days: u64| place.run(&format!("check w {} a b", now(days))).out;
    let (a, b) = (place.read("a"), place.read("b"));
    let both = [a.clone(), b.clone()].concat();
    // Nothing within the week is forgotten, and all is after a third of a week more. To ask does
    // not change the file.
    for (days, held) in [(5, &both), (7, &both), (10, &b), (12, &b), (30, &Vec::new()), (6, &both)]
    {
        assert!(check(days) == *held, "after {days} days");
    }
    // Adding moves the clock on; a clock that goes back is ignored.
    place.run(&format!("add w {} a", now(11))).ok();
    assert!(check(11) == both && check(0) == both && check(16) == a);
    place.run(&format!("add -q w {} strangers", now(3))).ok();
    assert!(place.run(&format!("check w {} a", now(0))).ok() == a);
    // By the clock of the system, years have gone by.
    assert_eq!(place.run("check -c w a").code, Some(1));
    let info = json(&place, "info --json w");
    assert_eq!(info["type"], "windowed");
    // Too much at once costs rate, and is said; what is counted is planned for.
    let ran = place.run("build --window 1d -n 2000 -o o a");
    assert!(
        ran.err.contains("warning: more lines came within a part of the window"),
        "{}",
        ran.err
    );
    assert_eq!(place.run("build --window 1d -o o a").err, "");
    assert_eq!(json(&place, "info --json o")["overfull"], false);
    let text = place.run("info o").text();
    assert!(text.contains("\nwindow    1d, told last at "), "{text}");
    // By count: at least the last so many.
    place.run("build -q --last 2000 -p 1e-6 -o l a").ok();
    assert_eq!(place.run("check -c l a").text(), "2000\n");
    place.run("add l b").ok();
    assert_eq!(place.run("check -c l b").text(), "2000\n");
    let left: u64 =
        String::from_utf8(place.run("check -c l a").out).unwrap().trim().parse().unwrap();
    assert!(left < 700, "{left}");
    let text = place.run("info l").text();
    assert!(text.contains("\nwindow    the last 2,000 keys; it moves on by 1/3 of"), "{text}");
    assert_eq!(place.run("add l strangers").err, "", "what comes and goes is no overfilling");
    // A pipe needs no counting: the window says how much there is.
    place.run_with("build -q --last 100 -o p -", &both).ok();
    let line = place.run_with("build --window 1d -o p -", &both).trouble();
    assert!(line.contains("-n"), "{line}");
}

#[test]
fn what_grows_stays_within_its_memory() {
    let place = place();
    write_lines(&place.files.file("many"), 100_000..400_000);
    for words in ["--growing", "--type quotient --up-to 1e6"] {
        let line = place.run(&format!("build {words} -n 1000 -p 1% -m 128K -o g many")).trouble();
        assert!(line.contains("more than the 128 KiB of -m; raise -m"), "{words}: {line}");
        assert!(!place.files.file("g").exists());
        place.run(&format!("build -q {words} -n 1000 -p 1% -m 128K -o f a")).ok();
        place.run("add f many").ok();
    }
}

/// The last slots of a table would take longer than all others.
#[test]
fn a_large_table_is_full_soon() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..1_000_000);
    write_lines(&place.files.file("more"), 1_000_000..1_300_000);
    place.run("build -q --type quotient -p 1% -o f a").ok();
    let before = kit::look(&place.files.file("f"));
    let line = place.run("add f more").trouble();
    assert!(line.contains("f: full at 1,0") && line.contains("for 1,000,000; "), "{line}");
    assert!(kit::look(&place.files.file("f")) == before);
    let line = place.run("build --type quotient --up-to 1000 -n 1000 -o g more").trouble();
    assert!(line.ends_with("build it anew with a larger --up-to"), "{line}");
    // Copies of a line lie side by side, up to the end of the table.
    let line =
        place.sh("yes a | head -20000 | \"$petal\" build --type quotient -n 2e4 -o h -").trouble();
    assert!(line.ends_with("came so often that its place is; take --type counting"), "{line}");
}
