//! Input and output: inputs, compressed streams, spill files, atomic files, locks, printed lines.

mod appended;
pub mod atomic_file;
mod attributes;
mod byte_range;
mod compression;
mod content_check;
mod descriptor;
mod file_stat;
mod follow;
mod follow_records;
mod header;
mod identity;
mod input;
mod input_file;
mod links;
mod lock;
mod open;
mod output_start;
mod poll_read;
mod printer;
mod remote;
mod section_file;
mod signatures;
mod source;
mod spellings;
mod spill;
mod stream;
mod tables;
mod temp_dir;

pub use appended::AppendedTo;
pub(crate) use byte_range::ByteRange;
pub use compression::compressed_extension;
pub(crate) use compression::memory as decoder_memory;
pub(crate) use content_check::ContentChecks;
pub(crate) use file_stat::FileStat;
pub(crate) use identity::{BlockSum, Checksum, FileIdentity};
pub use input::FileStamp;
pub(crate) use input::{DecompressedLength, Input, Open};
pub(crate) use input_file::{InputFile, read_at};
pub use lock::Lock;
pub(crate) use output_start::OutputStart;
pub(crate) use poll_read::PollRead;
pub use poll_read::enlarge_pipe;
pub use printer::Outputs;
pub(crate) use printer::{Printer, Span};
pub(crate) use remote::{MIN_MEMORY_OF_OBJECTS, objects_memory};
pub use remote::{ObjectUrl, Upload, abort_uploads, upload_memory};
pub(crate) use section_file::{
    FileSummary, MAX_RANGES, NO_RANGES, Section, SectionFile, SectionKind, SectionReader,
    SectionWriter, TaskFile,
};
pub use source::Source;
pub use spellings::Spellings;
pub(crate) use spill::{Chain, RecordStream, SpillFile, SpillWriter, memory_usage, write_out};
pub(crate) use tables::{RowFormat, RowLines, RowOutputs, Shares, TableShares};
pub use temp_dir::DiskUsage;
pub(crate) use temp_dir::{FileUsage, Spool, TempDir};
