//! Tests selection, and compares tables with sorted lists, with every available selection.

use petal_testkit::rng::Rng;

use super::check::CheckProgress;
use super::fingerprints::Fingerprints;
use super::params::{SLOTS, TableParams};
use super::update::InsertOutcome;
use crate::kernel::select::Portable;
use crate::kernel::select::Select;

fn selections(test: impl Fn(&dyn Fn(u64, u32) -> u32)) {
    test(&|word, n| Portable.nth_one(word, n));
    #[cfg(target_arch = "x86_64")]
    if let Some(bmi2) = crate::kernel::avx2::Avx2::new() {
        test(&|word, n| bmi2.nth_one(word, n));
    }
}

#[test]
fn nth_one_returns_the_nth_set_bit() {
    selections(|nth_one| {
        let mut rng = Rng::new(1);
        for round in 0..5000 {
            let word = match round % 4 {
                0 => rng.next_u64(),
                1 => rng.next_u64() & rng.next_u64() & rng.next_u64(),
                2 => !(rng.next_u64() & rng.next_u64()),
                _ => 1 << rng.below(64),
            };
            let places = (0..64).filter(|bit| word >> bit & 1 == 1);
            for (n, place) in places.enumerate() {
                assert_eq!(nth_one(word, n as u32), place, "{word:x} {n}");
            }
        }
    });
}

/// Applies the same operations to a table and a sorted list. After each step their fingerprints are
/// equal, and so are the bytes of the table and of one filled with these fingerprints.
fn drive(select: impl Select, params: TableParams, quotients: u64, steps: usize, seed: u64) {
    let size = TableParams::bytes(params.blocks as u64, params.width) as usize;
    let (mut bytes, mut list) = (vec![0; size], Vec::<u64>::new());
    let mut rng = Rng::new(seed);
    let few = rng.next_u64() % quotients;
    for step in 0..steps {
        let quotient = match rng.below(4) {
            0 => few,
            1 => quotients - 1,
            _ => rng.next_u64() % quotients,
        };
        let remainder = rng.next_u64() % (1 << params.width.min(3));
        let fingerprint = quotient << params.width | remainder;
        // Fills and empties repeatedly.
        let at = list.partition_point(|other| *other < fingerprint);
        let copies = list[at..].iter().take_while(|other| **other == fingerprint).count();
        assert_eq!(params.contains(select, &bytes, fingerprint), copies > 0);
        assert_eq!(params.count(select, &bytes, fingerprint), copies as u64);
        let filling = (step / (2 * params.slots())).is_multiple_of(2);
        if rng.below(8) < if filling { 6 } else { 2 } {
            let duplicates = rng.one_in(2);
            let slots_left = free_from(&list, params, quotient);
            let inserted = params.insert(select, &mut bytes, fingerprint, duplicates);
            let expect = match (copies > 0, duplicates, slots_left) {
                (true, false, _) => InsertOutcome::AlreadyPresent,
                (_, _, false) => InsertOutcome::Full,
                (true, ..) => InsertOutcome::Duplicate,
                (false, ..) => InsertOutcome::New,
            };
            assert_eq!(inserted, expect, "step {step}");
            if matches!(inserted, InsertOutcome::New | InsertOutcome::Duplicate) {
                list.insert(at, fingerprint);
            }
        } else {
            // Usually a fingerprint in the table.
            let (at, fingerprint, copies) = if list.is_empty() || rng.one_in(4) {
                (at, fingerprint, copies)
            } else {
                let fingerprint = *rng.pick(&list);
                let at = list.partition_point(|other| *other < fingerprint);
                let same = list[at..].iter().take_while(|other| **other == fingerprint);
                (at, fingerprint, same.count())
            };
            assert_eq!(params.remove(select, &mut bytes, fingerprint), copies as u64);
            if copies > 0 {
                list.remove(at);
            }
        }
        if step % 7 == 0 || params.blocks < 3 {
            assert_eq!(Fingerprints::new(params, &bytes).collect::<Vec<_>>(), list, "step {step}");
            let mut filled = vec![0; size];
            let mut fill = super::fill::Filler::new(params, &mut filled);
            assert!(list.iter().all(|fingerprint| fill.push(*fingerprint)));
            fill.finish(Portable);
            assert!(
                filled == bytes,
                "step {step}: {:?}",
                filled.iter().zip(&bytes).position(|(a, b)| a != b)
            );
        }
        if step % 50 == 0 {
            let counts = params
                .check(&bytes, quotients, CheckProgress::default())
                .map_err(|fault| fault.what)
                .unwrap();
            let mut distinct = list.clone();
            distinct.dedup();
            assert_eq!((counts.total, counts.distinct), (list.len() as u64, distinct.len() as u64));
        }
    }
}

/// Returns whether a slot is free from a quotient on, by a simple layout of the list.
fn free_from(list: &[u64], params: TableParams, quotient: u64) -> bool {
    let mut taken = vec![false; params.slots()];
    let mut next = 0;
    for fingerprint in list {
        let slot = next.max((fingerprint >> params.width) as usize);
        taken[slot] = true;
        next = slot + 1;
    }
    taken[quotient as usize..].contains(&false)
}

fn drive_all(select: impl Select) {
    for width in [1, 2, 7, 8, 13, 31, 55, 56] {
        drive(select, TableParams { blocks: 1, width }, 40, 2000, u64::from(width));
        drive(select, TableParams { blocks: 2, width }, 64, 3000, 100 + u64::from(width));
        drive(select, TableParams { blocks: 4, width }, 200, 3000, 200 + u64::from(width));
    }
    // Offsets above 255.
    for width in [1, 5, 20] {
        drive(
            select,
            TableParams { blocks: 12, width },
            9 * SLOTS as u64,
            8000,
            300 + u64::from(width),
        );
        drive(select, TableParams { blocks: 24, width }, 3, 8000, 400 + u64::from(width));
    }
}

#[test]
fn tables_equal_sorted_lists() {
    drive_all(Portable);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn tables_equal_sorted_lists_with_bmi2() {
    if let Some(bmi2) = crate::kernel::avx2::Avx2::new() {
        drive_all(bmi2);
    }
}
