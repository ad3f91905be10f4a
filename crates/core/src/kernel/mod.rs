//! Marking and checking bits: the innermost loops.
//!
//! The portable kernel is the law: it *defines* which bits a hash sets. Vector kernels, when they
//! come, must be bit-identical to it.
//!
//! Batches run in two steps over groups of [`GROUP`] hashes: ask for the lines of all of them,
//! then look. The misses of a group overlap, which is what makes a filter out of cache fast.
//!
//! The other room in which `unsafe` is allowed, for the prefetch.

pub(crate) mod blocked;
pub(crate) mod classic;

use crate::store::Line;

/// Hashes in flight at a time: enough to keep a core's line-fill buffers busy.
pub(crate) const GROUP: usize = 32;

/// Asks for a line that will be looked at soon; does nothing where there is no such hint.
#[inline(always)]
pub(crate) fn prefetch(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the hint needs SSE, which every x86-64 has; the pointer is a live reference's.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// High 64 bits of the product: `hash` as a fraction of `range`, monotone in `hash`, below
/// `range`. Source: Lemire 2019, "Fast random integer generation in an interval".
#[inline(always)]
pub(crate) fn scale(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}
