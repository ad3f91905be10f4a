//! include/petal.h is what cbindgen writes from the source.
//!
//! `PETAL_UPDATE_HEADER=1` writes it again.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::fs;
use std::path::Path;

#[test]
fn header_is_that_of_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_src(folder.join("src/error.rs"))
        .with_src(folder.join("src/handle.rs"))
        .with_src(folder.join("src/lib.rs"))
        .with_config(config)
        .generate()
        .unwrap();
    let mut written = Vec::new();
    bindings.write(&mut written);
    let path = folder.join("include/petal.h");
    if std::env::var_os("PETAL_UPDATE_HEADER").is_some() {
        fs::write(&path, &written).unwrap();
    }
    let stored = fs::read(&path).unwrap();
    assert!(stored == written, "PETAL_UPDATE_HEADER=1 writes the header again");
}
