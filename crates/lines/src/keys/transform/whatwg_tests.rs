//! The transform `url` against the list of URLs of web-platform-tests, which tests the URL standard.

use std::io::Read as _;

use lzma_rust2::XzReader;
use serde_json::Value;

use super::{Transform, transform_key};

#[test]
fn urls_are_written_as_the_standard_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/urls/whatwg.json.xz");
    let mut text = String::new();
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    XzReader::new(file, false).read_to_string(&mut text).unwrap();
    let list: Vec<Value> = serde_json::from_str(&text).unwrap();
    let (mut count, mut differ) = (0, Vec::new());
    // The others are relative to a base, which a key does not have.
    for case in list.iter().filter(|case| case.is_object() && case["base"].is_null()) {
        let input = case["input"].as_str().unwrap();
        // A key that is not a URL stays as it is.
        let expected = if case["failure"] == true { input } else { case["href"].as_str().unwrap() };
        let found = transform_key(input.as_bytes(), &[Transform::Url]).unwrap();
        count += 1;
        if found != expected.as_bytes() {
            differ.push(format!("{input:?}: {}, expected {expected:?}", found.escape_ascii()));
        }
    }
    assert!(count > 500);
    assert!(differ.is_empty(), "{} of {count} differ:\n{}", differ.len(), differ.join("\n"));
}
