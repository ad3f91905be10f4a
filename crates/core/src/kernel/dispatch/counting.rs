//! Counting filters.

use crate::kernel::counting::{CounterLayout, Counters, RemoveOutcome};
use crate::kernel::cpu::KernelHandle;

/// Calls the AVX-512 code for blocked layouts if the kernel has it, otherwise the portable code.
macro_rules! dispatch {
    ($kernel:expr, $layout:expr, $vector:ident($($argument:expr),*), |$positions:ident| $portable:expr) => {
        match ($layout, $kernel.kernel()) {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            (CounterLayout::OneLine(params), crate::kernel::cpu::Kernel::Avx512) => unsafe {
                crate::kernel::avx512::counting::$vector(params, $($argument),*)
            },
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            (CounterLayout::LinePair(params), crate::kernel::cpu::Kernel::Avx512) => unsafe {
                crate::kernel::avx512::counting::$vector(params, $($argument),*)
            },
            (CounterLayout::OneLine($positions), _) => $portable,
            (CounterLayout::LinePair($positions), _) => $portable,
            (CounterLayout::Classic($positions), _) => $portable,
        }
    };
}

impl CounterLayout {
    /// Increments the counters of a hash. Returns whether any of them was zero.
    pub(crate) fn insert(
        self,
        kernel: KernelHandle,
        mut counters: Counters<'_>,
        hash: u64,
    ) -> bool {
        dispatch!(kernel, self, insert(&mut counters, hash), |positions| {
            counters.insert(positions, hash)
        })
    }

    /// Decrements the counters of a hash, if none of them is zero.
    pub(crate) fn remove(
        self,
        kernel: KernelHandle,
        mut counters: Counters<'_>,
        hash: u64,
    ) -> RemoveOutcome {
        dispatch!(kernel, self, remove(&mut counters, hash), |positions| {
            counters.remove(positions, hash)
        })
    }

    /// Inserts many hashes in turn. `new` has one word for 64 hashes.
    pub(crate) fn insert_batch(
        self,
        kernel: KernelHandle,
        mut counters: Counters<'_>,
        hashes: &[u64],
        new: &mut [u64],
    ) {
        dispatch!(kernel, self, insert_batch(&mut counters, hashes, new), |positions| {
            counters.insert_batch(positions, hashes, new)
        })
    }

    /// Removes many hashes in turn. A result is true unless the hash was absent. Returns the number
    /// of hashes that the filter does not contain any more.
    pub(crate) fn remove_batch(
        self,
        kernel: KernelHandle,
        mut counters: Counters<'_>,
        hashes: &[u64],
        removed: &mut [u64],
    ) -> u64 {
        dispatch!(kernel, self, remove_batch(&mut counters, hashes, removed), |positions| {
            counters.remove_batch(positions, hashes, removed)
        })
    }
}
