//! Static filters and cascades of more keys than memory holds: the same as those built in memory.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use petal::embed::{HashRanges, HashStore};
use petal::{AnyFilter, ErrorKind, FilterCascade, Membership as _, Result, StaticFilter};
use petal_testkit::rng::Rng;

/// A store in memory that counts its hashes, and fails when there are too many.
struct Store {
    bits: u32,
    hashes: AtomicU64,
    max_hashes: u64,
}

impl Store {
    fn new(bits: u32) -> Self {
        Self { bits, hashes: AtomicU64::new(0), max_hashes: u64::MAX }
    }
}

struct Ranges<'a> {
    store: &'a Store,
    ranges: Vec<Vec<u64>>,
}

impl HashStore for Store {
    fn ranges(&self) -> Result<Box<dyn HashRanges + '_>> {
        Ok(Box::new(Ranges { store: self, ranges: vec![Vec::new(); 1 << self.bits] }))
    }
}

impl HashRanges for Ranges<'_> {
    fn bits(&self) -> u32 {
        self.store.bits
    }

    fn extend(&mut self, places: &[u64], hashes: &[u64]) -> Result<()> {
        let before = self.store.hashes.fetch_add(hashes.len() as u64, Ordering::Relaxed);
        if before + hashes.len() as u64 > self.store.max_hashes {
            return Err(std::io::Error::other("the store is full").into());
        }
        for (place, hash) in places.iter().zip(hashes) {
            self.ranges[(place >> (64 - self.store.bits)) as usize].push(*hash);
        }
        Ok(())
    }

    fn read(&mut self, range: u64, take: &mut dyn FnMut(&[u64]) -> Result<()>) -> Result<()> {
        self.ranges[range as usize].chunks(1000).try_for_each(take)
    }
}

fn hashes(seed: u64, len: usize) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64()).collect()
}

/// Returns hashes of which many are repeated, in another order.
fn with_duplicates(hashes: &[u64]) -> Vec<u64> {
    let mut rng = Rng::new(9);
    let repeated = (0..hashes.len()).map(|_| *rng.pick(&hashes[..hashes.len().min(7000)]));
    let mut all: Vec<u64> = repeated.chain(hashes.iter().rev().copied()).collect();
    let last = all.len() - 1;
    (0..last).for_each(|at| all.swap(at, at + rng.below(last - at)));
    all
}

fn bytes_of(filter: impl Into<AnyFilter>) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.into().as_dyn().write_to(&mut bytes, "{}").unwrap();
    bytes
}

#[test]
fn filter_is_the_same_with_any_memory_order_and_threads() {
    for (count, rate) in [(3000, 0.01), (60_000, 0.01), (1_200_000, 1.0 / 128.0)] {
        let keys = hashes(1, count);
        let repeated = with_duplicates(&keys);
        for fuse in [false, true] {
            let builder = || StaticFilter::builder().fpr(rate).fuse(fuse);
            let expected = bytes_of(builder().from_mixed_hashes(keys.clone()).unwrap());
            for (memory, bits, threads) in [(3 << 20, 6, 1), (6 << 20, 8, 3), (1 << 30, 1, 2)] {
                for keys in [&keys, &repeated] {
                    let store = Store::new(bits);
                    let threads = NonZeroUsize::new(threads).unwrap();
                    let memory = memory + count as u64 * 3;
                    let mut collector =
                        builder().threads(threads).collector(&store, memory).unwrap();
                    keys.chunks(777).for_each(|hashes| collector.extend(hashes).unwrap());
                    assert!(bytes_of(collector.finish().unwrap()) == expected, "{count} {memory}");
                    let spilled = store.hashes.into_inner() >= keys.len() as u64;
                    assert_eq!(spilled, keys.len() as u64 * 24 > memory, "{count} {memory}");
                }
            }
        }
    }
}

#[test]
fn cascade_is_the_same_with_any_memory_and_order() {
    for (members, others) in [(2000, 50_000), (300_000, 1_000_000)] {
        let (members, others) = (hashes(1, members), hashes(2, others));
        let repeated = with_duplicates(&members);
        let builder = || FilterCascade::builder().fpr(0.01);
        let cascade = builder().from_mixed_hashes(&members, &others).unwrap();
        let expected = bytes_of(cascade);
        for memory in [5 << 20, 8 << 20, 1 << 30] {
            let store = Store::new(6);
            let mut collector = builder().collector(&store, memory).unwrap();
            repeated.chunks(777).for_each(|hashes| collector.extend(hashes).unwrap());
            let mut collector = collector.others(others.len() as u64).unwrap();
            others.rchunks(999).for_each(|hashes| collector.extend(hashes).unwrap());
            assert!(bytes_of(collector.finish().unwrap()) == expected, "{memory}");
            let spilled = store.hashes.into_inner() > 0;
            assert_eq!(spilled, members.len() > 100_000 && memory < 1 << 30);
            let both = contradictions(&Store::new(6), memory, &repeated, &others);
            assert_eq!(both, sorted(&members[..50]), "{memory}");
        }
    }
}

/// Returns the hashes that an error names if 50 members are among the others.
fn contradictions(store: &Store, memory: u64, members: &[u64], others: &[u64]) -> Vec<u64> {
    let distinct: std::collections::BTreeSet<u64> = members.iter().copied().collect();
    let first = hashes(1, distinct.len());
    let mut collector = FilterCascade::builder().fpr(0.01).collector(store, memory).unwrap();
    collector.extend(members).unwrap();
    let mut collector = collector.others(others.len() as u64).unwrap();
    collector.extend(others).unwrap();
    collector.extend(&first[..50]).unwrap();
    collector.finish().unwrap_err().contradictions().to_vec()
}

fn sorted(hashes: &[u64]) -> Vec<u64> {
    let mut hashes = hashes.to_vec();
    hashes.sort_unstable();
    hashes
}

#[test]
fn too_little_memory_and_a_full_store_are_errors() {
    let keys = hashes(1, 400_000);
    for fuse in [false, true] {
        let builder = || StaticFilter::builder().fpr(0.001).fuse(fuse);
        let size = builder().from_mixed_hashes(keys.clone()).unwrap().size_bytes();
        let build = |store: &Store, memory| {
            let mut collector = builder().collector(store, memory).unwrap();
            keys.chunks(5000).try_for_each(|hashes| collector.extend(hashes))?;
            collector.finish()
        };
        assert!(build(&Store::new(6), size + (2 << 20)).is_ok());
        let error = build(&Store::new(6), size).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NoMemory { .. }), "{error}");
        for max_hashes in [0, 100_000, keys.len() as u64 + 1] {
            let store = Store { max_hashes, ..Store::new(6) };
            let result = build(&store, size + (2 << 20));
            // Only the first layer is in the store.
            match result {
                Ok(_) => assert!(max_hashes > keys.len() as u64),
                Err(error) => assert!(error.to_string().contains("the store is full"), "{error}"),
            }
        }
        // Hashes that all belong to one range.
        let narrow = |hash: &u64| hash >> 40;
        let mut collector = builder().collector(&STORE, 2 << 20).unwrap();
        keys.iter().map(narrow).for_each(|hash| collector.extend(&[hash]).unwrap());
        let _ = collector.finish();
    }
}

/// The keys of the second layer do not fit in memory beside the first.
#[test]
fn little_more_memory_than_the_filter_is_enough() {
    let keys = hashes(1, 2_000_000);
    let builder = || StaticFilter::builder().fpr(0.001);
    let expected = builder().from_mixed_hashes(keys.clone()).unwrap();
    let store = Store::new(6);
    let memory = expected.size_bytes() * 5 / 4 + (1 << 20);
    let mut collector = builder().collector(&store, memory).unwrap();
    collector.extend(&keys).unwrap();
    assert!(collector.finish().unwrap() == expected);
    assert!(store.hashes.into_inner() > keys.len() as u64 * 21 / 20);
}

#[test]
fn ranges_larger_than_memory_are_an_error_about_memory() {
    let keys = hashes(1, 2_000_000);
    let store = Store::new(2);
    let memory = 8 << 20;
    let mut collector = StaticFilter::builder().fpr(0.01).collector(&store, memory).unwrap();
    collector.extend(&keys).unwrap();
    let error = collector.finish().unwrap_err();
    let ErrorKind::NoMemory { bytes, minimum } = *error.kind() else { panic!("{error}") };
    assert!(bytes <= memory && minimum > bytes, "{error}");
}

static STORE: Store = Store { bits: 4, hashes: AtomicU64::new(0), max_hashes: u64::MAX };
