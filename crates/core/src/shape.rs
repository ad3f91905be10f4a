//! Shapes: the validated geometry of a filter, and how large it must be.
//!
//! A shape is a proof: whoever holds one knows that its numbers fit together and that every
//! block or position it leads to lies inside the filter. It can be had in three ways: from a
//! promise (keys and rate), from what is given (bits and probes, or memory), or from untrusted
//! numbers, checked. Two filters of equal shape have the same geometry.
//!
//! Nothing is ever rounded to a power of two. Sizes made for a rate are rounded up to one with many
//! divisors, where that takes at most a thousandth more.

use crate::error::{Error, Result};
use crate::rate;

/// Bytes of a cache line, the unit of all storage.
pub(crate) const LINE_BYTES: u64 = 64;
const LINE_BITS: u64 = LINE_BYTES * 8;
/// Filters beyond this many lines (2⁵⁶ bytes) are refused.
const MOST_LINES: u64 = 1 << 50;
const MOST_BITS: u64 = MOST_LINES * LINE_BITS;

/// The geometry of a [`BloomFilter`](crate::BloomFilter): blocks of 8 or 16 lanes of 64 bits,
/// and how many lanes a key sets a bit in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    blocks: u64,
    lanes: u32,
    probes: u32,
}

/// Line pairs are used for rates below this: there they save a tenth of the space or more, for
/// one and a half times the time (docs/design.md, "Layouts").
const PAIRS_BELOW: f64 = 2e-4;

/// To leave lanes alone, for which vector kernels need masks, is worth it where it saves more
/// space than this.
const MASKED: f64 = 1.02;

impl Shape {
    /// The smallest shape that keeps `rate` with `keys` keys; or, where that is within 2 % of it,
    /// the one in which keys mark all lanes, as that is faster. From 12,000 blocks on it is up to
    /// 0.1 % larger, to have a number of blocks by which it can be folded.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, or 64-bit hashes cannot reach it for so many keys.
    pub fn for_rate(keys: u64, rate: f64) -> Result<Self> {
        let keys = check_promise(keys, rate)?;
        let lanes = if rate < PAIRS_BELOW { 16 } else { 8 };
        // Of equal costs the fewest probes win.
        let cost = |probes, blocks: u64| blocks as f64 * if probes == lanes { 1.0 } else { MASKED };
        let mut best: Option<Self> = None;
        let mut better = |probes: u32| {
            let limit = match best {
                None => MOST_LINES,
                Some(best) => {
                    let (most, tie) = (cost(best.probes, best.blocks), probes < best.probes);
                    let wins =
                        |blocks| cost(probes, blocks) < most || tie && cost(probes, blocks) == most;
                    let near = (most / cost(probes, 1)) as u64 + 1;
                    (near.saturating_sub(2)..=near).rev().find(|&blocks| wins(blocks)).unwrap_or(0)
                }
            };
            let found = Self::least_blocks(keys, rate, lanes, probes, limit, best.is_some());
            best = found.or(best);
            found.is_some()
        };
        better(lanes);
        // The size has one minimum over the probes, so that a search outwards from about there may
        // end when two in a row are no better.
        let ideal = (-rate.log2()).round().clamp(1.0, f64::from(lanes)) as u32;
        let masked = probes_for(lanes, rate).filter(|probes| *probes < lanes);
        let (fewer, more): (Vec<u32>, Vec<u32>) = masked.partition(|probes| *probes <= ideal);
        for probes in [fewer.into_iter().rev().collect(), more] {
            let mut worse = 0;
            for probes in probes {
                worse = if better(probes) { 0 } else { worse + 1 };
                if worse == 2 {
                    break;
                }
            }
        }
        let best = best.ok_or_else(|| Error::unattainable(keys, rate, rate::hash_floor(keys)))?;
        Ok(Self { blocks: round(best.blocks, MOST_LINES), ..best })
    }

    /// The least shape of these lanes and probes, of at most `most` blocks, that keeps `rate` with
    /// `keys` keys; `unlikely` says that there hardly is one.
    fn least_blocks(
        keys: u64,
        rate: f64,
        lanes: u32,
        probes: u32,
        most: u64,
        unlikely: bool,
    ) -> Option<Self> {
        let shape = |blocks| Self { blocks, lanes, probes };
        let guess = rate::classic_bits(keys, rate) / f64::from(lanes * 64);
        let guess = if unlikely { most } else { guess as u64 + 1 };
        let slope = f64::from(probes) * std::f64::consts::LN_2;
        least_near(most, guess, slope, rate, |blocks| shape(blocks).rate(keys)).map(shape)
    }

    /// The smallest shape in which a key sets `probes` bits that keeps `rate` with `keys` keys:
    /// lines of 8 lanes for up to 8 probes, line pairs of 16 above.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1 or cannot be reached for so many keys, or the probes are
    /// not 1 to 16.
    pub fn for_rate_with_probes(keys: u64, rate: f64, probes: u32) -> Result<Self> {
        let keys = check_promise(keys, rate)?;
        let Self { lanes, .. } = Self::for_bits(1, probes)?;
        if !probes_for(lanes, rate).contains(&probes) {
            return Err(Error::invalid("probes", "8 or 16 for so low a rate", probes));
        }
        let best = Self::least_blocks(keys, rate, lanes, probes, MOST_LINES, false);
        let best = best.ok_or_else(|| Error::unattainable(keys, rate, rate::hash_floor(keys)))?;
        Ok(Self { blocks: round(best.blocks, MOST_LINES), ..best })
    }

    /// The largest shape of at most `bytes` in which a key sets `probes` bits.
    ///
    /// # Errors
    /// If that is less than a block, or the probes are not 1 to 16.
    pub fn for_memory_with_probes(bytes: u64, probes: u32) -> Result<Self> {
        let Self { lanes, .. } = Self::for_bits(1, probes)?;
        let blocks = bytes / u64::from(lanes * 8);
        if blocks == 0 || blocks > MOST_LINES {
            return Err(Error::no_memory(bytes));
        }
        Ok(Self { blocks, lanes, probes })
    }

    /// A number of keys for which [`for_rate`](Self::for_rate) takes at most `bytes`, within 2 % or
    /// one key of the most; 0 if there is none. More may fit, since the size falls a little where
    /// another number of probes becomes better or the rounding changes.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1.
    pub fn most_keys(bytes: u64, rate: f64) -> Result<u64> {
        most_keys_in(bytes, rate, |keys| Ok(Self::for_rate(keys, rate)?.size_bytes()))
    }

    /// The shape that keeps `rate` until `keys` keys were new to it, which is when it has been
    /// given a few more: for filters that close when they have counted so many.
    pub(crate) fn for_new_keys(keys: u64, rate: f64) -> Result<Self> {
        // At a higher rate the count hardly comes to its end, as most keys seem to be there.
        let rate = rate.min(0.5);
        let shape = Self::for_rate(keys, rate)?;
        let given = rate::distinct(keys, |keys| shape.rate(keys));
        Self::for_rate(given.ceil() as u64, rate)
    }

    /// The shape with the least rate for `keys` keys in at most `bytes` of memory.
    ///
    /// # Errors
    /// If that is less than one line of 64 bytes.
    pub fn for_memory(bytes: u64, keys: u64) -> Result<Self> {
        let lines = check_memory(bytes)?;
        let best = |lanes: u32, blocks: u64| {
            let shape = |probes| Self { blocks, lanes, probes };
            let by_rate = |a: &Self, b: &Self| a.rate(keys).total_cmp(&b.rate(keys));
            (1..=lanes).map(shape).filter(|shape| shape.trusted(keys)).min_by(by_rate)
        };
        let single = best(8, lines).ok_or_else(|| Error::no_memory(bytes))?;
        if single.rate(keys) >= PAIRS_BELOW || lines < 2 {
            return Ok(single);
        }
        Ok(best(16, lines / 2).filter(|pair| pair.rate(keys) < single.rate(keys)).unwrap_or(single))
    }

    /// The shape of at least `bits` bits, rounded up to whole blocks, with `probes` probes: lines
    /// of 8 lanes for up to 8 probes, line pairs of 16 above.
    ///
    /// # Errors
    /// If there are no bits, or the probes are not 1 to 16.
    pub fn for_bits(bits: u64, probes: u32) -> Result<Self> {
        let lanes = if probes > 8 { 16 } else { 8 };
        Self::new(bits.div_ceil(u64::from(lanes) * 64), lanes, probes)
    }

    /// The shape with exactly these numbers.
    ///
    /// # Errors
    /// If there is no block, `lanes` is not 8 or 16, or `probes` is not 1 to `lanes`.
    pub fn new(blocks: u64, lanes: u32, probes: u32) -> Result<Self> {
        if !matches!(lanes, 8 | 16) {
            return Err(Error::invalid("lanes", "8 or 16", lanes));
        }
        if !(1..=lanes).contains(&probes) {
            let expected = if lanes == 8 { "1 to 8" } else { "1 to 16" };
            return Err(Error::invalid("probes", expected, probes));
        }
        if blocks == 0 || blocks > MOST_LINES {
            return Err(Error::invalid("blocks", "1 to 2^50", blocks));
        }
        Ok(Self { blocks, lanes, probes })
    }

    /// Again the shape that had these numbers: for those who keep it in fewer bytes.
    #[inline(always)]
    pub(crate) fn again(blocks: u64, lanes: u8, probes: u8) -> Self {
        Self { blocks, lanes: lanes.into(), probes: probes.into() }
    }

    /// How many keys this shape holds at `rate`: the inverse of [`Shape::for_rate`].
    #[must_use]
    pub fn keys_at_rate(&self, rate: f64) -> u64 {
        most_keys(|keys| self.rate(keys) <= rate)
    }

    /// The false-positive rate with `keys` keys, the hash floor included.
    #[must_use]
    pub fn rate(&self, keys: u64) -> f64 {
        let rate = rate::blocked(keys, self.blocks, self.lanes, self.probes);
        rate::either(rate, rate::hash_floor(keys))
    }

    /// The smallest shape that keeps `rate` with `keys` keys and of which this one is a fold:
    /// with the same probes and lanes and a multiple of the blocks.
    pub(crate) fn multiple_for_rate(&self, keys: u64, rate: f64) -> Result<Self> {
        let keys = check_promise(keys, rate)?;
        if !probes_for(self.lanes, rate).contains(&self.probes) {
            let expected = "as many as lanes for so low a rate";
            return Err(Error::invalid("probes", expected, self.probes));
        }
        let times = |times: u64| Self { blocks: self.blocks * times, ..*self };
        let least = least(MOST_LINES / self.blocks, |most| times(most).rate(keys) <= rate);
        least.map(times).ok_or_else(|| Error::unattainable(keys, rate, rate::hash_floor(keys)))
    }

    /// Whether the rate can be computed to enough digits.
    fn trusted(&self, keys: u64) -> bool {
        let rate = rate::blocked(keys, self.blocks, self.lanes, self.probes);
        self.probes == self.lanes || rate > rate::ALTERNATING_FLOOR
    }

    /// Blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Lanes of 64 bits in a block: 8 (a cache line) or 16 (a pair of them).
    #[must_use]
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Bits that a key sets, each in a lane of its own.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Bits in all.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.size_bytes() * 8
    }

    /// Bytes in all.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lines() * LINE_BYTES
    }

    pub(crate) fn lines(&self) -> u64 {
        self.blocks * u64::from(self.lanes / 8)
    }

    /// The chance that one key sets a given bit.
    pub(crate) fn touch(&self) -> f64 {
        f64::from(self.probes) / self.bits() as f64
    }
}

/// The geometry of a [`ClassicBloomFilter`](crate::ClassicBloomFilter): m bits, and how many of
/// them a key sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassicShape {
    bits: u64,
    probes: u32,
}

/// More probes than any rate above the hash floor wants.
const MOST_PROBES: u32 = 64;

impl ClassicShape {
    /// The smallest shape that keeps `rate` with `keys` keys; from 12,000 bits on up to 0.1 %
    /// larger, to have a number of bits by which it can be folded.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, or 64-bit hashes cannot reach it for so many keys.
    pub fn for_rate(keys: u64, rate: f64) -> Result<Self> {
        let keys = check_promise(keys, rate)?;
        let ideal = (-rate.log2()).round().max(1.0) as u32;
        let near = ideal.saturating_sub(2).max(1)..=(ideal + 2).min(MOST_PROBES);
        // First the one that is best to second order, then the others where they are no worse.
        let about = |probes| {
            let rate_of = |bits| rate::classic_second_order(keys, bits, probes);
            Self::search(keys, rate, probes, MOST_BITS, None, rate_of)
        };
        let mut tries: Vec<_> =
            near.filter_map(|probes| about(probes).map(|shape| (shape.bits, probes))).collect();
        tries.sort_unstable();
        let mut best: Option<Self> = None;
        for (guess, probes) in tries {
            // What is larger by more than the second order may be wrong.
            if best.is_some_and(|best| guess > best.bits + best.bits / 50 + 8) {
                break;
            }
            // Of equal sizes the fewest probes win.
            let most = best.map_or(MOST_BITS, |best| best.bits - u64::from(probes > best.probes));
            let guess = if best.is_some() { most } else { guess };
            let rate_of = |bits| Self { bits, probes }.rate(keys);
            best = Self::search(keys, rate, probes, most, Some(guess), rate_of).or(best);
        }
        let best = best.ok_or_else(|| Error::unattainable(keys, rate, rate::hash_floor(keys)))?;
        Ok(Self { bits: round(best.bits, MOST_BITS), ..best })
    }

    fn search(
        keys: u64,
        rate: f64,
        probes: u32,
        most: u64,
        guess: Option<u64>,
        rate_of: impl Fn(u64) -> f64,
    ) -> Option<Self> {
        let guess = guess.unwrap_or_else(|| rate::classic_bits(keys, rate) as u64);
        let slope = f64::from(probes) * std::f64::consts::LN_2;
        least_near(most, guess, slope, rate, rate_of).map(|bits| Self { bits, probes })
    }

    /// The smallest shape in which a key sets `probes` bits that keeps `rate` with `keys` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1 or cannot be reached for so many keys, or the probes are
    /// not 1 to 64.
    pub fn for_rate_with_probes(keys: u64, rate: f64, probes: u32) -> Result<Self> {
        let keys = check_promise(keys, rate)?;
        Self::for_bits(1, probes)?;
        let rate_of = |bits| Self { bits, probes }.rate(keys);
        let best = Self::search(keys, rate, probes, MOST_BITS, None, rate_of);
        let best = best.ok_or_else(|| Error::unattainable(keys, rate, rate::hash_floor(keys)))?;
        Ok(Self { bits: round(best.bits, MOST_BITS), ..best })
    }

    /// The largest shape of at most `bytes` in which a key sets `probes` bits.
    ///
    /// # Errors
    /// If that is less than one line of 64 bytes, or the probes are not 1 to 64.
    pub fn for_memory_with_probes(bytes: u64, probes: u32) -> Result<Self> {
        Self::for_bits(check_memory(bytes)? * LINE_BITS, probes)
    }

    /// A number of keys for which [`for_rate`](Self::for_rate) takes at most `bytes`, within 2 % or
    /// one key of the most; 0 if there is none. More may fit, since the size falls a little where
    /// the rounding changes.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1.
    pub fn most_keys(bytes: u64, rate: f64) -> Result<u64> {
        most_keys_in(bytes, rate, |keys| Ok(Self::for_rate(keys, rate)?.size_bytes()))
    }

    /// The shape with the least rate for `keys` keys in at most `bytes` of memory.
    ///
    /// # Errors
    /// If that is less than one line of 64 bytes.
    pub fn for_memory(bytes: u64, keys: u64) -> Result<Self> {
        let bits = check_memory(bytes)? * LINE_BITS;
        let ideal = rate::optimal_probes(bits as f64 / keys.max(1) as f64).min(MOST_PROBES);
        let near = ideal.saturating_sub(2).max(1)..=(ideal + 2).min(MOST_PROBES);
        let by_rate = |a: &Self, b: &Self| a.rate(keys).total_cmp(&b.rate(keys));
        let best = near.map(|probes| Self { bits, probes }).min_by(by_rate);
        best.ok_or_else(|| Error::no_memory(bytes))
    }

    /// The shape with exactly so many bits and probes.
    ///
    /// # Errors
    /// If there are no bits, or the probes are not 1 to 64.
    pub fn for_bits(bits: u64, probes: u32) -> Result<Self> {
        if bits == 0 || bits > MOST_BITS {
            return Err(Error::invalid("bits", "1 to 2^59", bits));
        }
        if !(1..=MOST_PROBES).contains(&probes) {
            return Err(Error::invalid("probes", "1 to 64", probes));
        }
        Ok(Self { bits, probes })
    }

    /// How many keys this shape holds at `rate`: the inverse of [`ClassicShape::for_rate`].
    #[must_use]
    pub fn keys_at_rate(&self, rate: f64) -> u64 {
        most_keys(|keys| self.rate(keys) <= rate)
    }

    /// The false-positive rate with `keys` keys, the hash floor included.
    #[must_use]
    pub fn rate(&self, keys: u64) -> f64 {
        let rate = rate::classic(keys, self.bits, self.probes);
        rate::either(rate, rate::hash_floor(keys))
    }

    /// The smallest shape that keeps `rate` with `keys` keys and of which this one is a fold:
    /// with the same probes and a multiple of the bits.
    pub(crate) fn multiple_for_rate(&self, keys: u64, rate: f64) -> Result<Self> {
        let keys = check_promise(keys, rate)?;
        let times = |times: u64| Self { bits: self.bits * times, ..*self };
        let most = MOST_BITS / self.bits;
        let least = least(most, |most| times(most).rate(keys) <= rate);
        least.map(times).ok_or_else(|| Error::unattainable(keys, rate, rate::hash_floor(keys)))
    }

    /// Bits in all.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Bits that a key sets; two of them may fall together.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Bytes in all: the bits, rounded up to whole cache lines.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lines() * LINE_BYTES
    }

    pub(crate) fn lines(&self) -> u64 {
        self.bits.div_ceil(LINE_BITS)
    }

    /// The chance that one key sets a given bit.
    pub(crate) fn touch(&self) -> f64 {
        -(f64::from(self.probes) * (-1.0 / self.bits as f64).ln_1p()).exp_m1()
    }
}

/// A promise that can be kept: at least one key, a rate in (0, 1), the hash floor well below it.
pub(crate) fn check_promise(keys: u64, rate: f64) -> Result<u64> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::rate(rate));
    }
    let keys = keys.max(1);
    let floor = rate::hash_floor(keys);
    if floor > rate / 2.0 {
        return Err(Error::unattainable(keys, rate, floor));
    }
    Ok(keys)
}

/// Lines of a memory.
fn check_memory(bytes: u64) -> Result<u64> {
    let lines = bytes / LINE_BYTES;
    if lines == 0 || lines > MOST_LINES {
        return Err(Error::no_memory(bytes));
    }
    Ok(lines)
}

/// Numbers with more divisors than any smaller one; each divides the next.
const ROUND: [u64; 6] = [12, 60, 360, 5040, 55_440, 720_720];

/// The next multiple of the largest round number that is at most a thousandth of it.
fn round(extent: u64, most: u64) -> u64 {
    let unit = ROUND.into_iter().rev().find(|unit| *unit <= extent / 1000).unwrap_or(1);
    Some(extent.next_multiple_of(unit)).filter(|rounded| *rounded <= most).unwrap_or(extent)
}

/// The probes worth trying for a rate; fewer than all lanes only where their rate is exact.
fn probes_for(lanes: u32, rate: f64) -> std::ops::RangeInclusive<u32> {
    if rate > 2.0 * rate::ALTERNATING_FLOOR { 1..=lanes } else { lanes..=lanes }
}

/// The least number up to `most` that fits, if larger ones fit too.
fn least(most: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let mut high = 1;
    while !fits(high) {
        if high >= most {
            return None;
        }
        high = (high * 2).min(most);
    }
    // Fits at `high`, not at `low`.
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// The least number up to `most` at which `rate_of` is at most `rate`, if larger ones have lower
/// rates. Near the answer `rate_of` falls with about the power `slope` of the number, and the
/// search begins at `guess`: a good one is found in three or four evaluations.
pub(crate) fn least_near(
    most: u64,
    guess: u64,
    slope: f64,
    rate: f64,
    rate_of: impl Fn(u64) -> f64,
) -> Option<u64> {
    if most == 0 {
        return None;
    }
    // The largest number that does not fit and the least that does, with the logarithm of how much
    // too high its rate is.
    let (mut low, mut high) = (None::<(u64, f64)>, None::<(u64, f64)>);
    let mut next = guess.clamp(1, most);
    for turn in 1u32.. {
        let found = rate_of(next);
        let point = Some((next, (found / rate).ln()));
        if found <= rate {
            high = point
        } else {
            low = point
        }
        // By the slope, but at least twice as far each time once that has not led to the other side.
        let far = |at: u64, excess: f64| {
            let times = (excess / slope).exp();
            let least = if turn < 3 { 1.0 } else { 2.0 };
            at as f64 * if excess > 0.0 { times.max(least) } else { times.min(1.0 / least) }
        };
        next = match (low, high) {
            (None, Some((1, _))) => return Some(1),
            (Some((at, _)), None) if at == most => return None,
            (Some((below, _)), Some((at, _))) if at - below == 1 => return Some(at),
            (None, Some((at, excess))) => (far(at, excess) as u64).clamp(1, at - 1),
            (Some((at, excess)), None) => (far(at, excess).ceil() as u64).clamp(at + 1, most),
            (Some((below, over)), Some((at, under))) => {
                let share = over / (over - under);
                let root = (below as f64) * (at as f64 / below as f64).powf(share);
                let middle = below + (at - below) / 2;
                let between = share > 0.0 && share < 1.0 && turn % 4 != 0;
                let next = if between { root.ceil() as u64 } else { middle };
                next.clamp(below + 1, at - 1)
            }
            (None, None) => return None,
        };
    }
    None
}

/// A number of keys whose filter at a rate, of `size` bytes, fits into `bytes`: one more key does
/// not fit. The size may fall by up to 2 % further up.
fn most_keys_in(bytes: u64, rate: f64, size: impl Fn(u64) -> Result<u64>) -> Result<u64> {
    check_promise(1, rate)?;
    Ok(most_keys(|keys| size(keys).is_ok_and(|size| size <= bytes)))
}

/// The most keys that fit, if all smaller numbers fit too; else a number that fits, while the next
/// does not.
pub(crate) fn most_keys(fits: impl Fn(u64) -> bool) -> u64 {
    least(1 << 62, |keys| !fits(keys)).unwrap_or(1 << 62) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One unit less, which is at most a thousandth of the whole.
    #[test]
    fn the_rate_is_kept_and_a_little_less_would_not_keep_it() {
        for keys in [1, 2, 10, 100, 1000, 1_000_000, 100_000_000_000] {
            for rate in [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7] {
                let shape = Shape::for_rate(keys, rate).unwrap();
                assert!(shape.rate(keys) <= rate);
                if shape.blocks > 1 {
                    let unit = unit(shape.blocks);
                    assert!(shape.blocks.is_multiple_of(unit), "{shape:?}");
                    let less = Shape { blocks: shape.blocks - unit, ..shape };
                    assert!(less.rate(keys) > rate, "{keys} {rate} {shape:?}");
                }
                let holds = shape.keys_at_rate(rate);
                assert!(holds >= keys && shape.rate(holds) <= rate && shape.rate(holds + 1) > rate);

                let classic = ClassicShape::for_rate(keys, rate).unwrap();
                assert!(classic.rate(keys) <= rate && classic.keys_at_rate(rate) >= keys);
                assert!(classic.bits.is_multiple_of(unit(classic.bits)), "{classic:?}");
            }
        }
    }

    /// The search over all probes and sizes that the search for a rate replaced: the same shapes.
    #[test]
    fn a_short_search_finds_what_a_full_one_finds() {
        for keys in [1, 2, 3, 5, 7, 10, 25, 60, 100, 250, 1000, 5000, 30_000] {
            for rate in [0.9, 0.5, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 2e-4, 1e-4, 1e-5, 3e-7, 1e-9] {
                let lanes = if rate < PAIRS_BELOW { 16 } else { 8 };
                let sized = |probes| {
                    let fits = |blocks| Shape { blocks, lanes, probes }.rate(keys) <= rate;
                    let blocks = least(MOST_LINES, fits)?;
                    let masked = if probes == lanes { 1.0 } else { MASKED };
                    Some((Shape { blocks, lanes, probes }, blocks as f64 * masked))
                };
                let full = probes_for(lanes, rate).filter_map(sized);
                let full = full.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(shape, _)| shape);
                let full =
                    full.map(|best| Shape { blocks: round(best.blocks, MOST_LINES), ..best });
                assert_eq!(Shape::for_rate(keys, rate).ok(), full, "{keys} {rate}");

                let ideal = (-rate.log2()).round().max(1.0) as u32;
                let sized = |probes: u32| {
                    let fits = |bits| ClassicShape { bits, probes }.rate(keys) <= rate;
                    least(MOST_BITS, fits).map(|bits| ClassicShape { bits, probes })
                };
                let near = ideal.saturating_sub(2).max(1)..=(ideal + 2).min(MOST_PROBES);
                let full = near.filter_map(sized).min_by_key(|shape| shape.bits);
                let full =
                    full.map(|best| ClassicShape { bits: round(best.bits, MOST_BITS), ..best });
                assert_eq!(ClassicShape::for_rate(keys, rate).ok(), full, "{keys} {rate}");
            }
        }
    }

    /// What a construction costs, in rates that are calculated, of which one takes about half a
    /// microsecond in blocks and two in a small classic filter.
    #[test]
    fn a_size_takes_few_evaluations() {
        let count = |work: &dyn Fn()| {
            let before = rate::EVALUATIONS.with(std::cell::Cell::get);
            work();
            rate::EVALUATIONS.with(std::cell::Cell::get) - before
        };
        for keys in [1, 2, 10, 60, 100, 1000, 30_000, 1_000_000, 10_000_000_000] {
            for rate in [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-7, 1e-9] {
                let blocked = count(&|| drop(Shape::for_rate(keys, rate)));
                assert!(blocked <= 32, "{keys} {rate}: {blocked}");
                let classic = count(&|| drop(ClassicShape::for_rate(keys, rate)));
                assert!(classic <= 12, "{keys} {rate}: {classic}");
            }
        }
    }

    #[test]
    fn probes_beside_a_rate_are_kept() {
        for keys in [1, 100, 50_000] {
            for (rate, probes) in [(0.5, 1), (0.01, 4), (0.01, 8), (0.01, 12), (1e-5, 8), (1e-5, 9)]
            {
                let shape = Shape::for_rate_with_probes(keys, rate, probes).unwrap();
                assert!(shape.probes == probes && shape.rate(keys) <= rate, "{shape:?}");
                assert!(shape.blocks >= Shape::for_rate(keys, rate).unwrap().blocks / 2);
                let classic = ClassicShape::for_rate_with_probes(keys, rate, probes).unwrap();
                assert!(classic.probes == probes && classic.rate(keys) <= rate, "{classic:?}");
                let same = Shape::for_memory_with_probes(shape.size_bytes() + 63, probes).unwrap();
                assert_eq!(same, shape);
            }
        }
        for probes in [0, 17, 99] {
            assert!(Shape::for_rate_with_probes(100, 0.01, probes).unwrap_err().is_invalid());
            assert!(Shape::for_memory_with_probes(6400, probes).unwrap_err().is_invalid());
        }
        assert!(ClassicShape::for_rate_with_probes(100, 0.01, 65).unwrap_err().is_invalid());
        assert!(Shape::for_rate_with_probes(100, 1e-11, 9).unwrap_err().is_invalid());
        assert!(Shape::for_memory_with_probes(127, 9).unwrap_err().is_invalid());
    }

    #[test]
    fn the_keys_that_fit_are_within_2_percent_of_the_most() {
        let check = |bytes: u64, rate: f64, keys: u64, size: &dyn Fn(u64) -> u64| {
            assert!(keys == 0 || size(keys) <= bytes, "{bytes} {rate} {keys}");
            let beyond = (keys + keys / 50).max(keys + 1) + 1;
            let step = (keys / 1000).max(1);
            let more = (beyond..=beyond + keys / 10).step_by(step as usize);
            let fitting: Vec<_> = more.filter(|&keys| size(keys) <= bytes).collect();
            assert!(fitting.is_empty(), "{bytes} {rate} {keys}: {fitting:?}");
        };
        for bytes in [64, 192, 640, 5000, 64_000, 768_000, 800_000, 64 << 20, 1 << 30] {
            for rate in [0.3, 0.1, 0.05, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5] {
                let size = |keys| Shape::for_rate(keys, rate).unwrap().size_bytes();
                check(bytes, rate, Shape::most_keys(bytes, rate).unwrap(), &size);
                let size = |keys| ClassicShape::for_rate(keys, rate).unwrap().size_bytes();
                check(bytes, rate, ClassicShape::most_keys(bytes, rate).unwrap(), &size);
            }
        }
    }

    #[test]
    fn the_most_keys_fit_and_one_more_does_not() {
        for (bytes, rate) in
            [(64, 0.1), (6400, 0.01), (64 << 20, 0.01), (1 << 30, 1e-5), (64, 1e-9)]
        {
            let keys = Shape::most_keys(bytes, rate).unwrap();
            assert!(keys == 0 || Shape::for_rate(keys, rate).unwrap().size_bytes() <= bytes);
            assert!(Shape::for_rate(keys + 1, rate).unwrap().size_bytes() > bytes);
            let keys = ClassicShape::most_keys(bytes, rate).unwrap();
            assert!(ClassicShape::for_rate(keys, rate).unwrap().size_bytes() <= bytes);
            assert!(ClassicShape::for_rate(keys + 1, rate).unwrap().size_bytes() > bytes);
        }
        assert!(Shape::most_keys(64, 0.0).unwrap_err().is_invalid());
        assert_eq!(Shape::most_keys(63, 0.5).unwrap(), 0);
    }

    /// By what a size was rounded. That of the size before may have been the next smaller one.
    fn unit(extent: u64) -> u64 {
        let most = extent / 1000;
        let small = (extent - most).max(1) / 1000;
        let largest = |most| ROUND.into_iter().rev().find(|unit| *unit <= most).unwrap_or(1);
        if extent.is_multiple_of(largest(most)) { largest(most) } else { largest(small) }
    }

    #[test]
    fn round_sizes_have_many_divisors_and_cost_a_thousandth() {
        for extent in [1, 999, 11_999, 12_000, 19_727, 60_001, 5_040_001, 1 << 40, 1 << 50] {
            let rounded = round(extent, 1 << 50);
            assert!((extent..=extent + extent / 1000).contains(&rounded) && rounded <= 1 << 50);
            let divisors = (1..=1000u64).filter(|by| rounded.is_multiple_of(*by)).count();
            assert!(extent < 12_000 || extent == 1 << 50 || divisors >= 6, "{extent} {rounded}");
        }
        assert_eq!((round(11_999, 1 << 50), round(12_001, 1 << 50)), (11_999, 12_012));
        assert_eq!(round(1 << 50, 1 << 50), 1 << 50);
    }

    #[test]
    fn multiples_of_a_smaller_shape() {
        let small = Shape::new(77, 8, 8).unwrap();
        let large = small.multiple_for_rate(1_000_000, 0.01).unwrap();
        assert!(large.blocks.is_multiple_of(77) && large.rate(1_000_000) <= 0.01);
        let less = Shape { blocks: large.blocks - 77, ..large };
        assert!(less.rate(1_000_000) > 0.01);
        assert_eq!(small.multiple_for_rate(1, 0.01).unwrap(), small);
        let masked = Shape::new(77, 16, 9).unwrap();
        assert!(masked.multiple_for_rate(100, 1e-12).unwrap_err().is_invalid());
        assert!(small.multiple_for_rate(500_000_000, 1e-12).unwrap_err().is_unattainable());
        let classic = ClassicShape::for_bits(1001, 7).unwrap();
        let large = classic.multiple_for_rate(1_000_000, 0.01).unwrap();
        assert!(large.bits.is_multiple_of(1001) && large.rate(1_000_000) <= 0.01);
    }

    #[test]
    fn space_of_the_layouts() {
        let bits_per_key = |rate| Shape::for_rate(1_000_000, rate).unwrap().bits() as f64 / 1e6;
        // 10.1 was the target; a round number of blocks may cost a thousandth.
        assert!(bits_per_key(0.01) <= 10.1 * 1.001, "{}", bits_per_key(0.01));
        assert!(bits_per_key(1e-3) <= 15.75, "{}", bits_per_key(1e-3));
        assert!(bits_per_key(1e-4) <= 20.8, "{}", bits_per_key(1e-4));
        let classic = |rate| ClassicShape::for_rate(1_000_000, rate).unwrap().bits() as f64 / 1e6;
        assert!((9.58..9.61).contains(&classic(0.01)), "{}", classic(0.01));
        assert!((14.37..14.39).contains(&classic(1e-3)), "{}", classic(1e-3));
    }

    /// What the choice of `PAIRS_BELOW` rests on.
    #[test]
    fn pairs_save_a_tenth_where_they_begin() {
        let smallest = |lanes, rate| {
            let fits = |blocks, probes| Shape { blocks, lanes, probes }.rate(1_000_000) <= rate;
            let sized = |probes| least(MOST_LINES, |blocks| fits(blocks, probes)).unwrap();
            (1..=lanes).map(sized).min().unwrap() * u64::from(lanes)
        };
        for (rate, saved) in [(1e-3, 0.043), (PAIRS_BELOW, 0.096), (1e-4, 0.124)] {
            let part = 1.0 - smallest(16, rate) as f64 / smallest(8, rate) as f64;
            assert!((part - saved).abs() < 0.001, "{rate}: {part}");
        }
        assert_eq!(Shape::for_rate(1000, PAIRS_BELOW).unwrap().lanes(), 8);
        assert_eq!(Shape::for_rate(1000, PAIRS_BELOW * 0.99).unwrap().lanes(), 16);
        // Memory for that rate in lines: what is a little better is had from pairs.
        let bytes = smallest(8, PAIRS_BELOW) * 8;
        assert_eq!(Shape::for_memory(bytes - 64, 1_000_000).unwrap().lanes(), 8);
        assert_eq!(Shape::for_memory(bytes + 640, 1_000_000).unwrap().lanes(), 16);
    }

    #[test]
    fn memory_is_used_and_not_exceeded() {
        for bytes in [64, 100, 1000, 1 << 20, 4 << 30] {
            for keys in [1, 1000, 5_000_000_000] {
                let shape = Shape::for_memory(bytes, keys).unwrap();
                assert!(shape.size_bytes() <= bytes && shape.size_bytes() + 128 > bytes);
                let classic = ClassicShape::for_memory(bytes, keys).unwrap();
                assert!(classic.size_bytes() <= bytes && classic.size_bytes() + 64 > bytes);
            }
        }
        // The headline: about 4 % at 6.9 bits a key.
        let shape = Shape::for_memory(4 << 30, 5_000_000_000).unwrap();
        assert!((0.036..0.045).contains(&shape.rate(5_000_000_000)), "{shape:?}");
        let error = Shape::for_memory(63, 1).unwrap_err().to_string();
        assert!(error.contains("fits 63 bytes"), "{error}");
        let error = Shape::for_rate(1, 0.0).unwrap_err().to_string();
        assert!(error.ends_with("expected more than 0 and less than 1, found 0.0"), "{error}");
    }

    /// Tiny filters, in which the fill varies most: 37 bits for one key at 10⁻⁷ once gave a rate
    /// a third above the promise.
    #[test]
    fn tiny_classic_filters_keep_their_promise() {
        for keys in 1..=20 {
            for rate in [0.5, 0.1, 1e-2, 1e-3, 1e-5, 1e-7] {
                let shape = ClassicShape::for_rate(keys, rate).unwrap();
                // Every fill weighed by its chance, plainly.
                let bits = shape.bits() as usize;
                let mut chance = vec![1.0];
                chance.resize(bits + 1, 0.0);
                for _ in 0..keys * u64::from(shape.probes()) {
                    for set in (1..=bits).rev() {
                        let grown = chance[set - 1] * (bits - set + 1) as f64;
                        chance[set] = (chance[set] * set as f64 + grown) / bits as f64;
                    }
                    chance[0] = 0.0;
                }
                let share = |set: usize| set as f64 / bits as f64;
                let exact: f64 = (0..=bits)
                    .map(|set| chance[set] * share(set).powi(shape.probes() as i32))
                    .sum();
                assert!(exact <= rate * (1.0 + 1e-9), "{keys} {rate} {shape:?}: {exact}");
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for rate in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Shape::for_rate(10, rate).unwrap_err().is_invalid());
            assert!(ClassicShape::for_rate(10, rate).unwrap_err().is_invalid());
        }
        assert!(Shape::for_rate(500_000_000, 1e-12).unwrap_err().is_unattainable());
        assert!(ClassicShape::for_rate(500_000_000, 1e-12).unwrap_err().is_unattainable());
        assert!(Shape::new(0, 8, 8).is_err() && Shape::new(1, 9, 8).is_err());
        assert!(Shape::new(1, 8, 9).is_err() && Shape::new(1, 16, 0).is_err());
        assert!(Shape::new(u64::MAX, 8, 1).is_err());
        assert!(ClassicShape::for_bits(0, 1).is_err() && ClassicShape::for_bits(1, 65).is_err());
    }
}
