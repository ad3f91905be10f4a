//! Tables in a build that does not read them: there are none.

use std::io::{self, Read, Write};

use super::row_writer::RowWriter;
use super::source::TableSource;
use crate::error::Result;
use crate::keys::Columns;
use crate::poll_read::PollRead;

/// No table: the build does not read them.
#[derive(Clone, Copy)]
pub(crate) enum Table {}

impl Table {
    pub(crate) fn open(source: TableSource, _: &Columns, _: u64) -> Result<Self> {
        Err(source.unreadable("this build does not read tables"))
    }

    pub(crate) fn rows(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn key_columns(&self) -> usize {
        match *self {}
    }

    pub(crate) fn described(&self, _: bool) -> u64 {
        match *self {}
    }

    pub(crate) fn described_by_writer(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn source(&self) -> &TableSource {
        match *self {}
    }

    pub(crate) fn keys(&self, _: u64) -> Result<KeyStream> {
        match *self {}
    }

    pub(crate) fn refuse_rows_after(&self, _: &Self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn writer<'a>(
        tables: Vec<std::sync::Arc<Self>>,
        _: &'a mut (dyn Write + Send),
        _: u64,
    ) -> Result<Box<dyn RowWriter + 'a>> {
        match tables.first() {
            Some(table) => match **table {},
            None => Err(crate::error::Error::write(io::Error::other("no table"))),
        }
    }
}

/// The keys of no table.
pub(crate) enum KeyStream {}

impl KeyStream {
    pub(crate) fn row(&self) -> u64 {
        match *self {}
    }
}

impl Read for KeyStream {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl PollRead for KeyStream {
    fn ready(&mut self) -> bool {
        match *self {}
    }
}
