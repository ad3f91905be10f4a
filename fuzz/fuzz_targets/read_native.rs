//! Any bytes are an error or a valid filter: no panic, no large allocation, no wrong answer.
//!
//! Checksums reject nearly every mutation, so the input is tried as it is, and as the parts of a file whose checksums
//! (and lengths) are corrected.
#![no_main]

#[path = "../../crates/core/tests/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;
use naive::{Naive, update_checksums};
use petal::{AnyFilter, BatchResults, BloomFilter, ClassicBloomFilter, verify_bytes};
use xxhash_rust::xxh3::xxh3_64;

const HEADER: usize = 256;

fuzz_target!(|input: &[u8]| {
    examine(input);
    if let Some((header, rest)) = input.split_first_chunk::<HEADER>() {
        examine(&repaired(*header, rest, false));
        examine(&repaired(*header, rest, true));
    }
});

/// Makes a file from the parts of one: header, metadata, data. Magic, version, offset and checksums are corrected, the
/// length of the data if `fix_length` is set.
fn repaired(mut header: [u8; HEADER], rest: &[u8], fix_length: bool) -> Vec<u8> {
    let stated = u32::from_le_bytes([header[32], header[33], header[34], header[35]]) as usize;
    let (metadata, data) = rest.split_at(stated.min(rest.len()));
    // The seeds are whole files with padding before the data.
    let padding = data.iter().take(4096 - HEADER).take_while(|byte| **byte == 0).count();
    let data = &data[padding..];
    let data = &data[..data.len() / 64 * 64];
    let data_at = (HEADER + metadata.len()).next_multiple_of(4096);
    header[..10].copy_from_slice(b"\x89PETAL\r\n\x01\x00");
    header[16..24].copy_from_slice(&(data_at as u64).to_le_bytes());
    if fix_length {
        header[24..32].copy_from_slice(&(data.len() as u64).to_le_bytes());
    }
    let mut file = [&header, metadata].concat();
    file.resize(data_at, 0);
    file.extend_from_slice(data);
    update_checksums(&mut file);
    file
}

fn examine(bytes: &[u8]) {
    // A copy that is aligned to a cache line.
    let mut aligned = vec![0; bytes.len() + 64];
    let start = aligned.as_ptr().align_offset(64);
    aligned[start..start + bytes.len()].copy_from_slice(bytes);
    let file = &aligned[start..start + bytes.len()];

    let blocked = BloomFilter::from_bytes(file);
    let classic = ClassicBloomFilter::from_bytes(file);
    assert!(blocked.is_err() || classic.is_err());
    // Damaged data may be opened and queried without a panic.
    for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
        let _ = blocked.as_ref().is_ok_and(|filter| filter.contains_mixed_hash(hash));
        let _ = classic.as_ref().is_ok_and(|filter| filter.contains_mixed_hash(hash));
    }

    let verified = verify_bytes(file);
    let read = AnyFilter::read_from(file);
    assert_eq!(verified.is_ok(), read.is_ok(), "{verified:?} {read:?}");
    for error in [verified.as_ref().err(), read.as_ref().err()].into_iter().flatten() {
        let text = error.to_string();
        assert!(!text.is_empty() && !text.contains('\n'), "{text}");
    }
    let Ok((filter, metadata)) = read else { return };

    // A valid file is written unchanged, has the results of the naive filter, and figures within their ranges.
    let mut again = Vec::new();
    filter.write_to(&mut again, &metadata).expect("memory takes it");
    assert!(again == file, "another file was written");
    let queries: Vec<u64> = hashes(file).collect();
    let mut found = BatchResults::new();
    filter.as_dyn().contains_mixed_hashes(&queries, &mut found);
    // The other types have their own fuzz targets.
    if let AnyFilter::Bloom(_) | AnyFilter::Classic(_) = &filter {
        let (naive, _) = Naive::from_file(file);
        for (at, hash) in queries.into_iter().enumerate() {
            assert_eq!(found.get(at), naive.contains(hash), "{hash:#x}");
        }
    }
    let stats = filter.as_dyn().stats();
    assert!((0.0..=1.0).contains(&stats.estimated_fpr), "{}", stats.estimated_fpr);
    assert!((0.0..=1.0).contains(&stats.fill_ratio));
    assert!(stats.estimated_len >= 0.0);
}

/// Sixteen hashes that depend on the bytes.
fn hashes(file: &[u8]) -> impl Iterator<Item = u64> {
    let first = xxh3_64(file);
    (0..16u64).map(move |at| first.wrapping_mul(2 * at + 1).rotate_left(at as u32 * 7))
}
