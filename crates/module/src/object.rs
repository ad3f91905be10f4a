//! What a key holds: a filter, whatever its type and layout, and what it can be asked and told.

mod clear;
mod deleting;
mod layers;
mod sets;

use petal::{
    Answers, AnyFilter, BloomFilter, HashSpec, Image, Membership, Mover, ScalableBloomFilter,
    WindowedBloomFilter,
};

use crate::chain::Chain;
use crate::compat;
use crate::parcel::{Content, Incoming, Parcel};
pub(crate) use crate::refusal::{MOST_BYTES, Refusal};
pub(crate) use deleting::{CuckooFigures, Deleting, Room};
pub(crate) use layers::LayerInfo;

/// What time it is, for filters that forget: told only if it is asked for.
pub(crate) trait Clock {
    /// Milliseconds since 1970.
    fn now(&self) -> u64;
}

/// How the server keeps it: under which name, in which encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// petal's own.
    Petal,
    /// RedisBloom's Bloom filter.
    RedisBloom,
    /// RedisBloom's cuckoo filter.
    RedisCuckoo,
}

/// What a key holds.
///
/// A server may hold a million small windows: such a one lies in the object, which is as large as
/// the window; all others have a box of their own.
#[derive(Debug)]
pub(crate) enum Object {
    /// A filter of petal's that forgets.
    Window(WindowedBloomFilter),
    /// A filter of petal's, of any other type.
    Filter(Box<AnyFilter>),
    /// petal's filter of `CF.*`.
    Chain(Box<Chain>),
    /// What has come of a filter so far; it answers nothing.
    Incoming(Box<Incoming>),
    /// RedisBloom's Bloom filter.
    RedisBloom(Box<compat::Bloom>),
    /// RedisBloom's cuckoo filter.
    RedisCuckoo(Box<compat::Cuckoo>),
}

/// What came of putting several keys in.
#[derive(Debug, Default)]
pub(crate) struct Inserted {
    /// An answer for each key that was taken: whether it was new.
    pub(crate) new: Answers,
    /// How many were taken: all, or those before the one that was refused.
    pub(crate) taken: usize,
    /// Why the next was refused.
    pub(crate) refused: Option<Refusal>,
}

/// What `BF.INFO` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) capacity: u64,
    pub(crate) size: u64,
    pub(crate) layers: u64,
    pub(crate) items: u64,
    /// None if it does not grow.
    pub(crate) expansion: Option<u64>,
    pub(crate) rate: f64,
}

/// A key that is looked for.
pub(crate) enum Asked<'o, 'k> {
    Scalable(&'o ScalableBloomFilter, u64),
    Bloom(&'o BloomFilter, u64),
    Other(&'o Object, &'k [u8]),
}

impl Asked<'_, '_> {
    /// Whether the key may be there, at this time.
    #[inline]
    pub(crate) fn found(self, clock: &impl Clock) -> bool {
        match self {
            Self::Scalable(filter, hash) => filter.contains_mixed_hash(hash),
            Self::Bloom(filter, hash) => filter.contains_mixed_hash(hash),
            Self::Other(object, key) => object.contains(key, clock),
        }
    }
}

impl From<AnyFilter> for Object {
    fn from(filter: AnyFilter) -> Self {
        match filter {
            AnyFilter::Windowed(filter) => Self::Window(filter),
            filter => Self::Filter(Box::new(filter)),
        }
    }
}

impl From<compat::Bloom> for Object {
    fn from(filter: compat::Bloom) -> Self {
        Self::RedisBloom(Box::new(filter))
    }
}

impl From<compat::Cuckoo> for Object {
    fn from(filter: compat::Cuckoo) -> Self {
        Self::RedisCuckoo(Box::new(filter))
    }
}

impl Object {
    /// Of what came in a parcel or a file.
    pub(crate) fn of(content: Content) -> Result<Self, String> {
        match content {
            Content::Filter(filter) => Ok(filter.into()),
            Content::Damaged(reason) => Ok(Self::damaged(&reason)),
            Content::Row(words, layers) => match Chain::of(words, layers) {
                Ok(chain) => Ok(Self::Chain(Box::new(chain))),
                Err(refusal) => Err(refusal.told()),
            },
        }
    }

    /// A filter that lost data, for this reason.
    pub(crate) fn damaged(reason: &str) -> Self {
        Self::Incoming(Box::new(Incoming::damaged(reason)))
    }

    /// Why the filter is damaged, if it is.
    pub(crate) fn damage(&self) -> Option<&str> {
        match self {
            Self::Incoming(incoming) => incoming.damage(),
            _ => None,
        }
    }

    /// What all filters of petal's have in common, if it is one.
    pub(crate) fn face(&self) -> Option<&dyn Membership> {
        match self {
            Self::Window(filter) => Some(filter),
            Self::Filter(filter) => Some(filter.face()),
            Self::Chain(_) | Self::Incoming(_) | Self::RedisBloom(_) | Self::RedisCuckoo(_) => None,
        }
    }

    /// As bytes in pieces, if it is one filter of petal's.
    pub(crate) fn image(&self) -> Option<Image<'_>> {
        match self {
            Self::Window(filter) => Some(filter.image()),
            Self::Filter(filter) => Some(filter.image()),
            Self::Chain(_) | Self::Incoming(_) | Self::RedisBloom(_) | Self::RedisCuckoo(_) => None,
        }
    }

    /// As a parcel, if it is in petal's own layout and whole.
    pub(crate) fn parcel(&self) -> Option<Parcel<'_>> {
        match self {
            Self::Chain(chain) => Some(Parcel::of_row(chain.words(), chain.images())),
            object => object.image().map(Parcel::of),
        }
    }

    /// Moves its blocks of memory.
    pub(crate) fn relocate(&mut self, mover: &mut Mover<'_>) {
        match self {
            Self::Window(filter) => filter.relocate(mover),
            Self::Filter(filter) => filter.relocate(mover),
            Self::Chain(chain) => chain.relocate(mover),
            // Their rows are large, or few.
            Self::Incoming(_) | Self::RedisBloom(_) | Self::RedisCuckoo(_) => {}
        }
    }

    /// How the server keeps it.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Window(_) | Self::Filter(_) | Self::Chain(_) | Self::Incoming(_) => Kind::Petal,
            Self::RedisBloom(_) => Kind::RedisBloom,
            Self::RedisCuckoo(_) => Kind::RedisCuckoo,
        }
    }

    /// Bytes of memory that it takes in all.
    pub(crate) fn memory_usage(&self) -> u64 {
        let beside = size_of::<Self>() as u64;
        beside
            + match self {
                Self::Window(filter) => filter.memory_usage() - size_of_val(filter) as u64,
                Self::Filter(filter) => {
                    filter.face().memory_usage()
                        + (size_of::<AnyFilter>() - size_of_val(filter.face())) as u64
                }
                Self::Chain(chain) => chain.memory_usage(),
                Self::Incoming(incoming) => incoming.memory_usage(),
                Self::RedisBloom(filter) => filter.memory_usage(),
                Self::RedisCuckoo(filter) => filter.memory_usage(),
            }
    }

    /// A copy; none if the memory is refused.
    pub(crate) fn copy(&self) -> Option<Self> {
        match self {
            Self::Window(filter) => filter.to_owned_filter().ok().map(Self::Window),
            Self::Filter(filter) => filter.to_owned_filter().ok().map(Self::from),
            Self::Chain(chain) => chain.copy().ok().map(|copy| Self::Chain(Box::new(copy))),
            // A copy of a damaged filter is as damaged; of one that is not whole yet there is none.
            Self::Incoming(incoming) => incoming.damage().map(Self::damaged),
            Self::RedisBloom(filter) => filter.copy().ok().map(Self::from),
            Self::RedisCuckoo(filter) => filter.copy().ok().map(Self::from),
        }
    }

    /// Begins to look for a key: what is in memory far away is asked for, while the caller has
    /// something else to do.
    #[inline]
    pub(crate) fn ask<'o, 'k>(&'o self, key: &'k [u8]) -> Asked<'o, 'k> {
        let Self::Filter(filter) = self else { return Asked::Other(self, key) };
        match &**filter {
            AnyFilter::Scalable(filter) => {
                let hash = filter.hash_spec().hash(key);
                filter.prefetch_mixed_hash(hash);
                Asked::Scalable(filter, hash)
            }
            AnyFilter::Bloom(filter) => {
                let hash = filter.hash_spec().hash(key);
                filter.prefetch_mixed_hash(hash);
                Asked::Bloom(filter, hash)
            }
            _ => Asked::Other(self, key),
        }
    }

    /// Whether a key may be there, at this time.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8], clock: &impl Clock) -> bool {
        match self {
            Self::Filter(filter) => match &**filter {
                AnyFilter::Scalable(filter) => {
                    filter.contains_mixed_hash(filter.hash_spec().hash(key))
                }
                AnyFilter::Bloom(filter) => {
                    filter.contains_mixed_hash(filter.hash_spec().hash(key))
                }
                _ => {
                    let mut found = Answers::new();
                    self.contains_all(std::iter::once(key), clock, &mut found);
                    found.get(0)
                }
            },
            Self::Window(filter) => {
                filter.contains_mixed_hash_at(clock.now(), filter.hash_spec().hash(key))
            }
            Self::RedisBloom(filter) => filter.contains(filter.hash(key)),
            Self::Chain(_) | Self::RedisCuckoo(_) | Self::Incoming(_) => false,
        }
    }

    /// Whether keys may be there, at this time. All are hashed before any is looked for, so that
    /// cache misses overlap.
    pub(crate) fn contains_all<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        clock: &impl Clock,
        found: &mut Answers,
    ) {
        match self {
            Self::Window(filter) => {
                let hashes = hashes(filter.hash_spec(), keys);
                filter.contains_mixed_hashes_at(clock.now(), &hashes, found);
            }
            Self::Filter(filter) => {
                let face = filter.face();
                face.contains_mixed_hashes(&hashes(face.hash_spec(), keys), found);
            }
            Self::RedisBloom(filter) => {
                let hashes: Vec<_> = keys.map(|key| filter.hash(key)).collect();
                found.answer(hashes.len(), |at| filter.contains(hashes[at]));
            }
            Self::Chain(_) | Self::RedisCuckoo(_) | Self::Incoming(_) => {
                found.answer(keys.count(), |_| false);
            }
        }
    }

    /// Whether putting one key in may take more memory.
    pub(crate) fn may_grow(&self) -> bool {
        match self {
            Self::Filter(filter) => match &**filter {
                AnyFilter::Scalable(filter) => filter.layer_capacity_left() == 0,
                AnyFilter::Quotient(filter) => filter.is_growing(),
                _ => false,
            },
            Self::RedisBloom(filter) => filter.is_full(),
            Self::Window(_) | Self::Chain(_) | Self::Incoming(_) | Self::RedisCuckoo(_) => false,
        }
    }

    /// Whether a key that is put in again changes it: it is counted, or kept for longer.
    pub(crate) fn takes_again(&self) -> bool {
        match self {
            Self::Window(_) | Self::Chain(_) | Self::RedisCuckoo(_) => true,
            Self::Filter(filter) => matches!(
                **filter,
                AnyFilter::Counting(_) | AnyFilter::CountingClassic(_) | AnyFilter::Quotient(_)
            ),
            Self::Incoming(_) | Self::RedisBloom(_) => false,
        }
    }

    /// Whether it is a window of time, which must be told the time before keys are put in.
    #[inline]
    pub(crate) fn has_clock(&self) -> bool {
        matches!(self, Self::Window(filter) if filter.window_ticks().is_some())
    }

    /// Tells a window of time what time it is; whether that changed anything. Its clock goes from
    /// generation to generation, never back: within one it makes no difference to any answer.
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

    /// Puts a key in; whether it was new.
    #[inline]
    pub(crate) fn insert(&mut self, key: &[u8], limit: u64) -> Result<bool, Refusal> {
        match self {
            Self::Window(filter) => {
                return Ok(filter.insert_mixed_hash(filter.hash_spec().hash(key)));
            }
            Self::Filter(filter) => match &mut **filter {
                AnyFilter::Scalable(filter) if filter.layer_capacity_left() > 0 => {
                    return Ok(filter.insert_mixed_hash(filter.hash_spec().hash(key))?);
                }
                AnyFilter::Bloom(filter) if left(filter.planned_keys(), filter.inserted()) > 0 => {
                    return Ok(filter.insert_mixed_hash(filter.hash_spec().hash(key)));
                }
                _ => {}
            },
            _ => {}
        }
        let inserted = self.insert_all(std::iter::once(key), limit);
        // There is no answer where none was taken.
        inserted.refused.map_or_else(|| Ok(inserted.new.get(0)), Err)
    }

    /// Puts keys in as long as it takes no more than so many bytes.
    pub(crate) fn insert_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        limit: u64,
    ) -> Inserted {
        match self {
            Self::Window(filter) => {
                let hashes = hashes(filter.hash_spec(), keys);
                let mut inserted = Inserted { taken: hashes.len(), ..Inserted::default() };
                filter.insert_mixed_hashes(&hashes, &mut inserted.new);
                inserted
            }
            Self::Filter(filter) => insert_into(filter, keys, limit),
            Self::RedisBloom(filter) => insert_into_chain(filter, keys, limit),
            Self::Chain(_) | Self::Incoming(_) | Self::RedisCuckoo(_) => {
                Inserted { refused: Some(Refusal::Type), ..Inserted::default() }
            }
        }
    }

    /// Keys that it can come to hold in so many bytes.
    pub(crate) fn capacity_within(&self, bytes: u64) -> u64 {
        match self {
            Self::RedisBloom(filter) => filter.capacity_within(bytes),
            Self::Filter(filter) => match &**filter {
                AnyFilter::Scalable(filter) => filter.capacity_within(bytes),
                _ => self.figures().capacity,
            },
            _ => self.figures().capacity,
        }
    }

    /// By how much the rate of a layer is lower than that of the one before; none if there is one.
    pub(crate) fn tightening(&self) -> Option<f64> {
        match self {
            Self::RedisBloom(filter) => {
                filter.growth().map(|_| petal_interop::redisbloom::TIGHTENING)
            }
            Self::Filter(filter) => match &**filter {
                AnyFilter::Scalable(filter) => Some(filter.layer_share(1) / filter.layer_share(0)),
                _ => None,
            },
            _ => None,
        }
    }

    /// What `BF.INFO` tells.
    pub(crate) fn figures(&self) -> Figures {
        let size = self.memory_usage();
        if let Self::RedisBloom(filter) = self {
            return Figures {
                capacity: filter.capacity(),
                size: filter.size(),
                layers: filter.links(),
                items: filter.len(),
                expansion: filter.growth().map(u64::from),
                rate: filter.rate(),
            };
        }
        if let Some(filter) = self.deleting() {
            let CuckooFigures { layers, items, .. } = filter.figures();
            let (capacity, rate) = filter.promise();
            let expansion = Some(filter.figures().expansion.into()).filter(|growth| *growth > 0);
            return Figures { capacity, size, layers, items, expansion, rate };
        }
        let Some(face) = self.face() else { return Figures { size, ..Figures::default() } };
        let (mut capacity, mut layers, mut expansion) = (face.planned_keys(), 1, None);
        if let Self::Filter(filter) = self {
            match &**filter {
                AnyFilter::Scalable(filter) => {
                    capacity = filter.planned_total();
                    (layers, expansion) = (filter.layers().into(), Some(filter.growth()));
                }
                AnyFilter::Bloom(filter) => capacity = layers::capacity(filter),
                _ => {}
            }
        }
        let (items, rate) = (face.inserted(), face.target_rate());
        Figures { capacity, size, layers, items, expansion, rate }
    }
}

fn hashes<'k>(spec: HashSpec, keys: impl Iterator<Item = &'k [u8]>) -> Vec<u64> {
    let mut hashes = Vec::with_capacity(keys.size_hint().0);
    spec.hash_all(keys, &mut hashes);
    hashes
}

/// Puts keys into a Bloom filter of RedisBloom's.
fn insert_into_chain<'k>(
    filter: &mut compat::Bloom,
    keys: impl Iterator<Item = &'k [u8]>,
    limit: u64,
) -> Inserted {
    let hashes: Vec<_> = keys.map(|key| filter.hash(key)).collect();
    let mut inserted = Inserted::default();
    let (mut taken, mut refused) = (0, None);
    inserted.new.answer(hashes.len(), |at| {
        if refused.is_some() {
            return false;
        }
        match filter.add(hashes[at], limit) {
            Ok(new) => {
                taken += 1;
                new
            }
            Err(why) => {
                refused = Some(why);
                false
            }
        }
    });
    (inserted.taken, inserted.refused) = (taken, refused);
    inserted
}

/// Puts keys into a filter of petal's.
fn insert_into<'k>(
    filter: &mut AnyFilter,
    keys: impl Iterator<Item = &'k [u8]>,
    limit: u64,
) -> Inserted {
    let spec = filter.face().hash_spec();
    let (hashes, words) = (hashes(spec, keys), spec.words());
    let mut inserted = Inserted::default();
    let room = match filter {
        AnyFilter::Bloom(filter) => left(filter.planned_keys(), filter.inserted()),
        AnyFilter::Scalable(filter) => filter.layer_capacity_left(),
        AnyFilter::Classic(filter) => left(filter.planned_keys(), filter.inserted()),
        AnyFilter::Quotient(filter) => filter.shape().capacity().saturating_sub(filter.len()),
        _ => u64::MAX,
    };
    let count = hashes.len() / words;
    let outcome = if count as u64 <= room {
        match filter.face_mut() {
            Ok(face) => face.insert_mixed_hashes(&hashes, &mut inserted.new),
            Err(error) => Err(error),
        }
        .map(|()| inserted.taken = count)
        .map_err(Refusal::from)
    } else {
        // Not all may fit: one by one, up to the one that does not.
        let mut refusal = None;
        let (mut taken, mut one) = (0, Answers::new());
        inserted.new.answer(count, |at| {
            if refusal.is_some() {
                return false;
            }
            match insert_one(filter, &hashes[at * words..][..words], limit, &mut one) {
                Ok(new) => {
                    taken += 1;
                    new
                }
                Err(why) => {
                    refusal = Some(why);
                    false
                }
            }
        });
        inserted.taken = taken;
        refusal.map_or(Ok(()), Err)
    };
    inserted.refused = outcome.err();
    inserted
}

/// Puts a key into a filter that may be full.
fn insert_one(
    filter: &mut AnyFilter,
    hash: &[u64],
    limit: u64,
    answer: &mut Answers,
) -> Result<bool, Refusal> {
    // Those that delete take a key again that is there.
    if !matches!(filter, AnyFilter::Quotient(_)) {
        filter.face().contains_mixed_hashes(hash, answer);
        if answer.get(0) {
            return Ok(false);
        }
    }
    let more = match filter {
        AnyFilter::Bloom(filter) if left(filter.planned_keys(), filter.inserted()) == 0 => {
            return Err(Refusal::Full);
        }
        AnyFilter::Classic(filter) if left(filter.planned_keys(), filter.inserted()) == 0 => {
            return Err(Refusal::Full);
        }
        AnyFilter::Scalable(filter) if filter.layer_capacity_left() == 0 => {
            filter.next_layer_bytes().map_err(no_layer)?
        }
        // It grows to twice its size.
        AnyFilter::Quotient(filter)
            if filter.is_growing() && filter.len() >= filter.shape().capacity() =>
        {
            filter.size_bytes()
        }
        _ => 0,
    };
    if more > 0 && filter.face().memory_usage().saturating_add(more) > limit {
        return Err(Refusal::Limit);
    }
    filter.face_mut()?.insert_mixed_hashes(hash, answer)?;
    Ok(answer.get(0))
}

/// Why a filter that grows has no further layer.
fn no_layer(error: petal::Error) -> Refusal {
    if error.is_full() { Refusal::Layers } else { error.into() }
}

/// Keys that still fit, where any number was planned.
fn left(planned: u64, inserted: u64) -> u64 {
    if planned == 0 { u64::MAX } else { planned.saturating_sub(inserted) }
}

#[cfg(test)]
mod tests {
    use petal_testkit::rng::Rng;

    use super::*;
    use crate::plan::{Form, Plan};

    /// Keys that repeat within a batch, and batches in which a filter grows, becomes full or
    /// forgets: the answers and the filter are those of one key at a time.
    #[test]
    fn batches_equal_keys_one_at_a_time() {
        let window = |milliseconds, generations| Form::Window { milliseconds, generations };
        let forms = [
            Form::Bloom { growth: None },
            Form::Bloom { growth: Some(crate::plan::Growth::by(2)) },
            Form::RedisBloom { growth: None },
            Form::RedisBloom { growth: Some(2) },
            Form::Counting,
            window(None, 2),
            window(None, 4),
            window(Some(90), 4),
        ];
        for (form, seed) in forms.into_iter().flat_map(|form| (0..6).map(move |seed| (form, seed)))
        {
            let mut rng = Rng::new(seed);
            let plan = Plan { form, rate: 1e-9, keys: 1 + rng.below(300) as u64, seed: [1; 16] };
            let (mut single, mut batched) =
                (plan.make(u64::MAX).unwrap(), plan.make(u64::MAX).unwrap());
            let distinct = 1 + rng.below(400) as u64;
            let stream: Vec<String> =
                (0..5000).map(|_| (rng.next_u64() % distinct).to_string()).collect();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let batch = &rest[..(1 + rng.below(900)).min(rest.len())];
                let inserted = batched.insert_all(batch.iter().map(String::as_bytes), u64::MAX);
                for (at, key) in batch.iter().take(inserted.taken).enumerate() {
                    let new = single.insert(key.as_bytes(), u64::MAX);
                    assert_eq!(Ok(inserted.new.get(at)), new, "{form:?} {seed}");
                }
                rest = &rest[inserted.taken..];
                if let Some(refusal) = inserted.refused {
                    assert_eq!(single.insert(rest[0].as_bytes(), u64::MAX), Err(refusal));
                    rest = &rest[1..];
                }
                let image = |object: &Object| {
                    object.image().map(|image| image.read(0, usize::MAX).to_vec())
                };
                assert!(image(&single) == image(&batched), "{form:?} {seed}");
                assert_eq!(single.figures(), batched.figures(), "{form:?} {seed}");
            }
        }
    }

    /// A million of them are to cost little: jemalloc has a class of 112 bytes, and then 128.
    #[test]
    fn an_object_is_as_large_as_a_window() {
        assert_eq!((size_of::<Object>(), size_of::<WindowedBloomFilter>()), (112, 112));
    }
}
