//! Other tables of the same fingerprints: larger, smaller, or with those of another filter.
//!
//! Fingerprints come out in order and go in in order, so that each of these is one pass, for which
//! both tables are in memory. If anything fails, the filter is as it was.

use std::cmp::Ordering;
use std::iter::{Peekable, from_fn};

use super::change::full;
use super::shape::QuotientShape;
use super::{QuotientFilter, Table};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::store::{Store, StoreMut};

/// How often a fingerprint is in what comes of two filters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// As often as in the one that has it more often.
    Most,
    /// As often as in both together.
    Sum,
}

impl<S: StoreMut> QuotientFilter<S> {
    /// Doubles the slots, without the keys. Each remainder loses a bit, to which of two slots it
    /// goes, so that fingerprints, answers and rate stay as they are.
    ///
    /// Cost: one pass over the table, some 5 ns a fingerprint; memory for the new table beside
    /// the old one.
    ///
    /// # Errors
    /// If the room that it makes could not be used at the rate planned for, or no bit is left, or
    /// the memory is refused.
    pub fn grow(&mut self) -> Result<()> {
        if !self.is_promised(self.shape) && self.shape.remainder_bits() > 1 {
            return Err(Error::full(
                "with twice the slots, full, it would err more often than planned",
                "plan for more keys (max_keys), or call grow_past_rate",
            ));
        }
        self.grow_past_rate()
    }

    /// [`grow`](Self::grow), whatever was promised: with as many keys as it holds then it errs up
    /// to twice as often as now.
    ///
    /// # Errors
    /// If no bit is left, or the memory is refused.
    pub fn grow_past_rate(&mut self) -> Result<()> {
        let larger = self.shape.doubled().ok_or_else(|| {
            Error::full("growing takes a bit of each remainder, and none is left", "build it anew")
        })?;
        self.rebuild(larger)
    }

    /// Gives slots back: halves them as long as they are an even number and what is there fits.
    /// Whether it did.
    ///
    /// Cost: as [`grow`](Self::grow).
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn shrink(&mut self) -> Result<bool> {
        let mut shape = self.shape;
        while let Some(smaller) = shape.halved().filter(|shape| shape.capacity() >= self.len()) {
            shape = smaller;
        }
        // By chance more may be pushed out at the end than there are slots for.
        while shape != self.shape {
            match self.rebuild(shape) {
                Ok(()) => return Ok(true),
                Err(error) if !error.is_full() => return Err(error),
                Err(_) => match shape.doubled() {
                    Some(larger) => shape = larger,
                    None => break,
                },
            }
        }
        Ok(false)
    }

    /// Makes this the filter of all keys that are in it or in `other`. A key that is in both is
    /// there as often as in the one that has it more often: as if the keys of `other` had been
    /// [inserted](Self::insert).
    ///
    /// The other one may have another number of slots: see
    /// [`check_compatible`](Self::check_compatible). A filter that grows by itself does.
    ///
    /// Cost: two passes over both tables, and memory for a new one.
    ///
    /// # Errors
    /// If they are not compatible, the slots do not suffice, or the memory is refused; nothing has
    /// changed then.
    pub fn union<T: Store>(&mut self, other: &QuotientFilter<T>) -> Result<()> {
        self.combine(other, Copies::Most)
    }

    /// Makes this the filter of all copies of keys that are in it and in `other`: counts are
    /// summed up, as if the keys of `other` had been [added](Self::add).
    ///
    /// Otherwise as [`union`](Self::union).
    ///
    /// # Errors
    /// As there.
    pub fn merge<T: Store>(&mut self, other: &QuotientFilter<T>) -> Result<()> {
        self.combine(other, Copies::Sum)
    }

    fn combine<T: Store>(&mut self, other: &QuotientFilter<T>, copies: Copies) -> Result<()> {
        self.check_compatible(other)?;
        let finer = (other.shape.fingerprints() / self.shape.fingerprints()).ilog2();
        let theirs = || other.fingerprints().map(move |fingerprint| fingerprint >> finer);
        let (mut total, mut distinct, mut last) = (0, 0, None);
        for fingerprint in together(self.fingerprints(), theirs(), copies) {
            // The other one may lie in a file that nobody has verified.
            if last > Some(fingerprint) || fingerprint >= self.shape.fingerprints() {
                return Err(Error::corrupt("order of fingerprints", 0, "ascending", "others"));
            }
            total += 1;
            distinct += u64::from(last.replace(fingerprint) != Some(fingerprint));
        }
        let mut shape = self.shape;
        while self.growing
            && shape.capacity() < total
            && self.is_promised(shape)
            && let Some(larger) = shape.doubled()
        {
            shape = larger;
        }
        let (table, store) = fill(shape, together(self.fingerprints(), theirs(), copies))?;
        (self.shape, self.table, self.store) = (shape, table, store);
        (self.facts.inserted, self.distinct) = (total, distinct);
        Ok(())
    }

    /// Puts all fingerprints into a table of another shape with the same fingerprints.
    fn rebuild(&mut self, shape: QuotientShape) -> Result<()> {
        let (table, store) = fill(shape, self.fingerprints())?;
        (self.shape, self.table, self.store) = (shape, table, store);
        Ok(())
    }
}

/// A table of a shape with these fingerprints, which come ascending.
fn fill<S: StoreMut>(
    shape: QuotientShape,
    fingerprints: impl Iterator<Item = u64>,
) -> Result<(Table, S)> {
    let mut store = S::of_zeros(shape.lines())?;
    let table = Table::new(shape.rule(), shape.fingerprints(), Kernel::chosen());
    if table.fill(store.lines_mut(), fingerprints) { Ok((table, store)) } else { Err(full()) }
}

/// Two ascending lists as one.
fn together(
    ours: impl Iterator<Item = u64>,
    theirs: impl Iterator<Item = u64>,
    copies: Copies,
) -> impl Iterator<Item = u64> {
    fn next(list: &mut Peekable<impl Iterator<Item = u64>>) -> u64 {
        // The end comes behind all fingerprints, which are below 2^63.
        list.peek().copied().unwrap_or(u64::MAX)
    }
    let (mut ours, mut theirs) = (ours.peekable(), theirs.peekable());
    from_fn(move || match next(&mut ours).cmp(&next(&mut theirs)) {
        Ordering::Less => ours.next(),
        Ordering::Greater => theirs.next(),
        Ordering::Equal => {
            if copies == Copies::Most {
                theirs.next();
            }
            ours.next()
        }
    })
}
