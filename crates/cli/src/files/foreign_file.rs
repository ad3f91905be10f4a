//! Opens filter files of any format: petal's own, or another program's.

use std::io::{self, BufReader, Read as _};
use std::path::Path;

use petal::{AnyFilter, BatchResults, Mapped};
use petal_interop::{ForeignFilter, Format, GZIP, Hasher, KeyType};
use petal_lines::{BadLine, LineFilter, LineFilterMut, LineHash, MemoryLimit, Source, Spelling};

use super::filter_file;
use crate::args::{FormatArg, SecretArgs};
use crate::error::{Failure, Result};
use crate::text;

use petal::MAGIC;

/// A filter file of any format.
pub(crate) enum AnyFile<N = AnyFilter<Mapped>> {
    Native(N),
    Foreign(ForeignLines<Bytes>),
}

/// The bytes of another program's file.
pub(crate) enum Bytes {
    Mapped(Mapped),
    /// The file was compressed.
    Decompressed(Vec<u8>),
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Mapped(mapped) => mapped.as_ref(),
            Self::Decompressed(bytes) => bytes,
        }
    }
}

/// Maps a filter file, or decompresses it into at most `limit` bytes of memory.
pub(crate) fn open(
    path: &Path,
    format: FormatArg,
    limit: u64,
    secret: &SecretArgs,
) -> Result<AnyFile> {
    open_as(path, format, limit, |path| filter_file::open(path, secret))
}

/// As [`open`], with another way to open a file of petal's own.
pub(crate) fn open_as<N>(
    path: &Path,
    format: FormatArg,
    limit: u64,
    native: impl FnOnce(&Path) -> Result<N>,
) -> Result<AnyFile<N>> {
    let Some(start) = foreign_start(path, format)? else {
        return native(path).map(AnyFile::Native);
    };
    let filter = if start.starts_with(&GZIP) {
        let read = read_foreign(path, format, limit)?;
        let format = Some(read.format());
        ForeignFilter::from_bytes(Bytes::Decompressed(read.into_bytes()), format)
            .map_err(Failure::of_foreign(path))?
    } else {
        let map = filter_file::map(path)?;
        let opened =
            ForeignFilter::from_bytes(map.as_ref(), format.name).map(|filter| filter.format());
        let format = check_format(path, format, opened, map.as_ref())?;
        ForeignFilter::from_bytes(Bytes::Mapped(map), Some(format))
            .map_err(Failure::of_foreign(path))?
    };
    Ok(AnyFile::Foreign(ForeignLines(filter)))
}

/// Explains the error of opening a filter if it is none, but one of the arguments after it is.
pub(crate) fn explain_swapped<'a>(
    command: &'a str,
    filter: &'a Path,
    others: &'a [Source],
) -> impl Fn(Failure) -> Failure + 'a {
    let any = FormatArg { name: None };
    let is_filter = move |path: &Path| {
        open_as(path, any, MemoryLimit::DEFAULT.bytes(), filter_file::inspect).is_ok()
    };
    let is_address = matches!(Source::from_arg(filter), Source::Object(_));
    move |failure| {
        let is_damaged = || matches!(foreign_start(filter, any), Ok(None));
        let other = others
            .iter()
            .find(|other| matches!(other.place(), Source::Path(path) if is_filter(path)));
        match other {
            Some(other) if !is_address && !is_damaged() && !is_filter(filter) => {
                Failure::Message(format!(
                    "{0}: is not a filter, but {other} is; name the filter first: petal {command} {other} {0}",
                    filter.display(),
                ))
            }
            _ => failure,
        }
    }
}

/// Reads a file into memory and decompresses it if it is compressed.
fn read_foreign(path: &Path, format: FormatArg, limit: u64) -> Result<ForeignFilter> {
    let file = BufReader::with_capacity(1 << 20, filter_file::open_file(path)?);
    let bytes = petal_interop::read_decompressed(file, format.name, limit).map_err(|error| {
        if !error.is_too_large() {
            let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
            return match source.filter(|source| is_damage(source)) {
                Some(source) => Failure::Message(format!(
                    "{}: its gzip data is damaged or truncated ({source}); fetch it again",
                    path.display()
                )),
                None => Failure::of_foreign(path)(error),
            };
        }
        Failure::Message(format!(
            "{}: the filter takes more than the {} that -m leaves for it; raise -m",
            path.display(),
            text::size(limit)
        ))
    })?;
    let opened = ForeignFilter::from_bytes(&bytes[..], format.name).map(|filter| filter.format());
    let format = check_format(path, format, opened, &bytes)?;
    Ok(ForeignFilter::from_bytes(bytes, Some(format))
        .map_err(Failure::of_foreign(path))?
        .with_limit(limit))
}

/// Returns true for the errors of a decoder on damaged data.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// Returns the format of a file. Fails if the file is detected as another format than the one
/// specified, because formats without a magic number accept any bytes.
fn check_format(
    path: &Path,
    format: FormatArg,
    opened: petal_interop::Result<Format>,
    bytes: &[u8],
) -> Result<Format> {
    let detect = || match ForeignFilter::from_bytes(bytes, None) {
        Ok(other) => Some(other.format().name()),
        Err(_) => bytes.starts_with(&MAGIC).then_some("petal's own"),
    };
    let other = format.name.and_then(|name| detect().filter(|other| *other != name.name()));
    match (opened, other) {
        (Ok(format), None) => Ok(format),
        (Ok(format), Some(other)) => Err(Failure::Message(format!(
            "{}: is detected as a filter of {other}, not {format}; leave out --format",
            path.display()
        ))),
        (Err(error), Some(other)) => Err(Failure::Message(format!(
            "{}: {error}; it is detected as a filter of {other}, leave out --format",
            path.display()
        ))),
        (Err(error), None) => Err(Failure::of_foreign(path)(error)),
    }
}

/// Reads another program's filter file to change it; returns the filter and whether the file was
/// compressed. `None` if it is petal's own.
pub(crate) fn read(
    path: &Path,
    format: FormatArg,
    limit: u64,
) -> Result<Option<(ForeignLines<Vec<u8>>, bool)>> {
    let Some(start) = foreign_start(path, format)? else { return Ok(None) };
    let filter = read_foreign(path, format, limit)?;
    Ok(Some((ForeignLines(filter), start.starts_with(&GZIP))))
}

/// Returns the first bytes of a file that is another program's by its bytes or by `--format`.
fn foreign_start(path: &Path, format: FormatArg) -> Result<Option<Vec<u8>>> {
    let mut start = Vec::new();
    let file = filter_file::open_file(path)?;
    let read = file.take(MAGIC.len() as u64).read_to_end(&mut start);
    read.map_err(|error| Failure::of_file(path)(error.into()))?;
    Ok((format.name.is_some() || start != MAGIC).then_some(start))
}

/// Another program's filter with lines as keys.
pub(crate) struct ForeignLines<B>(pub(crate) ForeignFilter<B>);

impl<B: AsRef<[u8]>> ForeignLines<B> {
    /// Sets the key type, which must be one of the format.
    pub(crate) fn with_key_type(self, key_type: Option<KeyType>) -> Result<Self> {
        let key_type = key_type.unwrap_or_default();
        let Err(error) = self.0.check_key_type(key_type) else {
            return Ok(Self(self.0.with_key_type(key_type)));
        };
        let advice = match key_type.wider(self.0.header().key_types) {
            Some(wider) => format!("use --key-type {}", wider.name()),
            None => "leave it out".to_owned(),
        };
        Err(Failure::Message(format!("--key-type: {error}; {advice}")))
    }

    /// Returns how the keys are spelled: the file does not record it, but with this key type it does not
    /// matter how lines end.
    pub(crate) fn spelling(&self) -> Option<Spelling> {
        (self.0.key_type() == KeyType::TextCrlf).then(Spelling::default)
    }

    /// Returns true if the filter may take more memory as keys are added; one of DataSketches does
    /// when it was empty.
    pub(crate) fn grows(&self) -> bool {
        matches!(self.0.format(), Format::RedisBloom | Format::DataSketches)
    }

    /// Returns the memory of the filter in bytes, including mapped pages.
    pub(crate) fn memory(&self) -> u64 {
        self.0.as_bytes().len() as u64
    }
}

/// Hashes lines as another program hashes its keys.
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

impl<B: AsRef<[u8]> + Send + Sync> LineFilter for ForeignLines<B> {
    type Hash = ForeignHash;

    fn line_hash(&self) -> ForeignHash {
        ForeignHash { hasher: self.0.hasher(), words: self.0.words() }
    }

    fn contains_hashes(&self, words: &[u64], found: &mut BatchResults) -> petal_lines::Result<()> {
        self.0.contains_words(words, found);
        Ok(())
    }
}

impl ForeignLines<Vec<u8>> {
    /// Sets the size to which the filter may grow.
    pub(crate) fn growing_to(self, limit: u64) -> Self {
        Self(self.0.with_limit(limit))
    }
}

impl LineFilterMut for ForeignLines<Vec<u8>> {
    fn member_hash(&self) -> ForeignHash {
        ForeignHash { hasher: self.0.insert_hasher(), words: self.0.words() }
    }

    fn insert_hashes(&mut self, words: &[u64], new: &mut BatchResults) -> petal_lines::Result<()> {
        self.0.insert_words(words, new).map_err(petal_lines::Error::of_filter)
    }

    fn size_bytes(&self) -> u64 {
        self.0.as_bytes().len() as u64
    }
}
