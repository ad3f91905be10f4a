//! Utilities of the models of layers and generations: operations decoded from bytes, words of files.

/// Operations decoded from bytes; zeros after the end.
pub(crate) struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Returns up to a few hundred hashes, many of them repeated.
    pub(crate) fn hashes(&mut self) -> Vec<u64> {
        let count = usize::from(self.byte()) * usize::from(self.byte() % 3);
        let (mut state, few) = (u64::from(self.short()), self.byte().is_multiple_of(2));
        let next = |state: &mut u64| {
            *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            *state ^ *state >> 29
        };
        let mut hash = || {
            let number = next(&mut state);
            // One of a thousand hashes in all blocks.
            if few { (number % 1000).wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { number }
        };
        (0..count).map(|_| hash()).collect()
    }
}

/// Bytes aligned to a cache line.
pub(crate) struct Aligned {
    buffer: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut buffer = vec![0; bytes.len() + 64];
        let start = buffer.as_ptr().align_offset(64);
        buffer[start..start + bytes.len()].copy_from_slice(bytes);
        Self { buffer, start, length: bytes.len() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.length]
    }
}

/// Returns words of a file from an offset in bytes.
pub(crate) fn words(file: &[u8], at: usize, count: usize) -> Vec<u64> {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| file[at + byte]));
    (0..count).map(|word_at| word(at + 8 * word_at)).collect()
}
