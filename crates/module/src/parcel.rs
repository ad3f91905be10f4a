//! Filters of petal's own layout as bytes that come and go in pieces: in the server's files, in
//! chunks of `SCANDUMP`, in `.petal` files.
//!
//! A *parcel* is a mark, what is in it, and the images of one or several filters (docs/format.md),
//! each a header of 256 bytes and its data. It has no checksum of the data, for what carries it
//! has one: making one of 600 MB would hold up the server. The mark has a number of filters where
//! RedisBloom looks for one that it refuses.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `ff 70 65 74 61 6c 0d 0a` |
//! | 8..12 | `ff ff ff ff` |
//! | 12..16 | version: 1 |
//! | 16..20 | what it is: 0 a filter, 1 a row of quotient filters, 2 a damaged filter |
//! | 20..24 | how many images there are |
//! | 24..64 | five words of 8 bytes, of a row: see [`Row`] |
//!
//! Of a damaged filter ([`Incoming::damaged`]) only the reason follows, as text, in the same piece.
//!
//! Numbers have the low byte first.

use std::borrow::Cow;

use petal::{AnyFilter, Image, Receiver};

/// Bytes of the mark and what is behind it.
pub(crate) const FRONT: usize = 64;
/// What a parcel begins with.
pub(crate) const MARK: [u8; 12] = *b"\xffpetal\r\n\xff\xff\xff\xff";
const VERSION: u32 = 1;
/// Words of what a row is besides its filters.
pub(crate) const WORDS: usize = 5;
/// More filters than a row ever has: each is twice as large as the one before.
const MOST_IMAGES: u32 = 64;
/// The type of a parcel that stands for a damaged filter.
const DAMAGED: u32 = 2;
/// Characters of the reason that a damaged filter keeps.
const MOST_REASON: usize = 1000;
/// Bytes of an image's header.
const HEADER: usize = 256;

/// What a row of quotient filters is besides its filters: the words that it is made of.
pub(crate) type Row = [u64; WORDS];

/// What is in a parcel.
#[derive(Debug)]
pub(crate) enum Content {
    /// A filter.
    Filter(AnyFilter),
    /// A row of quotient filters, and what it is besides.
    Row(Row, Vec<AnyFilter>),
    /// A filter some of whose data is lost, and why.
    Damaged(String),
}

/// A parcel to be read in pieces.
pub(crate) struct Parcel<'a> {
    front: [u8; FRONT],
    images: Vec<Image<'a>>,
}

impl<'a> Parcel<'a> {
    /// Of a filter.
    pub(crate) fn of(filter: Image<'a>) -> Self {
        Self::new(0, [0; WORDS], vec![filter])
    }

    /// Of a row.
    pub(crate) fn of_row(row: Row, images: Vec<Image<'a>>) -> Self {
        Self::new(1, row, images)
    }

    fn new(what: u32, row: Row, images: Vec<Image<'a>>) -> Self {
        let mut front = [0; FRONT];
        front[..12].copy_from_slice(&MARK);
        for (at, number) in [(12, VERSION), (16, what), (20, images.len() as u32)] {
            front[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        for (word, bytes) in row.iter().zip(front[24..].chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self { front, images }
    }

    /// The bytes from a place on, at most so many: as far as they lie in one piece.
    pub(crate) fn read(&self, offset: u64, most: usize) -> Cow<'_, [u8]> {
        fn from<'b>(bytes: &[u8], at: u64, most: usize) -> Cow<'b, [u8]> {
            let rest = &bytes[at as usize..];
            Cow::Owned(rest[..rest.len().min(most)].to_vec())
        }
        if offset < FRONT as u64 {
            return from(&self.front, offset, most);
        }
        let mut before = offset - FRONT as u64;
        for image in &self.images {
            if before < HEADER as u64 {
                return from(&image.header_with_sum(0), before, most);
            }
            before -= HEADER as u64;
            if before < image.data_len() {
                return Cow::Borrowed(image.read(before, most));
            }
            before -= image.data_len();
        }
        Cow::Borrowed(&[])
    }

    /// All bytes, in pieces of at most so many.
    pub(crate) fn pieces(&self, most: usize) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let mut offset = 0;
        std::iter::from_fn(move || {
            let piece = self.read(offset, most);
            offset += piece.len() as u64;
            (!piece.is_empty()).then_some(piece)
        })
    }
}

/// A parcel, or a `.petal` file, of which not all has come.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Bytes of data that it takes.
    limit: u64,
    state: State,
    came: u64,
}

#[derive(Debug)]
enum State {
    /// Some of its data is lost. It answers nothing, and the reason says why.
    Damaged(String),
    File(Receiver),
    Parcel {
        front: Vec<u8>,
        filters: Vec<AnyFilter>,
        next: Option<Receiver>,
    },
}

impl Incoming {
    /// For a `.petal` file.
    pub(crate) fn file(limit: u64) -> Self {
        Self { limit, state: State::File(Receiver::file(limit)), came: 0 }
    }

    /// For a parcel.
    pub(crate) fn parcel(limit: u64) -> Self {
        let state = State::Parcel { front: Vec::new(), filters: Vec::new(), next: None };
        Self { limit, state, came: 0 }
    }

    /// A filter some of whose data is lost: while a log was replayed, a command of it failed.
    pub(crate) fn damaged(reason: &str) -> Self {
        let reason = reason.chars().take(MOST_REASON).collect();
        Self { limit: 0, state: State::Damaged(reason), came: 0 }
    }

    /// Why the filter is damaged, if it is.
    pub(crate) fn damage(&self) -> Option<&str> {
        match &self.state {
            State::Damaged(reason) => Some(reason),
            State::File(_) | State::Parcel { .. } => None,
        }
    }

    /// Whether it waits for a file, not a parcel.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.state, State::File(_))
    }

    /// Bytes that have come.
    pub(crate) fn came(&self) -> u64 {
        self.came
    }

    /// Of a file, bytes that there will be in all, as far as it is known.
    pub(crate) fn total(&self) -> u64 {
        match &self.state {
            State::File(receiver) => receiver.progress().1,
            State::Parcel { .. } | State::Damaged(_) => 0,
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory_usage(&self) -> u64 {
        // Memory for the data is asked for when the header is there.
        match &self.state {
            State::Damaged(reason) => reason.len() as u64,
            State::File(receiver) => receiver.progress().1,
            State::Parcel { filters, next, .. } => {
                let there = filters.iter().map(|filter| filter.face().memory_usage());
                there.sum::<u64>() + next.as_ref().map_or(0, |next| next.progress().1)
            }
        }
    }

    /// Takes the next bytes; what came of them, if they were the last. After an error nothing can
    /// come of it.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Option<Content>, String> {
        let told = |error: petal::Error| error.to_string();
        self.came += bytes.len() as u64;
        let limit = self.limit;
        let (front, filters, next) = match &mut self.state {
            State::Damaged(reason) => return Err(reason.clone()),
            State::File(receiver) => {
                receiver.push(bytes).map_err(told)?;
                let (have, total) = receiver.progress();
                // Of a file whose header has not come, the total is that of a header.
                if have < total {
                    return Ok(None);
                }
                let whole = std::mem::replace(receiver, Receiver::file(0));
                let (filter, _) = whole.finish().map_err(told)?;
                return Ok(Some(Content::Filter(filter)));
            }
            State::Parcel { front, filters, next } => (front, filters, next),
        };
        take(&mut bytes, FRONT - front.len(), |now| front.extend_from_slice(now));
        if front.len() < FRONT {
            return Ok(None);
        }
        let (what, count, row) = match read_front(front)? {
            (What::Damaged, ..) => {
                return Ok(Some(Content::Damaged(String::from_utf8_lossy(bytes).into_owned())));
            }
            front => front,
        };
        while filters.len() < count {
            let spent: u64 = filters.iter().map(|filter| filter.face().size_bytes()).sum();
            let left = limit.saturating_sub(spent);
            let receiver = next.get_or_insert_with(|| Receiver::unsummed_image(left));
            let (have, total) = receiver.progress();
            let mut outcome = Ok(());
            let most = usize::try_from(total - have).unwrap_or(usize::MAX);
            take(&mut bytes, most, |now| outcome = receiver.push(now));
            outcome.map_err(told)?;
            let (came, total) = receiver.progress();
            if came == total
                && total > HEADER as u64
                && let Some(whole) = next.take()
            {
                filters.push(whole.finish().map_err(told)?.0);
            } else if bytes.is_empty() {
                return Ok(None);
            } else if came == have {
                return Err("a filter without data".to_owned());
            }
        }
        if !bytes.is_empty() {
            return Err(format!("{} bytes more than were announced", bytes.len()));
        }
        let mut filters = std::mem::take(filters);
        Ok(Some(match what {
            What::Row => Content::Row(row, filters),
            _ => Content::Filter(filters.remove(0)),
        }))
    }

    /// All that has come, in pieces: pushed to another, they make it what this one is.
    pub(crate) fn received(&self) -> Vec<Cow<'_, [u8]>> {
        match &self.state {
            State::Damaged(reason) => {
                let front = Parcel::new(DAMAGED, [0; WORDS], Vec::new()).front;
                vec![Cow::Owned([&front, reason.as_bytes()].concat())]
            }
            State::File(receiver) => receiver.received(),
            State::Parcel { front, filters, next } => {
                let mut pieces = vec![Cow::Borrowed(&front[..])];
                for filter in filters {
                    let image = filter.image();
                    pieces.push(Cow::Owned(image.header_with_sum(0).to_vec()));
                    let mut offset = 0;
                    while offset < image.data_len() {
                        let piece = image.read(offset, usize::MAX).to_vec();
                        offset += piece.len() as u64;
                        pieces.push(Cow::Owned(piece));
                    }
                }
                pieces.extend(next.iter().flat_map(Receiver::received));
                pieces
            }
        }
    }
}

/// Takes at most so many bytes off the front.
fn take(bytes: &mut &[u8], most: usize, take: impl FnOnce(&[u8])) {
    let (now, later) = bytes.split_at(bytes.len().min(most));
    take(now);
    *bytes = later;
}

enum What {
    Filter,
    Row,
    Damaged,
}

fn read_front(front: &[u8]) -> Result<(What, usize, Row), String> {
    let number = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&front[at..at + 4]);
        u32::from_le_bytes(bytes)
    };
    if front[..MARK.len()] != MARK {
        return Err("no parcel of petal's".to_owned());
    }
    if number(12) != VERSION {
        return Err(format!("a parcel of version {}; this reads {VERSION}", number(12)));
    }
    let mut row = [0; WORDS];
    for (word, bytes) in row.iter_mut().zip(front[24..].as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    match (number(16), number(20)) {
        (0, 1) if row == [0; WORDS] => Ok((What::Filter, 1, row)),
        (1, 1..=MOST_IMAGES) => Ok((What::Row, number(20) as usize, row)),
        (DAMAGED, 0) => Ok((What::Damaged, 0, row)),
        (what, count) => Err(format!("a parcel of type {what} with {count} filters")),
    }
}
