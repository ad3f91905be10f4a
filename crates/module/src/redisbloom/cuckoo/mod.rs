//! RedisBloom's cuckoo filter: layers of buckets with one-byte slots, the newest last.
//!
//! The fingerprint of a key is a byte of its hash, never 0. It is stored in one of two buckets of a
//! layer. Each of the two buckets can be computed from the other and the fingerprint, so
//! fingerprints can be moved without the keys. The number of buckets of a layer is a power of two
//! and a multiple of that of the layer before, so a bucket number in one layer determines the
//! bucket in all older layers.
//!
//! Invariants: there are 1 to [`MAX_LAYERS`] layers; layer i has `buckets · expansion^i` buckets.
//!
//! Source: Fan, Andersen, Kaminsky & Mitzenmacher 2014, "Cuckoo filter: practically better than
//! Bloom".

mod layer;
mod params;

use petal_interop::redisbloom::cuckoo_hash;

use self::layer::{Layer, Position};
pub(crate) use self::params::CuckooParams;
use self::params::DEFAULTS;
use super::byte_arrays;
use crate::error::FilterError;
use crate::server::{FieldReader, FieldWriter};

/// The memory that RedisBloom reports for a filter without layers, and for each layer without its
/// slots.
const FILTER_BYTES: u64 = 40;
const LAYER_BYTES: u64 = 16;
/// Length of the first chunk of a dump.
const HEADER: usize = 38;

/// Maximum number of layers: RedisBloom counts them with 16 bits. Its default setting is 32, but
/// one command with many items may add thousands.
const MAX_LAYERS: u64 = u16::MAX as u64;
/// Maximum number of layers in a header from a client. A lookup visits every layer, so more would
/// take milliseconds.
pub(crate) const MAX_ANNOUNCED_LAYERS: u64 = 1024;

#[derive(Debug)]
pub(crate) struct Cuckoo {
    params: CuckooParams,
    items: u64,
    deletes: u64,
    /// Slots of all layers.
    slots: u64,
    layers: Vec<Layer>,
}

// ---- Construction -------------------------------------------------------------------------------

impl Cuckoo {
    /// Returns an empty filter within a memory limit.
    pub(crate) fn new(params: CuckooParams, memory_limit: u64) -> Result<Self, FilterError> {
        let params = params.checked()?;
        let mut filter = Self { params, items: 0, deletes: 0, slots: 0, layers: Vec::new() };
        filter.push(memory_limit)?;
        Ok(filter)
    }

    /// Adds an empty layer within a memory limit.
    fn push(&mut self, memory_limit: u64) -> Result<(), FilterError> {
        let overhead = size_of::<Layer>() as u64;
        let total = size_of::<Self>() as u64 + overhead * self.layers() + self.slots;
        self.params.check_layer(total, self.layers(), overhead, memory_limit)?;
        self.push_unlimited()
    }

    /// Adds an empty layer without a memory limit.
    fn push_unlimited(&mut self) -> Result<(), FilterError> {
        self.push_layer(Layer::new(&self.params, self.layers())?)
    }

    fn push_layer(&mut self, layer: Layer) -> Result<(), FilterError> {
        let slots = layer.slots.len() as u64;
        byte_arrays::push(&mut self.layers, layer)?;
        self.slots += slots;
        Ok(())
    }

    pub(crate) fn copy(&self) -> Result<Self, FilterError> {
        let mut layers = Vec::new();
        layers.try_reserve_exact(self.layers.len()).map_err(|_| FilterError::OutOfMemory)?;
        for layer in &self.layers {
            layers.push(Layer { slots: byte_arrays::copied(&layer.slots)?, ..*layer });
        }
        Ok(Self { layers, ..*self })
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl Cuckoo {
    /// Returns the hash of a key, for all layers.
    #[inline]
    pub(crate) fn hash(key: &[u8]) -> u64 {
        cuckoo_hash(key)
    }

    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let position = Position::of(hash);
        self.layers.iter().any(|layer| layer.contains(position))
    }

    /// Returns the number of copies of a key; an upper bound.
    pub(crate) fn count(&self, hash: u64) -> u64 {
        let position = Position::of(hash);
        self.layers.iter().map(|layer| layer.count(position)).sum()
    }

    pub(crate) fn params(&self) -> CuckooParams {
        self.params
    }

    pub(crate) fn layers(&self) -> u64 {
        self.layers.len() as u64
    }

    /// Returns the number of keys, with copies.
    pub(crate) fn len(&self) -> u64 {
        self.items
    }

    /// Returns the number of deletions since the last compaction.
    pub(crate) fn deletes(&self) -> u64 {
        self.deletes
    }

    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    pub(crate) fn memory_usage(&self) -> u64 {
        let layers = self.layers.capacity() * size_of::<Layer>();
        (size_of::<Self>() + layers) as u64 + self.slots()
    }

    /// Returns the memory that RedisBloom reports.
    pub(crate) fn size(&self) -> u64 {
        FILTER_BYTES + LAYER_BYTES * self.layers() + self.slots()
    }
}

// ---- Changes ------------------------------------------------------------------------------------

impl Cuckoo {
    /// Inserts a key within a memory limit.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        memory_limit: impl FnOnce() -> u64,
    ) -> Result<(), FilterError> {
        self.insert_within(hash, || (MAX_LAYERS, memory_limit()))
    }

    /// Inserts a copy of a key. The limits (layers, bytes) are read only if the filter has to grow.
    pub(crate) fn insert_within(
        &mut self,
        hash: u64,
        limits: impl FnOnce() -> (u64, u64),
    ) -> Result<(), FilterError> {
        let position = Position::of(hash);
        let free = self
            .layers
            .iter_mut()
            .rev()
            .any(|layer| layer.replace(position, 0, position.fingerprint));
        if !free && !self.kick(position) {
            if self.params.expansion == 0 {
                return Err(FilterError::Full);
            }
            let (layers, bytes) = limits();
            if self.layers() >= layers.min(MAX_LAYERS) {
                return Err(FilterError::MaxLayers);
            }
            self.push(bytes)?;
            self.layers.last_mut().map(|layer| layer.replace(position, 0, position.fingerprint));
        }
        // A loaded header may have reported more items than slots.
        self.items = self.items.saturating_add(1).min(self.slots());
        Ok(())
    }

    fn kick(&mut self, position: Position) -> bool {
        let iterations = self.params.iterations;
        self.layers.last_mut().is_some_and(|layer| layer.kick(position, iterations))
    }

    /// Returns whether the filter is as after [`clear`](Self::clear).
    pub(crate) fn is_clear(&self) -> bool {
        (self.layers(), self.items, self.deletes) == (1, 0, 0)
            && self.layers.iter().all(|layer| layer.slots.iter().all(|slot| *slot == 0))
    }

    /// Removes all keys and frees all layers except the first.
    pub(crate) fn clear(&mut self) {
        self.layers.truncate(1);
        self.layers.shrink_to_fit();
        self.layers.iter_mut().for_each(|layer| layer.slots.fill(0));
        self.slots = self.layers.iter().map(|layer| layer.slots.len() as u64).sum();
        (self.items, self.deletes) = (0, 0);
    }

    /// Removes one copy of a key. Returns whether it was present.
    pub(crate) fn delete(&mut self, hash: u64) -> bool {
        let position = Position::of(hash);
        let found = self
            .layers
            .iter_mut()
            .rev()
            .any(|layer| layer.replace(position, position.fingerprint, 0));
        if found {
            self.items = self.items.saturating_sub(1);
            self.deletes = self.deletes.saturating_add(1);
            if self.layers.len() > 1 && self.deletes as f64 > self.items as f64 * 0.1 {
                self.compact(false);
            }
        }
        found
    }

    /// Moves fingerprints from newer layers to older ones and frees empty layers. Without `all` it
    /// stops at the first layer that does not become empty. Returns whether the filter changed.
    pub(crate) fn compact(&mut self, all: bool) -> bool {
        let before = (self.layers(), self.items, self.deletes);
        let mut moved_any = false;
        for layer in (1..self.layers.len()).rev() {
            let (moved, emptied) = self.move_to_older(layer);
            moved_any |= moved;
            if emptied && layer + 1 == self.layers.len() {
                self.slots -= self.layers.pop().map_or(0, |layer| layer.slots.len() as u64);
            }
            if !emptied && !all {
                break;
            }
        }
        self.deletes = 0;
        // As in `insert_within`.
        self.items = self.items.min(self.slots());
        moved_any || before != (self.layers(), self.items, self.deletes)
    }

    /// Moves fingerprints of a layer to older ones. Returns whether any and whether all were moved.
    fn move_to_older(&mut self, layer: usize) -> (bool, bool) {
        let (older, newer) = self.layers.split_at_mut(layer);
        let Some(layer) = newer.first_mut() else { return (false, false) };
        let (mut moved, mut emptied) = (false, true);
        for (number, bucket) in layer.slots.chunks_mut(layer.bucket_size).enumerate() {
            for slot in bucket.iter_mut().filter(|slot| **slot != 0) {
                let position = Position::at(number as u64, *slot);
                if older.iter_mut().any(|layer| layer.replace(position, 0, position.fingerprint)) {
                    *slot = 0;
                    moved = true;
                } else {
                    emptied = false;
                }
            }
        }
        (moved, emptied)
    }
}

// ---- Chunks -------------------------------------------------------------------------------------

impl Cuckoo {
    /// Returns the first chunk of `CF.SCANDUMP`.
    pub(crate) fn header(&self) -> [u8; HEADER] {
        let CuckooParams { buckets, bucket_size, iterations, expansion } = self.params;
        let mut header = [0; HEADER];
        let numbers = [self.items, buckets, self.deletes, self.layers()];
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        let rest = [bucket_size, iterations, expansion];
        let rest = rest.iter().flat_map(|number| number.to_le_bytes());
        header.iter_mut().zip(numbers.chain(rest)).for_each(|(to, from)| *to = from);
        header
    }

    /// Returns the chunk after a position, from 1 on, and the position after the chunk.
    pub(crate) fn chunk(&self, position: u64) -> Option<(u64, &[u8])> {
        byte_arrays::chunk(self.layers.iter().map(|layer| &*layer.slots), position)
    }

    /// Creates a filter from the first chunk, with all slots empty. `None` if the length is not
    /// that of a header.
    pub(crate) fn from_header(
        bytes: &[u8],
        memory_limit: u64,
    ) -> Option<Result<Self, FilterError>> {
        let bytes: &[u8; HEADER] = bytes.try_into().ok()?;
        let (numbers, rest) = bytes.split_at(32);
        let number =
            |at: usize| numbers.as_chunks().0.get(at).map_or(0, |n| u64::from_le_bytes(*n));
        let small = |at: usize| rest.as_chunks().0.get(at).map_or(0, |n| u16::from_le_bytes(*n));
        let params = CuckooParams {
            buckets: number(1),
            bucket_size: small(0),
            iterations: small(1),
            expansion: small(2),
        };
        Some(Self::with_layers(params, number(3), number(0), number(2), memory_limit))
    }

    /// Returns the number of layers in the first chunk, for a check before they are allocated.
    /// `None` if the length is not that of a header.
    pub(crate) fn announced_layers(bytes: &[u8]) -> Option<u64> {
        let bytes: &[u8; HEADER] = bytes.try_into().ok()?;
        bytes.as_chunks().0.get(3).map(|layers| u64::from_le_bytes(*layers))
    }

    fn with_layers(
        params: CuckooParams,
        layers: u64,
        items: u64,
        deletes: u64,
        memory_limit: u64,
    ) -> Result<Self, FilterError> {
        check_layers(params.checked()?, layers)?;
        let overhead = size_of::<Layer>() as u64;
        (0..layers).try_fold(size_of::<Self>() as u64, |total, layer| {
            params.check_layer(total, layer, overhead, memory_limit)
        })?;
        let mut filter = Self { params, items, deletes, slots: 0, layers: Vec::new() };
        filter.layers.try_reserve_exact(layers as usize).map_err(|_| FilterError::OutOfMemory)?;
        for _ in 0..layers {
            filter.push_unlimited()?;
        }
        filter.items = filter.items.min(filter.slots());
        Ok(filter)
    }

    /// Writes the chunk that ends at a position. Returns whether the slots changed.
    ///
    /// # Errors
    /// If it is empty, as in RedisBloom, or is not within a layer.
    pub(crate) fn put_chunk(&mut self, position: u64, data: &[u8]) -> Result<bool, FilterError> {
        if data.is_empty() {
            return FilterError::malformed("a chunk without bytes");
        }
        let arrays = self.layers.iter_mut().map(|layer| &mut *layer.slots);
        let slots = byte_arrays::chunk_mut(arrays, position, data.len())?;
        let changed = slots != data;
        slots.copy_from_slice(data);
        Ok(changed)
    }
}

/// Checks the number of layers; a filter that does not grow has one.
fn check_layers(params: CuckooParams, layers: u64) -> Result<(), FilterError> {
    let max = if params.expansion == 0 { 1 } else { MAX_LAYERS };
    if (1..=max).contains(&layers) {
        Ok(())
    } else {
        FilterError::malformed("invalid number of layers")
    }
}

// ---- RDB fields ---------------------------------------------------------------------------------

impl Cuckoo {
    /// Writes the fields of encoding version 4.
    pub(crate) fn save(&self, out: &mut impl FieldWriter) {
        let CuckooParams { buckets, bucket_size, iterations, expansion } = self.params;
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

    /// Reads the fields of encoding versions up to 4. Older versions have only the number of
    /// layers, the buckets of the first layer, the number of keys, and the slots.
    pub(crate) fn load(version: i32, input: &mut impl FieldReader) -> Result<Self, FilterError> {
        if !(0..=4).contains(&version) {
            return FilterError::malformed("unsupported encoding version");
        }
        let (layers, buckets, items) = (input.unsigned()?, input.unsigned()?, input.unsigned()?);
        let (mut params, mut deletes) = (CuckooParams { buckets, ..DEFAULTS }, 0);
        if version >= 4 {
            deletes = input.unsigned()?;
            let rest = [input.unsigned()?, input.unsigned()?, input.unsigned()?];
            let [Ok(bucket_size), Ok(iterations), Ok(expansion)] = rest.map(u16::try_from) else {
                return FilterError::malformed("a parameter exceeds 16 bits");
            };
            params = CuckooParams { buckets, bucket_size, iterations, expansion };
        }
        check_layers(params.checked()?, layers)?;
        let mut filter = Self { params, items, deletes, slots: 0, layers: Vec::new() };
        for layer in 0..layers {
            let buckets = if version >= 4 { Some(input.unsigned()?) } else { None };
            let slots = input.bytes()?;
            if buckets.is_some_and(|buckets| params.buckets_of(layer) != Some(buckets)) {
                return FilterError::malformed(
                    "the number of buckets of a layer does not match its position",
                );
            }
            filter.push_layer(Layer::from_slots(&params, layer, slots)?)?;
        }
        filter.items = filter.items.min(filter.slots());
        Ok(filter)
    }
}
