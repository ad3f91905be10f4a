//! Prints progress on stderr, a bar on a terminal and lines elsewhere, and notes.

use std::collections::HashSet;
use std::fmt;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use petal_lines::{JobProgress, LeftOutRecords, Note, Progress, TimeLeft};

use super::notes::{self, Message};
use crate::args::{Verbosity, When};
use crate::error::print_stderr;
use crate::process::{memory, signal};
use crate::text;

/// Shows the progress of a job, and prints notes and warnings.
pub(crate) struct ProgressReporter {
    quiet: bool,
    bar: Option<ProgressBar>,
    lines: Option<LineProgress>,
    phases: Option<PhaseLog>,
    /// The progress over all phases, for the bar's time left.
    job: Arc<JobProgress>,
    /// Warnings that were printed; each is printed once, even if an input is read twice.
    warned: Mutex<HashSet<String>>,
    /// The records that the job leaves out.
    left_out: LeftOutRecords,
}

/// The phases of the job, for `--verbose`.
#[derive(Default)]
struct PhaseLog {
    /// The name and the start of the current phase.
    current: Mutex<Option<(&'static str, Instant)>>,
    bytes: AtomicU64,
}

impl PhaseLog {
    /// Ends the current phase. Returns its line.
    fn end(&self) -> Option<String> {
        let (name, begun) = self.current.lock().ok()?.take()?;
        let (bytes, seconds) = (self.bytes.swap(0, Ordering::Relaxed), begun.elapsed());
        let bytes = if bytes > 0 { format!("{} in ", text::size(bytes)) } else { String::new() };
        Some(format!("{name}: {bytes}{:.2} s", seconds.as_secs_f64()))
    }
}

/// Progress as lines, for `--progress always` without a terminal.
#[derive(Default)]
struct LineProgress {
    phase: Mutex<Phase>,
    done: AtomicU64,
}

#[derive(Default)]
struct Phase {
    name: &'static str,
    /// The number of bytes or files, if it is known.
    total: Option<u64>,
    /// Whether files are counted instead of bytes.
    files: bool,
    printed: Option<Instant>,
}

const LINE_INTERVAL: Duration = Duration::from_secs(1);

impl ProgressReporter {
    /// Creates a reporter. `prints_lines`: the command prints lines to standard output; on a terminal
    /// they would be mixed with a progress bar.
    pub(crate) fn new(verbosity: &Verbosity, prints_lines: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let mixed = prints_lines && std::io::stdout().is_terminal();
        let show = match verbosity.progress {
            When::Always => !verbosity.quiet,
            When::Auto => !verbosity.quiet && terminal && !mixed,
            When::Never => false,
        };
        let job = Arc::<JobProgress>::default();
        let bar = (show && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style(false, false, &job));
            bar.set_message("starting");
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let lines = (show && !terminal).then(LineProgress::default);
        let phases = verbosity.verbose.then(PhaseLog::default);
        Self {
            quiet: verbosity.quiet,
            bar,
            lines,
            phases,
            job,
            warned: Mutex::default(),
            left_out: LeftOutRecords::default(),
        }
    }

    /// Creates a reporter that shows notes and warnings, but no progress.
    pub(crate) fn silent(quiet: bool) -> Self {
        Self {
            quiet,
            bar: None,
            lines: None,
            phases: None,
            job: Arc::default(),
            warned: Mutex::default(),
            left_out: LeftOutRecords::default(),
        }
    }

    /// Returns the records that the job leaves out.
    pub(crate) fn left_out(&self) -> &LeftOutRecords {
        &self.left_out
    }

    /// Prints a note or a warning, unless `--quiet`.
    pub(crate) fn print(&self, note: &str) {
        if self.quiet {
            return;
        }
        let line = format!("petal: {note}");
        match &self.bar {
            Some(bar) => bar.suspend(|| print_stderr(&line)),
            None => print_stderr(&line),
        }
    }

    /// Prints a line if `--verbose`.
    pub(crate) fn verbose(&self, line: &str) {
        if self.phases.is_some() {
            self.print(line);
        }
    }

    /// Shows the numbers of lines in the progress bar.
    fn show_tally(&self, lines: u64, new: u64, fpr: f64) {
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!(
                ", {} lines, {} new, false-positive rate {}",
                text::count(lines),
                text::count(new),
                text::rate(fpr),
            ));
        }
    }

    /// Prints a line, unless it was printed before.
    fn print_once(&self, line: String) {
        if self.warned.lock().is_ok_and(|mut printed| printed.insert(line.clone())) {
            self.print(&line);
        }
    }

    /// Starts a phase over this number of files; the caller advances by 1 for each.
    pub(crate) fn files(&self, name: &'static str, files: u64) {
        self.begin(name, Some(files), true);
    }

    fn begin(&self, name: &'static str, total: Option<u64>, files: bool) {
        if let Some(phases) = &self.phases {
            phases.end().iter().for_each(|line| self.print(line));
            if let Ok(mut current) = phases.current.lock() {
                *current = Some((name, Instant::now()));
            }
        }
        if let Some(bar) = &self.bar {
            bar.reset();
            bar.set_message(name);
            bar.set_style(style(total.is_some(), files, &self.job));
            match total {
                Some(total) => bar.set_length(total),
                None => bar.unset_length(),
            }
        }
        if let Some(lines) = &self.lines
            && let Ok(mut phase) = lines.phase.lock()
        {
            lines.done.store(0, Ordering::Relaxed);
            *phase = Phase { name, total, files, printed: None };
            // A phase without a total may end before its first progress line.
            if total.is_none() {
                print_stderr(&format!("petal: {name}"));
            }
        }
    }

    /// Removes the progress bar, and prints how many records were left out. With `--verbose`, prints the
    /// last phase and the memory.
    pub(crate) fn finish(&self) {
        let left_out = self.left_out.summary();
        left_out.into_iter().for_each(|text| self.print_once(format!("warning: {text}")));
        if let Some(line) = self.phases.as_ref().and_then(PhaseLog::end) {
            self.print(&line);
            self.print(&format!("memory: {} at most", text::size(memory::peak())));
        }
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Removes the bar when a command fails.
impl Drop for ProgressReporter {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Returns the style of the bar for a known or unknown total.
fn style(known: bool, files: bool, job: &Arc<JobProgress>) -> ProgressStyle {
    let template = match (known, files) {
        (_, true) => "{msg:>10} {bar:30.cyan} {percent:>3} %  {pos} of {len} files{left}",
        (true, false) => "{msg:>10} {bar:30.cyan} {percent:>3} %  {bytes_per_sec}{left}{prefix}",
        (false, false) => "{msg:>10} {spinner} {bytes}, {bytes_per_sec}{left}{prefix}",
    };
    let job = Arc::clone(job);
    let left = move |phase: &ProgressState, text: &mut dyn fmt::Write| {
        // Writing to a string does not fail.
        let _ = write_left(job.left(), known.then(|| phase.eta()), text);
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("left", left)
}

/// Writes the time that is left of the job, or of the phase if the job's is unknown.
fn write_left(job: TimeLeft, phase: Option<Duration>, text: &mut dyn fmt::Write) -> fmt::Result {
    match (job, phase) {
        (TimeLeft::Job(left), _) => write!(text, ", {:#} left in total", HumanDuration(left)),
        (TimeLeft::Unknown, Some(left)) => write!(text, ", {:#} left", HumanDuration(left)),
        (TimeLeft::TooEarly, _) | (TimeLeft::Unknown, None) => Ok(()),
    }
}

impl Progress for ProgressReporter {
    fn phase(&self, name: &'static str, bytes: Option<u64>) {
        self.begin(name, bytes, false);
    }

    fn expect_total(&self, bytes: u64) {
        self.job.expect(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.job.advance(bytes);
        if let Some(phases) = &self.phases {
            phases.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
        let Some(lines) = &self.lines else { return };
        let done = lines.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let Ok(mut phase) = lines.phase.lock() else { return };
        if phase.printed.is_some_and(|printed| printed.elapsed() < LINE_INTERVAL) {
            return;
        }
        phase.printed = Some(Instant::now());
        let (size, unit): (fn(u64) -> String, _) =
            if phase.files { (text::count, " files") } else { (text::size, "") };
        let of = phase.total.map(|total| format!(" of {}", size(total))).unwrap_or_default();
        print_stderr(&format!("petal: {}: {}{of}{unit}", phase.name, size(done)));
    }

    fn stopped(&self) -> bool {
        signal::stopped()
    }

    fn note(&self, note: Note<'_>) {
        match note {
            Note::Tally { lines, new, fpr } => self.show_tally(lines, new, fpr),
            note => match notes::message(note) {
                Some(Message::Note(text)) => self.print(&format!("note: {text}")),
                Some(Message::Once(text)) => self.print_once(format!("note: {text}")),
                Some(Message::Warning(text)) => self.print_once(format!("warning: {text}")),
                None => {}
            },
        }
    }
}
