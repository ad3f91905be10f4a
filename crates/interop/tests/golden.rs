//! Files written by the programs themselves: what they hold, what they answer, and that petal
//! writes the same.

mod common;

use common::{answers, manifest};
use petal_interop::{Foreign, Format};
use sha2::{Digest, Sha256};

#[test]
fn golden_files_are_what_the_manifest_says() {
    for golden in manifest() {
        let sum = Sha256::digest(golden.bytes());
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sum, golden.sum, "{}", golden.file);
    }
}

#[test]
fn every_format_has_golden_files() {
    for format in Format::ALL {
        let there = manifest().iter().any(|golden| golden.format() == Some(format));
        assert!(there, "{format}");
    }
}

#[test]
fn no_member_of_a_golden_file_is_missed() {
    for golden in manifest().iter().filter(|golden| golden.format().is_some()) {
        let filter = golden.filter();
        for member in golden.members() {
            assert!(filter.contains(member.as_bytes()).unwrap(), "{}: {member}", golden.file);
        }
        filter.verify().unwrap_or_else(|error| panic!("{}: {error}", golden.file));
    }
}

#[test]
fn golden_files_are_answered_as_their_producer_answers() {
    let mut asked = 0;
    for golden in manifest().iter().filter(|golden| golden.format().is_some()) {
        let Some(expect) = golden.answers() else { continue };
        assert_eq!(answers(&golden.filter(), &golden.asked()), expect, "{}", golden.file);
        asked += 1;
    }
    assert!(asked >= 1, "no answers");
}

#[test]
fn golden_files_are_recognised() {
    for golden in manifest() {
        let Some(format) = golden.format() else { continue };
        let found = Foreign::read_from(&golden.bytes()[..], None, u64::MAX);
        if format.is_told_by_its_bytes() {
            assert_eq!(found.unwrap().format(), format, "{}", golden.file);
        } else {
            assert!(found.is_err(), "{}", golden.file);
        }
    }
}

/// Where petal would choose another header, it fills the one that is there as the program did.
#[test]
fn an_emptied_file_is_filled_alike() {
    let mut filled = 0;
    for golden in manifest() {
        // Where the bits begin, and a counter.
        let (bits, counter) = match golden.variant.as_str() {
            "little" => (24, 0..0),
            "url" | "url-wide" => (128, 8..12),
            _ => continue,
        };
        let bytes = golden.bytes();
        let mut empty = bytes.clone();
        empty[bits..].fill(0);
        empty[counter].fill(0);
        let mut filter = Foreign::from_bytes(empty, golden.format()).unwrap();
        for member in golden.members() {
            filter.insert(member.as_bytes()).unwrap();
        }
        assert!(filter.as_bytes() == bytes, "{}", golden.file);
        filled += 1;
    }
    assert_eq!(filled, 3);
}

#[test]
fn the_same_keys_give_the_same_file() {
    for golden in manifest() {
        if golden.format().is_none() || golden.is_not_ours() {
            continue;
        }
        let ours = golden.ours(golden.keys, golden.rate);
        assert!(ours.as_bytes() == golden.filter().as_bytes(), "{}", golden.file);
    }
}
