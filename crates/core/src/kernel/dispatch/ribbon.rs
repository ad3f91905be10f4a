//! Static filters.

use crate::kernel::cpu::KernelHandle;
use crate::kernel::ribbon::{Ribbon, matches};

#[cfg(target_arch = "x86_64")]
use crate::kernel::{avx2, avx512, cpu::Kernel};

impl KernelHandle {
    /// Returns whether a ribbon contains a hash.
    #[inline]
    pub(crate) fn ribbon_contains(self, ribbon: Ribbon<'_>, hash: u64) -> bool {
        match self.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::ribbon::contains(ribbon, hash) },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::ribbon::contains(ribbon, hash) },
            _ => ribbon.contains(hash, matches),
        }
    }

    /// Looks up many hashes. `found` has one word for 64 hashes.
    pub(crate) fn ribbon_batch(self, ribbon: Ribbon<'_>, hashes: &[u64], found: &mut [u64]) {
        match self.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::ribbon::batch(ribbon, hashes, found) },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::ribbon::batch(ribbon, hashes, found) },
            _ => ribbon.batch(hashes, found, matches),
        }
    }
}
