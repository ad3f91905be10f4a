//! Wide filters: comparison with a naive model, measured rates, corrupted files, large sizes.

use std::fs::File;

use model::{Pair, aligned};
use petal::{
    BatchResults, BlockedLayout, BloomFilter, Borrowed, ByteSize, ClassicBloomFilter,
    CountingBloomFilter, FilterCascade, FilterType, HashSpec, Mapped, Membership, MembershipMut,
    Persist as _, QuotientFilter, ScalableBloomFilter, StaticFilter, VectorQuotientFilter,
    WideBloomFilter,
};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::keys::Keys;
use petal_testkit::rng::Rng;
use petal_testkit::scratch::Scratch;

use crate::models::wide as model;
use crate::naive::{self, HeaderFields, update_checksums};

#[test]
fn random_operations_equal_the_model() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let length = rng.below(300);
        model::drive(&rng.bytes(length));
    }
    model::drive(&[]);
}

// ---- Rates --------------------------------------------------------------------------------------

/// Hashed keys with both hashes, at half the capacity, at the capacity, and above it. Each of the 18
/// comparisons has a confidence of 1 - 0.001/18.
///
/// Given the bits, the bound is binomial around the estimated rate. The estimate is compared with
/// the prediction, from which filters with few blocks differ by 2 % at 1e-2 and 4 % at 1e-8.
#[test]
fn measured_rates_equal_predictions() {
    const QUERIES: u64 = 1_000_000;
    let mut results = BatchResults::new();
    for (spec, salt) in [(HashSpec::wide(3), 1), (HashSpec::wide_keyed([9; 16]), 2)] {
        for (rate, planned) in [(0.1, 60_000), (0.01, 60_000), (1e-4, 60_000)] {
            let builder = WideBloomFilter::builder().capacity(planned).fpr(rate).hash(spec);
            let mut filter = builder.build().unwrap();
            let keys = Keys::new(salt);
            let mut inserted = 0;
            for fill in [planned / 2, planned, planned * 3 / 2] {
                let members: Vec<_> = (inserted..fill).map(|at| keys.member(at)).collect();
                filter.insert_batch(&members, &mut results);
                inserted = fill;
                filter.contains_batch(&members, &mut results);
                assert_eq!(results.count_ones(), members.len() as u64, "lost a key");
                let mut wrong = 0;
                for first in (0..QUERIES).step_by(10_000) {
                    let non_members: Vec<_> =
                        (first..first + 10_000).map(|at| keys.non_member(at)).collect();
                    filter.contains_batch(&non_members, &mut results);
                    wrong += results.count_ones();
                }
                let reported = filter.estimated_fpr();
                let (low, high) = binomial_range(QUERIES, reported, 1.0 - 0.001 / 18.0);
                let about = format!("{spec:?} {rate} {fill}");
                assert!((low..=high).contains(&wrong), "{about}: {wrong} not in {low}..{high}");
                let expected = filter.expected_fpr(fill);
                assert!((reported / expected - 1.0).abs() < 0.1, "{about}: {reported} {expected}");
                assert!((filter.estimated_len() / fill as f64 - 1.0).abs() < 0.01, "{about}");
                assert!(fill == planned || filter.is_overfull() == (fill > planned), "{about}");
                let left = filter.capacity_left().unwrap() as f64;
                let expect = planned.saturating_sub(fill) as f64;
                assert!((left - expect).abs() < 0.02 * planned as f64, "{about}: {left}");
                assert!(filter.inserted() <= fill && filter.expected_fpr(planned) <= rate);
            }
        }
    }
}

/// 128-bit hashes allow rates that 64-bit hashes do not, and have a limit too.
#[test]
fn target_rates_below_the_64_bit_floor() {
    let error = BloomFilter::with_fpr(10_000_000, 1e-13).unwrap_err();
    assert!(error.is_unattainable() && error.to_string().contains("use 128-bit hashes"), "{error}");
    let filter = WideBloomFilter::with_fpr(10_000, 1e-20).unwrap();
    assert!(filter.expected_fpr(10_000) <= 1e-20 && filter.target_fpr() == 1e-20);
    // Near the floor the rate includes it; below it there is no filter.
    let keys = 10_000_000_000u64;
    let floor = petal::math::wide_floor(keys);
    assert!((floor / 2.94e-19 - 1.0).abs() < 0.01, "{floor}");
    let error = WideBloomFilter::with_fpr(keys, 3.9 * floor).unwrap_err();
    assert!(error.is_unattainable() && error.to_string().contains("128-bit"), "{error}");
    assert!(!error.to_string().contains("wide"), "{error}");
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(WideBloomFilter::with_fpr(10, rate).unwrap_err().is_invalid());
    }
    let one = WideBloomFilter::with_fpr(1, 1e-3).unwrap();
    assert!(one.expected_fpr(1) <= 1e-3 && WideBloomFilter::with_fpr(0, 0.5).is_ok());
    assert!(WideBloomFilter::builder().build().is_err());
    assert!(
        WideBloomFilter::builder()
            .capacity(100)
            .fpr(1e-9)
            .memory(ByteSize::bytes(128))
            .build()
            .is_err()
    );
    let fits = WideBloomFilter::with_memory(100, ByteSize::bytes(1000)).unwrap();
    assert!(fits.size_bytes() <= 1000 && fits.target_fpr() == fits.expected_fpr(100));
    assert!(WideBloomFilter::with_memory(1, ByteSize::bytes(127)).unwrap_err().is_invalid());
}

// ---- Hashes -------------------------------------------------------------------------------------

#[test]
fn wrong_hash_width_is_an_error() {
    let narrow = [HashSpec::rapid(1), HashSpec::keyed([1; 16])];
    let wide = [HashSpec::wide(1), HashSpec::wide_keyed([1; 16])];
    for (narrow, wide) in narrow.into_iter().zip(wide) {
        let error = BloomFilter::builder().bits(512).probes(8).hash(wide).build().unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("WideBloomFilter"), "{error}");
        let classic = ClassicBloomFilter::builder().capacity(10).fpr(0.1).hash(wide).build();
        assert!(classic.unwrap_err().is_invalid());
        let error =
            WideBloomFilter::builder().capacity(9).fpr(0.1).hash(narrow).build().unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("128"), "{error}");
        let atomic = petal::AtomicBloomFilter::builder().capacity(9).fpr(0.1).hash(wide);
        assert!(atomic.build_atomic().is_err());
        let counting = CountingBloomFilter::builder().capacity(9).fpr(0.1).hash(wide).build();
        assert!(counting.unwrap_err().is_invalid());
        let quotient = QuotientFilter::builder().capacity(9).fpr(0.1).hash(wide).build();
        assert!(quotient.unwrap_err().is_invalid());
        let vector = VectorQuotientFilter::builder().capacity(9).fpr(0.1).hash(wide).build();
        assert!(vector.unwrap_err().is_invalid());
        let scalable = ScalableBloomFilter::builder().capacity(9).fpr(0.1).hash(wide).build();
        assert!(scalable.unwrap_err().is_invalid());
        let ribbon = StaticFilter::builder().fpr(0.1).hash(wide).build(&["one"]);
        assert!(ribbon.unwrap_err().is_invalid());
        let cascade = FilterCascade::builder(0.1).hash(wide).build(&["one"], &["two"]);
        assert!(cascade.unwrap_err().is_invalid());

        // Also from files with valid checksums.
        let fields = |spec: HashSpec| HeaderFields {
            hash: spec.id(),
            seed: spec.seed(),
            ..HeaderFields::none()
        };
        let pair = Pair::new(2, 8, 8);
        assert!(BloomFilter::read_from(&pair.low.to_file(&fields(narrow))[..]).is_ok());
        assert!(WideBloomFilter::read_from(&pair.to_file(&fields(wide))[..]).is_ok());
        for file in [pair.low.to_file(&fields(wide)), pair.to_file(&fields(narrow))] {
            assert!(BloomFilter::read_from(&file[..]).unwrap_err().is_invalid());
            assert!(WideBloomFilter::read_from(&file[..]).unwrap_err().is_invalid());
            aligned(&file, |file| {
                assert!(BloomFilter::<Borrowed<'_>>::from_bytes(file).is_err());
                assert!(WideBloomFilter::<Borrowed<'_>>::from_bytes(file).is_err());
            });
        }
    }
}

/// A query needs both words of a key.
#[test]
fn both_words_of_a_hash_are_compared() {
    let mut filter = WideBloomFilter::with_fpr(1000, 1e-12).unwrap();
    assert!(filter.insert_mixed_hash([1 << 40, 2 << 40]));
    assert!(filter.insert_mixed_hash([3 << 40, 4 << 40]));
    assert!(
        !filter.contains_mixed_hash([1 << 40, 5 << 40])
            && !filter.contains_mixed_hash([5 << 40, 2 << 40])
    );
    // Two words of different keys: the reason for the floor (n/2⁶⁴)².
    assert!(filter.contains_mixed_hash([1 << 40, 4 << 40]));
    assert!(!filter.insert_mixed_hash([3 << 40, 2 << 40]) && filter.inserted() == 2);
}

#[test]
fn operations_on_different_filters_are_errors_without_effect() {
    let builder = || WideBloomFilter::builder().capacity(1000).fpr(1e-6);
    let mut filter = builder().build().unwrap();
    filter.insert("one");
    let before = filter.try_clone().unwrap();
    for other in
        [builder().seed(1), builder().capacity(2000), builder().hash(HashSpec::wide_keyed([1; 16]))]
    {
        let mut other = other.build().unwrap();
        other.insert("two");
        assert!(filter.union(&other).unwrap_err().is_incompatible());
        assert!(filter.intersect(&other).unwrap_err().is_incompatible());
        assert!(filter == before && filter.inserted() == 1 && filter != other);
    }
    let shown = format!("{:?}", builder().hash(HashSpec::wide_keyed([0xab; 16])).build().unwrap());
    assert!(!shown.contains("abab") && !shown.contains("171"), "{shown}");
}

// ---- Trait methods -----------------------------------------------------------------------------------

#[test]
fn trait_methods_equal_inherent_methods() {
    let mut filter = WideBloomFilter::with_fpr(5000, 1e-6).unwrap();
    let spec = Membership::hash_spec(&filter);
    assert_eq!((spec.words(), filter.filter_type()), (2, FilterType::Wide));
    let mut hashes = Vec::new();
    spec.hash_all((0..5000u64).map(u64::to_le_bytes), &mut hashes);
    let mut results = BatchResults::new();
    let as_dyn: &mut dyn MembershipMut = &mut filter;
    as_dyn.insert_mixed_hashes(&hashes, &mut results).unwrap();
    assert_eq!((results.len(), results.count_ones()), (5000, as_dyn.inserted()));
    as_dyn.contains_mixed_hashes(&hashes, &mut results);
    assert_eq!(results.count_ones(), 5000);
    assert!(as_dyn.remove_mixed_hashes(&hashes, &mut results).unwrap_err().is_unsupported());
    assert_eq!(as_dyn.block_fills(10).iter().sum::<u64>(), 2 * filter.layout().blocks());
    let as_dyn: &dyn Membership = &filter;
    assert!(
        as_dyn.parameters().contains(&("bits", as_dyn.size_bytes() * 8)),
        "{:?}",
        as_dyn.parameters()
    );
    assert!(as_dyn.describe().contains("two filters") && !as_dyn.is_overfull());
    assert_eq!((as_dyn.capacity(), as_dyn.target_fpr()), (5000, 1e-6));
    assert!((0.0..1.0).contains(&as_dyn.fill_ratio()));
    let around = as_dyn.memory_usage() - as_dyn.size_bytes();
    assert_eq!(around, size_of::<WideBloomFilter>() as u64);
    // From 256 KiB on memory is a map.
    let large = WideBloomFilter::with_memory(1000, ByteSize::bytes(1_000_000)).unwrap();
    assert!((0..2 * 4096 + 512).contains(&(large.memory_usage() - large.size_bytes())));
    let mut file = Vec::new();
    as_dyn.write_to(&mut file, "{}").unwrap();
    let (again, metadata) = WideBloomFilter::read_from(&file[..]).unwrap();
    assert!(again == filter && metadata == "{}" && again.target_fpr() == 1e-6);
}

// ---- Corrupted files -------------------------------------------------------------------------

fn files() -> Vec<Vec<u8>> {
    let file = |lanes, probes, spec: HashSpec, metadata: &str| {
        let mut pair = Pair::new(2, lanes, probes);
        let mut fields = HeaderFields {
            hash: spec.id(),
            seed: spec.seed(),
            planned: 20,
            target: 1e-6,
            metadata: metadata.to_owned(),
            ..HeaderFields::none()
        };
        for key in 0..20u64 {
            let hash = naive::hash::hash_wide(&fields, &key.to_le_bytes());
            fields.inserted += u64::from(pair.insert(hash));
        }
        pair.to_file(&fields)
    };
    vec![
        file(8, 5, HashSpec::wide(0), ""),
        file(16, 16, HashSpec::wide_keyed([7; 16]), "{\"what\":\"G\u{e4}ste\"}"),
    ]
}

/// Opens the bytes and queries the filter. Returns whether opening succeeded.
fn open_and_query(bytes: &[u8]) -> bool {
    aligned(bytes, |file| {
        let Ok(filter) = WideBloomFilter::<Borrowed<'_>>::from_bytes(file) else { return false };
        let mut results = BatchResults::new();
        filter.contains_mixed_hashes(&[0, 1, u64::MAX, u64::MAX, 5], &mut results);
        assert_eq!(results.len(), 2);
        let rate = filter.estimated_fpr();
        assert!((0.0..=1.0).contains(&rate) && (0.0..=1.0).contains(&filter.fill_ratio()));
        let _ = (filter.estimated_len(), filter.capacity_left(), filter.expected_fpr(1 << 40));
        let _ = (filter.is_overfull(), filter.block_fills(7), filter.try_clone().unwrap());
        true
    })
}

#[test]
fn corrupted_files_are_errors() {
    for file in files() {
        assert!(WideBloomFilter::read_from(&file[..]).is_ok() && open_and_query(&file));
        for short in truncations(&file) {
            assert!(
                WideBloomFilter::read_from(short).is_err() && !open_and_query(short),
                "{}",
                short.len()
            );
        }
        for longer in extensions(&file) {
            assert!(WideBloomFilter::read_from(&longer[..]).is_err() && !open_and_query(&longer));
        }
        for (bit, damaged) in bit_flips(&file) {
            assert!(WideBloomFilter::read_from(&damaged[..]).is_err(), "bit {bit}");
            let opened = open_and_query(&damaged);
            assert!(!opened || bit / 8 >= 256, "bit {bit} of the header");
        }
    }
}

/// With valid checksums, bytes are an error or a filter that writes the same bytes.
#[test]
fn modified_files_with_valid_checksums_are_errors_or_valid() {
    for file in files() {
        let mut taken = 0;
        for (bit, mut damaged) in bit_flips(&file) {
            if bit / 8 >= 240 && bit / 8 < 256 {
                continue;
            }
            update_checksums(&mut damaged);
            open_and_query(&damaged);
            if let Ok((filter, metadata)) = WideBloomFilter::read_from(&damaged[..]) {
                let mut again = Vec::new();
                filter.write_to(&mut again, &metadata).unwrap();
                // Absurd numbers of keys are reduced.
                assert!(again == damaged || bit == 95 * 8 + 7, "bit {bit}");
                taken += 1;
            }
        }
        assert!(taken > 500, "{taken}");
        let refused = |at: usize, value: &[u8]| {
            let mut bytes = file.clone();
            bytes[at..at + value.len()].copy_from_slice(value);
            update_checksums(&mut bytes);
            assert!(WideBloomFilter::read_from(&bytes[..]).is_err(), "{value:?} at {at}");
            assert!(!open_and_query(&bytes), "{value:?} at {at}");
        };
        refused(10, &[1, 0]); // a layout for hashes of one word
        refused(36, &[1, 0]);
        refused(36, &[5, 0]);
        refused(38, &[0, 0]);
        refused(38, &[17, 0]);
        refused(40, &[0, 0]);
        for extent in [0, 1, 3, 1 << 50, 1 << 51, 1 << 63, u64::MAX] {
            refused(64, &u64::to_le_bytes(extent));
        }
        refused(96, &[1]);
        refused(239, &[1]);
    }
}

#[test]
#[expect(unsafe_code, reason = "mapping is the caller's promise")]
fn mapped_files_are_queried_and_verified() {
    let scratch = Scratch::new();
    let file = files().swap_remove(1);
    let open = |bytes: &[u8]| {
        let file = File::open(scratch.write("f.petal", bytes)).unwrap();
        // SAFETY: no other process uses this file, and it is rewritten only after the map is dropped.
        let map = unsafe { Mapped::open(&file) }.unwrap();
        WideBloomFilter::open_mapped(map)
    };
    let filter = open(&file).unwrap();
    filter.verify().unwrap();
    assert!(filter.metadata().contains("what") && (0..20u64).all(|key| filter.contains(&key)));
    assert!(filter == WideBloomFilter::read_from(&file[..]).unwrap().0);
    assert_eq!(filter.memory_usage(), size_of::<WideBloomFilter<Mapped>>() as u64);
    drop(filter);
    let mut damaged = file.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(open(&damaged).unwrap().verify().unwrap_err().is_corrupt());
    assert!(open(&file[..file.len() - 64]).is_err());
}

/// Compares the checksums of a small file with recorded values and with the file of the model.
#[test]
fn golden_file_checksums_are_unchanged() {
    let mut filter = WideBloomFilter::builder().capacity(40).fpr(1e-6).seed(5).build().unwrap();
    (0..40).for_each(|number| _ = filter.insert(&format!("key-{number}")));
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    assert_eq!((filter.layout(), file.len()), (BlockedLayout::new(2, 8, 8).unwrap(), 4096 + 256));
    let mut pair = Pair::new(2, 8, 8);
    let fields = HeaderFields {
        hash: 3,
        seed: HashSpec::wide(5).seed(),
        planned: 40,
        target: 1e-6,
        inserted: filter.inserted(),
        ..HeaderFields::none()
    };
    (0..40).for_each(|number| {
        pair.insert(naive::hash::hash_wide(&fields, format!("key-{number}").as_bytes()));
    });
    assert!(file == pair.to_file(&fields));
    let [data, header] = [240, 248].map(|at| {
        file[at..at + 8].iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>()
    });
    assert_eq!((&data[..], &header[..]), ("c52f10c45fbd0418", "7d068d73db64baf6"));
}

// ---- Sizes --------------------------------------------------------------------------------------

/// Around 2³² bits and 2³² bytes in each half, in sparse memory.
#[test]
fn sizes_around_32_bits() {
    for blocks in [1 << 23, (1 << 23) + 1, 1 << 26, (1 << 26) + 1] {
        let bytes = blocks * 64 * 2;
        let mut filter = WideBloomFilter::with_memory(1 << 30, ByteSize::bytes(bytes)).unwrap();
        let shape = filter.layout();
        // Whole pairs of cache lines, if these are better.
        assert!((blocks * 64 - 64..=blocks * 64).contains(&shape.size_bytes()));
        let ends = [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        let mut words = Vec::new();
        for low in ends {
            for high in ends {
                assert!(!filter.contains_mixed_hash([low, high]) || !words.is_empty());
                words.extend([low, high]);
            }
        }
        assert!(
            filter.insert_mixed_hash([0, u64::MAX]) && !filter.contains_mixed_hash([u64::MAX, 0])
        );
        assert!(filter.insert_mixed_hash([u64::MAX, 0]) && filter.contains_mixed_hash([0, 0]));
        let mut results = BatchResults::new();
        filter.insert_mixed_hashes(&words, &mut results);
        filter.contains_mixed_hashes(&words, &mut results);
        assert_eq!(results.count_ones(), 25);
        assert!(!filter.contains_mixed_hash([1 << 62, 0]));
    }
}
