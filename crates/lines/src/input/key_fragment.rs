//! The fragment of an input's name, as in a URL: what the key of its records is.
//!
//! | fragment | key |
//! |---|---|
//! | `#url,host` | columns, as [`Columns::parse_list`] reads them |
//! | `#/page/url&/n` | values at JSON pointers |
//! | `#` | the line |
//!
//! Settings follow after `&`: `separator=`, `header=` and `format=`. A byte may be written as `%` and two
//! hexadecimal digits.

use std::fmt;

use crate::keys::{Column, Columns, Fields, JsonPointer, JsonValues, KeySpec};

/// The keys of one input, which the name of the input gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFragment {
    /// The fragment as it was written, without `#`.
    text: String,
    key: Key,
    /// Whether the input may be a table.
    pub(super) is_table: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Line,
    Columns {
        columns: Vec<Column>,
        /// `None`: as for the job.
        separator: Option<u8>,
        header: Option<bool>,
    },
    Json(JsonValues),
}

impl Key {
    /// Returns the name of the format that has such keys.
    fn format(&self) -> &'static str {
        match self {
            Self::Line => "lines",
            Self::Columns { .. } => "csv",
            Self::Json(_) => "json",
        }
    }

    /// Returns what the key is, for an error.
    fn shown(&self) -> &'static str {
        match self {
            Self::Line => "the line",
            Self::Columns { .. } => "a column",
            Self::Json(_) => "a value in JSON",
        }
    }
}

impl KeyFragment {
    /// Reads a fragment without its `#`.
    ///
    /// # Errors
    /// If it names no key, an unknown setting, or two that contradict each other.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split('&').map(decoded);
        let first = parts.next().unwrap_or(Ok(String::new()))?;
        let mut pointers = Vec::new();
        let mut key = match &first[..] {
            "" => Key::Line,
            pointer if pointer.starts_with('/') => {
                pointers.push(pointer.parse::<JsonPointer>()?);
                Key::Json(JsonValues(Vec::new()))
            }
            list => {
                let columns = Columns::parse_list(list)?;
                Key::Columns { columns, separator: None, header: None }
            }
        };
        let (mut is_table, mut known) = (true, Vec::new());
        for part in parts {
            let part = part?;
            if part.starts_with('/') && !pointers.is_empty() {
                pointers.push(part.parse()?);
                continue;
            }
            let Some((name, value)) = part.split_once('=') else {
                return Err(format!(
                    "expected a setting such as header=no after &, found {part:?}; write & in a name as %26"
                ));
            };
            if known.contains(&name.to_owned()) {
                return Err(format!("has {name}= twice; leave out one of them"));
            }
            known.push(name.to_owned());
            match name {
                "separator" => key.set_separator(value)?,
                "header" => key.set_header(value)?,
                "format" => {
                    check_format(value, &key)?;
                    is_table = false;
                }
                _ => {
                    return Err(format!(
                        "{name:?} is not a setting, expected separator, header or format; correct it"
                    ));
                }
            }
        }
        if let Key::Json(values) = &mut key {
            values.0 = pointers;
        }
        Ok(Self { text: text.to_owned(), key, is_table })
    }

    /// Returns the fields of the key; what the fragment does not say is as for the job.
    pub(super) fn fields(&self, job: &KeySpec) -> Fields {
        match &self.key {
            Key::Line => Fields::Line,
            Key::Json(values) => Fields::Json(values.clone()),
            Key::Columns { columns, separator, header } => {
                let of_job = match &job.fields {
                    Fields::Columns(columns) => columns.clone(),
                    _ => job.csv.clone(),
                };
                Fields::Columns(Columns {
                    columns: columns.clone(),
                    separator: separator.or(of_job.separator),
                    header: header.unwrap_or(of_job.header),
                    ..of_job
                })
            }
        }
    }
}

impl Key {
    fn set_separator(&mut self, value: &str) -> Result<(), String> {
        let shown = self.shown();
        let Self::Columns { separator, .. } = self else {
            return Err(format!("has separator={value}, but its key is {shown}; leave it out"));
        };
        let byte = Columns::parse_byte(value);
        *separator = Some(byte.map_err(|problem| format!("separator={value}: {problem}"))?);
        Ok(())
    }

    fn set_header(&mut self, value: &str) -> Result<(), String> {
        let shown = self.shown();
        let Self::Columns { columns, header, .. } = self else {
            return Err(format!("has header={value}, but its key is {shown}; leave it out"));
        };
        let is_header = match value {
            "yes" => true,
            "no" => false,
            _ => return Err(format!("header={value}: expected yes or no")),
        };
        let name = columns.iter().find(|column| matches!(column, Column::Name(_)));
        if let (false, Some(name)) = (is_header, name) {
            return Err(format!(
                "has header=no, but the column {name} is found by its name in a header; give its number"
            ));
        }
        *header = Some(is_header);
        Ok(())
    }
}

fn check_format(value: &str, key: &Key) -> Result<(), String> {
    if !["csv", "json", "lines"].contains(&value) {
        return Err(format!("format={value}: expected csv, json or lines"));
    }
    match key.format() == value {
        true => Ok(()),
        false => {
            Err(format!("has format={value}, but its key is {}; change one of them", key.shown()))
        }
    }
}

/// Replaces each `%` with two hexadecimal digits after it by the byte that they are.
fn decoded(text: &str) -> Result<String, String> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let code = match (byte, after) {
            (b'%', [high, low, ..]) => digit(high).zip(digit(low)),
            _ => None,
        };
        bytes.push(code.map_or(byte, |(high, low)| high << 4 | low));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes)
        .map_err(|_| format!("{text:?} is not UTF-8 with its %; write % as %25"))
}

impl fmt::Display for KeyFragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    fn fields(text: &str) -> Fields {
        KeyFragment::parse(text).unwrap().fields(&KeySpec::default())
    }

    fn columns(list: &str, separator: Option<u8>, header: bool) -> Fields {
        let columns = Columns::parse_list(list).unwrap();
        Fields::Columns(Columns { columns, separator, header, ..Columns::default() })
    }

    #[test]
    fn fragment_gives_the_fields() {
        assert_eq!(fields(""), Fields::Line);
        assert_eq!(fields("&format=lines"), Fields::Line);
        assert_eq!(fields("url,2"), columns("url,2", None, false));
        assert_eq!(fields("2&header=yes&separator=;"), columns("2", Some(b';'), true));
        assert_eq!(fields("2&separator=%26&format=csv"), columns("2", Some(b'&'), false));
        assert_eq!(fields("R%26D,c%23,50%,%zz"), columns("R&D,c#,50%,%zz", None, false));
        assert_eq!(fields("\"/a\""), columns("\"/a\"", None, false));
        let json = |pointers: &[&str]| {
            Fields::Json(JsonValues(pointers.iter().map(|text| text.parse().unwrap()).collect()))
        };
        assert_eq!(fields("/a,b/0"), json(&["/a,b/0"]));
        assert_eq!(fields("/a&/b&format=json"), json(&["/a", "/b"]));
    }

    #[test]
    fn what_a_fragment_leaves_out_is_as_for_the_job() {
        let columns = Columns {
            columns: vec![Column::Number(7)],
            separator: Some(b'|'),
            escape: Some(b'\\'),
            header: true,
            ..Columns::default()
        };
        let without_columns = KeySpec { csv: columns.clone(), ..KeySpec::default() };
        let with_columns = KeySpec { fields: Fields::Columns(columns), ..KeySpec::default() };
        for job in [with_columns, without_columns] {
            let of = |text: &str| match KeyFragment::parse(text).unwrap().fields(&job) {
                Fields::Columns(columns) => (columns.separator, columns.escape, columns.header),
                other => panic!("{other:?}"),
            };
            assert_eq!(of("1"), (Some(b'|'), Some(b'\\'), true));
            assert_eq!(of("1&header=no&separator=tab"), (Some(b'\t'), Some(b'\\'), false));
            assert_eq!(KeyFragment::parse("").unwrap().fields(&job), Fields::Line);
        }
    }

    #[test]
    fn contradictions_and_unknown_settings_are_errors() {
        for (text, problem) in [
            ("a,", "expected names or numbers"),
            ("0", "counted from 1"),
            ("a&b", "found \"b\""),
            ("a&/b", "found \"/b\""),
            ("a&colour=red", "\"colour\" is not a setting, expected separator, header or format"),
            ("a&header=no", "header=no, but the column \"a\""),
            ("1&header=maybe", "expected yes or no"),
            ("1&header=no&header=no", "has header= twice"),
            ("1&separator=ab", "separator=ab: expected one byte"),
            ("&separator=,", "separator=,, but its key is the line"),
            ("/a&header=yes", "header=yes, but its key is a value in JSON"),
            ("/a&format=csv", "format=csv, but its key is a value in JSON"),
            ("a&format=json", "format=json, but its key is a column"),
            ("&format=csv", "format=csv, but its key is the line"),
            ("a&format=lines", "format=lines, but its key is a column"),
            ("a&format=xml", "format=xml: expected csv, json or lines"),
            ("/a~2", "~ is written ~0"),
            ("%ff", "not UTF-8"),
        ] {
            let error = KeyFragment::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn hostile_fragments_are_read_or_refused_in_one_line() {
        let mut rng = Rng::new(40);
        for _ in 0..20_000 {
            const PARTS: [&str; 22] = [
                "&",
                "=",
                "/",
                "~",
                "%",
                "%26",
                "%f0",
                "#",
                "\"",
                ",",
                "a",
                "1",
                "0",
                "é",
                "\n",
                "separator",
                "header",
                "format",
                "yes",
                "no",
                "csv",
                "json",
            ];
            let text: String = (0..rng.below(9)).map(|_| *rng.pick(&PARTS)).collect();
            match KeyFragment::parse(&text) {
                Ok(keys) => assert_eq!(keys.to_string(), format!("#{text}")),
                Err(problem) => assert!(!problem.contains('\n'), "{text:?}: {problem}"),
            }
        }
    }
}
