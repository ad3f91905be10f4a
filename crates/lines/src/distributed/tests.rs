//! The functions compared with the naive models and with the same job on one machine, and their
//! files with every small damage.

use std::path::{Path, PathBuf};

use petal::{BloomFilter, ByteSize, Membership};
use petal_testkit::line_files::{FileSpec, overlapping_files};
use petal_testkit::model;
use petal_testkit::rng::Rng;
use petal_testkit::scratch::Scratch;

use super::range::*;
use super::*;
use crate::error::{ErrorKind, Result};
use crate::memory::MIN_MEMORY;
use crate::settings::Settings;
use crate::temp::{FileSummary, MAX_RANGES, SectionFile, SectionKind, SectionWriter};
use crate::{Mode, Outputs, SetJob, SetOp};

const VERBS: [SetOp; 3] = [SetOp::Common, SetOp::Diff, SetOp::Dedup];

/// The division of a job into ranges, partitions and shards.
#[derive(Clone, Copy, Debug)]
struct Division {
    range: u64,
    slots: usize,
    partitions: u64,
    bits: u64,
    narrow: bool,
    /// 0: not sharded.
    shards: u64,
    delimiter: u8,
}

impl Division {
    fn random(rng: &mut Rng) -> Self {
        Self {
            range: *rng.pick(&[1, 2, 7, 100, 3000, 1 << 20]),
            slots: 1 + rng.below(4),
            partitions: 1 + rng.below(5) as u64,
            bits: *rng.pick(&[1, 4, 14]),
            narrow: !rng.one_in(4),
            shards: if rng.one_in(3) { 1 + rng.below(5) as u64 } else { 0 },
            delimiter: b'\n',
        }
    }
}

/// A driver that calls the functions one after the other.
struct Driver<'a> {
    settings: Settings<'a>,
    keys: JobKeys,
    dir: PathBuf,
    division: Division,
}

impl<'a> Driver<'a> {
    fn new(dir: &Path, division: Division) -> Self {
        let mut settings = Settings::new(MIN_MEMORY);
        (settings.jobs, settings.delimiter) = (1 + division.slots % 2, division.delimiter);
        std::fs::create_dir_all(dir).unwrap();
        let keys = JobKeys::random().unwrap();
        Self { settings, keys, dir: dir.to_owned(), division }
    }

    fn task(&self) -> Task<'_> {
        Task::with_keys(&self.settings, self.keys)
    }

    fn file(&self, name: &str, number: usize) -> PathBuf {
        self.dir.join(format!("{name}-{number}"))
    }

    fn slots<'r>(&self, ranges: &'r [FileRange]) -> impl Iterator<Item = (usize, &'r [FileRange])> {
        ranges.chunks(ranges.len().div_ceil(self.division.slots).max(1)).enumerate()
    }

    fn size(&self, ranges: &[FileRange]) -> FilterSize {
        let keys = plan(&self.settings, ranges).unwrap().lines.max(1);
        FilterSize { bytes: (keys * self.division.bits / 8).max(128), capacity: keys, fpr: None }
    }

    fn partial(&self, name: &str, number: usize, twice: bool) -> PartialFilter {
        let seen = self.file(name, number);
        PartialFilter { twice: twice.then(|| seen.with_extension("twice")), seen }
    }

    /// Returns the filters of all lines, and of those seen twice.
    fn build(
        &self,
        name: &str,
        ranges: &[FileRange],
        twice: bool,
    ) -> (BloomFilter, Option<BloomFilter>) {
        let size = self.size(ranges);
        let mut partials = Vec::new();
        for (slot, ranges) in self.slots(ranges) {
            partials.push(self.partial(name, slot, twice));
            self.task().build(ranges, size, &partials[slot]).unwrap();
        }
        if partials.is_empty() {
            partials.push(self.partial(name, 0, twice));
            self.task().build(&[], size, &partials[0]).unwrap();
        }
        self.union(name, partials, twice)
    }

    fn union(
        &self,
        name: &str,
        mut partials: Vec<PartialFilter>,
        twice: bool,
    ) -> (BloomFilter, Option<BloomFilter>) {
        // As a tree.
        let mut level = 100;
        while partials.len() > 1 {
            level += 100;
            let unions = partials.chunks(2).enumerate().map(|(at, pair)| {
                let out = self.partial(name, level + at, twice);
                self.task().union(pair, &out).unwrap();
                out
            });
            partials = unions.collect();
        }
        let read =
            |path: &Path| BloomFilter::read_from(std::fs::File::open(path).unwrap()).unwrap().0;
        (read(&partials[0].seen), partials[0].twice.as_deref().map(read))
    }

    fn filter(
        &self,
        name: &str,
        ranges: &[FileRange],
        side: Side,
        narrow: Narrowing<'_>,
    ) -> Vec<PathBuf> {
        let one = |(slot, ranges): (usize, &[FileRange])| {
            let out = self.file(name, slot);
            let partitions = self.division.partitions;
            self.task().filter(ranges, side, narrow, partitions, &out).unwrap();
            out
        };
        self.slots(ranges).map(one).collect()
    }

    fn keys(&self, name: &str, side: Side, ranges: &[FileRange]) -> Vec<PathBuf> {
        let one = |(slot, ranges): (usize, &[FileRange])| {
            let out = self.file(name, slot);
            self.task().hash_lines(ranges, side, self.division.shards, &out).unwrap();
            out
        };
        self.slots(ranges).map(one).collect()
    }

    /// Returns the survivors of `a`: lines that the shard filters of `a` or `b` do not exclude.
    fn sharded(&self, op: SetOp, a: &[FileRange], b: &[FileRange]) -> Vec<PathBuf> {
        let a_keys = self.keys("keys-a", Side::First, a);
        let b_keys = self.keys("keys-b", Side::Other, b);
        let size = FilterSize { bytes: 640, capacity: 100, fpr: None };
        let probe = |shard: u64| {
            let mut filters = Vec::new();
            if op != SetOp::Dedup {
                let out = self.partial("shard-b", shard as usize, false);
                self.task().build_shard(shard, size, &b_keys, &out).unwrap();
                filters.push(read(&out.seen));
            }
            if op != SetOp::Common {
                let out = self.partial("shard-a", shard as usize, true);
                self.task().build_shard(shard, size, &a_keys, &out).unwrap();
                filters.push(read(out.twice.as_ref().unwrap()));
            }
            let filters: Vec<&dyn Membership> = filters.iter().map(|f| f as _).collect();
            // All files of hashes together, or one by one.
            let at_once = if shard.is_multiple_of(2) { a_keys.len().max(1) } else { 1 };
            let probed = a_keys.chunks(at_once).enumerate().map(|(at, keys)| {
                let out = self.file(&format!("bits-{at}"), shard as usize);
                self.task().probe(shard, Side::First, &filters, keys, &out).unwrap();
                out
            });
            probed.collect::<Vec<_>>()
        };
        let bits: Vec<_> = (0..self.division.shards).flat_map(probe).collect();
        self.filter("a", a, Side::First, Narrowing::Bits(&bits))
    }

    fn back(&self, survivors: &[PathBuf]) -> BloomFilter {
        let size = FilterSize { bytes: 1024, capacity: 100, fpr: None };
        let mut partials = vec![PartialFilter::seen(self.file("back", 99))];
        self.task().build_from_survivors(&[], size, &partials[0].seen).unwrap();
        for (at, file) in survivors.iter().enumerate() {
            partials.push(PartialFilter::seen(self.file("back", at)));
            self.task()
                .build_from_survivors(std::slice::from_ref(file), size, &partials[at + 1].seen)
                .unwrap();
        }
        self.union("back", partials, false).0
    }

    fn answers(
        &self,
        op: SetOp,
        first: SurvivorFiles<'_>,
        others: &[SurvivorFiles<'_>],
    ) -> Vec<PathBuf> {
        let one = |partition: u64| {
            let out = self.file("answer", partition as usize);
            self.task().join_partition(op, partition, first, others, &out).unwrap();
            out
        };
        (0..self.division.partitions).map(one).collect()
    }

    fn run(&self, op: SetOp, first: &[PathBuf], others: &[Vec<PathBuf>]) -> Vec<u8> {
        let a = split(first, self.division.range, &()).unwrap();
        let bs: Vec<_> =
            others.iter().map(|paths| split(paths, self.division.range, &()).unwrap()).collect();
        let narrow = self.division.narrow || self.division.shards > 0;
        let survivors = match op {
            _ if self.division.shards > 0 => {
                let of = if op == SetOp::Common { bs[0].clone() } else { bs.concat() };
                self.sharded(op, &a, &of)
            }
            SetOp::Common if narrow && !bs.is_empty() => {
                let (filter, _) = self.build("b", &bs[0], false);
                self.filter("a", &a, Side::First, Narrowing::Filters(&[&filter]))
            }
            SetOp::Diff | SetOp::Dedup if narrow => {
                let of: Vec<_> = bs.concat();
                let b = (!of.is_empty()).then(|| self.build("b", &of, false).0);
                let (_, twice) = self.build("a", &a, true);
                let filters: Vec<&dyn Membership> =
                    b.iter().chain(&twice).map(|filter| filter as &dyn Membership).collect();
                self.filter("a", &a, Side::First, Narrowing::Filters(&filters))
            }
            _ => self.filter("a", &a, Side::First, Narrowing::Nothing),
        };
        let back = narrow.then(|| self.back(&survivors));
        let back: Vec<&dyn Membership> = back.iter().map(|f| f as &dyn Membership).collect();
        let others = bs.iter().enumerate().map(|(j, ranges)| {
            let name = format!("other{j}");
            let narrow = if narrow { Narrowing::Filters(&back) } else { Narrowing::Nothing };
            self.filter(&name, ranges, Side::Other, narrow)
        });
        let others: Vec<_> = others.collect();
        let all = others.iter().zip(&bs).map(|(files, ranges)| all_of(files, ranges.len()));
        let all: Vec<_> = all.collect();
        let answers = self.answers(op, all_of(&survivors, a.len()), &all);
        let mut out = Vec::new();
        for range in &a {
            self.task().write_answer(range, &answers, Outputs::to(&mut out)).unwrap();
        }
        // A few at a time, to files.
        for ranges in a.chunks(self.division.slots + 1) {
            let out = |range: &FileRange| (range.clone(), self.file("part", range.number as usize));
            let takes: Vec<_> = ranges.iter().map(out).collect();
            self.task().write_answer_files(&takes, &answers, &self.dir).unwrap();
        }
        let part =
            |range: &FileRange| std::fs::read(self.file("part", range.number as usize)).unwrap();
        assert!(a.iter().flat_map(part).eq(out.iter().copied()));
        out
    }
}

fn all_of(files: &[PathBuf], ranges: usize) -> SurvivorFiles<'_> {
    SurvivorFiles { files, ranges: ranges as u64 }
}

fn read(path: &Path) -> BloomFilter {
    BloomFilter::read_from(std::fs::File::open(path).unwrap()).unwrap().0
}

fn expect(op: SetOp, files: &[Vec<u8>], delimiter: u8) -> Vec<u8> {
    let all: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    match op {
        SetOp::Common => model::common(all[0], &all[1..], delimiter),
        SetOp::Diff => model::diff(all[0], &all[1..], delimiter),
        SetOp::Dedup => model::dedup(&all, delimiter),
        other => panic!("{other:?} has no distributed form"),
    }
}

#[test]
fn every_operation_and_division_equals_the_model() {
    let mut rng = Rng::new(8);
    for seed in 0..30 {
        let delimiter = if seed % 5 == 0 { 0 } else { b'\n' };
        let spec = FileSpec { files: 1 + (seed % 3) as usize, delimiter, ..FileSpec::small() };
        let small = FileSpec { max_lines: 30, max_len: 60, ..spec };
        let files = overlapping_files(seed, if seed % 2 == 0 { small } else { spec });
        let scratch = Scratch::new();
        let paths: Vec<_> =
            (0..files.len()).map(|i| scratch.write(&format!("{i}"), &files[i])).collect();
        for op in VERBS.into_iter().filter(|op| files.len() > 1 || *op == SetOp::Dedup) {
            let mut division = Division { delimiter, ..Division::random(&mut rng) };
            let bytes = files.iter().map(Vec::len).sum::<usize>() as u64;
            // Limits the number of files.
            division.range = division.range.max(bytes / 300);
            let (first, others) = match op {
                SetOp::Dedup => (paths.clone(), vec![]),
                _ => (paths[..1].to_vec(), paths[1..].iter().map(|p| vec![p.clone()]).collect()),
            };
            let driver = Driver::new(&scratch.file(&format!("{op:?}")), division);
            let out = driver.run(op, &first, &others);
            assert!(out == expect(op, &files, delimiter), "seed {seed} {op:?} {division:?}");
        }
    }
}

/// Several files per side, taken as one input, give the answer of the same job on one machine.
#[test]
fn several_files_per_side_equal_the_local_job() {
    let mut rng = Rng::new(9);
    for seed in 0..20 {
        let files = overlapping_files(seed, FileSpec { files: 5, ..FileSpec::small() });
        let scratch = Scratch::new();
        let paths: Vec<_> = (0..5).map(|i| scratch.write(&format!("{i}"), &files[i])).collect();
        // On one machine each other file is an input of its own, so all of B is one file.
        let b: Vec<u8> = files[3..]
            .iter()
            .flat_map(|file| {
                let end = if file.is_empty() || file.ends_with(b"\n") { &b""[..] } else { b"\n" };
                [file, end].concat()
            })
            .collect();
        let whole = scratch.write("b", b);
        for op in VERBS {
            let division = Division { range: 500, ..Division::random(&mut rng) };
            let driver = Driver::new(&scratch.file(&format!("{op:?}")), division);
            let others = if op == SetOp::Dedup { vec![] } else { vec![paths[3..].to_vec()] };
            let out = driver.run(op, &paths[..3], &others);
            let source = |path: &PathBuf| crate::Source::from_arg(path.clone());
            let job = SetJob {
                op,
                first: paths[..3].iter().map(source).collect(),
                others: vec![source(&whole)],
                mode: Mode::Exact { strategy: None },
            };
            let mut expected = Vec::new();
            job.run(&driver.settings, Outputs::to(&mut expected)).unwrap();
            assert!(out == expected, "seed {seed} {op:?} {division:?}");
        }
    }
}

/// The files of a small job, and the function that reads each of them.
struct Small {
    scratch: Scratch,
    a: Vec<FileRange>,
    b: Vec<FileRange>,
}

impl Small {
    fn new() -> Self {
        let scratch = Scratch::new();
        let a = split(&[scratch.write("a", "x\ny\nz\nx\n\nlong line\nlast")], 9, &()).unwrap();
        let b = split(&[scratch.write("b", "y\nlast\nq\n")], 5, &()).unwrap();
        Self { scratch, a, b }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.file(name)
    }

    /// Runs one function; the files it reads exist.
    fn step(&self, task: &Task<'_>, function: &str) -> Result<Vec<u8>> {
        let file = |name: &str| self.file(name);
        let size = FilterSize { bytes: 128, capacity: 10, fpr: None };
        let (partial, twice) = (
            PartialFilter::seen(file("partial")),
            PartialFilter { seen: file("seen"), twice: Some(file("twice")) },
        );
        let mut out = Vec::new();
        match function {
            "build" => task.build(&self.b, size, &partial).map(drop)?,
            "build twice" => task.build(&self.a, size, &twice).map(drop)?,
            "union" => {
                let both = [twice.clone(), twice];
                let out = PartialFilter { seen: file("seen-all"), twice: Some(file("twice-all")) };
                task.union(&both, &out).map(drop)?;
            }
            "filter a" => {
                let all = Narrowing::Nothing;
                task.filter(&self.a, Side::First, all, 2, &file("first")).map(drop)?;
            }
            "filter b" => {
                let filter = BloomFilter::with_fpr(10, 0.5)?;
                let filter = petal::BloomFilter::builder()
                    .capacity(10)
                    .fpr(0.5)
                    .hash(*task.hasher.spec())
                    .build()
                    .map(|mut full| {
                        (0..5000u64).for_each(|i| {
                            _ = full.insert_mixed_hash(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                        });
                        full
                    })
                    .unwrap_or(filter);
                let narrow: &[&dyn Membership] = &[&filter];
                let narrow = Narrowing::Filters(narrow);
                task.filter(&self.b, Side::Other, narrow, 2, &file("other")).map(drop)?;
            }
            "build_from_survivors" => {
                task.build_from_survivors(&[file("other")], size, &file("back")).map(drop)?
            }
            "exact" => {
                for partition in 0..2 {
                    let (first, other) = ([file("first")], [file("other")]);
                    let first = all_of(&first, self.a.len());
                    let others = [all_of(&other, self.b.len())];
                    let out = file(&format!("answer-{partition}"));
                    task.join_partition(SetOp::Common, partition, first, &others, &out)?;
                }
            }
            "take" => {
                let answers = [file("answer-0"), file("answer-1")];
                for range in &self.a {
                    task.write_answer(range, &answers, Outputs::to(&mut out))?;
                }
            }
            "keys" => task.hash_lines(&self.a, Side::First, 2, &file("keys")).map(drop)?,
            "build_shard" => {
                let out = PartialFilter::seen(file("shard"));
                task.build_shard(1, size, &[file("keys")], &out).map(drop)?;
            }
            "probe" => {
                let keys = [file("keys")];
                (0..2).try_for_each(|shard| {
                    let out = file(&format!("bits-{shard}"));
                    task.probe(shard, Side::First, &[], &keys, &out).map(drop)
                })?;
            }
            "filter bits" => {
                let bits = [file("bits-0"), file("bits-1")];
                let (narrow, out) = (Narrowing::Bits(&bits), file("first-bits"));
                task.filter(&self.a, Side::First, narrow, 2, &out).map(drop)?;
            }
            _ => panic!("{function}"),
        }
        Ok(out)
    }
}

/// The functions in an order in which the input files exist, with the files they read and write.
const STEPS: [(&str, &[&str], &[&str]); 12] = [
    ("build", &[], &["partial"]),
    ("build twice", &[], &["seen", "twice"]),
    ("union", &["seen", "twice"], &["seen-all", "twice-all"]),
    ("filter a", &[], &["first"]),
    ("filter b", &[], &["other"]),
    ("build_from_survivors", &["other"], &["back"]),
    ("exact", &["first", "other"], &["answer-0", "answer-1"]),
    ("take", &["answer-0", "answer-1"], &[]),
    ("keys", &[], &["keys"]),
    ("build_shard", &["keys"], &["shard"]),
    ("probe", &["keys"], &["bits-0", "bits-1"]),
    ("filter bits", &["bits-0", "bits-1"], &["first-bits"]),
];

#[test]
fn repeated_function_writes_the_same_file() {
    let small = Small::new();
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    for (function, _, written) in STEPS {
        let out = small.step(&task, function).unwrap();
        let once: Vec<_> = written.iter().map(|name| small.scratch.read(name)).collect();
        let names = small.scratch.names();
        assert_eq!(small.step(&task, function).unwrap(), out, "{function}");
        let again: Vec<_> = written.iter().map(|name| small.scratch.read(name)).collect();
        assert!(once == again, "{function}");
        assert_eq!(small.scratch.names(), names, "{function}");
    }
}

#[test]
fn damaged_file_is_an_error_or_harmless() {
    let small = Small::new();
    let settings = Settings { jobs: 1, ..Settings::new(MIN_MEMORY) };
    let task = Task::new(&settings).unwrap();
    for (function, reads, writes) in STEPS {
        let sound = small.step(&task, function).unwrap();
        let results = || writes.iter().map(|name| small.scratch.read(name)).collect::<Vec<_>>();
        let made = results();
        for name in reads {
            let bytes = small.scratch.read(name);
            let mut refused = 0;
            let mut try_with = |damaged: &[u8], context: &str| {
                small.scratch.write(name, damaged);
                match small.step(&task, function) {
                    Ok(out) => assert!(out == sound && results() == made, "{function} {context}"),
                    Err(error) => {
                        let text = error.to_string();
                        assert!(
                            error.kind() == ErrorKind::File && !text.contains('\n'),
                            "{function}: {text}"
                        );
                        refused += 1;
                    }
                }
            };
            for cut in petal_testkit::corrupt::truncations(&bytes) {
                try_with(cut, &format!("cut to {} of {}", cut.len(), bytes.len()));
            }
            for longer in petal_testkit::corrupt::extensions(&bytes) {
                try_with(&longer, "extended");
            }
            for at in 0..bytes.len() {
                // Every bit of the index, because no checksum covers its numbers before they are
                // used.
                let index = bytes.len().saturating_sub(80 + 5 * 24)..bytes.len() - 80;
                for bit in (0..8).filter(|bit| *bit == at % 8 || index.contains(&at)) {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << bit;
                    try_with(&flipped, &format!("byte {at} bit {bit}"));
                }
            }
            assert!(refused > bytes.len(), "{function} {name}: every cut at least");
            small.scratch.write(name, &bytes);
            assert_eq!(small.step(&task, function).unwrap(), sound);
        }
    }
}

#[test]
fn files_of_another_job_or_swapped_files_are_errors() {
    let small = Small::new();
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    STEPS.iter().for_each(|(function, ..)| _ = small.step(&task, function).unwrap());
    let other = Task::new(&settings).unwrap();
    for (function, reads, _) in STEPS.iter().filter(|(_, reads, _)| !reads.is_empty()) {
        let error = small.step(&other, function).unwrap_err();
        assert!(error.kind() == ErrorKind::File, "{function} {reads:?}: {error}");
    }
    let file = |name: &str| small.file(name);
    let context = |result: Result<JoinCounts>| result.unwrap_err().to_string();
    let exact = |partition, first: &[PathBuf], others: &[PathBuf]| {
        let first = all_of(first, small.a.len());
        let others = [all_of(others, small.b.len())];
        context(task.join_partition(SetOp::Diff, partition, first, &others, &file("out")))
    };
    let (first, others) = ([file("first")], [file("other")]);
    assert!(exact(2, &first, &others).contains("2 partitions"));
    assert!(exact(0, &[file("first"), file("first")], &others).contains("once"));
    assert!(exact(0, &[file("other")], &others).contains("something else"));
    assert!(exact(0, &[file("nothing")], &others).contains("cannot be read"));
    // One file per range, with each of them missing, the last one too.
    let each = |name: &str, ranges: &[FileRange], side| -> Vec<PathBuf> {
        let one = |range: &FileRange| {
            let out = file(&format!("{name}-{}", range.number));
            let range = std::slice::from_ref(range);
            task.filter(range, side, Narrowing::Nothing, 2, &out).unwrap();
            out
        };
        ranges.iter().map(one).collect()
    };
    let firsts = each("first", &small.a, Side::First);
    let seconds = each("other", &small.b, Side::Other);
    let without = |files: &[PathBuf], at: usize| [&files[..at], &files[at + 1..]].concat();
    for at in 0..firsts.len() {
        assert!(exact(0, &without(&firsts, at), &seconds).contains("once"), "{at}");
    }
    for at in 0..seconds.len() {
        assert!(exact(0, &firsts, &without(&seconds, at)).contains("once"), "{at}");
    }
    // Survivors without narrowing have no hashes: an empty filter would exclude all of B.
    let size = FilterSize { bytes: 128, capacity: 10, fpr: None };
    let error = task.build_from_survivors(&firsts, size, &file("out")).unwrap_err();
    assert!(error.kind() == ErrorKind::File && error.to_string().contains("has 0 keys"), "{error}");
    let take = |answers: &[PathBuf]| {
        task.write_answer(&small.a[0], answers, Outputs::default()).unwrap_err().to_string()
    };
    assert!(take(&[file("answer-0")]).contains("all partitions"));
    assert!(take(&[]).contains("all partitions"));
    let bits = |files: &[PathBuf], ranges: &[FileRange]| {
        let narrow = Narrowing::Bits(files);
        task.filter(ranges, Side::First, narrow, 2, &file("out")).unwrap_err().to_string()
    };
    assert!(bits(&[file("bits-1")], &small.a).contains("in shard 0"));
    assert!(bits(&[], &small.a).contains("in shard 0"));
    assert!(bits(&[file("bits-0"), file("bits-1")], &small.a[1..]).contains("in shard"));
    // The numbers of the ranges do not identify the side.
    let (keys, none) = ([file("keys")], &[][..]);
    let error = task.probe(0, Side::Other, none, &keys, &file("out")).unwrap_err().to_string();
    assert!(error.contains("something else"), "{error}");
    let both = [file("bits-0"), file("bits-1")];
    let narrow = Narrowing::Bits(&both);
    let error = task.filter(&small.a, Side::Other, narrow, 2, &file("out")).unwrap_err();
    assert!(error.to_string().contains("something else"), "{error}");
    let swapped = [small.a[1].clone(), small.a[0].clone()];
    let error =
        task.filter(&swapped, Side::First, Narrowing::Nothing, 2, &file("out")).unwrap_err();
    assert!(error.kind() == ErrorKind::Input, "{error}");
    let strange = BloomFilter::with_fpr(10, 0.1).unwrap();
    let narrow: &[&dyn Membership] = &[&strange];
    let error = task
        .filter(&small.a, Side::First, Narrowing::Filters(narrow), 2, &file("out"))
        .unwrap_err();
    assert!(error.to_string().contains("other keys"), "{error}");
}

/// A line belongs to the range in which it starts: any split returns each line once, in order.
#[test]
fn every_line_is_in_exactly_one_range() {
    let scratch = Scratch::new();
    let settings = Settings { jobs: 2, ..Settings::new(MIN_MEMORY) };
    let task = Task::new(&settings).unwrap();
    for text in ["", "\n", "a", "a\n", "\n\na\n", "one\ntwo\n\nthree", "no end of a long line here"]
    {
        let path = scratch.write("text", text);
        for size in 1..=text.len() as u64 + 1 {
            let ranges = split(std::slice::from_ref(&path), size, &()).unwrap();
            assert!(
                ranges
                    .iter()
                    .all(|range| range.end > range.start && range.end - range.start <= size)
            );
            task.filter(&ranges, Side::First, Narrowing::Nothing, 1, &scratch.file("s")).unwrap();
            let none = Narrowing::Nothing;
            let other = task.filter(&[], Side::Other, none, 1, &scratch.file("o")).unwrap();
            assert_eq!(other.lines, 0);
            let (first, other) = ([scratch.file("s")], [scratch.file("o")]);
            let (first, others) = (all_of(&first, ranges.len()), [all_of(&other, 0)]);
            task.join_partition(SetOp::Diff, 0, first, &others, &scratch.file("0")).unwrap();
            let mut out = Vec::new();
            for range in &ranges {
                task.write_answer(range, &[scratch.file("0")], Outputs::to(&mut out)).unwrap();
            }
            let expected = model::dedup(&[text.as_bytes()], b'\n');
            assert_eq!(out, expected, "{text:?} by {size}");
        }
    }
}

#[test]
fn keys_of_one_input_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.write("a.csv", "url\nx\n");
    let name = PathBuf::from(format!("{}#url", path.display()));
    let error = split(&[name], 10, &()).unwrap_err().to_string();
    assert!(error.contains("has keys of its own, which a job on several machines"), "{error}");
}

/// The job may have failed, and another job may write to the same folder.
#[test]
fn ended_job_publishes_no_file() {
    let small = Small::new();
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    STEPS.iter().for_each(|(function, ..)| _ = small.step(&task, function).unwrap());
    let (work, out) = (small.file("work"), small.file("part"));
    let answers = [small.file("answer-0"), small.file("answer-1")];
    let take = || task.write_answer_files(&[(small.a[0].clone(), out.clone())], &answers, &work);
    let filter = BloomFilter::with_fpr(10, 0.1).unwrap();
    let check = || task.check_to_file(&small.a[0], &filter, true, Some((&out, &work)));
    let names = small.scratch.names();
    for error in [take().unwrap_err(), check().unwrap_err()] {
        assert!(error.kind() == ErrorKind::File && error.to_string().contains("gone"), "{error}");
        assert_eq!(small.scratch.names(), names);
    }
    std::fs::create_dir(&work).unwrap();
    assert_eq!(take().unwrap().written, small.scratch.read("part").len() as u64);
    assert!(check().is_ok());
    let takes = [1, 0].map(|at: usize| (small.a[at].clone(), small.file(&format!("{at}"))));
    assert!(
        task.write_answer_files(&takes, &answers, &work).unwrap_err().kind() == ErrorKind::Input,
        "out of order"
    );
}

#[test]
fn compressed_file_is_one_range() {
    let scratch = Scratch::new();
    let files = overlapping_files(3, FileSpec { files: 3, ..FileSpec::small() });
    let pack = |name: &str, bytes: &[u8]| {
        use std::io::Write as _;
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        scratch.write(name, out.finish().unwrap())
    };
    let first = vec![pack("a.gz", &files[0]), scratch.write("a2", &files[1])];
    let others = [vec![scratch.write("b.zst", zstd::encode_all(&files[2][..], 1).unwrap())]];
    let ranges = split(&first, 50, &()).unwrap();
    assert!(ranges[0].path == first[0] && ranges[1].path == first[1] && ranges.len() > 2);
    let glue = if files[0].is_empty() || files[0].ends_with(b"\n") { &b""[..] } else { b"\n" };
    let a = [&files[0], glue, &files[1]].concat();
    for op in VERBS {
        for narrow in [true, false] {
            let division = Division {
                range: 50,
                slots: 3,
                partitions: 2,
                bits: 4,
                narrow,
                shards: 0,
                delimiter: b'\n',
            };
            let driver = Driver::new(&scratch.file(&format!("{op:?}{narrow}")), division);
            let others = if op == SetOp::Dedup { &[][..] } else { &others };
            let files = [a.clone(), files[2].clone()];
            let expected = expect(op, &files[..1 + others.len()], b'\n');
            assert!(driver.run(op, &first, others) == expected, "{op:?} {narrow}");
        }
    }
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    let half = FileRange { end: ranges[0].end / 2, ..ranges[0].clone() };
    let error = task.hash_lines(&[half], Side::First, 1, &scratch.file("keys")).unwrap_err();
    assert!(error.to_string().contains("cannot be divided"), "{error}");
    let beyond = FileRange { end: 1 << 30, ..ranges[1].clone() };
    assert!(
        task.hash_lines(&[beyond], Side::First, 1, &scratch.file("keys")).unwrap_err().kind()
            == ErrorKind::Input
    );
    let pipe = split(&[PathBuf::from("/proc/self/status")], 1, &()).unwrap_err();
    assert!(pipe.kind() == ErrorKind::Input, "{pipe}");
}

#[test]
fn input_changed_since_the_split_is_an_error() {
    let scratch = Scratch::new();
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    let path = scratch.write("lines", "a\nb\n");
    let ranges = split(std::slice::from_ref(&path), 100, &()).unwrap();
    let old = std::fs::metadata(&path).unwrap().modified().unwrap();
    assert!(task.count(&ranges).is_ok());
    for text in ["a\nb\nc\n", "a\nc\n"] {
        let file = std::fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut &file, text.as_bytes()).unwrap();
        let later = if text.len() > 4 { old } else { old + std::time::Duration::from_secs(1) };
        file.set_modified(later).unwrap();
        let error = task.count(&ranges).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Input && error.to_string().contains("changed"),
            "{error}"
        );
    }
}

/// Every key that was seen twice must be in the union of `twice`, however its copies were
/// distributed.
#[test]
fn keys_in_two_partial_filters_are_in_twice() {
    let scratch = Scratch::new();
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    let size = FilterSize { bytes: 4096, capacity: 1000, fpr: None };
    let line = |from: u64, to: u64| (from..to).map(|n| format!("{n}\n")).collect::<String>();
    let texts =
        [line(0, 300), line(300, 600), line(600, 900), line(250, 350), line(0, 10) + &line(5, 6)];
    let build = |(at, text): (usize, &String)| {
        let path = scratch.write(&format!("text-{at}"), text);
        let out = PartialFilter {
            seen: scratch.file(&format!("seen-{at}")),
            twice: Some(scratch.file(&format!("twice-{at}"))),
        };
        task.build(&split(&[path], 100, &()).unwrap(), size, &out).unwrap();
        out
    };
    let partials: Vec<_> = texts.iter().enumerate().map(build).collect();
    let out = PartialFilter { seen: scratch.file("seen"), twice: Some(scratch.file("twice")) };
    task.union(&partials, &out).unwrap();
    let (seen, twice) = (read(&out.seen), read(&out.twice.unwrap()));
    let key = |n: u64| task.hasher.filter_hash(n.to_string().as_bytes());
    assert!((0..900).all(|n| seen.contains_mixed_hash(key(n))));
    assert!((250..350).chain(0..10).all(|n| twice.contains_mixed_hash(key(n))));
    let wrong = (400..900).filter(|n| twice.contains_mixed_hash(key(*n))).count();
    assert!(wrong < 250, "it must rule out something: {wrong}");
}

/// The published filter records how the keys of all ranges are spelled.
#[test]
fn published_filter_records_line_ends_and_case_of_all_ranges() {
    let scratch = Scratch::new();
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    let size = FilterSize { bytes: 4096, capacity: 1000, fpr: None };
    let published = |texts: &[&str]| {
        let build = |(at, text): (usize, &&str)| {
            let path = scratch.write(&format!("{}-{at}", texts.concat().len()), text);
            let out = PartialFilter { seen: scratch.file(&format!("seen-{at}")), twice: None };
            task.build(&split(&[path], 100, &()).unwrap(), size, &out).unwrap();
            out
        };
        let partials: Vec<_> = texts.iter().enumerate().map(build).collect();
        let out = PartialFilter { seen: scratch.file("seen"), twice: None };
        task.union(&partials, &out).unwrap();
        task.publish(&out.seen, crate::METADATA, &scratch.file("filter")).unwrap();
        let file = std::fs::read(scratch.file("filter")).unwrap();
        BloomFilter::read_from(&file[..]).unwrap().1
    };
    let crlf = published(&["a\r\nb\r\n", "c\r\n"]);
    assert!(crlf.ends_with(r#","line_ends":"CRLF","hex":{"case":"lower","keys":3}}"#), "{crlf}");
    assert!(published(&["a\r\n", "x\r\n", "c\n"]).ends_with(r#","line_ends":"LF and CRLF"}"#));
    assert_eq!(published(&["x\n", "B\n"]), crate::METADATA);
}

struct Cancel;

impl crate::Progress for Cancel {
    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn cancelled_job_returns_the_cancelled_error() {
    let small = Small::new();
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    STEPS.iter().for_each(|(function, ..)| _ = small.step(&task, function).unwrap());
    for jobs in [1, 3] {
        let cancelled = Settings { jobs, progress: &Cancel, ..settings.clone() };
        let task = Task::with_keys(&cancelled, task.job_keys());
        for (function, ..) in STEPS {
            let error = small.step(&task, function).unwrap_err();
            assert!(error.kind() == ErrorKind::Cancelled, "{function}: {error}");
        }
        assert!(plan(&cancelled, &small.a).unwrap_err().kind() == ErrorKind::Cancelled);
        assert!(split(&[small.file("a")], 9, &Cancel).unwrap_err().kind() == ErrorKind::Cancelled);
        // Also for a FIFO without a writer, read directly or copied first.
        let fifo = small.file("fifo");
        _ = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        for (first, other) in [("a", "b"), ("fifo", "b"), ("a", "fifo")] {
            let source = |name| crate::Source::from_arg(small.file(name));
            let job = SetJob {
                op: SetOp::Diff,
                first: vec![source(first)],
                others: vec![source(other)],
                mode: Mode::Exact { strategy: None },
            };
            assert!(
                job.run(&cancelled, Outputs::default()).unwrap_err().kind() == ErrorKind::Cancelled
            );
        }
        std::fs::remove_file(fifo).unwrap();
    }
}

#[test]
fn filters_count_against_the_memory_limit() {
    let small = Small::new();
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    let large = BloomFilter::builder()
        .memory(ByteSize::bytes(MIN_MEMORY))
        .capacity(10)
        .hash(*task.hasher.spec());
    let large = large.build().unwrap();
    task.hash_lines(&small.a, Side::First, 1, &small.file("keys")).unwrap();
    let (out, keys, filters) =
        (small.file("out"), [small.file("keys")], [&large as &dyn Membership]);
    let narrow = Narrowing::Filters(&filters);
    let errors = [
        task.filter(&small.a, Side::First, narrow, 2, &out).unwrap_err(),
        task.probe(0, Side::First, &filters, &keys, &out).unwrap_err(),
        task.check_to_file(&small.a[0], filters[0], false, None).unwrap_err(),
    ];
    errors.iter().for_each(|error| assert!(error.to_string().contains("too little"), "{error}"));
}

/// A section of length 0 has a checksum too.
#[test]
fn section_length_flipped_to_zero_is_an_error() {
    let scratch = Scratch::new();
    let path = scratch.file("kept");
    let mut writer = SectionWriter::new(&path, SectionKind::Kept).unwrap();
    writer.section(8, |give| give(&[7; 8])).unwrap();
    writer.section(0, |_| Ok(())).unwrap();
    writer.finish(FileSummary::default()).unwrap();
    let section =
        |number| SectionFile::open(&path, &[SectionKind::Kept], 0).unwrap().0.section(number, 8);
    assert_eq!((section(0).unwrap().bytes(), section(1).unwrap().bytes()), (8, 0));
    let mut bytes = scratch.read("kept");
    let length = bytes.len() - 80 - 2 * 24 + 8;
    bytes[length] ^= 8;
    scratch.write("kept", bytes);
    let error = section(0).map(|section| section.bytes()).unwrap_err();
    assert!(error.kind() == ErrorKind::File && error.to_string().contains("checksum"), "{error}");
}

/// Valid files with numbers that no function writes: calculations with them must not wrap.
#[test]
fn impossible_numbers_are_errors() {
    let scratch = Scratch::new();
    let settings = Settings::new(MIN_MEMORY);
    let task = Task::new(&settings).unwrap();
    let path = scratch.file("first");
    let tell = |first, last, cut, sections| {
        let mut writer = SectionWriter::new(&path, SectionKind::First).unwrap();
        (0..sections).for_each(|_| writer.section(0, |_| Ok(())).unwrap());
        writer
            .finish(FileSummary { job: task.job, first, last, cut, ..FileSummary::default() })
            .unwrap();
        let files = [path.clone()];
        let first = SurvivorFiles { files: &files, ranges: last.wrapping_add(1) };
        task.join_partition(SetOp::Dedup, 0, first, &[], &scratch.file("out"))
    };
    assert!(tell(0, MAX_RANGES - 1, 2, 3).is_ok());
    for (first, last) in [(0, MAX_RANGES), (0, u64::MAX), (2, 1), (u64::MAX, u64::MAX)] {
        let error = tell(first, last, 2, 3).unwrap_err();
        assert!(
            error.kind() == ErrorKind::File && error.to_string().contains("cannot be"),
            "{error}"
        );
    }
    for (cut, sections) in [(0, 0), (0, 1), (u64::MAX, 0), (2, 2), (1 << 40, 3)] {
        assert!(
            tell(0, 0, cut, sections).unwrap_err().kind() == ErrorKind::File,
            "{cut} {sections}"
        );
    }
}
