//! Decoding a filter from a stream of pieces of any size.
//!
//! It accepts the same bytes as [`AnyFilter::read_from`]: header, layout
//! and checks are the same code.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;
use core::fmt;
use core::mem;

use xxhash_rust::xxh3::Xxh3;

use super::AnyFilter;
use crate::error::{Error, Result};
use crate::format::header::{HEADER, Header, MAGIC};
use crate::format::partial::{CompleteData, PartialData};
use crate::format::persist::{CheckState, Load};
use crate::format::read::{check_data_sum, metadata_of, too_short};
use crate::hash::Secret;
use crate::store::{
    Borrowed, CacheLine, Owned, Store as _, StoreMut as _, lines_as_bytes, lines_as_bytes_mut,
};

/// The number of bytes between two early checks.
const CHECK_INTERVAL: u64 = 256 << 10;

/// Decodes a filter from pieces of any size, for programs that must not wait for all of
/// them, such as a server with an event loop.
///
/// Cost: pushing copies the bytes and computes their checksum. Memory for the data is allocated when
/// the header is complete, and not accessed before the data arrive. Types whose data must be checked
/// are checked every 256 KiB, so that the cost of [`finish`](Self::finish) does not depend on the
/// length of the data. The check of a [`QuotientFilter`](crate::QuotientFilter) takes longest; if
/// the copies of one key fill megabytes, they are checked in one step.
///
/// After an error the decoder is empty and takes no more bytes.
pub struct StreamDecoder {
    /// The largest length of the data that is accepted.
    max_data: u64,
    /// True if metadata and padding precede the data.
    has_metadata: bool,
    /// True if the data have a checksum.
    has_checksum: bool,
    /// That of the filter, if it is not in the bytes.
    secret: Option<Secret>,
    state: State,
}

enum State {
    /// The header, with metadata and padding, is incomplete; its length is at least `length` bytes.
    Header {
        bytes: Vec<u8>,
        length: usize,
    },
    Data(Box<PartialFilter>),
    Failed,
}

impl StreamDecoder {
    /// Creates a decoder of a whole `.petal` file with at most `max_data` bytes of data.
    #[must_use]
    pub fn file(max_data: u64) -> Self {
        let state = State::Header { bytes: Vec::new(), length: HEADER };
        Self { max_data, has_metadata: true, has_checksum: true, secret: None, state }
    }

    /// Creates a decoder of the header and the data of a
    /// [`SerializedView`](crate::embed::SerializedView), with at most `max_data` bytes of data.
    #[must_use]
    pub fn serialized(max_data: u64) -> Self {
        Self { has_metadata: false, ..Self::file(max_data) }
    }

    /// [`serialized`](Self::serialized) for data without a checksum, whose header is that of
    /// [`SerializedView::header_with_sum`](crate::embed::SerializedView::header_with_sum) with 0:
    /// for transports that have a checksum of their own.
    #[must_use]
    pub fn serialized_without_checksum(max_data: u64) -> Self {
        Self { has_checksum: false, ..Self::serialized(max_data) }
    }

    /// Decodes a filter of [`HashSpec::keyed_apart`](crate::HashSpec::keyed_apart) with its secret; other
    /// filters ignore it.
    #[must_use]
    pub fn with_secret(self, secret: Option<Secret>) -> Self {
        Self { secret, ..self }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// As soon as the bytes cannot become a filter: they do not begin with petal's magic number, the
    /// header is damaged or states more data than allowed
    /// ([`NoMemory`](crate::ErrorKind::NoMemory)), the secret of the filter is missing or wrong, a part of the
    /// data is invalid, memory allocation fails, or there are more bytes than the header states.
    /// [`finish`](Self::finish) reports errors of the data as a whole.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let before = mem::replace(&mut self.state, State::Failed);
        self.state = match before {
            State::Header { bytes: received, length } => {
                self.push_header(received, length, bytes)?
            }
            State::Data(mut partial) => {
                partial.push(bytes)?;
                State::Data(partial)
            }
            State::Failed => return Err(failed_before()),
        };
        Ok(())
    }

    /// Returns the number of bytes received and the total number. Until the header is complete, the
    /// total is the length of a header. Both are 0 after an error.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        match &self.state {
            State::Header { bytes, length } => (bytes.len() as u64, *length as u64),
            State::Data(partial) => {
                let data_at =
                    if self.has_metadata { partial.header.data_at() } else { HEADER as u64 };
                (data_at + partial.received, data_at + partial.header.data_length)
            }
            State::Failed => (0, 0),
        }
    }

    /// Returns all bytes received, in pieces. Pushed to another decoder of this kind, they give it
    /// the same state. Empty after an error.
    #[must_use]
    pub fn received(&self) -> Vec<Cow<'_, [u8]>> {
        match &self.state {
            State::Header { bytes, .. } => vec![Cow::Borrowed(bytes)],
            State::Data(partial) => partial.received(self.has_metadata),
            State::Failed => Vec::new(),
        }
    }

    /// Returns the filter and its metadata after the last byte.
    ///
    /// # Errors
    /// If bytes are missing, or the data are damaged.
    pub fn finish(self) -> Result<(AnyFilter, String)> {
        self.finish_as()
    }

    /// [`finish`](Self::finish) for a filter of a known type.
    pub(crate) fn finish_as<F: Load<Store = Owned>>(self) -> Result<(F, String)> {
        match self.state {
            State::Header { bytes, .. } if bytes.len() < HEADER => {
                Err(too_short(&bytes, HEADER as u64))
            }
            State::Header { bytes, length } => {
                Err(Error::truncated(length as u64, bytes.len() as u64))
            }
            State::Data(partial) => partial.finish(),
            State::Failed => Err(failed_before()),
        }
    }

    /// Collects the bytes before the data until they have their full length.
    fn push_header(
        &self,
        mut received: Vec<u8>,
        mut length: usize,
        mut bytes: &[u8],
    ) -> Result<State> {
        loop {
            let (now, later) = bytes.split_at(bytes.len().min(length - received.len()));
            received.extend_from_slice(now);
            bytes = later;
            if !received.starts_with(&MAGIC[..received.len().min(MAGIC.len())]) {
                return Err(Error::foreign(&received));
            }
            let Some(fixed) = received.first_chunk::<HEADER>().filter(|_| received.len() == length)
            else {
                return Ok(State::Header { bytes: received, length });
            };
            let header = Header::from_bytes(fixed)?;
            if header.data_length > self.max_data {
                return Err(Error::over_limit(self.max_data, header.data_length));
            }
            // At most a megabyte and a page: checked by `from_bytes`.
            let data_at = if self.has_metadata { header.data_at() as usize } else { HEADER };
            if length < data_at {
                length = data_at;
                continue;
            }
            if !self.has_metadata && header.metadata_length > 0 {
                let found = header.metadata_length;
                return Err(Error::invalid("length of the metadata", "0", found));
            }
            let metadata = metadata_of(&header, fixed, &received[HEADER..])?;
            let header = header.unlocked(self.secret.as_ref())?;
            let mut partial = PartialFilter::new(header, metadata, self.has_checksum);
            partial.allocate_parts()?;
            partial.push(bytes)?;
            return Ok(State::Data(Box::new(partial)));
        }
    }
}

fn failed_before() -> Error {
    Error::invalid("decoder", "one without an earlier error", "one that has failed")
}

impl fmt::Debug for StreamDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (received, total) = self.progress();
        write!(f, "StreamDecoder({received} of {total} bytes)")
    }
}

/// A filter with a valid header and incomplete data.
struct PartialFilter {
    header: Header,
    metadata: String,
    /// All are complete but the last, of which `filled` bytes have arrived.
    parts: Vec<Owned>,
    filled: usize,
    /// The number of bytes of all parts.
    received: u64,
    /// True if the last part is the last of the data.
    has_all_parts: bool,
    /// `None` without a checksum.
    sum: Option<Xxh3>,
    check: CheckState,
    /// The number of bytes at the last early check.
    checked_at: u64,
}

impl PartialFilter {
    fn new(header: Header, metadata: String, has_checksum: bool) -> Self {
        Self {
            header,
            metadata,
            parts: Vec::new(),
            filled: 0,
            received: 0,
            has_all_parts: false,
            sum: has_checksum.then(Xxh3::new),
            check: CheckState::default(),
            checked_at: 0,
        }
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let Some(part) = self.parts.last_mut().filter(|_| !self.has_all_parts) else {
                let expected = self.header.file_length();
                return Err(Error::truncated(expected, expected.saturating_add(1)));
            };
            let room = &mut lines_as_bytes_mut(part.lines_mut())[self.filled..];
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            if let Some(sum) = &mut self.sum {
                sum.update(now);
            }
            self.filled += now.len();
            self.received += now.len() as u64;
            bytes = later;
            self.allocate_parts()?;
        }
        if self.received >= self.checked_at.saturating_add(CHECK_INTERVAL) {
            self.checked_at = self.received;
            self.check_early()?;
        }
        Ok(())
    }

    /// Allocates the next part once the last is full.
    fn allocate_parts(&mut self) -> Result<()> {
        while !self.has_all_parts
            && self.filled == self.parts.last().map_or(0, |part| size_of_val(part.lines()))
        {
            let mut data = PartialData::new(&self.header, &self.parts);
            let loaded = AnyFilter::<Borrowed<'_>>::load(&self.header, &mut data);
            match (loaded, data.next()) {
                (Ok(_), _) => {
                    data.finish()?;
                    self.has_all_parts = true;
                }
                // At most as many lines as the header states, whose number is limited.
                (Err(_), Some(lines)) => {
                    self.parts.push(Owned::zeroed(lines)?);
                    self.filled = 0;
                }
                (Err(error), None) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks the data that have arrived, once all parts have memory.
    fn check_early(&mut self) -> Result<()> {
        let mut data = PartialData::new(&self.header, &self.parts);
        let Ok(filter) = AnyFilter::<Borrowed<'_>>::load(&self.header, &mut data) else {
            return Ok(());
        };
        let lines = (self.received / CacheLine::BYTES as u64) as usize;
        filter.check_early(self.header.data_at(), lines, &mut self.check)
    }

    fn received(&self, with_metadata: bool) -> Vec<Cow<'_, [u8]>> {
        let mut header = self.header.to_bytes(self.metadata.as_bytes()).to_vec();
        if with_metadata {
            header.extend_from_slice(self.metadata.as_bytes());
            header.resize(self.header.data_at() as usize, 0);
        }
        let last = self.parts.len().saturating_sub(1);
        let data = self.parts.iter().enumerate().map(|(at, part)| {
            let bytes = lines_as_bytes(part.lines());
            Cow::Borrowed(if at == last { &bytes[..self.filled] } else { bytes })
        });
        [Cow::Owned(header)].into_iter().chain(data).collect()
    }

    fn finish<F: Load<Store = Owned>>(self) -> Result<(F, String)> {
        let Self { header, .. } = self;
        if !self.has_all_parts {
            let found = header.data_at().saturating_add(self.received);
            return Err(Error::truncated(header.file_length(), found));
        }
        check_data_sum(&header, self.sum.map_or(0, |sum| sum.digest()))?;
        let filter = F::load(&header, &mut CompleteData::new(&header, self.parts))?;
        filter.check(header.data_at(), self.check)?;
        Ok((filter, self.metadata))
    }
}
