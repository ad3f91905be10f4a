//! The share of counters at their maximum.

/// Returns the share of counters at `max_count` or above if the mean count is `mean`: the tail of
/// the Poisson distribution, P(X >= `max_count`).
///
/// Each key increments a given counter with the same small probability, in classic and blocked
/// layouts, so a count is binomial; Poisson is its limit, and slightly above it in the tail. `mean`
/// is keys × probes / counters, with each key counted as often as it was inserted.
///
/// Source: Fan, Cao, Almeida & Broder 2000, "Summary cache", section V-C.
#[must_use]
pub(super) fn saturated_share(mean: f64, max_count: u64) -> f64 {
    if max_count == 0 || mean.is_infinite() {
        return 1.0;
    }
    if mean.is_nan() || mean <= 0.0 {
        return 0.0;
    }
    // Above the mean, terms fall by mean/count: sum them from `max_count` upwards. Below the mean,
    // sum the other side.
    let factorial: f64 = (1..=max_count).map(|count| (count as f64).ln()).sum();
    let first = (max_count as f64 * mean.ln() - mean - factorial).exp();
    let (mut sum, mut term, mut count) = (0.0, first, max_count as f64);
    if count > mean {
        while term > sum * 1e-17 {
            sum += term;
            count += 1.0;
            term *= mean / count;
        }
        return sum.min(1.0);
    }
    while count > 0.0 && term >= sum * 1e-17 {
        term *= count / mean;
        count -= 1.0;
        sum += term;
        if term == 0.0 {
            break;
        }
    }
    (1.0 - sum).max(0.0)
}

/// Returns [`saturated_share`] after `turnovers`. In each turnover every key is removed once and
/// another one inserted in its place, so the mean stays the same.
///
/// A count is then a birth-death process with the birth rate `mean` and the count as death rate;
/// the unit of time is a turnover. A counter saturates when it first reaches `max_count`. From 0
/// that takes Σ hⱼ turnovers on average, where hⱼ = (1 + j hⱼ₋₁) / mean is the time from j to
/// j + 1, and its rate is nearly constant in time.
///
/// Source: first-passage times of birth-death chains (Karlin & Taylor 1975, chapter 4). Tests
/// compare it with filters after thousands of turnovers: within 10 %, for blocked filters 20 %.
#[must_use]
pub(crate) fn saturated_share_after(mean: f64, max_count: u64, turnovers: f64) -> f64 {
    let initial = saturated_share(mean, max_count);
    if !(mean > 0.0 && turnovers > 0.0) {
        return initial;
    }
    let (mut step, mut total) = (0.0, 0.0);
    for count in 0..max_count.min(1 << 16) {
        step = (1.0 + count as f64 * step) / mean;
        total += step;
    }
    1.0 - (1.0 - initial) * (-turnovers / total).exp()
}

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(test)]
mod tests {
    use super::{saturated_share, saturated_share_after};

    #[test]
    fn turnovers_increase_the_saturated_share() {
        for (mean, max_count) in [(0.6, 8), (0.7, 4), (0.5, 2), (5.0, 8), (0.6, 128)] {
            let after = |turnovers| saturated_share_after(mean, max_count, turnovers);
            assert_eq!(after(0.0), saturated_share(mean, max_count));
            assert!(after(1e3) >= after(10.0) && (0.0..=1.0).contains(&after(1e9)));
        }
        // A mean of 0.6 in a counter of four bits: 1.6 in a million per turnover.
        let share = saturated_share_after(0.6, 8, 1e4);
        assert!((0.015..0.018).contains(&share), "{share}");
        assert_eq!(saturated_share_after(f64::NAN, 8, 10.0), 0.0);
    }

    #[test]
    fn saturated_share_is_the_poisson_tail() {
        let assert_close = |value: f64, expected: f64| {
            assert!((value - expected).abs() <= expected * 1e-9, "{value} is not {expected}");
        };
        assert_close(saturated_share(1.0, 1), 1.0 - (-1.0f64).exp());
        assert_close(saturated_share(1.0, 3), 1.0 - 2.5 * (-1.0f64).exp());
        assert_close(saturated_share(5.0, 2), 1.0 - 6.0 * (-5.0f64).exp());
        // A mean of ln 2: 1/2 · ln 2^16 / 16!, plus 4.2 % for counts above 16. The upper bound of
        // Fan et al. is 1.37e-15.
        assert!((7.06e-17..7.09e-17).contains(&saturated_share(core::f64::consts::LN_2, 16)));
        for (mean, max) in [(0.0, 1), (1e-300, 128), (1e300, 2), (700.0, 2), (f64::INFINITY, 8)] {
            assert!((0.0..=1.0).contains(&saturated_share(mean, max)), "{mean} {max}");
        }
        assert_eq!((saturated_share(0.0, 1), saturated_share(1e6, 8)), (0.0, 1.0));
    }
}
