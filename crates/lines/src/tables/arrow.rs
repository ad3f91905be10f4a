//! Arrow IPC: keys and rows.
//!
//! A batch of rows is read as a whole, because its parts have no order on disk that helps; of its
//! columns only those of the key are decompressed. The output is a file or a stream like the first
//! input, with the compression of its first batch, and has a batch for each batch with rows in it.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBufferBuilder;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::ArrowError;
use arrow_select::filter::filter_record_batch;

use super::blocks::{Blocks, Columns, Part};
use super::column::{KeyBatch, KeyPath, count_columns};
use super::kind::TableKind;
use super::row_writer::RowWriter;
use super::source::{PartTooLarge, TableSource};
use super::tracked::{Tracked, WriteFailure};
use crate::error::{Error, Result};
use crate::files::InputFile;
use crate::keys::rows::{MAX_ROWS, RowId};

/// Memory of a column of a schema.
const PER_COLUMN: u64 = 500;

/// An Arrow file or stream.
pub(crate) struct ArrowTable {
    pub(super) source: TableSource,
    blocks: Blocks,
    /// The columns of the key; the root is an index among the columns that are read.
    paths: Vec<KeyPath>,
    /// The columns that are read for keys.
    roots: Vec<usize>,
    /// For each part the number of its first row, then the number of rows.
    starts: Vec<u64>,
}

impl ArrowTable {
    /// Opens a file. What describes its parts may take `memory` bytes.
    pub(super) fn open(
        source: TableSource,
        columns: &crate::keys::Columns,
        memory: u64,
    ) -> Result<Self> {
        let file = source.file()?;
        let blocks = source.guarded(|| Blocks::open(&source, &file, memory))?;
        let mut paths = KeyPath::find(&blocks.schema, &columns.columns)
            .map_err(|problem| Error::unusable_column(&source.name, problem))?;
        let mut roots: Vec<_> = paths.iter().map(|path| path.root).collect();
        roots.sort_unstable();
        roots.dedup();
        for path in &mut paths {
            path.root = roots.partition_point(|root| *root < path.root);
        }
        let mut starts = vec![0u64];
        for part in &blocks.parts {
            let rows = starts.last().copied().unwrap_or(0).saturating_add(part.rows.unwrap_or(0));
            if rows >= MAX_ROWS {
                return Err(source.unreadable("it names more than 2^40 rows"));
            }
            starts.push(rows);
        }
        Ok(Self { source, blocks, paths, roots, starts })
    }

    pub(super) fn rows(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the memory of what describes the table.
    pub(super) fn described(&self) -> u64 {
        let parts = self.blocks.parts.len() * (size_of::<Part>() + size_of::<u64>());
        self.described_by_writer() + parts as u64
    }

    /// Returns the memory of what describes an output of its rows.
    pub(super) fn described_by_writer(&self) -> u64 {
        self.blocks.schema.flattened_fields().len() as u64 * PER_COLUMN
    }

    pub(super) fn key_columns(&self) -> usize {
        self.paths.len()
    }

    /// Returns an error with a memory limit that is enough for the whole table, if it is one of memory.
    /// There are `keys` bytes for reading keys, and `rows` for reading and writing rows.
    fn advised(&self, error: Error, keys: Option<u64>, rows: u64) -> Error {
        let Some(&part) = error.cause::<PartTooLarge>() else { return error };
        let source = &self.source;
        let max = || {
            let file = source.file()?;
            let (mut dictionaries, mut batch) = (0u64, 0);
            for part in &self.blocks.parts {
                let needed = part.needed(source, &file)?;
                match part.rows {
                    None => dictionaries = dictionaries.saturating_add(needed),
                    Some(_) => batch = needed.max(batch),
                }
            }
            Ok(dictionaries.saturating_add(batch))
        };
        // Errors of reading come up again with the higher limit.
        let limit = source.guarded(max).map_or(part.limit, |max| {
            let of_keys = keys.map_or(0, |given| source.limit_for(max, given, |has| has.keys));
            of_keys.max(source.limit_for(max.saturating_mul(2), rows, |has| has.rows))
        });
        source.too_large_for(PartTooLarge { limit, ..part })
    }

    /// Returns a difference of its columns from those of another file, as a predicate.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let (own, others) = (self.blocks.schema.fields(), other.blocks.schema.fields());
        if own.len() != others.len() {
            return Some(format!("has {}, expected {}", count_columns(own.len()), others.len()));
        }
        let (own, _) = own.iter().zip(others).find(|(own, other)| own != other)?;
        Some(format!("has a column {:?} of another name, type or place", own.name()))
    }
}

/// Reads the parts of a table in order.
struct PartReader {
    file: InputFile,
    decoder: FileDecoder,
    /// The next part.
    next: usize,
    memory: u64,
    columns: Columns,
    /// Bytes of dictionaries.
    dictionaries: u64,
}

impl PartReader {
    fn new(
        source: &TableSource,
        table: &ArrowTable,
        memory: u64,
        columns: Columns,
    ) -> Result<Self> {
        let projection = (columns == Columns::Some).then(|| table.roots.clone());
        let decoder = table.blocks.decoder(projection);
        let file = source.file()?;
        Ok(Self { file, decoder, next: 0, memory, columns, dictionaries: 0 })
    }

    /// Reads dictionaries up to the next batch, and returns that; `None` at the end. Batches before
    /// part `from` are skipped.
    fn batch(
        &mut self,
        source: &TableSource,
        table: &ArrowTable,
        from: usize,
    ) -> Result<Option<RecordBatch>> {
        while let Some(part) = table.blocks.parts.get(self.next) {
            self.next += 1;
            match part.rows {
                None => source.guarded(|| self.dictionary(source, part))?,
                Some(0) => {}
                Some(_) if self.next <= from => {}
                Some(rows) => {
                    let batch = source.guarded(|| self.rows(source, part))?;
                    if batch.num_rows() as u64 != rows {
                        return Err(source.unreadable("a batch has another number of rows"));
                    }
                    return Ok(Some(batch));
                }
            }
        }
        Ok(None)
    }

    fn left(&self) -> u64 {
        self.memory.saturating_sub(self.dictionaries)
    }

    fn dictionary(&mut self, source: &TableSource, part: &Part) -> Result<()> {
        let bytes = part.read(source, &self.file, self.left(), Columns::All)?;
        self.dictionaries += bytes.len() as u64;
        let read = self.decoder.read_dictionary(part.block(), &bytes);
        read.map_err(|error| source.unreadable(error))
    }

    fn rows(&self, source: &TableSource, part: &Part) -> Result<RecordBatch> {
        let bytes = part.read(source, &self.file, self.left(), self.columns)?;
        let batch = self.decoder.read_record_batch(part.block(), &bytes);
        let batch = batch.map_err(|error| source.unreadable(error))?;
        batch.ok_or_else(|| source.unreadable("a message has no batch"))
    }
}

/// Reads the keys of a file, batch by batch.
pub(super) struct ArrowKeys {
    table: Arc<ArrowTable>,
    parts: PartReader,
}

impl ArrowKeys {
    pub(super) fn new(table: Arc<ArrowTable>, memory: u64) -> Result<Self> {
        let parts = PartReader::new(&table.source, &table, memory, Columns::Some)?;
        Ok(Self { table, parts })
    }

    /// Returns the keys of the next rows; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<KeyBatch>> {
        let source = &self.table.source;
        let batch = self.parts.batch(source, &self.table, 0).map_err(|error| {
            self.table.advised(error, Some(self.parts.memory), source.shares().rows)
        })?;
        let Some(batch) = batch else { return Ok(None) };
        let keys = KeyBatch::new(&batch, &self.table.paths);
        keys.map(Some).map_err(|problem| source.unreadable(problem))
    }
}

/// Writes rows of Arrow files to one of the same kind.
pub(super) struct ArrowRows<'a> {
    tables: Vec<Arc<ArrowTable>>,
    writer: IpcWriter<'a>,
    failure: WriteFailure,
    /// The table that is being read, with its number.
    reader: Option<(u64, PartReader)>,
    /// The part of `rows`.
    part: (u64, usize),
    /// Which rows of the part are written, up to the last of them.
    rows: BooleanBufferBuilder,
    memory: u64,
}

enum IpcWriter<'a> {
    File(FileWriter<BufWriter<Tracked<'a>>>),
    Stream(StreamWriter<BufWriter<Tracked<'a>>>),
}

impl IpcWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> std::result::Result<(), ArrowError> {
        match self {
            Self::File(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
        }
    }

    fn finish(&mut self) -> std::result::Result<(), ArrowError> {
        match self {
            Self::File(writer) => {
                writer.finish()?;
                writer.flush()
            }
            Self::Stream(writer) => {
                writer.finish()?;
                writer.flush()
            }
        }
    }
}

impl<'a> ArrowRows<'a> {
    pub(super) fn new(
        tables: Vec<Arc<ArrowTable>>,
        sink: &'a mut (dyn Write + Send),
        memory: u64,
    ) -> Result<Self> {
        let (source, blocks) = (&tables[0].source, &tables[0].blocks);
        let (tracked, failure) = Tracked::new(sink);
        let sink = BufWriter::new(tracked);
        let writer =
            || -> std::result::Result<_, ArrowError> {
                let options = IpcWriteOptions::default().try_with_compression(blocks.codec)?;
                Ok(match source.kind {
                    TableKind::ArrowStream => IpcWriter::Stream(
                        StreamWriter::try_new_with_options(sink, &blocks.schema, options)?,
                    ),
                    _ => IpcWriter::File(FileWriter::try_new_with_options(
                        sink,
                        &blocks.schema,
                        options,
                    )?),
                })
            };
        let failed = |error| match failure.take() {
            Some(error) => Error::write(error),
            None => source.unreadable(error),
        };
        let writer = source.guarded(|| writer().map_err(failed))?;
        let (part, rows) = ((u64::MAX, 0), BooleanBufferBuilder::new(0));
        Ok(Self { tables, writer, failure, reader: None, part, rows, memory })
    }

    /// Reads the part, and writes its chosen rows.
    fn write(&mut self) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let (number, part) = self.part;
        let table = Arc::clone(&self.tables[number as usize]);
        let written = table.source.guarded(|| self.write_part(&table, number, part));
        self.rows = BooleanBufferBuilder::new(0);
        written.map_err(|error| self.failure.take().unwrap_or_else(|| io::Error::other(error)))
    }

    fn write_part(&mut self, arrow: &ArrowTable, number: u64, part: usize) -> Result<()> {
        let source = &arrow.source;
        let reader = match &mut self.reader {
            Some((open, reader)) if *open == number => reader,
            other => {
                let reader = PartReader::new(source, arrow, self.memory / 2, Columns::All)?;
                &mut other.insert((number, reader)).1
            }
        };
        let batch = reader.batch(source, arrow, part);
        let batch = batch.map_err(|error| arrow.advised(error, None, self.memory))?;
        let batch = batch.ok_or_else(|| source.unreadable("a batch is missing"))?;
        self.rows.resize(batch.num_rows());
        let chosen = BooleanArray::new(self.rows.finish(), None);
        let batch = filter_record_batch(&batch, &chosen).map_err(|e| source.unreadable(e))?;
        self.writer.write(&batch).map_err(|error| source.unreadable(error))
    }
}

impl RowWriter for ArrowRows<'_> {
    fn add(&mut self, id: RowId) -> io::Result<()> {
        let table = self.tables.get(id.table as usize);
        let table = table.ok_or_else(|| io::Error::other("a row of an unknown table"))?;
        let starts = &table.starts;
        // The last part that begins at or before the row; dictionaries before it have no rows.
        let Some(part) = starts.partition_point(|start| *start <= id.row).checked_sub(1) else {
            return Ok(());
        };
        let row = (id.row - starts[part]) as usize;
        if self.part != (id.table, part) {
            self.write()?;
            self.part = (id.table, part);
        }
        self.rows.append_n(row.saturating_sub(self.rows.len()), false);
        self.rows.append(true);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write()?;
        let source = &self.tables[0].source;
        let finished =
            source.guarded(|| self.writer.finish().map_err(|error| source.unreadable(error)));
        finished.map_err(|error| self.failure.take().unwrap_or_else(|| io::Error::other(error)))
    }
}
