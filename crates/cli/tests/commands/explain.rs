//! `explain`: how a filter answers a query of one key.

use serde_json::Value;

use crate::common::{TestDir, write_lines};

fn json(dir: &TestDir, args: &str) -> Value {
    serde_json::from_slice(&dir.run(&format!("explain --json {args}")).ok()).unwrap()
}

#[test]
fn every_type_is_explained() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..1000);
    dir.write("one", "one\n");
    dir.write("good", "good\n");
    for (args, name, parts) in [
        ("", "bloom", 1),
        ("--type classic --bits 20000 -k 11", "classic", 1),
        ("--type counting", "counting", 1),
        ("--type counting-classic", "counting-classic", 1),
        ("--type quotient", "quotient", 1),
        ("--type vector-quotient", "vector-quotient", 1),
        ("--growing -n 100", "scalable", 4),
        ("--window 7d", "windowed", 4),
        ("--last 5000", "windowed", 4),
        ("--type static", "static", 1),
        ("--not-in good", "cascade", 1),
        ("--keyed", "bloom", 1),
    ] {
        dir.run(&format!("build -q -o f {args} a one")).ok();
        let found = json(&dir, "f one");
        assert_eq!((&found["type"], &found["contains"]), (&name.into(), &true.into()), "{args}");
        assert!(found["parts"].as_array().unwrap().len() >= parts.min(2), "{args} {found}");
        let fpr = found["estimated_fpr"].as_f64().unwrap();
        assert!((0.0..0.1).contains(&fpr), "{args} {fpr}");
        let text = dir.run("explain f one").text();
        assert!(text.starts_with("key       one (3 bytes)\nfilter    "), "{text}");
        assert!(text.contains("\nanswer    yes: the key may be in the filter; "), "{text}");
        let probes = || {
            found["parts"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|part| part["probes"].as_array().unwrap())
        };
        let bits = !matches!(name, "quotient" | "vector-quotient" | "static" | "cascade");
        assert_eq!(probes().count() > 0, bits, "{args}");
        assert_eq!(text.contains("cache line"), bits, "{args}");
        // The answer is that of `check`, for a key that is not in the filter as well.
        let mut absent = 0;
        for key in 5000..5020 {
            dir.write("key", format!("{key}\n"));
            let answer = json(&dir, &format!("f {key}"));
            let check = dir.run("check -q f key").code == Some(0);
            assert_eq!(answer["contains"], check, "{args} {key}");
            if !check {
                absent += 1;
                assert!(answer["estimated_fpr"].is_null());
                assert!(dir.run(&format!("explain f {key}")).text().contains("answer    no: "));
            }
        }
        assert!(absent > 10, "{args}");
        let secret = args == "--keyed";
        assert_eq!((found["seed"].is_null(), text.contains("secret key")), (secret, secret));
    }
}

#[test]
fn the_bits_and_counters_of_a_key_are_shown() {
    let dir = TestDir::new();
    dir.write("a", "one\none\none\n");
    dir.run("build -q -o f --type counting-classic --bits 100_000 -k 10 a").ok();
    let counters = json(&dir, "f one");
    let probes = counters["parts"][0]["probes"].as_array().unwrap();
    assert!(probes.len() == 10 && probes.iter().all(|probe| probe["value"] == 3), "{counters}");
    assert!(dir.run("explain f one").text().contains("  counter\n"));
    // The hash and the positions are those of the specification.
    dir.run("build -q -o f --type classic --bits 100_000 -k 10 a").ok();
    let found = json(&dir, "f one");
    let hash = found["hash"].as_str().unwrap().strip_prefix("0x").unwrap();
    let mut state = u64::from_str_radix(hash, 16).unwrap();
    for probe in found["parts"][0]["probes"].as_array().unwrap() {
        let position = ((u128::from(state) * 100_000) >> 64) as u64;
        assert_eq!((&probe["position"], &probe["value"]), (&position.into(), &1.into()));
        let byte = dir.read("f")[4096 + position as usize / 8];
        assert_eq!(byte >> (position % 8) & 1, 1);
        state = state.wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
    let lines = dir.run("explain f one").text();
    assert_eq!(lines.lines().filter(|line| line.ends_with("  1")).count(), 10, "{lines}");
}

#[test]
fn an_expired_key_is_no_longer_in_the_window() {
    let dir = TestDir::new();
    dir.write("a", "one\n");
    dir.run("build -q -o f --window 1h -n 10 --now 1000000 a").ok();
    assert_eq!(json(&dir, "--now 1000100 f one")["contains"], true);
    let expired = dir.run("explain --now 1010000 f one").text();
    assert!(expired.contains("no: the key was not added within the window"), "{expired}");
    assert!(expired.contains("expired"), "{expired}");
}

#[test]
fn other_files_are_refused() {
    let dir = TestDir::new();
    dir.write("a", "one\n");
    dir.run("build -q --format guava -n 10 -o guava a").ok();
    let line = dir.run("explain guava one").failure();
    assert!(line.contains("guava: is a filter of guava") && line.contains("petal check"), "{line}");
    for args in ["explain a one", "explain missing one"] {
        let line = dir.run(args).failure();
        assert!(!line.contains("--format"), "{line}");
    }
    assert_eq!(dir.run("explain f").code, Some(2));
}
