//! A quotient filter against a sorted list of fingerprints, through random operations.
//!
//! The list is laid out into slots the slow and obvious way to know whether one is left. After
//! every step the filter has the list's fingerprints, is what its file gives back, and is equal,
//! byte by byte, to a filter into which the list was added anew.

use petal::{Answers, Error, HashSpec, Lent, Membership, MembershipMut, QuotientFilter};

/// Bytes that say what is done; when they are spent it ends.
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

/// What a filter should be.
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

    /// Slots in all, as docs/format.md has them.
    fn all_slots(&self) -> u64 {
        (self.slots + self.slots.min(320)).div_ceil(64) * 64
    }

    /// floor(hash * range / 2^64).
    fn fingerprint(&self, hash: u64) -> u64 {
        (u128::from(hash) * u128::from(self.range()) / (1 << 64)) as u64
    }

    /// The least hash with this fingerprint.
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

    /// Whether each fingerprint has a slot, at its own place or behind.
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

    /// The filter may have grown by itself.
    fn follow(&mut self, filter: &QuotientFilter) {
        let shape = filter.shape();
        assert_eq!(shape.fingerprints(), self.range(), "growth changes no fingerprint");
        (self.slots, self.bits) = (shape.slots(), shape.remainder_bits());
    }
}

/// Decodes a filter and what is done to it, and does it.
///
/// # Panics
/// If the filter is not what it should be.
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
        let filter = QuotientFilter::builder().slots(slots).remainder_bits(bits).hash(hash);
        if how & 2 == 0 { filter.build() } else { filter.max_keys(slots * 4).build() }
    };
    // The other one has as many fingerprints or four times as many, in as many slots or twice.
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
            // Small: what is slow to look through finds nothing more.
            29 if model.slots > 1 << 14 => {}
            29 => match filter.grow_past_rate() {
                // What fills the end of one table may not fit that of another.
                Ok(()) => model.follow(&filter),
                Err(error) => assert!(error.is_full()),
            },
            30 => {
                let shrunk = filter.shrink().expect("small");
                assert!(!shrunk || filter.shape().slots() < model.slots);
                model.follow(&filter);
            }
            _ => {
                if script.byte()? < 40 {
                    filter.clear();
                    model.list.clear();
                } else {
                    filter = filter.to_owned_filter().expect("sound");
                }
            }
        }
        check(&filter, &model);
    }
    check(&other, &other_model);
    Some(())
}

/// Any fingerprint: of a few quotients, of the last ones, or of those that are there.
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
            put(filter, model, fingerprint, result, true);
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

/// What an insert said is what it should have said.
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
                assert!(with.fits(), "more than there are slots");
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
    let mut answers = Answers::new();
    match step % 32 {
        22 | 23 => {
            // Its face puts in a copy each.
            let again = step % 32 == 23;
            let result = if again {
                MembershipMut::insert_mixed_hashes(filter, &hashes, &mut answers)
            } else {
                filter.insert_mixed_hashes(&hashes, &mut answers)
            };
            model.follow(filter);
            let mut refused = false;
            for (at, fingerprint) in fingerprints.into_iter().enumerate() {
                let mut with = model.clone();
                let there = model.count(fingerprint) > 0;
                with.put(fingerprint);
                if refused || there && !again {
                    assert!(!answers.get(at));
                } else if with.fits() {
                    assert_eq!(answers.get(at), !there);
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
            MembershipMut::remove_mixed_hashes(filter, &hashes, &mut answers).expect("it deletes");
            for (at, fingerprint) in fingerprints.into_iter().enumerate() {
                assert_eq!(answers.get(at), model.count(fingerprint) > 0);
                take(model, fingerprint);
            }
        }
        _ => {
            filter.contains_mixed_hashes(&hashes, &mut answers);
            for (at, fingerprint) in fingerprints.into_iter().enumerate() {
                assert_eq!(answers.get(at), model.count(fingerprint) > 0);
            }
        }
    }
    Some(())
}

/// Puts some into the other filter.
fn put_other(script: &mut Script<'_>, other: &mut QuotientFilter, model: &mut Model) -> Option<()> {
    for _ in 0..script.byte()? % 40 {
        let fingerprint = pick(script, model)?;
        let result = other.add_mixed_hash(model.hash(fingerprint));
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
        let mut coarse = other.to_owned_filter().expect("sound");
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

/// The filter is what the model is, and so is its file.
fn check(filter: &QuotientFilter, model: &Model) {
    let shape = filter.shape();
    assert_eq!((shape.slots(), shape.remainder_bits()), (model.slots, model.bits));
    assert_eq!(filter.fingerprints().collect::<Vec<_>>(), model.list);
    assert_eq!((filter.len(), filter.distinct()), (model.list.len() as u64, model.distinct()));
    assert_eq!(filter.estimated_rate() == 0.0, model.list.is_empty());
    for fingerprint in &model.list {
        assert!(filter.contains_mixed_hash(model.hash(*fingerprint)), "lost {fingerprint:#x}");
    }
    let mut anew = QuotientFilter::builder()
        .slots(model.slots)
        .remainder_bits(model.bits)
        .hash(filter.hash_spec())
        .build()
        .expect("small");
    for fingerprint in model.list.iter().rev() {
        anew.add_mixed_hash(model.hash(*fingerprint)).expect("as many fit into the other");
    }
    assert!(anew == *filter, "not what inserting makes");

    let mut file = Vec::new();
    filter.write_to(&mut file, "{}").expect("memory takes it");
    let (again, metadata) = QuotientFilter::read_from(&file[..]).expect("just written");
    assert!(again == *filter && metadata == "{}" && again.distinct() == filter.distinct());
    let mut room = vec![0; file.len() + 64];
    let start = room.as_ptr().align_offset(64);
    let place = &mut room[start..start + file.len()];
    place.copy_from_slice(&file);
    let lent = QuotientFilter::<Lent<'_>>::from_bytes(place).expect("just written");
    assert!(lent == *filter && lent.len() == filter.len());
    assert_eq!(lent.capacity_left(), filter.capacity_left());
    assert_eq!(lent.geometry(), filter.geometry());
}
