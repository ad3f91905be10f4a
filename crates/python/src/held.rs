//! A filter of any type, wherever it lies: what all classes of Python hold.
//!
//! Keys come one by one as bytes, or many at once as the words that a [`Keyer`] made of them, so
//! that hashing needs no lock and no interpreter.
//!
//! A window of time needs to know what time it is: the system's clock says, in seconds since the
//! epoch of Unix as everywhere in petal, until the caller says it.

use std::time::{SystemTime, UNIX_EPOCH};

use petal::{Answers, AnyFilter, HashSpec, Mapped, Membership, Store};
use petal_interop::{Facts, Foreign, Format, Hasher, KeyForm};
use pyo3::PyResult;

use crate::error::{Kind, Raise};
use crate::key::Key;

/// A filter, the free-form metadata of its file, and its clock.
pub(crate) struct Held {
    pub(crate) place: Place,
    pub(crate) metadata: String,
    pub(crate) clock: Clock,
}

/// Where a filter lies, and whose it is.
pub(crate) enum Place {
    /// In memory of its own.
    Memory(AnyFilter),
    /// In a mapped file, which it never changes.
    File(AnyFilter<Mapped>),
    /// Another program's, in memory.
    Foreign(Foreign),
    /// Another program's, in a mapped file.
    ForeignFile(Foreign<Mapped>),
}

/// Who says what time it is.
#[derive(Clone, Copy)]
pub(crate) enum Clock {
    System,
    Told(u64),
}

impl Clock {
    pub(crate) fn now(self) -> u64 {
        match self {
            // A clock that is before the epoch stands still.
            Self::System => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
            }
            Self::Told(now) => now,
        }
    }
}

/// How keys become the words that a filter takes.
#[derive(Clone)]
pub(crate) enum Keyer {
    Native(HashSpec),
    /// Another program's; whether an `int` stands for its decimal digits.
    Foreign(Hasher, bool),
}

impl Keyer {
    /// Appends the words of a key.
    #[inline]
    pub(crate) fn put(&mut self, key: &[u8], words: &mut Vec<u64>) -> PyResult<()> {
        match self {
            Self::Native(hash) if hash.words() == 1 => words.push(hash.hash(key)),
            Self::Native(hash) => words.extend(hash.hash_wide(key)),
            Self::Foreign(hasher, _) => hasher.hash(key, words).map_err(Raise::raise)?,
        }
        Ok(())
    }

    /// The same of many keys, faster.
    #[inline]
    pub(crate) fn put_all<K: AsRef<[u8]>>(
        &mut self,
        mut keys: impl Iterator<Item = K>,
        words: &mut Vec<u64>,
    ) -> PyResult<()> {
        match self {
            Self::Native(hash) => hash.hash_all(keys, words),
            Self::Foreign(..) => return keys.try_for_each(|key| self.put(key.as_ref(), words)),
        }
        Ok(())
    }

    /// The same of a key as it was given.
    #[inline]
    pub(crate) fn put_key(&mut self, key: Key<'_>, words: &mut Vec<u64>) -> PyResult<()> {
        let digits = matches!(self, Self::Foreign(_, true));
        self.put(Room::default().bytes(key, digits), words)
    }
}

/// Room for the bytes of a number.
#[derive(Default)]
struct Room {
    little: [u8; 8],
    digits: String,
}

impl Room {
    #[inline]
    fn bytes<'a>(&'a mut self, key: Key<'a>, digits: bool) -> &'a [u8] {
        match key {
            Key::Bytes(bytes) => bytes,
            Key::Int(number) if digits => {
                self.digits = number.to_string();
                self.digits.as_bytes()
            }
            Key::Int(number) => {
                self.little = number.to_le_bytes();
                &self.little
            }
        }
    }
}

impl Held {
    pub(crate) fn new(filter: impl Into<AnyFilter>) -> Self {
        Self::at(Place::Memory(filter.into()), String::new())
    }

    pub(crate) fn at(place: Place, metadata: String) -> Self {
        Self { place, metadata, clock: Clock::System }
    }

    /// What all types have in common; `None` of other programs' filters.
    pub(crate) fn face(&self) -> Option<&dyn Membership> {
        match &self.place {
            Place::Memory(filter) => Some(filter.face()),
            Place::File(filter) => Some(filter.face()),
            Place::Foreign(_) | Place::ForeignFile(_) => None,
        }
    }

    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.place, Place::File(_) | Place::ForeignFile(_))
    }

    /// Whether an `int` stands for its decimal digits, which become what the other program had.
    #[inline]
    fn takes_digits(&self) -> bool {
        match &self.place {
            Place::Memory(_) | Place::File(_) => false,
            Place::Foreign(filter) => filter.key_form() != KeyForm::Text,
            Place::ForeignFile(filter) => filter.key_form() != KeyForm::Text,
        }
    }

    /// How keys that are asked for become words.
    pub(crate) fn keyer(&self) -> Keyer {
        match &self.place {
            Place::Memory(filter) => Keyer::Native(filter.face().hash_spec()),
            Place::File(filter) => Keyer::Native(filter.face().hash_spec()),
            Place::Foreign(filter) => Keyer::Foreign(filter.hasher(), self.takes_digits()),
            Place::ForeignFile(filter) => Keyer::Foreign(filter.hasher(), self.takes_digits()),
        }
    }

    /// The same of keys that are put in, which other programs may refuse to hold.
    pub(crate) fn member_keyer(&self) -> Keyer {
        match &self.place {
            Place::Foreign(filter) => Keyer::Foreign(filter.member_hasher(), self.takes_digits()),
            _ => self.keyer(),
        }
    }

    /// Words that a key comes to.
    pub(crate) fn words(&self) -> usize {
        match &self.place {
            Place::Memory(filter) => filter.face().hash_spec().words(),
            Place::File(filter) => filter.face().hash_spec().words(),
            Place::Foreign(filter) => filter.words(),
            Place::ForeignFile(filter) => filter.words(),
        }
    }

    /// Whether a key may be in it.
    #[inline]
    pub(crate) fn contains(&self, key: Key<'_>) -> PyResult<bool> {
        let mut room = Room::default();
        let key = room.bytes(key, self.takes_digits());
        match &self.place {
            Place::Memory(filter) => Ok(contains(filter, self.clock, key)),
            Place::File(filter) => Ok(contains(filter, self.clock, key)),
            Place::Foreign(filter) => filter.contains(key).map_err(Raise::raise),
            Place::ForeignFile(filter) => filter.contains(key).map_err(Raise::raise),
        }
    }

    /// The hash of a key; of types that hash to one word.
    pub(crate) fn hash_of(&self, key: Key<'_>) -> PyResult<u64> {
        let mut words = Vec::new();
        self.keyer().put_key(key, &mut words)?;
        Ok(words.first().copied().unwrap_or(0))
    }

    /// Whether keys may be in it, by their words.
    pub(crate) fn contains_words(&self, words: &[u64], found: &mut Answers) {
        match &self.place {
            Place::Memory(AnyFilter::Windowed(filter)) if filter.window_ticks().is_some() => {
                filter.contains_mixed_hashes_at(self.clock.now(), words, found);
            }
            Place::File(AnyFilter::Windowed(filter)) if filter.window_ticks().is_some() => {
                filter.contains_mixed_hashes_at(self.clock.now(), words, found);
            }
            Place::Memory(filter) => filter.face().contains_mixed_hashes(words, found),
            Place::File(filter) => filter.face().contains_mixed_hashes(words, found),
            Place::Foreign(filter) => filter.contains_words(words, found),
            Place::ForeignFile(filter) => filter.contains_words(words, found),
        }
    }

    /// Puts a key in; whether it certainly was not there.
    #[inline]
    pub(crate) fn insert(&mut self, key: Key<'_>) -> PyResult<bool> {
        let mut room = Room::default();
        let key = room.bytes(key, self.takes_digits());
        match &mut self.place {
            Place::Memory(filter) => insert(filter, self.clock, key).map_err(Raise::raise),
            Place::Foreign(filter) => filter.insert(key).map_err(Raise::raise),
            Place::File(_) | Place::ForeignFile(_) => Err(read_only()),
        }
    }

    /// Puts keys in by their words; `new` tells which certainly were not there.
    pub(crate) fn insert_words(&mut self, words: &[u64], new: &mut Answers) -> PyResult<()> {
        match &mut self.place {
            Place::Memory(filter) => {
                advance(filter, self.clock);
                let face = filter.face_mut().map_err(Raise::raise)?;
                face.insert_mixed_hashes(words, new).map_err(Raise::raise)
            }
            Place::Foreign(filter) => filter.insert_words(words, new).map_err(Raise::raise),
            Place::File(_) | Place::ForeignFile(_) => Err(read_only()),
        }
    }

    /// Refuses what cannot be changed, before any work is done.
    pub(crate) fn check_changeable(&mut self) -> PyResult<()> {
        match &mut self.place {
            Place::Memory(filter) => filter.face_mut().map(drop).map_err(Raise::raise),
            Place::Foreign(_) => Ok(()),
            Place::File(_) | Place::ForeignFile(_) => Err(read_only()),
        }
    }

    /// The filter in memory, to be changed in the ways of its type.
    pub(crate) fn memory(&mut self) -> PyResult<&mut AnyFilter> {
        match &mut self.place {
            Place::Memory(filter) => Ok(filter),
            Place::File(_) | Place::ForeignFile(_) => Err(read_only()),
            Place::Foreign(_) => Err(Kind::Unsupported.with("another program's filter")),
        }
    }

    /// Forgets all keys.
    pub(crate) fn clear(&mut self) -> PyResult<()> {
        match &mut self.place {
            Place::Memory(filter) => clear(filter).map_err(Raise::raise),
            Place::Foreign(_) => Err(Kind::Unsupported.with(
                "filters of other programs are not emptied; make a new one: \
                 ForeignFilter(format, capacity, rate)",
            )),
            Place::File(_) | Place::ForeignFile(_) => Err(read_only()),
        }
    }

    /// Sets the text that is kept in its file.
    pub(crate) fn set_metadata(&mut self, metadata: String) -> PyResult<()> {
        match &self.place {
            Place::Memory(_) => self.metadata = metadata,
            Place::File(_) | Place::ForeignFile(_) => return Err(read_only()),
            Place::Foreign(_) => {
                return Err(Kind::Unsupported.with("files of other programs keep no metadata"));
            }
        }
        Ok(())
    }

    /// What another program's header and bits tell. Cost: one pass over the bits.
    pub(crate) fn facts(&self) -> PyResult<Facts> {
        match &self.place {
            Place::Foreign(filter) => Ok(filter.facts()),
            Place::ForeignFile(filter) => Ok(filter.facts()),
            Place::Memory(_) | Place::File(_) => Err(not_foreign()),
        }
    }

    /// What its header alone tells.
    pub(crate) fn told(&self) -> PyResult<Facts> {
        match &self.place {
            Place::Foreign(filter) => Ok(filter.told()),
            Place::ForeignFile(filter) => Ok(filter.told()),
            Place::Memory(_) | Place::File(_) => Err(not_foreign()),
        }
    }

    /// Another program's format and form of keys, by name.
    pub(crate) fn told_by(&self) -> Option<(&'static str, &'static str)> {
        self.foreign_file().map(|(format, form, _)| (format.name(), form.name()))
    }

    /// Bytes of another program's file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.foreign_file().map_or(0, |(_, _, file)| file.len() as u64)
    }

    /// A copy in memory of its own.
    pub(crate) fn copy(&self) -> PyResult<Self> {
        let of_foreign = |file: &[u8], format, form| {
            let copy = Foreign::from_bytes(copied(file)?, Some(format)).map_err(Raise::raise)?;
            Ok::<_, pyo3::PyErr>(Place::Foreign(copy.with_keys(form)))
        };
        let place = match &self.place {
            Place::Memory(filter) => Place::Memory(filter.to_owned_filter().map_err(Raise::raise)?),
            Place::File(filter) => Place::Memory(filter.to_owned_filter().map_err(Raise::raise)?),
            Place::Foreign(it) => of_foreign(it.as_bytes(), it.format(), it.key_form())?,
            Place::ForeignFile(it) => of_foreign(it.as_bytes(), it.format(), it.key_form())?,
        };
        Ok(Self { place, metadata: self.metadata.clone(), clock: self.clock })
    }

    /// Writes the whole file of it.
    pub(crate) fn write_to(&self, out: &mut dyn std::io::Write) -> PyResult<()> {
        match &self.place {
            Place::Memory(filter) => filter.face().write_to(out, &self.metadata),
            Place::File(filter) => filter.face().write_to(out, &self.metadata),
            Place::Foreign(filter) => return filter.write_to(out, false).map_err(Raise::raise),
            Place::ForeignFile(filter) => return filter.write_to(out, false).map_err(Raise::raise),
        }
        .map_err(Raise::raise)
    }

    /// Examines all that can be examined.
    pub(crate) fn verify(&self) -> PyResult<()> {
        match &self.place {
            // It was examined when it was read, and nothing but itself changed it since.
            Place::Memory(_) => Ok(()),
            Place::File(filter) => filter.verify().map_err(Raise::raise),
            Place::Foreign(filter) => filter.verify().map_err(Raise::raise),
            Place::ForeignFile(filter) => filter.verify().map_err(Raise::raise),
        }
    }

    /// Whether two are of one type, shape and hash, with the same bits.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (&self.place, &other.place) {
            (Place::Memory(a), Place::Memory(b)) => same(a, b),
            (Place::Memory(a), Place::File(b)) => same(a, b),
            (Place::File(a), Place::Memory(b)) => same(a, b),
            (Place::File(a), Place::File(b)) => same(a, b),
            _ => match (self.foreign_file(), other.foreign_file()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        }
    }

    /// Another program's format, the form of its keys, and its file.
    fn foreign_file(&self) -> Option<(Format, KeyForm, &[u8])> {
        match &self.place {
            Place::Foreign(it) => Some((it.format(), it.key_form(), it.as_bytes())),
            Place::ForeignFile(it) => Some((it.format(), it.key_form(), it.as_bytes())),
            Place::Memory(_) | Place::File(_) => None,
        }
    }

    /// Takes in all keys of another one.
    pub(crate) fn union(&mut self, other: &Self) -> PyResult<()> {
        match (&mut self.place, &other.place) {
            (Place::Memory(ours), Place::Memory(theirs)) => {
                ours.union(theirs).map_err(Raise::raise)
            }
            (Place::Memory(ours), Place::File(theirs)) => ours.union(theirs).map_err(Raise::raise),
            (Place::Foreign(ours), Place::Foreign(theirs)) => {
                ours.union(theirs).map_err(Raise::raise)
            }
            (Place::Foreign(ours), Place::ForeignFile(theirs)) => {
                ours.union(theirs).map_err(Raise::raise)
            }
            (Place::File(_) | Place::ForeignFile(_), _) => Err(read_only()),
            _ => Err(Kind::Incompatible.with(
                "petal's own filters and those of other programs cannot be put together: fill \
                 both from the same keys",
            )),
        }
    }
}

/// Bytes of another program's file, in memory of our own.
fn copied(file: &[u8]) -> PyResult<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(file.len()).map_err(|_| {
        Kind::MemoryCap
            .with(format_args!("the system refused {} bytes of memory; free some", file.len()))
    })?;
    copy.extend_from_slice(file);
    Ok(copy)
}

pub(crate) fn read_only() -> pyo3::PyErr {
    Kind::Unsupported.with(
        "the filter lies in a mapped file and is read only; its copy(), or petal.load(path), can \
         be changed",
    )
}

fn not_foreign() -> pyo3::PyErr {
    Kind::Unsupported.with("the filter is petal's own, not another program's")
}

/// Forgets all keys.
fn clear(filter: &mut AnyFilter) -> petal::Result<()> {
    match filter {
        AnyFilter::Bloom(filter) => filter.clear(),
        AnyFilter::Classic(filter) => filter.clear(),
        AnyFilter::Counting(filter) => filter.clear(),
        AnyFilter::CountingClassic(filter) => filter.clear(),
        AnyFilter::Quotient(filter) => filter.clear(),
        AnyFilter::Scalable(filter) => filter.clear(),
        AnyFilter::Windowed(filter) => filter.clear(),
        AnyFilter::Wide(filter) => filter.clear(),
        // What cannot be changed says so itself.
        other => return other.face_mut().map(drop),
    }
    Ok(())
}

/// Tells a window of time what time it is.
fn advance(filter: &mut AnyFilter, clock: Clock) {
    if let AnyFilter::Windowed(filter) = filter
        && filter.window_ticks().is_some()
    {
        filter.advance_to(clock.now());
    }
}

/// One key, without the detour that batches take.
#[inline]
fn contains<S: Store>(filter: &AnyFilter<S>, clock: Clock, key: &[u8]) -> bool {
    match filter {
        AnyFilter::Bloom(filter) => filter.contains(key),
        AnyFilter::Classic(filter) => filter.contains(key),
        AnyFilter::Counting(filter) => filter.contains(key),
        AnyFilter::CountingClassic(filter) => filter.contains(key),
        AnyFilter::Quotient(filter) => filter.contains(key),
        AnyFilter::Scalable(filter) => filter.contains(key),
        AnyFilter::Windowed(filter) if filter.window_ticks().is_some() => {
            filter.contains_at(clock.now(), key)
        }
        AnyFilter::Windowed(filter) => filter.contains(key),
        AnyFilter::Static(filter) => filter.contains(key),
        AnyFilter::Cascade(filter) => filter.contains(key),
        AnyFilter::Wide(filter) => filter.contains(key),
        // Of a type that this crate does not know: it may be in it.
        _ => true,
    }
}

/// Likewise. Types that delete hold a key as often as it comes.
#[inline]
fn insert(filter: &mut AnyFilter, clock: Clock, key: &[u8]) -> petal::Result<bool> {
    match filter {
        AnyFilter::Bloom(filter) => Ok(filter.insert(key)),
        AnyFilter::Classic(filter) => Ok(filter.insert(key)),
        AnyFilter::Counting(filter) => Ok(filter.insert(key)),
        AnyFilter::CountingClassic(filter) => Ok(filter.insert(key)),
        AnyFilter::Quotient(filter) => filter.add(key),
        AnyFilter::Scalable(filter) => filter.insert(key),
        AnyFilter::Windowed(filter) => {
            if filter.window_ticks().is_some() {
                filter.advance_to(clock.now());
            }
            Ok(filter.insert(key))
        }
        AnyFilter::Wide(filter) => Ok(filter.insert(key)),
        // What cannot be changed says so itself.
        other => other.face_mut().map(|_| false),
    }
}

fn same<S: Store, T: Store>(a: &AnyFilter<S>, b: &AnyFilter<T>) -> bool {
    match (a, b) {
        (AnyFilter::Bloom(a), AnyFilter::Bloom(b)) => a == b,
        (AnyFilter::Classic(a), AnyFilter::Classic(b)) => a == b,
        (AnyFilter::Counting(a), AnyFilter::Counting(b)) => a == b,
        (AnyFilter::CountingClassic(a), AnyFilter::CountingClassic(b)) => a == b,
        (AnyFilter::Quotient(a), AnyFilter::Quotient(b)) => a == b,
        (AnyFilter::Scalable(a), AnyFilter::Scalable(b)) => a == b,
        (AnyFilter::Windowed(a), AnyFilter::Windowed(b)) => a == b,
        (AnyFilter::Static(a), AnyFilter::Static(b)) => a == b,
        (AnyFilter::Cascade(a), AnyFilter::Cascade(b)) => a == b,
        (AnyFilter::Wide(a), AnyFilter::Wide(b)) => a == b,
        _ => false,
    }
}
