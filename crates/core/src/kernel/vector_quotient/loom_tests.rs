//! Tests the shared table in every interleaving of its threads, with loom: `cargo x loom`.
//!
//! The fingerprints have the tag 0, so that an insert changes few words.
//!
//! The spawned thread queries while the first one changes blocks, not the other way round: loom knows
//! only the last access of each word. A change loads a word before it stores it, which would hide that
//! another thread loaded the word before, and loom would not try to load it later.

use std::sync::atomic::AtomicUsize;

use loom::sync::Arc;
use loom::thread;

use super::shape::{BlockShape, PairParams};
use super::shared::{Inserted, SharedPairTable};
use super::table::PairTable;
use crate::kernel::Kernel;
use crate::kernel::shared::Stripes;
use crate::store::{AtomicCacheLine, CacheLine};
use crate::sync::{AtomicU64, Ordering};

struct TestTable {
    table: PairTable,
    blocks: Vec<AtomicCacheLine>,
    stripes: Stripes,
}

impl TestTable {
    /// Returns a table that contains the fingerprints of hashes; those of `seconds` are in their second
    /// blocks.
    fn new(blocks: u64, seconds: &[u64], contents: &[u64]) -> Arc<Self> {
        let table = plain(blocks);
        let mut lines = vec![CacheLine::ZERO; blocks as usize];
        for place in seconds.iter().map(|&hash| table.place(hash)) {
            let second = table.second_block(place) as usize;
            assert!(table.put(&mut lines[second], place.fingerprint));
        }
        assert_eq!(table.insert_batch(&mut lines, contents), contents.len());
        let blocks = lines.iter().map(|line| AtomicCacheLine(line.0.map(AtomicU64::new)));
        Arc::new(Self {
            table,
            blocks: blocks.collect(),
            stripes: Stripes::new(lines.len() as u64),
        })
    }

    fn shared(&self) -> SharedPairTable<'_> {
        let Self { table, blocks, stripes } = self;
        SharedPairTable { table, blocks, stripes }
    }
}

fn plain(blocks: u64) -> PairTable {
    let shape = BlockShape::with_tag_bits(18).unwrap();
    let params = PairParams::new(shape, blocks).unwrap();
    PairTable::new(params, Kernel::Portable.handle().unwrap())
}

/// Returns a hash with a tag of 0 and these first and second blocks, in the bucket that is number `nth`
/// of those that have such a hash.
fn hash(blocks: u64, first: u64, second: u64, nth: usize) -> u64 {
    let table = plain(blocks);
    let fits = |hash: &u64| {
        let place = table.place(*hash);
        place.fingerprint.tag == 0 && place.block == first && table.second_block(place) == second
    };
    // The smallest hash of each bucket has a tag of 0.
    let buckets = u128::from(blocks) * 56;
    let mut smallest = (0..buckets).map(|bucket| (bucket << 64).div_ceil(buckets) as u64);
    smallest.by_ref().filter(fits).nth(nth).unwrap()
}

/// Runs two threads in every interleaving with at most three preemptions: at least `minimum` ones.
fn model(minimum: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&count);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        run();
    });
    let count = count.load(Ordering::Relaxed);
    assert!(count >= minimum, "loom tried {count} interleavings");
}

#[test]
fn loom_a_fingerprint_is_new_to_one_of_two_inserts() {
    let one = hash(2, 0, 1, 0);
    model(10, move || {
        let table = TestTable::new(2, &[], &[]);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || other.shared().insert(one, true));
        let results = [table.shared().insert(one, true), thread.join().unwrap()];
        assert!(results.contains(&Inserted::New) && results.contains(&Inserted::Present));
        assert_eq!(table.stripes.keys(), 1);
    });
}

#[test]
fn loom_a_fingerprint_is_new_to_one_of_two_inserts_and_removed_by_one() {
    let one = hash(2, 0, 1, 0);
    model(100, move || {
        let table = TestTable::new(2, &[], &[]);
        let other = Arc::clone(&table);
        let run = move |table: &TestTable| {
            let new = table.shared().insert(one, true) == Inserted::New;
            let mut removed = 0;
            table.shared().batch(&[one], |table, _, hash| {
                removed += u64::from(table.remove(hash));
                true
            });
            (u64::from(new), removed)
        };
        let thread = thread::spawn(move || run(&other));
        let (here, there) = (run(&table), thread.join().unwrap());
        let new = here.0 + there.0;
        assert!(new >= 1 && new == here.1 + there.1);
        assert!(table.stripes.keys() == 0 && !table.shared().contains(one));
    });
}

#[test]
fn loom_a_fingerprint_is_found_while_others_change() {
    let (one, two) = (hash(2, 0, 1, 0), hash(2, 0, 1, 1));
    model(100, move || {
        let table = TestTable::new(2, &[], &[two]);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || {
            assert!(other.shared().contains(two));
            let found = other.shared().contains(one);
            assert!(!found || other.shared().contains(one), "it stays");
        });
        assert_eq!(table.shared().insert(one, false), Inserted::New);
        thread.join().unwrap();
        assert!(table.shared().contains(one) && table.stripes.keys() == 1);
    });
}

/// Queries a fingerprint while another one is inserted.
fn find_while_inserting(
    (blocks, seconds, contents): (u64, Vec<u64>, Vec<u64>),
    key: u64,
    inserted: u64,
) {
    model(100, move || {
        let table = TestTable::new(blocks, &seconds, &contents);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || assert!(other.shared().contains(key)));
        assert_eq!(table.shared().insert(inserted, false), Inserted::New);
        thread.join().unwrap();
        assert!([key, inserted].iter().all(|&hash| table.shared().contains(hash)));
        assert_eq!(table.stripes.keys(), 1);
    });
}

/// A tag before that of the key moves it, in two words of the header. A query with only one of these
/// words would not find it.
#[test]
fn loom_a_fingerprint_is_found_while_its_block_changes() {
    let inserted = hash(3, 0, 1, 0);
    let (in_first, in_second) = (hash(3, 0, 2, 12), hash(3, 2, 0, 12));
    find_while_inserting((3, vec![], vec![in_first]), in_first, inserted);
    find_while_inserting((3, vec![in_second], vec![]), in_second, inserted);
}

/// A full block gives a fingerprint to its first block while that is queried. A query that read the
/// first block before the move, and the second one after it, would not find it.
#[test]
fn loom_a_fingerprint_is_found_while_it_moves() {
    let (moved, rest) = (hash(3, 2, 0, 0), hash(3, 0, 1, 0));
    find_while_inserting((3, vec![moved], vec![rest; 47]), moved, rest);
}

/// The same move, while another fingerprint of the third block is queried.
#[test]
fn loom_a_fingerprint_is_found_while_another_one_moves_to_its_block() {
    let (moved, rest, key) = (hash(4, 2, 0, 0), hash(4, 0, 1, 0), hash(4, 2, 3, 8));
    let contents = [vec![rest; 47], vec![key]].concat();
    find_while_inserting((4, vec![moved], contents), key, rest);
}
