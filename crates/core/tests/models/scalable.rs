//! Scalable filters against a naive one: layers of naive blocked filters.
//!
//! The model reads the layout of a new layer from the file, since sizing is not part of the format;
//! it determines everything else itself, such as the layer of a key.

use std::collections::HashSet;

use petal::{BatchResults, Borrowed, HashSpec, Membership as _, ScalableBloomFilter};

use crate::kit::{Aligned, Source, words};
use crate::naive::Naive;

struct Model {
    first: u64,
    growth: u64,
    /// The growth after layers for fewer keys than the second; zeros if there is none.
    head: (u64, u64),
    /// The parts of the rate of which one is for the later layers, or 0.
    share: u64,
    /// Bits, and the number of new keys.
    layers: Vec<(Naive, u64)>,
    members: HashSet<u64>,
}

impl Model {
    /// Adds the layers of the file that the model does not have.
    fn learn_shapes(&mut self, file: &[u8]) {
        let layers = words(file, 64, 1)[0];
        for layer in self.layers.len() as u64..layers {
            let entry = words(file, 4096 + 64 * layer as usize, 8);
            assert_eq!(entry[4..], [0; 4]);
            self.layers.push((Naive::blocked(entry[0], entry[1], entry[2]), 0));
        }
    }

    fn contains(&self, hash: u64) -> bool {
        self.layers.iter().any(|(layer, _)| layer.contains(hash))
    }

    fn insert(&mut self, hash: u64) -> bool {
        self.members.insert(hash);
        if self.contains(hash) {
            return false;
        }
        let mut keys = self.first;
        for (layer, inserted) in &mut self.layers {
            if *inserted < keys {
                *inserted += 1;
                return layer.insert(hash);
            }
            keys *= if keys < self.head.1 { self.growth.max(self.head.0) } else { self.growth };
        }
        panic!("the filter has too few layers");
    }

    /// Returns the expected bytes of a file from its data on.
    fn data(&self) -> Vec<u8> {
        let mut data = Vec::new();
        for (layer, inserted) in &self.layers {
            for word in [layer.extent, layer.lanes, layer.probes, *inserted, 0, 0, 0, 0] {
                data.extend(word.to_le_bytes());
            }
        }
        self.layers.iter().for_each(|(layer, _)| data.extend(&layer.data));
        data
    }

    fn compare(&self, filter: &ScalableBloomFilter, file: &[u8]) {
        assert!(file[4096..] == self.data(), "the data differ");
        let inserted: u64 = self.layers.iter().map(|(_, inserted)| inserted).sum();
        assert_eq!((filter.inserted(), words(file, 88, 1)[0]), (inserted, inserted));
        assert_eq!(u64::from(filter.layers()), words(file, 64, 1)[0]);
        assert_eq!(words(file, 72, 1)[0], self.first);
        let parameters = [self.growth, self.head.0, self.head.1, self.share];
        assert_eq!(words(file, 96, 4), parameters);
        let aligned = Aligned::new(file);
        let borrowed =
            ScalableBloomFilter::<Borrowed<'_>>::from_bytes(aligned.bytes()).expect("a valid file");
        assert!(borrowed == *filter);
        let mut found = BatchResults::new();
        let members: Vec<u64> = self.members.iter().copied().collect();
        borrowed.contains_mixed_hashes(&members, &mut found);
        assert_eq!(found.count_ones(), members.len() as u64, "a key was lost");
        assert!(members.iter().all(|&hash| filter.contains_mixed_hash(hash)));
    }
}

fn file_of(filter: &ScalableBloomFilter) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, "").expect("memory is writable");
    file
}

/// Decodes a filter and operations from bytes, and compares filter and model after each.
pub(crate) fn drive(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let first = 1 + u64::from(source.byte()) % 40;
    let rate = [0.5, 0.1, 0.01, 1e-4][usize::from(source.byte()) % 4];
    let byte = u64::from(source.byte());
    let (growth, head) = (2 + byte % 3, [(0, 0), (8, 300), (3, 1 << 40)][byte as usize / 3 % 3]);
    let spec =
        if source.byte().is_multiple_of(2) { HashSpec::rapid(7) } else { HashSpec::keyed([7; 16]) };
    let builder = ScalableBloomFilter::builder().capacity(first).fpr(rate).growth(growth);
    let share = [0, 2, 32][byte as usize / 9 % 3];
    let builder = builder.head_start(head.0, head.1).growth_share(share);
    let mut filter = builder.hash(spec).build().expect("small");
    let mut model =
        Model { first, growth, head, share, layers: Vec::new(), members: HashSet::new() };
    let mut results = BatchResults::new();
    while !source.is_empty() {
        match source.byte() % 8 {
            0 => {
                let key = u64::from(source.short() % 512);
                let new = filter.insert(&key).expect("small");
                model.learn_shapes(&file_of(&filter));
                assert_eq!(new, model.insert(spec.hash(&key.to_le_bytes())));
            }
            1 | 2 => {
                let hashes = source.hashes();
                filter.insert_mixed_hashes(&hashes, &mut results).expect("small");
                model.learn_shapes(&file_of(&filter));
                assert_eq!(results.len(), hashes.len());
                for (at, &hash) in hashes.iter().enumerate() {
                    assert_eq!(results.get(at), model.insert(hash), "hash {at}");
                }
            }
            3 => {
                let keys: Vec<u64> = source.hashes();
                filter.insert_batch(&keys, &mut results).expect("small");
                model.learn_shapes(&file_of(&filter));
                for (at, key) in keys.iter().enumerate() {
                    let new = model.insert(spec.hash(&key.to_le_bytes()));
                    assert_eq!(results.get(at), new, "key {at}");
                }
            }
            4 => {
                let hashes = source.hashes();
                model.learn_shapes(&file_of(&filter));
                filter.contains_mixed_hashes(&hashes, &mut results);
                for (at, &hash) in hashes.iter().enumerate() {
                    assert_eq!(results.get(at), model.contains(hash), "hash {at}");
                    assert_eq!(filter.contains_mixed_hash(hash), model.contains(hash));
                }
                let texts: Vec<[u8; 8]> = hashes.iter().map(|word| word.to_le_bytes()).collect();
                filter.contains_batch(&texts, &mut results);
                for (at, text) in texts.iter().enumerate() {
                    assert_eq!(results.get(at), model.contains(spec.hash(text)), "key {at}");
                }
            }
            5 if source.byte().is_multiple_of(4) => {
                filter.clear();
                model.layers.clear();
                model.members.clear();
            }
            6 => {
                let read =
                    ScalableBloomFilter::read_from(&file_of(&filter)[..]).expect("a valid file");
                assert!(read.0 == filter);
                filter = read.0;
            }
            7 => filter = filter.try_clone().expect("small"),
            _ => {}
        }
        let file = file_of(&filter);
        model.learn_shapes(&file);
        model.compare(&filter, &file);
    }
}
