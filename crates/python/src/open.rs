//! Filter files: mapped and asked where they lie, read into memory, or given as bytes. Of other
//! programs, too: what a file is, its bytes say, or the caller.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use petal::{AnyFilter, Mapped};
use petal_interop::{Foreign, Format, GZIP, KeyForm};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Kind, Raise, cannot_read};
use crate::held::{Held, Place};

/// The first bytes of petal's own files.
const MAGIC: &[u8; 8] = b"\x89PETAL\r\n";

/// What the caller says of a file: its format, and the form of its keys.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    format: Option<Format>,
    keys: KeyForm,
}

impl Told {
    pub(crate) fn new(format: Option<&str>, keys: &str) -> PyResult<Self> {
        let format = format.map(named_format).transpose()?;
        Ok(Self { format, keys: form_of_keys(keys)? })
    }

    /// Whether a file that begins so is another program's.
    fn is_foreign(self, start: &[u8]) -> bool {
        self.format.is_some() || !start.starts_with(MAGIC)
    }

    fn foreign<B: AsRef<[u8]>>(self, file: B) -> petal_interop::Result<Foreign<B>> {
        let filter = Foreign::from_bytes(file, self.format)?;
        filter.check_key_form(self.keys)?;
        Ok(filter.with_keys(self.keys))
    }
}

/// The format of that name.
pub(crate) fn named_format(name: &str) -> PyResult<Format> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("format: expected one of {names}, found {name:?}"))
    })
}

/// The form of keys of that name.
pub(crate) fn form_of_keys(name: &str) -> PyResult<KeyForm> {
    KeyForm::from_name(name).ok_or_else(|| {
        let names: Vec<_> = KeyForm::ALL.iter().map(|form| form.name()).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("keys: expected one of {names}, found {name:?}"))
    })
}

/// A path as Python's `open` takes it: text, bytes or an object with `__fspath__`.
pub(crate) struct Name(pub(crate) PathBuf);

impl<'py> FromPyObject<'_, 'py> for Name {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name = given.py().import("os")?.call_method1("fsdecode", (given,))?;
        Ok(Self(name.extract()?))
    }
}

/// Maps a filter file, to be asked where it lies.
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    keys: &str,
) -> PyResult<Held> {
    let told = Told::new(format, keys)?;
    py.detach(|| {
        let map = map(&path)?;
        if !told.is_foreign(map.as_ref()) {
            let filter = AnyFilter::open_mapped(map).map_err(|error| wrong(error, Some(&path)))?;
            let metadata = filter.metadata().to_owned();
            return Ok(Held::at(Place::File(filter), metadata));
        }
        if map.as_ref().starts_with(&GZIP) {
            return Err(Kind::Unsupported.with(format_args!(
                "{}: is packed and cannot be asked where it lies; petal.load reads it",
                path.display()
            )));
        }
        let filter = told.foreign(map).map_err(|error| wrong(error, Some(&path)))?;
        Ok(Held::at(Place::ForeignFile(filter), String::new()))
    })
}

/// Reads a filter file into memory.
pub(crate) fn load(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    keys: &str,
) -> PyResult<Held> {
    let told = Told::new(format, keys)?;
    py.detach(|| {
        let mut file = BufReader::with_capacity(1 << 20, file(&path)?);
        let mut start = Vec::new();
        let read = file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start);
        read.map_err(|error| cannot_read(&path, &error))?;
        let foreign = told.is_foreign(&start);
        read_held(start.chain(file), told, foreign, Some(&path))
    })
}

/// Makes a filter of the bytes of a file.
pub(crate) fn from_bytes(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    format: Option<&str>,
    keys: &str,
) -> PyResult<Held> {
    let told = Told::new(format, keys)?;
    let read = |data: &[u8]| read_held(data, told, told.is_foreign(data), None);
    match data.cast::<PyBytes>() {
        Ok(data) => {
            let data = data.as_bytes();
            py.detach(|| read(data))
        }
        // What others may change meanwhile is copied.
        Err(_) => {
            let data = PyBuffer::<u8>::get(data)?.to_vec(py)?;
            py.detach(|| read(&data))
        }
    }
}

/// What is wrong with a file, or with bytes: no argument of the caller's, whatever it is.
fn wrong(error: impl Raise, path: Option<&Path>) -> PyErr {
    match (error.kind(), path) {
        (Some(_), Some(path)) => error.raise_of(path),
        (None, Some(path)) => {
            Kind::Format.with(format_args!("{}: {}", path.display(), error.text()))
        }
        (Some(_), None) => error.raise(),
        (None, None) => Kind::Format.with(error.text()),
    }
}

fn read_held(stream: impl Read, told: Told, foreign: bool, path: Option<&Path>) -> PyResult<Held> {
    if !foreign {
        let (filter, metadata) = AnyFilter::read_from(stream).map_err(|e| wrong(e, path))?;
        return Ok(Held::at(Place::Memory(filter), metadata));
    }
    let bytes = petal_interop::read_unpacked(stream, u64::MAX).map_err(|e| wrong(e, path))?;
    let filter = told.foreign(bytes).map_err(|e| wrong(e, path))?.within(u64::MAX);
    filter.verify().map_err(|e| wrong(e, path))?;
    Ok(Held::at(Place::Foreign(filter), String::new()))
}

/// Maps a file.
#[expect(unsafe_code, reason = "the one place where the package maps a file")]
pub(crate) fn map(path: &Path) -> PyResult<Mapped> {
    let file = file(path)?;
    // SAFETY: the map is private to this process and read only. If another process cuts the file
    // short meanwhile, the kernel ends this one with SIGBUS: no wrong answer, no memory harmed.
    // petal itself never changes a filter file in place: it moves a new one over it.
    unsafe { Mapped::open(&file) }.map_err(|error| wrong(error, Some(path)))
}

/// Opens a regular file: a FIFO would wait for its writer.
fn file(path: &Path) -> PyResult<File> {
    let data = std::fs::metadata(path).map_err(|error| cannot_read(path, &error))?;
    if !data.is_file() {
        let what = if data.is_dir() { "a directory" } else { "no regular file" };
        return Err(
            Kind::Input.with(format_args!("{}: is {what}, expected a filter file", path.display()))
        );
    }
    File::open(path).map_err(|error| cannot_read(path, &error))
}
