//! What all jobs need to be told.

use std::path::PathBuf;
use std::sync::Arc;

use crate::budget::Budget;
use crate::error::Result;
use crate::input::{Contents, Input, Source, Temp};
use crate::pass::Pass;
use crate::progress::Progress;

/// What all jobs need to be told.
#[derive(Clone)]
pub struct Settings<'a> {
    /// The cap on the memory of the whole process, in bytes; at least
    /// [`LEAST_MEMORY`](crate::LEAST_MEMORY).
    pub memory: u64,
    /// Threads to work with.
    pub jobs: usize,
    /// Where temporary files go.
    pub temp_dir: PathBuf,
    /// Where an exact job keeps what its finished phases have brought, so that it can be resumed
    /// after a kill; without it nothing is kept. To be removed with
    /// [`forget_work`](crate::forget_work) when the answer is safe.
    pub work_dir: Option<PathBuf>,
    /// Whether to go on from what is in `work_dir`; otherwise an unfinished job there is an error.
    pub resume: bool,
    /// What ends a line.
    pub delimiter: u8,
    /// Whether inputs that look like compressed or binary files, or like text in UTF-16, are read
    /// as lines all the same. Otherwise they are errors. Inputs in gzip and zstd are always
    /// decompressed.
    pub text: bool,
    /// Who hears how it is getting on.
    pub progress: &'a dyn Progress,
}

impl Settings<'_> {
    /// A cap of so many bytes; all processors, the system's directory for temporary files,
    /// lines that end in LF, and nobody listening.
    #[must_use]
    pub fn new(memory: u64) -> Self {
        Self {
            memory,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            temp_dir: std::env::temp_dir(),
            work_dir: None,
            resume: false,
            delimiter: b'\n',
            text: false,
            progress: &(),
        }
    }

    /// Checks that the directory for temporary files is there and can be written to.
    ///
    /// # Errors
    /// If it is not, or cannot.
    pub fn check_temp_dir(&self) -> Result<()> {
        Temp::new(&self.temp_dir).file().map(drop)
    }

    /// Looks at inputs, and divides the memory for them.
    pub(crate) fn open(&self, sources: &[Source]) -> Result<(Budget, Vec<Input>)> {
        let budget = Budget::new(self.memory, self.jobs)?;
        let contents = self.contents();
        let inputs = Input::open_all(sources, budget.decoder, &contents)?;
        contents.note(self.progress);
        let packed = inputs.iter().any(Input::may_be_packed);
        Ok((if packed { budget.with_decoder() } else { budget }, inputs))
    }

    /// What inputs may contain.
    pub(crate) fn contents(&self) -> Arc<Contents> {
        Arc::new(Contents::new(self.delimiter, self.text))
    }

    /// A way to go through inputs.
    pub(crate) fn pass(&self, budget: Budget) -> Pass<'_> {
        Pass { budget, delimiter: self.delimiter, progress: self.progress, words: 1 }
    }
}
