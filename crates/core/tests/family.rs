//! What is true of every type of filter: of one that is full to its plan, through the face that
//! all of them have, and through files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use petal::{
    Answers, AnyFilter, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, FilterCascade, FilterType, HashSpec, Lent, QuotientFilter,
    ScalableBloomFilter, StaticFilter, WideBloomFilter, WindowedBloomFilter, verify_bytes,
};
use petal_testkit::bounds::binomial_range;
use petal_testkit::rng::Rng;

const KEYS: u64 = 5000;
const RATE: f64 = 0.01;

/// One of each type, those that can be added to still empty.
fn family() -> Vec<AnyFilter> {
    let keys: Vec<u64> = (0..KEYS).collect();
    let others: Vec<u64> = (KEYS..3 * KEYS).collect();
    let family: Vec<AnyFilter> = vec![
        BloomFilter::with_rate(KEYS, RATE).unwrap().into(),
        ClassicBloomFilter::with_rate(KEYS, RATE).unwrap().into(),
        CountingBloomFilter::with_rate(KEYS, RATE).unwrap().into(),
        ClassicCountingBloomFilter::with_rate(KEYS, RATE).unwrap().into(),
        QuotientFilter::with_rate(KEYS, RATE).unwrap().into(),
        ScalableBloomFilter::with_rate(KEYS / 10, RATE).unwrap().into(),
        WindowedBloomFilter::with_rate(KEYS, RATE).unwrap().into(),
        StaticFilter::build(&keys, RATE).unwrap().into(),
        FilterCascade::build(&keys, &others, RATE).unwrap().into(),
        WideBloomFilter::with_rate(KEYS, RATE).unwrap().into(),
    ];
    let types: Vec<_> = family.iter().map(|filter| filter.face().filter_type()).collect();
    assert_eq!(types, FilterType::ALL, "a type is missing here");
    family
}

fn hashes(spec: &HashSpec, keys: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut hashes = Vec::new();
    spec.hash_all(keys.map(u64::to_le_bytes), &mut hashes);
    hashes
}

/// The filter with all its keys in it.
fn filled(mut filter: AnyFilter) -> AnyFilter {
    let kind = filter.face().filter_type();
    let members = hashes(&filter.face().hash_spec(), 0..KEYS);
    let mut new = Answers::new();
    match filter.face_mut() {
        Ok(face) => {
            face.insert_mixed_hashes(&members, &mut new).unwrap();
            assert!(new.count_ones() >= KEYS * 9 / 10, "{kind}: {}", new.count_ones());
        }
        Err(error) => {
            assert!(error.is_unsupported(), "{kind}: {error}");
            assert!(matches!(kind, FilterType::Static | FilterType::Cascade), "{kind}");
        }
    }
    filter
}

#[test]
fn members_are_found_and_the_rate_is_kept_and_known() {
    for filter in family().into_iter().map(filled) {
        let face = filter.face();
        let kind = face.filter_type();
        let mut found = Answers::new();
        face.contains_mixed_hashes(&hashes(&face.hash_spec(), 0..KEYS), &mut found);
        assert_eq!((found.len() as u64, found.count_ones()), (KEYS, KEYS), "{kind}");
        let tries = 200_000;
        face.contains_mixed_hashes(
            &hashes(&face.hash_spec(), 1 << 40..(1 << 40) + tries),
            &mut found,
        );
        let rate = face.estimated_rate();
        let (low, high) = binomial_range(tries, rate, 0.999);
        let yes = found.count_ones();
        assert!((low..=high).contains(&yes), "{kind}: {yes} not in {low}..={high}");
        // The fill of one filter strays a little from the mean.
        assert!(rate <= RATE * 1.05 && !face.is_overfull(), "{kind}: {rate}");
        assert_eq!(face.target_rate(), RATE, "{kind}");
        let held = face.estimated_len();
        assert!((held - KEYS as f64).abs() < KEYS as f64 * 0.05, "{kind}: {held}");
        assert!(face.inserted().abs_diff(KEYS) < KEYS / 20, "{kind}: {}", face.inserted());
        assert!(face.fill_ratio() > 0.0 && face.fill_ratio() <= 1.0, "{kind}");
        assert!(!face.describe().is_empty() && !face.geometry().is_empty(), "{kind}");
        let beside = face.memory_usage() - face.size_bytes();
        assert!(beside < 8192, "{kind}: {beside} bytes beside the data");
        let fills = face.block_fills(10);
        assert!(fills.is_empty() || fills.len() == 10 && fills.iter().sum::<u64>() > 0, "{kind}");
    }
}

/// Of a few keys that repeat, within a batch and across batches.
#[test]
fn batches_equal_keys_one_at_a_time() {
    for (which, distinct) in (0..family().len()).zip([60, 700, 4000].into_iter().cycle()) {
        let (mut single, mut batched) = (family().swap_remove(which), family().swap_remove(which));
        let (spec, kind) = (single.face().hash_spec(), single.face().filter_type());
        let (Ok(single), Ok(batched)) = (single.face_mut(), batched.face_mut()) else { continue };
        let mut rng = Rng::new(which as u64);
        let (mut answers, mut one) = (Answers::new(), Answers::new());
        // A quotient filter holds every copy: no more of them than it has slots.
        let mut left = KEYS as usize;
        while left > 0 {
            let batch = (1 + rng.below(900)).min(left);
            left -= batch;
            let keys = (0..batch).map(|_| rng.next_u64() % distinct);
            let hashes = hashes(&spec, keys);
            batched.insert_mixed_hashes(&hashes, &mut answers).unwrap();
            for (at, hash) in hashes.chunks(spec.words()).enumerate() {
                single.insert_mixed_hashes(hash, &mut one).unwrap();
                assert_eq!(answers.get(at), one.get(0), "{kind}: key {at}");
            }
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        single.write_to(&mut ours, "").unwrap();
        batched.write_to(&mut theirs, "").unwrap();
        assert!(ours == theirs, "{kind}");
    }
}

#[test]
fn a_file_holds_all_of_it() {
    for filter in family().into_iter().map(filled) {
        let face = filter.face();
        let kind = face.filter_type();
        let mut file = Vec::new();
        filter.write_to(&mut file, "{\"a\":1}").unwrap();
        assert_eq!(file.len() as u64, 4096 + face.size_bytes(), "{kind}");
        assert_eq!(file[10], kind.number() as u8);
        verify_bytes(&file).unwrap();
        let (again, metadata) = AnyFilter::read_from(&file[..]).unwrap();
        let mut room = vec![0; file.len() + 64];
        let start = room.as_ptr().align_offset(64);
        room[start..start + file.len()].copy_from_slice(&file);
        let lent = AnyFilter::<Lent<'_>>::from_bytes(&room[start..start + file.len()]).unwrap();
        assert_eq!(metadata, "{\"a\":1}");
        let asked = hashes(&face.hash_spec(), 0..4 * KEYS);
        let (mut expect, mut found) = (Answers::new(), Answers::new());
        face.contains_mixed_hashes(&asked, &mut expect);
        for other in [again.face(), lent.face()] {
            other.contains_mixed_hashes(&asked, &mut found);
            assert!(found == expect, "{kind}");
            assert_eq!(other.describe(), face.describe());
            assert_eq!(other.inserted(), face.inserted());
            assert_eq!(other.estimated_rate(), face.estimated_rate());
            let mut same = Vec::new();
            other.write_to(&mut same, "{\"a\":1}").unwrap();
            assert!(same == file, "{kind}: not the same file again");
        }
        assert!(lent.face().memory_usage() < 8192, "{kind}: lent bytes were copied");
    }
}

#[test]
fn only_some_delete() {
    for filter in family() {
        let mut filter = filled(filter);
        let kind = filter.face().filter_type();
        let gone = hashes(&filter.face().hash_spec(), 0..KEYS / 2);
        let left = hashes(&filter.face().hash_spec(), KEYS / 2..KEYS);
        let Ok(face) = filter.face_mut() else { continue };
        let mut answers = Answers::new();
        let deletes = matches!(
            kind,
            FilterType::Counting | FilterType::CountingClassic | FilterType::Quotient
        );
        match face.remove_mixed_hashes(&gone, &mut answers) {
            Ok(()) => {
                assert!(deletes, "{kind}");
                // A key whose fingerprint another has too is found in its place.
                assert!(answers.count_ones() > KEYS / 2 - KEYS / 20, "{kind}");
                face.contains_mixed_hashes(&gone, &mut answers);
                assert!(answers.count_ones() < KEYS / 20, "{kind}");
            }
            Err(error) => assert!(!deletes && error.is_unsupported(), "{kind}: {error}"),
        }
        face.contains_mixed_hashes(&left, &mut answers);
        assert_eq!(answers.count_ones(), KEYS / 2, "{kind}: a key was lost that was not removed");
    }
}

#[test]
fn types_do_not_mix() {
    let family = family();
    for (at, ours) in family.iter().enumerate() {
        let mut file = Vec::new();
        ours.write_to(&mut file, "").unwrap();
        let (mut ours, _) = AnyFilter::read_from(&file[..]).unwrap();
        for (other, theirs) in family.iter().enumerate() {
            let kind = (ours.face().filter_type(), theirs.face().filter_type());
            match ours.union(theirs) {
                Ok(()) => assert_eq!(at, other, "{kind:?}"),
                Err(error) if at == other => assert!(error.is_unsupported(), "{kind:?}: {error}"),
                Err(error) => assert!(error.is_incompatible(), "{kind:?}: {error}"),
            }
        }
    }
    // What one type reads no other does.
    let mut file = Vec::new();
    family[0].write_to(&mut file, "").unwrap();
    assert!(StaticFilter::read_from(&file[..]).unwrap_err().is_invalid());
    assert!(QuotientFilter::read_from(&file[..]).unwrap_err().is_invalid());
}
