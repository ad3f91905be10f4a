//! Filter files of any make: petal's own, or another program's, asked where they lie.

use std::io::{self, BufReader, Read as _};
use std::path::Path;

use petal::{Answers, AnyFilter, Mapped};
use petal_interop::{Foreign, Format, GZIP, Hasher, KeyForm};
use petal_lines::{BadLine, LineFilter, LineFilterMut, LineHash};

use crate::args::Written;
use crate::exit::{Failure, Result};
use crate::{filter_file, text};

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
    let filter = if start.starts_with(&GZIP) {
        let read = read_foreign(path, written, limit)?;
        let format = Some(read.format());
        Foreign::from_bytes(Bytes::Read(read.into_bytes()), format)
            .map_err(Failure::of_foreign(path))?
    } else {
        let map = filter_file::map(path)?;
        let opened =
            Foreign::from_bytes(map.as_ref(), written.format).map(|filter| filter.format());
        let format = as_told(path, written, opened, map.as_ref())?;
        Foreign::from_bytes(Bytes::Mapped(map), Some(format)).map_err(Failure::of_foreign(path))?
    };
    Ok(AnyFile::Foreign(ForeignFilter(filter)))
}

/// Reads and unpacks.
fn read_foreign(path: &Path, written: Written, limit: u64) -> Result<Foreign> {
    let file = BufReader::with_capacity(1 << 20, filter_file::open_file(path)?);
    let bytes = petal_interop::read_unpacked(file, limit).map_err(|error| {
        if !error.is_too_large() {
            let packed = matches!(
                std::error::Error::source(&error).and_then(|source| source.downcast_ref()),
                Some(source) if is_damage(source)
            );
            return match packed {
                true => Failure::Plain(format!(
                    "{}: is packed with gzip, and damaged or cut short; fetch it again",
                    path.display()
                )),
                false => Failure::of_foreign(path)(error),
            };
        }
        Failure::Plain(format!(
            "{}: the filter takes more than the {} that there are for it; raise -m",
            path.display(),
            text::size(limit)
        ))
    })?;
    let opened = Foreign::from_bytes(&bytes[..], written.format).map(|filter| filter.format());
    let format = as_told(path, written, opened, &bytes)?;
    Ok(Foreign::from_bytes(bytes, Some(format)).map_err(Failure::of_foreign(path))?.within(limit))
}

/// What unpacking says of bytes that were not packed so.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// The format of a file; refused if it was told and what the bytes say is another: some formats
/// have no mark, and would take any bytes for theirs.
fn as_told(
    path: &Path,
    written: Written,
    opened: petal_interop::Result<Format>,
    bytes: &[u8],
) -> Result<Format> {
    let recognised = || match Foreign::from_bytes(bytes, None) {
        Ok(other) => Some(other.format().name()),
        Err(_) => bytes.starts_with(MAGIC).then_some("petal's own"),
    };
    let other = written.format.and_then(|told| recognised().filter(|name| *name != told.name()));
    match (opened, other) {
        (Ok(format), None) => Ok(format),
        (Ok(format), Some(other)) => Err(Failure::Plain(format!(
            "{}: is recognised as a filter of {other}, not {format}; leave --format out",
            path.display()
        ))),
        (Err(error), Some(other)) => Err(Failure::Plain(format!(
            "{}: {error}; it is recognised as a filter of {other}, leave --format out",
            path.display()
        ))),
        (Err(error), None) => Err(Failure::of_foreign(path)(error)),
    }
}

/// Another program's filter file in memory, to be changed, and whether it was packed; `None` if it
/// is petal's own.
pub(crate) fn read(
    path: &Path,
    written: Written,
    limit: u64,
) -> Result<Option<(ForeignFilter<Vec<u8>>, bool)>> {
    let Some(start) = foreign_start(path, written)? else { return Ok(None) };
    let filter = read_foreign(path, written, limit)?;
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
        let form = form.unwrap_or_default();
        let Err(error) = self.0.check_key_form(form) else {
            return Ok(Self(self.0.with_keys(form)));
        };
        let instead = match form.wider(self.0.told().forms) {
            Some(wider) => format!("use --as {}", wider.name()),
            None => "leave it out".to_owned(),
        };
        Err(Failure::Plain(format!("--as: {error}; {instead}")))
    }

    /// Whether it may take more memory as keys come; DataSketches' when it was empty.
    pub(crate) fn grows(&self) -> bool {
        matches!(self.0.format(), Format::RedisBloom | Format::DataSketches)
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

impl ForeignFilter<Vec<u8>> {
    /// The same, which may grow to so many bytes.
    pub(crate) fn growing_to(self, limit: u64) -> Self {
        Self(self.0.within(limit))
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
