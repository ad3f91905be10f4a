//! Binary fuse filters.

use crate::kernel::cpu::KernelHandle;
use crate::kernel::fuse::Fuse;

impl KernelHandle {
    /// Looks up many hashes. `found` has one word for 64 hashes.
    pub(crate) fn fuse_batch(self, fuse: Fuse<'_>, hashes: &[u64], found: &mut [u64]) {
        fuse.batch(hashes, found);
    }
}
