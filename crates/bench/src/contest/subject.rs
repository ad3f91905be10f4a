//! A filter as the harness sees it, and the ways to use one: key by key, in batches, filled at once, or made at once.
//!
//! All are generic over closures, so that a rival's call is inlined as in a program of its own. What is called once for
//! many keys may be virtual: it costs nothing that a clock could see.

use petal::Answers;

use super::keys::Keys;

/// Keys of a call on a batch. Few enough for a processor's own cache, many enough that a call costs nothing.
pub const BATCH: usize = 20_000;

/// A filter that takes part. Its memory is its own and, but for what an insert itself asks for, has been written to
/// before anybody is timed.
pub trait Subject {
    /// Forgets all keys, and keeps the memory.
    fn clear(&mut self);

    /// Inserts keys. Timed.
    fn insert(&mut self, keys: &Keys);

    /// Removes keys, and tells how many of them it says it had. Timed, where a filter can.
    fn remove(&mut self, keys: &Keys) -> u64 {
        let _ = keys;
        0
    }

    /// Asks for keys, and uses every answer. Timed.
    fn ask(&mut self, keys: &Keys);

    /// How many answers of the last [`ask`](Self::ask) were yes.
    fn yes(&self) -> u64;

    /// Asks as [`ask`](Self::ask) does and, where there is another way to ask, compares: the answers that were yes, or
    /// `None` if two ways differ.
    fn judge(&mut self, keys: &Keys) -> Option<u64> {
        self.ask(keys);
        Some(self.yes())
    }

    /// The exact share of absent keys that the bits as they are now will answer with yes, where the filter can tell.
    fn foretold(&self) -> Option<f64> {
        None
    }

    /// Bytes of memory that it holds now, where they are not known beforehand.
    fn bytes(&self) -> Option<u64> {
        None
    }
}

/// What is the same for a filter however it is asked.
pub struct Tested<F, K> {
    filter: F,
    keys: fn(&Keys) -> &[K],
    clear: fn(&mut F),
    remove: Option<fn(&mut F, &[K]) -> u64>,
    foretold: fn(&F) -> Option<f64>,
    bytes: fn(&F) -> Option<u64>,
}

impl<F, K> Tested<F, K> {
    /// A filter, which form of the keys it takes, and what makes it forget all keys and keep the memory.
    pub fn new(filter: F, keys: fn(&Keys) -> &[K], clear: fn(&mut F)) -> Self {
        Self { filter, keys, clear, remove: None, foretold: |_| None, bytes: |_| None }
    }

    /// With what removes keys: see [`Subject::remove`].
    #[must_use]
    pub fn removing(self, remove: fn(&mut F, &[K]) -> u64) -> Self {
        Self { remove: Some(remove), ..self }
    }

    /// With a forecast: see [`Subject::foretold`].
    #[must_use]
    pub fn foretelling(self, foretold: fn(&F) -> Option<f64>) -> Self {
        Self { foretold, ..self }
    }

    /// With its memory: see [`Subject::bytes`].
    #[must_use]
    pub fn weighing(self, bytes: fn(&F) -> Option<u64>) -> Self {
        Self { bytes, ..self }
    }

    fn remove(&mut self, keys: &Keys) -> u64 {
        self.remove.map_or(0, |remove| remove(&mut self.filter, (self.keys)(keys)))
    }
}

/// A filter that is asked key by key. What an insert returns is used too.
pub struct OneByOne<F, K, I, A> {
    tested: Tested<F, K>,
    insert: I,
    ask: A,
    yes: u64,
}

impl<F, K, I, A> OneByOne<F, K, I, A>
where
    I: Fn(&mut F, &K) -> bool,
    A: Fn(&F, &K) -> bool,
{
    /// A filter, and how one key is inserted and asked for.
    pub fn new(tested: Tested<F, K>, insert: I, ask: A) -> Self {
        Self { tested, insert, ask, yes: 0 }
    }
}

impl<F, K, I, A> Subject for OneByOne<F, K, I, A>
where
    I: Fn(&mut F, &K) -> bool,
    A: Fn(&F, &K) -> bool,
{
    fn clear(&mut self) {
        (self.tested.clear)(&mut self.tested.filter);
    }

    fn insert(&mut self, keys: &Keys) {
        let filter = &mut self.tested.filter;
        let keys = (self.tested.keys)(keys);
        self.yes = keys.iter().map(|key| u64::from((self.insert)(filter, key))).sum();
    }

    fn ask(&mut self, keys: &Keys) {
        let filter = &self.tested.filter;
        let keys = (self.tested.keys)(keys);
        self.yes = keys.iter().map(|key| u64::from((self.ask)(filter, key))).sum();
    }

    fn yes(&self) -> u64 {
        self.yes
    }

    fn remove(&mut self, keys: &Keys) -> u64 {
        self.tested.remove(keys)
    }

    fn foretold(&self) -> Option<f64> {
        (self.tested.foretold)(&self.tested.filter)
    }

    fn bytes(&self) -> Option<u64> {
        (self.tested.bytes)(&self.tested.filter)
    }
}

/// A filter that is asked in batches of [`BATCH`] keys, and judged key by key as well.
pub struct InBatches<F, K, I, A, O> {
    tested: Tested<F, K>,
    insert: I,
    ask: A,
    ask_one: O,
    answers: Answers,
    yes: u64,
}

impl<F, K, I, A, O> InBatches<F, K, I, A, O>
where
    I: Fn(&mut F, &[K], &mut Answers),
    A: Fn(&F, &[K], &mut Answers),
    O: Fn(&F, &K) -> bool,
{
    /// A filter, how a batch is inserted and asked for, and how one key is asked for.
    pub fn new(tested: Tested<F, K>, insert: I, ask: A, ask_one: O) -> Self {
        Self { tested, insert, ask, ask_one, answers: Answers::new(), yes: 0 }
    }
}

impl<F, K, I, A, O> Subject for InBatches<F, K, I, A, O>
where
    I: Fn(&mut F, &[K], &mut Answers),
    A: Fn(&F, &[K], &mut Answers),
    O: Fn(&F, &K) -> bool,
{
    fn clear(&mut self) {
        (self.tested.clear)(&mut self.tested.filter);
    }

    fn insert(&mut self, keys: &Keys) {
        for keys in (self.tested.keys)(keys).chunks(BATCH) {
            (self.insert)(&mut self.tested.filter, keys, &mut self.answers);
        }
    }

    fn ask(&mut self, keys: &Keys) {
        self.yes = 0;
        for keys in (self.tested.keys)(keys).chunks(BATCH) {
            (self.ask)(&self.tested.filter, keys, &mut self.answers);
            self.yes += self.answers.count_ones();
        }
    }

    fn yes(&self) -> u64 {
        self.yes
    }

    fn judge(&mut self, keys: &Keys) -> Option<u64> {
        self.yes = 0;
        for keys in (self.tested.keys)(keys).chunks(BATCH) {
            let filter = &self.tested.filter;
            (self.ask)(filter, keys, &mut self.answers);
            let same = |(at, key)| self.answers.get(at) == (self.ask_one)(filter, key);
            if self.answers.len() != keys.len() || !keys.iter().enumerate().all(same) {
                return None;
            }
            self.yes += self.answers.count_ones();
        }
        Some(self.yes)
    }

    fn remove(&mut self, keys: &Keys) -> u64 {
        self.tested.remove(keys)
    }

    fn foretold(&self) -> Option<f64> {
        (self.tested.foretold)(&self.tested.filter)
    }

    fn bytes(&self) -> Option<u64> {
        (self.tested.bytes)(&self.tested.filter)
    }
}

/// A filter that all keys go into with one call, and that is asked in batches of [`BATCH`] keys.
pub struct AtOnce<F, K, I, A> {
    tested: Tested<F, K>,
    insert: I,
    ask: A,
    answers: Answers,
    yes: u64,
}

impl<F, K, I, A> AtOnce<F, K, I, A>
where
    I: Fn(&mut F, &[K]) -> petal::Result<()>,
    A: Fn(&F, &[K], &mut Answers),
{
    /// A filter, and how all keys are inserted and a batch is asked for.
    pub fn new(tested: Tested<F, K>, insert: I, ask: A) -> Self {
        Self { tested, insert, ask, answers: Answers::new(), yes: 0 }
    }
}

impl<F, K, I, A> Subject for AtOnce<F, K, I, A>
where
    I: Fn(&mut F, &[K]) -> petal::Result<()>,
    A: Fn(&F, &[K], &mut Answers),
{
    fn clear(&mut self) {
        (self.tested.clear)(&mut self.tested.filter);
    }

    fn insert(&mut self, keys: &Keys) {
        // Without memory nothing goes in, and whoever asks for the keys finds that out.
        let _ = (self.insert)(&mut self.tested.filter, (self.tested.keys)(keys));
    }

    fn ask(&mut self, keys: &Keys) {
        self.yes = 0;
        for keys in (self.tested.keys)(keys).chunks(BATCH) {
            (self.ask)(&self.tested.filter, keys, &mut self.answers);
            self.yes += self.answers.count_ones();
        }
    }

    fn yes(&self) -> u64 {
        self.yes
    }

    fn remove(&mut self, keys: &Keys) -> u64 {
        self.tested.remove(keys)
    }

    fn foretold(&self) -> Option<f64> {
        (self.tested.foretold)(&self.tested.filter)
    }

    fn bytes(&self) -> Option<u64> {
        (self.tested.bytes)(&self.tested.filter)
    }
}

/// A filter that is made of all keys at once and takes none later. Its memory is given back when it forgets them, so that
/// what a build asks for is on its own time, as it is in use.
pub struct Made<F, B, A> {
    filter: Option<F>,
    build: B,
    ask: A,
    bytes: fn(&F) -> u64,
    yes: u64,
}

impl<F, B, A> Made<F, B, A>
where
    B: Fn(&[u64]) -> Option<F>,
    A: Fn(&F, &[u64]) -> u64,
{
    /// How it is made of keys, how many of some keys it has, and the bytes that it holds.
    pub fn new(build: B, ask: A, bytes: fn(&F) -> u64) -> Self {
        Self { filter: None, build, ask, bytes, yes: 0 }
    }
}

impl<F, B, A> Subject for Made<F, B, A>
where
    B: Fn(&[u64]) -> Option<F>,
    A: Fn(&F, &[u64]) -> u64,
{
    fn clear(&mut self) {
        self.filter = None;
    }

    fn insert(&mut self, keys: &Keys) {
        // One that could not be made has no keys, which is found out when they are asked for.
        self.filter = (self.build)(keys.numbers());
    }

    fn ask(&mut self, keys: &Keys) {
        self.yes = self.filter.as_ref().map_or(0, |filter| (self.ask)(filter, keys.numbers()));
    }

    fn yes(&self) -> u64 {
        self.yes
    }

    fn bytes(&self) -> Option<u64> {
        self.filter.as_ref().map(self.bytes)
    }
}
