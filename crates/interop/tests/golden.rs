//! Files written by the programs themselves: what they hold, what they answer, and that petal
//! writes the same.

mod common;

use common::{answers, manifest};
use petal_interop::{Foreign, Format, KeyForm};
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

/// Programs that hash other bytes than the line: in the plain form their members are not found, which
/// is what `info` warns of and what the form is for.
#[test]
fn members_are_found_in_the_form_of_their_program_only() {
    let mut seen = Vec::new();
    for golden in manifest().iter().filter(|golden| golden.format().is_some()) {
        let (filter, members) = (golden.filter(), golden.members());
        let forms = filter.facts().forms;
        assert!(forms.contains(&golden.form), "{}", golden.file);
        filter.check_key_form(golden.form).unwrap();
        if !matches!(golden.form.name(), "python-bytes" | "rust-str" | "rust-slice" | "text-crlf") {
            continue;
        }
        let plain = golden.filter().with_keys(KeyForm::Text);
        let found = members.iter().filter(|key| plain.contains(key.as_bytes()).unwrap()).count();
        assert!(found < members.len() / 3, "{}: {found} of {}", golden.file, members.len());
        let told = filter.facts().untold.join("; ");
        assert!(told.contains(golden.form.name()), "{}: {told}", golden.file);
        seen.push(golden.form.name());
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, ["python-bytes", "rust-slice", "rust-str", "text-crlf"]);
}

#[test]
fn another_form_is_refused_and_a_wider_one_named() {
    let refused = |format, form| {
        let filter = Foreign::with_rate(format, 10, 0.01).unwrap();
        let error = filter.check_key_form(form).unwrap_err();
        assert!(error.is_key_form());
        error.to_string()
    };
    let spark = refused(Format::SparkV2, KeyForm::Int32);
    assert!(spark.ends_with("text or int64, not int32; numbers of any size are int64 there"));
    let unsigned = refused(Format::SparkV1, KeyForm::Uint64);
    assert!(unsigned.ends_with("not uint64; numbers below 2^63 are int64 there"), "{unsigned}");
    assert!(refused(Format::Dcso, KeyForm::Int32).ends_with("text or text-crlf, not int32"));
}

#[test]
fn empty_keys_are_keys_where_their_form_is_not_empty() {
    for (form, held) in
        [(KeyForm::Text, false), (KeyForm::RustStr, true), (KeyForm::RustSlice, true)]
    {
        let filter = Foreign::with_rate(Format::DataSketches, 10, 0.01).unwrap();
        let mut filter = filter.with_keys(form);
        assert_eq!(filter.insert(b"").is_ok(), held, "{form:?}");
        assert_eq!(filter.contains(b"").unwrap(), held, "{form:?}");
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
