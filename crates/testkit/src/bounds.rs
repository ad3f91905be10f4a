//! Confidence bounds of counts and means.
//!
//! A test that measures a rate states its confidence, and the bounds follow from it, not from a guessed tolerance.

/// Returns the range that contains the number of successes with probability of at least `confidence`: `trials`
/// independent trials, each a success with probability `rate`. Both ends are inclusive; each tail has at most half of
/// the remaining probability.
///
/// Exact up to floating-point error: sums the binomial weights outward from the mode. The cost is proportional to the
/// standard deviation, not to `trials`.
///
/// # Panics
/// If `rate` or `confidence` is not within 0..=1.
pub fn binomial_range(trials: u64, rate: f64, confidence: f64) -> (u64, u64) {
    assert!(
        (0.0..=1.0).contains(&rate) && (0.0..=1.0).contains(&confidence),
        "{rate} {confidence}"
    );
    if rate == 0.0 || rate == 1.0 {
        let only = if rate == 0.0 { 0 } else { trials };
        return (only, only);
    }
    // Weights relative to that of the mode; those below 1e-40 are negligible.
    let odds = rate / (1.0 - rate);
    let mode = (((trials + 1) as f64 * rate) as u64).min(trials);
    let mut below = Vec::new();
    let (mut weight, mut k) = (1.0_f64, mode);
    while k > 0 && weight > 1e-40 {
        weight *= k as f64 / ((trials - k + 1) as f64 * odds);
        below.push(weight);
        k -= 1;
    }
    let first = k;
    let mut weights: Vec<f64> = below.into_iter().rev().collect();
    weights.push(1.0);
    (weight, k) = (1.0, mode);
    while k < trials && weight > 1e-40 {
        weight *= (trials - k) as f64 / (k + 1) as f64 * odds;
        weights.push(weight);
        k += 1;
    }
    let tail = weights.iter().sum::<f64>() * (1.0 - confidence) / 2.0;
    let skipped = outer_within(weights.iter(), tail);
    let dropped = outer_within(weights.iter().rev(), tail);
    (first + skipped, first + weights.len() as u64 - 1 - dropped)
}

/// Returns how many of the outermost weights have a sum of at most `tail`.
fn outer_within<'a>(weights: impl Iterator<Item = &'a f64>, tail: f64) -> u64 {
    let mut sum = 0.0;
    weights
        .take_while(|&&weight| {
            sum += weight;
            sum <= tail
        })
        .count() as u64
}

/// Returns the range that contains the true mean with a probability of about `confidence`, from independent samples,
/// by the normal approximation: for many samples (about 30) of a measured rate, not for a few.
///
/// # Panics
/// If there are fewer than two samples or `confidence` is not within 0..1.
pub fn mean_range(samples: &[f64], confidence: f64) -> (f64, f64) {
    assert!(samples.len() >= 2, "needs at least two samples");
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let reach = normal_quantile(0.5 + confidence / 2.0) * (variance / n).sqrt();
    (mean - reach, mean + reach)
}

/// Returns the quantile of the standard normal distribution.
///
/// # Panics
/// If `probability` is not strictly between 0 and 1.
pub fn normal_quantile(probability: f64) -> f64 {
    assert!(probability > 0.0 && probability < 1.0, "{probability}");
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if normal_cdf(middle) < probability { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Returns the probability that a standard normal variable is below `x`, by the series of Marsaglia ("Evaluating the normal
/// distribution", J. Stat. Software 11, 2004). Absolute error around 1e-15.
pub fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 9.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut sum, mut term, mut i) = (x, x, 1.0);
    while term.abs() > 1e-18 * sum.abs() {
        i += 2.0;
        term *= x * x / i;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_equal_published_table() {
        for (probability, x) in [
            (0.5, 0.0),
            (0.975, 1.959_964),
            (0.995, 2.575_829),
            (0.9995, 3.290_527),
            (0.05, -1.644_854),
        ] {
            assert!((normal_quantile(probability) - x).abs() < 1e-6, "{probability}");
        }
    }

    #[test]
    fn small_binomial_equals_manual_calculation() {
        // 10 fair coins: P(X <= 1) = 11/1024 = 0.0107, P(X <= 2) = 56/1024 = 0.0547.
        assert_eq!(binomial_range(10, 0.5, 0.95), (2, 8));
        assert_eq!(binomial_range(10, 0.5, 0.85), (3, 7));
        assert_eq!(binomial_range(10, 0.5, 1.0), (0, 10));
        assert_eq!(binomial_range(10, 0.0, 0.99), (0, 0));
        assert_eq!(binomial_range(10, 1.0, 0.99), (10, 10));
        assert_eq!(binomial_range(0, 0.3, 0.99), (0, 0));
    }

    #[test]
    fn large_binomial_is_nearly_normal() {
        let (trials, rate) = (1_000_000_000_u64, 0.01_f64);
        let (low, high) = binomial_range(trials, rate, 0.999);
        let (mean, sd) = (trials as f64 * rate, (trials as f64 * rate * (1.0 - rate)).sqrt());
        let z = normal_quantile(0.9995);
        assert!((low as f64 - (mean - z * sd)).abs() < 5.0, "{low}");
        assert!((high as f64 - (mean + z * sd)).abs() < 5.0, "{high}");
    }

    #[test]
    fn rare_event_is_nearly_poisson() {
        // Poisson with mean 1: P(X >= 5) = 0.00366, P(X >= 6) = 0.00059.
        assert_eq!(binomial_range(100_000_000, 1e-8, 0.992), (0, 4));
        assert_eq!(binomial_range(100_000_000, 1e-8, 0.998), (0, 5));
    }

    #[test]
    fn mean_range_equals_manual_calculation() {
        let (low, high) = mean_range(&[1.0, 2.0, 3.0], 0.95);
        assert!(
            (low - (2.0 - 1.959_964 / 3f64.sqrt())).abs() < 1e-6
                && (high + low - 4.0).abs() < 1e-12
        );
    }
}
