//! Queries the Bloom filters inside Parquet files: which files, and which of their row groups, may
//! contain any of some keys in a column.
//!
//! ```text
//! PAR1, pages and Bloom filters, footer in Thrift's compact protocol, its length in 4 bytes, PAR1
//! ```
//!
//! The footer has, for every row group and column, the location of its Bloom filter, if any. Only
//! the footer is read, and of each filter its header and the blocks of the keys. Keys are hashed
//! once and looked up in the order of their blocks, so that no byte is read twice. Memory: the
//! footer, and 64 KiB.
//!
//! Source: the document "Parquet file format" of Apache Parquet, parquet.thrift, and the files that
//! pyarrow 26 and DuckDB 2.0 write.

mod column_type;
mod footer;
mod keys;

use std::io::{self, Read, Seek, SeekFrom};

use crate::encoding::bits::Bits;
use crate::error::{Error, Result};
use crate::formats::format_impl::BitArrayFormat;
use crate::formats::parquet::Parquet;

pub use footer::RowGroup;
pub use keys::ParquetKeys;

/// The first and last bytes of a file.
const MAGIC: [u8; 4] = *b"PAR1";
/// The last bytes of a file with an encrypted footer.
const ENCRYPTED: [u8; 4] = *b"PARE";
/// Bytes of the footer's length and the magic.
const TAIL: u64 = 8;
/// Maximum size of a filter's header; writers use about 16 bytes.
const MAX_HEADER: u64 = 256;
/// Maximum size of a filter; writers make none above this.
const MAX_FILTER: u64 = 128 << 20;
/// Bytes per block.
const BLOCK: u64 = 32;
/// Bytes per read where keys are dense.
const WINDOW: u64 = 64 << 10;
/// Blocks farther apart than this are read one by one.
const SPARSE: u64 = 4 << 10;

/// An open Parquet file.
///
/// ```no_run
/// use petal_interop::{ParquetAnswer, ParquetFile, ParquetKeys};
///
/// let mut keys = ParquetKeys::new();
/// keys.push(b"https://example.com/");
/// let mut file = ParquetFile::open(std::fs::File::open("part-0001.parquet")?)?;
/// for group in file.row_groups("url")? {
///     if file.query(&group, &keys)? != ParquetAnswer::No {
///         println!("{} rows to be read", group.rows);
///     }
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ParquetFile<R> {
    file: R,
    /// Number of bytes before the footer.
    body: u64,
    footer: Vec<u8>,
}

/// Whether a row group may contain any of some keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Certainly not.
    No,
    /// Its filter reports a key as present.
    Maybe,
    /// It has no filter, so it may contain any key.
    NoFilter,
}

impl<R: Read + Seek> ParquetFile<R> {
    /// Maximum size of a footer unless another limit is given.
    pub const MAX_FOOTER: u64 = 256 << 20;

    /// Opens a file and reads its footer.
    ///
    /// # Errors
    /// If reading fails, or there is no valid footer.
    pub fn open(file: R) -> Result<Self> {
        Self::open_within(file, Self::MAX_FOOTER)
    }

    /// Opens a file with another limit for the footer, in bytes.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_within(mut file: R, limit: u64) -> Result<Self> {
        let length = file.seek(SeekFrom::End(0))?;
        let Some(tail_at) = length.checked_sub(TAIL).filter(|at| *at >= MAGIC.len() as u64) else {
            return Err(Error::bad_file("length", "12 bytes or more", length));
        };
        let mut tail = [0; TAIL as usize];
        read_at(&mut file, tail_at, &mut tail)?;
        let [l0, l1, l2, l3, magic @ ..] = tail;
        if magic == ENCRYPTED {
            return Err(Error::refused("its footer is encrypted; nothing in it can be read"));
        }
        if magic != MAGIC {
            return Err(Error::bad_file("its end", "PAR1", magic.escape_ascii()));
        }
        let claimed = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        let max = tail_at - MAGIC.len() as u64;
        if claimed == 0 || claimed > max {
            return Err(Error::bad_file("length of the footer", format!("1 to {max}"), claimed));
        }
        if claimed > limit {
            return Err(Error::refused(format!(
                "its footer has {claimed} bytes, more than the {limit} that it may take"
            )));
        }
        let body = tail_at - claimed;
        file.seek(SeekFrom::Start(body))?;
        let mut footer = Vec::with_capacity(claimed.min(WINDOW) as usize);
        file.by_ref().take(claimed).read_to_end(&mut footer)?;
        if footer.len() as u64 != claimed {
            return Err(Error::bad_file("footer", format!("{claimed} bytes"), footer.len()));
        }
        Ok(Self { file, body, footer })
    }

    /// Returns the row groups, for a column given by its path, with dots between names.
    ///
    /// # Errors
    /// If there is no such column, its type cannot be queried, it is encrypted, or the footer is
    /// damaged.
    pub fn row_groups(&self, column: &str) -> Result<Vec<RowGroup>> {
        footer::row_groups(&self.footer, column)
    }

    /// Returns whether a row group may contain any of the keys; *no* is certain. Stops at the first
    /// key that it may contain.
    ///
    /// # Errors
    /// If a key cannot be a value of the column, reading fails, or the filter is damaged.
    pub fn query(&mut self, group: &RowGroup, keys: &ParquetKeys) -> Result<Answer> {
        let hashes = keys.hashes(group.column_type)?;
        if group.rows == 0 || hashes.is_empty() {
            return Ok(Answer::No);
        }
        let Some(location) = group.filter else { return Ok(Answer::NoFilter) };
        let end = location.end(self.body)?;
        let mut start = [0; MAX_HEADER as usize];
        let start = &mut start[..MAX_HEADER.min(end - location.at) as usize];
        read_at(&mut self.file, location.at, start)?;
        let filter = Parquet::begin(start).map_err(|error| error.in_file("Bloom filter"))?;
        let bits_at = location.at + filter.header as u64;
        let (bytes, max) = (filter.bits().bytes(), MAX_FILTER.min(end - bits_at));
        if bytes > max {
            let expected = format!("{max} at most");
            return Err(Error::bad_file("bytes of a Bloom filter", expected, bytes));
        }
        self.any(&hashes, &filter, bits_at)
    }

    /// Returns whether the filter with its bits at `bits_at` may contain any of these hashes,
    /// sorted.
    fn any(&mut self, hashes: &[u64], filter: &Parquet, bits_at: u64) -> Result<Answer> {
        let bytes = filter.bits().bytes();
        let step = if bytes / hashes.len() as u64 > SPARSE { BLOCK } else { WINDOW };
        let mut window = Vec::new();
        let mut read = 0..0;
        for &hash in hashes {
            // Blocks are in the order of hashes, so bytes that were read are not needed again.
            let at = filter.block(hash) * BLOCK;
            if at >= read.end {
                read = at..bytes.min(at + step);
                window.resize((read.end - read.start) as usize, 0);
                read_at(&mut self.file, bits_at + at, &mut window)?;
            }
            let bits = Bits::low_first(0, window.len() as u64 * 8);
            let before = read.start * 8;
            if filter.positions(&[hash]).all(|bit| bits.get(&window, bit - before)) {
                return Ok(Answer::Maybe);
            }
        }
        Ok(Answer::No)
    }
}

/// Fills a buffer from an offset of a file.
fn read_at(file: &mut (impl Read + Seek), at: u64, into: &mut [u8]) -> Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(into).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::bad_file(
            "length",
            format!("{} bytes at {at}", into.len()),
            "a file that was cut short meanwhile",
        ),
        _ => error.into(),
    })
}
