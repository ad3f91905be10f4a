//! Filter cascades are exact for every key they were built from, with any options. No file makes
//! them panic, read out of bounds or work without end.

use petal_interop::{CascadeHash, CascadeOptions, Error, ForeignFilter, Format, cascade};
use petal_testkit::corrupt::{bit_flips, extensions, truncations};

use crate::common::{self, bytes, manifest};

fn keys(prefix: &str, range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| format!("{prefix}{number}")).collect()
}

/// Files made by the crate rust_cascade 1.5.0: of 60 members and 4,000,000 non-members with a
/// SHA-256 stream longer than one block; and of more members than non-members, with a first layer
/// without probes and a salt that MurmurHash3 does not use.
const STREAM: &str = "\
    0200000473616c74039605000011000000011cda1fa0569798cd6e70a3dd0336fd1fa7073fc58ce3355c18ba709c2c\
    302cb7b6ba1114a8eeb6079fc577849dc1078c1b9cd3b5b9d3dab1c2a2a81c7334fb63a9699d888a7bbe0882bbb416\
    b220effe44c5af51e8c979127b86fcddc6d8405591ca6e15e6ddb4f63cf8b7f7288e80e711887ee4e9fe6bf25f9929\
    834e5d63dfde5066ba73ba61d8ad9d8e7d88507ac1e58476834b74a0b9e0134d392e186cc7df3078bbef3bc655b6ad\
    e7a60cc196118e393f0300010000010000000200c02a0328158821840694432200c10c398401110098202004628010\
    2010401003000100000100000003001200080000000000240000800000000020008820000000000000048000000003\
    0001000001000000040000000000000400220000000000000000000000000000000000000100000000";
const NO_PROBES: &str = "\
    0200000473616c74010001000000000000010000000000000000000000000000000000000000000000000000000000\
    000000010001000001000000020000000000000040001000000000002000000008000000000000200000000000";

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

fn assert_holds<'a>(
    filter: &ForeignFilter,
    members: impl Iterator<Item = &'a [u8]>,
    others: impl Iterator<Item = &'a [u8]>,
) {
    for (keys, expect) in [(members.collect::<Vec<_>>(), true), (others.collect(), false)] {
        for key in keys {
            let found = filter.contains(key).unwrap();
            assert_eq!(found, expect, "{filter:?}: {}", String::from_utf8_lossy(key));
        }
    }
}

#[test]
fn golden_cascades_are_exact_in_their_universe() {
    let mut files = 0;
    for golden in manifest() {
        if golden.format() == Some(Format::FilterCascade) {
            let (members, others) = (golden.members(), golden.others());
            assert_holds(&golden.filter(), bytes(&members), bytes(&others));
            files += 1;
        }
    }
    assert!(files >= 7, "{files} files");
}

#[test]
fn rust_cascade_files_are_read() {
    let file = ForeignFilter::from_bytes(unhex(STREAM), None).unwrap();
    assert_holds(&file, bytes(&keys("m", 0..60)), bytes(&keys("", 0..400_000)));
    file.verify().unwrap();
    assert_eq!(file.stats().probes, 17);
    let file = ForeignFilter::from_bytes(unhex(NO_PROBES), None).unwrap();
    assert_holds(&file, bytes(&keys("", 0..40)), bytes(&common::lines("five.txt")));
    assert_eq!((file.stats().layers, file.stats().estimated_keys), (2, None));
}

#[test]
fn version_1_is_read() {
    let golden = manifest().into_iter().find(|golden| golden.file == "filter-cascade-text");
    let golden = golden.unwrap();
    // Version 1 has neither inversion nor salt.
    let file = [&[1, 0], &golden.bytes()[4..]].concat();
    let filter = ForeignFilter::from_bytes(file, None).unwrap();
    assert_holds(&filter, bytes(&golden.members()), bytes(&golden.others()));
}

#[test]
fn every_option_is_exact_in_its_universe() {
    let (many, few) = (keys("many", 0..20_000), keys("few", 0..1500));
    for hash in CascadeHash::ALL {
        for (rate, min_capacity, inverted) in
            [(0.02, 1000, false), (0.5, 0, false), (0.9, 1, true), (1e-6, 5000, true)]
        {
            let salt = if hash == CascadeHash::Murmur3 { vec![] } else { vec![0xff; 255] };
            let options =
                CascadeOptions { rate, min_capacity, hash, salt, inverted, limit: 1 << 20 };
            for (members, others) in [(&many, &few), (&few, &many)] {
                let filter = cascade(bytes(members), bytes(others), &options).unwrap();
                assert_holds(&filter, bytes(members), bytes(others));
                filter.verify().unwrap();
                let found = ForeignFilter::from_bytes(filter.as_bytes(), None).unwrap();
                assert_eq!(found.format(), Format::FilterCascade);
            }
        }
    }
}

#[test]
fn order_and_repetitions_do_not_matter() {
    let (members, others) = (keys("m", 0..500), keys("o", 0..2000));
    let options = CascadeOptions::default();
    let one = cascade(bytes(&members), bytes(&others), &options).unwrap();
    let twice = || bytes(&members).chain(bytes(&members[..7]));
    let others = others.iter().rev().map(String::as_bytes);
    let other = cascade(twice(), others.clone().chain(others), &options).unwrap();
    assert_eq!(one.as_bytes(), other.as_bytes());
}

#[test]
fn estimated_rate_of_unknown_keys_equals_measurement() {
    let (few, many) = (keys("m", 0..2000), keys("o", 0..20_000));
    let unknown = keys("unknown", 0..20_000);
    for inverted in [false, true] {
        let (members, others) = if inverted { (&many, &few) } else { (&few, &many) };
        let options = CascadeOptions { inverted, rate: 0.1, ..CascadeOptions::default() };
        let filter = cascade(bytes(members), bytes(others), &options).unwrap();
        let stats = filter.stats();
        let yes = bytes(&unknown).filter(|key| filter.contains(key).unwrap()).count();
        let rate = yes as f64 / unknown.len() as f64;
        assert!((rate - stats.estimated_fpr).abs() < 0.01, "{rate} {stats:?}");
        assert_eq!(stats.estimated_fpr > 0.5, inverted);
        match stats.estimated_keys {
            Some(keys) => assert!((1900.0..2100.0).contains(&keys) && !inverted, "{keys}"),
            None => assert!(inverted),
        }
    }
}

fn refusal(members: &[String], others: &[String], options: &CascadeOptions) -> Error {
    cascade(bytes(members), bytes(others), options).unwrap_err()
}

#[test]
fn keys_in_both_lists_are_an_error() {
    let error = refusal(&keys("", 0..100), &keys("", 97..500), &CascadeOptions::default());
    assert!(error.is_contradiction(), "{error}");
    let text = error.to_string();
    assert!(text.contains(": 3, for example '97'"), "{text}");
}

#[test]
fn invalid_options_are_errors() {
    let (some, others, none) = (keys("m", 0..10), keys("o", 0..10), vec![]);
    let plain = CascadeOptions::default;
    refusal(&none, &others, &plain());
    refusal(&some, &none, &CascadeOptions { inverted: true, ..plain() });
    assert!(cascade(bytes(&some), bytes(&none), &plain()).unwrap().contains(b"m3").unwrap());
    for rate in [0.0, 1.0, -1.0, f64::NAN, f64::MIN_POSITIVE / 4e15, 1e-300] {
        let refused = rate != 1e-300;
        let made = cascade(bytes(&some), bytes(&others), &CascadeOptions { rate, ..plain() });
        assert_eq!(made.is_err(), refused, "{rate}");
    }
    refusal(&some, &others, &CascadeOptions { salt: vec![1], ..plain() });
    let long = vec![1; 256];
    refusal(&some, &others, &CascadeOptions { salt: long, hash: CascadeHash::Sha256, ..plain() });
    let vast = CascadeOptions { min_capacity: u64::MAX, ..plain() };
    assert!(refusal(&some, &others, &vast).is_limit());
    let narrow = CascadeOptions { limit: 500, ..plain() };
    assert!(refusal(&some, &others, &narrow).is_too_large());
}

/// Two keys with equal 32-bit MurmurHash3 for every seed: a difference in the first four bytes
/// moves to the highest bit, where one in the second four cancels it.
#[test]
fn colliding_keys_end_in_an_error() {
    let (one, other) = (&b"petal..."[..], &b"\xc8\x06\x95Vl.}\xf2"[..]);
    let error = cascade([one], [other], &CascadeOptions::default()).unwrap_err();
    assert!(error.is_limit(), "{error}");
    let options = CascadeOptions { hash: CascadeHash::Sha256, ..CascadeOptions::default() };
    let filter = cascade([one], [other], &options).unwrap();
    assert!(filter.contains(one).unwrap() && !filter.contains(other).unwrap());
}

#[test]
fn cascade_cannot_be_changed() {
    let error = ForeignFilter::with_fpr(Format::FilterCascade, 5, 0.01).unwrap_err();
    assert!(error.to_string().contains("function cascade"), "{error}");
    let (members, others) = (keys("m", 0..10), keys("o", 0..10));
    let made = || cascade(bytes(&members), bytes(&others), &CascadeOptions::default()).unwrap();
    let (mut filter, before) = (made(), made());
    assert!(filter.insert(b"more").is_err());
    assert!(filter.union(&before).is_err());
    assert_eq!(filter.as_bytes(), before.as_bytes());
}

#[test]
fn damaged_cascades_are_errors_or_harmless() {
    let golden = manifest().into_iter().filter(|golden| golden.file.starts_with("filter-cascade"));
    let mut files: Vec<_> = golden.map(|golden| golden.bytes()).collect();
    files.sort_by_key(Vec::len);
    files.truncate(3);
    files.extend([unhex(STREAM), unhex(NO_PROBES)]);
    for file in files {
        let read = |file: &[u8]| {
            let filter = ForeignFilter::from_bytes(file.to_vec(), Some(Format::FilterCascade))?;
            assert!(filter.words() <= 4096);
            filter.contains(b"key")?;
            assert!(filter.stats().estimated_fpr <= 1.0);
            filter.verify()
        };
        read(&file).unwrap();
        // A file truncated between two layers is a valid, shorter cascade.
        let whole = truncations(&file).filter(|part| read(part).is_ok()).count();
        assert!(whole <= ForeignFilter::from_bytes(&file, None).unwrap().stats().layers as usize);
        bit_flips(&file).for_each(|(_, file)| _ = read(&file));
        assert!(extensions(&file).all(|file| read(&file).is_err()));
    }
}

#[test]
fn invalid_cascade_headers_are_errors() {
    let layer = |hash: u8, bits: u32, probes: u32, number: u8, bytes: usize| {
        let mut layer = vec![hash];
        layer.extend(bits.to_le_bytes());
        layer.extend(probes.to_le_bytes());
        layer.push(number);
        layer.resize(10 + bytes, 0);
        layer
    };
    let good = [&[2, 0, 0, 0], &layer(1, 16, 2, 1, 2)[..]].concat();
    let parse = |file: &[u8]| ForeignFilter::from_bytes(file.to_vec(), Some(Format::FilterCascade));
    parse(&good).unwrap();
    let more = |layer: Vec<u8>| [&good[..], &layer].concat();
    parse(&more(layer(1, 9, 4094, 2, 2))).unwrap();
    let invalid = [
        more(layer(2, 16, 2, 2, 2)),
        more(layer(1, 16, 2, 1, 2)),
        more(layer(1, 16, 2, 3, 2)),
        more(layer(1, 0, 2, 2, 0)),
        more(layer(1, 0, 0, 2, 0)),
        more(layer(1, 17, 2, 2, 2)),
        more(layer(1, u32::MAX, 2, 2, 2)),
        more(layer(1, 9, 4095, 2, 2)),
        more(layer(1, 9, u32::MAX, 2, 2)),
        more(vec![1]),
        [&[2, 0, 0, 0], &layer(1, 16, 0, 1, 2)[..]].concat(),
        [&[2, 0, 0, 0], &layer(0, 16, 1, 1, 2)[..]].concat(),
        [&[2, 0, 0, 0], &layer(4, 16, 1, 1, 2)[..]].concat(),
        [&[2, 0, 2, 0], &layer(1, 16, 1, 1, 2)[..]].concat(),
        [&[3, 0, 0, 0], &layer(1, 16, 1, 1, 2)[..]].concat(),
        vec![2, 0, 0, 255, 1, 2, 3],
        vec![2, 0, 0, 0],
        vec![2, 0, 0],
        vec![1, 0],
        vec![],
    ];
    for bytes in invalid {
        let error = parse(&bytes).unwrap_err();
        assert!(error.is_malformed(), "{bytes:?}: {error}");
    }
    // One layer more than the format can number.
    let mut endless = good.clone();
    (2..=255).for_each(|number| endless.extend(layer(1, 8, 1, number, 1)));
    parse(&endless).unwrap();
    endless.extend(layer(1, 8, 1, 0, 1));
    assert!(parse(&endless).unwrap_err().is_malformed());
    // Bits after the last one.
    let padded = parse(&more([&layer(1, 9, 1, 2, 1)[..], &[0b10]].concat())).unwrap();
    assert!(padded.verify().unwrap_err().is_malformed());
}
