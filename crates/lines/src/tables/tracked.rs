//! A sink that keeps its first error.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A sink whose first error is kept: a library may return it as a text.
pub(super) struct Tracked<'a> {
    sink: &'a mut (dyn Write + Send),
    failure: WriteFailure,
}

/// The first error of a sink.
#[derive(Clone, Default)]
pub(super) struct WriteFailure(Arc<Mutex<Option<io::Error>>>);

impl WriteFailure {
    /// Takes the error, if there was one.
    pub(super) fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            if kind == io::ErrorKind::Interrupted {
                return error;
            }
            let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
            kind.into()
        })
    }
}

impl<'a> Tracked<'a> {
    pub(super) fn new(sink: &'a mut (dyn Write + Send)) -> (Self, WriteFailure) {
        let failure = WriteFailure::default();
        (Self { sink, failure: failure.clone() }, failure)
    }
}

impl Write for Tracked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.failure.keep(self.sink.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.failure.keep(self.sink.flush())
    }
}
