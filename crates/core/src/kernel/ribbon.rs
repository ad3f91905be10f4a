//! Queries of a ribbon: linear equations over the bits of a key, compared with its fingerprint.
//!
//! A ribbon is one or more [`Layer`]s of rows of bits. In each layer a key has its own hash g, and
//! from it a *shard*, a *start* in the shard, an *equation* of [`WIDTH`] coefficients and a
//! *fingerprint*. The first layer that does not *bump* the key determines the result: the key is
//! present if, for every column j, the rows that the equation selects, from the start on, add up
//! (modulo 2) to bit j of the fingerprint. docs/reference/format-static.md, "Layout 8", has the full definition.
//!
//! Rows are stored by column: a *segment* is [`WIDTH`] rows, with a half word of 32 bits for each
//! column. The equation of a key covers two neighbouring segments: one run of 8 bytes per column.
//!
//! Invariant: all positions of a layer are inside the rows and cuts that it was laid out for,
//! whatever the hash and the bits are. The portable code is the reference for the vector code.
//!
//! Cost: one cache line for the cuts of 16,384 rows, nearly always cached, and one or two for up to
//! 8 columns; one key in 18 is bumped and continues in the next layer. Source: Dillinger & Walzer
//! 2021, "Ribbon filter: practically smaller than Bloom and Xor"; Dillinger, Hübschle-Schneider,
//! Sanders & Walzer 2022, "Fast succinct retrieval and approximate membership using ribbon".

use core::ops::Range;

use super::blocked::{MIX_HIGH, MIX_LOW};
use super::primitives::{prefetch, scale};
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// Coefficients of an equation; also rows of a segment.
pub(crate) const WIDTH: u64 = 32;
/// Rows of a bucket, the unit of bumping.
pub(crate) const BUCKET: u64 = 64;
/// The number of rows at the start of a bucket whose keys are bumped, by the bucket's cut.
pub(crate) const CUTS: [u64; 4] = [0, 8, 20, BUCKET];
/// Cuts per half word.
pub(crate) const CUTS_IN_HALF: u64 = 16;

/// Returns the hash of a key in a layer, from its hash in the previous layer or its own hash. A
/// bijection, so different keys keep different hashes.
///
/// Source: the finalizer of MurmurHash3 (Appleby 2011) with the constants of this crate.
#[inline(always)]
pub(crate) fn remix(hash: u64, seed: u64) -> u64 {
    let mut g = hash ^ seed.wrapping_add(1).wrapping_mul(MIX_HIGH);
    g = (g ^ g >> 32).wrapping_mul(MIX_LOW);
    g = (g ^ g >> 29).wrapping_mul(MIX_HIGH);
    g ^ g >> 32
}

/// The inverse of [`remix`].
pub(crate) fn unmix(g: u64, seed: u64) -> u64 {
    let mut hash = (g ^ g >> 32).wrapping_mul(inverse(MIX_HIGH));
    hash ^= hash >> 29 ^ hash >> 58;
    hash = hash.wrapping_mul(inverse(MIX_LOW));
    (hash ^ hash >> 32) ^ seed.wrapping_add(1).wrapping_mul(MIX_HIGH)
}

/// Returns the multiplicative inverse of an odd number, by Newton's method: each step doubles the
/// number of correct bits, initially 3.
fn inverse(odd: u64) -> u64 {
    let step = |x: u64| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
    step(step(step(step(step(odd)))))
}

/// Returns the equation of a hash in a layer (low half) and its fingerprint (high half). The first
/// coefficient is 1.
#[inline(always)]
pub(crate) fn equation(g: u64) -> u64 {
    let product = u128::from(g) * u128::from(MIX_LOW);
    ((product >> 64) as u64 ^ product as u64) | 1
}

/// The dimensions of a layer, consistent with the cuts and rows of its ribbon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    /// Selects hashes that are independent of other layers and filters.
    pub(crate) seed: u64,
    /// Number of parts whose equations have no row in common.
    pub(crate) shards: u64,
    /// Segments of a shard, at least 2.
    pub(crate) segments: u64,
    /// Number of segments, from the first on, with one more column.
    pub(crate) wide: u64,
    /// Columns of the other segments.
    pub(crate) columns: u64,
    /// Whether the layer bumps no key and has no cuts.
    pub(crate) last: bool,
    /// Index of the first half word of its rows.
    pub(crate) rows_at: u64,
    /// Index of the first half word of its cuts.
    pub(crate) cuts_at: u64,
    /// Half words of cuts per shard.
    pub(crate) cuts_each: u64,
}

/// The position of a key in a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyPosition {
    pub(crate) shard: u64,
    /// The first row of its equation in the shard.
    pub(crate) start: u64,
}

/// The position of the cut of a key's bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    half: usize,
    /// Index of the cut's first bit in the half word.
    shift: u32,
    /// The first row of the key's equation in the bucket.
    row: u32,
}

/// The position of the bits of a key, and their expected values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyBits {
    /// Index of the first half word of its first segment, and of the next segment.
    pub(super) near: usize,
    pub(super) far: usize,
    pub(super) columns: usize,
    /// The parts of the equation in both.
    pub(super) low: u32,
    pub(super) high: u32,
    pub(super) fingerprint: u32,
}

impl Layer {
    /// Number of rows in which an equation of a shard may start.
    #[inline(always)]
    pub(crate) fn starts(&self) -> u64 {
        (self.segments - 1) * WIDTH
    }

    /// Returns the position of a hash of this layer, which is monotone in the hash.
    #[inline(always)]
    pub(crate) fn locate(&self, g: u64) -> KeyPosition {
        let product = u128::from(g) * u128::from(self.shards);
        KeyPosition { shard: (product >> 64) as u64, start: scale(product as u64, self.starts()) }
    }

    /// Returns the index of the first half word of a segment of the layer.
    #[inline(always)]
    pub(crate) fn rows_of(&self, segment: u64) -> u64 {
        self.rows_at + segment * self.columns + segment.min(self.wide)
    }

    /// Returns the number of columns of a key that starts in this segment.
    #[inline(always)]
    pub(crate) fn columns_of(&self, segment: u64) -> u64 {
        self.columns + u64::from(segment + 1 < self.wide)
    }

    /// Returns the position of the cut of a key's bucket.
    #[inline(always)]
    fn cut_of(&self, position: KeyPosition) -> Cut {
        let bucket = position.start / BUCKET;
        let half = self.cuts_at + position.shard * self.cuts_each + bucket / CUTS_IN_HALF;
        let shift = (bucket % CUTS_IN_HALF) as u32 * 2;
        Cut { half: half as usize, shift, row: (position.start % BUCKET) as u32 }
    }

    /// Returns the number of rows at the start of a bucket whose keys are bumped.
    pub(crate) fn bumped_in(&self, cuts: &[u32], shard: u64, bucket: u64) -> u64 {
        if self.last {
            return 0;
        }
        let Cut { half, shift, .. } = self.cut_of(KeyPosition { shard, start: bucket * BUCKET });
        CUTS[(u32::from_le(cuts[half]) >> shift & 3) as usize]
    }

    /// Returns whether a key is bumped to the next layer.
    #[inline(always)]
    fn bumps(&self, cuts: &[u32], cut: Cut) -> bool {
        if self.last {
            return false;
        }
        let bits = u32::from_le(cuts[cut.half]) >> cut.shift & 3;
        u64::from(cut.row) < CUTS[bits as usize]
    }

    /// Returns the half words that a query of a hash of this layer reads: that of its cut, and those of
    /// its rows.
    pub(crate) fn half_words_of(&self, g: u64) -> (Option<u64>, Range<u64>) {
        let position = self.locate(g);
        let cut = (!self.last).then(|| self.cut_of(position).half as u64);
        let bits = self.key_bits(g, position);
        (cut, bits.near as u64..(bits.far + bits.columns) as u64)
    }

    /// Returns the result of a query from the [half words](Self::half_words_of) that it reads; `None` if
    /// the key is bumped.
    pub(crate) fn result_of(&self, g: u64, cut: u32, rows: &[u32]) -> Option<bool> {
        let position = self.locate(g);
        let bits = self.key_bits(g, position);
        let bits = KeyBits { near: 0, far: bits.far - bits.near, ..bits };
        let cut_of_key = Cut { half: 0, ..self.cut_of(position) };
        (!self.bumps(&[cut], cut_of_key)).then(|| matches(rows, &bits))
    }

    /// Returns the position of the bits of a hash of this layer.
    #[inline(always)]
    fn key_bits(&self, g: u64, position: KeyPosition) -> KeyBits {
        let segment = position.shard * self.segments + position.start / WIDTH;
        let equation = equation(g);
        let both = u64::from(equation as u32) << (position.start % WIDTH);
        let near = self.rows_of(segment);
        KeyBits {
            near: near as usize,
            far: (near + self.columns + u64::from(segment < self.wide)) as usize,
            columns: self.columns_of(segment) as usize,
            low: both as u32,
            high: (both >> 32) as u32,
            fingerprint: (equation >> 32) as u32,
        }
    }
}

/// The layers of a ribbon, of which only the last may bump no keys, with their half words.
#[derive(Clone, Copy)]
pub(crate) struct Ribbon<'a> {
    pub(crate) layers: &'a [Layer],
    pub(crate) cuts: &'a [u32],
    pub(crate) rows: &'a [u32],
}

/// What a query of one hash finds in a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerStep {
    pub(crate) position: KeyPosition,
    /// Whether the key continues in the next layer.
    pub(crate) bumped: bool,
    /// The coefficients of the equation.
    pub(crate) equation: u32,
    pub(crate) columns: u32,
    /// The bits of the fingerprint that are compared, and the bits that the equation gives.
    pub(crate) fingerprint: u32,
    pub(crate) result: u32,
}

/// Returns whether the bits of a key have the expected values. Stops at the first column that has
/// not.
#[inline(always)]
pub(super) fn matches(rows: &[u32], key_bits: &KeyBits) -> bool {
    let near = &rows[key_bits.near..][..key_bits.columns];
    let far = &rows[key_bits.far..][..key_bits.columns];
    near.iter().zip(far).enumerate().all(|(column, (near, far))| {
        let bits = u32::from_le(*near) & key_bits.low ^ u32::from_le(*far) & key_bits.high;
        (bits.count_ones() ^ key_bits.fingerprint >> column) & 1 == 0
    })
}

/// Hashes that are processed together, so that a batch of bumped hashes is left for the next layer.
const CHUNK: usize = 1024;
/// Hashes between prefetch and access: enough to fill a core's line-fill buffers.
const AHEAD: usize = 32;

/// Half words per cache line.
const LINE_HALF_WORDS: usize = 16;

/// A hash whose bits have been prefetched.
#[derive(Clone, Copy, Default)]
struct Prepared {
    pending: Pending,
    cut: Cut,
    key_bits: KeyBits,
}

/// A hash of the previous layer, and its index in the chunk.
#[derive(Clone, Copy, Default)]
struct Pending {
    hash: u64,
    index: usize,
}

impl Ribbon<'_> {
    /// Returns what a query of a hash finds in each layer that it looks into.
    pub(crate) fn steps(&self, mut hash: u64) -> Vec<LayerStep> {
        let mut steps = Vec::new();
        for layer in self.layers {
            hash = remix(hash, layer.seed);
            let position = layer.locate(hash);
            let bumped = layer.bumps(self.cuts, layer.cut_of(position));
            let key_bits = layer.key_bits(hash, position);
            let columns = key_bits.columns;
            let rows = |at: usize| &self.rows[at..][..columns];
            let bits = rows(key_bits.near).iter().zip(rows(key_bits.far)).map(|(near, far)| {
                let both = u32::from_le(*near) & key_bits.low ^ u32::from_le(*far) & key_bits.high;
                both.count_ones() & 1
            });
            steps.push(LayerStep {
                position,
                bumped,
                equation: equation(hash) as u32,
                columns: columns as u32,
                fingerprint: key_bits.fingerprint & !(u32::MAX << columns),
                result: bits.enumerate().fold(0, |result, (column, bit)| result | bit << column),
            });
            if !bumped {
                break;
            }
        }
        steps
    }

    /// Returns whether the ribbon contains a hash.
    #[inline(always)]
    pub(super) fn contains(
        &self,
        mut hash: u64,
        matches: impl Fn(&[u32], &KeyBits) -> bool,
    ) -> bool {
        for layer in self.layers {
            hash = remix(hash, layer.seed);
            let position = layer.locate(hash);
            if !layer.bumps(self.cuts, layer.cut_of(position)) {
                return matches(self.rows, &layer.key_bits(hash, position));
            }
        }
        false
    }

    /// Looks up many hashes.
    ///
    /// Always inlined, so that it is compiled for the instructions of the caller.
    #[inline(always)]
    pub(super) fn batch(
        &self,
        hashes: &[u64],
        found: &mut [u64],
        matches: impl Fn(&[u32], &KeyBits) -> bool,
    ) {
        assert!(found.len() == hashes.len().div_ceil(64), "one word for 64 results");
        let mut pending = [Pending::default(); CHUNK];
        for (hashes, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK / 64)) {
            found.fill(0);
            for (index, (&hash, pending)) in hashes.iter().zip(&mut pending).enumerate() {
                *pending = Pending { hash, index };
            }
            let mut left = hashes.len();
            for layer in self.layers {
                left = self.test_layer(layer, &mut pending[..left], found, &matches);
            }
        }
    }

    /// Looks up hashes in a layer. Moves bumped hashes to the front and returns their number.
    ///
    /// There is no branch on whether a key is bumped or found, because it would be unpredictable.
    #[inline(always)]
    fn test_layer(
        &self,
        layer: &Layer,
        pending: &mut [Pending],
        found: &mut [u64],
        matches: &impl Fn(&[u32], &KeyBits) -> bool,
    ) -> usize {
        let mut ring = [Prepared::default(); AHEAD];
        let mut bumped = 0;
        if pending.is_empty() {
            return 0;
        }
        for at in 0..pending.len() + AHEAD {
            let slot = &mut ring[at % AHEAD];
            if at >= AHEAD {
                let bumps = layer.bumps(self.cuts, slot.cut);
                let yes = matches(self.rows, &slot.key_bits) & !bumps;
                let Pending { index, .. } = slot.pending;
                found[index / 64] |= u64::from(yes) << (index % 64);
                pending[bumped] = slot.pending;
                bumped += usize::from(bumps);
            }
            if let Some(next) = pending.get(at) {
                *slot = self.prepare(layer, *next);
            }
        }
        bumped
    }

    /// Computes the position of the bits of a hash and prefetches them.
    #[inline(always)]
    fn prepare(&self, layer: &Layer, pending: Pending) -> Prepared {
        let hash = remix(pending.hash, layer.seed);
        let position = layer.locate(hash);
        let (cut, key_bits) = (layer.cut_of(position), layer.key_bits(hash, position));
        // Vector code reads groups of eight columns.
        let last = key_bits.far + (key_bits.columns.saturating_sub(1) | 7);
        (key_bits.near..last).step_by(LINE_HALF_WORDS).for_each(|half| prefetch(self.rows, half));
        prefetch(self.rows, last);
        prefetch(self.cuts, cut.half);
        Prepared { pending: Pending { hash, ..pending }, cut, key_bits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmix_is_the_inverse_of_remix() {
        for seed in [0, 1, 1 << 32, u64::MAX] {
            for at in 0..10_000u64 {
                let hash = at.wrapping_mul(MIX_LOW) ^ at << 50;
                assert_eq!(unmix(remix(hash, seed), seed), hash);
            }
        }
    }
}
