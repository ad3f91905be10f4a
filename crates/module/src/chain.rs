//! Rows of quotient filters, the newest last: petal's own filter of `CF.*`, to delete, to count
//! and to grow.
//!
//! Of a key each layer would keep ⌊h · R / 2⁶⁴⌋ for its own R, of the same hash. The R of a layer
//! is that of the one before times a power of two, so what a key leaves in a layer tells what it
//! would leave in all before. That is why a key may be removed from the newest layer that seems to
//! have it: if that takes what another key left, then what is left of this one in an older layer
//! is what the other would leave there.
//!
//! The rates of the layers sum to at most the rate that was asked for, by the parts of
//! [`layer_share`].

use petal::rate::layer_share;
use petal::{Answers, AnyFilter, HashSpec, Image, Mover, QuotientFilter, QuotientShape};

use crate::refusal::Refusal;

/// More bits than a layer ever needs.
const MOST_BITS: u32 = 56;
/// Layers whose memory is asked for at once.
const FETCHED: usize = 4;
/// An empty layer is given back when those before it have this part of their capacity free: not at
/// once, or a key that comes and goes at the border would make a layer each time.
const SPARE: u64 = 16;
/// Fingerprints that are moved at once.
const MOVED: usize = 1 << 16;

/// What a row is made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ChainPlan {
    /// The false-positive rate of all layers together.
    pub(crate) rate: f64,
    /// How many times the slots of the last layer the next has, a power of two; twice as many
    /// where it is 1; 0 if there is none.
    pub(crate) expansion: u16,
    /// What RedisBloom would make of it: told when asked, and nothing more.
    pub(crate) bucket_size: u16,
    /// As above.
    pub(crate) iterations: u16,
}

impl ChainPlan {
    /// How many times the slots of the last layer the next has; 0 if there is none. Of equal layers
    /// there would soon be many to look into.
    fn factor(&self) -> u64 {
        let expansion = u64::from(self.expansion);
        if expansion == 1 { 2 } else { expansion }
    }

    /// The shape of a layer, behind the one before.
    fn shape(&self, first: u64, layer: u32, before: u64) -> Result<QuotientShape, Refusal> {
        let doublings = self.factor().max(1).trailing_zeros().checked_mul(layer);
        let doublings = doublings.filter(|doublings| *doublings < first.leading_zeros());
        let slots = first << doublings.ok_or(Refusal::TooLarge)?;
        let share = if self.expansion == 0 { 1.0 } else { layer_share(layer) };
        let rate = self.rate * share;
        for bits in 1..=MOST_BITS {
            let shape = QuotientShape::new(slots, bits).map_err(|_| Refusal::TooLarge)?;
            if shape.fingerprints() >= before && shape.rate(shape.capacity()) <= rate {
                return Ok(shape);
            }
        }
        Err(Refusal::Rate)
    }
}

/// A row of quotient filters.
#[derive(Debug)]
pub(crate) struct Chain {
    plan: ChainPlan,
    /// Keys that were removed since it was last compacted.
    deletes: u64,
    layers: Vec<QuotientFilter>,
}

// ---- Made ---------------------------------------------------------------------------------------

impl Chain {
    /// An empty row whose first layer holds so many keys, if it takes no more than so many bytes.
    pub(crate) fn new(
        plan: ChainPlan,
        keys: u64,
        hash: HashSpec,
        limit: u64,
    ) -> Result<Self, Refusal> {
        let expansion = if plan.expansion == 0 { 0 } else { plan.expansion.next_power_of_two() };
        let mut row =
            Self { plan: ChainPlan { expansion, ..plan }, deletes: 0, layers: Vec::new() };
        // Of slots 95 % are for keys.
        let mut slots = keys.max(1).checked_add(keys / 19).ok_or(Refusal::TooLarge)?;
        while QuotientShape::new(slots, 1).map_err(|_| Refusal::TooLarge)?.capacity() < keys {
            slots += 1;
        }
        row.push(slots, hash, limit)?;
        Ok(row)
    }

    /// Adds an empty layer.
    fn push(&mut self, first: u64, hash: HashSpec, limit: u64) -> Result<(), Refusal> {
        let before = self.layers.last().map_or(0, |last| last.shape().fingerprints());
        let layer = u32::try_from(self.layers.len()).map_err(|_| Refusal::Layers)?;
        let shape = self.plan.shape(first, layer, before)?;
        if self.memory_usage().saturating_add(shape.size_bytes()) > limit {
            return Err(Refusal::Limit);
        }
        let builder = QuotientFilter::builder().slots(shape.slots()).hash(hash);
        let filter = builder.remainder_bits(shape.remainder_bits()).build()?;
        self.layers.try_reserve(1).map_err(|_| Refusal::Memory)?;
        self.layers.push(filter);
        Ok(())
    }

    /// A copy.
    pub(crate) fn copy(&self) -> Result<Self, Refusal> {
        let layers = self.layers.iter().map(QuotientFilter::to_owned_filter);
        Ok(Self { layers: layers.collect::<Result<_, _>>()?, ..*self })
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl Chain {
    /// How keys become hashes.
    #[inline]
    pub(crate) fn hash_spec(&self) -> Option<HashSpec> {
        self.layers.first().map(QuotientFilter::hash_spec)
    }

    /// The hash of a key.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hash_spec().map_or(0, |spec| spec.hash(key))
    }

    /// Asks for the memory of the newest layers that will be looked at for a key.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.layers.iter().rev().take(FETCHED).for_each(|layer| layer.prefetch_mixed_hash(hash));
    }

    /// Whether a key may be there.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.layers.iter().rev().any(|layer| layer.contains_mixed_hash(hash))
    }

    /// Whether keys may be there.
    pub(crate) fn contains_all(&self, hashes: &[u64], found: &mut Answers) {
        let [older @ .., newest] = &self.layers[..] else { return };
        newest.contains_mixed_hashes(hashes, found);
        let (mut before, mut here) = (Answers::new(), Answers::new());
        for layer in older {
            layer.contains_mixed_hashes(hashes, &mut here);
            std::mem::swap(found, &mut before);
            found.answer(hashes.len(), |at| before.get(at) || here.get(at));
        }
    }

    /// How often a key may be there.
    pub(crate) fn count(&self, hash: u64) -> u64 {
        self.layers.iter().map(|layer| layer.count_mixed_hash(hash)).sum()
    }

    /// What it was made with.
    pub(crate) fn plan(&self) -> ChainPlan {
        self.plan
    }

    /// Layers that there are.
    pub(crate) fn layers(&self) -> u64 {
        self.layers.len() as u64
    }

    /// Keys that are in it.
    pub(crate) fn len(&self) -> u64 {
        self.layers.iter().map(QuotientFilter::len).sum()
    }

    /// Keys that all layers are for.
    pub(crate) fn capacity(&self) -> u64 {
        self.layers.iter().map(|layer| layer.shape().capacity()).sum()
    }

    /// Slots of the first layer.
    pub(crate) fn first_slots(&self) -> u64 {
        self.layers.first().map_or(0, |layer| layer.shape().slots())
    }

    /// Keys that were removed since it was last compacted.
    pub(crate) fn deletes(&self) -> u64 {
        self.deletes
    }

    /// Bytes of memory that it takes in all.
    pub(crate) fn memory_usage(&self) -> u64 {
        let layers: u64 = self.layers.iter().map(QuotientFilter::memory_usage).sum();
        size_of::<Self>() as u64 + layers
    }
}

// ---- Changed ------------------------------------------------------------------------------------

impl Chain {
    /// Puts a key in once more: if it has to grow, to so many layers and bytes at most.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64, layers: u64, limit: u64) -> Result<(), Refusal> {
        for layer in self.layers.iter_mut().rev().filter(|layer| has_room(layer)) {
            match layer.add_mixed_hash(hash) {
                Ok(_) => return Ok(()),
                // The slots behind a key that has many copies can be taken before all are.
                Err(error) if error.is_full() => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.grow_and_add(hash, layers, limit)
    }

    #[cold]
    fn grow_and_add(&mut self, hash: u64, layers: u64, limit: u64) -> Result<(), Refusal> {
        if self.plan.expansion == 0 {
            return Err(Refusal::Full);
        }
        if self.layers() >= layers {
            return Err(Refusal::Layers);
        }
        let spec = self.hash_spec().ok_or(Refusal::Full)?;
        self.push(self.first_slots(), spec, limit)?;
        let newest = self.layers.last_mut().ok_or(Refusal::Full)?;
        newest.add_mixed_hash(hash)?;
        Ok(())
    }

    /// Takes a key out once; whether it was there.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u64) -> bool {
        let removed = self.layers.iter_mut().rev().any(|layer| layer.remove_mixed_hash(hash));
        self.deletes = self.deletes.saturating_add(removed.into());
        if self.layers.len() > 1 && self.layers.last().is_some_and(QuotientFilter::is_empty) {
            self.drop_empty();
        }
        removed
    }

    /// Gives back the newest layers, if they are empty and not needed soon.
    #[cold]
    fn drop_empty(&mut self) {
        while let [older @ .., newest] = &self.layers[..]
            && !older.is_empty()
            && newest.is_empty()
        {
            let capacity: u64 = older.iter().map(|layer| layer.shape().capacity()).sum();
            let held: u64 = older.iter().map(QuotientFilter::len).sum();
            if capacity.saturating_sub(held) * SPARE < capacity {
                return;
            }
            self.layers.pop();
        }
    }

    /// Empties newest layers into older ones, as long as they have room for all, and gives them
    /// back.
    pub(crate) fn compact(&mut self) {
        self.deletes = 0;
        while let [older @ .., newest] = &mut self.layers[..]
            && !older.is_empty()
        {
            let room =
                older.iter().map(|layer| layer.shape().capacity().saturating_sub(layer.len()));
            if newest.len() > room.sum() || !empty(newest, older) {
                return;
            }
            self.layers.pop();
        }
    }

    /// Removes all keys, and all layers but the first.
    pub(crate) fn clear(&mut self) {
        self.layers.truncate(1);
        self.layers.iter_mut().for_each(QuotientFilter::clear);
        self.deletes = 0;
    }

    /// Moves its blocks of memory.
    pub(crate) fn relocate(&mut self, mover: &mut Mover<'_>) {
        self.layers.iter_mut().for_each(|layer| layer.relocate(mover));
    }
}

fn has_room(layer: &QuotientFilter) -> bool {
    layer.len() < layer.shape().capacity()
}

/// Moves what a layer holds to older ones; whether that was all.
fn empty(layer: &mut QuotientFilter, older: &mut [QuotientFilter]) -> bool {
    let fingerprints = layer.shape().fingerprints();
    while !layer.is_empty() {
        let some: Vec<_> = layer.fingerprints().take(MOVED).collect();
        for fingerprint in some {
            // The lowest hash that has it: it has the same in every layer as the key's own.
            let hash = (u128::from(fingerprint) << 64).div_ceil(fingerprints.into()) as u64;
            let place = older.iter_mut().find(|layer| has_room(layer));
            if place.is_none_or(|place| place.add_mixed_hash(hash).is_err())
                || !layer.remove_mixed_hash(hash)
            {
                return false;
            }
        }
    }
    true
}

// ---- As words and images ------------------------------------------------------------------------

impl Chain {
    /// What it is besides its layers.
    pub(crate) fn words(&self) -> [u64; 5] {
        let ChainPlan { rate, expansion, bucket_size, iterations } = self.plan;
        let small = [expansion, bucket_size, iterations].map(u64::from);
        [rate.to_bits(), small[0], small[1], small[2], self.deletes]
    }

    /// Its layers as bytes.
    pub(crate) fn images(&self) -> Vec<Image<'_>> {
        self.layers.iter().map(QuotientFilter::image).collect()
    }

    /// A row of these layers.
    pub(crate) fn of(words: [u64; 5], layers: Vec<AnyFilter>) -> Result<Self, Refusal> {
        let [rate, expansion, bucket_size, iterations, deletes] = words;
        let small = [expansion, bucket_size, iterations].map(u16::try_from);
        let [Ok(expansion), Ok(bucket_size), Ok(iterations)] = small else {
            return Refusal::malformed("numbers of a row beyond 16 bits");
        };
        let plan = ChainPlan { rate: f64::from_bits(rate), expansion, bucket_size, iterations };
        if !(plan.rate > 0.0 && plan.rate < 1.0) || (expansion & expansion.wrapping_sub(1)) != 0 {
            return Refusal::malformed("a rate or an expansion that no row has");
        }
        let mut row = Self { plan, deletes, layers: Vec::new() };
        for layer in layers {
            let AnyFilter::Quotient(layer) = layer else {
                return Refusal::malformed("a row with a filter of another type");
            };
            row.check_next(&layer)?;
            row.layers.push(layer);
        }
        if row.layers.is_empty() {
            return Refusal::malformed("a row without filters");
        }
        Ok(row)
    }

    /// Whether a layer may be the next.
    fn check_next(&self, layer: &QuotientFilter) -> Result<(), Refusal> {
        let factor = self.plan.factor();
        let follows = self.layers.last().is_none_or(|last| {
            let (last, shape) = (last.shape(), layer.shape());
            Some(shape.slots()) == last.slots().checked_mul(factor)
                && shape.fingerprints() >= last.fingerprints()
        });
        let alike = self.hash_spec().is_none_or(|hash| hash == layer.hash_spec());
        if follows && alike && !layer.is_growing() {
            Ok(())
        } else {
            Refusal::malformed("a layer that does not follow from the one before")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use petal_testkit::rng::Rng;

    use super::*;

    const NO_LIMIT: u64 = u64::MAX;

    fn row(keys: u64, rate: f64, expansion: u16) -> Chain {
        let plan = ChainPlan { rate, expansion, bucket_size: 2, iterations: 20 };
        Chain::new(plan, keys, HashSpec::keyed([7; 16]), NO_LIMIT).unwrap()
    }

    #[test]
    fn no_key_that_is_there_is_denied() {
        for (seed, expansion) in [(1, 1), (2, 2), (3, 4)] {
            // A rate so high that keys collide all the time.
            let mut row = row(50, 0.9, expansion);
            let (mut random, mut there) = (Rng::new(seed), HashMap::<u64, u64>::new());
            for step in 0..20_000 {
                let key = random.below(400) as u64;
                let hash = row.hash(&key.to_le_bytes());
                let copies = there.entry(key).or_default();
                let grows = step / 2000 % 2 == 0;
                if random.one_in(if grows { 3 } else { 2 }) && *copies > 0 {
                    assert!(row.remove(hash));
                    *copies -= 1;
                } else if row.len() < 800 {
                    row.add(hash, 20, NO_LIMIT).unwrap();
                    *copies += 1;
                }
                if step % 1000 == 999 {
                    row.compact();
                    assert_eq!(row.deletes(), 0);
                    for (key, copies) in &there {
                        assert!(row.count(row.hash(&key.to_le_bytes())) >= *copies);
                    }
                    assert_eq!(row.len(), there.values().sum::<u64>());
                }
            }
            assert!(row.layers() > 1);
        }
    }

    #[test]
    fn rates_and_capacities_are_kept() {
        for (keys, rate, expansion) in
            [(4, 0.01, 2), (1000, 0.01, 1), (1024, 0.001, 2), (999, 0.1, 8)]
        {
            let mut row = row(keys, rate, expansion);
            let fill = |row: &mut Chain, keys: std::ops::Range<u64>| {
                for key in keys {
                    row.add(row.hash(&key.to_le_bytes()), 99, NO_LIMIT).unwrap();
                }
            };
            fill(&mut row, 0..keys);
            assert_eq!(row.layers(), 1, "{keys}");
            fill(&mut row, keys..keys * 20);
            let hashes: Vec<_> =
                (1u64 << 40..(1 << 40) + 200_000).map(|key| row.hash(&key.to_le_bytes())).collect();
            let mut found = Answers::new();
            row.contains_all(&hashes, &mut found);
            assert!(hashes.iter().enumerate().all(|(at, h)| found.get(at) == row.contains(*h)));
            let (_, most) = petal_testkit::bounds::binomial_range(200_000, rate, 1e-9);
            assert!(found.count_ones() <= most, "{keys} {}", found.count_ones());
        }
    }

    #[test]
    fn a_row_is_compacted_into_what_it_needs() {
        let mut row = row(1000, 0.01, 2);
        let hashes: Vec<_> = (0..6000u64).map(|key| row.hash(&key.to_le_bytes())).collect();
        hashes.iter().for_each(|hash| row.add(*hash, 9, NO_LIMIT).unwrap());
        let before = (row.layers(), row.memory_usage());
        hashes[..5200].iter().for_each(|hash| assert!(row.remove(*hash)));
        assert_eq!(row.deletes(), 5200);
        row.compact();
        assert_eq!((row.layers(), row.len()), (1, 800));
        assert!(row.memory_usage() < before.1);
        assert!(hashes[5200..].iter().all(|hash| row.contains(*hash)));
    }

    #[test]
    fn it_refuses_to_grow_as_told() {
        for (expansion, layers, limit, expected) in [
            (0, 9, NO_LIMIT, Refusal::Full),
            (1, 3, NO_LIMIT, Refusal::Layers),
            (2, 9, 3000, Refusal::Limit),
        ] {
            let mut row = row(100, 0.01, expansion);
            let refused = (0..9000u64)
                .find_map(|key| row.add(row.hash(&key.to_le_bytes()), layers, limit).err());
            assert_eq!(refused, Some(expected));
            assert!(row.memory_usage() <= limit);
        }
        let plan = ChainPlan { rate: 0.01, expansion: 1, bucket_size: 2, iterations: 20 };
        for (keys, expected) in
            [(1 << 40, Refusal::Limit), (1 << 62, Refusal::TooLarge), (u64::MAX, Refusal::TooLarge)]
        {
            let refused = Chain::new(plan, keys, HashSpec::keyed([7; 16]), 1 << 30).unwrap_err();
            assert_eq!(refused, expected);
        }
    }

    #[test]
    fn a_row_comes_back_from_its_layers() {
        for expansion in [0, 1, 2, 3, 8] {
            let mut row = row(100, 0.01, expansion);
            let keys = if expansion == 0 { 100 } else { 3000u64 };
            (0..keys).for_each(|key| row.add(row.hash(&key.to_le_bytes()), 9, NO_LIMIT).unwrap());
            row.remove(row.hash(&5u64.to_le_bytes()));
            let layers = row.copy().unwrap().layers.into_iter().map(AnyFilter::Quotient).collect();
            let again = Chain::of(row.words(), layers).unwrap();
            assert_eq!((again.words(), again.plan()), (row.words(), row.plan()));
            assert_eq!((again.len(), again.layers()), (keys - 1, row.layers()));
            assert!(again.layers.iter().eq(&row.layers));
        }
    }

    #[test]
    fn layers_that_do_not_follow_are_refused() {
        let mut first = row(100, 0.01, 2);
        (0..400u64).for_each(|key| first.add(first.hash(&key.to_le_bytes()), 9, NO_LIMIT).unwrap());
        let words = first.words();
        let layers = |row: &Chain| -> Vec<_> {
            row.copy().unwrap().layers.into_iter().map(AnyFilter::Quotient).collect()
        };
        let again = Chain::of(words, layers(&first)).unwrap();
        assert_eq!((again.words(), again.len(), again.plan()), (words, 400, first.plan()));
        let mut equal = row(100, 0.01, 1);
        (0..400u64).for_each(|key| equal.add(equal.hash(&key.to_le_bytes()), 9, NO_LIMIT).unwrap());
        assert!(equal.layers() > 1);
        assert_eq!(Chain::of(equal.words(), layers(&equal)).unwrap().words(), equal.words());
        let mut turned = layers(&first);
        turned.reverse();
        let other = row(100, 0.01, 4);
        for (words, layers) in [
            (words, turned),
            (words, Vec::new()),
            (other.words(), layers(&first)),
            ([0, 2, 2, 20, 0], layers(&first)),
            ([words[0], 3, 2, 20, 0], layers(&first)),
            ([words[0], 1 << 16, 2, 20, 0], layers(&first)),
        ] {
            assert!(matches!(Chain::of(words, layers), Err(Refusal::Malformed(_))));
        }
    }
}
