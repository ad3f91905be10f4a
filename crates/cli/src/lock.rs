//! One run at a time on a file that is replaced: a lock in a file of its own beside it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::exit::{Failure, Result, cannot_write, words};

/// Held until dropped. The kernel lets go of it when the process ends in any way; its file stays
/// behind then, and does no harm.
pub(crate) struct Lock {
    /// Locked as long as it is open.
    _file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of a file, which need not exist; somebody else's is an error at once.
    pub(crate) fn take(of: &Path) -> Result<Self> {
        let path = beside(of, "lock");
        let failed = |e: io::Error| Failure::Plain(cannot_write(&path.display().to_string(), &e));
        loop {
            let open = File::options().create(true).truncate(false).write(true).open(&path);
            let file = open.map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => {
                    return Err(Failure::Plain(format!(
                        "{}: another run is using it; wait for that to end, or name another file",
                        of.display()
                    )));
                }
                Err(error) => {
                    return Err(Failure::Plain(format!(
                        "{}: cannot lock: {}",
                        path.display(),
                        words(&error.into())
                    )));
                }
            }
            // The run before may have removed the file after we opened it: that lock is nobody's.
            let ours = file.metadata().map_err(failed)?;
            if fs::metadata(&path)
                .is_ok_and(|now| (now.dev(), now.ino()) == (ours.dev(), ours.ino()))
            {
                return Ok(Self { _file: file, path });
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

/// The path of a file that belongs to another one: its name, a dot and what it is.
pub(crate) fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}
