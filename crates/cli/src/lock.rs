//! One run at a time on a file that is replaced.

use std::path::{Path, PathBuf};

use petal_lines::Lock;
use petal_lines::aside::{keep_on_signal, remove_on_signal};

use crate::exit::{Failure, Result, cannot_write};

/// Takes the lock of a file, which need not exist; somebody else's is an error at once.
pub(crate) fn take(of: &Path) -> Result<Held> {
    let path = beside(of, "lock");
    let failed = |error| Failure::Plain(cannot_write(&path.display().to_string(), &error));
    let lock = Lock::take(&path).map_err(failed)?.ok_or_else(|| {
        Failure::Plain(format!(
            "{}: another run is using it; wait for that to end, or name another file",
            of.display()
        ))
    })?;
    remove_on_signal(&path);
    Ok(Held { path, _lock: lock })
}

/// A lock, whose file goes with a signal too.
pub(crate) struct Held {
    path: PathBuf,
    /// Let go of after the path is forgotten.
    _lock: Lock,
}

impl Drop for Held {
    fn drop(&mut self) {
        keep_on_signal(&self.path);
    }
}

/// The path of a file that belongs to another one: its name, a dot and what it is.
pub(crate) fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}
