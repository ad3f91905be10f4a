//! The operations of a table as functions, compiled for every shape, portably, with AVX2 and with
//! AVX-512. A table selects its functions once: a match on shape and kernel for each key takes longer than a
//! call by pointer.

use super::block::BlockOps;
use super::shape::PairParams;
use crate::kernel::select::Portable;
use crate::store::CacheLine;

#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512Gfni;
#[cfg(target_arch = "x86_64")]
use crate::kernel::{avx2::Avx2, avx512::Avx512, dispatch::VectorQuotient};

/// Evaluates an expression with the constants of a shape: the bits of a tag and the bytes of a plane.
macro_rules! with_shape {
    ($params:expr, |$TAG_BITS:ident, $BYTES:ident| $call:expr) => {
        with_shape!(
            $params, |$TAG_BITS, $BYTES| $call;
            6 => (6, 8), 7 => (7, 7), 8 => (8, 6), 10 => (10, 5), 13 => (13, 4), _ => (18, 3)
        )
    };
    (
        $params:expr, |$TAG_BITS:ident, $BYTES:ident| $call:expr;
        $($of:pat => ($tag_bits:literal, $bytes:literal)),*
    ) => {
        match $params.shape.tag_bits {
            $($of => {
                const $TAG_BITS: usize = $tag_bits;
                const $BYTES: usize = $bytes;
                $call
            })*
        }
    };
}
pub(super) use with_shape;

/// Defines a function that returns the functions for a shape, compiled for some instructions.
macro_rules! compiled {
    (
        $of_shape:ident, $attribute:meta, $select:expr;
        $($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*
    ) => {
        pub(in crate::kernel) fn $of_shape(params: &PairParams) -> &'static Self {
            $(
                #[$attribute]
                unsafe fn $name<const TAG_BITS: usize, const BYTES: usize>(
                    params: &PairParams,
                    $($argument: $type),*
                ) $(-> $result)? {
                    BlockOps::<TAG_BITS, BYTES>::$name($select, params, $($argument),*)
                }
            )*
            with_shape!(params, |TAG_BITS, BYTES| &Self { $($name: $name::<TAG_BITS, BYTES>,)* })
        }
    };
}

/// Defines the struct of the functions.
macro_rules! operations {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of a table, each [`BlockOps`]' method of the same name. The processor must have the
        /// instructions for which they are compiled.
        #[derive(Debug)]
        pub(crate) struct Operations {
            $(pub(super) $name: unsafe fn(&PairParams, $($type),*) $(-> $result)?,)*
        }

        impl Operations {
            compiled! {
                of_portable, inline, Portable;
                $($name($($argument: $type),*) $(-> $result)?;)*
            }

            #[cfg(target_arch = "x86_64")]
            compiled! {
                of_avx2, target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt"),
                // SAFETY: the caller guarantees the instructions.
                unsafe { Avx2::new_unchecked() };
                $($name($($argument: $type),*) $(-> $result)?;)*
            }

            #[cfg(target_arch = "x86_64")]
            compiled! {
                of_avx512,
                target_feature(
                    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2",
                    enable = "avx512vpopcntdq,gfni,avx2,bmi1,bmi2,lzcnt,popcnt"
                ),
                // SAFETY: the caller guarantees the instructions.
                unsafe { Avx512Gfni::new_unchecked() };
                $($name($($argument: $type),*) $(-> $result)?;)*
            }
        }
    };
}

operations! {
    contains(blocks: &[CacheLine], hash: u64) -> bool;
    count(blocks: &[CacheLine], hash: u64) -> u64;
    insert(blocks: &mut [CacheLine], hash: u64) -> bool;
    remove(blocks: &mut [CacheLine], hash: u64) -> bool;
    contains_batch(blocks: &[CacheLine], hashes: &[u64], found: &mut [u64]);
    insert_batch(blocks: &mut [CacheLine], hashes: &[u64]) -> usize;
    remove_batch(blocks: &mut [CacheLine], hashes: &[u64], removed: &mut [u64]) -> u64;
}

#[cfg(target_arch = "x86_64")]
impl VectorQuotient for Avx2 {
    unsafe fn pair_operations(params: &PairParams) -> &'static Operations {
        Operations::of_avx2(params)
    }
}

#[cfg(target_arch = "x86_64")]
impl VectorQuotient for Avx512 {
    unsafe fn pair_operations(params: &PairParams) -> &'static Operations {
        // Batches compute the numbers of blocks in 32 bits.
        if params.blocks() >> 32 == 0 && Avx512Gfni::completes_avx512() {
            Operations::of_avx512(params)
        } else {
            Operations::of_avx2(params)
        }
    }
}
