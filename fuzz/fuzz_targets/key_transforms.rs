//! No key makes a transform panic, and a list of transforms is applied one after the other.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use petal_lines::{KeySpec, Transform, parse_transforms, transform_key};

static ALL: LazyLock<Vec<Transform>> = LazyLock::new(|| {
    let names = "trim,lowercase,lowercase-unicode,strip-cr,nfc,url,url-scrapy,url-surt,strip-fragment,\
                 strip-query=utm_*,strip-query=?,sort-query,host,registered-domain,uppercase,hex,unhex,md5,\
                 sha1,sha256,ntlm";
    parse_transforms(names).expect("the names of all transforms")
});

fuzz_target!(|bytes: &[u8]| {
    let [one, other, key @ ..] = bytes else { return };
    let [one, other] = [one, other].map(|number| &ALL[usize::from(*number) % ALL.len()]);
    let once = transform_key(key, std::slice::from_ref(one));
    let twice = once.and_then(|key| transform_key(&key, std::slice::from_ref(other)));
    let transforms = vec![one.clone(), other.clone()];
    // The text of an error depends on the whole list: keys of digests are not shown.
    let both = transform_key(key, &transforms);
    assert_eq!(both.as_ref().ok(), twice.as_ref().ok());
    assert_eq!(KeySpec { transforms, ..KeySpec::default() }.key(key), both);
});
