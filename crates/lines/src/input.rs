//! Inputs: files that can be read again, and streams that cannot.
//!
//! A regular file is opened by name at each pass and read by position, from many threads; each
//! time its identity, size and time of change are compared with those of the first opening, so
//! that a file that is written to underneath a job is an error and not a wrong answer. Anything
//! else (pipe, FIFO, terminal, a `/proc` file that claims no size) is a stream: one pass, in
//! order. [`Input::spool`] makes a file of a stream.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::progress::{Note, Progress};

/// Names an input: a path, or `-` for standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file (or FIFO, device, …) by name.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

impl Source {
    /// `-` is standard input, anything else a path.
    pub fn from_arg(arg: impl Into<PathBuf>) -> Self {
        let path = arg.into();
        if path == Path::new("-") { Self::Stdin } else { Self::Path(path) }
    }

    fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Stdin => "-".to_owned(),
        }
    }
}

/// An input, looked at but not yet read.
pub(crate) struct Input {
    name: String,
    body: Body,
    /// Bytes at the start that are no longer part of it.
    skip: u64,
}

enum Body {
    /// A regular file, opened anew for each pass.
    Named { path: PathBuf, mark: Mark },
    /// A file kept open: redirected standard input, or a spooled stream.
    Held { file: Arc<File>, range: Range, mark: Option<Mark> },
    /// Read once; `None` when that has happened.
    Stream(Mutex<Option<Box<dyn Wait + Send>>>),
}

/// Which bytes of a file are the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// How a file is recognised when it is opened again.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Mark {
    fn of(data: &Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
            changed: (data.mtime(), data.mtime_nsec()),
        }
    }
}

/// An input opened for one pass.
pub(crate) enum Open {
    File { file: Arc<File>, range: Range },
    Stream(Box<dyn Wait + Send>),
}

impl Input {
    /// Looks at every input; a missing file, a directory or a second `-` is an error now.
    pub(crate) fn look_at(sources: &[Source]) -> Result<Vec<Self>> {
        if sources.iter().filter(|s| **s == Source::Stdin).count() > 1 {
            return Err(Error::stdin_twice());
        }
        sources.iter().map(Self::new).collect()
    }

    fn new(source: &Source) -> Result<Self> {
        let name = source.name();
        let body = match source {
            Source::Path(path) => {
                // Opening a FIFO waits for its writer: look before opening.
                let data = std::fs::metadata(path).map_err(|e| Error::read(&name, e))?;
                if data.is_dir() {
                    return Err(Error::directory(&name));
                }
                // Unreadable is better said now than after the first long pass.
                let reading = |e| Error::read(&name, e);
                if data.is_file()
                    && has_true_size(&File::open(path).map_err(reading)?, &data).map_err(reading)?
                {
                    Body::Named { path: path.clone(), mark: Mark::of(&data) }
                } else {
                    let file = LazyFile { path: path.clone(), file: None };
                    Body::Stream(Mutex::new(Some(Box::new(file))))
                }
            }
            Source::Stdin => standard_input().map_err(|e| Error::read(&name, e))?,
        };
        Ok(Self { name, body, skip: 0 })
    }

    /// A stream of these bytes, a few at a time.
    #[cfg(test)]
    pub(crate) fn trickle(bytes: Vec<u8>) -> Self {
        struct Trickle(io::Cursor<Vec<u8>>);
        impl Read for Trickle {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let few = buffer.len().min(1 + self.0.position() as usize % 777);
                self.0.read(&mut buffer[..few])
            }
        }
        impl Wait for Trickle {
            fn ready(&self) -> bool {
                true
            }
        }
        let body = Body::Stream(Mutex::new(Some(Box::new(Trickle(io::Cursor::new(bytes))))));
        Self { name: "trickle".to_owned(), body, skip: 0 }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it can be read again.
    pub(crate) fn is_file(&self) -> bool {
        !matches!(self.body, Body::Stream(_))
    }

    /// Bytes in it, if that can be known beforehand.
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.body {
            Body::Named { mark, .. } => Some(mark.length - self.skip),
            Body::Held { range, .. } => Some(range.end - range.start - self.skip),
            Body::Stream(_) => None,
        }
    }

    /// The rest of it, from a position on.
    pub(crate) fn from(mut self, position: u64) -> Self {
        self.skip += position;
        self
    }

    /// Opens it for a pass. A stream can be opened once.
    pub(crate) fn open(&self) -> Result<Open> {
        match &self.body {
            Body::Named { path, mark } => {
                let reading = |e| Error::read(&self.name, e);
                let file = File::open(path).map_err(reading)?;
                if Mark::of(&file.metadata().map_err(reading)?) != *mark {
                    return Err(Error::changed(&self.name));
                }
                let range = Range { start: self.skip, end: mark.length };
                Ok(Open::File { file: Arc::new(file), range })
            }
            Body::Held { file, range, mark } => {
                let now = || file.metadata().map_err(|e| Error::read(&self.name, e));
                if let Some(mark) = mark
                    && Mark::of(&now()?) != *mark
                {
                    return Err(Error::changed(&self.name));
                }
                let range = Range { start: range.start + self.skip, end: range.end };
                Ok(Open::File { file: Arc::clone(file), range })
            }
            Body::Stream(stream) => {
                let stream = stream.lock().unwrap_or_else(|e| e.into_inner()).take();
                let gone = || Error::read(&self.name, io::Error::other("it was read already"));
                Ok(Open::Stream(stream.ok_or_else(gone)?))
            }
        }
    }

    /// Checks that a named file is still what it was.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.is_file().then(|| self.open()).transpose().map(|_| ())
    }

    /// A file with the same bytes: itself, or a copy of the stream in `temp`.
    pub(crate) fn spool(self, temp: &Temp, progress: &dyn Progress) -> Result<Self> {
        if self.is_file() {
            return Ok(self);
        }
        let Open::Stream(mut stream) = self.open()? else { return Ok(self) };
        progress.note(Note::Spooling { input: &self.name, dir: temp.dir() });
        progress.phase("spooling", None);
        let mut spool = Spool::new(temp)?;
        let mut buffer = vec![0; 256 << 10];
        loop {
            let got = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::read(&self.name, e)),
            };
            spool.append(&buffer[..got])?;
            progress.advance(got as u64);
        }
        Ok(spool.into_input(self.name))
    }
}

/// Whether a file is as long as it says: those of `/proc` claim to be empty and are not.
fn has_true_size(file: &File, data: &Metadata) -> io::Result<bool> {
    Ok(data.len() > 0 || file.read_at(&mut [0], 0)? == 0)
}

/// Standard input: a redirected file can be read by position and again, a pipe cannot.
fn standard_input() -> io::Result<Body> {
    use std::os::fd::AsFd;
    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let data = file.metadata()?;
    if data.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if data.is_file() && has_true_size(&file, &data)? {
        let start = file.stream_position()?.min(data.len());
        let (range, mark) = (Range { start, end: data.len() }, Some(Mark::of(&data)));
        return Ok(Body::Held { file: Arc::new(file), range, mark });
    }
    Ok(Body::Stream(Mutex::new(Some(Box::new(file)))))
}

/// A stream that can be waited for, so that a reader may stop waiting when nobody wants more.
pub(crate) trait Wait: Read {
    /// Whether reading will not block, now or within a moment. Where that cannot be told, yes.
    fn ready(&self) -> bool;
}

/// How long a moment is.
const MOMENT: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl Wait for File {
    fn ready(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        !matches!(poll(&mut fds, Some(&MOMENT)), Ok(0))
    }
}

impl Wait for LazyFile {
    fn ready(&self) -> bool {
        self.file.as_ref().is_none_or(Wait::ready)
    }
}

/// A stream that is opened when it is first read: a FIFO blocks until it has a writer.
struct LazyFile {
    path: PathBuf,
    file: Option<File>,
}

impl Read for LazyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(File::open(&self.path)?);
        }
        self.file.as_mut().expect("opened above").read(buffer)
    }
}

/// Reads exactly `buffer.len()` bytes at a position; a file that became shorter is an error.
pub(crate) fn read_at(file: &File, name: &str, buffer: &mut [u8], at: u64) -> Result<()> {
    file.read_exact_at(buffer, at).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => Error::changed(name),
        _ => Error::read(name, e),
    })
}

/// The directory for temporary files. Files in it have no name from the start where the file
/// system can do that, and lose it at once elsewhere: a kill leaves nothing behind.
#[derive(Clone, Debug)]
pub(crate) struct Temp {
    dir: PathBuf,
}

impl Temp {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn file(&self) -> Result<File> {
        tempfile::tempfile_in(&self.dir).map_err(|e| Error::temp(&self.dir, "making it", e))
    }
}

/// A copy of a stream in the making.
pub(crate) struct Spool {
    file: File,
    length: u64,
    temp: Temp,
}

impl Spool {
    pub(crate) fn new(temp: &Temp) -> Result<Self> {
        Ok(Self { file: temp.file()?, length: 0, temp: temp.clone() })
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let spooling = |e| Error::temp(self.temp.dir(), "copying an input that is no file", e);
        self.file.write_all(bytes).map_err(spooling)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn into_input(self, name: String) -> Input {
        let range = Range { start: 0, end: self.length };
        Input { name, body: Body::Held { file: Arc::new(self.file), range, mark: None }, skip: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_an_error_at_the_next_pass() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, "a\nb\n").unwrap();
        let inputs = Input::look_at(&[Source::from_arg(&path)]).unwrap();
        assert!(inputs[0].open().is_ok() && inputs[0].check_unchanged().is_ok());
        std::fs::write(&path, "a\nb\nc\n").unwrap();
        assert!(inputs[0].open().err().unwrap().to_string().contains("changed"));
        assert!(inputs[0].check_unchanged().unwrap_err().is_input());
    }

    #[test]
    fn an_empty_file_is_a_file_and_one_that_hides_its_size_is_a_stream() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("empty");
        std::fs::write(&path, "").unwrap();
        let sources = [Source::from_arg(&path), Source::from_arg("/proc/self/status")];
        let inputs = Input::look_at(&sources).unwrap();
        assert_eq!(inputs[0].length(), Some(0));
        assert!(!inputs[1].is_file());
        // It is still all there to be read.
        let Open::Stream(mut stream) = inputs[1].open().unwrap() else { panic!("not a stream") };
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("Name:"));
    }

    #[test]
    fn missing_directory_and_double_stdin_are_errors_at_once() {
        let path = Source::from_arg("/no/such/file");
        assert!(Input::look_at(&[path]).err().unwrap().is_input());
        let directory = Input::look_at(&[Source::from_arg("/")]).err().unwrap();
        assert!(directory.to_string().contains("is a directory"));
        assert!(Input::look_at(&[Source::Stdin, Source::Stdin]).is_err());
    }
}
