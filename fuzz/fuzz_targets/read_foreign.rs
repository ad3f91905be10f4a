//! Any bytes are an error or a foreign filter that can be queried, described, filled and read again: no panic, no large
//! allocation, no lost key.
//!
//! Every format is tried, or only one with `PETAL_FUZZ_FORMAT=guava`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use petal_interop::{ForeignFilter, Format};

static FORMATS: LazyLock<Vec<Format>> =
    LazyLock::new(|| match std::env::var("PETAL_FUZZ_FORMAT") {
        Ok(name) => vec![Format::from_name(&name).expect("the name of a format")],
        Err(_) => Format::ALL.to_vec(),
    });

fuzz_target!(|file: &[u8]| {
    for &format in &*FORMATS {
        match ForeignFilter::from_bytes(file, Some(format)) {
            Ok(filter) => examine(&filter, file),
            Err(error) => one_line(&error),
        }
    }
    if let Err(error) = ForeignFilter::from_bytes(file, None) {
        one_line(&error);
    }
    if let Err(error) = ForeignFilter::read_from(file, None, 1 << 20) {
        one_line(&error);
    }
});

fn one_line(error: &petal_interop::Error) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.contains('\n'), "{text}");
}

fn examine(filter: &ForeignFilter<&[u8]>, file: &[u8]) {
    let stats = filter.stats();
    assert!((0.0..=1.0).contains(&stats.estimated_fpr), "{stats:?}");
    assert!(stats.set <= stats.bits, "{stats:?}");
    assert!(stats.estimated_keys.is_none_or(|keys| keys >= 0.0), "{stats:?}");
    let _ = filter.verify();
    let keys: [&[u8]; 5] =
        [b"a", b"", b"a longer key, longer than sixteen bytes", &[0xff; 33], b"7"];
    let before: Vec<bool> =
        keys.iter().map(|key| filter.contains(key).expect("bytes are keys")).collect();

    let mut filled =
        ForeignFilter::from_bytes(file.to_vec(), Some(filter.format())).expect("it was read above");
    let inserted: Vec<bool> = keys.iter().map(|key| filled.insert(key).is_ok()).collect();
    let again = ForeignFilter::from_bytes(filled.as_bytes(), Some(filter.format()))
        .expect("what is written is read");
    for ((key, inserted), before) in keys.iter().zip(inserted).zip(before) {
        assert!(!(inserted || before) || filled.contains(key).expect("a key"), "{key:?} is lost");
        assert_eq!(again.contains(key).ok(), filled.contains(key).ok(), "{key:?}");
    }
    let _ = filled.union(filter);
}
