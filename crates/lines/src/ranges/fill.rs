//! Partial filters: filled with the lines of ranges, or with the keys of survivors, and united.

use std::fs::File;
use std::path::{Path, PathBuf};

use petal::{Answers, BloomFilter, Shape};

use super::{Range, Task};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::input::Temp;
use crate::pass::{Batch, Flow, Scratch};
use crate::sections::{Kind, Sections, TaskFile};
use crate::spill::{Scratchpad, Stream};
use crate::steps::Keys;

/// How large all partials of a job are: filters can be united only if they are of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Bytes at most.
    pub bytes: u64,
    /// Keys that shall go into their union.
    pub keys: u64,
    /// The rate that it is planned for; none makes the best of the bytes.
    pub rate: Option<f64>,
}

impl Size {
    /// That of the filter which everybody makes for so many keys at a rate.
    ///
    /// # Errors
    /// If no filter has that rate.
    pub fn for_rate(keys: u64, rate: f64) -> Result<Self> {
        let bytes = Shape::for_rate(keys, rate)?.size_bytes();
        Ok(Self { bytes, keys, rate: Some(rate) })
    }
}

/// Where a partial filter is, or shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Of all lines.
    pub seen: PathBuf,
    /// Of the lines that were seen twice.
    pub twice: Option<PathBuf>,
}

impl Partial {
    /// Of all lines alone.
    #[must_use]
    pub fn seen(seen: PathBuf) -> Self {
        Self { seen, twice: None }
    }
}

/// What went into a partial filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// Lines or keys put in.
    pub lines: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes written.
    pub written: u64,
}

impl Task<'_> {
    /// Counts the lines of ranges.
    ///
    /// Cost: one pass, as fast as they can be read.
    ///
    /// # Errors
    /// If a range cannot be read.
    pub fn count(&self, ranges: &[Range]) -> Result<Built> {
        let (budget, inputs) = self.open(ranges)?;
        let refs: Vec<_> = inputs.iter().collect();
        let fold = |_: &Batch<'_>, _: &mut Scratch| Ok(Flow::Go);
        let read = self.settings.pass(budget).run("counting", &refs, |_, _| {}, fold)?;
        Ok(Built { lines: read.lines, bytes: read.bytes, written: 0 })
    }

    /// Fills one partial filter with the lines of many ranges. One for each worker is enough, and
    /// each is of the full size: not one for each range.
    ///
    /// Cost: one pass; one filter in memory, or two.
    ///
    /// # Errors
    /// If a range cannot be read, the filters are larger than the memory, or cannot be written.
    pub fn build(&self, ranges: &[Range], size: Size, out: &Partial) -> Result<Built> {
        let (budget, inputs) = self.open(ranges)?;
        let mut seen = self.empty(size, &budget, 1 + u64::from(out.twice.is_some()))?;
        let twice = out.twice.as_ref().map(|_| self.empty(size, &budget, 2)).transpose()?;
        let mut twice = twice.map(Keys::Filter);
        let refs: Vec<_> = inputs.iter().collect();
        let read = self.steps(budget).fill(&refs, &mut seen, twice.as_mut())?;
        let mut written = write(&seen, &out.seen)?;
        if let (Some(Keys::Filter(twice)), Some(path)) = (&twice, &out.twice) {
            written += write(twice, path)?;
        }
        Ok(Built { lines: read.lines, bytes: read.bytes, written })
    }

    /// Unites partial filters. A key that is in two of them goes into `twice`, if that is asked
    /// for; it then must be there of each partial.
    ///
    /// To unite many, let several workers unite some each, and then what came of that.
    ///
    /// Cost: reads each partial, those of all lines twice if `twice` is asked for; two filters in
    /// memory, or three.
    ///
    /// # Errors
    /// If a partial is missing, damaged, of another size or job; if there is none; if the filters
    /// are larger than the memory, or cannot be written.
    pub fn union(&self, partials: &[Partial], out: &Partial) -> Result<Built> {
        let budget = Budget::new(self.settings.memory, self.settings.jobs)?;
        let Some((first, rest)) = partials.split_first() else {
            return Err(Error::work(
                &out.seen,
                "is to be the union of no filters; name one at least",
            ));
        };
        let held = if out.twice.is_some() { 3 } else { 2 };
        let read = |path: &Path| self.read(path, &budget, held);
        let twice_of = |partial: &Partial| match &partial.twice {
            Some(path) => read(path),
            None => Err(Error::work(
                &partial.seen,
                "has no filter of lines seen twice beside it; build it with one",
            )),
        };
        let mut seen = read(&first.seen)?;
        let mut twice = out.twice.is_some().then(|| twice_of(first)).transpose()?;
        let of = |path: &Path| {
            let path = path.to_owned();
            move |error: petal::Error| Error::work(&path, error.to_string())
        };
        for partial in rest {
            self.check_cancelled()?;
            if let Some(twice) = &mut twice {
                let mut both = read(&partial.seen)?;
                both.intersect(&seen).map_err(of(&partial.seen))?;
                twice.union(&both).map_err(of(&partial.seen))?;
                drop(both);
                twice.union(&twice_of(partial)?).map_err(of(&partial.seen))?;
            }
            seen.union(&read(&partial.seen)?).map_err(of(&partial.seen))?;
        }
        let mut written = write(&seen, &out.seen)?;
        if let (Some(twice), Some(path)) = (&twice, &out.twice) {
            written += write(twice, path)?;
        }
        // Of each partial the filter of all lines, or that twice and the other one.
        let files = partials.len() as u64 * if twice.is_some() { 3 } else { 1 };
        Ok(Built { lines: seen.inserted(), bytes: files * seen.size_bytes(), written })
    }

    /// Makes a filter file for others of the union of all partials. It is the same file however
    /// many partials there were: how many keys went in is told from the bits, as of any union.
    ///
    /// # Errors
    /// If the partial is missing, damaged or of another job, or the file cannot be written.
    pub fn publish(&self, partial: &Path, metadata: &str, out: &Path) -> Result<Built> {
        let budget = Budget::new(self.settings.memory, self.settings.jobs)?;
        let mut filter = self.read(partial, &budget, 2)?;
        let same = self.read(partial, &budget, 2)?;
        filter.union(&same).map_err(|error| Error::work(partial, error.to_string()))?;
        let written = put(&filter, metadata, out)?.finish_for_good()?;
        Ok(Built { lines: filter.inserted(), bytes: filter.size_bytes(), written })
    }

    /// Fills a partial filter with the keys of survivors, to narrow the other side with.
    ///
    /// # Errors
    /// If a file is missing, damaged, of another job, or made without narrowing; as [`build`](Self::build).
    pub fn build_back(&self, survivors: &[PathBuf], size: Size, out: &Path) -> Result<Built> {
        let budget = Budget::new(self.settings.memory, self.settings.jobs)?;
        let mut filter = self.empty(size, &budget, 1)?;
        // Nothing is written there.
        let pad = Scratchpad::new(&Temp::new(&self.settings.temp_dir))?;
        let (mut hashes, mut answers) = (Vec::new(), Answers::new());
        let mut built = Built::default();
        for path in survivors {
            let (file, _) = Sections::open(path, &[Kind::First, Kind::Other], self.job)?;
            let keys = Stream::of_sections(vec![file.section(file.facts().cut, 8)?]);
            let (survivors, found) = (file.facts().count, keys.bytes() / 8);
            // A filter that lacks keys would rule out lines of the answer.
            if found != survivors {
                let problem = format!(
                    "has {found} keys of its {survivors} survivors: keys are kept where lines are \
                     narrowed; filter its ranges with a filter or with bits"
                );
                return Err(Error::work(path, problem));
            }
            built.lines += keys.bytes() / 8;
            built.bytes += keys.bytes();
            keys.for_each_block(&pad, |block| {
                self.check_cancelled()?;
                hashes.clear();
                hashes.extend(block.as_chunks().0.iter().map(|key| u64::from_le_bytes(*key)));
                filter.insert_mixed_hashes(&hashes, &mut answers);
                Ok(())
            })?;
        }
        built.written = write(&filter, out)?;
        Ok(built)
    }

    pub(super) fn check_cancelled(&self) -> Result<()> {
        super::check_cancelled(self.settings.progress)
    }

    /// An empty filter, of which `held` are in memory at once.
    pub(super) fn empty(&self, size: Size, budget: &Budget, held: u64) -> Result<BloomFilter> {
        self.check_room(size.bytes, budget, held)?;
        let builder = BloomFilter::builder().memory(size.bytes).keys(size.keys.max(1));
        let builder = size.rate.map_or(builder, |rate| builder.rate(rate));
        Ok(builder.hash(*self.hashes.spec()).build()?)
    }

    fn check_room(&self, bytes: u64, budget: &Budget, held: u64) -> Result<()> {
        let needed = bytes.saturating_mul(held);
        if needed <= budget.work {
            return Ok(());
        }
        // Work is what remains of the cap; more than half of it, always.
        Err(Error::memory_too_small(self.settings.memory, needed.saturating_mul(2)))
    }

    /// Reads a partial, of which `held` are in memory at once.
    fn read(&self, path: &Path, budget: &Budget, held: u64) -> Result<BloomFilter> {
        let reading = |e| Error::work_io(path, "read", &e);
        let file = File::open(path).map_err(reading)?;
        self.check_room(file.metadata().map_err(reading)?.len(), budget, held)?;
        let (filter, _) = BloomFilter::read_from(std::io::BufReader::with_capacity(1 << 18, file))
            .map_err(|e| Error::work(path, e.to_string()))?;
        self.check_job(&filter, path)?;
        Ok(filter)
    }

    /// A filter with another hash would rule out what it holds.
    pub(super) fn check_job(&self, filter: &dyn petal::Membership, name: &Path) -> Result<()> {
        if filter.hash_spec() == *self.hashes.spec() {
            return Ok(());
        }
        Err(Error::work(name, "is a filter with other keys than this job's; build it with these"))
    }
}

/// Writes a filter for the job; how many bytes it took.
pub(super) fn write(filter: &BloomFilter, path: &Path) -> Result<u64> {
    put(filter, "", path)?.finish()
}

fn put(filter: &BloomFilter, metadata: &str, path: &Path) -> Result<TaskFile> {
    let mut out = TaskFile::new(path)?;
    filter.write_to(&mut out, metadata).map_err(|e| Error::work(path, e.to_string()))?;
    Ok(out)
}
