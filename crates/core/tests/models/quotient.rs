//! A quotient filter against a sorted list of fingerprints, through random operations.
//!
//! A simple layout of the list into slots shows whether a slot is left. After every step the filter
//! has the fingerprints of the list, equals the filter read from its file, and equals, byte by byte,
//! a new filter filled with the list.

use petal::{
    BatchResults, Borrowed, Error, HashSpec, Membership as _, MembershipMut, QuotientFilter,
};

/// Operations decoded from bytes, up to their end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn below(&mut self, end: u64) -> Option<u64> {
        let high = u64::from(self.byte()?);
        let low = u64::from(self.byte()?);
        Some((high << 8 | low) % end)
    }
}

/// The expected contents of a filter.
#[derive(Clone)]
struct Model {
    slots: u64,
    bits: u32,
    /// Ascending.
    list: Vec<u64>,
}

impl Model {
    fn range(&self) -> u64 {
        self.slots << self.bits
    }

    /// The number of slots by docs/reference/format-quotient.md.
    fn all_slots(&self) -> u64 {
        (self.slots + self.slots.min(320)).div_ceil(64) * 64
    }

    /// floor(hash * range / 2^64).
    fn fingerprint(&self, hash: u64) -> u64 {
        (u128::from(hash) * u128::from(self.range()) / (1 << 64)) as u64
    }

    /// Returns the smallest hash with this fingerprint.
    fn hash(&self, fingerprint: u64) -> u64 {
        (u128::from(fingerprint) << 64).div_ceil(self.range().into()) as u64
    }

    fn count(&self, fingerprint: u64) -> u64 {
        self.list.iter().filter(|other| **other == fingerprint).count() as u64
    }

    fn distinct(&self) -> u64 {
        let mut list = self.list.clone();
        list.dedup();
        list.len() as u64
    }

    /// Returns whether there is a slot for each fingerprint.
    fn fits(&self) -> bool {
        let mut next = 0;
        for fingerprint in &self.list {
            next = next.max(fingerprint >> self.bits) + 1;
        }
        next <= self.all_slots()
    }

    fn put(&mut self, fingerprint: u64) {
        let at = self.list.partition_point(|other| *other < fingerprint);
        self.list.insert(at, fingerprint);
    }

    /// Updates the model if the filter has grown.
    fn follow(&mut self, filter: &QuotientFilter) {
        let shape = filter.layout();
        assert_eq!(shape.fingerprints(), self.range(), "growth changes no fingerprint");
        (self.slots, self.bits) = (shape.slots(), shape.remainder_bits());
    }
}

/// Decodes a filter and operations, and runs them.
///
/// # Panics
/// If filter and model differ.
pub(crate) fn drive(bytes: &[u8]) {
    let _ = run(&mut Script(bytes));
}

fn run(script: &mut Script<'_>) -> Option<()> {
    const SLOTS: [u64; 8] = [1, 3, 20, 63, 64, 65, 130, 400];
    let slots = SLOTS[usize::from(script.byte()?) % SLOTS.len()];
    let bits = [1, 2, 3, 7, 12, 30, 49, 50][usize::from(script.byte()?) % 8];
    let how = script.byte()?;
    let hash = if how & 1 == 0 { HashSpec::rapid(7) } else { HashSpec::keyed([3; 16]) };
    let build = |slots, bits| {
        let filter = QuotientFilter::builder().table_size(slots).slot_bits(bits).hash(hash);
        if how & 2 == 0 { filter.build() } else { filter.max_capacity(slots * 4).build() }
    };
    // The other filter has one or four times the fingerprints, and one or two times the slots.
    let finer = u32::from(how >> 2 & 1) * 2;
    let (slots_2, bits_2) = if how & 8 != 0 && bits + finer > 1 {
        (slots * 2, bits + finer - 1)
    } else {
        (slots, bits + finer)
    };
    let mut filter = build(slots, bits).expect("small");
    let mut model = Model { slots, bits, list: Vec::new() };
    let mut other = build(slots_2, bits_2).expect("small");
    let mut other_model = Model { slots: slots_2, bits: bits_2, list: Vec::new() };
    while let Some(step) = script.byte() {
        match step % 32 {
            0..=21 => one(step, script, &mut filter, &mut model)?,
            22..=25 => many(step, script, &mut filter, &mut model)?,
            26 => put_other(script, &mut other, &mut other_model)?,
            27 | 28 => together(step % 32 == 27, &mut filter, &mut model, &other, &other_model),
            // Small, because large filters are slow to check and find no more errors.
            29 if model.slots > 1 << 14 => {}
            29 => match filter.grow_past_fpr() {
                // The last slots of two tables differ.
                Ok(()) => model.follow(&filter),
                Err(error) => assert!(error.is_full()),
            },
            30 => {
                let shrunk = filter.shrink().expect("small");
                assert!(!shrunk || filter.layout().slots() < model.slots);
                model.follow(&filter);
            }
            _ => {
                if script.byte()? < 40 {
                    filter.clear();
                    model.list.clear();
                } else {
                    filter = filter.try_clone().expect("a valid file");
                }
            }
        }
        check(&filter, &model);
    }
    check(&other, &other_model);
    Some(())
}

/// Returns a fingerprint: of a few quotients, of the last ones, or a present one.
fn pick(script: &mut Script<'_>, model: &Model) -> Option<u64> {
    let how = script.byte()?;
    let remainder = u64::from(script.byte()?) % (1 << model.bits.min(8));
    let remainder = if how & 16 == 0 { remainder } else { (1 << model.bits) - 1 - remainder };
    let quotient = match how % 4 {
        0 => script.below(model.slots)?,
        1 => (u64::from(how) >> 5) % model.slots,
        2 => model.slots - 1 - (u64::from(how) >> 5) % model.slots,
        _ if model.list.is_empty() => 0,
        _ => return Some(model.list[script.below(model.list.len() as u64)? as usize]),
    };
    Some(quotient << model.bits | remainder)
}

fn one(
    step: u8,
    script: &mut Script<'_>,
    filter: &mut QuotientFilter,
    model: &mut Model,
) -> Option<()> {
    let key = u64::from(step) << 8 | u64::from(script.byte()?);
    let by_key = key % 8 == 0;
    let fingerprint = if by_key {
        model.fingerprint(filter.hash_spec().hash(&key.to_le_bytes()))
    } else {
        pick(script, model)?
    };
    let hash = model.hash(fingerprint);
    assert_eq!(filter.fingerprint_of(hash), fingerprint);
    let copies = model.count(fingerprint);
    assert_eq!(filter.contains_mixed_hash(hash), copies > 0);
    assert_eq!(filter.count_mixed_hash(hash), copies);
    match step % 32 {
        0..=5 => {
            let result = if by_key { filter.insert(&key) } else { filter.insert_mixed_hash(hash) };
            put(filter, model, fingerprint, result, false);
        }
        6..=15 => {
            let result = if by_key { filter.add(&key) } else { filter.add_mixed_hash(hash) };
            put(filter, model, fingerprint, result.map(|()| copies == 0), true);
        }
        _ => {
            let removed = if by_key { filter.remove(&key) } else { filter.remove_mixed_hash(hash) };
            assert_eq!(removed, copies > 0);
            take(model, fingerprint);
        }
    }
    Some(())
}

fn take(model: &mut Model, fingerprint: u64) {
    if let Ok(at) = model.list.binary_search(&fingerprint) {
        model.list.remove(at);
    }
}

/// Checks the result of an insertion.
fn put(
    filter: &QuotientFilter,
    model: &mut Model,
    fingerprint: u64,
    result: Result<bool, Error>,
    again: bool,
) {
    model.follow(filter);
    let there = model.count(fingerprint) > 0;
    let mut with = model.clone();
    with.put(fingerprint);
    match result {
        Ok(new) => {
            assert_eq!(new, !there);
            if new || again {
                assert!(with.fits(), "more fingerprints than slots");
                *model = with;
            }
        }
        Err(error) => {
            assert!(error.is_full() && !with.fits() && (again || !there), "{error}");
        }
    }
}

fn many(
    step: u8,
    script: &mut Script<'_>,
    filter: &mut QuotientFilter,
    model: &mut Model,
) -> Option<()> {
    let count = usize::from(script.byte()?) % 80;
    let fingerprints: Option<Vec<u64>> = (0..count).map(|_| pick(script, model)).collect();
    let fingerprints = fingerprints?;
    let hashes: Vec<u64> = fingerprints.iter().map(|all| model.hash(*all)).collect();
    let mut results = BatchResults::new();
    match step % 32 {
        22 | 23 => {
            // The trait method adds a copy of each.
            let again = step % 32 == 23;
            let result = if again {
                MembershipMut::insert_mixed_hashes(filter, &hashes, &mut results)
            } else {
                filter.insert_mixed_hashes(&hashes, &mut results)
            };
            model.follow(filter);
            let mut refused = false;
            for (at, fingerprint) in fingerprints.into_iter().enumerate() {
                let mut with = model.clone();
                let there = model.count(fingerprint) > 0;
                with.put(fingerprint);
                if refused || there && !again {
                    assert!(!results.get(at));
                } else if with.fits() {
                    assert_eq!(results.get(at), !there);
                    *model = with;
                } else {
                    refused = true;
                }
            }
            // It may have been refused in a smaller table than it grew to later; there is none.
            assert_eq!(result.is_err(), refused);
            assert!(result.err().is_none_or(|error| error.is_full()));
        }
        24 => {
            MembershipMut::remove_mixed_hashes(filter, &hashes, &mut results).expect("it deletes");
            for (at, fingerprint) in fingerprints.into_iter().enumerate() {
                assert_eq!(results.get(at), model.count(fingerprint) > 0);
                take(model, fingerprint);
            }
        }
        _ => {
            filter.contains_mixed_hashes(&hashes, &mut results);
            for (at, fingerprint) in fingerprints.into_iter().enumerate() {
                assert_eq!(results.get(at), model.count(fingerprint) > 0);
            }
        }
    }
    Some(())
}

/// Inserts some fingerprints into the other filter.
fn put_other(script: &mut Script<'_>, other: &mut QuotientFilter, model: &mut Model) -> Option<()> {
    for _ in 0..script.byte()? % 40 {
        let fingerprint = pick(script, model)?;
        let hash = model.hash(fingerprint);
        let new = !other.contains_mixed_hash(hash);
        let result = other.add_mixed_hash(hash).map(|()| new);
        put(other, model, fingerprint, result, true);
    }
    Some(())
}

fn together(
    union: bool,
    filter: &mut QuotientFilter,
    model: &mut Model,
    other: &QuotientFilter,
    theirs: &Model,
) {
    let finer = (theirs.range() / model.range()).ilog2();
    if finer > 0 {
        let mut coarse = other.try_clone().expect("a valid file");
        assert!(coarse.union(filter).is_err_and(|error| error.is_incompatible()));
    }
    let result = if union { filter.union(other) } else { filter.merge(other) };
    model.follow(filter);
    let mut with = model.clone();
    if union {
        let mut ours = model.list.clone();
        for fingerprint in theirs.list.iter().map(|all| all >> finer) {
            match ours.binary_search(&fingerprint) {
                Ok(at) => drop(ours.remove(at)),
                Err(_) => with.put(fingerprint),
            }
        }
    } else {
        theirs.list.iter().for_each(|all| with.put(all >> finer));
    }
    match result {
        Ok(()) => *model = with,
        // What fits this table may not fit the larger one that a growing filter makes of it: of the
        // slots behind the last quotient, those that fill up a block are fewer there.
        Err(error) => {
            assert!(error.is_full() && (!with.fits() || filter.is_growing()), "{error}");
        }
    }
}

/// Compares the filter and its file with the model.
fn check(filter: &QuotientFilter, model: &Model) {
    let shape = filter.layout();
    assert_eq!((shape.slots(), shape.remainder_bits()), (model.slots, model.bits));
    assert_eq!(filter.fingerprints().collect::<Vec<_>>(), model.list);
    assert_eq!((filter.len(), filter.distinct()), (model.list.len() as u64, model.distinct()));
    assert_eq!(filter.stats().estimated_fpr == 0.0, model.list.is_empty());
    for fingerprint in &model.list {
        assert!(filter.contains_mixed_hash(model.hash(*fingerprint)), "absent: {fingerprint:#x}");
    }
    let mut rebuilt = QuotientFilter::builder()
        .table_size(model.slots)
        .slot_bits(model.bits)
        .hash(filter.hash_spec())
        .build()
        .expect("small");
    for fingerprint in model.list.iter().rev() {
        rebuilt.add_mixed_hash(model.hash(*fingerprint)).expect("the same fingerprints fit");
    }
    assert!(rebuilt == *filter, "differs from a filter with the same insertions");

    let mut file = Vec::new();
    filter.write_to(&mut file, "{}").expect("memory is writable");
    let (again, metadata) = QuotientFilter::read_from(&file[..]).expect("just written");
    assert!(again == *filter && metadata == "{}" && again.distinct() == filter.distinct());
    let mut buffer = vec![0; file.len() + 64];
    let start = buffer.as_ptr().align_offset(64);
    let place = &mut buffer[start..start + file.len()];
    place.copy_from_slice(&file);
    let borrowed = QuotientFilter::<Borrowed<'_>>::from_bytes(place).expect("just written");
    assert!(borrowed == *filter && borrowed.len() == filter.len());
    assert_eq!(borrowed.stats().capacity_left, filter.stats().capacity_left);
    assert_eq!(borrowed.stats().parameters, filter.stats().parameters);
}
