//! The functions against the naive models and against the same job on one machine; their files
//! against every small damage.

use std::path::{Path, PathBuf};

use petal::{BloomFilter, Membership};
use petal_testkit::model;
use petal_testkit::nasty::{Recipe, related};
use petal_testkit::rng::Rng;
use petal_testkit::scratch::Scratch;

use super::*;
use crate::budget::LEAST_MEMORY;
use crate::{Mode, SetJob, Sinks, Verb};

const VERBS: [Verb; 3] = [Verb::Common, Verb::Diff, Verb::Dedup];

/// How a job is divided.
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

/// A driver of the functions, one after the other, with an engine that does nothing.
struct Driver<'a> {
    settings: Settings<'a>,
    keys: JobKeys,
    dir: PathBuf,
    division: Division,
}

impl<'a> Driver<'a> {
    fn new(dir: &Path, division: Division) -> Self {
        let mut settings = Settings::new(LEAST_MEMORY);
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

    fn slots<'r>(&self, ranges: &'r [Range]) -> impl Iterator<Item = (usize, &'r [Range])> {
        ranges.chunks(ranges.len().div_ceil(self.division.slots).max(1)).enumerate()
    }

    fn size(&self, ranges: &[Range]) -> Size {
        let keys = plan(&self.settings, ranges, None).unwrap().lines.max(1);
        Size { bytes: (keys * self.division.bits / 8).max(128), keys }
    }

    fn partial(&self, name: &str, number: usize, twice: bool) -> Partial {
        let seen = self.file(name, number);
        Partial { twice: twice.then(|| seen.with_extension("twice")), seen }
    }

    /// The filters of all lines, and of those seen twice.
    fn build(
        &self,
        name: &str,
        ranges: &[Range],
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
        mut partials: Vec<Partial>,
        twice: bool,
    ) -> (BloomFilter, Option<BloomFilter>) {
        // As a tree.
        let mut level = 100;
        while partials.len() > 1 {
            level += 100;
            let united = partials.chunks(2).enumerate().map(|(at, pair)| {
                let out = self.partial(name, level + at, twice);
                self.task().union(pair, &out).unwrap();
                out
            });
            partials = united.collect();
        }
        let read =
            |path: &Path| BloomFilter::read_from(std::fs::File::open(path).unwrap()).unwrap().0;
        (read(&partials[0].seen), partials[0].twice.as_deref().map(read))
    }

    fn filter(&self, name: &str, ranges: &[Range], side: Side, narrow: Narrow<'_>) -> Vec<PathBuf> {
        let one = |(slot, ranges): (usize, &[Range])| {
            let out = self.file(name, slot);
            let partitions = self.division.partitions;
            self.task().filter(ranges, side, narrow, partitions, &out).unwrap();
            out
        };
        self.slots(ranges).map(one).collect()
    }

    fn keys(&self, name: &str, ranges: &[Range]) -> Vec<PathBuf> {
        let one = |(slot, ranges): (usize, &[Range])| {
            let out = self.file(name, slot);
            self.task().keys(ranges, self.division.shards, &out).unwrap();
            out
        };
        self.slots(ranges).map(one).collect()
    }

    /// The survivors of `a`: what the filters of the shards of `a` or `b` cannot rule out.
    fn sharded(&self, verb: Verb, a: &[Range], b: &[Range]) -> Vec<PathBuf> {
        let (a_keys, b_keys) = (self.keys("keys-a", a), self.keys("keys-b", b));
        let size = Size { bytes: 640, keys: 100 };
        let probe = |shard: u64| {
            let mut filters = Vec::new();
            if verb != Verb::Dedup {
                let out = self.partial("shard-b", shard as usize, false);
                self.task().build_shard(shard, size, &b_keys, &out).unwrap();
                filters.push(read(&out.seen));
            }
            if verb != Verb::Common {
                let out = self.partial("shard-a", shard as usize, true);
                self.task().build_shard(shard, size, &a_keys, &out).unwrap();
                filters.push(read(out.twice.as_ref().unwrap()));
            }
            let filters: Vec<&dyn Membership> = filters.iter().map(|f| f as _).collect();
            // All files of hashes at once, or one by one.
            let at_once = if shard % 2 == 0 { a_keys.len().max(1) } else { 1 };
            let probed = a_keys.chunks(at_once).enumerate().map(|(at, keys)| {
                let out = self.file(&format!("bits-{at}"), shard as usize);
                self.task().probe(shard, &filters, keys, &out).unwrap();
                out
            });
            probed.collect::<Vec<_>>()
        };
        let bits: Vec<_> = (0..self.division.shards).flat_map(probe).collect();
        self.filter("a", a, Side::First, Narrow::Bits(&bits))
    }

    fn back(&self, survivors: &[PathBuf]) -> BloomFilter {
        let size = Size { bytes: 1024, keys: 100 };
        let mut partials = vec![Partial::seen(self.file("back", 99))];
        self.task().build_back(&[], size, &partials[0].seen).unwrap();
        for (at, file) in survivors.iter().enumerate() {
            partials.push(Partial::seen(self.file("back", at)));
            self.task()
                .build_back(std::slice::from_ref(file), size, &partials[at + 1].seen)
                .unwrap();
        }
        self.union("back", partials, false).0
    }

    fn answers(&self, verb: Verb, first: &[PathBuf], others: &[Vec<PathBuf>]) -> Vec<PathBuf> {
        let one = |partition: u64| {
            let out = self.file("answer", partition as usize);
            self.task().exact(verb, partition, first, others, &out).unwrap();
            out
        };
        (0..self.division.partitions).map(one).collect()
    }

    fn run(&self, verb: Verb, first: &[PathBuf], others: &[Vec<PathBuf>]) -> Vec<u8> {
        let a = split(first, self.division.range).unwrap();
        let bs: Vec<_> =
            others.iter().map(|paths| split(paths, self.division.range).unwrap()).collect();
        let narrow = self.division.narrow || self.division.shards > 0;
        let survivors = match verb {
            _ if self.division.shards > 0 => {
                let of = if verb == Verb::Common { bs[0].clone() } else { bs.concat() };
                self.sharded(verb, &a, &of)
            }
            Verb::Common if narrow && !bs.is_empty() => {
                let (filter, _) = self.build("b", &bs[0], false);
                self.filter("a", &a, Side::First, Narrow::Filters(&[&filter]))
            }
            Verb::Diff | Verb::Dedup if narrow => {
                let of: Vec<_> = bs.concat();
                let b = (!of.is_empty()).then(|| self.build("b", &of, false).0);
                let (_, twice) = self.build("a", &a, true);
                let filters: Vec<&dyn Membership> =
                    b.iter().chain(&twice).map(|filter| filter as &dyn Membership).collect();
                self.filter("a", &a, Side::First, Narrow::Filters(&filters))
            }
            _ => self.filter("a", &a, Side::First, Narrow::Nothing),
        };
        let back = narrow.then(|| self.back(&survivors));
        let back: Vec<&dyn Membership> = back.iter().map(|f| f as &dyn Membership).collect();
        let others = bs.iter().enumerate().map(|(j, ranges)| {
            let name = format!("other{j}");
            let narrow = if narrow { Narrow::Filters(&back) } else { Narrow::Nothing };
            self.filter(&name, ranges, Side::Other, narrow)
        });
        let answers = self.answers(verb, &survivors, &others.collect::<Vec<_>>());
        let mut out = Vec::new();
        for range in &a {
            self.task().take(range, &answers, Sinks::to(&mut out)).unwrap();
        }
        out
    }
}

fn read(path: &Path) -> BloomFilter {
    BloomFilter::read_from(std::fs::File::open(path).unwrap()).unwrap().0
}

fn expect(verb: Verb, files: &[Vec<u8>], delimiter: u8) -> Vec<u8> {
    let all: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    match verb {
        Verb::Common => model::common(all[0], &all[1..], delimiter),
        Verb::Diff => model::diff(all[0], &all[1..], delimiter),
        Verb::Dedup => model::dedup(&all, delimiter),
    }
}

#[test]
fn every_verb_however_divided_equals_the_model() {
    let mut rng = Rng::new(8);
    for seed in 0..120 {
        let delimiter = if seed % 5 == 0 { 0 } else { b'\n' };
        let recipe = Recipe { files: 1 + (seed % 3) as usize, delimiter, ..Recipe::small() };
        let small = Recipe { max_lines: 30, max_len: 60, ..recipe };
        let files = related(seed, if seed % 2 == 0 { small } else { recipe });
        let scratch = Scratch::new();
        let paths: Vec<_> =
            (0..files.len()).map(|i| scratch.write(&format!("{i}"), &files[i])).collect();
        for verb in VERBS.into_iter().filter(|verb| files.len() > 1 || *verb == Verb::Dedup) {
            let mut division = Division { delimiter, ..Division::random(&mut rng) };
            let bytes = files.iter().map(Vec::len).sum::<usize>() as u64;
            // Not too many files.
            division.range = division.range.max(bytes / 300);
            let (first, others) = match verb {
                Verb::Dedup => (paths.clone(), vec![]),
                _ => (paths[..1].to_vec(), paths[1..].iter().map(|p| vec![p.clone()]).collect()),
            };
            let driver = Driver::new(&scratch.file(&format!("{verb:?}")), division);
            let out = driver.run(verb, &first, &others);
            assert!(out == expect(verb, &files, delimiter), "seed {seed} {verb:?} {division:?}");
        }
    }
}

/// Several files on each side, taken as one input, are what the same job makes of them.
#[test]
fn several_files_a_side_equal_the_job_on_one_machine() {
    let mut rng = Rng::new(9);
    for seed in 0..40 {
        let files = related(seed, Recipe { files: 5, ..Recipe::small() });
        let scratch = Scratch::new();
        let paths: Vec<_> = (0..5).map(|i| scratch.write(&format!("{i}"), &files[i])).collect();
        // On one machine each other is an input of its own: one file for all of B.
        let b: Vec<u8> = files[3..]
            .iter()
            .flat_map(|file| {
                let end = if file.is_empty() || file.ends_with(b"\n") { &b""[..] } else { b"\n" };
                [file, end].concat()
            })
            .collect();
        let whole = scratch.write("b", b);
        for verb in VERBS {
            let division = Division { range: 500, ..Division::random(&mut rng) };
            let driver = Driver::new(&scratch.file(&format!("{verb:?}")), division);
            let others = if verb == Verb::Dedup { vec![] } else { vec![paths[3..].to_vec()] };
            let out = driver.run(verb, &paths[..3], &others);
            let source = |path: &PathBuf| crate::Source::from_arg(path.clone());
            let job = SetJob {
                verb,
                first: paths[..3].iter().map(source).collect(),
                others: vec![source(&whole)],
                mode: Mode::Exact { strategy: None },
            };
            let mut expected = Vec::new();
            job.run(&driver.settings, Sinks::to(&mut expected)).unwrap();
            assert!(out == expected, "seed {seed} {verb:?} {division:?}");
        }
    }
}
