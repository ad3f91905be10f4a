//! Streams: what is read once, in order, and can be waited for.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use super::codec::{self, Magic};

/// A stream that can be waited for, so that a reader may stop waiting when nobody wants more.
pub(crate) trait Wait: Read {
    /// Whether reading will not block, now or within a moment. Where that cannot be told, yes.
    fn ready(&mut self) -> bool;
}

/// How long a moment is.
pub(super) const MOMENT: std::time::Duration = std::time::Duration::from_millis(50);

impl Wait for File {
    fn ready(&mut self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use rustix::io::Errno;
        let moment = Timespec { tv_sec: 0, tv_nsec: MOMENT.subsec_nanos().into() };
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        // A signal is no data: somebody may want to look what it asks for.
        !matches!(poll(&mut fds, Some(&moment)), Ok(0) | Err(Errno::INTR))
    }
}

/// A stream that is opened when it is first waited for.
///
/// To open a FIFO blocks until it has a writer, and nothing but a signal ends that. So it is opened
/// without blocking and its writer waited for as its bytes are: a FIFO that had no writer since
/// it was opened is not ready; it is when there are bytes, or when a writer has come and gone. From
/// then on its reads block as any others, and 0 bytes are its end.
pub(super) struct LazyFile {
    path: PathBuf,
    file: Option<File>,
    /// Whether its reads may block: there was a byte, or its end.
    begun: bool,
}

impl LazyFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, begun: false }
    }

    /// The file, and whether it has begun: waits a moment for that.
    fn begin(&mut self) -> io::Result<(&mut File, bool)> {
        use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let flags = OFlags::NONBLOCK.bits().cast_signed();
                none.insert(File::options().read(true).custom_flags(flags).open(&self.path)?)
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

impl Wait for LazyFile {
    fn ready(&mut self) -> bool {
        let begun = self.begun;
        match self.begin() {
            Ok((file, true)) if begun => file.ready(),
            Ok((_, ready)) => ready,
            // What is wrong is said by the read.
            Err(_) => true,
        }
    }
}

/// A stream that may turn out to be compressed. It waits for no more bytes than tell it.
pub(super) struct Unpacked {
    /// Memory for a decoder, if it comes to that.
    memory: u64,
    state: State,
}

enum State {
    Unknown(Box<dyn Wait + Send>),
    Known(Box<dyn Wait + Send>),
    /// Only while one turns into the other.
    Gone,
}

impl Unpacked {
    pub(super) fn new(stream: Box<dyn Wait + Send>, memory: u64) -> Self {
        Self { memory, state: State::Unknown(stream) }
    }
}

impl Read for Unpacked {
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
                    Ok(0) => break None,
                    Ok(_) => begin.push(byte[0]),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            };
            let whole = Chained { begin: io::Cursor::new(begin), rest: stream };
            self.state = State::Known(match codec {
                Some(codec) => Box::new(codec::decode(codec, whole, self.memory)?),
                None => Box::new(whole),
            });
        }
        match &mut self.state {
            State::Known(stream) => stream.read(buffer),
            _ => Ok(0),
        }
    }
}

impl Wait for Unpacked {
    fn ready(&mut self) -> bool {
        match &mut self.state {
            State::Unknown(stream) | State::Known(stream) => stream.ready(),
            State::Gone => true,
        }
    }
}

/// The bytes that were looked at, then the rest.
struct Chained {
    begin: io::Cursor<Vec<u8>>,
    rest: Box<dyn Wait + Send>,
}

impl Chained {
    fn begins(&self) -> bool {
        self.begin.position() < self.begin.get_ref().len() as u64
    }
}

impl Read for Chained {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.begins() { self.begin.read(buffer) } else { self.rest.read(buffer) }
    }
}

impl Wait for Chained {
    fn ready(&mut self) -> bool {
        self.begins() || self.rest.ready()
    }
}
