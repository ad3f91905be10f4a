//! Cache lines that many threads read and modify at once.
//!
//! [`Shared`] wraps an [`Owned`](super::Owned). Conversions in both directions copy nothing.
//!
//! Invariant: while memory is [`Shared`], its lines are accessed only as atomic lines.

use crate::sync::AtomicU64;

/// A cache line of atomic words; their bytes are little-endian, as in a
/// [`CacheLine`](super::CacheLine).
#[repr(C, align(64))]
pub(crate) struct AtomicCacheLine(pub(crate) [AtomicU64; 8]);

#[cfg(not(all(loom, test)))]
pub(crate) use memory::Shared;

/// Not compiled for loom, whose atomics are larger than a `u64`: lines cannot be cast to them.
#[cfg(not(all(loom, test)))]
mod memory {
    use super::super::cache_line::CacheLine;
    use super::super::owned::Owned;
    use super::super::traits::Store as _;
    use super::AtomicCacheLine;
    use crate::sync::Ordering;

    const _: () = assert!(
        size_of::<AtomicCacheLine>() == size_of::<CacheLine>()
            && align_of::<AtomicCacheLine>() == align_of::<CacheLine>()
    );

    /// Owned memory that many threads access at once.
    #[derive(Debug)]
    pub(crate) struct Shared(Owned);

    impl Shared {
        /// Returns the cache lines.
        #[inline]
        pub(crate) fn lines(&self) -> &[AtomicCacheLine] {
            let lines = self.0.raw();
            // SAFETY: `Owned` has this many initialised, aligned lines as long as it lives, and
            // `self` owns it. An `AtomicCacheLine` has the size and alignment of a `CacheLine`
            // (asserted above) and its bytes, as an `AtomicU64` has those of a `u64`. The pointer
            // is that of the allocation, which is writable. No `&[CacheLine]` of this memory exists
            // at the same time: the field is private, and only `From<Shared>` takes the `Owned` out.
            unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), lines.len()) }
        }

        pub(crate) fn memory_usage(&self) -> u64 {
            self.0.memory_usage()
        }

        /// Returns the number of set bits. Bits that other threads set meanwhile may not count.
        pub(crate) fn count_ones(&self) -> u64 {
            let words = self.lines().iter().flat_map(|line| &line.0);
            words.map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
        }
    }

    impl From<Owned> for Shared {
        fn from(owned: Owned) -> Self {
            Self(owned)
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
        use crate::store::StoreMut as _;

        #[test]
        fn conversion_keeps_the_memory() {
            for len in [0, 3, 10_000] {
                let mut owned = Owned::zeroed(len).unwrap();
                let address = owned.lines().as_ptr().addr();
                owned.lines_mut().fill(CacheLine([1; 8]));
                let shared = Shared::from(owned);
                assert_eq!(shared.lines().as_ptr().addr(), address);
                assert_eq!((shared.lines().len() as u64, shared.count_ones()), (len, len * 8));
                for line in shared.lines() {
                    line.0[5].store(7, Ordering::Relaxed);
                }
                let owned = Owned::from(shared);
                assert_eq!(owned.lines().as_ptr().addr(), address);
                assert!(owned.lines().iter().all(|line| line.0 == [1, 1, 1, 1, 1, 7, 1, 1]));
            }
        }
    }
}
