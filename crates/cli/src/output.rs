//! Where results go: standard output, or a file that appears whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl};

use petal_lines::Source;
use petal_lines::aside::Aside;

use crate::closed;
use crate::exit::{Failure, Result, cannot_write};

/// Where results go.
pub(crate) enum Output {
    /// Standard output, or something else that cannot be replaced, like a device or a FIFO.
    Direct(File, String),
    /// A file, by the name that it was given.
    Aside(Aside, String),
}

impl Output {
    /// Opens the path, or standard output; an output that is also an input is refused.
    pub(crate) fn open(path: Option<&Path>, inputs: &[Source]) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            if closed::stdout() {
                return Err(Failure::closed_stdout());
            }
            let file = io::stdout().as_fd().try_clone_to_owned().map(File::from);
            let file = file.map_err(Failure::of_stdout)?;
            if let Ok(data) = file.metadata()
                && data.is_file()
            {
                refuse_input("standard output", &data, inputs)?;
            }
            return Ok(Self::Direct(file, STDOUT.to_owned()));
        };
        let shown = path.display().to_string();
        let failed = |error: io::Error| Failure::Plain(cannot_write(&shown, &error));
        if let Ok(data) = fs::metadata(path) {
            if data.is_dir() {
                let words = format!("{shown}: is a directory, -o expects a file");
                return Err(Failure::Plain(words));
            }
            if !data.is_file() {
                let file = File::options().write(true).open(path).map_err(failed)?;
                return Ok(Self::Direct(file, shown));
            }
            refuse_input(&shown, &data, inputs)?;
            // As the shell's `>` would: a file one may not write is not replaced.
            File::options().append(true).open(path).map_err(failed)?;
        }
        let aside = Aside::beside(path).map_err(failed)?;
        Ok(Self::Aside(aside, shown))
    }

    /// The writer.
    pub(crate) fn file(&mut self) -> &mut File {
        match self {
            Self::Direct(file, _) => file,
            Self::Aside(aside, _) => aside.file(),
        }
    }

    /// Writing to it failed.
    pub(crate) fn failed(&self, error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::ClosedPipe;
        }
        Failure::Plain(cannot_write(self.name(), &error))
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Direct(_, name) | Self::Aside(_, name) => name,
        }
    }

    /// Makes the result durable and gives it its name.
    pub(crate) fn finish(self) -> Result<()> {
        self.finish_synced(false)
    }

    /// The same, and if so asked, makes durable what went to a file that was there before.
    pub(crate) fn finish_synced(self, direct: bool) -> Result<()> {
        match self {
            Self::Direct(ref file, _) => {
                let is_file = file.metadata().is_ok_and(|data| data.is_file());
                let synced = if direct && is_file { file.sync_all() } else { Ok(()) };
                synced.map_err(|error| self.failed(error))
            }
            Self::Aside(aside, name) => {
                aside.finish().map_err(|error| Failure::Plain(cannot_write(&name, &error)))
            }
        }
    }
}

const STDOUT: &str = "standard output";

/// Names the output that could not be written, by the name that it was given.
pub(crate) fn name_output(
    error: petal_lines::Error,
    kept: Option<&str>,
    rest: Option<&str>,
) -> Failure {
    let failed = error.write_error().and_then(|(of_rest, source)| {
        let name = if of_rest { rest } else { kept };
        name.map(|name| cannot_write(name, source))
    });
    match failed {
        Some(words) if !error.is_broken_pipe() => Failure::Plain(words),
        _ => error.into(),
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Appends lines to an output. If that is a file whose last line has no end, because the run that
/// wrote it was killed or its disk was full, ends that line first: the next line would otherwise
/// be joined to it.
///
/// Nothing is written before there is a line to write.
pub(crate) struct LineAppender<'a> {
    file: &'a mut File,
    /// The same file, readable, until the first write.
    before: Option<File>,
    delimiter: u8,
}

impl<'a> LineAppender<'a> {
    /// An appender of lines that end in `delimiter`; `before` is [`readable`] of the file.
    pub(crate) fn new(file: &'a mut File, before: Option<File>, delimiter: u8) -> Self {
        Self { file, before, delimiter }
    }

    fn end_torn_line(&mut self, before: &File) -> io::Result<()> {
        let length = before.metadata()?.len();
        // Elsewhere than at the end somebody overwrites the file on purpose.
        let appends = fcntl_getfl(&*self.file)?.contains(OFlags::APPEND);
        if length == 0 || !(appends || io::Seek::stream_position(self.file)? == length) {
            return Ok(());
        }
        let mut last = [0];
        before.read_exact_at(&mut last, length - 1)?;
        if last[0] == self.delimiter { Ok(()) } else { self.file.write_all(&[self.delimiter]) }
    }
}

impl Write for LineAppender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty()
            && let Some(before) = self.before.take()
        {
            self.end_torn_line(&before)?;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The same file, opened for reading, for a shell opens that of `>>` only for writing. `None` if it
/// is empty or not a regular file.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn readable(file: &File) -> io::Result<Option<File>> {
    let data = file.metadata()?;
    if !data.is_file() || data.len() == 0 {
        return Ok(None);
    }
    if file.read_at(&mut [0], 0).is_ok() {
        return file.try_clone().map(Some);
    }
    let again = File::open(format!("/dev/fd/{}", file.as_raw_fd()))?;
    let found = again.metadata()?;
    if (found.dev(), found.ino()) != (data.dev(), data.ino()) {
        return Err(io::Error::other("/dev/fd names another file"));
    }
    // Some systems only copy the descriptor.
    again.read_at(&mut [0], 0)?;
    Ok(Some(again))
}

fn refuse_input(output: &str, data: &fs::Metadata, inputs: &[Source]) -> Result<()> {
    let Some(input) = inputs.iter().find(|input| input.is(data)) else { return Ok(()) };
    let input = match input {
        Source::Path(path) => path.display().to_string(),
        Source::Stdin => "standard input".to_owned(),
    };
    Err(Failure::Plain(format!(
        "{output}: is the same file as the input {input}; write to another file"
    )))
}
