//! Wide filters: against a naive model, at measured rates, through hostile bytes, and at any size.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[path = "models/wide.rs"]
mod model;
mod naive;

use std::fs::File;

use model::{Pair, aligned};
use naive::{Facts, mend};
use petal::{
    Answers, BloomFilter, ClassicBloomFilter, CountingBloomFilter, FilterCascade, FilterType,
    HashSpec, Lent, Mapped, Membership, MembershipMut, QuotientFilter, ScalableBloomFilter, Shape,
    StaticFilter, WideBloomFilter,
};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::keys::Keys;
use petal_testkit::rng::Rng;
use petal_testkit::scratch::Scratch;

#[test]
fn random_operations_agree_with_the_model() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let length = rng.below(300);
        model::drive(&rng.bytes(length));
    }
    model::drive(&[]);
}

// ---- Rates --------------------------------------------------------------------------------------

/// Real keys through both hashes, at half the plan, at the plan, and over it. Each of the 18
/// comparisons holds with 1 - 0.001/18.
///
/// The bound is binomial given the bits: it is compared with what the filter says of itself, and
/// that with the prediction, from which filters of so few blocks stray by 2 % at 1e-2 and 4 % at 1e-8.
#[test]
fn rates_are_as_predicted() {
    const QUERIES: u64 = 1_000_000;
    let mut answers = Answers::new();
    for (spec, salt) in [(HashSpec::wide(3), 1), (HashSpec::wide_keyed([9; 16]), 2)] {
        for (rate, planned) in [(0.1, 60_000), (0.01, 60_000), (1e-4, 60_000)] {
            let builder = WideBloomFilter::builder().keys(planned).rate(rate).hash(spec);
            let mut filter = builder.build().unwrap();
            let keys = Keys::new(salt);
            let mut held = 0;
            for fill in [planned / 2, planned, planned * 3 / 2] {
                let members: Vec<_> = (held..fill).map(|at| keys.member(at)).collect();
                filter.insert_batch(&members, &mut answers);
                held = fill;
                filter.contains_batch(&members, &mut answers);
                assert_eq!(answers.count_ones(), members.len() as u64, "lost a key");
                let mut wrong = 0;
                for first in (0..QUERIES).step_by(10_000) {
                    let strangers: Vec<_> =
                        (first..first + 10_000).map(|at| keys.stranger(at)).collect();
                    filter.contains_batch(&strangers, &mut answers);
                    wrong += answers.count_ones();
                }
                let said = filter.estimated_rate();
                let (low, high) = binomial_range(QUERIES, said, 1.0 - 0.001 / 18.0);
                let about = format!("{spec:?} {rate} {fill}");
                assert!((low..=high).contains(&wrong), "{about}: {wrong} not in {low}..{high}");
                let expected = filter.expected_rate(fill);
                assert!((said / expected - 1.0).abs() < 0.1, "{about}: {said} {expected}");
                assert!((filter.estimated_len() / fill as f64 - 1.0).abs() < 0.01, "{about}");
                assert!(fill == planned || filter.is_overfull() == (fill > planned), "{about}");
                let left = filter.capacity_left().unwrap() as f64;
                let expect = planned.saturating_sub(fill) as f64;
                assert!((left - expect).abs() < 0.02 * planned as f64, "{about}: {left}");
                assert!(filter.inserted() <= fill && filter.expected_rate(planned) <= rate);
            }
        }
    }
}

/// What 64 bits cannot promise, 128 can; and they have a limit too.
#[test]
fn promises_beyond_64_bits() {
    let error = BloomFilter::with_rate(10_000_000, 1e-13).unwrap_err();
    assert!(error.is_unattainable() && error.to_string().contains("--type wide"), "{error}");
    let filter = WideBloomFilter::with_rate(10_000, 1e-20).unwrap();
    assert!(filter.expected_rate(10_000) <= 1e-20 && filter.target_rate() == 1e-20);
    // As the floor comes near it is part of the rate; beyond it there is nothing.
    let keys = 10_000_000_000u64;
    let floor = petal::rate::wide_floor(keys);
    assert!((floor / 2.94e-19 - 1.0).abs() < 0.01, "{floor}");
    let error = WideBloomFilter::with_rate(keys, 3.9 * floor).unwrap_err();
    assert!(error.is_unattainable() && error.to_string().contains("128-bit"), "{error}");
    assert!(!error.to_string().contains("wide"), "{error}");
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(WideBloomFilter::with_rate(10, rate).unwrap_err().is_invalid());
    }
    let one = WideBloomFilter::with_rate(1, 1e-3).unwrap();
    assert!(one.expected_rate(1) <= 1e-3 && WideBloomFilter::with_rate(0, 0.5).is_ok());
    assert!(WideBloomFilter::builder().build().is_err());
    assert!(WideBloomFilter::builder().keys(100).rate(1e-9).memory(128).build().is_err());
    let fits = WideBloomFilter::with_memory(1000, 100).unwrap();
    assert!(fits.size_bytes() <= 1000 && fits.target_rate() == fits.expected_rate(100));
    assert!(WideBloomFilter::with_memory(127, 1).unwrap_err().is_invalid());
}

// ---- Hashes -------------------------------------------------------------------------------------

#[test]
fn each_filter_takes_hashes_of_its_width() {
    let narrow = [HashSpec::rapid(1), HashSpec::keyed([1; 16])];
    let wide = [HashSpec::wide(1), HashSpec::wide_keyed([1; 16])];
    for (narrow, wide) in narrow.into_iter().zip(wide) {
        let error = BloomFilter::builder().bits(512).probes(8).hash(wide).build().unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("wide"), "{error}");
        let classic = ClassicBloomFilter::builder().keys(10).rate(0.1).hash(wide).build();
        assert!(classic.unwrap_err().is_invalid());
        let error = WideBloomFilter::builder().keys(9).rate(0.1).hash(narrow).build().unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("128"), "{error}");
        let atomic = petal::AtomicBloomFilter::builder().keys(9).rate(0.1).hash(wide);
        assert!(atomic.build_atomic().is_err());
        let counting = CountingBloomFilter::builder().keys(9).rate(0.1).hash(wide).build();
        assert!(counting.unwrap_err().is_invalid());
        let quotient = QuotientFilter::builder().keys(9).rate(0.1).hash(wide).build();
        assert!(quotient.unwrap_err().is_invalid());
        let scalable = ScalableBloomFilter::builder().keys(9).rate(0.1).hash(wide).build();
        assert!(scalable.unwrap_err().is_invalid());
        let ribbon = StaticFilter::builder().rate(0.1).hash(wide).build(&["one"]);
        assert!(ribbon.unwrap_err().is_invalid());
        let cascade = FilterCascade::builder(0.1).hash(wide).build(&["one"], &["two"]);
        assert!(cascade.unwrap_err().is_invalid());

        // Nor from files, their sums being right.
        let facts = |spec: HashSpec| Facts { hash: spec.id(), seed: spec.seed(), ..Facts::none() };
        let pair = Pair::new(2, 8, 8);
        assert!(BloomFilter::read_from(&pair.low.to_file(&facts(narrow))[..]).is_ok());
        assert!(WideBloomFilter::read_from(&pair.to_file(&facts(wide))[..]).is_ok());
        for file in [pair.low.to_file(&facts(wide)), pair.to_file(&facts(narrow))] {
            assert!(BloomFilter::read_from(&file[..]).unwrap_err().is_invalid());
            assert!(WideBloomFilter::read_from(&file[..]).unwrap_err().is_invalid());
            aligned(&file, |file| {
                assert!(BloomFilter::<Lent<'_>>::from_bytes(file).is_err());
                assert!(WideBloomFilter::<Lent<'_>>::from_bytes(file).is_err());
            });
        }
    }
}

/// Words of one hash are as good as independent: no key of the model's is told apart by one alone.
#[test]
fn both_words_decide() {
    let mut filter = WideBloomFilter::with_rate(1000, 1e-12).unwrap();
    assert!(filter.insert_mixed_hash([1 << 40, 2 << 40]));
    assert!(filter.insert_mixed_hash([3 << 40, 4 << 40]));
    assert!(
        !filter.contains_mixed_hash([1 << 40, 5 << 40])
            && !filter.contains_mixed_hash([5 << 40, 2 << 40])
    );
    // Two words that came with different keys: the price of (n/2⁶⁴)², and so rare.
    assert!(filter.contains_mixed_hash([1 << 40, 4 << 40]));
    assert!(!filter.insert_mixed_hash([3 << 40, 2 << 40]) && filter.inserted() == 2);
}

#[test]
fn what_differs_is_refused_and_left_alone() {
    let builder = || WideBloomFilter::builder().keys(1000).rate(1e-6);
    let mut filter = builder().build().unwrap();
    filter.insert("one");
    let before = filter.to_owned_filter().unwrap();
    for other in
        [builder().seed(1), builder().keys(2000), builder().hash(HashSpec::wide_keyed([1; 16]))]
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

// ---- Its face -----------------------------------------------------------------------------------

#[test]
fn the_face_says_what_the_filter_says() {
    let mut filter = WideBloomFilter::with_rate(5000, 1e-6).unwrap();
    let spec = Membership::hash_spec(&filter);
    assert_eq!((spec.words(), filter.filter_type()), (2, FilterType::Wide));
    let mut hashes = Vec::new();
    spec.hash_all((0..5000u64).map(u64::to_le_bytes), &mut hashes);
    let mut answers = Answers::new();
    let face: &mut dyn MembershipMut = &mut filter;
    face.insert_mixed_hashes(&hashes, &mut answers).unwrap();
    assert_eq!((answers.len(), answers.count_ones()), (5000, face.inserted()));
    face.contains_mixed_hashes(&hashes, &mut answers);
    assert_eq!(answers.count_ones(), 5000);
    assert!(face.remove_mixed_hashes(&hashes, &mut answers).unwrap_err().is_unsupported());
    assert_eq!(face.block_fills(10).iter().sum::<u64>(), 2 * filter.shape().blocks());
    let face: &dyn Membership = &filter;
    assert!(face.geometry().contains(&("bits", face.size_bytes() * 8)), "{:?}", face.geometry());
    assert!(face.describe().contains("two filters") && !face.is_overfull());
    assert_eq!((face.planned_keys(), face.target_rate()), (5000, 1e-6));
    assert!((0.0..1.0).contains(&face.fill_ratio()));
    let around = face.memory_usage() - face.size_bytes();
    assert_eq!(around, size_of::<WideBloomFilter>() as u64);
    // 256 KiB and more are pages.
    let large = WideBloomFilter::with_memory(1_000_000, 1000).unwrap();
    assert!((0..2 * 4096 + 512).contains(&(large.memory_usage() - large.size_bytes())));
    let mut file = Vec::new();
    face.write_to(&mut file, "{}").unwrap();
    let (again, metadata) = WideBloomFilter::read_from(&file[..]).unwrap();
    assert!(again == filter && metadata == "{}" && again.target_rate() == 1e-6);
}

// ---- Bytes from outside -------------------------------------------------------------------------

fn files() -> Vec<Vec<u8>> {
    let file = |lanes, probes, spec: HashSpec, metadata: &str| {
        let mut pair = Pair::new(2, lanes, probes);
        let mut facts = Facts {
            hash: spec.id(),
            seed: spec.seed(),
            planned: 20,
            target: 1e-6,
            metadata: metadata.to_owned(),
            ..Facts::none()
        };
        for key in 0..20u64 {
            let hash = naive::hash::hash_wide(&facts, &key.to_le_bytes());
            facts.inserted += u64::from(pair.insert(hash));
        }
        pair.to_file(&facts)
    };
    vec![
        file(8, 5, HashSpec::wide(0), ""),
        file(16, 16, HashSpec::wide_keyed([7; 16]), "{\"what\":\"G\u{e4}ste\"}"),
    ]
}

/// What was opened answers, whatever its bits are.
fn ask(bytes: &[u8]) -> bool {
    aligned(bytes, |file| {
        let Ok(filter) = WideBloomFilter::<Lent<'_>>::from_bytes(file) else { return false };
        let mut answers = Answers::new();
        filter.contains_mixed_hashes(&[0, 1, u64::MAX, u64::MAX, 5], &mut answers);
        assert_eq!(answers.len(), 2);
        let rate = filter.estimated_rate();
        assert!((0.0..=1.0).contains(&rate) && (0.0..=1.0).contains(&filter.fill_ratio()));
        let _ = (filter.estimated_len(), filter.capacity_left(), filter.expected_rate(1 << 40));
        let _ = (filter.is_overfull(), filter.block_fills(7), filter.to_owned_filter().unwrap());
        true
    })
}

#[test]
fn damage_is_refused() {
    for file in files() {
        assert!(WideBloomFilter::read_from(&file[..]).is_ok() && ask(&file));
        for short in truncations(&file) {
            assert!(WideBloomFilter::read_from(short).is_err() && !ask(short), "{}", short.len());
        }
        for longer in extensions(&file) {
            assert!(WideBloomFilter::read_from(&longer[..]).is_err() && !ask(&longer));
        }
        for (bit, damaged) in bit_flips(&file) {
            assert!(WideBloomFilter::read_from(&damaged[..]).is_err(), "bit {bit}");
            let opened = ask(&damaged);
            assert!(!opened || bit / 8 >= 256, "bit {bit} of the header");
        }
    }
}

/// With sums that are right, bytes are refused or are a filter that writes them again.
#[test]
fn lies_with_right_sums_are_refused_or_true() {
    for file in files() {
        let mut taken = 0;
        for (bit, mut damaged) in bit_flips(&file) {
            if bit / 8 >= 240 && bit / 8 < 256 {
                continue;
            }
            mend(&mut damaged);
            ask(&damaged);
            if let Ok((filter, metadata)) = WideBloomFilter::read_from(&damaged[..]) {
                let mut again = Vec::new();
                filter.write_to(&mut again, &metadata).unwrap();
                // What claims more keys than anybody inserts is taken for less.
                assert!(again == damaged || bit == 95 * 8 + 7, "bit {bit}");
                taken += 1;
            }
        }
        assert!(taken > 500, "{taken}");
        let refused = |at: usize, lie: &[u8]| {
            let mut bytes = file.clone();
            bytes[at..at + lie.len()].copy_from_slice(lie);
            mend(&mut bytes);
            assert!(WideBloomFilter::read_from(&bytes[..]).is_err(), "{lie:?} at {at}");
            assert!(!ask(&bytes), "{lie:?} at {at}");
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
fn mapped_files_answer_and_are_verified() {
    let scratch = Scratch::new();
    let file = files().swap_remove(1);
    let open = |bytes: &[u8]| {
        let file = File::open(scratch.write("f.petal", bytes)).unwrap();
        // SAFETY: nobody else knows this file, and it is written anew only after the map is gone.
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

/// The checksums of the bytes of one small file: the format cannot drift unseen. They are those of
/// the file that the model writes, too.
#[test]
fn a_golden_file() {
    let mut filter = WideBloomFilter::builder().keys(40).rate(1e-6).seed(5).build().unwrap();
    (0..40).for_each(|number| _ = filter.insert(&format!("key-{number}")));
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    assert_eq!((filter.shape(), file.len()), (Shape::new(2, 8, 8).unwrap(), 4096 + 256));
    let mut pair = Pair::new(2, 8, 8);
    let facts = Facts {
        hash: 3,
        seed: HashSpec::wide(5).seed(),
        planned: 40,
        target: 1e-6,
        inserted: filter.inserted(),
        ..Facts::none()
    };
    (0..40).for_each(|number| {
        pair.insert(naive::hash::hash_wide(&facts, format!("key-{number}").as_bytes()));
    });
    assert!(file == pair.to_file(&facts));
    let [data, header] = [240, 248].map(|at| {
        file[at..at + 8].iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>()
    });
    assert_eq!((&data[..], &header[..]), ("c52f10c45fbd0418", "7d068d73db64baf6"));
}

// ---- Sizes --------------------------------------------------------------------------------------

/// Around 2³² bits and 2³² bytes in each half, with memory that is touched at a few places only.
#[test]
fn sizes_around_the_borders_of_32_bits() {
    for blocks in [1 << 23, (1 << 23) + 1, 1 << 26, (1 << 26) + 1] {
        let bytes = blocks * 64 * 2;
        let mut filter = WideBloomFilter::with_memory(bytes, 1 << 30).unwrap();
        let shape = filter.shape();
        // Whole pairs of lines, where those are better.
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
        let mut answers = Answers::new();
        filter.insert_mixed_hashes(&words, &mut answers);
        filter.contains_mixed_hashes(&words, &mut answers);
        assert_eq!(answers.count_ones(), 25);
        assert!(!filter.contains_mixed_hash([1 << 62, 0]));
    }
}
