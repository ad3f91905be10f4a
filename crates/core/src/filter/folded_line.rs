//! The lines of a folded filter.

use crate::store::CacheLine;

/// Returns line `at` of the folded filter, for blocks of `block_lines` lines.
pub(super) fn folded_block(
    lines: &[CacheLine],
    block_lines: usize,
    divisor: u64,
    at: usize,
) -> CacheLine {
    let divisor = divisor as usize;
    let first = at / block_lines * divisor * block_lines + at % block_lines;
    let of_blocks = lines[first..].iter().step_by(block_lines).take(divisor);
    of_blocks.fold(CacheLine::ZERO, |union, line| union.or(*line))
}

/// Returns line `at` of the folded filter, for a classic filter of `bits` bits. Bits after the last
/// one, which only damaged data have, are ignored.
///
/// With a divisor below 64, each set bit of a word is mapped. With a larger one, a bit of the fold is
/// a range of words, which is searched for a set bit.
pub(super) fn folded_bits(lines: &[CacheLine], bits: u64, divisor: u64, at: usize) -> CacheLine {
    const LINE_BITS: u64 = 8 * CacheLine::BYTES as u64;
    if divisor == 1 {
        return lines[at];
    }
    let mut folded = CacheLine::ZERO;
    let mut set = |bit: u64| folded.0[(bit / 64) as usize] |= (1u64 << (bit % 64)).to_le();
    let first = at as u64 * LINE_BITS;
    let end = (first + LINE_BITS).min(bits / divisor);
    if divisor >= 64 {
        let run = |bit: &u64| any_set(lines, bit * divisor, (bit + 1) * divisor);
        (first..end).filter(run).for_each(|bit| set(bit - first));
        return folded;
    }
    // Offsets are below 512 · 64, so that this is exact.
    let part = (1 << RECIPROCAL) / divisor + 1;
    let (start, end) = (first * divisor, end * divisor);
    let mut at = start;
    while at < end {
        let next = (at | 63) + 1;
        let mut word = word_between(lines, at, end);
        while word != 0 {
            let offset = (at & !63) + u64::from(word.trailing_zeros()) - start;
            set((offset * part) >> RECIPROCAL);
            word &= word - 1;
        }
        at = next;
    }
    folded
}

/// x / d = (x · (2^R / d + 1)) >> R, with divisions rounded down, for x · d below 2^R.
const RECIPROCAL: u32 = 22;

/// Returns the word of bit `at`, without the bits before `at` and from `end` on.
#[inline]
fn word_between(lines: &[CacheLine], at: u64, end: u64) -> u64 {
    let word = u64::from_le(lines[(at / 512) as usize].0[(at / 64 % 8) as usize]);
    let beyond = ((at | 63) + 1).saturating_sub(end);
    word & (!0 << (at % 64)) & (!0 >> beyond)
}

/// Returns true if a bit from `start` up to `end` is set.
fn any_set(lines: &[CacheLine], start: u64, end: u64) -> bool {
    let mut at = start;
    while at < end {
        if word_between(lines, at, end) != 0 {
            return true;
        }
        at = (at | 63) + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reciprocals_divide() {
        for divisor in 1..64u64 {
            let part = (1 << RECIPROCAL) / divisor + 1;
            assert!((0..512 * 64).all(|x| (x * part) >> RECIPROCAL == x / divisor), "{divisor}");
        }
    }

    #[test]
    fn bits_in_a_range() {
        let mut lines = vec![CacheLine::ZERO; 3];
        for bit in [0u64, 63, 64, 511, 512, 1000, 1535] {
            lines[(bit / 512) as usize].0[(bit / 64 % 8) as usize] |= (1u64 << (bit % 64)).to_le();
            for (start, end) in [(bit, bit + 1), (bit.saturating_sub(100), bit + 1)] {
                assert!(any_set(&lines, start, end), "{bit} in {start}..{end}");
            }
            assert!(bit == 0 || !any_set(&lines, bit.saturating_sub(63), bit), "{bit}");
            assert!(!any_set(&lines, bit + 1, (bit + 200).min(1536)), "{bit}");
            lines.fill(CacheLine::ZERO);
        }
    }
}
