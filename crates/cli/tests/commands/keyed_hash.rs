//! Lines that collide under the public hash have no effect where petal uses a keyed hash: `--approx`,
//! `seen`, and `build --keyed`.

use petal_testkit::collide::RAPID;

use crate::common::TestDir;

/// Number of lines of each family of colliding lines in a file.
const EACH: u64 = 500;
/// A rate at which no test has a false positive.
const SURE: &str = "-p 1e-9";

/// Returns distinct lines: `EACH` of each family, from number `first`.
fn prepared(first: u64) -> Vec<u8> {
    let lines = |number| RAPID.map(|family| [family.key(number), b"\n".to_vec()].concat()).concat();
    (first..first + EACH).flat_map(lines).collect()
}

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("a", prepared(0));
    dir.write("b", prepared(EACH));
    dir
}

#[test]
fn approximate_commands_distinguish_colliding_lines() {
    let dir = dir();
    for mode in ["--approx -q", "--exact -q"] {
        let rate = if mode.starts_with("--approx") { SURE } else { "" };
        let run = |args: &str| dir.run(&format!("{args} {mode} {rate}")).ok();
        assert!(run("dedup a") == dir.read("a"), "dedup {mode}");
        assert!(run("diff a b") == dir.read("a"), "diff {mode}");
        assert!(run("common a b").is_empty(), "common {mode}");
        assert!(run("common b a a").is_empty(), "common {mode} of three");
        assert!(run("common a a") == dir.read("a"), "common {mode} of a file with itself");
    }
    let noted = dir.run(&format!("dedup --approx {SURE} -o /dev/null a")).err;
    let lost = noted.lines().last().and_then(|line| line.split("about ").nth(1)).expect("a note");
    let lost: f64 = lost.split(' ').next().unwrap().parse().unwrap();
    assert!(lost < 0.01, "{noted}");
}

#[test]
fn seen_distinguishes_colliding_lines() {
    for kind in ["-n 1e5", "-n 1e5 --window 1d", "--last 1e5", "-n 1e5 --exact"] {
        let dir = dir();
        let run = |args: &str| dir.run(&format!("seen {args}")).ok();
        assert!(run(&format!("{kind} {SURE} f a")) == dir.read("a"), "{kind}");
        assert!(run("f a b") == dir.read("b"), "{kind}");
        let hash = if kind.contains("exact") { "rapidhash-v3-keyed" } else { "siphash-1-3" };
        assert!(dir.run("info f").text().contains(hash), "{kind}");
        // Each file has its own key.
        run(&format!("{kind} {SURE} g a b"));
        assert_ne!(dir.read("f")[48..64], dir.read("g")[48..64], "{kind}");
    }
}

/// Filters of earlier versions and of `build` keep their hash.
#[test]
fn seen_keeps_the_hash_of_a_file() {
    let dir = dir();
    dir.run(&format!("build -q -n 1e5 {SURE} -o f /dev/null")).ok();
    dir.write("plain", "one\ntwo\n");
    assert_eq!(dir.run("seen f plain").text(), "one\ntwo\n");
    assert_eq!(dir.run("seen f plain").text(), "");
    assert!(dir.run("info f").text().contains("rapidhash-v3\n"));
    // At most one line of each family is new: this hash is public.
    let new: usize = dir.run("seen -c f a").text().trim().parse().unwrap();
    assert!((1..=RAPID.len()).contains(&new), "{new}");
}

#[test]
fn keyed_filters_do_not_match_colliding_lines() {
    let dir = dir();
    let lines = EACH * RAPID.len() as u64;
    for kind in ["bloom", "classic", "counting", "quotient", "scalable", "static"] {
        for (keyed, found) in [("--keyed", 0), ("--seed 7", lines)] {
            // Equal hashes overflow a quotient filter, which is an error.
            if kind == "quotient" && found > 0 {
                continue;
            }
            let args = format!("build -q --type {kind} {SURE} {keyed} -o f a");
            dir.run(&args).ok();
            let strangers = String::from_utf8(dir.run("check -c f b").out).unwrap();
            assert_eq!(strangers, format!("{found}\n"), "{kind} {keyed}");
            assert_eq!(dir.run("check -c f a").text(), format!("{lines}\n"), "{kind} {keyed}");
        }
    }
}

/// Lines of both lists with equal hashes are no equal lines: another hash tells them apart, if there is
/// one.
#[test]
fn cascade_of_colliding_lines_needs_a_keyed_hash() {
    let dir = dir();
    let line = dir.run("build -o f --not-in b a").failure();
    assert!(line.contains("different and have equal hashes") && line.contains("keyed"), "{line}");
    let line = dir.sh("exec \"$petal\" build -o f --not-in <(cat b) a").failure();
    assert!(line.contains("in the other inputs too, or have equal hashes"), "{line}");
    assert!(!dir.files.file("f").exists());
    dir.run("build --keyed -o f --not-in b a").ok();
    let lines = EACH * RAPID.len() as u64;
    assert_eq!(dir.run("check -c f a b").text(), format!("{lines}\n"));
    // Lines that are equal are found among them.
    dir.write(
        "c",
        [prepared(EACH), prepared(0).split_inclusive(|b| *b == b'\n').next().unwrap().to_vec()]
            .concat(),
    );
    let line = dir.run("build -o g --not-in c a").failure();
    assert!(line.contains("c: 1 line is in the other inputs too; remove"), "{line}");
}
