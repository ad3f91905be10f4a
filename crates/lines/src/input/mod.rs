//! Inputs: files that can be read again, and streams that cannot.
//!
//! | kind | what it is | passes | reading |
//! |---|---|---|---|
//! | file | a regular file, or one kept open (redirected standard input, a spooled stream) | any | by position, from many threads |
//! | packed | such a file, compressed with gzip or zstd | any | in order, decompressed again for each pass |
//! | stream | anything else: pipe, FIFO, terminal, a `/proc` file that claims no size; packed or not | one | in order |
//!
//! An input may be a *portion* of a file: the lines that start in a range of its bytes. The last of
//! them may end behind it; one that began before is not among them. Positions are counted from
//! where the portion begins.
//!
//! An input is the bytes that its file had when it was opened. Bytes that change underneath a job
//! are an error and not a wrong answer; see [`identity`]. [`Input::spool`] makes a file of a
//! stream.
//!
//! The first bytes of an input are checked: what is certainly not lines is an error.

mod codec;
mod content;
mod identity;
mod stream;
mod temp;

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::progress::{Note, Progress};
use codec::{Codec, Magic};
use content::Checked;
use identity::{Moment, StreamSum};
use stream::{LazyFile, Unpacked};

pub(crate) use codec::memory as decoder_memory;
pub(crate) use content::Contents;
pub(crate) use identity::{BlockSum, Checksum, Identity, Mark};
pub(crate) use stream::Wait;
pub(crate) use temp::{Spool, Temp};

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

    /// Whether it is this file, by whatever name: an output that is also an input would be gone
    /// before it is read.
    #[must_use]
    pub fn is(&self, file: &Metadata) -> bool {
        let own = match self {
            Self::Path(path) => std::fs::metadata(path),
            Self::Stdin => {
                let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
                stdin.and_then(|stdin| stdin.metadata())
            }
        };
        own.is_ok_and(|own| (own.dev(), own.ino()) == (file.dev(), file.ino()))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("-"),
        }
    }
}

/// An input, looked at but not yet read.
pub(crate) struct Input {
    name: String,
    body: Body,
    /// Where its lines start; of packed files and streams only the beginning counts.
    portion: Range,
    /// How many bytes a packed file holds, once a pass has come to its end.
    unpacked: AtomicU64,
    /// What the inputs of the job contain.
    contents: Arc<Contents>,
}

enum Body {
    /// A regular file, of which the first `length` bytes count. Without a descriptor it is opened
    /// anew for each pass.
    Named {
        path: PathBuf,
        file: Option<Arc<File>>,
        length: u64,
        identity: Arc<Identity>,
        codec: Option<Codec>,
    },
    /// Redirected standard input, or a spooled stream.
    Held { file: Arc<File>, range: Range, identity: Option<Arc<Identity>>, codec: Option<Codec> },
    /// Read once; `None` when that has happened.
    Stream(Mutex<Option<Box<dyn Wait + Send>>>),
}

/// Which bytes of a file are the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A file, which bytes of it count, and what it is recognised by.
type WholeFile<'a> = (Arc<File>, Range, Option<&'a Arc<Identity>>);

/// What a file shows of a change on every machine that sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes in it.
    pub length: u64,
    /// When they were changed: seconds and nanoseconds since 1970.
    pub changed: (i64, i64),
}

/// An input opened for one pass.
pub(crate) enum Open {
    /// The bytes in which its lines start, and all that may be read to find and to finish them.
    File {
        file: Arc<File>,
        range: Range,
        whole: Range,
    },
    Stream(Box<dyn Wait + Send>),
}

/// Of [`Input::unpacked`]: not known yet.
const UNKNOWN: u64 = u64::MAX;

impl Input {
    /// Looks at every input; a missing file, a directory or a second `-` is an error now, and so is
    /// a file whose `contents` are not lines.
    /// A stream that turns out to be compressed may take `memory` bytes to decompress.
    pub(crate) fn open_all(
        sources: &[Source],
        memory: u64,
        contents: &Arc<Contents>,
    ) -> Result<Vec<Self>> {
        if sources.iter().filter(|s| **s == Source::Stdin).count() > 1 {
            return Err(Error::stdin_twice());
        }
        let input = |(number, source)| Self::new(source, memory, contents, number < MOST_OPEN);
        sources.iter().enumerate().map(input).collect()
    }

    /// The same, whatever the inputs contain.
    #[cfg(test)]
    pub(crate) fn look_at(sources: &[Source], memory: u64) -> Result<Vec<Self>> {
        Self::open_all(sources, memory, &Arc::new(Contents::new(b'\n', true)))
    }

    /// `keep`: whether a file is kept open.
    fn new(source: &Source, memory: u64, contents: &Arc<Contents>, keep: bool) -> Result<Self> {
        let name = source.to_string();
        let opening = Opening { name: &name, memory, contents };
        let body = match source {
            Source::Path(path) => {
                // Opening a FIFO waits for its writer: look before opening.
                let data = std::fs::metadata(path).map_err(|e| Error::read(&name, e))?;
                if data.is_dir() {
                    return Err(Error::directory(&name));
                }
                opening.path(path, &data, keep).map_err(|e| Error::read(&name, e))?
            }
            Source::Stdin => opening.stdin().map_err(|e| Error::read(&name, e))?,
        };
        Ok(Self::of_body(name, body, Arc::clone(contents)))
    }

    fn of_body(name: String, body: Body, contents: Arc<Contents>) -> Self {
        let portion = Range { start: 0, end: u64::MAX };
        Self { name, body, portion, unpacked: AtomicU64::new(UNKNOWN), contents }
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
            fn ready(&mut self) -> bool {
                true
            }
        }
        let contents = Arc::new(Contents::new(b'\n', true));
        let opening = Opening { name: "trickle", memory: 1 << 20, contents: &contents };
        let body = opening.stream(Trickle(io::Cursor::new(bytes)));
        Self::of_body("trickle".to_owned(), body, contents)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the inputs of the job contain.
    pub(crate) fn contents(&self) -> &Arc<Contents> {
        &self.contents
    }

    fn codec(&self) -> Option<Codec> {
        match self.body {
            Body::Named { codec, .. } | Body::Held { codec, .. } => codec,
            Body::Stream(_) => None,
        }
    }

    /// What it is recognised by; `None` of what cannot be read again, and of copies.
    pub(crate) fn identity(&self) -> Option<&Arc<Identity>> {
        match &self.body {
            Body::Named { identity, .. } => Some(identity),
            Body::Held { identity, .. } => identity.as_ref(),
            Body::Stream(_) => None,
        }
    }

    /// Which bytes of its file are the input; `None` of a stream. Redirected standard input begins
    /// at the offset of its descriptor.
    pub(crate) fn range(&self) -> Option<Range> {
        match &self.body {
            Body::Named { length, .. } => Some(Range { start: 0, end: *length }),
            Body::Held { range, .. } => Some(*range),
            Body::Stream(_) => None,
        }
    }

    /// Goes on with an input of an earlier run, which had this metadata, these bytes of the file
    /// and this checksum; `false` if its bytes have changed since.
    pub(crate) fn resume(
        &mut self,
        then: Mark,
        old: Range,
        checksum: Option<Checksum>,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let (file, range, identity) = self.whole_file()?;
        let Some(identity) = identity else { return Ok(false) };
        if old.start != range.start || old.start > old.end || old.end > range.end {
            return Ok(false);
        }
        let same = identity.resume(&file, old, then, checksum, progress)?;
        match &mut self.body {
            Body::Named { length, .. } if same => *length = old.end,
            Body::Held { range, .. } if same => *range = old,
            _ => {}
        }
        Ok(same)
    }

    /// Whether it can be read by position.
    pub(crate) fn is_file(&self) -> bool {
        self.is_repeatable() && self.codec().is_none()
    }

    /// Whether it can be read again.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self.body, Body::Stream(_))
    }

    /// Whether reading it may take the memory of a decoder.
    pub(crate) fn may_be_packed(&self) -> bool {
        !self.is_file()
    }

    /// Bytes of lines in it, as far as that is known: of a packed file not before it was read.
    pub(crate) fn length(&self) -> Option<u64> {
        let whole = match &self.body {
            Body::Stream(_) => None,
            _ if self.codec().is_some() => {
                Some(self.unpacked.load(Ordering::Relaxed)).filter(|length| *length != UNKNOWN)
            }
            Body::Named { length, .. } => Some(*length),
            Body::Held { range, .. } => Some(range.end - range.start),
        };
        whole.map(|whole| whole.min(self.portion.end).saturating_sub(self.portion.start))
    }

    /// Of a file, how many bytes it has, and whether it can be read only as a whole.
    pub(crate) fn file_length(&self) -> Option<(u64, bool)> {
        match &self.body {
            Body::Named { length, codec, .. } => Some((*length, codec.is_some())),
            Body::Held { .. } | Body::Stream(_) => None,
        }
    }

    /// Of a file, what other machines see of it too.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        match &self.body {
            Body::Named { length, identity, .. } => {
                Some(Stamp { length: *length, changed: identity.opened().changed[0] })
            }
            Body::Held { .. } | Body::Stream(_) => None,
        }
    }

    /// The length, where it must be known: of a packed file, after the pass that found it out.
    pub(crate) fn known_length(&self) -> Result<u64> {
        let unknown = || Error::read(&self.name, io::Error::other("its length is not known"));
        self.length().ok_or_else(unknown)
    }

    /// A pass came to its end and has seen so many bytes.
    pub(crate) fn has_length(&self, bytes: u64) {
        self.unpacked.store(self.portion.start + bytes, Ordering::Relaxed);
    }

    /// Shows the first `most` bytes of a packed file, block by block. An estimate of how many there
    /// are in all; `None` of other inputs. A decoder may take `memory` bytes.
    pub(crate) fn unpacked_sample(
        &self,
        most: u64,
        memory: u64,
        mut show: impl FnMut(&[u8]),
    ) -> Result<Option<u64>> {
        let Some(codec) = self.codec() else { return Ok(None) };
        let (file, range) = self.file(Moment::Before, &())?;
        let packed = Section { file, at: range.start, end: range.end, sum: None };
        let mut checked = None;
        let show = |block: &[u8]| {
            checked.get_or_insert_with(|| self.contents.check(&self.name, block));
            show(block);
        };
        let (went, took) = codec::sample(codec, packed, most, memory, show)
            .map_err(|error| Error::read(&self.name, error))?;
        checked.unwrap_or(Ok(()))?;
        if went < most {
            return Ok(Some(went));
        }
        let share = took.max(1) as f64 / (range.end - range.start).max(1) as f64;
        Ok(Some((went as f64 / share) as u64))
    }

    /// The rest of it, from a position on.
    pub(crate) fn from(mut self, position: u64) -> Self {
        self.portion.start += position;
        // The checksum of all of it is none of the rest.
        if self.codec().is_none() {
            self.identity().into_iter().for_each(|identity| identity.set_checksum(None));
        }
        self
    }

    /// The lines that start in a range of the bytes of a file; of a packed file, all or nothing.
    pub(crate) fn portion(mut self, range: Range) -> Result<Self> {
        let bad = |problem| Err(Error::range(&self.name, range.start, range.end, problem));
        let length = match &self.body {
            Body::Named { length, .. } => *length,
            _ => return bad("it is no file that can be read again; save it to one first"),
        };
        if range.start > range.end || range.end > length {
            return bad("the file is shorter; it has changed, or the range is of another one");
        }
        if self.codec().is_none() {
            self.portion = range;
        } else if (range.start, range.end) != (0, length) {
            return bad("a packed file cannot be divided; take all of it as one range");
        }
        Ok(self)
    }

    /// Where a position in it is in the file.
    pub(crate) fn byte(&self, position: u64) -> u64 {
        self.portion.start + position
    }

    /// The file behind it, which bytes of it count, and what it is recognised by.
    fn whole_file(&self) -> Result<WholeFile<'_>> {
        let reading = |e| Error::read(&self.name, e);
        match &self.body {
            Body::Named { path, file, length, identity, .. } => {
                let file = match file {
                    Some(file) => Arc::clone(file),
                    None => Arc::new(File::open(path).map_err(reading)?),
                };
                Ok((file, Range { start: 0, end: *length }, Some(identity)))
            }
            Body::Held { file, range, identity, .. } => {
                Ok((Arc::clone(file), *range, identity.as_ref()))
            }
            Body::Stream(_) => Err(reading(io::Error::other("it is no file"))),
        }
    }

    /// The same, if the bytes are those that there were at the opening.
    fn file(&self, moment: Moment, progress: &dyn Progress) -> Result<(Arc<File>, Range)> {
        let (file, range, identity) = self.whole_file()?;
        if let Some(identity) = identity {
            if self.portion.end == u64::MAX {
                let read = self.read_range(range);
                identity.check(&self.name, &file, range.start, read, moment, progress)?;
            } else {
                identity.check_strictly(&self.name, &file)?;
            }
        }
        Ok((file, range))
    }

    /// Which bytes of the file a pass reads.
    fn read_range(&self, range: Range) -> Range {
        if self.codec().is_some() {
            return range;
        }
        let at = |byte: u64| range.start.saturating_add(byte).min(range.end);
        Range { start: at(self.portion.start), end: at(self.portion.end) }
    }

    /// For the hashes of the blocks that a pass reads; `None` if they are known, or not needed.
    pub(crate) fn block_sum(&self, size: usize) -> Option<BlockSum> {
        let unknown = self.is_file() && self.portion.end == u64::MAX;
        let identity = self.identity().filter(|_| unknown)?;
        identity.checksum().is_none().then(|| BlockSum::new(size as u64))
    }

    /// A pass came to its end and has hashed these blocks.
    pub(crate) fn keep_block_sum(&self, blocks: &BlockSum) {
        let checksum = self.length().and_then(|length| blocks.finish(length));
        if let (Some(identity), Some(_)) = (self.identity(), checksum) {
            identity.set_checksum(checksum);
        }
    }

    /// Opens it for a pass. A stream can be opened once. A decoder may take `memory` bytes.
    pub(crate) fn open(&self, memory: u64, progress: &dyn Progress) -> Result<Open> {
        let reading = |e| Error::read(&self.name, e);
        if let Body::Stream(stream) = &self.body {
            let stream = stream.lock().unwrap_or_else(|e| e.into_inner()).take();
            let gone = || reading(io::Error::other("it was read already"));
            return Ok(Open::Stream(stream.ok_or_else(gone)?));
        }
        let (file, range) = self.file(Moment::Before, progress)?;
        let Some(codec) = self.codec() else {
            return Ok(Open::File { file, range: self.read_range(range), whole: range });
        };
        let sum = StreamSum::of(self.identity().filter(|_| self.portion.end == u64::MAX));
        let packed = Section { file, at: range.start, end: range.end, sum };
        let stream = codec::decode(codec, packed, memory).map_err(reading)?;
        let stream = Checked::new(stream, &self.name, &self.contents);
        Ok(Open::Stream(Box::new(Skipping { stream, left: self.portion.start })))
    }

    /// Checks that the bytes of a file are what they were.
    pub(crate) fn check_unchanged(&self, progress: &dyn Progress) -> Result<()> {
        self.is_repeatable().then(|| self.file(Moment::After, progress)).transpose().map(|_| ())
    }

    /// Something that can be read again with the same bytes: itself, or a copy of the stream in
    /// `temp`.
    pub(crate) fn spool(self, temp: &Temp, progress: &dyn Progress) -> Result<Self> {
        if self.is_repeatable() {
            return Ok(self);
        }
        let Open::Stream(mut stream) = self.open(0, progress)? else { return Ok(self) };
        progress.note(Note::Spooling { input: &self.name, dir: temp.dir() });
        progress.phase("spooling", None);
        let mut spool = Spool::new(temp)?;
        let mut buffer = vec![0; 256 << 10];
        loop {
            while !stream.ready() {
                if progress.cancelled() {
                    return Err(Error::cancelled());
                }
            }
            let got = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::read(&self.name, e)),
            };
            spool.append(&buffer[..got])?;
            progress.advance(got as u64);
        }
        self.contents.note(progress);
        Ok(Self::of_spool(spool, self.name, self.contents))
    }

    /// A spooled copy in place of what it is a copy of.
    pub(crate) fn of_spool(spool: Spool, name: String, contents: Arc<Contents>) -> Self {
        let (file, length) = spool.finish();
        let range = Range { start: 0, end: length };
        let body = Body::Held { file: Arc::new(file), range, identity: None, codec: None };
        Self::of_body(name, body, contents)
    }
}

/// How an input is opened.
struct Opening<'a> {
    name: &'a str,
    /// Memory for a decoder.
    memory: u64,
    contents: &'a Arc<Contents>,
}

impl Opening<'_> {
    fn path(&self, path: &Path, data: &Metadata, keep: bool) -> io::Result<Body> {
        if data.is_file() {
            // Unreadable is better said now than after the first long pass.
            let file = File::open(path)?;
            // What has the name now, should another file have got it.
            let data = file.metadata()?;
            if has_true_size(&file, &data)? {
                let (codec, identity) = self.look(&file, 0, &data)?;
                let file = keep.then(|| Arc::new(file));
                let (path, length) = (path.to_owned(), data.len());
                return Ok(Body::Named { path, file, length, identity, codec });
            }
        }
        Ok(self.stream(LazyFile::new(path.to_owned())))
    }

    /// Standard input: a redirected file can be read by position and again, a pipe cannot.
    fn stdin(&self) -> io::Result<Body> {
        use std::os::fd::AsFd;
        let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let data = file.metadata()?;
        if data.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if data.is_file() && has_true_size(&file, &data)? {
            let start = file.stream_position()?.min(data.len());
            let range = Range { start, end: data.len() };
            let (codec, identity) = self.look(&file, start, &data)?;
            let (file, identity) = (Arc::new(file), Some(identity));
            return Ok(Body::Held { file, range, identity, codec });
        }
        Ok(self.stream(file))
    }

    fn stream(&self, stream: impl Wait + Send + 'static) -> Body {
        let unpacked = Unpacked::new(Box::new(stream), self.memory);
        Body::Stream(Mutex::new(Some(Box::new(Checked::new(unpacked, self.name, self.contents)))))
    }

    /// How a file is compressed, and what it is recognised by. If it is not compressed, its first
    /// bytes are checked.
    fn look(
        &self,
        file: &File,
        start: u64,
        data: &Metadata,
    ) -> io::Result<(Option<Codec>, Arc<Identity>)> {
        let mut begin = vec![0; (data.len() - start).min(FILE_WINDOW) as usize];
        let got = file.read_at(&mut begin, start)?;
        begin.truncate(got);
        let codec = match Magic::of(&begin) {
            Magic::Is(codec) => Some(codec),
            Magic::No | Magic::Maybe => {
                self.contents.check(self.name, &begin).map_err(io::Error::other)?;
                None
            }
        };
        Ok((codec, Identity::new(Mark::of(data), &begin)))
    }
}

/// Files that a job keeps open, so that they can be renamed. Others are opened by name for each
/// pass.
const MOST_OPEN: usize = 64;

/// Bytes of a file that are looked at.
const FILE_WINDOW: u64 = 64 << 10;

/// Whether a file is as long as it says: those of `/proc` claim to be empty and are not.
fn has_true_size(file: &File, data: &Metadata) -> io::Result<bool> {
    Ok(data.len() > 0 || file.read_at(&mut [0], 0)? == 0)
}

/// Bytes of a file in order, whatever others do with it.
struct Section {
    file: Arc<File>,
    at: u64,
    end: u64,
    /// The checksum of the bytes, if it is wanted.
    sum: Option<StreamSum>,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (self.end - self.at).min(buffer.len() as u64) as usize;
        let got = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += got as u64;
        if let Some(sum) = &mut self.sum {
            sum.add(&buffer[..got]);
        }
        if self.at == self.end {
            self.sum.take().into_iter().for_each(StreamSum::finish);
        }
        Ok(got)
    }
}

/// A stream without its first bytes.
struct Skipping<S> {
    stream: S,
    left: u64,
}

impl<S: Read> Read for Skipping<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left > 0 {
            let most = self.left.min(buffer.len() as u64) as usize;
            match self.stream.read(&mut buffer[..most])? {
                0 => return Ok(0),
                got => self.left -= got as u64,
            }
        }
        self.stream.read(buffer)
    }
}

impl<S: Wait> Wait for Skipping<S> {
    fn ready(&mut self) -> bool {
        self.stream.ready()
    }
}

/// Reads exactly `buffer.len()` bytes at a position; a file that became shorter is an error.
pub(crate) fn read_at(file: &File, name: &str, buffer: &mut [u8], at: u64) -> Result<()> {
    file.read_exact_at(buffer, at).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::changed(name, "it is shorter than it was when it was opened")
        }
        _ => Error::read(name, e),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_an_error_at_the_next_pass() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, "a\nb\n").unwrap();
        let inputs = Input::look_at(&[Source::from_arg(&path)], 0).unwrap();
        assert!(inputs[0].open(0, &()).is_ok() && inputs[0].check_unchanged(&()).is_ok());
        // The same bytes and more.
        std::fs::write(&path, "a\nb\nc\n").unwrap();
        assert!(inputs[0].open(0, &()).is_ok() && inputs[0].check_unchanged(&()).is_ok());
        for text in ["a\nc\n", "a\n", "a\nc\nd\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(inputs[0].open(0, &()).err().unwrap().to_string().contains("changed"));
            assert!(inputs[0].check_unchanged(&()).unwrap_err().is_input());
        }
    }

    #[test]
    fn an_empty_file_is_a_file_and_one_that_hides_its_size_is_a_stream() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("empty");
        std::fs::write(&path, "").unwrap();
        let sources = [Source::from_arg(&path), Source::from_arg("/proc/self/status")];
        let inputs = Input::look_at(&sources, 0).unwrap();
        assert_eq!(inputs[0].length(), Some(0));
        assert!(!inputs[1].is_file());
        // It is still all there to be read.
        let Open::Stream(mut stream) = inputs[1].open(0, &()).unwrap() else {
            panic!("not a stream")
        };
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("Name:"));
    }

    #[test]
    fn a_fifo_is_waited_for_until_a_writer_came_and_went() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        for text in ["", "a\nb\n"] {
            let input = Input::look_at(&[Source::from_arg(&path)], 1 << 20).unwrap().remove(0);
            let Open::Stream(mut stream) = input.open(0, &()).unwrap() else {
                panic!("not a stream")
            };
            assert!(!stream.ready() && !stream.ready(), "nobody has written");
            let mut writer = File::options().write(true).open(&path).unwrap();
            assert!(!stream.ready(), "a writer without a byte");
            std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
            drop(writer);
            assert!(stream.ready());
            let mut read = String::new();
            stream.read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
        // A read waits as well.
        let input = Input::look_at(&[Source::from_arg(&path)], 1 << 20).unwrap().remove(0);
        let Open::Stream(mut stream) = input.open(0, &()).unwrap() else { panic!("not a stream") };
        let writer = std::thread::spawn(move || {
            std::thread::sleep(3 * stream::MOMENT);
            std::fs::write(path, "late")
        });
        let mut read = String::new();
        stream.read_to_string(&mut read).unwrap();
        assert_eq!(read, "late");
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn missing_directory_and_double_stdin_are_errors_at_once() {
        let path = Source::from_arg("/no/such/file");
        assert!(Input::look_at(&[path], 0).err().unwrap().is_input());
        let directory = Input::look_at(&[Source::from_arg("/")], 0).err().unwrap();
        assert!(directory.to_string().contains("is a directory"));
        assert!(Input::look_at(&[Source::Stdin, Source::Stdin], 0).is_err());
    }
}
