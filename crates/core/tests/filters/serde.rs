//! The feature `serde`: filters as the bytes of a file.
#![cfg(feature = "serde")]

use petal::{AnyFilter, BloomFilter, CountingBloomFilter, StaticFilter};

#[test]
fn filters_survive_json() {
    let mut bloom = BloomFilter::with_fpr(1000, 0.01).unwrap();
    bloom.extend(0..500u32);
    let json = serde_json::to_string(&bloom).unwrap();
    let copy: BloomFilter = serde_json::from_str(&json).unwrap();
    assert!(copy == bloom);
    let any: AnyFilter = serde_json::from_str(&json).unwrap();
    assert!(matches!(any, AnyFilter::Bloom(filter) if filter == bloom));
    let fixed = StaticFilter::build(&[1u64, 2, 3], 0.01).unwrap();
    let copy: StaticFilter = serde_json::from_str(&serde_json::to_string(&fixed).unwrap()).unwrap();
    assert!(copy == fixed);
}

#[test]
fn another_type_and_damaged_bytes_are_errors() {
    let bloom = BloomFilter::with_fpr(1000, 0.01).unwrap();
    let mut bytes: Vec<u8> = serde_json::from_str(&serde_json::to_string(&bloom).unwrap()).unwrap();
    let json = serde_json::to_string(&bytes).unwrap();
    assert!(serde_json::from_str::<BloomFilter>(&json).is_ok());
    assert!(serde_json::from_str::<CountingBloomFilter>(&json).is_err());
    bytes[300] ^= 1;
    let json = serde_json::to_string(&bytes).unwrap();
    assert!(serde_json::from_str::<BloomFilter>(&json).is_err());
    assert!(serde_json::from_str::<BloomFilter>("[1, 2]").is_err());
}
