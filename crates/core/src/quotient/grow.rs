//! Growing, shrinking, union and merge.
//!
//! Fingerprints are read and written in ascending order, so that each operation is one pass with
//! both tables in memory. If it fails, the filter is unchanged.

use core::cmp::Ordering;
use core::iter::{Peekable, from_fn};

use super::change::full;
use super::layout::QuotientLayout;
use super::{QuotientFilter, Table};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::store::{Store, StoreMut};

/// How the numbers of copies in two filters are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    Max,
    Sum,
}

impl<S: StoreMut> QuotientFilter<S> {
    /// Doubles the number of slots, without the keys. One bit of each remainder becomes a bit of its
    /// slot, so that fingerprints and false-positive rate stay the same.
    ///
    /// Cost: one pass over the table, about 5 ns per fingerprint; memory for the new table beside
    /// the old one.
    ///
    /// # Errors
    /// If a full filter of that size would exceed the target rate, remainders have one bit, or
    /// memory allocation fails.
    pub fn grow(&mut self) -> Result<()> {
        if !self.keeps_target_doubled(self.layout) && self.layout.remainder_bits() > 1 {
            return Err(Error::full(
                "with twice the slots it would exceed its target false-positive rate",
                "plan for a larger maximum capacity, or call grow_past_fpr",
            ));
        }
        self.grow_past_fpr()
    }

    /// [`grow`](Self::grow) without regard to the target rate: when full, the filter has up to twice
    /// the false-positive rate of now.
    ///
    /// # Errors
    /// If remainders have one bit, or memory allocation fails.
    pub fn grow_past_fpr(&mut self) -> Result<()> {
        let larger = self.layout.doubled().ok_or_else(|| {
            Error::full("growing takes a bit of each remainder, and none is left", "build it again")
        })?;
        self.rebuild(larger)
    }

    /// Halves the number of slots as often as it is even and the fingerprints fit. Returns true if
    /// the filter became smaller.
    ///
    /// Cost: as [`grow`](Self::grow).
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn shrink(&mut self) -> Result<bool> {
        let mut layout = self.layout;
        while let Some(smaller) = layout.halved().filter(|layout| layout.capacity() >= self.len()) {
            layout = smaller;
        }
        // By chance more fingerprints may be shifted past the end than there are slots for.
        while layout != self.layout {
            match self.rebuild(layout) {
                Ok(()) => return Ok(true),
                Err(error) if !error.is_full() => return Err(error),
                Err(_) => match layout.doubled() {
                    Some(larger) => layout = larger,
                    None => break,
                },
            }
        }
        Ok(false)
    }

    /// Adds all keys of `other`. A key that is in both has the larger of the two numbers of copies,
    /// as if the keys of `other` were [inserted](Self::insert).
    ///
    /// `other` must have the same hash, and as many possible fingerprints or 2, 4, 8, … times as many;
    /// the number of slots may differ. A growing filter grows if needed.
    ///
    /// Cost: two passes over both tables, and memory for a new one.
    ///
    /// # Errors
    /// If the filters are not compatible, there are too few slots, or memory allocation fails; this
    /// filter is then unchanged.
    pub fn union<T: Store>(&mut self, other: &QuotientFilter<T>) -> Result<()> {
        self.combine(other, Copies::Max)
    }

    /// Adds all copies of the keys of `other`: the numbers of copies are summed, as if the keys of
    /// `other` were [added](Self::add). Otherwise as [`union`](Self::union).
    ///
    /// # Errors
    /// As [`union`](Self::union).
    pub fn merge<T: Store>(&mut self, other: &QuotientFilter<T>) -> Result<()> {
        self.combine(other, Copies::Sum)
    }

    fn combine<T: Store>(&mut self, other: &QuotientFilter<T>, copies: Copies) -> Result<()> {
        self.check_compatible(other)?;
        let finer = (other.layout.fingerprints() / self.layout.fingerprints()).ilog2();
        let theirs = || other.fingerprints().map(move |fingerprint| fingerprint >> finer);
        let (mut total, mut distinct, mut last) = (0, 0, None);
        for fingerprint in merged(self.fingerprints(), theirs(), copies) {
            // `other` may be in a file that was not verified.
            if last > Some(fingerprint) || fingerprint >= self.layout.fingerprints() {
                return Err(Error::corrupt("order of fingerprints", 0, "ascending", "others"));
            }
            total += 1;
            distinct += u64::from(last.replace(fingerprint) != Some(fingerprint));
        }
        let mut layout = self.layout;
        while self.growing
            && layout.capacity() < total
            && self.keeps_target_doubled(layout)
            && let Some(larger) = layout.doubled()
        {
            layout = larger;
        }
        let (table, store) = fill(layout, merged(self.fingerprints(), theirs(), copies))?;
        (self.layout, self.table, self.store) = (layout, table, store);
        (self.info.inserted, self.distinct) = (total, distinct);
        Ok(())
    }

    /// Moves all fingerprints to a table of another layout with the same number of possible
    /// fingerprints.
    fn rebuild(&mut self, layout: QuotientLayout) -> Result<()> {
        let (table, store) = fill(layout, self.fingerprints())?;
        (self.layout, self.table, self.store) = (layout, table, store);
        Ok(())
    }
}

/// Creates a table with these fingerprints, which must be ascending.
fn fill<S: StoreMut>(
    layout: QuotientLayout,
    fingerprints: impl Iterator<Item = u64>,
) -> Result<(Table, S)> {
    let mut store = S::new_zeroed(layout.lines())?;
    let table = Table::new(layout.params(), layout.fingerprints(), Kernel::selected());
    if table.fill(store.lines_mut(), fingerprints) { Ok((table, store)) } else { Err(full()) }
}

/// Merges two ascending lists.
fn merged(
    ours: impl Iterator<Item = u64>,
    theirs: impl Iterator<Item = u64>,
    copies: Copies,
) -> impl Iterator<Item = u64> {
    fn next(list: &mut Peekable<impl Iterator<Item = u64>>) -> u64 {
        // The end sorts after all fingerprints, which are below 2^63.
        list.peek().copied().unwrap_or(u64::MAX)
    }
    let (mut ours, mut theirs) = (ours.peekable(), theirs.peekable());
    from_fn(move || match next(&mut ours).cmp(&next(&mut theirs)) {
        Ordering::Less => ours.next(),
        Ordering::Greater => theirs.next(),
        Ordering::Equal => {
            if copies == Copies::Max {
                theirs.next();
            }
            ours.next()
        }
    })
}
