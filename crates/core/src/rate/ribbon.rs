//! The rate of static filters, of which each key compares a number of bits with its own.
//!
//! Source: Dietzfelbinger & Pagh 2008, "Succinct data structures for retrieval and approximate
//! membership": with b bits a key, a query that is no key agrees by chance in 2^-b.

/// The whole number of bits, and the share of queries that compare one more, whose rate is `rate`:
/// ε = 2^-b · (1 - share/2), with a share below 1.
///
/// Rates between powers of two cost a little: the bits b + share are above log2(1/ε) by up to
/// 0.087 (at ε = 0.72 · 2^-b), which is 2.4 % at a rate of 10 %, 1.2 % at 1 % and 0.4 % at 10⁻⁶.
#[must_use]
pub fn mixture(rate: f64) -> (u32, f64) {
    let bits = (-rate.log2()).floor().clamp(0.0, 1000.0);
    let share = 2.0 * (1.0 - rate * bits.exp2());
    if share >= 1.0 {
        // The logarithm was a hair too small.
        return (bits as u32 + 1, 0.0);
    }
    (bits as u32, share.max(0.0))
}

/// The rate if a share of all queries compares `bits + 1` bits and the others `bits`: the inverse
/// of [`mixture`].
#[must_use]
pub fn mixed(bits: u32, share: f64) -> f64 {
    (-f64::from(bits)).exp2() * (1.0 - share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_has_its_rate_and_costs_little() {
        for rate in [0.9, 0.5, 0.3, 0.25, 0.1, 0.01, 1.0 / 128.0, 1e-3, 1e-6, 3e-10] {
            let (bits, share) = mixture(rate);
            assert!((0.0..1.0).contains(&share), "{rate}: {share}");
            assert!((mixed(bits, share) / rate - 1.0).abs() < 1e-12, "{rate}");
            let over = f64::from(bits) + share + rate.log2();
            assert!((-1e-9..0.087).contains(&over), "{rate}: {over}");
        }
        assert_eq!(mixture(0.125), (3, 0.0));
    }
}
