//! Back substitution in the equations of a ribbon: from the last row to the first, each bit follows from
//! the 31 bits behind it.
//!
//! A row is a word: the coefficients of an equation in the low half, their sum for each column in the high
//! half. The code for an instruction set is the same loop, compiled with its instructions.
//!
//! Cost: a chain of 7 instructions a row with a vector instruction that counts bits, otherwise of 14.

#[cfg(target_arch = "x86_64")]
use super::cpu::Kernel;
use super::cpu::KernelHandle;

/// The code for one processor.
#[derive(Clone, Copy)]
pub(crate) struct Substitution(Code);

#[derive(Clone, Copy)]
enum Code {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Substitution {
    /// Returns the code of a kernel.
    pub(crate) fn new(kernel: KernelHandle) -> Self {
        #[cfg(target_arch = "x86_64")]
        match kernel.kernel() {
            Kernel::Avx512 if cpu_has!("avx512vpopcntdq") => return Self(Code::Avx512),
            Kernel::Avx512 | Kernel::Avx2 => return Self(Code::Avx2),
            _ => {}
        }
        let _ = kernel;
        Self(Code::Portable)
    }

    /// Replaces the bits of the 32 rows behind these, of which each column has one word, by those of
    /// these 32 rows. The first row has the lowest bit.
    #[inline]
    pub(crate) fn substitute<const COLUMNS: usize>(self, rows: &[u64], bits: &mut [u32; COLUMNS]) {
        match self.0 {
            Code::Portable => substitute(rows, bits, folded_parity),
            // SAFETY: `new` found the features.
            #[cfg(target_arch = "x86_64")]
            Code::Avx2 => unsafe { avx2(rows, bits) },
            // SAFETY: `new` found the features.
            #[cfg(target_arch = "x86_64")]
            Code::Avx512 => unsafe { avx512(rows, bits) },
        }
    }
}

#[inline(always)]
fn substitute<const COLUMNS: usize>(
    rows: &[u64],
    bits: &mut [u32; COLUMNS],
    parity: impl Fn(u32) -> u32 + Copy,
) {
    let mut known = *bits;
    for &row in rows.iter().rev() {
        let (coefficients, sums) = (row as u32, (row >> 32) as u32);
        for (column, known) in known.iter_mut().enumerate() {
            let behind = *known << 1;
            let bit = parity(behind & coefficients) ^ sums >> column;
            *known = behind | bit & 1;
        }
    }
    *bits = known;
}

/// Returns the sum of the bits of a word in the lowest bit.
#[inline(always)]
fn folded_parity(mut word: u32) -> u32 {
    for shift in [16, 8, 4, 2, 1] {
        word ^= word >> shift;
    }
    word
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn avx2<const COLUMNS: usize>(rows: &[u64], bits: &mut [u32; COLUMNS]) {
    substitute(rows, bits, folded_parity);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi2")]
fn avx512<const COLUMNS: usize>(rows: &[u64], bits: &mut [u32; COLUMNS]) {
    substitute(rows, bits, u32::count_ones);
}

#[cfg(test)]
mod tests {
    use petal_testkit::rng::Rng;

    use super::*;
    use crate::kernel::Kernel;

    fn every_equation_holds<const COLUMNS: usize>(code: Substitution, seed: u64) {
        let mut rng = Rng::new(seed);
        // One row in eight is free.
        let mut row = || if rng.below(8) == 0 { 0 } else { rng.next_u64() | 1 };
        let rows: [u64; 32] = core::array::from_fn(|_| row());
        let behind: [u32; COLUMNS] = core::array::from_fn(|_| rng.next_u64() as u32);
        let mut bits = behind;
        code.substitute(&rows, &mut bits);
        for column in 0..COLUMNS {
            // The lowest bit is that of the first row, those behind the last row follow.
            let known = u64::from(behind[column]) << 32 | u64::from(bits[column]);
            for (at, row) in rows.iter().enumerate() {
                let selected = known >> at & row & u64::from(u32::MAX);
                let expected = (row >> 32 >> column & 1) as u32;
                let is_free = *row == 0 && known >> at & 1 == 0;
                assert!(is_free || selected.count_ones() & 1 == expected, "{column} {at} {seed}");
            }
        }
    }

    #[test]
    fn every_kernel_satisfies_the_equations() {
        for kernel in Kernel::ALL.into_iter().filter_map(Kernel::handle) {
            let code = Substitution::new(kernel);
            for seed in 0..50 {
                every_equation_holds::<4>(code, seed);
                every_equation_holds::<8>(code, seed);
                every_equation_holds::<12>(code, seed);
                every_equation_holds::<16>(code, seed);
                every_equation_holds::<24>(code, seed);
                every_equation_holds::<32>(code, seed);
            }
        }
    }
}
