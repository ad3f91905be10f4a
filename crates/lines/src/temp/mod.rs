//! Temporary files: spilled records, copies of streams, and the results that tasks pass to each other.

mod section_file;
mod spill;
mod temp_dir;

pub(crate) use section_file::{
    FileSummary, MAX_RANGES, NO_RANGES, Section, SectionFile, SectionKind, SectionReader,
    SectionWriter, TaskFile,
};
pub(crate) use spill::{Chain, RecordStream, SpillFile, SpillWriter, memory_usage, write_out};
pub use temp_dir::{DiskUsage, check_temp_dir};
pub(crate) use temp_dir::{FileUsage, Spool, TempDir};
