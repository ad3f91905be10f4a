//! Choosing a filter's size, hash and seed.

use super::geometry::Geometry;
use super::geometry::sealed::Fields;
use super::{Facts, Filter};
use crate::error::{Error, Result};
use crate::hash::HashSpec;

/// Makes a filter. Its size follows from bits and probes, from keys and rate, or from keys and
/// memory: the first of these pairs that is complete decides, and `build` says what is missing.
///
/// Nothing is ignored: `probes` beside keys and rate, or keys and memory, gives the best filter with
/// that number of probes; `memory` beside another pair is a limit; a `rate` beside bits and probes
/// must be one that they keep.
///
/// ```
/// use petal::{BloomFilter, HashSpec};
///
/// let small = BloomFilter::builder().keys(1000).rate(0.001).build()?;
/// let fixed = BloomFilter::builder().bits(1 << 20).probes(8).seed(7).build()?;
/// let keyed = BloomFilter::builder()
///     .keys(1000)
///     .memory(4096)
///     .hash(HashSpec::keyed(*b"sixteen secrets!"))
///     .build()?;
/// assert!(small.size_bytes() < 2048 && fixed.size_bytes() == 1 << 17);
/// assert!(keyed.target_rate() < 1e-3);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Builder<G> {
    keys: Option<u64>,
    rate: Option<f64>,
    memory: Option<u64>,
    bits: Option<u64>,
    probes: Option<u32>,
    foldable_to: Option<G>,
    hash: HashSpec,
}

impl<G: Geometry> Builder<G> {
    pub(crate) fn new() -> Self {
        let hash = HashSpec::default();
        let (keys, rate, memory, bits, probes) = (None, None, None, None, None);
        Self { keys, rate, memory, bits, probes, foldable_to: None, hash }
    }

    /// Distinct keys to plan for.
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

    /// The most memory the bits may take, in bytes.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// The least number of bits.
    #[must_use]
    pub fn bits(mut self, bits: u64) -> Self {
        self.bits = Some(bits);
        self
    }

    /// How many bits a key sets.
    #[must_use]
    pub fn probes(mut self, probes: u32) -> Self {
        self.probes = Some(probes);
        self
    }

    /// Makes the filter as large as that shape or a multiple of it, with the same probes: so that
    /// it can be folded to that size, and united with a filter of it. The size is the least that
    /// keeps the rate, the most that the memory allows, or the least with that many bits.
    ///
    /// ```
    /// use petal::BloomFilter;
    ///
    /// let mut day = BloomFilter::with_rate(1_000, 0.01)?;
    /// let month = BloomFilter::builder().keys(40_000).rate(0.01).foldable_to(day.shape());
    /// let mut month = month.build()?;
    /// (day.insert("today"), month.insert("before"));
    /// let both = day.union_folded(&month)?;
    /// assert!(both.contains("today") && both.contains("before"));
    /// assert_eq!(both.shape(), day.shape());
    /// # Ok::<_, petal::Error>(())
    /// ```
    #[must_use]
    pub fn foldable_to(mut self, shape: G) -> Self {
        self.foldable_to = Some(shape);
        self
    }

    /// The default hash with this seed: filters with different seeds err on different keys.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::rapid(seed))
    }

    /// The hash, of 64 bits.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// Makes the filter, empty.
    ///
    /// # Errors
    /// If the size is not given or cannot be, the hash is one of 128 bits, or the memory is refused.
    pub fn build(self) -> Result<Filter<G>> {
        let (shape, facts) = self.plan(1)?;
        Filter::empty(shape, self.hash, facts)
    }

    /// What is to be made, if each bit takes so many times its memory.
    pub(crate) fn plan(&self, times: u64) -> Result<(G, Facts)> {
        self.hash.check_words(1)?;
        let small = self.foldable_to;
        if let (Some(small), Some(probes)) = (small, self.probes)
            && u32::from(small.fields().probes) != probes
        {
            return Err(Error::incompatible("probes", small.fields().probes, probes));
        }
        let mut planned = self.keys.unwrap_or(0);
        let (shape, target) = match *self {
            Self { bits: Some(bits), probes: Some(probes), .. } => {
                let shape = match small {
                    Some(small) => multiple(small, bits.div_ceil(small.bits()))?,
                    None => G::for_bits(bits, probes)?,
                };
                let target = match (self.keys, self.rate) {
                    (Some(keys), Some(rate)) => {
                        let kept = shape.rate(keys);
                        check_kept(rate, kept)?;
                        rate
                    }
                    (None, Some(rate)) => {
                        planned = shape.keys_at_rate(rate);
                        check_kept(rate, shape.rate(planned.max(1)))?;
                        rate
                    }
                    (Some(keys), None) => shape.rate(keys),
                    (None, None) => 0.0,
                };
                (shape, target)
            }
            Self { bits: Some(_), .. } => {
                return Err(Error::invalid("probes", "a number beside the bits", "none"));
            }
            Self { keys: Some(keys), rate: Some(rate), probes, .. } => {
                let shape = match (small, probes) {
                    (Some(small), _) => small.multiple_for_rate(keys, rate)?,
                    (None, Some(probes)) => G::for_rate_with_probes(keys, rate, probes)?,
                    (None, None) => G::for_rate(keys, rate)?,
                };
                (shape, rate)
            }
            Self { keys: Some(keys), memory: Some(bytes), probes, .. } => {
                let part = bytes / times;
                let shape = match (small, probes) {
                    (Some(small), _) => multiple(small, part / 64 * 512 / small.bits()),
                    (None, Some(probes)) => G::for_memory_with_probes(part, probes),
                    (None, None) => G::for_memory(part, keys),
                };
                let shape = shape.map_err(|error| error.in_parts(bytes, times))?;
                (shape, shape.rate(keys))
            }
            _ => return Err(Error::unsized_filter()),
        };
        if let Some(most) = self.memory
            && shape.lines().saturating_mul(64 * times) > most
        {
            let needed = shape.lines().saturating_mul(64 * times);
            return Err(Error::invalid(
                "memory",
                "enough for keys and rate",
                format!("{most} bytes where {needed} are needed"),
            ));
        }
        Ok((shape, Facts { planned, target, inserted: 0 }))
    }

    /// The hash that was chosen.
    pub(crate) fn hash_spec(&self) -> HashSpec {
        self.hash
    }
}

/// A rate that was asked for of a filter whose shape is given.
fn check_kept(rate: f64, kept: f64) -> Result<()> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::rate(rate));
    }
    if kept > rate {
        let found = format!("{rate:e}, where bits and probes give {kept:.1e}");
        return Err(Error::invalid("rate", "one that the bits and probes keep", found));
    }
    Ok(())
}

/// The shape with so many times the blocks or bits.
fn multiple<G: Geometry>(small: G, times: u64) -> Result<G> {
    let fields = small.fields();
    if times == 0 {
        let needed = small.lines().saturating_mul(64);
        return Err(Error::invalid(
            "size",
            "at least that of the smaller filter",
            format!("less than {needed} bytes"),
        ));
    }
    G::from_fields(Fields { extent: fields.extent.saturating_mul(times), ..fields })
}
