//! The builder of wide filters.

use super::{WideBloomFilter, half_fpr};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::filter::FilterInfo;
use crate::hash::HashSpec;
use crate::layout::BlockedLayout;
use crate::math;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// What determines the size.
const NEEDED: &str = "capacity and false-positive rate, or capacity and memory";

/// Builds a [`WideBloomFilter`].
///
/// Its size follows from capacity and rate, or from capacity and memory; with all three, the memory
/// is a limit.
///
/// ```
/// use petal::{HashSpec, Membership, WideBloomFilter};
///
/// let keyed = WideBloomFilter::builder()
///     .capacity(1000)
///     .fpr(1e-15)
///     .hash(HashSpec::wide_keyed(*b"sixteen secrets!"))
///     .build()?;
/// assert!(keyed.expected_fpr(1000) <= 1e-15);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WideBuilder {
    keys: Option<u64>,
    rate: Option<f64>,
    memory: Option<ByteSize>,
    hash: HashSpec,
}

impl WideBuilder {
    pub(super) fn new() -> Self {
        Self { keys: None, rate: None, memory: None, hash: HashSpec::wide(0) }
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

    /// Sets the seed of the default hash. False positives of different seeds are independent.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::wide(seed))
    }

    /// Sets the hash, which must have 128 bits.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// Creates an empty filter.
    ///
    /// # Errors
    /// If the size is missing or invalid, the hash has 64 bits, or memory allocation fails.
    pub fn build(self) -> Result<WideBloomFilter> {
        let (layout, info) = self.plan()?;
        WideBloomFilter::empty(layout, self.hash, info)
    }

    /// Returns the layout of each half, without building the filter.
    pub(crate) fn plan(&self) -> Result<(BlockedLayout, FilterInfo)> {
        let (layout, info) = match *self {
            Self { keys: Some(keys), rate: Some(rate), .. } => {
                let layout = BlockedLayout::for_fpr(keys, half_fpr(keys, rate)?)?;
                (layout, FilterInfo::planned(keys, rate))
            }
            Self { keys: Some(keys), memory: Some(memory), .. } => {
                let bytes = memory.as_u64();
                let layout = BlockedLayout::for_memory(keys, ByteSize::bytes(bytes / 2));
                let layout = layout.map_err(|error| error.in_parts(bytes, 2))?;
                let rate =
                    |keys| math::wide_fpr(keys, layout.blocks(), layout.lanes(), layout.probes());
                (layout, FilterInfo::of_size(Some(keys), rate)?)
            }
            _ => return Err(Error::unsized_filter(NEEDED)),
        };
        let needed = 2 * layout.size_bytes();
        if self.memory.is_some_and(|most| needed > most.as_u64()) {
            return Err(Error::invalid(
                "memory",
                "enough for keys and rate",
                format!("less than the {needed} bytes that are needed"),
            ));
        }
        Ok((layout, info))
    }
}
