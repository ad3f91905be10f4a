//! A simple implementation of layout 8 of docs/reference/format-static.md, and static filters of both layouts compared
//! with such implementations and with their keys.
#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

#[path = "static_fuse.rs"]
pub(crate) mod static_fuse;

use petal::{BatchResults, Borrowed, Builder, FilterType, HashSpec, Membership as _, StaticFilter};

/// A file of layout 8, queried by the document, without checks.
pub(crate) struct Naive<'a> {
    file: &'a [u8],
    columns: u64,
    layers: Vec<Layer>,
}

/// The numbers of a layer; offsets in bytes from the start of the file.
struct Layer {
    seed: u64,
    shards: u64,
    segments: u64,
    wide: u64,
    cuts_at: u64,
    /// Bytes of cuts of a shard.
    cuts_each: u64,
    rows_at: u64,
    last: bool,
}

impl<'a> Naive<'a> {
    pub(crate) fn new(file: &'a [u8]) -> Self {
        let word = |at: u64| {
            (0..8).rev().fold(0, |word, byte| word << 8 | u64::from(file[(at + byte) as usize]))
        };
        let (columns, count) = (word(96), word(104));
        let directory = word(16);
        let (mut layers, mut cuts) = (Vec::new(), 0);
        for number in 0..count {
            let at = directory + 64 * number;
            let (seed, shards, segments, wide) =
                (word(at), word(at + 8), word(at + 16), word(at + 24));
            let last = number + 1 == count;
            let buckets = (32 * (segments - 1)).div_ceil(64);
            let cuts_each = if last { 0 } else { 4 * buckets.div_ceil(16) };
            layers.push(Layer {
                seed,
                shards,
                segments,
                wide,
                cuts_at: cuts,
                cuts_each,
                rows_at: 0,
                last,
            });
            cuts += shards * cuts_each;
        }
        let cuts_at = directory + 64 * count;
        let mut rows_at = cuts_at + cuts.div_ceil(64) * 64;
        for layer in &mut layers {
            layer.cuts_at += cuts_at;
            layer.rows_at = rows_at;
            rows_at += 4 * (layer.shards * layer.segments * columns + layer.wide);
        }
        Self { file, columns, layers }
    }

    /// A bit of the file, counted from a byte on.
    fn bit(&self, from: u64, bit: u64) -> u64 {
        u64::from(self.file[(from + bit / 8) as usize]) >> (bit % 8) & 1
    }

    /// A row's bit in a column.
    fn row(&self, layer: &Layer, row: u64, column: u64) -> u64 {
        let segment = row / 32;
        let before = segment * self.columns + segment.min(layer.wide);
        self.bit(layer.rows_at, 32 * (before + column) + row % 32)
    }

    /// Returns the hash in the first layer, and the first row of its equation.
    fn first_place(&self, hash: u64) -> (u64, u64) {
        let layer = &self.layers[0];
        let g = remix(hash, layer.seed);
        let start = part(times(g, layer.shards), 32 * (layer.segments - 1));
        (g, 32 * layer.segments * part(g, layer.shards) + start)
    }

    pub(crate) fn first_row(&self, hash: u64) -> u64 {
        self.first_place(hash).1
    }

    /// In the first layer, the bits of a hash's first row that its fingerprint has ones for: byte
    /// in the file, and bit in the byte.
    pub(crate) fn ones_wanted(&self, hash: u64) -> Vec<(u64, u64)> {
        let layer = &self.layers[0];
        let (g, row) = self.first_place(hash);
        let segment = row / 32;
        let columns = self.columns + u64::from(segment + 1 < layer.wide);
        let before = segment * self.columns + segment.min(layer.wide);
        (0..columns)
            .filter(|column| equation(g) >> (32 + column) & 1 == 1)
            .map(|column| 32 * (before + column) + row % 32)
            .map(|bit| (layer.rows_at + bit / 8, bit % 8))
            .collect()
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.query(hash).0
    }

    /// Returns whether the filter contains a hash, and the numbers by which it decides: the layer, counted from 0, the
    /// equation's first row in the layer, the equation, the fingerprint, and the columns that are compared.
    pub(crate) fn query(&self, hash: u64) -> (bool, Vec<u64>) {
        let mut g = hash;
        for (number, layer) in self.layers.iter().enumerate() {
            g = remix(g, layer.seed);
            let shard = part(g, layer.shards);
            let start = part(times(g, layer.shards), 32 * (layer.segments - 1));
            if !layer.last {
                let cut = layer.cuts_at + shard * layer.cuts_each;
                let bucket = start / 64;
                let cut = self.bit(cut, 2 * bucket) + 2 * self.bit(cut, 2 * bucket + 1);
                if start % 64 < [0, 8, 20, 64][cut as usize] {
                    continue;
                }
            }
            let equation = equation(g);
            let first = 32 * layer.segments * shard + start;
            let columns = self.columns + u64::from(first / 32 + 1 < layer.wide);
            let found = (0..columns).all(|column| {
                let named = (0..32).filter(|i| equation >> i & 1 == 1);
                let sum: u64 = named.map(|i| self.row(layer, first + i, column)).sum();
                sum % 2 == equation >> (32 + column) & 1
            });
            let numbers =
                vec![number as u64, first, equation & 0xffff_ffff, equation >> 32, columns];
            return (found, numbers);
        }
        (false, vec![])
    }
}

fn remix(hash: u64, seed: u64) -> u64 {
    let mut g = hash ^ times(seed.wrapping_add(1), 0x9fb2_1c65_1e98_df25);
    g = times(g ^ g >> 32, 0x9e37_79b9_7f4a_7c15);
    g = times(g ^ g >> 29, 0x9fb2_1c65_1e98_df25);
    g ^ g >> 32
}

fn equation(g: u64) -> u64 {
    let product = u128::from(g) * 0x9e37_79b9_7f4a_7c15;
    (product / (1 << 64)) as u64 ^ product as u64 | 1
}

fn part(x: u64, n: u64) -> u64 {
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}

fn times(a: u64, b: u64) -> u64 {
    a.wrapping_mul(b)
}

/// Bytes aligned to a cache line.
pub(crate) struct Aligned {
    buffer: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut buffer = vec![0; bytes.len() + 64];
        let start = buffer.as_ptr().align_offset(64);
        buffer[start..start + bytes.len()].copy_from_slice(bytes);
        Self { buffer, start, length: bytes.len() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.length]
    }
}

/// The file of a filter.
pub(crate) fn file_of(filter: &StaticFilter, metadata: &str) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, metadata).expect("memory is writable");
    file
}

/// Numbers decoded from bytes; zeros after the end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.next()))
    }
}

/// Builds filters of sets decoded from bytes, and compares the results of every way to query them
/// with the set and the document.
pub(crate) fn drive(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let rates = [0.9, 0.5, 0.3, 0.125, 0.1, 0.01, 0.004, 1e-3, 1e-4, 3e-6, 1e-9];
    let rate = rates[usize::from(bytes.next()) % rates.len()];
    let keyed = bytes.next() % 4 == 0;
    let hash = if keyed { HashSpec::keyed([bytes.next(); 16]) } else { HashSpec::rapid(0) };
    let threads = NonZeroUsize::new(1 + usize::from(bytes.next()) % 3).expect("not 0");
    let builder = StaticFilter::builder().fpr(rate).hash(hash).threads(threads);
    // Hashes: random, consecutive, or repeated.
    let mut hashes = Vec::new();
    for _ in 0..bytes.next() % 4 {
        let (kind, first) = (bytes.next(), bytes.word());
        let length = u64::from(bytes.next()) * if kind & 64 == 0 { 1 } else { 40 };
        let stretch = if kind & 1 == 0 { 1 } else { 0x9e37_79b9_7f4a_7c15 };
        let made = |at: u64| first.wrapping_add(at.wrapping_mul(stretch));
        hashes.extend((0..length).map(made));
        if kind & 2 != 0 {
            hashes.extend_from_within(..hashes.len() / 2);
        }
    }
    let set: BTreeSet<u64> = hashes.iter().copied().collect();
    let near = set.iter().map(|hash| hash ^ 1).take(300);
    let others = (0..300).map(|_| bytes.word().wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut queries: Vec<u64> = set.iter().copied().collect();
    queries.extend(near.chain(others).chain([0, u64::MAX]));
    let metadata = if keyed { "{}" } else { "" };
    compare(builder.fuse(false), hashes.clone(), &set, &queries, metadata);
    compare(builder.fuse(true), hashes, &set, &queries, metadata);
}

/// Builds the filter of a set, and compares the results of every way to query it with the set and the document.
fn compare(
    builder: Builder<StaticFilter>,
    hashes: Vec<u64>,
    set: &BTreeSet<u64>,
    queries: &[u64],
    metadata: &str,
) {
    let filter = builder.from_mixed_hashes(hashes).expect("a set of any kind");
    assert_eq!((filter.len(), filter.is_empty()), (set.len() as u64, set.is_empty()));

    // Only the set matters, not its order.
    let sorted =
        builder.threads(NonZeroUsize::MIN).from_mixed_hashes(set.iter().copied().collect());
    let sorted = sorted.expect("the same set");
    assert!(sorted == filter);

    let file = file_of(&filter, metadata);
    assert!(file == file_of(&sorted, metadata));
    let (read, text) = StaticFilter::read_from(&file[..]).expect("just written");
    assert!(
        read == filter
            && text == metadata
            && read.stats().estimated_fpr == filter.stats().estimated_fpr
    );
    let aligned = Aligned::new(&file);
    let borrowed = StaticFilter::<Borrowed<'_>>::from_bytes(aligned.bytes()).expect("just written");
    assert!(borrowed == filter && petal_is_sound(&file));
    let naive: Box<dyn Fn(u64) -> bool + '_> = if filter.filter_type() == FilterType::StaticFuse {
        let naive = static_fuse::Naive::new(&file);
        Box::new(move |hash| naive.contains(hash))
    } else {
        let naive = Naive::new(&file);
        Box::new(move |hash| naive.contains(hash))
    };
    let (mut found, mut found_lent) = (BatchResults::new(), BatchResults::new());
    filter.contains_mixed_hashes(queries, &mut found);
    borrowed.contains_mixed_hashes(queries, &mut found_lent);
    assert_eq!(found, found_lent);
    for (at, &hash) in queries.iter().enumerate() {
        let answer = naive(hash);
        assert!(answer || !set.contains(&hash), "absent: {hash:#x}");
        assert_eq!(found.get(at), answer, "{hash:#x} in a batch");
        assert_eq!(filter.contains_mixed_hash(hash), answer, "{hash:#x}");
        assert_eq!(read.contains_mixed_hash(hash), answer, "{hash:#x} after reading");
    }
}

/// Reading verifies every byte.
fn petal_is_sound(file: &[u8]) -> bool {
    StaticFilter::read_from(file).is_ok()
}
