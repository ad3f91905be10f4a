//! RedisBloom's cuckoo filter: layers of buckets with slots of a byte, the newest last.
//!
//! A byte of a key's hash, never 0, is its mark; it stands in one of two buckets of any layer. The
//! second bucket follows from the first and the mark, and the first from the second, so marks can
//! be moved without their keys. Buckets of a layer are a power of two, and those of the next are a
//! power of two as many: a mark's place in a layer tells its place in all before.
//!
//! Invariants: there are 1 to [`MOST_LAYERS`] layers; layer i has `buckets · expansion^i` buckets.
//!
//! Source: Fan, Andersen, Kaminsky & Mitzenmacher 2014, "Cuckoo filter: practically better than
//! Bloom".

use petal_interop::redisbloom::cuckoo_hash;

use super::rows::{self, zeroed};
use crate::fields::{Load, Save};
use crate::refusal::{MOST_BYTES, Refusal};

/// What RedisBloom counts for a filter without layers, and for each of them.
const FILTER_BYTES: u64 = 40;
const LAYER_BYTES: u64 = 16;
/// RedisBloom numbers the slots of a layer in 32 bits, but not where it moves marks: in a larger one
/// it looks for some keys where they are not. There is no such layer here.
const LARGEST_LAYER: u64 = 1 << 32;
/// Bytes of the first chunk of a dump.
const HEADER: usize = 38;
/// What files say nothing of that were written before these could be chosen.
const FIRST: CuckooPlan = CuckooPlan { buckets: 0, bucket_size: 2, iterations: 20, expansion: 1 };

/// Layers that there can be: RedisBloom counts them in 16 bits. It stops at 32 if nothing else is
/// set, but one command of many items may make thousands.
const MOST_LAYERS: u64 = u16::MAX as u64;
/// Layers that a client may announce: every question looks into each, and those of a header of 38
/// bytes shall not take milliseconds.
pub(crate) const MOST_ANNOUNCED: u64 = 1024;

/// What a filter is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CuckooPlan {
    /// Of the first layer, a power of two.
    pub(crate) buckets: u64,
    /// Slots of a bucket, 1 to 255.
    pub(crate) bucket_size: u16,
    /// How many marks are moved before it gives up.
    pub(crate) iterations: u16,
    /// How many times the buckets of the last layer the next has, a power of two; 0 if there is
    /// none.
    pub(crate) expansion: u16,
}

impl CuckooPlan {
    /// As `CF.RESERVE` reads it.
    pub(crate) fn new(
        capacity: u64,
        bucket_size: u16,
        iterations: u16,
        expansion: u16,
    ) -> Result<Self, Refusal> {
        let buckets = (capacity / u64::from(bucket_size.max(1))).max(1);
        let buckets = buckets.checked_next_power_of_two().ok_or(Refusal::Memory)?;
        let expansion = if expansion == 0 { 0 } else { expansion.next_power_of_two() };
        Self { buckets, bucket_size, iterations, expansion }.checked()
    }

    fn checked(self) -> Result<Self, Refusal> {
        let right = self.buckets.is_power_of_two()
            && (1..=255).contains(&self.bucket_size)
            && self.iterations > 0
            && (self.expansion == 0 || self.expansion.is_power_of_two());
        if right { Ok(self) } else { Refusal::malformed("buckets that RedisBloom does not make") }
    }

    /// Buckets of a layer.
    fn buckets_of(&self, layer: u64) -> Option<u64> {
        let doublings = u64::from(self.expansion.max(1).trailing_zeros()).checked_mul(layer)?;
        let doublings = u32::try_from(doublings).ok().filter(|doublings| *doublings < 64)?;
        self.buckets.checked_mul(1 << doublings)
    }

    /// Bytes of a layer; none if there can be none as large.
    fn bytes_of(&self, layer: u64) -> Option<u64> {
        let bytes = self.buckets_of(layer)?.checked_mul(self.bucket_size.into())?;
        Some(bytes).filter(|bytes| *bytes <= LARGEST_LAYER)
    }

    /// Whether a filter of so many layers takes at most so many bytes.
    fn check_bytes(&self, layers: u64, limit: u64) -> Result<(), Refusal> {
        let mut all = size_of::<Cuckoo>() as u64;
        let beside = size_of::<Layer>() as u64;
        for layer in 0..layers {
            all = self.check_layer(all, layer, beside, limit)?;
        }
        Ok(())
    }

    /// Bytes with one layer more, if they are at most so many.
    fn check_layer(&self, all: u64, layer: u64, beside: u64, limit: u64) -> Result<u64, Refusal> {
        let slots = self.buckets_of(layer).and_then(|n| n.checked_mul(self.bucket_size.into()));
        let slots = slots.filter(|slots| *slots <= MOST_BYTES).ok_or(Refusal::TooLarge)?;
        let all = all.saturating_add(slots).saturating_add(beside);
        if all > limit {
            Err(Refusal::Limit)
        } else if slots > LARGEST_LAYER {
            Err(Refusal::LargeLayer)
        } else {
            Ok(all)
        }
    }
}

/// A cuckoo filter.
#[derive(Debug)]
pub(crate) struct Cuckoo {
    plan: CuckooPlan,
    items: u64,
    deletes: u64,
    /// Of all layers.
    slots: u64,
    layers: Vec<Layer>,
}

/// A key in a layer: its mark, and two numbers whose lower bits are its buckets.
#[derive(Clone, Copy)]
struct Place {
    mark: u8,
    first: u64,
    second: u64,
}

impl Place {
    fn of(hash: u64) -> Self {
        Self::at(hash, (hash % 255 + 1) as u8)
    }

    /// Of a mark that is found in a bucket.
    fn at(bucket: u64, mark: u8) -> Self {
        Self { mark, first: bucket, second: other(bucket, mark) }
    }
}

/// The other bucket of a mark.
fn other(bucket: u64, mark: u8) -> u64 {
    bucket ^ (u64::from(mark) * 0x5bd1_e995)
}

#[derive(Debug)]
struct Layer {
    /// Buckets less one.
    mask: u64,
    bucket_size: usize,
    slots: Box<[u8]>,
}

impl Layer {
    fn new(plan: &CuckooPlan, layer: u64) -> Result<Self, Refusal> {
        Self::over(plan, layer, zeroed(plan.bytes_of(layer).ok_or(Refusal::Limit)?)?)
    }

    fn over(plan: &CuckooPlan, layer: u64, slots: Box<[u8]>) -> Result<Self, Refusal> {
        let buckets = plan.buckets_of(layer).ok_or(Refusal::Limit)?;
        if plan.bytes_of(layer).ok_or(Refusal::Limit)? != slots.len() as u64 {
            return Refusal::malformed("a layer with more or fewer slots than it says");
        }
        Ok(Self { mask: buckets - 1, bucket_size: plan.bucket_size.into(), slots })
    }

    #[inline]
    fn bucket(&self, number: u64) -> &[u8] {
        let at = (number & self.mask) as usize * self.bucket_size;
        &self.slots[at..at + self.bucket_size]
    }

    #[inline]
    fn bucket_mut(&mut self, number: u64) -> &mut [u8] {
        let at = (number & self.mask) as usize * self.bucket_size;
        &mut self.slots[at..at + self.bucket_size]
    }

    #[inline]
    fn holds(&self, place: Place) -> bool {
        self.bucket(place.first).contains(&place.mark)
            || self.bucket(place.second).contains(&place.mark)
    }

    fn count(&self, place: Place) -> u64 {
        let count = |bucket: u64| {
            self.bucket(bucket).iter().filter(|slot| **slot == place.mark).count() as u64
        };
        // Twice if they are one bucket: RedisBloom's answer.
        count(place.first) + count(place.second)
    }

    /// Writes into the first slot of a key's buckets that holds this.
    #[inline]
    fn replace(&mut self, place: Place, what: u8, with: u8) -> bool {
        for bucket in [place.first, place.second] {
            if let Some(slot) = self.bucket_mut(bucket).iter_mut().find(|slot| **slot == what) {
                *slot = with;
                return true;
            }
        }
        false
    }

    /// Puts a mark where others are, moving each in turn to its other bucket, until one finds a
    /// free slot. If none does, all is as it was.
    fn kick(&mut self, place: Place, iterations: u16) -> bool {
        let (mut mark, mut bucket, mut victim) = (place.mark, place.first, 0);
        for _ in 0..iterations {
            std::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut mark);
            bucket = other(bucket, mark);
            if let Some(free) = self.bucket_mut(bucket).iter_mut().find(|slot| **slot == 0) {
                *free = mark;
                return true;
            }
            victim = (victim + 1) % self.bucket_size;
        }
        for _ in 0..iterations {
            victim = (victim + self.bucket_size - 1) % self.bucket_size;
            bucket = other(bucket, mark);
            std::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut mark);
        }
        false
    }
}

// ---- Made ---------------------------------------------------------------------------------------

impl Cuckoo {
    /// An empty filter, if it takes no more than so many bytes.
    pub(crate) fn new(plan: CuckooPlan, limit: u64) -> Result<Self, Refusal> {
        let plan = plan.checked()?;
        let mut filter = Self { plan, items: 0, deletes: 0, slots: 0, layers: Vec::new() };
        filter.push(limit)?;
        Ok(filter)
    }

    /// Adds an empty layer, if all take no more than so many bytes.
    fn push(&mut self, limit: u64) -> Result<(), Refusal> {
        let beside = size_of::<Layer>() as u64;
        let all = size_of::<Self>() as u64 + beside * self.layers() + self.slots;
        self.plan.check_layer(all, self.layers(), beside, limit)?;
        self.push_checked()
    }

    /// Adds an empty layer.
    fn push_checked(&mut self) -> Result<(), Refusal> {
        self.push_layer(Layer::new(&self.plan, self.layers())?)
    }

    fn push_layer(&mut self, layer: Layer) -> Result<(), Refusal> {
        let slots = layer.slots.len() as u64;
        rows::push(&mut self.layers, layer)?;
        self.slots += slots;
        Ok(())
    }

    /// A copy.
    pub(crate) fn copy(&self) -> Result<Self, Refusal> {
        let mut layers = Vec::new();
        layers.try_reserve_exact(self.layers.len()).map_err(|_| Refusal::Memory)?;
        for layer in &self.layers {
            layers.push(Layer { slots: rows::copied(&layer.slots)?, ..*layer });
        }
        Ok(Self { layers, ..*self })
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl Cuckoo {
    /// What all layers take of a key.
    #[inline]
    pub(crate) fn hash(key: &[u8]) -> u64 {
        cuckoo_hash(key)
    }

    /// Whether a key may be there.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let place = Place::of(hash);
        self.layers.iter().any(|layer| layer.holds(place))
    }

    /// How often a key may be there.
    pub(crate) fn count(&self, hash: u64) -> u64 {
        let place = Place::of(hash);
        self.layers.iter().map(|layer| layer.count(place)).sum()
    }

    /// What it was made with.
    pub(crate) fn plan(&self) -> CuckooPlan {
        self.plan
    }

    /// Layers that there are.
    pub(crate) fn layers(&self) -> u64 {
        self.layers.len() as u64
    }

    /// Keys that are in it.
    pub(crate) fn len(&self) -> u64 {
        self.items
    }

    /// Keys that were deleted since its layers were last emptied into each other.
    pub(crate) fn deletes(&self) -> u64 {
        self.deletes
    }

    /// Slots that there are.
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory_usage(&self) -> u64 {
        let layers = self.layers.capacity() * size_of::<Layer>();
        (size_of::<Self>() + layers) as u64 + self.slots()
    }

    /// Bytes that it takes, as RedisBloom counts them.
    pub(crate) fn size(&self) -> u64 {
        FILTER_BYTES + LAYER_BYTES * self.layers() + self.slots()
    }
}

// ---- Changed ------------------------------------------------------------------------------------

impl Cuckoo {
    /// Inserts a key, with a limit of bytes.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn insert(&mut self, hash: u64, limit: impl FnOnce() -> u64) -> Result<(), Refusal> {
        self.insert_within(hash, || (MOST_LAYERS, limit()))
    }

    /// Inserts a key once more. The limits of layers and of bytes are read only if it has to grow.
    pub(crate) fn insert_within(
        &mut self,
        hash: u64,
        limits: impl FnOnce() -> (u64, u64),
    ) -> Result<(), Refusal> {
        let place = Place::of(hash);
        let free = self.layers.iter_mut().rev().any(|layer| layer.replace(place, 0, place.mark));
        if !free && !self.kick(place) {
            if self.plan.expansion == 0 {
                return Err(Refusal::Full);
            }
            let (layers, bytes) = limits();
            if self.layers() >= layers.min(MOST_LAYERS) {
                return Err(Refusal::Layers);
            }
            self.push(bytes)?;
            self.layers.last_mut().map(|layer| layer.replace(place, 0, place.mark));
        }
        // Bytes from outside may have told of more than there were.
        self.items = self.items.saturating_add(1).min(self.slots());
        Ok(())
    }

    fn kick(&mut self, place: Place) -> bool {
        let iterations = self.plan.iterations;
        self.layers.last_mut().is_some_and(|layer| layer.kick(place, iterations))
    }

    /// Removes all keys, and all layers but the first.
    pub(crate) fn clear(&mut self) {
        self.layers.truncate(1);
        self.layers.shrink_to_fit();
        self.layers.iter_mut().for_each(|layer| layer.slots.fill(0));
        self.slots = self.layers.iter().map(|layer| layer.slots.len() as u64).sum();
        (self.items, self.deletes) = (0, 0);
    }

    /// Takes a key out once; whether it was there.
    pub(crate) fn delete(&mut self, hash: u64) -> bool {
        let place = Place::of(hash);
        let found = self.layers.iter_mut().rev().any(|layer| layer.replace(place, place.mark, 0));
        if found {
            self.items = self.items.saturating_sub(1);
            self.deletes = self.deletes.saturating_add(1);
            if self.layers.len() > 1 && self.deletes as f64 > self.items as f64 * 0.1 {
                self.compact(false);
            }
        }
        found
    }

    /// Moves marks from the newest layers to older ones, and gives back layers that are empty
    /// then: of all layers, or up to the first that does not become empty.
    pub(crate) fn compact(&mut self, all: bool) {
        for layer in (1..self.layers.len()).rev() {
            let emptied = self.empty(layer);
            if emptied && layer + 1 == self.layers.len() {
                self.slots -= self.layers.pop().map_or(0, |layer| layer.slots.len() as u64);
            }
            if !emptied && !all {
                break;
            }
        }
        self.deletes = 0;
        // As in `insert`.
        self.items = self.items.min(self.slots());
    }

    /// Moves what it can of a layer to older ones; whether that was all.
    fn empty(&mut self, layer: usize) -> bool {
        let (older, newer) = self.layers.split_at_mut(layer);
        let Some(layer) = newer.first_mut() else { return false };
        let mut emptied = true;
        for (number, bucket) in layer.slots.chunks_mut(layer.bucket_size).enumerate() {
            for slot in bucket.iter_mut().filter(|slot| **slot != 0) {
                let place = Place::at(number as u64, *slot);
                if older.iter_mut().any(|layer| layer.replace(place, 0, place.mark)) {
                    *slot = 0;
                } else {
                    emptied = false;
                }
            }
        }
        emptied
    }
}

// ---- As chunks ----------------------------------------------------------------------------------

impl Cuckoo {
    /// The first chunk of `CF.SCANDUMP`.
    pub(crate) fn header(&self) -> [u8; HEADER] {
        let CuckooPlan { buckets, bucket_size, iterations, expansion } = self.plan;
        let mut header = [0; HEADER];
        let numbers = [self.items, buckets, self.deletes, self.layers()];
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        let rest = [bucket_size, iterations, expansion];
        let rest = rest.iter().flat_map(|number| number.to_le_bytes());
        header.iter_mut().zip(numbers.chain(rest)).for_each(|(to, from)| *to = from);
        header
    }

    /// The chunk behind a position from 1 on, and the position behind it.
    pub(crate) fn chunk(&self, position: u64) -> Option<(u64, &[u8])> {
        rows::chunk(self.layers.iter().map(|layer| &*layer.slots), position)
    }

    /// What the first chunk tells of, with no mark in it yet. If bytes are not as many as a header
    /// has, there is none.
    pub(crate) fn from_header(bytes: &[u8], limit: u64) -> Option<Result<Self, Refusal>> {
        let bytes: &[u8; HEADER] = bytes.try_into().ok()?;
        let (numbers, rest) = bytes.split_at(32);
        let number =
            |at: usize| numbers.as_chunks().0.get(at).map_or(0, |n| u64::from_le_bytes(*n));
        let small = |at: usize| rest.as_chunks().0.get(at).map_or(0, |n| u16::from_le_bytes(*n));
        let plan = CuckooPlan {
            buckets: number(1),
            bucket_size: small(0),
            iterations: small(1),
            expansion: small(2),
        };
        Some(Self::told(plan, number(3), number(0), number(2), limit))
    }

    /// How many layers the first chunk announces, if it is one: to be judged before they are made.
    pub(crate) fn announced_layers(bytes: &[u8]) -> Option<u64> {
        let bytes: &[u8; HEADER] = bytes.try_into().ok()?;
        bytes.as_chunks().0.get(3).map(|layers| u64::from_le_bytes(*layers))
    }

    fn told(
        plan: CuckooPlan,
        layers: u64,
        items: u64,
        deletes: u64,
        limit: u64,
    ) -> Result<Self, Refusal> {
        check_layers(plan.checked()?, layers)?;
        plan.check_bytes(layers, limit)?;
        let mut filter = Self { plan, items, deletes, slots: 0, layers: Vec::new() };
        filter.layers.try_reserve_exact(layers as usize).map_err(|_| Refusal::Memory)?;
        for _ in 0..layers {
            filter.push_checked()?;
        }
        filter.items = filter.items.min(filter.slots());
        Ok(filter)
    }

    /// Puts in the chunk before a position.
    pub(crate) fn put_chunk(&mut self, position: u64, data: &[u8]) -> Result<(), Refusal> {
        let rows = self.layers.iter_mut().map(|layer| &mut *layer.slots);
        rows::place_of(rows, position, data.len())?.copy_from_slice(data);
        Ok(())
    }
}

/// A filter that does not grow has one layer.
fn check_layers(plan: CuckooPlan, layers: u64) -> Result<(), Refusal> {
    let most = if plan.expansion == 0 { 1 } else { MOST_LAYERS };
    if (1..=most).contains(&layers) {
        Ok(())
    } else {
        Refusal::malformed("layers that cannot be so many")
    }
}

// ---- As fields of the server's files ------------------------------------------------------------

impl Cuckoo {
    /// Writes the fields of version 4.
    pub(crate) fn save(&self, out: &mut impl Save) {
        let CuckooPlan { buckets, bucket_size, iterations, expansion } = self.plan;
        for number in [self.layers(), buckets, self.items, self.deletes] {
            out.unsigned(number);
        }
        for number in [bucket_size, iterations, expansion] {
            out.unsigned(number.into());
        }
        for layer in &self.layers {
            out.unsigned(layer.mask + 1);
            out.bytes(&layer.slots);
        }
    }

    /// Reads the fields of a version up to 4. Those before have layers and their first buckets,
    /// keys and slots, and nothing else.
    pub(crate) fn load(version: i32, input: &mut impl Load) -> Result<Self, Refusal> {
        if !(0..=4).contains(&version) {
            return Refusal::malformed("a version that is not known");
        }
        Self::read(version, input).unwrap_or_else(|| Refusal::malformed("it ends early"))
    }

    /// None if a field is missing.
    fn read(version: i32, input: &mut impl Load) -> Option<Result<Self, Refusal>> {
        let (layers, buckets, items) = (input.unsigned()?, input.unsigned()?, input.unsigned()?);
        let (mut plan, mut deletes) = (CuckooPlan { buckets, ..FIRST }, 0);
        if version >= 4 {
            deletes = input.unsigned()?;
            let rest = [input.unsigned()?, input.unsigned()?, input.unsigned()?];
            let [Ok(bucket_size), Ok(iterations), Ok(expansion)] = rest.map(u16::try_from) else {
                return Some(Refusal::malformed("numbers beyond 16 bits"));
            };
            plan = CuckooPlan { buckets, bucket_size, iterations, expansion };
        }
        let checked = plan.checked().and_then(|plan| check_layers(plan, layers));
        if let Err(refused) = checked {
            return Some(Err(refused));
        }
        let mut filter = Self { plan, items, deletes, slots: 0, layers: Vec::new() };
        for layer in 0..layers {
            let buckets = if version >= 4 { Some(input.unsigned()?) } else { None };
            let slots = input.bytes()?;
            if buckets.is_some_and(|buckets| plan.buckets_of(layer) != Some(buckets)) {
                return Some(Refusal::malformed(
                    "a layer with more or fewer buckets than its place has",
                ));
            }
            let layer = Layer::over(&plan, layer, slots);
            if let Err(refused) = layer.and_then(|layer| filter.push_layer(layer)) {
                return Some(Err(refused));
            }
        }
        // Where bytes from outside have told of more than there were, RedisBloom keeps to it.
        filter.items = filter.items.min(filter.slots());
        Some(Ok(filter))
    }
}
