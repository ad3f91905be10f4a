//! The errors of the program, and the exit code.

pub(crate) mod messages;

use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

pub(crate) use petal_lines::io_text;
use petal_lines::is_disk_full;

use crate::text;

/// How a command ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1: `check` or `probe` found nothing.
    NoneFound,
    /// Exit code 130: a signal ended the command, and its state is saved.
    Interrupted,
}

/// The error of a command: exit code 2, or 0 if the reader of the output closed the pipe.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of a filter or its file.
    Filter { file: Option<String>, error: petal::Error },
    /// An error of another program's filter or its file.
    Foreign { file: Option<String>, error: petal_interop::Error },
    /// An error of the file engine.
    Lines(petal_lines::Error),
    /// An error of the program itself: the message.
    Message(String),
    /// The reader of the output closed the pipe.
    ClosedPipe,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Adds the name of the filter file to an error.
    pub(crate) fn of_file(file: &Path) -> impl Fn(petal::Error) -> Self + '_ {
        |error| Self::Filter { file: Some(file.display().to_string()), error }
    }

    /// Adds the name of another program's filter file to an error.
    pub(crate) fn of_foreign(file: &Path) -> impl Fn(petal_interop::Error) -> Self + '_ {
        |error| Self::Foreign { file: Some(file.display().to_string()), error }
    }

    /// Adds the name of the output to an error of writing a filter.
    pub(crate) fn of_output(file: &Path) -> impl Fn(petal::Error) -> Self + '_ {
        |error| write_failure(file, &error).unwrap_or_else(|| Self::of_file(file)(error))
    }

    /// Adds the name of the output to an error of writing another program's filter.
    pub(crate) fn of_foreign_output(file: &Path) -> impl Fn(petal_interop::Error) -> Self + '_ {
        |error| write_failure(file, &error).unwrap_or_else(|| Self::of_foreign(file)(error))
    }

    /// The error if standard output was closed before the program started.
    pub(crate) fn closed_stdout() -> Self {
        Self::Message("standard output: is closed; redirect it, or write to a file".to_owned())
    }

    /// An error of writing to standard output.
    pub(crate) fn of_stdout(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ClosedPipe;
        }
        Self::Message(cannot_write("standard output", &error))
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
            Self::Filter { file, error } => {
                write_in_file(f, file.as_deref(), error, &error.to_string())
            }
            Self::Foreign { file, error } => {
                write_in_file(f, file.as_deref(), error, &messages::foreign(error))
            }
            Self::Lines(error) => f.write_str(&messages::lines(error)),
            Self::Message(text) => f.write_str(text),
            Self::ClosedPipe => f.write_str("the reader of the output closed the pipe"),
        }
    }
}

/// Returns the failure if writing is the cause of `error`.
fn write_failure(file: &Path, error: &impl std::error::Error) -> Option<Failure> {
    let source: &io::Error = error.source().and_then(|source| source.downcast_ref())?;
    Some(match source.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Message(cannot_write(&file.display().to_string(), source)),
    })
}

/// Writes `message`, or the I/O error that caused it, after the name of the file.
fn write_in_file(
    f: &mut fmt::Formatter<'_>,
    file: Option<&str>,
    error: &impl std::error::Error,
    message: &str,
) -> fmt::Result {
    if let Some(file) = file {
        write!(f, "{file}: ")?;
    }
    match error.source().and_then(|source| source.downcast_ref()) {
        Some(source) => write!(f, "cannot read: {}", io_text(source)),
        None => f.write_str(message),
    }
}

/// Returns the message for an output that cannot be written.
pub(crate) fn cannot_write(output: &str, error: &io::Error) -> String {
    let advice =
        if is_disk_full(error) { "; free some space or write to another disk" } else { "" };
    format!("{output}: cannot write: {}{advice}", io_text(error))
}

/// Prints the error, if there is one, on stderr and returns the exit code.
pub(crate) fn exit_code(result: Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Done) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Outcome::NoneFound) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(failure) => {
            print_stderr(&format!("petal: {failure}"));
            ExitCode::from(2)
        }
    }
}

/// Prints one line on stderr; ignores errors, which cannot be reported anywhere.
pub(crate) fn print_stderr(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text::escaped(line));
}
