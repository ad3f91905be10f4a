//! Settings of all jobs.

use std::path::PathBuf;
use std::sync::Arc;

use crate::input::{LeftOutRecords, Spellings};
use crate::keys::KeySpec;
use crate::memory::MemoryLimit;
use crate::output::AppendedTo;
use crate::progress::Progress;
use crate::temp::DiskUsage;

/// The settings of a job.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// Memory limit of the whole process in bytes, at least [`MIN_MEMORY`](crate::MIN_MEMORY).
    pub memory_limit: u64,
    /// Number of threads.
    pub jobs: usize,
    /// Directory for temporary files.
    pub temp_dir: PathBuf,
    /// Work directory of an exact job: keeps the results of finished phases, so that the job can
    /// be resumed. `None` keeps nothing. Call [`forget_work`](crate::forget_work) when the output
    /// is complete.
    pub work_dir: Option<PathBuf>,
    /// Resume the job in `work_dir`. If false, an unfinished job there is an error.
    pub resume: bool,
    /// Line delimiter.
    pub delimiter: u8,
    /// How the keys of records are made, by which they are compared. Default: the key of a line is
    /// the line.
    pub keys: Arc<KeySpec>,
    /// The file that the output of [`seen`](crate::seen) is appended to. The header of the inputs is then
    /// not printed, but compared with the first record there, and an incomplete last record there is
    /// ended. Default: `None`, and the output begins with the header of the first CSV input that has
    /// one.
    pub appended_to: Option<AppendedTo>,
    /// Print the keys of rows of Parquet and Arrow files as lines, instead of the rows in the format of
    /// the files. Inputs whose records are printed must then be such files. Default: false.
    pub keys_only: bool,
    /// Whether the outputs take binary data. If not, printing rows is an error. Default: true.
    pub binary_output: bool,
    /// Read inputs as lines even if they look like compressed files, binary files or UTF-16 text,
    /// which otherwise are errors. Inputs in gzip, zstd, xz, bzip2 and lz4 are always decompressed.
    pub text: bool,
    /// Follow the inputs of [`seen`](crate::seen): they are files that grow, read as one input that
    /// never ends. Files that are replaced (rotated logs) are opened again by their names.
    pub follow: bool,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
    /// Counts the bytes on temporary disk.
    pub disk_usage: DiskUsage,
    /// How the keys are spelled that the job has read.
    pub spellings: Spellings,
    /// The records that the job has left out, as the rules of `keys` say.
    pub left_out: LeftOutRecords,
}

impl Default for Settings<'_> {
    /// Half of the available memory, all processors, the temporary directory of the system, lines that
    /// end in LF, no progress.
    fn default() -> Self {
        Self::new(MemoryLimit::DEFAULT.bytes())
    }
}

impl Settings<'_> {
    /// The default settings with this memory limit in bytes.
    #[must_use]
    pub fn new(memory_limit: u64) -> Self {
        Self {
            memory_limit,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            temp_dir: std::env::temp_dir(),
            work_dir: None,
            resume: false,
            delimiter: b'\n',
            keys: Arc::default(),
            appended_to: None,
            keys_only: false,
            binary_output: true,
            text: false,
            follow: false,
            progress: &(),
            disk_usage: DiskUsage::default(),
            spellings: Spellings::default(),
            left_out: LeftOutRecords::default(),
        }
    }
}
