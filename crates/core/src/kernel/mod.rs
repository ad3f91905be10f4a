//! Kernels: the inner loops that set and test the bits of keys.
//!
//! The portable code is the reference: it *defines* which bits a hash sets. The code for instruction
//! sets sets the same bits and returns the same results. [`Kernel::selected`] is the only place that
//! selects a kernel, and [`dispatch`] has the table of the code that a kernel runs.
//!
//! Batches go through `batch`, in which cache misses overlap.
//!
//! `unsafe` code in this module prefetches, uses vector instructions and converts the cache lines
//! that they access. Cost and measurements: `docs/design/filters.md`.

#![allow(unsafe_code)]

/// True if the processor has all of these features. Without the feature `std`, only features that the target
/// always has are used.
#[cfg(feature = "std")]
#[allow(unused_macros, reason = "only x86-64 and AArch64 have other kernels")]
macro_rules! cpu_has {
    ($($feature:tt),+) => {{
        #[cfg(target_arch = "x86_64")]
        let has = [$(std::arch::is_x86_feature_detected!($feature)),+];
        #[cfg(target_arch = "aarch64")]
        let has = [$(std::arch::is_aarch64_feature_detected!($feature)),+];
        !has.contains(&false)
    }};
}
#[cfg(not(feature = "std"))]
#[allow(unused_macros, reason = "only x86-64 and AArch64 have other kernels")]
macro_rules! cpu_has {
    ($($feature:tt),+) => {
        cfg!(all($(target_feature = $feature),+))
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod batch;
pub(crate) mod blocked;
pub(crate) mod classic;
pub(crate) mod counting;
mod cpu;
mod dispatch;
pub(crate) mod fuse;
pub(crate) mod generations;
mod inline_code;
#[cfg(target_arch = "aarch64")]
mod neon;
mod primitives;
pub(crate) mod quotient;
pub(crate) mod ribbon;
mod select;
#[cfg(feature = "std")]
pub(crate) mod shared;
#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
mod simd128;
pub(crate) mod substitution;
#[cfg(test)]
mod tests;
pub(crate) mod vector_quotient;
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod vectors;

pub(crate) use batch::{HashSource, UnhashedKeys};
pub use cpu::Kernel;
pub(crate) use cpu::KernelHandle;
pub(crate) use inline_code::InlineCode;
pub use primitives::prefetch;
pub(crate) use primitives::scale;
