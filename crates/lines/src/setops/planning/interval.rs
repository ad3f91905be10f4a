//! Estimates with bounds at 99 % confidence.

/// The confidence of all bounds.
pub(crate) const CONFIDENCE: f64 = 0.99;

/// The two-sided quantile of the normal distribution for 99.33 %. The depth of a sample depends on
/// the hashes that it counts: if a depth is about as likely as the next one, a count that is too low
/// at it can add half of the error to that of the next, and together they stay below 1 %.
const Z: f64 = 2.713;

/// The upper bound of the mean of a Poisson distribution whose value was 0.
const NONE_OBSERVED: f64 = 5.3;

/// The factor of the largest summand in Bernstein's inequality: Z² / 3.
const LARGEST: f64 = 2.5;

/// An estimate with bounds; exact if all three are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    pub(crate) value: f64,
    pub(crate) lower: f64,
    /// Infinite if there is no upper bound.
    pub(crate) upper: f64,
}

impl Interval {
    /// An estimate with these bounds; a value outside of them is moved to the nearer one.
    pub(crate) fn new(value: f64, lower: f64, upper: f64) -> Self {
        let lower = lower.max(0.0);
        let upper = upper.max(lower);
        Self { value: value.clamp(lower, upper), lower, upper }
    }

    pub(crate) fn exact(value: f64) -> Self {
        Self { value, lower: value, upper: value }
    }

    /// The number of items of which each was counted with probability 1 / `weight`, independently
    /// of the others.
    ///
    /// The bounds are those of the mean of a Poisson distribution, by the approximation of Wilson and
    /// Hilferty (1931) to the quantiles of χ².
    pub(crate) fn of_count(count: f64, weight: f64) -> Self {
        if weight <= 1.0 {
            return Self::exact(count);
        }
        let bound = |count: f64, z: f64| {
            let cube = 1.0 - 1.0 / (9.0 * count) + z / (3.0 * count.sqrt());
            count * cube.max(0.0).powi(3)
        };
        let lower = if count > 0.0 { bound(count, -Z) } else { 0.0 };
        // Each counted item exists.
        Self::new(count * weight, (lower * weight).max(count), bound(count + 1.0, Z) * weight)
    }

    /// The number of items of which this number has been kept, each with probability 1 / `weight`,
    /// independently of the others.
    pub(super) fn of_all(self, weight: f64) -> Self {
        let [lower, upper] = [self.lower, self.upper].map(|count| Self::of_count(count, weight));
        Self::new(self.value * weight, lower.lower, upper.upper)
    }

    /// Returns the bounds of a random number whose mean is `mean`, if its distribution is Poisson.
    pub(crate) fn around(mean: f64) -> Self {
        let margin = Z * mean.sqrt() + LARGEST;
        if mean < 0.01 { Self::exact(mean) } else { Self::new(mean, mean - margin, mean + margin) }
    }

    /// The sum of sampled values, as an estimate of its expectation. `shrink`: the factor of the
    /// deviation, from 0 if everything was sampled to 1.
    pub(super) fn of_sum(values: &[f64], shrink: f64) -> Self {
        let (sum, deviation) = sum_and_deviation(values);
        let largest = values.iter().copied().fold(0.0, f64::max);
        let margin = (Z * deviation + LARGEST * largest) * shrink;
        Self::new(sum, sum - margin, sum + margin)
    }

    /// A number of pairs of equal items in different samples, as an estimate of its expectation.
    /// `by_block`: the pairs of each sampled block, for each side. `largest`: the number of pairs that
    /// two blocks may have.
    pub(super) fn of_pairs(pairs: f64, by_block: &[&[f64]], largest: f64) -> Self {
        let variance = by_block.iter().map(|values| sum_and_deviation(values).1.powi(2));
        let deviation = variance.sum::<f64>().sqrt();
        let upper = pairs + Z * deviation + NONE_OBSERVED * largest;
        Self::new(pairs, pairs - Z * deviation - LARGEST * largest, upper)
    }

    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { value: self.value * factor, lower: self.lower * factor, upper: self.upper * factor }
    }

    /// Lowers the upper bound.
    pub(crate) fn at_most(self, upper: f64) -> Self {
        Self::new(self.value, self.lower.min(upper), self.upper.min(upper))
    }

    /// Raises the lower bound.
    pub(crate) fn at_least(self, lower: f64) -> Self {
        Self::new(self.value, self.lower.max(lower), self.upper.max(lower))
    }
}

impl std::ops::Add for Interval {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            lower: self.lower + other.lower,
            upper: self.upper + other.upper,
        }
    }
}

/// The difference of numbers that may depend on each other; at least 0.
impl std::ops::Sub for Interval {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let lower = self.lower - other.upper;
        Self::new((self.value - other.value).max(0.0), lower, self.upper - other.lower)
    }
}

impl std::iter::Sum for Interval {
    fn sum<I: Iterator<Item = Self>>(intervals: I) -> Self {
        intervals.fold(Self::default(), |sum, interval| sum + interval)
    }
}

/// Returns the sum of independent values, and its standard deviation.
fn sum_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let sum = values.iter().sum::<f64>();
    let mean = sum / count.max(1.0);
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (sum, (squares * count / (count - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    #[test]
    fn bounds_of_thinned_counts_hold() {
        let mut rng = Rng::new(3);
        for items in [1, 2, 5, 30, 400] {
            let mut missed = 0;
            const TRIALS: u32 = 20_000;
            for _ in 0..TRIALS {
                let counted = (0..items).filter(|_| rng.next_u64().is_multiple_of(16)).count();
                let Interval { lower, upper, .. } = Interval::of_count(counted as f64, 16.0);
                missed += u32::from(f64::from(items) < lower || f64::from(items) > upper);
            }
            assert!(missed <= TRIALS / 100, "{items}: {missed}");
        }
    }

    /// The sample has at most 8192 items, and one depth is about as likely as the next.
    #[test]
    fn bounds_hold_where_the_depth_depends_on_the_items() {
        const MOST: u64 = 8192;
        const ITEMS: u64 = 32 * MOST + 7240;
        const TRIALS: u32 = 20_000;
        let mut rng = Rng::new(41);
        // Each of `items` is kept with probability 1 / 2.
        let mut half = |items: u64| {
            let words =
                (0..items / 64).map(|_| u64::from(rng.next_u64().count_ones())).sum::<u64>();
            words + u64::from((rng.next_u64() & ((1 << (items % 64)) - 1)).count_ones())
        };
        let mut missed = 0;
        for _ in 0..TRIALS {
            let (mut count, mut weight) = (ITEMS, 1.0);
            while count > MOST {
                (count, weight) = (half(count), weight * 2.0);
            }
            let Interval { lower, upper, .. } = Interval::of_count(count as f64, weight);
            missed += u32::from((ITEMS as f64) < lower || (ITEMS as f64) > upper);
        }
        assert!(missed <= TRIALS / 100, "{missed}");
    }

    #[test]
    fn exact_counts_have_no_range() {
        assert_eq!(Interval::of_count(7.0, 1.0), Interval::exact(7.0));
        assert_eq!(Interval::of_sum(&[1.0, 5.0], 0.0), Interval::exact(6.0));
    }

    #[test]
    fn differences_are_not_negative() {
        let [five, nine] = [5.0, 9.0].map(|value| Interval::new(value, value - 2.0, value + 2.0));
        assert_eq!(five - nine, Interval::new(0.0, 0.0, 0.0));
        assert_eq!(nine - five, Interval::new(4.0, 0.0, 8.0));
        assert_eq!(five.at_most(4.0), Interval::new(4.0, 3.0, 4.0));
        assert_eq!(five.at_least(6.0), Interval::new(6.0, 6.0, 7.0));
    }
}
