//! The filter that threads share has the bits of the plain filter, results of some sequential order
//! of the threads, and converts to the plain filter and back.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use petal::{AtomicBloomFilter, BatchResults, BloomFilter, HashSpec, Kernel, Membership as _};
use petal_testkit::rng::Rng;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::naive::{HeaderFields, Naive};

/// Returns an empty filter of any layout, including layouts that no constructor returns.
fn empty(naive: &Naive) -> BloomFilter {
    BloomFilter::read_from(&naive.to_file(&HeaderFields::none())[..]).unwrap().0
}

/// Returns a shared filter for every available kernel; a filter keeps the kernel of its creation.
fn shared(filter: &BloomFilter) -> impl Iterator<Item = AtomicBloomFilter> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).map(|kernel| {
        let _alone = ONE_AT_A_TIME.lock();
        kernel.force();
        AtomicBloomFilter::from(filter.try_clone().unwrap())
    })
}

fn filled<'a>(naive: &Naive, hashes: impl IntoIterator<Item = &'a u64>) -> BloomFilter {
    let mut filter = empty(naive);
    hashes.into_iter().for_each(|&hash| _ = filter.insert_mixed_hash(hash));
    filter
}

/// Returns small layouts, so that keys share bits.
fn shapes() -> impl Strategy<Value = Naive> {
    prop_oneof![
        (1u64..40, 1u64..=8).prop_map(|(blocks, probes)| Naive::blocked(blocks, 8, probes)),
        (1u64..20, 1u64..=16).prop_map(|(blocks, probes)| Naive::blocked(blocks, 16, probes)),
    ]
}

/// Returns hashes, many of them repeated.
fn hashes() -> impl Strategy<Value = Vec<u64>> {
    let few = (0u64..50).prop_map(|number| Rng::new(number).next_u64());
    vec(prop_oneof![few, any::<u64>()], 0..200)
}

/// Returns the hashes that are new to a thread, inserted in batches of this size; 0: single hashes.
/// The thread finds its hashes at once and at the end.
fn insert(filter: &AtomicBloomFilter, hashes: &[u64], batch: usize) -> Vec<u64> {
    let (mut new, mut results) = (vec![], BatchResults::new());
    if batch == 0 {
        for &hash in hashes {
            if filter.insert_mixed_hash(hash) {
                new.push(hash);
            }
            assert!(filter.contains_mixed_hash(hash));
        }
    } else {
        for hashes in hashes.chunks(batch) {
            filter.insert_mixed_hashes(hashes, &mut results);
            new.extend(results.iter().map(|at| hashes[at]));
            filter.contains_mixed_hashes(hashes, &mut results);
            assert_eq!(results.count_ones(), hashes.len() as u64);
        }
    }
    assert!(hashes.iter().all(|&hash| filter.contains_mixed_hash(hash)));
    new
}

/// Inserts concurrently, one list per thread. Returns the hashes that were new; each is new only once.
fn insert_at_once(filter: &AtomicBloomFilter, lists: &[Vec<u64>]) -> HashSet<u64> {
    let (before, start) = (filter.inserted(), Barrier::new(lists.len()));
    let new: Vec<u64> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (list, batch) in lists.iter().zip([0, 1, 50].into_iter().cycle()) {
            let start = &start;
            threads.push(scope.spawn(move || {
                start.wait();
                insert(filter, list, batch)
            }));
        }
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(filter.inserted() - before, new.len() as u64);
    let once: HashSet<u64> = new.iter().copied().collect();
    assert_eq!(once.len(), new.len(), "two threads inserted the same key as new");
    once
}

proptest! {
    #[test]
    fn one_thread_gets_the_results_of_the_plain_filter(
        naive in shapes(), before in hashes(), single in hashes(), batch in hashes(),
    ) {
        let start = filled(&naive, &before);
        for shared in shared(&start) {
            let mut plain = start.try_clone().unwrap();
            for &hash in &single {
                assert_eq!(shared.contains_mixed_hash(hash), plain.contains_mixed_hash(hash));
                assert_eq!(shared.insert_mixed_hash(hash), plain.insert_mixed_hash(hash));
            }
            let (mut ours, mut theirs) = (BatchResults::new(), BatchResults::new());
            shared.contains_mixed_hashes(&batch, &mut ours);
            plain.contains_mixed_hashes(&batch, &mut theirs);
            assert_eq!(ours, theirs);
            shared.insert_mixed_hashes(&batch, &mut ours);
            plain.insert_mixed_hashes(&batch, &mut theirs);
            assert_eq!(ours, theirs);
            assert_eq!(shared.inserted(), plain.inserted());
            assert_eq!(shared.stats().fill_ratio, plain.stats().fill_ratio);
            assert_eq!(shared.stats().estimated_len, plain.stats().estimated_len);
            let shared = shared.into_filter();
            assert_eq!(shared.inserted(), plain.inserted());
            assert!(shared == plain);
        }
    }

    #[test]
    fn threads_leave_the_bits_of_the_plain_filter(
        naive in shapes(), before in hashes(), lists in vec(hashes(), 2..5),
    ) {
        let here = filled(&naive, &before);
        let all: HashSet<u64> = before.iter().chain(lists.iter().flatten()).copied().collect();
        let full = filled(&naive, &all);
        for shared in shared(&here) {
            let new = insert_at_once(&shared, &lists);
            assert!(shared.into_filter() == full);

            // Present hashes are never new, and all others are new or covered by other hashes.
            assert!(new.iter().all(|&hash| !here.contains_mixed_hash(hash)));
            for hash in all.iter().filter(|hash| !before.contains(hash) && !new.contains(hash)) {
                let others = filled(&naive, all.iter().filter(|other| *other != hash));
                assert!(others.contains_mixed_hash(*hash), "no thread inserted {hash:#x} as new");
            }
        }
    }
}

/// Filters so full that many keys miss one bit, and threads that insert the same keys.
#[test]
fn hammered_by_threads() {
    for (round, (blocks, lanes, probes)) in
        [(1, 8, 3), (7, 8, 8), (400, 8, 6), (3, 16, 10), (2000, 16, 16)].into_iter().enumerate()
    {
        for turn in 0..20 {
            let mut rng = Rng::new((round * 100 + turn) as u64);
            let keys: Vec<u64> = (0..blocks * lanes * 4).map(|_| rng.next_u64()).collect();
            let mut lists = vec![keys.clone(); 4];
            if turn % 2 == 1 {
                lists.iter_mut().for_each(|list| rng.shuffle(list));
            }
            let naive = Naive::blocked(blocks, lanes, probes);
            let full = filled(&naive, &keys);
            for shared in shared(&empty(&naive)) {
                let new = insert_at_once(&shared, &lists);
                // A hash is new to no thread only if it is a false positive of the others.
                assert!(!new.is_empty() && new.len() <= keys.len());
                assert!(insert_at_once(&shared, &lists).is_empty());
                assert!(shared.into_filter() == full);
            }
        }
    }
}

/// In a large filter no key covers another, so each is new to exactly one thread.
#[test]
fn every_key_is_new_once() {
    let keys: Vec<u64> = (0..20_000).map(|key| Rng::new(key).next_u64()).collect();
    // Blocks of one cache line with all lanes, and blocks of two.
    for (probes, bits) in [(8, 1 << 26), (16, 1 << 24)] {
        let empty = BloomFilter::with_bits(bits, probes).unwrap();
        let mut plain = empty.try_clone().unwrap();
        assert!(
            keys.iter().all(|&key| plain.insert_mixed_hash(key)),
            "no false positive among these"
        );
        for _ in 0..5 {
            for shared in shared(&empty) {
                let new = insert_at_once(&shared, &vec![keys.clone(); 4]);
                assert_eq!(new.len(), keys.len());
                assert!(shared.into_filter() == plain);
            }
        }
    }
}

#[test]
fn insert_is_visible_after_synchronisation() {
    let keys: Vec<u64> = (0..50_000).map(|key| Rng::new(key).next_u64()).collect();
    for filter in shared(&BloomFilter::with_fpr(50_000, 0.01).unwrap()) {
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut found = BatchResults::new();
                    while done.load(Ordering::Relaxed) < keys.len() {
                        let there = &keys[..done.load(Ordering::Acquire)];
                        let last = &there[there.len().saturating_sub(300)..];
                        filter.contains_mixed_hashes(last, &mut found);
                        assert_eq!(found.count_ones(), last.len() as u64);
                        assert!(last.iter().all(|&key| filter.contains_mixed_hash(key)));
                        assert!(filter.inserted() <= keys.len() as u64);
                    }
                });
            }
            for (at, &key) in keys.iter().enumerate() {
                filter.insert_mixed_hash(key);
                done.store(at + 1, Ordering::Release);
            }
        });
    }
}

#[test]
fn conversion_keeps_capacity_and_target_fpr() {
    let hash = HashSpec::keyed(*b"sixteen secrets!");
    let mut plain = BloomFilter::builder().capacity(1000).fpr(0.001).hash(hash).build().unwrap();
    let shared = AtomicBloomFilter::from(plain.try_clone().unwrap());
    let stats = shared.stats();
    assert_eq!((stats.capacity, stats.target_fpr), (1000, 0.001));
    assert_eq!((shared.layout(), shared.hash_spec()), (plain.layout(), hash));
    assert_eq!(stats.size_bytes, plain.size_bytes());
    let (keys, mut new) = (["a", "b", "a", "c"], BatchResults::new());
    shared.insert_batch(&keys, &mut new);
    assert_eq!(new.iter().collect::<Vec<_>>(), [0, 1, 3]);
    shared.contains_batch(&["a", "c", "d"], &mut new);
    assert_eq!(new.iter().collect::<Vec<_>>(), [0, 1]);
    plain.insert_batch(&keys, &mut new);

    let file = |filter: &BloomFilter| {
        let mut file = Vec::new();
        filter.write_to(&mut file, "").unwrap();
        file
    };
    let once = BloomFilter::from(shared);
    assert_eq!(file(&once), file(&plain));
    let again = AtomicBloomFilter::from(once);
    assert!(!again.insert("a") && again.insert("d") && again.contains("d"));
    assert_eq!(again.inserted(), 4);
    assert_eq!(again.into_filter().inserted(), 4);

    // Unhashed keys.
    let words: Vec<u64> = (0..5000).chain(0..10).collect();
    let shared = AtomicBloomFilter::with_fpr(5000, 0.01).unwrap();
    let mut plain =
        BloomFilter::builder().capacity(5000).fpr(0.01).hash(shared.hash_spec()).build().unwrap();
    let mut theirs = BatchResults::new();
    shared.insert_batch(&words, &mut new);
    plain.insert_batch(&words, &mut theirs);
    assert_eq!(new, theirs);
    shared.contains_batch(&words, &mut new);
    assert_eq!(new.count_ones(), words.len() as u64);
    assert!(shared.into_filter() == plain);

    assert!(AtomicBloomFilter::with_fpr(1, 2.0).is_err());
}
