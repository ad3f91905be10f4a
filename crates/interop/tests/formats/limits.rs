//! Limits of the formats: petal refuses what their libraries refuse.

use petal_interop::{ForeignFilter, Format, KeyType};

use crate::common::{self, answers, filled, lines, manifest, old_redisbloom};

fn golden(file: &str) -> common::Golden {
    manifest().into_iter().find(|golden| golden.file == file).unwrap()
}

#[test]
fn full_pybloom_filter_refuses_keys() {
    let mut filter = ForeignFilter::with_fpr(Format::Pybloom, 5, 0.001).unwrap();
    let put = |filter: &mut ForeignFilter, key: u32| filter.insert(key.to_string().as_bytes());
    // The library checks its count before it adds, so one key more than the capacity fits.
    (0..6).for_each(|key| assert!(put(&mut filter, key).unwrap()));
    assert!(put(&mut filter, 0).unwrap_err().is_full());
    assert_eq!(filter.stats().counted, Some(6));
    assert!(filter.contains(b"5").unwrap());
}

#[test]
fn full_poppy_filter_refuses_keys_that_set_bits() {
    let mut filter = ForeignFilter::with_fpr(Format::Poppy, 5, 0.001).unwrap();
    for key in ["a", "b", "c", "d", "e"] {
        assert!(filter.insert(key.as_bytes()).unwrap());
    }
    let before = filter.as_bytes().to_vec();
    assert!(filter.insert(b"f").unwrap_err().is_full());
    assert!(!filter.insert(b"a").unwrap() && !filter.contains(b"f").unwrap());
    assert!(filter.as_bytes() == before);
    assert_eq!(filter.stats().counted, Some(5));
}

/// Short keys are their own hash, padded with zeros.
#[test]
fn poppy_does_not_hash_keys_of_up_to_8_bytes() {
    let filter = filled(Format::Poppy, KeyType::Text, 5, 1e-9, &["1234567".to_owned()]);
    assert!(filter.contains(b"1234567\0").unwrap());
    assert!(!filter.contains(b"1234567\0\0").unwrap());
}

#[test]
fn poppy_keeps_user_data() {
    let data = b"who made it";
    let file = [filled(Format::Poppy, KeyType::Text, 5, 0.1, &[]).as_bytes(), data].concat();
    let mut filter = ForeignFilter::from_bytes(file, None).unwrap();
    filter.insert(b"a key").unwrap();
    filter.union(&filled(Format::Poppy, KeyType::Text, 5, 0.1, &["x".to_owned()])).unwrap();
    assert!(filter.contains(b"a key").unwrap() && filter.contains(b"x").unwrap());
    assert_eq!(filter.stats().counted, Some(2));
    assert!(filter.as_bytes().ends_with(data) && filter.stats().variant().contains("11 bytes"));
}

#[test]
fn pybloom_union_resets_the_count() {
    let [mut a, b] = [["x"], ["y"]]
        .map(|keys| filled(Format::Pybloom, KeyType::Text, 5, 0.01, &keys.map(str::to_owned)));
    a.union(&b).unwrap();
    assert!(a.contains(b"x").unwrap() && a.contains(b"y").unwrap());
    assert_eq!(a.stats().counted, Some(0));
}

#[test]
fn scalable_pybloom_filter_is_read_only() {
    let mut filter = golden("pybloom-scalable-text").filter();
    assert!(filter.stats().layers > 1);
    assert!(filter.insert(b"more").is_err());
}

#[test]
fn redisbloom_chunks_equal_scandump() {
    let filter = golden("redisbloom-grown").filter();
    let chunks: Vec<_> = filter.redisbloom_chunks().unwrap().collect();
    let reached: Vec<_> = chunks.iter().map(|(number, _)| *number).collect();
    assert_eq!(reached, [1, 105, 321, 793, 1801, 3961]);
    let all: Vec<u8> = chunks.iter().flat_map(|(_, chunk)| chunk.iter().copied()).collect();
    assert_eq!(all, filter.as_bytes());

    // The maximum is 16 MiB.
    let large = ForeignFilter::with_fpr(Format::RedisBloom, 20_000_000, 0.01).unwrap();
    let lengths: Vec<_> =
        large.redisbloom_chunks().unwrap().map(|(_, chunk)| chunk.len()).collect();
    assert_eq!(lengths[..2], [73, 16 << 20]);
    assert_eq!(lengths.iter().sum::<usize>(), large.as_bytes().len());
    assert!(ForeignFilter::with_fpr(Format::Guava, 9, 0.1).unwrap().redisbloom_chunks().is_err());
}

#[test]
fn full_nonscaling_redisbloom_filter_refuses_keys() {
    let mut filter = golden("redisbloom-nonscaling").filter();
    let mut key = 0;
    let full = loop {
        key += 1;
        if let Err(error) = filter.insert(format!("more {key}").as_bytes()) {
            break error;
        }
    };
    assert!(full.is_full());
    assert_eq!(filter.stats().counted, Some(1000));
    assert!(!filter.insert(b"item:1").unwrap(), "what it holds is no more");
}

/// The captured filter with `EXPANSION 4`, from its first link on.
#[test]
fn redisbloom_grows_by_its_own_factor() {
    const FIRST: usize = 20 + 53;
    let golden = golden("redisbloom-expansion");
    let bytes = golden.bytes();
    let bits = u64::from_le_bytes(bytes[20..28].try_into().unwrap()) as usize;
    let mut start = bytes[..FIRST].to_vec();
    start[..8].fill(0); // keys
    start[8] = 1; // links
    start[36..44].fill(0); // keys of the link
    start.resize(FIRST + bits, 0);
    let mut filter = ForeignFilter::from_bytes(start, Some(Format::RedisBloom)).unwrap();
    for member in golden.members() {
        filter.insert(member.as_bytes()).unwrap();
    }
    assert!(filter.as_bytes() == bytes);
    filter.verify().unwrap();
}

/// Old filters, of which there is no capture: sizes are powers of two, hashes have 32 bits.
#[test]
fn old_redisbloom_filter_is_filled_to_capacity() {
    let mut old = old_redisbloom(0);
    let mut filter = ForeignFilter::from_bytes(old.clone(), None).unwrap();
    let keys: Vec<_> = (0..30).map(|key| format!("key {key}")).collect();
    keys.iter().for_each(|key| assert!(filter.insert(key.as_bytes()).is_ok()));
    assert_eq!(answers(&filter, &keys), "1".repeat(30));
    let full = (0..).map(|key: u32| filter.insert(&key.to_le_bytes())).find_map(Result::err);
    assert!(full.unwrap().is_full());

    old[72] = 10; // more than there are
    assert!(ForeignFilter::from_bytes(&old, Some(Format::RedisBloom)).unwrap_err().is_malformed());
    old[72] = 0; // is not known to be hashed in one way only
    assert!(ForeignFilter::from_bytes(&old, Some(Format::RedisBloom)).unwrap_err().is_malformed());
}

#[test]
fn squid_digest_has_the_bits_for_its_rate() {
    for (rate, bits) in [(0.99, 5), (0.1, 5), (0.025, 8), (0.01, 11), (1e-6, 125)] {
        let filter = ForeignFilter::with_fpr(Format::SquidDigest, 1000, rate).unwrap();
        assert_eq!(filter.stats().bits, bits * 1000, "{rate}");
    }
    let keys: Vec<_> = (0..2000).map(|key| format!("http://{key}.example/")).collect();
    let filter = filled(Format::SquidDigest, KeyType::Text, 2000, 0.02, &keys);
    assert!((0.01..=0.021).contains(&filter.stats().estimated_fpr));
    let full = filled(Format::SquidDigest, KeyType::Text, 500, 0.02, &keys);
    assert_eq!(full.stats().warnings.len(), filter.stats().warnings.len() + 1, "useless to Squid");
    assert!(ForeignFilter::with_fpr(Format::SquidDigest, 1000, 1e-7).unwrap_err().is_limit());
    assert!(ForeignFilter::with_fpr(Format::SquidDigest, 1 << 30, 0.1).unwrap_err().is_limit());
}

#[test]
fn rates_without_probes_are_errors() {
    assert!(ForeignFilter::with_fpr(Format::Rbloom, 600, 0.9).unwrap_err().is_limit());
    assert!(ForeignFilter::with_fpr(Format::Pybloom, 600, 1e-320).unwrap_err().is_limit());
    assert!(ForeignFilter::with_fpr(Format::RedisBloom, 600, 5e-324).unwrap_err().is_limit());
    assert!(ForeignFilter::with_fpr(Format::Poppy, 600, 1e-310).unwrap_err().is_limit());
}

#[test]
fn set_padding_bits_are_errors() {
    for (format, last) in [(Format::GoBloom, 24), (Format::Pybloom, 46)] {
        let mut bytes = filled(format, KeyType::Text, 5, 0.01, &lines("five.txt"));
        assert!(bytes.verify().is_ok());
        let mut damaged = bytes.as_bytes().to_vec();
        damaged[last] |= 0x80;
        bytes = ForeignFilter::from_bytes(damaged, Some(format)).unwrap();
        assert!(bytes.verify().unwrap_err().is_malformed(), "{format}");
    }
}
