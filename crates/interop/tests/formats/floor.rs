//! The rates of `stats` equal measured ones where double hashing keeps them above fill^k.

#![allow(clippy::print_stdout, reason = "what was measured")]

use petal::BatchResults;
use petal_interop::{ForeignFilter, Format};
use petal_testkit::rng::Rng;

/// Formats with double hashing, and the factor between the rate of 1,000 keys at 1e-8 and the
/// target.
const FORMATS: [(Format, f64); 7] = [
    (Format::Guava, 300.0),
    (Format::Guava32, 100.0),
    (Format::SparkV1, 100.0),
    (Format::SparkV2, 3000.0),
    (Format::RedisBloom, 300.0),
    (Format::DataSketches, 100.0),
    (Format::Poppy, 40.0),
];

/// Returns a filter of random keys.
fn filled(format: Format, keys: u64, rate: f64, members: u64, rng: &mut Rng) -> ForeignFilter {
    let mut filter = ForeignFilter::with_fpr(format, keys, rate).unwrap();
    for _ in 0..members {
        filter.insert(&rng.bytes(16)).unwrap();
    }
    filter
}

/// Looks up at most `most` absent keys, until `enough` are reported as present. Returns both
/// numbers.
fn found(filter: &ForeignFilter, most: u64, enough: u64, rng: &mut Rng) -> (u64, u64) {
    const BATCH: u64 = 1 << 16;
    let (mut hasher, mut words, mut answers) = (filter.hasher(), Vec::new(), BatchResults::new());
    let (mut queried, mut yes) = (0, 0);
    while queried < most && yes < enough {
        words.clear();
        for _ in 0..BATCH {
            let key = [rng.next_u64().to_le_bytes(), rng.next_u64().to_le_bytes()].concat();
            hasher.hash(&key, &mut words).unwrap();
        }
        filter.contains_words(&words, &mut answers);
        (queried, yes) = (queried + BATCH, yes + answers.count_ones());
    }
    (queried, yes)
}

#[test]
fn computed_rates_equal_measured_rates() {
    let plans = [
        (100, 1e-6, 100),
        (300, 1e-8, 300),
        (1000, 1e-8, 1000),
        (1000, 1e-8, 400),
        (1000, 1e-4, 1500),
        (5000, 1e-5, 5000),
    ];
    let mut wrong = Vec::new();
    for (at, (format, _)) in FORMATS.into_iter().enumerate() {
        for (keys, rate, members) in plans {
            let mut rng = Rng::new(at as u64 * 1000 + keys + members);
            // poppy refuses more.
            let members = if format == Format::Poppy { members.min(keys) } else { members };
            let filter = filled(format, keys, rate, members, &mut rng);
            let stats = filter.stats();
            let (queried, yes) = found(&filter, 1 << 22, 300, &mut rng);
            let expected = stats.estimated_fpr * queried as f64;
            let naive = (stats.set as f64 / stats.bits as f64).powf(stats.probes.into());
            let row = format!(
                "{format} {keys} at {rate:e} with {members}: computed {:.3e} (of that {:.3e} floor), \
                 measured {:.3e} ({yes}), fill^k {naive:.3e}",
                stats.estimated_fpr,
                stats.fpr_floor,
                yes as f64 / queried as f64,
            );
            println!("{row}");
            // The formula's own error, and five standard deviations.
            let allowed = 0.12 * expected + 5.0 * expected.sqrt() + 2.0;
            if (yes as f64 - expected).abs() > allowed {
                wrong.push(row);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn low_rates_for_few_keys_are_out_of_reach() {
    for (format, times) in FORMATS {
        let filter = ForeignFilter::with_fpr(format, 1000, 1e-8).unwrap();
        let (rate, floor) = filter.expected_fpr(1000).unwrap();
        assert!(rate > times * 1e-8 && floor > 0.9 * rate && rate < 1e-4, "{format}: {rate:e}");
        let (rate, floor) = filter.expected_fpr(0).unwrap();
        assert_eq!((rate, floor), (0.0, 0.0), "{format}");
        // With many keys there is no floor.
        let filter = ForeignFilter::with_fpr(format, 1_000_000, 0.01).unwrap();
        let (rate, floor) = filter.expected_fpr(1_000_000).unwrap();
        assert!(rate < 0.011 && floor < 1e-5, "{format}: {rate:e} {floor:e}");
    }
    let dcso = ForeignFilter::with_fpr(Format::Dcso, 1000, 1e-8).unwrap();
    assert!(dcso.expected_fpr(1000).is_none());
}
