//! Transforms against their definitions, on hostile bytes.

use proptest::prelude::*;

use super::super::KeySpec;
use super::super::hex_shape::{HexCase, HexShape};
use super::query::matches;
use super::{NAMES, Transform, parse_transforms, transform_key, transforms_text};

fn changed(key: &str, transforms: &str) -> String {
    let transforms = parse_transforms(transforms).unwrap();
    String::from_utf8(transform_key(key.as_bytes(), &transforms).unwrap()).unwrap()
}

#[test]
fn transforms_are_as_documented() {
    let cases = [
        ("\x0c \x0ba\x0bb\t\r\x0b", "trim", "a\x0bb"),
        (" \x0b", "trim", ""),
        ("\x08a\x0e", "trim", "\x08a\x0e"),
        ("\u{a0}a", "trim", "\u{a0}a"),
        ("ABC\u{c4}", "lowercase", "abc\u{c4}"),
        ("ABC\u{c4}\u{3a3}", "lowercase-unicode", "abc\u{e4}\u{3c2}"),
        ("a\r\r", "strip-cr", "a\r"),
        ("abc\u{e4}", "uppercase", "ABC\u{e4}"),
        ("Az\u{7f}", "hex", "417a7f"),
        ("417A7f", "unhex", "Az\u{7f}"),
        ("", "md5", "d41d8cd98f00b204e9800998ecf8427e"),
        ("password", "sha1,uppercase", "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8"),
        ("abc", "sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("", "ntlm", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        ("password", "ntlm", "8846f7eaee8fb117ad06bdd830b7586c"),
        ("http://a/b#c#d", "strip-fragment", "http://a/b"),
        ("/a?utm_source=x&b=1&utm_medium#c", "strip-query=utm_*", "/a?b=1#c"),
        ("/a?utm_source=x", "strip-query=utm_*", "/a"),
        ("/a?b=utm_x", "strip-query=utm_*", "/a?b=utm_x"),
        ("/a#b?utm_x", "strip-query=utm_*", "/a#b?utm_x"),
        ("/a?", "strip-query=*", "/a"),
        ("/a?b=2&a=1&b=1", "sort-query", "/a?a=1&b=2&b=1"),
        (" HTTP://A/?B=1&a=2 ", "trim,sort-query,lowercase", "http://a/?b=1&a=2"),
    ];
    for (key, transforms, expected) in cases {
        assert_eq!(changed(key, transforms), expected, "{transforms} of {key:?}");
    }
}

#[cfg(feature = "url-keys")]
#[test]
fn url_transforms_are_as_documented() {
    let cases = [
        ("cafe\u{301}", "nfc", "caf\u{e9}"),
        ("HTTP://Example.COM:80/a/../b c?q#f", "url", "http://example.com/b%20c?q#f"),
        ("http://a/b^c?d^e#f^g", "url", "http://a/b%5Ec?d^e#f^g"),
        ("FILE://Ex.com/C|/x", "url", "file://ex.com/C:/x"),
        ("file:///x/.%2e//\u{e9}", "url", "file:////%C3%A9"),
        ("file://a b/", "url", "file://a b/"),
        ("file://Ex.com/C:/x", "host", "ex.com"),
        ("file:///x", "host", "file:///x"),
        ("file://a.Ex.com/C:/x", "registered-domain", "ex.com"),
        ("not a URL", "url", "not a URL"),
        ("https://user@WWW.B\u{fc}cher.example:8080/x", "host", "www.xn--bcher-kva.example"),
        ("http://0x7f.1/", "host", "127.0.0.1"),
        ("http://[::0:1]/", "host", "[::1]"),
        ("Example.COM", "host", "example.com"),
        ("example.com/path", "host", "example.com/path"),
        ("word", "host", "word"),
        ("1.2", "host", "1.2"),
        ("mailto:a@b.com", "host", "mailto:a@b.com"),
        ("foo://B\u{fc}cher.Example./", "host", "xn--bcher-kva.example."),
        ("https://a.b.example.co.uk/x", "registered-domain", "example.co.uk"),
        ("https://alice.github.io/", "registered-domain", "alice.github.io"),
        ("news.example.com", "registered-domain", "example.com"),
        ("http://127.0.0.1:80/x", "registered-domain", "127.0.0.1"),
        ("http://localhost/x", "registered-domain", "localhost"),
        ("http://co.uk/", "registered-domain", "co.uk"),
        ("foo://A.Example.COM/", "registered-domain", "example.com"),
        ("http://www.Example.com/b/?z=1&a=2#f", "url-surt", "com,example)/b?a=2&z=1"),
        ("http://www.Example.com/b/?z=1&a=2#f", "url-scrapy", "http://www.example.com/b/?a=2&z=1"),
        ("", "url-surt", "-"),
    ];
    for (key, transforms, expected) in cases {
        assert_eq!(changed(key, transforms), expected, "{transforms} of {key:?}");
    }
}

#[test]
fn keys_that_a_transform_cannot_change_are_refused() {
    let pairs = "expected pairs of hexadecimal digits, which unhex reads";
    for (key, list, expected) in [
        (&b"417A7"[..], "unhex", format!("found 5 hexadecimal digits, {pairs}")),
        (b"41 7", "trim,unhex", format!("found '41 7', {pairs}")),
        (b"pa\xff", "ntlm", "found 3 bytes, expected UTF-8, which ntlm hashes".to_owned()),
        (b"pass", "unhex,sha1", format!("found 4 bytes, {pairs}")),
    ] {
        let transforms = parse_transforms(list).unwrap();
        assert_eq!(transform_key(key, &transforms).unwrap_err(), expected, "{list}");
        let spec = KeySpec { transforms, ..KeySpec::default() };
        assert!(spec.refuses_keys());
        assert_eq!(spec.key(key).unwrap_err(), expected, "{list}");
    }
}

#[test]
fn keys_are_refused_unless_they_have_the_length_of_the_shape() {
    let shape = |case, length| [Transform::ToCase(HexShape { case, length })];
    let upper = shape(HexCase::Upper, Some(32));
    let (lower_key, upper_key) = ("0a".repeat(16), "0A".repeat(16));
    assert_eq!(transform_key(lower_key.as_bytes(), &upper).unwrap(), upper_key.as_bytes());
    let separated = format!("{}-ab", "0a".repeat(16));
    for (key, found) in [
        ("", "nothing"),
        ("0a", "2 hexadecimal digits"),
        ("a word of more than 24 bytes", "'a word of more than 24 b...'"),
        (&separated, "'0a0a0a0a0a0a0a0a0a0a0a0a...'"),
    ] {
        let expected = "expected 32 hexadecimal digits, as the keys of the filter";
        let error = transform_key(key.as_bytes(), &upper).unwrap_err();
        assert_eq!(error, format!("found {found}, {expected}"));
    }
    // Without a length nothing is refused, and text stays.
    let lower = shape(HexCase::Lower, None);
    for (key, expected) in [("0A:FF", "0a:ff"), ("A word", "A word"), ("AB\r", "ab\r"), ("", "")] {
        assert_eq!(transform_key(key.as_bytes(), &lower).unwrap(), expected.as_bytes());
    }
    let after = |list| Transform::shape_after(&parse_transforms(list).unwrap());
    let of = |case, length| Some(HexShape { case, length: Some(length) });
    assert_eq!(after("trim,sha1,uppercase"), of(HexCase::Upper, 40));
    assert_eq!(after("md5,trim,lowercase"), of(HexCase::Lower, 32));
    assert_eq!(after("sha256,unhex"), of(HexCase::Bytes, 64));
    assert_eq!((after("sha256,unhex,trim"), after("lowercase")), (None, None));
}

#[test]
fn growth_is_that_of_the_whole_chain() {
    let growth = |list| Transform::max_growth(&parse_transforms(list).unwrap());
    for (list, expected) in [
        ("", 1),
        ("trim,lowercase", 1),
        ("hex,hex,hex", 8),
        ("hex,hex,hex,md5", 4),
        ("sha1,hex", 8),
    ] {
        assert_eq!(growth(list), expected, "{list}");
    }
}

#[test]
fn unknown_transforms_are_refused() {
    for name in ["", "Trim", "strip-query", "strip-query=", "utm_*"] {
        assert!(name.parse::<Transform>().is_err(), "{name}");
    }
    let error = parse_transforms("trim,urls").unwrap_err();
    assert!(error.starts_with("'urls': unknown transform; expected trim, lowercase"), "{error}");
    assert_eq!(parse_transforms("").unwrap(), []);
}

fn any_transform() -> impl Strategy<Value = Transform> {
    let named = proptest::sample::select(NAMES).prop_map(|(_, transform)| transform.clone());
    prop_oneof![9 => named, 1 => "[a-c*?_]{1,4}".prop_map(Transform::StripQuery)]
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let url =
        "(https?|foo|)(:|)/{0,3}[a-cA-C.:@%0-9\\[\\]\u{fc}]{0,9}[/?#&=;%a-f0-9 .\u{301}+\r]{0,24}";
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..64),
        url.prop_map(String::into_bytes),
        "\\PC{0,24}".prop_map(String::into_bytes),
    ]
}

/// A pattern by its definition.
fn matches_model(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, _) => name.is_empty(),
        (Some((b'*', rest)), Some((_, name_rest))) => {
            matches_model(rest, name) || matches_model(pattern, name_rest)
        }
        (Some((b'*', rest)), None) => matches_model(rest, name),
        (Some((p, rest)), Some((n, name_rest))) => {
            (*p == b'?' || p == n) && matches_model(rest, name_rest)
        }
        (Some(_), None) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn transforms_parse_from_their_text(list in proptest::collection::vec(any_transform(), 0..5)) {
        prop_assert_eq!(parse_transforms(&transforms_text(&list)).unwrap(), list);
    }

    #[test]
    fn patterns_equal_the_model(pattern in "[ab*?]{0,6}", name in "[ab]{0,8}") {
        let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
        prop_assert_eq!(matches(pattern, name), matches_model(pattern, name));
    }

    /// Also: no transform panics, and none grows a key beyond what the memory is planned for.
    #[test]
    fn transforms_of_text_are_idempotent(key in any_key(), transform in any_transform()) {
        let only = std::slice::from_ref(&transform);
        let Ok(once) = transform_key(&key, only) else { return Ok(()) };
        prop_assert!(once.len() as u64 <= Transform::max_growth(only) * key.len() as u64 + 64);
        let name = transform.to_string();
        // A SURT is no URL, escapes of escapes become escapes, and a CR may precede another. Digests and
        // hexadecimal texts are other keys.
        let changes_again = [
            "url-surt", "url-scrapy", "strip-cr", "hex", "unhex", "md5", "sha1", "sha256", "ntlm",
        ]
        .contains(&&name[..]);
        if !changes_again {
            let twice = transform_key(&once, only).unwrap();
            prop_assert_eq!(once, twice, "{}", name);
        }
    }

    #[test]
    fn sorting_keeps_all_parameters(key in any_key()) {
        let sorted = transform_key(&key, &[Transform::SortQuery]).unwrap();
        let count = |bytes: &[u8]| {
            let mut counts = [0_u32; 256];
            bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
            counts
        };
        prop_assert_eq!(count(&sorted), count(&key));
    }
}
