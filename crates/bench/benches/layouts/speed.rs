//! The clock: every layout and kernel in turn, every answer judged.

use std::hint::black_box;
use std::time::Instant;

use petal::{Answers, BloomFilter, Shape};
use petal_bench::permutation::mix;
use petal_bench::summary::{csv_row, median};

use super::Rows;
use super::memory::{Line, Memory, Pages};
use super::space::smallest;
use super::vector::{Act, Kernel};

/// A sample is this many keys: shorter than a time slice, so that most samples see no other process.
const CHUNK: u64 = 50_000;
/// Filters for at most so many keys are filled anew in every round.
const SMALL: u64 = 1_000_000;
/// The most kernels a layout has: portable, and two each of AVX-512 and AVX2.
const SLOTS: usize = 5;
const OPERATIONS: [&str; 3] = ["insert", "query absent", "query present"];

/// What is compared: a rate, lanes, and the least number of probes to choose from.
const LAYOUTS: [(f64, &str, u32, u32); 15] = [
    (0.04, "line, all lanes", 8, 8),
    (0.04, "line, rotated", 8, 1),
    (0.01, "line, all lanes", 8, 8),
    (0.01, "line, rotated", 8, 1),
    (0.01, "pair, rotated", 16, 1),
    (2e-3, "line, rotated", 8, 1),
    (2e-3, "pair, rotated", 16, 1),
    (1e-3, "line, rotated", 8, 1),
    (1e-3, "pair, rotated", 16, 1),
    (5e-4, "line, rotated", 8, 1),
    (5e-4, "pair, rotated", 16, 1),
    (1e-4, "line, rotated", 8, 1),
    (1e-4, "pair, rotated", 16, 1),
    (1e-5, "line, rotated", 8, 1),
    (1e-5, "pair, rotated", 16, 1),
];

/// One layout, in memory of the prototypes' and in a filter of the library's.
struct Subject {
    rate: f64,
    layout: &'static str,
    shape: Shape,
    memory: Memory,
    /// Where the public functions can make this shape.
    filter: Option<BloomFilter>,
    clocks: Vec<Clock>,
}

/// The samples of one kernel: ns per key for each of [`OPERATIONS`]. No kernel means the portable one.
struct Clock {
    kernel: Option<Kernel>,
    samples: [Vec<f64>; 3],
    hits: u64,
}

/// Hashes and room for answers, for one chunk.
struct Batch {
    hashes: Vec<u64>,
    bits: Vec<u32>,
    answers: Answers,
}

impl Batch {
    /// The hashes of a range of keys; odd ones were never inserted.
    fn fill(&mut self, keys: std::ops::Range<u64>, odd: bool) {
        self.hashes.clear();
        self.hashes.extend(keys.map(|key| mix(2 * key + u64::from(odd))));
        self.bits.clear();
        self.bits.resize(self.hashes.len().div_ceil(32), 0);
    }
}

/// Compares, then times.
pub(crate) fn measure(quick: bool, large: u64, rows: &mut Rows) {
    // The library would take the best there is.
    petal::Kernel::Portable.force();
    for (rate, _, lanes, least) in LAYOUTS {
        compare(smallest(20_011, rate, lanes, least));
    }
    for (lanes, probes) in [(8, 1), (8, 8), (16, 9), (16, 16)] {
        compare(Shape::new(1, lanes, probes).unwrap_or_else(|e| panic!("{e}")));
        compare(Shape::new(77, lanes, probes).unwrap_or_else(|e| panic!("{e}")));
    }
    if quick {
        return contest(100_000, 20, Pages::Small, rows);
    }
    contest(100_000, 60, Pages::Small, rows);
    contest(1_000_000, 10, Pages::Small, rows);
    contest(large, 1, Pages::Small, rows);
    contest(large, 1, Pages::Huge, rows);
}

/// Every prototype marks the bits that the portable kernel marks, and gives its answers.
fn compare(shape: Shape) {
    let mut batch = Batch { hashes: vec![], bits: vec![], answers: Answers::new() };
    let new = || {
        portable(&shape, shape.bits())
            .map(|filter| (filter, Memory::zeroed(lines(&shape), Pages::Small)))
    };
    for kernel in Kernel::for_layout(shape.lanes(), shape.probes()) {
        let Some((mut filter, mut memory)) = new() else { return };
        // Some keys twice, and a last group that is not full.
        for (keys, odd) in
            [(0..10_007, false), (5_000..12_345, false), (0..12_345, true), (0..12_345, false)]
        {
            batch.fill(keys, odd);
            for act in [Act::Insert, Act::Test] {
                if act == Act::Insert && odd {
                    continue;
                }
                match act {
                    Act::Insert => filter.insert_mixed_hashes(&batch.hashes, &mut batch.answers),
                    Act::Test => filter.contains_mixed_hashes(&batch.hashes, &mut batch.answers),
                }
                kernel.run(
                    act,
                    memory.lines(),
                    shape.lanes(),
                    shape.probes(),
                    &batch.hashes,
                    &mut batch.bits,
                );
                let ours =
                    (0..batch.hashes.len()).map(|at| batch.bits[at / 32] >> (at % 32) & 1 == 1);
                assert!(
                    ours.eq((0..batch.hashes.len()).map(|at| batch.answers.get(at))),
                    "{kernel:?} {act:?} {shape:?}"
                );
            }
        }
        let mut file = Vec::new();
        filter.write_to(&mut file, "").unwrap_or_else(|e| panic!("{e}"));
        // Without metadata the bits begin at the second page (docs/format.md).
        let theirs = file[4096..].iter().copied();
        let ours = memory.lines().iter().flat_map(|line| line.0).flat_map(u64::to_le_bytes);
        assert!(ours.eq(theirs.take(shape.size_bytes() as usize)), "{kernel:?} {shape:?}");
    }
}

fn lines(shape: &Shape) -> usize {
    (shape.size_bytes() / 64) as usize
}

/// A filter of the library of this very shape; its builder takes lines for up to 8 probes, pairs above.
fn portable(shape: &Shape, bits: u64) -> Option<BloomFilter> {
    let filter = BloomFilter::with_bits(bits, shape.probes()).ok()?;
    (filter.shape() == *shape).then_some(filter)
}

fn contest(keys: u64, rounds: usize, pages: Pages, rows: &mut Rows) {
    let mut subjects: Vec<Subject> =
        LAYOUTS.iter().map(|layout| Subject::new(*layout, keys, pages)).collect();
    let mut batch = Batch { hashes: vec![], bits: vec![], answers: Answers::new() };
    let chunks: Vec<_> = (0..keys / CHUNK).map(|at| at * CHUNK..(at + 1) * CHUNK).collect();
    let small = keys <= SMALL;
    for round in 0..rounds {
        subjects.iter_mut().for_each(Subject::clear);
        for (at, range) in chunks.iter().enumerate() {
            batch.fill(range.clone(), false);
            for subject in &mut subjects {
                subject.insert(&mut batch, small, round * chunks.len() + at);
            }
        }
        let step = chunks.len().div_ceil(100);
        for (at, operation) in (0..chunks.len()).step_by(step).flat_map(|at| [(at, 1), (at, 2)]) {
            for slot in 0..SLOTS {
                // Out of cache each kernel has keys of its own, lest it find lines that another fetched.
                let own = if small { 0 } else { slot };
                batch.fill(chunks[(at + own) % chunks.len()].clone(), operation == 1);
                for subject in &mut subjects {
                    subject.query(&mut batch, small, operation, slot, round + at / step);
                }
            }
        }
    }
    for subject in &subjects {
        subject.judge(keys);
        subject.report(keys, pages, rows);
    }
}

impl Subject {
    fn new(
        (rate, layout, lanes, least): (f64, &'static str, u32, u32),
        keys: u64,
        pages: Pages,
    ) -> Self {
        let shape = smallest(keys, rate, lanes, least);
        let memory = Memory::zeroed(lines(&shape), pages);
        // The library takes the pages it gets.
        let filter = if pages == Pages::Small { portable(&shape, shape.bits()) } else { None };
        let kernels = Kernel::for_layout(shape.lanes(), shape.probes()).into_iter().map(Some);
        let kernels = filter.iter().map(|_| None).chain(kernels);
        let clocks =
            kernels.map(|kernel| Clock { kernel, samples: Default::default(), hits: 0 }).collect();
        Self { rate, layout, shape, memory, filter, clocks }
    }

    fn clear(&mut self) {
        self.memory.lines().fill(Line([0; 8]));
        self.filter.iter_mut().for_each(BloomFilter::clear);
    }

    fn insert(&mut self, batch: &mut Batch, warm: bool, turn: usize) {
        // The prototypes fill one memory, by turns.
        let vectors = self.clocks.iter().filter(|clock| clock.kernel.is_some()).count().max(1);
        let portables = self.clocks.len() - vectors.min(self.clocks.len());
        for (at, clock) in self.clocks.iter_mut().enumerate() {
            if clock.kernel.is_some() && at != portables + turn % vectors {
                continue;
            }
            let mut act = |act| {
                run(act, clock.kernel, &self.shape, &mut self.memory, &mut self.filter, batch)
            };
            if warm {
                act(Act::Test);
            }
            clock.samples[0].push(act(Act::Insert));
        }
    }

    /// Asks the kernel whose turn it is; each is first as often as last.
    fn query(&mut self, batch: &mut Batch, warm: bool, operation: usize, slot: usize, turn: usize) {
        if slot >= self.clocks.len() {
            return;
        }
        let at = (slot + turn) % self.clocks.len();
        let clock = &mut self.clocks[at];
        let mut ask =
            || run(Act::Test, clock.kernel, &self.shape, &mut self.memory, &mut self.filter, batch);
        if warm {
            ask();
        }
        clock.samples[operation].push(ask());
        let hits = match clock.kernel {
            None => batch.answers.count_ones(),
            Some(_) => batch.bits.iter().map(|bits| u64::from(bits.count_ones())).sum(),
        };
        match operation {
            1 => clock.hits += hits,
            _ => assert_eq!(hits, batch.hashes.len() as u64, "{:?} lost a key", self.shape),
        }
    }

    /// The false positives are those predicted, and where kernels had the same keys they agree.
    fn judge(&self, keys: u64) {
        for clock in &self.clocks {
            let asked = clock.samples[1].len() as f64 * CHUNK as f64;
            // A small filter is filled with the same keys and asked for the same ones in every round.
            let rounds = if keys <= SMALL { asked / keys as f64 } else { 1.0 };
            let expected = self.shape.rate(keys / CHUNK * CHUNK) * asked / rounds;
            let hits = clock.hits as f64 / rounds;
            let slack = 6.0 * expected.sqrt() + 6.0 + 0.01 * expected;
            assert!((hits - expected).abs() < slack, "{:?}: {hits}, due {expected}", self.shape);
            let same = keys > SMALL || clock.hits == self.clocks[0].hits;
            assert!(same, "{:?}: kernels differ", self.shape);
        }
    }

    fn report(&self, keys: u64, pages: Pages, rows: &mut Rows) {
        let bits = format!("{:.3}", self.shape.bits() as f64 / keys as f64);
        let pages = if pages == Pages::Huge { "2 MiB" } else { "4 KiB" };
        for clock in &self.clocks {
            for (operation, samples) in OPERATIONS.iter().zip(&clock.samples) {
                let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
                rows.add(csv_row(&[
                    *operation,
                    &self.rate.to_string(),
                    self.layout,
                    &self.shape.probes().to_string(),
                    &bits,
                    &keys.to_string(),
                    clock.kernel.map_or("portable", Kernel::name),
                    pages,
                    &format!("{:.2}", median(samples).unwrap_or(f64::NAN)),
                    &format!("{least:.2}"),
                    &samples.len().to_string(),
                ]));
            }
        }
    }
}

/// ns per key.
fn run(
    act: Act,
    kernel: Option<Kernel>,
    shape: &Shape,
    memory: &mut Memory,
    filter: &mut Option<BloomFilter>,
    batch: &mut Batch,
) -> f64 {
    let start = Instant::now();
    match (kernel, filter, act) {
        (Some(kernel), ..) => {
            kernel.run(
                act,
                memory.lines(),
                shape.lanes(),
                shape.probes(),
                &batch.hashes,
                &mut batch.bits,
            );
        }
        (None, Some(filter), Act::Insert) => {
            filter.insert_mixed_hashes(&batch.hashes, &mut batch.answers)
        }
        (None, Some(filter), Act::Test) => {
            filter.contains_mixed_hashes(&batch.hashes, &mut batch.answers)
        }
        (None, None, _) => return f64::NAN,
    }
    black_box((&batch.bits, &batch.answers));
    start.elapsed().as_nanos() as f64 / batch.hashes.len() as f64
}
