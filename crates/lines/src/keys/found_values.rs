//! What the records of an input show about the settings that make their keys: values that no record
//! has, fields that the separator does not divide, quotes that may be literal or may not.
//!
//! A pointer with a spelling error finds no value in any record, and a wrong separator divides none, so
//! all records have one key, or each is its own. That is no error, but hardly meant.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::csv::{Columns, FieldsOfRecord, Quoting, SEPARATORS};
use super::fields::Fields;
use super::json::{JsonPointer, JsonValues, NULL};
use super::{KeySpec, Keys, LENGTH, Transform, transform_key};

/// What was found in the records of an input. Pointers beyond the first 64 are not looked at.
#[derive(Debug, Default)]
pub(crate) struct FoundValues {
    /// A bit for each pointer that found a value in a record; for CSV the bits below.
    found: AtomicU64,
    /// Whether there was a record.
    any: AtomicBool,
    /// Where the [`SEPARATORS`] are.
    places: Mutex<[Places; SEPARATORS.len()]>,
    /// The first record with a field of many lines: its position, and the number of lines.
    long_field: Mutex<Option<(u64, u64)>>,
    reported: AtomicBool,
}

/// A record has several fields.
const DIVIDED: u64 = 1;
/// A field of a key begins and ends with a quote that is not read as one.
const QUOTED: u64 = 2;
/// A line that is hashed is no digest itself.
const NO_DIGEST: u64 = 1;
/// A line that is hashed does not end with a CR.
const NO_CR: u64 = 2;
/// Which records have a byte, by their positions.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    /// The first and the last record with it.
    with: Option<(u64, u64)>,
    /// The last record without it.
    without: Option<u64>,
}

/// Bytes that the title before a table may have.
const TITLE: u64 = 1024;

impl Places {
    fn add(&mut self, at: u64, has: bool) {
        match has {
            true => self.merge(&Self { with: Some((at, at)), without: None }),
            false => self.without = self.without.max(Some(at)),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.without = self.without.max(other.without);
        let (one, two) = (self.with.or(other.with), other.with.or(self.with));
        self.with = one.zip(two).map(|(one, two)| (one.0.min(two.0), one.1.max(two.1)));
    }

    /// Returns whether the byte separates no fields: a record after the title is without it.
    fn is_out(&self) -> bool {
        let Some(without) = self.without else { return false };
        without > TITLE || self.with.is_some_and(|(first, _)| first < without)
    }

    /// Returns whether all records have it, but for a title before at least two of them.
    fn is_in_all(&self) -> bool {
        let is_table = |(first, last)| self.without.is_none() || first < last;
        !self.is_out() && self.with.is_some_and(is_table)
    }
}

/// Lines in one field from which on it is more probable that its quote is no quote.
const MANY_LINES: u64 = 100;

/// What is strange about the records of an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Finding<'a> {
    /// No record has a value here.
    MissingValue(&'a JsonPointer),
    /// Some records do not have the separator, but all have `found`; `title`: but for the first.
    Undivided { separator: u8, found: u8, title: bool },
    /// Fields of the key begin and end with a quote, which is not read as one.
    LiteralQuotes,
    /// The record at this byte has a field of many lines.
    LongField { byte: u64, lines: u64 },
    /// All lines look like the digests that this transform computes of them.
    HashedDigests(&'a Transform),
    /// All lines end with a CR, of which this transform computes the digest, too.
    HashedCr(&'a Transform),
}

impl FoundValues {
    /// Looks at some records, each with its position, and at their keys.
    pub(crate) fn look_at<'a>(
        &self,
        spec: &KeySpec,
        records: impl Iterator<Item = (u64, &'a [u8])> + Clone,
        keys: &Keys,
    ) {
        match &spec.fields {
            Fields::Json(values) | Fields::Text(values) => self.look_at_values(values, spec, keys),
            Fields::Columns(columns) => self.look_at_fields(columns, records, keys),
            Fields::Line => self.look_at_hashed(spec, records),
            Fields::Checksum(_) | Fields::Rows(_) => {}
        }
    }

    /// Looks at lines that are hashed, until they are no digests and have no CR.
    fn look_at_hashed<'a>(&self, spec: &KeySpec, records: impl Iterator<Item = (u64, &'a [u8])>) {
        let mut found = self.found.load(Ordering::Relaxed);
        let Some(digest) = digest(spec).filter(|_| found != NO_DIGEST | NO_CR) else { return };
        for (_, record) in records {
            let line = record.strip_suffix(b"\r").unwrap_or(record);
            if line.is_empty() {
                continue;
            }
            self.any.store(true, Ordering::Relaxed);
            found |= if digest.may_have_computed(line) { 0 } else { NO_DIGEST };
            found |= if line.len() < record.len() { 0 } else { NO_CR };
            if found == NO_DIGEST | NO_CR {
                break;
            }
        }
        self.found.fetch_or(found, Ordering::Relaxed);
    }

    /// Looks at the keys of some records, until each value was found once.
    fn look_at_values(&self, JsonValues(pointers): &JsonValues, spec: &KeySpec, keys: &Keys) {
        let all = u64::MAX >> (64 - pointers.len().clamp(1, 64));
        let mut found = self.found.load(Ordering::Relaxed);
        if found == all {
            return;
        }
        // Without a key no record lacks a value.
        let null = transform_key(&[NULL], &spec.transforms).unwrap_or_default();
        for key in keys.iter() {
            self.any.store(true, Ordering::Relaxed);
            if pointers.len() == 1 {
                found |= u64::from(*key != *null);
            } else {
                let values = values(key).take(64).enumerate();
                let present = values.filter(|(_, value)| **value != *null);
                present.for_each(|(number, _)| found |= 1 << number);
            }
            if found == all {
                break;
            }
        }
        self.found.fetch_or(found, Ordering::Relaxed);
    }

    fn look_at_fields<'a>(
        &self,
        columns: &Columns,
        records: impl Iterator<Item = (u64, &'a [u8])> + Clone,
        keys: &Keys,
    ) {
        let Some(dialect) = columns.separator.map(|byte| columns.dialect(byte)) else { return };
        let mut found = self.found.load(Ordering::Relaxed);
        let mut places = *self.places();
        for (at, record) in records.clone() {
            let mut others = SEPARATORS.iter().zip(&places);
            if others.all(|(byte, places)| *byte == dialect.separator || places.is_out()) {
                break;
            }
            if matches!(record, b"" | b"\r") {
                continue;
            }
            self.any.store(true, Ordering::Relaxed);
            if found & DIVIDED == 0 && FieldsOfRecord::new(record, dialect).nth(1).is_some() {
                found |= DIVIDED;
            }
            for (separator, places) in SEPARATORS.iter().zip(&mut places) {
                if !places.is_out() {
                    places.add(at, memchr::memchr(*separator, record).is_some());
                }
            }
        }
        self.places().iter_mut().zip(&places).for_each(|(all, own)| all.merge(own));
        let literal = dialect.quote.is_none() && columns.quoting == Quoting::BySeparator;
        if literal && found & QUOTED == 0 {
            let is_quoted = |field: &[u8]| matches!(field, [b'"', .., b'"']);
            let any = match columns.columns.len() {
                1 => keys.iter().any(is_quoted),
                _ => keys.iter().any(|key| values(key).any(is_quoted)),
            };
            found |= if any { QUOTED } else { 0 };
        }
        self.found.fetch_or(found, Ordering::Relaxed);
        if dialect.quote.is_some() {
            records.for_each(|(byte, record)| self.look_at_lines(byte, record));
        }
    }

    fn places(&self) -> MutexGuard<'_, [Places; SEPARATORS.len()]> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for a field of many lines.
    fn look_at_lines(&self, byte: u64, record: &[u8]) {
        if (record.len() as u64) < MANY_LINES {
            return;
        }
        let lines = 1 + memchr::memchr_iter(b'\n', record).count() as u64;
        if lines > MANY_LINES {
            let mut first = self.long_field.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_none_or(|(before, _)| byte < before) {
                *first = Some((byte, lines));
            }
        }
    }

    /// Returns what was found in the records with these keys and was not reported.
    fn findings<'a>(&self, spec: &'a KeySpec) -> Vec<Finding<'a>> {
        if self.reported.load(Ordering::Relaxed) || !self.any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let found = self.found.load(Ordering::Relaxed);
        let columns = match &spec.fields {
            Fields::Json(JsonValues(pointers)) | Fields::Text(JsonValues(pointers)) => {
                let pointers = pointers.iter().take(64).enumerate();
                let missing = pointers.filter(|(number, _)| found >> number & 1 == 0);
                return missing.map(|(_, pointer)| Finding::MissingValue(pointer)).collect();
            }
            Fields::Columns(columns) => columns,
            Fields::Line => return hashed_findings(spec, found),
            Fields::Checksum(_) | Fields::Rows(_) => return Vec::new(),
        };
        let separator = columns.separator.unwrap_or(b',');
        let places = *self.places();
        let of = |byte| SEPARATORS.iter().position(|known| *known == byte).map(|at| places[at]);
        // A separator is in every record; decimal commas, for example, are in some.
        let own = of(separator);
        let is_better = |(byte, other): &(u8, Places)| {
            let is_worse = |own: Places| !own.is_in_all() || own.without > other.without;
            let may_be = found & DIVIDED == 0 || own.is_some_and(is_worse);
            *byte != separator && other.is_in_all() && may_be
        };
        let better = SEPARATORS.into_iter().zip(places).find(is_better);
        let undivided = better.map(|(found, places)| {
            let title = places.without.is_some();
            Finding::Undivided { separator, found, title }
        });
        let quoted = (found & QUOTED != 0).then_some(Finding::LiteralQuotes);
        let long = *self.long_field.lock().unwrap_or_else(PoisonError::into_inner);
        let long = long.map(|(byte, lines)| Finding::LongField { byte, lines });
        [undivided, quoted, long].into_iter().flatten().collect()
    }
}

/// Returns the first transform that computes a digest.
fn digest(spec: &KeySpec) -> Option<&Transform> {
    spec.transforms.iter().find(|transform| transform.is_digest())
}

fn hashed_findings(spec: &KeySpec, found: u64) -> Vec<Finding<'_>> {
    let Some(digest) = digest(spec) else { return Vec::new() };
    let before = spec.transforms.iter().take_while(|transform| !transform.is_digest());
    let strips = before.into_iter().any(|one| matches!(one, Transform::Trim | Transform::StripCr));
    let digests = (found & NO_DIGEST == 0).then_some(Finding::HashedDigests(digest));
    let cr = (found & NO_CR == 0 && !strips).then_some(Finding::HashedCr(digest));
    digests.or(cr).into_iter().collect()
}

/// Returns the values of a key of several, each after its length.
fn values(mut key: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = key.split_first_chunk::<LENGTH>()?;
        let length = (u32::from_le_bytes(*length) as usize).min(rest.len());
        let (value, rest) = rest.split_at(length);
        key = rest;
        Some(value)
    })
}

/// Calls `report` once for each kind of finding, and for each pointer, with the name of the first
/// input that has it and the number of others. `inputs` were read to their ends.
pub(crate) fn note_findings<'a>(
    inputs: impl Iterator<Item = (&'a str, &'a KeySpec, &'a FoundValues)>,
    report: impl Fn(Finding<'a>, &'a str, u64),
) {
    let mut all: Vec<(Finding<'_>, &str, u64)> = Vec::new();
    for (name, spec, found) in inputs {
        for finding in found.findings(spec) {
            let is_alike = |other: &Finding<'_>| match (finding, other) {
                (Finding::MissingValue(one), Finding::MissingValue(other)) => one == *other,
                (one, other) => std::mem::discriminant(&one) == std::mem::discriminant(other),
            };
            match all.iter_mut().find(|(other, ..)| is_alike(other)) {
                Some((_, _, more)) => *more += 1,
                None => all.push((finding, name, 0)),
            }
        }
        found.reported.store(true, Ordering::Relaxed);
    }
    all.into_iter().for_each(|(finding, name, more)| report(finding, name, more));
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::keys::parse_transforms;

    fn findings(spec: &KeySpec, inputs: &[&[&str]]) -> Vec<String> {
        let inputs = inputs.iter().map(|records| {
            let found = FoundValues::default();
            for (at, record) in (0..).zip(*records) {
                let mut keys = Keys::default();
                let record = record.as_bytes();
                keys.take(spec, std::iter::once(record), |_| [0, 0]).unwrap();
                found.look_at(spec, std::iter::once((at, record)), &keys);
            }
            found
        });
        let inputs: Vec<_> = inputs.collect();
        let texts = RefCell::new(Vec::new());
        let report = |finding: Finding<'_>, name: &str, more| {
            let finding = match finding {
                Finding::MissingValue(pointer) => pointer.to_string(),
                other => format!("{other:?}"),
            };
            texts.borrow_mut().push(format!("{finding} {name} {more}"));
        };
        for _ in 0..2 {
            note_findings(inputs.iter().map(|found| ("x", spec, found)), report);
        }
        texts.into_inner()
    }

    fn missing(pointers: &[&str], transforms: &str, inputs: &[&[&str]]) -> Vec<String> {
        let pointers = pointers.iter().map(|pointer| pointer.parse().unwrap()).collect();
        let transforms = parse_transforms(transforms).unwrap();
        findings(
            &KeySpec {
                fields: Fields::Json(JsonValues(pointers)),
                transforms,
                ..KeySpec::default()
            },
            inputs,
        )
    }

    #[test]
    fn pointers_without_a_value_are_reported_once() {
        let some: &[&str] = &["{}", r#"{"a":null}"#, r#"{"a":1}"#, "{}"];
        let none: &[&str] = &["{}", "[]", "", r#"{"a":null,"b":""}"#];
        assert!(missing(&["/a"], "", &[some, some]).is_empty());
        assert!(missing(&["/a"], "", &[&[], &[]]).is_empty());
        assert_eq!(missing(&["/a"], "", &[some, none, &[], none]), ["/a x 1"]);
        assert_eq!(missing(&["/a"], "trim,lowercase", &[none]), ["/a x 0"]);
        assert_eq!(missing(&["/a", "/b"], "", &[some, none]), ["/b x 0", "/a x 0"]);
        assert_eq!(missing(&["/b", "/c", "/a"], "trim", &[some]), ["/b x 0", "/c x 0"]);
        let many: Vec<_> = (0..64).map(|number| format!("/b{number}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).chain(["/c"; 6]).collect();
        assert_eq!(missing(&many, "", &[some]).len(), 64);
        let many = ["/b"; 70];
        assert!(missing(&many, "", &[none]).is_empty());
    }

    #[test]
    fn strange_fields_are_reported_once() {
        let of = |list: &str, separator, quoting, inputs: &[&[&str]]| {
            let columns = Columns::parse_list(list).unwrap();
            let separator = Some(separator);
            let columns = Columns { columns, separator, quoting, ..Columns::default() };
            findings(&KeySpec { fields: Fields::Columns(columns), ..KeySpec::default() }, inputs)
        };
        let auto = Quoting::BySeparator;
        let other = "Undivided { separator: 44, found: 59, title: false } x 1";
        assert_eq!(of("1", b',', auto, &[&["1;x", "2;"], &["1;x", ""]]), [other]);
        assert!(
            of("1", b',', auto, &[&["1;x", "2,y"], &["1;x", "2"], &[""], &["a b", "c"]]).is_empty()
        );
        assert!(of("1", b';', auto, &[&["1;x,y", "2;,"]]).is_empty());
        let decimal = "Undivided { separator: 44, found: 59, title: false } x 0";
        assert_eq!(of("1", b',', auto, &[&["id;price", "1;2,5", "2;2,7"]]), [decimal]);
        let title = "Undivided { separator: 44, found: 59, title: true } x 0";
        for first in [&["Report 2024"][..], &["Report, 2024"], &["Report", "", "of 2024"]] {
            let rows = ["id;name", "1;a", "2;b,c"];
            assert_eq!(of("1", b',', auto, &[&[first, &rows].concat()]), [title], "{first:?}");
            let rows = ["1;a,x", "2;b", "2", "3;b,c"];
            assert!(of("1", b',', auto, &[&[first, &rows].concat()]).is_empty(), "{first:?}");
            let rows = ["1,a;x", "2,b;y"];
            assert!(of("1", b',', auto, &[&[&["Report"][..], &rows].concat()]).is_empty());
        }
        assert!(of("1", b':', auto, &[&["1:a,b", "2:c,d"]]).is_empty());
        // One record is no table, and text without separators no title if it is long.
        assert!(of("1", b',', auto, &[&["Report", "a;b"]]).is_empty());
        let long = [&["line"; 2000][..], &["a;b", "a;b"]].concat();
        assert!(of("1", b',', auto, &[&long]).is_empty());
        assert!(of("1", b',', auto, &[&["1,a;b", "2,a;b", "3;"], &["1,a;b"]]).len() == 1);
        assert!(of("1", b',', auto, &[&["1,a;b", "2,a", "3;"], &["1,a;b"]]).is_empty());
        let quotes = "LiteralQuotes x 0";
        assert_eq!(of("1", b'\t', auto, &[&["\"a\"\tb", "c\t"]]), [quotes]);
        assert_eq!(of("1,2", b'\t', auto, &[&["a\t\"b\""]]), [quotes]);
        let none: &[&str] = &["\"a\"b\t", "a\t\"b\"", "\"\t\""];
        assert!(of("1", b'\t', auto, &[none]).is_empty());
        assert!(of("1", b'\t', Quoting::None, &[&["\"a\"\tb"]]).is_empty());
        assert!(of("1", b',', auto, &[&["\"a\",b"]]).is_empty());
        let field = |lines: usize| format!("1,\"{}\"", "\n".repeat(lines - 1));
        let (long, short) = (field(101), field(100));
        let text = "LongField { byte: 1, lines: 101 } x 0";
        assert_eq!(of("1", b',', auto, &[&[&short, &long, &field(200)]]), [text]);
        assert!(of("1", b',', auto, &[&[&short]]).is_empty());
    }
}
