//! The builder of Bloom filters.

use super::layout::Layout;
use super::layout::sealed::Fields;
use super::{Filter, FilterInfo};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::hash::HashSpec;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// Builds a [`Filter`].
///
/// Its size follows from bits and probes, from capacity and rate, or from capacity and memory, in
/// this order of precedence.
///
/// Other parameters restrict the result: `probes` beside capacity and rate or memory selects the best
/// filter with that number of probes; `memory` beside another pair is a limit; `fpr` beside bits and
/// probes must be a rate that they reach.
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
    foldable_to: Option<L>,
    hash: HashSpec,
}

impl<L: Layout> Builder<L> {
    pub(crate) fn new() -> Self {
        let hash = HashSpec::default();
        let (keys, rate, memory, bits, probes) = (None, None, None, None, None);
        Self { keys, rate, memory, bits, probes, foldable_to: None, hash }
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

    /// Sets the smallest number of bits.
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

    /// Sets the hash, which must have 64 bits.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, the hash has 128 bits, or memory allocation fails.
    pub fn build(self) -> Result<Filter<L>> {
        let (layout, info) = self.plan(1)?;
        Filter::empty(layout, self.hash, info)
    }

    /// Returns the layout of a filter whose bits take `times` their memory, without building it.
    pub(crate) fn plan(&self, times: u64) -> Result<(L, FilterInfo)> {
        self.hash.check_words(1)?;
        let small = self.foldable_to;
        if let (Some(small), Some(probes)) = (small, self.probes)
            && u32::from(small.fields().probes) != probes
        {
            return Err(Error::incompatible("probes", small.fields().probes, probes));
        }
        let mut planned = self.keys.unwrap_or(0);
        let (layout, target) = match *self {
            Self { bits: Some(bits), probes: Some(probes), .. } => {
                let layout = match small {
                    Some(small) => multiple(small, bits.div_ceil(small.bits()))?,
                    None => L::for_bits(bits, probes)?,
                };
                let target = match (self.keys, self.rate) {
                    (Some(keys), Some(rate)) => {
                        let kept = layout.fpr(keys);
                        check_kept(rate, kept)?;
                        rate
                    }
                    (None, Some(rate)) => {
                        planned = layout.capacity_at_fpr(rate);
                        check_kept(rate, layout.fpr(planned.max(1)))?;
                        rate
                    }
                    (Some(keys), None) => layout.fpr(keys),
                    (None, None) => 0.0,
                };
                (layout, target)
            }
            Self { bits: Some(_), .. } => {
                return Err(Error::invalid("probes", "a number beside the bits", "none"));
            }
            Self { keys: Some(keys), rate: Some(rate), probes, .. } => {
                let layout = match (small, probes) {
                    (Some(small), _) => small.multiple_for_fpr(keys, rate)?,
                    (None, Some(probes)) => L::for_fpr_with_probes(keys, rate, probes)?,
                    (None, None) => L::for_fpr(keys, rate)?,
                };
                (layout, rate)
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
                (layout, layout.fpr(keys))
            }
            _ => return Err(Error::unsized_filter()),
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
        Ok((layout, FilterInfo { capacity: planned, target_fpr: target, inserted: 0 }))
    }

    /// Returns the hash.
    pub(crate) fn hash_spec(&self) -> HashSpec {
        self.hash
    }
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
