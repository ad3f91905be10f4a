//! Opening of inputs: files, compressed files, standard input, objects, streams, and files that grow.

use std::fs::{File, Metadata};
use std::io::{self, Seek};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::Input;
use super::compression::{Codec, Magic, memory_limit};
use super::content_check::{Checked, ContentChecks};
use super::follow::FollowedFiles;
use super::source::Source;
use super::stream::{LazyFile, MaybeCompressed};
use crate::error::{Error, Result};
use crate::files::atomic_file::open_descriptor;
use crate::files::{ByteRange, FileIdentity, FileStat, InputFile, check_readable};
use crate::keys::KeySpec;
use crate::poll_read::{PollRead, enlarge_pipe};
use crate::remote::{self, Blocking, ObjectUrl, Opened};
use crate::tables::TableKind;

/// How an input is read.
pub(super) enum InputKind {
    /// A regular file, of which the first `length` bytes are the input. Opened for each pass unless
    /// `file` keeps it open.
    Named {
        path: PathBuf,
        file: Option<Arc<File>>,
        length: u64,
        identity: Arc<FileIdentity>,
        codec: Option<Codec>,
        table: Option<TableKind>,
    },
    /// Redirected standard input, a spooled stream or an object.
    OpenFile {
        file: InputFile,
        range: ByteRange,
        identity: Option<Arc<FileIdentity>>,
        codec: Option<Codec>,
        table: Option<TableKind>,
    },
    /// Can be read once; `None` after that.
    Stream(Mutex<Option<Box<dyn PollRead + Send>>>),
}

/// Number of files that a job keeps open, so that they can be renamed. Others are opened by name
/// for each pass.
const MAX_OPEN: usize = 64;

/// Opens and checks inputs. A missing file, a directory, a stream that is named twice and a
/// file whose first bytes are certainly not lines (see the `checks` of each) are errors. A compressed stream may use
/// `memory` bytes.
pub(crate) fn open_all(
    sources: &[Source],
    memory: u64,
    checks: impl Fn(usize) -> Arc<ContentChecks>,
) -> Result<Vec<Input>> {
    Source::check_streams(sources)?;
    let input = |(number, source)| open_input(source, memory, &checks(number), number < MAX_OPEN);
    sources.iter().enumerate().map(input).collect()
}

/// Opens files that grow, whose records have these keys, as one input that never ends.
pub(crate) fn open_followed(
    sources: &[Source],
    checks: &Arc<ContentChecks>,
    keys: &KeySpec,
) -> Result<Input> {
    let name = match sources {
        [first, _, _, _, ..] => format!("{first} and {} others", sources.len() - 1),
        few => few.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let paths = sources.iter().map(followed_path);
    let paths = paths.collect::<Result<Vec<_>>>()?;
    let files = FollowedFiles::open(&paths, keys, checks.delimiter())?;
    let stream = Box::new(Checked::new(files, &name, checks).followed());
    let kind = InputKind::Stream(Mutex::new(Some(stream)));
    Ok(Input::new(name, kind, Arc::clone(checks)))
}

/// Returns the path of a file that can be followed.
fn followed_path(source: &Source) -> Result<PathBuf> {
    let unfit = |problem| Err(Error::read(&source.to_string(), io::Error::other(problem)));
    match source {
        Source::Path(path) => Ok(path.clone()),
        Source::Stdin => unfit("standard input cannot be followed; name a file"),
        Source::Object(_) => unfit("an object does not grow; only files can be followed"),
        Source::Counted(_) => unfit("lists of counts cannot be followed; only files of lines can"),
        Source::Keyed(place, _) => followed_path(place),
    }
}

/// Opens an input; `keep`: keep the file open.
fn open_input(
    source: &Source,
    memory: u64,
    checks: &Arc<ContentChecks>,
    keep: bool,
) -> Result<Input> {
    let name = source.place().to_string();
    let opener = InputOpener { name: &name, memory, checks };
    let kind = opener.open(source, keep).map_err(|error| match error.kind() {
        // The whole name may have been meant.
        io::ErrorKind::NotFound => Error::read(&source.to_string(), error),
        _ => Error::read(&name, error),
    })?;
    Ok(Input::new(name, kind, Arc::clone(checks)))
}

/// A stream that returns these bytes in small pieces.
#[cfg(test)]
pub(crate) fn trickle(bytes: Vec<u8>) -> Input {
    struct Trickle(io::Cursor<Vec<u8>>);
    impl io::Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let few = buffer.len().min(1 + self.0.position() as usize % 777);
            self.0.read(&mut buffer[..few])
        }
    }
    impl PollRead for Trickle {
        fn ready(&mut self) -> bool {
            true
        }
    }
    let checks = Arc::new(ContentChecks::new(b'\n', true));
    let opener = InputOpener { name: "trickle", memory: 1 << 20, checks: &checks };
    let kind = opener.stream(Trickle(io::Cursor::new(bytes)));
    Input::new("trickle".to_owned(), kind, checks)
}

/// Opens an input.
struct InputOpener<'a> {
    name: &'a str,
    /// Memory for a decoder.
    memory: u64,
    checks: &'a Arc<ContentChecks>,
}

impl InputOpener<'_> {
    /// Opens a source; `keep`: keep the file open.
    fn open(&self, source: &Source, keep: bool) -> io::Result<InputKind> {
        match source {
            Source::Path(path) => {
                // Opening a FIFO waits for a writer, so check the type first.
                let data = std::fs::metadata(path)?;
                if data.is_dir() {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                self.path(path, &data, keep)
            }
            Source::Stdin => self.stdin(),
            Source::Object(url) => self.object(url),
            Source::Counted(lists) => {
                let keys = lists.open(self.memory, self.checks).map_err(io::Error::other)?;
                Ok(InputKind::Stream(Mutex::new(Some(Box::new(keys)))))
            }
            Source::Keyed(place, _) => self.open(place, keep),
        }
    }

    fn path(&self, path: &Path, data: &Metadata, keep: bool) -> io::Result<InputKind> {
        if data.is_file() {
            // Report an unreadable file now, not after the first long pass.
            let file = File::open(path)?;
            // The metadata of the open file: the path may name another file by now.
            let data = file.metadata()?;
            if has_true_size(&file, 0, &data)? {
                let (codec, table, identity) = self.inspect(&file, 0, &data)?;
                let file = keep.then(|| Arc::new(file));
                let (path, length) = (path.to_owned(), data.len());
                return Ok(InputKind::Named { path, file, length, identity, codec, table });
            }
        } else if let Some(file) = open_descriptor(path)? {
            check_readable(&file)?;
        }
        Ok(self.stream(LazyFile::new(path.to_owned())))
    }

    /// Opens standard input: as a file if it is redirected from one, otherwise as a stream.
    ///
    /// A file is consumed: another program with the same descriptor, such as the next one in a group of
    /// the shell, continues after the bytes that are the input.
    fn stdin(&self) -> io::Result<InputKind> {
        use std::os::fd::AsFd;
        let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        check_readable(&file)?;
        let data = file.metadata()?;
        if data.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if data.is_file() {
            let begin = file.stream_position()?;
            let start = self.checks.start_of(self.name, begin).min(data.len());
            if has_true_size(&file, start, &data)? {
                file.seek(io::SeekFrom::Start(data.len().max(begin)))?;
                let range = ByteRange { start, end: data.len() };
                let (codec, table, identity) = self.inspect(&file, start, &data)?;
                let (file, identity) = (file.into(), Some(identity));
                return Ok(InputKind::OpenFile { file, range, identity, codec, table });
            }
        }
        enlarge_pipe(&file);
        Ok(self.stream(file))
    }

    /// Opens an object: by position if the server knows ranges and versions, otherwise as a stream.
    fn object(&self, url: &ObjectUrl) -> io::Result<InputKind> {
        match remote::open(url, remote::window(memory_limit(self.memory)))? {
            Opened::Object { object, begin } => {
                // Tables are read from files only.
                let codec = self.codec(&begin)?;
                let range = ByteRange { start: 0, end: object.length() };
                let file = InputFile::Object(Arc::new(object));
                let identity = Some(FileIdentity::new(file.stat()?, &begin));
                Ok(InputKind::OpenFile { file, range, identity, codec, table: None })
            }
            Opened::Stream(stream) => Ok(self.stream(Blocking(stream))),
        }
    }

    fn stream(&self, stream: impl PollRead + Send + 'static) -> InputKind {
        let checks = Arc::clone(self.checks);
        let stream = MaybeCompressed::new(Box::new(stream), self.name, checks, self.memory);
        InputKind::Stream(Mutex::new(Some(Box::new(stream))))
    }

    /// Detects the compression, the format of a table, and the identity of a file.
    fn inspect(
        &self,
        file: &File,
        start: u64,
        data: &Metadata,
    ) -> io::Result<(Option<Codec>, Option<TableKind>, Arc<FileIdentity>)> {
        let mut begin = vec![0; (data.len() - start).min(FILE_WINDOW) as usize];
        let got = file.read_at(&mut begin, start)?;
        begin.truncate(got);
        let table = self.checks.table(&begin);
        let codec = if table.is_some() { None } else { self.codec(&begin)? };
        Ok((codec, table, FileIdentity::new(FileStat::of(data), &begin)))
    }

    /// Detects the compression. Checks the first bytes of an input that is not compressed; fewer
    /// than [`FILE_WINDOW`] are the whole input.
    fn codec(&self, begin: &[u8]) -> io::Result<Option<Codec>> {
        match Magic::of_whole(begin) {
            Magic::Is(codec) => Ok(Some(codec)),
            Magic::No | Magic::Maybe => {
                self.checks.check(self.name, begin, None).map_err(io::Error::other)?;
                Ok(None)
            }
        }
    }
}

/// Bytes at the start of a file that are inspected.
const FILE_WINDOW: u64 = 64 << 10;

/// Returns whether the reported size of a file is true: files in `/proc` report 0, those in `/sys` a page.
fn has_true_size(file: &File, start: u64, data: &Metadata) -> io::Result<bool> {
    match data.len() {
        length if length > start => Ok(file.read_at(&mut [0], length - 1)? == 1),
        length => Ok(file.read_at(&mut [0], length)? == 0),
    }
}
