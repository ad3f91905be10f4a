//! Wide filters into files and back, and the face they show.
//!
//! The data are two parts of equal length: the blocks of the filter on the low words, then those
//! of the filter on the high ones.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::{WideBloomFilter, describe};
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::filter::{BloomFilter, Facts, Filter};
use crate::format::data::Data;
use crate::format::form::{self, Checked, Form};
use crate::format::header::Header;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::membership::sealed::Sealed;
use crate::membership::{Membership, MembershipMut};
use crate::shape::Shape;
use crate::store::{Lent, Line, Mapped, Mover, Store, StoreMut};

impl<S: Store> Form<S> for WideBloomFilter<S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        if header.kind != FilterType::Wide {
            return Err(Error::invalid("type of filter", FilterType::Wide.name(), header.kind));
        }
        header.check_parameters(0)?;
        header.hash.check_words(2)?;
        let shape = Shape::new(header.extent, header.lanes.into(), header.probes.into())?;
        header.check_lines(2 * shape.lines())?;
        let mut half = || -> Result<BloomFilter<S>> {
            let lines = data.take(shape.lines())?;
            Ok(Filter::over(shape, header.hash, Facts::default(), lines))
        };
        Ok(Self { low: half()?, high: half()?, facts: header.facts })
    }

    fn check(&self, _: u64, _: Checked) -> Result<()> {
        Ok(())
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        let shape = self.shape();
        let header = Header {
            probes: shape.probes() as u16,
            lanes: shape.lanes() as u16,
            ..Header::new(FilterType::Wide, shape.blocks(), self.hash_spec(), self.facts)
        };
        let ((_, low), (_, high)) = (self.low.save(), self.high.save());
        (header, [low, high].concat())
    }
}

impl<S: Store> WideBloomFilter<S> {
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

impl WideBloomFilter {
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
        self.low.relocate(mover);
        self.high.relocate(mover);
    }
}

impl WideBloomFilter<Mapped> {
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
        form::verify(self, self.low.file())
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        self.low.metadata()
    }
}

impl<'a> WideBloomFilter<Lent<'a>> {
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

impl<S: Store> Sealed for WideBloomFilter<S> {}

impl<S: Store> Membership for WideBloomFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Wide
    }

    fn hash_spec(&self) -> HashSpec {
        self.hash_spec()
    }

    fn describe(&self) -> String {
        describe(self.shape())
    }

    fn geometry(&self) -> Vec<(&'static str, u64)> {
        let shape = self.shape();
        vec![
            ("bits", 2 * shape.bits()),
            ("probes", shape.probes().into()),
            ("blocks", shape.blocks()),
            ("lanes", shape.lanes().into()),
            ("filters", 2),
        ]
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

    fn is_overfull(&self) -> bool {
        self.is_overfull()
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        let (low, high) = (self.low.block_fills(steps), self.high.block_fills(steps));
        low.into_iter().zip(high).map(|(low, high)| low + high).collect()
    }

    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}

impl<S: StoreMut> MembershipMut for WideBloomFilter<S> {
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()> {
        self.insert_mixed_hashes(hashes, new);
        Ok(())
    }
}
