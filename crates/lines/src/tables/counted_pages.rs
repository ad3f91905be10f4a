//! The pages of a Parquet column chunk, with the number of records that begin in each and the length of
//! the longest of them.
//!
//! A few bytes of a page may stand for millions of values of one record, and the library decodes whole
//! records. The repetition levels are looked at before, run by run, so that a record that does not fit
//! is an error before its memory is allocated, and so that a reader can choose how many records to decode.
//! Cost: one pass over the encoded repetition levels; nothing for columns that do not repeat.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::pages::PageFile;

/// Quarters of the memory for pages and values of the rows that are copied at a time.
pub(super) const COPY_QUARTERS: u64 = 3;

/// Bytes of levels, and of the writer's index of a value in its dictionary, for each level.
const PER_LEVEL: u64 = 4 + 16;

/// The pages of a column chunk.
pub(super) struct CountedPages {
    file: PageFile,
    pages: SerializedPageReader<PageFile>,
    repetition: Repetition,
    /// Memory for each level of a record.
    per_level: u64,
    /// Memory for pages and a record.
    memory: u64,
    counts: PageCounts,
}

/// What is known of the pages read so far; shared with the reader of records.
#[derive(Clone, Default)]
pub(super) struct PageCounts(Arc<Mutex<Counts>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Records that begin in these pages.
    pub(super) begun: u64,
    /// Levels of the longest record that ends or continues in the last page.
    pub(super) longest: u64,
    /// Bytes that each value of the last page may take, if the page does not have them itself: values
    /// share their beginnings.
    pub(super) value: u64,
    /// Levels of the last record; it may continue in the next page.
    open: u64,
}

impl PageCounts {
    pub(super) fn get(&self) -> Counts {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Adds levels: each the first of a record, or none.
    fn add(&mut self, first: bool, count: u64) {
        if count == 0 {
            return;
        }
        if first {
            self.begun += count;
            self.longest = self.longest.max(self.open).max(1);
            self.open = 1;
        } else {
            self.open += count;
        }
    }
}

impl CountedPages {
    /// Starts reading the pages of a column chunk. Pages and one record may take `memory` bytes.
    pub(super) fn new(
        file: &PageFile,
        group: &RowGroupMetaData,
        column: usize,
        per_level: u64,
        memory: u64,
    ) -> ParquetResult<Self> {
        let chunk = group.column(column);
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let pages = SerializedPageReader::new(Arc::new(file.clone()), chunk, rows, None)?;
        let max_level = chunk.column_descr().max_rep_level();
        let width = u16::BITS - max_level.cast_unsigned().leading_zeros();
        let repetition = Repetition { width: u64::from(width) };
        let counts = PageCounts::default();
        Ok(Self { file: file.clone(), pages, repetition, per_level, memory, counts })
    }

    pub(super) fn counts(&self) -> PageCounts {
        self.counts.clone()
    }

    /// Counts the records of the next page.
    fn count(&mut self, page: &Page) -> ParquetResult<()> {
        let mut counts = self.counts.lock();
        counts.longest = 0;
        counts.value = match page.encoding() {
            Encoding::DELTA_BYTE_ARRAY => page.buffer().len() as u64,
            _ => 0,
        };
        if !self.repetition.count(page, &mut counts) {
            return Err(self.file.damaged("the repetition levels of a page are damaged"));
        }
        counts.longest = counts.longest.max(counts.open);
        Ok(())
    }

    /// Returns the levels of the longest record of the last page, and of the record that it ends with.
    fn longest(&mut self) -> ParquetResult<u64> {
        while self.counts.get().open == self.counts.get().longest {
            let before = self.counts.get().begun;
            self.file.next_batch();
            let Some(page) = self.pages.get_next_page()? else { break };
            if page.is_data_page() {
                self.count(&page)?;
            }
            if self.counts.get().begun > before {
                break;
            }
        }
        Ok(self.counts.get().longest)
    }
}

impl Iterator for CountedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CountedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = page.as_ref().filter(|page| page.is_data_page()) {
            self.count(page)?;
            let needed = |longest: u64| longest.saturating_mul(self.per_level);
            if needed(self.counts.get().longest)
                > self.memory.saturating_sub(self.file.bytes_in_memory())
            {
                let in_memory = self.file.bytes_in_memory();
                let longest = self.longest()?;
                let needed = longest.saturating_mul(self.per_level).saturating_add(in_memory);
                return Err(self.file.too_large("a row", needed, self.memory));
            }
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        let rows = match self.pages.peek_next_page()? {
            Some(page) if !page.is_dict => page.num_rows.or(page.num_levels),
            _ => None,
        };
        let mut counts = self.counts.lock();
        counts.begun += rows.unwrap_or(0) as u64;
        counts.open = 0;
        drop(counts);
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        self.pages.at_record_boundary()
    }
}

/// The repetition levels of a column.
struct Repetition {
    /// Bits of a level; 0 if the column does not repeat.
    width: u64,
}

impl Repetition {
    /// Adds the levels of a page. False if they are damaged.
    fn count(&self, page: &Page, counts: &mut Counts) -> bool {
        let levels = u64::from(page.num_values());
        let bytes = page.buffer();
        if self.width == 0 {
            counts.add(true, levels);
            return true;
        }
        let bytes = match page {
            Page::DataPage { rep_level_encoding: Encoding::RLE, .. } => {
                let length = bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
                bytes.get(4..).and_then(|rest| rest.get(..length as usize))
            }
            Page::DataPage { .. } => {
                return self.count_packed(bytes, true, levels, counts).is_some();
            }
            Page::DataPageV2 { rep_levels_byte_len, .. } => {
                bytes.get(..*rep_levels_byte_len as usize)
            }
            Page::DictionaryPage { .. } => None,
        };
        bytes.and_then(|bytes| self.count_runs(bytes, levels, counts)).is_some()
    }

    /// Adds levels of the encoding RLE: runs of one level, and packed levels.
    fn count_runs(&self, mut bytes: &[u8], mut left: u64, counts: &mut Counts) -> Option<()> {
        while left > 0 {
            let header = varint(&mut bytes)?;
            let (length, count) = match header & 1 {
                0 => (self.width.div_ceil(8), header >> 1),
                _ => ((header >> 1).checked_mul(self.width)?, (header >> 1).checked_mul(8)?),
            };
            let count = count.min(left);
            // The last levels may lack the bytes of those that are not used.
            let run = bytes.split_off(..bytes.len().min(usize::try_from(length).ok()?))?;
            match header & 1 {
                0 if run.is_empty() => return None,
                0 => counts.add(run.iter().all(|byte| *byte == 0), count),
                _ => self.count_packed(run, false, count, counts)?,
            }
            left = left.checked_sub(count).filter(|_| count > 0)?;
        }
        Some(())
    }

    /// Adds packed levels: from the highest bit of each byte on, or from the lowest.
    fn count_packed(
        &self,
        bytes: &[u8],
        highest_first: bool,
        count: u64,
        counts: &mut Counts,
    ) -> Option<()> {
        if bytes.len() as u64 * 8 < count.checked_mul(self.width)? {
            return None;
        }
        let is_set = |at: u64| {
            let (byte, bit) = (bytes[(at / 8) as usize], at % 8);
            byte >> (if highest_first { 7 - bit } else { bit }) & 1 == 1
        };
        for level in 0..count {
            let mut bits = level * self.width..(level + 1) * self.width;
            counts.add(!bits.any(is_set), 1);
        }
        Some(())
    }
}

/// Removes a number of the encoding RLE.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Returns the memory that a level of a row takes while it is copied.
pub(super) fn memory_per_level(physical: Type) -> u64 {
    let copies = match physical {
        // Values with bytes of their own, and the allocator's.
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => 16 + value_size(physical),
        _ => 0,
    };
    value_size(physical) + copies + PER_LEVEL
}

/// Returns the memory of a value of a physical type beside its bytes.
pub(super) fn value_size(physical: Type) -> u64 {
    match physical {
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => 32,
        Type::INT96 => 12,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT32 | Type::FLOAT => 4,
        Type::BOOLEAN => 1,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn counts(width: u64, bytes: &[u8], levels: u32) -> Option<Counts> {
        let page = Page::DataPageV2 {
            buf: Bytes::copy_from_slice(bytes),
            num_values: levels,
            encoding: Encoding::PLAIN,
            num_nulls: 0,
            num_rows: 0,
            def_levels_byte_len: 0,
            rep_levels_byte_len: bytes.len() as u32,
            is_compressed: false,
            statistics: None,
        };
        let mut counts = Counts::default();
        Repetition { width }.count(&page, &mut counts).then_some(counts)
    }

    #[test]
    fn records_are_counted_by_their_first_levels() {
        let found = |begun, longest, open| Some(Counts { begun, longest, open, value: 0 });
        assert_eq!(counts(0, &[], 7), found(7, 1, 1));
        // A first level, then 20,000,000 others in one run.
        let long = [2, 0, 0x80, 0xb4, 0x89, 0x13, 1];
        assert_eq!(counts(1, &long, 20_000_001), found(1, 1, 20_000_001));
        // 0 1 1 0 1 0 0 0, then seven records of one level.
        assert_eq!(counts(1, &[3, 0b0001_0110, 14, 0], 15), found(12, 3, 1));
        // Levels of two bits: 0 2 1 0.
        assert_eq!(counts(2, &[3, 0b0001_1000, 0], 4), found(2, 3, 1));
        for damaged in [&[][..], &[0x80], &[2], &[3], &[0, 0]] {
            assert_eq!(counts(1, damaged, 3), None, "{damaged:?}");
        }
    }
}
