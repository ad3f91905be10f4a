//! Cases of all filter types of the library, for the same 64-bit keys and the same rate.
//!
//! Every type is measured in batches and key by key; types with deletion also at removals. Its memory is that of the
//! full filter. Growing types are measured twice: with the capacity known, and started at a thousandth of it.

use petal::{
    BatchResults, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter, CountingBloomFilter,
    Kernel, QuotientFilter, ScalableBloomFilter, StaticFilter, VectorQuotientFilter,
    WindowedBloomFilter,
};

use super::adapters::{BATCH, Batched, BenchFilter, FilterOps, PerKey, StaticBuild};
use super::family_filter::{FamilyFilter, Grown, QuotientMultiset};
use super::keys::Keys;
use super::{Case, Form, KeyKind, Operation};

/// Returns the cases of every type, for `keys` keys at a rate.
///
/// # Errors
/// If a filter cannot be made.
pub fn all(keys: u64, fpr: f64) -> Result<Vec<Case>, String> {
    let mut cases = vec![
        cases::<BloomFilter>("petal bloom", keys, fpr)?,
        cases::<ClassicBloomFilter>("petal classic", keys, fpr)?,
        cases::<CountingBloomFilter>("petal counting", keys, fpr)?,
        cases::<ClassicCountingBloomFilter>("petal counting classic", keys, fpr)?,
        cases::<QuotientFilter>("petal quotient", keys, fpr)?,
        cases::<QuotientMultiset>("petal quotient copies", keys, fpr)?,
        cases::<Grown<QuotientFilter>>("petal quotient grown", keys, fpr)?,
        cases::<VectorQuotientFilter>("petal vector quotient", keys, fpr)?,
        cases::<ScalableBloomFilter>("petal scalable", keys, fpr)?,
        cases::<Grown<ScalableBloomFilter>>("petal scalable grown", keys, fpr)?,
        cases::<WindowedBloomFilter>("petal windowed", keys, fpr)?,
        static_filter("petal static", fpr, false),
        static_filter("petal static fuse", fpr, true),
    ];
    if fpr == CUCKOO_COMPARED_AT {
        cases.push(self::cases::<QuotientMultiset>("petal quotient 3 %", keys, CUCKOO_FPR)?);
        let name = "petal vector quotient 3 %";
        cases.push(self::cases::<VectorQuotientFilter>(name, keys, CUCKOO_FPR)?);
    }
    Ok(cases.into_iter().flatten().collect())
}

/// The rate of cuckoofilter, a rival, at every target rate. At 1 % petal is measured at this rate, too.
const CUCKOO_FPR: f64 = 0.031;
const CUCKOO_COMPARED_AT: f64 = 0.01;

/// The type that is built from all keys at once, on one thread.
fn static_filter(name: &str, fpr: f64, fuse: bool) -> [Case; 2] {
    let build = move |keys: &[u64]| StaticFilter::builder().fpr(fpr).fuse(fuse).build(keys).ok();
    let single = StaticBuild::new(
        build,
        |filter: &StaticFilter, keys: &[u64]| {
            keys.iter().map(|key| u64::from(filter.contains(key))).sum()
        },
        StaticFilter::memory_usage,
    );
    let batch = StaticBuild::new(
        build,
        |filter: &StaticFilter, keys: &[u64]| {
            let mut found = BatchResults::new();
            let batches = keys.chunks(BATCH).map(|keys| {
                filter.contains_batch(keys, &mut found);
                found.count_ones()
            });
            batches.sum()
        },
        StaticFilter::memory_usage,
    );
    let case = |form, tested| case(name, fpr, form, Operation::BUILD_ONCE, tested);
    [case(Form::Batch, Box::new(batch)), case(Form::Single, Box::new(single))]
}

/// A type in batches, and key by key.
fn cases<F: FamilyFilter>(name: &str, keys: u64, fpr: f64) -> Result<[Case; 2], String> {
    let ops = || -> Result<FilterOps<F, u64>, String> {
        let filter = F::make(keys, fpr).map_err(|problem| format!("{name}: {problem}"))?;
        let ops = FilterOps::new(filter, Keys::numbers, F::clear);
        Ok(ops.with_memory_bytes(|filter| Some(filter.memory_bytes())))
    };
    let batch = ops()?.with_remove(|filter, keys| {
        let mut removed = BatchResults::new();
        let batches = keys.chunks(BATCH).map(|keys| {
            filter.remove_batch(keys, &mut removed);
            removed.count_ones()
        });
        batches.sum()
    });
    let batch = Batched::new(batch, F::insert_batch, F::contains_batch, F::contains);
    let single = ops()?
        .with_remove(|filter, keys| keys.iter().map(|key| u64::from(filter.remove(key))).sum());
    let single = PerKey::new(single, F::insert, F::contains);
    let case = |form, tested| case(name, fpr, form, F::OPERATIONS, tested);
    Ok([case(Form::Batch, Box::new(batch)), case(Form::Single, Box::new(single))])
}

fn case(
    name: &str,
    fpr: f64,
    form: Form,
    operations: &'static [Operation],
    tested: Box<dyn BenchFilter>,
) -> Case {
    Case {
        filter: name.to_owned(),
        target: Some(fpr),
        // Measured when the filter is full.
        bits_per_key: f64::NAN,
        kind: KeyKind::Number,
        form,
        kernel: Some(Kernel::current()),
        threads: 1,
        operations,
        fills_at_once: operations == Operation::BUILD_ONCE,
        is_filter: true,
        tested,
    }
}
