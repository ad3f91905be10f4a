//! Where lines go: a file that appears whole or not at all, a nameless file, a file object.
//!
//! What cannot be replaced, like a device or a FIFO, is written to as it is.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use petal_lines::aside::{Aside, real};
use petal_lines::{Progress as _, Source};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::job::{Sink, Teller};
use crate::error::{Kind, Raise, cannot_write, of_system, plain};

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

/// Where lines go.
pub(super) enum Output {
    Nowhere,
    Nameless(File),
    /// Not to be replaced.
    Direct(File),
    /// By the name that it was given.
    Aside(Aside, PathBuf),
    Object(Sink),
}

fn open_file(path: PathBuf, inputs: &[Source], teller: &Teller) -> PyResult<Output> {
    let failed = |error: io::Error| cannot_write(&path, &error);
    if let Ok(data) = fs::metadata(&path) {
        if data.is_dir() {
            let path = path.display();
            return Err(Kind::Input.with(format_args!("{path}: is a directory, expected a file")));
        }
        if data.file_type().is_fifo() {
            return open_fifo(&path, teller).map(Output::Direct).map_err(failed);
        }
        // As opening it would: a file one may not write is not replaced.
        let file = File::options().append(true).open(&path).map_err(failed)?;
        if !data.is_file() {
            return Ok(Output::Direct(file));
        }
        refuse_input(&path, &data, inputs)?;
    }
    let aside = Aside::beside(&path).map_err(failed)?;
    Ok(Output::Aside(aside, path))
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
    let Some(input) = inputs.iter().find(|input| input.is(data)) else { return Ok(()) };
    let path = path.display();
    Err(PyValueError::new_err(format!(
        "{path}: is the same file as the input {input}; write to another file"
    )))
}

impl Output {
    /// The writer, if there is one.
    pub(super) fn writer(&mut self) -> Option<&mut (dyn Write + Send)> {
        match self {
            Self::Nowhere => None,
            Self::Nameless(file) | Self::Direct(file) => Some(file),
            Self::Aside(aside, _) => Some(aside.file()),
            Self::Object(sink) => Some(sink),
        }
    }

    /// Writing a filter to it failed.
    pub(super) fn failed(&self, error: petal::Error) -> PyErr {
        let system = std::error::Error::source(&error).and_then(|e| e.downcast_ref());
        match (self, system) {
            (Self::Aside(_, path), Some(system)) => cannot_write(path, system),
            (_, Some(system)) => {
                of_system(system, None, format!("out=: cannot write: {}", plain(system)))
            }
            (_, None) => error.raise(),
        }
    }

    /// Makes the result durable and gives it its name. Of a nameless file the caller is given the
    /// descriptor.
    pub(super) fn finish(self) -> PyResult<Option<OwnedFd>> {
        match self {
            Self::Nowhere | Self::Direct(_) | Self::Object(_) => Ok(None),
            Self::Nameless(file) => Ok(Some(file.into())),
            Self::Aside(aside, path) => {
                aside.finish().map(|()| None).map_err(|error| cannot_write(&path, &error))
            }
        }
    }
}
