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

/// The least and the most parts of the rate of which one is kept for the layers after the first.
const GROWTH_SHARES: std::ops::RangeInclusive<u64> = 2..=1 << 16;

/// The plan of all layers. A proof: the rate is between 0 and 1, there is a key, and no layer is
/// smaller than the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    first: u64,
    rate: f64,
    growth: u64,
    head: HeadStart,
    /// The layers after the first share 1 / this of the rate; 0: all layers share it by
    /// [`rate::layer_share`].
    growth_share: u64,
}

impl Plan {
    pub(super) fn new(first: u64, rate: f64, growth: u64, head: HeadStart) -> Result<Self> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::rate(rate));
        }
        if !(1..=MOST_GROWTH).contains(&growth) {
            return Err(Error::invalid("growth", "1 to 32768", growth));
        }
        let HeadStart { factor, below } = head;
        if head != HeadStart::default() && (!(2..=MOST_GROWTH).contains(&factor) || below == 0) {
            let found = format!("{factor} below {below}");
            return Err(Error::invalid("head start", "2 to 32768 below some keys", found));
        }
        Ok(Self { first: first.max(1), rate, growth, head, growth_share: 0 })
    }

    /// The plan in which the layers after the first share 1 / `parts` of the rate; 0 for the usual
    /// series.
    pub(super) fn with_growth_share(self, parts: u64) -> Result<Self> {
        if parts != 0 && !GROWTH_SHARES.contains(&parts) {
            return Err(Error::invalid("growth share", "one of 2 to 65536 parts", parts));
        }
        Ok(Self { growth_share: parts, ..self })
    }

    /// Keys of the first layer.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The rate that all layers together keep.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn growth(&self) -> u64 {
        self.growth
    }

    pub(super) fn head(&self) -> HeadStart {
        self.head
    }

    pub(super) fn growth_share(&self) -> u64 {
        self.growth_share
    }

    /// The part of the rate that a layer may use.
    pub(super) fn share(&self, layer: u32) -> f64 {
        match self.growth_share {
            0 => rate::layer_share(layer),
            parts => rate::growth_layer_share(layer, parts),
        }
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
        let target = self.rate * self.share(layer);
        let keys = (0..layer).try_fold(self.first, |keys, _| self.after(keys));
        let floor = rate::hash_floor(u64::MAX);
        let planned = keys.ok_or_else(|| Error::unattainable(u64::MAX, target, floor))?;
        Ok(Facts { planned, target, inserted: 0 })
    }

    /// The shape of a layer: it keeps its part of the rate until it is full.
    pub(crate) fn shape(&self, layer: u32) -> Result<Shape> {
        let Facts { planned, target, .. } = self.facts(layer)?;
        Shape::for_new_keys(planned, target)
    }

    /// The false-positive rate with `keys` distinct keys; `there` returns the shapes of layers that
    /// exist.
    pub(crate) fn expected_rate(&self, keys: u64, there: impl Fn(u32) -> Option<Shape>) -> f64 {
        let (mut left, mut none) = (keys as f64, 1.0);
        for layer in 0..MOST_LAYERS as u32 {
            let Some(shape) = there(layer).or_else(|| self.shape(layer).ok()) else {
                // It does not come to hold so many.
                return 1.0;
            };
            let planned = self.facts(layer).map_or(0, |facts| facts.planned);
            // Of the keys that are left, the older layers take a few for theirs.
            let given = rate::distinct(planned, |keys| shape.rate(keys)).min(left * none);
            left -= given / none;
            none *= 1.0 - shape.rate(given.round() as u64);
            if left < 0.5 {
                return 1.0 - none;
            }
        }
        // More than all layers hold.
        1.0
    }

    /// A layer, empty.
    pub(super) fn layer(&self, layer: u32, hash: HashSpec) -> Result<BloomFilter> {
        BloomFilter::empty(self.shape(layer)?, hash, self.facts(layer)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys and bits of the layers from 100 keys on, until there are 10⁸.
    fn layers(rate: f64, factor: u64, below: u64) -> Vec<(u64, f64)> {
        let plan = Plan::new(100, rate, 2, HeadStart { factor, below }).unwrap();
        let layer = |at| (plan.facts(at).unwrap().planned, plan.shape(at).unwrap().bits() as f64);
        until_enough((0..MOST_LAYERS as u32).map(layer))
    }

    /// Those of a chain of textbook filters of twice the keys and half the rate each.
    fn halving(rate: f64) -> Vec<(u64, f64)> {
        let bits = |keys, at| rate::classic_bits(keys, rate * 0.5f64.powi(at + 1));
        until_enough((0..64).map(|at| (100 << at, bits(100 << at, at))))
    }

    fn until_enough(layers: impl Iterator<Item = (u64, f64)>) -> Vec<(u64, f64)> {
        let mut sum = 0;
        let enough = |layer: &(u64, f64)| {
            let there = sum < 100_000_000;
            sum += layer.0;
            there
        };
        layers.take_while(enough).collect()
    }

    /// Bits a key when there are so many, and layers.
    fn at(layers: &[(u64, f64)], keys: f64) -> (f64, usize) {
        let (mut planned, mut bits) = (0, 0.0);
        for (at, layer) in layers.iter().enumerate() {
            planned += layer.0;
            bits += layer.1;
            if planned as f64 >= keys {
                return (bits / keys, at + 1);
            }
        }
        panic!("more than all layers hold");
    }

    /// Over all numbers of keys between two, evenly on a scale of powers.
    fn mean(layers: &[(u64, f64)], from: f64, to: f64) -> f64 {
        let steps = 2000;
        let one = |step| at(layers, (from * (to / from).powf(f64::from(step) / 2000.0)).round()).0;
        (0..steps).map(one).sum::<f64>() / f64::from(steps)
    }

    /// What docs/design.md says of head starts.
    #[test]
    fn what_a_head_start_costs_and_saves() {
        let mut rows = Vec::new();
        for (factor, below) in [(0, 0), (4, 1 << 14), (4, 1 << 16), (8, 1 << 16)] {
            for rate in [0.01, 1e-3] {
                let (ours, theirs) = (layers(rate, factor, below), halving(rate));
                let (little, much) = (mean(&ours, 1e2, 1e5), mean(&ours, 1e5, 1e8));
                let ((early, chain), (late, _)) = (at(&ours, 5e5), at(&ours, 1e7));
                rows.push(format!(
                    "x{factor} {below} {rate}: {little:.1} {much:.1} {early:.1} {chain} {late:.1}"
                ));
                assert!(late < at(&theirs, 1e7).0 && much < mean(&theirs, 1e5, 1e8));
                let all = mean(&ours, 1e2, 1e8) < mean(&theirs, 1e2, 1e8);
                assert!(all || factor == 8 || (factor, below, rate) == (4, 1 << 16, 1e-3));
            }
        }
        // Bits a key up to 10⁵ keys and from there on, at 5·10⁵; layers there; bits at 10⁷.
        let expected = [
            "x0 0 0.01: 25.7 32.8 34.2 13 31.2",
            "x0 0 0.001: 33.4 41.8 44.0 13 39.6",
            "x4 16384 0.01: 33.5 29.2 30.9 9 27.3",
            "x4 16384 0.001: 45.1 37.4 38.3 9 35.2",
            "x4 65536 0.01: 35.5 29.0 27.8 8 26.1",
            "x4 65536 0.001: 47.7 37.1 35.0 8 34.0",
            "x8 65536 0.01: 55.1 30.7 43.6 6 24.6",
            "x8 65536 0.001: 73.7 39.7 56.9 6 30.5",
        ];
        assert_eq!(rows, expected, "{rows:#?}");
    }
}
