//! Prefetching, scaling of hashes, and setting of bits.

/// Prefetches element `at`, if the processor has such an instruction. Any index is allowed.
#[inline(always)]
pub fn prefetch<L>(lines: &[L], at: usize) {
    prefetch_at(lines.as_ptr().wrapping_add(at));
}

/// Prefetches an address, if the processor has such an instruction. Any address is allowed.
#[inline(always)]
pub(crate) fn prefetch_at<L>(line: *const L) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the hint needs SSE, which every x86-64 has; any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint without effect on memory; any address is allowed.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{line}]",
            line = in(reg) line,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

/// Returns ⌊`hash` · `range` / 2⁶⁴⌋: monotone in `hash` and less than `range`. Source: Lemire 2019,
/// "Fast random integer generation in an interval".
#[inline(always)]
pub(crate) fn scale(hash: u64, range: u64) -> u64 {
    // A product of 128 bits is a call there.
    #[cfg(target_arch = "wasm32")]
    if range >> 32 == 0 {
        let low = ((hash & 0xffff_ffff) * range) >> 32;
        return ((hash >> 32) * range + low) >> 32;
    }
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}

/// Sets bit `position` mod 64 of a little-endian word, and adds its old value to `already_set`.
#[inline(always)]
pub(crate) fn test_and_set(word: &mut u64, position: u64, already_set: &mut u64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // Compilers emit one instruction that tests the bit and another one that sets it.
    // SAFETY: changes two registers and the flags.
    unsafe {
        core::arch::asm!(
            "bts {word}, {position}",
            "adc {already_set}, 0",
            word = inout(reg) *word,
            position = in(reg) position,
            already_set = inout(reg) *already_set,
            options(pure, nomem, nostack),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        let bit = (1u64 << (position % 64)).to_le();
        *already_set += u64::from(*word & bit != 0);
        *word |= bit;
    }
}
