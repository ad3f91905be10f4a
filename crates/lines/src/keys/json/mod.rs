//! Values in JSON records.
//!
//! The key of a value is
//!
//! * of a string: its bytes in UTF-8, without quotes and escapes;
//! * of a number, `true` and `false`: the text in the file;
//! * of `null` and of a value that is missing: the byte ff, which UTF-8 never has;
//! * of an array or object: the byte fe, and its text without white space between its parts.
//!
//! Of members with the same name the last counts. A line without anything but white space has no
//! values.
//!
//! | module | contents |
//! |---|---|
//! | `pointer` | JSON pointers |
//! | `member` | the value at one step of a pointer |
//! | `values` | where the values of a text begin and end |
//!
//! Cost: the whole record is parsed for each pointer, and what is left of it for each further part of
//! the pointer, by serde_json, whose skipping of values does
//! not recur: neither depth nor width of a record needs memory.

mod member;
mod pointer;
mod values;

use std::fmt;

use serde_json::value::RawValue;

pub use pointer::JsonPointer;
pub use values::json_values;
pub(crate) use values::{Part as ValuePart, ValueScan, is_text};

/// The key of `null` and of a missing value.
pub(super) const NULL: u8 = 0xff;
/// The first byte of the key of an array or object.
const NESTED: u8 = 0xfe;

/// Returns the text of a value in a key: that of a string, or JSON.
pub(crate) fn json_text(value: &[u8]) -> &[u8] {
    match value {
        [NULL] => b"null",
        [NESTED, json @ ..] => json,
        text => text,
    }
}

/// The values of a JSON record that make the key.
///
/// The key of several values has before each its length in bytes, as four bytes in little-endian
/// order, so different values never make the same key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JsonValues(pub Vec<JsonPointer>);

impl JsonValues {
    /// Returns whether every pointer begins with a name, which the elements of an array do not have.
    pub(crate) fn are_named(&self) -> bool {
        let is_name = |step: &str| !step.bytes().all(|byte| byte.is_ascii_digit());
        self.0.iter().all(|pointer| pointer.steps().next().is_some_and(is_name))
    }

    /// Returns whether a value of a record is `null` or missing.
    pub(super) fn any_null(&self, record: &[u8]) -> Result<bool, String> {
        let mut key = Vec::new();
        for pointer in &self.0 {
            key.clear();
            append_value(utf8(record)?, pointer, &mut key)?;
            if key == [NULL] {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Appends where the text at the first pointer is in a record: the positions after its first quote
    /// and of its last one, eight bytes each. An empty text has no key, `null` the key of `null`.
    pub(super) fn append_place(&self, record: &[u8], key: &mut Vec<u8>) -> Result<(), String> {
        let record = utf8(record)?;
        let pointer = self.0.first().ok_or("has no place of a text")?;
        let Some(value) = find_value(record, pointer)? else {
            key.push(NULL);
            return Ok(());
        };
        let text = value.get();
        match text.as_bytes() {
            [b'"', b'"'] => {}
            [b'"', ..] => {
                // The parser borrows values from the record.
                let start = text.as_ptr().addr() - record.as_ptr().addr();
                for at in [start + 1, start + text.len() - 1] {
                    key.extend((at as u64).to_le_bytes());
                }
            }
            [b'n', ..] => key.push(NULL),
            other => {
                let kind = match other.first() {
                    Some(b'{') => "an object",
                    Some(b'[') => "an array",
                    Some(b't' | b'f') => "true or false",
                    _ => "a number",
                };
                let pointer = pointer.to_string();
                return Err(format!(
                    "has {kind} at {pointer:?}, expected a text; correct or remove the record"
                ));
            }
        }
        Ok(())
    }

    /// Appends the key of a record.
    pub(super) fn append(&self, record: &[u8], key: &mut Vec<u8>) -> Result<(), String> {
        let record = utf8(record)?;
        if let [pointer] = &self.0[..] {
            return append_value(record, pointer, key);
        }
        for pointer in &self.0 {
            super::append_with_length(key, |key| append_value(record, pointer, key))?;
        }
        Ok(())
    }
}

/// Returns a record as text: the parser looks only at the encoding of what it returns.
fn utf8(record: &[u8]) -> Result<&str, String> {
    str::from_utf8(record).map_err(|error| {
        let at = error.valid_up_to() + 1;
        format!("is no JSON: invalid UTF-8 at its byte {at}; correct or remove the record")
    })
}

/// Appends the key of the value at a pointer.
fn append_value(record: &str, pointer: &JsonPointer, key: &mut Vec<u8>) -> Result<(), String> {
    append_raw(find_value(record, pointer)?, key).map_err(invalid)
}

/// Says why a record is no JSON.
fn invalid(error: serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or_default();
    let at = error.column();
    format!("is no JSON: {reason} at its byte {at}; correct or remove the record")
}

/// Returns the value at a pointer; `None` if there is none.
fn find_value<'t>(record: &'t str, pointer: &JsonPointer) -> Result<Option<&'t RawValue>, String> {
    if record.bytes().all(|byte| byte.is_ascii_whitespace()) {
        return Ok(None);
    }
    let mut steps = pointer.steps();
    let found = match steps.next() {
        None => Some(serde_json::from_str::<&RawValue>(record).map_err(invalid)?),
        Some(step) => member::find(record, step).map_err(invalid)?,
    };
    // The value is valid JSON from here on.
    let found = steps.try_fold(found, |found, step| match found {
        Some(value) => member::find(value.get(), step),
        None => Ok(None),
    });
    found.map_err(invalid)
}

/// Appends the key of a value.
fn append_raw(value: Option<&RawValue>, key: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let text = value.map_or("null", RawValue::get).as_bytes();
    match text.first() {
        Some(b'n') => key.push(NULL),
        Some(b'"') => match plain_string(text) {
            Some(plain) => key.extend_from_slice(plain),
            None => member::unescape(text, key)?,
        },
        Some(b'{' | b'[') => {
            key.push(NESTED);
            append_compact(text, key);
        }
        _ => key.extend_from_slice(text),
    }
    Ok(())
}

/// Returns the bytes of a string without escapes.
fn plain_string(text: &[u8]) -> Option<&[u8]> {
    let inner = text.get(1..text.len().checked_sub(1)?)?;
    memchr::memchr(b'\\', inner).is_none().then_some(inner)
}

/// Appends valid JSON without the white space between its parts.
pub(crate) fn append_compact(text: &[u8], key: &mut Vec<u8>) {
    let (mut quoted, mut escaped) = (false, false);
    for &byte in text {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            quoted = byte == b'"';
        }
        key.push(byte);
    }
}

/// The values as text: `value "/url" of JSON`.
impl fmt::Display for JsonValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.len() == 1 { "value " } else { "values " })?;
        for (number, pointer) in self.0.iter().enumerate() {
            write!(f, "{}{:?}", if number == 0 { "" } else { ", " }, pointer.to_string())?;
        }
        f.write_str(" of JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(record: impl AsRef<[u8]>, pointers: &[&str]) -> Result<Vec<u8>, String> {
        let pointers = pointers.iter().map(|pointer| pointer.parse().unwrap());
        let mut key = Vec::new();
        JsonValues(pointers.collect()).append(record.as_ref(), &mut key).map(|()| key)
    }

    #[test]
    fn keys_are_the_values_at_pointers() {
        let record = r#" {"url":"http:\/\/a\u00e9\n","n": 1.50 ,"b":true,"z":null,
            "o":{"a b" : [ 1, "x \" y" , {} ],"":"empty"},"l":["p",{"q":"r"}],"a/b~":"s","n2":1.50e3} "#
            .replace('\n', "");
        let cases: [(&str, &[u8]); 18] = [
            ("/url", "http://aé\n".as_bytes()),
            ("/n", b"1.50"),
            ("/n2", b"1.50e3"),
            ("/b", b"true"),
            ("/z", b"\xff"),
            ("/missing", b"\xff"),
            ("/url/x", b"\xff"),
            ("/o/a b/1", b"x \" y"),
            ("/o/a b", b"\xfe[1,\"x \\\" y\",{}]"),
            ("/o/", b"empty"),
            ("/l/0", b"p"),
            ("/l/1/q", b"r"),
            ("/l/2", b"\xff"),
            ("/l/-", b"\xff"),
            ("/l/00", b"\xff"),
            ("/l/01", b"\xff"),
            ("/a~1b~0", b"s"),
            ("/o/a b/2", b"\xfe{}"),
        ];
        for (pointer, value) in cases {
            let found = key(&record, &[pointer]).unwrap();
            assert_eq!(found, value, "{pointer}: {}", String::from_utf8_lossy(&found));
        }
        assert_eq!(key("[1, 2]", &[""]).unwrap(), b"\xfe[1,2]");
        assert_eq!(key("\"a\"\r", &[""]).unwrap(), b"a");
        assert_eq!(key(" \r", &["/a"]).unwrap(), b"\xff");
        assert_eq!(key("7", &["/a"]).unwrap(), b"\xff");
        assert_eq!(key(r#"{"a":1,"a":2}"#, &["/a"]).unwrap(), b"2");
        assert_eq!(key(r#"{"\u0061":1}"#, &["/a"]).unwrap(), b"1");
        // A surrogate without its other half is what Python writes for bytes that are not UTF-8.
        assert_eq!(
            key(r#"{"a":"\udc80\ud83d\ude00"}"#, &["/a"]).unwrap(),
            b"\xed\xb2\x80\xf0\x9f\x98\x80"
        );
        let several = key(r#"{"a":"x","b":null}"#, &["/a", "/b"]).unwrap();
        assert_eq!(several, b"\x01\0\0\0x\x01\0\0\0\xff");
    }

    #[test]
    fn invalid_records_are_errors() {
        let cases: [&[u8]; 10] = [
            b"{",
            b"{\"a\":1}}",
            b"{\"a\":1} x",
            b"nul",
            b"{'a':1}",
            b"{\"a\":01}",
            b"\xff",
            b"{\"a\":\"\xff\"}",
            b"{\"b\":[\"\xc3\"],\"a\":1}",
            b"{\"b\":\"x\ny\"}",
        ];
        for record in cases {
            for pointer in ["/a", "", "/a/b"] {
                let error = key(record, &[pointer]);
                let error = error.expect_err(&String::from_utf8_lossy(record));
                assert!(
                    error.starts_with("is no JSON: ") && error.contains(" at its byte "),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn deep_records_do_not_overflow_the_stack() {
        let deep = [b"[".repeat(1 << 20), b"]".repeat(1 << 20)].concat();
        let record = [b"{\"a\":", &deep[..], b",\"b\":\"x\"}"].concat();
        assert_eq!(key(&record, &["/b"]).unwrap(), b"x");
        assert_eq!(key(&record, &["/a"]).unwrap().len(), 1 + deep.len());
        let pointer = "/0".repeat(128);
        assert_eq!(key(&deep, &[&pointer]).unwrap().len(), 1 + deep.len() - 256);
        assert!(key(&record[..1 << 20], &["/b"]).is_err());
    }
}
