//! Short vectors from the real programs: five keys, planned for five at 1 %.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use common::{filled, lines};
use petal_interop::{Foreign, Format, KeyForm};

/// Format, form of keys, and the whole file.
const VECTORS: [(Format, KeyForm, &str); 12] = [
    (Format::Guava, KeyForm::Text, "010700000001a89288689bc9aa8c"),
    (Format::Guava, KeyForm::Utf16, "0107000000012c936946c9ba9d8c"),
    (Format::SparkV1, KeyForm::Text, "000000010000000700000001b6a32c04ec52692c"),
    (Format::SparkV2, KeyForm::Text, "0000000200000007000000000000000114bf9a5d0f107141"),
    (Format::HadoopJenkins, KeyForm::Text, "ffffffff000000070000000030ddb38af2d4cd"),
    (Format::HadoopMurmur, KeyForm::Text, "ffffffff000000070100000030e5c41686675d"),
    (
        Format::DataSketches,
        KeyForm::Text,
        "040115000700000039300000000000000100000000000000ffffffffffffffff6011a407aaa27887",
    ),
    (
        Format::Parquet,
        KeyForm::Text,
        "15401c1c00001c1c00001c1c00000082041400004303000604004080120201040212008408008100\
         00105c20028088",
    ),
    (
        Format::Dcso,
        KeyForm::Text,
        "010000000000000005000000000000007b14ae47e17a843f07000000000000002f00000000000000050000000\
         000000083fcf1cf1d5b0000",
    ),
    (
        Format::GoBloom,
        KeyForm::Text,
        "0000000000000030000000000000000700000000000000300000b583a4a4a62a",
    ),
    (Format::Rbloom, KeyForm::Text, "06000000000000005d0468326959"),
    (
        Format::Pybloom,
        KeyForm::Text,
        "7b14ae47e17a843f0700000000000000070000000000000005000000000000000500000000000000697cb692cbd501",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len() / 2).map(|at| &hex[at * 2..at * 2 + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn vectors_are_read_and_written() {
    let keys = lines("five.txt");
    for (format, form, hex) in VECTORS {
        let file = bytes(hex);
        let filter = Foreign::from_bytes(&file, Some(format)).unwrap().with_keys(form);
        for key in &keys {
            assert!(filter.contains(key.as_bytes()).unwrap(), "{format}: {key}");
        }
        assert_eq!(filled(format, form, 5, 0.01, &keys).as_bytes(), file, "{format}");
    }
}

/// The same of filters whose size the program was told: 51 bits and 7 probes, which is no plan.
const OF_A_SIZE: [(Format, &str); 2] = [
    (Format::HadoopJenkins, "ffffffff0000000700000000338f3d094fb85e00"),
    (Format::HadoopMurmur, "ffffffff000000070100000033628c6d2a699f03"),
];

#[test]
fn vectors_of_a_given_size_are_filled_alike() {
    for (format, hex) in OF_A_SIZE {
        let file = bytes(hex);
        let mut empty = file.clone();
        empty[13..].fill(0);
        let mut filter = Foreign::from_bytes(empty, Some(format)).unwrap();
        for key in lines("five.txt") {
            filter.insert(key.as_bytes()).unwrap();
        }
        assert_eq!(filter.as_bytes(), file, "{format}");
    }
}
