//! Host names in ASCII by IDNA 2003 (RFC 3490), as Python's codec `idna` does it, which both w3lib
//! and surt use.
//!
//! Code points that Unicode 3.2 does not have are allowed and not normalized.

use stringprep::tables;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::decompose_compatible;

/// Returns the name in ASCII; `None` if the codec refuses it.
pub(super) fn to_ascii(name: &str) -> Option<String> {
    if name.is_ascii() {
        return has_valid_lengths(name).then(|| name.to_owned());
    }
    let mut labels: Vec<_> = name.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']).collect();
    let dot = match labels.last() {
        Some(&"") => {
            labels.pop();
            "."
        }
        _ => "",
    };
    let labels: Option<Vec<_>> = labels.into_iter().map(label_to_ascii).collect();
    Some(labels?.join(".") + dot)
}

/// Whether the labels have up to 63 bytes; only the last one may be empty.
fn has_valid_lengths(name: &str) -> bool {
    let mut labels = name.split('.').rev();
    let last = labels.next().unwrap_or_default();
    last.len() < 64 && labels.all(has_valid_length)
}

fn has_valid_length(label: &str) -> bool {
    (1..64).contains(&label.len())
}

fn label_to_ascii(label: &str) -> Option<String> {
    if label.is_ascii() {
        return has_valid_length(label).then(|| label.to_owned());
    }
    let label = nameprep(label)?;
    if label.is_ascii() {
        return has_valid_length(&label).then_some(label);
    }
    if label.starts_with("xn--") {
        return None;
    }
    let ascii = format!("xn--{}", idna::punycode::encode_str(&label)?);
    has_valid_length(&ascii).then_some(ascii)
}

/// RFC 3491, with unassigned code points allowed; `None` if the result has a prohibited one.
fn nameprep(label: &str) -> Option<String> {
    let mut mapped = String::new();
    for c in label.chars().filter(|c| !tables::commonly_mapped_to_nothing(*c)) {
        // For code points that the RFC does not map, Python takes the lowercase of its own version of
        // Unicode first.
        match tables::case_fold_for_nfkc(c).eq([c]) {
            true => mapped.extend(c.to_lowercase().flat_map(tables::case_fold_for_nfkc)),
            false => mapped.extend(tables::case_fold_for_nfkc(c)),
        }
    }
    let label = nfkc(&mapped);
    let is_prohibited = label.chars().any(is_prohibited);
    (!is_prohibited && is_bidi_valid(&label)).then_some(label)
}

/// Normalization form KC of Unicode 3.2.
fn nfkc(text: &str) -> String {
    let is_newer = |c: char| {
        let mut decomposed = None;
        decompose_compatible(c, |part| decomposed = decomposed.or(Some(part)));
        tables::unassigned_code_point(c) && decomposed != Some(c)
    };
    text.split_inclusive(is_newer)
        .flat_map(|text| {
            let (old, newer) = match text.char_indices().next_back() {
                Some((last, c)) if is_newer(c) => text.split_at(last),
                _ => (text, ""),
            };
            old.nfkc().chain(newer.chars())
        })
        .collect()
}

fn is_prohibited(c: char) -> bool {
    tables::non_ascii_space_character(c)
        || tables::non_ascii_control_character(c)
        || tables::private_use(c)
        || tables::non_character_code_point(c)
        || tables::inappropriate_for_plain_text(c)
        || tables::inappropriate_for_canonical_representation(c)
        || tables::change_display_properties_or_deprecated(c)
        || tables::tagging_character(c)
}

/// Section 6 of RFC 3454: a label with letters that are written from right to left has no others,
/// and begins and ends with one.
fn is_bidi_valid(label: &str) -> bool {
    let right_to_left = |c: char| tables::bidi_r_or_al(c) && !tables::unassigned_code_point(c);
    let left_to_right = |c: char| tables::bidi_l(c) && !tables::unassigned_code_point(c);
    if !label.chars().any(right_to_left) {
        return true;
    }
    !label.chars().any(left_to_right)
        && label.chars().next().is_some_and(right_to_left)
        && label.chars().next_back().is_some_and(right_to_left)
}
