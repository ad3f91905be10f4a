//! Where a bench finds what it needs: the root, the program under test, the files of a corpus.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::corpus::{Corpus, Side};

/// The root of the repository; cargo runs a bench in its crate's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("")).to_path_buf()
}

/// The release build of the program.
pub fn petal() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    root().join(target).join("release/petal")
}

/// Makes a file of a corpus, aside and then under its name, unless it is there in its full length. The caller gives
/// every shape of corpus a folder of its own.
///
/// # Errors
/// A sentence, if it cannot be written.
pub fn make_file(file: &Path, corpus: &Corpus, side: Side) -> Result<(), String> {
    let length = corpus.count() * corpus.line_bytes() as u64;
    if fs::metadata(file).is_ok_and(|data| data.len() == length) {
        return Ok(());
    }
    let aside = file.with_extension("part");
    File::create(&aside)
        .and_then(|mut out| corpus.write(side, &mut out))
        .and_then(|()| fs::rename(&aside, file))
        .map_err(|e| format!("cannot make {}: {e}", file.display()))
}
