//! The transforms `url-scrapy` and `url-surt` against the packages w3lib and surt.

use std::io::Read as _;

use lzma_rust2::XzReader;

use super::{Transform, transform_key};

/// Undoes the `\xNN` of peers/urls/golden.py.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}

#[test]
fn urls_equal_those_of_w3lib_and_surt() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/urls/originals.tsv.xz");
    let mut text = String::new();
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    XzReader::new(file, false).read_to_string(&mut text).unwrap();
    let (mut differ, mut count) = (Vec::<String>::new(), 0);
    for line in text.lines() {
        let [url, scrapy, surt] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not three columns: {line}")
        };
        let raw = bytes(url);
        for (transform, expected) in [(Transform::UrlScrapy, scrapy), (Transform::UrlSurt, surt)] {
            count += 1;
            let expected = match expected {
                // An exception of the original: the key stays as it is.
                "=" | "!" => raw.clone(),
                text => bytes(text),
            };
            let found = transform_key(&raw, std::slice::from_ref(&transform)).unwrap();
            if found != expected {
                let [found, expected] = [&found, &expected].map(|bytes| bytes.escape_ascii());
                differ.push(
                    format!("{transform} of {url}:\n  {found}\n  {expected} expected")[..]
                        .chars()
                        .take(600)
                        .collect(),
                );
            }
        }
    }
    assert!(count > 40_000);
    let first = differ.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(differ.is_empty(), "{} of {count} differ\n{first}", differ.len());
}
