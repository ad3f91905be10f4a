//! Paths: the repository, the program under test, generated input files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::corpus::{Corpus, Side};

/// Returns the root of the repository. Cargo runs benchmarks in the folder of their crate.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("")).to_path_buf()
}

/// Returns the path of a build with the profile `dist`, that of published programs.
pub fn dist(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    root().join(target).join("dist").join(name)
}

/// Generates a file of a corpus, unless it exists with its full length. Different corpora need different folders.
///
/// # Errors
/// If the file cannot be written.
pub fn make_file(file: &Path, corpus: &Corpus, side: Side) -> Result<(), String> {
    let length = corpus.count() * corpus.line_bytes() as u64;
    if fs::metadata(file).is_ok_and(|data| data.len() == length) {
        return Ok(());
    }
    let part = file.with_extension("part");
    File::create(&part)
        .and_then(|mut out| corpus.write(side, &mut out))
        .and_then(|()| fs::rename(&part, file))
        .map_err(|e| format!("cannot make {}: {e}", file.display()))
}
