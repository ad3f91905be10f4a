//! The traits that all types of filters share, for scalable filters.

use super::layer::Layer;
use super::{ScalableBloomFilter, batch};
use crate::error::Result;
use crate::explanation::Explanation;
use crate::filter::layout::sealed::LayoutImpl as _;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::math;
use crate::membership::{Membership, MembershipMut, basic_stats, common_methods, counted};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::stats::Stats;
use crate::store::{CacheLine, Store};

common_methods!(ScalableBloomFilter);

impl<S: Store> Membership for ScalableBloomFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Scalable
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.plan.hash()
    }

    fn describe(&self) -> String {
        let layers = counted(self.layers().into(), "layer");
        format!("{layers}, the newest of {}", self.newest.layout().describe())
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let mut parameters = vec![
            ("bits", self.oldest_first().map(|layer| layer.size_bytes() * 8).sum()),
            ("layers", self.layers().into()),
            ("growth", self.plan.growth().factor),
            ("layer_capacity_left", self.layer_capacity_left()),
        ];
        if let Some((factor, below)) = self.plan.growth().head_start {
            parameters.extend([("head_start", factor), ("head_start_below", below)]);
        }
        if let Some(parts) = self.growth_share() {
            parameters.push(("growth_share", parts));
        }
        parameters
    }

    #[inline]
    fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.contains_mixed_hash(hash)
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        let mut pending = batch::PendingKeys::default();
        let words = found.reset(hashes.len());
        for (hashes, found) in batch::runs(hashes, words) {
            self.contains_run(hashes, found, &mut pending);
        }
    }

    /// The bits of all layers, and one line for each layer.
    fn explain_mixed_hash(&self, hash: u64) -> Explanation {
        let layers = self.layers();
        let numbered = (1..=layers).rev().zip(self.layer_filters().rev());
        let parts: Vec<_> = numbered
            .flat_map(|(number, layer)| {
                let parts = layer.explain_mixed_hash(hash).parts;
                parts.into_iter().map(move |part| part.named(format!("layer {number} of {layers}")))
            })
            .collect();
        Explanation { contains: parts.iter().any(|part| part.contains), parts }
    }

    fn size_bytes(&self) -> u64 {
        self.oldest_first().map(|layer| layer.size_bytes() + CacheLine::BYTES as u64).sum()
    }

    fn memory_usage(&self) -> u64 {
        let lines: u64 = self.oldest_first().map(|layer| layer.store().memory_usage()).sum();
        let closed = self.closed.len() * size_of::<Layer<S>>();
        lines + closed as u64 + size_of::<Self>() as u64
    }

    /// The capacity of the first layer.
    fn capacity(&self) -> u64 {
        self.plan.first()
    }

    fn target_fpr(&self) -> f64 {
        self.plan.fpr()
    }

    /// Includes the layers that will be needed. 1 if no number of layers holds `keys` keys.
    ///
    /// Cost: about a millisecond for each layer that is not there yet.
    fn expected_fpr(&self, keys: u64) -> f64 {
        let layout = |layer: u32| self.oldest_first().nth(layer as usize).map(Layer::layout);
        self.plan.expected_fpr(keys, layout)
    }

    /// The rate is that at which any layer reports an absent key as present. The number of keys is the
    /// sum over all layers, and the keys that are not in a layer because an older one seemed to
    /// contain them.
    fn stats(&self) -> Stats {
        let layers: Vec<_> = self.layer_filters().map(|layer| layer.stats()).collect();
        let (mut estimated_len, mut not_found) = (0.0, 1.0);
        for layer in &layers {
            estimated_len += layer.estimated_len / not_found;
            // Damaged data that were not verified may have all bits set.
            not_found *= (1.0 - layer.estimated_fpr).max(f64::MIN_POSITIVE);
        }
        let bytes: u64 = layers.iter().map(|layer| layer.size_bytes).sum();
        let set: f64 = layers.iter().map(|layer| layer.fill_ratio * layer.size_bytes as f64).sum();
        let fprs = layers.iter().map(|layer| layer.estimated_fpr);
        Stats {
            estimated_len,
            fill_ratio: set / bytes as f64,
            ..basic_stats(self, math::probability_of_any(fprs))
        }
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        let mut blocks = vec![0; steps.max(1)];
        for layer in self.layer_filters() {
            for (sum, count) in blocks.iter_mut().zip(layer.block_fills(steps)) {
                *sum += count;
            }
        }
        blocks
    }
}

impl MembershipMut for ScalableBloomFilter {
    #[inline]
    fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        self.insert_mixed_hash(hash)
    }

    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.insert_mixed_hashes(hashes, new)
    }
}
