//! The specification of a new filter: everything that a replica needs to create an identical one.

use petal::{AnyFilter, FilterType, HashSpec};

use super::StoredFilter;
use super::quotient_chain::{ChainParams, QuotientChain};
use crate::error::{FilterError, MAX_BYTES};
use crate::redisbloom::{self, CuckooParams};

/// Growth factor of layers with `EXPANSION 1`, at every capacity: each layer is twice as large as
/// the last.
const DOUBLING: (u64, u64) = (2, u64::MAX);
/// With a given capacity, 1/n of the false-positive rate is reserved for the layers after the
/// first: `(fpr, n)` for rates from `fpr` up, [`SMALL_FPR_SHARE`] for lower ones. With these values
/// the first layer is not larger than RedisBloom's at rates from `fpr` up, and 2 % larger at 0.01 %
/// (docs/guides/redis.md, "Filter sizes").
const LARGE_FPR_SHARE: (f64, u64) = (0.0005, 4);
const SMALL_FPR_SHARE: u64 = 8;

/// Maximum expansion: of the settings, of `CF.*`, and of petal's layout.
pub(crate) const MAX_EXPANSION: u16 = 32768;

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
}

impl FilterSpec {
    /// Returns whether `BF.*` and `PETAL.SEEN` can insert into the filter.
    pub(crate) fn accepts_bf_inserts(&self) -> bool {
        !matches!(self.kind, FilterKind::Cuckoo { .. } | FilterKind::RedisCuckoo { .. })
    }

    /// Builds the filter within a memory limit.
    pub(crate) fn build(&self, memory_limit: u64) -> Result<StoredFilter, FilterError> {
        let Self { fpr, capacity, .. } = *self;
        // Every useful rate needs at least one bit per key.
        if capacity / 8 > MAX_BYTES {
            return Err(FilterError::TooLarge);
        }
        let filter_type = match self.kind {
            FilterKind::Bloom { growth: None } | FilterKind::Saturating => FilterType::Bloom,
            FilterKind::Bloom { growth: Some(_) } => FilterType::Scalable,
            FilterKind::Counting => FilterType::Counting,
            FilterKind::VectorQuotient => FilterType::VectorQuotient,
            FilterKind::Window { .. } => FilterType::Windowed,
            FilterKind::RedisBloom { growth } => {
                let growth = growth.map(|growth| u32::try_from(growth).unwrap_or(u32::MAX));
                return Ok(redisbloom::Bloom::reserve(capacity, fpr, growth, memory_limit)?.into());
            }
            FilterKind::RedisCuckoo { expansion, bucket_size, iterations } => {
                let params = CuckooParams::new(capacity, bucket_size, iterations, expansion)?;
                return Ok(redisbloom::Cuckoo::new(params, memory_limit)?.into());
            }
            FilterKind::Cuckoo { expansion, bucket_size, iterations } => {
                let params = ChainParams { fpr, expansion, bucket_size, iterations };
                let hash = HashSpec::keyed(self.seed);
                let chain = QuotientChain::new(params, capacity, hash, memory_limit)?;
                return Ok(StoredFilter::QuotientChain(Box::new(chain)));
            }
        };
        let plan = self.library_spec(filter_type)?.plan()?;
        if plan.size_bytes() > MAX_BYTES {
            return Err(FilterError::TooLarge);
        }
        if plan.size_bytes() > memory_limit {
            return Err(FilterError::MemoryLimit);
        }
        let mut filter = plan.build()?;
        if let (FilterKind::Saturating, AnyFilter::Bloom(filter)) = (self.kind, &mut filter) {
            filter.clear_capacity();
        }
        let stored = StoredFilter::from(filter);
        if stored.memory_usage() > memory_limit {
            return Err(FilterError::MemoryLimit);
        }
        Ok(stored)
    }

    /// Returns the library's specification of a filter in petal's layout.
    fn library_spec(&self, filter_type: FilterType) -> Result<petal::FilterSpec, FilterError> {
        let mut spec = petal::FilterSpec::new(filter_type);
        (spec.capacity, spec.fpr) = (Some(self.capacity), Some(self.fpr));
        spec.hash = HashSpec::keyed(self.seed);
        match self.kind {
            FilterKind::Bloom { growth: Some(growth) } if growth.factor > MAX_EXPANSION.into() => {
                return Err(FilterError::ExpansionTooLarge);
            }
            FilterKind::Bloom { growth: Some(Growth { factor, share }) } => {
                // With layers of equal size a filter would soon reach the maximum of layers.
                let head_start = Some(DOUBLING).filter(|_| factor == 1);
                let share = Some(share).filter(|parts| *parts > 0);
                spec.growth = petal::Growth { factor, head_start, share };
            }
            FilterKind::Window { milliseconds, generations } => {
                (spec.window, spec.generations) = (milliseconds, generations);
            }
            _ => {}
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use petal_testkit::size_requests::size_requests;

    use super::*;

    /// A reserved filter in petal's layout has the numbers of the library's plan.
    #[test]
    fn reserved_filters_equal_the_plans_of_the_library() {
        let window = FilterKind::Window { milliseconds: None, generations: 4 };
        let kinds = [
            ("bloom", FilterKind::Bloom { growth: None }),
            ("counting", FilterKind::Counting),
            ("vector-quotient", FilterKind::VectorQuotient),
            ("windowed", window),
        ];
        let mut reserved = 0;
        for request in size_requests(300) {
            let kind = kinds.iter().find(|(name, _)| *name == request.name);
            let (Some((name, kind)), Some(capacity), Some(fpr)) =
                (kind, request.capacity, request.fpr)
            else {
                continue;
            };
            if request.probes.is_some() {
                continue;
            }
            let filter_type = name.parse().unwrap();
            let mut spec = petal::FilterSpec::new(filter_type);
            (spec.capacity, spec.fpr) = (Some(capacity), Some(fpr));
            let built = FilterSpec { kind: *kind, fpr, capacity, seed: [1; 16] }.build(1 << 24);
            match (spec.plan(), built) {
                (Ok(plan), Ok(built)) => {
                    let built = built.as_dyn().unwrap();
                    assert_eq!(built.size_bytes(), plan.size_bytes(), "{request:?}");
                    assert_eq!(built.expected_fpr(capacity), plan.expected_fpr(capacity));
                    reserved += 1;
                }
                (Ok(plan), Err(error)) => {
                    assert_eq!(error, FilterError::MemoryLimit, "{request:?}");
                    assert!(plan.size_bytes() + 10_000 > 1 << 24, "{request:?}");
                }
                (Err(_), built) => assert!(built.is_err(), "{request:?}"),
            }
        }
        assert!(reserved > 20, "{reserved}");
    }
}
