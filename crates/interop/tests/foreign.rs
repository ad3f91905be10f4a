//! The real programs open what petal writes, and write the same bytes. `cargo x test --foreign`
//! installs them and sets `PETAL_PEERS`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap names the line")]
#![allow(clippy::print_stdout, reason = "what was skipped, and what was queried")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Golden, answers, folder, manifest, old_redisbloom};
use petal_interop::{ForeignFilter, Format};

/// Capacities and rates for which petal and the program must compute the same size.
const PLANS: [(u64, f64); 4] = [(600, 0.1), (600, 0.01), (1000, 0.003), (5000, 0.5)];

/// More of them for formats with unusual rounding: very small filters, very low rates, and
/// capacities where one key more changes the size.
const DELICATE: [(u64, f64); 12] = [
    (1, 0.01),
    (2, 0.5),
    (7, 0.6),
    (3, 1e-30),
    (79, 0.01),
    (80, 0.01),
    (105, 0.01),
    (106, 0.01),
    (211, 0.01),
    (4096, 0.25),
    (99_999, 0.0001),
    (1_000_000, 0.03),
];

/// A command of `peers/`.
struct Peer(PathBuf);

impl Peer {
    fn of(golden: &Golden) -> Self {
        let peers =
            std::env::var_os("PETAL_PEERS").expect("PETAL_PEERS: run cargo x test --foreign");
        Self(Path::new(&peers).join("bin").join(&golden.peer))
    }

    fn run(&self, words: &[&str]) -> String {
        let output = Command::new(&self.0).args(words).output().unwrap();
        let trouble = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?} {words:?}: {trouble}", self.0);
        String::from_utf8(output.stdout).unwrap()
    }

    fn write(&self, golden: &Golden, (keys, rate): (u64, f64), members: &Path, out: &Path) {
        let (members, out) = (members.to_str().unwrap(), out.to_str().unwrap());
        self.run(&["write", &golden.variant, &keys.to_string(), &rate.to_string(), members, out]);
    }

    fn check(&self, golden: &Golden, file: &Path) -> String {
        let keys = folder().join(format!("keys/{}.asked", golden.members));
        let words = ["check", &golden.variant, file.to_str().unwrap(), keys.to_str().unwrap()];
        self.run(&words).lines().collect()
    }
}

/// Returns true if the library has unusual rounding: RedisBloom and those of the JVM.
fn has_delicate_sizes(format: Option<Format>) -> bool {
    matches!(
        format,
        Some(
            Format::SparkV1
                | Format::SparkV2
                | Format::HadoopJenkins
                | Format::HadoopMurmur
                | Format::DataSketches
                | Format::Parquet
                | Format::RedisBloom
        )
    )
}

fn plans(format: Option<Format>) -> Vec<(u64, f64)> {
    let delicate = if has_delicate_sizes(format) { &DELICATE[..] } else { &[] };
    [&PLANS, delicate].concat()
}

/// Returns true if RedisBloom's module is available.
fn has_redisbloom() -> bool {
    let installed = std::env::var_os("PETAL_PEERS")
        .map(|peers| Path::new(&peers).join("redisbloom/redisbloom.so").is_file());
    std::env::var_os("PETAL_REDISBLOOM").is_some() || installed == Some(true)
}

/// Returns true for files that petal only reads, and for peers that are not installed.
fn is_left_out(golden: &Golden) -> bool {
    let absent = golden.peer == "redisbloom" && !has_redisbloom();
    if absent {
        println!("{}: left out, the peers have no RedisBloom for this machine", golden.file);
    }
    absent || matches!(golden.variant.as_str(), "scalable" | "bytes-scalable" | "little")
}

/// Returns one file per peer and variant, and a scratch directory.
fn subjects() -> (Vec<Golden>, petal_testkit::scratch::Scratch) {
    let golden = manifest().into_iter().filter(|golden| golden.format().is_some());
    (
        golden.filter(|golden| golden.answers().is_some() && !is_left_out(golden)).collect(),
        petal_testkit::scratch::Scratch::new(),
    )
}

#[test]
#[ignore = "cargo x test --foreign"]
fn programs_open_petals_files_and_give_the_same_answers() {
    let (subjects, scratch) = subjects();
    for golden in subjects {
        let ours = golden.ours(golden.keys, golden.rate);
        let path = scratch.file(&golden.file);
        ours.write_to(std::fs::File::create(&path).unwrap(), golden.is_packed()).unwrap();
        let theirs = Peer::of(&golden).check(&golden, &path);
        assert_eq!(theirs, answers(&ours, &golden.queried()), "{}", golden.file);
        println!("{}: {} opened ours", golden.file, golden.peer);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn programs_choose_the_same_sizes_and_write_the_same_bytes() {
    let (subjects, scratch) = subjects();
    for golden in subjects.into_iter().filter(|golden| !golden.is_not_ours()) {
        for plan in plans(golden.format()) {
            let path = scratch.file(&golden.file);
            let members = folder().join(format!("keys/{}.txt", golden.members));
            Peer::of(&golden).write(&golden, plan, &members, &path);
            let bytes = std::fs::read(&path).unwrap();
            let theirs = ForeignFilter::read_from(&bytes[..], golden.format(), u64::MAX);
            let theirs = theirs.unwrap_or_else(|error| panic!("{} {plan:?}: {error}", golden.file));
            let ours = golden.ours(plan.0, plan.1);
            assert!(ours.as_bytes() == theirs.as_bytes(), "{} {plan:?}", golden.file);
        }
        println!("{}: {} writes the same", golden.file, golden.peer);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn empty_filters_have_the_same_bytes() {
    let (subjects, scratch) = subjects();
    let (members, path) = (scratch.file("none.txt"), scratch.file("empty"));
    std::fs::write(&members, "").unwrap();
    let delicate = |golden: &Golden| has_delicate_sizes(golden.format()) && !golden.is_not_ours();
    for golden in subjects.into_iter().filter(delicate) {
        let ours = ForeignFilter::with_fpr(golden.format().unwrap(), 600, 0.1).unwrap();
        Peer::of(&golden).write(&golden, (600, 0.1), &members, &path);
        assert_eq!(ours.as_bytes(), std::fs::read(&path).unwrap(), "{}", golden.file);
        std::fs::write(&path, ours.as_bytes()).unwrap();
        let theirs = Peer::of(&golden).check(&golden, &path);
        assert!(theirs.bytes().all(|answer| answer == b'0'), "{}", golden.file);
    }
}

/// petal fills RedisBloom filters, including variants it does not make, and adds links as
/// RedisBloom does; RedisBloom opens the result.
#[test]
#[ignore = "cargo x test --foreign"]
fn redisbloom_filters_are_filled_equally() {
    let (subjects, scratch) = subjects();
    let (none, path) = (scratch.file("no_members.txt"), scratch.file("filled"));
    std::fs::write(&none, "").unwrap();
    for golden in subjects.into_iter().filter(|golden| golden.peer == "redisbloom") {
        let list = folder().join(format!("keys/{}.txt", golden.members));
        let members = golden.members();
        let fits = |keys| golden.variant != "nonscaling" || members.len() as u64 <= keys;
        for plan in plans(golden.format()).into_iter().filter(|(keys, _)| fits(*keys)) {
            let peer = Peer::of(&golden);
            peer.write(&golden, plan, &none, &path);
            let mut ours =
                ForeignFilter::from_bytes(std::fs::read(&path).unwrap(), golden.format()).unwrap();
            for member in &members {
                ours.insert(member.as_bytes()).unwrap();
            }
            peer.write(&golden, plan, &list, &path);
            assert!(ours.as_bytes() == std::fs::read(&path).unwrap(), "{} {plan:?}", golden.file);
            std::fs::write(&path, ours.as_bytes()).unwrap();
            let theirs = peer.check(&golden, &path);
            assert_eq!(theirs, answers(&ours, &golden.queried()), "{} {plan:?}", golden.file);
        }
        println!("{}: {} fills alike", golden.file, golden.peer);
    }
}

/// Old filters with 32-bit hashes and a power of two of bits, for which there is no golden file.
#[test]
#[ignore = "cargo x test --foreign"]
fn redisbloom_gives_the_same_answers_for_old_filters() {
    let (subjects, scratch) = subjects();
    let subject = subjects.into_iter().find(|golden| golden.file == "redisbloom-auto");
    let Some(golden) = subject else { return };
    let path = scratch.file("old");
    for options in [0, 1, 8] {
        let mut old = ForeignFilter::from_bytes(old_redisbloom(options), golden.format()).unwrap();
        golden.queried().iter().take(30).for_each(|key| {
            old.insert(key.as_bytes()).unwrap();
        });
        std::fs::write(&path, old.as_bytes()).unwrap();
        let theirs = Peer::of(&golden).check(&golden, &path);
        assert!(theirs.contains('0') && theirs.starts_with(&"1".repeat(30)), "{options}");
        assert_eq!(theirs, answers(&old, &golden.queried()), "{options}");
    }
}

/// Returns the range of the first Bloom filter of a Parquet file: its header and its bits.
fn filter_in(file: &[u8]) -> std::ops::Range<usize> {
    /// Algorithm, hash and compression, after the number of bytes.
    const CHOICES: [u8; 13] = *b"\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0";
    let at = file.windows(CHOICES.len()).position(|bytes| bytes == CHOICES).unwrap();
    let start = (at - 6..at).find(|start| file[*start] == 0x15).unwrap();
    // A zigzag varint: seven bits per byte, doubled.
    let number = &file[start + 1..at];
    let doubled = number.iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
    start..at + CHOICES.len() + doubled / 2
}

#[test]
#[ignore = "cargo x test --foreign"]
fn duckdb_queries_filters_that_petal_filled() {
    let scratch = petal_testkit::scratch::Scratch::new();
    let whole = manifest().into_iter().filter(|golden| golden.format == "parquet-file");
    let mut queried = 0;
    let text = whole.filter(|golden| golden.members == "text" && golden.rate == 0.1);
    // With several row groups the others would answer from their old filters.
    for golden in text.filter(|golden| !golden.variant.contains("groups")) {
        let mut file = golden.bytes();
        let place = filter_in(&file);
        let mut filter = file[place.clone()].to_vec();
        let bits = filter.len() / 32 * 32;
        let header = filter.len() - bits;
        filter[header..].fill(0);
        // Other keys than in the file, so that the answers cannot be those of the old filter.
        let mut ours = ForeignFilter::from_bytes(filter, Some(Format::Parquet)).unwrap();
        for key in golden.queried().iter().step_by(3) {
            ours.insert(key.as_bytes()).unwrap();
        }
        file[place].copy_from_slice(ours.as_bytes());
        let path = scratch.file(&golden.file);
        std::fs::write(&path, &file).unwrap();
        let duckdb = Golden { peer: "duckdb".into(), ..golden.clone() };
        let theirs = Peer::of(&duckdb).check(&duckdb, &path);
        assert_eq!(theirs, answers(&ours, &golden.queried()), "{}", golden.file);
        println!("{}: duckdb queried ours", golden.file);
        queried += 1;
    }
    assert!(queried > 0);
}
