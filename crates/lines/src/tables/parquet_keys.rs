//! Parquet: keys.

use std::sync::Arc;

use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::column::KeyBatch;
use super::pages::PageFile;
use super::parquet::ParquetTable;
use super::parquet_needs::{Given, advised};
use crate::error::Result;

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
                let groups = parquet.metadata().row_groups();
                let Some(next) = groups.get(*group) else { return Ok(None) };
                *left = u64::try_from(next.num_rows()).unwrap_or(0);
                let open = || parquet.read_keys(file, *group, *memory);
                *reader = Some(source.guarded(open)?);
                *group += 1;
                continue;
            };
            file.next_batch();
            let batch = source.guarded(|| open.next().transpose().map_err(|e| file.error(e)));
            let given = Given { keys: Some(*memory), rows: source.shares().rows };
            let batch = batch.map_err(|error| advised(parquet, error, given))?;
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
