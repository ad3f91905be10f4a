//! Partial filters: filled with the lines of ranges or the hashes of survivors, and their union.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use petal::{BatchResults, BloomFilter, ByteSize, Membership as _};

use super::range::{FileRange, check_cancelled};
use super::task::Task;
use crate::error::{Error, Result};
use crate::filters::{METADATA, recorded_spelling, union_metadata, with_spelling};
use crate::input::Source;
use crate::memory::Budget;
use crate::scan::{Batch, Scratch};
use crate::setops::HashSink;
use crate::temp::{RecordStream, SectionFile, SectionKind, TaskFile};

/// The size of all partial filters of a job. Only filters of equal size have a union.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterSize {
    /// Maximum size in bytes.
    pub bytes: u64,
    /// The capacity of their union.
    pub capacity: u64,
    /// The target rate; `None` uses all of `bytes`.
    pub fpr: Option<f64>,
}

impl FilterSize {
    /// Returns the size of a filter with this capacity and rate.
    ///
    /// # Errors
    /// If no filter has that rate.
    pub fn for_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        let bytes = BloomFilter::builder().capacity(capacity).fpr(fpr).plan()?.size_bytes();
        Ok(Self { bytes, capacity, fpr: Some(fpr) })
    }
}

/// The files of a partial filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialFilter {
    /// The filter of all lines.
    pub seen: PathBuf,
    /// The filter of lines that occurred twice.
    pub twice: Option<PathBuf>,
}

impl PartialFilter {
    /// Returns a partial filter without `twice`.
    #[must_use]
    pub fn seen(seen: PathBuf) -> Self {
        Self { seen, twice: None }
    }
}

/// Counts of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuildCounts {
    /// Lines or hashes inserted.
    pub lines: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes written.
    pub written: u64,
}

impl Task<'_> {
    /// Counts the lines of ranges.
    ///
    /// Cost: one pass.
    ///
    /// # Errors
    /// If a range cannot be read.
    pub fn count(&self, ranges: &[FileRange]) -> Result<BuildCounts> {
        let (context, inputs) = self.open(ranges)?;
        let refs: Vec<_> = inputs.iter().collect();
        let fold = |_: &Batch<'_>, _: &mut Scratch| Ok(ControlFlow::Continue(()));
        let read = context.pass().run("counting", &refs, |_, _| {}, fold)?;
        Ok(BuildCounts { lines: read.lines, bytes: read.bytes, written: 0 })
    }

    /// Fills one partial filter with the lines of many ranges. Each partial filter has the full
    /// size, so build one per worker, not one per range.
    ///
    /// Cost: one pass; one or two filters in memory.
    ///
    /// # Errors
    /// If a range cannot be read, or the filters exceed the memory limit or cannot be written.
    pub fn build(
        &self,
        ranges: &[FileRange],
        size: FilterSize,
        out: &PartialFilter,
    ) -> Result<BuildCounts> {
        let (context, inputs) = self.open(ranges)?;
        let mut seen = self.empty(size, &context.budget, 1 + u64::from(out.twice.is_some()))?;
        let twice = out.twice.as_ref().map(|_| self.empty(size, &context.budget, 2)).transpose()?;
        let mut twice = twice.map(HashSink::Filter);
        let refs: Vec<_> = inputs.iter().collect();
        let read = self.passes(&context).fill(&refs, &mut seen, twice.as_mut(), None)?;
        // The published filter says how the keys of all ranges are spelled.
        let files: Vec<_> = ranges.iter().map(|range| Source::Path(range.path.clone())).collect();
        let metadata = with_spelling(METADATA, self.settings.spellings.of(&files), seen.inserted());
        let mut written = put(&seen, &metadata, &out.seen)?.finish()?;
        if let (Some(HashSink::Filter(twice)), Some(path)) = (&twice, &out.twice) {
            written += write(twice, path)?;
        }
        Ok(BuildCounts { lines: read.lines, bytes: read.bytes, written })
    }

    /// Computes the union of partial filters. If `out.twice` is set, a key that is in two of them
    /// goes into `twice`, and every partial filter must have one.
    ///
    /// For many partial filters, let several workers compute the union of some each, and then the
    /// union of the results.
    ///
    /// Cost: reads each partial filter, those of all lines twice if `twice` is set; two or three
    /// filters in memory.
    ///
    /// # Errors
    /// If there is no partial filter; if one is missing, damaged, of another size or job; if the
    /// filters exceed the memory limit or cannot be written.
    pub fn union(&self, partials: &[PartialFilter], out: &PartialFilter) -> Result<BuildCounts> {
        let budget = self.budget()?;
        let Some((first, rest)) = partials.split_first() else {
            return Err(Error::work(
                &out.seen,
                "is to be the union of no filters; name one at least",
            ));
        };
        let filters = if out.twice.is_some() { 3 } else { 2 };
        let read = |path: &Path| self.read(path, &budget, filters).map(|(filter, _)| filter);
        let twice_of = |partial: &PartialFilter| match &partial.twice {
            Some(path) => read(path),
            None => Err(Error::work(
                &partial.seen,
                "has no filter of lines seen twice beside it; build it with one",
            )),
        };
        let (mut seen, mut metadata) = self.read(&first.seen, &budget, filters)?;
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
            let (other, others) = self.read(&partial.seen, &budget, filters)?;
            let before = seen.inserted();
            seen.union(&other).map_err(of(&partial.seen))?;
            let others = (&*others, other.inserted());
            metadata = union_metadata((&metadata, before), others, seen.inserted());
        }
        let mut written = put(&seen, &metadata, &out.seen)?.finish()?;
        if let (Some(twice), Some(path)) = (&twice, &out.twice) {
            written += write(twice, path)?;
        }
        // For each partial filter the filter of all lines, or that one twice and `twice`.
        let files = partials.len() as u64 * if twice.is_some() { 3 } else { 1 };
        Ok(BuildCounts { lines: seen.inserted(), bytes: files * seen.size_bytes(), written })
    }

    /// Writes the union of all partial filters as a filter file for general use. The file does not
    /// depend on the number of partial filters: the number of keys is estimated from the bits, as
    /// for any union.
    ///
    /// # Errors
    /// If the partial filter is missing, damaged or of another job, or the file cannot be written.
    pub fn publish(&self, partial: &Path, metadata: &str, out: &Path) -> Result<BuildCounts> {
        let budget = self.budget()?;
        let (mut filter, spelled) = self.read(partial, &budget, 2)?;
        let (same, _) = self.read(partial, &budget, 2)?;
        let spelling = recorded_spelling(&spelled, filter.inserted()).unwrap_or_default();
        filter.union(&same).map_err(|error| Error::work(partial, error.to_string()))?;
        let metadata = with_spelling(metadata, spelling, filter.inserted());
        let written = put(&filter, &metadata, out)?.finish_synced()?;
        Ok(BuildCounts { lines: filter.inserted(), bytes: filter.size_bytes(), written })
    }

    /// Fills a partial filter with the hashes of survivors, to narrow the other side.
    ///
    /// # Errors
    /// If a file is missing, damaged, of another job, or made without narrowing; as
    /// [`build`](Self::build).
    pub fn build_from_survivors(
        &self,
        survivors: &[PathBuf],
        size: FilterSize,
        out: &Path,
    ) -> Result<BuildCounts> {
        let budget = self.budget()?;
        let mut filter = self.empty(size, &budget, 1)?;
        // Nothing is written to it.
        let spill_file = self.spill_file()?;
        let (mut hashes, mut answers) = (Vec::new(), BatchResults::new());
        let mut built = BuildCounts::default();
        for path in survivors {
            self.check_cancelled()?;
            let (file, _) =
                SectionFile::open(path, &[SectionKind::First, SectionKind::Other], self.job)?;
            let keys = RecordStream::of_sections(vec![file.section(file.summary().cut, 8)?]);
            let (survivors, found) = (file.summary().count, keys.bytes() / 8);
            // A filter without all hashes would exclude lines of the answer.
            if found != survivors {
                let problem = format!(
                    "has {found} keys of its {survivors} survivors: keys are kept where lines are \
                     narrowed; filter its ranges with a filter or with bits"
                );
                return Err(Error::work(path, problem));
            }
            built.lines += keys.bytes() / 8;
            built.bytes += keys.bytes();
            keys.for_each_block(&spill_file, |block| {
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
        check_cancelled(self.settings.progress)
    }

    /// Returns an empty filter, of which `filters` are in memory at the same time.
    pub(super) fn empty(
        &self,
        size: FilterSize,
        budget: &Budget,
        filters: u64,
    ) -> Result<BloomFilter> {
        self.check_memory(size.bytes, budget, filters)?;
        let builder = BloomFilter::builder()
            .memory(ByteSize::bytes(size.bytes))
            .capacity(size.capacity.max(1));
        let builder = size.fpr.map_or(builder, |fpr| builder.fpr(fpr));
        Ok(builder.hash(*self.hasher.spec()).build()?)
    }

    fn check_memory(&self, bytes: u64, budget: &Budget, filters: u64) -> Result<()> {
        let needed = bytes.saturating_mul(filters);
        if needed <= budget.work {
            return Ok(());
        }
        // The work share is always more than half of the limit.
        Err(Error::memory_too_small(self.settings.memory_limit, needed.saturating_mul(2)))
    }

    /// Reads a partial filter, of which `filters` are in memory at the same time, and its metadata.
    fn read(&self, path: &Path, budget: &Budget, filters: u64) -> Result<(BloomFilter, String)> {
        let reading = |e| Error::work_io(path, "read", &e);
        let file = File::open(path).map_err(reading)?;
        self.check_memory(file.metadata().map_err(reading)?.len(), budget, filters)?;
        let read = BloomFilter::read_from(std::io::BufReader::with_capacity(1 << 18, file));
        let (filter, metadata) = read.map_err(|e| Error::work(path, e.to_string()))?;
        self.check_job(&filter, path)?;
        Ok((filter, metadata))
    }

    /// Checks the hash: a filter of another job would exclude lines that it contains.
    pub(super) fn check_job(&self, filter: &dyn petal::Membership, name: &Path) -> Result<()> {
        if filter.hash_spec() == *self.hasher.spec() {
            return Ok(());
        }
        Err(Error::work(name, "is a filter with other keys than this job's; build it with these"))
    }
}

/// Writes a filter for the job. Returns its size in bytes.
pub(super) fn write(filter: &BloomFilter, path: &Path) -> Result<u64> {
    put(filter, "", path)?.finish()
}

fn put(filter: &BloomFilter, metadata: &str, path: &Path) -> Result<TaskFile> {
    let mut out = TaskFile::new(path)?;
    filter.write_to(&mut out, metadata).map_err(|e| Error::work(path, e.to_string()))?;
    Ok(out)
}
