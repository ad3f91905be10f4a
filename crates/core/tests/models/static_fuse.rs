//! A simple implementation of layout 12 of docs/reference/format.md.

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
