//! Static filters: comparison with a model, measured rates, corrupted files, large sizes, memory,
//! and recorded files.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::num::NonZeroUsize;

use model::{Aligned, Naive, file_of};
use petal::{
    BatchResults, BloomFilter, Borrowed, FilterCascade, HashSpec, Kernel, Mapped, Membership,
    StaticFilter,
};
use petal_testkit::bounds::binomial_range;
use petal_testkit::corrupt::{bit_flips, extensions, truncations};
use petal_testkit::rng::Rng;
use petal_testkit::scratch::Scratch;
use xxhash_rust::xxh3::xxh3_64;

use crate::models::static_filter as model;
use crate::naive::update_checksums;

fn hashes(seed: u64, len: usize) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64()).collect()
}

fn threads(threads: usize) -> NonZeroUsize {
    NonZeroUsize::new(threads).unwrap()
}

// ---- Model --------------------------------------------------------------------------

#[test]
fn random_sets_equal_the_model() {
    let mut rng = Rng::new(8);
    model::drive(&[]);
    for _ in 0..150 {
        let length = 10 + rng.below(90);
        model::drive(&rng.bytes(length));
    }
}

#[test]
fn every_small_set_is_built() {
    for keys in (0..200).chain([1000, 1023, 1024, 1025, 1026, 2000, 2047, 5000]) {
        for rate in [0.7, 0.01, 1e-7] {
            let set = hashes(keys as u64, keys);
            let filter = StaticFilter::builder().fpr(rate).from_mixed_hashes(set.clone()).unwrap();
            assert_eq!(filter.len(), keys as u64);
            assert!(set.iter().all(|&hash| filter.contains_mixed_hash(hash)), "{keys} {rate}");
            assert!(
                filter.stats().estimated_fpr <= rate * 1.02,
                "{keys} {rate}: {}",
                filter.stats().estimated_fpr
            );
        }
    }
}

#[test]
fn key_types_hash_as_in_other_filters() {
    let keys = ["one", "two", "three"];
    let hash = HashSpec::keyed([3; 16]);
    let filter = StaticFilter::builder().fpr(1e-6).hash(hash).build(&keys).unwrap();
    let mut found = BatchResults::new();
    filter.contains_batch(&[&b"two"[..], b"four"], &mut found);
    assert_eq!(found.iter().collect::<Vec<_>>(), [0]);
    assert!(
        keys.iter().all(
            |key| filter.contains(key) && filter.contains_mixed_hash(hash.hash(key.as_bytes()))
        )
    );
    let many: Vec<u64> = (0..10_000).collect();
    let filter = StaticFilter::builder().fpr(1e-6).threads(threads(3)).build(&many).unwrap();
    filter.contains_batch(&many, &mut found);
    assert_eq!(found.count_ones(), 10_000);
}

/// No more threads start than there is work for.
#[test]
fn any_number_of_threads_is_allowed() {
    let set = hashes(1, 20_000);
    for number in [1_000_000, usize::MAX] {
        for fuse in [false, true] {
            let builder = StaticFilter::builder().fpr(0.01).fuse(fuse);
            let one = builder.from_mixed_hashes(set.clone()).unwrap();
            let builder = builder.threads(threads(number));
            assert!(one == builder.from_mixed_hashes(set.clone()).unwrap(), "{number} {fuse}");
            assert_eq!(builder.build(&set).unwrap().len(), 20_000);
            assert_eq!(builder.build(&[1, 2, 3]).unwrap().len(), 3);
        }
        let cascade = FilterCascade::builder().fpr(0.01).threads(threads(number));
        assert!(cascade.build(&set[..100], &set[100..]).unwrap().contains(&set[0]));
        let mut bloom = BloomFilter::with_fpr(20_000, 0.01).unwrap();
        bloom.put_batch_on(&set, threads(number)).unwrap();
        assert!(set.iter().all(|key| bloom.contains(key)));
    }
}

#[test]
fn number_of_threads_does_not_change_the_filter() {
    let set = hashes(1, 300_000);
    for rate in [0.1, 1e-6] {
        let built = |number| {
            let builder = StaticFilter::builder().fpr(rate).threads(threads(number));
            builder.from_mixed_hashes(set.clone()).unwrap()
        };
        let one = built(1);
        assert!(one == built(2) && one == built(7));
        let mut twice = set.clone();
        twice.extend(set.iter().rev());
        assert!(one == StaticFilter::builder().fpr(rate).from_mixed_hashes(twice).unwrap());
        let mut found = BatchResults::new();
        one.contains_mixed_hashes(&set, &mut found);
        assert_eq!(found.count_ones(), set.len() as u64);
        let file = file_of(&one, "");
        let naive = Naive::new(&file);
        assert!(set.iter().step_by(17).all(|&hash| naive.contains(hash)));
    }
}

/// What the portable kernel results, all do.
#[test]
fn kernels_agree() {
    let set = hashes(2, 50_000);
    let queries: Vec<u64> = set.iter().copied().step_by(3).chain(hashes(3, 20_000)).collect();
    for rate in [0.9, 0.2, 0.1, 0.01, 0.003, 1e-3, 1e-5, 1e-6, 2.5e-10] {
        let filter = StaticFilter::builder().fpr(rate).from_mixed_hashes(set.clone()).unwrap();
        let file = file_of(&filter, "");
        let before = Kernel::current();
        Kernel::Portable.force();
        let portable = StaticFilter::read_from(&file[..]).unwrap().0;
        before.force();
        let (mut ours, mut theirs) = (BatchResults::new(), BatchResults::new());
        for length in [0, 1, 31, 32, 33, 64, 1023, 1024, 1025, queries.len()] {
            filter.contains_mixed_hashes(&queries[..length], &mut ours);
            portable.contains_mixed_hashes(&queries[..length], &mut theirs);
            assert_eq!(ours, theirs, "{rate} {length}");
        }
        let single =
            |hash: &u64| filter.contains_mixed_hash(*hash) == portable.contains_mixed_hash(*hash);
        assert!(queries.iter().all(single));
    }
}

// ---- Rates and space ----------------------------------------------------------------------------

#[test]
fn measured_rate_equals_prediction_and_target() {
    for (keys, rate) in [
        (100_000, 0.6),
        (100_000, 0.3),
        (200_000, 0.1),
        (3000, 0.04),
        (200_000, 0.01),
        (40_000, 0.0072),
        (100_000, 1e-3),
        (100_000, 1e-4),
    ] {
        let filter = StaticFilter::builder().fpr(rate).from_mixed_hashes(hashes(4, keys)).unwrap();
        let queries = hashes(5, 1_000_000);
        let mut found = BatchResults::new();
        filter.contains_mixed_hashes(&queries, &mut found);
        let (low, high) = binomial_range(queries.len() as u64, filter.stats().estimated_fpr, 0.999);
        let yes = found.count_ones();
        assert!((low..=high).contains(&yes), "{keys} {rate}: {yes} not in {low}..={high}");
        assert!(
            filter.stats().estimated_fpr <= rate * 1.001,
            "{keys} {rate}: {}",
            filter.stats().estimated_fpr
        );
        assert!(
            keys < 40_000 || filter.stats().estimated_fpr > rate * 0.99,
            "{keys} {rate}: {}",
            filter.stats().estimated_fpr
        );
        assert!(
            (filter.expected_fpr(keys as u64) / filter.stats().estimated_fpr - 1.0).abs() < 0.02
        );
        assert!(!filter.stats().is_overfull && filter.target_fpr() == rate);
    }
}

/// At most 1.06 times the minimum number of bits, including all data of the file.
#[test]
fn space_is_within_6_percent_of_the_minimum() {
    for (keys, most) in [(100_000, 1.06), (150_000, 1.06), (1_000_000, 1.05)] {
        let set = hashes(6, keys);
        for rate in [0.1, 0.09, 0.07, 0.05, 0.01, 1e-3, 1e-6] {
            let builder = StaticFilter::builder().fpr(rate).threads(threads(2));
            let filter = builder.from_mixed_hashes(set.clone()).unwrap();
            let bits = filter.size_bytes() as f64 * 8.0 / set.len() as f64;
            assert!(bits <= most * -rate.log2(), "{keys} {rate}: {}", bits / -rate.log2());
            assert!(filter.stats().fill_ratio > 0.98);
        }
    }
}

#[test]
fn planned_size_equals_the_filter() {
    for (keys, rate, within) in [
        (1, 0.01, 0.001),
        (700, 0.01, 0.001),
        (3000, 0.01, 0.01),
        (20_000, 1e-4, 0.005),
        (300_000, 1.0 / 128.0, 0.003),
        (1_000_000, 1e-6, 0.003),
    ] {
        let builder = || StaticFilter::builder().capacity(keys).fpr(rate);
        let planned = builder().plan().unwrap().size_bytes() as f64;
        let builder = StaticFilter::builder().fpr(rate);
        let filter = builder.from_mixed_hashes(hashes(3, keys as usize)).unwrap();
        let ratio = planned / filter.size_bytes() as f64;
        assert!((ratio - 1.0).abs() < within, "{keys} keys at {rate}: {ratio}");
    }
}

#[test]
fn invalid_parameters_are_errors() {
    for rate in [0.0, -1.0, 1.0, 2.0, f64::NAN, 1e-10] {
        assert!(
            StaticFilter::builder().fpr(rate).from_mixed_hashes(vec![1]).unwrap_err().is_invalid(),
            "{rate}"
        );
    }
    assert!(StaticFilter::builder().build(&["one"]).unwrap_err().is_invalid());
}

// ---- Corrupted files ------------------------------------------------------------------------------

/// Returns small files with one layer, with several and with none.
fn files() -> Vec<Vec<u8>> {
    [(0, 0.01), (3, 0.01), (60, 0.1), (1100, 0.4)]
        .into_iter()
        .map(|(keys, rate)| {
            file_of(
                &StaticFilter::builder().fpr(rate).from_mixed_hashes(hashes(7, keys)).unwrap(),
                "{}",
            )
        })
        .collect()
}

/// Opens and queries borrowed bytes, and reads them. Returns whether each succeeded.
fn try_all(bytes: &[u8]) -> (bool, bool) {
    let aligned = Aligned::new(bytes);
    let opened = StaticFilter::<Borrowed<'_>>::from_bytes(aligned.bytes());
    if let Ok(filter) = &opened {
        let mut found = BatchResults::new();
        let queries = hashes(9, 40);
        filter.contains_mixed_hashes(&queries, &mut found);
        for (at, &hash) in queries.iter().enumerate() {
            assert_eq!(filter.contains_mixed_hash(hash), found.get(at));
        }
        let dynamic: &dyn Membership = filter;
        assert!((0.0..=1.0).contains(&dynamic.stats().estimated_fpr));
        assert!((0.0..=1.0).contains(&dynamic.stats().fill_ratio));
        let _ = (dynamic.stats().layout, dynamic.stats().parameters, dynamic.expected_fpr(1 << 40));
    }
    (opened.is_ok(), StaticFilter::read_from(bytes).is_ok())
}

#[test]
fn corrupted_files_are_errors() {
    for file in files() {
        assert_eq!(try_all(&file), (true, true));
        assert!(truncations(&file).step_by(7).all(|short| try_all(short) == (false, false)));
        assert!(extensions(&file).all(|longer| !try_all(&longer).1));
        for (bit, damaged) in bit_flips(&file).filter(|(bit, _)| *bit < 2048 || bit / 8 >= 4096) {
            let (opened, read) = try_all(&damaged);
            assert!(!read && (bit >= 258 * 8 || !opened), "bit {bit}");
        }
    }
}

/// Modified files with valid checksums are errors, or filters that can be queried.
#[test]
fn modified_files_with_valid_checksums_are_safe() {
    let mut rng = Rng::new(10);
    let numbers =
        [0, 1, 2, 3, 31, 32, 255, 1 << 20, (1 << 20) + 1, 1 << 32, 1 << 50, 1 << 63, u64::MAX];
    for file in files() {
        let words = (64..240).step_by(8).chain((4096..file.len()).step_by(8));
        for at in words.chain([24]) {
            for number in numbers.into_iter().chain([rng.next_u64()]) {
                let mut modified = file.clone();
                modified[at..at + 8].copy_from_slice(&number.to_le_bytes());
                update_checksums(&mut modified);
                try_all(&modified);
            }
        }
        for _ in 0..2000 {
            let mut modified = file.clone();
            for _ in 0..1 + rng.below(3) {
                let places = [36, 64, 88, 96, 104, 112, 4096, 4104, 4112, 4120, 4128, 4160, 4168];
                let at = *rng.pick(&places);
                if at < modified.len() {
                    modified[at] = rng.next_u64() as u8;
                }
            }
            update_checksums(&mut modified);
            try_all(&modified);
        }
    }
}

/// Also if the few keys are bumped unevenly.
#[test]
fn built_filters_keep_their_target_fpr() {
    let (mut above, mut made) = (Vec::new(), 0);
    for keys in [1, 30, 300, 1030, 1500, 3000, 10_000, 30_000] {
        for rate in [0.6, 0.3, 0.07, 0.01, 1e-5] {
            for seed in 0..12 {
                let filter = StaticFilter::builder()
                    .fpr(rate)
                    .from_mixed_hashes(hashes(seed, keys))
                    .unwrap();
                made += 1;
                if filter.stats().estimated_fpr > rate {
                    above.push((keys, rate, filter.stats().estimated_fpr / rate));
                }
            }
        }
    }
    assert!(above.is_empty(), "{} of {made}: {above:?}", above.len());
}

/// A last layer has no cuts, and without columns no rows: the file size does not bound its segments.
#[test]
fn long_empty_layer_is_read_in_constant_time() {
    let mut file = files().remove(0);
    file.truncate(256);
    file.resize(4096 + 64, 0);
    let mut put = |at: usize, word: u64| file[at..at + 8].copy_from_slice(&word.to_le_bytes());
    put(24, 64); // data length
    put(32, 1 << 32); // no metadata; hash 1
    put(64, 0); // extent
    put(96, 0); // columns
    put(104, 1); // layers
    for (at, word) in [7, 1 << 30, 1 << 20, 0].into_iter().enumerate() {
        put(4096 + 8 * at, word); // seed, shards, segments, wide
    }
    update_checksums(&mut file);
    let (filter, _) = StaticFilter::read_from(&file[..]).unwrap();
    assert_eq!((filter.stats().estimated_fpr, filter.contains_mixed_hash(5)), (1.0, true));
}

#[test]
fn files_that_no_writer_creates_are_errors() {
    let filter = StaticFilter::builder().fpr(0.4).from_mixed_hashes(hashes(7, 1100)).unwrap();
    let file = file_of(&filter, "");
    // Cuts and rows do not fill their last cache lines: the rest must be zero.
    let layers = filter.stats().parameters.iter().find(|(name, _)| *name == "layers").unwrap().1;
    let cuts_end = 4096 + 64 * (layers as usize + 1);
    for at in [cuts_end - 1, file.len() - 1, 4096 + 63] {
        let mut modified = file.clone();
        assert_eq!(modified[at], 0, "{at}");
        modified[at] = 1;
        update_checksums(&mut modified);
        assert!(StaticFilter::read_from(&modified[..]).is_err(), "{at}");
    }
    // Too many columns, probes, lanes, an additional parameter.
    for (at, value) in [(96, 32), (38, 1), (40, 8), (112, 1), (104, 17)] {
        let mut modified = file.clone();
        modified[at] = value;
        update_checksums(&mut modified);
        assert_eq!(try_all(&modified), (false, false), "{at}");
    }
}

// ---- Sizes --------------------------------------------------------------------------------------

/// Queries both ends of a sparse file much larger than 2^32 bytes.
#[test]
#[expect(unsafe_code, reason = "mapping is the caller's promise")]
fn rows_beyond_32_bits_are_found() {
    let (columns, segments) = (7u64, 1024u64);
    // 2^32 bits, 2^32 bytes and 2^36 bytes of rows.
    for shards in [1u64 << 29, 1 << 32, 1 << 36].map(|bytes| bytes / (4 * columns * segments) + 1) {
        let wide = shards * segments / 2;
        let rows = shards * segments * columns + wide;
        let length = 64 + (4 * rows).div_ceil(64) * 64;
        let mut file =
            file_of(&StaticFilter::builder().fpr(0.01).from_mixed_hashes(vec![1]).unwrap(), "");
        file.truncate(4096);
        let mut put = |at: usize, word: u64| file[at..at + 8].copy_from_slice(&word.to_le_bytes());
        put(24, length);
        put(64, rows);
        put(96, columns);
        put(104, 1);
        let sum = xxh3_64(&file[..248]);
        file[248..256].copy_from_slice(&sum.to_le_bytes());
        file.extend([3, shards, segments, wide].map(u64::to_le_bytes).concat());
        let naive = Naive::new(&file);
        // Keys in all shards, including the first and the last.
        let mut queries = hashes(11, 20_000);
        queries.sort_by_key(|&hash| naive.first_row(hash));
        let queries: Vec<u64> = queries.into_iter().rev().step_by(199).collect();
        let scratch = Scratch::new();
        let path = scratch.write("huge.petal", &file);
        let mut sparse = File::options().read(true).write(true).open(&path).unwrap();
        sparse.set_len(4096 + length).unwrap();
        // All bits are 0, so all sums are 0. A bit in the first row of a key's equation makes its sum
        // 1.
        let mut last = 0;
        for (byte, bit) in queries.iter().flat_map(|&hash| naive.ones_wanted(hash)) {
            last = last.max(byte);
            let mut old = [0];
            sparse.seek(SeekFrom::Start(byte)).unwrap();
            sparse.read_exact(&mut old).unwrap();
            sparse.seek(SeekFrom::Start(byte)).unwrap();
            sparse.write_all(&[old[0] | 1 << bit]).unwrap();
        }
        assert!(last > length - length / 1000);
        // SAFETY: no other process uses this file, and it is not modified from here on.
        let map = unsafe { Mapped::open(&sparse) }.unwrap();
        let filter = StaticFilter::open_mapped(map).unwrap();
        assert_eq!(filter.size_bytes(), length);
        let mut found = BatchResults::new();
        filter.contains_mixed_hashes(&queries, &mut found);
        assert_eq!(found.count_ones(), queries.len() as u64);
        assert!(queries.iter().all(|&hash| filter.contains_mixed_hash(hash)));
        let others = hashes(14, 500);
        filter.contains_mixed_hashes(&others, &mut found);
        assert!(found.count_ones() < 30);
    }
}

/// The same for slots of a fuse filter.
#[test]
#[expect(unsafe_code, reason = "mapping is the caller's promise")]
fn slots_beyond_32_bits_are_found() {
    let (bits, log_segment, segments) = (8u64, 11u64, 130u64);
    let stride = segments << log_segment;
    // More than 2^32 slots, and so more than 2^32 bytes and bits. Few places are read: each takes memory.
    let shards = ((1u64 << 36) / stride).next_power_of_two();
    // Slots of bytes, and wide ones.
    for wide in [0, shards * segments / 2 + 1] {
        let slots = shards * stride;
        let words = (slots * bits + (wide << log_segment)).div_ceil(64) + shards;
        let length = words.div_ceil(8) * 64;
        let builder = StaticFilter::builder().fpr(0.01).fuse(true);
        let mut file = file_of(&builder.from_mixed_hashes(vec![1]).unwrap(), "");
        file.truncate(4096);
        let fields = [(24, length), (64, slots), (96, bits), (104, log_segment)];
        let more = [(112, shards), (120, segments), (128, wide)];
        for (at, word) in fields.into_iter().chain(more) {
            file[at..at + 8].copy_from_slice(&u64::to_le_bytes(word));
        }
        let sum = xxh3_64(&file[..248]);
        file[248..256].copy_from_slice(&sum.to_le_bytes());
        let naive = model::static_fuse::Naive::new(&file);
        let mut queries = hashes(11, 20_000);
        queries.sort_by_key(|&hash| naive.slots_of(hash).slots[0]);
        let queries: Vec<u64> = queries.into_iter().rev().step_by(999).collect();
        let scratch = Scratch::new();
        let path = scratch.write("huge.petal", &file);
        let mut sparse = File::options().read(true).write(true).open(&path).unwrap();
        sparse.set_len(4096 + length).unwrap();
        // All slots are 0; the first slot of a key becomes its fingerprint.
        let mut last = 0;
        for key in queries.iter().map(|&hash| naive.slots_of(hash)) {
            let bit = naive.bit_of(key.slots[0]);
            let value = key.fingerprint & ((1 << key.bits) - 1);
            last = last.max(bit / 8);
            let at = SeekFrom::Start(4096 + bit / 8);
            let mut old = [0; 2];
            sparse.seek(at).unwrap();
            sparse.read_exact(&mut old).unwrap();
            let new = u16::from_le_bytes(old) | (value << (bit % 8)) as u16;
            sparse.seek(at).unwrap();
            sparse.write_all(&new.to_le_bytes()).unwrap();
        }
        assert!(last > length - length / 100);
        // SAFETY: no other process uses this file, and it is not modified from here on.
        let map = unsafe { Mapped::open(&sparse) }.unwrap();
        let filter = StaticFilter::open_mapped(map).unwrap();
        assert_eq!(filter.size_bytes(), length);
        let mut found = BatchResults::new();
        filter.contains_mixed_hashes(&queries, &mut found);
        assert_eq!(found.count_ones(), queries.len() as u64);
        assert!(queries.iter().all(|&hash| filter.contains_mixed_hash(hash)));
        filter.contains_mixed_hashes(&hashes(14, 40), &mut found);
        assert!(found.count_ones() < 6);
    }
}

#[test]
fn memory_usage_is_the_sum_of_the_parts() {
    for keys in [0, 1, 1000, 100_000] {
        let filter = StaticFilter::builder().fpr(0.01).from_mixed_hashes(hashes(12, keys)).unwrap();
        let stores = filter.size_bytes();
        let used = filter.memory_usage();
        assert!(
            used >= stores.saturating_sub(64 * 16) && used < stores + 2048 + 4096,
            "{keys}: {used}"
        );
        let copy = filter.try_clone().unwrap();
        assert!(copy == filter);
    }
}

// ---- Recorded files -----------------------------------------------------------------------------------

/// Compares filters with every kind of layer with recorded checksums.
#[test]
fn file_checksums_are_unchanged() {
    let sums: Vec<u64> = [(0, 0.01), (1, 0.01), (100, 0.03), (3000, 0.01), (80_000, 1e-3)]
        .into_iter()
        .map(|(keys, rate)| {
            let filter =
                StaticFilter::builder().fpr(rate).from_mixed_hashes(hashes(13, keys)).unwrap();
            xxh3_64(&file_of(&filter, ""))
        })
        .collect();
    assert_eq!(sums, GOLDEN, "{sums:#x?}");
}

const GOLDEN: [u64; 5] = [
    0x950e_9558_ad46_bccf,
    0x0e9d_6d77_0192_d4ba,
    0xb706_b91d_c3c2_32fc,
    0xd083_504c_8ea1_47ff,
    0xdc5b_3930_5517_3b6a,
];
