//! Settings of all jobs.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Result;
use crate::io::{ContentChecks, DiskUsage, Input, Printer, Source, TempDir};
use crate::keys::{Fields, KeySpec, Transform};
use crate::memory::Budget;
use crate::progress::{Note, Progress};
use crate::scan::Pass;

/// The settings of a job.
#[derive(Clone)]
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
    /// Print the header of the first CSV input that has one before the records. Default: true.
    pub header: bool,
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
}

impl Settings<'_> {
    /// Settings with a memory limit in bytes and defaults: all processors, the temporary directory
    /// of the system, lines that end in LF, no progress.
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
            header: true,
            text: false,
            follow: false,
            progress: &(),
            disk_usage: DiskUsage::default(),
        }
    }

    /// Checks that files can be created in the temporary directory.
    ///
    /// # Errors
    /// If they cannot.
    pub fn check_temp_dir(&self) -> Result<()> {
        TempDir::new(&self.temp_dir).file().map(drop)
    }

    /// Divides the memory limit, without a decoder.
    pub(crate) fn budget(&self) -> Result<Budget> {
        let budget = Budget::new(self.memory_limit, self.jobs)?;
        let line = self.keys.is_line();
        Ok(if line { budget } else { budget.with_keys(self.keys.max_growth()) })
    }

    /// Opens inputs and divides the memory limit.
    pub(crate) fn open(&self, sources: &[Source]) -> Result<(Budget, Vec<Input>)> {
        let budget = self.budget()?;
        let checks = self.content_checks();
        let inputs = Input::open_all(sources, budget.decoder, &checks)?;
        checks.note(self.progress);
        let (longest, memory) = (budget.longest_line, budget.decoder);
        let keyed = |input: Input| input.keyed(&self.keys, longest, memory, self.progress);
        let inputs = inputs.into_iter().map(keyed).collect::<Result<Vec<_>>>()?;
        let compressed = inputs.iter().any(Input::may_be_compressed);
        let objects = inputs.iter().any(Input::is_object);
        let budget = if compressed { budget.with_decoder() } else { budget };
        Ok((if objects { budget.with_objects()? } else { budget }, inputs))
    }

    /// Prints the header of inputs whose records are printed. Reports inputs with another one.
    pub(crate) fn print_header(&self, printer: &mut Printer<'_>, inputs: &[Input]) -> Result<()> {
        if printer.counts_only() {
            return Ok(());
        }
        self.header_of(inputs).map_or(Ok(()), |header| printer.header(&header))
    }

    /// Returns the header of inputs whose records are printed, unless it is left out. Reports inputs
    /// with another one.
    pub(crate) fn header_of(&self, inputs: &[Input]) -> Option<Vec<u8>> {
        let header = |input: &Input| input.header().map(<[u8]>::to_vec);
        let mut headers = inputs.iter().filter_map(|input| Some((input.name(), header(input)?)));
        let (first, text) = headers.next()?;
        let plain = |text: &[u8]| {
            let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
            text.strip_suffix(b"\r").unwrap_or(text).to_vec()
        };
        let mut others = headers.filter(|(_, other)| plain(other) != plain(&text));
        if let Some((input, _)) = others.next() {
            let more = others.count() as u64;
            self.progress.note(Note::OtherHeader { input, more, first });
        }
        self.header.then_some(text)
    }

    /// Opens the inputs of [`seen`](crate::seen), which may be followed.
    pub(crate) fn open_or_follow(&self, sources: &[Source]) -> Result<(Budget, Vec<Input>)> {
        if !self.follow {
            return self.open(sources);
        }
        let budget = self.budget()?;
        let input = Input::followed(sources, &self.content_checks())?.with_keys(&self.keys);
        Ok((budget, vec![input]))
    }

    /// Returns the checks of the inputs' first bytes.
    pub(crate) fn content_checks(&self) -> Arc<ContentChecks> {
        let checks = ContentChecks::new(self.delimiter, self.text);
        if self.keys.fields != Fields::Line {
            return Arc::new(checks.quiet());
        }
        let strips_cr = self.keys.transforms.iter().any(Transform::strips_cr);
        Arc::new(if strips_cr { checks.without_line_ends() } else { checks })
    }

    /// Returns a pass over inputs with these settings.
    pub(crate) fn pass(&self, budget: Budget) -> Pass<'_> {
        Pass { budget, delimiter: self.delimiter, progress: self.progress, words: 1 }
    }
}
