//! Bit arrays in the bytes of a foreign file, in any bit order, tested and set in place, so that
//! nothing is converted and a mapped file works like one in memory.

use crate::error::{Error, Result};
use crate::format::Format;

/// The order of bits in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Bit i is in byte i / 8, least significant bit first; equal to little-endian words.
    LowFirst,
    /// Big-endian words of 64 bits; in a word, bit 0 is the least significant.
    HighByteWords,
}

/// A bit array in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    /// Offset of its first byte.
    pub(crate) at: usize,
    /// The number of bits; their bytes are within the file.
    pub(crate) count: u64,
    pub(crate) order: Order,
}

impl Bits {
    pub(crate) fn low_first(at: usize, count: u64) -> Self {
        Self { at, count, order: Order::LowFirst }
    }

    /// Returns an array of whole big-endian words.
    pub(crate) fn high_byte_words(at: usize, words: u64) -> Self {
        Self { at, count: words * 64, order: Order::HighByteWords }
    }

    /// Returns the offset of the byte of a bit, and its mask.
    #[inline]
    fn place(self, bit: u64) -> (usize, u8) {
        let byte = match self.order {
            Order::LowFirst => bit >> 3,
            Order::HighByteWords => bit >> 3 ^ 7,
        };
        // An offset beyond `usize` is out of bounds below.
        let byte = usize::try_from(byte).unwrap_or(usize::MAX);
        (self.at.saturating_add(byte), 1 << (bit & 7))
    }

    /// Returns true if a bit is set; false if it is out of bounds.
    #[inline]
    pub(crate) fn get(self, file: &[u8], bit: u64) -> bool {
        let (byte, mask) = self.place(bit);
        file.get(byte).is_some_and(|byte| byte & mask != 0)
    }

    /// Sets a bit. Returns true if it was clear.
    #[inline]
    pub(crate) fn set(self, file: &mut [u8], bit: u64) -> bool {
        let (byte, mask) = self.place(bit);
        let Some(byte) = file.get_mut(byte) else { return false };
        let was_clear = *byte & mask == 0;
        *byte |= mask;
        was_clear
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(self) -> u64 {
        match self.order {
            Order::LowFirst => self.count.div_ceil(8),
            Order::HighByteWords => self.count.div_ceil(64) * 8,
        }
    }

    /// Returns the bytes.
    pub(crate) fn of(self, file: &[u8]) -> &[u8] {
        let end = self.at.saturating_add(self.bytes() as usize).min(file.len());
        file.get(self.at..end).unwrap_or_default()
    }

    /// Returns the number of set bits. Cost: one pass over them.
    pub(crate) fn count_ones(self, file: &[u8]) -> u64 {
        let behind = (self.count..self.bytes() * 8).filter(|bit| self.get(file, *bit));
        count_ones(self.of(file)) - behind.count() as u64
    }

    /// Checks that the bits between the end of the array and the end of its bytes are clear, as the
    /// libraries leave them.
    pub(crate) fn check_padding(self, file: &[u8], end: u64, format: Format) -> Result<()> {
        match (self.count..end).find(|bit| self.get(file, *bit)) {
            None => Ok(()),
            Some(bit) => Err(Error::malformed(
                format.name(),
                "padding",
                "no bits set",
                format_args!("bit {bit} of {}", self.count),
            )),
        }
    }

    /// Sets every bit that is set in another array of the same length and order.
    pub(crate) fn union_bits(self, file: &mut [u8], other: Self, theirs: &[u8]) {
        let end = self.at.saturating_add(self.bytes() as usize).min(file.len());
        let ours = file.get_mut(self.at..end).unwrap_or_default();
        ours.iter_mut().zip(other.of(theirs)).for_each(|(ours, theirs)| *ours |= theirs);
    }
}

/// Returns the number of set bits.
pub(crate) fn count_ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let words: u64 =
        words.iter().map(|word| u64::from(u64::from_le_bytes(*word).count_ones())).sum();
    words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bit_orders_set_and_test_bits() {
        for order in [Order::LowFirst, Order::HighByteWords] {
            let bits = Bits { at: 3, count: 128, order };
            let mut file = vec![0; 19];
            for bit in [0, 7, 8, 63, 64, 127] {
                assert!(!bits.get(&file, bit));
                assert!(bits.set(&mut file, bit));
                assert!(bits.get(&file, bit) && !bits.set(&mut file, bit));
            }
            assert_eq!((bits.count_ones(&file), bits.bytes()), (6, 16));
            let expect = match order {
                Order::LowFirst => [0x81, 1, 0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 0, 0x80],
                Order::HighByteWords => [0x80, 0, 0, 0, 0, 0, 1, 0x81, 0x80, 0, 0, 0, 0, 0, 0, 1],
            };
            assert_eq!(file[3..], expect);
            let mut other = vec![0; 19];
            bits.union_bits(&mut other, bits, &file);
            assert_eq!(other, file);
            assert!(!bits.get(&file, 1 << 40) && !bits.set(&mut file, 1 << 40));
            let fewer = Bits { count: 70, ..bits };
            assert_eq!(fewer.count_ones(&[0xff; 19]), 70);
        }
    }
}
