//! Any bytes give an error or a valid filter: no panic, no large allocation, no lie.
//!
//! Checksums would stop nearly every mutation at the door, so the input is tried as it is, and
//! again as the parts of a file whose checksums (and lengths) are made right.
#![no_main]

#[path = "../../crates/core/tests/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;
use naive::{Naive, mend};
use petal::{Answers, AnyFilter, BloomFilter, ClassicBloomFilter, verify_bytes};
use xxhash_rust::xxh3::xxh3_64;

const HEADER: usize = 256;

fuzz_target!(|input: &[u8]| {
    examine(input);
    if let Some((header, rest)) = input.split_first_chunk::<HEADER>() {
        examine(&repaired(*header, rest, false));
        examine(&repaired(*header, rest, true));
    }
});

/// A whole file from the parts of one: header, metadata, data. Magic, version, offset and sums
/// are made right, and the length of the data if asked for.
fn repaired(mut header: [u8; HEADER], rest: &[u8], length_too: bool) -> Vec<u8> {
    let stated = u32::from_le_bytes([header[32], header[33], header[34], header[35]]) as usize;
    let (metadata, data) = rest.split_at(stated.min(rest.len()));
    // As the seeds are whole files, their padding is in the way of their data.
    let padding = data.iter().take(4096 - HEADER).take_while(|byte| **byte == 0).count();
    let data = &data[padding..];
    let data = &data[..data.len() / 64 * 64];
    let data_at = (HEADER + metadata.len()).next_multiple_of(4096);
    header[..10].copy_from_slice(b"\x89PETAL\r\n\x01\x00");
    header[16..24].copy_from_slice(&(data_at as u64).to_le_bytes());
    if length_too {
        header[24..32].copy_from_slice(&(data.len() as u64).to_le_bytes());
    }
    let mut file = [&header, metadata].concat();
    file.resize(data_at, 0);
    file.extend_from_slice(data);
    mend(&mut file);
    file
}

fn examine(bytes: &[u8]) {
    // A copy that begins at a cache line.
    let mut room = vec![0; bytes.len() + 64];
    let start = room.as_ptr().align_offset(64);
    room[start..start + bytes.len()].copy_from_slice(bytes);
    let file = &room[start..start + bytes.len()];

    let blocked = BloomFilter::from_bytes(file);
    let classic = ClassicBloomFilter::from_bytes(file);
    assert!(blocked.is_err() || classic.is_err());
    // Damaged data may be opened and asked; it must not panic.
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

    // Sound bytes: the same bytes again, the naive reading's answers, numbers that are numbers.
    let mut again = Vec::new();
    filter.write_to(&mut again, &metadata).expect("memory takes it");
    assert!(again == file, "not the same file again");
    let asked: Vec<u64> = hashes(file).collect();
    let mut found = Answers::new();
    filter.face().contains_mixed_hashes(&asked, &mut found);
    // The other types have models of their own; here they are only to answer.
    if let AnyFilter::Bloom(_) | AnyFilter::Classic(_) = &filter {
        let (naive, _) = Naive::from_file(file);
        for (at, hash) in asked.into_iter().enumerate() {
            assert_eq!(found.get(at), naive.contains(hash), "{hash:#x}");
        }
    }
    let _ = (filter.face().capacity_left(), filter.face().describe());
    assert!(
        (0.0..=1.0).contains(&filter.face().estimated_rate()),
        "{}",
        filter.face().estimated_rate()
    );
    assert!((0.0..=1.0).contains(&filter.face().fill_ratio()));
    assert!(filter.face().estimated_len() >= 0.0);
}

/// Sixteen hashes that depend on the bytes.
fn hashes(file: &[u8]) -> impl Iterator<Item = u64> {
    let first = xxh3_64(file);
    (0..16u64).map(move |at| first.wrapping_mul(2 * at + 1).rotate_left(at as u32 * 7))
}
