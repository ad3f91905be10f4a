//! The plan of a windowed filter: keys, rate, window and generations.

use crate::error::{Error, Result};
use crate::layout::BlockedLayout;
use crate::math;

/// The largest number of generations: their counts are parameters in the header of a file.
pub(super) const MAX_GENERATIONS: usize = 12;

/// The largest clock of a window by count. Only crafted files come near it.
pub(super) const MAX_ROTATIONS: u64 = 1 << 62;

/// A validated plan: at least one key, a rate between 0 and 1, a time that is not 0, and 2 to
/// [`MAX_GENERATIONS`] generations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowPlan {
    pub(crate) keys: u64,
    pub(crate) fpr: f64,
    /// The window in ticks; `None` for a window by count.
    pub(super) ticks: Option<u64>,
    pub(crate) generations: u32,
}

impl WindowPlan {
    pub(super) fn new(keys: u64, fpr: f64, ticks: Option<u64>, generations: u32) -> Result<Self> {
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(Error::fpr(fpr));
        }
        if !(2..=MAX_GENERATIONS as u32).contains(&generations) {
            return Err(Error::invalid("generations", "2 to 12", generations));
        }
        if ticks == Some(0) {
            return Err(Error::invalid("time", "1 tick or more", 0));
        }
        Ok(Self { keys: keys.max(1), fpr, ticks, generations })
    }

    /// Returns the number of generations that make up the window: all but the newest, which is not
    /// full.
    #[inline]
    fn full_generations(&self) -> u64 {
        u64::from(self.generations) - 1
    }

    /// Returns the number of keys of one generation for `keys` in the window. By clock it is the
    /// number in the ticks of a generation, which are rounded up.
    #[inline]
    pub(super) fn share(&self, keys: u64) -> u64 {
        let Some(ticks) = self.ticks else { return keys.div_ceil(self.full_generations()) };
        let share =
            (u128::from(keys) * u128::from(self.generation_ticks(ticks))).div_ceil(ticks.into());
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    #[inline]
    fn generation_ticks(&self, ticks: u64) -> u64 {
        ticks.div_ceil(self.full_generations())
    }

    /// Returns the number of the newest generation at this clock, counted from the beginning of
    /// time. The clock counts rotations for a window by count, else ticks.
    #[inline]
    pub(super) fn epoch(&self, clock: u64) -> u64 {
        self.ticks.map_or(clock, |ticks| clock / self.generation_ticks(ticks))
    }

    /// Returns the clock after one more rotation of a window by count. After the largest clock it
    /// continues at a small one at which every generation has the same slot and age.
    pub(super) fn rotated(&self, clock: u64) -> u64 {
        let generations = u64::from(self.generations);
        if clock < MAX_ROTATIONS { clock + 1 } else { generations + (clock + 1) % generations }
    }

    /// Returns the slot of a generation.
    #[inline]
    pub(super) fn slot(&self, epoch: u64) -> usize {
        (epoch % u64::from(self.generations)) as usize
    }

    /// Returns the false-positive rate of all generations of this layout with `keys` keys in the
    /// window.
    pub(crate) fn expected_fpr(&self, layout: BlockedLayout, keys: u64) -> f64 {
        let one = layout.fpr(self.share(keys));
        math::probability_of_any((0..self.generations).map(|_| one))
    }

    /// Returns the layout of one generation.
    pub(crate) fn layout(&self) -> Result<BlockedLayout> {
        let target = math::generation_fpr(self.fpr, self.generations);
        BlockedLayout::for_counted_keys(self.share(self.keys), target)
    }
}
