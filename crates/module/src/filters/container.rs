//! The container: filters in petal's layout as a byte stream that is written and read in chunks,
//! for RDB files, append-only files and `SCANDUMP`. [`PartialImport`] also reads `.petal` files.
//!
//! A container is a prefix and the serialized filters (docs/reference/format-other.md), each a header of 256 bytes
//! and the data. The data have no checksum, because RDB files and `DUMP` have their own, and
//! computing one over 600 MB would block the server. RedisBloom rejects the magic bytes, which it
//! reads as a number of links.
//!
//! | bytes | contents |
//! |---|---|
//! | 0..8 | `ff 70 65 74 61 6c 0d 0a` |
//! | 8..12 | `ff ff ff ff` |
//! | 12..16 | version: 1 |
//! | 16..20 | content: 0 a filter, 1 a chain of quotient filters, 2 a damaged filter |
//! | 20..24 | number of filters |
//! | 24..64 | five words of 8 bytes, the parameters of a chain: see [`SerializedParams`] |
//!
//! In the container of a damaged filter ([`PartialImport::damaged`]) the reason follows as text, in
//! the same chunk.
//!
//! Numbers are little-endian.

use std::borrow::Cow;

use petal::embed::{SerializedView, StreamDecoder};
use petal::{AnyFilter, ErrorKind};

use super::secret;
use crate::error::FilterError;

/// Length of the prefix.
pub(crate) const PREFIX_BYTES: usize = 64;
/// The first bytes of a container.
pub(crate) const MAGIC: [u8; 12] = *b"\xffpetal\r\n\xff\xff\xff\xff";
const VERSION: u32 = 1;
/// Maximum number of filters: each layer of a chain is at least twice as large as the one before.
const MAX_FILTERS: u32 = 64;
/// The content number of a damaged filter.
const DAMAGED: u32 = 2;
/// Maximum characters of the reason of a damage.
const MAX_REASON: usize = 1000;
/// Length of a serialized filter's header.
const HEADER: usize = 256;

/// The parameters of a chain of quotient filters, serialized.
pub(crate) type SerializedParams = [u64; 5];

/// The content of a container.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum ContainerContent {
    Filter(AnyFilter),
    /// A chain of quotient filters and its parameters.
    QuotientChain(SerializedParams, Vec<AnyFilter>),
    /// A filter that lost data, and the reason.
    Damaged(String),
}

/// Writes a container.
pub(crate) struct Container<'a> {
    prefix: [u8; PREFIX_BYTES],
    views: Vec<SerializedView<'a>>,
}

impl<'a> Container<'a> {
    /// Returns the container of a filter.
    pub(crate) fn of_filter(filter: SerializedView<'a>) -> Self {
        Self::new(0, SerializedParams::default(), vec![filter])
    }

    /// Returns the container of a chain of quotient filters.
    pub(crate) fn of_chain(params: SerializedParams, views: Vec<SerializedView<'a>>) -> Self {
        Self::new(1, params, views)
    }

    fn new(content: u32, params: SerializedParams, views: Vec<SerializedView<'a>>) -> Self {
        let mut prefix = [0; PREFIX_BYTES];
        prefix[..12].copy_from_slice(&MAGIC);
        for (at, number) in [(12, VERSION), (16, content), (20, views.len() as u32)] {
            prefix[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        for (word, bytes) in params.iter().zip(prefix[24..].chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self { prefix, views }
    }

    /// Returns up to `max_len` bytes from an offset. Shorter at the end of the prefix, of a header
    /// or of a filter's data; empty at the end of the container.
    pub(crate) fn read(&self, offset: u64, max_len: usize) -> Cow<'_, [u8]> {
        fn slice<'b>(bytes: &[u8], at: u64, max_len: usize) -> Cow<'b, [u8]> {
            let rest = &bytes[at as usize..];
            Cow::Owned(rest[..rest.len().min(max_len)].to_vec())
        }
        if offset < PREFIX_BYTES as u64 {
            return slice(&self.prefix, offset, max_len);
        }
        let mut offset = offset - PREFIX_BYTES as u64;
        for view in &self.views {
            if offset < HEADER as u64 {
                return slice(&view.header_with_sum(0), offset, max_len);
            }
            offset -= HEADER as u64;
            if offset < view.data_len() {
                return Cow::Borrowed(view.read(offset, max_len));
            }
            offset -= view.data_len();
        }
        Cow::Borrowed(&[])
    }

    /// Returns all bytes in chunks of at most `max_len`.
    pub(crate) fn chunks(&self, max_len: usize) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let mut offset = 0;
        std::iter::from_fn(move || {
            let chunk = self.read(offset, max_len);
            offset += chunk.len() as u64;
            (!chunk.is_empty()).then_some(chunk)
        })
    }
}

/// An import of a container or a `.petal` file that is not complete, or a damaged filter.
#[derive(Debug)]
pub(crate) struct PartialImport {
    memory_limit: u64,
    state: ImportState,
    received: u64,
}

#[derive(Debug)]
enum ImportState {
    /// A filter that lost data, and the reason. Queries are errors.
    Damaged(String),
    File(StreamDecoder),
    Container {
        prefix: Vec<u8>,
        filters: Vec<AnyFilter>,
        next: Option<StreamDecoder>,
    },
}

impl PartialImport {
    /// Begins the import of a `.petal` file.
    pub(crate) fn file(memory_limit: u64) -> Self {
        Self {
            memory_limit,
            state: ImportState::File(
                StreamDecoder::file(memory_limit).with_secret(secret::current()),
            ),
            received: 0,
        }
    }

    /// Begins the import of a container.
    pub(crate) fn container(memory_limit: u64) -> Self {
        let state = ImportState::Container { prefix: Vec::new(), filters: Vec::new(), next: None };
        Self { memory_limit, state, received: 0 }
    }

    /// Returns a filter that lost data, because a command failed during replay.
    pub(crate) fn damaged(reason: &str) -> Self {
        let reason = reason.chars().take(MAX_REASON).collect();
        Self { memory_limit: 0, state: ImportState::Damaged(reason), received: 0 }
    }

    /// Returns the reason of the damage; `None` for an import.
    pub(crate) fn damage(&self) -> Option<&str> {
        match &self.state {
            ImportState::Damaged(reason) => Some(reason),
            ImportState::File(_) | ImportState::Container { .. } => None,
        }
    }

    /// Returns whether this is the import of a `.petal` file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.state, ImportState::File(_))
    }

    /// Returns the number of bytes received.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received
    }

    /// Returns the length of the file; 0 for a container. Until the header is complete, this is the
    /// length of the header.
    pub(crate) fn total_bytes(&self) -> u64 {
        match &self.state {
            ImportState::File(decoder) => decoder.progress().1,
            ImportState::Container { .. } | ImportState::Damaged(_) => 0,
        }
    }

    /// Returns the memory in bytes. The memory for the data is allocated when the header is
    /// complete.
    pub(crate) fn memory_usage(&self) -> u64 {
        match &self.state {
            ImportState::Damaged(reason) => reason.len() as u64,
            ImportState::File(decoder) => decoder.progress().1,
            ImportState::Container { filters, next, .. } => {
                let complete = filters.iter().map(|filter| filter.as_dyn().memory_usage());
                complete.sum::<u64>() + next.as_ref().map_or(0, |next| next.progress().1)
            }
        }
    }

    /// Adds the next bytes. Returns the content after the last ones.
    ///
    /// # Errors
    /// If the bytes are invalid. The import cannot be continued.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
    ) -> Result<Option<ContainerContent>, FilterError> {
        self.received += bytes.len() as u64;
        let memory_limit = self.memory_limit;
        let (prefix, filters, next) = match &mut self.state {
            ImportState::Damaged(reason) => return FilterError::malformed(reason),
            ImportState::File(decoder) => {
                decoder.push(bytes).map_err(|error| import_error(&error, 0))?;
                let (received, total) = decoder.progress();
                // Until the header is complete, the total is the length of the header.
                if received < total {
                    return Ok(None);
                }
                let complete = std::mem::replace(decoder, StreamDecoder::file(0));
                let (filter, _) = complete.finish().map_err(|error| import_error(&error, 0))?;
                return Ok(Some(ContainerContent::Filter(filter)));
            }
            ImportState::Container { prefix, filters, next } => (prefix, filters, next),
        };
        take(&mut bytes, PREFIX_BYTES - prefix.len(), |taken| prefix.extend_from_slice(taken));
        if !prefix.starts_with(&MAGIC[..prefix.len().min(MAGIC.len())]) {
            return FilterError::malformed("not a petal container (wrong first bytes)");
        }
        if prefix.len() < PREFIX_BYTES {
            return Ok(None);
        }
        let (content, count, params) = match parse_prefix(prefix)? {
            (ContentType::Damaged, ..) => {
                let reason = String::from_utf8_lossy(bytes).into_owned();
                return Ok(Some(ContainerContent::Damaged(reason)));
            }
            prefix => prefix,
        };
        while filters.len() < count {
            let used: u64 = filters.iter().map(|filter| filter.as_dyn().size_bytes()).sum();
            let left = memory_limit.saturating_sub(used);
            let decoder = next.get_or_insert_with(|| {
                StreamDecoder::serialized_without_checksum(left).with_secret(secret::current())
            });
            let (before, total) = decoder.progress();
            let mut outcome = Ok(());
            let max_len = usize::try_from(total - before).unwrap_or(usize::MAX);
            take(&mut bytes, max_len, |taken| outcome = decoder.push(taken));
            outcome.map_err(|error| import_error(&error, used))?;
            let (received, total) = decoder.progress();
            if received == total
                && total > HEADER as u64
                && let Some(complete) = next.take()
            {
                filters.push(complete.finish().map_err(|error| import_error(&error, used))?.0);
            } else if bytes.is_empty() {
                return Ok(None);
            } else if received == before {
                return FilterError::malformed("a filter without data");
            }
        }
        if !bytes.is_empty() {
            return FilterError::malformed(&format!("{} bytes after the end", bytes.len()));
        }
        let mut filters = std::mem::take(filters);
        Ok(Some(match content {
            ContentType::QuotientChain => ContainerContent::QuotientChain(params, filters),
            _ => ContainerContent::Filter(filters.remove(0)),
        }))
    }

    /// Returns a copy. `None` if the allocation fails.
    pub(crate) fn copy(&self) -> Option<Self> {
        let mut copy = match &self.state {
            ImportState::Damaged(reason) => return Some(Self::damaged(reason)),
            ImportState::File(_) => Self::file(self.memory_limit),
            ImportState::Container { .. } => Self::container(self.memory_limit),
        };
        let mut copied = Ok(());
        self.received_chunks(usize::MAX, |bytes| {
            copied =
                std::mem::replace(&mut copied, Ok(())).and_then(|()| copy.push(bytes).map(drop));
        });
        copied.ok().map(|()| copy)
    }

    /// Passes all received bytes to a function, in chunks of at most `max_len`. Pushed to a new
    /// import, they give the same state.
    pub(crate) fn received_chunks(&self, max_len: usize, mut take: impl FnMut(&[u8])) {
        let mut pass = |bytes: &[u8]| bytes.chunks(max_len).for_each(&mut take);
        match &self.state {
            ImportState::Damaged(reason) => {
                let params = SerializedParams::default();
                let prefix = Container::new(DAMAGED, params, Vec::new()).prefix;
                pass(&[&prefix, reason.as_bytes()].concat());
            }
            ImportState::File(decoder) => decoder.received().iter().for_each(|piece| pass(piece)),
            ImportState::Container { prefix, filters, next } => {
                pass(prefix);
                for filter in filters {
                    let view = filter.serialized();
                    pass(&view.header_with_sum(0));
                    let mut offset = 0;
                    while offset < view.data_len() {
                        let piece = view.read(offset, usize::MAX);
                        offset += piece.len() as u64;
                        pass(piece);
                    }
                }
                next.iter().flat_map(StreamDecoder::received).for_each(|piece| pass(&piece));
            }
        }
    }
}

/// Returns why a filter was not read, after `used` bytes of filters before it.
fn import_error(error: &petal::Error, used: u64) -> FilterError {
    match error.kind() {
        ErrorKind::NoMemory { bytes: left, minimum } => {
            FilterError::OverLimit { bytes: minimum.saturating_add(used), limit: left + used }
        }
        ErrorKind::Alloc { .. } => FilterError::OutOfMemory,
        _ if error.is_secret_missing() => FilterError::Malformed(
            "the secret of the filter is not in its file; set petal.secret-file".to_owned(),
        ),
        _ if error.is_secret() => FilterError::Malformed(
            "petal.secret-file has another secret than that of the filter".to_owned(),
        ),
        _ => FilterError::Malformed(error.to_string()),
    }
}

/// Passes up to `max_len` leading bytes to a function and removes them from the slice.
fn take(bytes: &mut &[u8], max_len: usize, consume: impl FnOnce(&[u8])) {
    let (taken, rest) = bytes.split_at(bytes.len().min(max_len));
    consume(taken);
    *bytes = rest;
}

enum ContentType {
    Filter,
    QuotientChain,
    Damaged,
}

fn parse_prefix(prefix: &[u8]) -> Result<(ContentType, usize, SerializedParams), FilterError> {
    let number = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&prefix[at..at + 4]);
        u32::from_le_bytes(bytes)
    };
    if number(12) != VERSION {
        let reason = format!("container of version {}; version {VERSION} expected", number(12));
        return Err(FilterError::Malformed(reason));
    }
    let mut params = SerializedParams::default();
    for (word, bytes) in params.iter_mut().zip(prefix[24..].as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    match (number(16), number(20)) {
        (0, 1) if params == SerializedParams::default() => Ok((ContentType::Filter, 1, params)),
        (1, 1..=MAX_FILTERS) => Ok((ContentType::QuotientChain, number(20) as usize, params)),
        (DAMAGED, 0) => Ok((ContentType::Damaged, 0, params)),
        (content, count) => Err(FilterError::Malformed(format!(
            "container with content {content} and {count} filters is not supported"
        ))),
    }
}
