//! Lines that many threads look at and change at once.
//!
//! Invariant: while memory is [`Shared`] nobody sees its lines but as atomic ones. It is the
//! memory of an [`Owned`], and becomes one again, without a copy.

use crate::sync::AtomicU64;

/// One cache line of words that many threads use at once; their bytes are little-endian, as those
/// of a [`Line`](super::Line).
#[repr(C, align(64))]
pub(crate) struct AtomicLine(pub(crate) [AtomicU64; 8]);

#[cfg(not(all(loom, test)))]
pub(crate) use real::Shared;

#[cfg(not(all(loom, test)))]
mod real {
    use super::AtomicLine;
    use crate::store::{Line, Owned};
    use crate::sync::Ordering;

    const _: () = assert!(
        size_of::<AtomicLine>() == size_of::<Line>()
            && align_of::<AtomicLine>() == align_of::<Line>()
    );

    /// Lines in memory of our own, for many threads at once.
    #[derive(Debug)]
    pub(crate) struct Shared(Owned);

    impl Shared {
        /// The lines.
        #[inline]
        pub(crate) fn lines(&self) -> &[AtomicLine] {
            let lines = self.0.raw();
            // SAFETY: `Owned` has so many initialised lines there, aligned, for as long as it
            // lives, and `self` owns it. An `AtomicLine` has size and alignment of a `Line`
            // (above) and its bytes, as an `AtomicU64` has those of a `u64`. The pointer is that
            // of the memory itself, which may be written to. Nobody lends these lines as plain
            // ones meanwhile: the field is private, and `Owned` leaves it by value only.
            unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len()) }
        }

        /// Bits that are set. While others set bits, these may be counted or not.
        pub(crate) fn count_ones(&self) -> u64 {
            let words = self.lines().iter().flat_map(|line| &line.0);
            words.map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
        }
    }

    impl From<Owned> for Shared {
        fn from(lines: Owned) -> Self {
            Self(lines)
        }
    }

    impl From<Shared> for Owned {
        fn from(shared: Shared) -> Self {
            shared.0
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::store::{Store as _, StoreMut as _};

        #[test]
        fn the_same_memory_there_and_back() {
            for len in [0, 3, 10_000] {
                let mut owned = Owned::zeroed(len).unwrap();
                let here = owned.lines().as_ptr().addr();
                owned.lines_mut().fill(Line([1; 8]));
                let shared = Shared::from(owned);
                assert_eq!(shared.lines().as_ptr().addr(), here);
                assert_eq!((shared.lines().len() as u64, shared.count_ones()), (len, len * 8));
                for line in shared.lines() {
                    line.0[5].store(7, Ordering::Relaxed);
                }
                let owned = Owned::from(shared);
                assert_eq!(owned.lines().as_ptr().addr(), here);
                assert!(owned.lines().iter().all(|line| line.0 == [1, 1, 1, 1, 1, 7, 1, 1]));
            }
        }
    }
}
