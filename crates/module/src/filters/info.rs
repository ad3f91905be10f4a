//! Capacity, size and growth of a filter, for `BF.INFO`.

use petal::AnyFilter;

use super::{CuckooInfo, StoredFilter, layers};

/// The fields of `BF.INFO`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InfoFields {
    pub(crate) capacity: u64,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) layers: u64,
    pub(crate) items: u64,
    /// `None` if the filter does not grow.
    pub(crate) expansion: Option<u64>,
    pub(crate) target_fpr: f64,
}

impl StoredFilter {
    /// Returns the fields of `BF.INFO`.
    pub(crate) fn info(&self) -> InfoFields {
        let size = self.memory_usage();
        if let Self::RedisBloom(filter) = self {
            return InfoFields {
                capacity: filter.capacity(),
                size: filter.size(),
                layers: filter.links(),
                items: filter.len(),
                expansion: filter.growth().map(u64::from),
                target_fpr: filter.fpr(),
            };
        }
        if let Some(filter) = self.as_cuckoo() {
            let CuckooInfo { layers, items, capacity, target_fpr, expansion, .. } = filter.info();
            let expansion = Some(expansion.into()).filter(|growth| *growth > 0);
            return InfoFields { capacity, size, layers, items, expansion, target_fpr };
        }
        let Some(common) = self.as_dyn() else {
            return InfoFields { size, ..InfoFields::default() };
        };
        let (mut capacity, mut layers, mut expansion) = (common.capacity(), 1, None);
        match self {
            Self::Scalable(filter) => {
                capacity = filter.total_capacity();
                (layers, expansion) = (filter.layers().into(), Some(filter.growth()));
            }
            Self::Filter(filter) => {
                if let AnyFilter::Bloom(filter) = &**filter {
                    capacity = layers::capacity(filter);
                }
            }
            _ => {}
        }
        let (items, target_fpr) = (common.inserted(), common.target_fpr());
        InfoFields { capacity, size, layers, items, expansion, target_fpr }
    }

    /// Returns the capacity that the filter can grow to within a memory limit.
    pub(crate) fn capacity_within(&self, memory_limit: u64) -> u64 {
        match self {
            Self::RedisBloom(filter) => filter.capacity_within(memory_limit),
            Self::Scalable(filter) => filter.capacity_within(petal::ByteSize::bytes(memory_limit)),
            _ => self.info().capacity,
        }
    }

    /// Returns the ratio of a layer's false-positive rate to that of the layer before; `None` if
    /// the filter does not grow.
    pub(crate) fn tightening(&self) -> Option<f64> {
        match self {
            Self::RedisBloom(filter) => {
                filter.growth().map(|_| petal_interop::redisbloom::TIGHTENING)
            }
            Self::Scalable(filter) => Some(filter.layer_share(1) / filter.layer_share(0)),
            _ => None,
        }
    }
}
