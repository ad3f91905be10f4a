//! The family: one filter of each type that the library has, for the same 64-bit keys and the same rate.
//!
//! Every type is asked in batches and key by key; a type that deletes is timed at that too. How much memory it holds is
//! asked of the filter when it is full, by `memory_usage`. A type that keys can be added to is an [`impl Member`](Member),
//! a line in [`all`] says under which name it takes part.

use petal::{Answers, Filter, Geometry, Kernel};

use super::keys::Keys;
use super::petal::kernels;
use super::subject::{BATCH, InBatches, OneByOne, Subject, Tested};
use super::{Contestant, Form, Kind, Operation};

/// What is done with a filter that keys can be added to. Its memory is kept when it is cleared, unless it grows.
trait Member: Sized + 'static {
    /// What it is timed at.
    const OPERATIONS: &[Operation] = Operation::ADDED;

    /// A filter for so many keys.
    fn make(keys: u64, rate: f64) -> petal::Result<Self>;
    fn clear(&mut self);
    fn insert(&mut self, key: &u64) -> bool;
    fn contains(&self, key: &u64) -> bool;
    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers);
    fn contains_batch(&self, keys: &[u64], found: &mut Answers);
    fn memory_usage(&self) -> u64;

    /// Removes a key, and tells whether it was there.
    fn remove(&mut self, _key: &u64) -> bool {
        false
    }

    fn remove_batch(&mut self, keys: &[u64], removed: &mut Answers) {
        let _ = (keys, removed);
    }
}

impl<G: Geometry + 'static> Member for Filter<G> {
    fn make(keys: u64, rate: f64) -> petal::Result<Self> {
        Self::with_rate(keys, rate)
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.insert(key)
    }

    fn contains(&self, key: &u64) -> bool {
        self.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers) {
        self.insert_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut Answers) {
        self.contains_batch(keys, found);
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }
}

/// Every type, for so many keys at a rate.
///
/// # Errors
/// A sentence, if one of them cannot be made.
pub fn all(keys: u64, rate: f64) -> Result<Vec<Contestant>, String> {
    let types = [
        added_to::<petal::BloomFilter>("petal bloom", keys, rate)?,
        added_to::<petal::ClassicBloomFilter>("petal classic", keys, rate)?,
    ];
    Ok(types.into_iter().flatten().collect())
}

/// A type in batches, and key by key.
fn added_to<M: Member>(name: &str, keys: u64, rate: f64) -> Result<[Contestant; 2], String> {
    let tested = || -> Result<Tested<M, u64>, String> {
        let filter = M::make(keys, rate).map_err(|problem| format!("{name}: {problem}"))?;
        let tested = Tested::new(filter, Keys::numbers, M::clear);
        Ok(tested.weighing(|filter| Some(filter.memory_usage())))
    };
    let batch = tested()?.removing(|filter, keys| {
        let mut removed = Answers::new();
        let batches = keys.chunks(BATCH).map(|keys| {
            filter.remove_batch(keys, &mut removed);
            removed.count_ones()
        });
        batches.sum()
    });
    let batch = InBatches::new(batch, M::insert_batch, M::contains_batch, M::contains);
    let single = tested()?
        .removing(|filter, keys| keys.iter().map(|key| u64::from(filter.remove(key))).sum());
    let single = OneByOne::new(single, M::insert, M::contains);
    let with = |form, subject| contestant(name, rate, form, M::OPERATIONS, subject);
    Ok([with(Form::Batch, Box::new(batch)), with(Form::Single, Box::new(single))])
}

fn contestant(
    name: &str,
    rate: f64,
    form: Form,
    operations: &'static [Operation],
    subject: Box<dyn Subject>,
) -> Contestant {
    Contestant {
        filter: name.to_owned(),
        target: Some(rate),
        // The filter tells.
        bits_per_key: f64::NAN,
        kind: Kind::Number,
        form,
        kernel: kernels().last().copied().or(Some(Kernel::Portable)),
        threads: 1,
        operations,
        at_once: operations.contains(&Operation::Build),
        judged: true,
        subject,
    }
}
