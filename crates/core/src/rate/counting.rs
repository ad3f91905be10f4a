//! How full counters get.

/// The share of counters that are at `most` or above when the mean count is `mean`: the tail of
/// the Poisson distribution, P(X >= most).
///
/// Each key reaches a given counter with the same small chance, in the classic layout and in
/// blocks alike (what its neighbours have does not matter), so a count is binomial; Poisson is its
/// limit, and a little above it in the tail. `mean` is keys × probes / counters, each key counted
/// as often as it was inserted.
///
/// Source: Fan, Cao, Almeida & Broder 2000, "Summary cache", section V-C.
#[must_use]
pub fn stuck(mean: f64, most: u64) -> f64 {
    if most == 0 || mean.is_infinite() {
        return 1.0;
    }
    if mean.is_nan() || mean <= 0.0 {
        return 0.0;
    }
    // The term at `most`, and those behind it, each mean/count of the one before: they fall once
    // the count is above the mean. Below the mean it is the other side that is summed.
    let factorial: f64 = (1..=most).map(|count| (count as f64).ln()).sum();
    let first = (most as f64 * mean.ln() - mean - factorial).exp();
    let (mut sum, mut term, mut count) = (0.0, first, most as f64);
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

/// [`stuck`] after `turnovers`, in each of which every key was removed once and another one inserted
/// in its place, so that the mean stayed the same.
///
/// A count is then a birth-death process, with births at the rate `mean` and deaths at the rate of
/// the count, a turnover being the unit of time. A counter is stuck once it has come to `most`; from
/// 0 that takes Σ hⱼ turnovers in the mean, where hⱼ = (1 + j hⱼ₋₁) / mean is the time from j to
/// j + 1, and it happens at about the same rate all the time.
///
/// Source: first-passage times of birth-death chains (Karlin & Taylor 1975, chapter 4). Tests
/// compare it with filters after thousands of turnovers: within a tenth, of blocks a fifth.
#[must_use]
pub fn stuck_after(mean: f64, most: u64, turnovers: f64) -> f64 {
    let fresh = stuck(mean, most);
    if !(mean > 0.0 && turnovers > 0.0) {
        return fresh;
    }
    let (mut step, mut all) = (0.0, 0.0);
    for count in 0..most.min(1 << 16) {
        step = (1.0 + count as f64 * step) / mean;
        all += step;
    }
    1.0 - (1.0 - fresh) * (-turnovers / all).exp()
}

#[cfg(test)]
mod tests {
    use super::{stuck, stuck_after};

    #[test]
    fn turnovers_add_to_what_is_stuck() {
        for (mean, most) in [(0.6, 8), (0.7, 4), (0.5, 2), (5.0, 8), (0.6, 128)] {
            let after = |turnovers| stuck_after(mean, most, turnovers);
            assert_eq!(after(0.0), stuck(mean, most));
            assert!(after(1e3) >= after(10.0) && (0.0..=1.0).contains(&after(1e9)));
        }
        // 0.6 to a counter of four bits: 1.6 in a million for each turnover.
        assert!((0.015..0.018).contains(&stuck_after(0.6, 8, 1e4)), "{}", stuck_after(0.6, 8, 1e4));
        assert_eq!(stuck_after(f64::NAN, 8, 10.0), 0.0);
    }

    #[test]
    fn the_tail_of_poisson() {
        let close = |value: f64, expect: f64| {
            assert!((value - expect).abs() <= expect * 1e-9, "{value} is not {expect}");
        };
        close(stuck(1.0, 1), 1.0 - (-1.0f64).exp());
        close(stuck(1.0, 3), 1.0 - 2.5 * (-1.0f64).exp());
        close(stuck(5.0, 2), 1.0 - 6.0 * (-5.0f64).exp());
        // ln 2 to a counter: 1/2 · ln 2^16 / 16!, and 4.2 % for what is beyond 16. Fan et al. have
        // a bound for it, 1.37e-15.
        assert!((7.06e-17..7.09e-17).contains(&stuck(std::f64::consts::LN_2, 16)));
        for (mean, most) in [(0.0, 1), (1e-300, 128), (1e300, 2), (700.0, 2), (f64::INFINITY, 8)] {
            assert!((0.0..=1.0).contains(&stuck(mean, most)), "{mean} {most}");
        }
        assert_eq!((stuck(0.0, 1), stuck(1e6, 8)), (0.0, 1.0));
    }
}
