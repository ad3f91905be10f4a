//! What articles say about filters, measured.
//!
//! All filters of the claims are filled in one pass over the generated URLs, and queried with [`ABSENT`] times as many
//! new ones. The Java sample is measured again with URLs that differ in a number only.

use petal::math::textbook_fpr;
use petal_bench::corpus::{Corpus, Order, Side};

use super::bits::Textbook;
use super::java_sample::{DEFAULT_SIZE, JavaSample, SEEDS, SIZE_IN_COMMENT};
use super::measure::batches;
use super::{BATCH, SeenSet};
use crate::rows::Row;

/// New URLs that are queried for each URL that was inserted.
pub const ABSENT: u64 = 4;
/// The numbers of URLs at which the Java sample is measured, as multiples of the number of the other claims.
pub const SAMPLE_MULTIPLES: [u64; 3] = [1, 2, 4];
/// Bits per URL of the sweep over k.
pub const SWEEP_BITS: f64 = 10.0;
/// The k of the sweep.
pub const SWEEP: std::ops::RangeInclusive<u32> = 1..=14;
/// Bits per URL and k of the other filters.
pub const SETTINGS: [(f64, u32); 8] = [
    // A bitmap for 1 %.
    (90.0, 1),
    (100.0, 1),
    // 1/8 and 1/4 of a hash table of 16 bytes per URL, each with its best k.
    (16.0, 11),
    (32.0, 22),
    // E = 0.001.
    (13.0, 8),
    (13.0, 9),
    (14.4, 8),
    (14.4, 10),
];
/// The seed of the URLs.
const SEED: u64 = 22;
/// The number in the first sequential URL; all of them have as many digits.
const FIRST_NUMBER: u64 = 1_000_000_000;

/// Returns the case of a textbook filter in rows.
pub fn case(bits_per_key: f64, probes: u32) -> String {
    format!("{bits_per_key} bits per URL, k = {probes}")
}

/// Returns the case of the Java sample in rows: its URLs, and its number of bits.
pub fn sample_case(urls: &str, cap: i32) -> String {
    format!("the Java sample, 2^{} bits, {urls} URLs", cap.ilog2())
}

/// The URLs of the generator, in rows.
pub const RANDOM: &str = "random";
/// URLs with consecutive numbers: every second is inserted, the others are queried.
pub const SEQUENTIAL: &str = "sequential";

/// A set and its wrong answers.
struct Tested {
    case: String,
    set: Box<dyn SeenSet>,
    false_positives: u64,
}

impl Tested {
    fn new(case: String, set: impl SeenSet + 'static) -> Self {
        Self { case, set: Box::new(set), false_positives: 0 }
    }

    fn query(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        found.clear();
        self.set.contains(urls, found)?;
        self.false_positives += found.iter().filter(|&&found| found).count() as u64;
        Ok(())
    }

    fn rows(&self, keys: u64, absent: u64) -> [Row; 2] {
        let rate = self.false_positives as f64 / absent as f64;
        [
            Row::new(&self.case, keys, "rate", rate, "of new URLs"),
            Row::new(&self.case, keys, "new URLs", absent as f64, "URLs"),
        ]
    }
}

/// Measures the claims with a number of URLs.
///
/// # Errors
/// If a filter denies a URL that was inserted.
pub fn measure(keys: u64) -> Result<Vec<Row>, String> {
    let sweep = SWEEP.map(|probes| (SWEEP_BITS, probes));
    let textbook = sweep.chain(SETTINGS).map(|(bits, probes)| {
        Tested::new(case(bits, probes), Textbook::with_bits_per_key(keys, bits, probes))
    });
    let mut tested: Vec<Tested> = textbook.collect();
    let mut rows = random(keys, ABSENT * keys, &mut tested)?;
    for multiple in SAMPLE_MULTIPLES {
        let keys = keys * multiple;
        let caps = [SIZE_IN_COMMENT, DEFAULT_SIZE];
        let sample = |cap| Tested::new(sample_case(RANDOM, cap), JavaSample::with_cap(cap));
        rows.extend(random(keys, keys, &mut caps.map(sample))?);
        for cap in caps {
            rows.extend(sequential(keys, cap));
            let rate = textbook_fpr(keys, cap as u64, SEEDS.len() as u32);
            let case = sample_case(RANDOM, cap);
            rows.push(Row::new(&case, keys, "rate by the formula", rate, "of new URLs"));
        }
    }
    Ok(rows)
}

/// Fills all sets with the same generated URLs and queries them with new ones.
fn random(keys: u64, absent: u64, tested: &mut [Tested]) -> Result<Vec<Row>, String> {
    let corpus = Corpus::new(SEED, absent, 0, Order::Plain).ok_or("too many URLs")?;
    let mut found = Vec::with_capacity(BATCH);
    batches(&corpus, Side::A, keys, &mut |_, urls| {
        tested.iter_mut().try_for_each(|one| one.set.insert(urls))
    })?;
    batches(&corpus, Side::A, keys, &mut |_, urls| {
        for one in tested.iter_mut() {
            found.clear();
            one.set.contains(urls, &mut found)?;
            if !found.iter().all(|&found| found) {
                return Err(format!("{}: a seen URL is denied", one.case));
            }
        }
        Ok(())
    })?;
    batches(&corpus, Side::B, absent, &mut |_, urls| {
        tested.iter_mut().try_for_each(|one| one.query(urls, &mut found))
    })?;
    Ok(tested.iter().flat_map(|one| one.rows(keys, absent)).collect())
}

/// Fills the Java sample with every second of the URLs with consecutive numbers, and queries the others.
fn sequential(keys: u64, cap: i32) -> Vec<Row> {
    let (case, mut sample) = (sample_case(SEQUENTIAL, cap), JavaSample::with_cap(cap));
    (0..keys).for_each(|number| sample.add(&sequential_url(2 * number)));
    let (mut wrong, mut hits) = (0_u64, [0_u64; SEEDS.len()]);
    for number in 0..keys {
        let url = sequential_url(2 * number + 1);
        let found = SEEDS.map(|seed| sample.has_bit(seed, &url));
        wrong += u64::from(found.iter().all(|&found| found));
        hits.iter_mut().zip(found).for_each(|(hits, found)| *hits += u64::from(found));
    }
    let rate = |hits: u64| hits as f64 / keys as f64;
    let of_seeds = SEEDS
        .iter()
        .zip(hits)
        .map(|(&seed, hits)| Row::new(&case, keys, &seed_figure(seed), rate(hits), "of new URLs"));
    let mut rows: Vec<Row> = of_seeds.collect();
    rows.push(Row::new(&case, keys, "rate", rate(wrong), "of new URLs"));
    rows
}

/// The share of new URLs for which the bit of one hash is set, in rows.
pub fn seed_figure(seed: i32) -> String {
    format!("bit of seed {seed} is set")
}

fn sequential_url(number: u64) -> String {
    format!("https://shop.example/item/{}", FIRST_NUMBER + number)
}
