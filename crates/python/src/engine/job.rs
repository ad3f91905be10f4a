//! Work in a thread of its own, while the calling thread listens.
//!
//! The calling thread waits without the interpreter's lock, in slices. Between them it looks for
//! signals, tells how far the work is, and hands lines to a file object: all Python code runs in
//! the thread that asked for the job. When any of it raises, the job is cancelled, and ends at
//! the next chunk of lines; the exception is raised when it has ended.
//!
//! Cost: a slice is a tenth of a second, which is how long Ctrl-C takes to be heard, and how
//! often `progress` is called.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use petal_lines::{Note, Progress};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes};

use crate::error::Kind;

const SLICE: Duration = Duration::from_millis(100);

/// Bytes that a file object is given at once, at most.
const PIECE: usize = 64 << 10;

/// Messages under way from the job to the calling thread: few, for some hold lines.
const WAITING: usize = 4;

/// What the job has to say.
enum Word {
    /// A phase begins, and with it ends the one before, which came so far.
    Phase { what: &'static str, bytes: Option<u64>, before: u64 },
    /// A warning.
    Warning(String),
    /// Lines for a file object, by its number.
    Lines { to: usize, bytes: Vec<u8> },
    /// Somebody waits until all of them are written.
    Written(SyncSender<()>),
}

/// The job's side.
pub(crate) struct Teller {
    words: SyncSender<Word>,
    shared: Arc<Shared>,
    phases: Mutex<Vec<Phase>>,
}

/// A phase, from when to when it went, and how many bytes.
pub(super) struct Phase {
    pub(super) what: &'static str,
    pub(super) bytes: u64,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
}

/// What both sides look at.
#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    /// Bytes of the phase that are done.
    done: AtomicU64,
}

impl Progress for Teller {
    fn phase(&self, what: &'static str, bytes: Option<u64>) {
        let before = self.shared.done.swap(0, Ordering::Relaxed);
        let now = Instant::now();
        let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = phases.last_mut() {
            (last.bytes, last.ended) = (before, now);
        }
        phases.push(Phase { what, bytes: 0, begun: now, ended: now });
        drop(phases);
        // Nobody hears it if the calling thread panicked; then nothing is left to tell.
        let _ = self.words.send(Word::Phase { what, bytes, before });
    }

    fn advance(&self, bytes: u64) {
        self.shared.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn note(&self, note: Note<'_>) {
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
            Note::MixedLineEnds { crlf, more, lf } => format!(
                "{crlf}{}: lines end with CRLF, those of {lf} with LF; the CR is part of a line, \
                 remove it, or lines that look the same differ",
                others(more)
            ),
            _ => return,
        };
        let _ = self.words.send(Word::Warning(warning));
    }

    fn cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }
}

impl Teller {
    /// The phases that there were, the last of which ends now.
    pub(super) fn phases(&self) -> Vec<Phase> {
        let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = phases.last_mut() {
            (last.bytes, last.ended) = (self.shared.done.load(Ordering::Relaxed), Instant::now());
        }
        std::mem::take(&mut phases)
    }

    /// Waits until the file objects have all that was handed to them.
    pub(super) fn settle(&self) -> PyResult<()> {
        let (done, written) = sync_channel(1);
        let heard = self.words.send(Word::Written(done)).is_ok() && written.recv().is_ok();
        // What Python raised is told instead.
        if heard { Ok(()) } else { Err(Kind::Petal.with("cancelled")) }
    }

    /// A writer to the file object of that number.
    pub(super) fn sink(&self, to: usize) -> Sink {
        Sink { to, words: self.words.clone() }
    }
}

/// Hands lines to a file object.
pub(super) struct Sink {
    to: usize,
    words: SyncSender<Word>,
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE)];
        let lines = Word::Lines { to: self.to, bytes: bytes.to_vec() };
        self.words.send(lines).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Does a job, and calls `progress(phase, done, total)` and the `write` of the file objects as
/// it goes.
///
/// # Errors
/// What the job says, or what Python raised meanwhile: a signal's handler, `progress`, a file.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    files: Vec<Py<PyAny>>,
    job: impl FnOnce(&Teller) -> PyResult<T> + Send,
) -> PyResult<T> {
    let (words, heard) = sync_channel(WAITING);
    let shared = Arc::new(Shared::default());
    let teller = Teller { words, shared: shared.clone(), phases: Mutex::default() };
    let mut listener =
        Listener { progress, files, phase: None, told: Instant::now(), raised: None };
    let hears = &mut listener;
    let done = py.detach(move || {
        thread::scope(|scope| {
            let worker = thread::Builder::new().name("petal job".to_owned());
            let worker = worker.spawn_scoped(scope, move || {
                let done = job(&teller);
                // The last word that the listener waits for.
                drop(teller);
                done
            });
            match worker {
                Ok(worker) => {
                    hears.listen(&heard, &shared);
                    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                Err(error) => Err(Kind::Petal.with(format_args!("no thread to work in: {error}"))),
            }
        })
    });
    match listener.raised {
        Some(raised) => Err(raised),
        None => done,
    }
}

/// The calling thread's side.
struct Listener {
    progress: Option<Py<PyAny>>,
    files: Vec<Py<PyAny>>,
    phase: Option<(&'static str, Option<u64>)>,
    told: Instant,
    /// What Python raised, which ends the job.
    raised: Option<PyErr>,
}

impl Listener {
    /// Until the job has ended.
    fn listen(&mut self, heard: &Receiver<Word>, shared: &Shared) {
        loop {
            let word = match heard.recv_timeout(SLICE) {
                Ok(word) => Some(word),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            // What comes after that is heard, that nobody waits for it to be, and forgotten.
            if self.raised.is_none() {
                self.raised = Python::attach(|py| self.act(py, word, shared)).err();
                shared.cancelled.store(self.raised.is_some(), Ordering::Relaxed);
            }
        }
        if self.raised.is_none() {
            let done = shared.done.load(Ordering::Relaxed);
            self.raised = Python::attach(|py| self.tell(py, done)).err();
        }
    }

    fn act(&mut self, py: Python<'_>, word: Option<Word>, shared: &Shared) -> PyResult<()> {
        py.check_signals()?;
        match word {
            Some(Word::Phase { what, bytes, before }) => {
                self.tell(py, before)?;
                self.phase = Some((what, bytes));
                return self.tell(py, 0);
            }
            Some(Word::Warning(warning)) => {
                let kind = py.get_type::<PyUserWarning>();
                // The level of the caller of the Python function that calls this module.
                py.import("warnings")?.call_method1("warn", (warning, kind, 2))?;
            }
            Some(Word::Lines { to, bytes }) => write(py, &self.files[to], &bytes)?,
            // Nobody waits any more if the job was cancelled.
            Some(Word::Written(done)) => drop(done.try_send(())),
            None => {}
        }
        match self.told.elapsed() < SLICE {
            true => Ok(()),
            false => self.tell(py, shared.done.load(Ordering::Relaxed)),
        }
    }

    /// Calls `progress`.
    fn tell(&mut self, py: Python<'_>, done: u64) -> PyResult<()> {
        self.told = Instant::now();
        if let (Some(progress), Some((what, bytes))) = (&self.progress, self.phase) {
            progress.call1(py, (what, done, bytes))?;
        }
        Ok(())
    }
}

/// Writes all of it: a raw file may take less than it is given.
fn write(py: Python<'_>, file: &Py<PyAny>, mut bytes: &[u8]) -> PyResult<()> {
    let raw = || file.bind(py).is_instance(&py.import("io")?.getattr("RawIOBase")?);
    while !bytes.is_empty() {
        let wrote = file.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
        let wrote = wrote.bind(py);
        // Of files that are no more than something with a `write`, many say nothing, or that it
        // went well. A raw one that says nothing took nothing.
        let took = match wrote.extract::<usize>() {
            Ok(took) if !wrote.is_instance_of::<PyBool>() => took,
            _ if wrote.is_none() && raw()? => 0,
            _ => bytes.len(),
        };
        if took == 0 || (took < bytes.len() && !raw()?) {
            let took = if took == 0 { "none".to_owned() } else { took.to_string() };
            return Err(Kind::Input.with(format_args!(
                "out=: its write() took {took} of {} bytes; give a file that takes them all",
                bytes.len()
            )));
        }
        bytes = bytes.get(took..).unwrap_or_default();
    }
    Ok(())
}
