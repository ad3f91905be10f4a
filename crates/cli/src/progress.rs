//! Progress and notes on stderr: a bar on a terminal, nothing in a pipe.

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use petal_lines::{Note, Progress};

use crate::args::{Talk, When};
use crate::exit::say;
use crate::{signal, text};

/// Tells a person how the work is getting on.
pub(crate) struct Teller {
    quiet: bool,
    bar: Option<ProgressBar>,
    plain: Option<Plain>,
    /// Warnings that were printed: an input that is read twice is warned of once.
    warned: Mutex<HashSet<String>>,
}

/// Progress where there is no terminal but it was asked for: a line now and then.
#[derive(Default)]
struct Plain {
    phase: Mutex<Phase>,
    done: AtomicU64,
}

#[derive(Default)]
struct Phase {
    what: &'static str,
    /// What is ahead, if that is known.
    all: Option<u64>,
    /// Files are counted, not bytes.
    files: bool,
    told: Option<Instant>,
}

const BETWEEN_LINES: Duration = Duration::from_secs(1);

impl Teller {
    /// `prints`: whether lines go to standard output. Where that is a terminal too, a bar would
    /// be drawn between them.
    pub(crate) fn new(talk: &Talk, prints: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let crowded = prints && std::io::stdout().is_terminal();
        let show = match talk.progress {
            When::Always => !talk.quiet,
            When::Auto => !talk.quiet && terminal && !crowded,
            When::Never => false,
        };
        let bar = (show && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style(false, false));
            bar.set_message("looking");
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let plain = (show && !terminal).then(Plain::default);
        Self { quiet: talk.quiet, bar, plain, warned: Mutex::default() }
    }

    /// Shows no progress, only says what is worth knowing.
    pub(crate) fn silent(quiet: bool) -> Self {
        Self { quiet, bar: None, plain: None, warned: Mutex::default() }
    }

    /// Says something worth knowing that is no error.
    pub(crate) fn say(&self, note: &str) {
        if self.quiet {
            return;
        }
        let line = format!("petal: {note}");
        match &self.bar {
            Some(bar) => bar.suspend(|| say(&line)),
            None => say(&line),
        }
    }

    /// Prints a warning, unless it was printed before.
    fn warn(&self, warning: String) {
        let line = format!("warning: {warning}");
        if self.warned.lock().is_ok_and(|mut warned| warned.insert(warning)) {
            self.say(&line);
        }
    }

    /// A phase begins that goes through so many files; each is to be advanced by 1.
    pub(crate) fn files(&self, what: &'static str, files: u64) {
        self.begin(what, Some(files), true);
    }

    fn begin(&self, what: &'static str, all: Option<u64>, files: bool) {
        if let Some(bar) = &self.bar {
            bar.reset();
            bar.set_message(what);
            bar.set_style(style(all.is_some(), files));
            match all {
                Some(all) => bar.set_length(all),
                None => bar.unset_length(),
            }
        }
        if let Some(plain) = &self.plain
            && let Ok(mut phase) = plain.phase.lock()
        {
            plain.done.store(0, Ordering::Relaxed);
            *phase = Phase { what, all, files, told: None };
            // How far it is may not be known before it is done.
            if all.is_none() {
                say(&format!("petal: {what}"));
            }
        }
    }

    /// Takes the bar away; what is said afterwards stays on the screen.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A command that ends early leaves no bar on the screen.
impl Drop for Teller {
    fn drop(&mut self) {
        self.finish();
    }
}

/// With a known end, and without.
fn style(known: bool, files: bool) -> ProgressStyle {
    let template = match (known, files) {
        (_, true) => "{msg:>10} {bar:30.cyan} {percent:>3} %  {pos} of {len} files, {eta} left",
        (true, false) => {
            "{msg:>10} {bar:30.cyan} {percent:>3} %  {bytes_per_sec}, {eta} left{prefix}"
        }
        (false, false) => "{msg:>10} {spinner} {bytes}, {bytes_per_sec}{prefix}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// An input as people call it.
fn name(input: &str) -> &str {
    if input == "-" { "standard input" } else { input }
}

/// An input and how many others, with the verb that fits.
fn subject(input: &str, more: u64, one: &str, many: &str) -> String {
    let input = name(input);
    match more {
        0 => format!("{input} {one}"),
        1 => format!("{input} and another input {many}"),
        _ => format!("{input} and {} other inputs {many}", text::count(more)),
    }
}

impl Progress for Teller {
    fn phase(&self, what: &'static str, bytes: Option<u64>) {
        self.begin(what, bytes, false);
    }

    fn advance(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
        let Some(plain) = &self.plain else { return };
        let done = plain.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let Ok(mut phase) = plain.phase.lock() else { return };
        if phase.told.is_some_and(|told| told.elapsed() < BETWEEN_LINES) {
            return;
        }
        phase.told = Some(Instant::now());
        let (size, unit): (fn(u64) -> String, _) =
            if phase.files { (text::count, " files") } else { (text::size, "") };
        let of = phase.all.map(|all| format!(" of {}", size(all))).unwrap_or_default();
        say(&format!("petal: {}: {}{of}{unit}", phase.what, size(done)));
    }

    fn stopped(&self) -> bool {
        signal::stopped()
    }

    fn note(&self, note: Note<'_>) {
        match note {
            Note::Spooling { input, dir } => {
                self.say(&format!(
                    "note: {} cannot be read twice; copying it to {}",
                    name(input),
                    dir.display()
                ));
            }
            Note::ByteOrderMark { input, more } => self.warn(format!(
                "{} with a byte order mark, which is part of the first line, so that \
                 line equals no line without it; remove it with sed '1s/^\\xEF\\xBB\\xBF//'",
                subject(input, more, "begins", "begin"),
            )),
            Note::MixedLineEnds { crlf, more, lf } => self.warn(format!(
                "{} with CRLF, those of {} end with LF: the CR is part of a line, so \
                 lines that look the same differ; remove it with tr -d '\\r'",
                subject(&format!("the lines of {}", name(crlf)), more, "end", "end"),
                name(lf),
            )),
            Note::Expecting { wrong: Some(wrong), rate } => self.say(&format!(
                "note: approximate: at most about {} wrong lines to expect, at a rate of {}; fewer \
                 where lines repeat or are in all inputs",
                text::count(wrong.ceil() as u64),
                text::rate(rate),
            )),
            Note::Expecting { wrong: None, rate } => self.say(&format!(
                "note: approximate: how many wrong lines to expect depends on how many come (-n); \
                 the rate is {}",
                text::rate(rate),
            )),
            Note::Tally { lines, new, rate } => {
                if let Some(bar) = &self.bar {
                    bar.set_prefix(format!(
                        ", {} lines, {} new, filter wrong on {}",
                        text::count(lines),
                        text::count(new),
                        text::rate(rate),
                    ));
                }
            }
            _ => {}
        }
    }
}
