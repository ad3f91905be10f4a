//! petal and the crate poppy-filters write the same files for the same keys, and give the same answers for them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap names the line")]

use std::io::Cursor;

use petal_interop::{ForeignFilter, Format};
use petal_testkit::rng::Rng;
use poppy_filters::{BloomFilter, OptLevel, Params};

/// Versions and optimisation levels; version 1 has none.
const KINDS: [(u8, OptLevel); 5] = [
    (1, OptLevel::None),
    (2, OptLevel::None),
    (2, OptLevel::Space),
    (2, OptLevel::Speed),
    (2, OptLevel::Best),
];
/// Capacities and rates.
const PLANS: [(usize, f64); 12] = [
    (1, 0.01),
    (2, 0.5),
    (7, 0.0078),
    (60, 0.3),
    (700, 0.1),
    (1_000, 1e-6),
    (3_418, 0.01),
    (3_419, 0.01),
    (10_000, 0.0078),
    (30_000, 1e-9),
    (70_000, 0.03),
    (100_000, 0.001),
];

/// Returns a binary key, or one of printable text, of 0 to 99 bytes; many have up to 8.
fn key(rng: &mut Rng, text: bool) -> Vec<u8> {
    let longest = *rng.pick(&[9, 20, 41, 100]);
    let length = rng.below(longest);
    let mut key = rng.bytes(length);
    if text {
        key.iter_mut().for_each(|byte| *byte = b' ' + *byte % 95);
    }
    key
}

fn written(filter: &BloomFilter) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write(&mut file).unwrap();
    file
}

fn opened(file: &[u8]) -> BloomFilter {
    BloomFilter::from_reader(Cursor::new(file)).unwrap()
}

#[test]
fn files_and_answers_equal_those_of_poppy_for_60_filters() {
    for (number, (version, level)) in KINDS.into_iter().enumerate() {
        for (at, (capacity, rate)) in PLANS.into_iter().enumerate() {
            let seed = (number * PLANS.len() + at) as u64;
            let (mut rng, text) = (Rng::new(seed), seed.is_multiple_of(2));
            let what = format!("version {version}, {level}, {capacity} keys at {rate}");
            let params = Params::new(capacity, rate).version(version).opt(level);
            let mut theirs = BloomFilter::try_from(params).unwrap();
            // petal makes what poppy makes by default, and fills the others.
            let empty = written(&theirs);
            let format = if version == 1 { Format::Dcso } else { Format::Poppy };
            let mut ours = ForeignFilter::from_bytes(empty, None).unwrap();
            assert_eq!(ours.format(), format, "{what}");
            if level == OptLevel::None {
                let made = ForeignFilter::with_fpr(format, capacity as u64, rate).unwrap();
                assert!(made.as_bytes() == ours.as_bytes(), "{what}");
            }
            // Up to the capacity, and beyond it: both refuse the same keys. DCSO's program does not refuse any.
            let more = if version == 1 { 0 } else { 20 };
            for _ in 0..capacity + more {
                let key = key(&mut rng, text);
                assert_eq!(ours.insert(&key).is_ok(), theirs.insert_bytes(&key).is_ok(), "{what}");
            }
            let (file, their_file) = (ours.as_bytes(), written(&theirs));
            assert!(file == their_file, "{what}");
            let (ours, theirs) = (ForeignFilter::from_bytes(&their_file[..], None), opened(file));
            let (ours, mut present) = (ours.unwrap(), 0);
            ours.verify().unwrap();
            assert_eq!(ours.header().counted, Some(theirs.count_estimate()), "{what}");
            let mut again = Rng::new(seed);
            for number in 0..capacity + 2_000 {
                // The members, then other keys.
                let key = key(if number < capacity { &mut again } else { &mut rng }, text);
                let found = ours.contains(&key).unwrap();
                assert_eq!(found, theirs.contains_bytes(&key), "{what}: {key:?}");
                assert!(found || number >= capacity, "{what}: {key:?} is lost");
                present += usize::from(found);
            }
            assert!(present < capacity + 2_000, "{what}: every key is present");
        }
    }
}

#[test]
fn unions_equal_those_of_poppy() {
    for (version, level) in &KINDS[1..] {
        let params = Params::new(20_000, 0.01).version(*version).opt(*level);
        let [mut a, b] = [1, 2].map(|seed| {
            let (mut rng, mut filter) = (Rng::new(seed), BloomFilter::try_from(params).unwrap());
            (0..9_000).for_each(|_| _ = filter.insert_bytes(rng.bytes(20)).unwrap());
            filter
        });
        let [mut ours, other] =
            [&a, &b].map(|filter| ForeignFilter::from_bytes(written(filter), None).unwrap());
        ours.union(&other).unwrap();
        a.union_merge(&b).unwrap();
        assert!(ours.as_bytes() == written(&a), "{level}");
    }
}
