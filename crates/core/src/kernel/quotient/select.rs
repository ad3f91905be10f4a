//! Where the nth one of a word is: the one instruction that makes the quotient layout fast.

/// A way to find the nth one of a word.
pub(crate) trait Select: Copy {
    /// The place of the one before which there are `n` others; any place up to 64 if there are
    /// not so many.
    fn nth_one(self, word: u64, n: u32) -> u32;
}

/// Runs everywhere, and is the law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Select for Portable {
    /// By bytes: their ones are added up side by side, the byte is found by comparing all sums
    /// with n at once, and the bit by clearing ones. Source: Vigna 2008, "Broadword
    /// implementation of rank/select queries".
    #[inline(always)]
    fn nth_one(self, word: u64, n: u32) -> u32 {
        const EACH: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
        let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        let sums = ((fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(EACH);
        // A byte keeps its high bit if its sum is not above n; sums and n are below 128.
        let low = ((u64::from(n.min(127)) * EACH) | HIGH).wrapping_sub(sums) & HIGH;
        let byte = low.count_ones();
        if byte > 7 {
            return 64;
        }
        let before = (sums << 8 >> (8 * byte) & 0xff) as u32;
        let mut left = word >> (8 * byte) & 0xff;
        for _ in before..n {
            left &= left.wrapping_sub(1);
        }
        8 * byte + left.trailing_zeros()
    }
}

/// With `pdep`, which lays a single bit where the nth one is. To have it is to know that the
/// machine has BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bmi2(());

#[cfg(target_arch = "x86_64")]
impl Bmi2 {
    /// If the machine has the instructions.
    pub(super) fn new() -> Option<Self> {
        let there = is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        there.then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Select for Bmi2 {
    #[inline(always)]
    fn nth_one(self, word: u64, n: u32) -> u32 {
        // SAFETY: whoever has a `Bmi2` knows that the instruction is there.
        unsafe { std::arch::x86_64::_pdep_u64(1 << (n & 63), word) }.trailing_zeros()
    }
}
