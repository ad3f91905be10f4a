//! The builder of windowed filters.

use super::WindowedBloomFilter;
use super::plan::WindowPlan;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::spec::{FilterSpec, hash_setters, setters};

/// What determines the size.
const NEEDED: &str = "capacity and false-positive rate";

/// Builds a [`WindowedBloomFilter`]. Capacity and rate are required.
///
/// ```
/// use petal::WindowedBloomFilter;
///
/// // Ten minutes in milliseconds, a million keys in them.
/// let builder = WindowedBloomFilter::builder().capacity(1_000_000).fpr(0.01).time(600_000);
/// let filter = builder.generations(8).build()?;
/// assert_eq!(filter.window_ticks(), Some(600_000));
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WindowedBuilder {
    spec: FilterSpec,
}

impl WindowedBuilder {
    pub(super) fn new() -> Self {
        Self { spec: FilterSpec::new(FilterType::Windowed) }
    }

    setters! {
        /// Sets the number of keys in the window: its length in insertions, or with
        /// [`time`](Self::time) the number of keys planned for.
        capacity: u64 => capacity;

        /// Sets the target false-positive rate at the capacity.
        fpr: f64 => fpr;

        /// Makes the window the last `ticks` of the caller's clock instead of a number of insertions.
        time: u64 => window;

        /// Sets the number of generations, 2 to 12 \[default: 4\]. The window moves in steps of one
        /// generation. A key is forgotten after at least one window and at most G/(G-1) windows with G
        /// generations; in a window of T ticks, before G · ⌈T/(G-1)⌉ ticks. Use at least 20 ticks per
        /// generation, because the ticks of a generation are rounded up.
        generations: u32 => generations;
    }

    hash_setters!(spec.hash);

    /// Creates an empty filter with clock 0.
    ///
    /// # Errors
    /// If capacity or rate is missing, the rate is not between 0 and 1 or cannot be reached, the time
    /// is 0, the generations are not 2 to 12, or memory allocation fails.
    pub fn build(self) -> Result<WindowedBloomFilter> {
        WindowedBloomFilter::empty(dimensions(&self.spec)?, self.spec.hash)
    }

    pub(crate) fn spec(&self) -> &FilterSpec {
        &self.spec
    }
}

/// Returns the plan that a specification determines.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<WindowPlan> {
    let (Some(keys), Some(rate)) = (spec.capacity, spec.fpr) else {
        return Err(Error::unsized_filter(NEEDED));
    };
    WindowPlan::new(keys, rate, spec.window, spec.generations)
}
