//! Filters that are asked in parts: the same answers as in memory, few bytes, hostile sources.

use std::cell::Cell;
use std::ops::Range;

use petal::embed::{RangeSource, RemoteFilter};
use petal::{
    AnyFilter, BatchResults, BloomFilter, ClassicBloomFilter, FilterCascade, Membership, Result,
    StaticFilter,
};
use petal_testkit::rng::Rng;

use crate::naive::update_checksums;

/// A file in memory, which counts what is read.
struct File {
    bytes: Vec<u8>,
    reads: Cell<u64>,
    read_bytes: Cell<u64>,
}

impl File {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, reads: Cell::new(0), read_bytes: Cell::new(0) }
    }

    fn of(filter: &dyn Membership, metadata: &str) -> Self {
        let mut bytes = Vec::new();
        filter.write_to(&mut bytes, metadata).unwrap();
        Self::new(bytes)
    }
}

impl RangeSource for File {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        self.reads.set(self.reads.get() + 1);
        let mut bytes = Vec::new();
        for range in ranges {
            bytes.extend_from_slice(&self.bytes[range.start as usize..range.end as usize]);
        }
        self.read_bytes.set(self.read_bytes.get() + bytes.len() as u64);
        Ok(bytes)
    }
}

fn hashes(seed: u64, len: usize) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64()).collect()
}

/// Filters of these keys, with the most bytes and reads that one key may take after opening.
fn filters(keys: &[u64], others: &[u64]) -> Vec<(AnyFilter, u64, u64)> {
    let mut bloom = BloomFilter::with_fpr(keys.len() as u64, 0.01).unwrap();
    let mut classic = ClassicBloomFilter::with_fpr(keys.len() as u64, 0.01).unwrap();
    for &key in keys {
        bloom.insert_mixed_hash(key);
        classic.insert_mixed_hash(key);
    }
    let narrow = StaticFilter::builder().fpr(0.01).from_mixed_hashes(keys.to_vec()).unwrap();
    let wide = StaticFilter::builder().fpr(1e-8).from_mixed_hashes(keys.to_vec()).unwrap();
    let cascade = FilterCascade::builder().fpr(0.01).from_mixed_hashes(keys, others).unwrap();
    vec![
        (bloom.into(), 64, 1),
        (classic.into(), 2000, 1),
        (narrow.into(), 400, 6),
        (wide.into(), 1500, 6),
        (cascade.into(), 800, 12),
    ]
}

#[test]
fn answers_are_the_same_as_in_memory() {
    for count in [0, 1, 900, 60_000] {
        let (keys, others) = (hashes(1, count), hashes(2, 4 * count));
        for (filter, max_bytes, max_reads) in filters(&keys, &others) {
            let filter = filter.as_dyn();
            let name = filter.filter_type();
            let metadata = "m".repeat(count);
            let file = File::of(filter, &metadata);
            let remote = RemoteFilter::open(&file, None).unwrap();
            assert_eq!(remote.metadata(), metadata);
            assert!(file.reads.get() <= 5 && remote.hash_spec() == filter.hash_spec());
            let mut asked = keys.clone();
            asked.extend(&others[..count.min(others.len())]);
            asked.extend(hashes(3, 2000));
            let (mut found, mut expected) = (BatchResults::new(), BatchResults::new());
            for asked in asked.chunks(5000) {
                remote.contains_mixed_hashes(&file, asked, &mut found).unwrap();
                filter.contains_mixed_hashes(asked, &mut expected);
                assert!((0..asked.len()).all(|at| found.get(at) == expected.get(at)), "{name}");
            }
            for hash in asked.iter().step_by(97) {
                file.reads.set(0);
                file.read_bytes.set(0);
                remote.contains_mixed_hashes(&file, &[*hash], &mut found).unwrap();
                assert!(file.reads.get() <= max_reads, "{name}: {}", file.reads.get());
                let bytes = file.read_bytes.get();
                assert!(bytes <= max_bytes, "{name}: {bytes} bytes");
            }
        }
    }
}

#[test]
fn other_types_and_damaged_files_are_errors() {
    let keys = hashes(1, 3000);
    let fuse = StaticFilter::builder().fpr(0.01).fuse(true).from_mixed_hashes(keys.clone());
    let error = RemoteFilter::open(&File::of(&fuse.unwrap(), "{}"), None).unwrap_err();
    assert!(error.is_unsupported(), "{error}");
    let mut rng = Rng::new(4);
    for (filter, ..) in filters(&keys, &hashes(2, 9000)) {
        let whole = File::of(filter.as_dyn(), "{}").bytes;
        for length in [0, 5, 255, 256, 4000, 4096, whole.len() - 1] {
            assert!(RemoteFilter::open(&File::new(whole[..length].to_vec()), None).is_err());
        }
        // With valid checksums, a modified file is an error or can be queried.
        for _ in 0..500 {
            let mut bytes = whole.clone();
            for _ in 0..1 + rng.below(3) {
                let near = if rng.one_in(2) { 32 + rng.below(208) } else { 4096 + rng.below(512) };
                let at = near.min(bytes.len() - 1);
                bytes[at] = *rng.pick(&[0, 1, 2, 0x7f, 0x80, 0xff]);
            }
            update_checksums(&mut bytes);
            let file = File::new(bytes);
            let Ok(remote) = RemoteFilter::open(&file, None) else { continue };
            let mut found = BatchResults::new();
            remote.contains_mixed_hashes(&file, &hashes(7, 50), &mut found).unwrap();
        }
    }
}
