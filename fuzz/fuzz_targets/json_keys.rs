//! The key of a value in a JSON record is the value that serde_json finds at the pointer, and the values of
//! a text are those that serde_json finds. The first line is the pointer, the rest the record.
#![no_main]

use libfuzzer_sys::fuzz_target;
use petal_lines::{Fields, JsonPointer, JsonValues, KeySpec, json_values};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
    let (Ok(text), record) = (str::from_utf8(&bytes[..end]), &bytes[end + 1..]) else { return };
    let Ok(pointer) = text.parse::<JsonPointer>() else { return };
    assert_eq!(pointer.to_string(), text);
    let key = |pointers: Vec<JsonPointer>| {
        KeySpec { fields: Fields::Json(JsonValues(pointers)), ..KeySpec::default() }.key(record)
    };
    let one = key(vec![pointer.clone()]);
    let two = key(vec![pointer.clone(), pointer]);
    match (&one, &two) {
        (Ok(one), Ok(two)) => {
            let part = [&(one.len() as u32).to_le_bytes(), &one[..]].concat();
            assert_eq!(*two, part.repeat(2));
        }
        (Err(one), Err(two)) => assert_eq!(one, two),
        _ => panic!("{one:?} {two:?}"),
    }
    // serde_json's values are limited in depth and in the range of numbers.
    let Ok(document) = serde_json::from_slice::<Value>(record) else { return };
    let key = one.unwrap();
    assert_eq!(json_values(record, false), [record.trim_ascii()]);
    assert_eq!(json_values(&[record, b" ", record].concat(), false), [record.trim_ascii(); 2]);
    if let Value::Array(elements) = &document {
        let found = json_values(record, true).into_iter().map(serde_json::from_slice::<Value>);
        assert_eq!(found.collect::<Result<Vec<_>, _>>().unwrap(), *elements);
    }
    let same = match document.pointer(text).unwrap_or(&Value::Null) {
        Value::Null => key == [0xff],
        Value::String(text) => key == text.as_bytes(),
        value @ (Value::Bool(_) | Value::Number(_)) => {
            serde_json::from_slice::<Value>(&key).is_ok_and(|found| found == *value)
        }
        value => {
            key[0] == 0xfe
                && serde_json::from_slice::<Value>(&key[1..]).is_ok_and(|found| found == *value)
        }
    };
    assert!(same, "{text}: {key:?}");
});
