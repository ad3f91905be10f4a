//! Choosing a windowed filter's keys, rate, window, generations, hash and seed.

use super::WindowedBloomFilter;
use super::plan::Plan;
use crate::error::{Error, Result};
use crate::hash::HashSpec;

/// Generations where nobody chose: 3 % from the least space at 1 %, and few lines to look at
/// (docs/design.md, "Windowed filters").
const GENERATIONS: u32 = 4;

/// Makes a [`WindowedBloomFilter`]. Keys and rate must be given.
///
/// ```
/// use petal::WindowedBloomFilter;
///
/// // Ten minutes in milliseconds, a million keys in them.
/// let builder = WindowedBloomFilter::builder().keys(1_000_000).rate(0.01).time(600_000);
/// let filter = builder.generations(8).build()?;
/// assert_eq!(filter.window_ticks(), Some(600_000));
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WindowedBuilder {
    keys: Option<u64>,
    rate: Option<f64>,
    ticks: Option<u64>,
    generations: u32,
    hash: HashSpec,
}

impl WindowedBuilder {
    pub(super) fn new() -> Self {
        let hash = HashSpec::default();
        Self { keys: None, rate: None, ticks: None, generations: GENERATIONS, hash }
    }

    /// Keys in the window: it is the last so many insertions; with [`time`](Self::time), as many
    /// as are planned for.
    #[must_use]
    pub fn keys(mut self, keys: u64) -> Self {
        self.keys = Some(keys);
        self
    }

    /// The false-positive rate to keep with that many keys.
    #[must_use]
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// The window is the last so many ticks of the caller's clock, instead of a number of keys.
    #[must_use]
    pub fn time(mut self, ticks: u64) -> Self {
        self.ticks = Some(ticks);
        self
    }

    /// In how many steps the window moves, and one more: 2 to 12; 4 if this is not said. A key is
    /// forgotten after one window, and with G generations before G/(G-1) of it; by clock before
    /// G · ⌈T/(G-1)⌉ ticks, which for few ticks is more. A time of at least 20 ticks for each
    /// generation wastes little.
    #[must_use]
    pub fn generations(mut self, generations: u32) -> Self {
        self.generations = generations;
        self
    }

    /// The default hash with this seed: filters with different seeds err on different keys.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::rapid(seed))
    }

    /// The hash.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// Makes the filter, empty, its clock at 0.
    ///
    /// # Errors
    /// If keys or rate are not given, the rate is not between 0 and 1 or cannot be reached, the
    /// time is 0, there are other than 2 to 12 generations, or the memory is refused.
    pub fn build(self) -> Result<WindowedBloomFilter> {
        WindowedBloomFilter::empty(self.plan()?, self.hash)
    }

    /// What is to be made.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let (Some(keys), Some(rate)) = (self.keys, self.rate) else {
            return Err(Error::unsized_filter());
        };
        Plan::new(keys, rate, self.ticks, self.generations)
    }
}
