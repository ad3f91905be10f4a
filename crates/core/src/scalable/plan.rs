//! The capacities and rates of the layers of a scalable filter.

use crate::error::{Error, Result};
use crate::filter::FilterInfo;
use crate::hash::HashSpec;
use crate::layout::BlockedLayout;
use crate::math;
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::spec::Growth;

/// The largest ratio of the capacities of a layer and the one before it, which is the limit of
/// RedisBloom.
const MAX_GROWTH: u64 = 1 << 15;

/// The largest number of layers. With a growth of 2, 64-bit numbers overflow first.
pub(super) const MAX_LAYERS: u64 = 64;

/// The lowest rate of a layer, as a multiple of the rate of collisions of hashes: a layout has at least
/// twice that for all inserted keys, which are slightly more than the counted ones.
const ABOVE_FLOOR: f64 = 2.002;

/// The rate below which the first layer of a filter with a stated capacity has the layout of the
/// least space: with the default layout such layers would be larger than textbook filters of half
/// the rate.
const LEAST_SPACE_BELOW: f64 = 3e-3;

/// The allowed numbers of parts of the rate, of which one is reserved for the layers after the first.
const GROWTH_SHARES: core::ops::RangeInclusive<u64> = 2..=1 << 16;

/// A validated plan of all layers: the rate is between 0 and 1, the first capacity is not 0, and no
/// layer is smaller than the one before it. With the hash of the keys, because both together take
/// few bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LayerPlan {
    first: u64,
    rate: f64,
    /// The capacity at which the head start ends.
    below: u64,
    growth: u16,
    /// The growth during the head start; 0 without one.
    head_start: u16,
    /// The parts of the rate of which the later layers have one, less 1; 0 for the default.
    share: u16,
    hash: HashSpec,
}

impl LayerPlan {
    pub(super) fn new(first: u64, rate: f64, growth: Growth, hash: HashSpec) -> Result<Self> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::fpr(rate));
        }
        if !(1..=MAX_GROWTH).contains(&growth.factor) {
            return Err(Error::invalid("growth", "1 to 32768", growth.factor));
        }
        if let Some((factor, below)) = growth.head_start
            && (!(2..=MAX_GROWTH).contains(&factor) || below == 0)
        {
            let found = format!("{factor} below {below}");
            return Err(Error::invalid("head start", "2 to 32768 below some keys", found));
        }
        if let Some(parts) = growth.share.filter(|parts| !GROWTH_SHARES.contains(parts)) {
            return Err(Error::invalid("growth share", "one of 2 to 65536 parts", parts));
        }
        let Growth { factor: growth, head_start, share } = growth;
        let (factor, below) = head_start.unwrap_or_default();
        // The ranges above fit.
        let (growth, head_start) = (growth as u16, factor as u16);
        let share = share.map_or(0, |parts| (parts - 1) as u16);
        Ok(Self { first: first.max(1), rate, below, growth, head_start, share, hash })
    }

    /// Returns the capacity of the first layer.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the target rate of all layers together.
    pub(crate) fn fpr(&self) -> f64 {
        self.rate
    }

    #[inline]
    pub(super) fn hash(&self) -> HashSpec {
        self.hash
    }

    pub(super) fn growth(&self) -> Growth {
        let (head_start, share) = (u64::from(self.head_start), u64::from(self.share));
        Growth {
            factor: self.growth.into(),
            head_start: (head_start > 0).then_some((head_start, self.below)),
            share: (share > 0).then_some(share + 1),
        }
    }

    /// Returns the share of the rate that a layer may use.
    pub(super) fn share(&self, layer: u32) -> f64 {
        match self.growth().share {
            None => math::layer_share(layer),
            Some(parts) => math::growth_layer_share(layer, parts),
        }
    }

    /// Returns the capacity of a layer; `None` if it does not fit into 64 bits.
    pub(super) fn keys(&self, layer: u32) -> Option<u64> {
        (0..layer).try_fold(self.first, |keys, _| {
            let head_start = if keys < self.below { self.head_start } else { 0 };
            keys.checked_mul(head_start.max(self.growth).into())
        })
    }

    /// Returns capacity and target rate of a layer. It is full when that many keys were new to it.
    ///
    /// The rate is the layer's share. Where 64-bit hashes do not reach that, a layer after the first has
    /// the rate that is possible, so that the filter can grow on.
    pub(super) fn info(&self, layer: u32) -> Result<FilterInfo> {
        if u64::from(layer) >= MAX_LAYERS {
            return Err(Error::full(
                "all 64 layers that a filter can have are full",
                "plan for a larger capacity, or a larger growth factor",
            ));
        }
        let share = self.rate * self.share(layer);
        let keys = self.keys(layer);
        let keys =
            keys.ok_or_else(|| Error::unattainable(u64::MAX, share, math::hash_floor(u64::MAX)))?;
        let possible = ABOVE_FLOOR * math::hash_floor(keys.saturating_add(1));
        Ok(FilterInfo::planned(keys, if layer > 0 { share.max(possible) } else { share }))
    }

    /// Returns whether the rates of this number of layers sum to at most the target rate.
    pub(super) fn keeps_fpr(&self, layers: u32) -> bool {
        let rates = (0..layers).map(|layer| self.info(layer).map_or(1.0, |info| info.target_fpr));
        rates.sum::<f64>() <= self.rate
    }

    /// Returns the layout of a layer, which keeps its share of the rate until it is full.
    pub(crate) fn layout(&self, layer: u32) -> Result<BlockedLayout> {
        let FilterInfo { capacity: planned, target_fpr: target, .. } = self.info(layer)?;
        if layer == 0 && self.share > 0 && target < LEAST_SPACE_BELOW {
            return BlockedLayout::least_for_counted_keys(planned, target);
        }
        BlockedLayout::for_counted_keys(planned, target)
    }

    /// Returns the false-positive rate with `keys` distinct keys; `existing` returns the layouts of
    /// layers that exist.
    pub(crate) fn expected_fpr(
        &self,
        keys: u64,
        existing: impl Fn(u32) -> Option<BlockedLayout>,
    ) -> f64 {
        let (mut left, mut none) = (keys as f64, 1.0);
        for layer in 0..MAX_LAYERS as u32 {
            let Some(layout) = existing(layer).or_else(|| self.layout(layer).ok()) else {
                // No further layer is possible.
                return 1.0;
            };
            let planned = self.info(layer).map_or(0, |info| info.capacity);
            // A few of the remaining keys are false positives of older layers.
            let given =
                math::expected_insertions(planned, |keys| layout.fpr(keys)).min(left * none);
            left -= given / none;
            none *= 1.0 - layout.fpr(given.round() as u64);
            if left < 0.5 {
                return 1.0 - none;
            }
        }
        // More keys than all layers hold.
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns keys and bits of the layers from 100 keys on, up to 10⁸ keys.
    fn layers(rate: f64, factor: u64, below: u64) -> Vec<(u64, f64)> {
        let head_start = (factor > 0).then_some((factor, below));
        let plan = LayerPlan::new(
            100,
            rate,
            Growth { head_start, ..Growth::default() },
            HashSpec::default(),
        )
        .unwrap();
        let layer = |at| (plan.info(at).unwrap().capacity, plan.layout(at).unwrap().bits() as f64);
        until_enough((0..MAX_LAYERS as u32).map(layer))
    }

    /// Returns the layers of textbook filters, each with twice the keys and half the rate of the
    /// last.
    fn halving(rate: f64) -> Vec<(u64, f64)> {
        let bits = |keys, at| math::classic_bits(keys, rate * 0.5f64.powi(at + 1));
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

    /// Returns bits per key and the number of layers at `keys` keys.
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

    /// Returns the mean bits per key between two numbers of keys, on a logarithmic scale.
    fn mean(layers: &[(u64, f64)], from: f64, to: f64) -> f64 {
        let steps = 2000;
        let one = |step| at(layers, (from * (to / from).powf(f64::from(step) / 2000.0)).round()).0;
        (0..steps).map(one).sum::<f64>() / f64::from(steps)
    }

    /// The figures of docs/design/filters.md on head starts.
    #[test]
    fn bits_per_key_with_and_without_head_start() {
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
        // Bits per key up to 10⁵ keys, from 10⁵ on, at 5·10⁵ (with layers), and at 10⁷.
        let expected = [
            "x0 0 0.01: 25.6 32.7 34.1 13 31.2",
            "x0 0 0.001: 33.4 41.8 44.0 13 39.6",
            "x4 16384 0.01: 33.5 29.0 29.8 9 27.3",
            "x4 16384 0.001: 45.2 37.4 38.3 9 35.2",
            "x4 65536 0.01: 35.5 28.8 27.6 8 26.0",
            "x4 65536 0.001: 47.9 37.1 35.0 8 34.0",
            "x8 65536 0.01: 55.1 30.5 43.6 6 23.8",
            "x8 65536 0.001: 73.7 39.7 56.9 6 30.5",
        ];
        assert_eq!(rows, expected, "{rows:#?}");
    }
}
