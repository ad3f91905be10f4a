//! Compares tables with lists of fingerprints, with every available selection: which fingerprints are
//! there, and every byte of every block.

use petal_testkit::rng::Rng;

use super::shape::{BlockShape, Fingerprint, PairParams, Place, REGION};
use super::table::PairTable;
use crate::kernel::Kernel;
use crate::store::{CacheLine, line_as_bytes, line_as_bytes_mut, lines_as_bytes_mut};

/// Calls `test` with every available selection of instructions.
fn tables(params: PairParams, mut test: impl FnMut(PairTable)) {
    for kernel in Kernel::ALL.into_iter().filter_map(Kernel::handle) {
        test(PairTable::new(params, kernel));
    }
}

/// Returns the bytes of a block with these fingerprints, in the order of their buckets, by the
/// description of the layout.
fn written(shape: BlockShape, list: &[Fingerprint]) -> [u8; 64] {
    let mut bits = [false; 512];
    let slots = shape.slots as usize;
    for (slot, fingerprint) in list.iter().enumerate() {
        for plane in 0..shape.tag_bits as usize {
            bits[plane * slots + slot] = fingerprint.tag >> plane & 1 == 1;
        }
    }
    let mut at = shape.tag_bits as usize * slots;
    for bucket in 0..shape.buckets {
        for _ in list.iter().filter(|fingerprint| fingerprint.bucket == bucket) {
            bits[at] = true;
            at += 1;
        }
        at += 1;
    }
    let mut bytes = [0; 64];
    for (at, _) in bits.iter().enumerate().filter(|(_, bit)| **bit) {
        bytes[at / 8] |= 1 << (at % 8);
    }
    bytes
}

/// Returns the smallest hash with a place, and checks that it has this place.
fn hash_of(params: PairParams, place: Place) -> u64 {
    let BlockShape { buckets, tag_bits, .. } = params.shape;
    let bucket = place.block * u64::from(buckets) + u64::from(place.fingerprint.bucket);
    let number = u128::from(bucket) << tag_bits | u128::from(place.fingerprint.tag);
    let all = u128::from(params.blocks() * u64::from(buckets)) << tag_bits;
    let hash = (number << 64).div_ceil(all) as u64;
    assert_eq!(params.place(hash), place);
    hash
}

/// Applies the same operations to a table and to a list of places: the first block, or the smaller
/// of both, and a fingerprint.
fn drive(table: PairTable, params: PairParams, steps: usize, seed: u64) {
    let mut blocks = vec![CacheLine::ZERO; params.blocks() as usize];
    let mut list: Vec<Place> = Vec::new();
    let mut rng = Rng::new(seed);
    let slots = params.blocks() as usize * params.shape.slots as usize;
    let key = |place: Place| {
        let other = params.other_block(place.block, place.fingerprint);
        assert_eq!(params.other_block(other, place.fingerprint), place.block);
        Place { block: place.block.min(other), ..place }
    };
    for step in 0..steps {
        let few = rng.one_in(3);
        let fingerprint = Fingerprint {
            bucket: rng.below(if few { 2 } else { params.shape.buckets as usize }) as u32,
            tag: rng.below(if few { 3 } else { 1 << params.shape.tag_bits }) as u32,
        };
        let mut place = Place { block: rng.below(blocks.len()) as u64, fingerprint };
        let filling = (step / (2 * slots)).is_multiple_of(2);
        if rng.below(8) < if filling { 7 } else { 2 } {
            let before = blocks.clone();
            if table.insert(&mut blocks, hash_of(params, place)) {
                list.push(key(place));
            } else {
                assert!(blocks == before, "an insert that fails changes nothing");
                let full = [place.block, params.other_block(place.block, fingerprint)]
                    .map(|block| table.fingerprints(&blocks[block as usize]).count());
                assert_eq!(full, [params.shape.slots as usize; 2]);
            }
        } else {
            if !list.is_empty() && !rng.one_in(4) {
                place = *rng.pick(&list);
                // By either of its blocks.
                if rng.one_in(2) {
                    place.block = params.other_block(place.block, place.fingerprint);
                }
            }
            let at = list.iter().position(|other| *other == key(place));
            assert_eq!(table.remove(&mut blocks, hash_of(params, place)), at.is_some());
            at.map(|at| list.swap_remove(at));
        }
        let copies = list.iter().filter(|other| **other == key(place)).count();
        let hash = hash_of(params, place);
        assert_eq!(table.count(&blocks, hash), copies as u64, "step {step}");
        assert_eq!(table.contains(&blocks, hash), copies > 0);
        if step % 16 == 0 {
            compare(table, params, &blocks, list.iter().copied(), key);
        }
    }
}

/// Checks that blocks are sound and have exactly these fingerprints, all of them in their own pair.
fn compare(
    table: PairTable,
    params: PairParams,
    blocks: &[CacheLine],
    list: impl Iterator<Item = Place>,
    key: impl Fn(Place) -> Place,
) {
    let mut found = Vec::new();
    for (block, line) in blocks.iter().enumerate() {
        let fingerprints: Vec<_> = table.fingerprints(line).collect();
        assert_eq!(&written(params.shape, &fingerprints), line_as_bytes(line));
        found.extend(
            fingerprints
                .into_iter()
                .map(|fingerprint| key(Place { block: block as u64, fingerprint })),
        );
    }
    assert_eq!(table.check(blocks), Ok(found.len() as u64));
    let sorted = |mut places: Vec<Place>| {
        places.sort_by_key(|place| (place.block, place.fingerprint.bucket, place.fingerprint.tag));
        places
    };
    assert_eq!(sorted(found), sorted(list.collect()));
}

#[test]
fn tables_equal_lists_of_fingerprints() {
    let steps = if cfg!(miri) { 60 } else { 4000 };
    for shape in BlockShape::ALL {
        for blocks in [1, 2, 3, 10] {
            let params = PairParams::new(shape, blocks).unwrap();
            tables(params, |table| drive(table, params, steps, blocks));
        }
    }
}

/// Batches return what single calls return, and leave the same bytes.
#[test]
fn batches_equal_single_operations() {
    let mut rng = Rng::new(3);
    for shape in BlockShape::ALL {
        for blocks in if cfg!(miri) { [1, 7] } else { [1, 1000] } {
            let params = PairParams::new(shape, blocks).unwrap();
            let slots = blocks * u64::from(shape.slots);
            let mut hashes: Vec<u64> = (0..slots * 4 / 3).map(|_| rng.next_u64()).collect();
            hashes[1] = hashes[0];
            tables(params, |table| {
                let mut one = vec![CacheLine::ZERO; blocks as usize];
                let mut all = one.clone();
                let done = table.insert_batch(&mut all, &hashes);
                let single = hashes.iter().position(|hash| !table.insert(&mut one, *hash));
                assert_eq!(Some(done), single, "{shape:?} {blocks}");
                assert!(one == all && done as u64 >= slots / 2);
                let mut found = vec![0; hashes.len().div_ceil(64)];
                table.contains_batch(&all, &hashes, &mut found);
                for (at, hash) in hashes.iter().enumerate() {
                    assert_eq!(found[at / 64] >> (at % 64) & 1 == 1, table.contains(&one, *hash));
                }
                found.fill(0);
                let some = &hashes[done / 3..];
                let total = table.remove_batch(&mut all, some, &mut found);
                for (at, hash) in some.iter().enumerate() {
                    assert_eq!(found[at / 64] >> (at % 64) & 1 == 1, table.remove(&mut one, *hash));
                }
                assert_eq!(total, found.iter().map(|word| u64::from(word.count_ones())).sum());
                assert!(one == all);
            });
        }
    }
}

/// The same with several regions, and batches of every length up to a few vectors.
#[test]
fn batches_equal_single_queries_in_several_regions() {
    let mut rng = Rng::new(6);
    for shape in BlockShape::ALL {
        let params = PairParams::new(shape, 3 * (REGION - 5)).unwrap();
        let mut blocks = vec![CacheLine::ZERO; params.blocks() as usize];
        let hashes: Vec<u64> =
            (0..if cfg!(miri) { 80 } else { 4000 }).map(|_| rng.next_u64()).collect();
        tables(params, |table| {
            blocks.fill(CacheLine::ZERO);
            let half = &hashes[..hashes.len() / 2];
            assert_eq!(table.insert_batch(&mut blocks, half), half.len());
            let single: Vec<bool> =
                hashes.iter().map(|hash| table.contains(&blocks, *hash)).collect();
            assert!(single[..half.len()].iter().all(|found| *found));
            for len in (0..75).chain([hashes.len()]) {
                let mut found = vec![0; len.div_ceil(64)];
                table.contains_batch(&blocks, &hashes[hashes.len() - len..], &mut found);
                for (at, single) in single[hashes.len() - len..].iter().enumerate() {
                    assert_eq!(found[at / 64] >> (at % 64) & 1 == 1, *single, "{shape:?} {len}");
                }
                let beyond = if len % 64 == 0 { 0 } else { u64::MAX << (len % 64) };
                assert!(found.last().is_none_or(|word| word & beyond == 0));
            }
        });
    }
}

#[test]
fn every_bit_of_a_block_is_checked_or_part_of_its_fingerprints() {
    let mut rng = Rng::new(8);
    for shape in BlockShape::ALL {
        let params = PairParams::new(shape, 1).unwrap();
        for len in [0, 1, shape.slots - 1, shape.slots] {
            let mut block = [CacheLine::ZERO];
            tables(params, |table| {
                block = [CacheLine::ZERO];
                for _ in 0..len {
                    assert!(table.insert(&mut block, rng.next_u64()));
                }
                let before: Vec<_> = table.fingerprints(&block[0]).collect();
                for bit in 0..512 {
                    let mut damaged = block;
                    lines_as_bytes_mut(&mut damaged)[bit / 8] ^= 1 << (bit % 8);
                    let Ok(found) = table.check(&damaged) else { continue };
                    let after: Vec<_> = table.fingerprints(&damaged[0]).collect();
                    assert!(found != u64::from(len) || before != after, "{shape:?} {len} {bit}");
                    assert_eq!(&written(shape, &after), line_as_bytes(&damaged[0]));
                }
            });
        }
    }
}

#[test]
fn hostile_blocks_are_queried_without_a_panic() {
    let mut rng = Rng::new(4);
    for shape in BlockShape::ALL {
        let params = PairParams::new(shape, 2).unwrap();
        for round in 0..if cfg!(miri) { 4 } else { 400 } {
            let mut blocks = [CacheLine::ZERO; 2];
            for line in &mut blocks {
                line_as_bytes_mut(line).fill_with(|| match round {
                    0 => 0xff,
                    1 => 0x55,
                    _ => rng.next_u64() as u8,
                });
            }
            tables(params, |table| {
                let hashes: Vec<u64> = (0..20).map(|_| rng.next_u64()).collect();
                for &hash in &hashes {
                    assert_eq!(table.contains(&blocks, hash), table.count(&blocks, hash) > 0);
                }
                // Results depend on the kernel, because the blocks are not sound; none panics.
                table.contains_batch(&blocks, &hashes, &mut [0]);
                let _ = table.check(&blocks);
            });
        }
    }
}

#[test]
fn both_blocks_are_in_one_region() {
    let shape = BlockShape::ALL[2];
    assert!(PairParams::new(shape, REGION + 1).is_none() && PairParams::new(shape, 0).is_none());
    let params = PairParams::new(shape, 3 * (REGION - 5)).unwrap();
    let mut rng = Rng::new(5);
    for _ in 0..10_000 {
        let hash = rng.next_u64();
        let place = params.place(hash);
        let other = params.other_block(place.block, place.fingerprint);
        assert_eq!(place.block / (REGION - 5), other / (REGION - 5));
        assert_eq!(params.other_block(other, place.fingerprint), place.block);
        assert_eq!(params.second_block(hash, place), other);
    }
}

/// Prints the load at which a table of random keys first fails to take one; it checks nothing.
#[test]
#[ignore = "prints the load at the first failure; used to choose the capacity"]
fn measure_loads() {
    let mut rng = Rng::new(1);
    for shape in BlockShape::ALL {
        for blocks in [1u64, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 1000, 10_000, 32_768] {
            let params = PairParams::new(shape, blocks).unwrap();
            let rounds = (200_000 / blocks).clamp(6, 20_000);
            let slots = blocks * u64::from(shape.slots);
            let mut loads: Vec<f64> = (0..rounds)
                .map(|_| {
                    let table = PairTable::new(params, Kernel::selected());
                    let mut lines = vec![CacheLine::ZERO; blocks as usize];
                    let hashes: Vec<u64> = (0..slots + 64).map(|_| rng.next_u64()).collect();
                    table.insert_batch(&mut lines, &hashes) as f64 / slots as f64
                })
                .collect();
            loads.sort_by(f64::total_cmp);
            let mean = loads.iter().sum::<f64>() / loads.len() as f64;
            println!(
                "{:2} slots {blocks:6} blocks: {rounds:6} rounds min {:.4} 1% {:.4} mean {mean:.4}",
                shape.slots,
                loads[0],
                loads[loads.len() / 100]
            );
        }
    }
}
