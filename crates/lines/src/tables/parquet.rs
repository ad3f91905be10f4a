//! Parquet: files.
//!
//! Strings are read as views of pages, so that a dictionary is in memory once.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetStatisticsPolicy,
};

use super::column::{KeyPath, Meaning, count_columns};
use super::counted_pages::value_size;
use super::pages::{Chunk, PageFile};
use super::source::{PartTooLarge, TableSource};
use crate::error::{Error, Result};
use crate::keys::Columns;
use crate::keys::rows::MAX_ROWS;

/// Bytes of values that a batch has, as a share of the memory for pages.
pub(super) const BATCH_SHARE: u64 = 4;

/// Rows and encoded bytes of a row group of an output.
pub(super) const GROUP_ROWS: u64 = 1 << 20;
pub(super) const GROUP_BYTES: u64 = 128 << 20;

/// Memory of a column in the schemas of a file, and in each of its row groups.
const PER_COLUMN: u64 = 700;
const PER_CHUNK: u64 = 450;

/// Memory of a column in the schema and the first row group of an output, and in each other.
const PER_WRITTEN_COLUMN: u64 = 1600;
const PER_WRITTEN_CHUNK: u64 = 1000;

/// How many times larger than a footer is what it describes, with an output, at most.
const PER_BYTE: u64 = 64;

/// Rows of a batch.
const MIN_BATCH: u64 = 16;
const MAX_BATCH: u64 = 8192;

/// A Parquet file.
pub(crate) struct ParquetTable {
    pub(super) source: TableSource,
    metadata: ArrowReaderMetadata,
    /// The columns of the key; the root is an index among the columns that are read.
    pub(super) paths: Vec<KeyPath>,
    /// The leaf columns of the key.
    leaves: Vec<usize>,
    /// The number of the first row of each row group.
    pub(super) starts: Vec<u64>,
    pub(super) rows: u64,
}

/// Returns a column chunk for a [`PageFile`].
pub(super) fn chunk(column: &ColumnChunkMetaData) -> Chunk {
    let (start, length) = column.byte_range();
    Chunk { bytes: start..start.saturating_add(length), value: value_size(column.column_type()) }
}

impl ParquetTable {
    /// Opens a file. The metadata at its end may take `memory` bytes.
    pub(super) fn open(source: TableSource, columns: &Columns, memory: u64) -> Result<Self> {
        let file = PageFile::new(&source, memory)?;
        let read = || {
            let options = ArrowReaderOptions::new()
                .with_skip_arrow_metadata(true)
                .with_page_index_policy(PageIndexPolicy::Skip)
                .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
                .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
                .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
            let (metadata, schema) = {
                let first = ArrowReaderMetadata::load(&file, options.clone())?;
                (Arc::clone(first.metadata()), with_views(first.schema()))
            };
            ArrowReaderMetadata::try_new(metadata, options.with_schema(Arc::new(schema)))
        };
        let metadata = source.guarded(|| read().map_err(|error| file.error(error)));
        let metadata = metadata.map_err(|error| advised_of_footer(&source, error))?;
        let unusable = |problem| Error::unusable_column(&source.name, problem);
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

    /// Returns true if a leaf column is a part of the key.
    pub(super) fn is_key(&self, leaf: usize) -> bool {
        self.leaves.contains(&leaf)
    }

    /// Returns the memory of what describes the table; `written`: and its rows in an output.
    pub(super) fn described(&self, written: bool) -> u64 {
        let groups = self.metadata().row_groups();
        let bytes = groups.iter().map(|group| u64::try_from(group.total_byte_size()).unwrap_or(0));
        let bytes = bytes.fold(0, u64::saturating_add);
        // A wrong size must not count more than the file may have.
        let by_bytes = (bytes / GROUP_BYTES).min(self.source.length() >> 20);
        let written_groups = if written { self.rows / GROUP_ROWS + by_bytes } else { 0 };
        let of_groups = groups.len() as u64 * PER_CHUNK + written_groups * PER_WRITTEN_CHUNK;
        self.columns() * (PER_COLUMN + of_groups)
    }

    /// Returns the memory of what describes an output with these columns and one row group.
    pub(super) fn described_by_writer(&self) -> u64 {
        self.columns() * PER_WRITTEN_COLUMN
    }

    fn columns(&self) -> u64 {
        self.metadata().file_metadata().schema_descr().num_columns() as u64
    }

    pub(super) fn key_columns(&self) -> usize {
        self.paths.len()
    }

    pub(super) fn metadata(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// Starts reading the key columns of a row group.
    pub(super) fn read_keys(
        &self,
        file: &PageFile,
        group: usize,
        memory: u64,
    ) -> Result<ParquetRecordBatchReader> {
        let group_metadata = self.metadata().row_group(group);
        let rows = u64::try_from(group_metadata.num_rows()).unwrap_or(0).max(1);
        let columns = || self.leaves.iter().map(|leaf| group_metadata.column(*leaf));
        // An encoded value may take less than the decoded one.
        let bytes = columns().map(|column| {
            let encoded = u64::try_from(column.uncompressed_size()).unwrap_or(0) / rows;
            let length = match column.column_type() {
                PhysicalType::FIXED_LEN_BYTE_ARRAY => column.column_descr().type_length(),
                _ => 0,
            };
            encoded.max(u64::try_from(length).unwrap_or(0))
        });
        let batch = memory / BATCH_SHARE / bytes.sum::<u64>().max(1);
        let batch = batch.clamp(MIN_BATCH, MAX_BATCH) as usize;
        file.begin(columns().map(chunk));
        let descriptor = self.metadata.parquet_schema();
        let leaves = ProjectionMask::leaves(descriptor, self.leaves.iter().copied());
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), self.metadata.clone())
                .with_row_groups(vec![group])
                .with_batch_size(batch)
                .with_projection(leaves);
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

/// Adds a memory limit that is enough for what the footer describes to an error of memory.
fn advised_of_footer(source: &TableSource, error: Error) -> Error {
    let Some(&found) = error.cause::<PartTooLarge>() else {
        return error;
    };
    let described = found.needed.saturating_mul(PER_BYTE);
    let given = source.shares().descriptions;
    let of_description = source.limit_for(described, given, |shares| shares.descriptions);
    let limit = of_description.max(found.limit);
    source.too_large_for(PartTooLarge { part: "its footer", limit, ..found })
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
        let is_own = |leaf: &&usize| {
            let root = descriptor.get_column_root_idx(**leaf);
            root == path.root && descriptor.column(**leaf).path().parts()[1..] == path.members
        };
        let leaf = leaves.iter().find(is_own).map(|leaf| descriptor.column(*leaf));
        if leaf.is_some_and(|leaf| leaf.logical_type_ref() == Some(&LogicalType::Uuid)) {
            path.meaning = Meaning::Uuid;
        }
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
        _ => return Arc::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}
