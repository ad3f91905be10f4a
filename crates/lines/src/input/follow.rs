//! Files that grow: read up to their end, then again when lines are appended, as `tail -F` does.
//!
//! A file that is replaced under its name (a rotated log) is read to its end before the new one is
//! opened. A file that becomes shorter is read again from its start. Only whole records are returned: a
//! record is complete when its end is written, when its file is replaced, or when the file becomes
//! shorter.
//!
//! Cost: while nothing is appended, one `read` and one `stat` of each file in every
//! [`POLL_TIMEOUT`].

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::compression::Magic;
use super::follow_records::{Partial, RecordRules, unfit};
use crate::error::{Error, Result};
use crate::keys::KeySpec;
use crate::poll_read::{POLL_TIMEOUT, PollRead};

/// Bytes read of a file before the next file has its turn.
const BLOCK: usize = 256 << 10;

/// The records that are appended to files. Never ends.
pub(super) struct FollowedFiles {
    files: Vec<FollowedFile>,
    rules: RecordRules,
    /// Whole records that are not returned yet, from `returned` on.
    records: Vec<u8>,
    returned: usize,
    /// An error that is returned after the records before it.
    failed: Option<io::Error>,
}

impl FollowedFiles {
    /// Opens the files, whose records have these keys.
    ///
    /// # Errors
    /// If a file cannot be opened or is not a regular file, or if CSV files differ in their separators.
    pub(super) fn open(paths: &[PathBuf], keys: &KeySpec, delimiter: u8) -> Result<Self> {
        let rules = RecordRules::new(paths, keys, delimiter)?;
        let files = paths.iter().map(|path| {
            FollowedFile::open(path).map_err(|e| Error::read(&path.to_string_lossy(), e))
        });
        let files = files.collect::<Result<_>>()?;
        Ok(Self { files, rules, records: vec![], returned: 0, failed: None })
    }

    /// Reads what was appended since. Returns whether there is a whole record.
    fn poll(&mut self) -> io::Result<bool> {
        if self.returned < self.records.len() {
            return Ok(true);
        }
        self.records.clear();
        self.returned = 0;
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let several = self.files.len() > 1;
        for file in &mut self.files {
            let Err(error) = file.read_records(&mut self.rules, &mut self.records) else {
                continue;
            };
            let error = match several {
                // The name of the input is that of all files.
                true => io::Error::new(error.kind(), format!("{}: {error}", file.path.display())),
                false => error,
            };
            if self.records.is_empty() {
                return Err(error);
            }
            self.failed = Some(error);
            break;
        }
        Ok(!self.records.is_empty())
    }
}

impl Read for FollowedFiles {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.poll()? {
            std::thread::sleep(POLL_TIMEOUT);
        }
        let got = (&self.records[self.returned..]).read(buffer)?;
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
            Ok(true) => true,
            // The next read returns the error.
            Err(error) => {
                self.failed = Some(error);
                true
            }
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
    partial: Partial,
}

/// Device and inode.
type FileId = (u64, u64);

fn id_of(data: &Metadata) -> FileId {
    (data.dev(), data.ino())
}

impl FollowedFile {
    fn open(path: &Path) -> io::Result<Self> {
        let (file, id) = open(path)?;
        Ok(Self { path: path.to_owned(), file, id, offset: 0, partial: Partial::new() })
    }

    /// Appends whole records to `records`, about [`BLOCK`] bytes at most.
    fn read_records(&mut self, rules: &mut RecordRules, records: &mut Vec<u8>) -> io::Result<()> {
        if self.read_block(rules, records)? {
            return Ok(());
        }
        if self.file.metadata()?.len() < self.offset {
            self.partial.end(&self.path, rules, records)?;
            self.file.rewind()?;
            self.offset = 0;
            return Ok(());
        }
        match std::fs::metadata(&self.path) {
            Ok(data) if id_of(&data) != self.id => {
                // What was written between the read and the change of the name.
                while self.read_block(rules, records)? {}
                self.partial.end(&self.path, rules, records)?;
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
    fn read_block(&mut self, rules: &mut RecordRules, records: &mut Vec<u8>) -> io::Result<bool> {
        let got = (&self.file).take(BLOCK as u64).read_to_end(&mut self.partial.bytes)?;
        if self.offset == 0 && matches!(Magic::of(&self.partial.bytes), Magic::Is(_)) {
            return Err(unfit("it is compressed; only text can be followed".to_owned()));
        }
        self.offset += got as u64;
        self.partial.take_whole(&self.path, false, rules, records)?;
        Ok(got > 0)
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

#[cfg(test)]
mod tests {
    use super::super::follow_records::LONGEST_RECORD;
    use super::*;
    use crate::keys::{Columns, Fields};
    use std::fs;
    use std::io::Write as _;

    /// Opens files of lines.
    fn follow(paths: &[PathBuf]) -> Result<FollowedFiles> {
        FollowedFiles::open(paths, &KeySpec::default(), b'\n')
    }

    /// The records that one poll returns.
    fn lines(files: &mut FollowedFiles) -> String {
        files.poll().unwrap();
        files.returned = files.records.len();
        String::from_utf8(files.records.clone()).unwrap()
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
        let mut files = follow(&[a.clone(), b.clone()]).unwrap();
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
        let mut files = follow(std::slice::from_ref(&log)).unwrap();
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
            let mut files = match follow(paths) {
                Ok(files) => files,
                Err(error) => return error.to_string(),
            };
            files.poll().unwrap_err().to_string()
        };
        assert!(text(std::slice::from_ref(&path)).to_lowercase().contains("no such file"));
        assert!(text(&[dir.path().to_owned()]).contains("not a regular file"));
        fs::write(&path, b"\x1f\x8b\x08\x00\x00\x00\x00\x00").unwrap();
        assert!(text(std::slice::from_ref(&path)).contains("compressed"));
        fs::write(&path, vec![b'x'; LONGEST_RECORD + 1]).unwrap();
        let mut files = follow(std::slice::from_ref(&path)).unwrap();
        let error = (0..LONGEST_RECORD / BLOCK + 2).find_map(|_| files.poll().err()).unwrap();
        assert!(error.to_string().contains("16 MiB"), "{error}");
    }

    /// Opens CSV files whose key is the column `id`.
    fn follow_csv(paths: &[PathBuf]) -> Result<FollowedFiles> {
        follow_columns(paths, "id", false)
    }

    fn follow_columns(paths: &[PathBuf], list: &str, header: bool) -> Result<FollowedFiles> {
        let columns = Columns::parse_list(list).unwrap();
        let fields = Fields::Columns(Columns { columns, header, ..Columns::default() });
        FollowedFiles::open(paths, &KeySpec { fields, ..KeySpec::default() }, b'\n')
    }

    fn error(files: &mut FollowedFiles) -> String {
        files.poll().unwrap_err().to_string()
    }

    #[test]
    fn csv_records_are_returned_when_their_quotes_are_closed() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a.csv", "b.csv"].map(|name| dir.path().join(name));
        fs::write(&a, "\u{feff}\"i").unwrap();
        fs::write(&b, "").unwrap();
        let mut files = follow_csv(&[a.clone(), b.clone()]).unwrap();
        assert_eq!(lines(&mut files), "");
        append(&a, "d\",x\n1,\"one\n");
        assert_eq!(lines(&mut files), "\u{feff}\"id\",x\n", "the record is inside quotes");
        append(&a, "\n");
        append(&b, "id,x");
        assert_eq!(lines(&mut files), "");
        append(&a, "more\"\"\n\"");
        append(&b, "\r\n2,two\n3");
        assert_eq!(lines(&mut files), "2,two\n", "a quote may follow; the header is known");
        append(&a, "\n4,four\n\"5");
        assert_eq!(lines(&mut files), "1,\"one\n\nmore\"\"\n\"\n4,four\n");
        append(&b, ",\n");
        append(&a, "\"\n");
        assert_eq!(lines(&mut files), "\"5\"\n3,\n");
    }

    /// Any division of a text among writes gives the same records, each as soon as it is whole.
    #[test]
    fn csv_written_in_pieces_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.csv");
        let records =
            ["id,x\n", "1,\"a\n\"\"b\"\"\n\"\r\n", "\"\n\",\n", "\n", "a\"b,\"\"\n", "2,z\n"];
        let text = records.concat();
        for first in 0..=text.len() {
            for second in first..=text.len() {
                fs::write(&path, &text[..first]).unwrap();
                let mut files = follow_csv(std::slice::from_ref(&path)).unwrap();
                let mut found = lines(&mut files);
                for (end, piece) in [(second, &text[first..second]), (text.len(), &text[second..])]
                {
                    append(&path, piece);
                    found += &lines(&mut files);
                    let whole = records.iter().scan(0, |at, record| {
                        *at += record.len();
                        (*at <= end).then_some(*record)
                    });
                    assert_eq!(found, whole.collect::<String>(), "{first} {second} {end}");
                }
            }
        }
    }

    #[test]
    fn rotated_csv_has_the_same_header_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let [log, old] = ["log.csv", "old.csv"].map(|name| dir.path().join(name));
        let rotate = |text: &str| {
            fs::rename(&log, &old).unwrap();
            fs::write(&log, text).unwrap();
        };
        fs::write(&log, "id,x\n1,a").unwrap();
        let mut files = follow_csv(std::slice::from_ref(&log)).unwrap();
        assert_eq!(lines(&mut files), "id,x\n");
        rotate("\u{feff}\"id\",x\r\n2,\"b\n");
        assert_eq!(lines(&mut files), "1,a\n");
        assert_eq!(lines(&mut files), "");
        append(&log, "\"\n");
        assert_eq!(lines(&mut files), "2,\"b\n\"\n");
        rotate("3,c\n");
        assert_eq!(lines(&mut files), "");
        assert_eq!(lines(&mut files), "3,c\n");
        // Truncated.
        fs::write(&log, "id").unwrap();
        assert_eq!(lines(&mut files) + &lines(&mut files), "");
        append(&log, ",x\n4\n");
        assert_eq!(lines(&mut files), "4\n");
        rotate("x,id\n");
        assert_eq!(lines(&mut files), "");
        assert!(error(&mut files).contains("another header"));

        fs::write(&log, "id,x\n1,\"a").unwrap();
        let mut files = follow_csv(std::slice::from_ref(&log)).unwrap();
        assert_eq!(lines(&mut files), "id,x\n");
        rotate("id,x\n");
        assert!(error(&mut files).contains("a quote in its last record was not closed"));
    }

    #[test]
    fn followed_csv_files_have_one_header_and_separator() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, tabs] = ["a.csv", "b.csv", "c.tsv"].map(|name| dir.path().join(name));
        fs::write(&a, "id,x\n1,a\n").unwrap();
        fs::write(&b, "x,id\n1,a\n").unwrap();
        fs::write(&tabs, "id\tx\n1\ta\n").unwrap();
        let both = [a.clone(), b.clone()];
        let mut files = follow_csv(&both).unwrap();
        assert!(files.ready() && files.ready());
        assert_eq!(lines(&mut files), "id,x\n1,a\n", "the records before the error");
        assert!(files.ready() && files.ready());
        let text = error(&mut files);
        assert!(text.contains("b.csv: its header differs from that of ") && text.contains("a.csv"));
        let mut files = follow_columns(&both, "1", true).unwrap();
        assert_eq!(lines(&mut files), "id,x\n1,a\n");
        assert!(error(&mut files).contains("its header differs"));
        assert_eq!(
            lines(&mut follow_columns(&both, "1", false).unwrap()),
            "id,x\n1,a\nx,id\n1,a\n"
        );
        let text = follow_csv(&[a, tabs.clone()]).err().unwrap().to_string();
        assert!(text.contains("c.tsv") && text.contains("separated by another byte"), "{text}");
        assert_eq!(lines(&mut follow_csv(&[tabs]).unwrap()), "id\tx\n1\ta\n");
        fs::write(&b, format!("id,x\n\"{}", "x".repeat(LONGEST_RECORD))).unwrap();
        let mut files = follow_csv(std::slice::from_ref(&b)).unwrap();
        let error = (0..LONGEST_RECORD / BLOCK + 2).find_map(|_| {
            files.returned = files.records.len();
            files.poll().err()
        });
        assert!(error.unwrap().to_string().contains("last record has more than 16 MiB"));
    }
}
