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

#[cfg(test)]
mod tests {
    use super::stuck;

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
