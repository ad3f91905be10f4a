//! A vector quotient filter against a multiset of fingerprints, through random operations.
//!
//! The model computes block, bucket and tag of a hash and its pair of blocks by
//! docs/reference/format-quotient.md. After every step the filter has as many copies of a fingerprint as the
//! multiset, and equals the filter read from its file.

use std::collections::BTreeMap;

use petal::{BatchResults, Borrowed, HashSpec, MembershipMut, VectorQuotientFilter};

/// Operations decoded from bytes, up to their end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

/// What all keys with the same pair of blocks, bucket and tag have in common: the smaller block, bucket
/// and tag.
type Entity = (u64, u64, u64);

/// Bits of a tag, slots and buckets of a block.
type Shape = (u32, u64, u64);

const SHAPES: [Shape; 6] =
    [(6, 64, 64), (7, 56, 64), (8, 48, 80), (10, 40, 72), (13, 32, 64), (18, 24, 56)];

/// The expected contents of a filter.
#[derive(Clone)]
struct Model {
    blocks: u64,
    shape: Shape,
    copies: BTreeMap<Entity, u64>,
}

impl Model {
    /// Returns block, bucket and tag of a hash.
    fn place(&self, hash: u64) -> (u64, u64, u64) {
        let (tag_bits, _, buckets) = self.shape;
        let times = |fraction: u64, range: u128| {
            let product = u128::from(fraction) * range;
            ((product >> 64) as u64, product as u64)
        };
        let (block, rest) = times(hash, self.blocks.into());
        let (bucket, rest) = times(rest, buckets.into());
        let (tag, _) = times(rest, 1 << tag_bits);
        (block, bucket, tag)
    }

    /// Returns the other block of a fingerprint in a filter of one region.
    fn other(&self, (block, bucket, tag): (u64, u64, u64)) -> u64 {
        let number = bucket << self.shape.0 | tag;
        let sum = u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(self.blocks);
        ((sum >> 64) as u64 + self.blocks - block) % self.blocks
    }

    fn entity(&self, hash: u64) -> Entity {
        let place = self.place(hash);
        (place.0.min(self.other(place)), place.1, place.2)
    }

    fn count(&self, hash: u64) -> u64 {
        self.copies.get(&self.entity(hash)).copied().unwrap_or(0)
    }

    fn len(&self) -> u64 {
        self.copies.values().sum()
    }

    fn add(&mut self, hash: u64) {
        *self.copies.entry(self.entity(hash)).or_default() += 1;
    }

    fn remove(&mut self, hash: u64) -> bool {
        let entity = self.entity(hash);
        let Some(copies) = self.copies.get_mut(&entity) else { return false };
        *copies -= 1;
        if *copies == 0 {
            self.copies.remove(&entity);
        }
        true
    }

    /// A filter may be full only if the two blocks of a key have as many fingerprints as slots.
    fn may_be_full(&self) -> bool {
        self.len() >= self.shape.1 * self.blocks.min(2) - self.shape.1 * u64::from(self.blocks > 1)
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
    let shape = SHAPES[usize::from(script.byte()?) % SHAPES.len()];
    let blocks = [1, 2, 3, 4, 7, 16, 40][usize::from(script.byte()?) % 7];
    let build = || {
        let builder = VectorQuotientFilter::builder().table_size(blocks).slot_bits(shape.0);
        builder.hash(HashSpec::rapid(7)).build().expect("small")
    };
    let empty = Model { blocks, shape, copies: BTreeMap::new() };
    let (mut filter, mut model) = (build(), empty.clone());
    let (mut other, mut other_model) = (build(), empty);
    while let Some(step) = script.byte() {
        match step % 16 {
            0..=8 => one(step, script, &mut filter, &mut model)?,
            9..=11 => many(step, script, &mut filter, &mut model)?,
            12 => {
                let hash = hash(script)?;
                if other.add_mixed_hash(hash).is_ok() {
                    other_model.add(hash);
                }
            }
            13 => together(script.byte()? % 2 == 0, &mut filter, &mut model, &other, &other_model),
            14 if script.byte()? < 40 => {
                filter.clear();
                model.copies.clear();
            }
            _ => filter = filter.try_clone().expect("a valid filter"),
        }
        check(&filter, &model);
    }
    check(&other, &other_model);
    Some(())
}

/// Returns a hash: one of a few, or one of many.
fn hash(script: &mut Script<'_>) -> Option<u64> {
    let (high, low) = (u64::from(script.byte()?), u64::from(script.byte()?));
    let few = high >= 200;
    let number = if few { low % 4 } else { high << 8 | low };
    Some(HashSpec::rapid(1).hash(&number.to_le_bytes()))
}

fn one(
    step: u8,
    script: &mut Script<'_>,
    filter: &mut VectorQuotientFilter,
    model: &mut Model,
) -> Option<()> {
    let hash = hash(script)?;
    let copies = model.count(hash);
    assert_eq!(filter.contains_mixed_hash(hash), copies > 0);
    match step % 16 {
        0..=3 => match filter.add_mixed_hash(hash) {
            Ok(()) => model.add(hash),
            Err(error) => assert!(error.is_full() && model.may_be_full()),
        },
        4 | 5 => match filter.insert_mixed_hash(hash) {
            Ok(new) => {
                assert_eq!(new, copies == 0);
                if new {
                    model.add(hash);
                }
            }
            Err(error) => assert!(error.is_full() && copies == 0 && model.may_be_full()),
        },
        _ => {
            assert_eq!(filter.remove_mixed_hash(hash), copies > 0);
            assert_eq!(model.remove(hash), copies > 0);
        }
    }
    assert_eq!(filter.count_mixed_hash(hash), model.count(hash));
    Some(())
}

fn many(
    step: u8,
    script: &mut Script<'_>,
    filter: &mut VectorQuotientFilter,
    model: &mut Model,
) -> Option<()> {
    let mut hashes = Vec::new();
    for _ in 0..script.byte()? {
        hashes.push(hash(script)?);
    }
    let mut results = BatchResults::new();
    filter.contains_mixed_hashes(&hashes, &mut results);
    for (at, hash) in hashes.iter().enumerate() {
        assert_eq!(results.get(at), model.count(*hash) > 0);
    }
    match step % 16 {
        9 => {
            let before = filter.len();
            let done = filter.add_mixed_hashes(&hashes);
            let added = (filter.len() - before) as usize;
            assert_eq!(done.is_ok(), added == hashes.len());
            hashes[..added].iter().for_each(|hash| model.add(*hash));
        }
        10 => {
            let added = MembershipMut::insert_mixed_hashes(filter, &hashes, &mut results);
            let room = filter.len() - model.len();
            for (at, hash) in hashes.iter().enumerate().take(room as usize) {
                assert_eq!(results.get(at), model.count(*hash) == 0);
                model.add(*hash);
            }
            if let Err(error) = added {
                assert!(error.is_full() && model.may_be_full());
            }
        }
        _ => {
            filter.remove_mixed_hashes(&hashes, &mut results);
            for (at, hash) in hashes.iter().enumerate() {
                assert_eq!(results.get(at), model.remove(*hash));
            }
        }
    }
    Some(())
}

/// A union or a merge with the other filter; if it fails nothing has changed.
fn together(
    union: bool,
    filter: &mut VectorQuotientFilter,
    model: &mut Model,
    other: &VectorQuotientFilter,
    other_model: &Model,
) {
    let done = if union { filter.union(other) } else { filter.merge(other) };
    let Err(error) = done else {
        for (entity, theirs) in &other_model.copies {
            let ours = model.copies.entry(*entity).or_default();
            *ours = if union { (*ours).max(*theirs) } else { *ours + theirs };
        }
        return;
    };
    assert!(error.is_full(), "{error}");
}

fn check(filter: &VectorQuotientFilter, model: &Model) {
    assert_eq!(filter.len(), model.len());
    let mut file = Vec::new();
    filter.write_to(&mut file, "").expect("memory");
    // Checks every block, and the number of fingerprints.
    let (read, _) = VectorQuotientFilter::read_from(&file[..]).expect("a valid file");
    assert!(read == *filter);
    let mut aligned = vec![0u8; file.len() + 64];
    let start = aligned.as_ptr().align_offset(64);
    aligned[start..start + file.len()].copy_from_slice(&file);
    let bytes = &aligned[start..start + file.len()];
    let view = VectorQuotientFilter::<Borrowed<'_>>::from_bytes(bytes).expect("a valid file");
    for number in 0..4u64 {
        let hash = HashSpec::rapid(1).hash(&number.to_le_bytes());
        assert_eq!(view.count_mixed_hash(hash), model.count(hash));
    }
}
