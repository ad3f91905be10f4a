//! Vector prototypes of the blocked kernels: as much code as it takes to know what a layout costs.
//!
//! They mark and test the bits that the portable kernel of the library defines, and are compared with it bit for bit
//! before anything is timed. One call works through a batch in groups of 32: it asks for the lines of a group, then
//! looks. Answers go into a bitmap, as in the library.

#![allow(unsafe_code, reason = "vector instructions, unchecked lines")]
#![allow(
    clippy::incompatible_msrv,
    reason = "AVX-512 is stable since Rust 1.89, the library's floor is below"
)]

use std::arch::x86_64::*;

use super::memory::Line;

/// The multipliers of the library's index rule.
const MIX_LOW: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX_HIGH: u64 = 0x9fb2_1c65_1e98_df25;
const GROUP: usize = 32;

/// A way to mark and test blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// AVX-512, all lanes of the block.
    Avx512Fixed,
    /// AVX-512, k lanes from where the key says.
    Avx512Rotated,
    /// AVX2, all lanes.
    Avx2Fixed,
    /// AVX2, k lanes.
    Avx2Rotated,
}

/// What a call does with the bits of its hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Insert,
    Test,
}

impl Kernel {
    /// The kernels that this machine has, for a block of so many lanes of which a key sets `probes`.
    pub(crate) fn for_layout(lanes: u32, probes: u32) -> Vec<Self> {
        let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
        let avx2 = is_x86_feature_detected!("avx2");
        let mut kernels = Vec::new();
        for (there, fixed, rotated) in [
            (avx512, Self::Avx512Fixed, Self::Avx512Rotated),
            (avx2, Self::Avx2Fixed, Self::Avx2Rotated),
        ] {
            if there && lanes == probes {
                kernels.push(fixed);
            }
            if there {
                kernels.push(rotated);
            }
        }
        kernels
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Avx512Fixed => "avx512 all lanes",
            Self::Avx512Rotated => "avx512 lane mask",
            Self::Avx2Fixed => "avx2 all lanes",
            Self::Avx2Rotated => "avx2 lane mask",
        }
    }

    /// Inserts or tests all hashes. Answers: was new, or is contained. There must be room for them.
    pub(crate) fn run(
        self,
        act: Act,
        lines: &mut [Line],
        lanes: u32,
        probes: u32,
        hashes: &[u64],
        answers: &mut [u32],
    ) {
        let blocks = lines.len() as u64 / u64::from(lanes / 8);
        assert!(blocks > 0 && answers.len() >= hashes.len().div_ceil(GROUP));
        assert!(matches!(lanes, 8 | 16) && (1..=lanes).contains(&probes));
        let at = lines.as_mut_ptr();
        let job = Job { blocks, probes, hashes, answers };
        // SAFETY: a `Kernel` of this name is only made if the features were detected (`for_layout`); every line index
        // is below blocks * lanes/8 <= lines.len(), and the lines are borrowed exclusively.
        unsafe {
            match (self, lanes, act) {
                (Self::Avx512Fixed, 8, Act::Insert) => avx512::<8, false, true>(at, job),
                (Self::Avx512Fixed, 8, Act::Test) => avx512::<8, false, false>(at, job),
                (Self::Avx512Fixed, _, Act::Insert) => avx512::<16, false, true>(at, job),
                (Self::Avx512Fixed, _, Act::Test) => avx512::<16, false, false>(at, job),
                (Self::Avx512Rotated, 8, Act::Insert) => avx512::<8, true, true>(at, job),
                (Self::Avx512Rotated, 8, Act::Test) => avx512::<8, true, false>(at, job),
                (Self::Avx512Rotated, _, Act::Insert) => avx512::<16, true, true>(at, job),
                (Self::Avx512Rotated, _, Act::Test) => avx512::<16, true, false>(at, job),
                (Self::Avx2Fixed, 8, Act::Insert) => avx2::<8, false, true>(at, job),
                (Self::Avx2Fixed, 8, Act::Test) => avx2::<8, false, false>(at, job),
                (Self::Avx2Fixed, _, Act::Insert) => avx2::<16, false, true>(at, job),
                (Self::Avx2Fixed, _, Act::Test) => avx2::<16, false, false>(at, job),
                (Self::Avx2Rotated, 8, Act::Insert) => avx2::<8, true, true>(at, job),
                (Self::Avx2Rotated, 8, Act::Test) => avx2::<8, true, false>(at, job),
                (Self::Avx2Rotated, _, Act::Insert) => avx2::<16, true, true>(at, job),
                (Self::Avx2Rotated, _, Act::Test) => avx2::<16, true, false>(at, job),
            }
        }
    }
}

struct Job<'a> {
    blocks: u64,
    probes: u32,
    hashes: &'a [u64],
    answers: &'a mut [u32],
}

/// The first line of each hash's block, asked for.
#[inline(always)]
fn ask<const LANES: usize>(lines: *mut Line, blocks: u64, hashes: &[u64]) -> [usize; GROUP] {
    let mut places = [0; GROUP];
    for (place, &hash) in places.iter_mut().zip(hashes) {
        *place = ((u128::from(hash) * u128::from(blocks)) >> 64) as usize * (LANES / 8);
        for line in 0..LANES / 8 {
            // SAFETY: a hint, on x86-64, on a line inside the filter (see `run`).
            unsafe { _mm_prefetch::<_MM_HINT_T0>(lines.add(*place + line).cast::<i8>()) };
        }
    }
    places
}

/// # Safety
/// AVX-512F and DQ are there; `lines` has `blocks * LANES / 8` lines that nobody else uses.
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn avx512<const LANES: usize, const MASKED: bool, const INSERT: bool>(
    lines: *mut Line,
    job: Job<'_>,
) {
    let shifts = _mm512_setr_epi64(16, 22, 28, 34, 40, 46, 52, 58);
    let one = _mm512_set1_epi64(1);
    // For each start, the lanes that the key marks. A table is faster than turning a mask: a rotation by a variable
    // is three instructions for the processor.
    let window = (1u32 << job.probes) - 1;
    let mut masks = [0u16; LANES];
    for (start, mask) in masks.iter_mut().enumerate() {
        *mask = ((window << start) | (window << start >> LANES)) as u16;
    }
    for (hashes, answer) in job.hashes.chunks(GROUP).zip(job.answers) {
        let places = ask::<LANES>(lines, job.blocks, hashes);
        *answer = 0;
        for (at, &hash) in hashes.iter().enumerate() {
            let low = hash.wrapping_mul(MIX_LOW);
            let mask = if MASKED { masks[(low >> 12) as usize % LANES] } else { !0 };
            let mut clear = 0;
            for half in 0..LANES / 8 {
                let fields = if half == 0 { low } else { hash.wrapping_mul(MIX_HIGH) };
                let mask = (mask >> (8 * half)) as u8;
                // Rotating by a count takes it modulo 64, which saves the `and 63`.
                let shifted = _mm512_srlv_epi64(_mm512_set1_epi64(fields as i64), shifts);
                // SAFETY: the place is inside the filter (see `run`), a `Line` is 64 bytes and aligned to them.
                unsafe {
                    let line = lines.add(places[at] + half).cast::<__m512i>();
                    let words = _mm512_load_si512(line);
                    let bits = if MASKED && INSERT {
                        _mm512_maskz_rolv_epi64(mask, one, shifted)
                    } else {
                        _mm512_rolv_epi64(one, shifted)
                    };
                    clear |= if MASKED {
                        _mm512_mask_testn_epi64_mask(mask, words, bits)
                    } else {
                        _mm512_testn_epi64_mask(words, bits)
                    };
                    if INSERT {
                        _mm512_store_si512(line, _mm512_or_si512(words, bits));
                    }
                }
            }
            *answer |= u32::from((clear != 0) == INSERT) << at;
        }
    }
}

/// # Safety
/// AVX2 is there; `lines` has `blocks * LANES / 8` lines that nobody else uses.
#[target_feature(enable = "avx2")]
unsafe fn avx2<const LANES: usize, const MASKED: bool, const INSERT: bool>(
    lines: *mut Line,
    job: Job<'_>,
) {
    let shifts = [_mm256_setr_epi64x(16, 22, 28, 34), _mm256_setr_epi64x(40, 46, 52, 58)];
    let low_bits = _mm256_set1_epi64x(63);
    // For each start, a one in each lane that the key marks: what is shifted to become its bit.
    let mut ones = [[0i64; LANES]; LANES];
    for (start, ones) in ones.iter_mut().enumerate() {
        for probe in 0..job.probes as usize {
            ones[(start + probe) % LANES] = 1;
        }
    }
    for (hashes, answer) in job.hashes.chunks(GROUP).zip(job.answers) {
        let places = ask::<LANES>(lines, job.blocks, hashes);
        *answer = 0;
        for (at, &hash) in hashes.iter().enumerate() {
            let low = hash.wrapping_mul(MIX_LOW);
            let ones = &ones[(low >> 12) as usize % LANES];
            let mut all = 1;
            for quarter in 0..LANES / 4 {
                let fields = if quarter < 2 { low } else { hash.wrapping_mul(MIX_HIGH) };
                let shifted =
                    _mm256_srlv_epi64(_mm256_set1_epi64x(fields as i64), shifts[quarter % 2]);
                // SAFETY: the place is inside the filter (see `run`), lines are aligned to 64 bytes and each half of
                // one to 32; `ones` has LANES elements, of which 4 are read at 4 * quarter.
                unsafe {
                    let words_at =
                        lines.add(places[at] + quarter / 2).cast::<__m256i>().add(quarter % 2);
                    let words = _mm256_load_si256(words_at);
                    let one = if MASKED {
                        _mm256_loadu_si256(ones.as_ptr().add(4 * quarter).cast())
                    } else {
                        _mm256_set1_epi64x(1)
                    };
                    let bits = _mm256_sllv_epi64(one, _mm256_and_si256(shifted, low_bits));
                    all &= _mm256_testc_si256(words, bits);
                    if INSERT {
                        _mm256_store_si256(words_at, _mm256_or_si256(words, bits));
                    }
                }
            }
            *answer |= u32::from((all == 0) == INSERT) << at;
        }
    }
}
