//! Files that are damaged, cut short or made to harm: an error or a filter, never a panic, and
//! never much memory.

mod common;

use common::manifest;
use petal_interop::{Foreign, Format};

/// Uses a filter in every way.
fn use_up(mut filter: Foreign) {
    let _ = (filter.facts(), filter.verify(), filter.contains(b"key"));
    let _ = filter.insert(b"key");
    let copy = Foreign::from_bytes(filter.as_bytes().to_vec(), Some(filter.format()));
    if let Ok(copy) = copy {
        let _ = filter.union(&copy);
    }
    if let Ok(chunks) = filter.redisbloom_chunks() {
        assert_eq!(chunks.map(|(_, bytes)| bytes.len()).sum::<usize>(), filter.as_bytes().len());
    }
}

/// The golden files that are small, each with its format.
fn small() -> Vec<(Vec<u8>, Format)> {
    let golden = manifest().into_iter().filter_map(|golden| {
        let (bytes, format) = (golden.bytes(), golden.format()?);
        (bytes.len() < 1500 && !golden.is_packed()).then_some((bytes, format))
    });
    golden.collect()
}

#[test]
fn cut_files_are_refused_or_used() {
    for (bytes, format) in small() {
        for length in 0..bytes.len() {
            if let Ok(filter) = Foreign::from_bytes(bytes[..length].to_vec(), Some(format)) {
                use_up(filter);
            }
            let _ = Foreign::from_bytes(&bytes[..length], None);
        }
    }
}

#[test]
fn changed_headers_are_refused_or_used() {
    for (bytes, format) in small() {
        for at in 0..bytes.len().min(320) {
            for width in [1, 4, 8] {
                for value in [0, 1, 2, 0x7f, 0x80, 0xff] {
                    let mut bytes = bytes.clone();
                    let end = bytes.len().min(at + width);
                    bytes[at..end].fill(value);
                    if let Ok(filter) = Foreign::from_bytes(bytes, Some(format)) {
                        use_up(filter);
                    }
                }
            }
        }
    }
}

#[test]
fn claims_without_bytes_are_refused() {
    for format in Format::ALL {
        for length in [0, 1, 4, 8, 20, 32, 41, 64, 73, 128, 200] {
            for value in [0, 1, 0x7f, 0xff] {
                if let Ok(filter) = Foreign::from_bytes(vec![value; length], Some(format)) {
                    use_up(filter);
                }
            }
        }
    }
}
