//! Filter files: opened as a map, read into memory, or given as bytes.
//!
//! A file that does not begin with petal's magic number is another program's. Its format is
//! detected, or given by the caller.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use petal::{AnyFilter, Mapped, Secret};
use petal_interop::{ForeignFilter, Format, GZIP, KeyType};
use petal_lines::atomic_file::open_whole;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{FilterState, Storage};
use crate::error::{Exception, IntoPyErr, cannot_read};
use crate::memory::copy_of_buffer;

use petal::MAGIC;

/// The arguments `format` and `key_type`, which are of other programs' files, and `secret`, of petal's own.
pub(crate) struct OpenOptions {
    format: Option<Format>,
    key_type: KeyType,
    secret: Option<Secret>,
}

impl OpenOptions {
    pub(crate) fn parse(
        format: Option<&str>,
        key_type: &str,
        secret: Option<&[u8]>,
    ) -> PyResult<Self> {
        let (format, secret) =
            (format.map(parse_format).transpose()?, crate::secret::secret(secret)?);
        Ok(Self { format, key_type: parse_key_type(key_type)?, secret })
    }

    /// Returns true if a file with these first bytes is another program's.
    fn is_foreign(&self, start: &[u8]) -> bool {
        self.format.is_some() || !start.starts_with(&MAGIC)
    }

    fn open<B: AsRef<[u8]>>(&self, file: B) -> petal_interop::Result<ForeignFilter<B>> {
        let filter = ForeignFilter::from_bytes(file, self.format)?;
        filter.check_key_type(self.key_type)?;
        Ok(filter.with_key_type(self.key_type))
    }
}

/// Returns the format of a name.
pub(crate) fn parse_format(name: &str) -> PyResult<Format> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("format=: expected one of {names}, found {name:?}"))
    })
}

/// Returns the key type of a name.
pub(crate) fn parse_key_type(name: &str) -> PyResult<KeyType> {
    KeyType::from_name(name).ok_or_else(|| {
        let names: Vec<_> = KeyType::ALL.iter().map(|key_type| key_type.name()).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("key_type=: expected one of {names}, found {name:?}"))
    })
}

/// A path argument, as the built-in `open` takes it: `str`, `bytes` or an object with `__fspath__`.
pub(crate) struct PathArg(pub(crate) PathBuf);

impl<'py> FromPyObject<'_, 'py> for PathArg {
    type Error = PyErr;

    fn extract(path: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let path = path.py().import("os")?.call_method1("fsdecode", (path,))?;
        Ok(Self(path.extract()?))
    }
}

/// Maps a filter file.
pub(crate) fn open(py: Python<'_>, path: PathBuf, options: OpenOptions) -> PyResult<FilterState> {
    py.detach(|| {
        let map = map(&path)?;
        if !options.is_foreign(map.as_ref()) {
            let filter = AnyFilter::open_mapped_with(map, options.secret.as_ref());
            let filter = filter.map_err(|error| invalid(error, Some(&path)))?;
            let metadata = filter.metadata().to_owned();
            return Ok(FilterState::from_storage(Storage::Mapped(filter), metadata));
        }
        if map.as_ref().starts_with(&GZIP) {
            return Err(Exception::Unsupported.new_err(format_args!(
                "{}: is compressed and cannot be mapped; read it with petal.load",
                path.display()
            )));
        }
        let filter = options.open(map).map_err(|error| invalid(error, Some(&path)))?;
        Ok(FilterState::from_storage(Storage::ForeignMapped(filter), String::new()))
    })
}

/// Reads a filter file into memory.
pub(crate) fn load(py: Python<'_>, path: PathBuf, options: OpenOptions) -> PyResult<FilterState> {
    py.detach(|| {
        let mut file = BufReader::with_capacity(1 << 20, open_regular_file(&path)?);
        let mut start = Vec::new();
        let read = file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start);
        read.map_err(|error| cannot_read(&path, &error))?;
        let is_foreign = options.is_foreign(&start);
        read_state(start.chain(file), &options, is_foreign, Some(&path))
    })
}

/// Reads one of petal's own filter files into memory; returns the filter and its metadata.
pub(crate) fn read_native(path: &Path) -> PyResult<(AnyFilter, String)> {
    let file = BufReader::with_capacity(1 << 20, open_regular_file(path)?);
    AnyFilter::read_from(file).map_err(|error| invalid(error, Some(path)))
}

/// Reads a filter from the bytes of its file.
pub(crate) fn from_bytes(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    options: OpenOptions,
) -> PyResult<FilterState> {
    let read = |data: &[u8]| read_state(data, &options, options.is_foreign(data), None);
    match data.cast::<PyBytes>() {
        Ok(data) => {
            let data = data.as_bytes();
            py.detach(|| read(data))
        }
        // Copied, because other threads may change the buffer.
        Err(_) => {
            let data = copy_of_buffer(py, &PyBuffer::get(data)?)?;
            py.detach(|| read(&data))
        }
    }
}

/// Returns the error for an invalid file. An invalid field is a `FormatError`, although the same
/// value as an argument would be a `ValueError`.
fn invalid(error: impl IntoPyErr, path: Option<&Path>) -> PyErr {
    match (error.exception(), path) {
        (Some(_), Some(path)) => error.into_py_err_at(path),
        (None, Some(path)) => {
            Exception::Format.new_err(format_args!("{}: {}", path.display(), error.message()))
        }
        (Some(_), None) => error.into_py_err(),
        (None, None) => Exception::Format.new_err(error.message()),
    }
}

fn read_state(
    stream: impl Read,
    options: &OpenOptions,
    is_foreign: bool,
    path: Option<&Path>,
) -> PyResult<FilterState> {
    if !is_foreign {
        let read = AnyFilter::read_from_with(stream, options.secret.as_ref());
        let (filter, metadata) = read.map_err(|e| invalid(e, path))?;
        return Ok(FilterState::from_storage(Storage::Memory(filter), metadata));
    }
    let bytes = petal_interop::read_decompressed(stream, options.format, u64::MAX);
    let bytes = bytes.map_err(|e| invalid(e, path))?;
    let filter = options.open(bytes).map_err(|e| invalid(e, path))?.with_limit(u64::MAX);
    filter.verify().map_err(|e| invalid(e, path))?;
    Ok(FilterState::from_storage(Storage::Foreign(filter), String::new()))
}

/// Maps a file.
#[expect(unsafe_code, reason = "the only place where the package maps a file")]
pub(crate) fn map(path: &Path) -> PyResult<Mapped> {
    let file = open_regular_file(path)?;
    // SAFETY: the map is private and read only. If another process truncates the file, the kernel
    // kills this process with SIGBUS; no wrong result and no corrupted memory. petal itself renames a
    // new file over a filter file, or changes bits in place, no value of which is invalid.
    unsafe { Mapped::open(&file) }.map_err(|error| invalid(error, Some(path)))
}

/// Opens a regular file. Opening a FIFO would block until there is a writer.
fn open_regular_file(path: &Path) -> PyResult<File> {
    let data = std::fs::metadata(path).map_err(|error| cannot_read(path, &error))?;
    if !data.is_file() {
        let found = if data.is_dir() { "a directory" } else { "not a regular file" };
        return Err(Exception::Input
            .new_err(format_args!("{}: is {found}, expected a filter file", path.display())));
    }
    open_whole(path).map_err(|error| cannot_read(path, &error))
}
