//! Unions.

use super::VectorQuotientFilter;
use super::change::full;
use crate::error::Result;
use crate::kernel::vector_quotient::{Fingerprint, Place};
use crate::store::{CacheLine, Store, StoreMut};

/// The number of copies in a union of a fingerprint that both filters have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    Max,
    Sum,
}

impl<S: StoreMut> VectorQuotientFilter<S> {
    /// Adds all keys of `other`. A key that is in both has the larger of the two numbers of copies,
    /// as if the keys of `other` were [inserted](Self::insert).
    ///
    /// Cost: one pass over both filters, and memory for a new one.
    ///
    /// # Errors
    /// If the filters are not compatible, `other` is damaged, there are too few slots, or memory
    /// allocation fails; this filter is then unchanged.
    pub fn union<T: Store>(&mut self, other: &VectorQuotientFilter<T>) -> Result<()> {
        self.combine(other, Copies::Max)
    }

    /// Adds all copies of the keys of `other`: the numbers of copies are summed, as if the keys of
    /// `other` were [added](Self::add).
    ///
    /// # Errors
    /// As [`union`](Self::union).
    pub fn merge<T: Store>(&mut self, other: &VectorQuotientFilter<T>) -> Result<()> {
        self.combine(other, Copies::Sum)
    }

    fn combine<T: Store>(&mut self, other: &VectorQuotientFilter<T>, copies: Copies) -> Result<()> {
        self.check_compatible(other)?;
        // It may be in a file that was not verified.
        other.check_blocks(0)?;
        let theirs = other.store.lines();
        let mut store = S::new_zeroed(self.layout.blocks())?;
        store.lines_mut().copy_from_slice(self.store.lines());
        let mut added = 0;
        for (block, line) in theirs.iter().enumerate() {
            for fingerprint in self.table.fingerprints(line) {
                let place = Place { block: block as u64, fingerprint };
                let copies = match copies {
                    Copies::Sum => 1,
                    Copies::Max => self.missing(theirs, store.lines(), place),
                };
                // The first of several copies adds all that are missing.
                for _ in 0..copies {
                    if !self.table.insert_fingerprint(store.lines_mut(), place) {
                        return Err(full());
                    }
                    added += 1;
                }
            }
        }
        self.store = store;
        self.info.inserted += added;
        Ok(())
    }

    /// Returns how many more copies of a fingerprint `theirs` has than `ours`.
    fn missing(&self, theirs: &[CacheLine], ours: &[CacheLine], place: Place) -> u32 {
        let second = self.table.second_block(place);
        let count = |lines: &[CacheLine], block: u64| -> u32 {
            let equal = |other: &Fingerprint| *other == place.fingerprint;
            let line = lines.get(block as usize);
            line.map_or(0, |line| self.table.fingerprints(line).filter(equal).count() as u32)
        };
        let both = |lines: &[CacheLine]| {
            let first = count(lines, place.block);
            if second == place.block { first } else { first + count(lines, second) }
        };
        both(theirs).saturating_sub(both(ours))
    }
}
