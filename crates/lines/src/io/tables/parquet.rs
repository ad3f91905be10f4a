//! Parquet: keys and rows.
//!
//! Strings are read as views of pages, so that a dictionary is in memory once. The schema of the output
//! is that of the input, with its key-value metadata; the codec of each column is that of the first
//! row group. Statistics and pages are new; bloom filters and sort orders are not copied.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::WriterProperties;

use super::column::{KeyBatch, KeyPath, count_columns};
use super::pages::PageFile;
use super::row_writer::RowWriter;
use super::source::TableSource;
use super::tracked::{Tracked, WriteFailure};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Columns;
use crate::keys::rows::{MAX_ROWS, RowId};

/// Bytes of values that a batch has, as a share of the memory for pages.
const BATCH_SHARE: u64 = 4;

/// Rows of a batch.
const MIN_BATCH: u64 = 16;
const MAX_BATCH: u64 = 8192;

/// Ranges of rows of a row group that are read at a time.
const MAX_RANGES: usize = 1 << 15;

/// A Parquet file.
pub(crate) struct ParquetTable {
    pub(super) source: TableSource,
    metadata: ArrowReaderMetadata,
    /// The columns of the key; the root is an index among the columns that are read.
    paths: Vec<KeyPath>,
    /// The leaf columns of the key.
    leaves: Vec<usize>,
    /// The number of the first row of each row group.
    starts: Vec<u64>,
    pub(super) rows: u64,
}

impl ParquetTable {
    /// Opens a file. The metadata at its end may take `memory` bytes.
    pub(super) fn open(source: TableSource, columns: &Columns, memory: u64) -> Result<Self> {
        let file = PageFile::new(&source, memory)?;
        let read = || {
            let options = ArrowReaderOptions::new()
                .with_skip_arrow_metadata(true)
                .with_page_index_policy(PageIndexPolicy::Skip);
            let metadata = ArrowReaderMetadata::load(&file, options.clone())?;
            let schema = Arc::new(with_views(metadata.schema()));
            let metadata = Arc::clone(metadata.metadata());
            ArrowReaderMetadata::try_new(metadata, options.with_schema(schema))
        };
        let metadata = source.guarded(|| read().map_err(|error| file.error(error)))?;
        let unusable = |problem| -> Error {
            let input = source.name.clone();
            ErrorKind::UnusableColumn { input, problem, rows: false }.into()
        };
        let paths = KeyPath::find(metadata.schema(), &columns.columns).map_err(unusable)?;
        let (paths, leaves) = projected(&metadata, paths);
        let (mut starts, mut rows) = (Vec::new(), 0u64);
        for group in metadata.metadata().row_groups() {
            starts.push(rows);
            let more = u64::try_from(group.num_rows()).ok();
            rows = more.and_then(|more| rows.checked_add(more)).unwrap_or(MAX_ROWS);
            if rows >= MAX_ROWS {
                return Err(source.unreadable("it names more than 2^40 rows"));
            }
        }
        Ok(Self { source, metadata, paths, leaves, starts, rows })
    }

    pub(super) fn key_columns(&self) -> usize {
        self.paths.len()
    }

    /// Starts reading leaf columns of a row group; `None`: all.
    fn read_group(
        &self,
        file: &PageFile,
        group: usize,
        leaves: Option<&[usize]>,
        selection: Option<RowSelection>,
        memory: u64,
    ) -> Result<ParquetRecordBatchReader> {
        let chunks = self.metadata.metadata().row_group(group);
        let all = 0..chunks.columns().len();
        let read: Vec<_> = leaves.map_or_else(|| all.collect(), <[usize]>::to_vec);
        let bytes = read.iter().map(|&leaf| chunks.column(leaf).uncompressed_size());
        let bytes = bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0)).sum::<u64>();
        let rows = u64::try_from(chunks.num_rows()).unwrap_or(0).max(1);
        let batch = memory / BATCH_SHARE / (bytes / rows).max(1);
        let batch = batch.clamp(MIN_BATCH, MAX_BATCH) as usize;
        let ranges = read.iter().map(|&leaf| {
            let (start, length) = chunks.column(leaf).byte_range();
            start..start.saturating_add(length)
        });
        file.begin(ranges);
        let descriptor = self.metadata.parquet_schema();
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), self.metadata.clone())
                .with_row_groups(vec![group])
                .with_batch_size(batch);
        let builder = match leaves {
            Some(leaves) => {
                builder.with_projection(ProjectionMask::leaves(descriptor, leaves.iter().copied()))
            }
            None => builder,
        };
        let builder = match selection {
            Some(selection) => builder.with_row_selection(selection),
            None => builder,
        };
        builder.build().map_err(|error| file.error(error))
    }

    /// Returns a difference of its columns from those of another file, as a predicate.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let fields =
            |table: &Self| table.metadata.parquet_schema().root_schema().get_fields().to_vec();
        let (own, others) = (fields(self), fields(other));
        if own.len() != others.len() {
            return Some(format!("has {}, expected {}", count_columns(own.len()), others.len()));
        }
        let (own, _) = own.iter().zip(&others).find(|(own, other)| own != other)?;
        Some(format!("has a column {:?} of another name, type or place", own.name()))
    }
}

/// Returns the paths with roots among the columns that are read, and the leaf columns to read.
fn projected(
    metadata: &ArrowReaderMetadata,
    mut paths: Vec<KeyPath>,
) -> (Vec<KeyPath>, Vec<usize>) {
    let descriptor = metadata.parquet_schema();
    let is_read = |leaf: &usize| {
        let parts = descriptor.column(*leaf).path().parts().to_vec();
        let root = descriptor.get_column_root_idx(*leaf);
        paths.iter().any(|path| path.root == root && path.members == parts[1..])
    };
    let leaves: Vec<_> = (0..descriptor.num_columns()).filter(is_read).collect();
    let mut roots: Vec<_> = paths.iter().map(|path| path.root).collect();
    roots.sort_unstable();
    roots.dedup();
    for path in &mut paths {
        path.root = roots.partition_point(|root| *root < path.root);
    }
    (paths, leaves)
}

/// Returns a schema with views in place of strings and binary values.
fn with_views(schema: &Schema) -> Schema {
    Schema::new_with_metadata(fields_with_views(schema.fields()), schema.metadata().clone())
}

fn fields_with_views(fields: &Fields) -> Fields {
    fields.iter().map(field_with_views).collect()
}

fn field_with_views(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        DataType::Struct(fields) => DataType::Struct(fields_with_views(fields)),
        DataType::List(field) => DataType::List(field_with_views(field)),
        DataType::Map(field, sorted) => DataType::Map(field_with_views(field), *sorted),
        other => other.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// Reads the keys of a file, row group by row group.
pub(super) struct ParquetKeys {
    table: Arc<ParquetTable>,
    file: PageFile,
    memory: u64,
    /// The next row group, and the reader of the one before.
    group: usize,
    reader: Option<ParquetRecordBatchReader>,
    /// Rows of the row group that are missing.
    left: u64,
}

impl ParquetKeys {
    pub(super) fn new(table: Arc<ParquetTable>, memory: u64) -> Result<Self> {
        let file = PageFile::new(&table.source, memory)?;
        Ok(Self { table, file, memory, group: 0, reader: None, left: 0 })
    }

    /// Returns the keys of the next rows; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<KeyBatch>> {
        let Self { table: parquet, file, memory, group, reader, left } = self;
        let source = &parquet.source;
        loop {
            let Some(open) = reader else {
                let groups = parquet.metadata.metadata().row_groups();
                let Some(next) = groups.get(*group) else { return Ok(None) };
                *left = u64::try_from(next.num_rows()).unwrap_or(0);
                let leaves = Some(&parquet.leaves[..]);
                let open = || parquet.read_group(file, *group, leaves, None, *memory);
                *reader = Some(source.guarded(open)?);
                *group += 1;
                continue;
            };
            file.next_batch();
            let batch = source.guarded(|| open.next().transpose().map_err(|e| file.error(e)))?;
            let Some(batch) = batch else {
                if *left > 0 {
                    return Err(source.unreadable("a row group has fewer rows than it names"));
                }
                *reader = None;
                continue;
            };
            *left = left
                .checked_sub(batch.num_rows() as u64)
                .ok_or_else(|| source.unreadable("a row group has more rows than it names"))?;
            let keys = KeyBatch::new(&batch, &parquet.paths);
            return keys.map(Some).map_err(|problem| source.unreadable(problem));
        }
    }
}

/// Writes rows of Parquet files to a Parquet file.
pub(super) struct ParquetRows<'a> {
    tables: Vec<Arc<ParquetTable>>,
    writer: Option<ArrowWriter<Tracked<'a>>>,
    tracked: WriteFailure,
    /// The file of the table that is being read, with its number.
    file: Option<(u64, PageFile)>,
    /// The row group of `ranges`.
    group: (u64, usize),
    /// Rows of the row group, ascending.
    ranges: Vec<Range<usize>>,
    memory: u64,
}

impl<'a> ParquetRows<'a> {
    /// Creates a writer. Reading and writing take half of `memory` each.
    pub(super) fn new(
        tables: Vec<Arc<ParquetTable>>,
        sink: &'a mut (dyn Write + Send),
        memory: u64,
    ) -> Result<Self> {
        let parquet = &*tables[0];
        let source = &parquet.source;
        let descriptor = parquet.metadata.parquet_schema();
        let int96 = descriptor.columns().iter();
        let int96 = int96.filter(|column| column.physical_type() == PhysicalType::INT96);
        if let Some(column) = int96.map(|column| column.path().string()).next() {
            let problem =
                format!("column {column:?} has the old type INT96, which cannot be written");
            let input = source.name.clone();
            return Err(ErrorKind::UnusableColumn { input, problem, rows: true }.into());
        }
        let (tracked, failure) = Tracked::new(sink);
        let options = ArrowWriterOptions::new()
            .with_properties(properties(parquet, memory / 2))
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(descriptor.clone());
        let schema = SchemaRef::clone(parquet.metadata.schema());
        let writer = || ArrowWriter::try_new_with_options(tracked, schema, options);
        let failed = |error| match failure.take() {
            Some(error) => Error::write(error),
            None => source.unreadable(error),
        };
        let writer = source.guarded(|| writer().map_err(failed))?;
        let (group, ranges) = ((u64::MAX, 0), Vec::new());
        let writer = Some(writer);
        Ok(Self { tables, writer, tracked: failure, file: None, group, ranges, memory })
    }

    /// Reads the rows of `ranges`, and writes them.
    fn write(&mut self) -> io::Result<()> {
        if self.ranges.is_empty() {
            return Ok(());
        }
        let (number, group) = self.group;
        let table = Arc::clone(&self.tables[number as usize]);
        let written = table.source.guarded(|| self.write_group(&table, number, group));
        self.ranges.clear();
        written.map_err(|error| self.tracked.take().unwrap_or_else(|| io::Error::other(error)))
    }

    fn write_group(&mut self, parquet: &ParquetTable, number: u64, group: usize) -> Result<()> {
        let memory = self.memory / 2;
        let file = match &self.file {
            Some((open, file)) if *open == number => file,
            _ => &self.file.insert((number, PageFile::new(&parquet.source, memory)?)).1,
        };
        let rows = parquet.metadata.metadata().row_group(group).num_rows();
        let rows = usize::try_from(rows).unwrap_or(0);
        let selection = RowSelection::from_consecutive_ranges(self.ranges.iter().cloned(), rows);
        let expected: usize = self.ranges.iter().map(Range::len).sum();
        let mut reader = parquet.read_group(file, group, None, Some(selection), memory)?;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut found = 0;
        loop {
            file.next_batch();
            let Some(batch) = reader.next().transpose().map_err(|error| file.error(error))? else {
                break;
            };
            found += batch.num_rows();
            writer.write(&batch).map_err(|error| file.error(error))?;
            if writer.memory_size() as u64 > memory {
                writer.flush().map_err(|error| file.error(error))?;
            }
        }
        if found != expected {
            return Err(parquet.source.unreadable("a row group has fewer rows than it names"));
        }
        Ok(())
    }
}

impl RowWriter for ParquetRows<'_> {
    fn add(&mut self, id: RowId) -> io::Result<()> {
        let table = self.tables.get(id.table as usize);
        let parquet = table.ok_or_else(|| io::Error::other("a row of an unknown table"))?;
        let after = parquet.starts.partition_point(|start| *start <= id.row);
        let Some(group) = after.checked_sub(1) else { return Ok(()) };
        let row = (id.row - parquet.starts[group]) as usize;
        if self.group != (id.table, group) || self.ranges.len() >= MAX_RANGES {
            self.write()?;
            self.group = (id.table, group);
        }
        match self.ranges.last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => self.ranges.push(row..row + 1),
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write()?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let source = &self.tables[0].source;
        let closed = source.guarded(|| writer.close().map_err(|error| source.unreadable(error)));
        let failed = |error| self.tracked.take().unwrap_or_else(|| io::Error::other(error));
        closed.map(drop).map_err(failed)
    }
}

/// Returns the settings of the output of a file's rows.
fn properties(table: &ParquetTable, memory: u64) -> WriterProperties {
    let metadata = table.metadata.metadata();
    let descriptor = table.metadata.parquet_schema();
    let columns = descriptor.num_columns().max(1) as u64;
    let page = (memory / 4 / columns).clamp(16 << 10, 1 << 20) as usize;
    let mut builder = WriterProperties::builder()
        .set_key_value_metadata(metadata.file_metadata().key_value_metadata().cloned())
        .set_data_page_size_limit(page)
        .set_dictionary_page_size_limit(page)
        .set_max_row_group_bytes(Some((memory / 2).max(1) as usize));
    if let Some(group) = metadata.row_groups().first() {
        for (column, chunk) in descriptor.columns().iter().zip(group.columns()) {
            builder = builder.set_column_compression(column.path().clone(), chunk.compression());
        }
    }
    builder.build()
}
