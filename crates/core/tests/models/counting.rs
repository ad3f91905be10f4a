//! Counting filters compared with an array of counters: random operations, decoded from bytes, on two
//! filters of one layout. After each step the filter's file equals that of the array by
//! docs/reference/format-bloom.md, and no key is lost.
//!
//! Used by tests and the fuzzer. `crate::naive` has the positions.

use std::collections::HashMap;

use petal::embed::{BlockedLayout, ClassicLayout, Layout};
use petal::{BatchResults, Borrowed, CountingFilter, HashSpec, Kernel, Key, Membership as _};

use crate::naive::{HeaderFields, Naive, update_checksums};

/// Counters by docs/reference/format-bloom.md.
#[derive(Clone)]
struct Model {
    /// The positions; its data are not used.
    layout: Naive,
    fields: HeaderFields,
    width: u32,
    counts: Vec<u64>,
    inserted: u64,
    /// How often each hash is present, if only present hashes were removed.
    members: HashMap<u64, u64>,
}

impl Model {
    fn max_count(&self) -> u64 {
        2u64.pow(self.width - 1)
    }

    /// Returns each position of a hash once.
    fn places(&self, hash: u64) -> Vec<usize> {
        let mut places: Vec<usize> =
            self.layout.positions(hash).into_iter().map(|place| place as usize).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    fn count(&self, hash: u64) -> u64 {
        self.places(hash).into_iter().map(|place| self.counts[place]).min().unwrap()
    }

    fn insert(&mut self, hash: u64) -> bool {
        let new = self.count(hash) == 0;
        for place in self.places(hash) {
            self.counts[place] = (self.counts[place] + 1).min(self.max_count());
        }
        *self.members.entry(hash).or_default() += 1;
        self.inserted += u64::from(new);
        new
    }

    fn remove(&mut self, hash: u64) -> bool {
        if self.count(hash) == 0 {
            return false;
        }
        for place in self.places(hash) {
            if self.counts[place] < self.max_count() {
                self.counts[place] -= 1;
            }
        }
        match self.members.get_mut(&hash) {
            Some(count) if *count > 0 => *count -= 1,
            // A false positive: from here on others may be lost.
            _ => self.members.clear(),
        }
        if self.count(hash) == 0 {
            self.inserted = self.inserted.saturating_sub(1);
        }
        true
    }

    fn union(&mut self, other: &Self) {
        let max_count = self.max_count();
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours = (*ours + theirs).min(max_count);
        }
        for (&hash, &count) in &other.members {
            *self.members.entry(hash).or_default() += count;
        }
    }

    fn clear(&mut self) {
        self.counts.fill(0);
        self.inserted = 0;
        self.members.clear();
    }

    /// The plain filter of the counters that are not zero.
    fn frozen(&self) -> Naive {
        let mut plain = self.layout.clone();
        for (place, _) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            plain.data[place / 8] |= 1 << (place % 8);
        }
        plain
    }

    /// The file: bits, then for each line of them its planes.
    fn file(&self, metadata: &str) -> Vec<u8> {
        let mut file = self.frozen();
        let depth = self.width as usize - 1;
        let mut planes = vec![0u8; file.data.len() * depth];
        for (place, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            for plane in (0..depth).filter(|plane| (count - 1) >> plane & 1 == 1) {
                let line = place / 512 * depth + plane;
                planes[line * 64 + place % 512 / 8] |= 1 << (place % 8);
            }
        }
        file.kind += 2;
        file.data.extend(planes);
        let metadata = metadata.to_owned();
        let fields = HeaderFields { inserted: self.inserted, metadata, ..self.fields.clone() };
        let mut bytes = file.to_file(&fields);
        bytes[96] = self.width as u8;
        update_checksums(&mut bytes);
        bytes
    }
}

/// Numbers decoded from bytes; zeros after the end.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn below(&mut self, end: u64) -> u64 {
        let number = u64::from(self.byte()) << 8 | u64::from(self.byte());
        number % end
    }

    /// Returns one of 64 repeated hashes, or any hash, including the first and the last.
    fn hash(&mut self) -> u64 {
        match self.byte() {
            0 => 0,
            1 => u64::MAX,
            few @ 2..66 => u64::from(few).wrapping_mul(0x9e6c_63d0_876a_68ef),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    fn hashes(&mut self) -> Vec<u64> {
        let count = self.below(200) as usize;
        (0..count).map(|_| self.hash()).collect()
    }
}

/// Decodes and runs operations.
///
/// # Panics
/// If the filter and the model differ.
pub(crate) fn drive(bytes: &[u8]) {
    let mut source = Source(bytes);
    let source = &mut source;
    let (layout, extent, probes) = (source.byte(), source.below(3000), u64::from(source.byte()));
    let layout = match layout % 3 {
        0 => Naive::blocked(1 + extent % 6, 8, 1 + probes % 8),
        1 => Naive::blocked(1 + extent % 4, 16, 1 + probes % 16),
        _ => Naive::classic(1 + extent, 1 + probes % 64),
    };
    let fields = match source.byte() % 2 {
        0 => HeaderFields::none(),
        _ => HeaderFields {
            hash: 2,
            seed: [5; 16],
            planned: 7,
            target: 0.25,
            ..HeaderFields::none()
        },
    };
    let width = 2 + u32::from(source.byte()) % 7;
    let counts = vec![0; layout.data.len() * 8];
    let model = Model { layout, fields, width, counts, inserted: 0, members: HashMap::new() };
    if model.layout.kind == 1 {
        steps::<BlockedLayout>(source, model);
    } else {
        steps::<ClassicLayout>(source, model);
    }
}

/// Returns an empty filter with any available kernel.
fn empty<L: Layout>(source: &mut Source<'_>, model: &Model) -> CountingFilter<L> {
    let kernels: Vec<Kernel> =
        Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).collect();
    kernels[usize::from(source.byte()) % kernels.len()].force();
    CountingFilter::read_from(&model.file("")[..]).expect("a valid file").0
}

fn steps<L: Layout>(source: &mut Source<'_>, model: Model) {
    let mut filter = empty::<L>(source, &model);
    let mut other = empty::<L>(source, &model);
    let (mut ours, mut theirs) = (model.clone(), model);
    let spec: HashSpec = filter.hash_spec();
    let mut results = BatchResults::new();
    while !source.0.is_empty() {
        match source.byte() % 16 {
            0 | 1 => {
                let hash = source.hash();
                assert_eq!(filter.insert_mixed_hash(hash), ours.insert(hash));
            }
            2 => {
                let key = source.below(40);
                assert_eq!(filter.insert(&key), ours.insert(key.hash_with(&spec)));
                assert_eq!(filter.count(&key), ours.count(key.hash_with(&spec)));
                assert!(filter.contains(&key));
            }
            3 => {
                let key = source.below(40);
                assert_eq!(filter.remove(&key), ours.remove(key.hash_with(&spec)));
            }
            4 => {
                let hash = source.hash();
                assert_eq!(filter.remove_mixed_hash(hash), ours.remove(hash));
            }
            5 => {
                let hashes = source.hashes();
                filter.insert_mixed_hashes(&hashes, &mut results);
                same(&results, &hashes, |hash| ours.insert(hash));
            }
            6 => {
                let hashes = source.hashes();
                filter.remove_mixed_hashes(&hashes, &mut results);
                same(&results, &hashes, |hash| ours.remove(hash));
            }
            7 => {
                let keys: Vec<u128> = (0..source.below(150)).map(u128::from).collect();
                let hashes: Vec<u64> = keys.iter().map(|key| key.hash_with(&spec)).collect();
                if source.byte().is_multiple_of(2) {
                    filter.insert_batch(&keys, &mut results);
                    same(&results, &hashes, |hash| ours.insert(hash));
                } else {
                    filter.remove_batch(&keys, &mut results);
                    same(&results, &hashes, |hash| ours.remove(hash));
                }
            }
            8 | 9 => {
                // Only present keys: none is lost.
                let mut known: Vec<u64> = ours.members.keys().copied().collect();
                known.sort_unstable();
                if !known.is_empty() {
                    let hash = known[source.below(known.len() as u64) as usize];
                    assert_eq!(filter.remove_mixed_hash(hash), ours.remove(hash));
                }
            }
            10 => {
                let hashes = source.hashes();
                filter.contains_mixed_hashes(&hashes, &mut results);
                same(&results, &hashes, |hash| ours.count(hash) > 0);
                for &hash in &hashes {
                    assert_eq!(filter.count_mixed_hash(hash), ours.count(hash));
                    assert_eq!(filter.contains_mixed_hash(hash), ours.count(hash) > 0);
                }
            }
            11 => {
                std::mem::swap(&mut filter, &mut other);
                std::mem::swap(&mut ours, &mut theirs);
            }
            12 => {
                filter.union(&other).expect("one shape, hash and width");
                ours.union(&theirs);
                ours.inserted = estimated(filter.stats().estimated_len, filter.inserted());
            }
            13 if source.byte().is_multiple_of(4) => {
                filter.clear();
                ours.clear();
            }
            14 => filter = filter.try_clone().expect("small"),
            _ => {
                let frozen = filter.freeze().expect("small");
                assert!(frozen == *filter.as_filter());
                let mut file = Vec::new();
                frozen.write_to(&mut file, "").expect("memory is writable");
                let fields = HeaderFields { inserted: ours.inserted, ..ours.fields.clone() };
                assert!(file == ours.frozen().to_file(&fields), "the plain filter differs");
            }
        }
        filter = through_a_file(&filter, &ours);
        let saturated = ours.counts.iter().filter(|count| **count == ours.max_count()).count();
        assert_eq!(filter.saturated(), saturated as u64);
        assert_eq!(filter.inserted(), ours.inserted);
        for (&hash, &count) in &ours.members {
            assert!(
                filter.count_mixed_hash(hash) >= count.min(filter.max_count()),
                "absent: {hash:#x}"
            );
            assert!(count == 0 || filter.contains_mixed_hash(hash), "absent: {hash:#x}");
        }
    }
}

/// Returns the count of a union: the estimate, at least 1 if there is a key, or a bound if all bits are
/// set.
fn estimated(keys: f64, counted: u64) -> u64 {
    if keys.is_finite() {
        return (keys.round() as u64).max(u64::from(keys > 0.0));
    }
    assert!(counted > 0 && counted < 1 << 40, "{counted}");
    counted
}

fn same(results: &BatchResults, hashes: &[u64], mut expect: impl FnMut(u64) -> bool) {
    assert_eq!(results.len(), hashes.len());
    for (at, &hash) in hashes.iter().enumerate() {
        assert_eq!(results.get(at), expect(hash), "hash {at} of {}", hashes.len());
    }
}

/// Writes and reads the filter in both ways; the bytes equal those of the model.
fn through_a_file<L: Layout>(filter: &CountingFilter<L>, model: &Model) -> CountingFilter<L> {
    let metadata = "{}";
    let mut file = Vec::new();
    filter.write_to(&mut file, metadata).expect("memory is writable");
    assert!(file == model.file(metadata), "the file differs");
    let (again, text) = CountingFilter::<L>::read_from(&file[..]).expect("just written");
    assert!(again == *filter && text == metadata);
    let mut buffer = vec![0; file.len() + 64];
    let start = buffer.as_ptr().align_offset(64);
    buffer[start..start + file.len()].copy_from_slice(&file);
    let borrowed = &buffer[start..start + file.len()];
    let borrowed = CountingFilter::<L, Borrowed<'_>>::from_bytes(borrowed).expect("just written");
    assert!(borrowed == again && borrowed.saturated() == again.saturated());
    for &hash in model.members.keys() {
        assert_eq!(borrowed.count_mixed_hash(hash), model.count(hash));
        assert_eq!(borrowed.contains_mixed_hash(hash), model.count(hash) > 0);
    }
    // The filter that was read has the kernel that was forced last; operations continue with it.
    if model.inserted.is_multiple_of(2) { again } else { filter.try_clone().expect("small") }
}
