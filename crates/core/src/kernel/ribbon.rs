//! Asking a ribbon: the bits that linear equations have in common with a key's fingerprint.
//!
//! A ribbon is one or more [`Layer`]s of rows of bits. A key has in each layer a hash g of its
//! own, and of it a *shard*, a *start* in it, an *equation* of [`WIDTH`] coefficients and a
//! *fingerprint*. It is answered by the first layer that does not *bump* it: there column j of
//! the rows that the equation names, from the start on, add up (modulo 2) to bit j of the
//! fingerprint, for every column. docs/format.md, "Layout 8", says all of it exactly.
//!
//! Rows are kept by columns: a *segment* is [`WIDTH`] rows, and of each column a half word of 32
//! bits. The equation of a key lies in two neighbouring segments: one run of 8 bytes a column.
//!
//! Invariants: all places of a layer lie in the rows and cuts it was laid out for, whatever the
//! hash and the bits are. The portable form is the law.
//!
//! Cost: a line for the cuts of 16,384 rows, nearly always in cache, and one or two for up to 8
//! columns; one key in 18 is bumped and asks the next layer. Source: Dillinger & Walzer 2021,
//! "Ribbon filter: practically smaller than Bloom and Xor"; Dillinger, Hübschle-Schneider, Sanders
//! & Walzer 2022, "Fast succinct retrieval and approximate membership using ribbon".

use super::blocked::{MIX_HIGH, MIX_LOW};
use super::{Ready, prefetch, scale};

/// Coefficients of an equation, and rows of a segment.
pub(crate) const WIDTH: u64 = 32;
/// Rows of a bucket, the unit of bumping.
pub(crate) const BUCKET: u64 = 64;
/// Keys that start in the first so many rows of a bucket are bumped, by the bucket's cut.
pub(crate) const CUTS: [u64; 4] = [0, 8, 20, BUCKET];
/// Cuts in a half word.
pub(crate) const CUTS_IN_HALF: u64 = 16;

/// The hash of a key in a layer, of its hash in the layer before or of itself. One to one: keys
/// that differ go on to differ.
///
/// Source: the finalizer of MurmurHash3 (Appleby 2011) with this house's constants.
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

/// What an odd number must be multiplied with to give 1. Newton's method: each step doubles the
/// digits that are right, of which 3 are at first.
fn inverse(odd: u64) -> u64 {
    let step = |x: u64| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
    step(step(step(step(step(odd)))))
}

/// The equation of a hash in a layer, low half, and its fingerprint, high half. The first
/// coefficient is 1.
#[inline(always)]
pub(crate) fn equation(g: u64) -> u64 {
    let product = u128::from(g) * u128::from(MIX_LOW);
    ((product >> 64) as u64 ^ product as u64) | 1
}

/// A layer, laid out: its numbers fit together and with the cuts and rows of its ribbon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    /// What makes its hashes differ from those of other layers and filters.
    pub(crate) seed: u64,
    /// Parts whose equations have no row in common.
    pub(crate) shards: u64,
    /// Segments of a shard, at least 2.
    pub(crate) segments: u64,
    /// So many segments, from the first on, have one column more.
    pub(crate) wide: u64,
    /// The columns of the others.
    pub(crate) columns: u64,
    /// Whether it bumps no key and has no cuts.
    pub(crate) last: bool,
    /// The half word where its rows begin.
    pub(crate) rows_at: u64,
    /// The half word where its cuts begin.
    pub(crate) cuts_at: u64,
    /// Half words of cuts of a shard.
    pub(crate) cuts_each: u64,
}

/// Where a key is in a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) shard: u64,
    /// The first row of its equation, in the shard.
    pub(crate) start: u64,
}

/// Where the cut of a key's bucket is.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    half: usize,
    /// The cut's first bit in the half word.
    shift: u32,
    /// The first row of the key's equation, in the bucket.
    row: u32,
}

/// Where the bits of a key are, and what they should be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    /// The half words of its first segment and of the one behind.
    pub(super) near: usize,
    pub(super) far: usize,
    pub(super) columns: usize,
    /// The equation's part in both.
    pub(super) low: u32,
    pub(super) high: u32,
    pub(super) fingerprint: u32,
}

impl Layer {
    /// Rows in which an equation of a shard may start.
    #[inline(always)]
    pub(crate) fn starts(&self) -> u64 {
        (self.segments - 1) * WIDTH
    }

    /// Where a hash of this layer is. Grows with the hash.
    #[inline(always)]
    pub(crate) fn place(&self, g: u64) -> Place {
        let product = u128::from(g) * u128::from(self.shards);
        Place { shard: (product >> 64) as u64, start: scale(product as u64, self.starts()) }
    }

    /// The half word where the bits of a segment of the layer begin.
    #[inline(always)]
    pub(crate) fn rows_of(&self, segment: u64) -> u64 {
        self.rows_at + segment * self.columns + segment.min(self.wide)
    }

    /// How many columns a key compares that starts in this segment.
    #[inline(always)]
    pub(crate) fn columns_of(&self, segment: u64) -> u64 {
        self.columns + u64::from(segment + 1 < self.wide)
    }

    /// Where the cut of a place's bucket is.
    #[inline(always)]
    fn cut_of(&self, place: Place) -> Cut {
        let bucket = place.start / BUCKET;
        let half = self.cuts_at + place.shard * self.cuts_each + bucket / CUTS_IN_HALF;
        let shift = (bucket % CUTS_IN_HALF) as u32 * 2;
        Cut { half: half as usize, shift, row: (place.start % BUCKET) as u32 }
    }

    /// The first so many rows of a bucket, of a shard, are bumped.
    pub(crate) fn bumped_in(&self, cuts: &[u32], shard: u64, bucket: u64) -> u64 {
        if self.last {
            return 0;
        }
        let Cut { half, shift, .. } = self.cut_of(Place { shard, start: bucket * BUCKET });
        CUTS[(u32::from_le(cuts[half]) >> shift & 3) as usize]
    }

    /// Whether the cuts send a key on to the next layer.
    #[inline(always)]
    fn bumps(&self, cuts: &[u32], cut: Cut) -> bool {
        if self.last {
            return false;
        }
        let bits = u32::from_le(cuts[cut.half]) >> cut.shift & 3;
        u64::from(cut.row) < CUTS[bits as usize]
    }

    /// Where the bits of a hash of this layer are.
    #[inline(always)]
    fn run(&self, g: u64, place: Place) -> Run {
        let segment = place.shard * self.segments + place.start / WIDTH;
        let equation = equation(g);
        let both = u64::from(equation as u32) << (place.start % WIDTH);
        let near = self.rows_of(segment);
        Run {
            near: near as usize,
            far: (near + self.columns + u64::from(segment < self.wide)) as usize,
            columns: self.columns_of(segment) as usize,
            low: both as u32,
            high: (both >> 32) as u32,
            fingerprint: (equation >> 32) as u32,
        }
    }
}

/// A ribbon to be asked: layers, of which only the last may be of the kind that bumps nothing, and
/// the half words they were laid out for.
#[derive(Clone, Copy)]
pub(crate) struct Ribbon<'a> {
    pub(crate) layers: &'a [Layer],
    pub(crate) cuts: &'a [u32],
    pub(crate) rows: &'a [u32],
}

impl Ready {
    /// Whether a ribbon has a hash.
    #[inline]
    pub(crate) fn ribbon_contains(self, ribbon: Ribbon<'_>, hash: u64) -> bool {
        ribbon.contains(hash, |rows, run| self.agrees(rows, run))
    }

    /// Whether a run of bits is as it should be.
    #[inline(always)]
    fn agrees(self, rows: &[u32], run: &Run) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            super::Kernel::Avx512 => {
                assert!(run.far.max(run.near) + run.columns <= rows.len());
                // SAFETY: the machine has the instructions, and both runs are there.
                unsafe { super::avx512::ribbon::agrees(rows.as_ptr(), run) }
            }
            _ => agrees(rows, run),
        }
    }

    /// Looks for many hashes; answers are as those of
    /// [`contains_batch`](Self::contains_batch).
    pub(crate) fn ribbon_batch(self, ribbon: Ribbon<'_>, hashes: &[u64], found: &mut [u64]) {
        match self.0 {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            super::Kernel::Avx512 => unsafe { super::avx512::ribbon::batch(ribbon, hashes, found) },
            _ => ribbon.batch(hashes, found, agrees),
        }
    }
}

/// Whether a run of bits is as it should be. Ends at the first column that is not.
#[inline(always)]
fn agrees(rows: &[u32], run: &Run) -> bool {
    let near = &rows[run.near..][..run.columns];
    let far = &rows[run.far..][..run.columns];
    near.iter().zip(far).enumerate().all(|(column, (near, far))| {
        let bits = u32::from_le(*near) & run.low ^ u32::from_le(*far) & run.high;
        (bits.count_ones() ^ run.fingerprint >> column) & 1 == 0
    })
}

/// Hashes that go through the layers together, so that those that are bumped are some.
const CHUNK: usize = 1024;
/// Hashes on the way: enough to keep a core's line-fill buffers busy.
const AHEAD: usize = 32;

/// Half words of a line.
const LINE: usize = 16;

/// A hash on the way.
#[derive(Clone, Copy, Default)]
struct Prepared {
    waiting: Waiting,
    cut: Cut,
    run: Run,
}

/// A hash, as the layer before made it, and its number in the chunk.
#[derive(Clone, Copy, Default)]
struct Waiting {
    hash: u64,
    number: usize,
}

impl Ribbon<'_> {
    /// Whether the layers have a hash.
    #[inline(always)]
    fn contains(&self, mut hash: u64, agrees: impl Fn(&[u32], &Run) -> bool) -> bool {
        for layer in self.layers {
            hash = remix(hash, layer.seed);
            let place = layer.place(hash);
            if !layer.bumps(self.cuts, layer.cut_of(place)) {
                return agrees(self.rows, &layer.run(hash, place));
            }
        }
        false
    }

    /// Looks for many hashes.
    ///
    /// Inlined always, so that it is compiled for the instructions of whoever calls.
    #[inline(always)]
    pub(super) fn batch(
        &self,
        hashes: &[u64],
        found: &mut [u64],
        agrees: impl Fn(&[u32], &Run) -> bool,
    ) {
        assert!(found.len() == hashes.len().div_ceil(64), "a word for 64 answers");
        let mut waiting = [Waiting::default(); CHUNK];
        for (hashes, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK / 64)) {
            found.fill(0);
            for (number, (&hash, waiting)) in hashes.iter().zip(&mut waiting).enumerate() {
                *waiting = Waiting { hash, number };
            }
            let mut left = hashes.len();
            for layer in self.layers {
                left = self.pass(layer, &mut waiting[..left], found, &agrees);
            }
        }
    }

    /// Looks for hashes in a layer. Those it bumps come to the front; how many they are.
    ///
    /// Whether a key is bumped, or found, nothing can foresee: there is no branch on it.
    #[inline(always)]
    fn pass(
        &self,
        layer: &Layer,
        waiting: &mut [Waiting],
        found: &mut [u64],
        agrees: &impl Fn(&[u32], &Run) -> bool,
    ) -> usize {
        let mut ring = [Prepared::default(); AHEAD];
        let mut bumped = 0;
        if waiting.is_empty() {
            return 0;
        }
        for at in 0..waiting.len() + AHEAD {
            let slot = &mut ring[at % AHEAD];
            if at >= AHEAD {
                let bumps = layer.bumps(self.cuts, slot.cut);
                let yes = agrees(self.rows, &slot.run) & !bumps;
                let Waiting { number, .. } = slot.waiting;
                found[number / 64] |= u64::from(yes) << (number % 64);
                waiting[bumped] = slot.waiting;
                bumped += usize::from(bumps);
            }
            if let Some(next) = waiting.get(at) {
                *slot = self.prepare(layer, *next);
            }
        }
        bumped
    }

    /// Computes where the bits of a hash are, and asks for them.
    #[inline(always)]
    fn prepare(&self, layer: &Layer, waiting: Waiting) -> Prepared {
        let hash = remix(waiting.hash, layer.seed);
        let place = layer.place(hash);
        let (cut, run) = (layer.cut_of(place), layer.run(hash, place));
        // Vectors of eight look at so much.
        let last = run.far + (run.columns.saturating_sub(1) | 7);
        (run.near..last).step_by(LINE).for_each(|half| prefetch(self.rows, half));
        prefetch(self.rows, last);
        prefetch(self.cuts, cut.half);
        Prepared { waiting: Waiting { hash, ..waiting }, cut, run }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_s_hash_can_be_undone() {
        for seed in [0, 1, 1 << 32, u64::MAX] {
            for at in 0..10_000u64 {
                let hash = at.wrapping_mul(MIX_LOW) ^ at << 50;
                assert_eq!(unmix(remix(hash, seed), seed), hash);
            }
        }
    }
}
