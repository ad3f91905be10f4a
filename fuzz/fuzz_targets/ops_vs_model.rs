//! Any sequence of operations on two filters of one layout equals the naive filter bit for bit, and loses no key.
#![no_main]

#[path = "../../crates/core/tests/naive/mod.rs"]
mod naive;

use std::collections::HashSet;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use naive::{HeaderFields, Naive};
use petal::embed::Layout;
use petal::{
    BatchResults, BloomFilter, ClassicBloomFilter, Filter, HashSpec, Key, Membership as _,
};

#[derive(Arbitrary, Debug)]
struct Run {
    layout: u8,
    extent: u16,
    probes: u8,
    hash: u8,
    steps: Vec<Step>,
}

/// An operation on the first filter, or on both.
#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u16),
    InsertHash(u64),
    InsertBytes(Vec<u8>),
    InsertBatch(Vec<u16>),
    Contains(u64),
    ContainsBatch(Vec<u64>),
    Swap,
    Union,
    Intersect,
    Clear,
    WriteAndRead(String),
    Copy,
}

fuzz_target!(|run: Run| {
    let fields = HeaderFields {
        hash: [1, 2, 5][usize::from(run.hash % 3)],
        seed: if run.hash.is_multiple_of(3) { [0; 16] } else { [run.probes; 16] },
        ..HeaderFields::none()
    };
    // At most 64 cache lines, so that filters fill up.
    let (extent, probes) = (u64::from(run.extent), u64::from(run.probes));
    let empty = match run.layout % 3 {
        0 => Naive::blocked(1 + extent % 64, 8, 1 + probes % 8),
        1 => Naive::blocked(1 + extent % 32, 16, 1 + probes % 16),
        _ => Naive::classic(1 + extent % 20_000, 1 + probes % 64),
    };
    // A file can have any layout.
    let file = empty.to_file(&fields);
    if empty.kind == 1 {
        let read = || BloomFilter::read_from(&file[..]).expect("a valid file").0;
        drive(run.steps, &empty, [read(), read()]);
    } else {
        let read = || ClassicBloomFilter::read_from(&file[..]).expect("a valid file").0;
        drive(run.steps, &empty, [read(), read()]);
    }
});

/// The expected bits of a filter, and the hashes that must be in it.
#[derive(Clone)]
struct Model {
    bits: Naive,
    members: HashSet<u64>,
}

impl Model {
    fn insert(&mut self, hash: u64) -> bool {
        self.members.insert(hash);
        self.bits.insert(hash)
    }

    fn contains(&self, hash: u64) -> bool {
        let found = self.bits.contains(hash);
        assert!(found || !self.members.contains(&hash), "the model lost {hash:#x}");
        found
    }
}

fn drive<L: Layout>(steps: Vec<Step>, empty: &Naive, filters: [Filter<L>; 2]) {
    let [mut filter, mut other] = filters;
    let model = Model { bits: empty.clone(), members: HashSet::new() };
    let (mut ours, mut theirs) = (model.clone(), model);
    let spec: HashSpec = filter.hash_spec();
    let mut results = BatchResults::new();
    for step in steps {
        match step {
            Step::Insert(key) => {
                let key = u64::from(key);
                assert_eq!(filter.insert(&key), ours.insert(key.hash_with(&spec)));
            }
            Step::InsertHash(hash) => assert_eq!(filter.insert_mixed_hash(hash), ours.insert(hash)),
            Step::InsertBytes(key) => {
                assert_eq!(filter.insert(&key), ours.insert(spec.hash(&key)));
                assert!(filter.contains(&key[..]));
            }
            Step::InsertBatch(keys) => {
                let keys: Vec<u128> = keys.into_iter().map(u128::from).collect();
                filter.insert_batch(&keys, &mut results);
                assert_eq!(results.len(), keys.len());
                for (at, key) in keys.iter().enumerate() {
                    assert_eq!(results.get(at), ours.insert(key.hash_with(&spec)), "key {at}");
                }
            }
            Step::Contains(hash) => {
                assert_eq!(filter.contains_mixed_hash(hash), ours.contains(hash));
            }
            Step::ContainsBatch(hashes) => {
                filter.contains_mixed_hashes(&hashes, &mut results);
                assert_eq!(results.len(), hashes.len());
                for (at, hash) in hashes.into_iter().enumerate() {
                    assert_eq!(results.get(at), ours.contains(hash), "hash {at}");
                }
            }
            Step::Swap => {
                std::mem::swap(&mut filter, &mut other);
                std::mem::swap(&mut ours, &mut theirs);
            }
            Step::Union => {
                filter.union(&other).expect("same layout and hash");
                combine(&mut ours.bits, &theirs.bits, |a, b| a | b);
                ours.members.extend(&theirs.members);
            }
            Step::Intersect => {
                filter.intersect(&other).expect("same layout and hash");
                combine(&mut ours.bits, &theirs.bits, |a, b| a & b);
                ours.members.retain(|hash| theirs.members.contains(hash));
            }
            Step::Clear => {
                filter.clear();
                ours.bits.data.fill(0);
                ours.members.clear();
            }
            Step::WriteAndRead(metadata) => {
                let mut file = Vec::new();
                filter.write_to(&mut file, &metadata).expect("memory takes it");
                let (again, text) = Filter::<L>::read_from(&file[..]).expect("just written");
                assert!(
                    again == filter && text == metadata && again.inserted() == filter.inserted()
                );
                filter = again;
            }
            Step::Copy => filter = filter.try_clone().expect("small"),
        }
    }
    let mut file = Vec::new();
    filter.write_to(&mut file, "").expect("memory takes it");
    assert!(Naive::from_file(&file).0 == ours.bits, "the bits differ");
    let set: u32 = ours.bits.data.iter().map(|byte| byte.count_ones()).sum();
    let bits = if empty.kind == 1 { empty.data.len() as u64 * 8 } else { empty.extent };
    assert_eq!(filter.stats().fill_ratio, f64::from(set) / bits as f64);
    for &hash in &ours.members {
        assert!(filter.contains_mixed_hash(hash), "lost {hash:#x}");
    }
}

fn combine(ours: &mut Naive, theirs: &Naive, byte: impl Fn(u8, u8) -> u8) {
    for (ours, theirs) in ours.data.iter_mut().zip(&theirs.data) {
        *ours = byte(*ours, *theirs);
    }
}
