//! Tables: files in Parquet and Arrow IPC, whose rows are records.
//!
//! A table is read as a stream of *frames* ([`rows`](crate::keys::rows)): for each row its number and
//! its key. Only the key columns are read, in batches of bounded size, so passes over frames are like
//! passes over lines. A job decides which frames are in its result; its output (`RowOutputs`) takes
//! the row numbers out of them, reads these rows with all columns, and writes them in the format and
//! with the columns of the input. Or it writes the keys as lines.
//!
//! * Row numbers ascend, so rows are written while a job prints, in one pass over the input.
//! * The output has the schema of the first input. All inputs whose rows are printed have the same
//!   columns.
//! * A table is the bytes that it had when it was opened. Another size, modification time or file is
//!   an error: there is no checksum of a table, because not all of its bytes are read.
//! * Memory: reading keys takes the decoder's share of the limit, reading and writing rows a share of
//!   their own. Lengths in the file are compared with them before memory is allocated. A part of a
//!   file that cannot be divided (a Parquet page or the values of a row, an Arrow record batch) and is
//!   larger is an error, with a limit that is enough for the whole file.
//! * The libraries may panic on damaged files. A panic becomes an error, and prints nothing.
//!
//! | module | contents |
//! |---|---|
//! | `kind` | the formats, recognized by their first bytes |
//! | `source` | the file of a table |
//! | `column` | the columns of a key in a schema, and the text of their values |
//! | `stream` | the stream of frames |
//! | `parquet`, `parquet_keys`, `parquet_rows` | Parquet: files, their keys and rows |
//! | `parquet_needs` | the memory limit that a Parquet file needs |
//! | `pages`, `page_header`, `counted_pages` | the memory of Parquet's pages, and the records in them |
//! | `arrow`, `blocks` | Arrow IPC: keys and rows, and the parts of a file |
//! | `table` | a table of any format |
//! | `row_writer`, `tracked` | the writer of rows, and its sink |
//!
//! Without the feature `parquet` only `kind`, `page_header` and `row_writer` have
//! code, and tables are refused.

#[cfg(not(feature = "parquet"))]
mod absent;
#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod blocks;
#[cfg(feature = "parquet")]
mod column;
#[cfg(feature = "parquet")]
mod counted_pages;
mod kind;
mod page_header;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_keys;
#[cfg(feature = "parquet")]
mod parquet_needs;
#[cfg(feature = "parquet")]
mod parquet_rows;
mod row_writer;
mod source;
#[cfg(feature = "parquet")]
mod stream;
#[cfg(feature = "parquet")]
mod table;
#[cfg(feature = "parquet")]
mod tracked;

#[cfg(not(feature = "parquet"))]
pub(crate) use absent::Table;
pub(crate) use kind::TableKind;
pub(crate) use row_writer::RowWriter;
pub(crate) use source::TableSource;
pub(crate) use source::{Shares, TableShares};
#[cfg(feature = "parquet")]
pub(crate) use table::Table;
