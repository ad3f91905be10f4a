//! `--bits`, `-k` and `--least-space` in `build` and `plan`: how the size and the number of probes are
//! chosen.

use serde_json::Value;

use crate::common::{TestDir, write_lines};

/// A directory with the file `a` of 1,000 lines.
fn dir() -> TestDir {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..1000);
    dir
}

fn json(dir: &TestDir, args: &str) -> Value {
    serde_json::from_slice(&dir.run(args).ok()).unwrap()
}

/// Builds a filter `f` of `a` and returns its description.
fn built(dir: &TestDir, args: &str) -> Value {
    let output = dir.run(&format!("build -o f {args} a"));
    assert_eq!(output.err, "", "{args}");
    output.ok();
    assert_eq!(dir.run("check -c f a").text(), "1000\n", "{args}");
    dir.run("verify -q f").ok();
    json(dir, "info --json f")
}

#[test]
fn bits_and_probes_are_those_of_the_command_line() {
    let dir = dir();
    for (filter_type, probes, bits, stored) in [
        ("classic", 10, "20_001", 20_001),
        ("classic", 64, "200,003", 200_003),
        ("bloom", 7, "20000", 20_480),
        ("bloom", 16, "2e5", 200_704),
        ("counting", 5, "20000", 20_480),
        ("counting-classic", 5, "20001", 20_001),
    ] {
        let args = format!("--type {filter_type} -k {probes} --bits {bits}");
        // Without a plan, capacity and target rate are 0, also in the file.
        let info = built(&dir, &args);
        let layout = &info["layout"];
        assert_eq!(
            [&layout["bits"], &layout["probes"]],
            [&stored.into(), &probes.into()] as [&Value; 2]
        );
        assert_eq!((&info["capacity"], &info["target_fpr"]), (&0.into(), &0.0.into()), "{args}");
        assert!(dir.run("info f").text().contains("planned   none\n"));
        // With a capacity, the target is the rate at that capacity.
        let planned = built(&dir, &format!("{args} -n 1500"));
        assert_eq!(planned["capacity"], 1500);
        let plan = &json(&dir, &format!("plan {args} -n 1500 --json"))["plans"][0];
        assert_eq!(plan["fpr"], planned["target_fpr"], "{args}");
        assert_eq!(plan["size_bytes"], planned["size_bytes"], "{args}");
        let length = std::fs::metadata(dir.files.file("f")).unwrap().len();
        assert_eq!(plan["file_bytes"], length, "{args}");
        // With a rate, the capacity is the number of keys at that rate.
        let rated = built(&dir, &format!("{args} -p 25%"));
        let keys = rated["capacity"].as_u64().unwrap();
        let fpr = |keys| {
            let plan = format!("plan --json {args} -n {keys}");
            json(&dir, &plan)["plans"][0]["fpr"].as_f64().unwrap()
        };
        assert!(keys > 1000 && fpr(keys) <= 0.25 && fpr(keys + 1) > 0.25, "{args}: {keys}");
    }
}

#[test]
fn one_pass_is_enough_with_bits_and_probes() {
    let dir = dir();
    let lines = dir.read("a");
    dir.run_with("build -q -o piped --type classic -k 10 --bits 20000 -", &lines).ok();
    dir.run("build -q -o named --type classic -k 10 --bits 20000 a").ok();
    assert!(dir.read("piped") == dir.read("named"));
    // A golden value: bits and probes alone determine the bits.
    dir.run("build -q -o planned --type classic -k 10 --bits 20000 -n 7 a").ok();
    let data = |name: &str| dir.read(name)[4096..].to_vec();
    assert!(data("piped") == data("planned"));
    assert!(dir.read("piped") != dir.read("planned"), "the capacity is in the header");
    let line = dir.run_with("build -q -o no --bits 20000 -", &lines).failure();
    assert!(line.contains("-n"), "{line}");
}

#[test]
fn probes_are_the_best_for_the_capacity_unless_chosen() {
    let dir = dir();
    for filter_type in ["bloom", "classic"] {
        let plan = |args: &str| {
            let args = format!("plan --json --type {filter_type} {args}");
            json(&dir, &args)["plans"][0].clone()
        };
        for bits in [6_000, 12_000, 60_000] {
            let best = plan(&format!("--bits {bits} -n 1000"));
            let rate = |plan: &Value| plan["fpr"].as_f64().unwrap();
            for probes in 1..=16 {
                let chosen = plan(&format!("--bits {bits} -n 1000 -k {probes}"));
                assert!(rate(&best) <= rate(&chosen), "{best} {chosen}");
            }
            // The lines are counted, so the filter is the same without -n.
            let counted = built(&dir, &format!("--type {filter_type} --bits {bits}"));
            assert_eq!(counted["layout"]["probes"], best["probes"]);
            assert_eq!(
                (&counted["target_fpr"], &counted["capacity"]),
                (&best["fpr"], &1000.into())
            );
            // The rate alone determines the capacity.
            let most = plan(&format!("--bits {bits} -p 2%"));
            let keys = |plan: &Value| plan["capacity"].as_u64().unwrap();
            for probes in 1..=16 {
                let chosen = plan(&format!("--bits {bits} -p 2% -k {probes}"));
                assert!(keys(&most) >= keys(&chosen), "{most} {chosen}");
            }
        }
    }
}

#[test]
fn probes_are_free_beside_a_rate_and_beside_memory() {
    let dir = dir();
    for filter_type in ["bloom", "classic", "counting", "counting-classic"] {
        for size in ["-n 1000 -p 1% -k 5", "-n 1000 --size 4K -k 5", "-p 1% -k 5"] {
            let args = format!("--type {filter_type} {size}");
            let info = built(&dir, &args);
            assert_eq!(info["layout"]["probes"], 5, "{args}");
            let plan =
                args.replace("-p 1% -k", "-n 1000 -p 1% -k").replace("-n 1000 -n 1000", "-n 1000");
            let plan = &json(&dir, &format!("plan --json {plan}"))["plans"][0];
            assert_eq!(plan["size_bytes"], info["size_bytes"], "{args}");
            let target = info["target_fpr"].as_f64().unwrap();
            assert!(plan["fpr"].as_f64().unwrap() <= target * (1.0 + 1e-12), "{args}");
        }
    }
    // Memory and probes alone: the capacity at which half of the bits are set.
    let plan = &json(&dir, "plan --json --type classic --bits 1000000 -k 10")["plans"][0];
    assert_eq!(plan["capacity"], 69_314);
    let memory = &json(&dir, "plan --json --type counting-classic --size 512K -k 10")["plans"][0];
    assert_eq!((&memory["size_bytes"], &memory["capacity"]), (&524_288.into(), &72_681.into()));
}

#[test]
fn least_space_is_the_same_in_plan_and_build() {
    let dir = dir();
    for filter_type in ["bloom", "classic", "counting", "counting-classic"] {
        for (keys, rate) in [(1000, "1%"), (1000, "0.1%"), (20_000, "5%"), (300_000, "0.001")] {
            let size = format!("--type {filter_type} -n {keys} -p {rate}");
            let plan = |args: &str| {
                let args = format!("plan --json {size} {args}");
                json(&dir, &args)["plans"][0].clone()
            };
            let (least, default) = (plan("--least-space"), plan(""));
            let info = built(&dir, &format!("{size} --least-space"));
            assert_eq!(
                [&info["size_bytes"], &info["layout"]["probes"]],
                [&least["size_bytes"], &least["probes"]],
                "{size}"
            );
            let [bytes, more] = [&least, &default].map(|plan| plan["size_bytes"].as_u64().unwrap());
            assert!(bytes <= more, "{size}");
            // The default of a classic filter of this size has the fewest bits.
            if keys == 300_000 {
                let is_classic = filter_type.ends_with("classic");
                assert_eq!(bytes == more, is_classic, "{size}: {bytes} {more}");
            }
            assert!(least["fpr"].as_f64().unwrap() <= info["target_fpr"].as_f64().unwrap());
            // A limit between both sizes.
            if bytes < more {
                built(&dir, &format!("{size} --least-space --size {bytes}B"));
                assert_eq!(plan(&format!("--least-space --size {bytes}B")), least);
                dir.run(&format!("build -o no {size} --size {bytes}B a")).failure();
                dir.run(&format!("build -o no {size} --least-space --size {}B a", bytes - 64))
                    .failure();
            }
        }
    }
    // Capacity and rate have the same defaults as without it.
    let counted = built(&dir, "--least-space");
    assert_eq!((&counted["capacity"], &counted["target_fpr"]), (&1000.into(), &0.01.into()));
    assert_eq!(json(&dir, "plan --json -n 1e6 -p 1% --least-space")["plans"][1]["type"], "classic");
}

#[test]
fn least_space_excludes_other_sizes() {
    let dir = dir();
    for (args, expected) in [
        ("build -o no --size 1M --least-space a", "petal: --least-space: capacity and "),
        ("build -o no --type quotient --least-space a", "petal: --least-space: a quotient filter "),
        ("plan -n 5 -p 1% --type static --least-space", "petal: --least-space: a static filter "),
    ] {
        let line = dir.run(args).failure();
        assert!(line.starts_with(expected) && line.contains("leave out"), "{args}: {line}");
    }
    for args in [
        "build -o no -k 3 --least-space a",
        "build -o no --bits 3e6 --least-space a",
        "build -o no --format guava --least-space a",
        "plan -n 5 --size 1M --least-space",
        "plan -p 1% --size 1M --least-space",
        "plan -n 5 -p 1% -k 3 --least-space",
        "plan common a a --least-space",
    ] {
        let output = dir.run(args);
        assert_eq!(output.code, Some(2), "{args}");
        assert!(output.err.contains("--least-space") || output.err.contains("required"), "{args}");
    }
}

#[test]
fn impossible_bits_and_probes_are_errors() {
    let dir = dir();
    for filter_type in ["quotient", "scalable", "windowed --last 9", "static"] {
        for flag in ["-k 5", "--bits 5000"] {
            for command in ["build -o no a", "plan -n 5 -p 1%"] {
                let filter_type = match command.starts_with("plan") {
                    true => filter_type.split(' ').next().unwrap(),
                    false => filter_type,
                };
                let line = dir.run(&format!("{command} --type {filter_type} {flag}")).failure();
                let flag = flag.split(' ').next().unwrap();
                let name = filter_type.split(' ').next().unwrap();
                let wanted = format!("petal: {flag}: a {name} filter ");
                assert!(line.starts_with(&wanted) && line.contains("leave out"), "{line}");
            }
        }
    }
    for (args, words) in [
        ("build -o no -k 17 --bits 99 a", &["-k: a bloom filter", "--type classic"][..]),
        ("build -o no --type counting -k 17 a", &["-k: a counting", "--type counting-classic"]),
        ("build -o no --bits 1000 -k 4 -n 1000 -p 1% a", &["rate", "give"]),
        (
            "build -o no --bits 1000000 -k 4 --size 1K a",
            &["1,000,000 bits", "raise --size", "--bits"],
        ),
        ("plan -k 10", &["not enough", "--bits"]),
        ("plan --bits 1000", &["not enough"]),
    ] {
        let line = dir.run(args).failure();
        assert!(words.iter().all(|word| line.contains(word)), "{args}: {line}");
    }
    for args in [
        "build -o no -k 0 a",
        "build -o no -k 65 a",
        "build -o no --bits 0 a",
        "plan --bits 9 --size 9K",
    ] {
        assert_eq!(dir.run(args).code, Some(2), "{args}");
    }
    // Too few bits give a warning, with the rate of the filter as it is.
    let output = dir.run("build -o f --bits 3000 -k 4 a");
    assert!(
        output.err.contains("warning: ") && output.err.contains("raise --bits"),
        "{}",
        output.err
    );
    // More than 16 probes: only the classic layout.
    let plans = json(&dir, "plan --json -n 1000 --bits 30000 -k 20");
    assert_eq!(plans["plans"].as_array().unwrap().len(), 1);
    assert_eq!(plans["plans"][0]["type"], "classic");
}

#[test]
fn plan_separates_long_columns() {
    let dir = TestDir::new();
    let text = dir.run("plan -n 1e11 -p 1%").text();
    let layout = text.lines().find(|line| line.starts_with("layout")).unwrap();
    assert!(layout.contains(" blocks of 512 bits  positions anywhere"), "{layout}");
    let column = layout.find("positions").unwrap();
    assert_eq!(text.lines().next().unwrap().find("classic"), Some(column), "{text}");
    let text = dir.run("plan -n 1e6 -p 1% --type windowed").text();
    let probes = text.lines().find_map(|line| line.strip_prefix("probes")).unwrap().trim();
    assert!(text.contains(&format!(", {probes} probes\n")), "{text}");
}
