//! Scalable filters into files and back, and the face they show.
//!
//! The data are a directory, a line for each layer, and the lines of the layers, oldest first.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::ScalableBloomFilter;
use super::plan::{HeadStart, MOST_LAYERS, Plan};
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::filter::{BloomFilter, Facts};
use crate::format::data::Data;
use crate::format::form::{self, Checked, Form};
use crate::format::header::{Header, MOST_INSERTED};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::membership::sealed::Sealed;
use crate::membership::{Membership, MembershipMut};
use crate::shape::Shape;
use crate::store::{Lent, Line, Mapped, Mover, Store};

/// A layer's line in the directory: blocks, lanes, probes, inserts that were new, zeros.
fn entry<S: Store>(layer: &BloomFilter<S>) -> Line {
    let shape = layer.shape();
    let (lanes, probes) = (shape.lanes().into(), shape.probes().into());
    Line([shape.blocks(), lanes, probes, layer.inserted(), 0, 0, 0, 0].map(u64::to_le))
}

/// What a line of the directory says: a shape, and how many inserts were new.
fn read_entry(entry: &Line, data_at: u64, layer: u64) -> Result<(Shape, u64)> {
    let [blocks, lanes, probes, inserted, rest @ ..] = entry.0.map(u64::from_le);
    if rest != [0; 4] {
        let at = data_at + layer * Line::BYTES as u64;
        return Err(Error::corrupt("directory", at as usize, "zeros behind four words", "others"));
    }
    // Numbers that are too large for these are too large for a shape.
    let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok((Shape::new(blocks, short(lanes), short(probes))?, inserted))
}

impl<S: Store> Form<S> for ScalableBloomFilter<S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        if header.kind != FilterType::Scalable {
            return Err(Error::invalid("type of filter", "scalable", header.kind));
        }
        let Header { probes, lanes, extent: layers, hash, facts, parameters, .. } = *header;
        header.check_parameters(4)?;
        if (probes, lanes) != (0, 0) {
            let found = format!("{probes} and {lanes}");
            return Err(Error::invalid("probes and lanes", "0 in a scalable filter", found));
        }
        if !(1..=MOST_LAYERS).contains(&layers) {
            return Err(Error::invalid("layers", "1 to 64", layers));
        }
        if facts.planned == 0 {
            return Err(Error::invalid("keys of the first layer", "1 or more", 0));
        }
        let [growth, factor, below, growth_share, ..] = parameters;
        let head = HeadStart { factor, below };
        let plan = Plan::new(facts.planned, facts.target, growth, head)?;
        let plan = plan.with_growth_share(growth_share)?;
        let directory = data.take(layers)?;
        let mut closed = Vec::new();
        let mut newest = None;
        let mut inserted = 0u64;
        for (at, entry) in (0..).zip(directory.lines()) {
            let (shape, here) = read_entry(entry, header.data_at(), at)?;
            let planned = plan.facts(at as u32)?;
            // All but the newest are full.
            let full = at + 1 < layers && here != planned.planned;
            if full || here > planned.planned {
                let place = (header.data_at() + at * Line::BYTES as u64) as usize;
                return Err(Error::corrupt("keys of a layer", place, planned.planned, here));
            }
            inserted = inserted.saturating_add(here);
            let facts = Facts { inserted: here, ..planned };
            let layer = BloomFilter::over(shape, hash, facts, data.take(shape.lines())?);
            closed.extend(newest.replace(layer));
        }
        let inserted = inserted.min(MOST_INSERTED);
        if inserted != facts.inserted {
            let found = facts.inserted;
            return Err(Error::corrupt("keys inserted", 88, inserted, found));
        }
        let newest = newest.ok_or_else(|| Error::invalid("layers", "1 to 64", 0))?;
        Ok(Self { plan, hash, closed, newest })
    }

    /// All that can be wrong is wrong on opening.
    fn check(&self, _: u64, _: Checked) -> Result<()> {
        Ok(())
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        let facts = Facts {
            planned: self.plan.first(),
            target: self.plan.rate(),
            inserted: self.inserted(),
        };
        let layers = self.layers().into();
        let mut header = Header::new(FilterType::Scalable, layers, self.hash, facts);
        let HeadStart { factor, below } = self.plan.head();
        let parameters = [self.plan.growth(), factor, below, self.plan.growth_share()];
        header.parameters[..4].copy_from_slice(&parameters);
        let directory = self.oldest_first().map(entry).collect();
        let lines = self.oldest_first().map(|layer| Cow::Borrowed(layer.store().lines()));
        (header, [Cow::Owned(directory)].into_iter().chain(lines).collect())
    }
}

impl<S: Store> ScalableBloomFilter<S> {
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

impl ScalableBloomFilter {
    /// Reads a filter and its metadata from a stream, every byte examined. Memory grows with what
    /// arrives, not with what a header claims.
    ///
    /// # Errors
    /// If reading fails, the bytes are no petal file of this type, or are damaged in any way.
    pub fn read_from(stream: impl Read) -> Result<(Self, String)> {
        form::read_from(stream)
    }

    /// Offers its memory to be moved.
    pub(crate) fn relocate(&mut self, mover: &mut Mover<'_>) {
        self.closed.iter_mut().for_each(|layer| layer.relocate(mover));
        self.newest.relocate(mover);
    }
}

impl ScalableBloomFilter<Mapped> {
    /// A filter in a mapped file, queried where it lies. Only the header and the directory of
    /// layers are read; call [`verify`](Self::verify) to have every byte examined.
    ///
    /// # Errors
    /// If the file is no petal file of this type, is cut short, or its header or directory is
    /// damaged.
    pub fn open_mapped(file: Mapped) -> Result<Self> {
        form::open_mapped(&file)
    }

    /// Examines every byte of the file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        form::verify(self, self.newest.store().file())
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        form::metadata(self.newest.store().file())
    }
}

impl<'a> ScalableBloomFilter<Lent<'a>> {
    /// A filter over the bytes of a whole file, in place; they must begin at a multiple of 64 in
    /// memory. Only the header and the directory of layers are examined.
    ///
    /// # Errors
    /// If they are no petal file of this type, are cut short or too long, begin elsewhere, or
    /// the header or the directory is damaged.
    pub fn from_bytes(file: &'a [u8]) -> Result<Self> {
        form::from_bytes(file)
    }
}

impl<S: Store> Sealed for ScalableBloomFilter<S> {}

impl<S: Store> Membership for ScalableBloomFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Scalable
    }

    fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    fn describe(&self) -> String {
        format!("{} layers, the newest of {}", self.layers(), self.newest.describe())
    }

    fn geometry(&self) -> Vec<(&'static str, u64)> {
        let mut numbers = vec![
            ("bits", self.oldest_first().map(|layer| layer.size_bytes() * 8).sum()),
            ("layers", self.layers().into()),
            ("growth", self.plan.growth()),
            ("layer_capacity_left", self.layer_capacity_left()),
        ];
        let HeadStart { factor, below } = self.plan.head();
        if below > 0 {
            numbers.extend([("head_start", factor), ("head_start_below", below)]);
        }
        if let Some(parts) = self.growth_share() {
            numbers.push(("growth_share", parts));
        }
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

    /// Always `None`: it grows.
    fn capacity_left(&self) -> Option<u64> {
        None
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        let mut blocks = vec![0; steps.max(1)];
        for layer in self.oldest_first() {
            for (sum, more) in blocks.iter_mut().zip(layer.block_fills(steps)) {
                *sum += more;
            }
        }
        blocks
    }

    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}

impl MembershipMut for ScalableBloomFilter {
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()> {
        self.insert_mixed_hashes(hashes, new)
    }
}
