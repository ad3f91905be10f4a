//! Which code a filter runs: a table of functions for each family of filters.
//!
//! * A *family* is a trait, such as [`Blocked`] or [`Ribbons`]; its functions are the portable code. An
//!   instruction set with faster code implements the trait in its own module, and leaves out what it does not
//!   have.
//! * `instruction_sets!` is the list of instruction sets: a row for each [`Kernel`] names the implementation
//!   of each family. An implementation must not need more instructions than the kernel has.
//! * [`KernelHandle`] has a method for each function of each family. It matches the kernel and calls the
//!   function of its row. A handle is proof that the machine has the instructions of the kernel, so the methods
//!   are safe. Nothing else calls the tables.
//!
//! **To add an instruction set**, add a kernel in `cpu.rs` and a row here.
//!
//! The tables are types, not pointers to functions, because batches are generic over the source of their hashes.
//! Single keys in blocks of one line have code that is inlined into callers ([`InlineCode`](super::InlineCode)).
//! Only vector quotient filters call pointers ([`Operations`]), which a table of theirs selects once: their code
//! depends on the shape of the blocks, too.

use super::batch::HashSource;
use super::blocked::{BlockParams, BlockRange};
use super::classic::ClassicParams;
use super::counting::{Counters, RemoveOutcome};
use super::cpu::{Kernel, KernelHandle};
use super::fuse::Fuse;
use super::generations::GenerationRing;
use super::quotient::{BatchInserted, Filler, InsertOutcome, Table, TableParams};
use super::ribbon::{Ribbon, matches};
use super::select::Portable;
#[cfg(feature = "std")]
use super::shared::SharedBlocks;
use super::vector_quotient::{Operations, PairParams};
use crate::store::CacheLine;

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
use super::simd128::Simd128;

/// For a kernel, the implementation of each family of filters.
trait InstructionSet {
    type Blocked: Blocked;
    type Classic: Classic;
    type Counting: Counting;
    type Windowed: Windowed;
    #[cfg(feature = "std")]
    type Shared: Shared;
    type BinaryFuse: BinaryFuse;
    type Ribbons: Ribbons;
    type Quotient: Quotient;
    type VectorQuotient: VectorQuotient;
}

/// Implements [`InstructionSet`], and defines `with_family!`, which evaluates an expression with the
/// implementation of a family for the kernel of a handle. `$` stands for itself in that macro. Rows with
/// portable code share its last arm.
macro_rules! instruction_sets {
    ($d:tt $(
        $(#[$availability:meta])*
        $Set:ident: $blocked:ty, $classic:ty, $counting:ty, $windowed:ty, $shared:ty, $fuse:ty, $ribbon:ty,
        $quotient:ty, $vector_quotient:ty;
    )*) => {
        $(
            $(#[$availability])*
            impl InstructionSet for $Set {
                type Blocked = $blocked;
                type Classic = $classic;
                type Counting = $counting;
                type Windowed = $windowed;
                #[cfg(feature = "std")]
                type Shared = $shared;
                type BinaryFuse = $fuse;
                type Ribbons = $ribbon;
                type Quotient = $quotient;
                type VectorQuotient = $vector_quotient;
            }
        )*

        macro_rules! with_family {
            ($d handle:expr, $d Family:ident as $d Table:ident => $d call:expr) => {
                match $d handle.kernel() {
                    $(
                        $(#[$availability])*
                        Kernel::$Set
                            if !<<$Set as InstructionSet>::$d Family as $d Family>::IS_PORTABLE =>
                        {
                            type $d Table = <$Set as InstructionSet>::$d Family;
                            $d call
                        }
                    )*
                    _ => {
                        type $d Table = Portable;
                        $d call
                    }
                }
            };
        }
    };
}

// The list of instruction sets.
instruction_sets! { $
    //       blocked  classic   counting  windowed  shared    fuse      ribbon    quotient  vector quotient
    #[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
    Simd128: Simd128, Portable, Portable, Portable, Portable, Portable, Portable, Portable, Portable;
    #[cfg(target_arch = "aarch64")]
    Neon:    Neon,    Portable, Portable, Portable, Portable, Portable, Portable, Portable, Portable;
    #[cfg(target_arch = "x86_64")]
    Avx2:    Avx2,    Portable, Portable, Portable, Portable, Avx2,     Avx2,     Avx2,     Avx2;
    #[cfg(target_arch = "x86_64")]
    Avx512:  Avx512,  Avx512,   Avx512,   Avx512,   Avx512,   Avx512,   Avx512,   Avx2,     Avx512;
}

/// Defines families: traits, their implementation by portable code, and methods of [`KernelHandle`] that
/// call the implementation for the kernel.
macro_rules! families {
    ($(
        $(#[$family_attribute:meta])*
        [$($availability:meta)?] $Family:ident {
            $(
                $(#[$attribute:meta])*
                fn $name:ident $([$($generic:tt)*])? (
                    $($argument:ident: $type:ty),* $(,)?
                ) $(-> $result:ty)? $portable:block
            )*
        }
    )*) => {$(
        $(#[$family_attribute])*
        ///
        /// # Safety
        /// Of each function: the machine must have the instructions of the implementation.
        $(#[$availability])?
        pub(super) trait $Family {
            /// Whether the functions are the portable code.
            const IS_PORTABLE: bool = false;
            $(
                $(#[$attribute])*
                unsafe fn $name $(<$($generic)*>)? ($($argument: $type),*) $(-> $result)? $portable
            )*
        }

        $(#[$availability])?
        impl $Family for Portable {
            const IS_PORTABLE: bool = true;
        }

        $(#[$availability])?
        impl KernelHandle {
            $(
                $(#[$attribute])*
                pub(crate) fn $name $(<$($generic)*>)? (self, $($argument: $type),*) $(-> $result)? {
                    // SAFETY: a handle is proof that the machine has the instructions of its kernel.
                    with_family!(self, $Family as Table => unsafe { Table::$name($($argument),*) })
                }
            )*
        }
    )*};
}

families! {
    /// Blocked filters.
    [] Blocked {
        /// Sets the bits of a hash. Returns whether any of them was clear.
        #[inline(always)]
        fn insert[const LANES: usize](
            params: BlockParams<LANES>,
            lines: &mut [CacheLine],
            hash: u64,
        ) -> bool {
            params.insert(&mut lines[params.line_range(hash)], hash)
        }

        /// Sets the bits of a hash.
        #[inline(always)]
        fn set[const LANES: usize](params: BlockParams<LANES>, lines: &mut [CacheLine], hash: u64) {
            // SAFETY: the caller guarantees the instructions.
            unsafe { Self::insert(params, lines, hash) };
        }

        /// Returns whether all bits of a hash are set.
        #[inline(always)]
        fn contains[const LANES: usize](
            params: BlockParams<LANES>,
            lines: &[CacheLine],
            hash: u64,
        ) -> bool {
            params.contains(&lines[params.line_range(hash)], hash)
        }

        /// Sets the bits of many hashes in a filter that fits a cache. False, and nothing is done, if the
        /// filter is larger or the kernel has no code for it: then `insert_batch` is as fast.
        fn set_small[const LANES: usize](
            blocks: BlockRange<LANES, &mut [CacheLine]>,
            hashes: impl HashSource,
        ) -> bool {
            let params = blocks.params;
            blocks.set_small(hashes, |block, hash| _ = params.insert(block, hash))
        }

        /// Sets the bits of many hashes in turn. A result is true if that hash was new, also to the hashes
        /// before it in the batch. `new` has one word for 64 hashes.
        ///
        /// # Panics
        /// If the block of a hash is not in the range.
        fn insert_batch[const LANES: usize](
            blocks: BlockRange<LANES, &mut [CacheLine]>,
            hashes: impl HashSource,
            new: &mut [u64],
        ) {
            let params = blocks.params;
            blocks.insert_batch(hashes, new, |block, hash| params.insert(block, hash));
        }

        /// Looks up many hashes. `found` has one word for 64 hashes.
        ///
        /// # Panics
        /// If the block of a hash is not in the range.
        fn contains_batch[const LANES: usize](
            blocks: BlockRange<LANES, &[CacheLine]>,
            hashes: impl HashSource,
            found: &mut [u64],
        ) {
            let params = blocks.params;
            blocks.contains_batch(hashes, found, |block, hash| params.contains(block, hash));
        }
    }

    /// Queries of classic filters; inserts are always portable.
    [] Classic {
        /// Returns whether all bits of a hash are set.
        #[inline(always)]
        fn classic_contains(params: ClassicParams, lines: &[CacheLine], hash: u64) -> bool {
            params.contains(lines, hash)
        }

        /// Looks up many hashes. `found` has one word for 64 hashes.
        fn classic_contains_batch(
            params: ClassicParams,
            lines: &[CacheLine],
            hashes: impl HashSource,
            found: &mut [u64],
        ) {
            params.contains_batch(lines, hashes, found);
        }
    }

    /// Counting filters with a blocked layout.
    [] Counting {
        /// Increments the counters of a hash. Returns whether any of them was zero.
        fn increment[const LANES: usize](
            params: BlockParams<LANES>,
            counters: &mut Counters<'_>,
            hash: u64,
        ) -> bool {
            counters.insert(params, hash)
        }

        /// Decrements the counters of a hash, if none of them is zero.
        fn decrement[const LANES: usize](
            params: BlockParams<LANES>,
            counters: &mut Counters<'_>,
            hash: u64,
        ) -> RemoveOutcome {
            counters.remove(params, hash)
        }

        /// Inserts many hashes in turn. `new` has one word for 64 hashes.
        fn increment_batch[const LANES: usize](
            params: BlockParams<LANES>,
            counters: &mut Counters<'_>,
            hashes: &[u64],
            new: &mut [u64],
        ) {
            counters.batch(params, hashes, new, |counters, hash| counters.insert(params, hash));
        }

        /// Removes many hashes in turn. A result is true unless the hash was absent. Returns the number of
        /// hashes that the filter does not contain any more.
        fn decrement_batch[const LANES: usize](
            params: BlockParams<LANES>,
            counters: &mut Counters<'_>,
            hashes: &[u64],
            removed: &mut [u64],
        ) -> u64 {
            counters.remove_batch(params, hashes, removed, |counters, hash| {
                counters.remove(params, hash)
            })
        }
    }

    /// Batches of windowed filters. The portable code calls the kernel of the ring for each generation.
    [] Windowed {
        /// Looks up many hashes. A result is true if any generation contains the hash. `found` has one word
        /// for 64 hashes.
        fn contains_batch_in_ring[const LANES: usize](
            ring: GenerationRing<LANES, &[CacheLine]>,
            hashes: impl HashSource,
            found: &mut [u64],
        ) {
            let mut ring = ring;
            ring.batch(hashes, found, |ring, at, hash| ring.contains_at(at, hash));
        }

        /// Sets the bits of many hashes in turn in the newest generation; with `if_absent` only those of
        /// hashes that no generation contains. A result is true if no generation contained the hash before,
        /// earlier hashes of the batch included. Returns the number of hashes that were new to the newest
        /// generation.
        fn insert_batch_in_ring[const LANES: usize](
            ring: GenerationRing<LANES, &mut [CacheLine]>,
            if_absent: bool,
            hashes: impl HashSource,
            new: &mut [u64],
        ) -> u64 {
            let mut ring = ring;
            ring.batch(hashes, new, |ring, at, hash| ring.insert_at(if_absent, at, hash));
            ring.new_in_newest
        }
    }

    /// Blocked filters that many threads access.
    [cfg(feature = "std")] Shared {
        /// Returns whether all bits of a hash are set.
        #[inline(always)]
        fn shared_contains[const LANES: usize](blocks: SharedBlocks<'_, LANES>, hash: u64) -> bool {
            blocks.contains_at(blocks.params.first_line(hash), hash)
        }

        /// Sets the bits of a hash. Returns whether any of them was clear.
        #[inline(always)]
        fn shared_insert[const LANES: usize](blocks: SharedBlocks<'_, LANES>, hash: u64) -> bool {
            blocks.insert_at(blocks.params.first_line(hash), hash)
        }

        /// Sets the bits of many hashes in turn. A result is true if that hash was new, also to the hashes
        /// before it in the batch. `new` has one word for 64 hashes.
        fn shared_insert_batch[const LANES: usize](
            blocks: SharedBlocks<'_, LANES>,
            hashes: impl HashSource,
            new: &mut [u64],
        ) {
            blocks.batch(hashes, new, SharedBlocks::insert_at);
        }

        /// Looks up many hashes. `found` has one word for 64 hashes.
        fn shared_contains_batch[const LANES: usize](
            blocks: SharedBlocks<'_, LANES>,
            hashes: impl HashSource,
            found: &mut [u64],
        ) {
            blocks.batch(hashes, found, SharedBlocks::contains_at);
        }
    }

    /// Binary fuse filters.
    [] BinaryFuse {
        /// Returns whether the filter contains a hash.
        #[inline(always)]
        fn fuse_contains(fuse: Fuse<'_>, hash: u64) -> bool {
            fuse.contains(hash)
        }

        /// Looks up many hashes. `found` has one word for 64 hashes.
        fn fuse_batch(fuse: Fuse<'_>, hashes: impl HashSource, found: &mut [u64]) {
            fuse.batch(hashes, found);
        }
    }

    /// Ribbons.
    [] Ribbons {
        /// Returns whether a ribbon contains a hash.
        #[inline]
        fn ribbon_contains(ribbon: Ribbon<'_>, hash: u64) -> bool {
            ribbon.contains(hash, matches)
        }

        /// Looks up many hashes. `found` has one word for 64 hashes.
        fn ribbon_batch(ribbon: Ribbon<'_>, hashes: &[u64], found: &mut [u64]) {
            ribbon.batch(hashes, found, matches);
        }
    }

    /// Quotient filters.
    [] Quotient {
        /// Returns whether the table contains a fingerprint.
        #[inline]
        fn quotient_contains(params: TableParams, bytes: &[u8], fingerprint: u64) -> bool {
            params.contains(Portable, bytes, fingerprint)
        }

        /// Returns the number of copies of a fingerprint.
        fn quotient_count(params: TableParams, bytes: &[u8], fingerprint: u64) -> u64 {
            params.count(Portable, bytes, fingerprint)
        }

        /// Inserts a fingerprint. If the table contains it, adds a copy if `duplicates`.
        #[inline]
        fn quotient_insert(
            params: TableParams,
            bytes: &mut [u8],
            fingerprint: u64,
            duplicates: bool,
        ) -> InsertOutcome {
            params.insert(Portable, bytes, fingerprint, duplicates)
        }

        /// Removes one copy of a fingerprint. Returns the number of copies before.
        #[inline]
        fn quotient_remove(params: TableParams, bytes: &mut [u8], fingerprint: u64) -> u64 {
            params.remove(Portable, bytes, fingerprint)
        }

        /// Same as [`Table::contains_batch`].
        fn quotient_contains_batch(
            table: &Table,
            bytes: &[u8],
            hashes: &[u64],
            found: &mut [u64],
        ) {
            table.contains_all(Portable, bytes, hashes, found);
        }

        /// Same as [`Table::insert_batch`].
        fn quotient_insert_batch(
            table: &Table,
            bytes: &mut [u8],
            hashes: &[u64],
            first: usize,
            limits: (u64, bool),
            new: &mut [u64],
        ) -> BatchInserted {
            table.insert_all(Portable, bytes, hashes, first, limits, new)
        }

        /// Writes the offsets of a table that has been filled.
        fn quotient_finish(filler: Filler<'_>) {
            filler.finish(Portable);
        }
    }

    /// Vector quotient filters.
    [] VectorQuotient {
        /// Returns the functions for the shape of these parameters. The machine has their instructions.
        fn pair_operations(params: &PairParams) -> &'static Operations {
            Operations::of_portable(params)
        }
    }
}

/// Defines the functions of [`Blocked`] for single keys, by the module `inline`.
#[cfg(target_arch = "x86_64")]
macro_rules! called_keys {
    () => {
        #[inline(always)]
        unsafe fn insert<const LANES: usize>(
            params: BlockParams<LANES>,
            lines: &mut [CacheLine],
            hash: u64,
        ) -> bool {
            let (at, lines) = (params.checked_line(lines, hash), lines.as_mut_ptr());
            // SAFETY: the caller guarantees the instructions; the block exists and is borrowed exclusively.
            unsafe {
                by_lanes!(params, ALL => inline::insert::<LANES, ALL>(params.probes, lines, at, hash))
            }
        }

        #[inline(always)]
        unsafe fn set<const LANES: usize>(
            params: BlockParams<LANES>,
            lines: &mut [CacheLine],
            hash: u64,
        ) {
            let (at, lines) = (params.checked_line(lines, hash), lines.as_mut_ptr());
            // SAFETY: as in `insert`.
            unsafe {
                by_lanes!(params, ALL => inline::set::<LANES, ALL>(params.probes, lines, at, hash));
            }
        }

        #[inline(always)]
        unsafe fn contains<const LANES: usize>(
            params: BlockParams<LANES>,
            lines: &[CacheLine],
            hash: u64,
        ) -> bool {
            let (at, lines) = (params.checked_line(lines, hash), lines.as_ptr());
            // SAFETY: the caller guarantees the instructions; the block exists and is borrowed.
            unsafe {
                by_lanes!(params, ALL => inline::contains::<LANES, ALL>(params.probes, lines, at, hash))
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use called_keys;
