//! Which of the values that make a key the JSON records of an input have.
//!
//! A pointer with a spelling error finds no value in any record, so all records have one key.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::fields::Fields;
use super::json::{JsonPointer, JsonValues, NULL};
use super::{KeySpec, Keys, LENGTH, transform_key};

/// The values that were found in the records of an input. Pointers beyond the first 64 are not looked
/// at.
#[derive(Debug, Default)]
pub(crate) struct FoundValues {
    /// A bit for each pointer that found a value in a record.
    found: AtomicU64,
    /// Whether there was a record.
    any: AtomicBool,
    reported: AtomicBool,
}

impl FoundValues {
    /// Looks at the keys of some records, until each value was found once.
    pub(crate) fn look_at(&self, spec: &KeySpec, keys: &Keys) {
        let Fields::Json(JsonValues(pointers)) = &spec.fields else { return };
        let all = u64::MAX >> (64 - pointers.len().clamp(1, 64));
        let mut found = self.found.load(Ordering::Relaxed);
        if found == all {
            return;
        }
        let null = transform_key(&[NULL], &spec.transforms);
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

    /// Returns whether no record had a value at a pointer, although there was a record.
    fn is_missing(&self, pointer: usize) -> bool {
        let found = self.found.load(Ordering::Relaxed) >> pointer.min(63) & 1 == 1;
        self.any.load(Ordering::Relaxed) && !found && !self.reported.load(Ordering::Relaxed)
    }
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

/// Calls `report` once for each pointer that found no value in some inputs, with the name of the first
/// of these inputs and the number of others. `inputs` were read to their ends.
pub(crate) fn note_missing_values<'a>(
    spec: &KeySpec,
    inputs: impl Iterator<Item = (&'a str, &'a FoundValues)> + Clone,
    report: impl Fn(&JsonPointer, &'a str, u64),
) {
    let Fields::Json(JsonValues(pointers)) = &spec.fields else { return };
    for (number, pointer) in pointers.iter().enumerate().take(64) {
        let mut missing = inputs.clone().filter(|(_, found)| found.is_missing(number));
        if let Some((name, _)) = missing.next() {
            report(pointer, name, missing.count() as u64);
        }
    }
    inputs.for_each(|(_, found)| found.reported.store(true, Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::keys::parse_transforms;

    fn missing(pointers: &[&str], transforms: &str, inputs: &[&[&str]]) -> Vec<String> {
        let pointers = pointers.iter().map(|pointer| pointer.parse().unwrap()).collect();
        let transforms = parse_transforms(transforms).unwrap();
        let spec = KeySpec { fields: Fields::Json(JsonValues(pointers)), transforms };
        let inputs = inputs.iter().map(|records| {
            let found = FoundValues::default();
            for record in *records {
                let mut keys = Keys::default();
                keys.take(&spec, std::iter::once(record.as_bytes())).unwrap();
                found.look_at(&spec, &keys);
            }
            found
        });
        let inputs: Vec<_> = inputs.collect();
        let texts = RefCell::new(Vec::new());
        let report = |pointer: &JsonPointer, name: &str, more| {
            texts.borrow_mut().push(format!("{pointer} {name} {more}"));
        };
        for _ in 0..2 {
            note_missing_values(&spec, inputs.iter().map(|found| ("x", found)), report);
        }
        texts.into_inner()
    }

    #[test]
    fn pointers_without_a_value_are_reported_once() {
        let some: &[&str] = &["{}", r#"{"a":null}"#, r#"{"a":1}"#, "{}"];
        let none: &[&str] = &["{}", "[]", "", r#"{"a":null,"b":""}"#];
        assert!(missing(&["/a"], "", &[some, some]).is_empty());
        assert!(missing(&["/a"], "", &[&[], &[]]).is_empty());
        assert_eq!(missing(&["/a"], "", &[some, none, &[], none]), ["/a x 1"]);
        assert_eq!(missing(&["/a"], "trim,lowercase", &[none]), ["/a x 0"]);
        assert_eq!(missing(&["/a", "/b"], "", &[some, none]), ["/a x 0", "/b x 0"]);
        assert_eq!(missing(&["/b", "/c", "/a"], "trim", &[some]), ["/b x 0", "/c x 0"]);
        let many: Vec<_> = (0..70).map(|_| "/b").collect();
        assert_eq!(missing(&many, "", &[some]).len(), 64);
        assert!(missing(&many, "", &[none]).is_empty());
    }
}
