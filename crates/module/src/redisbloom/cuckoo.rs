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

use petal_interop::redisbloom::cuckoo_hash;

use super::byte_arrays::{self, zeroed};
use crate::error::{FilterError, MAX_BYTES};
use crate::server::{FieldReader, FieldWriter};

/// The memory that RedisBloom reports for a filter without layers, and for each layer without its
/// slots.
const FILTER_BYTES: u64 = 40;
const LAYER_BYTES: u64 = 16;
/// Maximum size of a layer. RedisBloom computes slot numbers with 32 bits, except when it moves
/// fingerprints, so it loses keys in larger layers.
const MAX_LAYER_BYTES: u64 = 1 << 32;
/// Length of the first chunk of a dump.
const HEADER: usize = 38;
/// The parameters of encodings without these fields.
const DEFAULTS: CuckooParams =
    CuckooParams { buckets: 0, bucket_size: 2, iterations: 20, expansion: 1 };

/// Maximum number of layers: RedisBloom counts them with 16 bits. Its default setting is 32, but
/// one command with many items may add thousands.
const MAX_LAYERS: u64 = u16::MAX as u64;
/// Maximum number of layers in a header from a client. A lookup visits every layer, so more would
/// take milliseconds.
pub(crate) const MAX_ANNOUNCED_LAYERS: u64 = 1024;

/// The parameters of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CuckooParams {
    /// Buckets of the first layer, a power of two.
    pub(crate) buckets: u64,
    /// Slots per bucket, 1 to 255.
    pub(crate) bucket_size: u16,
    /// Maximum number of fingerprints that an insert moves.
    pub(crate) iterations: u16,
    /// The buckets of a layer divided by those of the layer before, a power of two; 0: the filter
    /// does not grow.
    pub(crate) expansion: u16,
}

impl CuckooParams {
    /// Returns the parameters for the arguments of `CF.RESERVE`.
    pub(crate) fn new(
        capacity: u64,
        bucket_size: u16,
        iterations: u16,
        expansion: u16,
    ) -> Result<Self, FilterError> {
        let buckets = (capacity / u64::from(bucket_size.max(1))).max(1);
        let buckets = buckets.checked_next_power_of_two().ok_or(FilterError::OutOfMemory)?;
        let expansion = if expansion == 0 { 0 } else { expansion.next_power_of_two() };
        Self { buckets, bucket_size, iterations, expansion }.checked()
    }

    fn checked(self) -> Result<Self, FilterError> {
        let valid = self.buckets.is_power_of_two()
            && (1..=255).contains(&self.bucket_size)
            && self.iterations > 0
            && (self.expansion == 0 || self.expansion.is_power_of_two());
        if valid { Ok(self) } else { FilterError::malformed("invalid bucket parameters") }
    }

    /// Returns the number of buckets of a layer; `None` on overflow.
    fn buckets_of(&self, layer: u64) -> Option<u64> {
        let doublings = u64::from(self.expansion.max(1).trailing_zeros()).checked_mul(layer)?;
        let doublings = u32::try_from(doublings).ok().filter(|doublings| *doublings < 64)?;
        self.buckets.checked_mul(1 << doublings)
    }

    /// Returns the size of a layer; `None` if it exceeds [`MAX_LAYER_BYTES`].
    fn bytes_of(&self, layer: u64) -> Option<u64> {
        let bytes = self.buckets_of(layer)?.checked_mul(self.bucket_size.into())?;
        Some(bytes).filter(|bytes| *bytes <= MAX_LAYER_BYTES)
    }

    /// Checks that a filter with this number of layers fits within a memory limit.
    fn check_bytes(&self, layers: u64, memory_limit: u64) -> Result<(), FilterError> {
        let mut total = size_of::<Cuckoo>() as u64;
        let overhead = size_of::<Layer>() as u64;
        for layer in 0..layers {
            total = self.check_layer(total, layer, overhead, memory_limit)?;
        }
        Ok(())
    }

    /// Returns the memory with one more layer, if it is within the limit.
    fn check_layer(
        &self,
        total: u64,
        layer: u64,
        overhead: u64,
        memory_limit: u64,
    ) -> Result<u64, FilterError> {
        let slots = self.buckets_of(layer).and_then(|n| n.checked_mul(self.bucket_size.into()));
        let slots = slots.filter(|slots| *slots <= MAX_BYTES).ok_or(FilterError::TooLarge)?;
        let total = total.saturating_add(slots).saturating_add(overhead);
        if total > memory_limit {
            Err(FilterError::MemoryLimit)
        } else if slots > MAX_LAYER_BYTES {
            Err(FilterError::LayerTooLarge)
        } else {
            Ok(total)
        }
    }
}

#[derive(Debug)]
pub(crate) struct Cuckoo {
    params: CuckooParams,
    items: u64,
    deletes: u64,
    /// Slots of all layers.
    slots: u64,
    layers: Vec<Layer>,
}

/// The position of a key: its fingerprint, and two numbers whose lower bits are its buckets.
#[derive(Clone, Copy)]
struct Position {
    fingerprint: u8,
    first: u64,
    second: u64,
}

impl Position {
    fn of(hash: u64) -> Self {
        Self::at(hash, (hash % 255 + 1) as u8)
    }

    /// Returns the position of a fingerprint that is stored in a bucket.
    fn at(bucket: u64, fingerprint: u8) -> Self {
        Self { fingerprint, first: bucket, second: other_bucket(bucket, fingerprint) }
    }
}

/// Returns the other bucket of a fingerprint.
fn other_bucket(bucket: u64, fingerprint: u8) -> u64 {
    bucket ^ (u64::from(fingerprint) * 0x5bd1_e995)
}

#[derive(Debug)]
struct Layer {
    /// Number of buckets minus one.
    mask: u64,
    bucket_size: usize,
    slots: Box<[u8]>,
}

impl Layer {
    fn new(params: &CuckooParams, layer: u64) -> Result<Self, FilterError> {
        Self::from_slots(
            params,
            layer,
            zeroed(params.bytes_of(layer).ok_or(FilterError::MemoryLimit)?)?,
        )
    }

    fn from_slots(
        params: &CuckooParams,
        layer: u64,
        slots: Box<[u8]>,
    ) -> Result<Self, FilterError> {
        let buckets = params.buckets_of(layer).ok_or(FilterError::MemoryLimit)?;
        if params.bytes_of(layer).ok_or(FilterError::MemoryLimit)? != slots.len() as u64 {
            return FilterError::malformed(
                "the number of slots of a layer does not match its buckets",
            );
        }
        Ok(Self { mask: buckets - 1, bucket_size: params.bucket_size.into(), slots })
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
    fn contains(&self, position: Position) -> bool {
        self.bucket(position.first).contains(&position.fingerprint)
            || self.bucket(position.second).contains(&position.fingerprint)
    }

    fn count(&self, position: Position) -> u64 {
        let count = |bucket: u64| {
            self.bucket(bucket).iter().filter(|slot| **slot == position.fingerprint).count() as u64
        };
        // RedisBloom counts twice if both are the same bucket.
        count(position.first) + count(position.second)
    }

    /// Replaces the first slot with the value `old` in a key's buckets. Returns whether there is
    /// one.
    #[inline]
    fn replace(&mut self, position: Position, old: u8, new: u8) -> bool {
        for bucket in [position.first, position.second] {
            if let Some(slot) = self.bucket_mut(bucket).iter_mut().find(|slot| **slot == old) {
                *slot = new;
                return true;
            }
        }
        false
    }

    /// Inserts a fingerprint by moving others to their other buckets until one finds a free slot.
    /// If none does, all moves are undone.
    fn kick(&mut self, position: Position, iterations: u16) -> bool {
        let (mut fingerprint, mut bucket, mut victim) = (position.fingerprint, position.first, 0);
        for _ in 0..iterations {
            std::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut fingerprint);
            bucket = other_bucket(bucket, fingerprint);
            if let Some(free) = self.bucket_mut(bucket).iter_mut().find(|slot| **slot == 0) {
                *free = fingerprint;
                return true;
            }
            victim = (victim + 1) % self.bucket_size;
        }
        for _ in 0..iterations {
            victim = (victim + self.bucket_size - 1) % self.bucket_size;
            bucket = other_bucket(bucket, fingerprint);
            std::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut fingerprint);
        }
        false
    }
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
        params.check_bytes(layers, memory_limit)?;
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
        Self::read(version, input)
            .unwrap_or_else(|| FilterError::malformed("the value is truncated"))
    }

    /// Returns `None` if a field is missing.
    fn read(version: i32, input: &mut impl FieldReader) -> Option<Result<Self, FilterError>> {
        let (layers, buckets, items) = (input.unsigned()?, input.unsigned()?, input.unsigned()?);
        let (mut params, mut deletes) = (CuckooParams { buckets, ..DEFAULTS }, 0);
        if version >= 4 {
            deletes = input.unsigned()?;
            let rest = [input.unsigned()?, input.unsigned()?, input.unsigned()?];
            let [Ok(bucket_size), Ok(iterations), Ok(expansion)] = rest.map(u16::try_from) else {
                return Some(FilterError::malformed("a parameter exceeds 16 bits"));
            };
            params = CuckooParams { buckets, bucket_size, iterations, expansion };
        }
        let checked = params.checked().and_then(|params| check_layers(params, layers));
        if let Err(error) = checked {
            return Some(Err(error));
        }
        let mut filter = Self { params, items, deletes, slots: 0, layers: Vec::new() };
        for layer in 0..layers {
            let buckets = if version >= 4 { Some(input.unsigned()?) } else { None };
            let slots = input.bytes()?;
            if buckets.is_some_and(|buckets| params.buckets_of(layer) != Some(buckets)) {
                return Some(FilterError::malformed(
                    "the number of buckets of a layer does not match its position",
                ));
            }
            let layer = Layer::from_slots(&params, layer, slots);
            if let Err(error) = layer.and_then(|layer| filter.push_layer(layer)) {
                return Some(Err(error));
            }
        }
        filter.items = filter.items.min(filter.slots());
        Some(Ok(filter))
    }
}
