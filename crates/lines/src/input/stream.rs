//! Streams that are opened late, and streams that may be compressed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::compression::{self, Magic};
use super::content_check::{Checked, ContentChecks};
use crate::poll_read::{PollRead, enlarge_pipe};

/// A file that is opened at the first wait or read.
///
/// Opening a FIFO blocks until it has a writer, and only a signal can interrupt that. The file is
/// therefore opened without blocking and polled. A FIFO is ready when it has bytes, or when a writer
/// has opened and closed it. From then on reads block, and 0 bytes mean the end.
pub(super) struct LazyFile {
    path: PathBuf,
    file: Option<File>,
    /// Whether reads may block: the first byte or the end has arrived.
    begun: bool,
}

impl LazyFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, begun: false }
    }

    /// Opens the file if necessary, and waits for at most the poll timeout for its first byte.
    fn begin(&mut self) -> io::Result<(&mut File, bool)> {
        use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let flags = OFlags::NONBLOCK.bits().cast_signed();
                let file = File::options().read(true).custom_flags(flags).open(&self.path)?;
                enlarge_pipe(&file);
                none.insert(file)
            }
        };
        if !self.begun && file.ready() {
            fcntl_setfl(&*file, fcntl_getfl(&*file)? - OFlags::NONBLOCK)?;
            self.begun = true;
        }
        Ok((file, self.begun))
    }
}

impl Read for LazyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let (file, true) = self.begin()? {
                return file.read(buffer);
            }
        }
    }
}

impl PollRead for LazyFile {
    fn ready(&mut self) -> bool {
        let begun = self.begun;
        match self.begin() {
            Ok((file, true)) if begun => file.ready(),
            Ok((_, ready)) => ready,
            // The next read returns the error.
            Err(_) => true,
        }
    }
}

/// A stream that is decompressed if it is compressed, and whose first bytes are then checked. Detection
/// reads no more bytes than necessary.
pub(super) struct MaybeCompressed {
    name: String,
    checks: Arc<ContentChecks>,
    /// Memory for a decoder.
    memory: u64,
    state: State,
}

enum State {
    Unknown(Box<dyn PollRead + Send>),
    Known(Box<dyn PollRead + Send>),
    /// Placeholder during detection, and after an error.
    Gone,
}

impl MaybeCompressed {
    pub(super) fn new(
        stream: Box<dyn PollRead + Send>,
        name: &str,
        checks: Arc<ContentChecks>,
        memory: u64,
    ) -> Self {
        Self { name: name.to_owned(), checks, memory, state: State::Unknown(stream) }
    }
}

impl Read for MaybeCompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let State::Known(stream) = &mut self.state {
            return stream.read(buffer);
        }
        if let State::Unknown(mut stream) = std::mem::replace(&mut self.state, State::Gone) {
            let mut begin = Vec::new();
            let codec = loop {
                match Magic::of(&begin) {
                    Magic::No => break None,
                    Magic::Is(codec) => break Some(codec),
                    Magic::Maybe => {}
                }
                let mut byte = [0];
                match stream.read(&mut byte) {
                    Ok(0) => {
                        break match Magic::of_whole(&begin) {
                            Magic::Is(codec) => Some(codec),
                            _ => None,
                        };
                    }
                    Ok(_) => begin.push(byte[0]),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            };
            let whole = Chained::new(begin, stream);
            self.state = State::Known(match codec {
                Some(codec) => {
                    let unpacked = compression::decode(codec, whole, self.memory)?;
                    let checked = Checked::new(unpacked, &self.name, &self.checks);
                    Box::new(checked.within(Some(codec)))
                }
                None => Box::new(Checked::new(whole, &self.name, &self.checks)),
            });
        }
        match &mut self.state {
            State::Known(stream) => stream.read(buffer),
            _ => Ok(0),
        }
    }
}

impl PollRead for MaybeCompressed {
    fn ready(&mut self) -> bool {
        match &mut self.state {
            State::Unknown(stream) | State::Known(stream) => stream.ready(),
            State::Gone => true,
        }
    }
}

/// Bytes that were read before, followed by the rest of the stream.
pub(super) struct Chained {
    begin: io::Cursor<Vec<u8>>,
    rest: Box<dyn PollRead + Send>,
}

impl Chained {
    pub(super) fn new(begin: Vec<u8>, rest: Box<dyn PollRead + Send>) -> Self {
        Self { begin: io::Cursor::new(begin), rest }
    }

    fn begins(&self) -> bool {
        self.begin.position() < self.begin.get_ref().len() as u64
    }
}

impl Read for Chained {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.begins() { self.begin.read(buffer) } else { self.rest.read(buffer) }
    }
}

impl PollRead for Chained {
    fn ready(&mut self) -> bool {
        self.begins() || self.rest.ready()
    }
}
