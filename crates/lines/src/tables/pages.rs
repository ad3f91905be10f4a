//! The bytes of a Parquet file, and the memory of its pages.
//!
//! The library reads the header of a page, then its bytes, and decompresses it into memory of the size
//! that the header names. [`PageFile`] reads the sizes in the header too, and compares them with the
//! memory for pages before the library allocates it. Of each column it counts the dictionary and all
//! pages since the last batch, because strings refer to them.

use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::page_header::{LENGTH, PageHeader, page_header};
use super::source::TableSource;
use crate::error::{Error, Result};
use crate::files::InputFile;

/// A Parquet file whose pages take limited memory.
#[derive(Clone)]
pub(super) struct PageFile(Arc<Inner>);

struct Inner {
    source: TableSource,
    file: InputFile,
    memory: u64,
    pages: Mutex<Pages>,
}

/// The pages in memory.
#[derive(Default)]
struct Pages {
    columns: Vec<ColumnPages>,
    /// The error that a read returned to the library.
    failure: Option<Error>,
}

/// A column chunk that is read.
pub(super) struct Chunk {
    pub(super) bytes: Range<u64>,
    /// Memory of a value of the dictionary beside its bytes in the page.
    pub(super) value: u64,
}

/// The pages of a column chunk in memory.
struct ColumnPages {
    chunk: Chunk,
    /// Positions from which the library read last, the latest first, and the page headers there. After it
    /// has only looked at a header, it reads from the position behind the header, where none is.
    headers: [(u64, Option<PageHeader>); 2],
    dictionary: u64,
    /// Bytes of the last page, and of all pages since the last batch.
    last: u64,
    data: u64,
}

impl PageFile {
    /// Returns the file of a table, of which at most `memory` bytes may be in memory.
    pub(super) fn new(source: &TableSource, memory: u64) -> Result<Self> {
        let (file, pages) = (source.file()?, Mutex::default());
        Ok(Self(Arc::new(Inner { source: source.clone(), file, memory, pages })))
    }

    /// Starts reading these column chunks.
    pub(super) fn begin(&self, chunks: impl Iterator<Item = Chunk>) {
        let headers = [(u64::MAX, None); 2];
        let column = |chunk| ColumnPages { chunk, headers, dictionary: 0, last: 0, data: 0 };
        let mut columns: Vec<_> = chunks.map(column).collect();
        columns.sort_unstable_by_key(|column| column.chunk.bytes.start);
        self.pages().columns = columns;
    }

    /// The pages before the last of each column are no longer in memory.
    pub(super) fn next_batch(&self) {
        self.pages().columns.iter_mut().for_each(|column| column.data = column.last);
    }

    /// Returns the page header that was read last, and the memory of its page.
    pub(super) fn last_header(&self) -> Option<(PageHeader, u64)> {
        let pages = self.pages();
        let mut columns = pages.columns.iter();
        let column = columns.rfind(|column| column.headers[0].0 != u64::MAX)?;
        let header = column.headers[0].1?;
        Some((header, column.memory(header)))
    }

    /// Returns the bytes of the pages in memory.
    pub(super) fn bytes_in_memory(&self) -> u64 {
        self.pages().bytes_in_memory()
    }

    /// Returns the error of a read, or of the library.
    pub(super) fn error(&self, error: impl ToString) -> Error {
        let failure = self.pages().failure.take();
        failure.unwrap_or_else(|| self.0.source.unreadable(error))
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error of a part that does not fit the memory.
    pub(super) fn too_large(
        &self,
        part: &'static str,
        needed: u64,
        available: u64,
    ) -> ParquetError {
        self.fail(self.0.source.too_large(part, needed, available))
    }

    /// An error of contents that the library does not check.
    pub(super) fn damaged(&self, problem: &str) -> ParquetError {
        self.fail(self.0.source.unreadable(problem))
    }

    /// Keeps an error for the caller, and returns one for the library.
    fn fail(&self, error: Error) -> ParquetError {
        let text = error.to_string();
        self.pages().failure.get_or_insert(error);
        ParquetError::General(text)
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> ParquetResult<()> {
        let Inner { source, file, .. } = &*self.0;
        source.read_at(file, buffer, at).map_err(|error| self.fail(error))
    }

    /// Notes the size of the page at a position, if its header can be read.
    fn note_header(&self, start: u64) -> ParquetResult<()> {
        let length = self.0.source.length().saturating_sub(start).min(LENGTH as u64);
        let mut begin = [0; LENGTH];
        let begin = &mut begin[..length as usize];
        let is_page = self.pages().column(start).is_some();
        if is_page {
            self.read_at(begin, start)?;
            let header = page_header(begin);
            if let Some(column) = self.pages().column(start) {
                column.headers = [(start, header), column.headers[0]];
            }
        }
        Ok(())
    }
}

impl Pages {
    fn column(&mut self, at: u64) -> Option<&mut ColumnPages> {
        let after = self.columns.partition_point(|column| column.chunk.bytes.start <= at);
        let column = self.columns.get_mut(after.checked_sub(1)?)?;
        column.chunk.bytes.contains(&at).then_some(column)
    }

    /// Adds a page whose bytes are at a position. `None` if it is a dictionary with more values than
    /// bytes.
    fn add(&mut self, start: u64) -> Option<()> {
        let Some(column) = self.column(start) else { return Some(()) };
        let [latest, before] = column.headers;
        let header = if latest.0 == start { before.1 } else { latest.1 };
        let Some(header) = header else { return Some(()) };
        let memory = column.memory(header);
        if header.dictionary {
            column.dictionary = memory;
        } else {
            column.last = memory;
            column.data += memory;
        }
        // The library allocates memory for each value.
        (header.values <= header.length).then_some(())
    }

    fn bytes_in_memory(&self) -> u64 {
        self.columns.iter().map(|column| column.dictionary + column.data).sum()
    }
}

impl ColumnPages {
    /// Returns the memory of a page.
    fn memory(&self, header: PageHeader) -> u64 {
        header.length.saturating_add(header.values.saturating_mul(self.chunk.value))
    }
}

impl Length for PageFile {
    fn len(&self) -> u64 {
        self.0.source.length()
    }
}

impl ChunkReader for PageFile {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        self.note_header(start)?;
        Ok(BufReader::with_capacity(4 << 10, At { file: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let memory = &self.0.memory;
        let added = self.pages().add(start);
        added.ok_or_else(|| self.damaged("a dictionary has fewer bytes than values"))?;
        let needed = self.bytes_in_memory() + length as u64;
        if needed > *memory {
            return Err(self.too_large("the data of its pages", needed, *memory));
        }
        let mut buffer = Vec::new();
        let reserved = buffer.try_reserve_exact(length);
        reserved.map_err(|_| self.fail(Error::alloc(length as u64)))?;
        buffer.resize(length, 0);
        self.read_at(&mut buffer, start)?;
        Ok(buffer.into())
    }
}

/// Reads from a position on.
pub(super) struct At {
    file: PageFile,
    at: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.file.len().saturating_sub(self.at).min(buffer.len() as u64) as usize;
        self.file.read_at(&mut buffer[..left], self.at).map_err(io::Error::other)?;
        self.at += left as u64;
        Ok(left)
    }
}
