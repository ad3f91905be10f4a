//! Quotient filters into files and back, and the face they show.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::QuotientFilter;
use super::shape::QuotientShape;
use super::unsound;
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::format::data::Data;
use crate::format::form::{self, Checked, Form};
use crate::format::header::Header;
use crate::format::image::Image;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::quotient::{Tally, Walked};
use crate::membership::sealed::Sealed;
use crate::membership::{Membership, MembershipMut};
use crate::store::{Lent, Line, Mapped, Mover, Store, StoreMut};

const KIND: FilterType = FilterType::Quotient;
// Which parameter says what.
const REMAINDER_BITS: usize = 0;
const DISTINCT: usize = 1;
const GROWING: usize = 2;
const PARAMETERS: usize = 3;

/// The last of the numbers that an early check keeps: with fewer lines it need not go on.
const WAIT: usize = 3;

/// Where an early check has come to.
fn walked(checked: &Checked) -> Walked {
    let [slot, total, distinct, _] = checked.seen;
    Walked { blocks: checked.done, slot: slot as usize, tally: Tally { total, distinct } }
}

impl<S: Store> Form<S> for QuotientFilter<S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        if header.kind != KIND {
            return Err(Error::invalid("type of filter", KIND.name(), header.kind));
        }
        header.check_parameters(PARAMETERS)?;
        if header.probes != 0 || header.lanes != 0 {
            let found = format!("{} and {}", header.probes, header.lanes);
            return Err(Error::invalid("probes and lanes", "0 in a quotient filter", found));
        }
        let parameters = header.parameters;
        let bits = u32::try_from(parameters[REMAINDER_BITS]).unwrap_or(u32::MAX);
        let shape = QuotientShape::new(header.extent, bits)?;
        header.check_lines(shape.lines())?;
        let (held, distinct) = (header.facts.inserted, parameters[DISTINCT]);
        if distinct > held || (distinct == 0 && held > 0) || held > shape.rule().slots() as u64 {
            let most = held.min(shape.rule().slots() as u64);
            return Err(header.bad_parameter(DISTINCT, format!("up to {most}")));
        }
        if parameters[GROWING] > 1 {
            return Err(header.bad_parameter(GROWING, "0 or 1"));
        }
        let store = data.take(shape.lines())?;
        let growing = parameters[GROWING] == 1;
        Ok(Self::over(shape, header.hash, header.facts, distinct, growing, store))
    }

    fn check(&self, data_at: u64, checked: Checked) -> Result<()> {
        self.check_table(data_at, walked(&checked))
    }

    /// A run that has not come to its end is looked at again when twice as much of it is there, so
    /// that a long one does not take many passes.
    fn check_early(&self, data_at: u64, lines: usize, checked: &mut Checked) -> Result<()> {
        let mut walked = walked(checked);
        if lines < checked.seen[WAIT] as usize {
            return Ok(());
        }
        self.table
            .check_early(self.store.lines(), lines, self.shape.slots(), &mut walked)
            .map_err(|fault| unsound(&fault, data_at))?;
        let begin = self.table.line_of(walked.blocks);
        let wait = lines.saturating_add(lines.saturating_sub(begin));
        let Tally { total, distinct } = walked.tally;
        *checked = Checked {
            done: walked.blocks,
            seen: [walked.slot as u64, total, distinct, wait as u64],
        };
        Ok(())
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        let mut header = Header::new(KIND, self.shape.slots(), self.hash, self.facts);
        header.parameters[REMAINDER_BITS] = self.shape.remainder_bits().into();
        header.parameters[DISTINCT] = self.distinct;
        header.parameters[GROWING] = self.growing.into();
        (header, vec![Cow::Borrowed(self.store.lines())])
    }
}

impl<S: Store> QuotientFilter<S> {
    /// Writes the filter as a `.petal` file, with free-form metadata (JSON, or nothing).
    ///
    /// The same filter gives the same bytes on every machine, in whatever order its keys came.
    /// docs/format.md describes them.
    ///
    /// # Errors
    /// If the metadata is longer than 1 MiB, or writing fails.
    pub fn write_to(&self, out: impl Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }

    /// Its header and data, to be carried away in pieces: see
    /// [`AnyFilter::image`](crate::AnyFilter::image).
    #[must_use]
    pub fn image(&self) -> Image<'_> {
        Image::of(self)
    }
}

impl QuotientFilter {
    /// Reads a filter and its metadata from a stream, every byte examined. Memory grows with what
    /// arrives, not with what a header claims.
    ///
    /// # Errors
    /// If reading fails, the bytes are no petal file of this type, or are damaged in any way.
    pub fn read_from(stream: impl Read) -> Result<(Self, String)> {
        form::read_from(stream)
    }

    /// Offers its memory to be moved: see [`AnyFilter::relocate`](crate::AnyFilter::relocate).
    pub fn relocate(&mut self, mover: &mut Mover<'_>) {
        self.store.relocate(mover);
    }
}

impl QuotientFilter<Mapped> {
    /// A filter in a mapped file, queried where it lies. Only the header is read; call
    /// [`verify`](Self::verify) to have every byte examined.
    ///
    /// # Errors
    /// If the file is no petal file of this type, is cut short, or its header is damaged.
    pub fn open_mapped(file: Mapped) -> Result<Self> {
        form::open_mapped(&file)
    }

    /// Examines every byte of the file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        form::verify(self, self.store.file())
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        form::metadata(self.store.file())
    }
}

impl<'a> QuotientFilter<Lent<'a>> {
    /// A filter over the bytes of a whole file, in place; they must begin at a multiple of 64 in
    /// memory. Only the header is examined.
    ///
    /// # Errors
    /// If they are no petal file of this type, are cut short or too long, begin elsewhere, or the
    /// header is damaged.
    pub fn from_bytes(file: &'a [u8]) -> Result<Self> {
        form::from_bytes(file)
    }
}

impl<S: Store> Sealed for QuotientFilter<S> {}

impl<S: Store> Membership for QuotientFilter<S> {
    fn filter_type(&self) -> FilterType {
        KIND
    }

    fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    fn describe(&self) -> String {
        self.shape.describe()
    }

    fn geometry(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("slots", self.shape.slots()),
            ("remainder_bits", self.shape.remainder_bits().into()),
            ("fingerprints", self.len()),
            ("distinct", self.distinct),
            ("growing", self.growing.into()),
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
        self.len()
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

    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}

impl<S: StoreMut> MembershipMut for QuotientFilter<S> {
    /// Each takes a slot of its own, so that it can be removed without harm to others.
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()> {
        self.add_mixed_hashes(hashes, new)
    }

    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut Answers) -> Result<()> {
        self.remove_mixed_hashes(hashes, removed);
        Ok(())
    }
}
