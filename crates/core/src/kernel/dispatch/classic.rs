//! Queries of classic filters; inserts are portable code.

use crate::kernel::batch::HashSource;
use crate::kernel::classic::ClassicParams;
use crate::kernel::cpu::KernelHandle;
use crate::store::CacheLine;

#[cfg(target_arch = "x86_64")]
use crate::kernel::{avx512, classic::LARGE_FILTER, cpu::Kernel};

impl KernelHandle {
    /// Returns true if the kernel has code of its own for queries of this filter.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn has_classic(self, params: ClassicParams) -> bool {
        self.kernel() == Kernel::Avx512 && params.bits <= u32::MAX.into()
    }

    /// Returns whether all bits of a hash are set.
    #[inline(always)]
    pub(crate) fn classic_contains(
        self,
        params: ClassicParams,
        lines: &[CacheLine],
        hash: u64,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.has_classic(params) {
            // SAFETY: the machine has the instructions, and the filter fewer than 2^32 bits.
            return unsafe { avx512::classic::contains(params, lines, hash) };
        }
        params.contains(lines, hash)
    }

    /// Looks up many hashes. `found` has one word for 64 hashes.
    pub(crate) fn classic_contains_batch(
        self,
        params: ClassicParams,
        lines: &[CacheLine],
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.has_classic(params) && lines.len() < LARGE_FILTER {
            // SAFETY: as above.
            return unsafe { avx512::classic::contains_small(params, lines, hashes, found) };
        }
        params.contains_batch(lines, hashes, found);
    }
}
