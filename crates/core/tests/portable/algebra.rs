//! Filters as sets: the laws of union and intersection, batches and single operations, and random
//! operations compared with a naive model.

use std::collections::HashSet;
use std::hash::Hash;

use petal::embed::Layout;
use petal::{
    AnyFilter, BatchResults, BloomFilter, ClassicBloomFilter, CountingBloomFilter, Filter,
    HashSpec, Key, Membership as _, TypedBloomFilter,
};
use petal_testkit::rng::Rng;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::naive::{HeaderFields, Naive};

/// Returns an empty filter of any layout, including layouts that no constructor returns.
fn empty<L: Layout>(naive: &Naive) -> Filter<L> {
    Filter::read_from(&naive.to_file(&HeaderFields::none())[..]).unwrap().0
}

fn filled<L: Layout>(naive: &Naive, hashes: &[u64]) -> Filter<L> {
    let mut filter = empty(naive);
    insert_all(&mut filter, hashes);
    filter
}

fn insert_all<L: Layout>(filter: &mut Filter<L>, hashes: &[u64]) {
    for &hash in hashes {
        filter.insert_mixed_hash(hash);
    }
}

fn copy<L: Layout>(filter: &Filter<L>) -> Filter<L> {
    filter.try_clone().unwrap()
}

fn union_of<L: Layout>(a: &Filter<L>, b: &Filter<L>) -> Filter<L> {
    let mut both = copy(a);
    both.union(b).unwrap();
    both
}

fn common<L: Layout>(a: &Filter<L>, b: &Filter<L>) -> Filter<L> {
    let mut both = copy(a);
    both.intersect(b).unwrap();
    both
}

/// Returns small layouts, so that keys share bits.
fn shapes() -> impl Strategy<Value = Naive> {
    prop_oneof![
        (1u64..40, 1u64..=8).prop_map(|(blocks, probes)| Naive::blocked(blocks, 8, probes)),
        (1u64..20, 1u64..=16).prop_map(|(blocks, probes)| Naive::blocked(blocks, 16, probes)),
        (1u64..10_000, 1u64..=64).prop_map(|(bits, probes)| Naive::classic(bits, probes)),
    ]
}

/// Returns hashes, many of them repeated.
fn hashes() -> impl Strategy<Value = Vec<u64>> {
    let few = (0u64..50).prop_map(|number| Rng::new(number).next_u64());
    vec(prop_oneof![few, any::<u64>()], 0..200)
}

/// Calls a function for the layout of the model.
macro_rules! for_layout {
    ($law:ident($naive:expr $(, $argument:expr)*)) => {
        if $naive.kind == 1 {
            $law::<petal::embed::BlockedLayout>($naive $(, $argument)*);
        } else {
            $law::<petal::embed::ClassicLayout>($naive $(, $argument)*);
        }
    };
}

proptest! {
    #[test]
    fn set_laws_hold(naive in shapes(), a in hashes(), b in hashes(), c in hashes()) {
        for_layout!(laws(&naive, &a, &b, &c));
    }

    #[test]
    fn batch_equals_single_operations(naive in shapes(), first in hashes(), batch in hashes()) {
        for_layout!(batches(&naive, &first, &batch));
    }

    #[test]
    fn operations_equal_the_model(naive in shapes(), seed in any::<u64>()) {
        for_layout!(operations(&naive, seed));
    }

    #[test]
    fn file_round_trip(naive in shapes(), a in hashes(), metadata in ".{0,40}") {
        for_layout!(through_a_file(&naive, &a, &metadata));
    }
}

fn laws<L: Layout>(naive: &Naive, a: &[u64], b: &[u64], c: &[u64]) {
    let none = empty::<L>(naive);
    let (fa, fb, fc) = (filled::<L>(naive, a), filled(naive, b), filled(naive, c));

    // The union equals the filter built from both, in any order.
    assert!(union_of(&fa, &fb) == filled(naive, &[a, b].concat()));
    assert!(union_of(&fa, &fb) == union_of(&fb, &fa));
    assert!(union_of(&union_of(&fa, &fb), &fc) == union_of(&fa, &union_of(&fb, &fc)));
    assert!(union_of(&fa, &fa) == fa && union_of(&fa, &none) == fa && union_of(&none, &fa) == fa);

    // The intersection contains all keys of both, and nothing that one of them does not contain.
    let both = common(&fa, &fb);
    let in_b: HashSet<_> = b.iter().collect();
    assert!(
        a.iter().filter(|hash| in_b.contains(hash)).all(|&hash| both.contains_mixed_hash(hash))
    );
    let mut rng = Rng::new(a.len() as u64);
    for _ in 0..100 {
        let hash = rng.next_u64();
        let each = fa.contains_mixed_hash(hash) && fb.contains_mixed_hash(hash);
        assert!(each || !both.contains_mixed_hash(hash));
        assert!(union_of(&fa, &fb).contains_mixed_hash(hash) || !fa.contains_mixed_hash(hash));
    }
    assert!(both == common(&fb, &fa) && common(&fa, &fa) == fa && common(&fa, &none) == none);
    assert!(common(&common(&fa, &fb), &fc) == common(&fa, &common(&fb, &fc)));

    // Absorption and distribution hold for bits.
    assert!(union_of(&fa, &both) == fa && common(&fa, &union_of(&fa, &fb)) == fa);
    assert!(common(&fa, &union_of(&fb, &fc)) == union_of(&both, &common(&fa, &fc)));

    // The number of insertions is exact before set operations, then an estimate.
    assert_eq!(union_of(&none, &none).inserted(), 0);
    let estimate = union_of(&fa, &fb).stats().estimated_len;
    let inserted = union_of(&fa, &fb).inserted();
    let rounded = estimate.round().max(f64::from(u8::from(estimate > 0.0)));
    assert!(inserted as f64 == rounded || estimate.is_infinite(), "{inserted} {estimate}");
    assert!(inserted < 1_000_000, "{inserted}");
    // Common keys are estimated as by `compare`, limited by the number of bits.
    let overlap = fa.compare(&fb).unwrap();
    if overlap.union.value.is_finite() {
        assert_eq!(both.inserted(), overlap.intersection.value.round() as u64);
        assert!(overlap.intersection.value <= both.stats().estimated_len + 1e-6);
    }

    // `clear` removes all keys and keeps everything else.
    let mut cleared = copy(&fa);
    cleared.clear();
    assert!(cleared == none && cleared.inserted() == 0 && cleared.stats().estimated_len == 0.0);
    assert!(cleared.stats().estimated_fpr == 0.0 && cleared.stats().fill_ratio == 0.0);
    insert_all(&mut cleared, a);
    assert!(cleared == fa && cleared.inserted() == fa.inserted());
}

fn batches<L: Layout>(naive: &Naive, first: &[u64], batch: &[u64]) {
    // Duplicates within the batch, near and distant.
    let batch = [batch, &batch[..batch.len() / 2], batch].concat();
    let mut one_by_one = filled::<L>(naive, first);
    let mut at_once = copy(&one_by_one);
    let expect: Vec<usize> = batch
        .iter()
        .enumerate()
        .filter(|(_, hash)| one_by_one.insert_mixed_hash(**hash))
        .map(|(at, _)| at)
        .collect();
    let mut results = BatchResults::new();
    at_once.insert_mixed_hashes(&batch, &mut results);
    assert_eq!(results.iter().collect::<Vec<_>>(), expect);
    assert_eq!((results.len(), results.count_ones()), (batch.len(), expect.len() as u64));
    assert!(at_once == one_by_one && at_once.inserted() == one_by_one.inserted());
    for (at, word) in results.as_words().iter().enumerate() {
        let bits = (0..64).filter(|bit| word >> bit & 1 == 1).map(|bit| at * 64 + bit);
        assert!(bits.into_iter().all(|at| results.get(at)));
    }

    let mut queries = batch;
    let mut rng = Rng::new(queries.len() as u64);
    queries.extend((0..100).map(|_| rng.next_u64()));
    at_once.contains_mixed_hashes(&queries, &mut results);
    assert_eq!(results.len(), queries.len());
    for (at, &hash) in queries.iter().enumerate() {
        assert_eq!(results.get(at), one_by_one.contains_mixed_hash(hash));
    }
    at_once.contains_mixed_hashes(&[], &mut results);
    assert!(results.is_empty() && results.iter().next().is_none());
}

/// A filter with its expected keys: no key is lost, and the model returns the same results.
fn operations<L: Layout>(naive: &Naive, seed: u64) {
    let mut rng = Rng::new(seed);
    let (mut filter, mut model) = (empty::<L>(naive), naive.clone());
    let mut members = HashSet::new();
    for _ in 0..300 {
        let hash =
            if rng.one_in(3) { Rng::new(rng.next_u64() % 40).next_u64() } else { rng.next_u64() };
        match rng.below(40) {
            0 => {
                filter.clear();
                model.data.fill(0);
                members.clear();
            }
            1 => {
                let other: Vec<u64> = (0..rng.below(20)).map(|_| rng.next_u64()).collect();
                filter.union(&filled(naive, &other)).unwrap();
                other.iter().for_each(|&hash| {
                    model.insert(hash);
                });
                members.extend(other);
            }
            2..20 => {
                let before = filter.inserted();
                let new = filter.insert_mixed_hash(hash);
                assert_eq!(new, model.insert(hash));
                assert_eq!(filter.inserted(), before + u64::from(new));
                // A new key was not a member.
                assert!(members.insert(hash) || !new);
            }
            _ => {
                assert_eq!(filter.contains_mixed_hash(hash), model.contains(hash));
                assert!(filter.contains_mixed_hash(hash) || !members.contains(&hash));
            }
        }
    }
    assert!(members.iter().all(|&hash| filter.contains_mixed_hash(hash)));
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    assert!(file[4096..] == model.data);
}

fn through_a_file<L: Layout>(naive: &Naive, a: &[u64], metadata: &str) {
    let filter = filled::<L>(naive, a);
    let mut file = Vec::new();
    filter.write_to(&mut file, metadata).unwrap();
    let (again, text) = Filter::<L>::read_from(&file[..]).unwrap();
    assert!(again == filter && text == metadata && again.inserted() == filter.inserted());
    let (any, _) = AnyFilter::read_from(&file[..]).unwrap();
    let (mut ours, mut theirs) = (BatchResults::new(), BatchResults::new());
    any.as_dyn().contains_mixed_hashes(a, &mut theirs);
    filter.contains_mixed_hashes(a, &mut ours);
    assert!(ours == theirs && ours.count_ones() == a.len() as u64);
    assert_eq!(any.as_dyn().stats().estimated_len, filter.stats().estimated_len);
    assert_eq!(any.as_dyn().stats().estimated_fpr, filter.stats().estimated_fpr);
    assert_eq!(any.as_dyn().inserted(), filter.inserted());
}

// ---- Estimates after set operations ---------------------------------------------------------------

/// Returns two filters with some keys in common.
fn overlapping<L: Layout>(common: u64, seed: u64) -> (Filter<L>, Filter<L>) {
    let mut rng = Rng::new(seed);
    let filter = || Filter::<L>::with_fpr(PLANNED, 0.01).unwrap();
    let (mut a, mut b) = (filter(), filter());
    for at in 0..2 * PLANNED - common {
        let hash = rng.next_u64();
        if at < PLANNED {
            a.insert_mixed_hash(hash);
        }
        if at >= PLANNED - common {
            b.insert_mixed_hash(hash);
        }
    }
    (a, b)
}

const PLANNED: u64 = 50_000;

fn numbers_after_set_operations<L: Layout>() {
    for (common, seed) in [(0, 1), (10, 2), (5_000, 3), (40_000, 4), (PLANNED, 5)] {
        let (a, b) = overlapping::<L>(common, seed);
        let overlap = a.compare(&b).unwrap();
        let both = self::common(&a, &b);
        // Five standard errors: a probability of less than one in a million.
        let off = both.inserted().abs_diff(common) as f64;
        let error = overlap.intersection.error;
        assert!(off <= 5.0 * error + 0.5, "{common}: {} ± {error}", both.inserted());
        assert!(both.stats().estimated_len + 5.0 * error >= common as f64);
        // At the remaining capacity the rate is the target, within 5 %.
        let mut full = copy(&both);
        let mut rng = Rng::new(seed + 100);
        for _ in 0..full.stats().capacity_left.unwrap() {
            full.insert_mixed_hash(rng.next_u64());
        }
        let rate = full.stats().estimated_fpr;
        assert!((rate / 0.01 - 1.0).abs() < 0.05, "{common}: {rate}");
        // Insertions add to the estimate, and a file keeps it.
        let mut file = Vec::new();
        both.write_to(&mut file, "").unwrap();
        assert_eq!(Filter::<L>::read_from(&file[..]).unwrap().0.inserted(), both.inserted());

        let all = union_of(&a, &b);
        let off = all.inserted().abs_diff(2 * PLANNED - common) as f64;
        assert!(off <= 5.0 * overlap.union.error + 0.5, "{common}: {}", all.inserted());
    }
}

#[test]
fn estimates_after_set_operations_are_within_their_error() {
    numbers_after_set_operations::<petal::embed::BlockedLayout>();
    numbers_after_set_operations::<petal::embed::ClassicLayout>();
}

/// A filter without clear bits has no estimate; its number of keys stays finite.
#[test]
fn estimates_of_full_filters_are_finite() {
    let full = |bits: u64, probes| {
        let mut filter = BloomFilter::with_bits(bits, probes).unwrap();
        let mut rng = Rng::new(7);
        while filter.stats().fill_ratio < 1.0 {
            (0..1000).for_each(|_| _ = filter.insert_mixed_hash(rng.next_u64()));
        }
        filter
    };
    for (bits, probes) in [(512, 8), (1 << 16, 8), (1 << 16, 13)] {
        let (full, empty) = (full(bits, probes), BloomFilter::with_bits(bits, probes).unwrap());
        for all in [union_of(&full, &full), union_of(&full, &empty), union_of(&empty, &full)] {
            let max = bits as f64 * (2.0 * bits as f64).ln() / f64::from(probes) + 1.0;
            assert!(all.stats().estimated_len.is_infinite());
            assert!(all.inserted() > bits / 8 && all.inserted() as f64 <= max);
            assert_eq!(all.union_folded(&empty).unwrap().inserted(), all.inserted());
        }
        assert_eq!(common(&full, &empty).inserted(), 0);
        assert_eq!(common(&full, &full).inserted(), union_of(&full, &full).inserted());
    }
    let mut counts = CountingBloomFilter::builder().bits(512).probes(8).build().unwrap();
    (0..5_000u64).for_each(|key| _ = counts.insert(&key));
    counts.union(&counts.try_clone().unwrap()).unwrap();
    assert!(counts.inserted() < 1_000, "{}", counts.inserted());
}

// ---- Filters that differ ------------------------------------------------------------------

/// Different layouts or hashes are errors that leave the filters unchanged.
#[test]
fn operations_on_different_filters_are_errors_without_effect() {
    let blocked = |bits, probes| BloomFilter::builder().bits(bits).probes(probes);
    let classic = |bits, probes| ClassicBloomFilter::builder().bits(bits).probes(probes);
    let hashes: Vec<u64> = (0..50).map(|seed| Rng::new(seed).next_u64()).collect();
    let key = HashSpec::keyed([1; 16]);
    let filter = blocked(4096, 8);
    let others = [
        blocked(4608, 8),
        blocked(4096, 7),
        blocked(4096, 9), // pairs of lines
        filter.seed(1),
        filter.hash(key),
    ];
    for other in others {
        check_error(filter.build().unwrap(), other.build().unwrap(), &hashes);
    }
    let mut other_key = [1; 16];
    other_key[15] = 2;
    check_error(
        filter.hash(key).build().unwrap(),
        filter.hash(HashSpec::keyed(other_key)).build().unwrap(),
        &hashes,
    );
    let filter = classic(1000, 7);
    // Equal numbers of cache lines, different numbers of bits.
    for other in [classic(1001, 7), classic(1000, 6), filter.seed(1), filter.hash(key)] {
        check_error(filter.build().unwrap(), other.build().unwrap(), &hashes);
    }
    // The capacity is not part of the layout.
    let mut planned = blocked(4096, 8).capacity(100).build().unwrap();
    planned.union(&blocked(4096, 8).build().unwrap()).unwrap();

    let mut any = AnyFilter::from(blocked(512, 8).build().unwrap());
    let other = AnyFilter::from(classic(512, 8).build().unwrap());
    for error in [any.check_compatible(&other).unwrap_err(), any.union(&other).unwrap_err()] {
        assert!(error.is_incompatible() && error.to_string().contains("type"), "{error}");
    }
    any.check_compatible(&any).unwrap();
}

fn check_error<L: Layout>(mut filter: Filter<L>, mut other: Filter<L>, hashes: &[u64]) {
    insert_all(&mut filter, &hashes[..20]);
    insert_all(&mut other, hashes);
    let before = (copy(&filter), filter.inserted());
    let errors = [filter.union(&other).unwrap_err(), filter.intersect(&other).unwrap_err()];
    for error in errors {
        let text = error.to_string();
        assert!(error.is_incompatible() && !text.contains('\n'), "{text}");
        // Errors must not contain keys.
        assert!(!text.contains("01010101") && !text.contains("1, 1, 1"), "{text}");
    }
    assert!(filter == before.0 && filter.inserted() == before.1);
    assert!(filter != other);
}

// ---- Keys ---------------------------------------------------------------------------------------

fn keys_stay<K: Key + Hash + Eq + Clone>(keys: &[K], non_members: &[K]) {
    for spec in [HashSpec::rapid(3), HashSpec::keyed([9; 16])] {
        let mut filter = BloomFilter::builder()
            .capacity(keys.len() as u64)
            .fpr(1e-4)
            .hash(spec)
            .build()
            .unwrap();
        let mut model = HashSet::new();
        for key in keys {
            let new = filter.insert(key);
            assert!(model.insert(key.clone()) || !new);
            assert!(filter.contains(key) && filter.contains_mixed_hash(key.hash_with(&spec)));
        }
        let mut batch = BatchResults::new();
        filter.contains_batch(keys, &mut batch);
        assert_eq!(batch.count_ones(), keys.len() as u64);
        let mut again = BloomFilter::builder();
        again = again.capacity(keys.len() as u64).fpr(1e-4).hash(spec);
        let mut again = again.build().unwrap();
        again.insert_batch(keys, &mut batch);
        assert!(again == filter && again.inserted() == filter.inserted());
        assert_eq!(batch.count_ones(), filter.inserted());
        let wrong = non_members.iter().filter(|key| filter.contains(*key)).count();
        // At 1e-4 nine false positives among a thousand have a probability of 3e-15.
        assert!(non_members.len() <= 1000 && wrong < 9, "{wrong} of {}", non_members.len());
    }
}

#[test]
fn every_key_type_is_found() {
    let numbers = || (0..1000u64).map(|at| at * at);
    let others = || (0..1000u64).map(|at| u64::MAX - at);
    let text = |number: u64| format!("https://example.org/{number}");
    keys_stay(&numbers().collect::<Vec<_>>(), &others().collect::<Vec<_>>());
    let wide = |number| u128::from(number) << 60;
    keys_stay(&numbers().map(wide).collect::<Vec<_>>(), &others().map(wide).collect::<Vec<_>>());
    keys_stay(&numbers().map(text).collect::<Vec<_>>(), &others().map(text).collect::<Vec<_>>());
    let (a, b): (Vec<_>, Vec<_>) = (numbers().map(text).collect(), others().map(text).collect());
    let borrowed =
        |keys: &'_ [String]| keys.iter().map(|key| key.clone().into_bytes()).collect::<Vec<_>>();
    keys_stay(&borrowed(&a), &borrowed(&b));
    keys_stay(
        &a.iter().map(String::as_str).collect::<Vec<_>>(),
        &b.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    keys_stay(
        &numbers().map(u64::to_le_bytes).collect::<Vec<_>>(),
        &others().map(u64::to_le_bytes).collect::<Vec<_>>(),
    );
}

/// A key is its bytes, independent of its type.
#[test]
fn keys_with_equal_bytes_are_equal() {
    let mut filter = BloomFilter::with_fpr(100, 1e-9).unwrap();
    assert!(filter.insert("petal") && filter.insert(&7u64) && filter.insert(&7u128));
    assert!(filter.contains(b"petal") && filter.contains(&b"petal"[..]));
    assert!(filter.contains(&String::from("petal")) && filter.contains(&b"petal".to_vec()));
    assert!(filter.contains(&[7, 0, 0, 0, 0, 0, 0, 0]) && filter.contains(&"\x07\0\0\0\0\0\0\0"));
    for other in [&b""[..], b"p", b"peta", b"petal\0", b"Petal", &[7], &[7, 0, 0, 0], &[0, 0, 0, 7]]
    {
        assert!(!filter.contains(other), "{other:?}");
    }
    assert!(filter.insert("") && filter.contains(b""));
}

#[test]
fn typed_filters_contain_hashable_values() {
    let mut filter = TypedBloomFilter::<(u32, &str)>::with_fpr(1000, 1e-4).unwrap();
    let mut model = HashSet::new();
    for number in 0..1000 {
        let value = (number * number % 700, ["a", "b", "ab"][number as usize % 3]);
        let new = filter.insert(&value);
        assert!(model.insert(value) || !new);
    }
    assert!(model.iter().all(|value| filter.contains(value)));
    let wrong = (0..1000).filter(|number| filter.contains(&(1000 + number, "a"))).count();
    assert!(wrong < 9, "{wrong}"); // as above
    assert!(
        filter.stats().estimated_len > 0.9 * model.len() as f64
            && filter.stats().estimated_fpr < 1e-3
    );
    filter.clear();
    assert!(!filter.contains(&(0, "a")) && filter.stats().estimated_len == 0.0);

    // With another hash key, false positives differ, and the members are the same.
    let full = |key| {
        let mut filter = TypedBloomFilter::<u32>::with_fpr(1000, 0.1).unwrap().with_secret(key);
        (0..1000).for_each(|value| {
            filter.insert(&value);
        });
        assert!((0..1000).all(|value| filter.contains(&value)));
        (1000..3000).filter(|value| filter.contains(value)).collect::<Vec<_>>()
    };
    assert_ne!(full([0, 0]), full([1, 2]));
}
