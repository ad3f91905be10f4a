//! Marking and checking bits: the innermost loops.
//!
//! The portable kernel is the law: it *defines* which bits a hash sets. The vector kernels of the
//! blocked layout set the same bits and give the same answers, and work through batches only;
//! [`Kernel`] is the one place where one is chosen.
//!
//! Batches ask for the line of a hash [`AHEAD`] hashes before they look at it. So many misses
//! overlap at any time, which is what makes a filter out of cache fast.
//!
//! The other room in which `unsafe` is allowed: for the prefetch, for vectors, and for the lines
//! that vectors look at. Cost and measurements: `docs/design.md`, "Kernels".

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod blocked;
pub(crate) mod classic;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU8, Ordering};

use crate::answers::Answers;
use crate::store::Line;

/// Hashes in flight at a time: enough to keep a core's line-fill buffers busy. At 16 a filter out
/// of cache is slower, at 48 no faster.
const AHEAD: usize = 32;

/// The code that works through batches of the blocked layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kernel {
    /// Runs everywhere, and is the law.
    Portable,
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
                    && is_x86_feature_detected!("avx512dq")
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

    /// The kernel of this process: the fastest there is, unless another was forced.
    pub(crate) fn chosen() -> Self {
        let chosen = CHOSEN.load(Ordering::Relaxed);
        Self::ALL.get(usize::from(chosen)).copied().unwrap_or_else(|| {
            let best = Self::ALL.into_iter().rfind(|kernel| kernel.is_there());
            best.unwrap_or(Self::Portable).force()
        })
    }

    /// Makes this the kernel of the whole process. Answers and bits stay the same, so that it is
    /// of use to tests and benches only.
    ///
    /// # Panics
    /// If the machine does not have it.
    pub fn force(self) -> Self {
        assert!(self.is_there(), "this machine has no {self:?}");
        CHOSEN.store(self as u8, Ordering::Relaxed);
        self
    }

    /// Sets the bits of many hashes in turn: an answer is yes if that hash was new, those before
    /// it in the batch included. How many were new.
    pub(crate) fn insert_batch<const LANES: usize>(
        self,
        rule: &blocked::Rule<LANES>,
        lines: &mut [Line],
        hashes: &[u64],
        new: &mut Answers,
    ) -> u64 {
        assert!(self.is_there());
        match self {
            // SAFETY: the machine has the instructions, asserted above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { avx512::insert_batch(rule, lines, hashes, new) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::insert_batch(rule, lines, hashes, new) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Self::Neon => unsafe { neon::insert_batch(rule, lines, hashes, new) },
            _ => rule.insert_batch(lines, hashes, new),
        }
        new.count_ones()
    }

    /// Looks for many hashes.
    pub(crate) fn contains_batch<const LANES: usize>(
        self,
        rule: &blocked::Rule<LANES>,
        lines: &[Line],
        hashes: &[u64],
        found: &mut Answers,
    ) {
        assert!(self.is_there());
        match self {
            // SAFETY: the machine has the instructions, asserted above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { avx512::contains_batch(rule, lines, hashes, found) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::contains_batch(rule, lines, hashes, found) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Self::Neon => unsafe { neon::contains_batch(rule, lines, hashes, found) },
            _ => rule.contains_batch(lines, hashes, found),
        }
    }
}

/// A place in [`Kernel::ALL`]; none until the first batch.
static CHOSEN: AtomicU8 = AtomicU8::new(u8::MAX);

/// Works through a batch: looks at hashes in turn, and asks for lines so many hashes before. The
/// answers of 64 hashes are put together before they are written.
///
/// Inlined always, so that the loop is compiled for the instructions of whoever calls.
#[inline(always)]
fn batch<L>(
    mut lines: L,
    hashes: &[u64],
    distance: usize,
    answers: &mut Answers,
    ask: impl Fn(&L, u64),
    look: impl Fn(&mut L, u64) -> bool,
) {
    let mut ahead = hashes.iter();
    ahead.by_ref().take(distance).for_each(|&hash| ask(&lines, hash));
    let words = answers.reset(hashes.len());
    for (hashes, word) in hashes.chunks(64).zip(words) {
        let mut answer = 0;
        for &hash in hashes {
            if let Some(&hash) = ahead.next() {
                ask(&lines, hash);
            }
            // In from below, and turned round later: put where it belongs, the answer becomes a
            // branch on it, which nothing can foresee where present and absent keys come mixed.
            answer = answer << 1 | u64::from(look(&mut lines, hash));
        }
        *word = answer.reverse_bits() >> (64 - hashes.len());
    }
}

/// Asks for a line that will be looked at soon; does nothing where there is no such hint.
#[inline(always)]
fn prefetch(lines: &[Line], at: usize) {
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
