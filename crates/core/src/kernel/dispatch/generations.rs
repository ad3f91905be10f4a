//! Batches of windowed filters.

use crate::kernel::batch::{HashSource, PreparedGroup, batch, join, test_each};
use crate::kernel::cpu::KernelHandle;
use crate::kernel::generations::GenerationRing;
use crate::store::CacheLine;

#[cfg(target_arch = "x86_64")]
use crate::kernel::{avx512, cpu::Kernel};

impl KernelHandle {
    /// Looks up many hashes. A result is true if any generation contains the hash. `found` has one
    /// word for 64 hashes.
    pub(crate) fn contains_batch_in_ring<const LANES: usize>(
        self,
        ring: GenerationRing<LANES, &[CacheLine]>,
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.kernel() == Kernel::Avx512 {
            // SAFETY: the machine has the instructions.
            return unsafe { avx512::generations::contains_batch(ring, hashes, found) };
        }
        let process = |ring: &mut GenerationRing<LANES, &[CacheLine]>,
                       group: &PreparedGroup,
                       found: &mut u8| {
            let keys = group.first_lines.into_iter().zip(group.hashes);
            *found = test_each(keys, |(at, hash)| ring.contains_at(self, at, hash));
        };
        batch(ring, hashes, found, GenerationRing::prepare, process, join);
    }

    /// Looks up many hashes in the generations whose bits are set in `live`.
    pub(crate) fn live_contain_batch<const LANES: usize>(
        self,
        ring: GenerationRing<LANES, &[CacheLine]>,
        live: u16,
        hashes: &[u64],
        found: &mut [u64],
    ) {
        let process = |ring: &mut GenerationRing<LANES, &[CacheLine]>,
                       group: &PreparedGroup,
                       found: &mut u8| {
            let keys = group.first_lines.into_iter().zip(group.hashes);
            *found = test_each(keys, |(at, hash)| ring.live_contain_at(self, live, at, hash));
        };
        batch(ring, hashes, found, GenerationRing::prepare, process, join);
    }

    /// Sets the bits of many hashes in turn in the newest generation; with `IF_ABSENT` only those
    /// of hashes that no generation contains. A result is true if no generation contained the hash
    /// before, earlier hashes of the batch included. Returns the number of hashes that were new to
    /// the newest generation.
    pub(crate) fn insert_batch_in_ring<const LANES: usize, const IF_ABSENT: bool>(
        self,
        mut ring: GenerationRing<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
        new: &mut [u64],
    ) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.kernel() == Kernel::Avx512 {
            // SAFETY: the machine has the instructions.
            unsafe { avx512::generations::insert_batch::<_, IF_ABSENT>(&mut ring, hashes, new) };
            return ring.new_in_newest;
        }
        let process = |ring: &mut &mut GenerationRing<LANES, &mut [CacheLine]>,
                       group: &PreparedGroup,
                       new: &mut u8| {
            let keys = group.first_lines.into_iter().zip(group.hashes);
            *new = test_each(keys, |(at, hash)| ring.insert_at::<IF_ABSENT>(self, at, hash));
        };
        let prepare =
            |ring: &&mut GenerationRing<LANES, &mut [CacheLine]>, hashes: &_, group: &mut _| {
                ring.prepare(hashes, group);
            };
        batch(&mut ring, hashes, new, prepare, process, join);
        ring.new_in_newest
    }
}
