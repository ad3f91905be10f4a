//! The data of a file, taken in parts: from a stream, or in place.

#[cfg(feature = "std")]
use std::io::Read;

#[cfg(feature = "std")]
use xxhash_rust::xxh3::Xxh3;

use super::header::{HEADER, Header};
#[cfg(feature = "std")]
use super::read::{check_data_sum, metadata_of, read_full, too_short};
use crate::error::{Error, Result};
use crate::store::{CacheLine, Owned, SliceStore, Store, StoreMut as _, lines_as_bytes_mut};

/// A source of the lines of data, in order.
pub(crate) trait DataSource {
    /// The memory of the parts.
    type Store: Store;

    /// Takes the next `lines` lines; an error if the header states fewer.
    fn take(&mut self, lines: u64) -> Result<Self::Store>;
}

/// Data from a stream of unknown length, with a checksum of every byte. Memory grows with the data
/// that have arrived.
#[cfg(feature = "std")]
pub(crate) struct StreamData<R> {
    stream: R,
    header: Header,
    sum: Xxh3,
    /// Bytes taken.
    taken: u64,
}

#[cfg(feature = "std")]
impl<R: Read> StreamData<R> {
    /// Reads header, metadata and padding.
    pub(crate) fn open(mut stream: R) -> Result<(Self, String)> {
        let mut fixed = [0; HEADER];
        let got = read_full(&mut stream, &mut fixed)?;
        if got < HEADER {
            return Err(too_short(&fixed[..got], HEADER as u64));
        }
        let header = Header::from_bytes(&fixed)?;
        // Less than a megabyte and a page: checked by `from_bytes`.
        let mut front = vec![0; header.data_at() as usize - HEADER];
        let got = read_full(&mut stream, &mut front)?;
        if got < front.len() {
            return Err(Error::truncated(header.data_at(), (HEADER + got) as u64));
        }
        let metadata = metadata_of(&header, &fixed, &front)?;
        Ok((Self { stream, header, sum: Xxh3::new(), taken: 0 }, metadata))
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// Compares the checksum and checks that all data are taken and nothing follows.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.header.check_length(self.taken)?;
        check_data_sum(&self.header, self.sum.digest())?;
        if read_full(&mut self.stream, &mut [0])? > 0 {
            let expected = self.header.file_length();
            return Err(Error::truncated(expected, expected + 1));
        }
        Ok(())
    }
}

#[cfg(feature = "std")]
impl<R: Read> DataSource for StreamData<R> {
    type Store = Owned;

    /// The memory grows as lines arrive, by a factor of 16 up to its full size, so that the copies
    /// take little memory beside it.
    fn take(&mut self, lines: u64) -> Result<Owned> {
        const FIRST: u64 = 1 << 14;
        const TIMES: u64 = 16;
        check_left(&self.header, self.taken, lines)?;
        let mut first = lines;
        while first > FIRST {
            first = first.div_ceil(TIMES);
        }
        let mut store = Owned::zeroed(first)?;
        let mut have = 0;
        loop {
            let got =
                read_full(&mut self.stream, &mut lines_as_bytes_mut(store.lines_mut())[have..])?;
            self.sum.update(&lines_as_bytes_mut(store.lines_mut())[have..have + got]);
            have += got;
            self.taken += got as u64;
            let room = store.lines().len();
            if have < room * CacheLine::BYTES {
                let found = self.header.data_at() + self.taken;
                return Err(Error::truncated(self.header.file_length(), found));
            }
            if room as u64 == lines {
                return Ok(store);
            }
            let mut larger = Owned::zeroed(lines.min(room as u64 * TIMES))?;
            larger.lines_mut()[..room].copy_from_slice(store.lines());
            store = larger;
        }
    }
}

/// Data in memory.
pub(crate) struct InPlaceData<S> {
    whole: S,
    /// Lines taken.
    taken: usize,
}

impl<S: SliceStore> InPlaceData<S> {
    pub(crate) fn new(whole: S) -> Self {
        Self { whole, taken: 0 }
    }

    /// Checks that all data are taken.
    pub(crate) fn finish(&self, header: &Header) -> Result<()> {
        header.check_length(self.taken as u64 * CacheLine::BYTES as u64)
    }
}

impl<S: SliceStore> DataSource for InPlaceData<S> {
    type Store = S;

    fn take(&mut self, lines: u64) -> Result<S> {
        let have = self.whole.lines().len();
        let end = usize::try_from(lines).ok().and_then(|lines| self.taken.checked_add(lines));
        let Some(end) = end.filter(|end| *end <= have) else {
            let needed = (self.taken as u64).saturating_add(lines);
            let bytes = |lines: u64| lines.saturating_mul(CacheLine::BYTES as u64);
            return Err(Header::wrong_data_length(bytes(needed), bytes(have as u64)));
        };
        let piece = self.whole.slice_lines(self.taken..end);
        self.taken = end;
        Ok(piece)
    }
}

/// Checks that the header states at least `lines` lines more.
pub(super) fn check_left(header: &Header, taken: u64, lines: u64) -> Result<()> {
    let needed = lines.saturating_mul(CacheLine::BYTES as u64).saturating_add(taken);
    if needed > header.data_length {
        return Err(Header::wrong_data_length(needed, header.data_length));
    }
    Ok(())
}
