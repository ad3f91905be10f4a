//! The parameters of a cuckoo filter, and the sizes of its layers.

use crate::error::{FilterError, MAX_BYTES};

/// Maximum size of a layer. RedisBloom computes slot numbers with 32 bits, except when it moves
/// fingerprints, so it loses keys in larger layers.
const MAX_LAYER_BYTES: u64 = 1 << 32;
/// The parameters of encodings without these fields.
pub(super) const DEFAULTS: CuckooParams =
    CuckooParams { buckets: 0, bucket_size: 2, iterations: 20, expansion: 1 };

/// The parameters of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CuckooParams {
    /// Buckets of the first layer, a power of two.
    pub(crate) buckets: u64,
    /// Slots per bucket, 1 to 255.
    pub(crate) bucket_size: u16,
    /// Maximum number of fingerprints that an insert moves.
    pub(crate) iterations: u16,
    /// The buckets of a layer divided by those of the layer before, a power of two; 0: the filter
    /// does not grow.
    pub(crate) expansion: u16,
}

impl CuckooParams {
    /// Returns the parameters for the arguments of `CF.RESERVE`.
    pub(crate) fn new(
        capacity: u64,
        bucket_size: u16,
        iterations: u16,
        expansion: u16,
    ) -> Result<Self, FilterError> {
        let buckets = (capacity / u64::from(bucket_size.max(1))).max(1);
        let buckets = buckets.checked_next_power_of_two().ok_or(FilterError::OutOfMemory)?;
        let expansion = if expansion == 0 { 0 } else { expansion.next_power_of_two() };
        Self { buckets, bucket_size, iterations, expansion }.checked()
    }

    pub(super) fn checked(self) -> Result<Self, FilterError> {
        let valid = self.buckets.is_power_of_two()
            && (1..=255).contains(&self.bucket_size)
            && self.iterations > 0
            && (self.expansion == 0 || self.expansion.is_power_of_two());
        if valid { Ok(self) } else { FilterError::malformed("invalid bucket parameters") }
    }

    /// Returns the number of buckets of a layer; `None` on overflow.
    pub(super) fn buckets_of(&self, layer: u64) -> Option<u64> {
        let doublings = u64::from(self.expansion.max(1).trailing_zeros()).checked_mul(layer)?;
        let doublings = u32::try_from(doublings).ok().filter(|doublings| *doublings < 64)?;
        self.buckets.checked_mul(1 << doublings)
    }

    /// Returns the size of a layer; `None` if it exceeds [`MAX_LAYER_BYTES`].
    pub(super) fn bytes_of(&self, layer: u64) -> Option<u64> {
        let bytes = self.buckets_of(layer)?.checked_mul(self.bucket_size.into())?;
        Some(bytes).filter(|bytes| *bytes <= MAX_LAYER_BYTES)
    }

    /// Returns the memory with one more layer, if it is within the limit.
    pub(super) fn check_layer(
        &self,
        total: u64,
        layer: u64,
        overhead: u64,
        memory_limit: u64,
    ) -> Result<u64, FilterError> {
        let slots = self.buckets_of(layer).and_then(|n| n.checked_mul(self.bucket_size.into()));
        let slots = slots.filter(|slots| *slots <= MAX_BYTES).ok_or(FilterError::TooLarge)?;
        let total = total.saturating_add(slots).saturating_add(overhead);
        if total > memory_limit {
            Err(FilterError::MemoryLimit)
        } else if slots > MAX_LAYER_BYTES {
            Err(FilterError::LayerTooLarge)
        } else {
            Ok(total)
        }
    }
}
