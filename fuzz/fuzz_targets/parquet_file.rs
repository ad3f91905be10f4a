//! Any bytes are an error or a Parquet file whose row groups can be queried: no panic, no large allocation. The column
//! has the name of the golden files.
#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use petal_interop::{ParquetFile, ParquetKeys};

/// Keys as numbers and as text, one and many, and values of logical types.
static KEYS: LazyLock<[ParquetKeys; 8]> = LazyLock::new(|| {
    let parquet_keys = |keys: &mut dyn Iterator<Item = String>| {
        let mut parquet_keys = ParquetKeys::new();
        keys.for_each(|key| parquet_keys.push(key.as_bytes()));
        parquet_keys
    };
    [
        parquet_keys(&mut ["7".to_owned()].into_iter()),
        parquet_keys(&mut (0..300).map(|number| number.to_string())),
        parquet_keys(&mut ["a".to_owned(), "sixteen bytes ..".to_owned()].into_iter()),
        parquet_keys(&mut ["-12.30".to_owned()].into_iter()),
        parquet_keys(&mut ["2026-11-23".to_owned()].into_iter()),
        parquet_keys(&mut ["15:04:05.25".to_owned()].into_iter()),
        parquet_keys(&mut ["2026-11-23T15:04:05Z".to_owned()].into_iter()),
        parquet_keys(&mut ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6".to_owned()].into_iter()),
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
            last = file.query(group, keys).map(drop);
        }
    }
    last
}
