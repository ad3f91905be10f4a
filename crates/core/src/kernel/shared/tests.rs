//! The protocol in every order of its threads, by loom: `cargo x loom`.
//!
//! Keys set two bits in a single block, so that few words are touched, and are searched for such
//! that they have bits in common.

use std::collections::HashSet;

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::kernel::Kernel;
use crate::store::Line;

const RULE: Rule<8> = Rule { blocks: 1, probes: 2 };

/// A small filter with one stripe.
struct World {
    lines: Vec<AtomicLine>,
    stripes: Stripes,
}

impl World {
    fn new() -> Arc<Self> {
        let line = AtomicLine(std::array::from_fn(|_| AtomicU64::new(0)));
        Arc::new(Self { lines: vec![line], stripes: Stripes::new(RULE.blocks) })
    }

    fn blocks(&self) -> SharedBlocks<'_, 8> {
        // Assembly would not know what loom's words are.
        let kernel = Kernel::Portable.ready().unwrap();
        SharedBlocks { rule: RULE, lines: &self.lines, stripes: &self.stripes, kernel }
    }

    fn insert(&self, hash: u64) -> bool {
        let new = self.blocks().insert(hash);
        assert!(self.contains(hash), "one's own insert is seen");
        new
    }

    fn contains(&self, hash: u64) -> bool {
        self.blocks().contains(hash)
    }
}

/// The places of a hash's bits.
fn places(hash: u64) -> HashSet<(usize, u64)> {
    (0..RULE.probes).map(|probe| Marks::<8>::of(hash).probe(probe)).collect()
}

/// The first key that has so many bits in common with each of these.
fn key(common: &[(u64, usize)]) -> u64 {
    let fits = |hash: &u64| {
        let with = |other| places(*hash).intersection(&places(other)).count();
        common.iter().all(|&(other, count)| with(other) == count)
    };
    // An odd step through all hashes, for all of them lie in the one block.
    (1..u64::MAX).map(|step| step.wrapping_mul(0x9e37_79b9)).find(fits).unwrap()
}

/// All that threads can be told if their inserts come one after another, in any order.
fn one_by_one(threads: &[Vec<u64>]) -> HashSet<Vec<Vec<bool>>> {
    fn go(
        threads: &[Vec<u64>],
        line: [Line; 1],
        told: &[Vec<bool>],
        all: &mut HashSet<Vec<Vec<bool>>>,
    ) {
        let mut over = true;
        for (at, hashes) in threads.iter().enumerate() {
            if let Some(&hash) = hashes.get(told[at].len()) {
                over = false;
                let (mut line, mut told) = (line, told.to_vec());
                let new = RULE.insert(&mut line, hash);
                told[at].push(new);
                go(threads, line, &told, all);
            }
        }
        if over {
            all.insert(told.to_vec());
        }
    }
    let mut all = HashSet::new();
    go(threads, [Line::ZERO], &vec![vec![]; threads.len()], &mut all);
    all
}

/// Every order of two threads; of three those in which at most two are interrupted where they need
/// not be. `LOOM_MAX_PREEMPTIONS` says otherwise, and takes longer.
fn model(threads: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    if threads > 2 {
        builder.preemption_bound = builder.preemption_bound.or(Some(2));
    }
    builder.check(run);
}

/// Lets threads insert at once: in every order of theirs they are told what they could be told
/// one after another, the stripe counts just that, and nothing is lost.
fn insert_at_once(threads: &[Vec<u64>]) {
    let expected = one_by_one(threads);
    let threads = threads.to_vec();
    model(threads.len(), move || {
        let world = World::new();
        let run = |hashes: &[u64], world: &World| {
            let (mut new, mut found) = ([0], [0]);
            world.blocks().insert_batch(hashes, &mut new);
            world.blocks().contains_batch(hashes, &mut found);
            assert_eq!(found[0].count_ones() as usize, hashes.len(), "one's own inserts are seen");
            (0..hashes.len()).map(|at| new[0] >> at & 1 == 1).collect::<Vec<_>>()
        };
        let other = |hashes: &Vec<u64>| {
            let (hashes, world) = (hashes.clone(), Arc::clone(&world));
            thread::spawn(move || run(&hashes, &world))
        };
        let others: Vec<_> = threads[1..].iter().map(other).collect();
        let mut told = vec![run(&threads[0], &world)];
        told.extend(others.into_iter().map(|thread| thread.join().unwrap()));
        assert!(expected.contains(&told), "{told:?} is none of {expected:?}");
        let new = told.iter().flatten().filter(|new| **new).count();
        assert_eq!(world.stripes.inserted(), new as u64);
        assert!(threads.iter().flatten().all(|&hash| world.contains(hash)));
    });
}

#[test]
fn loom_one_of_two_is_told_that_a_key_is_new() {
    let one = key(&[]);
    assert_eq!(one_by_one(&[vec![one], vec![one]]).len(), 2);
    insert_at_once(&[vec![one], vec![one]]);
}

#[test]
fn loom_one_of_three_is_told_that_a_key_is_new() {
    let one = key(&[]);
    insert_at_once(&[vec![one], vec![one], vec![one]]);
}

#[test]
fn loom_keys_with_a_bit_of_their_own_are_new() {
    let one = key(&[]);
    let two = key(&[(one, 1)]);
    assert_eq!(one_by_one(&[vec![one], vec![two]]).len(), 1);
    insert_at_once(&[vec![one], vec![two]]);
    insert_at_once(&[vec![one, two], vec![two, one]]);
}

/// The third has no bit of its own: whether it is new depends on the order.
#[test]
fn loom_two_keys_that_cover_a_third() {
    let one = key(&[]);
    let three = key(&[(one, 1)]);
    let two = key(&[(one, 0), (three, 1)]);
    assert_eq!(one_by_one(&[vec![one], vec![two], vec![three]]).len(), 2);
    insert_at_once(&[vec![one], vec![two], vec![three]]);
}

#[test]
fn loom_a_key_that_is_contained_is_not_new() {
    let one = key(&[]);
    let two = key(&[(one, 1)]);
    model(2, move || {
        let world = World::new();
        assert!(world.insert(one));
        let other = Arc::clone(&world);
        let thread = thread::spawn(move || (other.insert(two), other.insert(one)));
        assert!(!world.insert(one));
        assert_eq!(thread.join().unwrap(), (true, false));
        assert_eq!(world.stripes.inserted(), 2);
    });
}

/// Whether the insert was new to the one who tells, or not.
#[test]
fn loom_who_hears_of_an_insert_finds_the_key() {
    let one = key(&[]);
    model(3, move || {
        let (world, heard) = (World::new(), Arc::new(AtomicU64::new(0)));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (world, heard) = (Arc::clone(&world), Arc::clone(&heard));
                thread::spawn(move || {
                    world.insert(one);
                    heard.store(1, Ordering::Release);
                })
            })
            .collect();
        if heard.load(Ordering::Acquire) == 1 {
            assert!(world.contains(one));
            assert!(!world.insert(one));
        }
        assert!(world.stripes.inserted() <= 1);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
