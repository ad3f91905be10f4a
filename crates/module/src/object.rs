//! What a key holds: a filter, whatever its type and layout, and what it can be asked and told.

use petal::{Answers, AnyFilter, Mover};

use crate::parcel::{Content, Incoming, Parcel};

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
#[derive(Debug)]
pub(crate) enum Object {
    /// A filter of petal's, of any type.
    Filter(Box<AnyFilter>),
    /// What has come of a filter so far; it answers nothing.
    Incoming(Box<Incoming>),
}

/// Why something was not put in, or not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It does not grow, and holds what it was made for.
    Full,
    /// It would take more memory than a key may have.
    Limit,
    /// The server's memory is used up.
    Memory,
    /// It is of a type that cannot do this.
    Type,
    /// Anything else that a filter says of itself.
    Other(String),
}

impl From<petal::Error> for Refusal {
    fn from(error: petal::Error) -> Self {
        if error.is_alloc() {
            Self::Memory
        } else if error.is_unsupported() {
            Self::Type
        } else {
            Self::Other(error.to_string())
        }
    }
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

impl From<AnyFilter> for Object {
    fn from(filter: AnyFilter) -> Self {
        Self::Filter(Box::new(filter))
    }
}

impl Object {
    /// Of what came in a parcel or a file.
    pub(crate) fn of(content: Content) -> Result<Self, String> {
        match content {
            Content::Filter(filter) => Ok(filter.into()),
            Content::Row(..) => Err("rows are not known here".to_owned()),
        }
    }

    /// As a parcel, if it is in petal's own layout and whole.
    pub(crate) fn parcel(&self) -> Option<Parcel<'_>> {
        match self {
            Self::Filter(filter) => Some(Parcel::of(filter)),
            Self::Incoming(_) => None,
        }
    }

    /// Moves its blocks of memory.
    pub(crate) fn relocate(&mut self, mover: &mut Mover<'_>) {
        match self {
            Self::Filter(filter) => filter.relocate(mover),
            Self::Incoming(_) => {}
        }
    }

    /// How the server keeps it.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Filter(_) | Self::Incoming(_) => Kind::Petal,
        }
    }

    /// Bytes of memory that it takes in all.
    pub(crate) fn memory_usage(&self) -> u64 {
        let beside = size_of::<Self>() as u64;
        beside
            + match self {
                Self::Filter(filter) => {
                    filter.face().memory_usage()
                        + (size_of::<AnyFilter>() - size_of_val(filter.face())) as u64
                }
                Self::Incoming(incoming) => incoming.memory_usage(),
            }
    }

    /// A copy; none if the memory is refused.
    pub(crate) fn copy(&self) -> Option<Self> {
        match self {
            Self::Filter(filter) => filter.to_owned_filter().ok().map(Self::from),
            Self::Incoming(_) => None,
        }
    }

    /// Whether a key may be there, at this time.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8], clock: &impl Clock) -> bool {
        match self {
            Self::Filter(filter) => match &**filter {
                AnyFilter::Scalable(filter) => filter.contains_hash(filter.hash_spec().hash(key)),
                AnyFilter::Bloom(filter) => filter.contains_hash(filter.hash_spec().hash(key)),
                _ => {
                    let mut found = Answers::new();
                    self.contains_all(std::iter::once(key), clock, &mut found);
                    found.get(0)
                }
            },
            Self::Incoming(_) => false,
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
            Self::Filter(filter) => {
                let hashes = hashes(filter, keys);
                match &**filter {
                    AnyFilter::Windowed(filter) => {
                        filter.contains_hashes_at(clock.now(), &hashes, found);
                    }
                    filter => filter.face().contains_hashes(&hashes, found),
                }
            }
            Self::Incoming(_) => found.answer(keys.count(), |_| false),
        }
    }

    /// Whether putting one key in may take more memory.
    pub(crate) fn may_grow(&self) -> bool {
        match self {
            Self::Filter(filter) => match &**filter {
                AnyFilter::Scalable(filter) => filter.layer_capacity_left() == 0,
                _ => false,
            },
            Self::Incoming(_) => false,
        }
    }

    /// Puts a key in; whether it was new.
    #[inline]
    pub(crate) fn insert(&mut self, key: &[u8], now: u64, limit: u64) -> Result<bool, Refusal> {
        if let Self::Filter(filter) = self
            && let AnyFilter::Scalable(filter) = &mut **filter
            && filter.layer_capacity_left() > 0
        {
            return Ok(filter.insert_hash(filter.hash_spec().hash(key))?);
        }
        let inserted = self.insert_all(std::iter::once(key), now, limit);
        inserted.refused.map_or(Ok(inserted.new.get(0)), Err)
    }

    /// Puts keys in, at this time, as long as it takes no more than so many bytes.
    pub(crate) fn insert_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        now: u64,
        limit: u64,
    ) -> Inserted {
        match self {
            Self::Filter(filter) => insert_into(filter, keys, now, limit),
            Self::Incoming(_) => Inserted { refused: Some(Refusal::Type), ..Inserted::default() },
        }
    }

    /// What `BF.INFO` tells.
    pub(crate) fn figures(&self) -> Figures {
        match self {
            Self::Filter(filter) => {
                let face = filter.face();
                let (capacity, layers, expansion) = match &**filter {
                    AnyFilter::Scalable(filter) => {
                        (filter.planned_total(), filter.layers().into(), Some(filter.growth()))
                    }
                    _ => (face.planned_keys(), 1, None),
                };
                let (items, rate) = (face.inserted(), face.target_rate());
                Figures { capacity, size: self.memory_usage(), layers, items, expansion, rate }
            }
            Self::Incoming(incoming) => {
                Figures { size: incoming.memory_usage(), ..Figures::default() }
            }
        }
    }
}

fn hashes<'k>(filter: &AnyFilter, keys: impl Iterator<Item = &'k [u8]>) -> Vec<u64> {
    let mut hashes = Vec::with_capacity(keys.size_hint().0);
    filter.face().hash_spec().hash_all(keys, &mut hashes);
    hashes
}

/// Puts keys into a filter of petal's.
fn insert_into<'k>(
    filter: &mut AnyFilter,
    keys: impl Iterator<Item = &'k [u8]>,
    now: u64,
    limit: u64,
) -> Inserted {
    let hashes = hashes(filter, keys);
    let mut inserted = Inserted::default();
    let words = filter.face().hash_spec().words();
    let room = match filter {
        AnyFilter::Bloom(filter) => left(filter.planned_keys(), filter.inserted()),
        AnyFilter::Scalable(filter) => filter.layer_capacity_left(),
        AnyFilter::Classic(filter) => left(filter.planned_keys(), filter.inserted()),
        AnyFilter::Windowed(filter) => {
            filter.advance_to(now);
            u64::MAX
        }
        _ => u64::MAX,
    };
    let count = hashes.len() / words;
    let outcome = if count as u64 <= room {
        match filter.face_mut() {
            Ok(face) => face.insert_hashes(&hashes, &mut inserted.new),
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
    filter.face().contains_hashes(hash, answer);
    if answer.get(0) {
        return Ok(false);
    }
    match filter {
        AnyFilter::Bloom(filter) if left(filter.planned_keys(), filter.inserted()) == 0 => {
            return Err(Refusal::Full);
        }
        AnyFilter::Classic(filter) if left(filter.planned_keys(), filter.inserted()) == 0 => {
            return Err(Refusal::Full);
        }
        AnyFilter::Scalable(filter) if filter.layer_capacity_left() == 0 => {
            let more = filter.next_layer_bytes()?;
            if filter.memory_usage().saturating_add(more) > limit {
                return Err(Refusal::Limit);
            }
        }
        _ => {}
    }
    filter.face_mut()?.insert_hashes(hash, answer)?;
    Ok(answer.get(0))
}

/// Keys that still fit, where any number was planned.
fn left(planned: u64, inserted: u64) -> u64 {
    if planned == 0 { u64::MAX } else { planned.saturating_sub(inserted) }
}
