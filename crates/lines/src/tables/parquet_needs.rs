//! The memory limit that a Parquet file needs, found when a lower one was not enough: by the headers of
//! all its pages, and by the repetition levels of its columns of lists.
//!
//! Cost: a small read for each page of the file. A column of lists is read if one of its rows may be
//! longer than the longest that was found.

use std::sync::Arc;

use parquet::column::page::PageReader as _;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::counted_pages::{COPY_QUARTERS, CountedPages, memory_per_level};
use super::pages::PageFile;
use super::parquet::{BATCH_SHARE, ParquetTable, chunk};
use super::source::{PartTooLarge, TableShares};
use crate::error::Error;

/// The memory that the parts of a job have now.
#[derive(Clone, Copy)]
pub(super) struct Given {
    /// For reading keys, unless that has succeeded.
    pub(super) keys: Option<u64>,
    /// For reading and writing rows.
    pub(super) rows: u64,
}

/// Returns an error with a memory limit that is enough for the whole table, if it is one of memory.
pub(super) fn advised(table: &ParquetTable, error: Error, given: Given) -> Error {
    let Some(&part) = error.cause::<PartTooLarge>() else { return error };
    // Errors of reading come up again with the higher limit.
    let found = table.source.guarded(|| {
        let file = PageFile::new(&table.source, u64::MAX)?;
        limit(table, &file, given).map_err(|error| file.error(error))
    });
    let limit = found.map_or(part.limit, |found| {
        // What values take beside their pages is known only of this part.
        let of_part = |share: fn(TableShares) -> u64| {
            table.source.limit_for(part.needed, part.available, share)
        };
        found.max(match given.keys {
            Some(_) => of_part(|has| has.keys),
            None => of_part(|has| has.rows),
        })
    });
    table.source.too_large_for(PartTooLarge { limit, ..part })
}

/// Returns the memory limit that a table needs.
fn limit(table: &ParquetTable, file: &PageFile, given: Given) -> ParquetResult<u64> {
    let (mut of_keys, mut of_rows) = (0, 0);
    let mut longest = 0;
    for group in table.metadata().row_groups() {
        let mut keys = 0;
        for number in 0..group.num_columns() {
            let pages = pages(file, group, number)?;
            if table.is_key(number) {
                keys += pages;
            }
            // Pages may take half, and the values of a row what they leave of their share.
            of_rows = of_rows.max(2 * pages);
            let column = group.column(number).column_descr();
            let per_level = memory_per_level(column.physical_type());
            if column.max_rep_level() > 0 {
                let (levels, rows) = (group.column(number).num_values(), group.num_rows());
                let max = u64::try_from(levels.saturating_sub(rows)).unwrap_or(0) + 1;
                if max.saturating_mul(per_level) > longest {
                    // A page that is too large to be read has one row.
                    let levels = longest_row(table, group, number, given.rows).unwrap_or(max);
                    longest = longest.max(levels.saturating_mul(per_level));
                }
                of_rows =
                    of_rows.max(longest.saturating_add(pages).saturating_mul(4) / COPY_QUARTERS);
            }
        }
        of_keys = of_keys.max(keys + keys / (BATCH_SHARE - 1));
    }
    let source = &table.source;
    let of_keys = given.keys.map_or(0, |given| source.limit_for(of_keys, given, |has| has.keys));
    Ok(of_keys.max(source.limit_for(of_rows, given.rows, |has| has.rows)))
}

/// Returns the memory of the pages of a column chunk: its dictionary, two pages, and the compressed bytes
/// of one.
fn pages(file: &PageFile, group: &RowGroupMetaData, number: usize) -> ParquetResult<u64> {
    let column = group.column(number);
    let rows = usize::try_from(group.num_rows()).unwrap_or(0);
    file.begin([chunk(column)].into_iter());
    let mut pages = SerializedPageReader::new(Arc::new(file.clone()), column, rows, None)?;
    let (mut dictionary, mut page, mut compressed) = (0, 0, 0);
    while pages.peek_next_page()?.is_some() {
        if let Some((header, memory)) = file.last_header() {
            let part = if header.dictionary { &mut dictionary } else { &mut page };
            *part = memory.max(*part);
            compressed = header.compressed.max(compressed);
        }
        pages.skip_next_page()?;
    }
    Ok(dictionary + 2 * page + compressed)
}

/// Returns the levels of the longest row of a column chunk. Pages may take `memory` bytes.
fn longest_row(
    table: &ParquetTable,
    group: &RowGroupMetaData,
    number: usize,
    memory: u64,
) -> Option<u64> {
    let file = PageFile::new(&table.source, memory).ok()?;
    file.begin([chunk(group.column(number))].into_iter());
    let mut pages = CountedPages::new(&file, group, number, 0, 0).ok()?;
    let (counts, mut longest) = (pages.counts(), 0);
    while pages.get_next_page().ok()?.is_some() {
        longest = longest.max(counts.get().longest);
        file.next_batch();
    }
    Some(longest)
}
