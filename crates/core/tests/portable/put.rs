//! Inserts without a result set the same bits, and the number of keys is then estimated.

use petal::embed::Layout;
use petal::{
    AnyFilter, AtomicBloomFilter, BatchResults, BloomFilter, ClassicBloomFilter, Filter,
    Membership as _,
};

fn hashes(filter: &impl petal::Membership, keys: &[u64]) -> Vec<u64> {
    let spec = filter.hash_spec();
    keys.iter().map(|key| spec.hash(&key.to_le_bytes())).collect()
}

/// Inserts keys, or their bytes.
type Fill<L> = fn(&mut Filter<L>, &[u64], &[[u8; 8]]);

fn check<L: Layout>(empty: &Filter<L>) {
    for len in [0, 1, 7, 8, 9, 100, 20_000] {
        let keys: Vec<u64> = (0..len).map(|at| if at % 3 == 2 { at / 2 } else { at }).collect();
        let (mut counted, mut new) = (empty.clone(), BatchResults::new());
        counted.insert_batch(&keys, &mut new);
        let texts: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let fills: [Fill<L>; 5] = [
            |filter, keys, _| keys.iter().for_each(|key| filter.put(key)),
            |filter, keys, _| filter.put_batch(keys),
            |filter, _, texts| filter.put_batch(texts),
            |filter, keys, _| {
                let hashes = hashes(filter, keys);
                filter.put_mixed_hashes(&hashes);
            },
            |filter, keys, _| {
                let hashes = hashes(filter, keys);
                hashes.iter().for_each(|&hash| filter.put_mixed_hash(hash));
            },
        ];
        for (number, fill) in fills.into_iter().enumerate() {
            let mut filter = empty.clone();
            fill(&mut filter, &keys, &texts);
            assert!(filter == counted, "{len} keys, way {number}");
            let (estimate, exact) = (filter.inserted() as f64, counted.inserted() as f64);
            assert!((estimate - exact).abs() <= 0.02 * exact + 1.0, "{estimate}, {exact}");
        }
    }
}

#[test]
fn bits_equal_those_of_counted_inserts() {
    check(&BloomFilter::with_fpr(20_000, 0.01).unwrap());
    check(&BloomFilter::with_bits(200_000, 5).unwrap());
    check(&BloomFilter::with_fpr(20_000, 0.0001).unwrap());
    check(&ClassicBloomFilter::with_fpr(20_000, 0.01).unwrap());
    // Larger than 8 MiB.
    check(&BloomFilter::with_bits(70 << 20, 8).unwrap());
}

#[test]
fn estimate_is_kept_until_the_filter_is_cleared() {
    let mut filter = BloomFilter::with_fpr(10_000, 0.01).unwrap();
    let keys: Vec<u64> = (0..5_000).collect();
    filter.put_batch(&keys);
    let estimate = filter.inserted();
    assert!((4_900..5_100).contains(&estimate), "{estimate}");
    assert_eq!((filter.capacity(), filter.target_fpr()), (10_000, 0.01));

    let mut file = vec![];
    filter.write_to(&mut file, "").unwrap();
    let copies = [
        filter.clone().inserted(),
        filter.try_clone().unwrap().inserted(),
        AtomicBloomFilter::from(filter.clone()).inserted(),
        filter.fold(1).unwrap().inserted(),
        BloomFilter::read_from(&file[..]).unwrap().0.inserted(),
        AnyFilter::Bloom(filter.clone()).as_dyn().inserted(),
    ];
    assert_eq!(copies, [estimate; 6]);

    // Counted inserts do not make it exact.
    (5_000..9_000u64).for_each(|key| _ = filter.insert(&key));
    assert!((8_800..9_200).contains(&filter.inserted()), "{}", filter.inserted());

    filter.clear();
    assert_eq!(filter.inserted(), 0);
    assert!(filter.insert("one") && filter.inserted() == 1);

    // An intersection has an estimate of its own.
    filter.put_batch(&keys);
    let mut other = BloomFilter::with_fpr(10_000, 0.01).unwrap();
    (0..100u64).for_each(|key| _ = other.insert(&key));
    filter.intersect(&other).unwrap();
    assert!((80..120).contains(&filter.inserted()), "{}", filter.inserted());
}
