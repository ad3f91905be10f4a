//! Any bytes give an error or a Parquet file whose row groups can be asked: no panic, no large
//! allocation. The column is named as in the golden files.
#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use petal_interop::{ParquetFile, ParquetProbe};

/// Keys as numbers and as text, one alone and many.
static KEYS: LazyLock<[ParquetProbe; 3]> = LazyLock::new(|| {
    let probe = |keys: &mut dyn Iterator<Item = String>| {
        let mut probe = ParquetProbe::new();
        keys.for_each(|key| probe.push(key.as_bytes()));
        probe
    };
    [
        probe(&mut ["7".to_owned()].into_iter()),
        probe(&mut (0..300).map(|number| number.to_string())),
        probe(&mut ["a".to_owned(), "sixteen bytes ..".to_owned()].into_iter()),
    ]
});

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = examine(bytes) {
        let text = error.to_string();
        assert!(!text.is_empty() && !text.contains('\n'), "{text}");
    }
});

fn examine(bytes: &[u8]) -> petal_interop::Result<()> {
    let mut file = ParquetFile::open_within(Cursor::new(bytes), 1 << 20)?;
    let groups = file.row_groups("key")?;
    assert!(groups.len() <= bytes.len());
    let mut last = Ok(());
    for group in groups.iter().take(50) {
        for keys in &*KEYS {
            last = file.ask(group, keys).map(drop);
        }
    }
    last
}
