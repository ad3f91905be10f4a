//! Static filters.

use crate::kernel::cpu::KernelHandle;
use crate::kernel::ribbon::{KeyBits, Ribbon, matches};

#[cfg(target_arch = "x86_64")]
use crate::kernel::{avx512, cpu::Kernel};

impl KernelHandle {
    /// Returns whether a ribbon contains a hash.
    #[inline]
    pub(crate) fn ribbon_contains(self, ribbon: Ribbon<'_>, hash: u64) -> bool {
        ribbon.contains(hash, |rows, key_bits| self.matches(rows, key_bits))
    }

    /// Returns whether the bits of a key have the expected values.
    #[inline(always)]
    fn matches(self, rows: &[u32], key_bits: &KeyBits) -> bool {
        match self.kernel() {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                assert!(key_bits.far.max(key_bits.near) + key_bits.columns <= rows.len());
                // SAFETY: the machine has the instructions, and both runs are inside the rows.
                unsafe { avx512::ribbon::matches(rows.as_ptr(), key_bits) }
            }
            _ => matches(rows, key_bits),
        }
    }

    /// Looks up many hashes. `found` has one word for 64 hashes.
    pub(crate) fn ribbon_batch(self, ribbon: Ribbon<'_>, hashes: &[u64], found: &mut [u64]) {
        match self.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::ribbon::batch(ribbon, hashes, found) },
            _ => ribbon.batch(hashes, found, matches),
        }
    }
}
