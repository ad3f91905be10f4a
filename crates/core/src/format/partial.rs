//! Data that arrive in pieces.
//!
//! [`Load::load`](super::persist::Load::load) pulls its data, but a stream pushes them. So a filter
//! is loaded from the parts that have arrived ([`PartialData`]), again after each part, until it
//! takes one that has not: that part is the next to arrive. When all parts are there, the filter
//! is loaded once more and takes ownership of them ([`CompleteData`]). Nothing is copied.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::vec;

use super::data::{DataSource, check_left};
use super::header::Header;
use crate::error::{Error, Result};
use crate::store::{Borrowed, CacheLine, Owned, Store as _};

/// The parts that have memory, borrowed.
pub(crate) struct PartialData<'a> {
    header: &'a Header,
    parts: core::slice::Iter<'a, Owned>,
    /// Bytes taken.
    taken: u64,
    /// Length in lines of a part that was requested and has no memory yet.
    next: Option<u64>,
}

impl<'a> PartialData<'a> {
    pub(crate) fn new(header: &'a Header, parts: &'a [Owned]) -> Self {
        Self { header, parts: parts.iter(), taken: 0, next: None }
    }

    /// Returns the length in lines of the next part, if a part was missing.
    pub(crate) fn next(&self) -> Option<u64> {
        self.next
    }

    /// Checks that all data are taken.
    pub(crate) fn finish(&self) -> Result<()> {
        self.header.check_length(self.taken)
    }
}

impl<'a> DataSource for PartialData<'a> {
    type Store = Borrowed<'a>;

    fn take(&mut self, lines: u64) -> Result<Borrowed<'a>> {
        check_left(self.header, self.taken, lines)?;
        let Some(part) = self.parts.next() else {
            self.next = Some(lines);
            return Err(missing_data(self.header, self.taken));
        };
        // The length was computed from the same bytes.
        debug_assert_eq!(part.lines().len() as u64, lines);
        self.taken += lines * CacheLine::BYTES as u64;
        Ok(Borrowed::from_lines(part.lines()))
    }
}

/// All parts, owned.
pub(crate) struct CompleteData<'a> {
    header: &'a Header,
    parts: vec::IntoIter<Owned>,
}

impl<'a> CompleteData<'a> {
    pub(crate) fn new(header: &'a Header, parts: Vec<Owned>) -> Self {
        Self { header, parts: parts.into_iter() }
    }
}

impl DataSource for CompleteData<'_> {
    type Store = Owned;

    fn take(&mut self, lines: u64) -> Result<Owned> {
        let part = self.parts.next().ok_or_else(|| missing_data(self.header, 0))?;
        debug_assert_eq!(part.lines().len() as u64, lines);
        Ok(part)
    }
}

/// Only `arrived` bytes of the data are there.
fn missing_data(header: &Header, arrived: u64) -> Error {
    Error::truncated(header.file_length(), header.data_at().saturating_add(arrived))
}
