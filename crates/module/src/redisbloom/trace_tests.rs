//! Cuckoo filters after random commands: compared with RedisBloom and with a model, and with
//! arbitrary slots.

use std::collections::BTreeMap;
use std::path::Path;

use petal_testkit::rng::Rng;

use super::{Cuckoo, CuckooParams};
use crate::error::FilterError;
use crate::server::count_allocations;

const NO_LIMIT: u64 = u64::MAX;
/// RedisBloom's default.
const MAX_LAYERS: u64 = 32;

fn fnv(bytes: &[u8], checksum: u64) -> u64 {
    bytes.iter().fold(checksum, |checksum: u64, byte| {
        (checksum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

fn arrays(filter: &Cuckoo) -> u64 {
    let (mut checksum, mut at) = (EMPTY, 1);
    while let Some((next, chunk)) = filter.chunk(at) {
        (checksum, at) = (fnv(chunk, checksum), next);
    }
    checksum
}

/// Executes a command of a trace and returns RedisBloom's reply, abbreviated.
fn command(filter: &mut Cuckoo, random: &mut Rng, phase: usize, keys: usize) -> String {
    let drawn = random.below(1000);
    let hash = Cuckoo::hash(format!("item:{}", random.below(keys)).as_bytes());
    if drawn == 999 {
        filter.compact(true);
        return "+".to_owned();
    }
    let up_to = [[70, 80, 90, 95], [15, 20, 90, 95]][phase % 2];
    let choice = up_to.iter().filter(|end| drawn / 10 >= **end).count();
    // Also for `CF.ADDNX`, before it looks up the key.
    if choice < 2 && filter.layers() >= MAX_LAYERS {
        return "M".to_owned();
    }
    let answer = match choice {
        1 if filter.contains(hash) => 0,
        0 | 1 => match filter.insert(hash, || NO_LIMIT) {
            Ok(()) => 1,
            Err(FilterError::Full) => return "F".to_owned(),
            Err(other) => panic!("{other:?}"),
        },
        2 => filter.delete(hash).into(),
        3 => filter.count(hash),
        _ => filter.contains(hash).into(),
    };
    answer.to_string()
}

#[test]
fn filters_equal_redisblooms_after_each_trace() {
    let path = "../../testdata/redisbloom/cuckoo-traces.json";
    let traces = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let traces: Vec<serde_json::Value> = serde_json::from_slice(&traces).unwrap();
    let (mut most_layers, mut freed_layers) = (0, 0);
    for trace in traces {
        let number = |name: &str| trace[name].as_u64().unwrap();
        let small = |name: &str| number(name) as u16;
        let params = CuckooParams::new(
            number("capacity"),
            small("bucket_size"),
            small("iterations"),
            small("expansion"),
        );
        let mut filter = Cuckoo::new(params.unwrap(), NO_LIMIT).unwrap();
        let (mut random, mut replies) = (Rng::new(number("seed")), EMPTY);
        for (phase, expected) in trace["phases"].as_array().unwrap().iter().enumerate() {
            for _ in 0..number("steps") {
                let layers = filter.layers();
                let answer = command(&mut filter, &mut random, phase, number("keys") as usize);
                replies = fnv(answer.as_bytes(), replies);
                freed_layers += u32::from(filter.layers() < layers);
                most_layers = most_layers.max(filter.layers());
            }
            assert_eq!(Some(replies), expected[2].as_u64(), "phase {phase} of {trace}");
            if filter.len() == 0 {
                assert_eq!(expected[0], "");
                continue;
            }
            let header: String = filter.header().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(expected[0], header, "phase {phase} of {trace}");
            assert_eq!(Some(arrays(&filter)), expected[1].as_u64(), "phase {phase} of {trace}");
        }
    }
    assert!(most_layers == MAX_LAYERS && freed_layers > 100, "{most_layers} {freed_layers}");
}

/// Returns random parameters, small enough for growth and compaction.
fn any_params(random: &mut Rng) -> CuckooParams {
    let (slots, kicks) = (*random.pick(&[4, 16, 255]), *random.pick(&[4, 50, 1000]));
    let [bucket_size, iterations] = [slots, kicks].map(|max| 1 + random.below(max) as u16);
    let expansion = random.below(9) as u16;
    CuckooParams::new(random.below(500) as u64, bucket_size, iterations, expansion).unwrap()
}

#[test]
fn present_keys_are_found() {
    let mut random = Rng::new(21);
    for round in 0..60 {
        let params = any_params(&mut random);
        let mut filter = Cuckoo::new(params, NO_LIMIT).unwrap();
        let limit = filter.memory_usage() + (1 << 13);
        let mut model = BTreeMap::<usize, u64>::new();
        let keys = 1 + random.below(2000);
        let hash = |key: usize| Cuckoo::hash(&key.to_le_bytes());
        for step in 0..3000 {
            let key = random.below(keys);
            if step % 1000 < 600 {
                let before = random.one_in(20).then(|| (filter.header(), arrays(&filter)));
                match filter.insert(hash(key), || limit) {
                    Ok(()) => *model.entry(key).or_default() += 1,
                    Err(_) => assert!(
                        before.is_none_or(|before| before == (filter.header(), arrays(&filter))),
                        "{params:?}"
                    ),
                }
            } else if let Some((&key, _)) = model.range(key..).next() {
                assert!(filter.delete(hash(key)), "{params:?}");
                if let Some(count) = model.get_mut(&key) {
                    *count -= 1;
                }
                model.retain(|_, count| *count > 0);
            } else if random.one_in(10) {
                filter.compact(round % 2 == 0);
            }
            if step % 500 == 499 {
                assert_eq!(filter.len(), model.values().sum::<u64>());
                for (key, count) in &model {
                    assert!(filter.contains(hash(*key)) && filter.count(hash(*key)) >= *count);
                }
            }
        }
    }
}

#[test]
fn arbitrary_slots_are_harmless() {
    let mut random = Rng::new(22);
    for _ in 0..100 {
        let params = any_params(&mut random);
        let mut header = Cuckoo::new(params, NO_LIMIT).unwrap().header();
        header[24] = if params.expansion == 0 { 1 } else { 1 + random.below(3) as u8 };
        header[0] = random.below(2) as u8;
        let mut filter = Cuckoo::from_header(&header, NO_LIMIT).unwrap().unwrap();
        let mut at = 1;
        while let Some((next, chunk)) = filter.chunk(at) {
            // From all slots free to all slots used.
            let free = 1 + random.below(9);
            let mut bytes = random.bytes(chunk.len());
            bytes.iter_mut().filter(|_| random.one_in(free)).for_each(|byte| *byte = 0);
            filter.put_chunk(next, &bytes).unwrap();
            at = next;
        }
        for step in 0..300 {
            _ = command(&mut filter, &mut random, step, 10_000);
        }
        filter.compact(true);
        let header = filter.header();
        assert!(Cuckoo::from_header(&header, NO_LIMIT).unwrap().is_ok(), "{params:?}");
    }
}

#[test]
fn sizes_are_checked_before_allocation() {
    let header = |numbers: [u64; 4], rest: [u16; 3]| -> Vec<u8> {
        let rest = rest.iter().flat_map(|number| number.to_le_bytes());
        numbers.iter().flat_map(|number| number.to_le_bytes()).chain(rest).collect()
    };
    let read = |numbers, rest, limit| Cuckoo::from_header(&header(numbers, rest), limit).unwrap();
    // The maximum of announced layers, each of one slot.
    let max = read([0, 1, 0, 1024], [1, 20, 1], NO_LIMIT).unwrap();
    assert_eq!(max.slots(), 1024);
    assert_eq!(read([0, 1, 0, 1024], [1, 20, 1], 1 << 15).unwrap_err(), FilterError::MemoryLimit);
    // Layers above 4 GiB, in which RedisBloom loses keys.
    for (buckets, bucket_size) in [(1 << 33, 1), (1 << 32, 2), (1 << 31, 3), (1 << 63, 255)] {
        let error = read([0, buckets, 0, 1], [bucket_size, 20, 1], NO_LIMIT);
        assert!(matches!(error.unwrap_err(), FilterError::LayerTooLarge | FilterError::TooLarge));
    }
    for (layers, expansion) in [(40, 2), (1024, 1 << 15), (5, 1 << 15)] {
        let error = read([0, 1, 0, layers], [1, 20, expansion], NO_LIMIT);
        assert!(matches!(error.unwrap_err(), FilterError::LayerTooLarge | FilterError::TooLarge));
    }
    for (numbers, rest) in [
        ([0, 0, 0, 1], [1, 20, 1]),
        ([0, 3, 0, 1], [1, 20, 1]),
        ([0, 4, 0, 0], [1, 20, 1]),
        ([0, 4, 0, 65_536], [1, 20, 1]),
        ([0, 4, 0, u64::MAX], [1, 20, 1]),
        ([0, 4, 0, 2], [1, 20, 0]),
        ([0, 4, 0, 1], [0, 20, 1]),
        ([0, 4, 0, 1], [256, 20, 1]),
        ([0, 4, 0, 1], [1, 0, 1]),
        ([0, 4, 0, 1], [1, 20, 3]),
    ] {
        let error = read(numbers, rest, NO_LIMIT).unwrap_err();
        assert!(matches!(error, FilterError::Malformed(_)), "{numbers:?} {rest:?} {error:?}");
    }
}

/// The work for a header of 38 bytes or a command with many items is linear in the number of
/// layers.
#[test]
fn many_layers_take_one_allocation_each() {
    let mut header = [0; 38];
    header[8] = 1;
    header[24..26].copy_from_slice(&u16::MAX.to_le_bytes());
    header[32..].copy_from_slice(&[1, 0, 20, 0, 1, 0]);
    assert_eq!(Cuckoo::announced_layers(&header), Some(65_535));
    let (allocations, filter) = count_allocations(|| Cuckoo::from_header(&header, NO_LIMIT));
    assert_eq!(filter.unwrap().unwrap().layers(), 65_535);
    assert!(allocations <= 65_536, "{allocations}");
    let (allocations, error) = allocations_with_limit(&header);
    assert!(error && allocations == 0, "{allocations}");
}

fn allocations_with_limit(header: &[u8]) -> (u64, bool) {
    let limit = 65_535 * 8;
    count_allocations(|| {
        matches!(Cuckoo::from_header(header, limit), Some(Err(FilterError::MemoryLimit)))
    })
}
