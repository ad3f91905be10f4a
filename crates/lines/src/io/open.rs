//! Opening an input as a file, a compressed file or a stream.

use std::fs::{File, Metadata};
use std::io::{self, Seek};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::byte_range::ByteRange;
use super::compression::{Codec, Magic};
use super::content_check::{Checked, ContentChecks};
use super::identity::{FileIdentity, FileStat};
use super::poll_read::PollRead;
use super::stream::{LazyFile, MaybeCompressed};
use super::tables::TableKind;

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
    /// Redirected standard input or a spooled stream.
    OpenFile {
        file: Arc<File>,
        range: ByteRange,
        identity: Option<Arc<FileIdentity>>,
        codec: Option<Codec>,
        table: Option<TableKind>,
    },
    /// Can be read once; `None` after that.
    Stream(Mutex<Option<Box<dyn PollRead + Send>>>),
}

/// Opens an input.
pub(super) struct InputOpener<'a> {
    pub(super) name: &'a str,
    /// Memory for a decoder.
    pub(super) memory: u64,
    pub(super) checks: &'a Arc<ContentChecks>,
}

impl InputOpener<'_> {
    pub(super) fn path(&self, path: &Path, data: &Metadata, keep: bool) -> io::Result<InputKind> {
        if data.is_file() {
            // Report an unreadable file now, not after the first long pass.
            let file = File::open(path)?;
            // The metadata of the open file: the path may name another file by now.
            let data = file.metadata()?;
            if has_true_size(&file, &data)? {
                let (codec, table, identity) = self.inspect(&file, 0, &data)?;
                let file = keep.then(|| Arc::new(file));
                let (path, length) = (path.to_owned(), data.len());
                return Ok(InputKind::Named { path, file, length, identity, codec, table });
            }
        }
        Ok(self.stream(LazyFile::new(path.to_owned())))
    }

    /// Opens standard input: as a file if it is redirected from one, otherwise as a stream.
    pub(super) fn stdin(&self) -> io::Result<InputKind> {
        use std::os::fd::AsFd;
        let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let data = file.metadata()?;
        if data.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if data.is_file() && has_true_size(&file, &data)? {
            let start = file.stream_position()?.min(data.len());
            let range = ByteRange { start, end: data.len() };
            let (codec, table, identity) = self.inspect(&file, start, &data)?;
            let (file, identity) = (Arc::new(file), Some(identity));
            return Ok(InputKind::OpenFile { file, range, identity, codec, table });
        }
        Ok(self.stream(file))
    }

    pub(super) fn stream(&self, stream: impl PollRead + Send + 'static) -> InputKind {
        let unpacked = MaybeCompressed::new(Box::new(stream), self.memory);
        InputKind::Stream(Mutex::new(Some(Box::new(Checked::new(
            unpacked,
            self.name,
            self.checks,
        )))))
    }

    /// Detects the compression, the format of a table, and the identity of a file. Checks the first
    /// bytes of a file that is neither compressed nor a table.
    fn inspect(
        &self,
        file: &File,
        start: u64,
        data: &Metadata,
    ) -> io::Result<(Option<Codec>, Option<TableKind>, Arc<FileIdentity>)> {
        let mut begin = vec![0; (data.len() - start).min(FILE_WINDOW) as usize];
        let got = file.read_at(&mut begin, start)?;
        begin.truncate(got);
        let (codec, table) = match Magic::of(&begin) {
            Magic::Is(codec) => (Some(codec), None),
            Magic::No | Magic::Maybe => {
                let table = self.checks.table(&begin);
                if table.is_none() {
                    self.checks.check(self.name, &begin).map_err(io::Error::other)?;
                }
                (None, table)
            }
        };
        Ok((codec, table, FileIdentity::new(FileStat::of(data), &begin)))
    }
}

/// Bytes at the start of a file that are inspected.
const FILE_WINDOW: u64 = 64 << 10;

/// Returns whether the reported size of a file is true: files in `/proc` report 0.
fn has_true_size(file: &File, data: &Metadata) -> io::Result<bool> {
    Ok(data.len() > 0 || file.read_at(&mut [0], 0)? == 0)
}
