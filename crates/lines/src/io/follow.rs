//! Files that grow: read up to their end, then again when lines are appended, as `tail -F` does.
//!
//! A file that is replaced under its name (a rotated log) is read to its end before the new one is
//! opened. A file that becomes shorter is read again from its start. Only whole lines are returned: a
//! line is complete when its delimiter is written, when its file is replaced, or when the file
//! becomes shorter.
//!
//! Cost: while nothing is appended, one `read` and one `stat` of each file in every
//! [`POLL_TIMEOUT`].

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::compression::Magic;
use super::poll_read::{POLL_TIMEOUT, PollRead};
use crate::error::{Error, Result};

/// Bytes read of a file before the next file has its turn.
const BLOCK: usize = 256 << 10;

/// Maximum length of a line whose end is not written yet.
const LONGEST_LINE: usize = 16 << 20;

/// The lines that are appended to files. Never ends.
pub(super) struct FollowedFiles {
    files: Vec<FollowedFile>,
    delimiter: u8,
    /// Whole lines that are not returned yet, from `returned` on.
    lines: Vec<u8>,
    returned: usize,
}

impl FollowedFiles {
    /// Opens the files.
    ///
    /// # Errors
    /// If a file cannot be opened, is not a regular file, or is compressed.
    pub(super) fn open(paths: &[PathBuf], delimiter: u8) -> Result<Self> {
        let files = paths.iter().map(|path| {
            FollowedFile::open(path).map_err(|e| Error::read(&path.to_string_lossy(), e))
        });
        let files = files.collect::<Result<_>>()?;
        Ok(Self { files, delimiter, lines: vec![], returned: 0 })
    }

    /// Reads what was appended since. Returns whether there is a whole line.
    fn poll(&mut self) -> io::Result<bool> {
        if self.returned < self.lines.len() {
            return Ok(true);
        }
        self.lines.clear();
        self.returned = 0;
        let several = self.files.len() > 1;
        for file in &mut self.files {
            file.read_lines(self.delimiter, &mut self.lines).map_err(|error| match several {
                // The name of the input is that of all files.
                true => io::Error::new(error.kind(), format!("{}: {error}", file.path.display())),
                false => error,
            })?;
        }
        Ok(!self.lines.is_empty())
    }
}

impl Read for FollowedFiles {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.poll()? {
            std::thread::sleep(POLL_TIMEOUT);
        }
        let got = (&self.lines[self.returned..]).read(buffer)?;
        self.returned += got;
        Ok(got)
    }
}

impl PollRead for FollowedFiles {
    fn ready(&mut self) -> bool {
        match self.poll() {
            Ok(false) => {
                std::thread::sleep(POLL_TIMEOUT);
                false
            }
            // The next read returns the lines or the error.
            Ok(true) | Err(_) => true,
        }
    }
}

/// A file that is followed by its name.
struct FollowedFile {
    path: PathBuf,
    file: File,
    id: FileId,
    /// Bytes read of the file.
    offset: u64,
    /// The start of a line whose end is not written yet.
    partial: Vec<u8>,
}

/// Device and inode.
type FileId = (u64, u64);

fn id_of(data: &Metadata) -> FileId {
    (data.dev(), data.ino())
}

impl FollowedFile {
    fn open(path: &Path) -> io::Result<Self> {
        let (file, id) = open(path)?;
        Ok(Self { path: path.to_owned(), file, id, offset: 0, partial: vec![] })
    }

    /// Appends whole lines to `lines`, about [`BLOCK`] bytes at most.
    fn read_lines(&mut self, delimiter: u8, lines: &mut Vec<u8>) -> io::Result<()> {
        if self.read_block(delimiter, lines)? {
            return Ok(());
        }
        if self.file.metadata()?.len() < self.offset {
            self.end_line(delimiter, lines);
            self.file.rewind()?;
            self.offset = 0;
            return Ok(());
        }
        match std::fs::metadata(&self.path) {
            Ok(data) if id_of(&data) != self.id => {
                // What was written between the read and the change of the name.
                while self.read_block(delimiter, lines)? {}
                self.end_line(delimiter, lines);
                (self.file, self.id) = open(&self.path)?;
                self.offset = 0;
                Ok(())
            }
            // Renamed, and the new file does not exist yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map(drop),
        }
    }

    /// Reads a block. Returns false at the end of the file.
    fn read_block(&mut self, delimiter: u8, lines: &mut Vec<u8>) -> io::Result<bool> {
        let before = self.partial.len();
        let got = (&self.file).take(BLOCK as u64).read_to_end(&mut self.partial)?;
        if self.offset == 0 && matches!(Magic::of(&self.partial), Magic::Is(_)) {
            return Err(unfit("it is compressed; --follow reads text".to_owned()));
        }
        self.offset += got as u64;
        if let Some(end) = memchr::memrchr(delimiter, &self.partial[before..]) {
            lines.extend(self.partial.drain(..=before + end));
        } else if self.partial.len() > LONGEST_LINE {
            let longest = LONGEST_LINE >> 20;
            return Err(unfit(format!("its last line has more than {longest} MiB and no end")));
        }
        Ok(got > 0)
    }

    /// Ends an incomplete line.
    fn end_line(&mut self, delimiter: u8, lines: &mut Vec<u8>) {
        if !self.partial.is_empty() {
            lines.append(&mut self.partial);
            lines.push(delimiter);
        }
    }
}

fn open(path: &Path) -> io::Result<(File, FileId)> {
    // Opening a FIFO waits for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(unfit("it is not a regular file; a pipe is read until it ends anyway".into()));
    }
    let file = File::open(path)?;
    let id = id_of(&file.metadata()?);
    Ok((file, id))
}

fn unfit(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;

    /// The lines that one poll returns.
    fn lines(files: &mut FollowedFiles) -> String {
        files.poll().unwrap();
        files.returned = files.lines.len();
        String::from_utf8(files.lines.clone()).unwrap()
    }

    fn append(path: &Path, text: &str) {
        File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn appended_lines_are_returned_when_they_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        fs::write(&a, "a1\na2").unwrap();
        fs::write(&b, "").unwrap();
        let mut files = FollowedFiles::open(&[a.clone(), b.clone()], b'\n').unwrap();
        assert_eq!(lines(&mut files), "a1\n");
        assert_eq!(lines(&mut files), "");
        append(&b, "b1\nb");
        append(&a, "x\n");
        assert_eq!(lines(&mut files), "a2x\nb1\n");
        append(&b, "2\n");
        assert_eq!(lines(&mut files), "b2\n");
    }

    #[test]
    fn rotated_files_are_read_to_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let [log, old] = ["log", "log.1"].map(|name| dir.path().join(name));
        fs::write(&log, "1\n").unwrap();
        let mut files = FollowedFiles::open(std::slice::from_ref(&log), b'\n').unwrap();
        assert_eq!(lines(&mut files), "1\n");
        fs::rename(&log, &old).unwrap();
        append(&old, "2\nlast");
        assert_eq!(lines(&mut files), "2\n");
        assert_eq!(lines(&mut files), "");
        fs::write(&log, "3\n").unwrap();
        assert_eq!(lines(&mut files), "last\n");
        assert_eq!(lines(&mut files), "3\n");
        // Truncated and written again, as logrotate's copytruncate does.
        fs::write(&log, "4").unwrap();
        assert_eq!(lines(&mut files), "");
        append(&log, "\n");
        assert_eq!(lines(&mut files), "4\n");
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let text = |paths: &[PathBuf]| {
            let mut files = match FollowedFiles::open(paths, b'\n') {
                Ok(files) => files,
                Err(error) => return error.to_string(),
            };
            files.poll().unwrap_err().to_string()
        };
        assert!(text(std::slice::from_ref(&path)).to_lowercase().contains("no such file"));
        assert!(text(&[dir.path().to_owned()]).contains("not a regular file"));
        fs::write(&path, b"\x1f\x8b\x08\x00\x00\x00\x00\x00").unwrap();
        assert!(text(std::slice::from_ref(&path)).contains("compressed"));
        fs::write(&path, vec![b'x'; LONGEST_LINE + 1]).unwrap();
        let mut files = FollowedFiles::open(std::slice::from_ref(&path), b'\n').unwrap();
        let error = (0..LONGEST_LINE / BLOCK + 2).find_map(|_| files.poll().err()).unwrap();
        assert!(error.to_string().contains("16 MiB"), "{error}");
    }
}
