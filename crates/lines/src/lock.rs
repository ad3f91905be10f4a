//! One job at a time on files that are replaced: a lock in a file of its own.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Held until dropped. The kernel lets go of it when the process ends in any way; its file stays
/// behind then, and does no harm.
#[derive(Debug)]
pub struct Lock {
    /// Locked as long as it is open.
    _file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock with this file, which is made if need be; `None` if somebody has it.
    ///
    /// # Errors
    /// If the file cannot be made or locked.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let mut options = File::options();
            let options = options.create(true).truncate(false).write(true).mode(0o600);
            let file = options.open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            // The job before may have removed the file after we opened it: that lock is nobody's.
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
        // While it is still locked: nobody else can be holding this very file.
        let _ = fs::remove_file(&self.path);
    }
}
