//! Runs a job in a thread of its own, while the calling thread runs all Python code.
//!
//! The calling thread waits without the interpreter's lock for a message of the job, at most a
//! tenth of a second. In between it handles signals, calls `progress` and writes lines to file
//! objects. If any of this raises, the job is cancelled and ends at its next batch of lines; then
//! the exception is raised.
//!
//! Cost: Ctrl-C takes effect after up to a tenth of a second, and `progress` is called ten times a
//! second.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use petal_lines::{
    JobProgress, KeySpec, LeftOutRecords, Note, Progress, Settings, Source, Spelling,
    SpellingDifference, spelling_differences,
};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes};

use super::display::Display;
use super::keys::{CsvOutput, csv_output};
use crate::error::{Exception, io_message};

/// The longest wait for a message, and the interval of `progress`.
const INTERVAL: Duration = Duration::from_millis(100);

/// Most bytes in one call of a file object's `write`.
const MAX_WRITE: usize = 64 << 10;

/// Capacity of the channel to the calling thread. Small, because messages hold lines.
const CHANNEL_CAPACITY: usize = 4;

/// A message from the job to the calling thread.
enum Message {
    /// A phase starts; `before` is the number of bytes of the phase that ended.
    Phase { what: &'static str, bytes: Option<u64>, before: u64 },
    /// A warning.
    Warning(String),
    /// Lines for the file object of this index.
    Lines { to: usize, bytes: Vec<u8> },
    /// The job waits until all lines are written.
    Flush(SyncSender<()>),
}

/// The job's end of the channel.
pub(crate) struct ProgressReporter {
    messages: SyncSender<Message>,
    shared: Arc<Shared>,
    phases: Mutex<Vec<Phase>>,
    /// The separators of inputs that were found in their first records.
    separators: Mutex<Vec<(String, u8)>>,
    /// Whether all records that are printed must have one separator.
    one_separator: bool,
}

/// A phase of a job.
pub(super) struct Phase {
    pub(super) what: &'static str,
    pub(super) bytes: u64,
    pub(super) started: Instant,
    pub(super) ended: Instant,
}

/// State that both threads use.
#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    /// Bytes of the current phase that are done.
    done: AtomicU64,
    job: JobProgress,
    /// Why the job was cancelled: what its records cannot be used for.
    refused: Mutex<Option<String>>,
}

impl Progress for ProgressReporter {
    fn phase(&self, what: &'static str, bytes: Option<u64>) {
        let before = self.shared.done.swap(0, Ordering::Relaxed);
        let now = Instant::now();
        let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = phases.last_mut() {
            (last.bytes, last.ended) = (before, now);
        }
        phases.push(Phase { what, bytes: 0, started: now, ended: now });
        drop(phases);
        // Sending fails only after the calling thread panicked.
        let _ = self.messages.send(Message::Phase { what, bytes, before });
    }

    fn expect_total(&self, bytes: u64) {
        self.shared.job.expect(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.shared.job.advance(bytes);
        self.shared.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn note(&self, note: Note<'_>) {
        if let Note::Separator { input, separator, .. } = note {
            let mut separators = self.separators.lock().unwrap_or_else(PoisonError::into_inner);
            separators.push((input.to_owned(), separator));
        }
        if let (Note::OtherSeparator { input, first, .. }, true) = (note, self.one_separator) {
            let refused = format!(
                "{input}: has another separator than {first}, so a report cannot have the records of \
                 both; write them to a file with out=, or specify separator="
            );
            *self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
            self.shared.cancelled.store(true, Ordering::Relaxed);
            return;
        }
        let others = |more| match more {
            0 => String::new(),
            more => format!(" (and {more} others)"),
        };
        let warning = match note {
            Note::ByteOrderMark { input, more } => format!(
                "{input}{}: begins with a byte order mark, which is part of the first line; \
                 remove it, or that line equals no line without it",
                others(more)
            ),
            Note::RepeatedName { input, more, name, columns: [one, other] } => format!(
                "{input}{}: has two columns with the name {name:?}, {one} and {other}",
                others(more)
            ),
            Note::OtherHeader { input, more, first } => format!(
                "{input}{}: has another header than {first}, which is written first; if the columns \
                 are in another order, the output mixes them",
                others(more)
            ),
            Note::OtherSeparator { input, more, separator, first, first_separator } => format!(
                "{input}{}: has another separator ('{}') than {first} ('{}'); the output has records \
                 of both",
                others(more),
                separator.escape_ascii(),
                first_separator.escape_ascii()
            ),
            Note::Separator { input, more, separator } if separator != b',' => format!(
                "{input}{}: the first records are separated by '{}', so all of them are; if that is \
                 wrong, specify separator=",
                others(more),
                separator.escape_ascii()
            ),
            Note::Undivided { input, more, separator, found, title } => format!(
                "{input}{}: some records have no '{}', but all{} have a '{}'; check separator=",
                others(more),
                separator.escape_ascii(),
                if title { " after a title" } else { "" },
                found.escape_ascii()
            ),
            Note::LiteralQuotes { input, more } => format!(
                "{input}{}: fields begin and end with a quote, which belongs to them because tabs \
                 separate the fields; if the quotes only enclose them, specify quote='\"', otherwise \
                 quote='none'",
                others(more)
            ),
            Note::LongField { input, more, byte, lines } => format!(
                "{input}{}: the record at byte {byte} has {lines} lines in quotes; if quotes are bytes \
                 like any other there, specify quote='none'",
                others(more)
            ),
            Note::HashedDigests { input, more, digest } => format!(
                "{input}{}: lines look like results of {digest} and are hashed again; if they are \
                 the hashes, use key_transform=\"lowercase\"",
                others(more)
            ),
            Note::HashedCr { input, more, digest } => format!(
                "{input}{}: lines end with CRLF, and {digest} hashes the CR; remove it with \
                 key_transform=\"strip-cr,{digest}\"",
                others(more)
            ),
            Note::CrLineEnds { input, more } => format!(
                "{input}{}: has CR between lines, but no LF, so it is read as one line; convert CR to \
                 LF",
                others(more)
            ),
            Note::CsvSettings { input } => format!(
                "{input}: has columns of its own; separator=, quote=, escape= and header= are for CSV \
                 and have no effect"
            ),
            Note::MissingValue { input, more, pointer } => format!(
                "{input}{}: no record has a value at {pointer}, so all of them are equal there; \
                 check json_key=",
                others(more)
            ),
            Note::MissingText { input, more, pointer } => format!(
                "{input}{}: no document has a text at {pointer}, so all of them stay as they are; \
                 check json_key=",
                others(more)
            ),
            Note::MixedLineEnds { crlf, more, lf } if crlf == lf => format!(
                "{crlf}{}: some lines end with CRLF and others with LF; the CR is part of a line, \
                 remove it, or lines that look the same differ",
                others(more)
            ),
            Note::MixedLineEnds { crlf, more, lf } => format!(
                "{crlf}{}: lines end with CRLF, the keys of {lf} do not; the CR is part of a line, \
                 remove it, or lines that look the same differ",
                others(more)
            ),
            Note::MixedHexCase { lower, more, upper } => format!(
                "{lower}{}: keys are hexadecimal in lowercase, those of {upper} in uppercase; keys that \
                 look equal differ, ignore the case with key_transform=\"lowercase\"",
                others(more)
            ),
            _ => return,
        };
        let _ = self.messages.send(Message::Warning(warning));
    }

    fn cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }
}

impl ProgressReporter {
    /// Warns if the keys that a job has read are spelled differently from those of a filter. `None`: it
    /// does not record how they are. `found`: some were found in it, or none were looked for.
    pub(super) fn warn_if_spelled_differently(
        &self,
        settings: &Settings<'_>,
        recorded: Option<Spelling>,
        found: bool,
        filter: &str,
    ) {
        for (difference, input) in spelling_differences(settings, recorded, found) {
            self.warn_of(difference, &input, filter);
        }
    }

    /// Warns that the keys of an input, or of another filter, are spelled differently.
    pub(super) fn warn_of(&self, difference: SpellingDifference, input: &str, filter: &str) {
        let (text, transform) = (difference.text(input, filter), difference.remedy());
        self.warn(match difference.needs_rebuilding() {
            true => format!("{text}; build the filter with key_transform=\"{transform}\""),
            false => format!("{text}; remove it with key_transform=\"{transform}\""),
        });
    }

    /// Warns that records were left out.
    pub(super) fn warn_of_left_out(&self, left_out: &LeftOutRecords) {
        left_out.summary().into_iter().for_each(|text| self.warn(text));
    }

    /// Issues a `UserWarning`.
    pub(super) fn warn(&self, warning: String) {
        // Sending fails only after the calling thread panicked.
        let _ = self.messages.send(Message::Warning(warning));
    }

    /// Returns the phases of the job and ends the last one.
    pub(super) fn phases(&self) -> Vec<Phase> {
        let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = phases.last_mut() {
            (last.bytes, last.ended) = (self.shared.done.load(Ordering::Relaxed), Instant::now());
        }
        std::mem::take(&mut phases)
    }

    /// Waits until all lines are written to the file objects.
    pub(super) fn flush(&self) -> PyResult<()> {
        let (done, written) = sync_channel(1);
        let is_flushed = self.messages.send(Message::Flush(done)).is_ok() && written.recv().is_ok();
        // After a failure `run` raises the exception of the calling thread instead.
        if is_flushed { Ok(()) } else { Err(Exception::Petal.new_err("cancelled")) }
    }

    /// Returns a writer to the file object of this index.
    pub(super) fn writer_to(&self, to: usize) -> ObjectWriter {
        ObjectWriter { to, messages: self.messages.clone() }
    }
}

/// Sends lines to the calling thread, which writes them to a file object.
pub(super) struct ObjectWriter {
    to: usize,
    messages: SyncSender<Message>,
}

impl io::Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(MAX_WRITE)];
        let lines = Message::Lines { to: self.to, bytes: bytes.to_vec() };
        self.messages.send(lines).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a job. Shows its progress and calls the `write` of the file objects while the job runs.
///
/// # Errors
/// The error of the job, or the exception of a signal handler, of `progress` or of a file object.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    files: Vec<Py<PyAny>>,
    job: impl FnOnce(&ProgressReporter) -> PyResult<T> + Send,
) -> PyResult<T> {
    run_listening(py, progress, files, false, job)
}

/// The records that a job prints.
pub(super) struct Records<'a> {
    /// How keys are made.
    pub(super) keys: &'a Arc<KeySpec>,
    /// The inputs whose records the report has; `None`: it has none.
    pub(super) printed: Option<&'a [Source]>,
    pub(super) left_out: &'a LeftOutRecords,
    /// Whether the keys of rows are printed.
    pub(super) keys_only: bool,
}

/// Runs a job like [`run`], and returns how Python reads the records of the printed inputs, if the
/// report has them.
///
/// # Errors
/// Those of [`run`], and if printed inputs have different separators, so that the ends of the records
/// in the report are unknown.
pub(super) fn run_with_records<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    files: Vec<Py<PyAny>>,
    Records { keys, printed, left_out, keys_only }: Records<'_>,
    job: impl FnOnce(&ProgressReporter) -> PyResult<T> + Send,
) -> PyResult<(T, CsvOutput)> {
    let job = |reporter: &ProgressReporter| {
        let result = job(reporter)?;
        reporter.warn_of_left_out(left_out);
        let found = reporter.separators.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok((result, found))
    };
    let (result, found) = run_listening(py, progress, files, printed.is_some(), job)?;
    Ok((result, printed.and_then(|inputs| csv_output(keys, inputs, &found, keys_only))))
}

fn run_listening<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    files: Vec<Py<PyAny>>,
    one_separator: bool,
    job: impl FnOnce(&ProgressReporter) -> PyResult<T> + Send,
) -> PyResult<T> {
    let (messages, receiver) = sync_channel(CHANNEL_CAPACITY);
    let shared = Arc::new(Shared::default());
    let reporter = ProgressReporter {
        messages,
        shared: shared.clone(),
        phases: Mutex::default(),
        separators: Mutex::default(),
        one_separator,
    };
    let display = Display::of(py, progress)?;
    let mut listener =
        Listener { display, files, phase: None, reported: Instant::now(), raised: None };
    let (listening, listened) = (&mut listener, shared.clone());
    let result = py.detach(move || {
        thread::scope(|scope| {
            let worker = thread::Builder::new().name("petal job".to_owned());
            let worker = worker.spawn_scoped(scope, move || {
                let result = job(&reporter);
                // Closes the channel, which ends the loop of the listener.
                drop(reporter);
                result
            });
            match worker {
                Ok(worker) => {
                    listening.listen(&receiver, &listened);
                    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                Err(error) => Err(Exception::MemoryLimit
                    .new_err(format_args!("cannot start a thread: {}", io_message(&error)))),
            }
        })
    });
    let refused = shared.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (listener.raised, refused) {
        (Some(raised), _) => Err(raised),
        (None, Some(refused)) => Err(PyValueError::new_err(refused)),
        (None, None) => result,
    }
}

/// The calling thread's end of the channel.
struct Listener {
    display: Display,
    files: Vec<Py<PyAny>>,
    phase: Option<(&'static str, Option<u64>)>,
    /// When the progress was shown last.
    reported: Instant,
    /// The exception that cancelled the job.
    raised: Option<PyErr>,
}

impl Listener {
    /// Handles messages until the job has ended.
    fn listen(&mut self, receiver: &Receiver<Message>, shared: &Shared) {
        loop {
            let message = match receiver.recv_timeout(INTERVAL) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            // After an exception messages are only received, so that the job does not block.
            if self.raised.is_none() {
                self.raised = Python::attach(|py| self.handle(py, message, shared)).err();
                shared.cancelled.fetch_or(self.raised.is_some(), Ordering::Relaxed);
            }
        }
        let ended = Python::attach(|py| match self.raised {
            None => self.report(py, shared).and_then(|()| self.display.end(py)),
            Some(_) => self.display.end(py),
        });
        self.raised = self.raised.take().or(ended.err());
    }

    fn handle(
        &mut self,
        py: Python<'_>,
        message: Option<Message>,
        shared: &Shared,
    ) -> PyResult<()> {
        py.check_signals()?;
        match message {
            Some(Message::Phase { what, bytes, before }) => {
                self.report_done(py, before, shared)?;
                self.phase = Some((what, bytes));
                return self.report_done(py, 0, shared);
            }
            Some(Message::Warning(warning)) => {
                self.display.end(py)?;
                let category = py.get_type::<PyUserWarning>();
                // Stack level 2 is the caller of the Python function that called this module.
                py.import("warnings")?.call_method1("warn", (warning, category, 2))?;
            }
            Some(Message::Lines { to, bytes }) => write_all(py, &self.files[to], &bytes)?,
            // The receiver is gone if the job was cancelled.
            Some(Message::Flush(done)) => drop(done.try_send(())),
            None => {}
        }
        match self.reported.elapsed() < INTERVAL {
            true => Ok(()),
            false => self.report(py, shared),
        }
    }

    /// Shows the progress.
    fn report(&mut self, py: Python<'_>, shared: &Shared) -> PyResult<()> {
        self.report_done(py, shared.done.load(Ordering::Relaxed), shared)
    }

    /// Shows the progress; `done`: bytes of the phase.
    fn report_done(&mut self, py: Python<'_>, done: u64, shared: &Shared) -> PyResult<()> {
        self.reported = Instant::now();
        match self.phase {
            Some((what, total)) => self.display.show(py, what, done, total, shared.job.left()),
            None => Ok(()),
        }
    }
}

/// Writes all bytes to a file object. A raw file may write fewer than it is given.
fn write_all(py: Python<'_>, file: &Py<PyAny>, mut bytes: &[u8]) -> PyResult<()> {
    let is_raw = || file.bind(py).is_instance(&py.import("io")?.getattr("RawIOBase")?);
    while !bytes.is_empty() {
        let result = file.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
        let result = result.bind(py);
        // The `write` of an object that is not a file may return None or True for success. The
        // None of a raw file means that it wrote nothing.
        let written = match result.extract::<usize>() {
            Ok(written) if !result.is_instance_of::<PyBool>() => written,
            _ if result.is_none() && is_raw()? => 0,
            _ => bytes.len(),
        };
        if written == 0 || (written < bytes.len() && !is_raw()?) {
            let written = if written == 0 { "none".to_owned() } else { written.to_string() };
            return Err(Exception::Input.new_err(format_args!(
                "out=: its write() took {written} of {} bytes; use a file that writes all of them",
                bytes.len()
            )));
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}
