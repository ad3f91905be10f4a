//! Open descriptors of the process by their names, such as `/dev/stdout` and `/proc/self/fd/3`.
//!
//! Such a name is a link to a file, but means the descriptor: its position and its `>>` are those of
//! the shell that opened it, and the file must be neither truncated nor replaced.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl};

use super::links::{Target, follow};

/// Returns the number of the descriptor that a path names, also through links.
#[must_use]
pub fn descriptor_of(path: &Path) -> Option<RawFd> {
    match follow(path) {
        Ok(Target::Descriptor(number)) => Some(number),
        _ => None,
    }
}

/// Duplicates the descriptor that a path names, to read or write where it stands; `None` if the path
/// names none.
///
/// # Errors
/// If the descriptor is not open.
pub fn open_descriptor(path: &Path) -> io::Result<Option<File>> {
    descriptor_of(path).map(duplicate).transpose()
}

#[expect(unsafe_code, reason = "a descriptor of which only the number is known has no safe form")]
fn duplicate(number: RawFd) -> io::Result<File> {
    // SAFETY: the caller of the process named an open descriptor, which is borrowed for one call. That
    // call fails if it is not open, and changes nothing that its owner relies on.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?.into())
}

/// Returns an error unless a descriptor is open for reading. The program opens a standard input that was
/// closed for writing only, so that it is not taken for an empty one.
pub(crate) fn check_readable(file: &File) -> io::Result<()> {
    if fcntl_getfl(file)? & OFlags::RWMODE == OFlags::WRONLY {
        let problem = "it is closed, or open for writing only; redirect it, or name a file";
        return Err(io::Error::other(problem));
    }
    Ok(())
}
