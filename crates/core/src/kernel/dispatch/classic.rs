//! Classic filters.

use crate::kernel::batch::HashSource;
use crate::kernel::classic::ClassicParams;
use crate::kernel::cpu::KernelHandle;
use crate::store::CacheLine;

#[cfg(target_arch = "x86_64")]
use crate::kernel::{avx512, classic::LARGE_FILTER, cpu::Kernel};

impl KernelHandle {
    /// Returns true if the kernel has code of its own for classic filters of this size.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn has_classic(self, params: ClassicParams) -> bool {
        self.kernel() == Kernel::Avx512 && params.bits <= u32::MAX.into()
    }

    /// Sets the bits of a hash. Returns whether any of them was clear.
    #[inline]
    pub(crate) fn classic_insert(
        self,
        params: ClassicParams,
        lines: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.has_classic(params) {
            // SAFETY: the machine has the instructions, and the filter fewer than 2^32 bits.
            return unsafe { avx512::classic::insert(params, lines, hash) };
        }
        params.insert(lines, hash)
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
            // SAFETY: as above.
            return unsafe { avx512::classic::contains(params, lines, hash) };
        }
        params.contains(lines, hash)
    }

    /// Sets the bits of many hashes. `new` has one word for 64 hashes.
    pub(crate) fn classic_insert_batch(
        self,
        params: ClassicParams,
        lines: &mut [CacheLine],
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.has_classic(params) {
            // SAFETY: as above.
            return unsafe { avx512::classic::insert_batch(params, lines, hashes, new) };
        }
        params.insert_batch(lines, hashes, new);
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
