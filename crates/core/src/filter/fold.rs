//! Filters made smaller, and filters of different sizes put together and compared.
//!
//! The block of a hash h among N is ⌊h · N / 2⁶⁴⌋, and floors nest: for any divisor g of N that
//! block, divided by g and rounded down, is ⌊h · (N/g) / 2⁶⁴⌋. So g neighbouring blocks, united,
//! are a block of the filter with N/g of them, and the whole is bit for bit the filter that would
//! have been built that small. The same holds for the positions of a classic filter among its m
//! bits. Nothing here needs keys or hashes.
//!
//! Cost: one pass over the larger filter, and the memory of the smaller one.

use super::geometry::sealed::Fields;
use super::geometry::{Geometry, cardinality_of, whole_cardinality};
use super::{Facts, Filter};
use crate::error::{Error, Result};
use crate::rate::{self, Estimate, Overlap};
use crate::store::{Line, Store, StoreMut as _};

impl<G: Geometry, S: Store> Filter<G, S> {
    /// The filter with `divisor` times fewer blocks (classic: bits): exactly the one that would
    /// have come of inserting the same keys into a filter of that size. Its rate is higher.
    ///
    /// Sizes that [`with_rate`](Filter::with_rate) chooses have many divisors from 12,000 blocks
    /// (bits) on.
    ///
    /// ```
    /// use petal::BloomFilter;
    ///
    /// let mut large = BloomFilter::with_bits(4096, 8)?; // 8 blocks
    /// large.insert("one");
    /// let small = large.fold(4)?;
    /// assert!(small.contains("one") && small.size_bytes() == large.size_bytes() / 4);
    /// # Ok::<_, petal::Error>(())
    /// ```
    ///
    /// Cost: reads the whole filter.
    ///
    /// # Errors
    /// If `divisor` does not divide the number of blocks (bits), or the memory is refused.
    pub fn fold(&self, divisor: u64) -> Result<Filter<G>> {
        let shape = folded_shape(&self.shape, divisor)?;
        // What it was planned for it keeps, with fewer keys.
        let target = self.facts.target;
        let planned = if target > 0.0 && divisor > 1 {
            shape.keys_at_rate(target)
        } else {
            self.facts.planned
        };
        let facts = Facts { planned, ..self.facts };
        let mut folded = Filter::empty(shape, self.hash, facts)?;
        let lines = self.store.lines();
        for (at, line) in folded.store.lines_mut().iter_mut().enumerate() {
            *line = self.shape.folded_line(lines, divisor, at);
        }
        Ok(folded)
    }

    /// The smallest fold whose rate, by its bits, is still at most `rate`: what a filter that was
    /// planned too large comes to. It is planned for that rate from then on.
    ///
    /// Sizes for which calculation says that even five standard errors fewer keys than the bits
    /// tell would be too many are not tried. Of a few dozen bits, one of them may by luck have
    /// done.
    ///
    /// Cost: reads the whole filter for each size that is tried: mostly two or three, few more
    /// where keys are few.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, the filter's own rate is higher already, or the memory
    /// is refused.
    pub fn shrink_to_rate(&self, rate: f64) -> Result<Filter<G>> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::rate(rate));
        }
        let keys = self.estimated_len();
        let least = (keys - 5.0 * self.shape.cardinality_error(keys)).max(0.0) as u64;
        let divisors = divisors(self.shape.fields().extent);
        let kept = |divisor: &u64| {
            folded_shape(&self.shape, *divisor).is_ok_and(|shape| shape.rate(least) <= rate)
        };
        let tried = divisors.partition_point(kept);
        for &divisor in divisors[..tried].iter().rev() {
            let mut folded = self.fold(divisor)?;
            if folded.estimated_rate() <= rate {
                folded.facts.planned = folded.shape.keys_at_rate(rate);
                folded.facts.target = rate;
                return Ok(folded);
            }
        }
        let now = self.estimated_rate();
        Err(Error::invalid("rate", "at least the filter's own", format!("{rate:e} below {now:e}")))
    }

    /// The filter of all keys that are in either, of the greatest size to which both can be
    /// folded. For filters of equal size, a copy of their [`union`](Filter::union).
    ///
    /// Where sizes have little in common not much is left: filters to be united later should be
    /// made with [`Builder::foldable_to`](crate::Builder::foldable_to).
    ///
    /// Cost: reads both filters.
    ///
    /// # Errors
    /// If they differ in probes, lanes or hash; if folding leaves a filter that says *yes* to more
    /// than half of all queries; or if the memory is refused.
    pub fn union_folded<T: Store>(&self, other: &Filter<G, T>) -> Result<Filter<G>> {
        let (ours, theirs) = self.common_divisors(other)?;
        let mut united = self.fold(ours)?;
        let lines = other.store.lines();
        for (at, line) in united.store.lines_mut().iter_mut().enumerate() {
            *line = line.or(other.shape.folded_line(lines, theirs, at));
        }
        united.facts.inserted = whole_cardinality(&united.shape, united.estimated_len());
        if ours.max(theirs) > 1 && united.estimated_rate() > MOST_USEFUL {
            return Err(Error::incompatible(
                "size",
                super::Plain(self.shape.describe()),
                super::Plain(other.shape.describe()),
            ));
        }
        Ok(united)
    }

    /// How much the keys of two filters have in common, with standard errors. Filters of different
    /// sizes are compared as if both were folded to the greatest size they have in common, but the
    /// keys of each are estimated from all of its bits. Where a fold is full, the errors of what
    /// both have in common are infinite.
    ///
    /// ```
    /// use petal::BloomFilter;
    ///
    /// let mut a = BloomFilter::with_rate(10_000, 0.01)?;
    /// let mut b = BloomFilter::with_rate(10_000, 0.01)?;
    /// (0..8_000u64).for_each(|key| _ = a.insert(&key));
    /// (4_000..10_000u64).for_each(|key| _ = b.insert(&key));
    /// let overlap = a.compare(&b)?;
    /// assert!((overlap.intersection.value - 4_000.0).abs() < 4.0 * overlap.intersection.error);
    /// assert!((overlap.jaccard.value - 0.4).abs() < 4.0 * overlap.jaccard.error);
    /// # Ok::<_, petal::Error>(())
    /// ```
    ///
    /// Source and assumptions: [`rate::overlap`](crate::rate::overlap).
    ///
    /// Cost: reads both filters; no memory.
    ///
    /// # Errors
    /// If they differ in probes, lanes or hash.
    pub fn compare<T: Store>(&self, other: &Filter<G, T>) -> Result<Overlap> {
        let (ours, theirs) = self.common_divisors(other)?;
        let shape = folded_shape(&self.shape, ours)?;
        let (left, right) = (self.store.lines(), other.store.lines());
        let mut ones = [0u64; 3];
        for at in 0..shape.lines() as usize {
            let left = self.shape.folded_line(left, ours, at);
            let right = other.shape.folded_line(right, theirs, at);
            for (ones, line) in ones.iter_mut().zip([left, right, left.or(right)]) {
                *ones += line.count_ones();
            }
        }
        let keys = ones.map(|ones| cardinality_of(&shape, ones));
        let mut overlap = rate::overlap(keys, |keys| shape.cardinality_error(keys));
        if ours > 1 {
            overlap.left = self.counted();
        }
        if theirs > 1 {
            overlap.right = other.counted();
        }
        Ok(overlap)
    }

    /// How many keys it holds, by all of its bits.
    fn counted(&self) -> Estimate {
        let value = self.estimated_len();
        let error =
            if value.is_finite() { self.shape.cardinality_error(value) } else { f64::INFINITY };
        Estimate { value, error }
    }

    /// The share of all keys of two filters that both have: |A ∩ B| / |A ∪ B|. As in
    /// [`compare`](Self::compare).
    ///
    /// # Errors
    /// As there.
    pub fn jaccard<T: Store>(&self, other: &Filter<G, T>) -> Result<Estimate> {
        self.compare(other).map(|overlap| overlap.jaccard)
    }

    /// By what each is to be folded, so that both have one size.
    fn common_divisors<T: Store>(&self, other: &Filter<G, T>) -> Result<(u64, u64)> {
        let (ours, theirs) = (self.shape.fields().extent, other.shape.fields().extent);
        let common = greatest_common_divisor(ours, theirs);
        let shape = folded_shape(&self.shape, ours / common)?;
        if shape != folded_shape(&other.shape, theirs / common)? {
            // Not in size, so in probes or lanes.
            self.check_compatible(other)?;
        }
        if self.hash != other.hash {
            return Err(Error::incompatible("hash", self.hash, other.hash));
        }
        Ok((ours / common, theirs / common))
    }
}

/// A filter that says *yes* more often than this is of no use to anybody.
const MOST_USEFUL: f64 = 0.5;

/// The shape with so many times fewer blocks or bits.
pub(super) fn folded_shape<G: Geometry>(shape: &G, divisor: u64) -> Result<G> {
    let fields = shape.fields();
    if divisor == 0 || !fields.extent.is_multiple_of(divisor) {
        let expected = "a divisor of the number of blocks (classic: bits)";
        let found = format!("{divisor} for {}", fields.extent);
        return Err(Error::invalid("divisor", expected, found));
    }
    G::from_fields(Fields { extent: fields.extent / divisor, ..fields })
}

/// All divisors of a number, ascending. Cost: its square root, less for one with small factors.
fn divisors(number: u64) -> Vec<u64> {
    let mut divisors = vec![1];
    let (mut left, mut factor) = (number, 2);
    while left > 1 {
        if factor * factor > left {
            factor = left;
        }
        let before = divisors.len();
        let mut power = 1;
        while left.is_multiple_of(factor) {
            left /= factor;
            power *= factor;
            for at in 0..before {
                divisors.push(divisors[at] * power);
            }
        }
        factor += 1;
    }
    divisors.sort_unstable();
    divisors
}

/// Euclid's.
fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Line `at` of a blocked filter with blocks of so many lines, folded.
pub(super) fn folded_block(lines: &[Line], block_lines: usize, divisor: u64, at: usize) -> Line {
    let divisor = divisor as usize;
    let first = at / block_lines * divisor * block_lines + at % block_lines;
    let of_blocks = lines[first..].iter().step_by(block_lines).take(divisor);
    of_blocks.fold(Line::ZERO, |united, line| united.or(*line))
}

/// Line `at` of a classic filter of so many bits, folded. Bits behind the last one, which only
/// damaged data have, stay behind.
///
/// A divisor below 64 takes a word apart bit by set bit; from there on a bit of the fold is a run
/// of words, and one that is not clear ends the search.
pub(super) fn folded_bits(lines: &[Line], bits: u64, divisor: u64, at: usize) -> Line {
    const LINE_BITS: u64 = 8 * Line::BYTES as u64;
    if divisor == 1 {
        return lines[at];
    }
    let mut folded = Line::ZERO;
    let mut set = |bit: u64| folded.0[(bit / 64) as usize] |= (1u64 << (bit % 64)).to_le();
    let first = at as u64 * LINE_BITS;
    let end = (first + LINE_BITS).min(bits / divisor);
    if divisor >= 64 {
        let run = |bit: &u64| any_set(lines, bit * divisor, (bit + 1) * divisor);
        (first..end).filter(run).for_each(|bit| set(bit - first));
        return folded;
    }
    // Offsets are below 512 · 64, so that this is exact.
    let part = (1 << RECIPROCAL) / divisor + 1;
    let (start, end) = (first * divisor, end * divisor);
    let mut at = start;
    while at < end {
        let next = (at | 63) + 1;
        let mut word = word_between(lines, at, end);
        while word != 0 {
            let offset = (at & !63) + u64::from(word.trailing_zeros()) - start;
            set((offset * part) >> RECIPROCAL);
            word &= word - 1;
        }
        at = next;
    }
    folded
}

/// x / d is (x · (2^R / d + 1)) >> R, rounded down all the way, for x · d below 2^R.
const RECIPROCAL: u32 = 22;

/// The word of bit `at`, without the bits before that one and from `end` on.
#[inline]
fn word_between(lines: &[Line], at: u64, end: u64) -> u64 {
    let word = u64::from_le(lines[(at / 512) as usize].0[(at / 64 % 8) as usize]);
    let beyond = ((at | 63) + 1).saturating_sub(end);
    word & (!0 << (at % 64)) & (!0 >> beyond)
}

/// Whether a bit from `start` up to `end` is set.
fn any_set(lines: &[Line], start: u64, end: u64) -> bool {
    let mut at = start;
    while at < end {
        if word_between(lines, at, end) != 0 {
            return true;
        }
        at = (at | 63) + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_are_all_there() {
        for number in (1..500).chain([5040, 720_720, 1 << 40, 999_983, 999_983 * 999_979]) {
            let found = divisors(number);
            assert!(found.is_sorted() && found.iter().all(|by| number.is_multiple_of(*by)));
            if number < 1_000_000 {
                assert_eq!(found, (1..=number).filter(|by| number % by == 0).collect::<Vec<_>>());
            }
        }
        assert_eq!(divisors(720_720).len(), 240);
        assert_eq!(greatest_common_divisor(720_720, 5040), 5040);
        assert_eq!((greatest_common_divisor(7, 12), greatest_common_divisor(12, 12)), (1, 12));
    }

    #[test]
    fn reciprocals_divide() {
        for divisor in 1..64u64 {
            let part = (1 << RECIPROCAL) / divisor + 1;
            assert!((0..512 * 64).all(|x| (x * part) >> RECIPROCAL == x / divisor), "{divisor}");
        }
    }

    #[test]
    fn bits_in_a_range() {
        let mut lines = vec![Line::ZERO; 3];
        for bit in [0u64, 63, 64, 511, 512, 1000, 1535] {
            lines[(bit / 512) as usize].0[(bit / 64 % 8) as usize] |= (1u64 << (bit % 64)).to_le();
            for (start, end) in [(bit, bit + 1), (bit.saturating_sub(100), bit + 1)] {
                assert!(any_set(&lines, start, end), "{bit} in {start}..{end}");
            }
            assert!(bit == 0 || !any_set(&lines, bit.saturating_sub(63), bit), "{bit}");
            assert!(!any_set(&lines, bit + 1, (bit + 200).min(1536)), "{bit}");
            lines.fill(Line::ZERO);
        }
    }
}
