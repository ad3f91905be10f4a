//! A filter that comes in pieces of any size, pushed as they arrive.
//!
//! Accepts what [`AnyFilter::read_from`] accepts, and nothing else: header, form and checks are
//! the same code.

use std::borrow::Cow;
use std::fmt;
use std::mem;

use xxhash_rust::xxh3::Xxh3;

use super::AnyFilter;
use crate::error::{Error, Result};
use crate::format::form::{Checked, Form};
use crate::format::header::{HEADER, Header};
use crate::format::parts::{SoFar, Whole};
use crate::format::read::{check_data_sum, metadata_of, too_short};
use crate::store::{Lent, Line, Owned, Store as _, StoreMut as _, bytes_of, bytes_of_mut};

/// What has come is looked at again when so many bytes more have.
const STEP: u64 = 256 << 10;

/// Takes a filter in pieces of any size, for a program that must not wait for the whole: a server
/// in its event loop.
///
/// Cost: of pushing, a copy and a checksum of the bytes pushed; the memory for the data is asked
/// for when the header is there, and not written to before they come. Types whose data must be
/// examined are examined while they come, in steps of 256 KiB, so that nothing of
/// [`finish`](Self::finish) depends on the length of the data. The slowest of them is a
/// [`QuotientFilter`](crate::QuotientFilter); one that holds a key so often that its copies fill
/// megabytes is left with those to the end, or takes them in one step.
///
/// After an error nothing is left in it and it takes nothing more.
pub struct Receiver {
    /// Bytes of data that it takes.
    most: u64,
    /// Whether metadata and padding stand before the data.
    front: bool,
    /// Whether the data have a checksum.
    summed: bool,
    state: State,
}

enum State {
    /// What stands before the data is not all there.
    Front {
        bytes: Vec<u8>,
        length: usize,
    },
    Data(Box<Arriving>),
    Refused,
}

impl Receiver {
    /// For a whole `.petal` file with at most so many bytes of data.
    #[must_use]
    pub fn file(most_bytes: u64) -> Self {
        let state = State::Front { bytes: Vec::new(), length: HEADER };
        Self { most: most_bytes, front: true, summed: true, state }
    }

    /// For the header and the data of an [`Image`](crate::Image), nothing between them, with at
    /// most so many bytes of data.
    #[must_use]
    pub fn image(most_bytes: u64) -> Self {
        Self { front: false, ..Self::file(most_bytes) }
    }

    /// As [`image`](Self::image), where the data come without a checksum
    /// ([`Image::header_with_sum`](crate::Image::header_with_sum) of 0): for carriers that have one
    /// of their own.
    #[must_use]
    pub fn unsummed_image(most_bytes: u64) -> Self {
        Self { summed: false, ..Self::image(most_bytes) }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// As soon as it is known that no filter can come of it: the header is damaged, or promises
    /// more data than are taken; a part of the data is not what it can only be; the memory is
    /// refused; or more comes than the header promises. What is wrong with the data as a whole is
    /// told by [`finish`](Self::finish).
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let before = mem::replace(&mut self.state, State::Refused);
        self.state = match before {
            State::Front { bytes: so_far, length } => self.take_front(so_far, length, bytes)?,
            State::Data(mut arriving) => {
                arriving.take(bytes)?;
                State::Data(arriving)
            }
            State::Refused => return Err(refused_before()),
        };
        Ok(())
    }

    /// Bytes that have come, and how many there will be in all, as far as it is known: at first
    /// those of a header. Zeros after an error.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        match &self.state {
            State::Front { bytes, length } => (bytes.len() as u64, *length as u64),
            State::Data(arriving) => {
                let front = if self.front { arriving.header.data_at() } else { HEADER as u64 };
                (front + arriving.came, front + arriving.header.data_length)
            }
            State::Refused => (0, 0),
        }
    }

    /// All that has come, in pieces: pushed to another receiver of this kind, they make it what this
    /// one is. Nothing after an error.
    #[must_use]
    pub fn received(&self) -> Vec<Cow<'_, [u8]>> {
        match &self.state {
            State::Front { bytes, .. } => vec![Cow::Borrowed(bytes)],
            State::Data(arriving) => arriving.received(self.front),
            State::Refused => Vec::new(),
        }
    }

    /// The filter and its metadata, once all bytes have come.
    ///
    /// # Errors
    /// If bytes are missing, or the data are damaged in any way.
    pub fn finish(self) -> Result<(AnyFilter, String)> {
        match self.state {
            State::Front { bytes, .. } if bytes.len() < HEADER => {
                Err(too_short(&bytes, HEADER as u64))
            }
            State::Front { bytes, length } => {
                Err(Error::truncated(length as u64, bytes.len() as u64))
            }
            State::Data(arriving) => arriving.finish(),
            State::Refused => Err(refused_before()),
        }
    }

    /// Goes on collecting what stands before the data, until it has this length.
    fn take_front(
        &self,
        mut so_far: Vec<u8>,
        mut length: usize,
        mut bytes: &[u8],
    ) -> Result<State> {
        loop {
            let (now, later) = bytes.split_at(bytes.len().min(length - so_far.len()));
            so_far.extend_from_slice(now);
            bytes = later;
            let Some(fixed) = so_far.first_chunk::<HEADER>().filter(|_| so_far.len() == length)
            else {
                return Ok(State::Front { bytes: so_far, length });
            };
            let header = Header::from_bytes(fixed)?;
            if header.data_length > self.most {
                let expected = "no more than the limit";
                let found = format!("{} against {}", header.data_length, self.most);
                return Err(Error::invalid("length of the data", expected, found));
            }
            // At most a megabyte and a page: checked by `from_bytes`.
            let whole = if self.front { header.data_at() as usize } else { HEADER };
            if length < whole {
                length = whole;
                continue;
            }
            if !self.front && header.metadata_length > 0 {
                let found = header.metadata_length;
                return Err(Error::invalid("length of the metadata", "0 in an image", found));
            }
            let metadata = metadata_of(&header, fixed, &so_far[HEADER..])?;
            let mut arriving = Arriving::new(header, metadata, self.summed);
            arriving.make_room()?;
            arriving.take(bytes)?;
            return Ok(State::Data(Box::new(arriving)));
        }
    }
}

fn refused_before() -> Error {
    Error::invalid("receiver", "one that has not failed", "one that has")
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (have, total) = self.progress();
        write!(f, "Receiver({have} of {total} bytes)")
    }
}

/// Data behind a header that is sound.
struct Arriving {
    header: Header,
    metadata: String,
    /// All have come but the last, of which so many bytes have.
    parts: Vec<Owned>,
    have: usize,
    /// Bytes of all parts.
    came: u64,
    /// Whether there is no further part.
    whole: bool,
    /// None if they have no checksum.
    sum: Option<Xxh3>,
    checked: Checked,
    /// Bytes that had come when they were looked at last.
    looked: u64,
}

impl Arriving {
    fn new(header: Header, metadata: String, summed: bool) -> Self {
        Self {
            header,
            metadata,
            parts: Vec::new(),
            have: 0,
            came: 0,
            whole: false,
            sum: summed.then(Xxh3::new),
            checked: Checked::default(),
            looked: 0,
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let Some(part) = self.parts.last_mut().filter(|_| !self.whole) else {
                let expected = self.header.file_length();
                return Err(Error::truncated(expected, expected.saturating_add(1)));
            };
            let room = &mut bytes_of_mut(part.lines_mut())[self.have..];
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            if let Some(sum) = &mut self.sum {
                sum.update(now);
            }
            self.have += now.len();
            self.came += now.len() as u64;
            bytes = later;
            self.make_room()?;
        }
        if self.came >= self.looked.saturating_add(STEP) {
            self.looked = self.came;
            self.look()?;
        }
        Ok(())
    }

    /// Once the last part is full, finds out which is the next.
    fn make_room(&mut self) -> Result<()> {
        while !self.whole
            && self.have == self.parts.last().map_or(0, |part| size_of_val(part.lines()))
        {
            let mut so_far = SoFar::new(&self.header, &self.parts);
            let loaded = AnyFilter::<Lent<'_>>::load(&self.header, &mut so_far);
            match (loaded, so_far.next()) {
                (Ok(_), _) => {
                    so_far.finish()?;
                    self.whole = true;
                }
                // No more lines than the header promises, which are no more than may be taken.
                (Err(_), Some(lines)) => {
                    self.parts.push(Owned::zeroed(lines)?);
                    self.have = 0;
                }
                (Err(error), None) => return Err(error),
            }
        }
        Ok(())
    }

    /// Looks at what has come, once there is memory for all. Where something is missing that the
    /// form wants to know, nothing is.
    fn look(&mut self) -> Result<()> {
        let mut so_far = SoFar::new(&self.header, &self.parts);
        let Ok(filter) = AnyFilter::<Lent<'_>>::load(&self.header, &mut so_far) else {
            return Ok(());
        };
        let lines = (self.came / Line::BYTES as u64) as usize;
        filter.check_early(self.header.data_at(), lines, &mut self.checked)
    }

    fn received(&self, front: bool) -> Vec<Cow<'_, [u8]>> {
        let mut before = self.header.to_bytes(self.metadata.as_bytes()).to_vec();
        if front {
            before.extend_from_slice(self.metadata.as_bytes());
            before.resize(self.header.data_at() as usize, 0);
        }
        let last = self.parts.len().saturating_sub(1);
        let came = self.parts.iter().enumerate().map(|(at, part)| {
            let bytes = bytes_of(part.lines());
            Cow::Borrowed(if at == last { &bytes[..self.have] } else { bytes })
        });
        [Cow::Owned(before)].into_iter().chain(came).collect()
    }

    fn finish(self) -> Result<(AnyFilter, String)> {
        let Self { header, .. } = self;
        if !self.whole {
            let found = header.data_at().saturating_add(self.came);
            return Err(Error::truncated(header.file_length(), found));
        }
        check_data_sum(&header, self.sum.map_or(0, |sum| sum.digest()))?;
        let filter = AnyFilter::load(&header, &mut Whole::new(&header, self.parts))?;
        filter.check(header.data_at(), self.checked)?;
        Ok((filter, self.metadata))
    }
}
