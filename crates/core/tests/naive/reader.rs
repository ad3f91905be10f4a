//! A reader of every layout of docs/reference/format*.md, without checks: which keys a file contains, and the numbers
//! by which it decides.

use crate::models::static_filter::{Naive as NaiveRibbon, static_fuse::Naive as NaiveFuse};
use crate::naive::hash::hash;
use crate::naive::{HeaderFields, Naive, part, times};

/// A file that is queried.
pub(crate) struct Reader<'a> {
    file: &'a [u8],
    layout: u16,
    fields: HeaderFields,
}

impl<'a> Reader<'a> {
    /// `secret` is that of a file whose secret is apart.
    pub(crate) fn new(file: &'a [u8], secret: Option<[u8; 16]>) -> Self {
        let (naive, mut fields) = Naive::from_file(file);
        if let Some(secret) = secret {
            assert_eq!(fields.hash, 6);
            (fields.hash, fields.seed) = (2, secret);
        }
        Self { file, layout: naive.kind, fields }
    }

    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        hash(&self.fields, key)
    }

    fn word(&self, at: u64) -> u64 {
        (0..8).rev().fold(0, |word, byte| word << 8 | u64::from(self.byte(at + byte)))
    }

    /// A byte; 0 after the end.
    fn byte(&self, at: u64) -> u8 {
        self.file.get(at as usize).copied().unwrap_or(0)
    }

    fn data_at(&self) -> u64 {
        self.word(16)
    }

    fn parameter(&self, number: u64) -> u64 {
        self.word(96 + 8 * number)
    }

    /// Returns whether the file contains a hash, and the numbers by which it decides.
    pub(crate) fn query(&self, hash: u64) -> (bool, Vec<u64>) {
        match self.layout {
            // The bits come first.
            1..=4 => self.query_bits(hash),
            5 => self.query_quotient(hash),
            6 => self.query_layers(hash),
            7 => self.query_generations(hash),
            8 => NaiveRibbon::new(self.file).query(hash),
            9 => self.query_cascade(hash),
            11 => self.query_blocks(hash),
            12 => self.query_fuse(hash),
            layout => panic!("no layout {layout}"),
        }
    }

    fn query_bits(&self, hash: u64) -> (bool, Vec<u64>) {
        let mut naive = Naive::from_file(self.file).0;
        naive.kind = 2 - naive.kind % 2;
        (naive.contains(hash), naive.positions(hash))
    }

    fn query_fuse(&self, hash: u64) -> (bool, Vec<u64>) {
        let naive = NaiveFuse::new(self.file);
        if self.parameter(2) == 0 {
            return (false, vec![]);
        }
        let key = naive.slots_of(hash);
        let numbers = key.slots.into_iter().chain([key.fingerprint, key.bits]).collect();
        (naive.contains(hash), numbers)
    }

    /// The numbers are the quotient and the remainder.
    fn query_quotient(&self, hash: u64) -> (bool, Vec<u64>) {
        let (slots, bits) = (self.word(64), self.parameter(0));
        let fingerprint = part(hash, slots << bits);
        let (quotient, remainder) = (fingerprint >> bits, fingerprint % (1 << bits));
        let block_at = |block: u64| self.data_at() + block * (17 + 8 * bits);
        let bit =
            |slot: u64, from: u64| self.word(block_at(slot / 64) + from) >> (slot % 64) & 1 == 1;
        let remainder_in = |slot: u64| {
            (0..bits).fold(0, |number, digit| {
                let at = bits * (slot % 64) + digit;
                let byte = self.byte(block_at(slot / 64) + 17 + at / 8);
                number | u64::from(byte >> (at % 8) & 1) << digit
            })
        };
        // All runs from the first on.
        let mut next = 0;
        for other in 0..slots {
            if !bit(other, 1) {
                continue;
            }
            let start = next.max(other);
            next = (start..).find(|&slot| bit(slot, 9)).unwrap() + 1;
            if other == quotient {
                let found = (start..next).any(|slot| remainder_in(slot) == remainder);
                return (found, vec![quotient, remainder]);
            }
        }
        (false, vec![quotient, remainder])
    }

    /// The numbers are the positions in each layer, from its beginning.
    fn query_layers(&self, hash: u64) -> (bool, Vec<u64>) {
        let layers = self.word(64);
        let mut at = self.data_at() + 64 * layers;
        let (mut found, mut numbers) = (false, vec![]);
        for layer in 0..layers {
            let [blocks, lanes, probes] =
                [0, 8, 16].map(|word| self.word(self.data_at() + 64 * layer + word));
            let mut naive = Naive::blocked(blocks, lanes, probes);
            let length = naive.data.len();
            naive.data.copy_from_slice(&self.file[at as usize..at as usize + length]);
            at += length as u64;
            found |= naive.contains(hash);
            numbers.extend(naive.positions(hash));
        }
        (found, numbers)
    }

    /// The numbers are the positions in each generation without the others, the newest first.
    fn query_generations(&self, hash: u64) -> (bool, Vec<u64>) {
        let header = Naive::from_file(self.file).0;
        let [generations, ticks, clock] = [0, 1, 2].map(|number| self.parameter(number));
        let epoch = if ticks == 0 { clock } else { clock / ticks.div_ceil(generations - 1) };
        let block = header.lanes as usize * 8;
        let (mut found, mut numbers) = (false, vec![]);
        for age in 0..generations {
            let slot = ((epoch % generations + generations - age) % generations) as usize;
            let blocks = header.data.chunks(block).skip(slot).step_by(generations as usize);
            let mut naive = Naive::blocked(header.extent, header.lanes, header.probes);
            naive.data = blocks.flatten().copied().collect();
            found |= naive.contains(hash);
            numbers.extend(naive.positions(hash));
        }
        (found, numbers)
    }

    /// The numbers are those of both filters.
    fn query_cascade(&self, hash: u64) -> (bool, Vec<u64>) {
        let [lines, extent, rate, columns, layers, other_extent, other_layers, _] =
            std::array::from_fn(|number| self.word(self.data_at() + 8 * number as u64));
        // Each filter as a file of its own.
        let first_at = self.data_at() as usize + 64;
        let second_at = first_at + 64 * lines as usize;
        let file = |extent: u64, columns: u64, layers: u64, data: &[u8]| {
            let target = f64::from_bits(rate);
            let fields = HeaderFields { target, ..HeaderFields::none() };
            let naive = Naive { kind: 8, lanes: 0, probes: 0, extent, data: data.to_vec() };
            let mut file = naive.to_file(&fields);
            file[96..104].copy_from_slice(&columns.to_le_bytes());
            file[104..112].copy_from_slice(&layers.to_le_bytes());
            file
        };
        let first = file(extent, columns, layers, &self.file[first_at..second_at]);
        let second = file(other_extent, 1, other_layers, &self.file[second_at..]);
        let [first, second] = [&first, &second].map(|file| NaiveRibbon::new(file).query(hash));
        (first.0 && second.0, [first.1, second.1].concat())
    }

    /// The numbers are both blocks, the bucket and the tag.
    fn query_blocks(&self, hash: u64) -> (bool, Vec<u64>) {
        let (blocks, bits) = (self.word(64), self.parameter(0));
        let (slots, buckets) = match bits {
            6 => (64, 64),
            7 => (56, 64),
            8 => (48, 80),
            10 => (40, 72),
            13 => (32, 64),
            _ => (24, 56),
        };
        let first = part(hash, blocks);
        let rest = times(hash, blocks);
        let (bucket, tag) = (part(rest, buckets), part(times(rest, buckets), 1 << bits));
        let region = blocks / blocks.div_ceil(32_768);
        let sum = part(times(bucket << bits | tag, 0x9e37_79b9_7f4a_7c15), region);
        let second = first / region * region + (sum + region - first % region) % region;
        let has = |block: u64| {
            let bit = |number: u64| {
                self.byte(self.data_at() + 64 * block + number / 8) >> (number % 8) & 1 == 1
            };
            let (mut slot, mut at_bucket) = (0, 0);
            for number in slots * bits..512 {
                if !bit(number) {
                    at_bucket += 1;
                } else {
                    let stored =
                        (0..bits).map(|digit| u64::from(bit(slots * digit + slot)) << digit);
                    if at_bucket == bucket && stored.sum::<u64>() == tag {
                        return true;
                    }
                    slot += 1;
                }
            }
            false
        };
        (has(first) || has(second), vec![first, second, bucket, tag])
    }
}
