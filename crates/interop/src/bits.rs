//! Bits in the bytes of a foreign file, wherever and in whatever order they lie there: asked and
//! set in place, so that nothing is converted and a mapped file is as good as one in memory.

use crate::error::{Error, Result};
use crate::format::Format;

/// In which order bits lie in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Bit i is in byte i / 8, the low bit first. Words with their low byte first are the same.
    LowFirst,
    /// Words of 64 bits with their high byte first; within a word, bit 0 is the lowest.
    HighByteWords,
}

/// A row of bits in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    /// The byte of the file at which the row begins.
    pub(crate) at: usize,
    /// How many bits there are. What holds them was compared with the length of the file.
    pub(crate) count: u64,
    pub(crate) order: Order,
}

impl Bits {
    pub(crate) fn low_first(at: usize, count: u64) -> Self {
        Self { at, count, order: Order::LowFirst }
    }

    /// So many whole words, each with its high byte first.
    pub(crate) fn high_byte_words(at: usize, words: u64) -> Self {
        Self { at, count: words * 64, order: Order::HighByteWords }
    }

    /// The byte that a bit is in, and its place there.
    #[inline]
    fn place(self, bit: u64) -> (usize, u8) {
        let byte = match self.order {
            Order::LowFirst => bit >> 3,
            Order::HighByteWords => bit >> 3 ^ 7,
        };
        // Where a machine's words are too small for a place, nothing is.
        let byte = usize::try_from(byte).unwrap_or(usize::MAX);
        (self.at.saturating_add(byte), 1 << (bit & 7))
    }

    /// Whether a bit is set. One that is not there is not.
    #[inline]
    pub(crate) fn get(self, file: &[u8], bit: u64) -> bool {
        let (byte, mask) = self.place(bit);
        file.get(byte).is_some_and(|byte| byte & mask != 0)
    }

    /// Sets a bit; whether it was not set before.
    #[inline]
    pub(crate) fn set(self, file: &mut [u8], bit: u64) -> bool {
        let (byte, mask) = self.place(bit);
        let Some(byte) = file.get_mut(byte) else { return false };
        let was_clear = *byte & mask == 0;
        *byte |= mask;
        was_clear
    }

    /// How many bytes hold the bits.
    pub(crate) fn bytes(self) -> u64 {
        match self.order {
            Order::LowFirst => self.count.div_ceil(8),
            Order::HighByteWords => self.count.div_ceil(64) * 8,
        }
    }

    /// The bytes that hold the bits.
    pub(crate) fn of(self, file: &[u8]) -> &[u8] {
        let end = self.at.saturating_add(self.bytes() as usize).min(file.len());
        file.get(self.at..end).unwrap_or_default()
    }

    /// How many bits are set. Cost: one pass over them.
    pub(crate) fn count_ones(self, file: &[u8]) -> u64 {
        let behind = (self.count..self.bytes() * 8).filter(|bit| self.get(file, *bit));
        count_ones(self.of(file)) - behind.count() as u64
    }

    /// Examines the bits between the row and where the bytes that hold it end: the libraries leave
    /// them clear.
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

    /// Sets every bit that is set in another row of the same length and order.
    pub(crate) fn unite(self, file: &mut [u8], other: Self, theirs: &[u8]) {
        let end = self.at.saturating_add(self.bytes() as usize).min(file.len());
        let ours = file.get_mut(self.at..end).unwrap_or_default();
        ours.iter_mut().zip(other.of(theirs)).for_each(|(ours, theirs)| *ours |= theirs);
    }
}

/// How many bits are set in bytes.
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
    fn either_order_is_a_row_of_bits() {
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
            bits.unite(&mut other, bits, &file);
            assert_eq!(other, file);
            assert!(!bits.get(&file, 1 << 40) && !bits.set(&mut file, 1 << 40));
            let fewer = Bits { count: 70, ..bits };
            assert_eq!(fewer.count_ones(&[0xff; 19]), 70);
        }
    }
}
