//! Blocked filters.

use crate::kernel::batch::{HashSource, PREFETCH_FROM};
use crate::kernel::blocked::{BlockParams, BlockRange};
use crate::kernel::cpu::{Kernel, KernelHandle};
use crate::store::CacheLine;

#[cfg(target_arch = "aarch64")]
use crate::kernel::neon;
#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
use crate::kernel::simd128;
#[cfg(target_arch = "x86_64")]
use crate::kernel::{avx2, avx512};

impl KernelHandle {
    /// Does the same as [`insert`](Self::insert) in blocks of one cache line, by inlined code or the
    /// shortest call. `None` if the kernel has neither.
    #[cfg_attr(
        not(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128"))),
        expect(unused_variables)
    )]
    #[inline(always)]
    pub(crate) fn insert_inline(
        self,
        params: BlockParams<8>,
        lines: &mut [CacheLine],
        hash: u64,
    ) -> Option<bool> {
        match self.kernel() {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                let at = params.checked_line(lines, hash);
                // SAFETY: the machine has the instructions; the line exists and is borrowed
                // exclusively.
                Some(unsafe {
                    avx512::inline::insert::<8>(params.probes, lines.as_mut_ptr(), at, hash)
                })
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => {
                let at = params.checked_line(lines, hash);
                // SAFETY: as above.
                Some(unsafe {
                    avx2::inline::insert::<8>(params.probes, lines.as_mut_ptr(), at, hash)
                })
            }
            #[cfg(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => {
                Some(simd128::insert(params, &mut lines[params.line_range(hash)], hash))
            }
            _ => None,
        }
    }

    /// Same as [`insert_inline`](Self::insert_inline) for [`set`](Self::set). False if the kernel has
    /// neither.
    #[cfg_attr(
        not(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128"))),
        expect(unused_variables)
    )]
    #[inline(always)]
    pub(crate) fn set_inline(
        self,
        params: BlockParams<8>,
        lines: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        match self.kernel() {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                let at = params.checked_line(lines, hash);
                // SAFETY: the machine has the instructions; the line exists and is borrowed
                // exclusively.
                unsafe {
                    avx512::inline::set::<8>(params.probes, lines.as_mut_ptr(), at, hash);
                }
                true
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => {
                let at = params.checked_line(lines, hash);
                // SAFETY: as above.
                unsafe { avx2::inline::set::<8>(params.probes, lines.as_mut_ptr(), at, hash) };
                true
            }
            #[cfg(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => {
                simd128::set(params, &mut lines[params.line_range(hash)], hash);
                true
            }
            _ => false,
        }
    }

    /// Same as [`insert_inline`](Self::insert_inline) for [`contains`](Self::contains).
    #[cfg_attr(
        not(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128"))),
        expect(unused_variables)
    )]
    #[inline(always)]
    pub(crate) fn contains_inline(
        self,
        params: BlockParams<8>,
        lines: &[CacheLine],
        hash: u64,
    ) -> Option<bool> {
        match self.kernel() {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                let at = params.checked_line(lines, hash);
                // SAFETY: the machine has the instructions; the line exists and is borrowed.
                Some(unsafe {
                    avx512::inline::contains::<8>(params.probes, lines.as_ptr(), at, hash)
                })
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => {
                let at = params.checked_line(lines, hash);
                // SAFETY: as above.
                Some(unsafe {
                    avx2::inline::contains::<8>(params.probes, lines.as_ptr(), at, hash)
                })
            }
            #[cfg(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => {
                Some(simd128::contains(params, &lines[params.line_range(hash)], hash))
            }
            _ => None,
        }
    }

    /// Sets the bits of a hash. Returns whether any of them was clear.
    #[inline]
    pub(crate) fn insert<const LANES: usize>(
        self,
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let block = &mut lines[params.line_range(hash)];
        match self.kernel() {
            // SAFETY: the machine has the instructions, and the block is borrowed exclusively.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe {
                avx512::inline::insert::<LANES>(params.probes, block.as_mut_ptr(), 0, hash)
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe {
                avx2::inline::insert::<LANES>(params.probes, block.as_mut_ptr(), 0, hash)
            },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::insert(params, block, hash) },
            #[cfg(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => simd128::insert(params, block, hash),
            _ => params.insert(block, hash),
        }
    }

    /// Returns whether all bits of a hash are set.
    #[inline]
    pub(crate) fn contains<const LANES: usize>(
        self,
        params: BlockParams<LANES>,
        lines: &[CacheLine],
        hash: u64,
    ) -> bool {
        let block = &lines[params.line_range(hash)];
        match self.kernel() {
            // SAFETY: the machine has the instructions, and the block is borrowed.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe {
                avx512::inline::contains::<LANES>(params.probes, block.as_ptr(), 0, hash)
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe {
                avx2::inline::contains::<LANES>(params.probes, block.as_ptr(), 0, hash)
            },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::contains(params, block, hash) },
            #[cfg(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => simd128::contains(params, block, hash),
            _ => params.contains(block, hash),
        }
    }

    /// Sets the bits of a hash.
    #[inline]
    pub(crate) fn set<const LANES: usize>(
        self,
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) {
        match self.kernel() {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => {
                let block = &mut lines[params.line_range(hash)];
                // SAFETY: the machine has the instructions, and the block is borrowed exclusively.
                unsafe {
                    avx2::inline::set::<LANES>(params.probes, block.as_mut_ptr(), 0, hash);
                }
            }
            #[cfg(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => simd128::set(params, &mut lines[params.line_range(hash)], hash),
            _ => _ = self.insert(params, lines, hash),
        }
    }

    /// Sets the bits of many hashes in a filter that fits a cache. False, and nothing is done, if the
    /// filter is larger or the kernel has no code for it: then
    /// [`insert_batch`](Self::insert_batch) is as fast.
    pub(crate) fn set_small<const LANES: usize>(
        self,
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
    ) -> bool {
        if !blocks.is_below(PREFETCH_FROM) {
            return false;
        }
        match self.kernel() {
            // Testing the bits takes one instruction.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => return false,
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::set_small(blocks, hashes) },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::set_small(blocks, hashes) },
            #[cfg(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => simd128::set_small(blocks, hashes),
            _ => {
                let params = blocks.params;
                blocks.set_small(hashes, |block, hash| _ = params.insert(block, hash));
            }
        }
        true
    }

    /// Sets the bits of many hashes in turn. A result is true if that hash was new, also to the
    /// hashes before it in the batch. `new` has one word for 64 hashes.
    ///
    /// # Panics
    /// If the block of a hash is not in the range.
    pub(crate) fn insert_batch<const LANES: usize>(
        self,
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        match self.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::insert_batch(blocks, hashes, new) },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::insert_batch(blocks, hashes, new) },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::insert_batch(blocks, hashes, new) },
            #[cfg(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => simd128::insert_batch(blocks, hashes, new),
            _ => {
                let params = blocks.params;
                blocks.insert_batch(hashes, new, |block, hash| params.insert(block, hash));
            }
        }
    }

    /// Looks up many hashes. `found` has one word for 64 hashes.
    ///
    /// # Panics
    /// If the block of a hash is not in the range.
    pub(crate) fn contains_batch<const LANES: usize>(
        self,
        blocks: BlockRange<LANES, &[CacheLine]>,
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        match self.kernel() {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::contains_batch(blocks, hashes, found) },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::contains_batch(blocks, hashes, found) },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::contains_batch(blocks, hashes, found) },
            #[cfg(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => simd128::contains_batch(blocks, hashes, found),
            _ => {
                let params = blocks.params;
                blocks.contains_batch(hashes, found, |block, hash| params.contains(block, hash));
            }
        }
    }
}
