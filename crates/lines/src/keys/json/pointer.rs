//! JSON pointers (RFC 6901).

use std::fmt;
use std::str::FromStr;

/// Steps of a pointer. A record is read once for each step, and few programs write or read JSON that
/// is nested deeper.
const MAX_STEPS: usize = 128;

/// A JSON pointer: where in a JSON text a value is. It has at most 128 parts.
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
        let count = steps.split('/').count();
        if count > MAX_STEPS {
            return Err(format!("a JSON pointer has at most {MAX_STEPS} parts, found {count}"));
        }
        let plain = |step: &str| {
            if !step.split('~').skip(1).all(|rest| rest.starts_with(['0', '1'])) {
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
    }

    #[test]
    fn tilde_without_0_or_1_is_an_error() {
        for text in ["/a~", "/~2", "/11~~010/", "/~~0", "/~/0", "/~~1"] {
            let error = text.parse::<JsonPointer>().unwrap_err();
            assert!(error.starts_with("in a JSON pointer, ~ is written ~0"), "{text}: {error}");
        }
    }

    #[test]
    fn pointer_of_many_parts_is_an_error() {
        assert!("/a".repeat(128).parse::<JsonPointer>().is_ok());
        let error = "/a".repeat(20_000).parse::<JsonPointer>().unwrap_err();
        assert_eq!(error, "a JSON pointer has at most 128 parts, found 20000");
    }
}
