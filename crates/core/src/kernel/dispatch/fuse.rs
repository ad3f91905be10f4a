//! Binary fuse filters.

use crate::kernel::batch::HashSource;
use crate::kernel::cpu::KernelHandle;
use crate::kernel::fuse::Fuse;

#[cfg(target_arch = "x86_64")]
use crate::kernel::{avx2, avx512, cpu::Kernel};

impl KernelHandle {
    /// Returns whether the filter contains a hash.
    #[inline(always)]
    pub(crate) fn fuse_contains(self, fuse: Fuse<'_>, hash: u64) -> bool {
        match self.kernel() {
            // SAFETY: the machine has the instructions, and the filter fits the lanes.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 if fuse.has_bit_slots() && fuse.fits_lanes() => unsafe {
                avx512::fuse::contains(fuse, hash)
            },
            _ => fuse.contains(hash),
        }
    }

    /// Looks up many hashes. `found` has one word for 64 hashes.
    pub(crate) fn fuse_batch(self, fuse: Fuse<'_>, hashes: impl HashSource, found: &mut [u64]) {
        match self.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::fuse::contains_batch(fuse, hashes, found) },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::fuse::contains_batch(fuse, hashes, found) },
            _ => fuse.batch(hashes, found),
        }
    }
}
