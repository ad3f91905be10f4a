//! A pseudorandom permutation of `0..len`, computed without memory, with its inverse.
//!
//! A Feistel network over pairs `(left, right)` below `side`, the smallest number with `side * side >= len`, with
//! cycle walking for the pairs beyond `len` (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002,
//! method 2). It has four rounds, enough to scatter lines over a file; it is not a cipher.

/// A permutation of `0..len`, fixed by a seed.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    len: u64,
    side: u64,
    keys: [u64; 4],
}

impl Permutation {
    /// The permutation of `0..len` with this seed; `len` is below 2^62.
    pub fn new(len: u64, seed: u64) -> Self {
        let mut side = (len as f64).sqrt() as u64;
        while side * side < len {
            side += 1;
        }
        let keys =
            [1, 2, 3, 4].map(|round: u64| mix(seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Self { len, side, keys }
    }

    /// Returns the image of `at`, which must be below `len`.
    pub fn apply(&self, mut at: u64) -> u64 {
        loop {
            let (mut left, mut right) = (at / self.side, at % self.side);
            for key in self.keys {
                let mut sum = left + self.round(key, right);
                if sum >= self.side {
                    sum -= self.side;
                }
                (left, right) = (right, sum);
            }
            at = left * self.side + right;
            if at < self.len {
                return at;
            }
        }
    }

    /// Returns the number whose image is `at`: the inverse of [`Permutation::apply`].
    pub fn invert(&self, mut at: u64) -> u64 {
        loop {
            let (mut left, mut right) = (at / self.side, at % self.side);
            for key in self.keys.into_iter().rev() {
                let mut sum = right + self.side - self.round(key, left);
                if sum >= self.side {
                    sum -= self.side;
                }
                (left, right) = (sum, left);
            }
            at = left * self.side + right;
            if at < self.len {
                return at;
            }
        }
    }

    /// The round function; the result is below `side`.
    fn round(&self, key: u64, half: u64) -> u64 {
        let wide = u128::from(mix(key ^ half)) * u128::from(self.side);
        (wide >> 64) as u64
    }
}

const MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;
const MULTIPLIER_INVERSE: u64 = inverse(MULTIPLIER);

/// A bijection of the 64-bit numbers with good avalanche (three xor-shifts with a multiplication between each two).
pub fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(MULTIPLIER);
    x ^= x >> 32;
    x = x.wrapping_mul(MULTIPLIER);
    x ^ x >> 32
}

/// The inverse of [`mix`].
pub fn unmix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(MULTIPLIER_INVERSE);
    x ^= x >> 32;
    x = x.wrapping_mul(MULTIPLIER_INVERSE);
    x ^ x >> 32
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration: each step doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut step = 0;
    while step < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_bijection_with_its_inverse() {
        for len in [1, 2, 3, 4, 5, 10, 99, 100, 101, 4_097] {
            let order = Permutation::new(len, 7);
            let mut seen = vec![false; len as usize];
            for at in 0..len {
                let to = order.apply(at);
                assert!(!std::mem::replace(&mut seen[to as usize], true), "{len}: {to} twice");
                assert_eq!(order.invert(to), at);
            }
        }
    }

    #[test]
    fn large_lengths_have_an_inverse() {
        let order = Permutation::new(5_000_000_000, 1);
        for at in (0..5_000_000_000).step_by(123_456_789) {
            assert_eq!(order.invert(order.apply(at)), at);
        }
    }

    #[test]
    fn seeds_differ_and_the_order_is_scattered() {
        let (a, b) = (Permutation::new(1_000, 1), Permutation::new(1_000, 2));
        let same = (0..1_000).filter(|&at| a.apply(at) == b.apply(at)).count();
        assert!(same < 20, "{same}");
        let rising = (1..1_000).filter(|&at| a.apply(at) > a.apply(at - 1)).count();
        assert!((400..600).contains(&rising), "{rising}");
    }

    #[test]
    fn unmix_inverts_mix() {
        for x in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(unmix(mix(x)), x);
        }
    }
}
