//! The answers to a batch of queries: one bit each.

/// One bit for each key of a batch, in its order. Reused from batch to batch, it does not
/// allocate again.
///
/// ```
/// # let mut filter = petal::BloomFilter::with_rate(100, 0.01)?;
/// let mut answers = petal::Answers::new();
/// filter.insert_batch(&["a", "b", "a"], &mut answers);
/// assert_eq!(answers.iter().collect::<Vec<_>>(), [0, 1]); // these were new
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    words: Vec<u64>,
    len: usize,
}

impl Answers {
    /// No answers yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many answers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The answer for the key at this place of the batch.
    ///
    /// # Panics
    /// If the batch was not that long.
    #[inline]
    #[must_use]
    pub fn get(&self, at: usize) -> bool {
        assert!(at < self.len, "answer {at} of {}", self.len);
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// How many answers are yes.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The places with the answer yes, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }

    /// The bits, 64 to a word, least significant first; bits behind the last answer are zero.
    #[must_use]
    pub fn as_words(&self) -> &[u64] {
        &self.words
    }

    /// Answers so many keys anew, as `answer` does for each place, in order.
    ///
    /// ```
    /// let mut answers = petal::Answers::new();
    /// answers.answer(3, |at| at != 1);
    /// assert_eq!(answers.iter().collect::<Vec<_>>(), [0, 2]);
    /// ```
    pub fn answer(&mut self, len: usize, mut answer: impl FnMut(usize) -> bool) {
        for (word, bits) in self.reset(len).iter_mut().enumerate() {
            for at in word * 64..len.min(word * 64 + 64) {
                *bits |= u64::from(answer(at)) << (at % 64);
            }
        }
    }

    /// Makes room for so many answers, all of them no: the words to be filled, as in
    /// [`as_words`](Self::as_words).
    pub(crate) fn reset(&mut self, len: usize) -> &mut [u64] {
        self.words.clear();
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
        &mut self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_go_in_and_come_out() {
        let mut answers = Answers::new();
        for len in [0, 1, 63, 64, 65, 200] {
            let words = answers.reset(len);
            let yes: Vec<_> = (0..len).filter(|at| at % 7 == 3 || *at == 199).collect();
            yes.iter().for_each(|&at| words[at / 64] |= 1 << (at % 64));
            assert_eq!(answers.iter().collect::<Vec<_>>(), yes);
            assert_eq!((answers.len(), answers.count_ones()), (len, yes.len() as u64));
            assert!((0..len).all(|at| answers.get(at) == yes.contains(&at)));
        }
    }
}
