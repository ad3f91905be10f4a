//! The specification of a new filter: everything that a replica needs to create an identical one.

use petal::{
    AnyFilter, BlockedLayout, BloomFilter, CountingBloomFilter, HashSpec, ScalableBloomFilter,
    VectorQuotientFilter, VectorQuotientLayout, WindowedBloomFilter,
};

use super::StoredFilter;
use super::quotient_chain::{ChainParams, QuotientChain};
use crate::error::{FilterError, MAX_BYTES};
use crate::redisbloom::{self, CuckooParams};

/// Growth factor of layers below a capacity: `(factor, capacity)`. A filter that starts at 100 keys
/// and receives millions then has few layers.
const HEAD_START: (u64, u64) = (4, 1 << 14);
/// Growth factor of layers with `EXPANSION 1`, at every capacity: each layer is twice as large as
/// the last.
const DOUBLING: (u64, u64) = (2, u64::MAX);
/// With a given capacity, 1/n of the false-positive rate is reserved for the layers after the
/// first: `(fpr, n)` for rates from `fpr` up, [`SMALL_FPR_SHARE`] for lower ones. With these values
/// the first layer is not larger than RedisBloom's where that is possible (docs/guides/redis.md,
/// "Filter sizes").
const LARGE_FPR_SHARE: (f64, u64) = (0.004, 4);
const SMALL_FPR_SHARE: u64 = 64;

/// Maximum expansion: of the settings, of `CF.*`, and of petal's layout.
pub(crate) const MAX_EXPANSION: u16 = 32768;

/// Bits of a counter.
const COUNTER_BITS: u64 = 4;

/// The specification of a new filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FilterSpec {
    pub(crate) kind: FilterKind,
    /// The false-positive rate.
    pub(crate) fpr: f64,
    /// The capacity; of the first layer if the filter grows.
    pub(crate) capacity: u64,
    /// The key of the hash; unused in RedisBloom's layout.
    pub(crate) seed: [u8; 16],
}

/// Type and layout of a filter, with the parameters of that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterKind {
    /// petal's Bloom filter; of fixed size without `growth`.
    Bloom { growth: Option<Growth> },
    /// petal's Bloom filter of fixed size that accepts keys beyond its capacity.
    Saturating,
    /// RedisBloom's Bloom filter; of fixed size without `growth`.
    RedisBloom { growth: Option<u64> },
    /// petal's counting Bloom filter.
    Counting,
    /// petal's vector quotient filter.
    VectorQuotient,
    /// petal's windowed Bloom filter: of the last milliseconds, or of the last keys.
    Window { milliseconds: Option<u64>, generations: u32 },
    /// petal's `CF.*` filter. An expansion of 0 means fixed size; `CF.INFO` reports the other
    /// parameters.
    Cuckoo { expansion: u16, bucket_size: u16, iterations: u16 },
    /// RedisBloom's cuckoo filter. An expansion of 0 means fixed size.
    RedisCuckoo { expansion: u16, bucket_size: u16, iterations: u16 },
}

/// How petal's Bloom filter grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// The capacity of a layer divided by that of the layer before.
    pub(crate) factor: u64,
    /// The layers after the first share 1/n of the false-positive rate. 0: the default series,
    /// whose first layer has a quarter of the rate.
    pub(crate) share: u64,
}

impl Growth {
    /// Returns growth from a default capacity.
    pub(crate) fn by(factor: u64) -> Self {
        Self { factor, share: 0 }
    }

    /// Returns growth from a given capacity, whose layer gets most of the false-positive rate.
    pub(crate) fn from_capacity(factor: u64, fpr: f64) -> Self {
        let (min_fpr, share) = LARGE_FPR_SHARE;
        Self { factor, share: if fpr >= min_fpr { share } else { SMALL_FPR_SHARE } }
    }

    /// Returns the first layer's share of the false-positive rate.
    fn first_layer_share(self) -> f64 {
        match self.share {
            0 => petal::math::layer_share(0),
            parts => petal::math::growth_layer_share(0, parts),
        }
    }
}

impl FilterSpec {
    /// Returns whether `BF.*` and `PETAL.SEEN` can insert into the filter.
    pub(crate) fn accepts_bf_inserts(&self) -> bool {
        !matches!(self.kind, FilterKind::Cuckoo { .. } | FilterKind::RedisCuckoo { .. })
    }

    /// Returns a lower bound of the filter's size, to reject huge filters before the allocation. 0
    /// for types whose constructors check the size.
    fn min_bytes(&self) -> Result<u64, FilterError> {
        let (fpr, bits_per_bit) = match self.kind {
            FilterKind::RedisBloom { .. }
            | FilterKind::RedisCuckoo { .. }
            | FilterKind::Cuckoo { .. } => return Ok(0),
            FilterKind::Bloom { growth: Some(growth) } => {
                (self.fpr * growth.first_layer_share(), 1)
            }
            FilterKind::VectorQuotient => {
                return Ok(VectorQuotientLayout::for_fpr(self.capacity, self.fpr)?.size_bytes());
            }
            FilterKind::Counting => (self.fpr, COUNTER_BITS),
            FilterKind::Bloom { growth: None }
            | FilterKind::Saturating
            | FilterKind::Window { .. } => (self.fpr, 1),
        };
        let layout = BlockedLayout::for_fpr(self.capacity, fpr)?;
        Ok(layout.size_bytes().saturating_mul(bits_per_bit))
    }

    /// Builds the filter within a memory limit.
    pub(crate) fn build(&self, memory_limit: u64) -> Result<StoredFilter, FilterError> {
        // Every useful rate needs at least one bit per key.
        if self.capacity / 8 > MAX_BYTES {
            return Err(FilterError::TooLarge);
        }
        let min_bytes = self.min_bytes()?;
        if min_bytes > MAX_BYTES {
            return Err(FilterError::TooLarge);
        }
        if min_bytes > memory_limit {
            return Err(FilterError::MemoryLimit);
        }
        let (capacity, fpr) = (self.capacity, self.fpr);
        let hash = HashSpec::keyed(self.seed);
        let filter = match self.kind {
            FilterKind::RedisBloom { growth } => {
                let growth = growth.map(|growth| u32::try_from(growth).unwrap_or(u32::MAX));
                return Ok(redisbloom::Bloom::reserve(capacity, fpr, growth, memory_limit)?.into());
            }
            FilterKind::Bloom { growth: None } => {
                let builder = BloomFilter::builder().capacity(capacity).fpr(fpr);
                AnyFilter::Bloom(builder.hash(hash).build()?)
            }
            FilterKind::Saturating => {
                let builder = BloomFilter::builder().capacity(capacity).fpr(fpr);
                let mut filter = builder.hash(hash).build()?;
                filter.clear_capacity();
                AnyFilter::Bloom(filter)
            }
            FilterKind::Bloom { growth: Some(growth) } if growth.factor > MAX_EXPANSION.into() => {
                return Err(FilterError::ExpansionTooLarge);
            }
            FilterKind::Bloom { growth: Some(growth) } => {
                let builder = ScalableBloomFilter::builder().capacity(capacity).fpr(fpr);
                // With layers of equal size a filter would soon reach the maximum of layers.
                let (factor, below) = if growth.factor == 1 { DOUBLING } else { HEAD_START };
                let builder = builder.growth(growth.factor).growth_share(growth.share);
                let builder = builder.head_start(factor, below);
                AnyFilter::Scalable(builder.hash(hash).build()?)
            }
            FilterKind::Counting => {
                let builder = CountingBloomFilter::builder().capacity(capacity).fpr(fpr);
                AnyFilter::Counting(builder.width(COUNTER_BITS as u32).hash(hash).build()?)
            }
            FilterKind::VectorQuotient => {
                let builder = VectorQuotientFilter::builder().capacity(capacity).fpr(fpr);
                AnyFilter::VectorQuotient(builder.hash(hash).build()?)
            }
            FilterKind::Window { milliseconds, generations } => {
                let mut builder = WindowedBloomFilter::builder().capacity(capacity).fpr(fpr);
                if let Some(time) = milliseconds {
                    builder = builder.time(time);
                }
                AnyFilter::Windowed(builder.generations(generations).hash(hash).build()?)
            }
            FilterKind::RedisCuckoo { expansion, bucket_size, iterations } => {
                let params = CuckooParams::new(capacity, bucket_size, iterations, expansion)?;
                return Ok(redisbloom::Cuckoo::new(params, memory_limit)?.into());
            }
            FilterKind::Cuckoo { expansion, bucket_size, iterations } => {
                let params = ChainParams { fpr, expansion, bucket_size, iterations };
                let chain = QuotientChain::new(params, capacity, hash, memory_limit)?;
                return Ok(StoredFilter::QuotientChain(Box::new(chain)));
            }
        };
        let stored = StoredFilter::from(filter);
        if stored.memory_usage() > memory_limit {
            return Err(FilterError::MemoryLimit);
        }
        Ok(stored)
    }
}
