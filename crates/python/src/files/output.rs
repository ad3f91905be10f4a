//! The destination of lines: a file that is replaced atomically, an unnamed temporary file, or a
//! Python file object. Devices, FIFOs and descriptors such as `/dev/stdout`, which cannot be replaced, are
//! written in place.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use petal_lines::atomic_file::{AtomicFile, canonical_path, descriptor_of, open_descriptor};
use petal_lines::{
    CompressedWriter, Compression, MIN_MEMORY, Progress as _, Settings, Source, format_size,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::job::{ObjectWriter, ProgressReporter};
use crate::error::{
    Exception, IntoPyErr, cannot_write, finish_file, io_error, io_message, refuse_compressed,
};

/// An output that is not open yet.
pub(super) enum Target {
    Discard,
    /// An unnamed temporary file in this directory, which Python gets.
    Unnamed(PathBuf),
    /// A file at this path.
    File(PathBuf),
    /// A file object, by its index.
    Object(usize),
}

impl Target {
    /// Reads the argument `out` or `rest`. A file object is appended to `files`.
    pub(super) fn new(
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

    /// Opens the output. Returns an error if the output is also an input, or its name says that it is
    /// compressed.
    pub(super) fn open(self, inputs: &[Source], reporter: &ProgressReporter) -> PyResult<Output> {
        match &self {
            Self::File(path) => refuse_compressed(path)?,
            Self::Discard | Self::Object(_) | Self::Unnamed(_) => {}
        }
        self.open_as_named(inputs, reporter)
    }

    /// Opens the output of lines of a job with these settings, compressed as its name says. The memory limit
    /// is lowered by what that takes.
    pub(super) fn open_lines(
        self,
        inputs: &[Source],
        settings: &mut Settings<'_>,
        reporter: &ProgressReporter,
    ) -> PyResult<Output> {
        let compression = match &self {
            Self::File(path) => {
                refuse_bad_file(path, settings)?;
                compression(path)?
            }
            Self::Unnamed(_) => {
                // The report has lines.
                settings.binary_output = false;
                None
            }
            Self::Discard | Self::Object(_) => None,
        };
        match (compression, self.open_as_named(inputs, reporter)?) {
            (Some(compression), Output::Replace(file, path)) => {
                let (limit, jobs) = (settings.memory_limit, settings.jobs);
                let (memory, needed) = (compression.memory(limit, jobs), compression.memory(0, 1));
                if limit < MIN_MEMORY + needed {
                    return Err(PyValueError::new_err(format!(
                        "memory_limit={}: is too little, at least {} is needed to compress {}; raise it",
                        format_size(limit),
                        format_size(MIN_MEMORY + needed),
                        path.display(),
                    )));
                }
                settings.memory_limit -= memory;
                let writer = CompressedWriter::new(file, compression, limit, jobs);
                let writer = writer.map_err(|error| cannot_write(&path, &error))?;
                Ok(Output::Compressed(Box::new(writer), path))
            }
            (_, output) => Ok(output),
        }
    }

    /// Opens the output, which the caller compresses if its name says so.
    pub(super) fn open_as_named(
        self,
        inputs: &[Source],
        reporter: &ProgressReporter,
    ) -> PyResult<Output> {
        match self {
            Self::Discard => Ok(Output::Discard),
            Self::Object(number) => Ok(Output::Object(reporter.writer_to(number))),
            Self::Unnamed(dir) => {
                let file = tempfile::tempfile_in(&dir).map_err(|error| {
                    let dir = format!("{}: temporary file", dir.display());
                    Exception::Input.new_err(format_args!(
                        "{dir}: {}; choose another temp_dir=",
                        io_message(&error)
                    ))
                })?;
                Ok(Output::Unnamed(file))
            }
            Self::File(path) => open_file(path, inputs, reporter),
        }
    }
}

/// Returns how the name of a file says that it is compressed. A FIFO or a device may be read by a program
/// that compresses.
fn compression(path: &Path) -> PyResult<Option<Compression>> {
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return Ok(None);
    }
    Compression::of_path(path).map_err(|extension| {
        let path = path.display();
        Exception::Input.new_err(format_args!(
            "{path}: outputs are not compressed as .{extension}; name it .gz, .zst or .lz4, or leave out the \
             extension, and compress the file afterwards"
        ))
    })
}

/// Returns an error if an output is the file for records without a key.
pub(super) fn refuse_bad_file(path: &Path, settings: &Settings<'_>) -> PyResult<()> {
    match settings.left_out.writes_to(path) {
        true => Err(PyValueError::new_err(format!(
            "{}: is given for two outputs; choose another for bad_records=",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Returns an error if two outputs are the same file.
pub(super) fn check_distinct(one: &Target, other: &Target) -> PyResult<()> {
    match (one, other) {
        (Target::File(one), Target::File(other))
            if canonical_path(one) == canonical_path(other)
                || descriptor_of(one).is_some_and(|one| Some(one) == descriptor_of(other)) =>
        {
            let one = one.display();
            let text = format!("{one}: is given for two outputs; choose another for rest=");
            Err(PyValueError::new_err(text))
        }
        _ => Ok(()),
    }
}

/// An open output.
pub(super) enum Output {
    Discard,
    Unnamed(File),
    /// A device, a FIFO or a descriptor.
    Direct(File),
    /// A temporary file that replaces the file at this path.
    Replace(AtomicFile, PathBuf),
    /// Such a file, whose lines are compressed.
    Compressed(Box<CompressedWriter<AtomicFile>>, PathBuf),
    Object(ObjectWriter),
}

fn open_file(path: PathBuf, inputs: &[Source], reporter: &ProgressReporter) -> PyResult<Output> {
    let failed = |error: io::Error| cannot_write(&path, &error);
    if let Some(file) = open_descriptor(&path).map_err(failed)? {
        let data = file.metadata().map_err(failed)?;
        if data.is_file() {
            check_not_input(&path, &data, inputs)?;
        }
        return Ok(Output::Direct(file));
    }
    if let Ok(data) = fs::metadata(&path) {
        if data.is_dir() {
            let path = path.display();
            return Err(
                Exception::Input.new_err(format_args!("{path}: is a directory, expected a file"))
            );
        }
        if data.file_type().is_fifo() {
            return open_fifo(&path, reporter).map(Output::Direct).map_err(failed);
        }
        // A file without write permission is not replaced.
        let file = File::options().append(true).open(&path).map_err(failed)?;
        if !data.is_file() {
            return Ok(Output::Direct(file));
        }
        check_not_input(&path, &data, inputs)?;
    }
    let file = AtomicFile::create(&path).map_err(failed)?;
    Ok(Output::Replace(file, path))
}

/// Opens a FIFO as soon as it has a reader. Returns an error if the job is cancelled first.
fn open_fifo(path: &Path, reporter: &ProgressReporter) -> io::Result<File> {
    let mut options = File::options();
    let options = options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    loop {
        match options.open(path) {
            Ok(file) => {
                fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
                return Ok(file);
            }
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => {
                if reporter.cancelled() {
                    return Err(error);
                }
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns an error if an output is one of the inputs.
pub(super) fn check_not_input(path: &Path, data: &fs::Metadata, inputs: &[Source]) -> PyResult<()> {
    let Some(input) = inputs.iter().find(|input| input.is(data)) else { return Ok(()) };
    let path = path.display();
    Err(PyValueError::new_err(format!(
        "{path}: is the same file as the input {input}; write to another file"
    )))
}

impl Output {
    /// Returns the writer, unless lines are discarded.
    pub(super) fn writer(&mut self) -> Option<&mut (dyn Write + Send)> {
        match self {
            Self::Discard => None,
            Self::Unnamed(file) | Self::Direct(file) => Some(file),
            Self::Replace(file, _) => Some(file.file()),
            Self::Compressed(writer, _) => Some(writer),
            Self::Object(writer) => Some(writer),
        }
    }

    /// Lets only the owner read a new file: it will have the secret key of a hash.
    pub(super) fn make_private(&self) -> PyResult<()> {
        match self {
            Self::Replace(file, path) => {
                file.make_private().map_err(|error| cannot_write(path, &error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the exception for an error while a filter was written to the output.
    pub(super) fn failed(&self, error: petal::Error) -> PyErr {
        let system = std::error::Error::source(&error).and_then(|e| e.downcast_ref());
        match (self, system) {
            (Self::Replace(_, path), Some(system)) => cannot_write(path, system),
            (_, Some(system)) => {
                io_error(system, None, format!("out=: cannot write: {}", io_message(system)))
            }
            (_, None) => error.into_py_err(),
        }
    }

    /// Synchronises the file to disk and renames it. Returns the descriptor of an unnamed file.
    pub(super) fn finish(self) -> PyResult<Option<OwnedFd>> {
        match self {
            Self::Discard | Self::Direct(_) | Self::Object(_) => Ok(None),
            Self::Unnamed(file) => Ok(Some(file.into())),
            Self::Replace(file, path) => finish_file(file, &path).map(|()| None),
            Self::Compressed(writer, path) => {
                let file = writer.finish().map_err(|error| cannot_write(&path, &error))?;
                finish_file(file, &path).map(|()| None)
            }
        }
    }
}

/// The error for `count=True` with an output.
pub(super) fn count_with_output() -> PyErr {
    PyValueError::new_err("count=True: lines are only counted; leave out count= or out=")
}
