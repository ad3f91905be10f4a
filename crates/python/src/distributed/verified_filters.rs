//! Mapped filter files of which every byte was checked: a flipped bit would lose lines.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use petal::{AnyFilter, Mapped};
use pyo3::PyResult;

use crate::error::IntoPyErr;
use crate::state::open::map;

/// Identifies a file and its version.
#[derive(PartialEq, Eq, Hash)]
struct FileVersion {
    device: u64,
    inode: u64,
    length: u64,
    changed: [(i64, i64); 2],
}

impl FileVersion {
    fn read(path: &Path) -> Option<Self> {
        let data = std::fs::metadata(path).ok()?;
        Some(Self {
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
            changed: [(data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec())],
        })
    }
}

/// The files that this process has checked. The tasks of a job in one worker open the same filters
/// repeatedly.
static VERIFIED: LazyLock<Mutex<HashSet<FileVersion>>> = LazyLock::new(Mutex::default);

/// Most entries of [`VERIFIED`]; at this size it is cleared.
const MAX_VERIFIED: usize = 4096;

/// Maps a filter file and checks every byte, unless this process has checked it before.
pub(super) fn open_verified(path: &Path) -> PyResult<AnyFilter<Mapped>> {
    let before = FileVersion::read(path);
    let filter = AnyFilter::open_mapped(map(path)?).map_err(|error| error.into_py_err_at(path))?;
    // The same version before and after is the version that was mapped.
    let version = FileVersion::read(path).filter(|now| before.as_ref() == Some(now));
    let verified = || VERIFIED.lock().unwrap_or_else(PoisonError::into_inner);
    if version.as_ref().is_some_and(|version| verified().contains(version)) {
        return Ok(filter);
    }
    filter.verify().map_err(|error| error.into_py_err_at(path))?;
    if let Some(version) = version {
        let mut verified = verified();
        if verified.len() >= MAX_VERIFIED {
            verified.clear();
        }
        verified.insert(version);
    }
    Ok(filter)
}
