//! Selection: the position of the nth set bit of a word.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;

/// An implementation of selection.
pub(crate) trait Select: Copy {
    /// Returns the position of set bit number `n`, counted from 0; any number up to 64 if the word
    /// has fewer.
    fn nth_one(self, word: u64, n: u32) -> u32;

    /// Returns a word with only that bit; 0 if the word has fewer set bits. `n` is less than 64.
    #[inline(always)]
    fn isolate_nth_one(self, word: u64, n: u32) -> u64 {
        1u64.checked_shl(self.nth_one(word, n)).unwrap_or(0)
    }

    /// Returns the set bits after `n` clear bits: those between clear bit number `n - 1`, counted from 0,
    /// and the next clear bit. `n` is less than 64, and the word has at least `n` clear bits.
    #[inline(always)]
    fn run_after_zeros(self, word: u64, n: u32) -> u64 {
        let before_end = self.isolate_nth_one(!word, n).wrapping_sub(1);
        let zeros = !word & before_end;
        before_end & !u64::MAX.checked_shr(zeros.leading_zeros()).unwrap_or(0)
    }

    /// Returns the same word. Hidden from the compiler, so that it tests the word as it is.
    #[inline(always)]
    fn opaque(self, word: u64) -> u64 {
        core::hint::black_box(word)
    }

    /// Removes the bit that `bit` has, and moves the bits after it down by one. If `bit` is 0 the word
    /// stays as it is.
    #[inline(always)]
    fn without(self, word: u64, bit: u64) -> u64 {
        let below = bit.wrapping_sub(1);
        word & below | word >> 1 & !below
    }
}

/// Runs on every processor; the reference implementation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Select for Portable {
    /// Computes the cumulative popcounts of all bytes at once, finds the byte by comparing them with
    /// n, and the bit by clearing set bits. Source: Vigna 2008, "Broadword implementation of
    /// rank/select queries".
    #[inline(always)]
    fn nth_one(self, word: u64, n: u32) -> u32 {
        const EACH: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
        let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        let sums = ((fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(EACH);
        // The high bit of a byte stays set if its sum is at most n; sums and n are below 128.
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

/// Uses `pdep`, which moves a single bit to the position of the nth set bit, and `pext`.
#[cfg(target_arch = "x86_64")]
impl Select for Avx2 {
    #[inline(always)]
    fn nth_one(self, word: u64, n: u32) -> u32 {
        self.isolate_nth_one(word, n).trailing_zeros()
    }

    #[inline(always)]
    fn isolate_nth_one(self, word: u64, n: u32) -> u64 {
        // SAFETY: an `Avx2` is proof that the machine has the instruction.
        unsafe { core::arch::x86_64::_pdep_u64(1 << (n & 63), word) }
    }

    #[inline(always)]
    fn run_after_zeros(self, word: u64, n: u32) -> u64 {
        let end = self.isolate_nth_one(!word, n);
        // The bit after clear bit number n - 1, or the first one.
        let start = self.isolate_nth_one(!word << 1 | 1, n);
        end.wrapping_sub(start)
    }

    #[cfg(not(miri))]
    #[inline(always)]
    fn opaque(self, word: u64) -> u64 {
        let same;
        // In a register, where `black_box` uses memory.
        // SAFETY: no instruction.
        unsafe {
            core::arch::asm!(
                "/* {word} */",
                word = inlateout(reg) word => same,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        same
    }

    #[inline(always)]
    fn without(self, word: u64, bit: u64) -> u64 {
        // SAFETY: as above.
        unsafe { core::arch::x86_64::_pext_u64(word, !bit) }
    }
}
