//! Data that are pushed in pieces: the parts that are there, and how long the next one is.
//!
//! A form takes its data and is not pushed them. So it is loaded over the parts that have come
//! ([`SoFar`]), again whenever one is complete, until it asks for one that is not there: that is
//! the next. When all are there they become the filter's own ([`Whole`]). Both ways the form is
//! the judge, and nothing is copied.

use std::vec;

use super::data::{Data, check_left};
use super::header::Header;
use crate::error::{Error, Result};
use crate::store::{Lent, Line, Owned, Store as _};

/// The parts that have memory, lent.
pub(crate) struct SoFar<'a> {
    header: &'a Header,
    parts: std::slice::Iter<'a, Owned>,
    /// Bytes taken.
    taken: u64,
    /// Lines of the part that was asked for and has no memory yet.
    next: Option<u64>,
}

impl<'a> SoFar<'a> {
    pub(crate) fn new(header: &'a Header, parts: &'a [Owned]) -> Self {
        Self { header, parts: parts.iter(), taken: 0, next: None }
    }

    /// How many lines the next part has, if that is what was missing.
    pub(crate) fn next(&self) -> Option<u64> {
        self.next
    }

    /// All data are taken.
    pub(crate) fn finish(&self) -> Result<()> {
        self.header.check_length(self.taken)
    }
}

impl<'a> Data for SoFar<'a> {
    type Store = Lent<'a>;

    fn take(&mut self, lines: u64) -> Result<Lent<'a>> {
        check_left(self.header, self.taken, lines)?;
        let Some(part) = self.parts.next() else {
            self.next = Some(lines);
            return Err(short(self.header, self.taken));
        };
        // The same bytes were there when its length was asked for.
        debug_assert_eq!(part.lines().len() as u64, lines);
        self.taken += lines * Line::BYTES as u64;
        Ok(Lent::of(part.lines()))
    }
}

/// All parts, given away.
pub(crate) struct Whole<'a> {
    header: &'a Header,
    parts: vec::IntoIter<Owned>,
}

impl<'a> Whole<'a> {
    pub(crate) fn new(header: &'a Header, parts: Vec<Owned>) -> Self {
        Self { header, parts: parts.into_iter() }
    }
}

impl Data for Whole<'_> {
    type Store = Owned;

    fn take(&mut self, lines: u64) -> Result<Owned> {
        let part = self.parts.next().ok_or_else(|| short(self.header, 0))?;
        debug_assert_eq!(part.lines().len() as u64, lines);
        Ok(part)
    }
}

/// Only so many bytes of the data are there.
fn short(header: &Header, came: u64) -> Error {
    Error::truncated(header.file_length(), header.data_at().saturating_add(came))
}
