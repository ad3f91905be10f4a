//! Static filters into files and back, and the face they show.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::StaticFilter;
use super::layout::{HALVES, Layout, MOST_LAYERS, Numbers};
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::format::data::Data;
use crate::format::form::{self, Checked, Form};
use crate::format::header::Header;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::membership::Membership;
use crate::membership::sealed::Sealed;
use crate::rate;
use crate::store::{Lent, Line, Mapped, Mover, Store, halves_of};

/// Parameters in use: columns, layers.
const PARAMETERS: usize = 2;

impl<S: Store> Form<S> for StaticFilter<S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        if header.kind != FilterType::Static {
            return Err(Error::invalid("type of filter", FilterType::Static.name(), header.kind));
        }
        if header.probes != 0 || header.lanes != 0 {
            return Err(Error::invalid("probes and lanes", "0 in a static filter", "others"));
        }
        header.check_parameters(PARAMETERS)?;
        let [columns, layers, ..] = header.parameters;
        if layers > MOST_LAYERS {
            return Err(header.bad_parameter(1, "at most 16 layers"));
        }
        let mut layout = Layout::new(columns)?;
        let directory = data.take(layers)?;
        for (number, line) in (1..).zip(directory.lines()) {
            let [seed, shards, segments, wide, rest @ ..] = line.0.map(u64::from_le);
            if rest != [0; 4] {
                return Err(Error::invalid("a layer's last four words", "0", "others"));
            }
            layout.push(Numbers { seed, shards, segments, wide }, number == layers)?;
        }
        if header.extent != layout.rows() {
            return Err(Error::invalid("extent", "the half words of rows", header.extent));
        }
        header.check_lines(layers + layout.cut_lines() + layout.row_lines())?;
        let cuts = data.take(layout.cut_lines())?;
        let rows = data.take(layout.row_lines())?;
        Ok(Self::over(layout, header.hash, header.facts, cuts, rows))
    }

    fn check(&self, data_at: u64, _: Checked) -> Result<()> {
        let layers = self.layout.layers().len() as u64;
        let cuts_at = data_at + layers * Line::BYTES as u64;
        check_tail(self.cuts.lines(), self.layout.cuts(), cuts_at)?;
        let rows_at = cuts_at + self.layout.cut_lines() * Line::BYTES as u64;
        check_tail(self.rows.lines(), self.layout.rows(), rows_at)
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        let kind = FilterType::Static;
        let mut header = Header::new(kind, self.layout.rows(), self.hash, self.facts);
        let layers = self.layout.layers();
        header.parameters[0] = self.layout.columns();
        header.parameters[1] = layers.len() as u64;
        let line = |seed, shards, segments, wide| {
            Line([seed, shards, segments, wide, 0, 0, 0, 0].map(u64::to_le))
        };
        let directory: Vec<Line> = layers
            .iter()
            .map(|layer| line(layer.seed, layer.shards, layer.segments, layer.wide))
            .collect();
        let (cuts, rows) = (self.cuts.lines(), self.rows.lines());
        (header, vec![Cow::Owned(directory), Cow::Borrowed(cuts), Cow::Borrowed(rows)])
    }
}

/// Half words behind the last one would never be asked for.
fn check_tail(lines: &[Line], used: u64, at: u64) -> Result<()> {
    let behind = halves_of(lines).iter().skip(used as usize);
    match behind.into_iter().position(|half| *half != 0) {
        None => Ok(()),
        Some(half) => {
            let at = at + (used + half as u64) * (Line::BYTES as u64 / HALVES);
            Err(Error::corrupt("bits behind the last one", at as usize, 0, "some that are set"))
        }
    }
}

impl<S: Store> StaticFilter<S> {
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

impl StaticFilter {
    /// Reads a filter and its metadata from a stream, every byte examined. Memory grows with what
    /// arrives, not with what a header claims.
    ///
    /// # Errors
    /// If reading fails, the bytes are no petal file of a static filter, or are damaged in any
    /// way.
    pub fn read_from(stream: impl Read) -> Result<(Self, String)> {
        form::read_from(stream)
    }

    /// Offers its memory to be moved.
    pub(crate) fn relocate(&mut self, mover: &mut Mover<'_>) {
        self.cuts.relocate(mover);
        self.rows.relocate(mover);
    }
}

impl StaticFilter<Mapped> {
    /// A filter in a mapped file, queried where it lies. Only the header and a line for each
    /// layer are read; call [`verify`](Self::verify) to have every byte examined.
    ///
    /// # Errors
    /// If the file is no petal file of a static filter, is cut short, or its header is damaged.
    pub fn open_mapped(file: Mapped) -> Result<Self> {
        form::open_mapped(&file)
    }

    /// Examines every byte of the file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        form::verify(self, self.rows.file())
    }

    /// The bytes of the file.
    pub(crate) fn file(&self) -> &[u8] {
        self.rows.file()
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        form::metadata(self.rows.file())
    }
}

impl<'a> StaticFilter<Lent<'a>> {
    /// A filter over the bytes of a whole file, in place; they must begin at a multiple of 64 in
    /// memory. Only the header and a line for each layer are examined.
    ///
    /// # Errors
    /// If they are no petal file of a static filter, are cut short or too long, begin elsewhere,
    /// or the header is damaged.
    pub fn from_bytes(file: &'a [u8]) -> Result<Self> {
        form::from_bytes(file)
    }
}

impl<S: Store> Sealed for StaticFilter<S> {}

impl<S: Store> Membership for StaticFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Static
    }

    fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    fn describe(&self) -> String {
        let columns = self.layout.columns();
        format!("{} layers of {columns} to {} columns", self.layout.layers().len(), columns + 1)
    }

    fn geometry(&self) -> Vec<(&'static str, u64)> {
        let layers = self.layout.layers();
        let first =
            |number: fn(&crate::kernel::ribbon::Layer) -> u64| layers.first().map_or(0, number);
        vec![
            ("bits", self.size_bytes() * 8),
            ("columns", self.layout.columns()),
            ("layers", layers.len() as u64),
            ("shards", first(|layer| layer.shards)),
            ("segments", first(|layer| layer.shards * layer.segments)),
            ("wide segments", first(|layer| layer.wide)),
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

    /// Exact, unlike that of filters that keys are added to.
    fn estimated_len(&self) -> f64 {
        self.facts.inserted as f64
    }

    /// What the columns promise: the number of keys matters only for the hash.
    fn expected_rate(&self, keys: u64) -> f64 {
        let Some(layer) = self.layout.layers().first() else { return 0.0 };
        let share = layer.wide as f64 / (layer.shards * layer.segments) as f64;
        rate::either(rate::mixed(layer.columns as u32, share), rate::hash_floor(keys))
    }

    fn estimated_rate(&self) -> f64 {
        self.rate()
    }

    fn fill_ratio(&self) -> f64 {
        self.taken()
    }

    /// It takes no more keys at all.
    fn capacity_left(&self) -> Option<u64> {
        None
    }

    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}
