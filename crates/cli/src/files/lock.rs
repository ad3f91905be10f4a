//! Locks for files that a command replaces.

use std::path::{Path, PathBuf};

use petal_lines::Lock;
use petal_lines::atomic_file::{keep_on_signal, remove_on_signal};

use crate::error::{Failure, Result, cannot_write};

/// Locks a file, which need not exist, by a file beside it. Fails at once if another process has
/// the lock.
pub(crate) fn take(file: &Path) -> Result<FileLock> {
    let path = beside(file, "lock");
    let failed = |error| Failure::Message(cannot_write(&path.display().to_string(), &error));
    let lock = Lock::take(&path).map_err(failed)?.ok_or_else(|| {
        Failure::Message(format!(
            "{}: another run is using it; wait for that to end, or name another file",
            file.display()
        ))
    })?;
    remove_on_signal(&path);
    Ok(FileLock { path, _lock: lock })
}

/// A lock whose file is removed on drop and on a signal.
pub(crate) struct FileLock {
    path: PathBuf,
    /// Dropped after `Drop::drop`, which unregisters the path.
    _lock: Lock,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        keep_on_signal(&self.path);
    }
}

/// Returns the path of a companion file: the path, a dot and `suffix`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}
