//! The results of a batch of keys: one bit each.

#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// One bit for each key of a batch, in the order of the keys. Can be reused for many batches
/// without allocating again.
///
/// ```
/// # let mut filter = petal::BloomFilter::with_fpr(100, 0.01)?;
/// let mut results = petal::BatchResults::new();
/// filter.insert_batch(&["a", "b", "a"], &mut results);
/// assert_eq!(results.iter().collect::<Vec<_>>(), [0, 1]); // these were new
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchResults {
    words: Vec<u64>,
    len: usize,
}

impl BatchResults {
    /// Creates empty results.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of results.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no results.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the result of the key at index `at` of the batch.
    ///
    /// # Panics
    /// If `at` is not less than [`len`](Self::len).
    #[inline]
    #[must_use]
    pub fn get(&self, at: usize) -> bool {
        assert!(at < self.len, "index {at} of {} results", self.len);
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// Returns the number of results that are true.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the indices of the results that are true, in ascending order.
    #[must_use]
    pub fn iter(&self) -> TrueIndices<'_> {
        TrueIndices { words: &self.words, word: 0, next: 0 }
    }

    /// Returns the bits, 64 per word, least significant first; bits after the last result are zero.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn as_words(&self) -> &[u64] {
        &self.words
    }

    /// Replaces all results by `result` of the indices from 0 to `len`, in order.
    ///
    /// ```
    /// let mut results = petal::BatchResults::new();
    /// results.fill_with(3, |at| at != 1);
    /// assert_eq!(results.iter().collect::<Vec<_>>(), [0, 2]);
    /// ```
    #[doc(hidden)] // For the crates of this repository.
    pub fn fill_with(&mut self, len: usize, mut result: impl FnMut(usize) -> bool) {
        for (word, bits) in self.reset(len).iter_mut().enumerate() {
            for at in word * 64..len.min(word * 64 + 64) {
                *bits |= u64::from(result(at)) << (at % 64);
            }
        }
    }

    /// Sets the length and makes all results false. Returns the words of
    /// [`as_words`](Self::as_words).
    pub(crate) fn reset(&mut self, len: usize) -> &mut [u64] {
        self.words.clear();
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
        &mut self.words
    }
}

/// The indices of the results of a batch that are true: see [`BatchResults::iter`].
#[derive(Clone, Debug)]
pub struct TrueIndices<'a> {
    /// The words after the present one.
    words: &'a [u64],
    /// The bits of the present word that are left.
    word: u64,
    /// The index of the first bit of `words`.
    next: usize,
}

impl Iterator for TrueIndices<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            let (first, rest) = self.words.split_first()?;
            (self.word, self.words) = (*first, rest);
            self.next += 64;
        }
        let bit = self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(self.next - 64 + bit)
    }
}

/// The indices of the results that are true, as [`iter`](BatchResults::iter).
impl<'a> IntoIterator for &'a BatchResults {
    type Item = usize;
    type IntoIter = TrueIndices<'a>;

    fn into_iter(self) -> TrueIndices<'a> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn get_and_iter_return_the_bits() {
        let mut results = BatchResults::new();
        for len in [0, 1, 63, 64, 65, 200] {
            let words = results.reset(len);
            let expected: Vec<_> = (0..len).filter(|at| at % 7 == 3 || *at == 199).collect();
            expected.iter().for_each(|&at| words[at / 64] |= 1 << (at % 64));
            assert_eq!(results.iter().collect::<Vec<_>>(), expected);
            assert_eq!((results.len(), results.count_ones()), (len, expected.len() as u64));
            assert!((0..len).all(|at| results.get(at) == expected.contains(&at)));
        }
    }
}
