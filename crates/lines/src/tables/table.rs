//! A table of any format.

use std::io::{self, Write};
use std::sync::Arc;

use super::arrow::{ArrowKeys, ArrowRows, ArrowTable};
use super::kind::TableKind;
use super::parquet::ParquetTable;
use super::parquet_keys::ParquetKeys;
use super::parquet_rows::ParquetRows;
use super::row_writer::RowWriter;
use super::source::TableSource;
use super::stream::{FormatKeys, KeyStream};
use crate::error::{Error, Result};
use crate::keys::Columns;

/// An open table, and the columns of its keys.
pub(crate) enum Table {
    Parquet(Arc<ParquetTable>),
    Arrow(Arc<ArrowTable>),
}

impl Table {
    /// Opens a table. What describes its contents may take `memory` bytes.
    ///
    /// # Errors
    /// If the file is damaged, or does not have the columns.
    pub(crate) fn open(source: TableSource, columns: &Columns, memory: u64) -> Result<Self> {
        Ok(match source.kind {
            TableKind::Parquet => {
                Self::Parquet(Arc::new(ParquetTable::open(source, columns, memory)?))
            }
            TableKind::ArrowFile | TableKind::ArrowStream => {
                Self::Arrow(Arc::new(ArrowTable::open(source, columns, memory)?))
            }
        })
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Self::Parquet(parquet) => parquet.rows,
            Self::Arrow(arrow) => arrow.rows(),
        }
    }

    /// Returns the number of columns of a key.
    pub(crate) fn key_columns(&self) -> usize {
        match self {
            Self::Parquet(parquet) => parquet.key_columns(),
            Self::Arrow(arrow) => arrow.key_columns(),
        }
    }

    /// Returns the memory of what describes the table; `written`: and its rows in an output.
    pub(crate) fn described(&self, written: bool) -> u64 {
        match self {
            Self::Parquet(parquet) => parquet.described(written),
            Self::Arrow(arrow) => arrow.described(),
        }
    }

    /// Returns the memory of what describes an output with its columns.
    pub(crate) fn described_by_writer(&self) -> u64 {
        match self {
            Self::Parquet(parquet) => parquet.described_by_writer(),
            Self::Arrow(arrow) => arrow.described_by_writer(),
        }
    }

    pub(crate) fn source(&self) -> &TableSource {
        match self {
            Self::Parquet(parquet) => &parquet.source,
            Self::Arrow(arrow) => &arrow.source,
        }
    }

    fn parquet(&self) -> Result<Arc<ParquetTable>> {
        match self {
            Self::Parquet(parquet) => Ok(Arc::clone(parquet)),
            Self::Arrow(arrow) => Err(arrow.source.unreadable("it is no Parquet file")),
        }
    }

    fn arrow(&self) -> Result<Arc<ArrowTable>> {
        match self {
            Self::Arrow(arrow) => Ok(Arc::clone(arrow)),
            Self::Parquet(parquet) => Err(parquet.source.unreadable("it is no Arrow file")),
        }
    }

    /// Starts reading the keys of all rows with `memory` bytes.
    pub(crate) fn keys(&self, memory: u64) -> Result<KeyStream> {
        let keys = match self {
            Self::Parquet(parquet) => {
                FormatKeys::Parquet(ParquetKeys::new(Arc::clone(parquet), memory)?)
            }
            Self::Arrow(arrow) => FormatKeys::Arrow(ArrowKeys::new(Arc::clone(arrow), memory)?),
        };
        Ok(KeyStream::new(self.source().clone(), keys))
    }

    /// Returns an error unless rows of this table can follow those of `first` in an output.
    pub(crate) fn refuse_rows_after(&self, first: &Self) -> Result<()> {
        let (source, first_source) = (self.source(), first.source());
        let difference = match (self, first) {
            _ if source.kind != first_source.kind => {
                Some(format!("is {}", source.kind.predicate()))
            }
            (Self::Parquet(own), Self::Parquet(first)) => own.difference(first),
            (Self::Arrow(own), Self::Arrow(first)) => own.difference(first),
            _ => None,
        };
        let Some(difference) = difference else { return Ok(()) };
        Err(Error::different_tables(&source.name, &first_source.name, &difference))
    }

    /// Returns a writer of the rows of tables, whose numbers are their indices.
    pub(crate) fn writer<'a>(
        tables: Vec<Arc<Self>>,
        sink: &'a mut (dyn Write + Send),
        memory: u64,
    ) -> Result<Box<dyn RowWriter + 'a>> {
        let first = tables.first().ok_or_else(|| Error::write(io::Error::other("no table")))?;
        Ok(match **first {
            Self::Parquet(_) => {
                let tables = tables.iter().map(|table| table.parquet()).collect::<Result<_>>()?;
                Box::new(ParquetRows::new(tables, sink, memory)?)
            }
            Self::Arrow(_) => {
                let tables = tables.iter().map(|table| table.arrow()).collect::<Result<_>>()?;
                Box::new(ArrowRows::new(tables, sink, memory)?)
            }
        })
    }
}
