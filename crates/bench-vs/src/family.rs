//! The rivals of the family benchmark: filters that delete, count, grow, or are built at once, each in its best
//! configuration, all with the same 64-bit keys.
//!
//! * If the hash can be chosen it is foldhash, the fastest.
//! * A filter with deletion stores a copy for every key, as its documentation requires.
//! * A growing filter is measured twice: with the final capacity, and started at a thousandth of it. In the second case
//!   its allocations are part of the timed inserts.
//! * A filter whose rates are powers of two has the first one that is not above the target.

use std::hash::{BuildHasher, Hasher};

use cuckoofilter::CuckooFilter;
use foldhash::fast::{FixedState, FoldHasher};
use growable_bloom_filter::GrowableBloom;
use petal_bench::harness::adapters::{BATCH, BenchFilter, FilterOps, PerKey, StaticBuild};
use petal_bench::harness::keys::Keys;
use petal_bench::harness::{Case, Form, KeyKind, Operation};
use pleat::filter::Ribbon;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};
use xorf::{BinaryFuse8, BinaryFuse16};

use crate::measured_memory::{Meter, with_measured_memory};
use crate::rivals;

/// Growing filters start with a capacity of `keys / START_DIVISOR`.
const START_DIVISOR: u64 = 1_000;

/// Returns the cases of all rivals, for `keys` keys at a rate.
///
/// # Errors
/// If a filter cannot be made.
pub fn all(keys: u64, rate: f64, meter: Meter) -> Result<Vec<Case>, String> {
    let start = (keys / START_DIVISOR).max(1);
    let mut all = Vec::new();
    let mut add = |make: &dyn Fn() -> Result<Case, String>| -> Result<(), String> {
        all.push(with_measured_memory(meter, make)?);
        Ok(())
    };
    let without_remove = |case| Ok(Case { operations: Operation::INSERT_ONLY, ..case });
    add(&|| without_remove(rivals::fastbloom_foldhash(keys, rate)))?;
    add(&|| without_remove(rivals::growable(keys, rate)))?;
    add(&|| Ok(growable_grown(start, rate)))?;
    add(&|| qfilter("qfilter", (keys, keys), rate))?;
    add(&|| qfilter("qfilter grown", (start, keys), rate))?;
    for (name, rate, capacity) in cuckoo_capacities(keys, rate) {
        add(&|| cuckoo(name, rate, capacity))?;
    }
    add(&|| scalable_cuckoo("scalable_cuckoo_filter", keys, rate))?;
    add(&|| {
        let case = scalable_cuckoo("scalable_cuckoo_filter grown", start, rate)?;
        // With several layers a removal fails an assertion of the crate (0.5.1), which takes an empty slot of the first
        // layer as a fingerprint of zero.
        Ok(Case { operations: Operation::INSERT_ONLY, ..case })
    })?;
    add(&|| Ok(fuse(rate)))?;
    for form in [Form::Single, Form::Batch] {
        add(&|| ribbon(rate, form))?;
    }
    Ok(all)
}

/// A filter that is cleared by making a new one. Some cannot be cleared, and growing ones do not shrink to their first
/// size.
struct Replaced<F> {
    filter: F,
    make: Box<dyn Fn() -> Option<F>>,
}

impl<F: 'static> Replaced<F> {
    fn tested(
        make: impl Fn() -> Option<F> + 'static,
        name: &str,
    ) -> Result<FilterOps<Self, u64>, String> {
        let filter = make().ok_or_else(|| format!("{name} cannot be made"))?;
        Ok(FilterOps::new(Self { filter, make: Box::new(make) }, Keys::numbers, Self::clear))
    }

    fn clear(&mut self) {
        // If memory is refused the filter stays full, and the measured rate is wrong.
        if let Some(new) = (self.make)() {
            self.filter = new;
        }
    }

    /// Applies `action` to each key and returns how often it returned true.
    fn each(&mut self, keys: &[u64], action: impl Fn(&mut F, &u64) -> bool) -> u64 {
        keys.iter().map(|key| u64::from(action(&mut self.filter, key))).sum()
    }
}

/// The memory is measured later.
const UNMEASURED: (u64, u64) = (0, 1);

fn single(name: &str, rate: f64, tested: impl BenchFilter + 'static) -> Case {
    let case = Case::single(name, rate, UNMEASURED, KeyKind::Number, tested);
    Case { operations: Operation::INSERT_ONLY, ..case }
}

/// growable-bloom-filter, started small.
fn growable_grown(start: u64, rate: f64) -> Case {
    let filter = GrowableBloom::new(rate, start as usize);
    let tested = PerKey::new(
        FilterOps::new(filter, Keys::numbers, GrowableBloom::clear),
        |filter: &mut GrowableBloom, &key: &u64| filter.insert(key),
        |filter: &GrowableBloom, &key: &u64| filter.contains(key),
    );
    single("growable-bloom-filter grown", rate, tested)
}

/// qfilter with these first and maximum capacities.
fn qfilter(name: &str, (start, most): (u64, u64), rate: f64) -> Result<Case, String> {
    type Filter = qfilter::Filter<Box<[u8]>, FixedState>;
    let make = move || {
        Filter::new_resizeable_with_hasher(start, most, rate, FixedState::with_seed(1)).ok()
    };
    let tested = Replaced::tested(make, name)?.with_remove(|of: &mut Replaced<Filter>, keys| {
        of.each(keys, |filter, key| filter.remove(key))
    });
    let tested = PerKey::new(
        tested,
        |of: &mut Replaced<Filter>, key: &u64| of.filter.insert_duplicated(key).is_ok(),
        |of: &Replaced<Filter>, key: &u64| of.filter.contains(key),
    );
    Ok(Case { operations: Operation::WITH_REMOVE, ..single(name, rate, tested) })
}

/// foldhash as a hasher with `Default`.
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

/// Slots of a bucket of cuckoofilter, and the number of fingerprints. A key is looked up in two buckets.
const CUCKOO: (f64, f64) = (4.0, 255.0);
/// The rate of a full cuckoofilter.
const CUCKOO_FULL: f64 = 0.031;

/// Names, rates and capacities of cuckoofilter. Its fingerprints have eight bits, so a full one has a rate of 3 %. It is
/// measured twice at 1 %: with the smallest capacity, and with the smallest power of two that keeps the rate. Rates that
/// need more than eight times the size are left out.
fn cuckoo_capacities(keys: u64, rate: f64) -> Vec<(&'static str, f64, u64)> {
    let (slots, fingerprints) = CUCKOO;
    let fpr = |capacity: u64| {
        let load = keys as f64 / capacity as f64;
        1.0 - (1.0 - 1.0 / fingerprints).powf(2.0 * slots * load)
    };
    let full = keys.next_power_of_two();
    let enough = (0..4).map(|doubled| full << doubled).find(|&capacity| fpr(capacity) <= rate);
    let mut found = Vec::new();
    if let Some(capacity) = enough {
        found.push(("cuckoofilter full", CUCKOO_FULL, full));
        found.push(("cuckoofilter", rate, capacity));
    }
    found
}

/// cuckoofilter with this capacity.
fn cuckoo(name: &str, rate: f64, capacity: u64) -> Result<Case, String> {
    type Filter = CuckooFilter<Fold>;
    let make = move || Some(Filter::with_capacity(capacity as usize));
    let tested = Replaced::tested(make, name)?.with_remove(|of: &mut Replaced<Filter>, keys| {
        of.each(keys, |filter, key| filter.delete(key))
    });
    let tested = PerKey::new(
        tested,
        |of: &mut Replaced<Filter>, key: &u64| of.filter.add(key).is_ok(),
        |of: &Replaced<Filter>, key: &u64| of.filter.contains(key),
    );
    Ok(Case { operations: Operation::WITH_REMOVE, ..single(name, rate, tested) })
}

/// scalable_cuckoo_filter with this first capacity.
fn scalable_cuckoo(name: &str, start: u64, rate: f64) -> Result<Case, String> {
    type Filter = ScalableCuckooFilter<u64, Fold>;
    let make = move || {
        let builder = ScalableCuckooFilterBuilder::new().initial_capacity(start as usize);
        Some(builder.false_positive_probability(rate).hasher(Fold::default()).finish::<u64>())
    };
    let tested = Replaced::tested(make, name)?.with_remove(|of: &mut Replaced<Filter>, keys| {
        of.each(keys, |filter, key| filter.remove(key))
    });
    let tested = PerKey::new(
        tested,
        |of: &mut Replaced<Filter>, key: &u64| {
            of.filter.insert(key);
            true
        },
        |of: &Replaced<Filter>, key: &u64| of.filter.contains(key),
    );
    Ok(Case { operations: Operation::WITH_REMOVE, ..single(name, rate, tested) })
}

/// A filter that is built from all keys at once.
fn built<F: 'static>(
    name: &str,
    rate: f64,
    form: Form,
    build: impl Fn(&[u64]) -> Option<F> + 'static,
    query: impl Fn(&F, &[u64]) -> u64 + 'static,
) -> Case {
    let tested = StaticBuild::new(build, query, |_| 0);
    Case {
        form,
        operations: Operation::BUILD_ONCE,
        fills_at_once: true,
        ..single(name, rate, tested)
    }
}

/// xorf's binary fuse filter, of 8 bits or of 16.
fn fuse(rate: f64) -> Case {
    fn count<F: xorf::Filter<u64>>(filter: &F, keys: &[u64]) -> u64 {
        keys.iter().map(|key| u64::from(filter.contains(key))).sum()
    }
    const EIGHT: f64 = 1.0 / 256.0;
    if rate >= EIGHT {
        let build = |keys: &[u64]| BinaryFuse8::try_from(keys).ok();
        built("xorf fuse", EIGHT, Form::Single, build, count::<BinaryFuse8>)
    } else {
        let build = |keys: &[u64]| BinaryFuse16::try_from(keys).ok();
        built("xorf fuse", EIGHT * EIGHT, Form::Single, build, count::<BinaryFuse16>)
    }
}

/// pleat's homogeneous ribbon filter, built in pleated order.
///
/// # Errors
/// For a rate that is not one of the benchmark's.
fn ribbon(rate: f64, form: Form) -> Result<Case, String> {
    match (1.0 / rate).log2().ceil() as u32 {
        7 => Ok(ribbon_of::<7>(form)),
        10 => Ok(ribbon_of::<10>(form)),
        14 => Ok(ribbon_of::<14>(form)),
        _ => Err(format!("no ribbon for a rate of {rate}")),
    }
}

fn ribbon_of<const BITS: usize>(form: Form) -> Case {
    let rate = 2f64.powi(-(BITS as i32));
    let build = |keys: &[u64]| Some(Ribbon::<BITS>::from_keys_pleated(keys));
    match form {
        Form::Single => built("pleat", rate, form, build, |filter, keys: &[u64]| {
            keys.iter().map(|&key| u64::from(filter.contains(key))).sum()
        }),
        Form::Batch => built("pleat", rate, form, build, |filter, keys: &[u64]| {
            let mut found = [false; BATCH];
            let batches = keys.chunks(BATCH).map(|keys| {
                let found = &mut found[..keys.len()];
                filter.contains_batch(keys, found);
                found.iter().map(|&hit| u64::from(hit)).sum::<u64>()
            });
            batches.sum()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuckoofilter_has_the_capacity_that_its_rate_needs() {
        let capacities = |keys, rate| cuckoo_capacities(keys, rate);
        let [full, wide] = capacities(1_000_000, 0.01)[..] else { panic!() };
        assert_eq!((full.2, wide.2), (1 << 20, 1 << 22));
        assert!(capacities(1_000_000, 0.001).is_empty());
    }
}
