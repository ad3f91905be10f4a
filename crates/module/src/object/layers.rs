//! The layers of an object, as `BF.DEBUG` replies them.

use petal::{AnyFilter, BloomFilter, Membership};
use petal_interop::redisbloom::LinkPlan;

use super::Object;

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
    /// The part of the false-positive rate that it may use; 0 if unknown.
    pub(crate) rate: f64,
}

impl LayerInfo {
    fn of_bloom(filter: &BloomFilter) -> Self {
        Self {
            bytes: filter.size_bytes(),
            bits: filter.size_bytes() * 8,
            probes: filter.shape().probes().into(),
            hash_bits: 64,
            capacity: capacity(filter),
            items: filter.inserted(),
            rate: filter.target_rate(),
        }
    }

    fn of(filter: &dyn Membership) -> Self {
        let geometry = filter.geometry();
        let number =
            |name| geometry.iter().find(|(key, _)| *key == name).map(|(_, number)| *number);
        let rate = filter.target_rate();
        Self {
            bytes: filter.size_bytes(),
            bits: filter.size_bytes().saturating_mul(8),
            probes: number("probes").unwrap_or(0),
            hash_bits: 64 * filter.hash_spec().words() as u32,
            capacity: filter.planned_keys(),
            items: filter.inserted(),
            rate: if rate.is_finite() { rate } else { 0.0 },
        }
    }
}

/// Items that a Bloom filter holds at its rate: the planned number, or that of its size if none was
/// planned, as in filters that saturate.
pub(super) fn capacity(filter: &BloomFilter) -> u64 {
    match filter.planned_keys() {
        0 if filter.target_rate() > 0.0 => filter.shape().keys_at_rate(filter.target_rate()),
        planned => planned,
    }
}

impl Object {
    /// Whether it is a Bloom filter that accepts items beyond its capacity.
    pub(crate) fn saturates(&self) -> bool {
        let Self::Filter(filter) = self else { return false };
        matches!(&**filter, AnyFilter::Bloom(filter) if filter.planned_keys() == 0)
    }

    /// The layers, oldest first; a filter without layers is one. Empty for filters of `CF.*` and
    /// for a filter that has not been received completely.
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
                    rate: plan.rate(),
                };
                filter.plans().map(layer).collect()
            }
            Self::Filter(filter) => match &**filter {
                AnyFilter::Scalable(filter) => {
                    filter.layer_filters().map(LayerInfo::of_bloom).collect()
                }
                AnyFilter::Bloom(filter) => vec![LayerInfo::of_bloom(filter)],
                filter => vec![LayerInfo::of(filter.face())],
            },
            object => object.face().map(LayerInfo::of).into_iter().collect(),
        }
    }
}
