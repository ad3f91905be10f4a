//! Compares measured false-positive rates with predictions, for every layout.
//!
//! A *cell* is a layout with a number of keys. It is measured with many seeds, each with other keys
//! and other queries. Four comparisons are made, with bounds that follow from statistics:
//!
//! 1. the mean rate over the seeds with `layout.fpr(keys)`, two-sided;
//! 2. the mean rate with the target, from above;
//! 3. the false positives of all seeds with `estimated_fpr` of the same filters;
//! 4. the share of clear bits with its expected value at this number of keys, which `estimated_len`
//!    inverts.
//!
//! All comparisons of a test together have a confidence of 99.9 %: each is made at 1 - 0.001/c,
//! where c is the number of comparisons (Bonferroni). A correct library fails with one of a thousand
//! seeds; the seeds are fixed.
//!
//! **Bounds of 1 and 2.** The queries of one seed share a filter, so S seeds of Q queries are fewer
//! than S·Q independent trials. Their effective number follows from the spread between the seeds:
//! with s² the variance of the rates of the seeds, and p(1-p)/Q the variance without a shared
//! filter, s² / (p(1-p)/Q) is the design effect (Kish 1965), here at least 1. The count is then
//! compared with a binomial distribution of S·Q / effect trials, which also holds for rare events,
//! unlike the normal approximation. As s² is itself estimated, the effect is increased by (t/z)²,
//! with t the quantile of Student's distribution for S-1 degrees of freedom.
//!
//! **The bound of 3** is binomial: given the bits, queries are independent, and a sum of independent
//! trials of unequal probabilities has a smaller variance than one of equal probabilities (Hoeffding
//! 1956).
//!
//! **The bound of 4** is Student's, for the shares of the seeds.

use std::fmt::Debug;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use petal::embed::{BlockedLayout, ClassicLayout, Layout};
use petal::{
    AnyFilter, BatchResults, BloomFilter, ClassicBloomFilter, Filter, HashSpec, QuotientFilter,
    StaticFilter, VectorQuotientFilter,
};
use petal_testkit::bounds::{binomial_range, normal_quantile};
use petal_testkit::keys::Keys;
use petal_testkit::rng::Rng;

use crate::naive::{HeaderFields, Naive};

// ---- What is measured ---------------------------------------------------------------------------

const RATES: [f64; 5] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5];

/// Comparisons per cell: see the documentation of this file.
const COMPARISONS: usize = 4;

/// The source of hashes.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A generator of uniform 64-bit numbers, as the formulas assume.
    Generator,
    /// 16-byte keys that differ in a few low bits, hashed by rapidhash with a separate seed.
    Rapid,
    /// The same keys, hashed by SipHash-1-3.
    Keyed,
}

#[derive(Clone, Copy, Debug)]
enum CellLayout {
    Blocked(BlockedLayout),
    Classic(ClassicLayout),
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    layout: CellLayout,
    keys: u64,
    target: Option<f64>,
    source: Source,
}

/// Returns the layouts that the library chooses for target rates.
fn sized(most_keys: u64, rates: &[f64], source: Source) -> Vec<Cell> {
    let mut cells = Vec::new();
    for keys in powers(most_keys) {
        for &rate in rates {
            let target = Some(rate);
            let layout = BloomFilter::with_fpr(keys, rate).unwrap().layout();
            cells.push(Cell { layout: CellLayout::Blocked(layout), keys, target, source });
            let layout = ClassicBloomFilter::with_fpr(keys, rate).unwrap().layout();
            cells.push(Cell { layout: CellLayout::Classic(layout), keys, target, source });
        }
    }
    cells
}

/// Returns other layouts: every number of probes with 8 lanes, many with 16, with low to high loads.
fn explicit(most_keys: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut push = |layout, keys| {
        cells.push(Cell { layout, keys, target: None, source: Source::Generator });
    };
    for keys in powers(most_keys) {
        let blocks = |per_key: u64, lanes: u64| (keys * per_key).div_ceil(lanes * 64);
        for probes in 1..=8 {
            let per_key = [6, 8, 10, 12][probes as usize % 4];
            push(
                CellLayout::Blocked(BlockedLayout::new(blocks(per_key, 8), 8, probes).unwrap()),
                keys,
            );
        }
        for probes in [1, 2, 4, 5, 7, 8, 9, 11, 12, 14, 15, 16] {
            let per_key = [8, 11, 14, 17][probes as usize % 4];
            push(
                CellLayout::Blocked(BlockedLayout::new(blocks(per_key, 16), 16, probes).unwrap()),
                keys,
            );
        }
        for (probes, per_key) in [(1, 8), (2, 5), (4, 6), (7, 10), (10, 11), (16, 14)] {
            push(
                CellLayout::Classic(ClassicLayout::for_bits(keys * per_key, probes).unwrap()),
                keys,
            );
        }
    }
    cells
}

fn powers(max: u64) -> impl Iterator<Item = u64> {
    (2..).map(|power| 10u64.pow(power)).take_while(move |keys| *keys <= max)
}

// ---- Measuring ----------------------------------------------------------------------------------

/// The measurements of a cell.
struct Sample {
    queries: u64,
    /// For each seed: the share of false positives, the share of clear bits, and the rate that the
    /// filter estimates.
    rates: Vec<f64>,
    clear: Vec<f64>,
    estimated: Vec<f64>,
    /// The estimated numbers of keys.
    estimates: Vec<f64>,
}

/// Measures a cell with about `work` insertions and as many queries.
fn measure(cell: &Cell, work: u64, salt: u64) -> Sample {
    match cell.layout {
        CellLayout::Blocked(layout) => {
            let naive =
                Naive::blocked(layout.blocks(), layout.lanes().into(), layout.probes().into());
            measure_with::<BlockedLayout>(cell, &naive, work, salt)
        }
        CellLayout::Classic(layout) => {
            let naive = Naive::classic(layout.bits(), layout.probes().into());
            measure_with::<ClassicLayout>(cell, &naive, work, salt)
        }
    }
}

fn measure_with<L: Layout>(cell: &Cell, empty: &Naive, work: u64, salt: u64) -> Sample {
    let seeds = (work / cell.keys).clamp(32, 4096);
    let queries = work.div_ceil(seeds);
    let mut sample = Sample {
        queries,
        rates: Vec::new(),
        clear: Vec::new(),
        estimated: Vec::new(),
        estimates: Vec::new(),
    };
    let mut results = BatchResults::new();
    for seed in 0..seeds {
        let seed = salt << 32 | seed;
        let (spec, fields) = spec(cell.source, seed);
        // A file can have any layout, including those that no constructor returns.
        let (mut filter, _) = Filter::<L>::read_from(&empty.to_file(&fields)[..]).unwrap();
        batches(cell.source, &spec, seed, false, cell.keys, |hashes| {
            filter.insert_mixed_hashes(hashes, &mut results);
        });
        batches(cell.source, &spec, seed, false, cell.keys, |hashes| {
            filter.contains_mixed_hashes(hashes, &mut results);
            assert_eq!(results.count_ones(), hashes.len() as u64, "lost a key: {cell:?} {seed}");
        });
        let mut wrong = 0;
        batches(cell.source, &spec, seed, true, queries, |hashes| {
            filter.contains_mixed_hashes(hashes, &mut results);
            wrong += results.count_ones();
        });
        sample.rates.push(wrong as f64 / queries as f64);
        sample.clear.push(1.0 - filter.stats().fill_ratio);
        sample.estimated.push(filter.stats().estimated_fpr);
        sample.estimates.push(filter.stats().estimated_len);
    }
    sample
}

fn spec(source: Source, seed: u64) -> (HashSpec, HeaderFields) {
    let spec = match source {
        Source::Generator | Source::Rapid => HashSpec::rapid(seed),
        Source::Keyed => {
            let mut rng = Rng::new(seed);
            HashSpec::keyed(std::array::from_fn(|_| rng.next_u64() as u8))
        }
    };
    let fields = HeaderFields { hash: spec.id(), seed: spec.seed(), ..HeaderFields::none() };
    (spec, fields)
}

/// Calls with batches of hashes of members or non_members, in batches.
fn batches(
    source: Source,
    spec: &HashSpec,
    seed: u64,
    non_members: bool,
    count: u64,
    mut each: impl FnMut(&[u64]),
) {
    let keys = Keys::new(seed);
    // Two seeds that are far apart in the cycle of the generator.
    let mut rng = Rng::new(Rng::new(seed << 1 | u64::from(non_members)).next_u64());
    let mut hashes = Vec::new();
    let mut at = 0;
    while at < count {
        let end = count.min(at + 2048);
        hashes.clear();
        hashes.extend((at..end).map(|at| match source {
            Source::Generator => rng.next_u64(),
            _ if non_members => spec.hash(&keys.non_member(at)),
            _ => spec.hash(&keys.member(at)),
        }));
        each(&hashes);
        at = end;
    }
}

// ---- Comparing ------------------------------------------------------------------------------------

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

/// Returns the range of the mean rate if the true rate is `rate`.
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

/// Returns the failed comparisons of a cell.
fn failures(cell: &Cell, sample: &Sample, confidence: f64) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, found: f64, (low, high): (f64, f64)| {
        if !(low <= found && found <= high) {
            wrong.push(format!("{what} {found:.6e} is not in {low:.6e}..{high:.6e}"));
        }
    };
    let (predicted, chance) = match cell.layout {
        CellLayout::Blocked(layout) => {
            (layout.fpr(cell.keys), f64::from(layout.probes()) / layout.bits() as f64)
        }
        CellLayout::Classic(layout) => {
            let miss = f64::from(layout.probes()) * (-1.0 / layout.bits() as f64).ln_1p();
            (layout.fpr(cell.keys), -miss.exp_m1())
        }
    };
    let measured = mean(&sample.rates);
    check("rate", measured, rate_range(sample, predicted, confidence));
    if let Some(target) = cell.target {
        assert!(predicted <= target, "{cell:?}");
        // One-sided: twice the tail.
        let (_, max) = rate_range(sample, target, 2.0 * confidence - 1.0);
        check("promised rate", measured, (0.0, max));
    }
    let tries = sample.queries * sample.rates.len() as u64;
    let (low, high) = binomial_range(tries, mean(&sample.estimated), confidence);
    check("rate by the filters' own word", measured * tries as f64, (low as f64, high as f64));

    let freedom = sample.clear.len() as f64 - 1.0;
    let reach = student_quantile(0.5 + confidence / 2.0, freedom)
        * (variance(&sample.clear) / (freedom + 1.0)).sqrt();
    // More clear bits, fewer keys.
    let keys = |clear: f64| petal::math::cardinality(clear, chance);
    let clear = mean(&sample.clear);
    check("number of keys", cell.keys as f64, (keys(clear + reach), keys(clear - reach)));
    // The estimates follow from the shares, up to rounding.
    for (&clear, &estimates) in sample.clear.iter().zip(&sample.estimates) {
        let rounding = estimates * 1e-9;
        check("estimate of the keys", estimates, (keys(clear) - rounding, keys(clear) + rounding));
    }
    wrong
}

/// Measures all cells on two threads and compares them together.
fn check(mut cells: Vec<Cell>, work: u64, salt: u64) {
    let confidence = 1.0 - 0.001 / (cells.len() * COMPARISONS) as f64;
    // The slowest cells first, so that both threads finish together.
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
                    // Different keys for each cell, so that cells are independent.
                    let sample = measure(cell, work, salt << 10 | at as u64);
                    let found = failures(cell, &sample, confidence);
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

/// Prints a line of CSV for each cell if PETAL_RATES is set.
#[allow(clippy::print_stdout, reason = "the ignored test prints rows")]
fn report(cell: &Cell, sample: &Sample) {
    let (layout, lanes, probes, bits, predicted) = match cell.layout {
        CellLayout::Blocked(layout) => {
            ("blocked", layout.lanes(), layout.probes(), layout.bits(), layout.fpr(cell.keys))
        }
        CellLayout::Classic(layout) => {
            ("classic", 0, layout.probes(), layout.bits(), layout.fpr(cell.keys))
        }
    };
    let seeds = sample.rates.len();
    let measured = mean(&sample.rates);
    let error = (variance(&sample.rates) / seeds as f64).sqrt();
    println!(
        "row,{layout},{lanes},{probes},{bits},{},{:?},{:?},{seeds},{},{predicted:e},{measured:e},{error:e}",
        cell.keys,
        cell.source,
        cell.target.unwrap_or(0.0),
        sample.queries,
    );
}

// ---- Short and long -----------------------------------------------------------------------------

#[test]
fn rates_of_sized_layouts_equal_predictions() {
    check(sized(100_000, &RATES, Source::Generator), 2_000_000, 1);
}

#[test]
fn rates_of_explicit_layouts_equal_predictions() {
    check(explicit(10_000), 1_000_000, 2);
}

#[test]
fn rates_of_hashed_keys_equal_predictions() {
    let mut cells = sized(10_000, &[1e-1, 1e-3], Source::Rapid);
    cells.extend(sized(10_000, &[1e-2, 1e-4], Source::Keyed));
    check(cells, 1_000_000, 3);
}

#[test]
#[ignore = "minutes: up to ten million keys"]
fn rates_of_sized_layouts_up_to_ten_million_keys() {
    check(sized(10_000_000, &RATES, Source::Generator), 30_000_000, 4);
}

#[test]
#[ignore = "minutes: up to a million keys"]
fn rates_of_explicit_layouts_up_to_a_million_keys() {
    check(explicit(1_000_000), 20_000_000, 5);
}

#[test]
#[ignore = "minutes: up to a million keys"]
fn rates_of_hashed_keys_up_to_a_million() {
    let mut cells = sized(1_000_000, &RATES, Source::Rapid);
    cells.extend(sized(1_000_000, &RATES, Source::Keyed));
    check(cells, 10_000_000, 6);
}

/// Predictions that are wrong by a tenth must fail.
#[test]
fn wrong_prediction_is_detected() {
    let cell = sized(10_000, &[0.01], Source::Generator).pop().unwrap();
    let sample = measure(&cell, 2_000_000, 7);
    let predicted = match cell.layout {
        CellLayout::Blocked(layout) => layout.fpr(cell.keys),
        CellLayout::Classic(layout) => layout.fpr(cell.keys),
    };
    let measured = mean(&sample.rates);
    for (rate, right) in [(predicted, true), (predicted * 0.9, false), (predicted * 1.1, false)] {
        let (low, high) = rate_range(&sample, rate, 0.999_99);
        assert_eq!((low..=high).contains(&measured), right, "{rate} {measured} {low} {high}");
    }
    assert!((student_quantile(0.9995, 31.0) - 3.6335).abs() < 0.002); // tables: 3.633
}

/// Keys that are divided among filters by `HashSpec::shard` have the rate of others, in every type of
/// filter that places keys by bits of their hash.
#[test]
fn rate_holds_in_each_of_many_shards() {
    let (shards, keys, rate) = (NonZeroU64::new(64).unwrap(), 4000u64, 0.01);
    let in_first = |hash: &u64| HashSpec::shard(*hash, shards) == 0;
    let mut rng = Rng::new(41);
    let mut random = || Some(rng.next_u64());
    let mut drawn = std::iter::from_fn(&mut random).filter(in_first);
    let members: Vec<u64> = drawn.by_ref().take(keys as usize).collect();
    let others: Vec<u64> = drawn.take(20_000).collect();
    let filters: Vec<AnyFilter> = vec![
        BloomFilter::with_fpr(keys, rate).unwrap().into(),
        ClassicBloomFilter::with_fpr(keys, rate).unwrap().into(),
        QuotientFilter::with_fpr(keys, rate).unwrap().into(),
        VectorQuotientFilter::with_fpr(keys, rate).unwrap().into(),
        StaticFilter::builder().fpr(rate).from_mixed_hashes(members.clone()).unwrap().into(),
        StaticFilter::builder()
            .fpr(rate)
            .fuse(true)
            .from_mixed_hashes(members.clone())
            .unwrap()
            .into(),
    ];
    for mut filter in filters {
        let mut found = BatchResults::new();
        if let Ok(dynamic) = filter.as_dyn_mut() {
            dynamic.insert_mixed_hashes(&members, &mut found).unwrap();
        }
        filter.as_dyn().contains_mixed_hashes(&others, &mut found);
        let (_, most) = binomial_range(others.len() as u64, rate, 0.9999);
        let kind = filter.as_dyn().filter_type();
        assert!(found.count_ones() <= most, "{kind}: {} of {most}", found.count_ones());
    }
    // All shards have their share.
    let mut sizes = [0; 64];
    let mut rng = Rng::new(42);
    (0..64_000).for_each(|_| sizes[HashSpec::shard(rng.next_u64(), shards) as usize] += 1);
    let (least, most) = binomial_range(64_000, 1.0 / 64.0, 0.9999);
    assert!(sizes.iter().all(|size| (least..=most).contains(size)), "{sizes:?}");
    assert_eq!(HashSpec::shard(1 << 40, NonZeroU64::MIN), 0);
}
