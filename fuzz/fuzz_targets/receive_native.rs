//! A file that is pushed in chunks is accepted if and only if the reader accepts it, and gives the same filter.
//!
//! The lengths of the chunks depend on a hash of the file. Checksums reject nearly every mutation, so the file is tried
//! as it is and with corrected lengths and checksums.
#![no_main]

#[path = "../../crates/core/tests/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;
use naive::update_checksums;
use petal::embed::StreamDecoder;
use petal::{AnyFilter, Error};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum size of a filter; more than any input.
const MAX_BYTES: u64 = 1 << 20;
const HEADER: usize = 256;

fuzz_target!(|file: &[u8]| {
    let cuts = &xxh3_64(file).to_le_bytes();
    examine(cuts, file);
    let stated = file.get(32..36).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize);
    let Some(data_at) = stated.map(|stated| (HEADER + stated).next_multiple_of(4096)) else {
        return;
    };
    if file.len() >= data_at {
        let mut file = file.to_vec();
        file[..10].copy_from_slice(b"\x89PETAL\r\n\x01\x00");
        file[16..24].copy_from_slice(&(data_at as u64).to_le_bytes());
        let length = file.len() - data_at;
        file[24..32].copy_from_slice(&(length as u64).to_le_bytes());
        update_checksums(&mut file);
        examine(cuts, &file);
    }
});

fn examine(cuts: &[u8; 8], file: &[u8]) {
    let read = AnyFilter::read_from(file);
    let received = receive(StreamDecoder::file(MAX_BYTES), cuts, file);
    match (&read, &received) {
        (Ok((read, metadata)), Ok((received, same))) => {
            assert_eq!(metadata, same);
            assert!(bytes(read, metadata) == bytes(received, metadata), "another filter");
            let image = read.serialized();
            let mut carried = image.header().to_vec();
            while let piece @ [_, ..] = image.read((carried.len() - HEADER) as u64, length(cuts, 0))
            {
                carried.extend_from_slice(piece);
            }
            let (again, _) = receive(StreamDecoder::serialized(MAX_BYTES), cuts, &carried)
                .expect("a sound image");
            assert!(bytes(read, "") == bytes(&again, ""), "not what was carried");
        }
        (Err(_), Err(_)) => {}
        _ => panic!("read {:?}, received {:?}", read.err(), received.err()),
    }
}

/// Pushes chunks of these lengths in turn.
fn receive(
    mut receiver: StreamDecoder,
    cuts: &[u8; 8],
    mut bytes: &[u8],
) -> Result<(AnyFilter, String), Error> {
    for at in 0.. {
        let (now, later) = bytes.split_at(bytes.len().min(length(cuts, at)));
        receiver.push(now)?;
        bytes = later;
        if bytes.is_empty() {
            break;
        }
    }
    receiver.finish()
}

/// Returns a length from 1 byte to 64 KiB.
fn length(cuts: &[u8; 8], at: usize) -> usize {
    let cut = cuts[at % cuts.len()];
    1 + (usize::from(cut) >> 4 << (cut & 15))
}

fn bytes(filter: &AnyFilter, metadata: &str) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, metadata).expect("memory takes it");
    file
}
