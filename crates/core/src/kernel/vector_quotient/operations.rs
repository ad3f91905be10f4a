//! The operations of a table as functions, compiled for every shape, portably, with AVX2 and with
//! AVX-512. A table selects its functions once, so that a call of one takes no further decisions.

use super::block::BlockOps;
use super::planes::TableOps;
use super::shape::PairParams;
use crate::kernel::select::Portable;
use crate::store::CacheLine;

#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512Gfni;
#[cfg(target_arch = "x86_64")]
use crate::kernel::select::Avx2Bmi2;

/// Evaluates an expression with the operations for a shape.
macro_rules! with_shape {
    ($params:expr, $ops:ident => $call:expr) => {
        match $params.shape.tag_bits {
            6 => {
                type $ops = BlockOps<6, 8>;
                $call
            }
            7 => {
                type $ops = BlockOps<7, 7>;
                $call
            }
            8 => {
                type $ops = BlockOps<8, 6>;
                $call
            }
            10 => {
                type $ops = BlockOps<10, 5>;
                $call
            }
            13 => {
                type $ops = BlockOps<13, 4>;
                $call
            }
            _ => {
                type $ops = BlockOps<18, 3>;
                $call
            }
        }
    };
}
pub(super) use with_shape;

/// Defines a function that calls a method of [`TableOps`] with some instructions.
macro_rules! function {
    (
        { $($attributes:tt)* } $select:expr;
        $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?
    ) => {
        $($attributes)*
        pub(super) fn $name<Ops: TableOps>(
            params: &PairParams,
            $($argument: $type),*
        ) $(-> $result)? {
            Ops::$name($select, params, $($argument),*)
        }
    };
}

/// Defines the struct of the functions, and functions that return them for each of some modules.
macro_rules! operations {
    (
        $($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*
    ) => {
        /// The functions of a table, each [`TableOps`]' method of the same name. Their processor must
        /// be that of [`portable`](Self::portable), which is any, of [`avx2`](Self::avx2), or of
        /// [`avx512`](Self::avx512).
        #[derive(Debug)]
        pub(super) struct Operations {
            $(pub(super) $name: unsafe fn(&PairParams, $($type),*) $(-> $result)?,)*
        }

        impl Operations {
            /// Returns the functions for any processor.
            pub(super) fn portable(params: &PairParams) -> &'static Self {
                with_shape!(params, Ops => &Self {
                    $($name: portable::$name::<Ops>,)*
                })
            }

            /// Returns the functions for a processor with AVX2 and BMI2.
            #[cfg(target_arch = "x86_64")]
            pub(super) fn avx2(_: Avx2Bmi2, params: &PairParams) -> &'static Self {
                with_shape!(params, Ops => &Self {
                    $($name: avx2::$name::<Ops>,)*
                })
            }

            /// Returns the functions for a processor with the instructions of [`Avx512Gfni`].
            #[cfg(target_arch = "x86_64")]
            pub(super) fn avx512(_: Avx512Gfni, params: &PairParams) -> &'static Self {
                with_shape!(params, Ops => &Self {
                    $($name: avx512::$name::<Ops>,)*
                })
            }
        }

        mod portable {
            use super::{CacheLine, PairParams, Portable, TableOps};

            $(function! { {} Portable; $name($($argument: $type),*) $(-> $result)? })*
        }

        #[cfg(target_arch = "x86_64")]
        mod avx2 {
            use super::{Avx2Bmi2, CacheLine, PairParams, TableOps};

            $(function! {
                { #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")] }
                // SAFETY: the caller guarantees that the processor has the instructions.
                unsafe { Avx2Bmi2::new_unchecked() };
                $name($($argument: $type),*) $(-> $result)?
            })*
        }

        #[cfg(target_arch = "x86_64")]
        mod avx512 {
            use super::{Avx512Gfni, CacheLine, PairParams, TableOps};

            $(function! {
                {
                    #[target_feature(
                        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2",
                        enable = "avx512vpopcntdq,gfni,avx2,bmi1,bmi2,lzcnt,popcnt"
                    )]
                }
                // SAFETY: the caller guarantees that the processor has the instructions.
                unsafe { Avx512Gfni::new_unchecked() };
                $name($($argument: $type),*) $(-> $result)?
            })*
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
