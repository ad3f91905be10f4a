//! How the progress of a job is shown: by a function, or in one line of `sys.stderr`, which a terminal
//! and a notebook overwrite.

use std::time::Duration;

use petal_lines::{TimeLeft, format_size};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// The argument `progress` of a job.
pub(super) enum Display {
    Nothing,
    /// `progress(phase, done, total)`.
    Calls(Py<PyAny>),
    /// The number of characters in the line.
    Line(usize),
}

impl Display {
    /// # Errors
    /// If the argument is neither a function nor a truth value.
    pub(super) fn of(py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        let Some(progress) = progress else { return Ok(Self::Nothing) };
        match progress.extract::<bool>(py) {
            Ok(true) => Ok(Self::Line(0)),
            Ok(false) => Ok(Self::Nothing),
            Err(_) if progress.bind(py).is_callable() => Ok(Self::Calls(progress)),
            Err(_) => {
                let kind = progress.bind(py).get_type().name()?;
                let problem = format!("progress=: expected a function or True, found {kind}");
                Err(PyTypeError::new_err(problem))
            }
        }
    }

    /// Shows the bytes of a phase.
    ///
    /// # Errors
    /// What the function or `sys.stderr` raises.
    pub(super) fn show(
        &mut self,
        py: Python<'_>,
        phase: &str,
        done: u64,
        total: Option<u64>,
        left: TimeLeft,
    ) -> PyResult<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Calls(progress) => progress.call1(py, (phase, done, total)).map(drop),
            Self::Line(width) => {
                let of = total.map(|total| format!(" of {}", format_size(total)));
                let left = match left {
                    TimeLeft::Job(left) => format!(", {} left in total", text(left)),
                    _ => String::new(),
                };
                let line = format!(
                    "petal: {phase}: {}{}{left}",
                    format_size(done),
                    of.unwrap_or_default()
                );
                let before = std::mem::replace(width, line.chars().count());
                write(py, &format!("\r{line:<before$}"))
            }
        }
    }

    /// Removes the line.
    pub(super) fn end(&mut self, py: Python<'_>) -> PyResult<()> {
        match self {
            Self::Line(width) if *width > 0 => {
                let spaces = std::mem::take(width);
                write(py, &format!("\r{:spaces$}\r", ""))
            }
            _ => Ok(()),
        }
    }
}

/// Writes to `sys.stderr`, which a program without a console may not have.
fn write(py: Python<'_>, text: &str) -> PyResult<()> {
    let stderr = py.import("sys")?.getattr("stderr")?;
    if stderr.is_none() {
        return Ok(());
    }
    stderr.call_method1("write", (text,))?;
    stderr.call_method0("flush").map(drop)
}

/// Returns a time in its largest unit.
fn text(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
