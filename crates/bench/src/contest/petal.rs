//! The library's filters as contestants.
//!
//! Each has a filter of its own, so that none finds in cache what another fetched.

use std::mem;
use std::num::NonZeroUsize;

use petal::{Answers, AtomicBloomFilter, BloomFilter, ClassicBloomFilter, Filter, Kernel};

use super::keys::Keys;
use super::subject::{AtOnce, InBatches, OneByOne, Subject, Tested};
use super::{Contestant, Form, Kind, Operation};

/// What makes a filter for a number of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// The default filter, by its rate.
    Rate(f64),
    /// Lines of ten bits a key, with so many probes.
    Line(u32),
    /// Line pairs at 0.1 %, where single lines are the default.
    Pair,
    /// The textbook's filter, by its rate.
    Classic(f64),
}

/// The kernels that this machine has, the fastest last.
pub fn kernels() -> Vec<Kernel> {
    Kernel::ALL.into_iter().filter(|kernel| kernel.is_there()).collect()
}

/// Bits a key, and probes, with which line pairs keep 0.1 % (`docs/design.md`, "Space").
const PAIR: (f64, u32) = (15.05, 10);

impl Model {
    fn name(self) -> String {
        match self {
            Self::Rate(rate) => format!("petal {} %", 100.0 * rate),
            Self::Line(probes) => format!("petal k={probes}"),
            Self::Pair => "petal 0.1 % pairs".into(),
            Self::Classic(rate) => format!("petal classic {} %", 100.0 * rate),
        }
    }

    fn target(self) -> Option<f64> {
        match self {
            Self::Rate(rate) | Self::Classic(rate) => Some(rate),
            Self::Pair => Some(0.001),
            Self::Line(_) => None,
        }
    }

    /// A contestant for so many keys. Kernels are for lines and pairs; the textbook's filter is portable.
    ///
    /// # Errors
    /// A sentence, if there cannot be such a filter.
    pub fn contestant(
        self,
        keys: u64,
        kind: Kind,
        form: Form,
        kernel: Kernel,
    ) -> Result<Contestant, String> {
        // How single keys go is decided when a filter is made.
        kernel.force();
        let made = match self {
            Self::Rate(rate) => BloomFilter::with_rate(keys, rate),
            Self::Line(probes) => BloomFilter::with_bits(10 * keys, probes),
            Self::Pair => BloomFilter::with_bits((PAIR.0 * keys as f64).ceil() as u64, PAIR.1),
            Self::Classic(rate) => {
                let filter = ClassicBloomFilter::with_rate(keys, rate);
                let filter = filter.map_err(|problem| problem.to_string())?;
                return Ok(self.with(filter, keys, kind, form, Kernel::Portable));
            }
        };
        let filter = made.map_err(|problem| problem.to_string())?;
        Ok(self.with(filter, keys, kind, form, kernel))
    }

    fn with<G: petal::Geometry + 'static>(
        self,
        filter: Filter<G>,
        keys: u64,
        kind: Kind,
        form: Form,
        kernel: Kernel,
    ) -> Contestant {
        Contestant {
            filter: self.name(),
            target: self.target(),
            bits_per_key: filter.size_bytes() as f64 * 8.0 / keys as f64,
            kind,
            form,
            kernel: Some(kernel),
            threads: 1,
            operations: &Operation::ALL,
            at_once: false,
            judged: true,
            subject: match form {
                Form::Single => one_by_one(filter, kind),
                Form::Batch => in_batches(filter, kind),
            },
        }
    }
}

/// The default filter filled at once, on so many threads. That of a single thread is the yardstick of the others.
///
/// # Errors
/// A sentence, if there cannot be such a filter.
pub fn build(
    keys: u64,
    rate: f64,
    kind: Kind,
    kernel: Kernel,
    threads: NonZeroUsize,
) -> Result<Contestant, String> {
    let made = Model::Rate(rate).contestant(keys, kind, Form::Batch, kernel)?;
    let filter = BloomFilter::with_rate(keys, rate).map_err(|problem| problem.to_string())?;
    let subject: Box<dyn Subject> = match kind {
        Kind::Hash => Box::new(AtOnce::new(
            tested(filter, Keys::numbers),
            move |filter, hashes| filter.insert_mixed_hashes_parallel(hashes, threads),
            Filter::contains_mixed_hashes,
        )),
        Kind::Number => Box::new(AtOnce::new(
            tested(filter, Keys::numbers),
            move |filter, keys| filter.insert_parallel(keys, threads),
            |filter: &BloomFilter, keys: &[u64], found: &mut Answers| {
                filter.contains_batch(keys, found);
            },
        )),
        Kind::Bytes => Box::new(AtOnce::new(
            tested(filter, Keys::texts),
            move |filter, keys| filter.insert_parallel(keys, threads),
            |filter: &BloomFilter, keys: &[Vec<u8>], found: &mut Answers| {
                filter.contains_batch(keys, found);
            },
        )),
    };
    let operations = &[Operation::Build];
    Ok(Contestant { threads: threads.get(), operations, at_once: true, subject, ..made })
}

/// The default filter as threads share it, here asked by one; of hashes that are given. Its kernel is that of the process
/// when it is made.
///
/// # Errors
/// A sentence, if there cannot be such a filter.
pub fn atomic(keys: u64, rate: f64, form: Form, kernel: Kernel) -> Result<Contestant, String> {
    // Forces the kernel, too.
    let made = Model::Rate(rate).contestant(keys, Kind::Hash, form, kernel)?;
    let filter = AtomicBloomFilter::with_rate(keys, rate).map_err(|problem| problem.to_string())?;
    let tested = Tested::new(filter, Keys::numbers, clear_atomic);
    let ask = |filter: &AtomicBloomFilter, &hash: &u64| filter.contains_mixed_hash(hash);
    let subject: Box<dyn Subject> = match form {
        Form::Single => {
            Box::new(OneByOne::new(tested, |filter, &hash| filter.insert_mixed_hash(hash), ask))
        }
        Form::Batch => Box::new(InBatches::new(
            tested,
            |filter: &mut AtomicBloomFilter, hashes: &[u64], new: &mut Answers| {
                filter.insert_mixed_hashes(hashes, new);
            },
            AtomicBloomFilter::contains_mixed_hashes,
            ask,
        )),
    };
    Ok(Contestant { filter: format!("petal atomic {} %", 100.0 * rate), subject, ..made })
}

/// By way of the plain filter, which has the same memory; made anew with the kernel that the process has then.
fn clear_atomic(filter: &mut AtomicBloomFilter) {
    // Refused, it stays full, and the judging says so.
    let Ok(other) = AtomicBloomFilter::with_bits(1, 1) else { return };
    let mut plain = mem::replace(filter, other).into_filter();
    plain.clear();
    *filter = plain.into();
}

fn tested<G: petal::Geometry, K>(
    filter: Filter<G>,
    keys: fn(&Keys) -> &[K],
) -> Tested<Filter<G>, K> {
    Tested::new(filter, keys, Filter::clear).foretelling(|filter| Some(filter.estimated_rate()))
}

fn one_by_one<G: petal::Geometry + 'static>(filter: Filter<G>, kind: Kind) -> Box<dyn Subject> {
    match kind {
        Kind::Hash => Box::new(OneByOne::new(
            tested(filter, Keys::numbers),
            |filter, &hash| filter.insert_mixed_hash(hash),
            |filter, &hash| filter.contains_mixed_hash(hash),
        )),
        Kind::Number => Box::new(OneByOne::new(
            tested(filter, Keys::numbers),
            |filter, key| filter.insert(key),
            |filter, key| filter.contains(key),
        )),
        Kind::Bytes => Box::new(OneByOne::new(
            tested(filter, Keys::texts),
            |filter, key| filter.insert(key),
            |filter, key| filter.contains(key),
        )),
    }
}

fn in_batches<G: petal::Geometry + 'static>(filter: Filter<G>, kind: Kind) -> Box<dyn Subject> {
    match kind {
        Kind::Hash => Box::new(InBatches::new(
            tested(filter, Keys::numbers),
            Filter::insert_mixed_hashes,
            Filter::contains_mixed_hashes,
            |filter: &Filter<G>, &hash| filter.contains_mixed_hash(hash),
        )),
        Kind::Number => Box::new(InBatches::new(
            tested(filter, Keys::numbers),
            |filter: &mut Filter<G>, keys: &[u64], new: &mut Answers| {
                filter.insert_batch(keys, new);
            },
            |filter: &Filter<G>, keys: &[u64], found: &mut Answers| {
                filter.contains_batch(keys, found);
            },
            |filter: &Filter<G>, key: &u64| filter.contains(key),
        )),
        Kind::Bytes => Box::new(InBatches::new(
            tested(filter, Keys::texts),
            |filter: &mut Filter<G>, keys: &[Vec<u8>], new: &mut Answers| {
                filter.insert_batch(keys, new);
            },
            |filter: &Filter<G>, keys: &[Vec<u8>], found: &mut Answers| {
                filter.contains_batch(keys, found);
            },
            |filter: &Filter<G>, key: &Vec<u8>| filter.contains(key),
        )),
    }
}
