//! Files written by the programs themselves: their members, their answers, and the same bytes from
//! petal.

use petal_interop::{ForeignFilter, Format, KeyType};
use sha2::{Digest, Sha256};

use crate::common::{answers, manifest};

#[test]
fn golden_files_match_the_manifest() {
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
fn golden_files_contain_their_members() {
    for golden in manifest().iter().filter(|golden| golden.format().is_some()) {
        let filter = golden.filter();
        for member in golden.members() {
            assert!(filter.contains(member.as_bytes()).unwrap(), "{}: {member}", golden.file);
        }
        filter.verify().unwrap_or_else(|error| panic!("{}: {error}", golden.file));
    }
}

#[test]
fn golden_answers_equal_their_producer() {
    let mut queried = 0;
    for golden in manifest().iter().filter(|golden| golden.format().is_some()) {
        let Some(expect) = golden.answers() else { continue };
        assert_eq!(answers(&golden.filter(), &golden.queried()), expect, "{}", golden.file);
        queried += 1;
    }
    assert!(queried >= 1, "no answers");
}

#[test]
fn golden_files_are_detected() {
    for golden in manifest() {
        let Some(format) = golden.format() else { continue };
        let found = ForeignFilter::read_from(&golden.bytes()[..], None, u64::MAX);
        if format.is_recognizable() {
            assert_eq!(found.unwrap().format(), format, "{}", golden.file);
        } else {
            assert!(found.is_err(), "{}", golden.file);
        }
    }
}

/// Programs that hash other bytes than the line: with key type text their members are not found.
#[test]
fn members_are_found_only_with_their_key_type() {
    let mut seen = Vec::new();
    for golden in manifest().iter().filter(|golden| golden.format().is_some()) {
        let (filter, members) = (golden.filter(), golden.members());
        let key_types = filter.stats().key_types;
        assert!(key_types.contains(&golden.form), "{}", golden.file);
        filter.check_key_type(golden.form).unwrap();
        if !matches!(golden.form.name(), "python-bytes" | "rust-str" | "rust-slice" | "text-crlf") {
            continue;
        }
        let plain = golden.filter().with_key_type(KeyType::Text);
        let found = members.iter().filter(|key| plain.contains(key.as_bytes()).unwrap()).count();
        assert!(found < members.len() / 3, "{}: {found} of {}", golden.file, members.len());
        let names = filter.stats().not_recorded.join("; ");
        assert!(names.contains(golden.form.name()), "{}: {names}", golden.file);
        seen.push(golden.form.name());
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, ["python-bytes", "rust-slice", "rust-str", "text-crlf"]);
}

#[test]
fn wrong_key_type_is_an_error_that_names_a_wider_one() {
    let refused = |format, form| {
        let filter = ForeignFilter::with_fpr(format, 10, 0.01).unwrap();
        let error = filter.check_key_type(form).unwrap_err();
        assert!(error.is_key_type());
        error.to_string()
    };
    let spark = refused(Format::SparkV2, KeyType::Int32);
    assert!(spark.ends_with("text or int64, not int32; numbers of any size are int64 there"));
    let unsigned = refused(Format::SparkV1, KeyType::Uint64);
    assert!(unsigned.ends_with("not uint64; numbers below 2^63 are int64 there"), "{unsigned}");
    assert!(refused(Format::Dcso, KeyType::Int32).ends_with("text or text-crlf, not int32"));
}

#[test]
fn empty_keys_with_nonempty_encoding_are_inserted() {
    for (form, held) in
        [(KeyType::Text, false), (KeyType::RustStr, true), (KeyType::RustSlice, true)]
    {
        let filter = ForeignFilter::with_fpr(Format::DataSketches, 10, 0.01).unwrap();
        let mut filter = filter.with_key_type(form);
        assert_eq!(filter.insert(b"").is_ok(), held, "{form:?}");
        assert_eq!(filter.contains(b"").unwrap(), held, "{form:?}");
    }
}

/// Where petal would choose another header, it fills the existing one as the program did.
#[test]
fn cleared_file_is_filled_equally() {
    let mut filled = 0;
    for golden in manifest() {
        let bytes = golden.bytes();
        let mut empty = bytes.clone();
        // The bits and a counter.
        let cleared = match golden.variant.as_str() {
            "little" => [24..bytes.len(), 0..0, 0..0],
            "url" | "url-wide" => [128..bytes.len(), 8..12, 0..0],
            "space" => [56..bytes.len(), 32..40, 0..0],
            // The number of buckets is between the index, of 600 bits rounded up, and the buckets.
            "speed" | "best" => [56 + 128..bytes.len(), 48..48 + 128, 32..40],
            _ => continue,
        };
        cleared.into_iter().for_each(|range| empty[range].fill(0));
        let mut filter = ForeignFilter::from_bytes(empty, golden.format()).unwrap();
        for member in golden.members() {
            filter.insert(member.as_bytes()).unwrap();
        }
        assert!(filter.as_bytes() == bytes, "{}", golden.file);
        filled += 1;
    }
    assert_eq!(filled, 6);
}

#[test]
fn same_keys_give_the_same_file() {
    for golden in manifest() {
        if golden.format().is_none() || golden.is_not_ours() {
            continue;
        }
        let ours = golden.ours(golden.keys, golden.rate);
        assert!(ours.as_bytes() == golden.filter().as_bytes(), "{}", golden.file);
    }
}
