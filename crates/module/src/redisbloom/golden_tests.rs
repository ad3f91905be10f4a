//! Captures of RedisBloom: they are loaded, queried, saved and recreated bit for bit.

use std::path::Path;

use petal_testkit::rng::Rng;

use super::fuzz_checks::{Field, Fields, bloom_chunks, cuckoo_chunks, use_bloom, use_cuckoo};
use super::{Bloom, Cuckoo, CuckooParams};
use crate::error::FilterError;

// ---- DUMP payloads ------------------------------------------------------------------------------

/// Parses a length of the RDB format.
fn length(bytes: &mut &[u8]) -> u64 {
    let mut take = |count: usize| {
        let (taken, rest) = bytes.split_at(count);
        *bytes = rest;
        taken.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
    };
    match take(1) {
        small @ 0..=0x3f => small,
        first @ 0x40..=0x7f => (first & 0x3f) << 8 | take(1),
        0x80 => take(4),
        0x81 => take(8),
        other => panic!("{other}"),
    }
}

/// Parses a string, possibly compressed with LZF.
fn string(bytes: &mut &[u8]) -> Box<[u8]> {
    if bytes[0] != 0xc3 {
        let count = length(bytes) as usize;
        let (string, rest) = bytes.split_at(count);
        *bytes = rest;
        return string.into();
    }
    *bytes = &bytes[1..];
    let (compressed, length) = (length(bytes) as usize, length(bytes) as usize);
    let (mut compressed, rest) = bytes.split_at(compressed);
    *bytes = rest;
    let mut out = Vec::new();
    while let [control, rest @ ..] = compressed {
        compressed = rest;
        let control = usize::from(*control);
        if control < 32 {
            out.extend(&compressed[..=control]);
            compressed = &compressed[control + 1..];
            continue;
        }
        let mut count = control >> 5;
        if count == 7 {
            count += usize::from(compressed[0]);
            compressed = &compressed[1..];
        }
        let distance = ((control & 31) << 8 | usize::from(compressed[0])) + 1;
        compressed = &compressed[1..];
        for _ in 0..count + 2 {
            out.push(out[out.len() - distance]);
        }
    }
    assert_eq!(out.len(), length);
    out.into()
}

/// Returns the encoding version and the fields of a value.
fn dumped(payload: &[u8]) -> (i32, Fields) {
    let (mut bytes, checked) = payload.split_at(payload.len() - 10);
    assert_eq!((bytes[0], checked[0]), (7, 10));
    bytes = &bytes[1..];
    let version = length(&mut bytes) & 0x3ff;
    let mut fields = Fields::default();
    loop {
        match length(&mut bytes) {
            0 => break,
            2 => fields.0.push_back(Field::Unsigned(length(&mut bytes))),
            4 => {
                let (number, rest) = bytes.split_at(8);
                let number = f64::from_le_bytes(number.try_into().unwrap());
                fields.0.push_back(Field::Double(number));
                bytes = rest;
            }
            5 => fields.0.push_back(Field::Bytes(string(&mut bytes))),
            other => panic!("{other}"),
        }
    }
    (version as i32, fields)
}

// ---- Captures -----------------------------------------------------------------------------------

struct Golden {
    name: String,
    members: Vec<String>,
    chunks: Vec<(u64, Vec<u8>)>,
    dump: Vec<u8>,
    size: u64,
    false_positives: Vec<u64>,
}

fn hex(text: &serde_json::Value) -> Vec<u8> {
    let digits = text.as_str().unwrap().as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

fn captures(family: &str) -> Vec<Golden> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/redisbloom/filters.json");
    let all: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let items = |range: std::ops::Range<u64>| range.map(|item| format!("item:{item}")).collect();
    let mut golden = Vec::new();
    for (name, key) in all["keys"].as_object().unwrap() {
        if !name.starts_with(family) {
            continue;
        }
        let members: Vec<_> = match all["members"][name].as_str().unwrap() {
            "item:0..799" => items(0..800),
            "item:0..499" => items(0..500),
            "only" => vec!["only".to_owned()],
            other if other.starts_with("item:200..799 ") => items(200..800),
            other => panic!("{other}"),
        };
        let chunks = key["scandump"].as_array().unwrap().iter();
        let info = key["info"].as_array().unwrap();
        let size = info.iter().position(|word| word == "Size").unwrap() + 1;
        golden.push(Golden {
            name: name.clone(),
            members,
            chunks: chunks.map(|chunk| (chunk[0].as_u64().unwrap(), hex(&chunk[1]))).collect(),
            dump: hex(&key["dump"]),
            size: info[size].as_u64().unwrap(),
            false_positives: key["false_positives_in_item_100000_103999"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item.as_u64().unwrap())
                .collect(),
        });
    }
    golden
}

impl Golden {
    fn assert_found(&self, contains: impl Fn(&[u8]) -> bool) {
        for member in &self.members {
            assert!(contains(member.as_bytes()), "{} {member}", self.name);
        }
        let absent = 100_000..104_000u64;
        let found: Vec<_> = absent.filter(|at| contains(format!("item:{at}").as_bytes())).collect();
        assert_eq!(found, self.false_positives, "{}", self.name);
    }
}

const NO_LIMIT: u64 = u64::MAX;

#[test]
fn bloom_filters_equal_redisblooms() {
    let captures = captures("bf:");
    assert_eq!(captures.len(), 4);
    for golden in captures {
        let (version, fields) = dumped(&golden.dump);
        let mut input = fields.clone();
        let filter = Bloom::load(version, &mut input).unwrap();
        assert!(input.0.is_empty());
        let mut saved = Fields::default();
        filter.save(&mut saved);
        assert_eq!(saved, fields, "{}", golden.name);

        let mut loaded = Bloom::from_header(&golden.chunks[0].1, NO_LIMIT).unwrap();
        for (position, chunk) in &golden.chunks[1..] {
            loaded.put_chunk(*position, chunk).unwrap();
        }
        for filter in [&filter, &loaded, &filter.copy().unwrap()] {
            golden.assert_found(|key| filter.contains(filter.hash(key)));
            assert_eq!(bloom_chunks(filter), golden.chunks, "{}", golden.name);
            assert_eq!(filter.size(), golden.size, "{}", golden.name);
        }
        let (keys, rate, growth) = match golden.name.as_str() {
            "bf:fixed" => (1000, 0.01, None),
            "bf:scaled" => (50, filter.fpr(), Some(2)),
            "bf:x4" => (30, 0.02, Some(4)),
            _ => (100, 0.01, Some(2)),
        };
        assert!((filter.fpr() - rate).abs() < 1e-9, "{} {}", golden.name, filter.fpr());
        let mut recreated = Bloom::reserve(keys, rate, growth, NO_LIMIT).unwrap();
        for member in &golden.members {
            recreated.add(recreated.hash(member.as_bytes()), NO_LIMIT).unwrap();
        }
        assert_eq!(bloom_chunks(&recreated), golden.chunks, "{}", golden.name);
    }
}

#[test]
fn cuckoo_filters_equal_redisblooms() {
    let captures = captures("cf:");
    assert_eq!(captures.len(), 2);
    for golden in captures {
        let (version, fields) = dumped(&golden.dump);
        let mut input = fields.clone();
        let filter = Cuckoo::load(version, &mut input).unwrap();
        assert!(input.0.is_empty());
        let mut saved = Fields::default();
        filter.save(&mut saved);
        assert_eq!(saved, fields, "{}", golden.name);

        let mut loaded = Cuckoo::from_header(&golden.chunks[0].1, NO_LIMIT).unwrap().unwrap();
        for (position, chunk) in &golden.chunks[1..] {
            loaded.put_chunk(*position, chunk).unwrap();
        }
        for filter in [&filter, &loaded, &filter.copy().unwrap()] {
            golden.assert_found(|key| filter.contains(Cuckoo::hash(key)));
            assert_eq!(cuckoo_chunks(filter), golden.chunks, "{}", golden.name);
            assert_eq!(filter.size(), golden.size, "{}", golden.name);
        }
        let mut recreated = Cuckoo::new(filter.params(), NO_LIMIT).unwrap();
        let hash = |item: u64| Cuckoo::hash(format!("item:{item}").as_bytes());
        (0..800).for_each(|item| recreated.insert(hash(item), || NO_LIMIT).unwrap());
        if golden.name == "cf:grown" {
            (0..200).for_each(|item| assert!(recreated.delete(hash(item))));
        }
        assert_eq!(cuckoo_chunks(&recreated), golden.chunks, "{}", golden.name);
    }
}

// ---- Corrupt data -------------------------------------------------------------------------------

#[test]
fn altered_fields_are_rejected_or_harmless() {
    let odd = [0, 1, 2, 3, 7, 8, 255, 256, 65_536, 1 << 32, 1 << 40, 1 << 62, 1 << 63, u64::MAX];
    for golden in captures("") {
        let (version, fields) = dumped(&golden.dump);
        let bloom = golden.name.starts_with("bf:");
        let reads = |fields: &Fields, version| {
            if bloom { use_bloom(fields, version) } else { use_cuckoo(fields, version) }
        };
        assert!(reads(&fields, version), "{}", golden.name);
        for at in 0..fields.0.len() {
            let mut cut = fields.clone();
            cut.0.truncate(at);
            assert!(!reads(&cut, version), "{} cut at {at}", golden.name);
            let others: Vec<Field> = match &fields.0[at] {
                Field::Unsigned(number) => odd
                    .iter()
                    .chain(&[number + 1, number.wrapping_sub(1), number * 2, number / 2])
                    .map(|number| Field::Unsigned(*number))
                    .chain([Field::Bytes(Box::default())])
                    .collect(),
                Field::Double(number) => {
                    [0.0, -0.0, 1.0, -1.0, 5e-324, f64::MAX, f64::INFINITY, f64::NAN, number * 1.1]
                        .map(Field::Double)
                        .into()
                }
                Field::Bytes(bytes) => vec![
                    Field::Bytes(Box::default()),
                    Field::Bytes(bytes[1..].into()),
                    Field::Bytes([bytes, &[1u8][..]].concat().into()),
                    Field::Bytes(vec![0xff; bytes.len()].into()),
                    Field::Unsigned(7),
                ],
            };
            for other in others {
                let mut altered = fields.clone();
                altered.0[at] = other;
                (0..=5).for_each(|version| _ = reads(&altered, version));
            }
        }
    }
}

#[test]
fn altered_headers_are_rejected_or_harmless() {
    let mut random = Rng::new(7);
    for golden in captures("") {
        let (_, header) = &golden.chunks[0];
        for length in 0..header.len() {
            assert!(Bloom::from_header(&header[..length], NO_LIMIT).is_err());
            assert!(
                Cuckoo::from_header(&header[..length], NO_LIMIT).is_none_or(|read| read.is_err())
            );
        }
        for round in 0..2000 {
            let mut header = header.clone();
            for _ in 0..=round % 3 {
                let at = random.below(header.len());
                header[at] = random.next_u64() as u8 >> random.below(8);
            }
            let limit = 1 << 20;
            let position = random.below(5000) as u64;
            if let Ok(mut filter) = Bloom::from_header(&header, limit) {
                assert!(filter.memory_usage() <= limit);
                _ = filter.put_chunk(position, &golden.chunks[1].1);
                _ = filter.add(filter.hash(b"key"), limit);
                assert!(filter.chunk(position).is_none_or(|(next, _)| next > position));
            }
            if let Some(Ok(mut filter)) = Cuckoo::from_header(&header, limit) {
                assert!(filter.memory_usage() <= limit);
                _ = filter.put_chunk(position, &golden.chunks[1].1);
                _ = filter.insert(Cuckoo::hash(b"key"), || limit);
                assert!(filter.chunk(position).is_none_or(|(next, _)| next > position));
            }
        }
    }
}

/// Checking each layer against all older ones would take minutes for a header of 38 bytes.
#[test]
fn header_with_many_layers_loads_fast() {
    let mut header =
        Cuckoo::new(CuckooParams::new(2, 1, 20, 1).unwrap(), NO_LIMIT).unwrap().header();
    header[24..32].copy_from_slice(&65_535u64.to_le_bytes());
    let filter = Cuckoo::from_header(&header, NO_LIMIT).unwrap().unwrap();
    assert_eq!(filter.layers(), 65_535);
}

#[test]
fn growth_stops_at_its_limits() {
    for (keys, expected) in [(1 << 40, FilterError::MemoryLimit), (1 << 60, FilterError::TooLarge)]
    {
        assert_eq!(Bloom::reserve(keys, 0.01, None, 1 << 30).unwrap_err(), expected);
    }
    let mut filter = Bloom::reserve(10, 0.01, Some(2), 300).unwrap();
    let error = (0..100u32).find_map(|key| filter.add(filter.hash(&key.to_le_bytes()), 300).err());
    assert_eq!(error, Some(FilterError::MemoryLimit));
    assert!(filter.memory_usage() <= 300);

    let params = CuckooParams::new(1 << 40, 2, 20, 1).unwrap();
    assert_eq!(Cuckoo::new(params, 1 << 30).unwrap_err(), FilterError::MemoryLimit);
    for (expansion, limit, expected) in
        [(0, NO_LIMIT, FilterError::Full), (2, 200, FilterError::MemoryLimit)]
    {
        let params = CuckooParams::new(8, 2, 20, expansion).unwrap();
        let mut filter = Cuckoo::new(params, limit).unwrap();
        let mut error = (0..20_000u32)
            .map(|key| filter.insert(Cuckoo::hash(&key.to_le_bytes()), || limit).err());
        assert_eq!(error.find_map(|error| error), Some(expected));
        // The grown filter can be loaded.
        let loaded = Cuckoo::from_header(&filter.header(), limit);
        assert_eq!(loaded.unwrap().unwrap().layers(), filter.layers());
        assert!(filter.memory_usage() <= limit);
    }
}

#[test]
fn arbitrary_bytes_are_rejected_or_harmless() {
    let mut random = Rng::new(9);
    for length in 0..3000 {
        let data = random.bytes(length % 300);
        super::fuzz_checks::fields(&data);
        super::fuzz_checks::chunks(&data);
    }
}
