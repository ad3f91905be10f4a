//! Windowed filters into files and back, and the face they show.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::WindowedBloomFilter;
use super::counts::Counts;
use super::plan::{MOST, MOST_ROTATIONS, Plan};
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::filter::Facts;
use crate::filter::geometry::sealed::Layout as _;
use crate::format::data::Data;
use crate::format::form::{self, Checked, Form};
use crate::format::header::{Header, MOST_INSERTED};
use crate::format::image::Image;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::membership::sealed::Sealed;
use crate::membership::{Membership, MembershipMut};
use crate::shape::Shape;
use crate::store::{Lent, Line, Mapped, Mover, Store, StoreMut};

// Where the parameters are.
const GENERATIONS: usize = 0;
const TICKS: usize = 1;
const CLOCK: usize = 2;
const COUNTS: usize = 3;

impl<S: Store> WindowedBloomFilter<S> {
    /// What the counts of a window by count can only be: generations before the beginning have
    /// nothing, the newest has at most its part, the others have just that.
    fn check_counts(&self, header: &Header) -> Result<()> {
        if self.plan().ticks.is_some() {
            return Ok(());
        }
        if self.clock > MOST_ROTATIONS {
            return Err(header.bad_parameter(CLOCK, "at most 2^62 rotations"));
        }
        let share = self.plan().share(self.plan().keys);
        for age in 0..u64::from(self.plan().generations) {
            let there = self.clock.checked_sub(age);
            let slot = there.map_or_else(
                || self.plan().slot(self.clock + u64::from(self.plan().generations) - age),
                |epoch| self.plan().slot(epoch),
            );
            let (least, most) = match (there, age) {
                (None, _) => (0, 0),
                (_, 0) => (0, share),
                _ => (share, share),
            };
            if !(least..=most).contains(&self.counts.get(slot)) {
                return Err(header.bad_parameter(COUNTS + slot, format!("{least} to {most}")));
            }
        }
        Ok(())
    }
}

impl<S: Store> Form<S> for WindowedBloomFilter<S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        if header.kind != FilterType::Windowed {
            return Err(Error::invalid("type of filter", "windowed", header.kind));
        }
        let Header { facts, parameters, .. } = *header;
        let generations = u32::try_from(parameters[GENERATIONS]).unwrap_or(u32::MAX);
        let ticks = Some(parameters[TICKS]).filter(|ticks| *ticks > 0);
        if facts.planned == 0 {
            return Err(Error::invalid("keys of the window", "1 or more", 0));
        }
        let plan = Plan::new(facts.planned, facts.target, ticks, generations)?;
        header.check_parameters(COUNTS + generations as usize)?;
        let shape = Shape::new(header.extent, header.lanes.into(), header.probes.into())?;
        let lines = shape.lines().saturating_mul(generations.into());
        header.check_lines(lines)?;
        let mut filter = Self::over(plan, shape, header.hash, data.take(lines)?);
        filter.clock = parameters[CLOCK];
        filter.counts =
            Counts::new(generations, std::array::from_fn(|slot| parameters[COUNTS + slot]));
        filter.check_counts(header)?;
        let inserted = filter.inserted().min(MOST_INSERTED);
        if inserted != facts.inserted {
            return Err(Error::corrupt("keys inserted", 88, inserted, facts.inserted));
        }
        Ok(filter)
    }

    /// A generation has bits if it counts keys, and only then.
    fn check(&self, data_at: u64, mut checked: Checked) -> Result<()> {
        self.check_early(data_at, usize::MAX, &mut checked)?;
        for (generation, count) in self.counts.all().into_iter().enumerate() {
            let used = checked.seen[0] >> generation & 1 != 0;
            if used != (count > 0) {
                let found = if used { "some" } else { "none" };
                let expected = format!("those of {count} keys");
                return Err(Error::corrupt("bits", data_at as usize, expected, found));
            }
        }
        Ok(())
    }

    /// Which generations have bits in the runs of blocks that are there, a bit for each.
    fn check_early(&self, _: u64, lines: usize, checked: &mut Checked) -> Result<()> {
        let block = (self.shape().lanes() / 8) as usize;
        let run = block * self.plan().generations as usize;
        let there = lines.min(self.store.lines().len()) / run;
        let from = checked.done.min(there);
        checked.done = there.max(from);
        for run in self.store.lines()[from * run..there * run].chunks_exact(run) {
            for (generation, block) in run.chunks_exact(block).enumerate() {
                let used = block.iter().any(|line| *line != Line::ZERO);
                checked.seen[0] |= u64::from(used) << generation;
            }
        }
        Ok(())
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        let (planned, target) = (self.plan().keys, self.plan().rate);
        let facts = Facts { planned, target, inserted: self.inserted() };
        let kind = FilterType::Windowed;
        let mut header = Header::new(kind, self.shape().blocks(), self.hash_spec(), facts);
        (header.probes, header.lanes) = (self.shape().probes() as u16, self.shape().lanes() as u16);
        header.parameters[GENERATIONS] = self.plan().generations.into();
        header.parameters[TICKS] = self.plan().ticks.unwrap_or(0);
        header.parameters[CLOCK] = self.clock;
        header.parameters[COUNTS..COUNTS + MOST].copy_from_slice(&self.counts.all());
        (header, vec![Cow::Borrowed(self.store.lines())])
    }
}

impl<S: Store> WindowedBloomFilter<S> {
    /// Writes the filter as a `.petal` file, with free-form metadata (JSON, or nothing).
    ///
    /// The same filter gives the same bytes on every machine. docs/format.md describes them.
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

impl WindowedBloomFilter {
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

impl WindowedBloomFilter<Mapped> {
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

impl<'a> WindowedBloomFilter<Lent<'a>> {
    /// A filter over the bytes of a whole file, in place; they must begin at a multiple of 64 in
    /// memory. Only the header is examined.
    ///
    /// # Errors
    /// If they are no petal file of this type, are cut short or too long, begin elsewhere, or
    /// the header is damaged.
    pub fn from_bytes(file: &'a [u8]) -> Result<Self> {
        form::from_bytes(file)
    }
}

impl<S: Store> Sealed for WindowedBloomFilter<S> {}

impl<S: Store> Membership for WindowedBloomFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Windowed
    }

    fn hash_spec(&self) -> HashSpec {
        self.hash_spec()
    }

    fn describe(&self) -> String {
        format!("{} generations of {}", self.plan().generations, self.shape().describe())
    }

    fn geometry(&self) -> Vec<(&'static str, u64)> {
        let mut numbers = self.shape().numbers();
        numbers.push(("generations", self.plan().generations.into()));
        if let Some(ticks) = self.plan().ticks {
            numbers.extend([("window_ticks", ticks), ("now", self.clock)]);
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

    /// By count `None`: it forgets. By clock what is left of the newest generation's part.
    fn capacity_left(&self) -> Option<u64> {
        let share = self.plan().share(self.plan().keys);
        self.plan().ticks.map(|_| share.saturating_sub(self.counts.get(self.newest())))
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        self.shape().block_fills(self.store.lines(), steps)
    }

    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}

impl<S: StoreMut> MembershipMut for WindowedBloomFilter<S> {
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()> {
        self.insert_mixed_hashes(hashes, new);
        Ok(())
    }
}
