//! A simple implementation of layout 12 of docs/reference/format-static.md.

/// A file of layout 12, queried by the document, without checks.
pub(crate) struct Naive<'a> {
    file: &'a [u8],
    data_at: u64,
    bits: u64,
    log_segment: u64,
    shards: u64,
    segments: u64,
    wide: u64,
    mixer: u64,
}

/// The slots of a hash in the filter, its fingerprint, and the number of bits that are compared.
pub(crate) struct KeySlots {
    pub(crate) slots: [u64; 4],
    pub(crate) fingerprint: u64,
    pub(crate) bits: u64,
}

impl<'a> Naive<'a> {
    pub(crate) fn new(file: &'a [u8]) -> Self {
        let word = |at| word(file, at);
        let [bits, log_segment, shards, segments, wide] = [96, 104, 112, 120, 128].map(word);
        let mixer = mixer(word(136));
        Self { file, data_at: word(16), bits, log_segment, shards, segments, wide, mixer }
    }

    /// The first bit of a slot, from the beginning of the data.
    pub(crate) fn bit_of(&self, slot: u64) -> u64 {
        slot * self.bits + slot.min(self.wide << self.log_segment)
    }

    /// The word of a shard after all slots; 0 after the end of the file.
    fn multiplier(&self, shard: u64) -> u64 {
        let slots = self.bit_of((self.shards * self.segments) << self.log_segment);
        word(self.file, self.data_at + 8 * (slots.div_ceil(64) + shard))
    }

    pub(crate) fn slots_of(&self, hash: u64) -> KeySlots {
        let g = mixed(hash, self.mixer);
        let size = 1 << self.log_segment;
        let starts = (self.segments - 3) * size;
        let (shard, rest) = match self.shards.ilog2() {
            0 => (0, g),
            log => (g >> (64 - log), g << log),
        };
        let start = ((rest >> 32) * starts) >> 32;
        let e = g.wrapping_mul(self.multiplier(shard));
        let first = shard * self.segments;
        let segment = start / size;
        let slot = |i: u64| (first + segment + i) * size + (e >> (16 * i)) % size;
        KeySlots {
            slots: [first * size + start, slot(1), slot(2), slot(3)],
            fingerprint: g & 0xffff_ffff ^ e >> 32,
            bits: self.bits + u64::from(first + segment + 3 < self.wide),
        }
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        if self.shards == 0 {
            return false;
        }
        let KeySlots { slots, fingerprint, bits } = self.slots_of(hash);
        (0..bits).all(|bit| {
            let bit_in = |slot| {
                let at = self.bit_of(slot) + bit;
                u64::from(self.file[(self.data_at + at / 8) as usize]) >> (at % 8)
            };
            let sum = slots.into_iter().fold(fingerprint >> bit, |sum, slot| sum ^ bit_in(slot));
            sum % 2 == 0
        })
    }
}

fn mixer(seed: u64) -> u64 {
    0x9fb2_1c65_1e98_df25u64.wrapping_add((2 * seed).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn mixed(hash: u64, mixer: u64) -> u64 {
    let product = u128::from(hash) * u128::from(mixer);
    (product >> 64) as u64 ^ product as u64
}

/// A word of the file; 0 after its end.
fn word(file: &[u8], at: u64) -> u64 {
    let byte = |at: u64| u64::from(*file.get(at as usize).unwrap_or(&0));
    (0..8).rev().fold(0, |word, index| word << 8 | byte(at + index))
}

/// The dimensions of a filter and its words, written by the document for one shard: bits, logarithm, shards,
/// segments, wide segments and seed.
pub(crate) struct Written {
    pub(crate) parameters: [u64; 6],
    pub(crate) words: Vec<u64>,
}

/// The table of the document: the least number of keys, s and d.
const TABLE: [[u64; 3]; 15] = [
    [0, 0, 1000],
    [2, 1, 700],
    [6, 2, 800],
    [18, 3, 850],
    [57, 4, 980],
    [181, 5, 1030],
    [270, 5, 1090],
    [400, 5, 1140],
    [575, 6, 1110],
    [900, 6, 1150],
    [1825, 7, 1150],
    [5793, 8, 1130],
    [18_390, 9, 1100],
    [58_390, 10, 1080],
    [185_364, 11, 1070],
];

/// Writes the filter of distinct hashes, at least one and at most 393,216, whose rate collisions of hashes do
/// not add to.
pub(crate) fn write(hashes: &[u64], rate: f64) -> Written {
    let m = hashes.len() as u64;
    let b = (-rate.log2()).floor() as u64;
    let share = 2.0 * (1.0 - rate * (b as f64).exp2());
    let &[_, log, d] = TABLE.iter().rfind(|row| row[0] <= m).unwrap();
    let starts = ((m * d / 1000) >> log).max(1);
    // Bits, wide segments, and lines of dimensions.
    let dimensions = |log: u64, starts: u64| {
        let wide = (share * starts as f64).ceil() as u64;
        let (bits, wide) = match wide {
            0 => (b, 0),
            all if all == starts && b < 31 => (b + 1, 0),
            _ => (b, wide + 3),
        };
        let slots = (starts + 3) << log;
        let words = (slots * bits + (wide << log)).div_ceil(64) + 1;
        (bits, wide, words.div_ceil(8))
    };
    let (.., lines) = dimensions(log, starts);
    let dense = |lines: u64| {
        let logs = [3, 4, 5, 2].into_iter().take(if m < 48 { 4 } else { 3 });
        logs.filter_map(move |log| {
            let most = (512 * lines / b.max(1)) >> log;
            let fits = |&starts: &u64| dimensions(log, starts).2 <= lines;
            let starts = (1..=most).rev().find(fits)?;
            (100 * ((starts + 3) << log) >= 128 * m).then_some((log, starts, 0, 32))
        })
    };
    let first = [(log, starts, 0, 8)];
    let further = (1..160).map(|c| (log, starts + c / 8 * starts.div_ceil(16), c, 8));
    let few = if m <= 256 { lines } else { 0 };
    let plans = (1..few).flat_map(dense).chain(first).chain((few.max(1)..=few).flat_map(dense));
    for (log, starts, seed, multipliers) in plans.chain(further) {
        let (bits, wide, lines) = dimensions(log, starts);
        for j in 0..multipliers {
            let mut words = vec![0; lines as usize * 8];
            let slots = (starts + 3) << log;
            let at = (slots * bits + (wide << log)).div_ceil(64);
            words[at as usize] = 0x9e37_79b9_7f4a_7c15u64
                .wrapping_add((2 * j as u64).wrapping_mul(0x9fb2_1c65_1e98_df25));
            let file: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
            let segments = starts + 3;
            let (log_segment, shards, data_at, mixer) = (log, 1, 0, mixer(seed));
            let naive =
                Naive { file: &file, data_at, bits, log_segment, shards, segments, wide, mixer };
            let keys: Vec<KeySlots> = hashes.iter().map(|&hash| naive.slots_of(hash)).collect();
            let Some(values) = peeled(&keys, slots as usize) else { continue };
            for (slot, value) in (0..).zip(values) {
                let width = bits + u64::from(slot >> log < wide);
                let value = value & ((1 << width) - 1);
                let bit = naive.bit_of(slot);
                words[(bit / 64) as usize] |= value << (bit % 64);
                if bit % 64 + width > 64 {
                    words[(bit / 64) as usize + 1] |= value >> (64 - bit % 64);
                }
            }
            return Written { parameters: [bits, log, 1, segments, wide, seed], words };
        }
    }
    panic!("no plan works");
}

/// The values of all slots, or `None` if some keys cannot be removed.
fn peeled(keys: &[KeySlots], slots: usize) -> Option<Vec<u64>> {
    let mut in_slot = vec![Vec::new(); slots];
    for (at, key) in keys.iter().enumerate() {
        key.slots.iter().for_each(|&slot| in_slot[slot as usize].push(at));
    }
    let mut queue: Vec<usize> = (0..slots).filter(|&slot| in_slot[slot].len() == 1).collect();
    let (mut next, mut removed) = (0, Vec::new());
    while next < queue.len() {
        let slot = queue[next];
        next += 1;
        let [key] = in_slot[slot][..] else { continue };
        removed.push((key, slot));
        for other in keys[key].slots.map(|slot| slot as usize) {
            in_slot[other].retain(|&at| at != key);
            if in_slot[other].len() == 1 {
                queue.push(other);
            }
        }
    }
    let mut values = vec![0; slots];
    for &(key, slot) in removed.iter().rev() {
        let KeySlots { slots, fingerprint, .. } = &keys[key];
        values[slot] = 0;
        values[slot] = slots.iter().fold(*fingerprint, |sum, &slot| sum ^ values[slot as usize]);
    }
    (removed.len() == keys.len()).then_some(values)
}
