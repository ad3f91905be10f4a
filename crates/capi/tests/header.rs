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
    let written = without_safety_sections(&String::from_utf8(written).unwrap());
    let path = folder.join("include/petal.h");
    if std::env::var_os("PETAL_UPDATE_HEADER").is_some() {
        fs::write(&path, &written).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap();
    assert!(stored == written, "PETAL_UPDATE_HEADER=1 writes the header again");
}

/// Drops what is for Rust: the top of the header says the same to all.
fn without_safety_sections(header: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut is_dropped = false;
    for line in header.lines() {
        if line == "// # Safety" {
            // With the empty line of the comment before it.
            lines.pop();
            is_dropped = true;
        }
        is_dropped &= line.starts_with("//");
        if !is_dropped {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}
