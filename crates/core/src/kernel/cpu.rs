//! The kernels, and the choice of one for this processor.

use core::sync::atomic::{AtomicU8, Ordering};

/// Code that sets and tests bits in blocks, for one instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kernel {
    /// Runs on every processor; the reference implementation.
    Portable = 1,
    /// A quarter of a cache line per vector: SSE2, or the SIMD of WebAssembly.
    Simd128,
    /// Half a cache line per vector.
    Avx2,
    /// A cache line per vector.
    Avx512,
    /// A quarter of a cache line per vector.
    Neon,
}

impl Kernel {
    /// All kernels; of those available on one machine, the fastest is last.
    pub const ALL: [Self; 5] =
        [Self::Portable, Self::Simd128, Self::Avx2, Self::Avx512, Self::Neon];

    /// The name of the kernel, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Simd128 => "simd128",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }

    /// Returns the kernel with this name, available or not.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kernel| kernel.name() == name)
    }

    /// Whether this machine has the instructions of the kernel.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Simd128 => {
                cfg!(target_arch = "x86_64")
                    || cfg!(all(target_arch = "wasm32", target_feature = "simd128"))
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => cpu_has!("avx2", "bmi1", "bmi2", "lzcnt", "popcnt"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available() && cpu_has!("avx512f", "avx512bw", "avx512dq", "avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => cfg!(target_endian = "little") && cpu_has!("neon"),
            #[cfg(not(target_arch = "aarch64"))]
            Self::Neon => false,
        }
    }

    /// Returns the kernel of new filters in this process.
    #[must_use]
    pub fn current() -> Self {
        Self::selected().0
    }

    /// Returns a handle if the kernel is available.
    #[cfg(test)]
    pub(crate) fn handle(self) -> Option<KernelHandle> {
        self.is_available().then_some(KernelHandle(self))
    }

    /// Returns the kernel of new filters: the fastest available, unless another was forced.
    #[inline]
    pub(crate) fn selected() -> KernelHandle {
        let number = usize::from(SELECTED.load(Ordering::Relaxed));
        // Only available kernels are stored.
        Self::ALL
            .get(number.wrapping_sub(1))
            .map_or_else(Self::select, |&kernel| KernelHandle(kernel))
    }

    #[cold]
    fn select() -> KernelHandle {
        let best = Self::ALL.into_iter().rfind(|kernel| kernel.is_available());
        let best = best.unwrap_or(Self::Portable);
        // A kernel that was forced meanwhile stays selected.
        let order = Ordering::Relaxed;
        match SELECTED.compare_exchange(0, best as u8, order, order) {
            Ok(_) => KernelHandle(best),
            Err(_) => Self::selected(),
        }
    }

    /// Selects this kernel for all filters that are created or opened from now on. Results and bits
    /// are the same with every kernel, so this is useful for benches and tests only.
    ///
    /// # Panics
    /// If the machine does not have the instructions.
    pub fn force(self) -> Self {
        assert!(self.is_available(), "this machine has no {self:?}");
        SELECTED.store(self as u8, Ordering::Relaxed);
        self
    }
}

/// The selected [`Kernel`] as a number; 0 before the first selection.
static SELECTED: AtomicU8 = AtomicU8::new(0);

// Kernels are numbered from 1, in the order of the list.
const _: () = {
    let mut at = 0;
    while at < Kernel::ALL.len() {
        assert!(Kernel::ALL[at] as usize == at + 1);
        at += 1;
    }
};

/// An available kernel: proof that its instructions may be used.
#[derive(Clone, Copy, Debug)]
pub struct KernelHandle(Kernel);

impl KernelHandle {
    /// Returns the kernel, which is available.
    #[inline(always)]
    pub(super) fn kernel(self) -> Kernel {
        self.0
    }
}
