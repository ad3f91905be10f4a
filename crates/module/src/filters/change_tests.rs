//! Operations report a change exactly when the filter changed: commands replicate and publish what
//! is reported.

use petal::{AnyFilter, BatchResults, HashSpec, QuotientFilter};
use petal_testkit::rng::Rng;

use super::*;

const ANY: u64 = u64::MAX;
const LIMITS: GrowthLimits = GrowthLimits { layers: 3, bytes: ANY, copies: MAX_COPIES };

/// Returns all bytes that are written to files.
fn bytes(stored: &StoredFilter) -> Vec<u8> {
    fn dump<'c>(header: &[u8], chunk: impl Fn(u64) -> Option<(u64, &'c [u8])>) -> Vec<u8> {
        let (mut all, mut position) = (header.to_vec(), 1);
        while let Some((next, bytes)) = chunk(position) {
            all.extend_from_slice(bytes);
            position = next;
        }
        all
    }
    match stored {
        StoredFilter::RedisBloom(filter) => dump(&filter.header(), |at| filter.chunk(at)),
        StoredFilter::RedisCuckoo(filter) => dump(&filter.header(), |at| filter.chunk(at)),
        stored => stored.container().unwrap().chunks(ANY as usize).collect::<Vec<_>>().concat(),
    }
}

fn kinds() -> Vec<FilterKind> {
    let window = |milliseconds, generations| FilterKind::Window { milliseconds, generations };
    let cuckoo = |expansion| FilterKind::Cuckoo { expansion, bucket_size: 2, iterations: 5 };
    let redis = |expansion| FilterKind::RedisCuckoo { expansion, bucket_size: 2, iterations: 5 };
    vec![
        FilterKind::Bloom { growth: None },
        FilterKind::Bloom { growth: Some(Growth::by(2)) },
        FilterKind::Saturating,
        FilterKind::RedisBloom { growth: None },
        FilterKind::RedisBloom { growth: Some(2) },
        FilterKind::Counting,
        FilterKind::VectorQuotient,
        window(None, 2),
        window(None, 4),
        window(Some(90), 3),
        cuckoo(0),
        cuckoo(1),
        redis(0),
        redis(1),
    ]
}

/// Runs a random operation. Returns its name and whether it reported a change.
fn step(stored: &mut StoredFilter, rng: &mut Rng, now: u64) -> (&'static str, bool) {
    let mut key = || rng.below(25).to_string();
    let (first, more) = (key(), [key(), key(), key()]);
    let operation = rng.below(200);
    if operation == 0 {
        return ("clear", stored.clear().unwrap());
    }
    if let Some(filter) = stored.as_cuckoo_mut() {
        let hash = filter.hash(first.as_bytes());
        return match operation {
            1..10 => ("compact", filter.compact()),
            10..100 => ("remove", filter.remove(hash)),
            _ => ("add", filter.add(hash, &|| LIMITS).is_ok()),
        };
    }
    match operation {
        1..40 => {
            let mut removed = BatchResults::new();
            let keys = [&first, &more[0]].into_iter().map(String::as_bytes);
            let result = stored.remove_all(keys, &mut removed);
            ("remove", result.is_ok() && removed.count_ones() > 0)
        }
        40..60 => ("advance", stored.advance(now)),
        60..110 => {
            let keys = more.iter().map(String::as_bytes);
            ("insert several", stored.insert_all(keys, ANY).changed)
        }
        _ => {
            let inserted = stored.insert(first.as_bytes(), ANY);
            ("insert", inserted.is_ok_and(|inserted| inserted != Insertion::Unchanged))
        }
    }
}

#[test]
fn reported_changes_are_those_of_the_bytes() {
    for kind in kinds() {
        let mut reported = [0; 2];
        for seed in 0..3 {
            let mut rng = Rng::new(seed);
            let spec = FilterSpec { kind, fpr: 0.1, capacity: 12, seed: [1; 16] };
            let mut stored = spec.build(ANY).unwrap();
            for number in 0..2000 {
                let before = bytes(&stored);
                let (operation, changed) = step(&mut stored, &mut rng, number * 3);
                let differs = bytes(&stored) != before;
                assert_eq!(changed, differs, "{kind:?}, seed {seed}, step {number}: {operation}");
                reported[usize::from(changed)] += 1;
            }
        }
        assert!(reported.iter().all(|number| *number > 100), "{kind:?}: {reported:?}");
    }
}

/// A client that deletes an item until the reply is 0 ends, also if its counters are saturated.
#[test]
fn saturated_counters_are_not_removed() {
    let spec = FilterSpec { kind: FilterKind::Counting, fpr: 0.01, capacity: 100, seed: [1; 16] };
    let mut stored = spec.build(ANY).unwrap();
    for _ in 0..20 {
        stored.insert(b"often", ANY).unwrap();
    }
    stored.insert(b"once", ANY).unwrap();
    let mut removed = BatchResults::new();
    let keys: [&[u8]; 3] = [b"often", b"once", b"once"];
    stored.remove_all(keys.into_iter(), &mut removed).unwrap();
    assert_eq!(removed.iter().collect::<Vec<_>>(), [1]);
    assert_eq!(stored.counts(keys.into_iter()), Ok(vec![8, 0, 0]));
}

#[test]
fn union_with_a_part_changes_nothing() {
    let quotient = || {
        let builder = QuotientFilter::builder().table_size(256).slot_bits(20);
        let filter = builder.hash(HashSpec::keyed([7; 16])).build().unwrap();
        StoredFilter::from(AnyFilter::Quotient(filter))
    };
    let of = |kind| FilterSpec { kind, fpr: 0.01, capacity: 60, seed: [1; 16] }.build(ANY).unwrap();
    let classic = || {
        let builder = petal::ClassicBloomFilter::builder().capacity(60).fpr(0.01);
        StoredFilter::from(AnyFilter::Classic(builder.build().unwrap()))
    };
    let new: [&dyn Fn() -> StoredFilter; 5] = [
        &|| of(FilterKind::Bloom { growth: None }),
        &|| of(FilterKind::Counting),
        &|| of(FilterKind::VectorQuotient),
        &quotient,
        &classic,
    ];
    for new in new {
        let [mut left, mut part, mut other] = [new(), new(), new()];
        let fill = |filter: &mut StoredFilter, keys: std::ops::Range<u32>| {
            keys.for_each(|key| _ = filter.insert(&key.to_le_bytes(), ANY).unwrap());
        };
        fill(&mut left, 0..40);
        fill(&mut part, 10..20);
        fill(&mut other, 30..50);
        let name = left.as_dyn().unwrap().filter_type().name();
        let check = |left: &mut StoredFilter, right: &StoredFilter, expected: bool| {
            let before = bytes(left);
            assert_eq!(left.union(&[right], ANY), Ok(expected), "{name}");
            assert_eq!(bytes(left) != before, expected, "{name}");
        };
        check(&mut left, &new(), false);
        if name.starts_with("counting") {
            // The counts are summed, up to the maximum.
            (1..8).for_each(|_| check(&mut left, &part, true));
        }
        check(&mut left, &part, false);
        check(&mut left, &other, true);
        assert!(left.contains_all_of(30..50), "{name}");
    }
}

impl StoredFilter {
    fn contains_all_of(&self, keys: std::ops::Range<u32>) -> bool {
        struct Never;
        impl Clock for Never {
            fn now(&self) -> u64 {
                0
            }
        }
        keys.into_iter().all(|key| self.contains(&key.to_le_bytes(), &Never))
    }
}

#[test]
fn chunks_that_are_loaded_again_change_nothing() {
    let of = |kind| FilterSpec { kind, fpr: 0.01, capacity: 60, seed: [0; 16] }.build(ANY).unwrap();
    let mut bloom = of(FilterKind::RedisBloom { growth: None });
    bloom.insert(b"a", ANY).unwrap();
    let StoredFilter::RedisBloom(bloom) = bloom else { unreachable!() };
    let (next, chunk) = bloom.chunk(1).unwrap();
    let mut copy = redisbloom::Bloom::from_header(&bloom.header(), ANY).unwrap();
    assert_eq!(copy.put_chunk(1, &[]), Ok(false));
    assert_eq!([0, 1].map(|_| copy.put_chunk(next, chunk)), [Ok(true), Ok(false)]);

    let kind = FilterKind::RedisCuckoo { expansion: 1, bucket_size: 2, iterations: 5 };
    let mut cuckoo = of(kind);
    let filter = cuckoo.as_cuckoo_mut().unwrap();
    filter.add(filter.hash(b"a"), &|| LIMITS).unwrap();
    let StoredFilter::RedisCuckoo(cuckoo) = cuckoo else { unreachable!() };
    let (next, chunk) = cuckoo.chunk(1).unwrap();
    let mut copy = redisbloom::Cuckoo::from_header(&cuckoo.header(), ANY).unwrap().unwrap();
    assert_eq!([0, 1].map(|_| copy.put_chunk(next, chunk)), [Ok(true), Ok(false)]);
}

#[test]
fn copy_of_an_incomplete_import_continues_like_the_original() {
    let kind = FilterKind::Cuckoo { expansion: 1, bucket_size: 2, iterations: 5 };
    let mut cuckoo =
        FilterSpec { kind, fpr: 0.01, capacity: 20, seed: [1; 16] }.build(ANY).unwrap();
    let filter = cuckoo.as_cuckoo_mut().unwrap();
    for key in 0u32..60 {
        filter.add(filter.hash(&key.to_le_bytes()), &|| LIMITS).unwrap();
    }
    let bloom = FilterKind::Bloom { growth: None };
    let bloom = FilterSpec { kind: bloom, fpr: 0.01, capacity: 500, seed: [1; 16] };
    let mut file = Vec::new();
    bloom.build(ANY).unwrap().as_dyn().unwrap().write_to(&mut file, "{}").unwrap();
    type New = fn(u64) -> PartialImport;
    for (all, new) in
        [(bytes(&cuckoo), PartialImport::container as New), (file, PartialImport::file as New)]
    {
        for cut in [1, 60, 64, 300, 321, all.len() / 2, all.len() - 1] {
            let mut import = new(ANY);
            assert!(import.push(&all[..cut]).unwrap().is_none(), "{cut}");
            let original = StoredFilter::Partial(Box::new(import));
            let copy = original.copy().unwrap();
            assert_eq!(copy.memory_usage(), original.memory_usage(), "{cut}");
            let complete = [original, copy].map(|stored| {
                let StoredFilter::Partial(mut import) = stored else { unreachable!() };
                assert_eq!(import.received_bytes(), cut as u64);
                let content = import.push(&all[cut..]).unwrap().unwrap();
                bytes(&StoredFilter::from_content(content).unwrap())
            });
            assert!(complete[0] == complete[1], "{cut}");
        }
    }
}
