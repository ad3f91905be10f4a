//! Filters made of several Bloom filters: layers that grow, generations that are forgotten.
//!
//! A key that was never inserted is found if any of them finds it. They hold different keys, and
//! so they err independently: 1 - Π (1 - εᵢ), which is at most Σ εᵢ.

/// The part of the whole rate that a layer of a scalable filter may have, from 0, the oldest, on:
/// ¼ · (¾)ⁱ. However many layers there are, their parts sum to less than 1.
///
/// The product is exact up to layer 32 and correctly rounded above, so that it is the same on
/// every machine. Source: Almeida, Baquero, Preguiça & Hutchison 2007, "Scalable Bloom filters".
#[must_use]
pub fn layer_share(layer: u32) -> f64 {
    // Far before this layer it is 0.
    (0..layer.min(4096)).fold(0.25, |share, _| share * 0.75)
}

/// The part of the whole rate that a layer of a scalable filter may have, from 0, the oldest, on,
/// if the first layer leaves 1 / `parts` of it to all later ones: 1 - 1 / `parts` for the first, and
/// 1 / (`parts` · i · (i + 1)) for layer i. However many layers there are, their parts sum to less
/// than 1, as those of the later ones telescope: 1 / (1 · 2) + 1 / (2 · 3) + … = 1.
///
/// Correctly rounded, so that it is the same on every machine, up to layers and parts of 20 bits
/// each and beyond.
#[must_use]
pub fn growth_layer_share(layer: u32, parts: u64) -> f64 {
    let (layer, parts) = (f64::from(layer), parts as f64);
    if layer == 0.0 { 1.0 - 1.0 / parts } else { 1.0 / (parts * (layer * (layer + 1.0))) }
}

/// The rate of one of `generations` filters which together have the rate `rate`:
/// 1 - (1 - ε)^(1/G).
#[must_use]
pub fn generation(rate: f64, generations: u32) -> f64 {
    -((-rate).ln_1p() / f64::from(generations)).exp_m1()
}

/// The chance of at least one of several independent events: 1 - Π (1 - pᵢ).
#[must_use]
pub fn any_of(rates: impl IntoIterator<Item = f64>) -> f64 {
    let none: f64 = rates.into_iter().map(|rate| (-rate).ln_1p()).sum();
    -none.exp_m1()
}

/// How many distinct keys a filter has been given when `new` of them were new to it: the others
/// it took for old ones. With ε(x) its rate with x keys, the N of N - ∫ ε(x) dx = `new`, where the
/// integral is from 0 to N.
///
/// A filter that counts only what was new must be sized for this, or it holds more than it counts
/// and errs more often than planned. Infinite if the filter would be full before.
///
/// Source: the N-th key is new with the probability 1 - ε(N - 1). By Simpson's rule in sixteen
/// steps, and Newton's method from below, as the left side is concave: two steps mostly.
#[must_use]
pub fn distinct(new: u64, rate: impl Fn(u64) -> f64) -> f64 {
    const STEPS: u32 = 16;
    let mean_up_to = |keys: f64| {
        let at = |step: u32| {
            let weight = match step {
                0 | STEPS => 1.0,
                odd if odd % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * rate((keys * f64::from(step) / f64::from(STEPS)) as u64)
        };
        let last = at(STEPS);
        let mean = (0..STEPS).map(at).sum::<f64>() + last;
        (mean / f64::from(3 * STEPS), last)
    };
    let (new, mut keys) = (new as f64, new as f64);
    for _ in 0..200 {
        let (mean, last) = mean_up_to(keys);
        let slope = (1.0 - last).max(0.5);
        let step = (new + keys * mean - keys) / slope;
        // What Newton's next step would add: the rate grows with at most the 16th power.
        let left = (step / keys).powi(2) * 8.0 * last / slope;
        if step <= keys * 1e-9 || slope > 0.5 && left <= 1e-10 {
            return keys + step;
        }
        keys += step;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::super::{blocked, classic};
    use super::*;

    #[test]
    fn shares_sum_to_one_and_no_more() {
        let sum = |layers| (0..layers).map(layer_share).sum::<f64>();
        assert!(sum(1000) <= 1.0 && sum(60) > 0.999_999);
        assert_eq!((layer_share(0), layer_share(2)), (0.25, 0.25 * 0.75 * 0.75));
        assert_eq!(layer_share(32), 3f64.powi(32) / 2f64.powi(66));
    }

    #[test]
    fn shares_after_a_large_first_layer_sum_to_less_than_one() {
        for parts in [2, 3, 4, 32, 1 << 16] {
            let sum = |layers| (0..layers).map(|at| growth_layer_share(at, parts)).sum::<f64>();
            assert!(sum(100_000) < 1.0 && sum(1000) > 1.0 - 0.002 / parts as f64, "{parts}");
        }
        let shares = [0, 1, 2, 3].map(|layer| growth_layer_share(layer, 4));
        assert_eq!(shares, [0.75, 1.0 / 8.0, 1.0 / 24.0, 1.0 / 48.0]);
    }

    #[test]
    fn generations_make_up_the_rate() {
        for rate in [0.5, 0.01, 1e-9] {
            for generations in 2..13 {
                let one = generation(rate, generations);
                let whole = any_of((0..generations).map(|_| one));
                assert!((whole / rate - 1.0).abs() < 1e-12, "{rate} {generations}");
            }
        }
        assert_eq!(any_of([0.5, 0.5]), 0.75);
        assert_eq!(any_of([]), 0.0);
    }

    /// Key by key, as the definition says.
    #[test]
    fn distinct_keys_are_what_was_new_and_what_was_missed() {
        let blocked = |keys| blocked(keys, 1000, 8, 4);
        let classic = |keys| classic(keys, 100_000, 1);
        let both: [&dyn Fn(u64) -> f64; 2] = [&blocked, &classic];
        for rate in both {
            let (mut new, mut given) = (0.0, 0);
            for goal in [1000u64, 10_000, 50_000] {
                while new < goal as f64 {
                    new += 1.0 - rate(given);
                    given += 1;
                }
                let found = distinct(goal, rate);
                assert!((found / given as f64 - 1.0).abs() < 2e-3, "{goal} {given} {found}");
            }
        }
        assert_eq!(distinct(1000, |_| 0.0), 1000.0);
        assert_eq!(distinct(1000, |_| 1.0), f64::INFINITY);
    }
}
