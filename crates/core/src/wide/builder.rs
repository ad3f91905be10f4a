//! Choosing a wide filter's size and hash.

use super::{WideBloomFilter, half_rate};
use crate::error::{Error, Result};
use crate::filter::Facts;
use crate::hash::HashSpec;
use crate::rate;
use crate::shape::Shape;

/// Makes a wide filter. Its size comes of keys and rate, or of keys and memory; given all three,
/// of keys and rate.
///
/// ```
/// use petal::{HashSpec, WideBloomFilter};
///
/// let keyed = WideBloomFilter::builder()
///     .keys(1000)
///     .rate(1e-15)
///     .hash(HashSpec::wide_keyed(*b"sixteen secrets!"))
///     .build()?;
/// assert!(keyed.expected_rate(1000) <= 1e-15);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WideBuilder {
    keys: Option<u64>,
    rate: Option<f64>,
    memory: Option<u64>,
    hash: HashSpec,
}

impl WideBuilder {
    pub(super) fn new() -> Self {
        Self { keys: None, rate: None, memory: None, hash: HashSpec::wide(0) }
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

    /// The default hash with this seed: filters with different seeds err on different keys.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::wide(seed))
    }

    /// The hash, of 128 bits.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// Makes the filter, empty.
    ///
    /// # Errors
    /// If the size is not given or cannot be, the hash is one of 64 bits, or the memory is
    /// refused.
    pub fn build(self) -> Result<WideBloomFilter> {
        let (shape, facts) = self.plan()?;
        WideBloomFilter::empty(shape, self.hash, facts)
    }

    /// What is to be made: the shape of each half.
    pub(crate) fn plan(&self) -> Result<(Shape, Facts)> {
        let (shape, keys, target) = match *self {
            Self { keys: Some(keys), rate: Some(rate), .. } => {
                (Shape::for_rate(keys, half_rate(keys, rate)?)?, keys, rate)
            }
            Self { keys: Some(keys), memory: Some(bytes), .. } => {
                let shape = Shape::for_memory(bytes / 2, keys);
                let shape = shape.map_err(|error| error.in_parts(bytes, 2))?;
                let rate = rate::wide(keys, shape.blocks(), shape.lanes(), shape.probes());
                (shape, keys, rate)
            }
            _ => return Err(Error::unsized_filter()),
        };
        let needed = 2 * shape.size_bytes();
        if self.memory.is_some_and(|most| needed > most) {
            return Err(Error::invalid(
                "memory",
                "enough for keys and rate",
                format!("less than the {needed} bytes that are needed"),
            ));
        }
        Ok((shape, Facts { planned: keys, target, inserted: 0 }))
    }
}
