//! The metadata of filter files: what the keys of a filter of lines are, and how they are spelled.

use serde_json::json;
use std::fmt;

use crate::input::Source;
use crate::keys::{
    Fields, HexCase, HexShape, KeySpec, LineEnds, Spelling, Transform, parse_transforms,
    transforms_text,
};

/// The metadata of filter files that are built from lines. It has no time stamp and no file names,
/// so the same lines give the same file.
pub const METADATA: &str = concat!(
    r#"{"producer":"petal "#,
    env!("CARGO_PKG_VERSION"),
    r#"","keys":"lines as bytes, without their delimiter"}"#
);

/// What [`METADATA`] says of the keys.
const LINES: &str = "lines as bytes, without their delimiter";

/// The field of the metadata that says what the keys are.
const KEYS: &str = "keys";

/// The field of the metadata with the names of the transforms, separated by commas.
const KEY_TRANSFORM: &str = "key_transform";

/// The field of the metadata with the names of the transforms of queries, if they are others.
const QUERY_TRANSFORM: &str = "query_transform";

/// The field of the metadata with the line ends whose CR is part of a key, and its values; LF is not
/// recorded.
const LINE_ENDS: &str = "line_ends";
const CRLF: &str = "CRLF";
const BOTH_ENDS: &str = "LF and CRLF";

/// The field of the metadata with the shape of keys that all are hexadecimal, or the bytes of digits: its
/// case, the number of digits, and the number of keys that the filter had when it was recorded. With
/// another number it is not trusted: a program may add keys and keep the metadata.
const HEX: &str = "hex";
const CASE: &str = "case";
const LOWER: &str = "lower";
const UPPER: &str = "upper";
const BYTES: &str = "bytes";
const LENGTH: &str = "length";

/// The field of the metadata with the id of a fingerprint log.
const LOG_ID: &str = "exact";

/// Returns the metadata of a filter of the keys of these inputs, which are made in this way.
#[must_use]
pub fn filter_metadata(keys: &KeySpec, inputs: &[Source]) -> String {
    let text = |fields: &Fields| match fields {
        Fields::Line | Fields::Checksum(_) => LINES.to_owned(),
        _ => fields.to_string(),
    };
    let mut texts: Vec<_> = Source::all_fields(inputs, keys).iter().map(text).collect();
    texts.dedup();
    let metadata = match &texts[..] {
        [one] if one == LINES => METADATA.to_owned(),
        [one] => with_field(METADATA, KEYS, one.clone()),
        several => with_field(METADATA, KEYS, several.to_vec()),
    };
    // The shape of queries is implied.
    let is_own = |transform: &&Transform| !matches!(transform, Transform::ToCase(_));
    let transforms: Vec<_> = keys.transforms.iter().filter(is_own).cloned().collect();
    match &transforms[..] {
        [] => metadata,
        transforms => with_field(&metadata, KEY_TRANSFORM, transforms_text(transforms)),
    }
}

/// Returns what the keys of a filter are, from its metadata: usually one text, several if keys of
/// different fields were added. Empty if the metadata does not say it.
#[must_use]
pub fn recorded_keys(metadata: &str) -> Vec<String> {
    let fields: serde_json::Value = serde_json::from_str(metadata).unwrap_or_default();
    match &fields[KEYS] {
        serde_json::Value::String(one) => vec![one.clone()],
        serde_json::Value::Array(several) => {
            several.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the metadata of a filter to which keys of another filter, or of a job, were added, given
/// the metadata of both.
#[must_use]
pub fn with_keys_of(metadata: &str, other: &str) -> String {
    let mut keys = recorded_keys(metadata);
    let known = keys.len();
    for text in recorded_keys(other) {
        if !keys.contains(&text) {
            keys.push(text);
        }
    }
    match keys.len() == known || known == 0 {
        true => metadata.to_owned(),
        false => with_field(metadata, KEYS, keys),
    }
}

/// Returns the transforms of a filter's keys, from its metadata; `None` if it is not the metadata of
/// a filter of lines. Filters of earlier versions have none.
///
/// # Errors
/// The list, if this version of petal does not know a transform.
pub fn recorded_transforms(metadata: &str) -> std::result::Result<Option<Vec<Transform>>, String> {
    let fields = |text| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let recorded = fields(metadata);
    match &recorded[KEY_TRANSFORM] {
        serde_json::Value::Null => {
            let known = |keys: &String| {
                keys == LINES || keys.contains(" of CSV") || keys.ends_with(" of JSON")
            };
            let keys = recorded_keys(metadata);
            Ok((!keys.is_empty() && keys.iter().all(known)).then(Vec::new))
        }
        serde_json::Value::String(list) => {
            parse_transforms(list).map(Some).map_err(|_| list.clone())
        }
        other => Err(other.to_string()),
    }
}

/// Returns the metadata of a filter whose keys are queried after these transforms instead of those of its
/// keys: the keys of a list of digests are digests already.
#[must_use]
pub fn with_query_transforms(metadata: &str, transforms: &[Transform]) -> String {
    match transforms {
        [] => metadata.to_owned(),
        _ => with_field(metadata, QUERY_TRANSFORM, transforms_text(transforms)),
    }
}

/// How the keys of a filter of lines were changed, and how those are that are looked up in it. Two are equal
/// if keys and queries are.
#[derive(Clone, Debug, Default)]
pub struct KeyChanges {
    keys: Option<Vec<Transform>>,
    /// Those of queries, if they are others.
    queries: Option<Vec<Transform>>,
}

impl KeyChanges {
    /// Reads the metadata of a filter.
    ///
    /// # Errors
    /// The list, if this version of petal does not know a transform.
    pub fn recorded(metadata: &str) -> std::result::Result<Self, String> {
        let fields: serde_json::Value = serde_json::from_str(metadata).unwrap_or_default();
        let queries = match &fields[QUERY_TRANSFORM] {
            serde_json::Value::Null => None,
            serde_json::Value::String(list) => {
                Some(parse_transforms(list).map_err(|_| list.clone())?)
            }
            other => return Err(other.to_string()),
        };
        Ok(Self { keys: recorded_transforms(metadata)?, queries })
    }

    /// Returns the transforms of the keys; `None` if the metadata says nothing about keys.
    #[must_use]
    pub fn of_keys(&self) -> Option<&[Transform]> {
        self.keys.as_deref()
    }

    /// Returns the transforms that the filter records for queries, if they are not those of its keys.
    #[must_use]
    pub fn of_queries_only(&self) -> Option<&[Transform]> {
        self.queries.as_deref()
    }

    /// Returns the transforms that the filter records for queries, which are those of its keys if it has
    /// no others; `None` if the metadata says nothing about keys.
    #[must_use]
    pub fn recorded_of_queries(&self) -> Option<&[Transform]> {
        self.queries.as_deref().or(self.of_keys())
    }

    /// Returns the transforms of queries, given how the keys are spelled, and those that the user gave:
    /// hexadecimal keys in one case are found in the other, too. `None` if the metadata says nothing about
    /// keys.
    #[must_use]
    pub fn of_queries(
        &self,
        spelling: Option<Spelling>,
        given: &[Transform],
    ) -> Option<Vec<Transform>> {
        let mut transforms = self.recorded_of_queries()?.to_vec();
        if self.may_become_digests(spelling, given) {
            transforms = given.to_vec();
        }
        transforms.extend(spelling.and_then(|keys| keys.transform_to_case(&transforms)));
        Some(transforms)
    }

    /// Returns whether queries may be changed by these transforms instead of those that are recorded. The keys
    /// of a list of digests are digests already, and queries may become such, or be such although the filter
    /// hashes them: other results are refused by their length.
    fn may_become_digests(&self, spelling: Option<Spelling>, given: &[Transform]) -> bool {
        let shape = spelling.and_then(Spelling::hex_shape);
        let Some(recorded) = self.recorded_of_queries() else { return false };
        match self.queries.is_some() || recorded.iter().any(Transform::is_digest) {
            true => !given.is_empty() && shape.is_some_and(|shape| shape.length.is_some()),
            false => recorded.is_empty() && shape.is_some(),
        }
    }

    /// Returns the transforms for keys that are added: those of the keys, in the shape of queries as in
    /// [`KeySpec::queried_after`], or those `given` if the metadata says nothing about keys.
    ///
    /// # Errors
    /// The transforms of the keys, if others were given.
    pub fn adopt(&self, given: &[Transform]) -> std::result::Result<Vec<Transform>, &[Transform]> {
        let Some(recorded) = self.of_keys() else { return Ok(given.to_vec()) };
        if !given.is_empty() && given != recorded {
            return Err(recorded);
        }
        let mut transforms = recorded.to_vec();
        let queries = self.of_queries_only().unwrap_or_default();
        transforms.extend(Transform::to_shape_of(queries, recorded));
        Ok(transforms)
    }

    /// Returns the transforms for keys that are looked up: [`of_queries`](Self::of_queries), or those `given`
    /// if the metadata says nothing about keys.
    ///
    /// # Errors
    /// The recorded transforms of queries, if others were given.
    pub fn adopt_for_queries(
        &self,
        spelling: Option<Spelling>,
        given: &[Transform],
    ) -> std::result::Result<Vec<Transform>, &[Transform]> {
        let recorded = self.recorded_of_queries();
        let (Some(recorded), Some(all)) = (recorded, self.of_queries(spelling, given)) else {
            return Ok(given.to_vec());
        };
        let before = match all.split_last() {
            Some((Transform::ToCase(_), before)) => before,
            _ => &all[..],
        };
        let is_same = given.is_empty() || given == recorded || given == before;
        if is_same { Ok(all) } else { Err(recorded) }
    }
}

impl PartialEq for KeyChanges {
    fn eq(&self, other: &Self) -> bool {
        let both = |changes: &Self| {
            [changes.of_keys(), changes.recorded_of_queries()]
                .map(|list| list.unwrap_or_default().to_vec())
        };
        both(self) == both(other)
    }
}

/// "not changed", or "changed by" the names, and how queries are changed.
impl fmt::Display for KeyChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of_keys() {
            None | Some([]) => f.write_str("not changed")?,
            Some(list) => write!(f, "changed by '{}'", transforms_text(list))?,
        }
        match &self.queries {
            None => Ok(()),
            Some(list) => write!(f, " (queries by '{}')", transforms_text(list)),
        }
    }
}

/// The fields that petal writes.
const RESERVED: [&str; 7] =
    ["producer", KEYS, KEY_TRANSFORM, QUERY_TRANSFORM, LINE_ENDS, HEX, LOG_ID];

/// Returns the metadata with a field of the user's, such as a source, a date or a licence.
///
/// # Errors
/// If the name is not one of letters, digits, `_`, `-` and `.`, or is one of petal's own; if the text has
/// control characters; if the metadata is no object of JSON.
pub fn with_note(metadata: &str, name: &str, text: &str) -> std::result::Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err(format!("'{name}' is no name; use letters, digits, '_', '-' and '.'"));
    }
    if RESERVED.contains(&name) {
        return Err(format!("'{name}' is a field of petal's own; use another name"));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("the text of '{name}' has a control character; leave it out"));
    }
    if !matches!(serde_json::from_str(metadata), Ok(serde_json::Value::Object(_))) {
        return Err("the filter's metadata is no object of JSON, which could have it".to_owned());
    }
    Ok(with_field(metadata, name, text))
}

/// Returns whether it is the metadata of a filter of lines, of this version or another one.
fn is_of_lines(metadata: &str) -> bool {
    recorded_transforms(metadata) != Ok(None)
}

/// Returns how the keys of a filter with `inserted` keys are spelled, from its metadata; `None` if it is
/// not the metadata of a filter of lines.
#[must_use]
pub fn recorded_spelling(metadata: &str, inserted: u64) -> Option<Spelling> {
    if !is_of_lines(metadata) {
        return None;
    }
    let fields: serde_json::Value = serde_json::from_str(metadata).unwrap_or_default();
    let ends = match fields[LINE_ENDS].as_str() {
        Some(CRLF) => LineEnds::Crlf,
        Some(BOTH_ENDS) => LineEnds::Both,
        _ => LineEnds::Lf,
    };
    let shape = shape(&fields[HEX], inserted);
    Some(if inserted == 0 { Spelling::default() } else { Spelling::new(ends, shape) })
}

/// Reads the shape of the keys of a filter with `inserted` keys.
fn shape(recorded: &serde_json::Value, inserted: u64) -> Option<HexShape> {
    let case = match recorded[CASE].as_str()? {
        LOWER => HexCase::Lower,
        UPPER => HexCase::Upper,
        BYTES => HexCase::Bytes,
        _ => return None,
    };
    let is_known = recorded[KEYS].as_u64() == Some(inserted);
    is_known.then(|| HexShape { case, length: recorded[LENGTH].as_u64() })
}

/// Returns the metadata of a filter whose `inserted` keys are spelled in this way; as it is if it is not
/// the metadata of a filter of lines.
#[must_use]
pub fn with_spelling(metadata: &str, spelling: Spelling, inserted: u64) -> String {
    if !is_of_lines(metadata) {
        return metadata.to_owned();
    }
    let ends = match spelling.line_ends() {
        Some(LineEnds::Crlf) => CRLF.into(),
        Some(LineEnds::Both) => BOTH_ENDS.into(),
        Some(LineEnds::Lf) | None => NULL,
    };
    let shape = spelling.hex_shape().map_or(NULL, |HexShape { case, length }| {
        let case = match case {
            HexCase::Lower => LOWER,
            HexCase::Upper => UPPER,
            HexCase::Bytes => BYTES,
        };
        match length {
            Some(length) => json!({ CASE: case, LENGTH: length, KEYS: inserted }),
            None => json!({ CASE: case, KEYS: inserted }),
        }
    });
    // In this order whatever was recorded before.
    let metadata = with_field(metadata, HEX, NULL);
    with_field(&with_field(&metadata, LINE_ENDS, ends), HEX, shape)
}

/// Returns the metadata of a filter after keys were removed, or it was converted: it had `before` keys and
/// has `after`.
#[must_use]
pub fn with_fewer_keys(metadata: &str, before: u64, after: u64) -> String {
    match recorded_spelling(metadata, before) {
        Some(spelling) if before != after => with_spelling(metadata, spelling, after),
        _ => metadata.to_owned(),
    }
}

/// Returns the metadata of the union of two filters, given the metadata and the number of keys of both,
/// and the number of keys of the union. It is not known how keys are spelled whose metadata is not that
/// of lines.
#[must_use]
pub fn union_metadata(
    (metadata, inserted): (&str, u64),
    (other, others): (&str, u64),
    inserted_in_union: u64,
) -> String {
    let union = with_keys_of(metadata, other);
    let Some(recorded) = recorded_spelling(metadata, inserted) else { return union };
    let unknown = || if others == 0 { Spelling::default() } else { Spelling::UNKNOWN };
    let added = recorded_spelling(other, others).unwrap_or_else(unknown);
    with_spelling(&union, recorded.union(added), inserted_in_union)
}

/// Returns the metadata of a filter that belongs to a fingerprint log, whose
/// [`pair_id`](crate::FingerprintLog::pair_id) this is.
#[must_use]
pub fn with_log_id(metadata: &str, id: u64) -> String {
    with_field(metadata, LOG_ID, format!("{id:016x}"))
}

/// Returns the id of the fingerprint log that a filter belongs to, from its metadata; `None` if it
/// belongs to none.
#[must_use]
pub fn recorded_log_id(metadata: &str) -> Option<u64> {
    let fields: serde_json::Value = serde_json::from_str(metadata).ok()?;
    u64::from_str_radix(fields[LOG_ID].as_str()?, 16).ok()
}

/// Returns the metadata with another field, or with one less if the value is null; as it is if nothing
/// changes or it is not an object of JSON.
fn with_field(metadata: &str, name: &str, value: impl Into<serde_json::Value>) -> String {
    let (value, parsed) = (value.into(), serde_json::from_str(metadata));
    match parsed {
        Ok(serde_json::Value::Object(mut fields))
            if fields.get(name).unwrap_or(&NULL) != &value =>
        {
            match value {
                serde_json::Value::Null => drop(fields.shift_remove(name)),
                value => drop(fields.insert(name.to_owned(), value)),
            }
            serde_json::Value::Object(fields).to_string()
        }
        _ => metadata.to_owned(),
    }
}

const NULL: serde_json::Value = serde_json::Value::Null;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::JsonValues;

    #[test]
    fn id_of_a_fingerprint_log_is_read_back() {
        assert_eq!(recorded_log_id(&with_log_id(METADATA, 0xabc)), Some(0xabc));
        assert_eq!(recorded_keys(&with_log_id(METADATA, u64::MAX)), [LINES]);
        for other in [METADATA, "", "{}", r#"{"exact":1}"#, r#"{"exact":"x"}"#] {
            assert_eq!(recorded_log_id(other), None, "{other}");
        }
    }

    #[test]
    fn metadata_lists_the_fields_of_all_keys() {
        let of = |pointer: &str| {
            let fields = Fields::Json(JsonValues(vec![pointer.parse().unwrap()]));
            filter_metadata(&KeySpec { fields, ..KeySpec::default() }, &[])
        };
        let (a, b) = (of("/a"), of("/b"));
        assert_eq!(with_keys_of(&a, &a), a);
        let both = with_keys_of(&a, &b);
        let texts = [r#"value "/a" of JSON"#, r#"value "/b" of JSON"#];
        assert_eq!(recorded_keys(&both), texts);
        assert_eq!(recorded_transforms(&both), Ok(Some(vec![])));
        assert_eq!(with_keys_of(&both, &b), both);
        let all = with_keys_of(&both, METADATA);
        assert_eq!(recorded_keys(&all), [texts[0], texts[1], LINES]);
        assert_eq!(recorded_transforms(&all), Ok(Some(vec![])));
        // Nothing is known of the keys of other programs.
        for other in ["", "{}", "text"] {
            assert_eq!(with_keys_of(other, &a), other);
            assert_eq!(with_keys_of(&a, other), a);
        }
    }

    #[test]
    fn spelling_is_read_back_from_metadata() {
        let (mut seen, mut texts) = (Vec::new(), Vec::new());
        let of = |case, length| Some(HexShape { case, length });
        let shapes =
            [HexCase::Lower, HexCase::Upper].map(|case| [of(case, None), of(case, Some(40))]);
        let shapes = [&shapes[0][..], &shapes[1], &[of(HexCase::Bytes, Some(40))]];
        for ends in [LineEnds::Lf, LineEnds::Crlf, LineEnds::Both] {
            for shape in shapes.concat().into_iter().chain([None]) {
                let spelling = Spelling::new(ends, shape);
                let text = with_spelling(METADATA, spelling, 2);
                let read = recorded_spelling(&text, 2).unwrap();
                assert_eq!((read.line_ends(), read.hex_shape()), (Some(ends), shape), "{text}");
                assert_eq!(with_spelling(&text, spelling, 2), text);
                let none = Spelling::new(LineEnds::Lf, None);
                assert_eq!(with_spelling(&text, none, 3), METADATA);
                // Other keys were added, or some removed, by a program that kept the metadata.
                for inserted in [1, 3] {
                    let unknown = recorded_spelling(&text, inserted).unwrap();
                    assert_eq!((unknown.line_ends(), unknown.hex_shape()), (Some(ends), None));
                    let fewer = with_fewer_keys(&text, 2, inserted);
                    assert_eq!(recorded_spelling(&fewer, inserted), Some(spelling));
                }
                assert_eq!(
                    with_fewer_keys(&text, 3, 2),
                    with_spelling(&text, recorded_spelling(&text, 3).unwrap(), 2)
                );
                seen.push(spelling);
                texts.push(text);
            }
        }
        // The union of two sets has the spellings of both; an empty set has none.
        for (one, text) in seen.iter().zip(&texts) {
            for (other, others) in seen.iter().zip(&texts) {
                let union = union_metadata((text, 2), (others, 2), 4);
                assert_eq!(union, with_spelling(METADATA, one.union(*other), 4));
                assert_eq!(union_metadata((text, 0), (others, 2), 2), *others);
                assert_eq!(union_metadata((text, 2), (others, 0), 2), *text);
            }
        }
        for other in ["", "{}", "text", r#"{"keys":"records"}"#] {
            assert_eq!(recorded_spelling(other, 1), None, "{other}");
            assert_eq!(with_spelling(other, seen[3], 1), other);
            assert_eq!(with_fewer_keys(other, 1, 0), other);
            // Keys from elsewhere may be spelled in any way.
            let upper_and_unknown = union_metadata((&texts[3], 2), (other, 2), 4);
            let recorded = recorded_spelling(&upper_and_unknown, 4);
            assert_eq!(recorded.and_then(Spelling::hex_case), None, "{other}");
            assert_eq!(
                union_metadata((&texts[3], 2), (other, 0), 2),
                with_keys_of(&texts[3], other)
            );
        }
    }

    #[test]
    fn notes_are_fields_beside_those_of_petal() {
        let noted = with_note(METADATA, "source", "a \"list\"").unwrap();
        assert!(noted.ends_with(r#","source":"a \"list\""}"#), "{noted}");
        assert_eq!(recorded_keys(&noted), [LINES]);
        assert_eq!(with_note(&noted, "source", "b").unwrap(), noted.replace("a \\\"list\\\"", "b"));
        for name in ["", "a b", "keys", "hex", "producer", "\u{e4}"] {
            assert!(with_note(METADATA, name, "x").is_err(), "{name}");
        }
        assert!(with_note(METADATA, "a", "x\ny").is_err());
        assert!(with_note("text", "a", "x").is_err());
    }

    #[test]
    fn transforms_are_read_back_from_metadata() {
        for list in ["", "trim", "strip-query=a\"*,lowercase"] {
            let transforms = parse_transforms(list).unwrap();
            let keys = KeySpec { transforms: transforms.clone(), ..KeySpec::default() };
            let metadata = filter_metadata(&keys, &[]);
            assert_eq!(recorded_transforms(&metadata), Ok(Some(transforms.clone())), "{list}");
            let crlf = with_spelling(&metadata, Spelling::new(LineEnds::Crlf, None), 1);
            assert_eq!(recorded_transforms(&crlf), Ok(Some(transforms)), "{list}");
        }
        assert_eq!(filter_metadata(&KeySpec::default(), &[]), METADATA);
        for other in ["", "{}", "text", r#"{"keys":"records"}"#, "[1]"] {
            assert_eq!(recorded_transforms(other), Ok(None), "{other}");
        }
        assert_eq!(recorded_keys(METADATA), [LINES]);
        let newer = r#"{"key_transform":"trim,newer"}"#;
        assert_eq!(recorded_transforms(newer), Err("trim,newer".to_owned()));
        assert!(recorded_transforms(r#"{"key_transform":["trim"]}"#).is_err());
        let queries = parse_transforms("sha1,uppercase").unwrap();
        let metadata = with_query_transforms(METADATA, &queries);
        let changes = KeyChanges::recorded(&metadata).unwrap();
        assert_eq!(changes.of_queries_only(), Some(&queries[..]));
        assert_eq!(KeyChanges::recorded(METADATA).unwrap().of_queries_only(), None);
        assert_eq!(with_query_transforms(METADATA, &[]), METADATA);
        assert!(KeyChanges::recorded(r#"{"query_transform":"newer"}"#).is_err());
    }

    #[test]
    fn queries_are_changed_as_recorded_and_in_the_case_of_the_keys() {
        let list = |text| parse_transforms(text).unwrap();
        let recorded = |metadata: &str| KeyChanges::recorded(metadata).unwrap();
        let trimmed =
            filter_metadata(&KeySpec { transforms: list("trim"), ..KeySpec::default() }, &[]);
        let queried = with_query_transforms(&trimmed, &list("sha1"));
        let shape = HexShape { case: HexCase::Upper, length: None };
        let upper = Some(Spelling::new(LineEnds::Lf, Some(shape)));
        for (metadata, queries) in [(METADATA, ""), (&trimmed, "trim"), (&queried, "sha1")] {
            let changes = recorded(metadata);
            assert_eq!(changes.of_queries(None, &[]), Some(list(queries)), "{metadata}");
            let mut all = list(queries);
            all.push(Transform::ToCase(shape));
            assert_eq!(changes.of_queries(upper, &[]), Some(all.clone()), "{metadata}");
            for given in [vec![], list(queries)] {
                assert_eq!(changes.adopt_for_queries(upper, &given), Ok(all.clone()), "{metadata}");
            }
            let others = changes.adopt_for_queries(upper, &list("sha256"));
            match queries {
                // A key of another kind becomes a digest.
                "" => assert_eq!(others.unwrap()[0], Transform::Sha256),
                _ => assert_eq!(others, Err(&list(queries)[..]), "{metadata}"),
            }
        }
        // The result must have the length of the keys, so queries may be digests already.
        let long = HexShape { length: Some(40), ..shape };
        let spelling = Some(Spelling::new(LineEnds::Lf, Some(long)));
        let changes = recorded(&queried);
        let asked = changes.adopt_for_queries(spelling, &list("trim"));
        assert_eq!(asked, Ok(vec![Transform::Trim, Transform::ToCase(long)]));
        let digests = Transform::ToCase(HexShape { case: HexCase::Lower, length: Some(40) });
        assert_eq!(recorded(&queried).adopt(&[]), Ok(vec![Transform::Trim, digests]));
        assert_eq!(recorded(&queried).adopt(&list("sha1")), Err(&list("trim")[..]));
        let twice = with_query_transforms(METADATA, &list("uppercase"));
        let of_twice = recorded(&twice).of_queries(upper, &[]).unwrap();
        assert_eq!(of_twice, [Transform::Uppercase, Transform::ToCase(shape)]);
        // Nothing is known of the keys of other programs.
        assert_eq!(recorded("").of_queries(upper, &[]), None);
        assert_eq!(recorded("").adopt_for_queries(upper, &list("trim")), Ok(list("trim")));
        // Equal queries are equal, however they are recorded.
        assert_eq!(recorded(&trimmed), recorded(&with_query_transforms(&trimmed, &list("trim"))));
        assert_ne!(recorded(&trimmed), recorded(&queried));
        assert_ne!(recorded(&trimmed), recorded(METADATA));
        assert_eq!(recorded(METADATA), recorded(""));
        assert_eq!(recorded(&queried).to_string(), "changed by 'trim' (queries by 'sha1')");
    }
}
