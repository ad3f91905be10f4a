//! RedisBloom's Bloom filter: a chain of links, the newest last.
//!
//! The filter contains a key if any link does. Keys are inserted into the newest link. When that is
//! full, a link with a larger capacity and half the false-positive rate is added, unless the filter
//! is of fixed size.
//!
//! Invariants: there is at least one link; each has the number of bits of its plan; `size` is the
//! sum of the links' sizes.

use petal_interop::redisbloom::{
    FORCE64, Header, LinkFields, LinkPlan, MAX_LINKS, NO_ROUND, NO_SCALING, TIGHTENING, hash,
};

use super::byte_arrays::{self, zeroed};
use crate::error::{FilterError, MAX_BYTES};
use crate::server::{FieldReader, FieldWriter};

/// The memory that RedisBloom reports for an empty chain, and for each link without its bits.
const CHAIN_BYTES: u64 = 32;
const LINK_BYTES: u64 = 64;
/// The growth factor in encodings without this field.
const DEFAULT_GROWTH: u32 = 2;

#[derive(Debug)]
pub(crate) struct Bloom {
    size: u64,
    options: u32,
    growth: u32,
    links: Vec<Link>,
}

#[derive(Debug)]
struct Link {
    plan: LinkPlan,
    size: u64,
    bits: Box<[u8]>,
}

impl Link {
    /// Returns the memory of a link in bytes.
    fn bytes(plan: &LinkPlan) -> u64 {
        (size_of::<Self>() as u64).saturating_add(plan.bytes())
    }

    fn new(plan: LinkPlan, size: u64) -> Result<Self, FilterError> {
        Ok(Self { plan, size, bits: zeroed(plan.bytes())? })
    }

    #[inline]
    fn contains(&self, hash: [u64; 2]) -> bool {
        let is_set = |bit: u64| self.bits[(bit / 8) as usize] >> (bit % 8) & 1 != 0;
        self.plan.positions(hash).all(is_set)
    }
}

// ---- Construction -------------------------------------------------------------------------------

impl Bloom {
    /// Creates a filter as `BF.RESERVE` does; of fixed size without `growth`.
    pub(crate) fn reserve(
        capacity: u64,
        fpr: f64,
        growth: Option<u32>,
        memory_limit: u64,
    ) -> Result<Self, FilterError> {
        let first_fpr = if growth.is_some() { fpr * TIGHTENING } else { fpr };
        if !(first_fpr > 0.0 && first_fpr < 1.0) || capacity == 0 {
            return Err(FilterError::FprTooSmall);
        }
        let options = NO_ROUND | FORCE64 | if growth.is_some() { 0 } else { NO_SCALING };
        let growth = growth.unwrap_or(DEFAULT_GROWTH);
        let mut chain = Self { size: 0, options, growth, links: Vec::new() };
        let plan = LinkPlan::new(capacity, first_fpr);
        if plan.bytes() > MAX_BYTES {
            return Err(FilterError::TooLarge);
        }
        chain.push(plan, 0, memory_limit)?;
        Ok(chain)
    }

    /// Adds a link without bits that reports `size` keys.
    fn push(&mut self, plan: LinkPlan, size: u64, memory_limit: u64) -> Result<(), FilterError> {
        let bytes = self.memory_usage().saturating_add(Link::bytes(&plan));
        if bytes > memory_limit {
            return Err(FilterError::MemoryLimit);
        }
        byte_arrays::push(&mut self.links, Link::new(plan, size)?)
    }

    pub(crate) fn copy(&self) -> Result<Self, FilterError> {
        let mut links = Vec::new();
        links.try_reserve_exact(self.links.len()).map_err(|_| FilterError::OutOfMemory)?;
        for Link { plan, size, bits } in &self.links {
            links.push(Link { plan: *plan, size: *size, bits: byte_arrays::copied(bits)? });
        }
        Ok(Self { links, ..*self })
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl Bloom {
    /// Returns the hash of a key, for all links.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> [u64; 2] {
        hash(key, self.options)
    }

    #[inline]
    pub(crate) fn contains(&self, hash: [u64; 2]) -> bool {
        self.links.iter().rev().any(|link| link.contains(hash))
    }

    /// Returns the number of keys that were new when inserted.
    pub(crate) fn len(&self) -> u64 {
        self.size
    }

    pub(crate) fn links(&self) -> u64 {
        self.links.len() as u64
    }

    /// Returns the capacity of all links.
    pub(crate) fn capacity(&self) -> u64 {
        self.links.iter().fold(0, |sum, link| link.plan.capacity().saturating_add(sum))
    }

    /// Returns the plan and the number of keys of each link, oldest first.
    pub(crate) fn plans(&self) -> impl Iterator<Item = (LinkPlan, u64)> {
        self.links.iter().map(|link| (link.plan, link.size))
    }

    /// Returns the width of the hash in bits.
    pub(crate) fn hash_bits(&self) -> u32 {
        if self.options & FORCE64 == 0 { 32 } else { 64 }
    }

    /// Returns the capacity that the filter can grow to within a memory limit.
    pub(crate) fn capacity_within(&self, memory_limit: u64) -> u64 {
        let (mut capacity, mut memory) = (self.capacity(), self.memory_usage());
        let mut links = self.links.len();
        let mut last = self.links.last().map(|link| link.plan).filter(|_| self.growth().is_some());
        while let Some(plan) = last.and_then(|last| last.next(self.growth, self.options)) {
            memory = memory.saturating_add(Link::bytes(&plan));
            links += 1;
            if memory > memory_limit || links > MAX_LINKS {
                break;
            }
            capacity = capacity.saturating_add(plan.capacity());
            last = Some(plan);
        }
        capacity
    }

    /// Returns the growth factor; `None` if the filter is of fixed size.
    pub(crate) fn growth(&self) -> Option<u32> {
        (self.options & NO_SCALING == 0).then_some(self.growth)
    }

    /// Returns the target false-positive rate.
    pub(crate) fn fpr(&self) -> f64 {
        let tightened = if self.growth().is_some() { TIGHTENING } else { 1.0 };
        self.links.first().map_or(0.0, |link| link.plan.fpr() / tightened)
    }

    /// Returns whether the next new key needs a new link.
    pub(crate) fn is_full(&self) -> bool {
        self.links.last().is_none_or(|link| link.size >= link.plan.capacity())
    }

    pub(crate) fn memory_usage(&self) -> u64 {
        let bits: u64 = self.links.iter().map(|link| link.bits.len() as u64).sum();
        (size_of::<Self>() + self.links.capacity() * size_of::<Link>()) as u64 + bits
    }

    /// Returns the memory that RedisBloom reports.
    pub(crate) fn size(&self) -> u64 {
        let links = self.links.iter().map(|link| LINK_BYTES + link.bits.len() as u64);
        CHAIN_BYTES + links.sum::<u64>()
    }
}

// ---- Changes ------------------------------------------------------------------------------------

impl Bloom {
    /// Inserts a key within a memory limit. Returns whether it was new.
    #[inline]
    pub(crate) fn add(&mut self, hash: [u64; 2], memory_limit: u64) -> Result<bool, FilterError> {
        if self.contains(hash) {
            return Ok(false);
        }
        if self.is_full() {
            self.grow(memory_limit)?;
        }
        if let Some(link) = self.links.last_mut() {
            for bit in link.plan.positions(hash) {
                link.bits[(bit / 8) as usize] |= 1 << (bit % 8);
            }
            link.size += 1;
            self.size = self.size.saturating_add(1);
        }
        Ok(true)
    }

    /// Returns whether the filter is as after [`clear`](Self::clear).
    pub(crate) fn is_clear(&self) -> bool {
        let is_clear = |link: &Link| link.size == 0 && link.bits.iter().all(|byte| *byte == 0);
        (self.links(), self.size) == (1, 0) && self.links.iter().all(is_clear)
    }

    /// Removes all keys and frees all links except the first.
    pub(crate) fn clear(&mut self) {
        self.links.truncate(1);
        self.links.shrink_to_fit();
        for link in &mut self.links {
            link.bits.fill(0);
            link.size = 0;
        }
        self.size = 0;
    }

    #[cold]
    fn grow(&mut self, memory_limit: u64) -> Result<(), FilterError> {
        if self.growth().is_none() {
            return Err(FilterError::Full);
        }
        // A chain with more links could not be loaded.
        let last = self.links.last().filter(|_| self.links.len() < MAX_LINKS);
        let plan = last.and_then(|last| last.plan.next(self.growth, self.options));
        self.push(plan.ok_or(FilterError::MaxLayers)?, 0, memory_limit)
    }
}

// ---- Chunks -------------------------------------------------------------------------------------

impl Bloom {
    /// Returns the first chunk of `BF.SCANDUMP`.
    pub(crate) fn header(&self) -> Vec<u8> {
        let links = self.links.iter().map(|link| (link.plan, link.size)).collect();
        let Self { size, options, growth, .. } = *self;
        Header { size, options, growth, links }.to_bytes()
    }

    /// Returns the chunk after a position, from 1 on, and the position after the chunk.
    pub(crate) fn chunk(&self, position: u64) -> Option<(u64, &[u8])> {
        byte_arrays::chunk(self.links.iter().map(|link| &*link.bits), position)
    }

    /// Creates a filter from the first chunk, with all bits 0.
    pub(crate) fn from_header(bytes: &[u8], memory_limit: u64) -> Result<Self, FilterError> {
        let (header, length) = Header::parse(bytes)?;
        if length != bytes.len() {
            return FilterError::malformed("bytes after the end of the header");
        }
        let memory = header
            .links
            .iter()
            .fold(size_of::<Self>() as u64, |sum, (plan, _)| sum.saturating_add(Link::bytes(plan)));
        if memory > memory_limit {
            return Err(FilterError::MemoryLimit);
        }
        let Header { size, options, growth, links } = header;
        let mut chain = Self { size, options, growth, links: Vec::new() };
        chain.links.try_reserve_exact(links.len()).map_err(|_| FilterError::OutOfMemory)?;
        for (plan, size) in links {
            check_size(&plan)?;
            chain.push(plan, size, memory_limit)?;
        }
        Ok(chain)
    }

    /// Merges the chunk that ends at a position. Returns whether the bits changed.
    pub(crate) fn put_chunk(&mut self, position: u64, data: &[u8]) -> Result<bool, FilterError> {
        let arrays = self.links.iter_mut().map(|link| &mut *link.bits);
        let bits = byte_arrays::chunk_mut(arrays, position, data.len())?;
        let changed = bits.iter().zip(data).any(|(byte, loaded)| loaded & !byte != 0);
        // Keys that were inserted after the header was loaded are kept.
        bits.iter_mut().zip(data).for_each(|(byte, loaded)| *byte |= loaded);
        Ok(changed)
    }
}

/// Checks that a link has the number of bits that RedisBloom computes.
fn check_size(plan: &LinkPlan) -> Result<(), FilterError> {
    if plan.is_as_sized() {
        Ok(())
    } else {
        FilterError::malformed("the number of bits of a link does not match its capacity")
    }
}

// ---- RDB fields ---------------------------------------------------------------------------------

impl Bloom {
    /// Writes the fields of encoding version 4.
    pub(crate) fn save(&self, out: &mut impl FieldWriter) {
        out.unsigned(self.size);
        out.unsigned(self.links());
        out.unsigned(self.options.into());
        out.unsigned(self.growth.into());
        for link in &self.links {
            let fields = link.plan.fields();
            out.unsigned(fields.capacity);
            out.double(fields.rate);
            out.unsigned(fields.probes);
            out.double(fields.bits_per_key);
            out.unsigned(fields.bits);
            out.unsigned(fields.logarithm);
            out.bytes(&link.bits);
            out.unsigned(link.size);
        }
    }

    /// Reads the fields of encoding versions 1 to 4: options since version 2, the growth factor
    /// since version 4. Version 0 lacks the number of bits of a link, and its hash is unknown.
    pub(crate) fn load(version: i32, input: &mut impl FieldReader) -> Result<Self, FilterError> {
        if !(1..=4).contains(&version) {
            return FilterError::malformed("unsupported encoding version");
        }
        let (size, count) = (input.unsigned()?, input.unsigned()?);
        let options = if version >= 2 { input.unsigned()? } else { 0 };
        let growth = if version >= 4 { input.unsigned()? } else { DEFAULT_GROWTH.into() };
        let (Ok(options), Ok(growth)) = (u32::try_from(options), u32::try_from(growth)) else {
            return FilterError::malformed("options or growth factor exceed 32 bits");
        };
        Header::check_options(options)?;
        Header::check_links(count)?;
        let mut chain = Self { size, options, growth, links: Vec::new() };
        for _ in 0..count {
            byte_arrays::push(&mut chain.links, Link::read(options, input)?)?;
        }
        let keys = chain.links.iter().fold(0u64, |sum, link| sum.saturating_add(link.size));
        if keys == size {
            Ok(chain)
        } else {
            FilterError::malformed("the number of keys is not the sum over the links")
        }
    }
}

impl Link {
    fn read(options: u32, input: &mut impl FieldReader) -> Result<Self, FilterError> {
        let (capacity, fpr, probes) = (input.unsigned()?, input.double()?, input.unsigned()?);
        let (bits_per_key, bits) = (input.double()?, input.unsigned()?);
        let (logarithm, bytes, size) = (input.unsigned()?, input.bytes()?, input.unsigned()?);
        let fields = LinkFields { bits, rate: fpr, bits_per_key, probes, capacity, logarithm };
        let plan = LinkPlan::checked(&fields, options)?;
        check_size(&plan)?;
        plan.check_keys(size, options)?;
        if plan.bytes() != bytes.len() as u64 {
            return FilterError::malformed(
                "the number of bits of a link does not match its header",
            );
        }
        Ok(Self { plan, size, bits: bytes })
    }
}
