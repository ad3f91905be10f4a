//! Lock files: one job at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// An exclusive lock on a file, held until dropped.
///
/// The kernel releases the lock when the process ends in any way. The file then stays behind and
/// does not block the next job.
#[derive(Debug)]
pub struct Lock {
    /// Locked as long as it is open.
    _file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock with this file, which is created if it does not exist. `None` if another
    /// process holds it.
    ///
    /// # Errors
    /// If the file cannot be created or locked.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let mut options = File::options();
            let options = options.create(true).truncate(false).write(true).mode(0o600);
            let file = options.open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(TryLockError::Error(e)) => return Err(e),
            }
            // The previous owner may have removed the file after it was opened here: then this
            // lock protects nothing, and a new file must be locked.
            let ours = file.metadata()?;
            let is_ours = |now: fs::Metadata| (now.dev(), now.ino()) == (ours.dev(), ours.ino());
            if fs::metadata(path).is_ok_and(is_ours) {
                return Ok(Some(Self { _file: file, path: path.to_owned() }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while locked: no other process can hold this file.
        let _ = fs::remove_file(&self.path);
    }
}
