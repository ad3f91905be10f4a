//! A file pushed in arbitrary pieces is accepted exactly when the reader accepts it, and is the
//! same filter.
//!
//! How it is cut comes of a hash of it. As checksums would stop nearly every mutation at the door,
//! it is tried as it is and with lengths and checksums made right.
#![no_main]

#[path = "../../crates/core/tests/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;
use naive::mend;
use petal::{AnyFilter, Error, Receiver};
use xxhash_rust::xxh3::xxh3_64;

/// Data that a receiver takes; more than any input has.
const MOST: u64 = 1 << 20;
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
        mend(&mut file);
        examine(cuts, &file);
    }
});

fn examine(cuts: &[u8; 8], file: &[u8]) {
    let read = AnyFilter::read_from(file);
    let received = receive(Receiver::file(MOST), cuts, file);
    match (&read, &received) {
        (Ok((read, metadata)), Ok((received, same))) => {
            assert_eq!(metadata, same);
            assert!(bytes(read, metadata) == bytes(received, metadata), "another filter");
            let image = read.image();
            let mut carried = image.header().to_vec();
            while let piece @ [_, ..] = image.read((carried.len() - HEADER) as u64, length(cuts, 0))
            {
                carried.extend_from_slice(piece);
            }
            let (again, _) = receive(Receiver::image(MOST), cuts, &carried).expect("a sound image");
            assert!(bytes(read, "") == bytes(&again, ""), "not what was carried");
        }
        (Err(_), Err(_)) => {}
        _ => panic!("read {:?}, received {:?}", read.err(), received.err()),
    }
}

/// Pieces of lengths that come round again.
fn receive(
    mut receiver: Receiver,
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

/// From 1 byte to 64 KiB.
fn length(cuts: &[u8; 8], at: usize) -> usize {
    let cut = cuts[at % cuts.len()];
    1 + (usize::from(cut) >> 4 << (cut & 15))
}

fn bytes(filter: &AnyFilter, metadata: &str) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file, metadata).expect("memory takes it");
    file
}
