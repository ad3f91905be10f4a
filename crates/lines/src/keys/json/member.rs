//! The value at one step of a JSON pointer: a member of an object, or an element of an array.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Returns the value at `step` in a JSON text; `None` if there is none.
///
/// # Errors
/// If the text is not valid JSON.
pub(super) fn find<'t>(text: &'t str, step: &str) -> serde_json::Result<Option<&'t RawValue>> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let found = match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => parser.deserialize_map(Member(step))?,
        Some(b'[') => parser.deserialize_seq(Element(step))?,
        _ => {
            parser.deserialize_ignored_any(IgnoredAny)?;
            None
        }
    };
    parser.end()?;
    Ok(found)
}

/// Finds the last member with a name.
struct Member<'s>(&'s str);

impl<'t> Visitor<'t> for Member<'_> {
    type Value = Option<&'t RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_wanted) = members.next_key_seed(NameIs(self.0))? {
            match is_wanted {
                true => found = Some(members.next_value()?),
                false => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// Compares the name of a member.
struct NameIs<'s>(&'s str);

impl<'t> DeserializeSeed<'t> for NameIs<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'t>>(self, name: D) -> Result<bool, D::Error> {
        name.deserialize_bytes(self)
    }
}

impl Visitor<'_> for NameIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }

    fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<bool, E> {
        Ok(name == self.0.as_bytes())
    }
}

/// Finds the element with a number.
struct Element<'s>(&'s str);

impl<'t> Visitor<'t> for Element<'_> {
    type Value = Option<&'t RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        // A number has no sign and no zeros before it.
        let number = self.0.parse::<u64>().ok().filter(|number| number.to_string() == self.0);
        let (mut found, mut next) = (None, 0);
        loop {
            let more = match number == Some(next) {
                true => {
                    found = elements.next_element()?;
                    found.is_some()
                }
                false => elements.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                return Ok(found);
            }
            next += 1;
        }
    }
}

/// Appends the bytes of a JSON string. A surrogate without its other half becomes three bytes, as
/// in WTF-8.
pub(super) fn unescape(text: &[u8], to: &mut Vec<u8>) -> serde_json::Result<()> {
    serde_json::Deserializer::from_slice(text).deserialize_bytes(Append(to))
}

struct Append<'k>(&'k mut Vec<u8>);

impl Visitor<'_> for Append<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn visit_bytes<E: Error>(self, text: &[u8]) -> Result<(), E> {
        self.0.extend_from_slice(text);
        Ok(())
    }
}
