//! The number of new inserts of each generation.
//!
//! In small windows, with few generations and small counts, the counts are in the filter itself. A
//! separate allocation would be a tenth of the memory of such a filter.

use super::plan::MAX_GENERATIONS;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// The number of counts that fit into the filter itself, in the space of the pointer to more.
const FEW: usize = 5;

/// A count for each slot; 0 for slots without a generation.
#[derive(Clone, Debug)]
pub(super) enum GenerationCounts {
    /// As long as all counts are below 2³².
    Few([u32; FEW]),
    Many(Box<[u64; MAX_GENERATIONS]>),
}

impl GenerationCounts {
    /// Creates the counts of `generations` generations.
    pub(super) fn new(generations: u32, all: [u64; MAX_GENERATIONS]) -> Self {
        let fits = |count: &u64| u32::try_from(*count).is_ok();
        if generations as usize <= FEW && all.iter().all(fits) {
            return Self::Few(core::array::from_fn(|at| all[at] as u32));
        }
        Self::Many(Box::new(all))
    }

    pub(super) fn zero(generations: u32) -> Self {
        Self::new(generations, [0; MAX_GENERATIONS])
    }

    pub(super) fn all(&self) -> [u64; MAX_GENERATIONS] {
        match self {
            Self::Few(few) => core::array::from_fn(|at| few.get(at).copied().unwrap_or(0).into()),
            Self::Many(all) => **all,
        }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> u64 {
        match self {
            Self::Few(few) => few[at].into(),
            Self::Many(all) => all[at],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, at: usize, more: u64) {
        match self {
            Self::Few(few) => {
                let sum = u32::try_from(more).ok().and_then(|more| few[at].checked_add(more));
                match sum {
                    Some(sum) => few[at] = sum,
                    None => self.move_out(at, more),
                }
            }
            Self::Many(all) => all[at] = all[at].saturating_add(more),
        }
    }

    /// Sets a count to 0 and returns its former value.
    pub(super) fn take(&mut self, at: usize) -> u64 {
        let count = self.get(at);
        match self {
            Self::Few(few) => few[at] = 0,
            Self::Many(all) => all[at] = 0,
        }
        count
    }

    #[cold]
    fn move_out(&mut self, at: usize, more: u64) {
        let mut all = self.all();
        all[at] = all[at].saturating_add(more);
        *self = Self::Many(Box::new(all));
    }

    /// Returns the memory on the heap in bytes.
    pub(super) fn memory_usage(&self) -> u64 {
        match self {
            Self::Few(_) => 0,
            Self::Many(all) => size_of_val(&**all) as u64,
        }
    }
}

impl PartialEq for GenerationCounts {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_move_out_when_they_grow() {
        for generations in [2, 5, 6, 12] {
            let (mut counts, mut model) =
                (GenerationCounts::zero(generations), [0u64; MAX_GENERATIONS]);
            let last = generations as usize - 1;
            assert_eq!(counts.memory_usage() > 0, generations > 5);
            for more in [1, u64::from(u32::MAX) - 1, 1, 7, u64::MAX] {
                for at in [0, last] {
                    counts.add(at, more);
                    model[at] = model[at].saturating_add(more);
                }
                assert_eq!((counts.all(), counts.get(last)), (model, model[last]));
                assert_eq!(GenerationCounts::new(generations, model), counts);
            }
            assert_eq!(
                (counts.take(0), counts.take(last), counts.take(0)),
                (u64::MAX, u64::MAX, 0)
            );
            assert_eq!(counts, GenerationCounts::zero(generations));
        }
        assert!(size_of::<GenerationCounts>() == 24);
    }
}
