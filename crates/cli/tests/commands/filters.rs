//! `build`, `add`, `check`, `merge`, `info`, `verify` and `plan` on Bloom filters.

use std::collections::HashSet;

use crate::common::{self, TestDir, run, write_lines};

/// A directory with the files `a` (1,000 lines), `b` (1,000 other lines), and a filter `f` of `a`.
fn dir() -> TestDir {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..1000);
    write_lines(&dir.files.file("b"), 5000..6000);
    dir.run("build -q -p 1e-6 -o f a").ok();
    dir
}

#[test]
fn check_prints_the_hits_and_exits_like_grep() {
    let dir = dir();
    let (a, b) = (dir.read("a"), dir.read("b"));
    let all = [a.clone(), b.clone()].concat();
    for jobs in [1, 4] {
        let check = |args: &str| dir.run(&format!("check -j {jobs} {args}"));
        assert!(check("f a").ok() == a && check("f b a").ok() == a);
        assert!(check("-v f a b").ok() == b);
        assert_eq!(check("-c f a b").text(), "1000\n");
        assert_eq!(check("-c -v f a b b").text(), "2000\n");
        for (args, out) in [("f b", ""), ("-v f a", ""), ("-c f b", "0\n"), ("-v -c f a", "0\n")] {
            let output = check(args);
            assert_eq!((output.code, output.out), (Some(1), out.into()), "{args}");
            assert_eq!(output.err, "", "exit code 1 is not an error");
        }
    }
    // Repeated lines are printed each time, in input order.
    assert_eq!(
        dir.run_with("check f", &[a.clone(), a.clone()].concat()).ok(),
        [a.clone(), a].concat()
    );
    // The output file is written even if no line was found.
    assert_eq!(dir.run_with("check f -v -o out -", &all).code, Some(0));
    assert_eq!(dir.read("out"), b);
    assert_eq!(dir.run("check f b -o out").code, Some(1));
    assert_eq!(dir.read("out"), b"");
}

#[test]
fn lines_on_the_list_are_never_reported() {
    let dir = dir();
    // A third of the other lines are false positives.
    let b = dir.read("b");
    dir.run("build -q -n 1000 -p 30% -o poor a").ok();
    let wrong = dir.run("check poor b").ok();
    let count = wrong.iter().filter(|&&byte| byte == b'\n').count();
    assert!((200..400).contains(&count), "{count}");
    dir.write("fine", &wrong);
    for jobs in [1, 4] {
        let check = |args: &str| dir.run(&format!("check -j {jobs} --allow fine poor {args}"));
        assert!(check("a b").ok() == dir.read("a"), "no false positives with --allow");
        assert!(check("-v a b").ok() == b, "the known false positives are printed as absent");
        assert_eq!(check("-c a b").text(), "1000\n");
        assert_eq!((check("b").code, check("-c b").out), (Some(1), b"0\n".to_vec()));
    }
    // The list may contain lines of the filter and repeats, come from a pipe, or be compressed.
    let own: Vec<u8> =
        dir.read("a").split_inclusive(|&byte| byte == b'\n').take(10).flatten().copied().collect();
    let output = dir.run_with("check --allow - -c f a", &[own.clone(), own.clone()].concat());
    assert_eq!(output.text(), "990\n");
    dir.write("own.gz", common::pack::gz(&own));
    assert_eq!(dir.run("check --allow own.gz -c f a").text(), "990\n");
    dir.write("none", "");
    assert_eq!(dir.run("check --allow none -c f a").text(), "1000\n");
    dir.run_with("check --allow - f -", &own).failure();
    assert!(dir.run("check --allow missing f a").failure().contains("missing: cannot read"));
    assert!(dir.run("check --allow fine f a -o fine").failure().contains("same file"));
    write_lines(&dir.files.file("long"), 0..1_000_000);
    let line = dir.run("check -m 8M --allow long f a").failure();
    assert!(line.contains("long: has too many lines") && line.contains("raise -m"), "{line}");
    assert_eq!(dir.run("check -m 64M --allow long -c f a").code, Some(1));
}

#[test]
fn lines_may_end_in_nul() {
    let dir = TestDir::new();
    dir.write("a", "one\ntwo\0three\0");
    dir.run("build -q -z -p 1e-6 -o f a").ok();
    assert_eq!(dir.run_with("check -z f", b"three\0x\0one\ntwo").ok(), b"three\0one\ntwo\0");
}

#[test]
fn build_is_deterministic() {
    let dir = dir();
    let first = dir.read("f");
    for args in ["-j 1 a", "-j 4 a", "-n 1000 a", "-n 1e3 -j 2 - "] {
        let script = format!("\"$petal\" build -q -p 1e-6 -o g {args} < a");
        dir.sh(&script).ok();
        assert!(dir.read("g") == first, "{args}");
    }
    dir.run("build -q -p 1e-6 -o keyed --keyed a").ok();
    dir.run("build -q -p 1e-6 -o keyed2 --keyed a").ok();
    assert!(dir.read("keyed") != dir.read("keyed2"), "keys are random");
    assert_eq!(dir.run("check -c keyed a").text(), "1000\n");
}

#[test]
fn merge_is_the_build_of_both() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..1000);
    write_lines(&dir.files.file("b"), 500..2500);
    write_lines(&dir.files.file("c"), 9000..9500);
    for kind in ["bloom", "classic"] {
        let build = |output: &str, inputs: &str| {
            dir.run(&format!("build -q --type {kind} -n 4000 -p 0.001 -o {output} {inputs}")).ok()
        };
        build("fa", "a");
        build("fb", "b");
        build("fc", "c");
        build("all", "a b c");
        dir.run("merge -o merged fa fb fc").ok();
        assert_eq!(dir.run("check -c merged a b c").text(), "3500\n");
        dir.write("strangers", (0..20_000).map(|n| format!("no {n}\n")).collect::<String>());
        // The bits are equal, and so are the false positives.
        let answers = |filter: &str| dir.run(&format!("check {filter} strangers a")).ok();
        assert!(answers("merged") == answers("all"));
        let facts = ["merged", "all"].map(|filter| {
            let json = dir.run(&format!("info --json {filter}")).text();
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            (json["fill_ratio"].clone(), json["estimated_fpr"].clone(), json["layout"].clone())
        });
        assert_eq!(facts[0], facts[1]);
        assert_eq!(dir.run("verify merged").text(), "merged: valid\n");
    }
}

#[test]
fn add_adds_lines_and_warns_beyond_capacity() {
    let dir = dir();
    let whole: Vec<u8> = [dir.read("a"), dir.read("b")].concat();
    dir.run("build -q -n 2000 -p 0.01 -o g a").ok();
    let output = dir.run("add g b");
    assert_eq!(output.err, "", "within the capacity");
    output.ok();
    assert!(dir.run("check g a b").ok() == whole);
    dir.run("build -q -n 2000 -p 0.01 -o both a b").ok();
    assert!(dir.read("g") == dir.read("both"), "add gives the same file as build");
    // Beyond the capacity: a warning with the estimated rate, which `info` prints too.
    write_lines(&dir.files.file("c"), 10_000..20_000);
    let output = dir.run("add g c");
    let warning = output.err.clone();
    output.ok();
    assert!(
        warning.starts_with("petal: warning: the filter was planned for 2,000 keys"),
        "{warning}"
    );
    assert_eq!(warning.lines().count(), 1);
    let info = dir.run("info g").text();
    let rate = info.lines().find_map(|line| line.strip_prefix("est. fpr")).unwrap().trim();
    assert!(warning.contains(rate), "{warning} {rate}");
    assert_eq!(dir.run("check -c g a b c").text(), "12000\n");
    assert_eq!(dir.run("add -q g c").err, "");
    assert!(dir.run_with("build -o h -n 10 -", &dir.read("a")).err.contains("warning"));
    // A failed command does not change the filter.
    let before = common::inode_and_content(&dir.files.file("g"));
    dir.run("add g missing").failure();
    assert_eq!(common::inode_and_content(&dir.files.file("g")), before);
}

#[test]
fn verify_exits_2_on_any_damage() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    for kind in ["bloom", "classic"] {
        dir.run(&format!("build -q --type {kind} -o f a")).ok();
        assert_eq!(dir.run("verify -q f f").text(), "");
        let bytes = dir.read("f");
        // A sample of bit flips and truncations; the tests of core try all of them.
        let flips =
            petal_testkit::corrupt::bit_flips(&bytes).step_by(8 * 37 + 1).map(|flip| flip.1);
        let cuts = petal_testkit::corrupt::truncations(&bytes).step_by(97).map(<[u8]>::to_vec);
        let more = petal_testkit::corrupt::extensions(&bytes);
        for damaged in flips.chain(cuts).chain(more) {
            dir.write("damaged", damaged);
            dir.run("verify damaged").failure();
        }
        let output = dir.run("verify f damaged");
        assert_eq!(
            (output.code, output.out.as_slice()),
            (Some(2), &b"f: valid\n"[..]),
            "{}",
            output.err
        );
        // All files are verified, with a line for each.
        let output = dir.run("verify missing f damaged a f");
        assert_eq!((output.code, output.out.as_slice()), (Some(2), &b"f: valid\nf: valid\n"[..]));
        let names: Vec<_> =
            output.err.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
        assert_eq!(names, ["missing", "damaged", "a"], "{}", output.err);
        assert!(output.err.contains("found the text \"x\\n\""), "{}", output.err);
    }
}

#[test]
fn info_as_text_and_as_json() {
    let dir = dir();
    let text = dir.run("info f").text();
    for (name, value) in [
        ("type", "bloom, "),
        ("planned", "1,000 keys at "),
        ("keys", "about "),
        ("hash", "rapidhash"),
        ("metadata", "{\"producer\":\"petal "),
    ] {
        let line = text.lines().find(|line| line.starts_with(name)).expect(name);
        assert!(line[name.len()..].trim_start().starts_with(value), "{line}");
    }
    assert!(text.contains(" distinct; 1,000 inserts were new\n"), "{text}");
    dir.run_with("build -q -n 1000 -o one -", b"x\n").ok();
    let one = dir.run("info one").text();
    assert!(one.contains("\nkeys      about 1 distinct; 1 insert was new\n"), "{one}");
    let json = dir.run("info --json f").text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["type"], &json["capacity"]), (&"bloom".into(), &1000.into()));
    assert_eq!(json["inserted"], 1000);
    assert!((980..1020).contains(&json["estimated_len"].as_u64().unwrap()));
    assert!(json["estimated_fpr"].as_f64().unwrap() < 2e-6);
    assert_eq!(
        (&json["is_overfull"], json["capacity_left"].as_u64().unwrap() < 50),
        (&false.into(), true)
    );
    assert!(json["memory_bytes"].as_u64() >= json["size_bytes"].as_u64());
    let fills: Vec<_> =
        json["block_fills"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert_eq!((fills.len(), json["layout"]["blocks"].as_u64()), (20, Some(fills.iter().sum())));
    assert!(json["metadata"]["producer"].as_str().unwrap().starts_with("petal "));
}

#[test]
fn info_shows_histogram_and_overfull_warning() {
    let dir = dir();
    dir.run("build -q -n 20_000 -o empty /dev/null").ok();
    let text = dir.run("info empty").text();
    assert!(
        text.contains("\nleft      20,") && text.contains(" keys at the target rate\n"),
        "{text}"
    );
    dir.run("build -q -n 500 -o full a").ok();
    let text = dir.run("info full").text();
    assert!(text.contains("\nleft      none at the target rate\n"), "{text}");
    assert!(
        text.contains("\nwarning   overfull: ") && text.contains(" the target rate; "),
        "{text}"
    );
    let json = dir.run("info --json full").text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["is_overfull"], &json["capacity_left"]), (&true.into(), &0.into()));
    // The histogram is ASCII, at most 80 columns wide, and counts all blocks.
    let (_, plot) = text.split_once("\nblocks    ").unwrap();
    let mut lines = plot.lines();
    let count = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let all = count(lines.next().unwrap().strip_suffix(", by their fill:").unwrap());
    let rows = lines.map(|line| {
        assert!(line.len() <= 80 && line.is_ascii(), "{line}");
        let (_, row) = line.split_once(" %  ").unwrap();
        count(row.split_whitespace().next().unwrap())
    });
    assert_eq!(rows.sum::<u64>(), all);
    // A filter without blocks has no histogram.
    dir.run("build -q --type classic -o g a").ok();
    assert!(!dir.run("info g").text().contains("blocks"));
}

#[test]
fn remove_from_unsupported_types_is_an_error() {
    let dir = dir();
    let before = common::inode_and_content(&dir.files.file("f"));
    for args in ["remove f a", "remove f missing", "remove f a --missing -"] {
        let line = dir.run(args).failure();
        assert!(line.contains("f: a bloom filter deletes no keys; use counting, "), "{line}");
    }
    assert!(dir.run("remove missing a").failure().contains("missing: cannot read"));
    assert_eq!(common::inode_and_content(&dir.files.file("f")), before);
    assert_eq!(dir.files.names(), ["a", "b", "f"]);
}

#[test]
fn plan_from_each_pair_and_triple() {
    let given = [("n", "-n 1e6"), ("p", "-p 1%"), ("m", "--size 4M"), ("k", "-k 6")];
    for set in 1u32..16 {
        let of: Vec<_> = (0..4).filter(|bit| set >> bit & 1 == 1).map(|bit| given[bit]).collect();
        let flags: Vec<_> = of.iter().flat_map(|(_, args)| args.split(' ')).collect();
        let names: String = of.iter().map(|(name, _)| *name).collect();
        let output = run(["plan"].iter().chain(&flags));
        // Rate and probes alone do not determine a size.
        if !names.contains(['n', 'm']) || names == "m" {
            let line = output.failure();
            assert!(line.contains("not enough to size a filter"), "{names}: {line}");
            continue;
        }
        let text = output.text();
        assert!(text.starts_with("type                bloom"), "{text}");
        let json = run(["plan", "--json"].iter().chain(&flags)).text();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        for plan in json["plans"].as_array().unwrap() {
            let number =
                |name: &str| plan[name].as_f64().unwrap_or_else(|| panic!("{names} {name}"));
            assert!(!names.contains('n') || number("capacity") == 1e6, "{names} {plan}");
            // With memory and probes given, the rate follows from the number of keys.
            let free = names.contains('p') && !(names.contains("nmk"));
            assert!(!free || number("fpr") <= 0.01 * 1.000_001, "{names} {plan}");
            assert!(!names.contains('m') || number("size_bytes") <= 4_194_304.0, "{names} {plan}");
            assert!(!names.contains('k') || number("probes") == 6.0, "{names} {plan}");
            assert!(number("fpr") < number("fpr_at_double_capacity"));
        }
        assert_eq!(json["plans"][1]["type"], "classic", "{names}");
    }
}

#[test]
fn plan_and_build_agree() {
    let dir = dir();
    for flags in ["-n 100000 -p 0.001", "-n 100000 --size 100K", "-n 1000000 --size 1M"] {
        let plan = run(["plan", "--json"].iter().copied().chain(flags.split(' '))).text();
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        for (at, kind) in ["bloom", "classic"].into_iter().enumerate() {
            dir.run(&format!("build -q --type {kind} {flags} -o g a")).ok();
            let info = dir.run("info --json g").text();
            let info: serde_json::Value = serde_json::from_str(&info).unwrap();
            let plan = &plan["plans"][at];
            assert_eq!(plan["probes"], info["layout"]["probes"], "{flags}");
            assert_eq!(plan["bits"], info["layout"]["bits"], "{flags}");
            assert_eq!(plan["size_bytes"], info["size_bytes"], "{flags}");
        }
    }
}

/// `build` accepts the number of keys that `plan` computes from memory and rate.
#[test]
fn build_accepts_the_capacity_that_plan_computes() {
    let dir = dir();
    for (memory, rate) in [("64M", "1%"), ("1M", "1e-5"), ("100K", "0.1")] {
        let plan = run(["plan", "--json", "--size", memory, "-p", rate]).text();
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        for (at, kind) in ["bloom", "classic"].into_iter().enumerate() {
            let (keys, size) = (&plan["plans"][at]["capacity"], &plan["plans"][at]["size_bytes"]);
            dir.run(&format!("build -q --type {kind} -n {keys} -p {rate} --size {memory} -o g a"))
                .ok();
            let info: serde_json::Value =
                serde_json::from_str(&dir.run("info --json g").text()).unwrap();
            assert_eq!(&info["size_bytes"], size, "{kind} {memory} {rate}");
        }
    }
}

/// A size at which the filter would contain nearly every key is refused, and nothing is written.
#[test]
fn filter_that_would_contain_every_key_is_refused() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..10);
    for kind in ["bloom", "classic", "counting"] {
        let error = dir.run(&format!("build -q --type {kind} -n 1e9 --size 1K -o f a")).failure();
        let expected = "capacity: expected fewer keys, or more memory or bits, found 1,000,000,000";
        assert!(error.contains(expected), "{kind}: {error}");
        assert!(!dir.files.file("f").exists(), "{kind}");
    }
}

/// Planning does not allocate the filter: these have 100 GB and more.
#[test]
fn plan_sizes_beyond_the_memory() {
    for kind in ["quotient", "scalable", "windowed", "counting", "static"] {
        let plan = run(["plan", "--json", "-n", "1e12", "-p", "1e-3", "--type", kind]).text();
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        let plan = &plan["plans"][0];
        assert!(plan["size_bytes"].as_f64().unwrap() > 1e12, "{plan}");
        assert!(plan["fpr"].as_f64().unwrap() <= 1.001e-3, "{plan}");
    }
}

#[test]
fn notes_are_kept_and_refused_for_files_of_other_programs() {
    let dir = TestDir::new();
    dir.write("a", "one\n");
    dir.run("build -q -n 9 --metadata source=lists -o f a").ok();
    dir.run("add -q --metadata date=2026-11-29 f a").ok();
    dir.run("merge -q --metadata licence=CC0 -o g f f").ok();
    dir.run("seen -q --metadata seen=yes g a").ok();
    assert!(dir.run("info --json g").text().contains("\"seen\": \"yes\""));
    let info: serde_json::Value = serde_json::from_slice(&dir.run("info --json g").ok()).unwrap();
    for (name, text) in [("source", "lists"), ("date", "2026-11-29"), ("licence", "CC0")] {
        assert_eq!(info["metadata"][name], text, "{info}");
    }
    dir.run("build -q -n 9 --format dcso -o d a").ok();
    for args in ["build -n 9 --format dcso -o e a", "add d a", "merge -o e d d"] {
        let error = dir.run(&format!("{args} --metadata source=lists")).failure();
        assert!(error.contains("--metadata: a dcso file has no place for notes"), "{error}");
    }
}

#[test]
fn measured_false_positives_match_the_plan() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..50_000);
    dir.write("strangers", (0..200_000).map(|n| format!("stranger {n}\n")).collect::<String>());
    for (kind, rate) in [("bloom", 0.01), ("classic", 0.01), ("bloom", 0.001)] {
        dir.run(&format!("build -q --type {kind} -p {rate} -o f a")).ok();
        let wrong: u64 = dir.run("check -c f strangers").text().trim().parse().unwrap();
        let (low, high) = petal_testkit::bounds::binomial_range(200_000, rate, 0.9999);
        // The target is an upper bound. Sizes are whole blocks, so the rate may be a little lower.
        assert!(wrong <= high && wrong >= low * 8 / 10, "{kind} {rate}: {wrong} of {low}..{high}");
    }
}

#[test]
fn test_files_have_no_common_line() {
    // The other tests rely on it.
    let dir = dir();
    let (a, b) = (dir.read("a"), dir.read("b"));
    let a: HashSet<_> = a.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert!(b.split(|&byte| byte == b'\n').all(|line| !a.contains(line)));
}
