//! The builder of Bloom filters.

use super::layout::Layout;
use super::layout::sealed::Fields;
use super::{Filter, FilterInfo};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::hash::HashSpec;
use crate::math;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// Builds a [`Filter`].
///
/// Its size follows from bits, from capacity and rate, or from capacity and memory, in this order of
/// precedence. Beside bits the builder needs probes, capacity or rate; without probes it chooses the
/// best number of them for the capacity or the rate.
///
/// Other parameters restrict the result: `probes` beside capacity and rate or memory selects the best
/// filter with that number of probes; `memory` beside another pair is a limit; `fpr` beside bits must
/// be a rate that they reach.
///
/// Bits and probes alone are no plan: capacity and target rate of the filter are then 0. With a
/// capacity beside them, the target is the rate at that capacity; with a rate, the capacity is the
/// number of keys at which the filter reaches it.
///
/// ```
/// use petal::{BloomFilter, ByteSize, HashSpec, Membership};
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
    keys: Option<u64>,
    rate: Option<f64>,
    memory: Option<ByteSize>,
    bits: Option<u64>,
    probes: Option<u32>,
    least_space: bool,
    foldable_to: Option<L>,
    hash: HashSpec,
}

impl<L: Layout> Builder<L> {
    pub(crate) fn new() -> Self {
        let hash = HashSpec::default();
        let (keys, rate, memory, bits, probes) = (None, None, None, None, None);
        let (least_space, foldable_to) = (false, None);
        Self { keys, rate, memory, bits, probes, least_space, foldable_to, hash }
    }

    /// Sets the capacity in distinct keys.
    #[must_use]
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.keys = Some(capacity);
        self
    }

    /// Sets the target false-positive rate at the capacity.
    #[must_use]
    pub fn fpr(mut self, fpr: f64) -> Self {
        self.rate = Some(fpr);
        self
    }

    /// Sets the largest amount of memory for the bits.
    #[must_use]
    pub fn memory(mut self, memory: ByteSize) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Sets the number of bits; a blocked filter rounds it up to whole blocks.
    #[must_use]
    pub fn bits(mut self, bits: u64) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Sets the number of bits of a key.
    #[must_use]
    pub fn probes(mut self, probes: u32) -> Self {
        self.probes = Some(probes);
        self
    }

    /// Chooses the fewest bits that keep the rate at the capacity; by default a blocked filter may take
    /// some more where that is faster. At 1 % it saves 2 % of the space, at 0.1 % 4 %, and a key takes
    /// one and a half to two times the time. A classic filter always has the fewest bits.
    ///
    /// Needs a capacity and a rate, and excludes bits, probes and [`foldable_to`](Self::foldable_to).
    ///
    /// ```
    /// use petal::{BloomFilter, Membership};
    ///
    /// let small = BloomFilter::builder().capacity(1_000_000).fpr(0.001).least_space(true).build()?;
    /// assert!(small.size_bytes() * 8 < 15_100_000);
    /// # Ok::<_, petal::Error>(())
    /// ```
    #[must_use]
    pub fn least_space(mut self, least_space: bool) -> Self {
        self.least_space = least_space;
        self
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

    /// Sets the seed of the default hash. False positives of different seeds are independent.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::rapid(seed))
    }

    /// Sets the hash.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, or memory allocation fails.
    pub fn build(self) -> Result<Filter<L>> {
        let (layout, info) = self.plan(1)?;
        Filter::empty(layout, self.hash, info)
    }

    /// Returns the layout of a filter whose bits take `times` their memory, without building it.
    pub(crate) fn plan(&self, times: u64) -> Result<(L, FilterInfo)> {
        let small = self.foldable_to;
        if let (Some(small), Some(probes)) = (small, self.probes)
            && u32::from(small.fields().probes) != probes
        {
            return Err(Error::incompatible("probes", small.fields().probes, probes));
        }
        if self.least_space {
            self.check_least_space()?;
        }
        let (layout, info) = match *self {
            Self { bits: Some(bits), probes: Some(probes), .. } => {
                let layout = match small {
                    Some(small) => multiple(small, bits.div_ceil(small.bits()))?,
                    None => L::for_bits(bits, probes)?,
                };
                (layout, self.info_of(layout)?)
            }
            Self { bits: Some(bits), .. } => {
                let layout = match (small, self.keys, self.rate) {
                    (Some(small), ..) => multiple(small, bits.div_ceil(small.bits()))?,
                    (None, Some(keys), _) => best_for_capacity(bits, keys)?,
                    (None, None, Some(rate)) => best_for_fpr(bits, rate)?,
                    (None, None, None) => {
                        let expected = "a number, or a capacity or rate, beside the bits";
                        return Err(Error::invalid("probes", expected, "none"));
                    }
                };
                (layout, self.info_of(layout)?)
            }
            Self { keys: Some(keys), rate: Some(rate), probes, .. } => {
                let layout = match (small, probes) {
                    (Some(small), _) => small.multiple_for_fpr(keys, rate)?,
                    (None, Some(probes)) => L::for_fpr_with_probes(keys, rate, probes)?,
                    (None, None) if self.least_space => L::for_least_space(keys, rate)?,
                    (None, None) => L::for_fpr(keys, rate)?,
                };
                (layout, FilterInfo::planned(keys, rate))
            }
            Self { keys: Some(keys), memory: Some(memory), probes, .. } => {
                let bytes = memory.as_u64();
                let part = bytes / times;
                let layout = match (small, probes) {
                    (Some(small), _) => multiple(small, part / 64 * 512 / small.bits()),
                    (None, Some(probes)) => {
                        L::for_memory_with_probes(ByteSize::bytes(part), probes)
                    }
                    (None, None) => L::for_memory(keys, ByteSize::bytes(part)),
                };
                let layout = layout.map_err(|error| error.in_parts(bytes, times))?;
                (layout, FilterInfo::of_size(Some(keys), |keys| layout.fpr(keys))?)
            }
            _ => return Err(unsized_filter()),
        };
        if let Some(most) = self.memory.map(ByteSize::as_u64)
            && layout.lines().saturating_mul(64 * times) > most
        {
            let needed = layout.lines().saturating_mul(64 * times);
            return Err(Error::invalid(
                "memory",
                "enough for keys and rate",
                format!("{most} bytes where {needed} are needed"),
            ));
        }
        Ok((layout, info))
    }

    /// Checks that nothing else determines the size or the probes.
    fn check_least_space(&self) -> Result<()> {
        let Self { keys, rate, bits, probes, foldable_to, .. } = self;
        let excluded = [
            ("bits", bits.map(|bits| bits.to_string())),
            ("probes", probes.map(|probes| probes.to_string())),
            ("layout to fold to", foldable_to.map(|layout| layout.describe())),
            ("capacity", keys.is_none().then(|| "none".into())),
            ("false-positive rate", rate.is_none().then(|| "none".into())),
        ];
        for (name, found) in excluded {
            let needed = matches!(name, "capacity" | "false-positive rate");
            let expected = if needed {
                "a number, for the least space"
            } else {
                "none beside the least space"
            };
            if let Some(found) = found {
                return Err(Error::invalid(name, expected, found));
            }
        }
        Ok(())
    }

    /// Returns the plan of a layout that bits determine. With a rate and no capacity, the capacity is the
    /// number of keys at the rate.
    fn info_of(&self, layout: L) -> Result<FilterInfo> {
        match (self.keys, self.rate) {
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

    /// Returns the hash.
    pub(crate) fn hash_spec(&self) -> HashSpec {
        self.hash
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
