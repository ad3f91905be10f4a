//! The builder of counting filters.

use core::marker::PhantomData;

use super::CountingFilter;
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::filter::FilterInfo;
use crate::filter::builder;
use crate::filter::layout::Layout;
use crate::format::kind::FilterType;
use crate::spec::{FilterSpec, hash_setters, setters};

/// Builds a counting filter.
///
/// Sets the fields of a [`FilterSpec`], which lists what sizes a filter.
///
/// ```
/// use petal::{ByteSize, CountingBloomFilter};
///
/// let narrow = CountingBloomFilter::builder().capacity(1000).fpr(0.01).width(3).build()?;
/// let fitted = CountingBloomFilter::builder().capacity(1000).memory(ByteSize::kib(8)).seed(7).build()?;
/// assert!(narrow.size_bytes() < 5000 && fitted.size_bytes() == 8192);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountingBuilder<L> {
    spec: FilterSpec,
    layout: PhantomData<L>,
}

impl<L: Layout> CountingBuilder<L> {
    pub(super) fn new() -> Self {
        let counting = match L::KIND {
            FilterType::Classic => FilterType::CountingClassic,
            _ => FilterType::Counting,
        };
        Self { spec: FilterSpec::new(counting), layout: PhantomData }
    }

    setters! {
        /// Sets the capacity in distinct keys.
        capacity: u64 => capacity;

        /// Sets the target false-positive rate at the capacity.
        fpr: f64 => fpr;

        /// Sets the largest amount of memory for the counters.
        memory: ByteSize => memory;

        /// Sets the smallest number of counters, which is the number of bits of the Bloom filter.
        bits: u64 => bits;

        /// Sets the number of counters of a key.
        probes: u32 => probes;

        /// Chooses the fewest counters that keep the rate: see
        /// [`Builder::least_space`](crate::Builder::least_space).
        least_space: bool => least_space;

        /// Sets the width of a counter in bits, 2 to 8 \[default: 4\]. It counts to 2^(width-1).
        ///
        /// When as many distinct keys as the capacity have been inserted once, one counter in 6 to 8 is
        /// saturated with 2 bits, one in 200 to 300 with 3, in more than a million with 4, in more than
        /// 10^16 with 5. Use more bits if keys are inserted often or replaced thousands of times. See
        /// [`expected_saturated`](CountingFilter::expected_saturated) and
        /// [`expected_saturated_after`](CountingFilter::expected_saturated_after).
        width: u32 => counter_width;
    }

    hash_setters!(spec.hash);

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, the width is not 2 to 8, or memory allocation fails.
    pub fn build(self) -> Result<CountingFilter<L>> {
        let (layout, info) = dimensions(&self.spec)?;
        CountingFilter::empty(layout, self.spec.hash, info, self.spec.counter_width)
    }

    pub(crate) fn spec(&self) -> &FilterSpec {
        &self.spec
    }
}

/// Returns the layout of the bits of a counting filter, and its plan.
pub(crate) fn dimensions<L: Layout>(spec: &FilterSpec) -> Result<(L, FilterInfo)> {
    let width = check_width(spec.counter_width.into())?;
    builder::dimensions(spec, None, width.into())
}

/// Returns a valid width.
pub(super) fn check_width(width: u64) -> Result<u32> {
    if !(2..=8).contains(&width) {
        return Err(Error::invalid("width of counters", "2 to 8 bits", width));
    }
    Ok(width as u32)
}
