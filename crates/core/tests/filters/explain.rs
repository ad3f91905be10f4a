//! The explanation of a query: its positions are those that an insertion sets.

use std::num::NonZeroUsize;

use petal::{
    BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter, CountingBloomFilter, Explanation,
    FilterCascade, HashSpec, Membership, MembershipMut, QuotientFilter, ScalableBloomFilter,
    StaticFilter, WindowedBloomFilter,
};
use petal_testkit::rng::Rng;

/// Returns the data of a filter: its file without the first page.
fn data(filter: &dyn Membership) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    file[4096..].to_vec()
}

/// Returns the positions of the set bits.
fn set_bits(data: &[u8]) -> Vec<u64> {
    let bits =
        (0..data.len() as u64 * 8).filter(|bit| data[*bit as usize / 8] >> (bit % 8) & 1 == 1);
    bits.collect()
}

/// Returns the positions of a part, sorted and without repetitions.
fn positions(explanation: &Explanation, part: usize) -> Vec<u64> {
    let probes = explanation.parts[part].probes.iter();
    let mut positions: Vec<u64> = probes.map(|probe| probe.position).collect();
    positions.sort_unstable();
    positions.dedup();
    positions
}

/// Inserts each of some keys into an empty filter, and compares its bits with the positions of the
/// key before and after it.
fn check_bits<F: MembershipMut>(new: impl Fn() -> F) {
    let mut rng = Rng::new(7);
    for _ in 0..50 {
        let mut filter = new();
        let hash = rng.next_u64();
        let before = filter.explain_mixed_hash(hash);
        assert!(!before.contains);
        assert!(before.parts[0].probes.iter().all(|probe| probe.value == 0));
        filter.insert_mixed_hashes(&[hash], &mut petal::BatchResults::new()).unwrap();
        let after = filter.explain_mixed_hash(hash);
        assert!(after.contains && after.parts[0].contains);
        assert!(after.parts[0].probes.iter().all(|probe| probe.value == 1));
        assert_eq!(positions(&before, 0), positions(&after, 0));
        let found = set_bits(&data(&filter)[..filter.size_bytes() as usize]);
        assert_eq!(found, positions(&after, 0), "{}", filter.stats().layout);
    }
}

#[test]
fn positions_are_the_bits_that_an_insertion_sets() {
    for (bits, probes) in [(64, 1), (1000, 5), (1000, 8), (100_000, 11), (100_000, 16)] {
        check_bits(|| BloomFilter::with_bits(bits, probes).unwrap());
        check_bits(|| ClassicBloomFilter::with_bits(bits, probes).unwrap());
        check_bits(|| CountingBloomFilter::builder().bits(bits).probes(probes).build().unwrap());
        check_bits(|| {
            ClassicCountingBloomFilter::builder().bits(bits).probes(probes).build().unwrap()
        });
    }
    check_bits(|| ClassicBloomFilter::with_bits(12_345_677, 64).unwrap());
    for fpr in [0.01, 1e-6, 1e-12] {
        check_bits(|| WindowedBloomFilter::with_fpr(1000, fpr).unwrap());
    }
}

#[test]
fn each_layer_of_a_scalable_filter_is_explained() {
    let mut filter = ScalableBloomFilter::with_fpr(100, 0.01).unwrap();
    let mut rng = Rng::new(8);
    let hashes: Vec<u64> = (0..1000).map(|_| rng.next_u64()).collect();
    for hash in &hashes {
        filter.insert_mixed_hash(*hash).unwrap();
    }
    assert!(filter.layers() > 2);
    for hash in hashes.iter().copied().chain((0..1000).map(|_| rng.next_u64())) {
        let explanation = filter.explain_mixed_hash(hash);
        assert_eq!(explanation.contains, filter.contains_mixed_hash(hash));
        assert_eq!(explanation.parts.len(), filter.layers() as usize);
        // The newest layer first.
        let layers: Vec<_> = filter.layer_filters().collect();
        for (part, layer) in explanation.parts.iter().zip(layers.iter().rev()) {
            assert_eq!(part.contains, layer.contains_mixed_hash(hash));
            assert_eq!(part.probes, layer.explain_mixed_hash(hash).parts[0].probes);
        }
    }
}

#[test]
fn counters_are_shown() {
    let mut filter =
        CountingBloomFilter::builder().bits(1 << 16).probes(6).counter_width(4).build().unwrap();
    let mut classic = ClassicCountingBloomFilter::builder()
        .bits(1 << 16)
        .probes(6)
        .counter_width(4)
        .build()
        .unwrap();
    for count in 1..=10u64 {
        filter.insert("key");
        classic.insert("key");
        let hash = filter.hash_spec().hash(b"key");
        for explanation in [filter.explain_mixed_hash(hash), classic.explain_mixed_hash(hash)] {
            // Four bits count to 8.
            let values = explanation.parts[0].probes.iter().map(|probe| probe.value);
            assert!(values.clone().all(|value| value == count.min(8)), "{explanation:?}");
            assert_eq!(values.count(), 6);
        }
    }
}

#[test]
fn fingerprints_of_a_quotient_filter_are_explained() {
    let mut filter = QuotientFilter::with_fpr(1000, 0.01).unwrap();
    let mut rng = Rng::new(9);
    let number = |explanation: &Explanation, name: &str| {
        let numbers = &explanation.parts[0].numbers;
        numbers.iter().find(|number| number.0 == name).unwrap().1
    };
    for _ in 0..300 {
        let hash = rng.next_u64();
        let copies = number(&filter.explain_mixed_hash(hash), "copies");
        assert_eq!(copies > 0, filter.contains_mixed_hash(hash));
        // The trait's method stores a key as often as it is inserted.
        let mut new = petal::BatchResults::new();
        MembershipMut::insert_mixed_hashes(&mut filter, &[hash, hash], &mut new).unwrap();
        let explanation = filter.explain_mixed_hash(hash);
        assert!(explanation.contains);
        assert_eq!(number(&explanation, "copies"), copies + 2);
        let (slot, remainder) = (number(&explanation, "slot"), number(&explanation, "remainder"));
        let bits = filter.layout().remainder_bits();
        assert!(slot < filter.layout().slots() && remainder < 1 << bits);
        let fingerprint = number(&explanation, "fingerprint");
        assert_eq!(fingerprint, slot << bits | remainder);
        assert!(filter.fingerprints().any(|stored| stored == fingerprint));
    }
}

#[test]
fn equations_of_static_filters_are_explained() {
    let mut rng = Rng::new(10);
    let mut hashes = |count| (0..count).map(|_| rng.next_u64()).collect::<Vec<_>>();
    let (members, others, unknown) = (hashes(3000), hashes(3000), hashes(3000));
    let filter = StaticFilter::builder().fpr(0.03).from_mixed_hashes(members.clone()).unwrap();
    let mut bumped = 0;
    for hash in members.iter().chain(&unknown) {
        let explanation = filter.explain_mixed_hash(*hash);
        assert_eq!(explanation.contains, filter.contains_mixed_hash(*hash));
        let (last, before) = explanation.parts.split_last().unwrap();
        let number = |name| last.numbers.iter().find(|number| number.0 == name).unwrap().1;
        assert_eq!(number("fingerprint") == number("result"), explanation.contains);
        assert!(before.iter().all(|part| part.numbers.contains(&("bumped", 1))));
        bumped += before.len();
    }
    assert!(bumped > 0, "no key continued in the second layer");

    let builder =
        FilterCascade::builder().fpr(0.1).hash(HashSpec::rapid(0)).threads(NonZeroUsize::MIN);
    let cascade = builder.from_mixed_hashes(&members, &others).unwrap();
    let mut deepest = 0;
    for hash in members.iter().chain(&others).chain(&unknown) {
        let explanation = cascade.explain_mixed_hash(*hash);
        assert_eq!(explanation.contains, cascade.contains_mixed_hash(*hash));
        let (_, before) = explanation.parts.split_last().unwrap();
        assert!(before.iter().all(|part| part.contains));
        deepest = deepest.max(explanation.parts.len());
    }
    assert_eq!(deepest, 2);
}

#[test]
fn slots_of_fuse_filters_are_explained() {
    let mut rng = Rng::new(10);
    let mut hashes = |count| (0..count).map(|_| rng.next_u64()).collect::<Vec<_>>();
    let (members, unknown) = (hashes(3000), hashes(3000));
    let builder = StaticFilter::builder().fpr(0.03).fuse(true);
    let filter = builder.from_mixed_hashes(members.clone()).unwrap();
    let mut compared = [0; 2];
    for hash in members.iter().chain(&unknown) {
        let explanation = filter.explain_mixed_hash(*hash);
        assert_eq!(explanation.contains, filter.contains_mixed_hash(*hash));
        let numbers = &explanation.parts[0].numbers;
        let number = |name| numbers.iter().find(|number| number.0 == name).unwrap().1;
        assert_eq!(number("fingerprint") == number("result"), explanation.contains);
        assert!(number("slot 1") < number("slot 2") && number("slot 3") < number("slot 4"));
        compared[number("bits") as usize - 5] += 1;
    }
    // A rate of 3 % is 5.06 bits.
    assert!(compared[0] > compared[1] && compared[1] > 0, "{compared:?}");
    let empty = builder.from_mixed_hashes(Vec::new()).unwrap();
    assert!(!empty.explain_mixed_hash(1).contains);
}

#[test]
fn expired_generations_do_not_count() {
    let mut filter = WindowedBloomFilter::with_time(1000, 0.01, 60).unwrap();
    filter.advance_to(1000);
    filter.insert("key");
    let hash = filter.hash_spec().hash(b"key");
    for now in [0, 1000, 1050, 1060, 1090, 1200, 1_000_000] {
        let explanation = filter.explain_mixed_hash_at(now, hash);
        assert_eq!(explanation.contains, filter.contains_mixed_hash_at(now, hash), "{now}");
        assert_eq!(explanation.parts.len(), filter.generations() as usize);
    }
    let expired = filter.explain_mixed_hash_at(1_000_000, hash);
    assert!(expired.parts.iter().all(|part| part.numbers.contains(&("expired", 1))));
    // The bits of the key are still shown.
    assert!(expired.parts[0].probes.iter().all(|probe| probe.value == 1));
}
