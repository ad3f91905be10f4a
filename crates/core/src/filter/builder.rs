//! The builder of Bloom filters.

use super::layout::Layout;
use super::layout::sealed::Fields;
use super::{Filter, FilterInfo};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::math;
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::spec::{FilterSpec, hash_setters, setters};

/// Builds a [`Filter`].
///
/// Sets the fields of a [`FilterSpec`], which lists what sizes a filter.
///
/// ```
/// use petal::{BloomFilter, ByteSize, HashSpec};
///
/// let small = BloomFilter::builder().capacity(1000).fpr(0.001).build()?;
/// let fixed = BloomFilter::builder().bits(1 << 20).probes(8).seed(7).build()?;
/// let keyed = BloomFilter::builder()
///     .capacity(1000)
///     .memory(ByteSize::kib(4))
///     .hash(HashSpec::keyed(*b"sixteen secrets!"))
///     .build()?;
/// assert!(small.size_bytes() < 2048 && fixed.size_bytes() == 1 << 17);
/// assert!(keyed.target_fpr() < 1e-3);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Builder<L> {
    spec: FilterSpec,
    foldable_to: Option<L>,
}

impl<L: Layout> Builder<L> {
    pub(crate) fn new() -> Self {
        Self { spec: FilterSpec::new(L::KIND), foldable_to: None }
    }

    setters! {
        /// Sets the capacity in distinct keys.
        capacity: u64 => capacity;

        /// Sets the target false-positive rate at the capacity.
        fpr: f64 => fpr;

        /// Sets the largest amount of memory for the bits.
        memory: ByteSize => memory;

        /// Sets the number of bits; a blocked filter rounds it up to whole blocks.
        bits: u64 => bits;

        /// Sets the number of bits of a key.
        probes: u32 => probes;

        /// Chooses the fewest bits that keep the rate at the capacity; by default a blocked filter may take
        /// some more where that is faster. At 1 % it saves 2 % of the space, at 0.1 % 4 %, and a key takes
        /// one and a half to two times the time. A classic filter always has the fewest bits.
        ///
        /// Needs a capacity and a rate, and excludes bits, probes and [`foldable_to`](Self::foldable_to).
        ///
        /// ```
        /// use petal::BloomFilter;
        ///
        /// let small = BloomFilter::builder().capacity(1_000_000).fpr(0.001).least_space(true).build()?;
        /// assert!(small.size_bytes() * 8 < 15_100_000);
        /// # Ok::<_, petal::Error>(())
        /// ```
        least_space: bool => least_space;
    }

    /// Makes the size a multiple of that of `layout`, with the same probes, so that the filter can be
    /// folded to it and combined with a filter of it. The size is the smallest that reaches the rate,
    /// the largest that fits the memory, or the smallest with that number of bits.
    ///
    /// ```
    /// use petal::BloomFilter;
    ///
    /// let mut day = BloomFilter::with_fpr(1_000, 0.01)?;
    /// let month = BloomFilter::builder().capacity(40_000).fpr(0.01).foldable_to(day.layout());
    /// let mut month = month.build()?;
    /// (day.insert("today"), month.insert("before"));
    /// let both = day.union_folded(&month)?;
    /// assert!(both.contains("today") && both.contains("before"));
    /// assert_eq!(both.layout(), day.layout());
    /// # Ok::<_, petal::Error>(())
    /// ```
    #[must_use]
    pub fn foldable_to(mut self, layout: L) -> Self {
        self.foldable_to = Some(layout);
        self
    }

    hash_setters!(spec.hash);

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, or memory allocation fails.
    pub fn build(self) -> Result<Filter<L>> {
        let (layout, info) = self.dimensions()?;
        Filter::empty(layout, self.spec.hash, info)
    }

    /// Returns the layout of the filter, without building it.
    pub(crate) fn dimensions(&self) -> Result<(L, FilterInfo)> {
        dimensions(&self.spec, self.foldable_to, 1)
    }

    /// Returns the specification of the filter, and whether it can be folded to another one.
    pub(crate) fn spec(&self) -> (FilterSpec, bool) {
        (self.spec, self.foldable_to.is_some())
    }
}

/// Returns the layout of a filter whose bits take `times` their memory, and its plan.
pub(crate) fn dimensions<L: Layout>(
    spec: &FilterSpec,
    foldable_to: Option<L>,
    times: u64,
) -> Result<(L, FilterInfo)> {
    let small = foldable_to;
    if let (Some(small), Some(probes)) = (small, spec.probes)
        && u32::from(small.fields().probes) != probes
    {
        return Err(Error::incompatible("probes", small.fields().probes, probes));
    }
    if spec.least_space {
        check_least_space(spec, small)?;
    }
    let part = |memory: ByteSize| ByteSize::bytes(memory.as_u64() / times);
    let in_parts = |memory: ByteSize| move |error: Error| error.in_parts(memory.as_u64(), times);
    let (layout, info) = match *spec {
        FilterSpec { bits: Some(bits), probes: Some(probes), .. } => {
            let layout = match small {
                Some(small) => multiple(small, bits.div_ceil(small.bits()))?,
                None => L::for_bits(bits, probes)?,
            };
            (layout, info_of(spec, layout)?)
        }
        FilterSpec { bits: Some(bits), capacity, fpr, .. } => {
            let layout = match (small, capacity, fpr) {
                (Some(small), ..) => multiple(small, bits.div_ceil(small.bits()))?,
                (None, Some(keys), _) => best_for_capacity(bits, keys)?,
                (None, None, Some(rate)) => best_for_fpr(bits, rate)?,
                (None, None, None) => {
                    let expected = "a number, or a capacity or rate, beside the bits";
                    return Err(Error::invalid("probes", expected, "none"));
                }
            };
            (layout, info_of(spec, layout)?)
        }
        FilterSpec { capacity: Some(keys), fpr: Some(rate), probes, .. } => {
            let layout = match (small, probes) {
                (Some(small), _) => small.multiple_for_fpr(keys, rate)?,
                (None, probes) => smallest(spec, keys, rate, probes)?,
            };
            (layout, FilterInfo::planned(keys, rate))
        }
        FilterSpec { capacity: Some(keys), memory: Some(memory), probes, .. } => {
            let layout = match (small, probes) {
                (Some(small), _) => {
                    multiple(small, part(memory).as_u64() / 64 * 512 / small.bits())
                }
                (None, Some(probes)) => L::for_memory_with_probes(part(memory), probes),
                (None, None) => {
                    L::for_memory(keys, part(useful_memory::<L>(spec, keys, memory, times)))
                }
            };
            let layout = layout.map_err(in_parts(memory))?;
            (layout, FilterInfo::of_size(Some(keys), |keys| layout.fpr(keys))?)
        }
        FilterSpec { fpr: Some(rate), memory: Some(memory), probes, .. } if small.is_none() => {
            let (layout, keys) = match probes {
                Some(probes) => {
                    let layout = L::for_memory_with_probes(part(memory), probes);
                    let layout = layout.map_err(in_parts(memory))?;
                    (layout, layout.capacity_at_fpr(rate))
                }
                None => {
                    let keys = L::max_capacity(part(memory), rate)?;
                    (smallest(spec, keys.max(1), rate, None)?, keys)
                }
            };
            if keys == 0 {
                let one: L = smallest(spec, 1, rate, probes)?;
                return Err(Error::over_limit(memory.as_u64(), one.lines() * 64 * times));
            }
            (layout, FilterInfo::planned(keys, rate))
        }
        FilterSpec { memory: Some(memory), probes: Some(probes), .. } if small.is_none() => {
            let layout = L::for_memory_with_probes(part(memory), probes);
            let layout = layout.map_err(in_parts(memory))?;
            let keys = math::half_full_capacity(layout.bits(), probes);
            (layout, FilterInfo::of_size(Some(keys), |keys| layout.fpr(keys))?)
        }
        FilterSpec { capacity: Some(keys), probes: Some(probes), .. } if small.is_none() => {
            let layout = L::for_bits(math::half_full_bits(keys.max(1), probes), probes)?;
            (layout, FilterInfo::of_size(Some(keys), |keys| layout.fpr(keys))?)
        }
        _ => return Err(unsized_filter()),
    };
    if let Some(limit) = spec.memory {
        check_memory(limit, layout.lines().saturating_mul(64 * times))?;
    }
    Ok((layout, info))
}

/// Returns the smallest layout for a capacity and a rate.
fn smallest<L: Layout>(spec: &FilterSpec, keys: u64, rate: f64, probes: Option<u32>) -> Result<L> {
    match probes {
        Some(probes) => L::for_fpr_with_probes(keys, rate, probes),
        None if spec.least_space => L::for_least_space(keys, rate),
        None => L::for_fpr(keys, rate),
    }
}

/// Returns the memory, or what the lowest rate of the specification needs, if that is less.
fn useful_memory<L: Layout>(
    spec: &FilterSpec,
    keys: u64,
    memory: ByteSize,
    times: u64,
) -> ByteSize {
    let lowest = spec.lowest_fpr.and_then(|rate| L::for_fpr(keys, rate).ok());
    let needed = lowest.map(|layout| layout.lines().saturating_mul(64 * times));
    needed.map_or(memory, |needed| memory.min(ByteSize::bytes(needed)))
}

/// Returns an error if a filter of `needed` bytes is larger than the limit.
pub(crate) fn check_memory(limit: ByteSize, needed: u64) -> Result<()> {
    let limit = limit.as_u64();
    if needed <= limit {
        return Ok(());
    }
    let found = format!("{limit} bytes where {needed} are needed");
    Err(Error::invalid("memory", "enough for keys and rate", found))
}

/// Checks that nothing else determines the size or the probes.
fn check_least_space<L: Layout>(spec: &FilterSpec, foldable_to: Option<L>) -> Result<()> {
    let FilterSpec { capacity, fpr, bits, probes, .. } = spec;
    let excluded = [
        ("bits", bits.map(|bits| bits.to_string())),
        ("probes", probes.map(|probes| probes.to_string())),
        ("layout to fold to", foldable_to.map(|layout| layout.describe())),
        ("capacity", capacity.is_none().then(|| "none".into())),
        ("false-positive rate", fpr.is_none().then(|| "none".into())),
    ];
    for (name, found) in excluded {
        let needed = matches!(name, "capacity" | "false-positive rate");
        let expected =
            if needed { "a number, for the least space" } else { "none beside the least space" };
        if let Some(found) = found {
            return Err(Error::invalid(name, expected, found));
        }
    }
    Ok(())
}

/// Returns the plan of a layout that bits determine. With a rate and no capacity, the capacity is the
/// number of keys at the rate.
fn info_of<L: Layout>(spec: &FilterSpec, layout: L) -> Result<FilterInfo> {
    match (spec.capacity, spec.fpr) {
        (Some(keys), Some(rate)) => {
            check_kept(rate, layout.fpr(keys))?;
            Ok(FilterInfo::planned(keys, rate))
        }
        (None, Some(rate)) => {
            let keys = layout.capacity_at_fpr(rate);
            check_kept(rate, layout.fpr(keys.max(1)))?;
            Ok(FilterInfo::planned(keys, rate))
        }
        (keys, None) => FilterInfo::of_size(keys, |keys| layout.fpr(keys)),
    }
}

fn unsized_filter() -> Error {
    let needed = "capacity and false-positive rate, capacity and memory, or bits and probes";
    Error::unsized_filter(needed)
}

/// Returns the layout of these bits with the lowest rate at `keys` keys.
fn best_for_capacity<L: Layout>(bits: u64, keys: u64) -> Result<L> {
    let ideal = math::optimal_probes(bits as f64 / keys.max(1) as f64);
    let by_fpr = |a: &L, b: &L| a.fpr(keys).total_cmp(&b.fpr(keys));
    layouts_near(bits, ideal)?.into_iter().min_by(by_fpr).ok_or_else(unsized_filter)
}

/// Returns the layout of these bits with the largest capacity at a rate.
fn best_for_fpr<L: Layout>(bits: u64, rate: f64) -> Result<L> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::fpr(rate));
    }
    let ideal = (-rate.log2()).round().max(1.0) as u32;
    // Fewer probes are better at an equal capacity, and `max_by_key` returns the last maximum.
    let layouts = layouts_near(bits, ideal)?.into_iter().rev();
    layouts.max_by_key(|layout: &L| layout.capacity_at_fpr(rate)).ok_or_else(unsized_filter)
}

/// Returns the layouts of these bits whose probes are near the ideal number; not empty.
fn layouts_near<L: Layout>(bits: u64, ideal: u32) -> Result<Vec<L>> {
    let ideal = ideal.clamp(1, L::MAX_PROBES);
    let near = ideal.saturating_sub(4).max(1)..=(ideal + 2).min(L::MAX_PROBES);
    near.map(|probes| L::for_bits(bits, probes)).collect()
}

/// Checks a target rate for a given layout.
fn check_kept(rate: f64, kept: f64) -> Result<()> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::fpr(rate));
    }
    if kept > rate {
        let found = format!("{rate:e}, where bits and probes give {kept:.1e}");
        return Err(Error::invalid(
            "false-positive rate",
            "one that the bits and probes keep",
            found,
        ));
    }
    Ok(())
}

/// Returns the layout with `times` the blocks or bits.
fn multiple<L: Layout>(small: L, times: u64) -> Result<L> {
    let fields = small.fields();
    if times == 0 {
        let needed = small.lines().saturating_mul(64);
        return Err(Error::invalid(
            "size",
            "at least that of the smaller filter",
            format!("less than {needed} bytes"),
        ));
    }
    L::from_fields(Fields { extent: fields.extent.saturating_mul(times), ..fields })
}
