//! The value of a key: a filter of any type, in petal's layout or in RedisBloom's.

#[cfg(test)]
mod change_tests;
mod clear;
mod container;
mod cuckoo;
mod info;
mod insert;
mod layers;
mod quotient_chain;
pub(crate) mod secret;
mod set_ops;
mod spec;

use petal::embed::{Relocator, SerializedView};
use petal::{
    AnyFilter, BatchResults, BloomFilter, HashSpec, Membership, ScalableBloomFilter,
    WindowedBloomFilter,
};

pub(crate) use container::{Container, ContainerContent, MAGIC, PREFIX_BYTES, PartialImport};
pub(crate) use cuckoo::{CuckooInfo, CuckooOps, GrowthLimits, MAX_COPIES};
pub(crate) use insert::{InsertOutcome, Insertion};
pub(crate) use layers::LayerInfo;
pub(crate) use quotient_chain::QuotientChain;
pub(crate) use spec::{FilterKind, FilterSpec, Growth, MAX_EXPANSION};

use crate::error::FilterError;
use crate::redisbloom;

/// The current time, read only if a filter needs it.
pub(crate) trait Clock {
    /// Returns milliseconds since 1970.
    fn now(&self) -> u64;
}

/// The server's data type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredType {
    /// petal's type.
    Petal,
    /// RedisBloom's Bloom filter.
    RedisBloom,
    /// RedisBloom's cuckoo filter.
    RedisCuckoo,
}

/// The value of a key.
///
/// A server may hold millions of small windows and growing filters, so these are stored inline;
/// other filters are boxed.
#[derive(Debug)]
pub(crate) enum StoredFilter {
    /// A windowed filter in petal's layout.
    Window(WindowedBloomFilter),
    /// A Bloom filter that grows, in petal's layout.
    Scalable(ScalableBloomFilter),
    /// Any other filter in petal's layout.
    Filter(Box<AnyFilter>),
    /// A `CF.*` filter in petal's layout.
    QuotientChain(Box<QuotientChain>),
    /// An incomplete import or a damaged filter; queries are errors.
    Partial(Box<PartialImport>),
    /// RedisBloom's Bloom filter.
    RedisBloom(Box<redisbloom::Bloom>),
    /// RedisBloom's cuckoo filter.
    RedisCuckoo(Box<redisbloom::Cuckoo>),
}

/// A lookup of a key that has been started.
pub(crate) enum Lookup<'o, 'k> {
    Scalable(&'o ScalableBloomFilter, u64),
    Bloom(&'o BloomFilter, u64),
    Other(&'o StoredFilter, &'k [u8]),
}

impl Lookup<'_, '_> {
    /// Returns whether the filter contains the key.
    #[inline]
    pub(crate) fn finish(self, clock: &impl Clock) -> bool {
        match self {
            Self::Scalable(filter, hash) => filter.contains_mixed_hash(hash),
            Self::Bloom(filter, hash) => filter.contains_mixed_hash(hash),
            Self::Other(stored, key) => stored.contains(key, clock),
        }
    }
}

impl From<AnyFilter> for StoredFilter {
    fn from(filter: AnyFilter) -> Self {
        match filter {
            AnyFilter::Windowed(filter) => Self::Window(filter),
            AnyFilter::Scalable(filter) => Self::Scalable(filter),
            filter => Self::Filter(Box::new(filter)),
        }
    }
}

impl From<redisbloom::Bloom> for StoredFilter {
    fn from(filter: redisbloom::Bloom) -> Self {
        Self::RedisBloom(Box::new(filter))
    }
}

impl From<redisbloom::Cuckoo> for StoredFilter {
    fn from(filter: redisbloom::Cuckoo) -> Self {
        Self::RedisCuckoo(Box::new(filter))
    }
}

impl StoredFilter {
    /// Returns the filter for the content of a container or a file.
    ///
    /// # Errors
    /// If the filters of a quotient chain do not match.
    pub(crate) fn from_content(content: ContainerContent) -> Result<Self, FilterError> {
        match content {
            ContainerContent::Filter(filter) => Ok(filter.into()),
            ContainerContent::Damaged(reason) => Ok(Self::damaged(&reason)),
            ContainerContent::QuotientChain(params, layers) => {
                let chain = QuotientChain::from_layers(params, layers)?;
                Ok(Self::QuotientChain(Box::new(chain)))
            }
        }
    }

    /// Returns a filter that lost data for this reason.
    pub(crate) fn damaged(reason: &str) -> Self {
        Self::Partial(Box::new(PartialImport::damaged(reason)))
    }

    /// Returns the reason of the damage; `None` if the filter is not damaged.
    pub(crate) fn damage(&self) -> Option<&str> {
        match self {
            Self::Partial(import) => import.damage(),
            _ => None,
        }
    }

    /// Returns the common interface of filters in petal's layout; `None` for other values and for
    /// quotient chains.
    pub(crate) fn as_dyn(&self) -> Option<&dyn Membership> {
        match self {
            Self::Window(filter) => Some(filter),
            Self::Scalable(filter) => Some(filter),
            Self::Filter(filter) => Some(filter.as_dyn()),
            Self::QuotientChain(_)
            | Self::Partial(_)
            | Self::RedisBloom(_)
            | Self::RedisCuckoo(_) => None,
        }
    }

    /// Serializes a single filter in petal's layout.
    pub(crate) fn serialized(&self) -> Option<SerializedView<'_>> {
        match self {
            Self::Window(filter) => Some(filter.serialized()),
            Self::Scalable(filter) => Some(filter.serialized()),
            Self::Filter(filter) => Some(filter.serialized()),
            Self::QuotientChain(_)
            | Self::Partial(_)
            | Self::RedisBloom(_)
            | Self::RedisCuckoo(_) => None,
        }
    }

    /// Returns the container of a complete filter in petal's layout.
    pub(crate) fn container(&self) -> Option<Container<'_>> {
        match self {
            Self::QuotientChain(chain) => {
                Some(Container::of_chain(chain.serialized_params(), chain.views()))
            }
            stored => stored.serialized().map(Container::of_filter),
        }
    }

    /// Moves the blocks of memory, for defragmentation.
    pub(crate) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        match self {
            Self::Window(filter) => filter.relocate(relocator),
            Self::Scalable(filter) => filter.relocate(relocator),
            Self::Filter(filter) => filter.relocate(relocator),
            Self::QuotientChain(chain) => chain.relocate(relocator),
            // Their blocks are large or few.
            Self::Partial(_) | Self::RedisBloom(_) | Self::RedisCuckoo(_) => {}
        }
    }

    /// Returns the server's data type of the value.
    pub(crate) fn stored_type(&self) -> StoredType {
        match self {
            Self::Window(_)
            | Self::Scalable(_)
            | Self::Filter(_)
            | Self::QuotientChain(_)
            | Self::Partial(_) => StoredType::Petal,
            Self::RedisBloom(_) => StoredType::RedisBloom,
            Self::RedisCuckoo(_) => StoredType::RedisCuckoo,
        }
    }

    /// Returns the memory of the value in bytes, including the filter itself.
    pub(crate) fn memory_usage(&self) -> u64 {
        let own = size_of::<Self>() as u64;
        own + match self {
            Self::Window(filter) => filter.memory_usage() - size_of_val(filter) as u64,
            Self::Scalable(filter) => filter.memory_usage() - size_of_val(filter) as u64,
            Self::Filter(filter) => {
                filter.as_dyn().memory_usage()
                    + (size_of::<AnyFilter>() - size_of_val(filter.as_dyn())) as u64
            }
            Self::QuotientChain(chain) => chain.memory_usage(),
            Self::Partial(import) => import.memory_usage(),
            Self::RedisBloom(filter) => filter.memory_usage(),
            Self::RedisCuckoo(filter) => filter.memory_usage(),
        }
    }

    /// Returns a copy. `None` if the allocation fails.
    pub(crate) fn copy(&self) -> Option<Self> {
        match self {
            Self::Window(filter) => filter.try_clone().ok().map(Self::Window),
            Self::Scalable(filter) => filter.try_clone().ok().map(Self::Scalable),
            Self::Filter(filter) => filter.try_clone().ok().map(Self::from),
            Self::QuotientChain(chain) => {
                chain.copy().ok().map(|copy| Self::QuotientChain(Box::new(copy)))
            }
            Self::Partial(import) => import.copy().map(|copy| Self::Partial(Box::new(copy))),
            Self::RedisBloom(filter) => filter.copy().ok().map(Self::from),
            Self::RedisCuckoo(filter) => filter.copy().ok().map(Self::from),
        }
    }

    /// Starts a lookup: prefetches the memory, so that the caller can do other work meanwhile.
    #[inline]
    pub(crate) fn start_lookup<'o, 'k>(&'o self, key: &'k [u8]) -> Lookup<'o, 'k> {
        if let Self::Scalable(filter) = self {
            let hash = filter.hash_spec().hash(key);
            filter.prefetch_mixed_hash(hash);
            return Lookup::Scalable(filter, hash);
        }
        let Self::Filter(filter) = self else { return Lookup::Other(self, key) };
        match &**filter {
            AnyFilter::Bloom(filter) => {
                let hash = filter.hash_spec().hash(key);
                filter.prefetch_mixed_hash(hash);
                Lookup::Bloom(filter, hash)
            }
            _ => Lookup::Other(self, key),
        }
    }

    /// Returns whether the filter contains a key.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8], clock: &impl Clock) -> bool {
        match self {
            Self::Window(filter) => {
                filter.contains_mixed_hash_at(clock.now(), filter.hash_spec().hash(key))
            }
            Self::Scalable(filter) => filter.contains_mixed_hash(filter.hash_spec().hash(key)),
            Self::Filter(filter) => filter.contains_mixed_hash(filter.hash_spec().hash(key)),
            Self::RedisBloom(filter) => filter.contains(filter.hash(key)),
            Self::QuotientChain(_) | Self::Partial(_) | Self::RedisCuckoo(_) => {
                let mut found = BatchResults::new();
                self.contains_all(std::iter::once(key), clock, &mut found);
                found.get(0)
            }
        }
    }

    /// Looks up several keys. All are hashed before the first is looked up, so that cache misses
    /// overlap.
    pub(crate) fn contains_all<'k>(
        &self,
        mut keys: impl Iterator<Item = &'k [u8]>,
        clock: &impl Clock,
        found: &mut BatchResults,
    ) {
        match self {
            Self::Window(filter) => {
                let hashes = hashes(filter.hash_spec(), keys);
                filter.contains_mixed_hashes_at(clock.now(), &hashes, found);
            }
            Self::Scalable(filter) => {
                filter.contains_mixed_hashes(&hashes(filter.hash_spec(), keys), found);
            }
            Self::Filter(filter) => {
                let filter = filter.as_dyn();
                filter.contains_mixed_hashes(&hashes(filter.hash_spec(), keys), found);
            }
            Self::RedisBloom(filter) => {
                let hashes: Vec<_> = keys.map(|key| filter.hash(key)).collect();
                found.fill_with(hashes.len(), |at| filter.contains(hashes[at]));
            }
            Self::QuotientChain(filter) => filter.contains_all(&filter.hashes(&mut keys), found),
            Self::RedisCuckoo(filter) => {
                let hashes: Vec<_> = keys.map(redisbloom::Cuckoo::hash).collect();
                found.fill_with(hashes.len(), |at| filter.contains(hashes[at]));
            }
            Self::Partial(_) => found.fill_with(keys.count(), |_| false),
        }
    }

    /// Returns whether this is a window by time, whose clock must be advanced before inserts.
    #[inline]
    pub(crate) fn is_time_window(&self) -> bool {
        matches!(self, Self::Window(filter) if filter.window_ticks().is_some())
    }

    /// Advances the clock of a window by time. Returns whether the clock changed: it moves only
    /// from one generation to the next, because moves within a generation change no result. It
    /// never goes back.
    pub(crate) fn advance(&mut self, now: u64) -> bool {
        let Self::Window(filter) = self else { return false };
        let Some(time) = filter.window_ticks() else { return false };
        let width = time.div_ceil(u64::from(filter.generations()).saturating_sub(1).max(1));
        let moves = now / width > filter.now() / width;
        if moves {
            filter.advance_to(now);
        }
        moves
    }
}

fn hashes<'k>(spec: HashSpec, keys: impl Iterator<Item = &'k [u8]>) -> Vec<u64> {
    let mut hashes = Vec::with_capacity(keys.size_hint().0);
    spec.hash_all(keys, &mut hashes);
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// jemalloc has size classes of 112 and 128 bytes; a server may hold millions of filters.
    #[test]
    fn object_is_as_large_as_a_window() {
        assert_eq!((size_of::<StoredFilter>(), size_of::<WindowedBloomFilter>()), (112, 112));
        assert_eq!(size_of::<ScalableBloomFilter>(), 104);
    }
}
