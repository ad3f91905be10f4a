//! Measured false-positive rates against the predicted ones, for every layout.
//!
//! A *cell* is a shape with a number of keys. It is measured with many seeds: each gives other
//! keys to put in and other keys to ask for, so that both the filter and the queries are drawn
//! anew. Four things are compared, none with a tolerance of anybody's choice:
//!
//! 1. the mean rate over the seeds with `shape.rate(keys)`, from both sides;
//! 2. the mean rate with the promise, from above;
//! 3. the false positives of all seeds with `estimated_rate` of the very filters asked;
//! 4. the share of clear bits with what the number of keys makes it, which is what
//!    `estimated_len` inverts.
//!
//! All comparisons of a test hold together with 99.9 %: each is made at 1 - 0.001/c, where c is
//! the number of comparisons (Bonferroni). So a sound library fails one run in a thousand seeds,
//! and the seeds are fixed.
//!
//! **The bound of 1 and 2.** Within a seed the answers share a filter, so S seeds of Q queries
//! are fewer than S·Q independent tries. How many they are worth comes from the spread between
//! the seeds: with s² the variance of the seeds' rates, and p(1-p)/Q what it would be without a
//! shared filter, s² / (p(1-p)/Q) is the design effect (Kish 1965), here at least 1. The count is
//! then judged as a binomial one of S·Q / effect tries, which is right for rare events too, where
//! the normal approximation is not. As s² is itself a sample's, the effect is widened by (t/z)²,
//! with t the quantile of Student's distribution for S-1 degrees of freedom.
//!
//! **The bound of 3** is binomial without more: given the bits, queries are independent, and a sum
//! of independent tries of unequal chances spreads less than one of equal chances (Hoeffding 1956).
//!
//! **The bound of 4** is Student's, on the seeds' shares.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod naive;

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use naive::{Facts, Naive};
use petal::{
    Answers, BloomFilter, ClassicBloomFilter, ClassicShape, Filter, Geometry, HashSpec, Shape,
};
use petal_testkit::bounds::{binomial_range, normal_quantile};
use petal_testkit::keys::Keys;
use petal_testkit::rng::Rng;

// ---- What is measured ---------------------------------------------------------------------------

const RATES: [f64; 5] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5];

/// Comparisons for each cell: see the head of this file.
const COMPARISONS: usize = 4;

/// Where hashes come from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A generator of good 64-bit numbers: what the formulas assume.
    Generator,
    /// 16-byte keys that differ in a few low bits, through rapidhash with a seed of its own.
    Rapid,
    /// The same keys through SipHash-1-3.
    Keyed,
}

#[derive(Clone, Copy, Debug)]
enum Layout {
    Blocked(Shape),
    Classic(ClassicShape),
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    layout: Layout,
    keys: u64,
    promise: Option<f64>,
    source: Source,
}

/// The shapes that the library chooses for a promise.
fn promised(most_keys: u64, rates: &[f64], source: Source) -> Vec<Cell> {
    let mut cells = Vec::new();
    for keys in powers(most_keys) {
        for &rate in rates {
            let promise = Some(rate);
            let shape = BloomFilter::with_rate(keys, rate).unwrap().shape();
            cells.push(Cell { layout: Layout::Blocked(shape), keys, promise, source });
            let shape = ClassicBloomFilter::with_rate(keys, rate).unwrap().shape();
            cells.push(Cell { layout: Layout::Classic(shape), keys, promise, source });
        }
    }
    cells
}

/// Shapes the library need not choose: every number of probes in lines, many in pairs, with
/// loads from light to heavy.
fn explicit(most_keys: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut push = |layout, keys| {
        cells.push(Cell { layout, keys, promise: None, source: Source::Generator });
    };
    for keys in powers(most_keys) {
        let blocks = |per_key: u64, lanes: u64| (keys * per_key).div_ceil(lanes * 64);
        for probes in 1..=8 {
            let per_key = [6, 8, 10, 12][probes as usize % 4];
            push(Layout::Blocked(Shape::new(blocks(per_key, 8), 8, probes).unwrap()), keys);
        }
        for probes in [1, 2, 4, 5, 7, 8, 9, 11, 12, 14, 15, 16] {
            let per_key = [8, 11, 14, 17][probes as usize % 4];
            push(Layout::Blocked(Shape::new(blocks(per_key, 16), 16, probes).unwrap()), keys);
        }
        for (probes, per_key) in [(1, 8), (2, 5), (4, 6), (7, 10), (10, 11), (16, 14)] {
            push(Layout::Classic(ClassicShape::for_bits(keys * per_key, probes).unwrap()), keys);
        }
    }
    cells
}

fn powers(most: u64) -> impl Iterator<Item = u64> {
    (2..).map(|power| 10u64.pow(power)).take_while(move |keys| *keys <= most)
}

// ---- Measuring ----------------------------------------------------------------------------------

/// What the seeds of a cell gave.
struct Sample {
    queries: u64,
    /// Of each seed: share of the queries that were false positives, share of bits clear, and
    /// what the filter said of its own rate.
    rates: Vec<f64>,
    clear: Vec<f64>,
    said: Vec<f64>,
    /// The filters' own estimates of how many keys they hold.
    held: Vec<f64>,
}

/// A cell with about `work` hashes put in, and as many asked for.
fn measure(cell: &Cell, work: u64, salt: u64) -> Sample {
    match cell.layout {
        Layout::Blocked(shape) => {
            let naive = Naive::blocked(shape.blocks(), shape.lanes().into(), shape.probes().into());
            measure_with::<Shape>(cell, &naive, work, salt)
        }
        Layout::Classic(shape) => {
            let naive = Naive::classic(shape.bits(), shape.probes().into());
            measure_with::<ClassicShape>(cell, &naive, work, salt)
        }
    }
}

fn measure_with<G: Geometry>(cell: &Cell, empty: &Naive, work: u64, salt: u64) -> Sample {
    let seeds = (work / cell.keys).clamp(32, 4096);
    let queries = work.div_ceil(seeds);
    let mut sample = Sample {
        queries,
        rates: Vec::new(),
        clear: Vec::new(),
        said: Vec::new(),
        held: Vec::new(),
    };
    let mut answers = Answers::new();
    for seed in 0..seeds {
        let seed = salt << 32 | seed;
        let (spec, facts) = spec(cell.source, seed);
        // Any shape can be had from a file, also those that no constructor gives.
        let (mut filter, _) = Filter::<G>::read_from(&empty.to_file(&facts)[..]).unwrap();
        batches(cell.source, &spec, seed, false, cell.keys, |hashes| {
            filter.insert_mixed_hashes(hashes, &mut answers);
        });
        batches(cell.source, &spec, seed, false, cell.keys, |hashes| {
            filter.contains_mixed_hashes(hashes, &mut answers);
            assert_eq!(answers.count_ones(), hashes.len() as u64, "lost a key: {cell:?} {seed}");
        });
        let mut wrong = 0;
        batches(cell.source, &spec, seed, true, queries, |hashes| {
            filter.contains_mixed_hashes(hashes, &mut answers);
            wrong += answers.count_ones();
        });
        sample.rates.push(wrong as f64 / queries as f64);
        sample.clear.push(1.0 - filter.fill_ratio());
        sample.said.push(filter.estimated_rate());
        sample.held.push(filter.estimated_len());
    }
    sample
}

fn spec(source: Source, seed: u64) -> (HashSpec, Facts) {
    let spec = match source {
        Source::Generator | Source::Rapid => HashSpec::rapid(seed),
        Source::Keyed => {
            let mut rng = Rng::new(seed);
            HashSpec::keyed(std::array::from_fn(|_| rng.next_u64() as u8))
        }
    };
    let facts = Facts { hash: spec.id(), seed: spec.seed(), ..Facts::none() };
    (spec, facts)
}

/// So many hashes of members or strangers, in batches.
fn batches(
    source: Source,
    spec: &HashSpec,
    seed: u64,
    strangers: bool,
    count: u64,
    mut each: impl FnMut(&[u64]),
) {
    let keys = Keys::new(seed);
    // Two seeds that are far apart in the generator's one cycle.
    let mut rng = Rng::new(Rng::new(seed << 1 | u64::from(strangers)).next_u64());
    let mut hashes = Vec::new();
    let mut at = 0;
    while at < count {
        let end = count.min(at + 2048);
        hashes.clear();
        hashes.extend((at..end).map(|at| match source {
            Source::Generator => rng.next_u64(),
            _ if strangers => spec.hash(&keys.stranger(at)),
            _ => spec.hash(&keys.member(at)),
        }));
        each(&hashes);
        at = end;
    }
}

// ---- Judging ------------------------------------------------------------------------------------

/// Student's quantile, by the expansion of Abramowitz & Stegun 26.7.5, which for 31 degrees of
/// freedom and more is good to a few parts in a thousand at the confidences used here.
fn student_quantile(probability: f64, freedom: f64) -> f64 {
    let z = normal_quantile(probability);
    let (z3, z5, z7, z9) = (z.powi(3), z.powi(5), z.powi(7), z.powi(9));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
        + (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * z)
            / (92_160.0 * freedom.powi(4))
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

fn variance(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (samples.len() - 1) as f64
}

/// Where the mean rate lies if the true rate is `rate`.
fn rate_range(sample: &Sample, rate: f64, confidence: f64) -> (f64, f64) {
    let seeds = sample.rates.len() as f64;
    let upper = 0.5 + confidence / 2.0;
    let widen = student_quantile(upper, seeds - 1.0) / normal_quantile(upper);
    let alone = rate * (1.0 - rate) / sample.queries as f64;
    let effect = (variance(&sample.rates) / alone).max(1.0) * widen.powi(2);
    let tries = seeds * sample.queries as f64 / effect;
    let (low, high) = binomial_range(tries as u64, rate, confidence);
    (low as f64 / tries, high as f64 / tries)
}

/// What is wrong with a cell; nothing, one hopes.
fn judge(cell: &Cell, sample: &Sample, confidence: f64) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, found: f64, (low, high): (f64, f64)| {
        if !(low <= found && found <= high) {
            wrong.push(format!("{what} {found:.6e} is not in {low:.6e}..{high:.6e}"));
        }
    };
    let (predicted, chance) = match cell.layout {
        Layout::Blocked(shape) => {
            (shape.rate(cell.keys), f64::from(shape.probes()) / shape.bits() as f64)
        }
        Layout::Classic(shape) => {
            let miss = f64::from(shape.probes()) * (-1.0 / shape.bits() as f64).ln_1p();
            (shape.rate(cell.keys), -miss.exp_m1())
        }
    };
    let measured = mean(&sample.rates);
    check("rate", measured, rate_range(sample, predicted, confidence));
    if let Some(promise) = cell.promise {
        assert!(predicted <= promise, "{cell:?}");
        // Twice the tail on the one side that counts.
        let (_, most) = rate_range(sample, promise, 2.0 * confidence - 1.0);
        check("promised rate", measured, (0.0, most));
    }
    let tries = sample.queries * sample.rates.len() as u64;
    let (low, high) = binomial_range(tries, mean(&sample.said), confidence);
    check("rate by the filters' own word", measured * tries as f64, (low as f64, high as f64));

    let freedom = sample.clear.len() as f64 - 1.0;
    let reach = student_quantile(0.5 + confidence / 2.0, freedom)
        * (variance(&sample.clear) / (freedom + 1.0)).sqrt();
    // More clear bits, fewer keys.
    let keys = |clear: f64| petal::rate::cardinality(clear, chance);
    let clear = mean(&sample.clear);
    check("number of keys", cell.keys as f64, (keys(clear + reach), keys(clear - reach)));
    // The estimates are those of the shares: equal but for rounding in the last digits.
    for (&clear, &held) in sample.clear.iter().zip(&sample.held) {
        let rounding = held * 1e-9;
        check("estimate of the keys", held, (keys(clear) - rounding, keys(clear) + rounding));
    }
    wrong
}

/// Measures all cells on two threads and judges them together.
fn prove(mut cells: Vec<Cell>, work: u64, salt: u64) {
    let confidence = 1.0 - 0.001 / (cells.len() * COMPARISONS) as f64;
    // The slowest first, so that both threads end together.
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.keys));
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let verbose = std::env::var_os("PETAL_RATES").is_some();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(at) else { break };
                    // Keys of its own, so that chance strikes each cell alone.
                    let sample = measure(cell, work, salt << 10 | at as u64);
                    let found = judge(cell, &sample, confidence);
                    if verbose {
                        report(cell, &sample);
                    }
                    let found = found.into_iter().map(|text| format!("{cell:?}: {text}"));
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), cells.len(), wrong.join("\n"));
}

/// A row of CSV for each cell, if PETAL_RATES is set: for tables and for a second look.
#[allow(clippy::print_stdout, reason = "rows are asked for by name")]
fn report(cell: &Cell, sample: &Sample) {
    let (layout, lanes, probes, bits, predicted) = match cell.layout {
        Layout::Blocked(shape) => {
            ("blocked", shape.lanes(), shape.probes(), shape.bits(), shape.rate(cell.keys))
        }
        Layout::Classic(shape) => {
            ("classic", 0, shape.probes(), shape.bits(), shape.rate(cell.keys))
        }
    };
    let seeds = sample.rates.len();
    let measured = mean(&sample.rates);
    let error = (variance(&sample.rates) / seeds as f64).sqrt();
    println!(
        "row,{layout},{lanes},{probes},{bits},{},{:?},{:?},{seeds},{},{predicted:e},{measured:e},{error:e}",
        cell.keys,
        cell.source,
        cell.promise.unwrap_or(0.0),
        sample.queries,
    );
}

// ---- Short and long -----------------------------------------------------------------------------

#[test]
fn rates_of_promised_shapes_are_as_predicted() {
    prove(promised(100_000, &RATES, Source::Generator), 2_000_000, 1);
}

#[test]
fn rates_of_explicit_shapes_are_as_predicted() {
    prove(explicit(10_000), 1_000_000, 2);
}

#[test]
fn rates_of_real_keys_are_as_predicted() {
    let mut cells = promised(10_000, &[1e-1, 1e-3], Source::Rapid);
    cells.extend(promised(10_000, &[1e-2, 1e-4], Source::Keyed));
    prove(cells, 1_000_000, 3);
}

#[test]
#[ignore = "minutes: up to ten million keys"]
fn rates_of_promised_shapes_up_to_ten_million_keys() {
    prove(promised(10_000_000, &RATES, Source::Generator), 30_000_000, 4);
}

#[test]
#[ignore = "minutes: up to a million keys"]
fn rates_of_explicit_shapes_up_to_a_million_keys() {
    prove(explicit(1_000_000), 20_000_000, 5);
}

#[test]
#[ignore = "minutes: up to a million keys"]
fn rates_of_real_keys_up_to_a_million() {
    let mut cells = promised(1_000_000, &RATES, Source::Rapid);
    cells.extend(promised(1_000_000, &RATES, Source::Keyed));
    prove(cells, 10_000_000, 6);
}

/// The bounds must be able to say "wrong": rates that are off by a tenth are found out.
#[test]
fn a_wrong_prediction_is_found_out() {
    let cell = promised(10_000, &[0.01], Source::Generator).pop().unwrap();
    let sample = measure(&cell, 2_000_000, 7);
    let predicted = match cell.layout {
        Layout::Blocked(shape) => shape.rate(cell.keys),
        Layout::Classic(shape) => shape.rate(cell.keys),
    };
    let measured = mean(&sample.rates);
    for (rate, right) in [(predicted, true), (predicted * 0.9, false), (predicted * 1.1, false)] {
        let (low, high) = rate_range(&sample, rate, 0.999_99);
        assert_eq!((low..=high).contains(&measured), right, "{rate} {measured} {low} {high}");
    }
    assert!((student_quantile(0.9995, 31.0) - 3.6335).abs() < 0.002); // tables: 3.633
}
