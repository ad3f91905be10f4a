//! How a scalable filter grows: which layer comes after which.

use crate::error::{Error, Result};
use crate::filter::{BloomFilter, Facts};
use crate::hash::HashSpec;
use crate::rate;
use crate::shape::Shape;

/// How many times as large as the one before it a layer may be: what servers can be asked for.
const MOST_GROWTH: u64 = 1 << 15;

/// Layers of one filter: a growth of 2 meets the end of 64-bit numbers first.
pub(super) const MOST_LAYERS: u64 = 64;

/// Layers that come after small ones: more of the growth while a filter is little memory anyway,
/// so that it has few layers when it is large.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HeadStart {
    /// The growth after a small layer, where that is more than the plan's own.
    pub(super) factor: u64,
    /// A layer is small if it is for fewer keys than this; 0 if there is no head start.
    pub(super) below: u64,
}

/// The plan of all layers. A proof: the rate is between 0 and 1, there is a key, and no layer is
/// smaller than the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    first: u64,
    rate: f64,
    growth: u64,
    head: HeadStart,
}

impl Plan {
    pub(super) fn new(first: u64, rate: f64, growth: u64, head: HeadStart) -> Result<Self> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::invalid("rate", "between 0 and 1", format!("{rate:?}")));
        }
        if !(1..=MOST_GROWTH).contains(&growth) {
            return Err(Error::invalid("growth", "1 to 32768", growth));
        }
        let HeadStart { factor, below } = head;
        if head != HeadStart::default() && (!(2..=MOST_GROWTH).contains(&factor) || below == 0) {
            let found = format!("{factor} below {below}");
            return Err(Error::invalid("head start", "2 to 32768 below some keys", found));
        }
        Ok(Self { first: first.max(1), rate, growth, head })
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

    pub(super) fn head(&self) -> HeadStart {
        self.head
    }

    /// Keys of the layer after one of so many.
    fn after(&self, keys: u64) -> Option<u64> {
        let HeadStart { factor, below } = self.head;
        let by = if keys < below { self.growth.max(factor) } else { self.growth };
        keys.checked_mul(by)
    }

    /// What is planned for a layer: with so many keys that were new to it, it is full.
    pub(super) fn facts(&self, layer: u32) -> Result<Facts> {
        if u64::from(layer) >= MOST_LAYERS {
            return Err(Error::full(
                "all 64 layers that a filter can have are full",
                "plan for more keys (keys), or larger steps (growth)",
            ));
        }
        let target = self.rate * rate::layer_share(layer);
        let keys = (0..layer).try_fold(self.first, |keys, _| self.after(keys));
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
