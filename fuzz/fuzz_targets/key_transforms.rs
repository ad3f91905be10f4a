//! No key makes a transform panic, and a list of transforms is applied one after the other.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use petal_lines::{KeySpec, Transform, parse_transforms, transform_key};

static ALL: LazyLock<Vec<Transform>> = LazyLock::new(|| {
    let names = "trim,lowercase,lowercase-unicode,strip-cr,nfc,url,url-scrapy,url-surt,strip-fragment,\
                 strip-query=utm_*,sort-query,host,uppercase,hex,unhex,ntlm";
    parse_transforms(names).expect("the names of all transforms")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, key)) = bytes.split_first() else { return };
    let [one, other] = [choice & 15, choice >> 4].map(|number| &ALL[number as usize % ALL.len()]);
    let once = transform_key(key, std::slice::from_ref(one));
    let twice = once.and_then(|key| transform_key(&key, std::slice::from_ref(other)));
    let transforms = vec![one.clone(), other.clone()];
    assert_eq!(transform_key(key, &transforms), twice);
    assert_eq!(KeySpec { transforms, ..KeySpec::default() }.key(key), twice);
});
