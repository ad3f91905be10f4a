//! The data of a file, taken piece by piece: from a stream, or from where it lies in memory.

use std::io::Read;

use xxhash_rust::xxh3::Xxh3;

use super::header::{HEADER, Header};
use super::read::{check_data_sum, metadata_of, read_full, too_short};
use crate::error::{Error, Result};
use crate::store::{Line, Owned, Pieces, Store, StoreMut as _, bytes_of_mut};

/// The lines of a file's data, in their order.
pub(crate) trait Data {
    /// Where they lie once they are taken.
    type Store: Store;

    /// The next so many lines; refused if the header does not promise as many.
    fn take(&mut self, lines: u64) -> Result<Self::Store>;
}

/// Data that come from a stream of unknown length, every byte examined. Memory grows with what
/// has arrived.
pub(crate) struct Incoming<R> {
    stream: R,
    header: Header,
    sum: Xxh3,
    /// Bytes taken.
    taken: u64,
}

impl<R: Read> Incoming<R> {
    /// Reads what stands before the data: also the metadata.
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

    /// Compares the checksum, once all data are taken and nothing follows.
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

impl<R: Read> Data for Incoming<R> {
    type Store = Owned;

    /// The memory is made larger as lines come, sixteenfold and at last to its full size, so that
    /// moving them never takes much beside it.
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
            let got = read_full(&mut self.stream, &mut bytes_of_mut(store.lines_mut())[have..])?;
            self.sum.update(&bytes_of_mut(store.lines_mut())[have..have + got]);
            have += got;
            self.taken += got as u64;
            let room = store.lines().len();
            if have < room * Line::BYTES {
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

/// Data that lie in memory.
pub(crate) struct Placed<S> {
    whole: S,
    /// Lines taken.
    taken: usize,
}

impl<S: Pieces> Placed<S> {
    pub(crate) fn new(whole: S) -> Self {
        Self { whole, taken: 0 }
    }

    /// All data are taken.
    pub(crate) fn finish(&self, header: &Header) -> Result<()> {
        header.check_length(self.taken as u64 * Line::BYTES as u64)
    }
}

impl<S: Pieces> Data for Placed<S> {
    type Store = S;

    fn take(&mut self, lines: u64) -> Result<S> {
        let have = self.whole.lines().len();
        let end = usize::try_from(lines).ok().and_then(|lines| self.taken.checked_add(lines));
        let Some(end) = end.filter(|end| *end <= have) else {
            let needed = (self.taken as u64).saturating_add(lines);
            let bytes = |lines: u64| lines.saturating_mul(Line::BYTES as u64);
            return Err(Header::short_of(bytes(needed), bytes(have as u64)));
        };
        let piece = self.whole.piece(self.taken..end);
        self.taken = end;
        Ok(piece)
    }
}

/// The header promises so many lines more.
pub(super) fn check_left(header: &Header, taken: u64, lines: u64) -> Result<()> {
    let needed = lines.saturating_mul(Line::BYTES as u64).saturating_add(taken);
    if needed > header.data_length {
        return Err(Header::short_of(needed, header.data_length));
    }
    Ok(())
}
