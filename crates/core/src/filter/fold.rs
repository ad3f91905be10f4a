//! Folding filters to a smaller size; union and comparison of filters of different sizes.
//!
//! The block of a hash h among N blocks is ⌊h · N / 2⁶⁴⌋, and floors nest: for any divisor g of N
//! that block, divided by g and rounded down, is ⌊h · (N/g) / 2⁶⁴⌋. So the union of g neighbouring
//! blocks is a block of the filter with N/g blocks, and the folded filter is bit for bit the filter
//! that would have been built with that size. The same holds for the positions of a classic filter
//! among its m bits. Neither keys nor hashes are needed.
//!
//! Cost: one pass over the larger filter, and the memory of the smaller one.

use super::layout::sealed::Fields;
use super::layout::{Layout, cardinality_of, whole_cardinality};
use super::{Filter, FilterInfo};
use crate::error::{Error, Result};
use crate::math::{self, Estimate, Overlap};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::store::{Store, StoreMut as _};

impl<L: Layout, S: Store> Filter<L, S> {
    /// Returns the filter with 1/`divisor` of the blocks (classic: bits): exactly the filter of the
    /// same keys with that size. Its false-positive rate is higher.
    ///
    /// From 12,000 blocks (bits) on, [`with_fpr`](Filter::with_fpr) chooses sizes with many
    /// divisors.
    ///
    /// ```
    /// use petal::{BloomFilter, Membership};
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
    /// If `divisor` does not divide the number of blocks (bits), or memory allocation fails.
    pub fn fold(&self, divisor: u64) -> Result<Filter<L>> {
        let layout = folded_layout(&self.layout, divisor)?;
        // The target rate stays, at a smaller capacity.
        let target = self.info.target_fpr;
        let capacity = if target > 0.0 && divisor > 1 {
            layout.capacity_at_fpr(target)
        } else {
            self.info.capacity
        };
        let info = FilterInfo { capacity, ..self.current_info() };
        let mut folded = Filter::empty(layout, self.hash, info)?;
        let lines = self.store.lines();
        for (at, line) in folded.store.lines_mut().iter_mut().enumerate() {
            *line = self.layout.folded_line(lines, divisor, at);
        }
        Ok(folded)
    }

    /// Creates an empty filter for `capacity` keys at the rate `fpr` that can be folded to the size of
    /// this one, with the same probes and hash. It is the smallest such filter.
    ///
    /// ```
    /// use petal::{BloomFilter, Membership};
    ///
    /// let mut day = BloomFilter::with_fpr(1_000, 0.01)?;
    /// let mut month = day.foldable(40_000, 0.01)?;
    /// (day.insert("today"), month.insert("before"));
    /// let both = day.union_folded(&month)?;
    /// assert!(both.contains("today") && both.contains("before"));
    /// assert_eq!(both.size_bytes(), day.size_bytes());
    /// # Ok::<_, petal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, no multiple of the size reaches it, or memory allocation
    /// fails.
    pub fn foldable(&self, capacity: u64, fpr: f64) -> Result<Filter<L>> {
        let layout = self.layout.multiple_for_fpr(capacity, fpr)?;
        Filter::empty(layout, self.hash, FilterInfo::planned(capacity, fpr))
    }

    /// Returns the smallest fold whose rate is at most `fpr`, for filters that were planned too
    /// large. `fpr` is the target rate of the result.
    ///
    /// Skips sizes that would be too small even for five standard errors fewer keys than estimated.
    /// Among filters of a few dozen bits, one of those may have a low rate by chance.
    ///
    /// Cost: reads the whole filter for each size that is tried: mostly two or three, a few more for
    /// small filters.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1 or below the present rate, or memory allocation fails.
    pub fn shrink_to_fpr(&self, fpr: f64) -> Result<Filter<L>> {
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(Error::fpr(fpr));
        }
        let keys = self.estimated_len();
        let min_keys = (keys - 5.0 * self.layout.cardinality_error(keys)).max(0.0) as u64;
        let divisors = divisors(self.layout.fields().extent);
        let may_reach = |divisor: &u64| {
            folded_layout(&self.layout, *divisor).is_ok_and(|layout| layout.fpr(min_keys) <= fpr)
        };
        let tried = divisors.partition_point(may_reach);
        for &divisor in divisors[..tried].iter().rev() {
            let mut folded = self.fold(divisor)?;
            if folded.estimated_fpr() <= fpr {
                folded.info.capacity = folded.layout.capacity_at_fpr(fpr);
                folded.info.target_fpr = fpr;
                return Ok(folded);
            }
        }
        let now = self.estimated_fpr();
        Err(Error::invalid(
            "false-positive rate",
            "at least the filter's estimated rate",
            format!("{fpr:e}, and the filter's is {now:.2e}"),
        ))
    }

    /// Returns the union of both filters, in the largest size to which both can be folded.
    ///
    /// That size is small if the sizes of the filters have no large common divisor. Use
    /// [`foldable`](Self::foldable) for filters whose union will be needed.
    ///
    /// Cost: reads both filters.
    ///
    /// # Errors
    /// If probes, lanes or hash differ, the result has a false-positive rate above 50 % because of
    /// folding, or memory allocation fails.
    pub fn union_folded<T: Store>(&self, other: &Filter<L, T>) -> Result<Filter<L>> {
        let (ours, theirs) = self.common_divisors(other)?;
        let mut union = self.fold(ours)?;
        let lines = other.store.lines();
        for (at, line) in union.store.lines_mut().iter_mut().enumerate() {
            *line = line.or(other.layout.folded_line(lines, theirs, at));
        }
        union.info.inserted = whole_cardinality(&union.layout, union.estimated_len());
        if ours.max(theirs) > 1 && union.estimated_fpr() > MAX_USEFUL {
            return Err(Error::incompatible(
                "size",
                super::Plain(self.layout.describe()),
                super::Plain(other.layout.describe()),
            ));
        }
        Ok(union)
    }

    /// Estimates how many keys two filters have in common, with standard errors.
    ///
    /// Filters of different sizes are folded to the largest common size, but the number of keys of
    /// each is estimated from all its bits. If a folded filter is full, the number of common keys is
    /// unknown: NaN, with an infinite standard error.
    ///
    /// ```
    /// use petal::BloomFilter;
    ///
    /// let mut a = BloomFilter::with_fpr(10_000, 0.01)?;
    /// let mut b = BloomFilter::with_fpr(10_000, 0.01)?;
    /// (0..8_000u64).for_each(|key| _ = a.insert(&key));
    /// (4_000..10_000u64).for_each(|key| _ = b.insert(&key));
    /// let overlap = a.compare(&b)?;
    /// assert!((overlap.intersection.value - 4_000.0).abs() < 4.0 * overlap.intersection.error);
    /// assert!((overlap.jaccard.value - 0.4).abs() < 4.0 * overlap.jaccard.error);
    /// # Ok::<_, petal::Error>(())
    /// ```
    ///
    /// Source and assumptions: [`Overlap`].
    ///
    /// Cost: reads both filters; no memory.
    ///
    /// # Errors
    /// If probes, lanes or hash differ.
    pub fn compare<T: Store>(&self, other: &Filter<L, T>) -> Result<Overlap> {
        let (ours, theirs) = self.common_divisors(other)?;
        let layout = folded_layout(&self.layout, ours)?;
        let (left, right) = (self.store.lines(), other.store.lines());
        let mut ones = [0u64; 3];
        for at in 0..layout.lines() as usize {
            let left = self.layout.folded_line(left, ours, at);
            let right = other.layout.folded_line(right, theirs, at);
            for (ones, line) in ones.iter_mut().zip([left, right, left.or(right)]) {
                *ones += line.count_ones();
            }
        }
        let keys = ones.map(|ones| cardinality_of(&layout, ones));
        let mut overlap = math::overlap(keys, |keys| layout.cardinality_error(keys));
        if ours > 1 {
            overlap.left = self.estimate();
        }
        if theirs > 1 {
            overlap.right = other.estimate();
        }
        Ok(overlap)
    }

    /// Estimates the number of keys from all bits.
    fn estimate(&self) -> Estimate {
        let value = self.estimated_len();
        let error =
            if value.is_finite() { self.layout.cardinality_error(value) } else { f64::INFINITY };
        Estimate { value, error }
    }

    /// Returns the divisors by which both filters are folded to the largest common size.
    fn common_divisors<T: Store>(&self, other: &Filter<L, T>) -> Result<(u64, u64)> {
        let (ours, theirs) = (self.layout.fields().extent, other.layout.fields().extent);
        let common = greatest_common_divisor(ours, theirs);
        let layout = folded_layout(&self.layout, ours / common)?;
        if layout != folded_layout(&other.layout, theirs / common)? {
            // Sizes are equal, so probes or lanes differ.
            self.check_compatible(other)?;
        }
        if self.hash != other.hash {
            return Err(Error::incompatible("hash", self.hash, other.hash));
        }
        Ok((ours / common, theirs / common))
    }
}

/// The largest useful false-positive rate.
const MAX_USEFUL: f64 = 0.5;

/// Returns the layout with 1/`divisor` of the blocks or bits.
pub(super) fn folded_layout<L: Layout>(layout: &L, divisor: u64) -> Result<L> {
    let fields = layout.fields();
    if divisor == 0 || !fields.extent.is_multiple_of(divisor) {
        let expected = "a divisor of the number of blocks (classic: bits)";
        let found = format!("{divisor} for {}", fields.extent);
        return Err(Error::invalid("divisor", expected, found));
    }
    L::from_fields(Fields { extent: fields.extent / divisor, ..fields })
}

/// Returns all divisors of a number, ascending. Cost: its square root, less with small factors.
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

/// Euclid's algorithm.
fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_are_complete() {
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
}
