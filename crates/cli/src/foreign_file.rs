//! Filter files of any make: petal's own, or another program's, asked where they lie.

use std::io::{BufReader, Read as _};
use std::path::Path;

use petal::{Answers, AnyFilter, Mapped};
use petal_interop::{Foreign, GZIP, Hasher, KeyForm};
use petal_lines::{BadLine, LineFilter, LineFilterMut, LineHash};

use crate::args::Written;
use crate::exit::{Failure, Result};
use crate::filter_file;

/// The first bytes of petal's own files.
const MAGIC: &[u8; 8] = b"\x89PETAL\r\n";

/// A filter file of any make.
pub(crate) enum AnyFile {
    Native(AnyFilter<Mapped>),
    Foreign(ForeignFilter<Bytes>),
}

/// The bytes of another program's file.
pub(crate) enum Bytes {
    Mapped(Mapped),
    /// It was packed.
    Read(Vec<u8>),
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Mapped(mapped) => mapped.as_ref(),
            Self::Read(bytes) => bytes,
        }
    }
}

/// Opens a filter file where it lies; a packed one is unpacked, to at most so many bytes.
pub(crate) fn open(path: &Path, written: Written, limit: u64) -> Result<AnyFile> {
    let Some(start) = foreign_start(path, written)? else {
        return filter_file::open(path).map(AnyFile::Native);
    };
    let failed = Failure::of_foreign(path);
    let filter = if start.starts_with(&GZIP) {
        let file = BufReader::new(filter_file::open_file(path)?);
        let read = Foreign::read_from(file, written.format, limit).map_err(&failed)?;
        Foreign::from_bytes(Bytes::Read(read.into_bytes()), written.format)
    } else {
        Foreign::from_bytes(Bytes::Mapped(filter_file::map(path)?), written.format)
    };
    Ok(AnyFile::Foreign(ForeignFilter(filter.map_err(failed)?)))
}

/// Another program's filter file in memory, to be changed, and whether it was packed; `None` if it
/// is petal's own.
pub(crate) fn read(
    path: &Path,
    written: Written,
    limit: u64,
) -> Result<Option<(ForeignFilter<Vec<u8>>, bool)>> {
    let Some(start) = foreign_start(path, written)? else { return Ok(None) };
    let file = BufReader::with_capacity(1 << 20, filter_file::open_file(path)?);
    let filter =
        Foreign::read_from(file, written.format, limit).map_err(Failure::of_foreign(path))?;
    Ok(Some((ForeignFilter(filter), start.starts_with(&GZIP))))
}

/// The first bytes of a file that is not, or is said not to be, petal's own.
fn foreign_start(path: &Path, written: Written) -> Result<Option<Vec<u8>>> {
    let mut start = Vec::new();
    let file = filter_file::open_file(path)?;
    let read = file.take(MAGIC.len() as u64).read_to_end(&mut start);
    read.map_err(|error| Failure::of_file(path)(error.into()))?;
    Ok((written.format.is_some() || start != MAGIC).then_some(start))
}

/// Another program's filter, as lines ask it.
pub(crate) struct ForeignFilter<B>(pub(crate) Foreign<B>);

impl<B: AsRef<[u8]>> ForeignFilter<B> {
    /// The same with its keys in the form that was told, which the format's programs must know.
    pub(crate) fn with_keys(self, form: Option<KeyForm>) -> Result<Self> {
        let (form, format) = (form.unwrap_or_default(), self.0.format());
        let forms = self.0.told().forms;
        if forms.contains(&form) {
            return Ok(Self(self.0.with_keys(form)));
        }
        let names: Vec<_> = forms.iter().map(|form| form.name()).collect();
        Err(Failure::Plain(format!(
            "--as: keys of a {format} filter are {}, not {}; leave it out",
            names.join(" or "),
            form.name()
        )))
    }

    /// Bytes of memory that it takes, mapped pages included.
    pub(crate) fn memory(&self) -> u64 {
        self.0.as_bytes().len() as u64
    }
}

/// How lines become keys of another program.
pub(crate) struct ForeignHash {
    hasher: Hasher,
    words: usize,
}

impl LineHash for ForeignHash {
    fn words(&self) -> usize {
        self.words
    }

    fn hash_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        words: &mut Vec<u64>,
    ) -> Result<(), BadLine> {
        let mut hasher = self.hasher.clone();
        for (line, key) in lines.enumerate() {
            let hashed = hasher.hash(key, words);
            hashed.map_err(|error| BadLine { line, why: error.to_string() })?;
        }
        Ok(())
    }
}

impl<B: AsRef<[u8]> + Send + Sync> LineFilter for ForeignFilter<B> {
    type Hash = ForeignHash;

    fn line_hash(&self) -> ForeignHash {
        ForeignHash { hasher: self.0.hasher(), words: self.0.words() }
    }

    fn holds(&self, words: &[u64], found: &mut Answers) {
        self.0.contains_words(words, found);
    }
}

impl LineFilterMut for ForeignFilter<Vec<u8>> {
    fn member_hash(&self) -> ForeignHash {
        ForeignHash { hasher: self.0.member_hasher(), words: self.0.words() }
    }

    fn put(&mut self, words: &[u64], new: &mut Answers) -> petal_lines::Result<()> {
        self.0.insert_words(words, new).map_err(petal_lines::Error::of_filter)
    }

    fn bytes(&self) -> u64 {
        self.0.as_bytes().len() as u64
    }
}
