//! A table of any format.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::arrow::{ArrowRows, ArrowTable};
use super::kind::TableKind;
use super::parquet::{ParquetRows, ParquetTable};
use super::row_output::RowWriter;
use super::source::TableSource;
use super::stream::KeyStream;
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Columns;

/// An open table, and the columns of its keys.
pub(crate) struct Table {
    source: TableSource,
    format: Format,
}

enum Format {
    Parquet(ParquetTable),
    Arrow(ArrowTable),
}

impl Table {
    /// Opens a table. What describes its contents may take `memory` bytes.
    ///
    /// # Errors
    /// If the file is damaged, or does not have the columns.
    pub(crate) fn open(source: TableSource, columns: &Columns, memory: u64) -> Result<Self> {
        let format = match source.kind {
            TableKind::Parquet => Format::Parquet(ParquetTable::open(&source, columns, memory)?),
            TableKind::ArrowFile | TableKind::ArrowStream => {
                Format::Arrow(ArrowTable::open(&source, columns, memory)?)
            }
        };
        Ok(Self { source, format })
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> u64 {
        match &self.format {
            Format::Parquet(parquet) => parquet.rows,
            Format::Arrow(arrow) => arrow.rows(),
        }
    }

    /// Returns the number of columns of a key.
    pub(crate) fn key_columns(&self) -> usize {
        match &self.format {
            Format::Parquet(parquet) => parquet.key_columns(),
            Format::Arrow(arrow) => arrow.key_columns(),
        }
    }

    pub(crate) fn source(&self) -> &TableSource {
        &self.source
    }

    pub(super) fn parquet(&self) -> Result<&ParquetTable> {
        match &self.format {
            Format::Parquet(parquet) => Ok(parquet),
            Format::Arrow(_) => Err(self.source.unreadable("it is no Parquet file")),
        }
    }

    pub(super) fn arrow(&self) -> Result<&ArrowTable> {
        match &self.format {
            Format::Arrow(arrow) => Ok(arrow),
            Format::Parquet(_) => Err(self.source.unreadable("it is no Arrow file")),
        }
    }

    /// Starts reading the keys of all rows with `memory` bytes.
    pub(crate) fn keys(self: &Arc<Self>, memory: u64) -> Result<KeyStream> {
        KeyStream::new(Arc::clone(self), memory)
    }

    /// Returns an error unless rows of this table can follow those of `first` in an output.
    pub(crate) fn refuse_rows_after(&self, first: &Self) -> Result<()> {
        let difference = match (&self.format, &first.format) {
            _ if self.source.kind != first.source.kind => {
                Some(format!("is {}", self.source.kind.predicate()))
            }
            (Format::Parquet(own), Format::Parquet(first)) => own.difference(first),
            (Format::Arrow(own), Format::Arrow(first)) => own.difference(first),
            _ => None,
        };
        let Some(difference) = difference else { return Ok(()) };
        let (input, first) = (self.source.name.clone(), first.source.name.clone());
        Err(ErrorKind::DifferentTables { input, first, difference }.into())
    }

    /// Returns a writer of the rows of tables, whose numbers are their indices.
    pub(crate) fn writer<'a>(
        tables: Vec<Arc<Self>>,
        sink: &'a mut (dyn Write + Send),
        memory: u64,
    ) -> Result<Box<dyn RowWriter + 'a>> {
        let first = tables.first().ok_or_else(|| Error::write(io::Error::other("no table")))?;
        Ok(match first.format {
            Format::Parquet(_) => Box::new(ParquetRows::new(tables, sink, memory)?),
            Format::Arrow(_) => Box::new(ArrowRows::new(tables, sink, memory)?),
        })
    }
}

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
