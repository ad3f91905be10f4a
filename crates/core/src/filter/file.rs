//! Filters into files and back, and the face they show.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::Filter;
use super::geometry::Geometry;
use super::geometry::sealed::Fields;
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::format::data::Data;
use crate::format::form::{self, Checked, Form};
use crate::format::header::Header;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::membership::sealed::Sealed;
use crate::membership::{Membership, MembershipMut};
use crate::store::{Lent, Line, Mapped, Mover, Store, StoreMut};

impl<G: Geometry, S: Store> Form<S> for Filter<G, S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        if header.kind != G::KIND {
            return Err(Error::invalid("type of filter", G::KIND.name(), header.kind));
        }
        header.check_parameters(0)?;
        let Header { probes, lanes, extent, .. } = *header;
        let shape = G::from_fields(Fields { probes, lanes, extent })?;
        header.check_lines(shape.lines())?;
        Ok(Self::over(shape, header.hash, header.facts, data.take(shape.lines())?))
    }

    fn check(&self, data_at: u64, _: Checked) -> Result<()> {
        self.shape.check_tail(self.store.lines(), data_at)
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        let Fields { probes, lanes, extent } = self.shape.fields();
        let header = Header::new(G::KIND, extent, self.hash, self.facts);
        (Header { probes, lanes, ..header }, vec![Cow::Borrowed(self.store.lines())])
    }
}

impl<G: Geometry, S: Store> Filter<G, S> {
    /// Writes the filter as a `.petal` file, with free-form metadata (JSON, or nothing).
    ///
    /// The same filter gives the same bytes on every machine. docs/format.md describes them.
    ///
    /// # Errors
    /// If the metadata is longer than 1 MiB, or writing fails.
    pub fn write_to(&self, out: impl Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}

impl<G: Geometry> Filter<G> {
    /// Reads a filter and its metadata from a stream, every byte examined. Memory grows with what
    /// arrives, not with what a header claims.
    ///
    /// # Errors
    /// If reading fails, the bytes are no petal file of this layout, or are damaged in any way.
    pub fn read_from(stream: impl Read) -> Result<(Self, String)> {
        form::read_from(stream)
    }

    /// Offers its memory to be moved.
    pub(crate) fn relocate(&mut self, mover: &mut Mover<'_>) {
        self.store.relocate(mover);
    }
}

impl<G: Geometry> Filter<G, Mapped> {
    /// A filter in a mapped file, queried where it lies. Only the header is read; call
    /// [`verify`](Self::verify) to have every byte examined.
    ///
    /// # Errors
    /// If the file is no petal file of this layout, is cut short, or its header is damaged.
    pub fn open_mapped(file: Mapped) -> Result<Self> {
        form::open_mapped(&file)
    }

    /// Examines every byte of the file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        form::verify(self, self.file())
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        form::metadata(self.file())
    }

    /// All bytes of the file.
    pub(crate) fn file(&self) -> &[u8] {
        self.store.file()
    }
}

impl<'a, G: Geometry> Filter<G, Lent<'a>> {
    /// A filter over the bytes of a whole file, in place; they must begin at a multiple of 64 in
    /// memory. Only the header is examined.
    ///
    /// # Errors
    /// If they are no petal file of this layout, are cut short or too long, begin elsewhere, or
    /// the header is damaged.
    pub fn from_bytes(file: &'a [u8]) -> Result<Self> {
        form::from_bytes(file)
    }
}

impl<G: Geometry, S: Store> Sealed for Filter<G, S> {}

impl<G: Geometry, S: Store> Membership for Filter<G, S> {
    fn filter_type(&self) -> FilterType {
        G::KIND
    }

    fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    fn describe(&self) -> String {
        self.shape.describe()
    }

    fn geometry(&self) -> Vec<(&'static str, u64)> {
        self.shape.numbers()
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        self.contains_mixed_hashes(hashes, found);
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }

    fn planned_keys(&self) -> u64 {
        self.facts.planned
    }

    fn target_rate(&self) -> f64 {
        self.facts.target
    }

    fn inserted(&self) -> u64 {
        self.facts.inserted
    }

    fn estimated_len(&self) -> f64 {
        self.estimated_len()
    }

    fn expected_rate(&self, keys: u64) -> f64 {
        self.expected_rate(keys)
    }

    fn estimated_rate(&self) -> f64 {
        self.estimated_rate()
    }

    fn fill_ratio(&self) -> f64 {
        self.fill_ratio()
    }

    fn capacity_left(&self) -> Option<u64> {
        self.capacity_left()
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        self.shape.block_fills(self.store.lines(), steps)
    }

    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}

impl<G: Geometry, S: StoreMut> MembershipMut for Filter<G, S> {
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()> {
        self.insert_mixed_hashes(hashes, new);
        Ok(())
    }
}
