//! Counting filters: against counters in a plain array, their rates after removals, their files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod models {
    pub(crate) mod counting;
}
mod naive;

use naive::mend;
use petal::{
    Answers, BloomFilter, ClassicCountingBloomFilter, CountingBloomFilter, CountingFilter, Filter,
    Geometry, HashSpec, Lent, Membership, MembershipMut, Shape,
};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::rng::Rng;

// ---- The model ----------------------------------------------------------------------------------

#[test]
fn any_operations_are_those_of_the_model() {
    for seed in 0..1500 {
        let mut rng = Rng::new(seed);
        let len = 20 + rng.below(400);
        models::counting::drive(&rng.bytes(len));
    }
}

/// A key inserted over and over: counted up to the largest count, and then stuck there.
#[test]
fn the_largest_count_is_never_lowered() {
    for width in 2..=8 {
        for probes in [8, 16] {
            let builder = CountingBloomFilter::builder().bits(512).probes(probes).width(width);
            let mut filter = builder.build().unwrap();
            let most = filter.most();
            assert_eq!(most, 1 << (width - 1));
            for times in 1..most {
                filter.insert("key");
                assert_eq!((filter.count("key"), filter.saturated()), (times, 0));
            }
            for _ in 1..most {
                assert!(filter.remove("key"));
            }
            assert!(!filter.remove("key") && filter.fill_ratio() == 0.0 && filter.inserted() == 0);
            for _ in 0..most + 3 {
                filter.insert("key");
            }
            assert_eq!((filter.count("key"), filter.saturated()), (most, probes.into()));
            for _ in 0..3 * most {
                assert!(filter.remove("key") && filter.contains("key"));
            }
            filter.clear();
            assert!(!filter.contains("key") && filter.count("key") == 0);
        }
    }
}

/// What remains after removals is what was never removed, bit for bit.
#[test]
fn a_frozen_filter_is_the_plain_one() {
    fn test<G: Geometry>(plain: Result<Filter<G>, petal::Error>, keys: u64) {
        let mut plain = plain.unwrap();
        let mut filter = CountingFilter::<G>::builder()
            .keys(keys)
            .rate(plain.target_rate())
            .width(6)
            .build()
            .unwrap();
        assert_eq!(filter.shape(), plain.shape());
        let stay: Vec<u64> = (0..keys).collect();
        let go: Vec<u64> = (keys..2 * keys).collect();
        let mut answers = Answers::new();
        filter.insert_batch(&go, &mut answers);
        filter.insert_batch(&stay, &mut answers);
        filter.remove_batch(&go, &mut answers);
        assert_eq!(answers.count_ones(), keys);
        plain.insert_batch(&stay, &mut answers);
        let frozen = filter.freeze().unwrap();
        assert!(frozen == plain && filter.saturated() == 0);
        // Each insert of a false positive, and each key that is gone with its like, is off by one.
        let off = filter.inserted().abs_diff(keys);
        assert!(off < keys / 10, "{off} of {keys}");
        assert_eq!(filter.estimated_len(), plain.estimated_len());
        assert_eq!(filter.estimated_rate(), plain.estimated_rate());
    }
    test(BloomFilter::with_rate(5000, 0.01), 5000);
    test(BloomFilter::with_rate(5000, 1e-4), 5000);
    test(petal::ClassicBloomFilter::with_rate(5000, 0.01), 5000);
}

#[test]
fn a_union_is_what_comes_of_inserting_both() {
    fn test<G: Geometry>() {
        let empty = || CountingFilter::<G>::builder().keys(300).rate(0.02).width(3).build();
        let [mut ours, mut theirs, mut both] = [(); 3].map(|()| empty().unwrap());
        for key in 0..600u64 {
            ours.insert(&(key / 2));
            theirs.insert(&(key / 4 * 3));
            both.insert(&(key / 2));
            both.insert(&(key / 4 * 3));
        }
        ours.union(&theirs).unwrap();
        assert!(ours == both && ours.saturated() > 0);
        let wider = CountingFilter::<G>::builder().keys(300).rate(0.02).width(4).build().unwrap();
        let before = ours.to_owned_filter().unwrap();
        assert!(ours.union(&wider).unwrap_err().to_string().contains("width"));
        assert!(ours.union(&wider).unwrap_err().is_incompatible() && ours == before);
    }
    test::<Shape>();
    test::<petal::ClassicShape>();
}

#[test]
fn the_builder_refuses_what_cannot_be() {
    let builder = || CountingBloomFilter::builder().keys(1000).rate(0.01);
    for width in [0, 1, 9, u32::MAX] {
        assert!(builder().width(width).build().unwrap_err().is_invalid());
    }
    assert!(CountingBloomFilter::builder().build().unwrap_err().is_invalid());
    assert!(CountingBloomFilter::with_rate(1 << 60, 0.01).unwrap_err().is_unattainable());
    assert!(CountingBloomFilter::with_rate(1000, 0.0).unwrap_err().is_invalid());
    assert!(CountingBloomFilter::with_rate(1 << 44, 0.01).unwrap_err().is_alloc());
    let large = CountingBloomFilter::builder().bits(1 << 59).probes(8).width(8);
    assert!(large.build().unwrap_err().is_alloc());
    let size = builder().build().unwrap().size_bytes();
    assert!(builder().memory(size).build().is_ok());
    assert!(builder().memory(size - 1).build().unwrap_err().is_invalid());
    let fitted = CountingBloomFilter::builder().keys(1000).memory(size).build().unwrap();
    assert!(fitted.size_bytes() <= size && fitted.target_rate() <= 0.011);
    assert!(CountingBloomFilter::builder().keys(9).memory(255).build().unwrap_err().is_invalid());
}

#[test]
fn the_face_says_the_same() {
    let mut filter = ClassicCountingBloomFilter::with_rate(1000, 0.01).unwrap();
    let hashes: Vec<u64> =
        (0..500u64).map(|key| petal::Key::hash_with(&key, &filter.hash_spec())).collect();
    let mut answers = Answers::new();
    let face: &mut dyn MembershipMut = &mut filter;
    face.insert_mixed_hashes(&hashes, &mut answers).unwrap();
    face.remove_mixed_hashes(&hashes[..100], &mut answers).unwrap();
    assert_eq!(answers.count_ones(), 100);
    face.contains_mixed_hashes(&hashes, &mut answers);
    assert!((400..450).contains(&answers.count_ones()));
    assert_eq!(face.filter_type().name(), "counting-classic");
    assert!(face.describe().ends_with("counters of 4 bits"), "{}", face.describe());
    let numbers = face.geometry();
    assert!(numbers.contains(&("width", 4)) && numbers.contains(&("saturated", 0)));
    assert!(face.capacity_left().unwrap() > 550 && !face.is_overfull());
    // Two stores, and the struct.
    let size = size_of_val(&filter) as u64;
    assert_eq!(filter.memory_usage(), filter.size_bytes() + size);
}

// ---- Rates --------------------------------------------------------------------------------------

/// Strangers among so many that are said to be there.
fn found<G: Geometry>(filter: &CountingFilter<G>, rng: &mut Rng, queries: u64) -> u64 {
    let mut answers = Answers::new();
    let hashes: Vec<u64> = (0..queries).map(|_| rng.next_u64()).collect();
    filter.contains_mixed_hashes(&hashes, &mut answers);
    answers.count_ones()
}

/// The rate is that of the keys that are left, whatever has come and gone: at a quarter of the
/// plan, at the plan, and at the double. Filters are large, so that one differs little from
/// another, and the bound is that of the queries.
#[test]
fn the_rate_is_that_of_the_keys_that_are_left() {
    fn test<G: Geometry>(rate: f64, seed: u64) {
        const KEYS: u64 = 60_000;
        const QUERIES: u64 = 400_000;
        let comparisons = 3.0 * 6.0;
        let mut rng = Rng::new(seed);
        let builder = CountingFilter::<G>::builder().keys(KEYS).rate(rate).width(5);
        let mut filter = builder.build().unwrap();
        let mut answers = Answers::new();
        let mut hashes: Vec<u64> = (0..2 * KEYS).map(|_| rng.next_u64()).collect();
        filter.insert_mixed_hashes(&hashes, &mut answers);
        for left in [2 * KEYS, KEYS, KEYS / 4] {
            let gone: Vec<u64> = hashes.drain(left as usize..).collect();
            filter.remove_mixed_hashes(&gone, &mut answers);
            assert_eq!(answers.count_ones(), gone.len() as u64);
            let confidence = 1.0 - 0.001 / comparisons;
            let (low, high) = binomial_range(QUERIES, filter.expected_rate(left), confidence);
            let found = found(&filter, &mut rng, QUERIES);
            assert!((low..=high).contains(&found), "{rate} {left}: {found} not {low} to {high}");
            assert!((filter.estimated_len() / left as f64 - 1.0).abs() < 0.01);
            assert!(hashes.iter().all(|&hash| filter.contains_mixed_hash(hash)), "a key is lost");
        }
    }
    for (seed, rate) in [0.1, 0.01, 1e-4].into_iter().enumerate() {
        test::<Shape>(rate, seed as u64);
        test::<petal::ClassicShape>(rate, 100 + seed as u64);
    }
}

/// As many counters are stuck as calculated. Counters of different keys are as good as
/// independent; the bound is binomial.
#[test]
fn as_many_counters_are_stuck_as_calculated() {
    fn test<G: Geometry>(width: u32, keys: u64) {
        let builder = CountingFilter::<G>::builder().keys(100_000).rate(0.01).width(width);
        let mut filter = builder.build().unwrap();
        let mut rng = Rng::new(width.into());
        let hashes: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
        filter.insert_mixed_hashes(&hashes, &mut Answers::new());
        let bits = filter.as_filter().size_bytes() * 8;
        let share = filter.expected_saturated(keys) / bits as f64;
        let (low, high) = binomial_range(bits, share, 0.999);
        let stuck = filter.saturated();
        assert!((low..=high).contains(&stuck), "{width}: {stuck} not {low} to {high}");
        assert!(stuck > 10, "{stuck} are too few to tell");
    }
    test::<Shape>(2, 100_000);
    test::<Shape>(3, 100_000);
    test::<Shape>(4, 300_000);
    test::<petal::ClassicShape>(2, 100_000);
    test::<petal::ClassicShape>(3, 100_000);
    test::<petal::ClassicShape>(4, 300_000);
}

// ---- Long use -----------------------------------------------------------------------------------

/// A filter whose keys were replaced, the oldest first, as often as that.
fn churned<G: Geometry>(keys: u64, rate: f64, width: u32, turnovers: u64) -> CountingFilter<G> {
    let builder = CountingFilter::<G>::builder().keys(keys).rate(rate).width(width);
    let mut filter = builder.build().unwrap();
    let hash = |at: u64| Rng::new(at).next_u64();
    (0..keys).for_each(|at| _ = filter.insert_mixed_hash(hash(at)));
    for at in 0..keys * turnovers {
        assert!(filter.remove_mixed_hash(hash(at)), "{at}");
        filter.insert_mixed_hash(hash(at + keys));
    }
    let from = keys * turnovers;
    assert!((from..from + keys).all(|at| filter.contains_mixed_hash(hash(at))));
    filter
}

fn long_use<G: Geometry>(keys: u64, width: u32, turnovers: u64) {
    let filter = churned::<G>(keys, 0.01, width, turnovers);
    let expected = filter.expected_saturated_after(keys, turnovers as f64);
    let (stuck, share) = (filter.saturated(), expected / filter.shape().bits() as f64);
    // Five standard errors, and the fifth that the calculation is good to.
    let error = 5.0 * expected.sqrt() + 0.2 * expected;
    assert!((stuck as f64 - expected).abs() < error, "{stuck} of {expected}, width {width}");
    // What the documentation says of the drift.
    let drift = filter.inserted().abs_diff(keys) as f64;
    let removed = (keys * turnovers) as f64;
    let rate = filter.estimated_rate().max(0.01);
    assert!(drift < 5.0 * (2.0 * rate * removed).sqrt() + 0.02 * keys as f64, "{drift}");
    let held = filter.estimated_len() / keys as f64 - 1.0;
    assert!((-0.05..0.05 + 3.0 * share).contains(&held), "{held} {share}");
}

#[test]
fn long_use_leaves_counters_stuck_as_calculated() {
    long_use::<Shape>(2000, 4, 1000);
    long_use::<petal::ClassicShape>(2000, 4, 500);
    long_use::<Shape>(2000, 3, 20);
}

/// Those 10,000 turnovers that the documentation speaks of.
#[test]
#[ignore = "ten seconds"]
fn ten_thousand_turnovers() {
    long_use::<Shape>(1000, 4, 10_000);
    long_use::<petal::ClassicShape>(1000, 4, 10_000);
}

/// A filter that holds what it was planned for is not overfull by chance alone, whatever its
/// counters take.
#[test]
fn full_plans_are_not_overfull() {
    for width in [2, 4, 8] {
        let overfull = (0..400u64).filter(|seed| {
            let builder = CountingBloomFilter::builder().keys(1000).rate(0.01).width(width);
            let mut filter = builder.build().unwrap();
            let mut rng = Rng::new(seed + 1);
            (0..1000).for_each(|_| _ = filter.insert_mixed_hash(rng.next_u64()));
            assert_eq!(filter.is_overfull(), Membership::is_overfull(filter.as_filter()));
            filter.is_overfull()
        });
        // Three standard deviations: one in 700.
        assert!(overfull.count() <= 6, "width {width}");
    }
}

// ---- Files --------------------------------------------------------------------------------------

/// Small files of all layouts.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    fn file<G: Geometry>(bits: u64, probes: u32, width: u32, metadata: &str) -> Vec<u8> {
        let keyed = HashSpec::keyed([7; 16]);
        let builder = CountingFilter::<G>::builder().bits(bits).probes(probes).width(width);
        let mut filter = builder.hash(keyed).build().unwrap();
        for key in 0..60u64 {
            filter.insert(&(key / 3));
        }
        let mut file = Vec::new();
        filter.write_to(&mut file, metadata).unwrap();
        file
    }
    vec![
        ("line", file::<Shape>(512, 5, 4, "")),
        ("pair", file::<Shape>(1024, 11, 2, "{}")),
        ("classic", file::<petal::ClassicShape>(500, 7, 3, "")),
    ]
}

/// Every way in; what is opened answers, whatever its bits are.
fn try_all(bytes: &[u8]) -> [bool; 4] {
    fn one<G: Geometry>(bytes: &[u8]) -> [bool; 2] {
        let lent = CountingFilter::<G, Lent<'_>>::from_bytes(bytes);
        if let Ok(filter) = &lent {
            for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let _ = (filter.contains_mixed_hash(hash), filter.count_mixed_hash(hash));
            }
            let _ = (filter.geometry(), filter.estimated_rate(), filter.capacity_left());
            let mut copy = filter.to_owned_filter().unwrap();
            for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let _ = (
                    copy.remove_mixed_hash(hash),
                    copy.insert_mixed_hash(hash),
                    copy.remove_mixed_hash(hash),
                );
            }
            let _ = copy.union(filter);
        }
        let read = CountingFilter::<G>::read_from(bytes);
        if let Ok((filter, metadata)) = &read {
            let mut again = Vec::new();
            filter.write_to(&mut again, metadata).unwrap();
            // But for the number of keys, which a reader may clip.
            assert!(again.len() == bytes.len() && again[256..] == bytes[256..]);
        }
        [lent.is_ok(), read.is_ok()]
    }
    let mut room = vec![0; bytes.len() + 64];
    let start = room.as_ptr().align_offset(64);
    room[start..start + bytes.len()].copy_from_slice(bytes);
    let bytes = &room[start..start + bytes.len()];
    let ([a, b], [c, d]) = (one::<Shape>(bytes), one::<petal::ClassicShape>(bytes));
    [a, c, b, d]
}

#[test]
fn every_damage_is_refused() {
    for (name, file) in files() {
        assert_eq!(try_all(&file).iter().filter(|ok| **ok).count(), 2, "{name}");
        for short in truncations(&file) {
            assert_eq!(try_all(short), [false; 4], "{name} cut to {}", short.len());
        }
        for longer in extensions(&file) {
            assert_eq!(try_all(&longer), [false; 4], "{name} with more at the end");
        }
        for (bit, damaged) in bit_flips(&file) {
            // All of the header and of the data; of the zeros between, a sample.
            if bit < 300 * 8 || bit % 61 == 0 || bit >= 4096 * 8 {
                assert_eq!(try_all(&damaged)[2..], [false; 2], "{name} with bit {bit} flipped");
            }
        }
    }
}

/// The same with sums that are right: refused, or a filter. No panic, no other bytes.
#[test]
fn lies_with_a_right_checksum_are_refused_or_true() {
    let mut taken = 0;
    for (name, file) in files() {
        for (bit, mut lie) in bit_flips(&file) {
            let at = bit / 8;
            if (240..256).contains(&at) || (256..4096).contains(&at) && bit % 61 != 0 {
                continue;
            }
            mend(&mut lie);
            let [.., line, classic] = try_all(&lie);
            taken += u32::from(line || classic);
            let right = match at {
                // Metadata of one byte, some bits more, kinds, hash, probes, lanes, seed, facts: some are others that there are.
                10..12 | 32..42 | 64..66 | 48..64 | 72..96 => true,
                // A counter that is one more or less, but none that counts at zero.
                4096.. => true,
                _ => !(line || classic),
            };
            assert!(right, "{name} with bit {bit} flipped was taken");
        }
        let mut rng = Rng::new(5);
        for _ in 0..2000 {
            let mut lie = file.clone();
            for _ in 0..1 + rng.below(4) {
                let at = *rng.pick(&[24, 36, 38, 40, 64, 72, 80, 88, 96, 97, 103, 104]);
                lie[at + rng.below(2)] = *rng.pick(&[0, 1, 2, 3, 4, 8, 9, 16, 64, 128, 255]);
            }
            mend(&mut lie);
            try_all(&lie);
        }
        for width in [0u64, 1, 9, 1 << 32 | 4, u64::MAX] {
            let mut lie = file.clone();
            lie[96..104].copy_from_slice(&width.to_le_bytes());
            mend(&mut lie);
            assert_eq!(try_all(&lie), [false; 4], "{name}: width {width}");
        }
    }
    assert!(taken > 100, "{taken}");
}

/// A counter that is zero and yet counts, and bits behind the last one, are refused.
#[test]
fn what_no_writer_writes_is_refused() {
    for (name, file) in files() {
        let lines = match name {
            "pair" => 2,
            _ => 1,
        };
        let clear = (0..500).find(|bit| file[4096 + bit / 8] >> (bit % 8) & 1 == 0).unwrap();
        let mut lie = file.clone();
        lie[4096 + 64 * lines + clear / 8] |= 1 << (clear % 8);
        mend(&mut lie);
        let error = CountingBloomFilter::read_from(&lie[..]).unwrap_err();
        let other = ClassicCountingBloomFilter::read_from(&lie[..]).unwrap_err();
        assert!(error.is_corrupt() || other.is_corrupt(), "{name}: {error}");
        assert!([error, other].iter().any(|error| error.to_string().contains("that are zero")));
        // Opened without a look, it answers.
        assert!(try_all(&lie)[..2].contains(&true), "{name}");
    }
    let (_, mut lie) = files().pop().unwrap();
    lie[4096 + 63] |= 0x80; // bit 511 of 500
    mend(&mut lie);
    assert!(ClassicCountingBloomFilter::read_from(&lie[..]).unwrap_err().is_corrupt());
    // One type is not the other, nor a plain filter.
    let (_, line) = files().swap_remove(0);
    assert!(ClassicCountingBloomFilter::read_from(&line[..]).unwrap_err().is_invalid());
    assert!(BloomFilter::read_from(&line[..]).unwrap_err().is_invalid());
}

/// A header that promises a petabyte is no reason to ask for one.
#[test]
fn promised_data_must_come() {
    let (_, mut file) = files().swap_remove(0);
    let blocks = 1u64 << 44;
    file[24..32].copy_from_slice(&(blocks * 64 * 4).to_le_bytes());
    file[64..72].copy_from_slice(&blocks.to_le_bytes());
    mend(&mut file);
    assert!(CountingBloomFilter::read_from(&file[..]).unwrap_err().is_corrupt());
    assert!(!try_all(&file).contains(&true));
}

// ---- Sizes --------------------------------------------------------------------------------------

/// Around 2^32 counters and 2^32 bytes of bits. Memory is zero without being touched; a machine
/// that does not give so much of it has nothing to show.
#[test]
fn the_borders_of_32_bits_are_none() {
    fn test<G: Geometry>(bits: u64, probes: u32) {
        let builder = CountingFilter::<G>::builder().bits(bits).probes(probes).width(2);
        let mut filter = match builder.build() {
            Err(error) if error.is_alloc() => return,
            filter => filter.unwrap(),
        };
        let mut answers = Answers::new();
        // The first and the last block, and those around the border.
        let mut hashes = vec![0, u64::MAX, (1 << 63) + 12345, u64::MAX / 2, u64::MAX - (1 << 33)];
        let border = |border| u64::try_from((1u128 << (border + 64)) / u128::from(bits)).ok();
        hashes.extend([31, 32, 34].into_iter().filter_map(border));
        for &hash in &hashes {
            assert!(
                filter.insert_mixed_hash(hash) && filter.count_mixed_hash(hash) == 1,
                "{bits} {hash:#x}"
            );
        }
        filter.contains_mixed_hashes(&hashes, &mut answers);
        assert_eq!(answers.count_ones(), hashes.len() as u64);
        filter.remove_mixed_hashes(&hashes, &mut answers);
        assert_eq!((answers.count_ones(), filter.inserted()), (hashes.len() as u64, 0));
        filter.contains_mixed_hashes(&hashes, &mut answers);
        assert_eq!(answers.count_ones(), 0);
    }
    for bits in [(1 << 32) - 512, 1 << 32, (1 << 32) + 512, 1 << 35, (1 << 35) + 1024] {
        test::<Shape>(bits, 8);
        test::<Shape>(bits, 16);
        test::<petal::ClassicShape>(bits + 1, 7);
    }
}

// ---- The document -------------------------------------------------------------------------------

/// The data of the filter that docs/format.md makes its example of.
#[test]
fn the_example_of_the_document_is_what_is_written() {
    let builder = CountingBloomFilter::builder().bits(512).probes(5).width(3);
    let mut filter = builder.build().unwrap();
    for key in ["one", "two", "two", "three", "three", "three"] {
        filter.insert(key);
    }
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    let row = |(row, bytes): (usize, &[u8])| {
        let hex = |half: &[u8]| {
            half.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        };
        format!("{:08x}  {}  {}", 4096 + 16 * row, hex(&bytes[..8]), hex(&bytes[8..]))
    };
    let dump: Vec<String> = file[4096..].chunks(16).enumerate().map(row).collect();
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");
    let document = std::fs::read_to_string(document).unwrap();
    let dump = dump.join("\n");
    assert!(document.contains(&dump), "the document should show\n{dump}");
    assert_eq!((file[10], file[96]), (3, 3));
}
