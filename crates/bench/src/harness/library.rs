//! Cases of the library's Bloom filters.
//!
//! Each case has its own filter, so that none finds cache lines that another one has loaded.

use std::mem;
use std::num::NonZeroUsize;

use petal::{
    AtomicBloomFilter, BatchResults, BloomFilter, ClassicBloomFilter, Filter, Kernel,
    Membership as _,
};

use super::adapters::{Batched, BenchFilter, FilterOps, ParallelFill, PerKey};
use super::keys::Keys;
use super::{Case, Form, KeyKind, Operation};

/// A filter configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// The default filter, by its rate.
    Rate(f64),
    /// Blocks of one cache line, ten bits per key, with this number of probes.
    Line(u32),
    /// Blocks of two cache lines at 0.1 %, where one line is the default.
    Pair,
    /// The classic Bloom filter, by its rate.
    Classic(f64),
}

/// Returns the kernels that this machine supports, the fastest last.
pub fn kernels() -> Vec<Kernel> {
    Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).collect()
}

/// Bits per key and probes with which blocks of two lines keep 0.1 % (`docs/design/filters.md`,
/// "Space").
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

    /// Makes a case for `keys` keys. Inserts into classic filters are portable with every kernel.
    ///
    /// # Errors
    /// If the filter cannot be made.
    pub fn case(
        self,
        keys: u64,
        kind: KeyKind,
        form: Form,
        kernel: Kernel,
    ) -> Result<Case, String> {
        // A filter takes its kernel for single keys when it is made.
        kernel.force();
        let made = match self {
            Self::Rate(rate) => BloomFilter::with_fpr(keys, rate),
            Self::Line(probes) => BloomFilter::with_bits(10 * keys, probes),
            Self::Pair => BloomFilter::with_bits((PAIR.0 * keys as f64).ceil() as u64, PAIR.1),
            Self::Classic(rate) => {
                let filter = ClassicBloomFilter::with_fpr(keys, rate);
                let filter = filter.map_err(|problem| problem.to_string())?;
                return Ok(self.case_of(filter, keys, kind, form, kernel));
            }
        };
        let filter = made.map_err(|problem| problem.to_string())?;
        Ok(self.case_of(filter, keys, kind, form, kernel))
    }

    fn case_of<G: petal::embed::Layout + 'static>(
        self,
        filter: Filter<G>,
        keys: u64,
        kind: KeyKind,
        form: Form,
        kernel: Kernel,
    ) -> Case {
        Case {
            filter: self.name(),
            target: self.target(),
            bits_per_key: filter.size_bytes() as f64 * 8.0 / keys as f64,
            kind,
            form,
            kernel: Some(kernel),
            threads: 1,
            operations: &Operation::ALL,
            fills_at_once: false,
            is_filter: true,
            tested: match form {
                Form::Single => per_key(filter, kind),
                Form::Batch => batched(filter, kind),
            },
        }
    }
}

/// Makes a case of the default filter, filled with one call on `threads` threads.
///
/// # Errors
/// If the filter cannot be made.
pub fn build(
    keys: u64,
    fpr: f64,
    kind: KeyKind,
    kernel: Kernel,
    threads: NonZeroUsize,
) -> Result<Case, String> {
    let case = Model::Rate(fpr).case(keys, kind, Form::Batch, kernel)?;
    let filter = BloomFilter::with_fpr(keys, fpr).map_err(|problem| problem.to_string())?;
    let tested: Box<dyn BenchFilter> = match kind {
        KeyKind::Hash => return Err("a build has no form for hashes".into()),
        KeyKind::Number => Box::new(ParallelFill::new(
            ops(filter, Keys::numbers),
            move |filter, keys| filter.put_batch_on(keys, threads),
            |filter: &BloomFilter, keys: &[u64], found: &mut BatchResults| {
                filter.contains_batch(keys, found);
            },
        )),
        KeyKind::Bytes => Box::new(ParallelFill::new(
            ops(filter, Keys::texts),
            move |filter, keys| filter.put_batch_on(keys, threads),
            |filter: &BloomFilter, keys: &[Vec<u8>], found: &mut BatchResults| {
                filter.contains_batch(keys, found);
            },
        )),
    };
    let operations = &[Operation::Build];
    Ok(Case { threads: threads.get(), operations, fills_at_once: true, tested, ..case })
}

/// Makes a case of the default filter with inserts without a result, for mixed hashes.
///
/// # Errors
/// If the filter cannot be made.
pub fn put(keys: u64, fpr: f64, form: Form, kernel: Kernel) -> Result<Case, String> {
    // This also forces the kernel.
    let case = Model::Rate(fpr).case(keys, KeyKind::Hash, form, kernel)?;
    let filter = BloomFilter::with_fpr(keys, fpr).map_err(|problem| problem.to_string())?;
    let ops = ops(filter, Keys::numbers);
    // A closure for each form: one that is used twice is not inlined.
    let tested: Box<dyn BenchFilter> = match form {
        Form::Single => Box::new(PerKey::new(
            ops,
            |filter, &hash| {
                filter.put_mixed_hash(hash);
                true
            },
            |filter: &BloomFilter, &hash: &u64| filter.contains_mixed_hash(hash),
        )),
        Form::Batch => Box::new(Batched::new(
            ops,
            |filter: &mut BloomFilter, hashes: &[u64], _: &mut BatchResults| {
                filter.put_mixed_hashes(hashes);
            },
            Filter::contains_mixed_hashes,
            |filter: &BloomFilter, &hash: &u64| filter.contains_mixed_hash(hash),
        )),
    };
    let filter = format!("petal put {} %", 100.0 * fpr);
    Ok(Case { filter, operations: &Operation::FILL, tested, ..case })
}

/// Makes a case of the concurrent filter, used by one thread, for mixed hashes. It takes the kernel that the process
/// has when it is made.
///
/// # Errors
/// If the filter cannot be made.
pub fn atomic(keys: u64, fpr: f64, form: Form, kernel: Kernel) -> Result<Case, String> {
    // This also forces the kernel.
    let case = Model::Rate(fpr).case(keys, KeyKind::Hash, form, kernel)?;
    let filter = AtomicBloomFilter::with_fpr(keys, fpr).map_err(|problem| problem.to_string())?;
    let ops = FilterOps::new(filter, Keys::numbers, clear_atomic);
    let query = |filter: &AtomicBloomFilter, &hash: &u64| filter.contains_mixed_hash(hash);
    let tested: Box<dyn BenchFilter> = match form {
        Form::Single => {
            Box::new(PerKey::new(ops, |filter, &hash| filter.insert_mixed_hash(hash), query))
        }
        Form::Batch => Box::new(Batched::new(
            ops,
            |filter: &mut AtomicBloomFilter, hashes: &[u64], new: &mut BatchResults| {
                filter.insert_mixed_hashes(hashes, new);
            },
            AtomicBloomFilter::contains_mixed_hashes,
            query,
        )),
    };
    Ok(Case { filter: format!("petal atomic {} %", 100.0 * fpr), tested, ..case })
}

/// Clears the filter by converting it to the plain filter, which has the same memory, and back.
fn clear_atomic(filter: &mut AtomicBloomFilter) {
    // If memory is refused the filter stays full, and the measured rate is wrong.
    let Ok(other) = AtomicBloomFilter::with_fpr(1, 0.5) else { return };
    let mut plain = mem::replace(filter, other).into_filter();
    plain.clear();
    *filter = plain.into();
}

fn ops<G: petal::embed::Layout, K>(
    filter: Filter<G>,
    keys: fn(&Keys) -> &[K],
) -> FilterOps<Filter<G>, K> {
    let ops = FilterOps::new(filter, keys, Filter::clear);
    ops.with_estimated_fpr(|filter| Some(filter.stats().estimated_fpr))
}

fn per_key<G: petal::embed::Layout + 'static>(
    filter: Filter<G>,
    kind: KeyKind,
) -> Box<dyn BenchFilter> {
    match kind {
        KeyKind::Hash => Box::new(PerKey::new(
            ops(filter, Keys::numbers),
            |filter, &hash| filter.insert_mixed_hash(hash),
            |filter, &hash| filter.contains_mixed_hash(hash),
        )),
        KeyKind::Number => Box::new(PerKey::new(
            ops(filter, Keys::numbers),
            |filter, key| filter.insert(key),
            |filter, key| filter.contains(key),
        )),
        KeyKind::Bytes => Box::new(PerKey::new(
            ops(filter, Keys::texts),
            |filter, key| filter.insert(key),
            |filter, key| filter.contains(key),
        )),
    }
}

fn batched<G: petal::embed::Layout + 'static>(
    filter: Filter<G>,
    kind: KeyKind,
) -> Box<dyn BenchFilter> {
    match kind {
        KeyKind::Hash => Box::new(Batched::new(
            ops(filter, Keys::numbers),
            Filter::insert_mixed_hashes,
            Filter::contains_mixed_hashes,
            |filter: &Filter<G>, &hash| filter.contains_mixed_hash(hash),
        )),
        KeyKind::Number => Box::new(Batched::new(
            ops(filter, Keys::numbers),
            |filter: &mut Filter<G>, keys: &[u64], new: &mut BatchResults| {
                filter.insert_batch(keys, new);
            },
            |filter: &Filter<G>, keys: &[u64], found: &mut BatchResults| {
                filter.contains_batch(keys, found);
            },
            |filter: &Filter<G>, key: &u64| filter.contains(key),
        )),
        KeyKind::Bytes => Box::new(Batched::new(
            ops(filter, Keys::texts),
            |filter: &mut Filter<G>, keys: &[Vec<u8>], new: &mut BatchResults| {
                filter.insert_batch(keys, new);
            },
            |filter: &Filter<G>, keys: &[Vec<u8>], found: &mut BatchResults| {
                filter.contains_batch(keys, found);
            },
            |filter: &Filter<G>, key: &Vec<u8>| filter.contains(key),
        )),
    }
}
