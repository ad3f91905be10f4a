//! Exceptions: a small hierarchy that follows the errors of the libraries.
//!
//! After a system error, an `InputError` has `errno`, and `filename` if it is known. Its text is
//! petal's in either case.
//!
//! An argument out of range is a plain `ValueError`, a key of a wrong type a `TypeError`.

use std::io;
use std::path::Path;

use petal_lines::atomic_file::{AtomicFile, Finished};
use petal_lines::{Advice, ErrorKind, Setting};
use pyo3::exceptions::{
    PyException, PyFileNotFoundError, PyMemoryError, PyOSError, PyTypeError, PyUserWarning,
    PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// The exceptions, in the order of [`CLASSES`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Exception {
    Petal,
    Format,
    Incompatible,
    Full,
    Unsupported,
    MemoryLimit,
    Input,
    MissingFile,
}

static CLASSES: [PyOnceLock<Py<PyType>>; Exception::ALL.len()] =
    [const { PyOnceLock::new() }; Exception::ALL.len()];

impl Exception {
    const ALL: [Self; 8] = [
        Self::Petal,
        Self::Format,
        Self::Incompatible,
        Self::Full,
        Self::Unsupported,
        Self::MemoryLimit,
        Self::Input,
        Self::MissingFile,
    ];

    fn name_and_doc(self) -> (&'static str, &'static str) {
        match self {
            Self::Petal => ("PetalError", "The base class of petal's exceptions."),
            Self::Format => {
                ("FormatError", "Bytes are not a filter, are damaged, or of a newer version.")
            }
            Self::Incompatible => (
                "IncompatibleError",
                "Two filters differ in type, layout, hash or changes to their keys, or a secret is not \
                 that of the filter.",
            ),
            Self::Full => ("FullError", "The filter takes no more keys."),
            Self::Unsupported => {
                ("UnsupportedError", "The type of filter does not support the operation.")
            }
            Self::MemoryLimit => {
                ("MemoryLimitError", "The memory limit or the memory of the system is too small.")
            }
            Self::Input => {
                ("InputError", "A file cannot be read or written, or has invalid content.")
            }
            Self::MissingFile => ("MissingFileError", "A file or directory does not exist."),
        }
    }

    /// Returns the Python class.
    fn class(self, py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        let class = CLASSES[self as usize].get_or_try_init(py, || self.make_class(py))?;
        Ok(class.bind(py))
    }

    fn make_class(self, py: Python<'_>) -> PyResult<Py<PyType>> {
        let root = || Self::Petal.class(py).cloned();
        let bases = match self {
            Self::Petal => vec![py.get_type::<PyException>()],
            Self::Full => vec![root()?],
            Self::Format | Self::Incompatible => vec![root()?, py.get_type::<PyValueError>()],
            Self::Unsupported => vec![root()?, py.get_type::<PyTypeError>()],
            // `MemoryError` first: otherwise the class has the layout of one base and the `__new__`
            // of the other, and Dask cannot unpickle it.
            Self::MemoryLimit => vec![py.get_type::<PyMemoryError>(), root()?],
            Self::Input => vec![root()?, py.get_type::<PyOSError>()],
            Self::MissingFile => {
                vec![Self::Input.class(py)?.clone(), py.get_type::<PyFileNotFoundError>()]
            }
        };
        let (name, doc) = self.name_and_doc();
        let dict = PyDict::new(py);
        dict.set_item("__module__", "petal")?;
        dict.set_item("__doc__", doc)?;
        if matches!(self, Self::Input) {
            // `OSError` would add number and path, which the text has already.
            let text = c"lambda self: self.strerror or super(OSError, self).__str__()";
            dict.set_item("__str__", py.eval(text, Some(&PyDict::new(py)), None)?)?;
        }
        let class = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, dict))?;
        Ok(class.cast_into::<PyType>()?.unbind())
    }

    fn from_io_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::MissingFile,
            io::ErrorKind::OutOfMemory => Self::MemoryLimit,
            _ => Self::Input,
        }
    }

    /// Returns an exception with this text.
    pub(crate) fn new_err(self, text: impl ToString) -> PyErr {
        let text = text.to_string();
        Python::attach(|py| match self.class(py) {
            Ok(class) => PyErr::from_type(class.clone(), text),
            Err(error) => error,
        })
    }
}

/// Returns the exception for a system error, with this text and the path of the file.
pub(crate) fn io_error(error: &io::Error, path: Option<&Path>, text: String) -> PyErr {
    let exception = Exception::from_io_error(error);
    let number = match exception {
        Exception::MemoryLimit => None,
        _ => error.raw_os_error(),
    };
    let Some(number) = number else { return exception.new_err(text) };
    Python::attach(|py| match exception.class(py) {
        Ok(class) => {
            let name = path.map(|path| path.as_os_str().to_owned());
            PyErr::from_type(class.clone(), (number, text, name))
        }
        Err(error) => error,
    })
}

/// Returns an error if the name of a file says that it is compressed. A FIFO or a device may be read by
/// a program that compresses.
pub(crate) fn refuse_compressed(path: &Path) -> PyResult<()> {
    let is_special = std::fs::metadata(path).is_ok_and(|data| !data.is_file());
    let Some(extension) = petal_lines::compressed_extension(path).filter(|_| !is_special) else {
        return Ok(());
    };
    let path = path.display();
    Err(Exception::Input.new_err(format_args!(
        "{path}: the output is not compressed, but .{extension} says that it is; leave out the extension, \
         and compress the file afterwards"
    )))
}

/// Returns the exception for a file that cannot be written.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> PyErr {
    let text = format!("{}: cannot write: {}", path.display(), io_message(error));
    io_error(error, Some(path), text)
}

/// Completes a file that replaces another one. Warns if others may no longer use it.
pub(crate) fn finish_file(file: AtomicFile, path: &Path) -> PyResult<()> {
    warn_if_lost(file.finish().map_err(|error| cannot_write(path, &error))?, path)
}

/// Warns if others may no longer use a file that replaced another one. The caller holds no lock of a filter: a
/// warning can run code of the user.
pub(crate) fn warn_if_lost(finished: Finished, path: &Path) -> PyResult<()> {
    let Finished::Lost(error) = finished else { return Ok(()) };
    let text = format!(
        "{}: its owner, group or attributes could not be kept: {}; set them again",
        path.display(),
        io_message(&error)
    );
    Python::attach(|py| {
        let category = py.get_type::<PyUserWarning>();
        py.import("warnings")?.call_method1("warn", (text, category, 2)).map(drop)
    })
}

/// Returns the exception for a file that cannot be read.
pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> PyErr {
    let text = format!("{}: cannot read: {}", path.display(), io_message(error));
    io_error(error, Some(path), text)
}

/// Returns an exception of the same class with the path before its text.
pub(crate) fn with_path(path: &Path, error: PyErr) -> PyErr {
    Python::attach(|py| {
        let text = format!("{}: {}", path.display(), error.value(py));
        PyErr::from_type(error.get_type(py), text)
    })
}

/// Returns the text of a system error without Rust's `(os error N)`, in lower case.
pub(crate) fn io_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// The conversion of a library's error to a Python exception.
pub(crate) trait IntoPyErr: std::error::Error + Sized {
    /// Returns the exception; `None` for a wrong argument, which is a `ValueError`.
    fn exception(&self) -> Option<Exception>;

    /// Returns the text of the error, with the names of Python's arguments.
    fn message(&self) -> String {
        self.to_string()
    }

    fn into_py_err(self) -> PyErr {
        convert(&self, self.exception(), None, self.message())
    }

    /// Like [`into_py_err`](Self::into_py_err), with the path before the text.
    fn into_py_err_at(self, path: &Path) -> PyErr {
        let text = format!("{}: {}", path.display(), self.message());
        convert(&self, self.exception(), Some(path), text)
    }
}

fn convert(
    error: &dyn std::error::Error,
    exception: Option<Exception>,
    path: Option<&Path>,
    text: String,
) -> PyErr {
    let system = error.source().and_then(|source| source.downcast_ref());
    match (exception, system) {
        (Some(Exception::Input), Some(system)) => io_error(system, path, text),
        (Some(exception), _) => exception.new_err(text),
        (None, _) => PyValueError::new_err(text),
    }
}

impl IntoPyErr for petal::Error {
    fn exception(&self) -> Option<Exception> {
        Some(match self {
            e if e.is_invalid() || e.is_unattainable() => return None,
            e if !e.contradictions().is_empty() => return None,
            e if e.is_alloc() => Exception::MemoryLimit,
            e if e.is_full() => Exception::Full,
            e if e.is_incompatible() || e.is_secret() => Exception::Incompatible,
            e if e.is_unsupported() => Exception::Unsupported,
            e if e.is_io() => Exception::Input,
            e if e.is_foreign() || e.is_unsupported_version() || e.is_corrupt() => {
                Exception::Format
            }
            _ => Exception::Petal,
        })
    }

    fn message(&self) -> String {
        match self {
            e if e.is_secret_missing() => {
                "the secret of the filter is not in its file; pass it as secret=".to_owned()
            }
            e if e.is_secret() => {
                "secret=: the filter was built with another secret; pass that one".to_owned()
            }
            _ => self.to_string(),
        }
    }
}

impl IntoPyErr for petal_interop::Error {
    fn exception(&self) -> Option<Exception> {
        Some(match self {
            e if matches!(e.kind(), petal_interop::ErrorKind::Invalid { .. }) => return None,
            e if e.is_key() || e.is_key_type() => return None,
            e if matches!(e.kind(), petal_interop::ErrorKind::Unsupported { .. }) => {
                Exception::Unsupported
            }
            e if e.is_limit() || e.is_too_large() => Exception::MemoryLimit,
            e if e.is_full() => Exception::Full,
            e if e.is_refused() => Exception::Unsupported,
            e if e.is_different() => Exception::Incompatible,
            e if e.is_io() => Exception::Input,
            e if e.is_unknown() || e.is_malformed() || e.is_contradiction() => Exception::Format,
            _ => Exception::Petal,
        })
    }

    fn message(&self) -> String {
        match self.kind() {
            petal_interop::ErrorKind::AmbiguousFormat { formats } => {
                let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
                format!("may be {}; specify format=", names.join(" or "))
            }
            petal_interop::ErrorKind::UnknownFormat { .. } => format!("{self} with format="),
            petal_interop::ErrorKind::WholeParquet => {
                "is a whole Parquet file, which has filters in it; query them with the program: \
                 petal probe"
                    .to_owned()
            }
            _ => self.to_string(),
        }
    }
}

impl IntoPyErr for petal_lines::Error {
    fn exception(&self) -> Option<Exception> {
        Some(match self.kind() {
            ErrorKind::Setting => return None,
            ErrorKind::Memory | ErrorKind::LineBuffer => Exception::MemoryLimit,
            ErrorKind::Full => Exception::Full,
            ErrorKind::OtherFilter | ErrorKind::Cancelled => Exception::Petal,
            _ => match self.filter_error() {
                Some(error) => return error.exception(),
                None => Exception::Input,
            },
        })
    }

    fn message(&self) -> String {
        match self.filter_error() {
            Some(error) => error.message(),
            None => self.text(argument, advice_text),
        }
    }

    fn into_py_err(self) -> PyErr {
        let path = self.subject().filter(|_| self.kind() == ErrorKind::Input).map(Path::new);
        convert(&self, self.exception(), path, self.message())
    }
}

/// Returns the name of the argument that sets `setting`.
fn argument(setting: Setting) -> &'static str {
    match setting {
        Setting::MemoryLimit => "memory_limit=",
        Setting::Size => "size=",
        Setting::Fpr => "fpr=",
        Setting::Capacity => "capacity=",
        Setting::MaxCapacity => "max_capacity=",
        Setting::FilterType => "type=",
        Setting::Bits => "bits=",
        Setting::Probes => "probes=",
        Setting::LeastSpace => "least_space=True",
        Setting::CounterWidth => "width=",
        Setting::Growing => r#"type="scalable""#,
        Setting::Window => "window=",
        Setting::Last => "last=",
        Setting::NotIn => "not_in=",
        Setting::Output => "out=",
        Setting::TempDir => "temp_dir=",
        Setting::WorkDir => "work_dir=",
        Setting::Resume => "resume=True",
        Setting::NullDelimiter => r#"delimiter=b"\0""#,
        Setting::Text => "text=True",
        Setting::Separator => "separator=",
        Setting::Quote => "quote=",
        Setting::Columns => "column=",
        Setting::KeysOnly => "keys_only=True",
        Setting::KeyTransform => "key_transform=",
        // Python's jobs have none of these.
        Setting::Sums => "sums=",
        Setting::Counts => "counts=",
        Setting::BadRecords => "bad_records=",
        Setting::Nulls => "nulls=",
        Setting::Empty => "empty=",
        Setting::SkipLines => "skip_lines=",
        Setting::Comment => "comment=",
        Setting::Unit => "unit=",
        Setting::JsonKey => "json_key=",
    }
}

/// Words advice with the names of Python's arguments.
fn advice_text(advice: &Advice) -> String {
    match advice {
        Advice::RaiseMemoryLimitTo(bytes) => {
            format!("raise {} to {bytes}", argument(Setting::MemoryLimit))
        }
        Advice::UseType(types) => {
            let names: Vec<_> = types.iter().map(|name| format!("type=\"{name}\"")).collect();
            format!("use {}", names.join(" or "))
        }
        Advice::FindCommonLines => "find them with petal.common".to_owned(),
        other => other.text("pass", argument),
    }
}

/// Adds the exceptions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for exception in Exception::ALL {
        module.add(exception.name_and_doc().0, exception.class(module.py())?)?;
    }
    Ok(())
}
