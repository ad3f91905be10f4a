//! Locks for files that a command replaces.

use std::path::{Path, PathBuf};

use petal_lines::Lock;
use petal_lines::atomic_file::{beside, keep_on_signal, remove_on_signal, resolve_links};

use crate::error::{Failure, Result, cannot_write};

/// Locks a file that is to be replaced and need not exist, by a file beside it. Fails at once if another
/// process has the lock.
pub(crate) fn take(file: &Path) -> Result<FileLock> {
    let path = beside(&target(file)?, "lock");
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

/// Returns the path of the file at the end of links.
pub(crate) fn target(file: &Path) -> Result<PathBuf> {
    let failed = |error| Failure::Message(cannot_write(&file.display().to_string(), &error));
    resolve_links(file).map_err(failed)
}
