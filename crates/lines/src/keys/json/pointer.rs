//! JSON pointers (RFC 6901).

use std::fmt;
use std::str::FromStr;

/// A JSON pointer: where in a JSON text a value is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JsonPointer {
    /// The names of members and the numbers of elements from the outermost value on.
    steps: Vec<String>,
}

impl JsonPointer {
    /// Returns the steps, without escapes.
    pub(super) fn steps(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(String::as_str)
    }
}

impl FromStr for JsonPointer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self { steps: Vec::new() });
        }
        let Some(steps) = text.strip_prefix('/') else {
            return Err(format!("expected a JSON pointer, such as {}", suggestion(text)));
        };
        let plain = |step: &str| {
            if step.replace("~0", "").replace("~1", "").contains('~') {
                return Err("in a JSON pointer, ~ is written ~0, and / in a name ~1".to_owned());
            }
            Ok(step.replace("~1", "/").replace("~0", "~"))
        };
        Ok(Self { steps: steps.split('/').map(plain).collect::<Result<_, _>>()? })
    }
}

/// Returns the pointer that another notation may mean: `$.a.b` of JSONPath, `#/a/b` of a URI, `.a.b`
/// of jq.
fn suggestion(text: &str) -> String {
    if let Some(pointer) = text.strip_prefix('#').filter(|rest| rest.starts_with('/')) {
        return pointer.to_owned();
    }
    let path = text.strip_prefix('$').unwrap_or(text);
    match path.strip_prefix('.') {
        Some(names) if !names.contains('/') => format!("/{}", names.replace('.', "/")),
        _ => format!("/{text}"),
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps
            .iter()
            .try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_read_and_written() {
        for text in ["", "/", "/a", "/a/0//b", "/~0~1x", "/~01"] {
            let pointer: JsonPointer = text.parse().unwrap();
            assert_eq!(pointer.to_string(), text);
        }
        let steps = |text: &str| text.parse::<JsonPointer>().unwrap().steps;
        assert_eq!(steps("/~01/a~1b"), ["~1", "a/b"]);
        assert_eq!(
            "url".parse::<JsonPointer>().unwrap_err(),
            "expected a JSON pointer, such as /url"
        );
        for (text, pointer) in [
            ("$.u", "/u"),
            ("$.page.links", "/page/links"),
            (".a.b", "/a/b"),
            ("#/u", "/u"),
            ("#/a/b", "/a/b"),
            ("#u", "/#u"),
            ("$u", "/$u"),
            ("a.b", "/a.b"),
        ] {
            let error = text.parse::<JsonPointer>().unwrap_err();
            assert_eq!(error, format!("expected a JSON pointer, such as {pointer}"), "{text}");
        }
        assert!("/a~".parse::<JsonPointer>().is_err() && "/~2".parse::<JsonPointer>().is_err());
    }
}
