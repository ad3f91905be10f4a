//! The filter verbs: make, extend, query, unite, describe, examine; and sizing.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::collections::HashSet;

use kit::{Place, run, write_lines};

/// A place with lists `a` (1,000 lines), `b` (1,000 others), and a filter `f` of `a`.
fn place() -> Place {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..1000);
    write_lines(&place.files.file("b"), 5000..6000);
    place.run("build -q -p 1e-6 -o f a").ok();
    place
}

#[test]
fn check_prints_the_hits_and_exits_like_grep() {
    let place = place();
    let (a, b) = (place.read("a"), place.read("b"));
    let all = [a.clone(), b.clone()].concat();
    for jobs in [1, 4] {
        let check = |words: &str| place.run(&format!("check -j {jobs} {words}"));
        assert!(check("f a").ok() == a && check("f b a").ok() == a);
        assert!(check("-v f a b").ok() == b);
        assert_eq!(check("-c f a b").text(), "1000\n");
        assert_eq!(check("-c -v f a b b").text(), "2000\n");
        for (words, out) in [("f b", ""), ("-v f a", ""), ("-c f b", "0\n"), ("-v -c f a", "0\n")] {
            let ran = check(words);
            assert_eq!((ran.code, ran.out), (Some(1), out.into()), "{words}");
            assert_eq!(ran.err, "", "1 is no trouble");
        }
    }
    // Every line of the input, repeats too, in its order.
    assert_eq!(
        place.run_with("check f", &[a.clone(), a.clone()].concat()).ok(),
        [a.clone(), a].concat()
    );
    // To a file, even when nothing was found: then it is empty.
    assert_eq!(place.run_with("check f -v -o out -", &all).code, Some(0));
    assert_eq!(place.read("out"), b);
    assert_eq!(place.run("check f b -o out").code, Some(1));
    assert_eq!(place.read("out"), b"");
}

#[test]
fn lines_on_the_list_are_never_reported() {
    let place = place();
    // Half full at best: it takes every third stranger for one of its own.
    let b = place.read("b");
    place.run("build -q -n 1000 -p 30% -o poor a").ok();
    let wrong = place.run("check poor b").ok();
    let count = wrong.iter().filter(|&&byte| byte == b'\n').count();
    assert!((200..400).contains(&count), "{count}");
    place.write("fine", &wrong);
    for jobs in [1, 4] {
        let check = |words: &str| place.run(&format!("check -j {jobs} --allow fine poor {words}"));
        assert!(check("a b").ok() == place.read("a"), "an exact answer now");
        assert!(check("-v a b").ok() == b, "what is not reported is not held");
        assert_eq!(check("-c a b").text(), "1000\n");
        assert_eq!((check("b").code, check("-c b").out), (Some(1), b"0\n".to_vec()));
    }
    // Own lines too, from a stream, packed, repeated or many.
    let own: Vec<u8> = place
        .read("a")
        .split_inclusive(|&byte| byte == b'\n')
        .take(10)
        .flatten()
        .copied()
        .collect();
    let ran = place.run_with("check --allow - -c f a", &[own.clone(), own.clone()].concat());
    assert_eq!(ran.text(), "990\n");
    place.write("own.gz", kit::pack::gz(&own));
    assert_eq!(place.run("check --allow own.gz -c f a").text(), "990\n");
    place.write("none", "");
    assert_eq!(place.run("check --allow none -c f a").text(), "1000\n");
    place.run_with("check --allow - f -", &own).trouble();
    assert!(place.run("check --allow missing f a").trouble().contains("missing: cannot read"));
    assert!(place.run("check --allow fine f a -o fine").trouble().contains("same file"));
    write_lines(&place.files.file("long"), 0..1_000_000);
    let line = place.run("check -m 8M --allow long f a").trouble();
    assert!(line.contains("long: has more lines") && line.contains("raise -m"), "{line}");
    assert_eq!(place.run("check -m 64M --allow long -c f a").code, Some(1));
}

#[test]
fn lines_may_end_in_nul() {
    let place = Place::new();
    place.write("a", "one\ntwo\0three\0");
    place.run("build -q -z -p 1e-6 -o f a").ok();
    assert_eq!(place.run_with("check -z f", b"three\0x\0one\ntwo").ok(), b"three\0one\ntwo\0");
}

#[test]
fn a_filter_is_the_same_file_whenever_and_however_it_is_built() {
    let place = place();
    let first = place.read("f");
    for words in ["-j 1 a", "-j 4 a", "-n 1000 a", "-n 1e3 -j 2 - "] {
        let script = format!("\"$petal\" build -q -p 1e-6 -o g {words} < a");
        place.sh(&script).ok();
        assert!(place.read("g") == first, "{words}");
    }
    place.run("build -q -p 1e-6 -o keyed --keyed a").ok();
    place.run("build -q -p 1e-6 -o keyed2 --keyed a").ok();
    assert!(place.read("keyed") != place.read("keyed2"), "keys are random");
    assert_eq!(place.run("check -c keyed a").text(), "1000\n");
}

#[test]
fn merge_is_the_build_of_both() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..1000);
    write_lines(&place.files.file("b"), 500..2500);
    write_lines(&place.files.file("c"), 9000..9500);
    for kind in ["bloom", "classic"] {
        let build = |output: &str, inputs: &str| {
            place.run(&format!("build -q --type {kind} -n 4000 -p 0.001 -o {output} {inputs}")).ok()
        };
        build("fa", "a");
        build("fb", "b");
        build("fc", "c");
        build("all", "a b c");
        place.run("merge -o merged fa fb fc").ok();
        assert_eq!(place.run("check -c merged a b c").text(), "3500\n");
        place.write("strangers", (0..20_000).map(|n| format!("no {n}\n")).collect::<String>());
        // The same bits: the same answers, right and wrong.
        let answers = |filter: &str| place.run(&format!("check {filter} strangers a")).ok();
        assert!(answers("merged") == answers("all"));
        let facts = ["merged", "all"].map(|filter| {
            let json = place.run(&format!("info --json {filter}")).text();
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            (json["fill_ratio"].clone(), json["rate_now"].clone(), json["shape"].clone())
        });
        assert_eq!(facts[0], facts[1]);
        assert_eq!(place.run("verify merged").text(), "merged: sound\n");
    }
}

#[test]
fn add_puts_lines_in_and_warns_past_the_plan() {
    let place = place();
    let whole: Vec<u8> = [place.read("a"), place.read("b")].concat();
    place.run("build -q -n 2000 -p 0.01 -o g a").ok();
    let ran = place.run("add g b");
    assert_eq!(ran.err, "", "within the plan");
    ran.ok();
    assert!(place.run("check g a b").ok() == whole);
    place.run("build -q -n 2000 -p 0.01 -o both a b").ok();
    assert!(place.read("g") == place.read("both"), "adding is building in two steps");
    // Past it: works, with a warning that gives the rate now, which `info` gives too.
    write_lines(&place.files.file("c"), 10_000..20_000);
    let ran = place.run("add g c");
    let warning = ran.err.clone();
    ran.ok();
    assert!(
        warning.starts_with("petal: warning: the filter was planned for 2,000 keys"),
        "{warning}"
    );
    assert_eq!(warning.lines().count(), 1);
    let info = place.run("info g").text();
    let rate = info.lines().find_map(|line| line.strip_prefix("rate now")).unwrap().trim();
    assert!(warning.contains(rate), "{warning} {rate}");
    assert_eq!(place.run("check -c g a b c").text(), "12000\n");
    assert_eq!(place.run("add -q g c").err, "");
    assert!(place.run_with("build -o h -n 10 -", &place.read("a")).err.contains("warning"));
    // Nothing half done on trouble.
    let before = kit::look(&place.files.file("g"));
    place.run("add g missing").trouble();
    assert_eq!(kit::look(&place.files.file("g")), before);
}

#[test]
fn verify_exits_2_on_any_damage() {
    let place = Place::new();
    place.write("a", "x\n");
    for kind in ["bloom", "classic"] {
        place.run(&format!("build -q --type {kind} -o f a")).ok();
        assert_eq!(place.run("verify -q f f").text(), "");
        let bytes = place.read("f");
        // A flip in every few bytes and every cut of it; core's tests go through all of them.
        let flips = petal_testkit::corrupt::bit_flips(&bytes).step_by(8 * 7 + 1).map(|flip| flip.1);
        let cuts = petal_testkit::corrupt::truncations(&bytes).step_by(13).map(<[u8]>::to_vec);
        let more = petal_testkit::corrupt::extensions(&bytes);
        for damaged in flips.chain(cuts).chain(more) {
            place.write("damaged", damaged);
            place.run("verify damaged").trouble();
        }
        let ran = place.run("verify f damaged");
        assert_eq!((ran.code, ran.out.as_slice()), (Some(2), &b"f: sound\n"[..]), "{}", ran.err);
        // All are examined, and there is a line for each.
        let ran = place.run("verify missing f damaged a f");
        assert_eq!((ran.code, ran.out.as_slice()), (Some(2), &b"f: sound\nf: sound\n"[..]));
        let names: Vec<_> = ran.err.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
        assert_eq!(names, ["missing", "damaged", "a"], "{}", ran.err);
        assert!(ran.err.contains("found the text \"x\\n\""), "{}", ran.err);
    }
}

#[test]
fn info_in_words_and_in_json() {
    let place = place();
    let text = place.run("info f").text();
    for (name, value) in [
        ("type", "bloom, "),
        ("plan", "1,000 keys at "),
        ("keys", "about "),
        ("hash", "rapidhash"),
        ("metadata", "{\"producer\":\"petal "),
    ] {
        let line = text.lines().find(|line| line.starts_with(name)).expect(name);
        assert!(line[name.len()..].trim_start().starts_with(value), "{line}");
    }
    assert!(text.contains(" distinct; 1,000 inserts were new\n"), "{text}");
    let json = place.run("info --json f").text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["type"], &json["planned_keys"]), (&"bloom".into(), &1000.into()));
    assert_eq!(json["inserted"], 1000);
    assert!((980..1020).contains(&json["estimated_keys"].as_u64().unwrap()));
    assert!(json["rate_now"].as_f64().unwrap() < 2e-6);
    assert_eq!(
        (&json["overfull"], json["capacity_left"].as_u64().unwrap() < 50),
        (&false.into(), true)
    );
    assert!(json["memory_bytes"].as_u64() >= json["size_bytes"].as_u64());
    let fills: Vec<_> =
        json["block_fills"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert_eq!((fills.len(), json["shape"]["blocks"].as_u64()), (20, Some(fills.iter().sum())));
    assert!(json["metadata"]["producer"].as_str().unwrap().starts_with("petal "));
}

#[test]
fn info_plots_loads_and_tells_of_too_many_keys() {
    let place = place();
    place.run("build -q -n 20_000 -o empty /dev/null").ok();
    let text = place.run("info empty").text();
    assert!(text.contains("\nleft      room for 20,"), "{text}");
    place.run("build -q -n 500 -o full a").ok();
    let text = place.run("info full").text();
    assert!(text.contains("\nleft      no room for more keys"), "{text}");
    assert!(
        text.contains("\nwarning   overfull: errs ") && text.contains(" as planned; "),
        "{text}"
    );
    let json = place.run("info --json full").text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["overfull"], &json["capacity_left"]), (&true.into(), &0.into()));
    // The plot is plain, narrow, and has all blocks in it.
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
    // A filter without blocks has no plot.
    place.run("build -q --type classic -o g a").ok();
    assert!(!place.run("info g").text().contains("blocks"));
}

#[test]
fn remove_is_refused_where_it_cannot_be_done() {
    let place = place();
    let before = kit::look(&place.files.file("f"));
    for words in ["remove f a", "remove f missing", "remove f a --missing -"] {
        let line = place.run(words).trouble();
        assert!(line.contains("f: a bloom filter deletes no keys"), "{line}");
    }
    assert!(place.run("remove missing a").trouble().contains("missing: cannot read"));
    assert_eq!(kit::look(&place.files.file("f")), before);
    assert_eq!(place.files.names(), ["a", "b", "f"]);
}

#[test]
fn plan_from_each_pair_and_triple() {
    let given = [("n", "-n 1e6"), ("p", "-p 1%"), ("m", "-m 4M"), ("k", "-k 6")];
    for set in 1u32..16 {
        let of: Vec<_> = (0..4).filter(|bit| set >> bit & 1 == 1).map(|bit| given[bit]).collect();
        let flags: Vec<_> = of.iter().flat_map(|(_, words)| words.split(' ')).collect();
        let names: String = of.iter().map(|(name, _)| *name).collect();
        let ran = run(["plan"].iter().chain(&flags));
        // Rate and probes alone say nothing of size.
        if of.len() < 2 || names == "pk" {
            let line = ran.trouble();
            assert!(line.contains("too little to plan with"), "{names}: {line}");
            continue;
        }
        let text = ran.text();
        assert!(text.starts_with("type                bloom"), "{text}");
        let json = run(["plan", "--json"].iter().chain(&flags)).text();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        for plan in json["plans"].as_array().unwrap() {
            let number =
                |name: &str| plan[name].as_f64().unwrap_or_else(|| panic!("{names} {name}"));
            assert!(!names.contains('n') || number("keys") == 1e6, "{names} {plan}");
            // With memory and probes fixed the rate follows from the keys.
            let free = names.contains('p') && !(names.contains("nmk"));
            assert!(!free || number("rate") <= 0.01 * 1.000_001, "{names} {plan}");
            assert!(!names.contains('m') || number("size_bytes") <= 4_194_304.0, "{names} {plan}");
            assert!(!names.contains('k') || number("probes") == 6.0, "{names} {plan}");
            assert!(number("rate") < number("rate_at_twice_the_keys"));
        }
        assert_eq!(json["plans"][1]["type"], "classic", "{names}");
    }
}

#[test]
fn plan_and_build_agree() {
    let place = place();
    for flags in ["-n 100000 -p 0.001", "-n 100000 -m 100K", "-n 1000000 -m 1M"] {
        let plan = run(["plan", "--json"].iter().copied().chain(flags.split(' '))).text();
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        for (at, kind) in ["bloom", "classic"].into_iter().enumerate() {
            place.run(&format!("build -q --type {kind} {flags} -o g a")).ok();
            let info = place.run("info --json g").text();
            let info: serde_json::Value = serde_json::from_str(&info).unwrap();
            let plan = &plan["plans"][at];
            assert_eq!(plan["probes"], info["shape"]["probes"], "{flags}");
            assert_eq!(plan["bits"], info["shape"]["bits"], "{flags}");
            assert_eq!(plan["size_bytes"], info["size_bytes"], "{flags}");
        }
    }
}

/// The keys that fit a memory at a rate are those that `build` accepts for it.
#[test]
fn build_takes_what_plan_says_fits() {
    let place = place();
    for (memory, rate) in [("64M", "1%"), ("1M", "1e-5"), ("100K", "0.1")] {
        let plan = run(["plan", "--json", "-m", memory, "-p", rate]).text();
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        for (at, kind) in ["bloom", "classic"].into_iter().enumerate() {
            let (keys, size) = (&plan["plans"][at]["keys"], &plan["plans"][at]["size_bytes"]);
            place
                .run(&format!("build -q --type {kind} -n {keys} -p {rate} -m {memory} -o g a"))
                .ok();
            let info: serde_json::Value =
                serde_json::from_str(&place.run("info --json g").text()).unwrap();
            assert_eq!(&info["size_bytes"], size, "{kind} {memory} {rate}");
        }
    }
}

/// Planning takes no memory: these filters have 100 GB and more.
#[test]
fn plans_beyond_all_memory() {
    for kind in ["quotient", "scalable", "windowed", "wide", "counting", "static"] {
        let plan = run(["plan", "--json", "-n", "1e12", "-p", "1e-3", "--type", kind]).text();
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        let plan = &plan["plans"][0];
        assert!(plan["size_bytes"].as_f64().unwrap() > 1e12, "{plan}");
        assert!(plan["rate"].as_f64().unwrap() <= 1.001e-3, "{plan}");
    }
}

#[test]
fn measured_wrong_hits_are_what_was_planned() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..50_000);
    place.write("strangers", (0..200_000).map(|n| format!("stranger {n}\n")).collect::<String>());
    for (kind, rate) in [("bloom", 0.01), ("classic", 0.01), ("bloom", 0.001)] {
        place.run(&format!("build -q --type {kind} -p {rate} -o f a")).ok();
        let wrong: u64 = place.run("check -c f strangers").text().trim().parse().unwrap();
        let (low, high) = petal_testkit::bounds::binomial_range(200_000, rate, 0.9999);
        // A promise: at most that. Shapes come in whole blocks, so it may be a little better.
        assert!(wrong <= high && wrong >= low * 8 / 10, "{kind} {rate}: {wrong} of {low}..{high}");
    }
}

#[test]
fn lists_of_both_kinds_share_no_line() {
    // What the other tests rely on.
    let place = place();
    let (a, b) = (place.read("a"), place.read("b"));
    let a: HashSet<_> = a.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert!(b.split(|&byte| byte == b'\n').all(|line| !a.contains(line)));
}
