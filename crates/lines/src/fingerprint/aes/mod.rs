//! A keyed hash of lines from rounds of AES.
//!
//! Each block of 16 bytes is added to a secret mask of its position and goes through four rounds
//! with secret keys; the results and the length are added. Two lines of one length that differ in one
//! block have different sums. Of others, one block must turn its difference into a certain other one:
//! four rounds with random keys do that with a probability of at most 2⁻¹¹³, whatever both differences
//! are. All blocks share the keys of the rounds; that this does not help is assumed, not proved.
//!
//! A line of more than [`GROUP`] blocks is divided: the sum of a group goes through the rounds as the
//! first block of the next.
//!
//! Sources: FIPS 197; Keliher & Sui, "Exact maximum expected differential and linear probability for
//! two-round Advanced Encryption Standard" (2007), for the bound.

#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Bytes of a block.
const BLOCK: usize = 16;
/// Blocks of a group. Each has a mask of its own.
const GROUP: usize = 16;
const ROUNDS: usize = 4;

/// A secret key: words are blocks in little-endian order.
#[derive(Clone)]
pub(super) struct Key {
    masks: [u128; GROUP],
    /// The mask of the sum of the group before.
    chain: u128,
    rounds: [u128; ROUNDS],
}

impl Key {
    /// Makes a key of random blocks, which `block` returns by number.
    pub(super) fn new(block: impl Fn(usize) -> u128) -> Self {
        Self {
            masks: std::array::from_fn(&block),
            chain: block(GROUP),
            rounds: std::array::from_fn(|round| block(GROUP + 1 + round)),
        }
    }

    /// Passes the hash of each line to `each`, in order.
    ///
    /// Cost: about that of rapidhash with instructions for AES, which nearly all x86-64 and most AArch64
    /// processors have; without them, 16 lookups in a table of 1 KiB for a round.
    #[inline]
    pub(super) fn for_each<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        each: impl FnMut(u128),
    ) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("aes") && is_x86_feature_detected!("avx") {
            // SAFETY: the processor has the features that the function requires.
            return unsafe { x86::for_each(self, lines, each) };
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("aes") {
            // SAFETY: the processor has the feature that the function requires.
            return unsafe { aarch64::for_each(self, lines, each) };
        }
        lines.map(|line| self.hash(line, round)).for_each(each);
    }

    /// Returns the hash of a line. `round` is the function of [`round`].
    #[inline(always)]
    fn hash(&self, line: &[u8], round: impl Fn(u128, u128) -> u128 + Copy) -> u128 {
        let permute = |block| self.rounds.iter().fold(block, |block, key| round(block, *key));
        let (mut whole, tail) = line.as_chunks();
        let mut sum = 0;
        loop {
            let (group, rest) = whole.split_at(whole.len().min(GROUP));
            for (block, mask) in group.iter().zip(&self.masks) {
                sum ^= permute(u128::from_le_bytes(*block) ^ mask);
            }
            if group.len() < GROUP {
                if !tail.is_empty() {
                    sum ^= permute(last_block(line) ^ self.masks[group.len()]);
                }
                break;
            }
            sum = permute(sum ^ self.chain);
            whole = rest;
        }
        sum ^ line.len() as u128
    }
}

/// Returns the last block of a line that is not empty. It may overlap the block before; of a short
/// line it has every byte at a place that depends on the length only.
#[inline(always)]
fn last_block(line: &[u8]) -> u128 {
    if let Some(block) = line.last_chunk() {
        return u128::from_le_bytes(*block);
    }
    if let (Some(first), Some(last)) = (line.first_chunk(), line.last_chunk()) {
        return u128::from(u64::from_le_bytes(*first))
            | u128::from(u64::from_le_bytes(*last)) << 64;
    }
    if let (Some(first), Some(last)) = (line.first_chunk(), line.last_chunk()) {
        return u128::from(u32::from_le_bytes(*first))
            | u128::from(u32::from_le_bytes(*last)) << 32;
    }
    let byte = |at: usize| u128::from(line.get(at).copied().unwrap_or_default());
    byte(0) | byte(line.len() / 2) << 8 | byte(line.len().saturating_sub(1)) << 16
}

/// One round of AES: substitutes bytes, shifts rows, mixes columns, adds the key.
fn round(block: u128, key: u128) -> u128 {
    let bytes = block.to_le_bytes();
    let column = |column: usize| {
        let row = |row: usize| {
            let byte = bytes[(4 * (column + row) + row) % BLOCK];
            COLUMNS[usize::from(byte)].rotate_left(8 * row as u32)
        };
        u128::from(row(0) ^ row(1) ^ row(2) ^ row(3)) << (32 * column)
    };
    column(0) ^ column(1) ^ column(2) ^ column(3) ^ key
}

/// The column that a byte in its first row contributes to.
static COLUMNS: [u32; 256] = columns();

const fn columns() -> [u32; 256] {
    let mut columns = [0; 256];
    // Powers of a generator of the field and of its inverse.
    let (mut power, mut inverse) = (1u8, 1u8);
    loop {
        power ^= double(power);
        inverse ^= inverse << 1;
        inverse ^= inverse << 2;
        inverse ^= inverse << 4;
        inverse ^= if inverse >> 7 == 1 { 0x09 } else { 0 };
        columns[power as usize] = column_of(inverse);
        if power == 1 {
            break;
        }
    }
    columns[0] = column_of(0);
    columns
}

/// Multiplies by x in the field.
const fn double(byte: u8) -> u8 {
    byte << 1 ^ if byte >> 7 == 1 { 0x1b } else { 0 }
}

/// Returns the column for a byte whose inverse in the field is given.
const fn column_of(inverse: u8) -> u32 {
    let inverse = inverse
        ^ inverse.rotate_left(1)
        ^ inverse.rotate_left(2)
        ^ inverse.rotate_left(3)
        ^ inverse.rotate_left(4);
    let substitute = inverse ^ 0x63;
    let twice = double(substitute);
    u32::from_le_bytes([twice, substitute, substitute, twice ^ substitute])
}

#[cfg(test)]
mod tests {
    use petal_testkit::rng::Rng;

    use super::*;

    fn block(bytes: &str) -> u128 {
        u128::from_str_radix(bytes, 16).unwrap().swap_bytes()
    }

    /// The first round of the example in appendix B of FIPS 197.
    #[test]
    fn a_round_equals_the_example_of_the_standard() {
        let start = block("193de3bea0f4e22b9ac68d2ae9f84808");
        let key = block("a0fafe1788542cb123a339392a6c7605");
        assert_eq!(round(start, key), block("a49c7ff2689f352b6b5bea43026a5049"));
    }

    #[test]
    fn all_implementations_agree() {
        let mut rng = Rng::new(11);
        let text: Vec<u8> = (0..4000).map(|_| rng.next_u64() as u8).collect();
        for length in (0..600).chain([1000, 3000]) {
            let words: Vec<_> = (0..64).map(|_| rng.next_u64()).collect();
            let key =
                Key::new(|at| u128::from(words[2 * at]) << 64 | u128::from(words[2 * at + 1]));
            let line = &text[rng.below(900)..][..length];
            let expected = key.hash(line, round);
            let mut fast = Vec::new();
            key.for_each([line, b"x", line].into_iter(), |found| fast.push(found));
            assert_eq!([fast[0], fast[2]], [expected; 2], "{length}");
        }
    }

    #[test]
    fn short_lines_have_different_last_blocks() {
        for length in 1..16 {
            for at in 0..length {
                let mut line = vec![0; length];
                let before = last_block(&line);
                line[at] = 1;
                assert_ne!(last_block(&line), before, "{length} {at}");
            }
        }
    }

    /// Bytes that change, move to another block or appear change the hash.
    #[test]
    fn similar_lines_differ() {
        let odd = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        let key = Key::new(|at| odd.wrapping_pow(at as u32 + 1));
        let mut found = std::collections::HashSet::new();
        for length in 0..700 {
            let mut line = vec![0; length];
            assert!(found.insert(key.hash(&line, round)), "{length}");
            for at in 0..length {
                line[at] = 1;
                assert!(found.insert(key.hash(&line, round)), "{length} {at}");
                line[at] = 0;
            }
        }
    }
}
