//! Properties of every type of filter: at its capacity, through the common traits, and in files.

use petal::embed::StreamDecoder;
use petal::{
    AnyFilter, BatchResults, BloomFilter, Borrowed, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, FilterCascade, FilterSpec, FilterType, HashSpec, MembershipMut,
    QuotientFilter, ScalableBloomFilter, Secret, StaticFilter, VectorQuotientFilter,
    WindowedBloomFilter, verify_bytes,
};
use petal_testkit::bounds::binomial_range;
use petal_testkit::rng::Rng;

const KEYS: u64 = 5000;
const RATE: f64 = 0.01;

/// Returns one filter of each type; those that allow insertions are empty.
fn family() -> Vec<AnyFilter> {
    let keys: Vec<u64> = (0..KEYS).collect();
    let others: Vec<u64> = (KEYS..3 * KEYS).collect();
    let family: Vec<AnyFilter> = vec![
        BloomFilter::with_fpr(KEYS, RATE).unwrap().into(),
        ClassicBloomFilter::with_fpr(KEYS, RATE).unwrap().into(),
        CountingBloomFilter::with_fpr(KEYS, RATE).unwrap().into(),
        ClassicCountingBloomFilter::with_fpr(KEYS, RATE).unwrap().into(),
        QuotientFilter::with_fpr(KEYS, RATE).unwrap().into(),
        ScalableBloomFilter::with_fpr(KEYS / 10, RATE).unwrap().into(),
        WindowedBloomFilter::with_fpr(KEYS, RATE).unwrap().into(),
        StaticFilter::build(&keys, RATE).unwrap().into(),
        FilterCascade::build(&keys, &others, RATE).unwrap().into(),
        VectorQuotientFilter::with_fpr(KEYS, RATE).unwrap().into(),
        StaticFilter::builder().fpr(RATE).fuse(true).build(&keys).unwrap().into(),
    ];
    let types: Vec<_> = family.iter().map(|filter| filter.as_dyn().filter_type()).collect();
    assert_eq!(types, FilterType::ALL, "a filter type is missing in this list");
    family
}

#[test]
fn generic_code_inserts_and_queries_keys() {
    fn check<F: MembershipMut>(mut filter: F) {
        assert!(filter.insert("one").unwrap() && !filter.insert("one").unwrap());
        assert!(filter.contains("one") && !filter.contains("two"));
        let stats = filter.stats();
        assert_eq!((stats.inserted, stats.size_bytes), (filter.inserted(), filter.size_bytes()));
    }
    check(BloomFilter::with_fpr(KEYS, RATE).unwrap());
    check(CountingBloomFilter::with_fpr(KEYS, RATE).unwrap());
    check(QuotientFilter::with_fpr(KEYS, RATE).unwrap());
    check(VectorQuotientFilter::with_fpr(KEYS, RATE).unwrap());
    check(ScalableBloomFilter::with_fpr(KEYS, RATE).unwrap());
    check(WindowedBloomFilter::with_fpr(KEYS, RATE).unwrap());
}

fn hashes(spec: &HashSpec, keys: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut hashes = Vec::new();
    spec.hash_all(keys.map(u64::to_le_bytes), &mut hashes);
    hashes
}

/// Returns the filter with all its keys.
fn filled(mut filter: AnyFilter) -> AnyFilter {
    let kind = filter.as_dyn().filter_type();
    let members = hashes(&filter.as_dyn().hash_spec(), 0..KEYS);
    let mut new = BatchResults::new();
    match filter.as_dyn_mut() {
        Ok(dynamic) => {
            dynamic.insert_mixed_hashes(&members, &mut new).unwrap();
            assert!(new.count_ones() >= KEYS * 9 / 10, "{kind}: {}", new.count_ones());
        }
        Err(error) => {
            assert!(error.is_unsupported(), "{kind}: {error}");
            assert!(kind.is_fixed(), "{kind}");
        }
    }
    filter
}

#[test]
fn members_are_found_at_the_predicted_rate() {
    for filter in family().into_iter().map(filled) {
        let dynamic = filter.as_dyn();
        let kind = dynamic.filter_type();
        let mut found = BatchResults::new();
        dynamic.contains_mixed_hashes(&hashes(&dynamic.hash_spec(), 0..KEYS), &mut found);
        assert_eq!((found.len() as u64, found.count_ones()), (KEYS, KEYS), "{kind}");
        let tries = 200_000;
        dynamic.contains_mixed_hashes(
            &hashes(&dynamic.hash_spec(), 1 << 40..(1 << 40) + tries),
            &mut found,
        );
        let rate = dynamic.stats().estimated_fpr;
        let (low, high) = binomial_range(tries, rate, 0.999);
        let yes = found.count_ones();
        assert!((low..=high).contains(&yes), "{kind}: {yes} not in {low}..={high}");
        // The fill of one filter differs slightly from the mean.
        assert!(rate <= RATE * 1.05 && !dynamic.stats().is_overfull, "{kind}: {rate}");
        assert_eq!(dynamic.target_fpr(), RATE, "{kind}");
        let estimate = dynamic.stats().estimated_len;
        assert!((estimate - KEYS as f64).abs() < KEYS as f64 * 0.05, "{kind}: {estimate}");
        assert!(dynamic.inserted().abs_diff(KEYS) < KEYS / 20, "{kind}: {}", dynamic.inserted());
        assert!(dynamic.stats().fill_ratio > 0.0 && dynamic.stats().fill_ratio <= 1.0, "{kind}");
        assert!(
            !dynamic.stats().layout.is_empty() && !dynamic.stats().parameters.is_empty(),
            "{kind}"
        );
        let beside = dynamic.memory_usage().saturating_sub(dynamic.size_bytes());
        assert!(beside < 8192, "{kind}: {beside} bytes more than the data");
        let fills = dynamic.block_fills(10);
        assert!(fills.is_empty() || fills.len() == 10 && fills.iter().sum::<u64>() > 0, "{kind}");
    }
}

/// With keys that repeat within a batch and across batches.
#[test]
fn batches_equal_single_operations() {
    for (which, distinct) in (0..family().len()).zip([60, 700, 4000].into_iter().cycle()) {
        let (mut single, mut batched) = (family().swap_remove(which), family().swap_remove(which));
        let (spec, kind) = (single.as_dyn().hash_spec(), single.as_dyn().filter_type());
        let (Ok(single), Ok(batched)) = (single.as_dyn_mut(), batched.as_dyn_mut()) else {
            continue;
        };
        // A key has few copies in a vector quotient filter, and keys with many fill their blocks.
        let distinct = if kind == FilterType::VectorQuotient { 1 << 40 } else { distinct };
        let mut rng = Rng::new(which as u64);
        let (mut results, mut one) = (BatchResults::new(), BatchResults::new());
        // A quotient filter stores every copy, up to its number of slots.
        let mut left = KEYS as usize;
        while left > 0 {
            let batch = (1 + rng.below(900)).min(left);
            left -= batch;
            let keys = (0..batch).map(|_| rng.next_u64() % distinct);
            let hashes = hashes(&spec, keys);
            batched.insert_mixed_hashes(&hashes, &mut results).unwrap();
            for (at, hash) in hashes.chunks(1).enumerate() {
                single.insert_mixed_hashes(hash, &mut one).unwrap();
                assert_eq!(results.get(at), one.get(0), "{kind}: key {at}");
            }
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        single.write_to(&mut ours, "").unwrap();
        batched.write_to(&mut theirs, "").unwrap();
        assert!(ours == theirs, "{kind}");
    }
}

#[test]
fn file_round_trip_keeps_everything() {
    for filter in family().into_iter().map(filled) {
        let dynamic = filter.as_dyn();
        let kind = dynamic.filter_type();
        let mut file = Vec::new();
        filter.write_to(&mut file, "{\"a\":1}").unwrap();
        assert_eq!(file.len() as u64, 4096 + dynamic.size_bytes(), "{kind}");
        assert_eq!(file[10], kind.number() as u8);
        verify_bytes(&file).unwrap();
        let (again, metadata) = AnyFilter::read_from(&file[..]).unwrap();
        let mut buffer = vec![0; file.len() + 64];
        let start = buffer.as_ptr().align_offset(64);
        buffer[start..start + file.len()].copy_from_slice(&file);
        let borrowed =
            AnyFilter::<Borrowed<'_>>::from_bytes(&buffer[start..start + file.len()]).unwrap();
        assert_eq!(metadata, "{\"a\":1}");
        let queries = hashes(&dynamic.hash_spec(), 0..4 * KEYS);
        let (mut expect, mut found) = (BatchResults::new(), BatchResults::new());
        dynamic.contains_mixed_hashes(&queries, &mut expect);
        for other in [again.as_dyn(), borrowed.as_dyn()] {
            other.contains_mixed_hashes(&queries, &mut found);
            assert!(found == expect, "{kind}");
            assert_eq!(other.stats().layout, dynamic.stats().layout);
            assert_eq!(other.inserted(), dynamic.inserted());
            assert_eq!(other.stats().estimated_fpr, dynamic.stats().estimated_fpr);
            let mut same = Vec::new();
            other.write_to(&mut same, "{\"a\":1}").unwrap();
            assert!(same == file, "{kind}: the second file differs");
        }
        assert!(borrowed.as_dyn().memory_usage() < 8192, "{kind}: borrowed bytes were copied");
    }
}

/// Returns one filter of each type with keys and this hash.
fn keyed_family(hash: HashSpec) -> Vec<AnyFilter> {
    let keys: Vec<u64> = (0..KEYS).collect();
    let others: Vec<u64> = (KEYS..3 * KEYS).collect();
    let filters = FilterType::ALL.iter().map(|kind| match kind {
        FilterType::Static | FilterType::StaticFuse => {
            let fuse = *kind == FilterType::StaticFuse;
            StaticFilter::builder().fpr(RATE).hash(hash).fuse(fuse).build(&keys).unwrap().into()
        }
        FilterType::Cascade => {
            FilterCascade::builder().fpr(RATE).hash(hash).build(&keys, &others).unwrap().into()
        }
        kind => {
            let spec = FilterSpec {
                capacity: Some(KEYS),
                fpr: Some(RATE),
                hash,
                ..FilterSpec::new(*kind)
            };
            let mut filter = AnyFilter::build(&spec).unwrap();
            let mut new = BatchResults::new();
            let hashes = hashes(&hash, 0..KEYS);
            filter.as_dyn_mut().unwrap().insert_mixed_hashes(&hashes, &mut new).unwrap();
            filter
        }
    });
    filters.collect()
}

#[test]
fn filter_whose_secret_is_apart_needs_that_secret() {
    let key: [u8; 16] = std::array::from_fn(|i| 0xa1 + 5 * i as u8);
    let (secret, wrong) = (Secret::new(key), Secret::new([1; 16]));
    for filter in keyed_family(HashSpec::keyed_apart(&secret)) {
        let kind = filter.filter_type();
        let file = filter.to_bytes().unwrap();
        assert!(!file.windows(16).any(|bytes| bytes == key), "{kind}");
        assert!(!file.windows(8).any(|bytes| bytes == &key[..8] || bytes == &key[8..]), "{kind}");
        verify_bytes(&file).unwrap();
        let mut buffer = vec![0; file.len() + 64];
        let start = buffer.as_ptr().align_offset(64);
        buffer[start..start + file.len()].copy_from_slice(&file);
        let aligned = &buffer[start..start + file.len()];
        verify_bytes(aligned).unwrap();
        for given in [None, Some(&wrong)] {
            let read = AnyFilter::read_from_with(&file[..], given).unwrap_err();
            let borrowed = AnyFilter::<Borrowed<'_>>::from_bytes_with(aligned, given).unwrap_err();
            for error in [read, borrowed] {
                assert!(error.is_secret(), "{kind}: {error}");
                assert_eq!(error.is_secret_missing(), given.is_none(), "{kind}: {error}");
            }
        }
        assert!(AnyFilter::try_from(&file[..]).unwrap_err().is_secret_missing(), "{kind}");
        let mut decoder = StreamDecoder::file(u64::MAX);
        assert!(decoder.push(&file).unwrap_err().is_secret_missing(), "{kind}");
        let (again, _) = AnyFilter::read_from_with(&file[..], Some(&secret)).unwrap();
        let borrowed = AnyFilter::<Borrowed<'_>>::from_bytes_with(aligned, Some(&secret)).unwrap();
        assert!((0..KEYS).all(|key| again.contains(&key) && borrowed.contains(&key)), "{kind}");
        assert!(again == filter && again.to_bytes().unwrap() == file, "{kind}");
        let shown = format!("{again:?}{:?}", again.as_dyn().hash_spec());
        let digits: String = key[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!shown.contains(&digits) && !shown.contains("161, 166"), "{kind}: {shown}");
    }
    // A file that has its secret, or needs none, is opened with any.
    let file = BloomFilter::with_fpr(KEYS, RATE).unwrap().to_bytes().unwrap();
    assert!(BloomFilter::read_from_with(&file[..], Some(&wrong)).is_ok());
}

/// Also with a header checksum that is right.
#[test]
fn damaged_check_values_are_errors() {
    let secret = Secret::new([9; 16]);
    let hash = HashSpec::keyed_apart(&secret);
    let file = BloomFilter::builder().bits(512).probes(2).hash(hash).build().unwrap();
    let file = file.to_bytes().unwrap();
    for at in 36..64 {
        for bit in 0..8 {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << bit;
            assert!(verify_bytes(&damaged).is_err(), "{at} {bit}");
            let sum = xxhash_rust::xxh3::xxh3_64(&damaged[..248]);
            damaged[248..256].copy_from_slice(&sum.to_le_bytes());
            let read = BloomFilter::read_from_with(&damaged[..], Some(&secret));
            if (48..64).contains(&at) {
                let error = read.unwrap_err();
                assert!(error.is_secret() && at < 56 || error.is_invalid(), "{at} {bit}: {error}");
            } else if let Ok((filter, _)) = read {
                assert_ne!(filter.to_bytes().unwrap(), file, "{at} {bit}");
            }
        }
    }
}

#[test]
fn only_deletable_types_remove() {
    for filter in family() {
        let mut filter = filled(filter);
        let kind = filter.as_dyn().filter_type();
        let gone = hashes(&filter.as_dyn().hash_spec(), 0..KEYS / 2);
        let left = hashes(&filter.as_dyn().hash_spec(), KEYS / 2..KEYS);
        let Ok(dynamic) = filter.as_dyn_mut() else { continue };
        let mut results = BatchResults::new();
        let deletes = matches!(
            kind,
            FilterType::Counting
                | FilterType::CountingClassic
                | FilterType::Quotient
                | FilterType::VectorQuotient
        );
        match dynamic.remove_mixed_hashes(&gone, &mut results) {
            Ok(()) => {
                assert!(deletes, "{kind}");
                // A removed key is still found if another key has its fingerprint.
                assert!(results.count_ones() > KEYS / 2 - KEYS / 20, "{kind}");
                dynamic.contains_mixed_hashes(&gone, &mut results);
                assert!(results.count_ones() < KEYS / 20, "{kind}");
            }
            Err(error) => assert!(!deletes && error.is_unsupported(), "{kind}: {error}"),
        }
        dynamic.contains_mixed_hashes(&left, &mut results);
        assert_eq!(results.count_ones(), KEYS / 2, "{kind}: a key that was not removed is absent");
    }
}

#[test]
fn files_of_other_types_are_errors() {
    let family = family();
    for (at, ours) in family.iter().enumerate() {
        let mut file = Vec::new();
        ours.write_to(&mut file, "").unwrap();
        let (mut ours, _) = AnyFilter::read_from(&file[..]).unwrap();
        for (other, theirs) in family.iter().enumerate() {
            let kind = (ours.as_dyn().filter_type(), theirs.as_dyn().filter_type());
            match ours.union(theirs) {
                Ok(()) => assert_eq!(at, other, "{kind:?}"),
                Err(error) if at == other => assert!(error.is_unsupported(), "{kind:?}: {error}"),
                Err(error) => assert!(error.is_incompatible(), "{kind:?}: {error}"),
            }
        }
    }
    // No type reads the files of another.
    let mut file = Vec::new();
    family[0].write_to(&mut file, "").unwrap();
    assert!(StaticFilter::read_from(&file[..]).unwrap_err().is_invalid());
    assert!(QuotientFilter::read_from(&file[..]).unwrap_err().is_invalid());
}
