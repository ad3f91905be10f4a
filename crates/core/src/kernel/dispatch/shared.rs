//! Filters that many threads access at once.

use crate::kernel::batch::HashSource;
use crate::kernel::shared::SharedBlocks;

#[cfg(target_arch = "x86_64")]
use crate::kernel::{avx512, cpu::Kernel};

impl<const LANES: usize> SharedBlocks<'_, LANES> {
    /// Returns whether all bits of a hash are set.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        match self.kernel.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::shared::contains(self, hash) },
            _ => self.contains_at(self.params.first_line(hash), hash),
        }
    }

    /// Sets the bits of a hash. Returns whether any of them was clear.
    #[inline]
    pub(crate) fn insert(&self, hash: u64) -> bool {
        match self.kernel.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::shared::insert(self, hash) },
            _ => self.insert_at(self.params.first_line(hash), hash),
        }
    }

    /// Sets the bits of many hashes in turn. A result is true if that hash was new, also to the
    /// hashes before it in the batch. `new` has one word for 64 hashes.
    pub(crate) fn insert_batch(self, hashes: impl HashSource, new: &mut [u64]) {
        match self.kernel.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::shared::insert_batch(&self, hashes, new) },
            _ => self.batch(hashes, new, Self::insert_at),
        }
    }

    /// Looks up many hashes. `found` has one word for 64 hashes.
    pub(crate) fn contains_batch(self, hashes: impl HashSource, found: &mut [u64]) {
        match self.kernel.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::shared::contains_batch(&self, hashes, found) },
            _ => self.batch(hashes, found, Self::contains_at),
        }
    }
}
