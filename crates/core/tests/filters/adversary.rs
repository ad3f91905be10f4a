//! Keys prepared by an adversary collide under public hashes, but not under keyed ones.

use std::collections::HashSet;

use petal::{BloomFilter, HashSpec};
use petal_testkit::collide::{Family, RAPID};
use petal_testkit::rng::Rng;

/// Returns the number of distinct hashes of the first keys of a family.
fn distinct(hash: HashSpec, family: Family, count: u64) -> usize {
    family.keys(count).map(|key| hash.hash(&key)).collect::<HashSet<_>>().len()
}

#[test]
fn every_family_collides_under_rapidhash_with_any_seed() {
    let mut rng = Rng::new(1);
    for family in RAPID {
        for seed in [0, 1, rng.next_u64(), rng.next_u64(), u64::MAX] {
            assert_eq!(distinct(HashSpec::rapid(seed), family, 500), 1, "{} {seed}", family.name);
        }
    }
}

#[test]
fn no_family_collides_under_a_keyed_hash() {
    let mut rng = Rng::new(2);
    let mut key = || std::array::from_fn(|_| rng.next_u64() as u8);
    for family in RAPID {
        for _ in 0..5 {
            let hashes = [HashSpec::rapid_keyed, HashSpec::keyed];
            for hash in hashes.map(|hash| hash(key())) {
                assert_eq!(distinct(hash, family, 2000), 2000, "{} {hash:?}", family.name);
            }
        }
    }
}

/// Words of keys of up to 7 bytes are shorter than a secret, so no product of theirs is zero.
#[test]
fn keys_of_up_to_7_bytes_have_no_family() {
    let mut rng = Rng::new(3);
    let mut keys: HashSet<Vec<u8>> = HashSet::new();
    keys.extend((0..=255u8).map(|byte| vec![byte]));
    keys.extend((0..=u16::MAX).map(|both| both.to_le_bytes().to_vec()));
    for length in [3, 4, 5, 6, 7] {
        keys.extend((0..20_000).map(|_| rng.bytes(length)));
    }
    let hashes: HashSet<_> = keys.iter().map(|key| HashSpec::rapid(0).hash(key)).collect();
    assert_eq!(hashes.len(), keys.len());
}

/// With a public hash, all keys after the first are found in a filter; with a keyed hash nearly all
/// are new.
#[test]
fn keyed_filters_distinguish_the_keys_of_a_family() {
    const KEYS: u64 = 1000;
    let new = |hash: HashSpec, family: Family| {
        let builder = BloomFilter::builder().capacity(KEYS).fpr(1e-4).hash(hash);
        let mut filter = builder.build().unwrap();
        family.keys(KEYS).filter(|key| filter.insert(&key[..])).count()
    };
    for family in RAPID {
        assert_eq!(new(HashSpec::rapid(9), family), 1, "{}", family.name);
        for hash in [HashSpec::rapid_keyed([9; 16]), HashSpec::keyed([9; 16])] {
            assert!(new(hash, family) > 990, "{} {hash:?}", family.name);
        }
    }
}
