//! Counting filters into files and back, and the face they show.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::builder::check_width;
use super::{CountingFilter, planes, planes_of};
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::filter::geometry::Geometry;
use crate::filter::geometry::sealed::Fields;
use crate::format::data::Data;
use crate::format::form::{self, Checked, Form};
use crate::format::header::Header;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::membership::sealed::Sealed;
use crate::membership::{Membership, MembershipMut};
use crate::store::{Lent, Line, Mapped, Mover, Store, StoreMut};

/// The parameter that has the width.
const WIDTH: usize = 0;

/// The type of file that counts what a layout marks.
fn kind<G: Geometry>() -> FilterType {
    if G::KIND == FilterType::Classic { FilterType::CountingClassic } else { FilterType::Counting }
}

impl<G: Geometry, S: Store> Form<S> for CountingFilter<G, S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        if header.kind != kind::<G>() {
            return Err(Error::invalid("type of filter", kind::<G>().name(), header.kind));
        }
        header.check_parameters(1)?;
        let width = check_width(header.parameters[WIDTH])?;
        let Header { probes, lanes, extent, .. } = *header;
        let shape = G::from_fields(Fields { probes, lanes, extent })?;
        header.check_lines(shape.lines().saturating_mul(width.into()))?;
        let bloom = Filter::over(shape, header.hash, header.facts, data.take(shape.lines())?);
        Ok(Self::over(bloom, width, data.take(planes_of(&shape, width))?))
    }

    fn check(&self, data_at: u64, mut checked: Checked) -> Result<()> {
        self.bloom.check(data_at, checked)?;
        self.check_early(data_at, usize::MAX, &mut checked)
    }

    /// A line of bits can be judged when its counters are there.
    fn check_early(&self, data_at: u64, lines: usize, checked: &mut Checked) -> Result<()> {
        let (bits, planes, depth) = (self.bits(), self.planes.lines(), self.depth());
        let there = (lines.saturating_sub(bits.len()) / depth).min(bits.len());
        let from = checked.done.min(there);
        checked.done = there.max(from);
        let planes = &planes[from * depth..there * depth];
        let Some(line) = planes::first_unsound(&bits[from..there], planes, depth) else {
            return Ok(());
        };
        let before = bits.len() + (from + line) * depth;
        let at = data_at as usize + before * Line::BYTES;
        Err(Error::corrupt("counters that are zero", at, 0, "some that count"))
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        let Fields { probes, lanes, extent } = self.shape().fields();
        let mut header = Header::new(kind::<G>(), extent, self.hash_spec(), self.bloom.facts());
        header.parameters[WIDTH] = self.width.into();
        let data = vec![Cow::Borrowed(self.bits()), Cow::Borrowed(self.planes.lines())];
        (Header { probes, lanes, ..header }, data)
    }
}

impl<G: Geometry, S: Store> CountingFilter<G, S> {
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

impl<G: Geometry> CountingFilter<G> {
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
        self.bloom.relocate(mover);
        self.planes.relocate(mover);
    }
}

impl<G: Geometry> CountingFilter<G, Mapped> {
    /// A filter in a mapped file, queried where it lies. Only the header is read; call
    /// [`verify`](Self::verify) to have every byte examined. Queries touch the first of the
    /// `width` parts of the file only.
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
        form::verify(self, self.planes.file())
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        form::metadata(self.planes.file())
    }
}

impl<'a, G: Geometry> CountingFilter<G, Lent<'a>> {
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

impl<G: Geometry, S: Store> Sealed for CountingFilter<G, S> {}

impl<G: Geometry, S: Store> Membership for CountingFilter<G, S> {
    fn filter_type(&self) -> FilterType {
        kind::<G>()
    }

    fn hash_spec(&self) -> HashSpec {
        self.hash_spec()
    }

    fn describe(&self) -> String {
        format!("{}, counters of {} bits", self.shape().describe(), self.width)
    }

    /// The whole filter is read, for the counters that are stuck.
    fn geometry(&self) -> Vec<(&'static str, u64)> {
        let mut numbers = self.shape().numbers();
        numbers.extend([("width", self.width.into()), ("saturated", self.saturated())]);
        numbers
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
        self.planned_keys()
    }

    fn target_rate(&self) -> f64 {
        self.target_rate()
    }

    fn inserted(&self) -> u64 {
        self.inserted()
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

    fn is_overfull(&self) -> bool {
        // Chance has as many bits as the filter, however wide its counters are.
        self.as_filter().is_overfull()
    }

    fn capacity_left(&self) -> Option<u64> {
        self.capacity_left()
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        self.bloom.block_fills(steps)
    }

    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}

impl<G: Geometry, S: StoreMut> MembershipMut for CountingFilter<G, S> {
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()> {
        self.insert_mixed_hashes(hashes, new);
        Ok(())
    }

    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut Answers) -> Result<()> {
        self.remove_mixed_hashes(hashes, removed);
        Ok(())
    }
}
