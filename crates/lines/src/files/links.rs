//! Symbolic links: an output replaces the file at their end, not a link.

use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What the links of a path lead to.
pub(super) enum Target {
    /// The path of a file, which need not exist.
    File(PathBuf),
    /// An open descriptor of this process.
    Descriptor(RawFd),
}

/// The limit of Linux.
const MAX_LINKS: usize = 40;

/// Follows symbolic links, also dangling ones.
pub(super) fn follow(path: &Path) -> io::Result<Target> {
    let mut path = path.to_owned();
    for _ in 0..=MAX_LINKS {
        if let Some(number) = descriptor(&path) {
            return Ok(Target::Descriptor(number));
        }
        let Ok(target) = fs::read_link(&path) else { return Ok(Target::File(path)) };
        // An absolute target replaces the whole path.
        path = dir_of(&path).join(target);
    }
    Err(Errno::LOOP.into())
}

/// Returns the number if the last part of a path is a descriptor of this process.
fn descriptor(path: &Path) -> Option<RawFd> {
    let name = path.file_name()?.to_str()?;
    let number = name.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.parse().ok())??;
    let dir = fs::canonicalize(dir_of(path)).ok()?;
    // Also those of its threads: `/proc/thread-self/fd`.
    let own = |process: &Path| dir.starts_with(process) && dir.ends_with("fd");
    let is_own = fs::canonicalize("/proc/self").is_ok_and(|process| own(&process));
    (is_own || dir == Path::new("/dev/fd")).then_some(number)
}

/// Follows symbolic links, also dangling ones, so that the file and not the link is replaced.
///
/// # Errors
/// If the links form a loop, or lead to an open descriptor, which cannot be replaced.
pub fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    match follow(path)? {
        Target::File(path) => Ok(path),
        Target::Descriptor(_) => {
            Err(io::Error::other("is an open descriptor, which cannot be replaced"))
        }
    }
}

/// Returns the canonical path of a file, which need not exist.
#[must_use]
pub fn canonical_path(path: &Path) -> PathBuf {
    let path = resolve_links(path).unwrap_or_else(|_| path.to_owned());
    let dir = fs::canonicalize(dir_of(&path));
    dir.ok().zip(path.file_name()).map_or_else(|| path.clone(), |(dir, name)| dir.join(name))
}

/// Returns the directory of a path.
pub(super) fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
