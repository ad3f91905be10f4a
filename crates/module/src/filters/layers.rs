//! The layers of a filter, as `BF.DEBUG` replies them.

use petal::{AnyFilter, BloomFilter, Membership, Store};
use petal_interop::redisbloom::LinkPlan;

use super::StoredFilter;

/// One layer of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LayerInfo {
    pub(crate) bytes: u64,
    pub(crate) bits: u64,
    /// Bit positions per item; 0 if the type has none.
    pub(crate) probes: u64,
    /// Bits of the hash.
    pub(crate) hash_bits: u32,
    pub(crate) capacity: u64,
    pub(crate) items: u64,
    /// Target false-positive rate of the layer; 0 if unknown.
    pub(crate) target_fpr: f64,
}

impl LayerInfo {
    fn of_bloom<S: Store>(filter: &BloomFilter<S>) -> Self {
        Self {
            bytes: filter.size_bytes(),
            bits: filter.size_bytes() * 8,
            probes: filter.layout().probes().into(),
            hash_bits: 64,
            capacity: capacity(filter),
            items: filter.inserted(),
            target_fpr: filter.target_fpr(),
        }
    }

    fn of(filter: &dyn Membership) -> Self {
        let parameters = filter.parameters();
        let number =
            |name| parameters.iter().find(|(key, _)| *key == name).map(|(_, number)| *number);
        let target_fpr = filter.target_fpr();
        Self {
            bytes: filter.size_bytes(),
            bits: filter.size_bytes().saturating_mul(8),
            probes: number("probes").unwrap_or(0),
            hash_bits: 64,
            capacity: filter.capacity(),
            items: filter.inserted(),
            target_fpr: if target_fpr.is_finite() { target_fpr } else { 0.0 },
        }
    }
}

/// Returns the capacity of a Bloom filter. A filter without a capacity (`SATURATE`) has that of its
/// size at the target rate.
pub(super) fn capacity<S: Store>(filter: &BloomFilter<S>) -> u64 {
    match filter.capacity() {
        0 if filter.target_fpr() > 0.0 => filter.layout().capacity_at_fpr(filter.target_fpr()),
        capacity => capacity,
    }
}

impl StoredFilter {
    /// Returns whether this is a Bloom filter that accepts items beyond its capacity.
    pub(crate) fn saturates(&self) -> bool {
        let Self::Filter(filter) = self else { return false };
        matches!(&**filter, AnyFilter::Bloom(filter) if filter.capacity() == 0)
    }

    /// Returns the layers, oldest first; one for a filter without layers. Empty for `CF.*` filters
    /// and incomplete imports.
    pub(crate) fn layers(&self) -> Vec<LayerInfo> {
        match self {
            Self::RedisBloom(filter) => {
                let layer = |(plan, items): (LinkPlan, u64)| LayerInfo {
                    bytes: plan.bytes(),
                    bits: plan.bits(),
                    probes: plan.probes().into(),
                    hash_bits: filter.hash_bits(),
                    capacity: plan.capacity(),
                    items,
                    target_fpr: plan.fpr(),
                };
                filter.plans().map(layer).collect()
            }
            Self::Scalable(filter) => {
                filter.layer_filters().map(|layer| LayerInfo::of_bloom(&layer)).collect()
            }
            Self::Filter(filter) => match &**filter {
                AnyFilter::Bloom(filter) => vec![LayerInfo::of_bloom(filter)],
                filter => vec![LayerInfo::of(filter.as_dyn())],
            },
            stored => stored.as_dyn().map(LayerInfo::of).into_iter().collect(),
        }
    }
}
