//! The part of the false-positive rate that double hashing causes.
//!
//! Probe i of a key is at `start + i * step`, modulo the number of bits m. The formula of a Bloom
//! filter, fill^k, takes the k positions as independent. It leaves out two effects:
//!
//! * **Steps that return.** With `d * step ≡ 0 (mod m)` a key has at most d positions, and is
//!   present with probability fill^d. Of m steps one has d = 1, one d = 2 (if m is even), φ(d) any
//!   d that divides m: together Σ φ(d) · fill^d / m, about 1 / m in a filter that is half full.
//! * **Steps of members.** An absent key with the step of a member, or its opposite, and a start on
//!   the member's positions shares many of them: 2n / m² · (1 + fill) / (1 - fill) for n members.
//!
//! If the sum overflows at M = 2^32, 2^63 or 2^64 before the remainder is taken, each overflow
//! shifts the following positions by c = M mod m. A step s overflows in a share x = s / M of the
//! additions, so positions return if `d * step ≡ c * e (mod m)` and x is near e / d: about 1 / (d ·
//! k) of such steps. There are more such steps and each is rarer: about 4 / (k · m) together.
//! Members' steps count only if c is 0, because the overflows differ.
//!
//! So the code enumerates the steps that return, for d up to where fill^d is negligible. For each
//! it computes the mean of fill^(distinct positions) over shares x (at equal distances) and starts
//! (pseudo-random with a fixed seed), with the positions of the format itself.
//!
//! The filters of one file share a [`SampleBudget`] of samples, so that a hostile header cannot
//! cause unbounded work.
//!
//! Measured (tests/floor.rs): within 12 % and the sampling error for filters of 100 to 5,000 keys,
//! rates of 1e-8 to 1e-4, and 40 % to 150 % of the capacity. The formula requires good hashes, m
//! below 2^31 for 32-bit hashes, and k far below m.

/// How a format derives the step from the hash words of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stepping {
    /// The number of bits: positions are taken modulo it.
    pub(crate) modulus: u64,
    /// The number of random bits of the step; sums overflow at 2^width, unless the step is signed.
    pub(crate) width: u32,
    /// Only steps with this many low bits clear are progressions.
    pub(crate) shift: u32,
    /// True if the step is a signed number in a wider sum, which does not overflow.
    pub(crate) signed: bool,
    /// Functions that write a step into random hash words; one for each step of a key.
    pub(crate) put: &'static [fn(&mut [u64; 4], u64)],
}

/// Samples for a step that returns immediately; later ones, which add less, get fewer.
const SAMPLES: u64 = 1024;
const LEAST_SAMPLES: u64 = 16;
/// More probes do not change the result noticeably.
const MAX_PROBES: usize = 128;

/// Samples for all filters of one file. A half-full filter takes about 5,000, and at most 36,000
/// for each step of a key.
const MAX_SAMPLES: u64 = 1 << 19;

/// The samples that the filters of one file share. Each filter gets an equal share of the rest; one
/// that needs more is computed with fewer samples per step.
pub(crate) struct SampleBudget {
    samples: u64,
    filters: u64,
}

impl SampleBudget {
    /// Returns the budget of a file with this many filters.
    pub(crate) fn new(filters: usize) -> Self {
        Self { samples: MAX_SAMPLES, filters: filters as u64 }
    }

    /// Returns the remaining samples.
    #[cfg(test)]
    pub(crate) fn left(&self) -> u64 {
        self.samples
    }

    /// Returns the samples for the next filter.
    fn share(&mut self) -> u64 {
        let share = self.samples / self.filters.max(1);
        self.filters = self.filters.saturating_sub(1);
        share
    }
}

/// Returns the false-positive rate above fill^k of a filter with `keys` keys. `count` returns the
/// number of [`distinct`] positions for the hash words of a key.
pub(crate) fn fpr_floor(
    budget: &mut SampleBudget,
    stepping: Stepping,
    probes: u32,
    fill: f64,
    keys: f64,
    count: impl Fn(&[u64; 4]) -> usize,
) -> f64 {
    let share = budget.share();
    let (modulus, ideal) = (stepping.modulus as f64, fill.powf(probes.into()));
    let clear = 1.0 - fill;
    if fill <= 0.0 || clear <= 0.0 || probes < 2 {
        return 0.0;
    }
    let members = 2.0 * keys / modulus / modulus * (1.0 + fill) / clear;
    // Σ d · fill^d is an upper bound of the sum over the steps that return.
    let max = fill / (clear * clear) / modulus.min(2f64.powi(stepping.width as i32)) + members;
    if max < ideal / 1000.0 {
        return 0.0;
    }
    let steps = samples_of(stepping.returning(fill, probes), stepping.put.len(), share);
    budget.samples -= total(&steps, stepping.put.len()).min(budget.samples);
    let rates = steps.into_iter().map(|(step, samples)| {
        let each = |put: &fn(&mut [u64; 4], u64)| {
            stepping.mean_rate(step, samples, fill.powf(probes.into()), put, |words| {
                fill.powf(count(words) as f64)
            })
        };
        stepping.put.iter().map(each).sum::<f64>()
    });
    let returning: f64 = rates.sum();
    let linear = stepping.overflow() == 0 && stepping.put.len() == 1;
    let members = if linear { members / f64::from(1u32 << stepping.shift) } else { 0.0 };
    // A hostile header may state fewer bits than keys.
    (returning + members).min(1.0)
}

/// Returns the number of samples for each step, of which a key has `each`. If the sum would exceed
/// the share, it leaves out the steps that return later, which add less.
fn samples_of(mut steps: Vec<(u64, u64)>, each: usize, share: u64) -> Vec<(u64, u64)> {
    let wanted = |period: &u64| (SAMPLES / (period * period)).max(LEAST_SAMPLES);
    let all: Vec<_> = steps.iter().map(|(step, period)| (*step, wanted(period))).collect();
    let wish = total(&all, each);
    if wish <= share {
        return all;
    }
    steps.sort_by_key(|(_, period)| *period);
    let mut left = share / each.max(1) as u64;
    let scaled = steps.into_iter().map_while(|(step, period)| {
        let samples = (wanted(&period) * share / wish).max(1);
        left = left.checked_sub(samples)?;
        Some((step, samples))
    });
    scaled.collect()
}

/// Returns the samples of all steps, of which a key has `each`.
fn total(steps: &[(u64, u64)], each: usize) -> u64 {
    steps.iter().map(|(_, samples)| samples * each as u64).sum()
}

impl Stepping {
    /// Returns the shift of the following positions after an overflow.
    fn overflow(&self) -> u64 {
        if self.signed { 0 } else { ((1u128 << self.width) % u128::from(self.modulus)) as u64 }
    }

    /// Returns the steps, modulo the bits, with which positions may return after few probes, and
    /// after how many.
    fn returning(&self, fill: f64, probes: u32) -> Vec<(u64, u64)> {
        let (modulus, shift) = (u128::from(self.modulus), u128::from(self.overflow()));
        let mut steps = Vec::new();
        for period in 1..u128::from(probes.min(64)) {
            if (period as f64) * fill.powf(period as f64) < fill / 300.0 && period > 1 {
                break;
            }
            let common = gcd(period, modulus);
            let (reduced, inverse) = (modulus / common, inverse(period / common, modulus / common));
            for overflows in 0..=if shift == 0 { 0 } else { period } {
                if (shift * overflows).is_multiple_of(common) {
                    let first = (shift * overflows / common) % reduced * inverse % reduced;
                    let turns = (0..common).map(|turn| (first + turn * reduced) as u64);
                    steps.extend(turns.map(|step| (step, period as u64)));
                }
            }
        }
        steps.sort_unstable();
        steps.dedup_by_key(|(step, _)| *step);
        steps
    }

    /// Returns the probability of a step congruent to this one, times the excess of its rate above
    /// the ideal one.
    fn mean_rate(
        &self,
        step: u64,
        samples: u64,
        ideal: f64,
        put: impl Fn(&mut [u64; 4], u64),
        rate: impl Fn(&[u64; 4]) -> f64,
    ) -> f64 {
        let space = 1i128 << self.width;
        let modulus = i128::from(self.modulus);
        // Starts at the smallest step.
        let min = if self.signed { -(space >> 1) } else { 0 };
        let first = min + (i128::from(step) - min).rem_euclid(modulus);
        let there = (min + space - first + modulus - 1).div_euclid(modulus).max(0);
        let samples = there.min(samples.into());
        if samples == 0 {
            return 0.0;
        }
        let mut rng = step;
        let rates = (0..samples).map(|sample| {
            let which = (2 * sample + 1) * there / (2 * samples);
            let mut words = [0; 4].map(|_| random(&mut rng));
            put(&mut words, ((first + which * modulus) << self.shift) as u64);
            (rate(&words) - ideal).max(0.0)
        });
        let chance = there as f64 / space as f64 / f64::from(1u32 << self.shift);
        chance * rates.sum::<f64>() / samples as f64
    }
}

/// Returns the number of distinct positions, up to the number that matters.
pub(crate) fn distinct(positions: impl Iterator<Item = u64>, fill: f64) -> usize {
    let mut seen = Vec::with_capacity(64);
    let enough = (1e-9f64.ln() / fill.ln()).clamp(4.0, 60.0) as usize;
    for position in positions.take(MAX_PROBES) {
        if !seen.contains(&position) {
            seen.push(position);
            if seen.len() > enough {
                return MAX_PROBES;
            }
        }
    }
    seen.len()
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the inverse of a number modulo a coprime one.
fn inverse(number: u128, modulus: u128) -> u128 {
    let (mut old, mut new) = ((number % modulus) as i128, modulus as i128);
    let (mut inverse, mut next) = (1i128, 0i128);
    while new != 0 {
        let quotient = old / new;
        (old, new) = (new, old - quotient * new);
        (inverse, next) = (next, inverse - quotient * next);
    }
    inverse.rem_euclid(modulus as i128) as u128
}

/// SplitMix64. Source: Steele, Lea & Flood 2014.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the samples of filters nearly full of bits whose steps return after up to 63 probes.
    #[test]
    fn filters_of_one_file_share_a_budget_of_samples() {
        const PUT: &[fn(&mut [u64; 4], u64)] = &[|words, step| words[1] = step];
        let stepping = Stepping { modulus: 5_040, width: 64, shift: 0, signed: false, put: PUT };
        let samples = |filters: usize| {
            let (mut budget, taken) = (SampleBudget::new(filters), std::cell::Cell::new(0));
            let count = |_: &[u64; 4]| {
                taken.set(taken.get() + 1);
                9
            };
            for _ in 0..filters {
                let floor = fpr_floor(&mut budget, stepping, 64, 0.93, 900.0, count);
                assert!(floor > 0.0 && floor < 1.0, "{floor}");
            }
            taken.get()
        };
        let one = samples(1);
        assert!(one > 30_000 && samples(10) == 10 * one, "{one}");
        for filters in [20, 100, 1_100] {
            let taken = samples(filters);
            assert!(taken <= MAX_SAMPLES && taken > MAX_SAMPLES / 3, "{filters}: {taken}");
        }
    }

    #[test]
    fn inverse_times_number_is_one() {
        for modulus in [1u128, 2, 7, 64, 38_400, 1 << 40, 137_438_953_408] {
            for number in (1..40).filter(|number| gcd(*number, modulus) == 1) {
                assert_eq!(number * inverse(number, modulus) % modulus, 1 % modulus);
            }
        }
    }

    /// Without overflows the steps that return are the multiples of m / d.
    #[test]
    fn returning_steps_are_fractions_of_the_bits() {
        let stepping = Stepping { modulus: 38_400, width: 32, shift: 0, signed: true, put: &[] };
        let steps = stepping.returning(0.5, 27);
        for period in [2, 3, 4, 5, 6, 8] {
            assert!(steps.contains(&(38_400 / period, period)), "{period}");
        }
        assert!(steps[0] == (0, 1) && steps.iter().all(|(step, _)| *step != 38_400 / 7));
    }
}
