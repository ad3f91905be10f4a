//! The code for single keys in blocks of one cache line that is inlined into callers.
//!
//! A call takes as long as everything else, and functions with a target feature are never inlined, so
//! this code is inline assembly, in the modules `inline` of the instruction sets. Which code a filter
//! uses is one value, found when the filter is made, and each code computes the hash itself: so compilers
//! make a loop over keys one loop for each code.

#[cfg(target_arch = "x86_64")]
use super::avx2::inline as avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::inline as avx512;
use super::blocked::BlockParams;
use super::cpu::{Kernel, KernelHandle};
use crate::store::CacheLine;

/// The inlined code for the keys of a filter, if there is any. Proof that its instructions may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineCode(Code);

/// `All`: a key has a bit in every lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "only x86-64 has inlined code")]
enum Code {
    None,
    Avx512All,
    Avx512,
    Avx2All,
    Avx2,
}

/// Evaluates an expression with the module of the code, and a constant: whether a key has a bit in every
/// lane. `None` if there is no code.
macro_rules! by_code {
    ($code:expr, $module:ident, $ALL:ident => $call:expr) => {
        match $code.0 {
            #[cfg(target_arch = "x86_64")]
            Code::Avx512All => {
                use avx512 as $module;
                const $ALL: bool = true;
                Some($call)
            }
            #[cfg(target_arch = "x86_64")]
            Code::Avx512 => {
                use avx512 as $module;
                const $ALL: bool = false;
                Some($call)
            }
            #[cfg(target_arch = "x86_64")]
            Code::Avx2All => {
                use avx2 as $module;
                const $ALL: bool = true;
                Some($call)
            }
            #[cfg(target_arch = "x86_64")]
            Code::Avx2 => {
                use avx2 as $module;
                const $ALL: bool = false;
                Some($call)
            }
            _ => None,
        }
    };
}

impl InlineCode {
    /// No inlined code.
    pub(crate) const NONE: Self = Self(Code::None);

    /// Returns the code for blocks of one line and a number of probes.
    pub(crate) fn of_lines(kernel: KernelHandle, probes: u32) -> Self {
        Self(match (kernel.kernel(), probes) {
            (Kernel::Avx512, 8) => Code::Avx512All,
            (Kernel::Avx512, _) => Code::Avx512,
            (Kernel::Avx2, 8) => Code::Avx2All,
            (Kernel::Avx2, _) => Code::Avx2,
            _ => Code::None,
        })
    }

    /// Whether there is no inlined code.
    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Sets the bits of a hash. Returns whether any of them was clear; `None`, and nothing is done, if there is
    /// no code.
    ///
    /// # Panics
    /// If there are fewer lines than blocks.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    pub(crate) fn insert(
        self,
        params: BlockParams<8>,
        lines: &mut [CacheLine],
        hash: impl FnOnce() -> u64,
    ) -> Option<bool> {
        by_code!(self, code, ALL => {
            let hash = hash();
            let at = params.checked_line(lines, hash);
            // SAFETY: `self` is proof of the instructions; the block exists and is borrowed exclusively.
            unsafe { code::insert::<8, ALL>(params.probes, lines.as_mut_ptr(), at, hash) }
        })
    }

    /// Same as [`insert`](Self::insert) without the result.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    pub(crate) fn set(
        self,
        params: BlockParams<8>,
        lines: &mut [CacheLine],
        hash: impl FnOnce() -> u64,
    ) -> Option<()> {
        by_code!(self, code, ALL => {
            let hash = hash();
            let at = params.checked_line(lines, hash);
            // SAFETY: as in `insert`.
            unsafe { code::set::<8, ALL>(params.probes, lines.as_mut_ptr(), at, hash) }
        })
    }

    /// Returns whether all bits of a hash are set; `None` if there is no code.
    ///
    /// # Panics
    /// If there are fewer lines than blocks.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    pub(crate) fn contains(
        self,
        params: BlockParams<8>,
        lines: &[CacheLine],
        hash: impl FnOnce() -> u64,
    ) -> Option<bool> {
        by_code!(self, code, ALL => {
            let hash = hash();
            let at = params.checked_line(lines, hash);
            // SAFETY: `self` is proof of the instructions; the block exists and is borrowed.
            unsafe { code::contains::<8, ALL>(params.probes, lines.as_ptr(), at, hash) }
        })
    }
}
