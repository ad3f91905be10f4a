//! Vector quotient filters: comparison with a model, measured rates, loads, corrupted files, file
//! format.

use petal::embed::VectorQuotientLayout;
use petal::{BatchResults, Borrowed, Membership as _, VectorQuotientFilter};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::rng::Rng;

use crate::models::vector_quotient::drive;
use crate::naive::update_checksums;

const TAG_BITS: [u32; 6] = [6, 7, 8, 10, 13, 18];

// ---- Model --------------------------------------------------------------------------------------

#[test]
fn random_operations_equal_the_model() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let length = rng.below(4000);
        drive(&rng.bytes(length));
    }
}

#[test]
fn batches_equal_single_operations() {
    let keys: Vec<u64> = (0..5000).map(|at| at * 7 % 4000).collect();
    let texts: Vec<String> = keys.iter().map(u64::to_string).collect();
    let build = || VectorQuotientFilter::with_fpr(6000, 0.01).unwrap();
    let (mut single, mut batch, mut results) = (build(), build(), BatchResults::new());
    let new: Vec<bool> = keys.iter().map(|key| single.insert(key).unwrap()).collect();
    batch.insert_batch(&keys, &mut results).unwrap();
    assert!(single == batch && single.len() < 4001);
    assert!(new.iter().enumerate().all(|(at, new)| results.get(at) == *new));
    batch.contains_batch(&texts, &mut results);
    assert!(texts.iter().enumerate().all(|(at, key)| results.get(at) == single.contains(key)));
    batch.add_batch(&keys[..900]).unwrap();
    keys[..900].iter().for_each(|key| single.add(key).unwrap());
    assert!(single == batch);
    batch.remove_batch(&keys[..100], &mut results);
    assert!(results.count_ones() == 100 && keys[..100].iter().all(|key| single.remove(key)));
    assert!(single == batch);
    batch.clear();
    assert!(batch.is_empty() && batch == build());
}

/// All copies of a key fit into two blocks, and no more.
#[test]
fn copies_of_one_key_fill_two_blocks() {
    for bits in TAG_BITS {
        let mut filter =
            VectorQuotientFilter::builder().table_size(100).slot_bits(bits).build().unwrap();
        let slots = filter.layout().slots() / 100;
        let key = (0u64..).find(|key| {
            let hash = filter.hash_spec().hash(&key.to_le_bytes());
            let numbers = filter.explain_mixed_hash(hash).parts.remove(0).numbers;
            numbers[0].1 != numbers[1].1
        });
        let key = key.unwrap();
        for copies in 0..2 * slots {
            assert_eq!(filter.count(&key), copies);
            filter.add(&key).unwrap();
        }
        let error = filter.add(&key).unwrap_err();
        assert!(error.is_full() && error.to_string().contains("many copies"), "{error}");
        // Other keys still find slots, unless both of their blocks are the full ones.
        let others: Vec<u64> = (1000..1000 + slots * 40).collect();
        let others: Vec<u64> =
            others.into_iter().filter(|other| filter.add(other).is_ok()).collect();
        assert!(others.len() as u64 > slots * 39);
        assert!((0..2 * slots).all(|_| filter.remove(&key)));
        assert!(others.iter().all(|other| filter.remove(other)));
        assert!(filter.is_empty() && !filter.remove(&key));
    }
}

// ---- Loads and rates ----------------------------------------------------------------------------

/// Filters of all sizes take as many keys as they were planned for.
#[test]
fn random_keys_fill_a_filter_to_its_capacity() {
    let mut rng = Rng::new(6);
    for bits in TAG_BITS {
        for blocks in [1, 2, 3, 4, 5, 7, 10, 15, 25, 40, 80, 200, 1000, 33_000] {
            for _ in 0..(20_000 / blocks).clamp(1, 300) {
                let mut filter = VectorQuotientFilter::builder()
                    .table_size(blocks)
                    .slot_bits(bits)
                    .build()
                    .unwrap();
                let capacity = filter.layout().capacity();
                let hashes: Vec<u64> = (0..capacity).map(|_| rng.next_u64()).collect();
                let filled = filter.add_mixed_hashes(&hashes);
                assert!(filled.is_ok(), "{bits} {blocks}: {} of {capacity}", filter.len());
            }
        }
    }
}

/// Inserts and removals at capacity find a slot every time, and lose no key.
#[test]
fn turnover_at_capacity_fails_no_insert() {
    let mut rng = Rng::new(7);
    for bits in TAG_BITS {
        let mut filter =
            VectorQuotientFilter::builder().table_size(300).slot_bits(bits).build().unwrap();
        let mut keys: Vec<u64> = (0..filter.layout().capacity()).map(|_| rng.next_u64()).collect();
        filter.add_mixed_hashes(&keys).unwrap();
        for step in 0..20 * keys.len() {
            // The oldest key, or any.
            let at = if step % 2 == 0 { step / 2 % keys.len() } else { rng.below(keys.len()) };
            assert!(filter.remove_mixed_hash(keys[at]));
            keys[at] = rng.next_u64();
            filter.add_mixed_hash(keys[at]).unwrap();
        }
        assert!(keys.iter().all(|hash| filter.contains_mixed_hash(*hash)));
        let mut results = BatchResults::new();
        filter.remove_mixed_hashes(&keys, &mut results);
        assert_eq!(results.count_ones(), keys.len() as u64);
        assert!(
            filter
                == VectorQuotientFilter::builder().table_size(300).slot_bits(bits).build().unwrap()
        );
    }
}

#[test]
fn measured_rates_equal_predictions() {
    const TRIES: u64 = 1_000_000;
    let cells: Vec<(u64, f64)> = [0.2, 0.03, 0.01, 0.004, 0.001, 1e-4, 1e-5]
        .into_iter()
        .flat_map(|rate| [1, 30, 1000, 50_000].map(|keys| (keys, rate)))
        .collect();
    let comparisons = (3 * cells.len()) as f64;
    for (seed, (planned, rate)) in cells.into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        // Small filters are many, because one of them may be far from the mean.
        let filters = (20_000 / planned).max(4);
        for part in [0.25, 0.5, 1.0] {
            let keys = ((planned as f64 * part) as u64).max(1);
            let (mut found, mut predicted) = (0, 0.0);
            for _ in 0..filters {
                let mut filter = VectorQuotientFilter::with_fpr(planned, rate).unwrap();
                let hashes: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
                filter.add_mixed_hashes(&hashes).unwrap();
                let queries = (0..TRIES / filters).map(|_| rng.next_u64());
                found += queries.filter(|hash| filter.contains_mixed_hash(*hash)).count() as u64;
                predicted = filter.expected_fpr(keys);
                assert_eq!(predicted, filter.stats().estimated_fpr);
                assert!(
                    predicted <= rate && filter.stats().capacity_left.unwrap() >= planned - keys
                );
            }
            let tries = TRIES / filters * filters;
            let (low, high) = binomial_range(tries, predicted, 1.0 - 0.001 / comparisons);
            assert!(
                (low..=high).contains(&found),
                "{planned} {rate} {part}: {found} {low}..={high}"
            );
        }
    }
}

#[test]
fn layouts_for_a_rate_keep_it_and_are_small() {
    for keys in [1, 2, 10, 63, 100, 1000, 1_000_000, 50_000_000, 10_000_000_000] {
        for rate in [0.9, 0.5, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6] {
            let layout = VectorQuotientLayout::for_fpr(keys, rate).unwrap();
            assert!(layout.fpr(keys) <= rate && layout.capacity() >= keys, "{keys} {layout:?}");
            assert!(layout.capacity_at_fpr(rate) >= keys);
            let again = VectorQuotientLayout::new(layout.blocks(), layout.tag_bits()).unwrap();
            assert_eq!(layout, again);
        }
    }
    for (rate, most) in [(0.031, 8.36), (0.014, 9.55), (0.0046, 11.2), (0.00105, 13.4)] {
        let layout = VectorQuotientLayout::for_fpr(50_000_000, rate).unwrap();
        let bits = layout.size_bytes() as f64 * 8.0 / 5e7;
        assert!(bits <= most, "{rate}: {bits}");
    }
}

#[test]
fn impossible_layouts_are_errors() {
    for rate in [0.0, 1.0, -1.0, f64::NAN, 1e-7] {
        assert!(VectorQuotientLayout::for_fpr(10, rate).unwrap_err().is_invalid());
    }
    assert!(VectorQuotientLayout::for_fpr(u64::MAX, 0.01).is_err());
    for (blocks, bits) in [(0, 8), (10, 5), (10, 9), (32_769, 8), (1 << 41, 8), (u64::MAX, 8)] {
        assert!(VectorQuotientLayout::new(blocks, bits).unwrap_err().is_invalid());
    }
    let both = VectorQuotientFilter::builder().capacity(10).fpr(0.01).table_size(3).slot_bits(8);
    assert!(both.build().unwrap_err().is_invalid());
    assert!(VectorQuotientFilter::builder().capacity(10).build().unwrap_err().is_invalid());
}

#[test]
fn filters_that_differ_have_no_union() {
    let mut filter = VectorQuotientFilter::builder().table_size(10).slot_bits(8).build().unwrap();
    let others = [
        VectorQuotientFilter::builder().table_size(11).slot_bits(8).build(),
        VectorQuotientFilter::builder().table_size(10).slot_bits(7).build(),
        VectorQuotientFilter::builder().table_size(10).slot_bits(8).seed(1).build(),
    ];
    for other in others {
        assert!(filter.union(&other.unwrap()).unwrap_err().is_incompatible());
    }
}

// ---- Corrupted files ------------------------------------------------------------------------------

fn file_of(filter: &VectorQuotientFilter) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, "{}").unwrap();
    file
}

fn small() -> VectorQuotientFilter {
    let mut filter = VectorQuotientFilter::builder().table_size(3).slot_bits(8).build().unwrap();
    for key in 0..100u64 {
        filter.add(&(key / 2)).unwrap();
    }
    filter
}

/// Opens the bytes and calls every query. Returns whether opening succeeded.
fn open_and_query(bytes: &[u8], valid: &VectorQuotientFilter) -> bool {
    let mut buffer = vec![0; bytes.len() + 64];
    let start = buffer.as_ptr().align_offset(64);
    buffer[start..start + bytes.len()].copy_from_slice(bytes);
    let bytes = &buffer[start..start + bytes.len()];
    let Ok(filter) = VectorQuotientFilter::<Borrowed<'_>>::from_bytes(bytes) else { return false };
    let hashes: Vec<u64> = (0..200).map(|at| at * (u64::MAX / 199)).collect();
    let mut results = BatchResults::new();
    filter.contains_mixed_hashes(&hashes, &mut results);
    for (at, hash) in hashes.iter().enumerate() {
        assert_eq!(results.get(at), filter.contains_mixed_hash(*hash));
        assert_eq!(results.get(at), filter.count_mixed_hash(*hash) > 0);
    }
    let _ =
        (filter.stats().capacity_left, filter.stats().estimated_len, filter.expected_fpr(1 << 40));
    let mut other = valid.try_clone().unwrap();
    if other.union(&filter).is_ok() {
        exercise(other);
    }
    if let Ok(copy) = filter.try_clone() {
        exercise(copy);
    }
    true
}

/// Checks that an opened filter can be modified.
fn exercise(mut filter: VectorQuotientFilter) {
    let mut rng = Rng::new(1);
    let hashes: Vec<u64> = (0..100).map(|_| rng.next_u64()).collect();
    let before = filter.len();
    let added = hashes.iter().filter(|hash| filter.add_mixed_hash(**hash).is_ok()).count();
    assert_eq!(filter.len(), before + added as u64);
    assert!(hashes[..added.min(1)].iter().all(|hash| filter.remove_mixed_hash(*hash)));
}

#[test]
fn every_truncation_and_bit_flip_is_an_error() {
    let (filter, file) = (small(), file_of(&small()));
    assert!(open_and_query(&file, &filter));
    for short in
        truncations(&file).chain(extensions(&file).collect::<Vec<_>>().iter().map(|long| &long[..]))
    {
        assert!(VectorQuotientFilter::read_from(short).is_err() && !open_and_query(short, &filter));
    }
    for (bit, bytes) in bit_flips(&file) {
        assert!(VectorQuotientFilter::read_from(&bytes[..]).is_err(), "bit {bit}");
        // Opening does not read padding and data.
        assert!(bit / 8 >= 258 || !open_and_query(&bytes, &filter));
        if bit / 8 >= 4096 {
            assert!(open_and_query(&bytes, &filter));
        }
    }
}

#[test]
fn bit_flips_with_valid_checksums_are_errors_or_valid() {
    let (filter, file) = (small(), file_of(&small()));
    let mut accepted = 0;
    for bit in (0..256 * 8).chain(4096 * 8..file.len() * 8) {
        let mut bytes = file.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        update_checksums(&mut bytes);
        let _ = open_and_query(&bytes, &filter);
        if let Ok((read, metadata)) = VectorQuotientFilter::read_from(&bytes[..]) {
            accepted += 1;
            let mut again = Vec::new();
            read.write_to(&mut again, &metadata).unwrap();
            assert!(again == bytes, "bit {bit}");
            exercise(read);
        }
    }
    // Seed, capacity and rate, bits of tags in use, and the checksums, which are repaired.
    assert!((64..1300).contains(&accepted), "{accepted}");
}

#[test]
fn random_data_with_valid_checksums_are_errors() {
    let mut rng = Rng::new(9);
    for round in 0..400 {
        let filter = VectorQuotientFilter::builder()
            .table_size(4)
            .slot_bits(TAG_BITS[round % 6])
            .build()
            .unwrap();
        let mut file = file_of(&filter);
        let dense = 1 + rng.below(12);
        for byte in file.iter_mut().skip(4096) {
            *byte = if rng.one_in(dense) { rng.next_u64() as u8 } else { 0 };
        }
        file[88..96].copy_from_slice(&7u64.to_le_bytes());
        update_checksums(&mut file);
        let found = VectorQuotientFilter::read_from(&file[..]);
        assert!(found.is_err() && open_and_query(&file, &filter));
    }
}

#[test]
fn hostile_numbers_are_errors() {
    let file = file_of(&small());
    let max = u64::MAX.to_le_bytes();
    for (at, number) in [(38, 1u64), (40, 8), (64, 0), (64, 2), (64, 1 << 41), (64, 32_769)]
        .into_iter()
        .chain([(96, 0), (96, 7), (96, 9), (96, 1 << 32 | 8), (104, 1)])
        .chain([(88, 0), (88, 101), (88, 1 << 63), (120, 1)])
    {
        let mut bytes = file.clone();
        let length = if at < 48 { 2 } else { 8 };
        bytes[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
        update_checksums(&mut bytes);
        assert!(VectorQuotientFilter::read_from(&bytes[..]).is_err(), "{number} at {at}");
        bytes[at..at + length].copy_from_slice(&max[..length]);
        update_checksums(&mut bytes);
        assert!(VectorQuotientFilter::read_from(&bytes[..]).is_err(), "maximum at {at}");
    }
}

// ---- File ---------------------------------------------------------------------------------------

/// The example of docs/reference/format-quotient.md.
#[test]
fn documented_example_is_correct() {
    let page = include_str!("../../../../docs/reference/format-quotient.md");
    let section = page.split("## Layout 11").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("000010") && line.len() > 58);
    let hex = rows.flat_map(|row| row[10..58].split_whitespace());
    let data: Vec<u8> = hex.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let mut filter = VectorQuotientFilter::builder().table_size(1).slot_bits(8).build().unwrap();
    for key in ["one", "two", "three", "three"] {
        filter.add(key).unwrap();
    }
    for key in ["one", "two", "three"] {
        let hash = filter.hash_spec().hash(key.as_bytes());
        let numbers = filter.explain_mixed_hash(hash).parts.remove(0).numbers;
        let row = format!("| `{key}` | {} | {} |", numbers[2].1, numbers[3].1);
        assert!(section.contains(&row), "{row}");
    }
    assert_eq!(file_of(&filter)[4096..], data, "{:02x?}", &file_of(&filter)[4096..]);
}

/// The files of both blocks of a region and of several regions, by the smallest algorithm.
#[test]
fn second_blocks_are_those_of_the_document() {
    let mut rng = Rng::new(12);
    for (blocks, bits, buckets) in [(1000u64, 8, 80u64), (65_541, 10, 72)] {
        let filter =
            VectorQuotientFilter::builder().table_size(blocks).slot_bits(bits).build().unwrap();
        let region = blocks / blocks.div_ceil(32_768);
        for _ in 0..1000 {
            let hash = rng.next_u64();
            let part =
                |word: u64, range: u64| ((u128::from(word) * u128::from(range)) >> 64) as u64;
            let numbers = filter.explain_mixed_hash(hash).parts.remove(0).numbers;
            let [first, second, bucket, tag] = [0, 1, 2, 3].map(|at| numbers[at].1);
            assert_eq!(first, part(hash, blocks));
            assert_eq!(bucket, part(hash.wrapping_mul(blocks), buckets));
            let rest = hash.wrapping_mul(blocks).wrapping_mul(buckets);
            assert_eq!(tag, part(rest, 1 << bits));
            let number = (bucket << bits | tag).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            assert_eq!(first / region, second / region);
            assert_eq!((first + second) % region, part(number, region));
        }
    }
}
