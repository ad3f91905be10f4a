//! What a windowed filter is made for: how many keys, in which window, in how many generations.

use crate::error::{Error, Result};
use crate::rate;
use crate::shape::Shape;

/// Most generations of one filter: their counts lie in the header of a file.
pub(super) const MOST: usize = 12;

/// The largest clock of a window by count. Only a hostile file comes near it.
pub(super) const MOST_ROTATIONS: u64 = 1 << 62;

/// A proof: there are keys, the rate is between 0 and 1, time is not 0, and there are 2 to
/// [`MOST`] generations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) keys: u64,
    pub(crate) rate: f64,
    /// The window in ticks, if it is not a number of keys.
    pub(super) ticks: Option<u64>,
    pub(crate) generations: u32,
}

impl Plan {
    pub(super) fn new(keys: u64, rate: f64, ticks: Option<u64>, generations: u32) -> Result<Self> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::rate(rate));
        }
        if !(2..=MOST as u32).contains(&generations) {
            return Err(Error::invalid("generations", "2 to 12", generations));
        }
        if ticks == Some(0) {
            return Err(Error::invalid("time", "1 tick or more", 0));
        }
        Ok(Self { keys: keys.max(1), rate, ticks, generations })
    }

    /// Generations that are never forgotten too early: all but the newest, which is not full.
    #[inline]
    fn whole(&self) -> u64 {
        u64::from(self.generations) - 1
    }

    /// Keys of one generation, of so many in the window: by clock as many as come in its ticks,
    /// which are more than a part of the window where that does not divide evenly.
    #[inline]
    pub(super) fn share(&self, keys: u64) -> u64 {
        let Some(ticks) = self.ticks else { return keys.div_ceil(self.whole()) };
        let share = (u128::from(keys) * u128::from(self.width(ticks))).div_ceil(ticks.into());
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// Ticks of a generation.
    #[inline]
    fn width(&self, ticks: u64) -> u64 {
        ticks.div_ceil(self.whole())
    }

    /// The number of the generation, from the beginning of time, that is the newest by this
    /// clock: of rotations if the window is a number of keys, else of ticks.
    #[inline]
    pub(super) fn epoch(&self, clock: u64) -> u64 {
        self.ticks.map_or(clock, |ticks| clock / self.width(ticks))
    }

    /// The clock after one more rotation of a window by count. After the largest clock it continues
    /// at a small one that leaves every generation its slot and its age.
    pub(super) fn rotated(&self, clock: u64) -> u64 {
        let generations = u64::from(self.generations);
        if clock < MOST_ROTATIONS { clock + 1 } else { generations + (clock + 1) % generations }
    }

    /// The place of that generation.
    #[inline]
    pub(super) fn slot(&self, epoch: u64) -> usize {
        (epoch % u64::from(self.generations)) as usize
    }

    /// The false-positive rate of all generations of that shape with `keys` keys in the window.
    pub(crate) fn expected_rate(&self, shape: Shape, keys: u64) -> f64 {
        let one = shape.rate(self.share(keys));
        rate::any_of((0..self.generations).map(|_| one))
    }

    /// The shape of one generation.
    pub(crate) fn shape(&self) -> Result<Shape> {
        let target = rate::generation(self.rate, self.generations);
        Shape::for_new_keys(self.share(self.keys), target)
    }
}
