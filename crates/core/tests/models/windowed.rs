//! Windowed filters compared with a model: a queue of naive blocked filters, a clock, and the times
//! of all insertions.

use std::collections::{HashMap, VecDeque};

use petal::{BatchResults, Borrowed, HashSpec, Membership as _, WindowedBloomFilter};

use crate::kit::{Aligned, Source, words};
use crate::naive::Naive;

struct Model {
    /// Keys of a generation, in windows of keys.
    share: Option<u64>,
    /// Ticks of a generation.
    width: u64,
    window: u64,
    empty: Naive,
    /// Bits and numbers of new keys of all generations, the newest first.
    generations: VecDeque<(Naive, u64)>,
    /// Number of generations before the newest, which determines its position.
    epoch: u64,
    now: u64,
    /// When each hash was last inserted: by the clock, or by the number of insertions.
    diary: HashMap<u64, u64>,
    insertions: u64,
}

impl Model {
    fn contains(&self, hash: u64) -> bool {
        self.generations.iter().any(|(bits, _)| bits.contains(hash))
    }

    fn rotate(&mut self) {
        self.generations.pop_back();
        self.generations.push_front((self.empty.clone(), 0));
        self.epoch += 1;
    }

    fn insert(&mut self, hash: u64) -> bool {
        let new = !self.contains(hash);
        let newest = &self.generations[0];
        if Some(newest.1) == self.share && !newest.0.contains(hash) {
            self.rotate();
        }
        let newest = &mut self.generations[0];
        newest.1 += u64::from(newest.0.insert(hash));
        self.insertions += 1;
        let when = if self.share.is_some() { self.insertions } else { self.now };
        self.diary.insert(hash, when);
        new
    }

    fn insert_if_absent(&mut self, hash: u64) -> bool {
        !self.contains(hash) && self.insert(hash)
    }

    fn advance(&mut self, now: u64) {
        if self.share.is_none() && now > self.now {
            self.now = now;
            let epoch = now / self.width;
            for _ in 0..(epoch - self.epoch).min(self.generations.len() as u64) {
                self.rotate();
            }
            self.epoch = epoch;
        }
    }

    /// Returns the interleaved blocks of all generations.
    fn data(&self) -> (Vec<u8>, Vec<u64>) {
        let many = self.generations.len() as u64;
        // The newest is at the epoch modulo the number of generations, older ones before it.
        let age = |slot: u64| ((self.epoch % many + many - slot) % many) as usize;
        let counts = (0..many).map(|slot| self.generations[age(slot)].1).collect();
        let block = self.empty.lanes as usize * 8;
        let mut data = Vec::new();
        for at in (0..self.empty.data.len()).step_by(block) {
            for slot in 0..many {
                data.extend(&self.generations[age(slot)].0.data[at..at + block]);
            }
        }
        (data, counts)
    }

    fn compare(&self, filter: &WindowedBloomFilter, file: &[u8]) {
        let (data, mut counts) = self.data();
        assert!(file[4096..] == data, "the data differ");
        assert_eq!(filter.inserted(), counts.iter().sum::<u64>());
        assert_eq!(words(file, 88, 1)[0], filter.inserted());
        let ticks = if self.share.is_some() { 0 } else { self.window };
        let clock = if self.share.is_some() { self.epoch } else { self.now };
        counts.resize(15, 0);
        let parameters = [vec![self.generations.len() as u64, ticks, clock], counts].concat();
        assert_eq!(words(file, 96, 18), parameters);
        let aligned = Aligned::new(file);
        let borrowed =
            WindowedBloomFilter::<Borrowed<'_>>::from_bytes(aligned.bytes()).expect("a valid file");
        assert!(borrowed == *filter);
        // No key in the window is absent.
        let mut found = BatchResults::new();
        let young = |when: u64| match self.share {
            Some(_) => self.insertions - when < self.window,
            None => self.now - when <= self.window,
        };
        let (hashes, whens): (Vec<u64>, Vec<u64>) = self.diary.iter().unzip();
        borrowed.contains_mixed_hashes(&hashes, &mut found);
        let mut false_positives = 0;
        for (at, when) in whens.into_iter().enumerate() {
            assert!(found.get(at) || !young(when), "a key inserted at {when} is absent");
            let old = self.share.is_none()
                && self.now - when >= self.width * self.generations.len() as u64;
            false_positives += u64::from(old && found.get(at));
        }
        // Expired keys are found only as false positives.
        assert!(false_positives == 0 || self.generations.iter().any(|(_, count)| *count > 0));
    }
}

fn file_of(filter: &WindowedBloomFilter) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, "").expect("memory is writable");
    file
}

/// Queries at a later time return the results of that time, without changes.
fn query_ahead(filter: &WindowedBloomFilter, now: u64, hashes: &[u64]) {
    let mut copy = filter.try_clone().expect("small");
    copy.advance_to(now);
    let (mut found, mut then) = (BatchResults::new(), BatchResults::new());
    filter.contains_mixed_hashes_at(now, hashes, &mut found);
    copy.contains_mixed_hashes(hashes, &mut then);
    assert_eq!(found, then);
    for (at, &hash) in hashes.iter().enumerate() {
        assert_eq!(filter.contains_mixed_hash_at(now, hash), then.get(at));
        assert_eq!(filter.contains_at(now, &hash), copy.contains(&hash));
    }
}

/// Decodes a filter and operations from bytes, and compares filter and model after each.
pub(crate) fn drive(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let keys = 1 + u64::from(source.short() % 3000);
    let rate = [0.5, 0.1, 0.01, 1e-3][usize::from(source.byte()) % 4];
    let many = 2 + u64::from(source.byte()) % 11;
    let by_time = source.byte().is_multiple_of(2);
    let window = if by_time { 1 + u64::from(source.byte()) } else { keys };
    let spec =
        if source.byte().is_multiple_of(2) { HashSpec::rapid(7) } else { HashSpec::keyed([7; 16]) };
    let mut builder =
        WindowedBloomFilter::builder().capacity(keys).fpr(rate).generations(many as u32).hash(spec);
    if by_time {
        builder = builder.window(window);
    }
    let mut filter = builder.build().expect("small");
    let file = file_of(&filter);
    let (lanes, probes) = (words(&file, 40, 1)[0] & 0xffff, words(&file, 32, 1)[0] >> 48);
    let empty = Naive::blocked(words(&file, 64, 1)[0], lanes, probes);
    let mut model = Model {
        share: (!by_time).then_some(keys.div_ceil(many - 1)),
        width: window.div_ceil(many - 1),
        window,
        generations: (0..many).map(|_| (empty.clone(), 0)).collect(),
        empty,
        epoch: 0,
        now: 0,
        diary: HashMap::new(),
        insertions: 0,
    };
    let mut results = BatchResults::new();
    while !source.is_empty() {
        match source.byte() % 10 {
            0 => {
                let key = u64::from(source.short() % 512);
                assert_eq!(filter.insert(&key), model.insert(spec.hash(&key.to_le_bytes())));
            }
            1 | 2 => {
                let hashes = source.hashes();
                filter.insert_mixed_hashes(&hashes, &mut results);
                assert_eq!(results.len(), hashes.len());
                for (at, &hash) in hashes.iter().enumerate() {
                    assert_eq!(results.get(at), model.insert(hash), "hash {at}");
                }
            }
            3 => {
                let keys: Vec<u64> = source.hashes();
                filter.insert_batch(&keys, &mut results);
                for (at, key) in keys.iter().enumerate() {
                    let new = model.insert(spec.hash(&key.to_le_bytes()));
                    assert_eq!(results.get(at), new, "key {at}");
                }
            }
            4 => {
                let hashes = source.hashes();
                filter.contains_mixed_hashes(&hashes, &mut results);
                for (at, &hash) in hashes.iter().enumerate() {
                    assert_eq!(results.get(at), model.contains(hash), "hash {at}");
                    assert_eq!(filter.contains_mixed_hash(hash), model.contains(hash));
                }
                filter.contains_batch(&hashes, &mut results);
                for (at, word) in hashes.iter().enumerate() {
                    let hash = spec.hash(&word.to_le_bytes());
                    assert_eq!(results.get(at), model.contains(hash), "key {at}");
                }
            }
            5 if source.byte().is_multiple_of(8) => {
                let restart = by_time && source.byte().is_multiple_of(2);
                if restart {
                    model.now = model.now.saturating_sub(u64::from(source.byte()));
                    model.epoch = model.now / model.width;
                    filter.restart_at(model.now);
                } else {
                    filter.clear();
                }
                model.generations.iter_mut().for_each(|(bits, count)| {
                    bits.data.fill(0);
                    *count = 0;
                });
                model.diary.clear();
                if !by_time {
                    model.epoch = 0;
                }
            }
            6 => {
                let read =
                    WindowedBloomFilter::read_from(&file_of(&filter)[..]).expect("a valid file");
                assert!(read.0 == filter);
                filter = read.0;
            }
            7 => filter = filter.try_clone().expect("small"),
            8 => {
                // Small steps, steps back, and now and then a long gap.
                let step = u64::from(source.byte());
                let now = match step {
                    0 => filter.now().saturating_add(1 << 60),
                    1..40 => filter.now().saturating_sub(step),
                    _ => filter.now().saturating_add(step - 40),
                };
                let hashes = [source.hashes(), model.diary.keys().copied().collect()].concat();
                query_ahead(&filter, now, &hashes);
                filter.advance_to(now);
                model.advance(now);
                assert_eq!(filter.now(), model.now);
            }
            _ => {
                let keys = source.hashes();
                let of_key = |key: &u64| spec.hash(&key.to_le_bytes());
                let (how, mut hashes) = (source.byte() % 4, keys.clone());
                match how {
                    0 => filter.insert_mixed_hashes_if_absent(&keys, &mut results),
                    1 => results
                        .fill_with(keys.len(), |at| filter.insert_mixed_hash_if_absent(keys[at])),
                    2 => filter.insert_batch_if_absent(&keys, &mut results),
                    _ => results.fill_with(keys.len(), |at| filter.insert_if_absent(&keys[at])),
                }
                if how > 1 {
                    hashes = keys.iter().map(of_key).collect();
                }
                assert_eq!(results.len(), hashes.len());
                for (at, &hash) in hashes.iter().enumerate() {
                    assert_eq!(results.get(at), model.insert_if_absent(hash), "hash {at}");
                }
            }
        }
        model.compare(&filter, &file_of(&filter));
    }
}
