//! All filter types with all commands.

use crate::common::{self, TestDir, write_lines};

/// Each type, the options that select it, and whether it supports `add`, `remove` and `merge`.
const TYPES: [(&str, &str, [bool; 3]); 10] = [
    ("bloom", "--type bloom", [true, false, true]),
    ("classic", "--type classic", [true, false, true]),
    ("counting", "--type counting", [true, true, true]),
    ("counting-classic", "--type counting-classic", [true, true, true]),
    ("quotient", "--type quotient", [true, true, true]),
    ("vector-quotient", "--type vqf", [true, true, true]),
    ("scalable", "--growing", [true, false, false]),
    ("windowed", "--window 5000w --now 1000000", [true, false, false]),
    ("static", "--type static", [false, false, false]),
    ("cascade", "--not-in b", [false, false, false]),
];

/// A directory with `a` and `b`, 2,000 lines each, and 50,000 lines `strangers`; all distinct.
fn dir() -> TestDir {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..2000);
    write_lines(&dir.files.file("b"), 5000..7000);
    dir.write("strangers", (0..50_000).map(|n| format!("no {n}\n")).collect::<String>());
    dir
}

fn json(dir: &TestDir, args: &str) -> serde_json::Value {
    serde_json::from_str(&dir.run(args).text()).unwrap()
}

/// Returns the option for a capacity of both files.
fn capacity(kind: &str) -> &'static str {
    match kind {
        "static" | "cascade" => "",
        // At most a third of a window's lines may be added at the same time.
        "windowed" => "-n 12000",
        _ => "-n 4000",
    }
}

#[test]
fn every_type_is_built_checked_described_and_verified() {
    let dir = dir();
    for (kind, args, _) in TYPES {
        let capacity = capacity(kind);
        let build = |output: &str, more: &str| {
            dir.run(&format!("build -q {args} {capacity} -p 0.01 -o {output} {more} a"))
        };
        build("f", "").ok();
        for more in ["-j 1", "-j 4"] {
            build("g", more).ok();
            assert!(dir.read("g") == dir.read("f"), "{kind}: the same lines give the same file");
        }
        assert!(dir.run("check f a").ok() == dir.read("a"), "{kind}");
        let wrong: u64 =
            String::from_utf8(dir.run("check -c f strangers").out).unwrap().trim().parse().unwrap();
        let (_, most) = petal_testkit::bounds::binomial_range(50_000, 0.01, 0.9999);
        assert!(wrong <= most, "{kind}: {wrong} of {most}");
        assert_eq!(dir.run("verify f").text(), "f: valid\n");
        let info = json(&dir, "info --json f");
        assert_eq!((&info["type"], &info["is_overfull"]), (&kind.into(), &false.into()), "{kind}");
        assert!((1950..=2050).contains(&info["estimated_len"].as_u64().unwrap()), "{info}");
        assert!(info["estimated_fpr"].as_f64().unwrap() <= 0.0102, "{info}");
        assert!(info["layout"].as_object().unwrap().len() >= 2, "{info}");
        let text = dir.run("info f").text();
        assert!(text.starts_with(&format!("type      {kind}, ")), "{text}");
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
        // Another hash gives another file with the same lines.
        for more in ["--seed 5", "--keyed"] {
            build("g", more).ok();
            assert!(dir.read("g") != dir.read("f"), "{kind} {more}");
            assert!(dir.run("check g a").ok() == dir.read("a"), "{kind} {more}");
        }
        // Damage is detected.
        let mut bytes = dir.read("f");
        let at = bytes.len() - 40;
        bytes[at] ^= 4;
        dir.write("damaged", &bytes);
        dir.run("verify damaged").failure();
        dir.run("info damaged").failure();
    }
}

#[test]
fn unsupported_operations_are_errors_before_any_work() {
    let dir = dir();
    for (kind, args, [adds, removes, merges]) in TYPES {
        let capacity = capacity(kind);
        dir.run(&format!("build -q {args} {capacity} -p 1e-6 -o f a")).ok();
        let does = |args: &str, can: bool| {
            let before = common::inode_and_content(&dir.files.file("f"));
            let output = dir.run(args);
            if can {
                output.ok();
                return;
            }
            let line = output.failure();
            assert!(line.contains("f: a ") && line.contains(kind), "{args}: {line}");
            assert!(common::inode_and_content(&dir.files.file("f")) == before, "{args}");
        };
        does("add -q f b", adds);
        if adds {
            assert!(dir.run("check f a b").ok() == [dir.read("a"), dir.read("b")].concat());
        }
        does("remove -q f b", removes);
        if removes {
            assert!(dir.run("check f a b").ok() == dir.read("a"), "{kind}");
        }
        dir.run(&format!("build -q {args} {capacity} -p 1e-6 -o f a")).ok();
        if kind != "cascade" {
            dir.run(&format!("build -q {args} {capacity} -p 1e-6 -o g b")).ok();
        } else {
            dir.run("build -q --not-in a -p 1e-6 -o g b").ok();
        }
        let output = dir.run("merge -q -o m f g");
        if merges {
            output.ok();
            assert_eq!(dir.run("check -c m a b").text(), "4000\n", "{kind}");
        } else {
            assert!(output.failure().contains("g: a "), "{kind}");
        }
    }
}

#[test]
fn scalable_filter_needs_no_capacity_and_keeps_its_rate() {
    let dir = dir();
    write_lines(&dir.files.file("many"), 100_000..300_000);
    let many = dir.read("many");
    dir.run_with("build -q --growing -p 1% -o s -", &many).ok();
    dir.run("add s a").ok();
    dir.run("build -q --type quotient --growing -p 1% -n 20_000 -o q many").ok();
    dir.run("build -q --max-capacity 1e6 -p 1% -n 2000 -o u many").ok();
    for filter in ["s", "q", "u"] {
        assert_eq!(dir.run(&format!("check -c {filter} many")).text(), "200000\n");
        let info = json(&dir, &format!("info --json {filter}"));
        assert!(info["estimated_fpr"].as_f64().unwrap() <= 0.01, "{info}");
        assert_eq!(dir.run(&format!("check -c {filter} strangers")).code, Some(0));
    }
    // A filter that does not grow is full at some point, and a failed command does not change it.
    dir.run("build -q --type quotient -o f a").ok();
    let before = common::inode_and_content(&dir.files.file("f"));
    let line = dir.run("add f many").failure();
    assert_eq!(
        line.replace(|c: char| c.is_ascii_digit() || c == ',', ""),
        "petal: f: full at  keys planned for ; build it again with a higher -n or build it again with --growing"
    );
    let line = dir.run("build -q --type quotient -n 1000 -o x many").failure();
    assert!(line.contains("x: full at 1,") && line.contains("planned for 1,000"), "{line}");
    assert!(common::inode_and_content(&dir.files.file("f")) == before);
    // After removals it can be shrunk.
    let size =
        |filter: &str| json(&dir, &format!("info --json {filter}"))["size_bytes"].as_u64().unwrap();
    dir.run("remove -q u many").ok();
    dir.run("add u a").ok();
    dir.run("shrink u -o small").ok();
    assert!(size("small") * 8 < size("u"));
    assert_eq!(dir.run("check -c small a").text(), "2000\n");
    for (args, message) in
        [("shrink u -o x -p 5%", "leave out -p"), ("shrink s -o x", "cannot be shrunk")]
    {
        assert!(dir.run(args).failure().contains(message), "{args}");
    }
}

#[test]
fn a_cascade_is_never_wrong_about_its_lists() {
    let dir = dir();
    dir.run("build -q --not-in strangers -p 10% -o f a").ok();
    assert!(dir.run("check f strangers a").ok() == dir.read("a"));
    assert_eq!(dir.run("check -c f strangers").code, Some(1));
    let info = json(&dir, "info --json f");
    assert_eq!((&info["type"], &info["inserted"]), (&"cascade".into(), &2000.into()));
    // A line in both files is an error.
    dir.write("both", [dir.read("b"), b"x\n".to_vec(), dir.read("a")[..20].to_vec()].concat());
    dir.run("build -q --not-in both -o g b").failure();
    let line = dir.run_with("build --not-in b -o g -", &dir.read("b")).failure();
    assert!(line.contains("b: 2,000 lines are in the other inputs too"), "{line}");
    let line = dir.run_with("build --not-in - -o g -", b"x\n").failure();
    assert!(line.contains("-: is named twice"), "{line}");
    assert!(dir.run("build --not-in missing -o g a").failure().contains("missing: cannot read"));
    assert!(!dir.files.file("g").exists());
}

#[test]
fn rate_that_hashes_do_not_reach_is_refused_with_this_reason() {
    let dir = dir();
    for kind in ["bloom", "classic", "counting", "quotient", "vector-quotient"] {
        let line = dir.run(&format!("build --type {kind} -p 1e-17 -o f a")).failure();
        assert!(line.contains("with 64-bit hashes"), "{kind}: {line}");
    }
}

#[test]
fn conflicting_build_options_are_errors() {
    let dir = dir();
    for (args, message) in [
        (
            "--width 4",
            "--width: a bloom filter has no counters; leave out --width, or use --type counting or",
        ),
        ("--growing --type bloom", "--growing: a bloom filter does not grow"),
        ("--max-capacity 1e6 --type scalable", "--max-capacity: a scalable filter"),
        ("--window 1d --type bloom", "--window: a bloom filter forgets no lines"),
        ("--last 50 --growing --type scalable", "--last: a scalable filter forgets no lines"),
        ("--last 50 --growing", "--growing: a windowed filter does not grow"),
        ("--type windowed", "specify --window, e.g. 7d, or --last, e.g. 1e6"),
        ("--window 1d --size 1M", "specify -p"),
        ("--not-in b --type static", "--not-in: a static filter"),
        ("--type cascade", "specify --not-in"),
        (
            "--type static -n 5",
            "-n: a static filter is sized by the lines that it is built from; leave out -n",
        ),
        ("--type static --size 1M", "specify -p"),
        ("--growing --size 1M", "specify -p"),
        ("--type quotient --size 1M", "specify -p"),
        ("--type static -p 1e-9 --size 1K", "more than 1 KiB, the limit; raise --size"),
        ("--type quotient -p 1e-9 --size 1K", "more than 1 KiB, the limit; raise --size"),
        ("--max-capacity 5", "--max-capacity: 5 keys is less than the initial capacity of 2,000"),
        (
            "--growing --type quotient --max-capacity 1999",
            "--max-capacity: 1,999 keys is less than",
        ),
        ("--type static -p 1e-10", "-p: a static filter has at most 32 bits for a line"),
        ("--not-in b -p 1e-10", "-p: a cascade filter has at most 32 bits for a line"),
        ("--growing -p 1e-19", "-p: a scalable filter has 64-bit hashes"),
        ("--window 1d -n 5000 -p 1e-19", "-p: a windowed filter has 64-bit hashes"),
    ] {
        let line = dir.run(&format!("build {args} -o f a")).failure();
        assert!(line.contains(message), "{args}: {line}");
        assert!(!dir.files.file("f").exists(), "{args}");
    }
    for args in [
        "--type nonsense",
        "--seed x",
        "--seed 1 --keyed",
        "--window 1",
        "--window 0s",
        "--last 0",
        "--last 5 --window 1d",
        "--last 5 -n 5",
        "--width 1",
        "--max-capacity 0",
    ] {
        assert_eq!(dir.run(&format!("build {args} -o f a")).code, Some(2), "{args}");
    }
}

/// In much memory and in little, from files and from pipes.
#[test]
fn cascade_of_the_same_lines_is_the_same_file() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("bad"), 0..400_000);
    write_lines(&dir.files.file("good"), 400_000..1_600_000);
    dir.run("build -q -o files --not-in good bad").ok();
    for (limit, inputs) in
        [("1G", "<(cat good) <(cat bad)"), ("8M", "<(cat good) bad"), ("8M", "good bad")]
    {
        dir.sh(&format!("exec $petal build -q -m {limit} -o other --not-in {inputs}")).ok();
        assert!(dir.read("other") == dir.read("files"), "{limit} {inputs}");
    }
    assert_eq!(dir.run("check -c files bad good").text(), "400000\n");
}

#[test]
fn plan_matches_build() {
    let dir = dir();
    write_lines(&dir.files.file("many"), 0..100_000);
    for (kind, args, _) in TYPES {
        let plan = format!("plan --json --type {kind} -n 100_000 -p 0.1%");
        if kind == "cascade" {
            assert!(dir.run(&plan).failure().contains("depends on both lists"));
            continue;
        }
        let n = match kind {
            "static" => "",
            "windowed" => "--last 100_000",
            _ => "-n 100_000",
        };
        let args = if kind == "windowed" { "" } else { args };
        dir.run(&format!("build -q {args} {n} -p 0.1% -o f many")).ok();
        let built = json(&dir, "info --json f")["size_bytes"].as_f64().unwrap();
        let plan = &json(&dir, &plan)["plans"];
        assert_eq!((&plan[0]["type"], plan.as_array().unwrap().len()), (&kind.into(), 1));
        let planned = plan[0]["size_bytes"].as_f64().unwrap();
        assert!((planned / built - 1.0).abs() < 0.02, "{kind}: {planned} {built}");
        assert!(plan[0]["fpr"].as_f64().unwrap() <= 0.001, "{plan}");
        let text = dir.run(&format!("plan --type {kind} -n 100_000 -p 0.1%")).text();
        assert!(text.contains(kind) && !text.contains("NaN"), "{text}");
    }
    for (args, message) in [
        ("--type static -p 1%", "--type static: needs -n and -p; specify both"),
        ("--type quotient -n 1e6 -p 1% --size 1M", "more than 1 MiB; raise"),
        ("--type static -n 5 -p 1e-12", "its lowest rate is 2.5e-10"),
    ] {
        let line = dir.run(&format!("plan {args}")).failure();
        assert!(line.contains(message), "{args}: {line}");
    }
}

#[test]
fn high_rate_gives_a_warning() {
    let dir = dir();
    for kind in ["bloom", "counting-classic"] {
        let output = dir.run(&format!("build --type {kind} --size 8K -n 100_000 -o f a"));
        assert_eq!(output.code, Some(0), "{}", output.err);
        assert!(output.err.starts_with("petal: warning: 100,000 keys in "), "{}", output.err);
        assert_eq!(dir.run(&format!("build --type {kind} --size 64K -o f a")).err, "");
    }
    assert_eq!(
        dir.run("build -p 50% -o f a").err,
        "",
        "no warning for a high rate that was given with -p"
    );
    dir.run_with("build -n 1 -o f -", b"x\n").ok();
    let output = dir.run("add f strangers");
    assert!(output.err.contains("planned for 1 key and has "), "{}", output.err);
    let err = dir.run("build --seed -1 -o f a").err;
    assert!(err.contains("--seed") && !err.contains("-- -1"), "{err}");
}

#[test]
fn windowed_filters_forget_by_time_and_by_count() {
    let dir = dir();
    let day = 86_400;
    let at = |days: u64| 1_000_000_000 + days * day;
    let now = |days: u64| format!("--now {}", at(days));
    dir.run(&format!("build -q --window 7d -n 4000 -p 1e-6 -o w {} a", now(0))).ok();
    dir.run(&format!("add w {} b", now(5))).ok();
    let check = |days: u64| dir.run(&format!("check w {} a b", now(days))).out;
    let (a, b) = (dir.read("a"), dir.read("b"));
    let both = [a.clone(), b.clone()].concat();
    // Lines are kept for a week and forgotten after a third of a week more. `check` does not change
    // the file.
    for (days, expected) in
        [(5, &both), (7, &both), (10, &b), (12, &b), (30, &Vec::new()), (6, &both)]
    {
        assert!(check(days) == *expected, "after {days} days");
    }
    // `add` advances the clock of the filter; an earlier time is ignored.
    dir.run(&format!("add w {} a", now(11))).ok();
    assert!(check(11) == both && check(0) == both && check(16) == a);
    dir.run(&format!("add -q w {} strangers", now(3))).ok();
    assert!(dir.run(&format!("check w {} a", now(0))).ok() == a);
    // By the system clock the window has passed.
    assert_eq!(dir.run("check -c w a").code, Some(1));
    let info = json(&dir, "info --json w");
    assert_eq!(info["type"], "windowed");
    // Too many lines at the same time raise the rate, with a warning; counted lines do not.
    let output = dir.run("build --window 1d -n 2000 -o o a");
    assert!(output.err.contains("warning: a part of the window has more lines"), "{}", output.err);
    assert_eq!(dir.run("build --window 1d -o o a").err, "");
    assert_eq!(json(&dir, "info --json o")["is_overfull"], false);
    let text = dir.run("info o").text();
    assert!(text.contains("\nwindow    1d, clock at "), "{text}");
    assert!(text.contains(" (Unix time); it advances in steps of 8h\n"), "{text}");
    // A window is rounded up to a multiple of 3 seconds: 4 s forgets a line after 6 to 8 s.
    dir.run("build -q --window 4s --now 100 -o s a").ok();
    let text = dir.run("info s").text();
    assert!(text.contains("4s, clock at 100 (Unix time); it advances in steps of 2s\n"), "{text}");
    assert_eq!(dir.run("check -c s a --now 107").text(), "2000\n");
    assert_eq!(dir.run("check -c s a --now 108").code, Some(1));
    // By count: at least the last 2,000.
    dir.run("build -q --last 2000 -p 1e-6 -o l a").ok();
    assert_eq!(dir.run("check -c l a").text(), "2000\n");
    dir.run("add l b").ok();
    assert_eq!(dir.run("check -c l b").text(), "2000\n");
    let left: u64 = String::from_utf8(dir.run("check -c l a").out).unwrap().trim().parse().unwrap();
    assert!(left < 700, "{left}");
    let text = dir.run("info l").text();
    assert!(
        text.contains("\nwindow    the last 2,000 keys; it advances in steps of 667 keys\n"),
        "{text}"
    );
    assert_eq!(dir.run("add l strangers").err, "", "no warning: old lines are forgotten");
    // A pipe needs no capacity with --last.
    dir.run_with("build -q --last 100 -o p -", &both).ok();
    let line = dir.run_with("build --window 1d -o p -", &both).failure();
    assert!(line.contains("-n"), "{line}");
}

#[test]
fn growing_filter_stays_within_its_memory() {
    let dir = dir();
    write_lines(&dir.files.file("many"), 100_000..400_000);
    for args in ["--growing", "--type quotient --max-capacity 1e6"] {
        let line = dir.run(&format!("build {args} -n 1000 -p 1% --size 128K -o g many")).failure();
        assert!(line.contains("more than the limit of 128 KiB; raise --size"), "{args}: {line}");
        assert!(!dir.files.file("g").exists());
        dir.run(&format!("build -q {args} -n 1000 -p 1% --size 128K -o f a")).ok();
        dir.run("add f many").ok();
    }
}

/// A quotient filter is full before its last slots, whose inserts would be slow.
#[test]
fn crowded_quotient_filter_is_full() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..1_000_000);
    write_lines(&dir.files.file("more"), 1_000_000..1_300_000);
    dir.run("build -q --type quotient -p 1% -o f a").ok();
    let before = common::inode_and_content(&dir.files.file("f"));
    let line = dir.run("add f more").failure();
    assert!(line.contains("f: full at 1,0") && line.contains("planned for 1,000,000; "), "{line}");
    assert!(common::inode_and_content(&dir.files.file("f")) == before);
    let line = dir.run("build --type quotient --max-capacity 1000 -n 1000 -o g more").failure();
    assert!(line.ends_with("build it again with a higher --max-capacity"), "{line}");
    // Copies of a line are stored next to each other, up to the end of the table.
    let line =
        dir.sh("yes a | head -20000 | \"$petal\" build --type quotient -n 2e4 -o h -").failure();
    assert!(line.ends_with(": one line occurs too often; use --type counting"), "{line}");
}
