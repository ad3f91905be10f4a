//! What a run came to: exit codes, and the one line on stderr.

use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// How a command ended, if it ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1: `check` or `probe` found nothing.
    NoneFound,
    /// Exit code 130: a signal ended it, in good order.
    Interrupted,
}

/// Why a command could not do its work: exit code 2, or 0 if only nobody reads on.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A filter, its file or its arithmetic.
    Filter { file: Option<String>, error: petal::Error },
    /// Another program's filter.
    Foreign { file: Option<String>, error: petal_interop::Error },
    /// The line engine.
    Lines(petal_lines::Error),
    /// Something the command line itself found wrong: the line to print.
    Plain(String),
    /// The reader of our output went away.
    ClosedPipe,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A filter file that is not as it should be.
    pub(crate) fn of_file(file: &Path) -> impl Fn(petal::Error) -> Self + '_ {
        |error| Self::Filter { file: Some(file.display().to_string()), error }
    }

    /// Another program's filter file that is not as it should be.
    pub(crate) fn of_foreign(file: &Path) -> impl Fn(petal_interop::Error) -> Self + '_ {
        |error| Self::Foreign { file: Some(file.display().to_string()), error }
    }

    /// A filter file that cannot be written.
    pub(crate) fn of_output(file: &Path) -> impl Fn(petal::Error) -> Self + '_ {
        |error| not_written(file, &error).unwrap_or_else(|| Self::of_file(file)(error))
    }

    /// Another program's filter file that cannot be written.
    pub(crate) fn of_foreign_output(file: &Path) -> impl Fn(petal_interop::Error) -> Self + '_ {
        |error| not_written(file, &error).unwrap_or_else(|| Self::of_foreign(file)(error))
    }

    /// Standard output was closed before the program was started.
    pub(crate) fn closed_stdout() -> Self {
        let words = "standard output: is closed; redirect it, or write to a file";
        Self::Plain(words.to_owned())
    }

    /// Writing to standard output failed.
    pub(crate) fn of_stdout(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ClosedPipe;
        }
        Self::Plain(cannot_write("standard output", &error))
    }
}

impl From<petal::Error> for Failure {
    fn from(error: petal::Error) -> Self {
        Self::Filter { file: None, error }
    }
}

impl From<petal_interop::Error> for Failure {
    fn from(error: petal_interop::Error) -> Self {
        Self::Foreign { file: None, error }
    }
}

impl From<petal_lines::Error> for Failure {
    fn from(error: petal_lines::Error) -> Self {
        if error.is_broken_pipe() { Self::ClosedPipe } else { Self::Lines(error) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter { file, error } => tell(f, file.as_deref(), error),
            Self::Foreign { file, error } => tell(f, file.as_deref(), error),
            Self::Lines(error) => error.fmt(f),
            Self::Plain(text) => f.write_str(text),
            Self::ClosedPipe => f.write_str("nobody reads the output"),
        }
    }
}

/// Writing failed; `None` if something else did.
fn not_written(file: &Path, error: &impl std::error::Error) -> Option<Failure> {
    let source: &io::Error = error.source().and_then(|source| source.downcast_ref())?;
    Some(match source.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Plain(cannot_write(&file.display().to_string(), source)),
    })
}

/// What is wrong with a file, or with what was asked of a library.
fn tell(
    f: &mut fmt::Formatter<'_>,
    file: Option<&str>,
    error: &impl std::error::Error,
) -> fmt::Result {
    if let Some(file) = file {
        write!(f, "{file}: ")?;
    }
    match error.source().and_then(|source| source.downcast_ref()) {
        Some(source) => write!(f, "cannot read: {}", words(source)),
        None => fmt::Display::fmt(error, f),
    }
}

/// An I/O error in words, without Rust's `(os error N)`.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

/// Why an output could not be written, and a way out if there is one.
pub(crate) fn cannot_write(output: &str, error: &io::Error) -> String {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let way_out = if full { "; free some or write elsewhere" } else { "" };
    format!("{output}: cannot write: {}{way_out}", words(error))
}

/// Says on stderr what went wrong, if anything did, and gives the exit code.
pub(crate) fn code(result: Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Done) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Outcome::NoneFound) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(failure) => {
            say(&format!("petal: {failure}"));
            ExitCode::from(2)
        }
    }
}

/// One line on stderr; if even that cannot be written, there is nobody to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
