//! `probe`: prints the Parquet files, or row groups, that may contain any of the keys.
//!
//! Several threads query the files; results are printed in input order. A file that cannot be read
//! does not stop the command.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use petal_interop::{ParquetAnswer, ParquetFile, ParquetKeys};
use petal_lines::atomic_file::open_whole;
use petal_lines::{ErrorKind, LineBuffer, Progress as _, Settings, Source};

use super::{print, prints_lines, settings};
use crate::args::{FieldArgs, ProbeArgs};
use crate::error::{Failure, Outcome, Result, io_text, print_stderr};
use crate::files::filter_file;
use crate::files::inputs::paths;
use crate::files::output::{LineOutputs, Output};
use crate::files::spelling;
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(args: &ProbeArgs) -> Result<Outcome> {
    let progress = ProgressReporter::new(
        &args.engine.verbosity,
        prints_lines(args.count, args.output.as_deref()),
    );
    // The keys are listed one per line.
    let keys = args.keys();
    let listed = std::slice::from_ref(&keys);
    let mut settings = settings(&args.engine, &FieldArgs::default(), listed, &progress)?;
    let outputs = LineOutputs::new(args.compress, &settings);
    let output_path = (!args.count).then_some(args.output.as_deref());
    settings.memory_limit = outputs.memory_beside(output_path.as_slice())?;
    let mut inputs = vec![keys.clone()];
    inputs.extend(args.lists.source());
    Source::check_streams(&inputs)?;
    let files = paths(&args.files, &args.lists, settings.memory_limit)?;
    inputs.extend(files.iter().cloned().map(Source::Path));
    // The output is checked before any key is read.
    let mut output = output_path.map(|path| outputs.open(path, &inputs)).transpose()?;
    let mut parquet_keys = ParquetKeys::new();
    read_lines(&settings, &keys)?.iter().for_each(|key| parquet_keys.push(key));
    let job = Job {
        args,
        keys: &keys,
        parquet_keys,
        footer: (settings.memory_limit / 4 / settings.jobs as u64)
            .min(ParquetFile::<File>::MAX_FOOTER),
    };
    progress.files("probing", files.len() as u64);
    let results = Results {
        output: output.as_mut(),
        waiting: BTreeMap::new(),
        next: 0,
        printed: 0,
        without_filter: MissingFilters::default(),
        failures: Vec::new(),
        fatal: None,
    };
    let results = job.run(&files, settings.jobs, results, &progress);
    progress.finish();
    spelling::warn_if_different(&settings, None, true, Path::new(&args.column), &progress);
    results.without_filter.note(&args.column, &progress);
    let printed = results.printed;
    let mut failures = results.failures;
    failures.extend(results.fatal);
    if let Some(last) = failures.pop() {
        for failure in failures {
            print_stderr(&format!("petal: {failure}"));
        }
        return Err(last);
    }
    match output {
        Some(output) => output.finish()?,
        None => print(&format!("{printed}\n"))?,
    }
    Ok(if printed > 0 { Outcome::Done } else { Outcome::NoneFound })
}

/// Reads all lines of an input, which may be compressed.
fn read_lines(settings: &Settings<'_>, input: &Source) -> Result<LineBuffer> {
    /// Bytes of the hashes of a key.
    const BYTES_PER_KEY: u64 = 24;
    let inputs = std::slice::from_ref(input);
    LineBuffer::read(settings, inputs, settings.memory_limit / 4, BYTES_PER_KEY).map_err(|error| {
        if error.kind() != ErrorKind::LineBuffer {
            return error.into();
        }
        Failure::Message(format!(
            "{input}: its lines take more than a quarter of the {} of -m; raise -m, or use fewer \
             keys at a time",
            text::size(settings.memory_limit),
        ))
    })
}

/// The query of every file.
struct Job<'a> {
    args: &'a ProbeArgs,
    keys: &'a Source,
    parquet_keys: ParquetKeys,
    /// Maximum size of a footer in bytes.
    footer: u64,
}

/// The result of one file.
struct FileAnswer {
    /// The text to print.
    lines: Vec<u8>,
    /// The number of lines in it.
    count: u64,
    row_groups: u64,
    /// Row groups without a filter.
    without_filter: u64,
}

/// The error of one file.
enum ProbeError {
    /// The file cannot be queried.
    File(Failure),
    /// A key is invalid, so no file can be queried.
    Key(Failure),
}

impl Job<'_> {
    /// Queries all files.
    fn run<'o>(
        &self,
        files: &[PathBuf],
        jobs: usize,
        results: Results<'o>,
        progress: &ProgressReporter,
    ) -> Results<'o> {
        let (next, fatal) = (AtomicUsize::new(0), AtomicBool::new(false));
        let results = Mutex::new(results);
        let work = || {
            while !fatal.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(path) = files.get(at) else { break };
                let answer = self.query(path);
                progress.advance(1);
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                if results.fatal.is_none()
                    && let Err(failure) = results.add(at, answer)
                {
                    results.fatal = Some(failure);
                    fatal.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            // If the system gives no more threads, these do the rest.
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).is_ok();
            let _ = (1..jobs.min(files.len())).all(start);
            work();
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queries one file.
    fn query(&self, path: &Path) -> Result<FileAnswer, ProbeError> {
        let failed = |error: petal_interop::Error| match error.key_number() {
            None => ProbeError::File(Failure::of_foreign(path)(error)),
            Some(number) => ProbeError::Key(Failure::Message(format!(
                "{}: line {number}: {error} (column '{}' of {})",
                self.keys,
                self.args.column,
                path.display()
            ))),
        };
        let file = open(path).map_err(ProbeError::File)?;
        let mut file = ParquetFile::open_within(file, self.footer).map_err(failed)?;
        let groups = file.row_groups(&self.args.column).map_err(failed)?;
        let without_filter = groups.iter().filter(|group| !group.has_filter()).count() as u64;
        let mut answer = FileAnswer {
            lines: Vec::new(),
            count: 0,
            row_groups: groups.len() as u64,
            without_filter,
        };
        let mut any = false;
        for (number, group) in groups.iter().enumerate() {
            let may = file.query(group, &self.parquet_keys).map_err(failed)? != ParquetAnswer::No;
            any |= may;
            if self.args.row_groups && may != self.args.invert {
                answer.push(path, &format!("\t{number}\t{}", group.rows), self.delimiter());
            } else if any && !self.args.row_groups {
                break;
            }
        }
        if !self.args.row_groups && any != self.args.invert {
            answer.push(path, "", self.delimiter());
        }
        Ok(answer)
    }

    fn delimiter(&self) -> u8 {
        if self.args.engine.null { 0 } else { b'\n' }
    }
}

impl FileAnswer {
    /// Adds a line.
    fn push(&mut self, path: &Path, rest: &str, delimiter: u8) {
        self.count += 1;
        self.lines.extend_from_slice(path.as_os_str().as_bytes());
        self.lines.extend_from_slice(rest.as_bytes());
        self.lines.push(delimiter);
    }
}

fn open(path: &Path) -> Result<File> {
    let failed = |error: io::Error| {
        Failure::Message(format!("{}: cannot read: {}", path.display(), io_text(&error)))
    };
    filter_file::refuse_address(path)?;
    // Tested first: opening a FIFO would wait for its writer.
    let data = std::fs::metadata(path).map_err(failed)?;
    if !data.is_file() {
        let what = if data.is_dir() { "a directory" } else { "not a regular file" };
        let path = path.display();
        return Err(Failure::Message(format!("{path}: is {what}, expected a Parquet file")));
    }
    open_whole(path).map_err(failed)
}

/// The results so far.
struct Results<'a> {
    /// The output of lines; `None` if they are only counted.
    output: Option<&'a mut Output>,
    /// Results of files that follow a file without a result.
    waiting: BTreeMap<usize, Result<FileAnswer, ProbeError>>,
    next: usize,
    printed: u64,
    without_filter: MissingFilters,
    failures: Vec<Failure>,
    /// An error that stops the command: an invalid key, or an output that cannot be written.
    fatal: Option<Failure>,
}

impl Results<'_> {
    /// Adds the result of one file, and prints the results that are next in order.
    fn add(&mut self, at: usize, answer: Result<FileAnswer, ProbeError>) -> Result<()> {
        self.waiting.insert(at, answer);
        while let Some(answer) = self.waiting.remove(&self.next) {
            self.next += 1;
            match answer {
                Ok(answer) => {
                    self.printed += answer.count;
                    self.without_filter.add(&answer);
                    if let Some(output) = &mut self.output {
                        output.write_all(&answer.lines).map_err(|error| output.failed(error))?;
                    }
                }
                Err(ProbeError::File(failure)) => self.failures.push(failure),
                Err(ProbeError::Key(failure)) => return Err(failure),
            }
        }
        Ok(())
    }
}

/// The number of row groups without a filter.
#[derive(Default)]
struct MissingFilters {
    files: u64,
    of_files: u64,
    row_groups: u64,
    of_row_groups: u64,
}

impl MissingFilters {
    fn add(&mut self, answer: &FileAnswer) {
        self.files += u64::from(answer.without_filter > 0);
        self.of_files += 1;
        self.row_groups += answer.without_filter;
        self.of_row_groups += answer.row_groups;
    }

    fn note(&self, column: &str, progress: &ProgressReporter) {
        if self.row_groups > 0 {
            progress.print(&format!(
                "note: {} of {} row groups, in {} of {} files, have no Bloom filter for '{column}' \
                 and may contain any key",
                text::count(self.row_groups),
                text::count(self.of_row_groups),
                text::count(self.files),
                text::count(self.of_files),
            ));
        }
    }
}
