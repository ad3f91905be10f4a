//! The family: one filter of each type that the library has, for the same 64-bit keys and the same rate.
//!
//! Every type is asked in batches and key by key; a type that deletes is timed at that too. How much memory it holds is
//! asked of the filter when it is full, by `memory_usage`. A type that keys can be added to is a `Member`, and a line in
//! [`all`] says under which name it takes part. One that grows takes part twice: told how many keys will come, and begun
//! at a thousandth of them.

use petal::{
    Answers, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter, CountingBloomFilter,
    Kernel, QuotientFilter, ScalableBloomFilter, StaticFilter, WideBloomFilter,
    WindowedBloomFilter,
};

use super::keys::Keys;
use super::members::{Copies, Grown, Member};
use super::petal::kernels;
use super::subject::{BATCH, InBatches, Made, OneByOne, Subject, Tested};
use super::{Contestant, Form, Kind, Operation};

/// Every type, for so many keys at a rate.
///
/// # Errors
/// A sentence, if one of them cannot be made.
pub fn all(keys: u64, rate: f64) -> Result<Vec<Contestant>, String> {
    let mut types = vec![
        added_to::<BloomFilter>("petal bloom", keys, rate)?,
        added_to::<ClassicBloomFilter>("petal classic", keys, rate)?,
        added_to::<CountingBloomFilter>("petal counting", keys, rate)?,
        added_to::<ClassicCountingBloomFilter>("petal counting classic", keys, rate)?,
        added_to::<QuotientFilter>("petal quotient", keys, rate)?,
        added_to::<Copies>("petal quotient copies", keys, rate)?,
        added_to::<Grown<QuotientFilter>>("petal quotient grown", keys, rate)?,
        added_to::<ScalableBloomFilter>("petal scalable", keys, rate)?,
        added_to::<Grown<ScalableBloomFilter>>("petal scalable grown", keys, rate)?,
        added_to::<WindowedBloomFilter>("petal windowed", keys, rate)?,
        added_to::<WideBloomFilter>("petal wide", keys, rate)?,
        made(rate),
    ];
    if rate == COARSE_BESIDE {
        types.push(added_to::<Copies>(COARSE_NAME, keys, COARSE)?);
    }
    Ok(types.into_iter().flatten().collect())
}

/// Beside a rival that errs 3 % whatever is asked for there is a filter of that rate, in the contest of 1 %.
const COARSE: f64 = 0.031;
const COARSE_BESIDE: f64 = 0.01;
const COARSE_NAME: &str = "petal quotient 3 %";

/// The type that is made of all keys at once, on one thread.
fn made(rate: f64) -> [Contestant; 2] {
    let name = "petal static";
    let build = move |keys: &[u64]| StaticFilter::build(keys, rate).ok();
    let single = Made::new(
        build,
        |filter: &StaticFilter, keys: &[u64]| {
            keys.iter().map(|key| u64::from(filter.contains(key))).sum()
        },
        StaticFilter::memory_usage,
    );
    let batch = Made::new(
        build,
        |filter: &StaticFilter, keys: &[u64]| {
            let mut found = Answers::new();
            let batches = keys.chunks(BATCH).map(|keys| {
                filter.contains_batch(keys, &mut found);
                found.count_ones()
            });
            batches.sum()
        },
        StaticFilter::memory_usage,
    );
    let with = |form, subject| contestant(name, rate, form, Operation::MADE, subject);
    [with(Form::Batch, Box::new(batch)), with(Form::Single, Box::new(single))]
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
        at_once: operations == Operation::MADE,
        judged: true,
        subject,
    }
}
