//! Short vectors from the real programs: five keys, planned for five at 1 %.

use petal_interop::{ForeignFilter, Format, KeyType};

use crate::common::{filled, lines};

/// Format, key type, and the whole file.
const VECTORS: [(Format, KeyType, &str); 12] = [
    (Format::Guava, KeyType::Text, "010700000001a89288689bc9aa8c"),
    (Format::Guava, KeyType::Utf16, "0107000000012c936946c9ba9d8c"),
    (Format::SparkV1, KeyType::Text, "000000010000000700000001b6a32c04ec52692c"),
    (Format::SparkV2, KeyType::Text, "0000000200000007000000000000000114bf9a5d0f107141"),
    (Format::HadoopJenkins, KeyType::Text, "ffffffff000000070000000030ddb38af2d4cd"),
    (Format::HadoopMurmur, KeyType::Text, "ffffffff000000070100000030e5c41686675d"),
    (
        Format::DataSketches,
        KeyType::Text,
        "040115000700000039300000000000000100000000000000ffffffffffffffff6011a407aaa27887",
    ),
    (
        Format::Parquet,
        KeyType::Text,
        "15401c1c00001c1c00001c1c00000082041400004303000604004080120201040212008408008100\
         00105c20028088",
    ),
    (
        Format::Dcso,
        KeyType::Text,
        "010000000000000005000000000000007b14ae47e17a843f07000000000000002f00000000000000050000000\
         000000083fcf1cf1d5b0000",
    ),
    (
        Format::GoBloom,
        KeyType::Text,
        "0000000000000030000000000000000700000000000000300000b583a4a4a62a",
    ),
    (Format::Rbloom, KeyType::Text, "06000000000000005d0468326959"),
    (
        Format::Pybloom,
        KeyType::Text,
        "7b14ae47e17a843f0700000000000000070000000000000005000000000000000500000000000000697cb692cbd501",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len() / 2).map(|at| &hex[at * 2..at * 2 + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn published_vectors_are_read_and_written() {
    let keys = lines("five.txt");
    for (format, form, hex) in VECTORS {
        let file = bytes(hex);
        let filter = ForeignFilter::from_bytes(&file, Some(format)).unwrap().with_key_type(form);
        for key in &keys {
            assert!(filter.contains(key.as_bytes()).unwrap(), "{format}: {key}");
        }
        assert_eq!(filled(format, form, 5, 0.01, &keys).as_bytes(), file, "{format}");
    }
}

/// Filters whose size was given to the program: 51 bits and 7 probes.
const OF_A_SIZE: [(Format, &str); 2] = [
    (Format::HadoopJenkins, "ffffffff0000000700000000338f3d094fb85e00"),
    (Format::HadoopMurmur, "ffffffff000000070100000033628c6d2a699f03"),
];

#[test]
fn vectors_of_given_size_are_filled_equally() {
    for (format, hex) in OF_A_SIZE {
        let file = bytes(hex);
        let mut empty = file.clone();
        empty[13..].fill(0);
        let mut filter = ForeignFilter::from_bytes(empty, Some(format)).unwrap();
        for key in lines("five.txt") {
            filter.insert(key.as_bytes()).unwrap();
        }
        assert_eq!(filter.as_bytes(), file, "{format}");
    }
}
