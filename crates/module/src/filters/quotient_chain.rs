//! petal's filter for `CF.*`: a chain of quotient filters, the newest last. It supports removal,
//! counts and growth.
//!
//! A layer with R fingerprints stores ⌊h · R / 2⁶⁴⌋ of a key, where h is the same hash for all
//! layers. R of a layer is that of the layer before times a power of two, so the fingerprint in one
//! layer determines the fingerprints in all older layers. A key may therefore be removed from the
//! newest layer that seems to contain it: if that fingerprint belonged to another key, the copy of
//! this key in an older layer is equal to that of the other key.
//!
//! The false-positive rates of the layers sum to at most the target, by the shares of
//! [`layer_share`].

use petal::embed::QuotientLayout;
use petal::embed::{Relocator, SerializedView};
use petal::math::layer_share;
use petal::{AnyFilter, BatchResults, HashSpec, Membership as _, QuotientFilter};

use super::cuckoo::{CuckooInfo, CuckooOps, GrowthLimits, MAX_COPIES};
use crate::error::FilterError;

/// Upper bound of the remainder bits.
const MAX_REMAINDER_BITS: u32 = 56;
/// Number of layers to prefetch.
const PREFETCHED_LAYERS: usize = 4;
/// An empty layer is freed when the older layers have 1/n of their capacity free. Freed at once, it
/// would be reallocated each time a key is added at the limit.
const MIN_FREE_SHARE: u64 = 16;
/// Number of fingerprints that a compaction moves at a time.
const MOVE_BATCH: usize = 1 << 16;

/// The parameters of a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ChainParams {
    /// The target false-positive rate of all layers together.
    pub(crate) fpr: f64,
    /// The slots of a layer divided by those of the layer before, a power of two. 1 is treated as
    /// 2; 0: the filter does not grow.
    pub(crate) expansion: u16,
    /// RedisBloom's bucket size; only reported by `CF.INFO`.
    pub(crate) bucket_size: u16,
    /// RedisBloom's maximum of iterations; only reported by `CF.INFO`.
    pub(crate) iterations: u16,
}

impl ChainParams {
    /// Returns the growth factor. It is never 1: layers of equal size would soon be many.
    fn factor(&self) -> u64 {
        let expansion = u64::from(self.expansion);
        if expansion == 1 { 2 } else { expansion }
    }

    /// Returns the layout of a layer. Its number of fingerprints is at least that of the layer
    /// before.
    fn layout(
        &self,
        first_slots: u64,
        layer: u32,
        min_fingerprints: u64,
    ) -> Result<QuotientLayout, FilterError> {
        let doublings = self.factor().max(1).trailing_zeros().checked_mul(layer);
        let doublings = doublings.filter(|doublings| *doublings < first_slots.leading_zeros());
        let slots = first_slots << doublings.ok_or(FilterError::TooLarge)?;
        let share = if self.expansion == 0 { 1.0 } else { layer_share(layer) };
        let fpr = self.fpr * share;
        for bits in 1..=MAX_REMAINDER_BITS {
            let layout = QuotientLayout::new(slots, bits).map_err(|_| FilterError::TooLarge)?;
            if layout.fingerprints() >= min_fingerprints && layout.fpr(layout.capacity()) <= fpr {
                return Ok(layout);
            }
        }
        Err(FilterError::FprUnattainable)
    }
}

/// A chain of quotient filters.
#[derive(Debug)]
pub(crate) struct QuotientChain {
    params: ChainParams,
    /// Number of removals since the last compaction.
    deletes: u64,
    layers: Vec<QuotientFilter>,
}

// ---- Construction -------------------------------------------------------------------------------

impl QuotientChain {
    /// Returns an empty chain; `capacity` is that of the first layer.
    ///
    /// # Errors
    /// If the first layer exceeds the memory limit.
    pub(crate) fn new(
        params: ChainParams,
        capacity: u64,
        hash: HashSpec,
        memory_limit: u64,
    ) -> Result<Self, FilterError> {
        let expansion =
            if params.expansion == 0 { 0 } else { params.expansion.next_power_of_two() };
        let params = ChainParams { expansion, ..params };
        let mut chain = Self { params, deletes: 0, layers: Vec::new() };
        // 95 % of the slots can be used.
        let mut slots = capacity.max(1).checked_add(capacity / 19).ok_or(FilterError::TooLarge)?;
        while QuotientLayout::new(slots, 1).map_err(|_| FilterError::TooLarge)?.capacity()
            < capacity
        {
            slots += 1;
        }
        chain.push(slots, hash, memory_limit)?;
        Ok(chain)
    }

    fn push(
        &mut self,
        first_slots: u64,
        hash: HashSpec,
        memory_limit: u64,
    ) -> Result<(), FilterError> {
        let min_fingerprints = self.layers.last().map_or(0, |last| last.layout().fingerprints());
        let layer = u32::try_from(self.layers.len()).map_err(|_| FilterError::MaxLayers)?;
        let layout = self.params.layout(first_slots, layer, min_fingerprints)?;
        if self.memory_usage().saturating_add(layout.size_bytes()) > memory_limit {
            return Err(FilterError::MemoryLimit);
        }
        let builder = QuotientFilter::builder().table_size(layout.slots()).hash(hash);
        let filter = builder.slot_bits(layout.remainder_bits()).build()?;
        self.layers.try_reserve(1).map_err(|_| FilterError::OutOfMemory)?;
        self.layers.push(filter);
        Ok(())
    }

    pub(crate) fn copy(&self) -> Result<Self, FilterError> {
        let layers = self.layers.iter().map(QuotientFilter::try_clone);
        Ok(Self { layers: layers.collect::<Result<_, _>>()?, ..*self })
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl QuotientChain {
    #[inline]
    fn hash_spec(&self) -> Option<HashSpec> {
        self.layers.first().map(QuotientFilter::hash_spec)
    }

    pub(crate) fn contains_all(&self, hashes: &[u64], found: &mut BatchResults) {
        let [older @ .., newest] = &self.layers[..] else { return };
        newest.contains_mixed_hashes(hashes, found);
        let (mut before, mut here) = (BatchResults::new(), BatchResults::new());
        for layer in older {
            layer.contains_mixed_hashes(hashes, &mut here);
            std::mem::swap(found, &mut before);
            found.fill_with(hashes.len(), |at| before.get(at) || here.get(at));
        }
    }

    pub(crate) fn layers(&self) -> u64 {
        self.layers.len() as u64
    }

    /// Returns the number of keys, with copies.
    pub(crate) fn len(&self) -> u64 {
        self.layers.iter().map(QuotientFilter::len).sum()
    }

    /// Returns the number of copies beyond the first of each key in a layer.
    fn extra_copies(&self) -> u64 {
        self.layers.iter().map(|layer| layer.len() - layer.distinct()).sum()
    }

    fn first_slots(&self) -> u64 {
        self.layers.first().map_or(0, |layer| layer.layout().slots())
    }

    pub(crate) fn memory_usage(&self) -> u64 {
        let layers: u64 = self.layers.iter().map(QuotientFilter::memory_usage).sum();
        size_of::<Self>() as u64 + layers
    }
}

// ---- Changes ------------------------------------------------------------------------------------

impl QuotientChain {
    /// Inserts a copy of a key. Grows up to `max_layers` and the memory limit.
    #[inline]
    pub(crate) fn add(
        &mut self,
        hash: u64,
        max_layers: u64,
        memory_limit: u64,
    ) -> Result<(), FilterError> {
        for layer in self.layers.iter_mut().rev().filter(|layer| has_capacity(layer)) {
            match layer.add_mixed_hash(hash) {
                Ok(()) => return Ok(()),
                // A run with many copies can reach the end of the table before all slots are used.
                Err(error) if error.is_full() => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.grow_and_add(hash, max_layers, memory_limit)
    }

    #[cold]
    fn grow_and_add(
        &mut self,
        hash: u64,
        max_layers: u64,
        memory_limit: u64,
    ) -> Result<(), FilterError> {
        if self.params.expansion == 0 {
            return Err(FilterError::Full);
        }
        if self.layers() >= max_layers {
            return Err(FilterError::MaxLayers);
        }
        let spec = self.hash_spec().ok_or(FilterError::Full)?;
        self.push(self.first_slots(), spec, memory_limit)?;
        let newest = self.layers.last_mut().ok_or(FilterError::Full)?;
        Ok(newest.add_mixed_hash(hash)?)
    }

    /// Frees the newest layers if they are empty and will not be needed soon.
    #[cold]
    fn free_empty_layers(&mut self) {
        while let [older @ .., newest] = &self.layers[..]
            && !older.is_empty()
            && newest.is_empty()
        {
            let capacity: u64 = older.iter().map(|layer| layer.layout().capacity()).sum();
            let len: u64 = older.iter().map(QuotientFilter::len).sum();
            if capacity.saturating_sub(len) * MIN_FREE_SHARE < capacity {
                return;
            }
            self.layers.pop();
        }
    }

    fn empty_newest_layers(&mut self) {
        while let [older @ .., newest] = &mut self.layers[..]
            && !older.is_empty()
        {
            let free =
                older.iter().map(|layer| layer.layout().capacity().saturating_sub(layer.len()));
            if newest.len() > free.sum() || !move_all(newest, older) {
                return;
            }
            self.layers.pop();
        }
    }

    /// Removes all keys and frees all layers except the first.
    pub(crate) fn clear(&mut self) {
        self.layers.truncate(1);
        self.layers.iter_mut().for_each(QuotientFilter::clear);
        self.deletes = 0;
    }

    /// Moves the blocks of memory, for defragmentation.
    pub(crate) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.layers.iter_mut().for_each(|layer| layer.relocate(relocator));
    }
}

impl CuckooOps for QuotientChain {
    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        self.hash_spec().map_or(0, |spec| spec.hash(key))
    }

    fn hashes(&self, keys: &mut dyn Iterator<Item = &[u8]>) -> Vec<u64> {
        self.hash_spec().map_or_else(Vec::new, |spec| super::hashes(spec, keys))
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.layers
            .iter()
            .rev()
            .take(PREFETCHED_LAYERS)
            .for_each(|layer| layer.prefetch_mixed_hash(hash));
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.layers.iter().rev().any(|layer| layer.contains_mixed_hash(hash))
    }

    fn count(&self, hash: u64) -> u64 {
        self.layers.iter().map(|layer| layer.count_mixed_hash(hash)).sum()
    }

    fn add(&mut self, hash: u64, limits: &dyn Fn() -> GrowthLimits) -> Result<(), FilterError> {
        // Only filters with many copies count those of the key. Each layer has a first one.
        if self.extra_copies() + self.layers() >= MAX_COPIES {
            let copies = self.count(hash);
            if copies >= MAX_COPIES && copies >= limits().copies {
                return Err(FilterError::TooManyCopies);
            }
        }
        match self.add(hash, 0, 0) {
            Err(FilterError::MaxLayers) => {
                let GrowthLimits { layers, bytes, .. } = limits();
                self.add(hash, layers, bytes)
            }
            done => done,
        }
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        let removed = self.layers.iter_mut().rev().any(|layer| layer.remove_mixed_hash(hash));
        if removed {
            self.deletes = self.deletes.saturating_add(1);
            if self.layers.len() > 1 && self.layers.last().is_some_and(QuotientFilter::is_empty) {
                self.free_empty_layers();
            }
        }
        removed
    }

    fn compact(&mut self) -> bool {
        let lens = |chain: &Self| chain.layers.iter().map(QuotientFilter::len).collect::<Vec<_>>();
        let before = (self.deletes, lens(self));
        self.deletes = 0;
        self.empty_newest_layers();
        before != (0, lens(self))
    }

    fn info(&self) -> CuckooInfo {
        let ChainParams { fpr, expansion, bucket_size, iterations } = self.params;
        CuckooInfo {
            size: self.memory_usage(),
            buckets: self.first_slots() / u64::from(bucket_size.max(1)),
            layers: self.layers(),
            items: self.len(),
            deleted: self.deletes,
            bucket_size,
            expansion,
            iterations,
            capacity: self.layers.iter().map(|layer| layer.layout().capacity()).sum(),
            target_fpr: fpr,
        }
    }
}

fn has_capacity(layer: &QuotientFilter) -> bool {
    layer.len() < layer.layout().capacity()
}

/// Moves the keys of a layer to older ones. Returns whether all were moved.
fn move_all(layer: &mut QuotientFilter, older: &mut [QuotientFilter]) -> bool {
    let fingerprints = layer.layout().fingerprints();
    while !layer.is_empty() {
        let batch: Vec<_> = layer.fingerprints().take(MOVE_BATCH).collect();
        for fingerprint in batch {
            // The lowest hash with this fingerprint has the key's fingerprint in every older layer.
            let hash = (u128::from(fingerprint) << 64).div_ceil(fingerprints.into()) as u64;
            let target = older.iter_mut().find(|layer| has_capacity(layer));
            if target.is_none_or(|target| target.add_mixed_hash(hash).is_err())
                || !layer.remove_mixed_hash(hash)
            {
                return false;
            }
        }
    }
    true
}

// ---- Serialization ------------------------------------------------------------------------------

impl QuotientChain {
    /// Returns everything except the layers, for the container.
    pub(crate) fn serialized_params(&self) -> [u64; 5] {
        let ChainParams { fpr, expansion, bucket_size, iterations } = self.params;
        let small = [expansion, bucket_size, iterations].map(u64::from);
        [fpr.to_bits(), small[0], small[1], small[2], self.deletes]
    }

    pub(crate) fn views(&self) -> Vec<SerializedView<'_>> {
        self.layers.iter().map(QuotientFilter::serialized).collect()
    }

    /// Returns a chain of these layers.
    ///
    /// # Errors
    /// If the parameters are invalid or the layers do not match.
    pub(crate) fn from_layers(
        params: [u64; 5],
        layers: Vec<AnyFilter>,
    ) -> Result<Self, FilterError> {
        let [fpr, expansion, bucket_size, iterations, deletes] = params;
        let small = [expansion, bucket_size, iterations].map(u16::try_from);
        let [Ok(expansion), Ok(bucket_size), Ok(iterations)] = small else {
            return FilterError::malformed("a parameter of a chain exceeds 16 bits");
        };
        let params = ChainParams { fpr: f64::from_bits(fpr), expansion, bucket_size, iterations };
        if !(params.fpr > 0.0 && params.fpr < 1.0) || (expansion & expansion.wrapping_sub(1)) != 0 {
            return FilterError::malformed("invalid false-positive rate or expansion of a chain");
        }
        let mut chain = Self { params, deletes, layers: Vec::new() };
        for layer in layers {
            let AnyFilter::Quotient(layer) = layer else {
                return FilterError::malformed("a chain with a filter of another type");
            };
            chain.check_next(&layer)?;
            chain.layers.push(layer);
        }
        if chain.layers.is_empty() {
            return FilterError::malformed("a chain without filters");
        }
        Ok(chain)
    }

    /// Checks that a layer can follow the last one.
    fn check_next(&self, layer: &QuotientFilter) -> Result<(), FilterError> {
        let factor = self.params.factor();
        let follows = self.layers.last().is_none_or(|last| {
            let (last, next) = (last.layout(), layer.layout());
            Some(next.slots()) == last.slots().checked_mul(factor)
                && next.fingerprints() >= last.fingerprints()
        });
        let same_hash = self.hash_spec().is_none_or(|hash| hash == layer.hash_spec());
        if follows && same_hash && !layer.is_growing() {
            Ok(())
        } else {
            FilterError::malformed("a layer does not match the layer before")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use petal_testkit::rng::Rng;

    use super::*;

    const NO_LIMIT: u64 = u64::MAX;

    fn chain(capacity: u64, fpr: f64, expansion: u16) -> QuotientChain {
        let params = ChainParams { fpr, expansion, bucket_size: 2, iterations: 20 };
        QuotientChain::new(params, capacity, HashSpec::keyed([7; 16]), NO_LIMIT).unwrap()
    }

    #[test]
    fn present_keys_are_found() {
        for (seed, expansion) in [(1, 1), (2, 2), (3, 4)] {
            // A rate at which keys collide all the time.
            let mut chain = chain(50, 0.9, expansion);
            let (mut random, mut model) = (Rng::new(seed), HashMap::<u64, u64>::new());
            for step in 0..20_000 {
                let key = random.below(400) as u64;
                let hash = chain.hash(&key.to_le_bytes());
                let copies = model.entry(key).or_default();
                let grows = step / 2000 % 2 == 0;
                if random.one_in(if grows { 3 } else { 2 }) && *copies > 0 {
                    assert!(chain.remove(hash));
                    *copies -= 1;
                } else if chain.len() < 800 {
                    chain.add(hash, 20, NO_LIMIT).unwrap();
                    *copies += 1;
                }
                if step % 1000 == 999 {
                    chain.compact();
                    assert_eq!(chain.deletes, 0);
                    for (key, copies) in &model {
                        assert!(chain.count(chain.hash(&key.to_le_bytes())) >= *copies);
                    }
                    assert_eq!(chain.len(), model.values().sum::<u64>());
                }
            }
            assert!(chain.layers() > 1);
        }
    }

    #[test]
    fn fpr_and_capacity_are_kept() {
        for (keys, fpr, expansion) in
            [(4, 0.01, 2), (1000, 0.01, 1), (1024, 0.001, 2), (999, 0.1, 8)]
        {
            let mut chain = chain(keys, fpr, expansion);
            let fill = |chain: &mut QuotientChain, keys: std::ops::Range<u64>| {
                for key in keys {
                    chain.add(chain.hash(&key.to_le_bytes()), 99, NO_LIMIT).unwrap();
                }
            };
            fill(&mut chain, 0..keys);
            assert_eq!(chain.layers(), 1, "{keys}");
            fill(&mut chain, keys..keys * 20);
            let hashes: Vec<_> = (1u64 << 40..(1 << 40) + 200_000)
                .map(|key| chain.hash(&key.to_le_bytes()))
                .collect();
            let mut found = BatchResults::new();
            chain.contains_all(&hashes, &mut found);
            assert!(hashes.iter().enumerate().all(|(at, h)| found.get(at) == chain.contains(*h)));
            let (_, max) = petal_testkit::bounds::binomial_range(200_000, fpr, 0.999_999);
            assert!(found.count_ones() <= max, "{keys} {}", found.count_ones());
        }
    }

    #[test]
    fn compaction_frees_layers() {
        let mut chain = chain(1000, 0.01, 2);
        let hashes: Vec<_> = (0..6000u64).map(|key| chain.hash(&key.to_le_bytes())).collect();
        hashes.iter().for_each(|hash| chain.add(*hash, 9, NO_LIMIT).unwrap());
        let before = (chain.layers(), chain.memory_usage());
        hashes[..5200].iter().for_each(|hash| assert!(chain.remove(*hash)));
        assert_eq!(chain.deletes, 5200);
        chain.compact();
        assert_eq!((chain.layers(), chain.len()), (1, 800));
        assert!(chain.memory_usage() < before.1);
        assert!(hashes[5200..].iter().all(|hash| chain.contains(*hash)));
    }

    #[test]
    fn growth_stops_at_its_limits() {
        for (expansion, max_layers, memory_limit, expected) in [
            (0, 9, NO_LIMIT, FilterError::Full),
            (1, 3, NO_LIMIT, FilterError::MaxLayers),
            (2, 9, 3000, FilterError::MemoryLimit),
        ] {
            let mut chain = chain(100, 0.01, expansion);
            let error = (0..9000u64).find_map(|key| {
                chain.add(chain.hash(&key.to_le_bytes()), max_layers, memory_limit).err()
            });
            assert_eq!(error, Some(expected));
            assert!(chain.memory_usage() <= memory_limit);
        }
        let params = ChainParams { fpr: 0.01, expansion: 1, bucket_size: 2, iterations: 20 };
        for (keys, expected) in [
            (1 << 40, FilterError::MemoryLimit),
            (1 << 62, FilterError::TooLarge),
            (u64::MAX, FilterError::TooLarge),
        ] {
            let error =
                QuotientChain::new(params, keys, HashSpec::keyed([7; 16]), 1 << 30).unwrap_err();
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn chain_is_restored_from_its_layers() {
        for expansion in [0, 1, 2, 3, 8] {
            let mut chain = chain(100, 0.01, expansion);
            let keys = if expansion == 0 { 100 } else { 3000u64 };
            (0..keys)
                .for_each(|key| chain.add(chain.hash(&key.to_le_bytes()), 9, NO_LIMIT).unwrap());
            chain.remove(chain.hash(&5u64.to_le_bytes()));
            let layers =
                chain.copy().unwrap().layers.into_iter().map(AnyFilter::Quotient).collect();
            let restored = QuotientChain::from_layers(chain.serialized_params(), layers).unwrap();
            assert_eq!(
                (restored.serialized_params(), restored.params),
                (chain.serialized_params(), chain.params)
            );
            assert_eq!((restored.len(), restored.layers()), (keys - 1, chain.layers()));
            assert!(restored.layers.iter().eq(&chain.layers));
        }
    }

    #[test]
    fn mismatched_layers_are_rejected() {
        let mut first = chain(100, 0.01, 2);
        (0..400u64).for_each(|key| first.add(first.hash(&key.to_le_bytes()), 9, NO_LIMIT).unwrap());
        let params = first.serialized_params();
        let layers = |chain: &QuotientChain| -> Vec<_> {
            chain.copy().unwrap().layers.into_iter().map(AnyFilter::Quotient).collect()
        };
        let restored = QuotientChain::from_layers(params, layers(&first)).unwrap();
        assert_eq!(
            (restored.serialized_params(), restored.len(), restored.params),
            (params, 400, first.params)
        );
        let mut equal = chain(100, 0.01, 1);
        (0..400u64).for_each(|key| equal.add(equal.hash(&key.to_le_bytes()), 9, NO_LIMIT).unwrap());
        assert!(equal.layers() > 1);
        assert_eq!(
            QuotientChain::from_layers(equal.serialized_params(), layers(&equal))
                .unwrap()
                .serialized_params(),
            equal.serialized_params()
        );
        let mut reversed = layers(&first);
        reversed.reverse();
        let other = chain(100, 0.01, 4);
        for (params, layers) in [
            (params, reversed),
            (params, Vec::new()),
            (other.serialized_params(), layers(&first)),
            ([0, 2, 2, 20, 0], layers(&first)),
            ([params[0], 3, 2, 20, 0], layers(&first)),
            ([params[0], 1 << 16, 2, 20, 0], layers(&first)),
        ] {
            assert!(matches!(
                QuotientChain::from_layers(params, layers),
                Err(FilterError::Malformed(_))
            ));
        }
    }
}
