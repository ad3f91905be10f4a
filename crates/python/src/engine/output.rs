//! Where lines go: a file that appears whole or not at all, a nameless file, a file object.
//!
//! A file is written aside in the same directory under a name of its own, synced, and moved into
//! place. Whatever raises removes it; a kill may leave it behind. What cannot be replaced, like a
//! device or a FIFO, is written to as it is.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use petal_lines::{Progress as _, Source};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::job::{Sink, Teller};
use crate::error::{Kind, cannot_write, plain};

/// Where lines are to go, as asked for.
pub(super) enum Target {
    /// Nowhere.
    Nowhere,
    /// To a nameless file in this directory, which the caller gets.
    Nameless(PathBuf),
    /// To a file of this name.
    File(PathBuf),
    /// To a file object, by its number.
    Object(usize),
}

impl Target {
    /// Of `out=` or `rest=`; a file object is added to `files`.
    pub(super) fn of(
        out: Option<Bound<'_, PyAny>>,
        name: &str,
        files: &mut Vec<Py<PyAny>>,
    ) -> PyResult<Option<Self>> {
        let Some(out) = out else { return Ok(None) };
        if out.hasattr("write")? {
            files.push(out.unbind());
            return Ok(Some(Self::Object(files.len() - 1)));
        }
        let path = out.extract().map(|path| Some(Self::File(path)));
        path.map_err(|_| {
            PyTypeError::new_err(format!(
                "{name}=: expected a path or a file open for writing bytes, found {}",
                out.get_type()
            ))
        })
    }

    /// Opens it; an output that is also an input is refused.
    pub(super) fn open(self, inputs: &[Source], teller: &Teller) -> PyResult<Output> {
        match self {
            Self::Nowhere => Ok(Output::Nowhere),
            Self::Object(number) => Ok(Output::Object(teller.sink(number))),
            Self::Nameless(dir) => {
                let file = tempfile::tempfile_in(&dir).map_err(|error| {
                    let dir = format!("{}: temporary file", dir.display());
                    Kind::Input
                        .with(format_args!("{dir}: {}; name another temp_dir=", plain(&error)))
                })?;
                Ok(Output::Nameless(file))
            }
            Self::File(path) => open_file(path, inputs, teller),
        }
    }
}

/// Two outputs cannot go to one file.
pub(super) fn refuse_twice(one: &Target, other: &Target) -> PyResult<()> {
    match (one, other) {
        (Target::File(one), Target::File(other)) if real(one) == real(other) => {
            let one = one.display();
            let words = format!("{one}: is named for two outputs; name another for rest=");
            Err(PyValueError::new_err(words))
        }
        _ => Ok(()),
    }
}

/// A path without links, of a file that need not be there.
fn real(path: &Path) -> PathBuf {
    let whole = fs::canonicalize(path).ok();
    let beside = || Some(fs::canonicalize(dir_of(path)).ok()?.join(path.file_name()?));
    whole.or_else(beside).unwrap_or_else(|| path.to_owned())
}

/// Where lines go.
pub(super) enum Output {
    Nowhere,
    Nameless(File),
    /// Not to be replaced.
    Direct(File),
    /// To be moved to this path.
    Aside(NamedTempFile, PathBuf),
    Object(Sink),
}

fn open_file(path: PathBuf, inputs: &[Source], teller: &Teller) -> PyResult<Output> {
    let failed = |error: io::Error| cannot_write(&path, &error);
    // Through links, so that the file and not the link is replaced.
    let target = real(&path);
    let mut chosen = None;
    if let Ok(data) = fs::metadata(&target) {
        if data.is_dir() {
            let path = path.display();
            return Err(Kind::Input.with(format_args!("{path}: is a directory, expected a file")));
        }
        if data.file_type().is_fifo() {
            return open_fifo(&target, teller).map(Output::Direct).map_err(failed);
        }
        // As opening it would: a file one may not write is not replaced.
        let file = File::options().append(true).open(&target).map_err(failed)?;
        if !data.is_file() {
            return Ok(Output::Direct(file));
        }
        refuse_input(&path, &data, inputs)?;
        chosen = Some(data.permissions());
    }
    let mut aside = tempfile::Builder::new();
    let aside = aside.prefix(".petal-").suffix(".tmp").permissions(Permissions::from_mode(0o666));
    let file = aside.tempfile_in(dir_of(&target)).map_err(failed)?;
    if let Some(permissions) = chosen {
        // It takes the place of a file with permissions somebody chose.
        file.as_file().set_permissions(permissions).map_err(failed)?;
    }
    Ok(Output::Aside(file, target))
}

/// Opens a FIFO when somebody reads it, or never if the job is cancelled before.
fn open_fifo(path: &Path, teller: &Teller) -> io::Result<File> {
    let mut options = File::options();
    let options = options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    loop {
        match options.open(path) {
            Ok(file) => {
                fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
                return Ok(file);
            }
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => {
                if teller.cancelled() {
                    return Err(error);
                }
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error),
        }
    }
}

fn refuse_input(path: &Path, data: &fs::Metadata, inputs: &[Source]) -> PyResult<()> {
    for input in inputs {
        let Source::Path(name) = input else { continue };
        let same = fs::metadata(name)
            .is_ok_and(|same| (same.dev(), same.ino()) == (data.dev(), data.ino()));
        if same {
            let path = path.display();
            return Err(PyValueError::new_err(format!(
                "{path}: is the same file as the input {input}; write to another file"
            )));
        }
    }
    Ok(())
}

impl Output {
    /// The writer, if there is one.
    pub(super) fn writer(&mut self) -> Option<&mut (dyn Write + Send)> {
        match self {
            Self::Nowhere => None,
            Self::Nameless(file) | Self::Direct(file) => Some(file),
            Self::Aside(file, _) => Some(file.as_file_mut()),
            Self::Object(sink) => Some(sink),
        }
    }

    /// Makes the result durable and gives it its name. Of a nameless file the caller is given the
    /// descriptor.
    pub(super) fn finish(self) -> PyResult<Option<OwnedFd>> {
        match self {
            Self::Nowhere | Self::Direct(_) | Self::Object(_) => Ok(None),
            Self::Nameless(file) => Ok(Some(file.into())),
            Self::Aside(file, path) => {
                let synced = file.as_file().sync_all();
                let moved = synced.and_then(|()| file.persist(&path).map_err(|e| e.error));
                // The new name is durable when its directory is.
                let named = moved.and_then(|_| File::open(dir_of(&path))?.sync_all());
                named.map(|()| None).map_err(|error| cannot_write(&path, &error))
            }
        }
    }
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
