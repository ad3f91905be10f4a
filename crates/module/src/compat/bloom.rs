//! RedisBloom's Bloom filter: a chain of links, the newest last.
//!
//! A key is in it if it is in any link. It is put in the newest; when that holds its capacity, a
//! link with more capacity and half the rate follows, unless the filter does not grow.
//!
//! Invariants: there is a link; each has as many bits as its plan says; `size` is the sum of the
//! links' keys.

use petal_interop::redisbloom::{
    FORCE64, Header, LinkFields, LinkPlan, MOST_LINKS, NO_ROUND, NO_SCALING, TIGHTENING, hash,
};

use super::rows::{self, zeroed};
use crate::fields::{Load, Save};
use crate::refusal::{MOST_BYTES, Refusal};

/// What RedisBloom counts for a chain without links, and for each of them.
const CHAIN_BYTES: u64 = 32;
const LINK_BYTES: u64 = 64;
/// How a chain grew before it was told.
const FIRST_GROWTH: u32 = 2;

/// A chain of links.
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
    /// Bytes of memory that it takes.
    fn bytes(plan: &LinkPlan) -> u64 {
        (size_of::<Self>() as u64).saturating_add(plan.bytes())
    }

    fn new(plan: LinkPlan, size: u64) -> Result<Self, Refusal> {
        Ok(Self { plan, size, bits: zeroed(plan.bytes())? })
    }

    #[inline]
    fn holds(&self, hash: [u64; 2]) -> bool {
        let is_set = |bit: u64| self.bits[(bit / 8) as usize] >> (bit % 8) & 1 != 0;
        self.plan.positions(hash).all(is_set)
    }
}

// ---- Made ---------------------------------------------------------------------------------------

impl Bloom {
    /// As `BF.RESERVE` makes it: growing by this factor, or never.
    pub(crate) fn reserve(
        capacity: u64,
        rate: f64,
        growth: Option<u32>,
        limit: u64,
    ) -> Result<Self, Refusal> {
        let first = if growth.is_some() { rate * TIGHTENING } else { rate };
        if !(first > 0.0 && first < 1.0) || capacity == 0 {
            return Refusal::malformed("a rate that cannot be kept");
        }
        let options = NO_ROUND | FORCE64 | if growth.is_some() { 0 } else { NO_SCALING };
        let growth = growth.unwrap_or(FIRST_GROWTH);
        let mut chain = Self { size: 0, options, growth, links: Vec::new() };
        let plan = LinkPlan::new(capacity, first);
        if plan.bytes() > MOST_BYTES {
            return Err(Refusal::TooLarge);
        }
        chain.push(plan, 0, limit)?;
        Ok(chain)
    }

    /// Adds an empty link, with what is said of its keys.
    fn push(&mut self, plan: LinkPlan, size: u64, limit: u64) -> Result<(), Refusal> {
        let bytes = self.memory_usage().saturating_add(Link::bytes(&plan));
        if bytes > limit {
            return Err(Refusal::Limit);
        }
        rows::push(&mut self.links, Link::new(plan, size)?)
    }

    /// A copy.
    pub(crate) fn copy(&self) -> Result<Self, Refusal> {
        let mut links = Vec::new();
        links.try_reserve_exact(self.links.len()).map_err(|_| Refusal::Memory)?;
        for Link { plan, size, bits } in &self.links {
            links.push(Link { plan: *plan, size: *size, bits: rows::copied(bits)? });
        }
        Ok(Self { links, ..*self })
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl Bloom {
    /// What all links take of a key.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> [u64; 2] {
        hash(key, self.options)
    }

    /// Whether a key may be there.
    #[inline]
    pub(crate) fn contains(&self, hash: [u64; 2]) -> bool {
        self.links.iter().rev().any(|link| link.holds(hash))
    }

    /// Keys that were new when they were put in.
    pub(crate) fn len(&self) -> u64 {
        self.size
    }

    /// Links that there are.
    pub(crate) fn links(&self) -> u64 {
        self.links.len() as u64
    }

    /// Keys that all links are for.
    pub(crate) fn capacity(&self) -> u64 {
        self.links.iter().fold(0, |sum, link| link.plan.capacity().saturating_add(sum))
    }

    /// The plan of each link, and how many keys it holds, oldest first.
    pub(crate) fn plans(&self) -> impl Iterator<Item = (LinkPlan, u64)> {
        self.links.iter().map(|link| (link.plan, link.size))
    }

    /// Bits of the hash.
    pub(crate) fn hash_bits(&self) -> u32 {
        if self.options & FORCE64 == 0 { 32 } else { 64 }
    }

    /// Keys that all links are for, those to come too, as long as they take no more than so many
    /// bytes together.
    pub(crate) fn capacity_within(&self, bytes: u64) -> u64 {
        let (mut keys, mut memory) = (self.capacity(), self.memory_usage());
        let mut links = self.links.len();
        let mut last = self.links.last().map(|link| link.plan).filter(|_| self.growth().is_some());
        while let Some(plan) = last.and_then(|last| last.next(self.growth, self.options)) {
            memory = memory.saturating_add(Link::bytes(&plan));
            links += 1;
            if memory > bytes || links > MOST_LINKS {
                break;
            }
            keys = keys.saturating_add(plan.capacity());
            last = Some(plan);
        }
        keys
    }

    /// The factor by which it grows; none if it does not.
    pub(crate) fn growth(&self) -> Option<u32> {
        (self.options & NO_SCALING == 0).then_some(self.growth)
    }

    /// The false-positive rate that was asked for.
    pub(crate) fn rate(&self) -> f64 {
        let tightened = if self.growth().is_some() { TIGHTENING } else { 1.0 };
        self.links.first().map_or(0.0, |link| link.plan.rate() / tightened)
    }

    /// Whether a new key needs a new link.
    pub(crate) fn is_full(&self) -> bool {
        self.links.last().is_none_or(|link| link.size >= link.plan.capacity())
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory_usage(&self) -> u64 {
        let bits: u64 = self.links.iter().map(|link| link.bits.len() as u64).sum();
        (size_of::<Self>() + self.links.capacity() * size_of::<Link>()) as u64 + bits
    }

    /// Bytes that it takes, as RedisBloom counts them.
    pub(crate) fn size(&self) -> u64 {
        let links = self.links.iter().map(|link| LINK_BYTES + link.bits.len() as u64);
        CHAIN_BYTES + links.sum::<u64>()
    }
}

// ---- Changed ------------------------------------------------------------------------------------

impl Bloom {
    /// Puts a key in, if it takes no more than so many bytes; whether it was new.
    #[inline]
    pub(crate) fn add(&mut self, hash: [u64; 2], limit: u64) -> Result<bool, Refusal> {
        if self.contains(hash) {
            return Ok(false);
        }
        if self.is_full() {
            self.grow(limit)?;
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

    /// Removes all keys, and all links but the first.
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
    fn grow(&mut self, limit: u64) -> Result<(), Refusal> {
        if self.growth().is_none() {
            return Err(Refusal::Full);
        }
        // With more it could not be read again.
        let last = self.links.last().filter(|_| self.links.len() < MOST_LINKS);
        let plan = last.and_then(|last| last.plan.next(self.growth, self.options));
        self.push(plan.ok_or(Refusal::Layers)?, 0, limit)
    }
}

// ---- As chunks ----------------------------------------------------------------------------------

impl Bloom {
    /// The first chunk of `BF.SCANDUMP`.
    pub(crate) fn header(&self) -> Vec<u8> {
        let links = self.links.iter().map(|link| (link.plan, link.size)).collect();
        let Self { size, options, growth, .. } = *self;
        Header { size, options, growth, links }.to_bytes()
    }

    /// The chunk behind a position from 1 on, and the position behind it.
    pub(crate) fn chunk(&self, position: u64) -> Option<(u64, &[u8])> {
        rows::chunk(self.links.iter().map(|link| &*link.bits), position)
    }

    /// What the first chunk tells of, with no bit set yet.
    pub(crate) fn from_header(bytes: &[u8], limit: u64) -> Result<Self, Refusal> {
        let (header, length) = Header::parse(bytes)?;
        if length != bytes.len() {
            return Refusal::malformed("more bytes than a header has");
        }
        let all = header
            .links
            .iter()
            .fold(size_of::<Self>() as u64, |sum, (plan, _)| sum.saturating_add(Link::bytes(plan)));
        if all > limit {
            return Err(Refusal::Limit);
        }
        let Header { size, options, growth, links } = header;
        let mut chain = Self { size, options, growth, links: Vec::new() };
        chain.links.try_reserve_exact(links.len()).map_err(|_| Refusal::Memory)?;
        for (plan, size) in links {
            check_size(&plan)?;
            chain.push(plan, size, limit)?;
        }
        Ok(chain)
    }

    /// Puts in the chunk before a position.
    pub(crate) fn put_chunk(&mut self, position: u64, data: &[u8]) -> Result<(), Refusal> {
        let rows = self.links.iter_mut().map(|link| &mut *link.bits);
        let place = rows::place_of(rows, position, data.len())?;
        // What was added since the header came stays.
        place.iter_mut().zip(data).for_each(|(bits, more)| *bits |= more);
        Ok(())
    }
}

/// A link must be one that RedisBloom would have made.
fn check_size(plan: &LinkPlan) -> Result<(), Refusal> {
    if plan.is_as_sized() {
        Ok(())
    } else {
        Refusal::malformed("a link whose bits are not for its capacity")
    }
}

// ---- As fields of the server's files ------------------------------------------------------------

impl Bloom {
    /// Writes the fields of version 4.
    pub(crate) fn save(&self, out: &mut impl Save) {
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

    /// Reads the fields of a version from 1 to 4: 2 has options, 4 has the growth. Version 0 did
    /// not write how many bits a link has, and it is not known what they hashed with.
    pub(crate) fn load(version: i32, input: &mut impl Load) -> Result<Self, Refusal> {
        if !(1..=4).contains(&version) {
            return Refusal::malformed("a version that is not known");
        }
        Self::read(version, input).unwrap_or_else(|| Refusal::malformed("it ends early"))
    }

    /// None if a field is missing.
    fn read(version: i32, input: &mut impl Load) -> Option<Result<Self, Refusal>> {
        let (size, count) = (input.unsigned()?, input.unsigned()?);
        let options = if version >= 2 { input.unsigned()? } else { 0 };
        let growth = if version >= 4 { input.unsigned()? } else { FIRST_GROWTH.into() };
        let (Ok(options), Ok(growth)) = (u32::try_from(options), u32::try_from(growth)) else {
            return Some(Refusal::malformed("options or a growth beyond 32 bits"));
        };
        let checked = Header::check_options(options).and_then(|()| Header::check_links(count));
        if let Err(error) = checked {
            return Some(Err(error.into()));
        }
        let mut chain = Self { size, options, growth, links: Vec::new() };
        for _ in 0..count {
            let link = Link::read(options, input)?;
            if let Err(refused) = link.and_then(|link| rows::push(&mut chain.links, link)) {
                return Some(Err(refused));
            }
        }
        let keys = chain.links.iter().fold(0u64, |sum, link| sum.saturating_add(link.size));
        Some(if keys == size {
            Ok(chain)
        } else {
            Refusal::malformed("keys that are not those of its links")
        })
    }
}

impl Link {
    /// None if a field is missing.
    fn read(options: u32, input: &mut impl Load) -> Option<Result<Self, Refusal>> {
        let (capacity, rate, probes) = (input.unsigned()?, input.double()?, input.unsigned()?);
        let (bits_per_key, bits) = (input.double()?, input.unsigned()?);
        let (logarithm, row, size) = (input.unsigned()?, input.bytes()?, input.unsigned()?);
        let fields = LinkFields { bits, rate, bits_per_key, probes, capacity, logarithm };
        Some(LinkPlan::checked(&fields, options).map_err(Refusal::from).and_then(|plan| {
            check_size(&plan)?;
            plan.check_keys(size, options)?;
            if plan.bytes() != row.len() as u64 {
                return Refusal::malformed("a link with more or fewer bits than it says");
            }
            Ok(Self { plan, size, bits: row })
        }))
    }
}
