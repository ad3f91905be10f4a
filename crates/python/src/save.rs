//! Files that appear whole or not at all: written aside in the same folder, made durable, and
//! then moved over the old one. Whoever is killed in between leaves the old one as it was.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pyo3::PyResult;

use crate::error::{Kind, cannot_write};

/// Writes a file.
///
/// # Errors
/// `InputError` with the path if anything fails, or what `fill` says; the old file stays then.
pub(crate) fn save(path: &Path, fill: impl FnOnce(&mut dyn Write) -> PyResult<()>) -> PyResult<()> {
    let failed = |error: io::Error| cannot_write(path, &error);
    let target = behind_links(path);
    if target.is_dir() {
        return Err(Kind::Input.with(format_args!(
            "{}: is a directory, expected the name of a file",
            path.display()
        )));
    }
    let folder = folder(&target);
    let aside = tempfile::Builder::new()
        .prefix(".petal-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(&folder)
        .map_err(failed)?;
    if let Ok(old) = fs::metadata(&target) {
        // It takes the place of a file with permissions that somebody chose.
        aside.as_file().set_permissions(old.permissions()).map_err(failed)?;
    }
    let mut out = BufWriter::with_capacity(1 << 20, aside);
    fill(&mut out)?;
    let aside = out.into_inner().map_err(|error| failed(error.into_error()))?;
    aside.as_file().sync_all().map_err(failed)?;
    aside.persist(&target).map_err(|error| failed(error.error))?;
    // The new name is durable when its folder is.
    File::open(&folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// Through links, to nothing too, so that the file and not the link is replaced.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many as Linux follows; a loop is then an error of whoever opens it.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else { break };
        // An absolute target replaces all of the path.
        path = folder(&path).join(target);
    }
    path
}

fn folder(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}
