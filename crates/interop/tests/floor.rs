//! The rates that `facts` gives are those measured, where double hashing keeps them above fill^k.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![allow(clippy::print_stdout, reason = "what was measured")]

use petal::Answers;
use petal_interop::{Foreign, Format};
use petal_testkit::rng::Rng;

/// Formats with double hashing, and how much larger the rate of 1,000 keys at 1e-8 is than planned.
const FORMATS: [(Format, f64); 6] = [
    (Format::Guava, 300.0),
    (Format::Guava32, 100.0),
    (Format::SparkV1, 100.0),
    (Format::SparkV2, 3000.0),
    (Format::RedisBloom, 300.0),
    (Format::DataSketches, 100.0),
];

/// A filter of random keys.
fn filled(format: Format, keys: u64, rate: f64, members: u64, rng: &mut Rng) -> Foreign {
    let mut filter = Foreign::with_rate(format, keys, rate).unwrap();
    for _ in 0..members {
        filter.insert(&rng.bytes(16)).unwrap();
    }
    filter
}

/// Of so many absent keys, how many are found; until there are enough of those.
fn found(filter: &Foreign, most: u64, enough: u64, rng: &mut Rng) -> (u64, u64) {
    const BATCH: u64 = 1 << 16;
    let (mut hasher, mut words, mut answers) = (filter.hasher(), Vec::new(), Answers::new());
    let (mut asked, mut yes) = (0, 0);
    while asked < most && yes < enough {
        words.clear();
        for _ in 0..BATCH {
            let key = [rng.next_u64().to_le_bytes(), rng.next_u64().to_le_bytes()].concat();
            hasher.hash(&key, &mut words).unwrap();
        }
        filter.contains_words(&words, &mut answers);
        (asked, yes) = (asked + BATCH, yes + answers.count_ones());
    }
    (asked, yes)
}

#[test]
fn rates_are_those_measured() {
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
            let filter = filled(format, keys, rate, members, &mut rng);
            let facts = filter.facts();
            let (asked, yes) = found(&filter, 1 << 22, 300, &mut rng);
            let expected = facts.rate_now * asked as f64;
            let naive = (facts.set as f64 / facts.bits as f64).powf(facts.probes.into());
            let row = format!(
                "{format} {keys} at {rate:e} with {members}: computed {:.3e} (of that {:.3e} floor), \
                 measured {:.3e} ({yes}), fill^k {naive:.3e}",
                facts.rate_now,
                facts.rate_floor,
                yes as f64 / asked as f64,
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
fn strict_plans_of_few_keys_are_not_reached() {
    for (format, times) in FORMATS {
        let filter = Foreign::with_rate(format, 1000, 1e-8).unwrap();
        let (rate, floor) = filter.expected_rate(1000).unwrap();
        assert!(rate > times * 1e-8 && floor > 0.9 * rate && rate < 1e-4, "{format}: {rate:e}");
        let (rate, floor) = filter.expected_rate(0).unwrap();
        assert_eq!((rate, floor), (0.0, 0.0), "{format}");
        // Where it does not matter there is none.
        let filter = Foreign::with_rate(format, 1_000_000, 0.01).unwrap();
        let (rate, floor) = filter.expected_rate(1_000_000).unwrap();
        assert!(rate < 0.011 && floor < 1e-5, "{format}: {rate:e} {floor:e}");
    }
    let dcso = Foreign::with_rate(Format::Dcso, 1000, 1e-8).unwrap();
    assert!(dcso.expected_rate(1000).is_none());
}
