//! How a scalable filter grows: which layer comes after which.

use crate::error::{Error, Result};
use crate::filter::{BloomFilter, Facts};
use crate::hash::HashSpec;
use crate::rate;
use crate::shape::Shape;

/// How much larger a layer may be than the one before it.
const GROWTHS: std::ops::RangeInclusive<u64> = 2..=4;

/// Layers of one filter: far more than keys of 64 bits can fill.
pub(super) const MOST_LAYERS: u64 = 64;

/// The plan of all layers. A proof: the rate is between 0 and 1, there is a key, and each layer is
/// larger than the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    first: u64,
    rate: f64,
    growth: u64,
}

impl Plan {
    pub(super) fn new(first: u64, rate: f64, growth: u64) -> Result<Self> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::invalid("rate", "between 0 and 1", format!("{rate:?}")));
        }
        if !GROWTHS.contains(&growth) {
            return Err(Error::invalid("growth", "2 to 4", growth));
        }
        Ok(Self { first: first.max(1), rate, growth })
    }

    /// Keys of the first layer.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The rate that all layers together keep.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn growth(&self) -> u64 {
        self.growth
    }

    /// What is planned for a layer: with so many keys that were new to it, it is full.
    pub(super) fn facts(&self, layer: u32) -> Result<Facts> {
        let target = self.rate * rate::layer_share(layer);
        let keys = self.growth.checked_pow(layer).and_then(|by| by.checked_mul(self.first));
        let floor = rate::hash_floor(u64::MAX);
        let planned = keys.ok_or_else(|| Error::unattainable(u64::MAX, target, floor))?;
        Ok(Facts { planned, target, inserted: 0 })
    }

    /// The shape of a layer: it keeps its part of the rate until it is full.
    pub(super) fn shape(&self, layer: u32) -> Result<Shape> {
        let Facts { planned, target, .. } = self.facts(layer)?;
        Shape::for_new_keys(planned, target)
    }

    /// A layer, empty.
    pub(super) fn layer(&self, layer: u32, hash: HashSpec) -> Result<BloomFilter> {
        BloomFilter::empty(self.shape(layer)?, hash, self.facts(layer)?)
    }
}
