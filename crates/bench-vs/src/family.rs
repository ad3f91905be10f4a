//! The rivals of the family: filters that delete, count, grow, or are made at once, each in the configuration that serves
//! it best, all with the same 64-bit keys.
//!
//! * Where the hash can be chosen it is foldhash, the fastest of those around.
//! * A filter that deletes is filled as its documentation wants it then: every key is a copy of its own.
//! * A filter that grows takes part twice: told how many keys will come, and begun at a thousandth of them. Begun small
//!   it gets its memory as it grows, on its own time, as it is in use.
//! * A filter whose rates go by powers of two takes the first that keeps the rate.

use std::hash::{BuildHasher, Hasher};

use cuckoofilter::CuckooFilter;
use foldhash::fast::{FixedState, FoldHasher};
use growable_bloom_filter::GrowableBloom;
use petal_bench::contest::keys::Keys;
use petal_bench::contest::subject::{BATCH, Made, OneByOne, Subject, Tested};
use petal_bench::contest::{Contestant, Form, Kind, Operation};
use pleat::filter::Ribbon;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};
use xorf::{BinaryFuse8, BinaryFuse16};

use crate::rivals;
use crate::weighed::{Meter, weighed};

/// A filter that grows is begun with one of so many parts of its keys.
const BEGUN_AT: u64 = 1_000;
/// All of them for a number of keys at a rate.
///
/// # Errors
/// A sentence, if one of them cannot be made.
pub fn all(keys: u64, rate: f64, meter: Meter) -> Result<Vec<Contestant>, String> {
    let begun = (keys / BEGUN_AT).max(1);
    let mut all = Vec::new();
    let mut add = |make: &dyn Fn() -> Result<Contestant, String>| -> Result<(), String> {
        all.push(weighed(meter, make)?);
        Ok(())
    };
    let added = |made| Ok(Contestant { operations: Operation::ADDED, ..made });
    add(&|| added(rivals::fastbloom_foldhash(keys, rate)))?;
    add(&|| added(rivals::growable(keys, rate)))?;
    add(&|| Ok(growable_grown(begun, rate)))?;
    add(&|| qfilter("qfilter", (keys, keys), rate))?;
    add(&|| qfilter("qfilter grown", (begun, keys), rate))?;
    for (name, rate, capacity) in cuckoo_capacities(keys, rate) {
        add(&|| cuckoo(name, rate, capacity))?;
    }
    add(&|| scalable_cuckoo("scalable_cuckoo_filter", keys, rate))?;
    add(&|| {
        let made = scalable_cuckoo("scalable_cuckoo_filter grown", begun, rate)?;
        // With several layers a removal trips over an assertion of its own (0.5.1): it takes an empty slot of the first
        // layer for a fingerprint of zero.
        Ok(Contestant { operations: Operation::ADDED, ..made })
    })?;
    add(&|| Ok(fuse(rate)))?;
    for form in [Form::Single, Form::Batch] {
        add(&|| ribbon(rate, form))?;
    }
    Ok(all)
}

/// A filter, and how a new one is made in its place: not all can be emptied, and of those that grow none goes back to the
/// size it was begun at.
struct Renewed<F> {
    filter: F,
    make: Box<dyn Fn() -> Option<F>>,
}

impl<F: 'static> Renewed<F> {
    fn tested(
        make: impl Fn() -> Option<F> + 'static,
        name: &str,
    ) -> Result<Tested<Self, u64>, String> {
        let filter = make().ok_or_else(|| format!("{name} cannot be made"))?;
        Ok(Tested::new(Self { filter, make: Box::new(make) }, Keys::numbers, Self::clear))
    }

    fn clear(&mut self) {
        // One that is refused stays full, and the judging says so.
        if let Some(new) = (self.make)() {
            self.filter = new;
        }
    }

    /// Does something with each key, and counts where it was done.
    fn each(&mut self, keys: &[u64], act: impl Fn(&mut F, &u64) -> bool) -> u64 {
        keys.iter().map(|key| u64::from(act(&mut self.filter, key))).sum()
    }
}

/// The memory is the meter's business.
const UNWEIGHED: (u64, u64) = (0, 1);

fn single(name: &str, rate: f64, subject: impl Subject + 'static) -> Contestant {
    let made = Contestant::single(name, rate, UNWEIGHED, Kind::Number, subject);
    Contestant { operations: Operation::ADDED, ..made }
}

/// growable-bloom-filter, begun small.
fn growable_grown(begun: u64, rate: f64) -> Contestant {
    let filter = GrowableBloom::new(rate, begun as usize);
    let subject = OneByOne::new(
        Tested::new(filter, Keys::numbers, GrowableBloom::clear),
        |filter: &mut GrowableBloom, &key: &u64| filter.insert(key),
        |filter: &GrowableBloom, &key: &u64| filter.contains(key),
    );
    single("growable-bloom-filter grown", rate, subject)
}

/// qfilter, begun with the one and made for the other number of keys.
fn qfilter(name: &str, (begun, most): (u64, u64), rate: f64) -> Result<Contestant, String> {
    type Filter = qfilter::Filter<Box<[u8]>, FixedState>;
    let make = move || {
        Filter::new_resizeable_with_hasher(begun, most, rate, FixedState::with_seed(1)).ok()
    };
    let tested = Renewed::tested(make, name)?
        .removing(|of: &mut Renewed<Filter>, keys| of.each(keys, |filter, key| filter.remove(key)));
    let subject = OneByOne::new(
        tested,
        |of: &mut Renewed<Filter>, key: &u64| of.filter.insert_duplicated(key).is_ok(),
        |of: &Renewed<Filter>, key: &u64| of.filter.contains(key),
    );
    Ok(Contestant { operations: Operation::REMOVED, ..single(name, rate, subject) })
}

/// foldhash as a hasher that is made of nothing.
#[derive(Clone)]
struct Fold(FoldHasher<'static>);

impl Default for Fold {
    fn default() -> Self {
        Self(FixedState::with_seed(1).build_hasher())
    }
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Slots of a bucket of cuckoofilter, in two of which a key is looked for, and the 255 fingerprints that there are.
const CUCKOO: (f64, f64) = (4.0, 255.0);
/// What cuckoofilter errs when it is full.
const CUCKOO_FULL: f64 = 0.031;

/// Names, rates and capacities of cuckoofilter. Its fingerprints have eight bits, whatever is wanted of it: full, it errs
/// 3 %. So it takes part twice at 1 %: as large as its number of keys, and as large as the rate wants it, its size being a
/// power of two. A rate that would take more than eight times the size is beyond it.
fn cuckoo_capacities(keys: u64, rate: f64) -> Vec<(&'static str, f64, u64)> {
    let (slots, fingerprints) = CUCKOO;
    let errs = |capacity: u64| {
        let load = keys as f64 / capacity as f64;
        1.0 - (1.0 - 1.0 / fingerprints).powf(2.0 * slots * load)
    };
    let full = keys.next_power_of_two();
    let enough = (0..4).map(|doubled| full << doubled).find(|&capacity| errs(capacity) <= rate);
    let mut found = Vec::new();
    if let Some(capacity) = enough {
        found.push(("cuckoofilter full", CUCKOO_FULL, full));
        found.push(("cuckoofilter", rate, capacity));
    }
    found
}

/// cuckoofilter of a capacity.
fn cuckoo(name: &str, rate: f64, capacity: u64) -> Result<Contestant, String> {
    type Filter = CuckooFilter<Fold>;
    let make = move || Some(Filter::with_capacity(capacity as usize));
    let tested = Renewed::tested(make, name)?
        .removing(|of: &mut Renewed<Filter>, keys| of.each(keys, |filter, key| filter.delete(key)));
    let subject = OneByOne::new(
        tested,
        |of: &mut Renewed<Filter>, key: &u64| of.filter.add(key).is_ok(),
        |of: &Renewed<Filter>, key: &u64| of.filter.contains(key),
    );
    Ok(Contestant { operations: Operation::REMOVED, ..single(name, rate, subject) })
}

/// scalable_cuckoo_filter, begun with so many keys.
fn scalable_cuckoo(name: &str, begun: u64, rate: f64) -> Result<Contestant, String> {
    type Filter = ScalableCuckooFilter<u64, Fold>;
    let make = move || {
        let builder = ScalableCuckooFilterBuilder::new().initial_capacity(begun as usize);
        Some(builder.false_positive_probability(rate).hasher(Fold::default()).finish::<u64>())
    };
    let tested = Renewed::tested(make, name)?
        .removing(|of: &mut Renewed<Filter>, keys| of.each(keys, |filter, key| filter.remove(key)));
    let subject = OneByOne::new(
        tested,
        |of: &mut Renewed<Filter>, key: &u64| {
            of.filter.insert(key);
            true
        },
        |of: &Renewed<Filter>, key: &u64| of.filter.contains(key),
    );
    Ok(Contestant { operations: Operation::REMOVED, ..single(name, rate, subject) })
}

/// A filter that is made of all keys at once; its bytes are the meter's business.
fn made<F: 'static>(
    name: &str,
    rate: f64,
    form: Form,
    build: impl Fn(&[u64]) -> Option<F> + 'static,
    ask: impl Fn(&F, &[u64]) -> u64 + 'static,
) -> Contestant {
    let subject = Made::new(build, ask, |_| 0);
    Contestant { form, operations: Operation::MADE, at_once: true, ..single(name, rate, subject) }
}

/// xorf's binary fuse filter, of 8 bits or of 16.
fn fuse(rate: f64) -> Contestant {
    fn count<F: xorf::Filter<u64>>(filter: &F, keys: &[u64]) -> u64 {
        keys.iter().map(|key| u64::from(filter.contains(key))).sum()
    }
    const EIGHT: f64 = 1.0 / 256.0;
    if rate >= EIGHT {
        let build = |keys: &[u64]| BinaryFuse8::try_from(keys).ok();
        made("xorf fuse", EIGHT, Form::Single, build, count::<BinaryFuse8>)
    } else {
        let build = |keys: &[u64]| BinaryFuse16::try_from(keys).ok();
        made("xorf fuse", EIGHT * EIGHT, Form::Single, build, count::<BinaryFuse16>)
    }
}

/// pleat's homogeneous ribbon filter, built in the order that it is named for.
///
/// # Errors
/// For a rate that the family is not compared at.
fn ribbon(rate: f64, form: Form) -> Result<Contestant, String> {
    match (1.0 / rate).log2().ceil() as u32 {
        7 => Ok(ribbon_of::<7>(form)),
        10 => Ok(ribbon_of::<10>(form)),
        14 => Ok(ribbon_of::<14>(form)),
        _ => Err(format!("no ribbon for a rate of {rate}")),
    }
}

fn ribbon_of<const BITS: usize>(form: Form) -> Contestant {
    let rate = 2f64.powi(-(BITS as i32));
    let build = |keys: &[u64]| Some(Ribbon::<BITS>::from_keys_pleated(keys));
    match form {
        Form::Single => made("pleat", rate, form, build, |filter, keys: &[u64]| {
            keys.iter().map(|&key| u64::from(filter.contains(key))).sum()
        }),
        Form::Batch => made("pleat", rate, form, build, |filter, keys: &[u64]| {
            let mut found = [false; BATCH];
            let batches = keys.chunks(BATCH).map(|keys| {
                let found = &mut found[..keys.len()];
                filter.contains_batch(keys, found);
                found.iter().map(|&yes| u64::from(yes)).sum::<u64>()
            });
            batches.sum()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuckoofilter_is_as_large_as_its_rate_wants_it() {
        let capacities = |keys, rate| cuckoo_capacities(keys, rate);
        let [full, wide] = capacities(1_000_000, 0.01)[..] else { panic!() };
        assert_eq!((full.2, wide.2), (1 << 20, 1 << 22));
        assert!(capacities(1_000_000, 0.001).is_empty());
    }
}
