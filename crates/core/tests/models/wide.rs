//! Random operations on wide filters compared with two naive filters, one on each word.

use std::collections::HashSet;

use petal::{BatchResults, Borrowed, HashSpec, Membership as _, Persist as _, WideBloomFilter};

use crate::naive::{self, HeaderFields, Naive};

/// Two filters on the words of a hash.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) low: Naive,
    pub(crate) high: Naive,
}

impl Pair {
    pub(crate) fn new(blocks: u64, lanes: u64, probes: u64) -> Self {
        let half = Naive::blocked(blocks, lanes, probes);
        Self { low: half.clone(), high: half }
    }

    pub(crate) fn insert(&mut self, [low, high]: [u64; 2]) -> bool {
        let new = !self.contains([low, high]);
        self.low.insert(low);
        self.high.insert(high);
        new
    }

    pub(crate) fn contains(&self, [low, high]: [u64; 2]) -> bool {
        self.low.contains(low) && self.high.contains(high)
    }

    /// Returns the file by docs/reference/format.md: one header and both parts.
    pub(crate) fn to_file(&self, fields: &HeaderFields) -> Vec<u8> {
        let data = [&self.low.data[..], &self.high.data].concat();
        Naive { kind: 10, data, ..self.low }.to_file(fields)
    }
}

/// Bytes aligned to a cache line.
pub(crate) fn aligned<T>(file: &[u8], look: impl FnOnce(&[u8]) -> T) -> T {
    let mut buffer = vec![0; file.len() + 64];
    let start = buffer.as_ptr().align_offset(64);
    buffer[start..start + file.len()].copy_from_slice(file);
    look(&buffer[start..start + file.len()])
}

/// Numbers decoded from bytes; zeros after the end.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u64 {
        let (first, rest) =
            self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first.into()
    }

    /// Few words, so that different keys have common words.
    fn hash(&mut self) -> [u64; 2] {
        [self.byte(), self.byte()].map(|byte| match byte {
            0 => 0,
            1 => u64::MAX,
            byte => (byte % 100).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        })
    }

    fn hashes(&mut self) -> Vec<[u64; 2]> {
        // Sometimes more than a chunk of a batch.
        let count = match self.byte() {
            byte @ 0..250 => byte % 20,
            byte => 2040 + byte,
        };
        (0..count).map(|_| self.hash()).collect()
    }
}

struct Run {
    filter: WideBloomFilter,
    pair: Pair,
    fields: HeaderFields,
    members: HashSet<[u64; 2]>,
}

/// Decodes a filter and operations from bytes, and compares filter and model after each.
pub(crate) fn drive(bytes: &[u8]) {
    let mut source = Source(bytes);
    let lanes = 8 << (source.byte() % 2);
    let pair = Pair::new(1 + source.byte() % 32, lanes, 1 + source.byte() % lanes);
    let keyed = source.byte() % 2 == 1;
    let spec = if keyed { HashSpec::wide_keyed([7; 16]) } else { HashSpec::wide(7) };
    let fields = HeaderFields { hash: spec.id(), seed: spec.seed(), ..HeaderFields::none() };
    let filter = read(&pair, &fields);
    let mut run = Run { filter, pair, fields, members: HashSet::new() };
    while !source.0.is_empty() {
        run.step(&mut source);
        run.compare();
    }
}

fn read(pair: &Pair, fields: &HeaderFields) -> WideBloomFilter {
    WideBloomFilter::read_from(&pair.to_file(fields)[..]).expect("a valid file").0
}

impl Run {
    fn step(&mut self, source: &mut Source<'_>) {
        let mut results = BatchResults::new();
        match source.byte() % 12 {
            0 => {
                self.filter.clear();
                let Naive { extent, lanes, probes, .. } = self.pair.low;
                self.pair = Pair::new(extent, lanes, probes);
                self.members.clear();
                self.fields.inserted = 0;
            }
            1 => self.put_together(source, true),
            2 => self.put_together(source, false),
            3 => {
                let key: Vec<u8> = (0..source.byte() % 30).map(|_| source.byte() as u8).collect();
                let hash = naive::hash::hash_wide(&self.fields, &key);
                assert_eq!(self.filter.hash_spec().hash_wide(&key), hash);
                let new = self.filter.insert(&key[..]);
                self.expect_insert(hash, new);
                assert!(self.filter.contains(&key[..]));
            }
            4 | 5 => {
                let hashes = source.hashes();
                self.filter.insert_mixed_hashes(hashes.as_flattened(), &mut results);
                assert_eq!(results.len(), hashes.len());
                for (at, hash) in hashes.into_iter().enumerate() {
                    self.expect_insert(hash, results.get(at));
                }
            }
            6 => {
                let hashes = source.hashes();
                // An incomplete hash is ignored.
                let words = [hashes.as_flattened(), &[1]].concat();
                self.filter.contains_mixed_hashes(&words, &mut results);
                assert_eq!(results.len(), hashes.len());
                for (at, &hash) in hashes.iter().enumerate() {
                    assert_eq!(results.get(at), self.pair.contains(hash), "{hash:x?}");
                }
            }
            7 => {
                let keys: Vec<u64> = (0..source.byte()).collect();
                let before = self.filter.try_clone().expect("memory");
                self.filter.insert_batch(&keys, &mut results);
                let mut found = BatchResults::new();
                before.contains_batch(&keys, &mut found);
                for (at, key) in keys.iter().enumerate() {
                    let hash = naive::hash::hash_wide(&self.fields, &key.to_le_bytes());
                    assert!(results.get(at) || before.contains(key) || self.pair.contains(hash));
                    assert_eq!(found.get(at), before.contains(key));
                    self.expect_insert(hash, results.get(at));
                }
            }
            _ => {
                let hash = source.hash();
                assert_eq!(self.filter.contains_mixed_hash(hash), self.pair.contains(hash));
                let new = self.filter.insert_mixed_hash(hash);
                self.expect_insert(hash, new);
            }
        }
    }

    fn expect_insert(&mut self, hash: [u64; 2], new: bool) {
        assert_eq!(self.pair.insert(hash), new, "{hash:x?}");
        self.fields.inserted += u64::from(new);
        // A new key was not a member.
        assert!(self.members.insert(hash) || !new);
    }

    fn put_together(&mut self, source: &mut Source<'_>, union: bool) {
        let Naive { extent, lanes, probes, .. } = self.pair.low;
        let mut other = Pair::new(extent, lanes, probes);
        let hashes = source.hashes();
        hashes.iter().for_each(|&hash| _ = other.insert(hash));
        let theirs = read(&other, &self.fields);
        let combine = |ours: &mut Naive, theirs: &Naive| {
            for (ours, theirs) in ours.data.iter_mut().zip(&theirs.data) {
                *ours = if union { *ours | theirs } else { *ours & theirs };
            }
        };
        combine(&mut self.pair.low, &other.low);
        combine(&mut self.pair.high, &other.high);
        if union {
            self.filter.union(&theirs).expect("compatible filters");
            self.members.extend(hashes);
        } else {
            self.filter.intersect(&theirs).expect("compatible filters");
            self.members.retain(|hash| hashes.contains(hash));
        }
        // tests/algebra.rs tests the estimate of the common keys.
        let (estimate, inserted) = (self.filter.estimated_len(), self.filter.inserted());
        let max = if estimate.is_finite() { estimate + 1.0 } else { 1e12 };
        assert!(inserted as f64 <= max, "{inserted} of {estimate}");
        assert!(!union || estimate.is_infinite() || inserted as f64 >= estimate - 1.0);
        self.fields.inserted = inserted;
    }

    /// Compares the filter, its file, and the filter read from it with the model.
    fn compare(&self) {
        assert!(
            self.members.iter().all(|&hash| self.filter.contains_mixed_hash(hash)),
            "lost a key"
        );
        assert_eq!(self.filter.inserted(), self.fields.inserted);
        let mut file = Vec::new();
        self.filter.write_to(&mut file, &self.fields.metadata).expect("memory is writable");
        assert!(
            file == self.pair.to_file(&self.fields),
            "the file differs from docs/reference/format.md"
        );
        let (again, _) = WideBloomFilter::read_from(&file[..]).expect("a valid file");
        assert!(again == self.filter && again.inserted() == self.filter.inserted());
        aligned(&file, |file| {
            let borrowed = WideBloomFilter::<Borrowed<'_>>::from_bytes(file).expect("a valid file");
            assert!(
                borrowed == self.filter && borrowed.estimated_fpr() == self.filter.estimated_fpr()
            );
            assert!(self.members.iter().all(|&hash| borrowed.contains_mixed_hash(hash)));
        });
    }
}
