//! The vector quotient filter that threads share returns what the plain filter returns, loses no key
//! while others change, and converts to the plain filter and back.

use std::sync::{Barrier, Mutex};
use std::thread;

use petal::{
    AtomicVectorQuotientFilter, BatchResults, Kernel, Membership as _, Persist as _,
    VectorQuotientFilter,
};
use petal_testkit::rng::Rng;

/// Bits of a tag: the shortest, middle and longest tags.
const TAG_BITS: [u32; 3] = [6, 13, 18];

/// Returns an empty filter for every available kernel; a filter keeps the kernel of its creation.
fn empty(blocks: u64, tag_bits: u32) -> impl Iterator<Item = VectorQuotientFilter> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).map(move |kernel| {
        let _alone = ONE_AT_A_TIME.lock();
        kernel.force();
        VectorQuotientFilter::with_blocks(blocks, tag_bits).unwrap()
    })
}

/// Checks every byte of a filter by reading it from its file.
fn verify(filter: &VectorQuotientFilter) {
    let mut file = vec![];
    filter.write_to(&mut file, "").unwrap();
    assert_eq!(&VectorQuotientFilter::read_from(&file[..]).unwrap().0, filter);
}

#[test]
fn one_thread_gets_the_results_of_the_plain_filter() {
    for tag_bits in TAG_BITS {
        for mut plain in empty(5, tag_bits) {
            let shared = AtomicVectorQuotientFilter::from(plain.try_clone().unwrap());
            let mut rng = Rng::new(tag_bits.into());
            let hashes: Vec<u64> = (0..400).map(|_| rng.next_u64()).collect();
            for step in 0..if cfg!(miri) { 200 } else { 20_000 } {
                let hash = *rng.pick(&hashes);
                // Two thirds of the slots: with more, one filter could be full and the other one not,
                // because they move other fingerprints.
                let most = plain.layout().slots() * 2 / 3;
                match if plain.len() < most { rng.below(3) } else { 2 } {
                    0 => {
                        let added = plain.add_mixed_hash(hash).is_ok();
                        assert_eq!(shared.add_mixed_hash(hash).is_ok(), added, "step {step}");
                    }
                    1 => {
                        let new = plain.insert_mixed_hash(hash).ok();
                        assert_eq!(shared.insert_mixed_hash(hash).ok(), new, "step {step}");
                    }
                    _ => {
                        let removed = plain.remove_mixed_hash(hash);
                        assert_eq!(shared.remove_mixed_hash(hash), removed, "step {step}");
                    }
                }
                let found = plain.contains_mixed_hash(hash);
                assert_eq!(shared.contains_mixed_hash(hash), found, "step {step}");
                assert_eq!(shared.len(), plain.len());
            }
            verify(&shared.into_filter());
        }
    }
}

#[test]
fn batches_equal_single_calls() {
    let keys: Vec<u64> = (0..3000).collect();
    let some: Vec<u64> = (1000..4000).collect();
    let filter = AtomicVectorQuotientFilter::with_fpr(8000, 1e-5).unwrap();
    let (mut results, mut found) = (BatchResults::new(), BatchResults::new());
    filter.add_batch(&keys).unwrap();
    filter.contains_batch(&some, &mut found);
    filter.insert_batch(&some, &mut results).unwrap();
    for at in 0..some.len() {
        assert!(results.get(at) != found.get(at));
    }
    assert_eq!(filter.len(), 3000 + results.count_ones());
    filter.contains_batch(&some, &mut found);
    assert_eq!(found.count_ones(), 3000);
    filter.remove_batch(&keys, &mut results);
    assert_eq!(results.count_ones(), 3000);
    verify(&filter.into_filter());
    let small =
        AtomicVectorQuotientFilter::builder().blocks(1).tag_bits(18).build_atomic().unwrap();
    assert!(small.add_batch(&keys).is_err());
    assert!(small.len() == 24 && keys[..24].iter().all(|key| small.contains(key)));
}

/// The filter is nearly full, so that threads move the fingerprints of others.
#[test]
fn threads_keep_their_keys_while_others_change_the_filter() {
    const THREADS: usize = 4;
    let rounds = if cfg!(miri) { 2 } else { 60 };
    for tag_bits in TAG_BITS {
        for filter in empty(if cfg!(miri) { 3 } else { 64 }, tag_bits) {
            let capacity = filter.layout().capacity();
            let filter = AtomicVectorQuotientFilter::from(filter);
            let own = (capacity as usize / THREADS) * 98 / 100;
            let start = Barrier::new(THREADS);
            let work = |thread: u64| {
                let mut rng = Rng::new(thread << 8 | u64::from(tag_bits));
                let mut hashes: Vec<u64> = vec![];
                start.wait();
                for _ in 0..rounds {
                    while hashes.len() < own {
                        let hash = rng.next_u64();
                        filter.add_mixed_hash(hash).unwrap();
                        hashes.push(hash);
                        assert!(filter.contains_mixed_hash(*rng.pick(&hashes)));
                    }
                    assert!(hashes.iter().all(|&hash| filter.contains_mixed_hash(hash)));
                    for _ in 0..own / 3 {
                        let hash = hashes.swap_remove(rng.below(hashes.len()));
                        assert!(filter.remove_mixed_hash(hash));
                    }
                }
                hashes
            };
            let left: Vec<u64> = thread::scope(|scope| {
                let work = &work;
                let threads: Vec<_> =
                    (0..THREADS as u64).map(|thread| scope.spawn(move || work(thread))).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            let mut filter = filter.into_filter();
            verify(&filter);
            assert_eq!(filter.len(), left.len() as u64);
            assert!(left.iter().all(|&hash| filter.remove_mixed_hash(hash)));
            assert!(filter.is_empty());
        }
    }
}

#[test]
fn a_key_is_new_to_one_thread_and_removed_by_one() {
    const THREADS: usize = 4;
    let keys = if cfg!(miri) { 20 } else { 20_000 };
    let filter = AtomicVectorQuotientFilter::with_fpr(keys, 1e-5).unwrap();
    let start = Barrier::new(THREADS);
    let count = |change: &(dyn Fn(u64) -> bool + Sync)| -> u64 {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        (0..keys).filter(|key| change(*key)).count() as u64
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        })
    };
    let new = count(&|key| filter.insert(&key).unwrap());
    assert_eq!(new, filter.len());
    assert!(new > keys - 20);
    assert_eq!(count(&|key| filter.remove(&key)), new);
    assert!(filter.is_empty());
}
