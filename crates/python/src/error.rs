//! Exceptions: a small tree that follows the libraries' own errors.
//!
//! | exception | also a | when |
//! |---|---|---|
//! | `PetalError` | | the root of them all |
//! | `FormatError` | `ValueError` | bytes are no filter, of a newer version, or damaged |
//! | `IncompatibleError` | `ValueError` | two filters differ in type, shape or hash |
//! | `FullError` | | a filter takes no more keys |
//! | `UnsupportedError` | `TypeError` | that type of filter cannot do that |
//! | `MemoryCapError` | `MemoryError` | what was asked for does not fit the memory there is, or that was allowed |
//! | `InputError` | `OSError` | a file cannot be read or written, or holds what it must not |
//! | `MissingFileError` | `InputError`, `FileNotFoundError` | a file or folder is not there |
//!
//! Where the system said it, an `InputError` has `errno`, and `filename` if it is known; the words
//! are petal's in either case.
//!
//! Arguments out of range are a plain `ValueError`, keys of a wrong type a `TypeError`.

use std::io;
use std::path::Path;

use pyo3::exceptions::{
    PyException, PyFileNotFoundError, PyMemoryError, PyOSError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// The exceptions, in the order of [`TYPES`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Petal,
    Format,
    Incompatible,
    Full,
    Unsupported,
    MemoryCap,
    Input,
    MissingFile,
}

static TYPES: [PyOnceLock<Py<PyType>>; Kind::ALL.len()] =
    [const { PyOnceLock::new() }; Kind::ALL.len()];

impl Kind {
    const ALL: [Self; 8] = [
        Self::Petal,
        Self::Format,
        Self::Incompatible,
        Self::Full,
        Self::Unsupported,
        Self::MemoryCap,
        Self::Input,
        Self::MissingFile,
    ];

    fn name_and_doc(self) -> (&'static str, &'static str) {
        match self {
            Self::Petal => ("PetalError", "The root of petal's exceptions."),
            Self::Format => {
                ("FormatError", "Bytes that are no filter, of a newer version, or damaged.")
            }
            Self::Incompatible => {
                ("IncompatibleError", "Two filters that differ in type, shape or hash.")
            }
            Self::Full => ("FullError", "A filter that takes no more keys."),
            Self::Unsupported => ("UnsupportedError", "What this type of filter cannot do."),
            Self::MemoryCap => {
                ("MemoryCapError", "What does not fit the memory there is, or that was allowed.")
            }
            Self::Input => {
                ("InputError", "A file that cannot be read or written, or holds what it must not.")
            }
            Self::MissingFile => ("MissingFileError", "A file or folder that is not there."),
        }
    }

    /// The exception, a class of Python.
    fn class(self, py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        let class = TYPES[self as usize].get_or_try_init(py, || self.make(py))?;
        Ok(class.bind(py))
    }

    fn make(self, py: Python<'_>) -> PyResult<Py<PyType>> {
        let root = || Self::Petal.class(py).cloned();
        let bases = match self {
            Self::Petal => vec![py.get_type::<PyException>()],
            Self::Full => vec![root()?],
            Self::Format | Self::Incompatible => vec![root()?, py.get_type::<PyValueError>()],
            Self::Unsupported => vec![root()?, py.get_type::<PyTypeError>()],
            // In this order: else it is made as its first base is, and found by the other's
            // `__new__`, which refuses. Dask unpickles by that.
            Self::MemoryCap => vec![py.get_type::<PyMemoryError>(), root()?],
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
            // Else Python would put number and name around words that tell of them already.
            let words = c"lambda self: self.strerror or super(OSError, self).__str__()";
            dict.set_item("__str__", py.eval(words, Some(&PyDict::new(py)), None)?)?;
        }
        let class = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, dict))?;
        Ok(class.cast_into::<PyType>()?.unbind())
    }

    /// That of what the system said.
    fn of_system(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::MissingFile,
            _ => Self::Input,
        }
    }

    /// An exception with these words.
    pub(crate) fn with(self, words: impl ToString) -> PyErr {
        let words = words.to_string();
        Python::attach(|py| match self.class(py) {
            Ok(class) => PyErr::from_type(class.clone(), words),
            Err(error) => error,
        })
    }
}

/// The exception of what the system said of a file, in petal's words.
pub(crate) fn of_system(error: &io::Error, path: Option<&Path>, words: String) -> PyErr {
    let kind = Kind::of_system(error);
    let Some(number) = error.raw_os_error() else { return kind.with(words) };
    Python::attach(|py| match kind.class(py) {
        Ok(class) => {
            let name = path.map(|path| path.as_os_str().to_owned());
            PyErr::from_type(class.clone(), (number, words, name))
        }
        Err(error) => error,
    })
}

/// What an error of petal's libraries is in Python.
pub(crate) trait Raise: std::error::Error + Sized {
    /// The exception for it; `None` if an argument was wrong, for which Python has one.
    fn kind(&self) -> Option<Kind>;

    fn raise(self) -> PyErr {
        raised(&self, self.kind(), None, self.text())
    }

    /// The text of the error, in which arguments have the names that they have in Python.
    fn text(&self) -> String {
        in_python(&self.to_string())
    }

    /// The same with the name of the file in front.
    fn raise_of(self, path: &Path) -> PyErr {
        raised(&self, self.kind(), Some(path), format!("{}: {}", path.display(), self.text()))
    }
}

/// A text of the libraries for filters and formats, in which arguments have the names that they have
/// in Python: the libraries name the program's, and their own.
pub(crate) fn in_python(text: &str) -> String {
    const NAMES: [(&str, &str); 5] = [
        (" (petal build --type wide)", ""),
        (" (--type wide)", ""),
        ("--format", "format="),
        ("--as", "keys="),
        ("max_keys", "max_capacity="),
    ];
    NAMES.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn raised(
    error: &dyn std::error::Error,
    kind: Option<Kind>,
    path: Option<&Path>,
    words: String,
) -> PyErr {
    let system = error.source().and_then(|source| source.downcast_ref());
    match (kind, system) {
        (Some(Kind::Input), Some(system)) => of_system(system, path, words),
        (Some(kind), _) => kind.with(words),
        (None, _) => PyValueError::new_err(words),
    }
}

impl Raise for petal::Error {
    fn kind(&self) -> Option<Kind> {
        Some(match self {
            e if e.is_invalid() || e.is_unattainable() => return None,
            e if !e.contradictions().is_empty() => return None,
            e if e.is_alloc() => Kind::MemoryCap,
            e if e.is_full() => Kind::Full,
            e if e.is_incompatible() => Kind::Incompatible,
            e if e.is_unsupported() => Kind::Unsupported,
            e if e.is_io() => Kind::Input,
            e if e.is_foreign() || e.is_unsupported_version() || e.is_corrupt() => Kind::Format,
            _ => Kind::Petal,
        })
    }
}

impl Raise for petal_interop::Error {
    fn kind(&self) -> Option<Kind> {
        Some(match self {
            e if e.is_key() || e.is_key_form() => return None,
            e if e.is_limit() || e.is_too_large() => Kind::MemoryCap,
            e if e.is_full() => Kind::Full,
            e if e.is_refused() => Kind::Unsupported,
            e if e.is_different() => Kind::Incompatible,
            e if e.is_io() => Kind::Input,
            e if e.is_unknown() || e.is_malformed() || e.is_contradiction() => Kind::Format,
            _ => Kind::Petal,
        })
    }
}

impl Raise for petal_lines::Error {
    fn kind(&self) -> Option<Kind> {
        let of_filter = std::error::Error::source(self).and_then(|e| e.downcast_ref());
        Some(match self {
            e if e.is_setting() => return None,
            e if e.is_memory() => Kind::MemoryCap,
            e if e.is_full() => Kind::Full,
            e if e.is_of_filter() || e.is_cancelled() => Kind::Petal,
            _ => return of_filter.map_or(Some(Kind::Input), petal::Error::kind),
        })
    }

    fn text(&self) -> String {
        let text = self.told(&NAMES).to_string();
        // Its own texts have Python's names, and may have the path of a file with any.
        let source = std::error::Error::source(self);
        let of_filter = source.is_some_and(|e| e.is::<petal::Error>());
        if of_filter || self.is_of_filter() { in_python(&text) } else { text }
    }

    fn raise(self) -> PyErr {
        let path = self.input().map(Path::new);
        raised(&self, self.kind(), path, self.text())
    }
}

/// What the engine's settings are called in Python.
const NAMES: petal_lines::Names = petal_lines::Names {
    memory: "memory=",
    rate: "rate=",
    keys: "capacity=",
    output: "out=",
    temp_dir: "temp_dir=",
    work_dir: "work_dir=",
    resume: "resume=True",
    null: r#"delimiter=b"\0""#,
    text: "text=True",
    kind: "type=",
    width: "width=",
    growing: r#"type="scalable""#,
    max_keys: "max_capacity=",
    window: "window=",
    last: "last=",
    forgetting: "window=604_800 or last=1_000_000",
    not_in: "not_in=",
    common: "petal.common",
};

/// The error of a file that cannot be written.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> PyErr {
    let words = format!("{}: cannot write: {}", path.display(), plain(error));
    of_system(error, Some(path), words)
}

/// The error of a file that cannot be read.
pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> PyErr {
    let words = format!("{}: cannot read: {}", path.display(), plain(error));
    of_system(error, Some(path), words)
}

/// An error of the system in its own words: without Rust's `(os error N)`.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// Adds the exceptions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for kind in Kind::ALL {
        module.add(kind.name_and_doc().0, kind.class(module.py())?)?;
    }
    Ok(())
}
