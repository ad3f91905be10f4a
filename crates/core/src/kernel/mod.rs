//! Marking and checking bits: the innermost loops.
//!
//! The portable kernel is the law: it *defines* which bits a hash sets. The vector kernels of the
//! blocked layout set the same bits and give the same answers; [`Kernel::chosen`] is the one place
//! where one is chosen.
//!
//! A single key in a line is a few instructions that are inlined with AVX-512; all else is a call.
//! Many keys go through [`batch`], in which their cache misses overlap.
//!
//! The other room in which `unsafe` is allowed: for the prefetch, for vectors, and for the lines
//! that vectors look at. Cost and measurements: `docs/design.md`, "Kernels".

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod batch;
pub(crate) mod blocked;
pub(crate) mod classic;
pub(crate) mod counting;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod quotient;
pub(crate) mod ribbon;
pub(crate) mod ring;
pub(crate) mod shared;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU8, Ordering};

use crate::store::Line;

pub(crate) use batch::{Hashes, Keys};
use blocked::{Blocks, Rule};

/// The code that looks into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kernel {
    /// Runs everywhere, and is the law.
    Portable = 1,
    /// Half a line at a time.
    Avx2,
    /// A line at a time.
    Avx512,
    /// A quarter of a line at a time.
    Neon,
}

impl Kernel {
    /// All of them; of those that one machine has, the fastest last.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx512, Self::Neon];

    /// Its name on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }

    /// The kernel of that name, there or not.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kernel| kernel.name() == name)
    }

    /// Whether this machine has what the kernel needs.
    #[must_use]
    pub fn is_there(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("bmi2")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => {
                cfg!(target_endian = "little") && std::arch::is_aarch64_feature_detected!("neon")
            }
            #[cfg(not(target_arch = "aarch64"))]
            Self::Neon => false,
        }
    }

    /// The kernel that this process works with.
    #[must_use]
    pub fn current() -> Self {
        Self::chosen().0
    }

    /// The kernel, if it is there.
    #[cfg(test)]
    pub(crate) fn ready(self) -> Option<Ready> {
        self.is_there().then_some(Ready(self))
    }

    /// The kernel of a new filter: the fastest there is, unless another was forced.
    #[inline]
    pub(crate) fn chosen() -> Ready {
        // Whatever is written to it has been looked for before.
        match CHOSEN.load(Ordering::Relaxed) {
            AVX512 => Ready(Self::Avx512),
            AVX2 => Ready(Self::Avx2),
            NEON => Ready(Self::Neon),
            PORTABLE => Ready(Self::Portable),
            _ => Self::choose(),
        }
    }

    #[cold]
    fn choose() -> Ready {
        let best = Self::ALL.into_iter().rfind(|kernel| kernel.is_there());
        let best = best.unwrap_or(Self::Portable);
        // Whoever forces one meanwhile is not overruled.
        let order = Ordering::Relaxed;
        match CHOSEN.compare_exchange(0, best as u8, order, order) {
            Ok(_) => Ready(best),
            Err(_) => Self::chosen(),
        }
    }

    /// Makes this the kernel of all filters that are made or opened from now on. Answers and bits
    /// stay the same, so that it is of use to a bench or a test only.
    ///
    /// # Panics
    /// If the machine does not have it.
    pub fn force(self) -> Self {
        assert!(self.is_there(), "this machine has no {self:?}");
        CHOSEN.store(self as u8, Ordering::Relaxed);
        self
    }
}

/// A [`Kernel`] as a number; 0 until one is chosen.
static CHOSEN: AtomicU8 = AtomicU8::new(0);
const PORTABLE: u8 = Kernel::Portable as u8;
const AVX2: u8 = Kernel::Avx2 as u8;
const AVX512: u8 = Kernel::Avx512 as u8;
const NEON: u8 = Kernel::Neon as u8;

/// A kernel of which the machine has the instructions. Whoever holds one may call it.
#[derive(Clone, Copy, Debug)]
pub struct Ready(Kernel);

impl Ready {
    /// [`insert`](Self::insert) in blocks of one line, if the kernel has instructions for it that
    /// are inlined.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
    #[inline(always)]
    pub(crate) fn insert_inline(
        self,
        rule: Rule<8>,
        lines: &mut [Line],
        hash: u64,
    ) -> Option<bool> {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                let at = rule.at(hash);
                assert!(at < lines.len());
                // SAFETY: the machine has the instructions, and the line is there and borrowed.
                Some(unsafe {
                    avx512::inline::insert::<8>(rule.probes, lines.as_mut_ptr(), at, hash)
                })
            }
            _ => None,
        }
    }

    /// [`contains`](Self::contains) in blocks of one line, as above.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
    #[inline(always)]
    pub(crate) fn contains_inline(self, rule: Rule<8>, lines: &[Line], hash: u64) -> Option<bool> {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                let at = rule.at(hash);
                assert!(at < lines.len());
                // SAFETY: as above.
                Some(unsafe {
                    avx512::inline::contains::<8>(rule.probes, lines.as_ptr(), at, hash)
                })
            }
            _ => None,
        }
    }

    /// Sets the bits of a hash; whether any of them was clear.
    #[inline]
    pub(crate) fn insert<const LANES: usize>(
        self,
        rule: Rule<LANES>,
        lines: &mut [Line],
        hash: u64,
    ) -> bool {
        let block = &mut lines[rule.lines_of(hash)];
        match self.0 {
            // SAFETY: the machine has the instructions, and the block is borrowed.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe {
                avx512::inline::insert::<LANES>(rule.probes, block.as_mut_ptr(), 0, hash)
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::insert(rule, block, hash) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::insert(rule, block, hash) },
            _ => rule.insert(block, hash),
        }
    }

    /// Whether all bits of a hash are set.
    #[inline]
    pub(crate) fn contains<const LANES: usize>(
        self,
        rule: Rule<LANES>,
        lines: &[Line],
        hash: u64,
    ) -> bool {
        let block = &lines[rule.lines_of(hash)];
        match self.0 {
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe {
                avx512::inline::contains::<LANES>(rule.probes, block.as_ptr(), 0, hash)
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::contains(rule, block, hash) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::contains(rule, block, hash) },
            _ => rule.contains(block, hash),
        }
    }

    /// Sets the bits of many hashes in turn: an answer is yes if that hash was new, those before
    /// it in the batch included. There are words for all answers, 64 to a word.
    ///
    /// # Panics
    /// If a hash's block is not among the blocks.
    pub(crate) fn insert_batch<const LANES: usize>(
        self,
        blocks: Blocks<LANES, &mut [Line]>,
        hashes: impl Hashes,
        new: &mut [u64],
    ) {
        match self.0 {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::insert_batch(blocks, hashes, new) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::insert_batch(blocks, hashes, new) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::insert_batch(blocks, hashes, new) },
            _ => {
                let rule = blocks.rule;
                blocks.insert_batch(hashes, new, |block, hash| rule.insert(block, hash));
            }
        }
    }

    /// Looks for many hashes; answers as in [`insert_batch`](Self::insert_batch).
    ///
    /// # Panics
    /// As there.
    pub(crate) fn contains_batch<const LANES: usize>(
        self,
        blocks: Blocks<LANES, &[Line]>,
        hashes: impl Hashes,
        found: &mut [u64],
    ) {
        match self.0 {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::contains_batch(blocks, hashes, found) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::contains_batch(blocks, hashes, found) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::contains_batch(blocks, hashes, found) },
            _ => {
                let rule = blocks.rule;
                blocks.contains_batch(hashes, found, |block, hash| rule.contains(block, hash));
            }
        }
    }
}

/// Asks for a line that will be looked at soon; does nothing where there is no such hint.
#[inline(always)]
pub(crate) fn prefetch<L>(lines: &[L], at: usize) {
    let line = lines.as_ptr().wrapping_add(at);
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the hint needs SSE, which every x86-64 has; it may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint; it changes nothing and may be given any address.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{line}]",
            line = in(reg) line,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

/// High 64 bits of the product: `hash` as a fraction of `range`, monotone in `hash`, below
/// `range`. Source: Lemire 2019, "Fast random integer generation in an interval".
#[inline(always)]
pub(crate) fn scale(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}
