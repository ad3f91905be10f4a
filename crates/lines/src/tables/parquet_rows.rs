//! Parquet: rows.
//!
//! Rows are copied column by column, as the file stores them: values with their levels. Only the pages
//! of one column are in memory, however many columns a table has. The schema of the output is that of
//! the first input, with its key-value metadata; the codec of each column, and whether it has a
//! dictionary, is that of the first row group. Row groups, statistics and pages are new; bloom filters
//! and sort orders are not copied.
//!
//! Until the end of the file the writer keeps what describes its row groups: about 1 KB for each column
//! of each, whatever the number of pages, since there are no page indexes. The share of descriptions
//! (`memory::budget`) has room for row groups of 2^20 rows or 128 MiB. Rows in pieces make smaller ones: a
//! row group has at most one piece for each 128 bytes of the share of rows, or 2^13.
//!
//! | share of the memory | used for |
//! |---|---|
//! | 1/2 at most | pages of the column that is read |
//! | what they leave of 3/4 | values and levels of the rows that are copied at a time: one row, or as many as fit 1/8 |
//! | 1/4 | the writer's page, its dictionary, and pages that wait for the dictionary |

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::reader::ColumnReaderImpl;
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;

use super::counted_pages::{COPY_QUARTERS, CountedPages, PageCounts, memory_per_level};
use super::pages::PageFile;
use super::parquet::{GROUP_BYTES, GROUP_ROWS, ParquetTable, chunk};
use super::parquet_needs::{Given, advised};
use super::row_writer::RowWriter;
use super::tracked::{Tracked, WriteFailure};
use crate::error::{Error, Result};
use crate::keys::rows::RowId;

/// Memory for the values and levels that are copied at a time, if it is less than the share.
const MAX_BATCH: u64 = 1 << 20;

/// Half bytes of a level in a page that waits for its dictionary: an index of up to 18 bits.
const WAITING_HALVES: u64 = 5;

/// Memory of a piece, in ranges.
const PIECE_RANGES: usize = 8;

/// Writes rows of Parquet files to a Parquet file.
pub(super) struct ParquetRows<'a> {
    tables: Vec<Arc<ParquetTable>>,
    writer: Option<SerializedFileWriter<Tracked<'a>>>,
    tracked: WriteFailure,
    /// The rows of the next row group.
    plan: Plan,
    memory: u64,
}

/// Rows that are written as one row group.
#[derive(Default)]
struct Plan {
    pieces: Vec<Piece>,
    rows: u64,
    ranges: usize,
    bytes: u64,
    /// Bytes of the pages that may wait for their dictionary.
    waiting: u64,
}

/// Rows of a row group of an input.
struct Piece {
    table: usize,
    group: usize,
    /// Ascending.
    ranges: Vec<Range<u64>>,
    /// Encoded bytes, and those of the largest column without its values, for each row.
    bytes_per_row: u64,
    waiting_per_row: u64,
}

impl<'a> ParquetRows<'a> {
    /// Creates a writer.
    pub(super) fn new(
        tables: Vec<Arc<ParquetTable>>,
        sink: &'a mut (dyn Write + Send),
        memory: u64,
    ) -> Result<Self> {
        let first = &*tables[0];
        let (tracked, failure) = Tracked::new(sink);
        let schema = first.metadata().file_metadata().schema_descr().root_schema_ptr();
        let properties = Arc::new(properties(first, memory));
        let writer = || SerializedFileWriter::new(tracked, schema, properties);
        let failed = |error| match failure.take() {
            Some(error) => Error::write(error),
            None => first.source.unreadable(error),
        };
        let writer = Some(first.source.guarded(|| writer().map_err(failed))?);
        Ok(Self { tables, writer, tracked: failure, plan: Plan::default(), memory })
    }

    /// Writes the planned rows.
    fn write(&mut self) -> io::Result<()> {
        let plan = std::mem::take(&mut self.plan);
        let Some(piece) = plan.pieces.first() else { return Ok(()) };
        let source = self.tables[piece.table].source.clone();
        let written = source.guarded(|| self.write_group(&plan.pieces));
        written.map_err(|error| self.tracked.take().unwrap_or_else(|| io::Error::other(error)))
    }

    fn write_group(&mut self, pieces: &[Piece]) -> Result<()> {
        let Self { tables, writer, memory, .. } = self;
        let Some(writer) = writer else { return Ok(()) };
        let unwritten = |error| tables[pieces[0].table].source.unreadable(error);
        let mut group = writer.next_row_group().map_err(unwritten)?;
        let mut open: Option<(usize, PageFile)> = None;
        let mut number = 0;
        while let Some(mut column) = group.next_column().map_err(unwritten)? {
            for piece in pieces {
                let table = &tables[piece.table];
                let (_, file) = match open.take_if(|(table, _)| *table == piece.table) {
                    Some(same) => open.insert(same),
                    None => open.insert((piece.table, PageFile::new(&table.source, *memory / 2)?)),
                };
                let chunks = table.metadata().row_group(piece.group);
                file.begin([chunk(chunks.column(number))].into_iter());
                let column = column.untyped();
                let copied = copy_column(file, chunks, number, &piece.ranges, column, *memory);
                let given = Given { keys: None, rows: *memory };
                copied.map_err(|error| advised(table, file.error(error), given))?;
            }
            column.close().map_err(unwritten)?;
            number += 1;
        }
        group.close().map(drop).map_err(unwritten)
    }
}

impl RowWriter for ParquetRows<'_> {
    fn add(&mut self, id: RowId) -> io::Result<()> {
        let number = usize::try_from(id.table).unwrap_or(usize::MAX);
        let table = self.tables.get(number);
        let table = table.ok_or_else(|| io::Error::other("a row of an unknown table"))?;
        let after = table.starts.partition_point(|start| *start <= id.row);
        let Some(group) = after.checked_sub(1) else { return Ok(()) };
        self.plan.add(number, group, id.row - table.starts[group], table);
        if self.plan.is_full(self.memory) { self.write() } else { Ok(()) }
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

impl Plan {
    /// Adds a row of a row group.
    fn add(&mut self, table: usize, group: usize, row: u64, file: &ParquetTable) {
        let last = self.pieces.last().map(|piece| (piece.table, piece.group));
        if last != Some((table, group)) {
            self.pieces.push(Piece::new(table, group, file.metadata().row_group(group)));
            self.ranges += PIECE_RANGES;
        }
        let Some(piece) = self.pieces.last_mut() else { return };
        match piece.ranges.last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => {
                piece.ranges.push(row..row + 1);
                self.ranges += 1;
            }
        }
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(piece.bytes_per_row);
        self.waiting = self.waiting.saturating_add(piece.waiting_per_row);
    }

    fn is_full(&self, memory: u64) -> bool {
        let max_ranges = (memory as usize / 8 / size_of::<Range<u64>>()).clamp(1 << 13, 1 << 20);
        self.rows >= GROUP_ROWS
            || self.bytes >= GROUP_BYTES
            || self.ranges >= max_ranges
            || self.waiting >= memory / 8
    }
}

impl Piece {
    fn new(table: usize, group: usize, chunks: &RowGroupMetaData) -> Self {
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        let rows = number(chunks.num_rows()).max(1);
        let bytes = chunks.columns().iter().map(|chunk| number(chunk.uncompressed_size()));
        let waiting = chunks.columns().iter().map(|chunk| {
            let indices = number(chunk.num_values()).saturating_mul(WAITING_HALVES) / 2;
            indices.min(number(chunk.uncompressed_size()))
        });
        let waiting_per_row = waiting.max().unwrap_or(0).div_ceil(rows);
        Self {
            table,
            group,
            ranges: vec![],
            bytes_per_row: bytes.sum::<u64>() / rows,
            waiting_per_row,
        }
    }
}

/// Returns the memory of pages and values of the rows that are copied at a time.
fn copy_memory(memory: u64) -> u64 {
    memory / 4 * COPY_QUARTERS
}

/// Copies rows of a column.
fn copy_column(
    file: &PageFile,
    group: &RowGroupMetaData,
    number: usize,
    ranges: &[Range<u64>],
    to: &mut ColumnWriter<'_>,
    memory: u64,
) -> ParquetResult<()> {
    let per_level = memory_per_level(group.column(number).column_type());
    let pages = CountedPages::new(file, group, number, per_level, copy_memory(memory))?;
    macro_rules! copy {
        ($($variant:ident)*) => {
            match to {
                $(ColumnWriter::$variant(to) => {
                    ColumnCopy::new(file, pages, group, number, to, memory).copy(ranges)
                })*
            }
        };
    }
    copy!(BoolColumnWriter Int32ColumnWriter Int64ColumnWriter Int96ColumnWriter FloatColumnWriter
        DoubleColumnWriter ByteArrayColumnWriter FixedLenByteArrayColumnWriter)
}

/// A value of a column.
trait Value: Clone {
    /// True if it refers to a page.
    const IS_SHARED: bool = false;

    /// Returns the number of its bytes in a page.
    fn length(&self) -> u64 {
        0
    }

    /// Returns it with bytes of its own.
    fn owned(&self) -> Self {
        self.clone()
    }
}

impl Value for bool {}
impl Value for i32 {}
impl Value for i64 {}
impl Value for Int96 {}
impl Value for f32 {}
impl Value for f64 {}

impl Value for ByteArray {
    const IS_SHARED: bool = true;

    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn owned(&self) -> Self {
        self.data().to_vec().into()
    }
}

impl Value for FixedLenByteArray {
    const IS_SHARED: bool = true;

    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn owned(&self) -> Self {
        ByteArray::from(self.data().to_vec()).into()
    }
}

/// Copies rows of a column of one type.
struct ColumnCopy<'c, 'w, T: DataType> {
    file: &'c PageFile,
    counts: PageCounts,
    from: ColumnReaderImpl<T>,
    to: &'c mut ColumnWriterImpl<'w, T>,
    /// The level of a value; 0 if the column has one in every row.
    max_definition: i16,
    repeats: bool,
    per_level: u64,
    memory: u64,
    /// What was read but not written.
    values: Vec<T::T>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
    levels: usize,
}

impl<'c, 'w, T: DataType> ColumnCopy<'c, 'w, T>
where
    T::T: Value,
{
    fn new(
        file: &'c PageFile,
        pages: CountedPages,
        group: &RowGroupMetaData,
        number: usize,
        to: &'c mut ColumnWriterImpl<'w, T>,
        memory: u64,
    ) -> Self {
        let column = group.column(number).column_descr_ptr();
        Self {
            file,
            counts: pages.counts(),
            max_definition: column.max_def_level(),
            repeats: column.max_rep_level() > 0,
            per_level: memory_per_level(column.physical_type()),
            from: ColumnReaderImpl::new(column, Box::new(pages)),
            to,
            memory,
            values: Vec::new(),
            definition: Vec::new(),
            repetition: Vec::new(),
            levels: 0,
        }
    }

    fn copy(mut self, ranges: &[Range<u64>]) -> ParquetResult<()> {
        let mut row = 0;
        for range in ranges {
            while row < range.start {
                let left = usize::try_from(range.start - row).unwrap_or(usize::MAX);
                row += self.found(|copy| copy.from.skip_records(left))?;
            }
            while row < range.end {
                let rows = self.next_rows(row, range.end - row)?;
                row += self.found(|copy| copy.read(rows))?;
            }
        }
        self.write()
    }

    /// Returns the number of rows that were found, which is not 0.
    fn found(
        &mut self,
        find: impl FnOnce(&mut Self) -> ParquetResult<usize>,
    ) -> ParquetResult<u64> {
        match find(self)? {
            0 => Err(self.file.damaged("a row group has fewer rows than it names")),
            found => Ok(found as u64),
        }
    }

    /// Returns how many of `left` rows to read from a row on, after writing what leaves no memory for
    /// them.
    fn next_rows(&mut self, row: u64, left: u64) -> ParquetResult<usize> {
        let counts = self.counts.get();
        let batch = (self.memory / 8).min(MAX_BATCH);
        let per_row = (self.per_level + counts.value).saturating_mul(counts.longest.max(1));
        let used = self.per_level.saturating_mul(self.levels as u64);
        let in_pages = counts.begun.saturating_sub(row);
        // Of the next page nothing is known: one row.
        let new_page = in_pages == 0 && self.file.bytes_in_memory() > self.memory / 8;
        if used > 0 && (new_page || used + per_row > batch) {
            self.write()?;
            return self.next_rows(row, left);
        }
        let rows = ((batch.saturating_sub(used)) / per_row).min(in_pages).clamp(1, left);
        Ok(usize::try_from(rows).unwrap_or(1))
    }

    fn read(&mut self, rows: usize) -> ParquetResult<usize> {
        let counts = self.counts.get();
        let reserved = (self.memory / 8).min(MAX_BATCH) / self.per_level;
        let reserved = (rows as u64).saturating_mul(counts.longest).min(reserved) as usize;
        self.values.reserve(reserved);
        let (rows, _, levels) = self.from.read_records(
            rows,
            (self.max_definition > 0).then_some(&mut self.definition),
            self.repeats.then_some(&mut self.repetition),
            &mut self.values,
        )?;
        self.levels += levels;
        if !T::T::IS_SHARED {
            self.file.next_batch();
        }
        Ok(rows)
    }

    /// Writes what was read.
    fn write(&mut self) -> ParquetResult<()> {
        match T::T::IS_SHARED {
            false => self.write_levels(0..self.levels, 0..self.values.len())?,
            true => self.write_slices()?,
        }
        let kept = (MAX_BATCH / self.per_level) as usize;
        self.values.clear();
        self.values.shrink_to(kept);
        for levels in [&mut self.definition, &mut self.repetition] {
            levels.clear();
            levels.shrink_to(kept);
        }
        self.levels = 0;
        self.file.next_batch();
        Ok(())
    }

    /// Writes rows whose values have bytes of their own in turn: the writer keeps values, and would keep
    /// whole pages with them.
    fn write_slices(&mut self) -> ParquetResult<()> {
        let slice = self.memory / 16;
        let (mut levels, mut values, mut bytes) = (0..0, 0..0, 0);
        while levels.end < self.levels {
            let level = levels.end;
            let is_value = self.max_definition == 0
                || self.definition.get(level) == Some(&self.max_definition);
            if is_value {
                bytes += self.values.get(values.end).map_or(0, Value::length);
                values.end += 1;
            }
            levels.end += 1;
            let row_ends = self.repetition.get(levels.end).is_none_or(|level| *level == 0);
            if row_ends && (bytes >= slice || levels.end == self.levels) {
                let (in_memory, memory) = (self.file.bytes_in_memory(), copy_memory(self.memory));
                if bytes + in_memory > memory {
                    return Err(self.file.too_large("a row", bytes + in_memory, memory));
                }
                self.write_levels(levels.clone(), values.clone())?;
                (levels, values, bytes) = (levels.end..levels.end, values.end..values.end, 0);
            }
        }
        Ok(())
    }

    fn write_levels(&mut self, levels: Range<usize>, values: Range<usize>) -> ParquetResult<()> {
        let owned: Vec<_>;
        let values = &self.values[values];
        let values = match T::T::IS_SHARED {
            false => values,
            true => {
                owned = values.iter().map(Value::owned).collect();
                &owned[..]
            }
        };
        let definition = (self.max_definition > 0).then(|| &self.definition[levels.clone()]);
        let repetition = self.repeats.then(|| &self.repetition[levels]);
        self.to.write_batch(values, definition, repetition).map(drop)
    }
}

/// Returns the settings of the output of a file's rows: those of its first column, and of the columns
/// that differ from it.
fn properties(table: &ParquetTable, memory: u64) -> WriterProperties {
    let metadata = table.metadata();
    let page = (memory / 16).clamp(16 << 10, 1 << 20) as usize;
    let chunks = metadata.row_groups().first().map_or(&[][..], RowGroupMetaData::columns);
    let settings = |chunk: &ColumnChunkMetaData| {
        (chunk.compression(), chunk.dictionary_page_offset().is_some())
    };
    let first = chunks.first().map_or((Compression::UNCOMPRESSED, false), settings);
    let mut builder = WriterProperties::builder()
        .set_key_value_metadata(metadata.file_metadata().key_value_metadata().cloned())
        .set_data_page_size_limit(page)
        .set_dictionary_page_size_limit(page)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_compression(first.0)
        .set_dictionary_enabled(first.1);
    for chunk in chunks.iter().filter(|chunk| settings(chunk) != first) {
        let (path, (codec, has_dictionary)) = (chunk.column_path(), settings(chunk));
        builder = builder
            .set_column_compression(path.clone(), codec)
            .set_column_dictionary_enabled(path.clone(), has_dictionary);
    }
    builder.build()
}
