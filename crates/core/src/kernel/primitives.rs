//! Prefetching, and scaling of hashes.

/// Prefetches element `at`, if the processor has such an instruction. Any index is allowed.
#[inline(always)]
pub(crate) fn prefetch<L>(lines: &[L], at: usize) {
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
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}
