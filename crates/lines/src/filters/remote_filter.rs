//! Filters at an address, of which only the parts that the lines need are read.

use std::ops::Range;
use std::sync::Arc;

use petal::embed::RangeSource;
use petal::{BatchResults, FilterType, HashSpec, Secret};

use super::line_filter::LineFilter;
use crate::error::{Error, Result};
use crate::memory::Budget;
use crate::remote::{
    self, MIN_MEMORY_OF_OBJECTS, ObjectInput, ObjectUrl, Opened, objects_memory, window,
};
use crate::settings::Settings;

/// A filter at an address that is queried in parts: a Bloom filter, a static filter in the ribbon
/// layout, or a cascade.
///
/// Cost: one request of 64 KiB when it is opened, which are kept; then for the lines of a batch one or two
/// requests for each that is far from the others in the filter, of 4 to 256 bytes. The server can tell
/// which bytes are asked for, but not the lines.
pub struct RemoteFilter {
    filter: petal::embed::RemoteFilter,
    file: Arc<RemoteFile>,
}

impl RemoteFilter {
    /// Opens the filter in a file, with its secret if that is apart.
    ///
    /// # Errors
    /// If the file cannot be read, or is no filter that is queried in parts; if the secret is missing or
    /// another one.
    pub fn open(file: &Arc<RemoteFile>, secret: Option<&Secret>) -> petal::Result<Self> {
        let filter = petal::embed::RemoteFilter::open(&**file, secret)?;
        Ok(Self { filter, file: Arc::clone(file) })
    }

    /// Returns the metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        self.filter.metadata()
    }

    /// Returns the type of the filter.
    #[must_use]
    pub fn filter_type(&self) -> FilterType {
        self.filter.filter_type()
    }

    /// Returns the number of lines in the filter.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.filter.inserted()
    }
}

impl LineFilter for RemoteFilter {
    type Hash = HashSpec;

    fn line_hash(&self) -> HashSpec {
        self.filter.hash_spec()
    }

    fn contains_hashes(&self, words: &[u64], found: &mut BatchResults) -> Result<()> {
        let at_once = self.file.ranges_at_once() / self.filter.ranges_per_hash().max(1);
        let mut each = Vec::new();
        for words in words.chunks(at_once.max(1)) {
            let mut found = BatchResults::new();
            let looked = self.filter.contains_mixed_hashes(&*self.file, words, &mut found);
            looked.map_err(|error| match error.is_io() {
                true => Error::read(&self.file.name, error.into()),
                false => Error::input(&self.file.name, error.to_string()),
            })?;
            each.push(found);
        }
        let at_once = at_once.max(1);
        found.fill_with(words.len(), |at| each[at / at_once].get(at % at_once));
        Ok(())
    }
}

/// A file at an address, of one version.
pub struct RemoteFile {
    name: String,
    object: ObjectInput,
    begin: Vec<u8>,
    /// Memory of the job, and of the ranges that a thread reads at a time.
    memory: u64,
    of_ranges: u64,
}

/// Memory of a range that is read: its place in the lists of a round. And the bytes between two that are
/// read as one.
const RANGE: u64 = 112;
const GAP: u64 = 260;

impl RemoteFile {
    /// Opens the file at an address, for a job with these settings.
    ///
    /// # Errors
    /// If the server does not answer, or sends no ranges of bytes or no versions; if the memory limit is too
    /// low.
    pub fn open(url: &ObjectUrl, settings: &Settings<'_>) -> Result<Self> {
        let limit = settings.memory_limit;
        if limit < MIN_MEMORY_OF_OBJECTS {
            return Err(Error::memory_too_small(limit, MIN_MEMORY_OF_OBJECTS));
        }
        let workers = Budget::new(limit, settings.jobs)?.workers as u64;
        // No blocks are read, but ranges.
        let of_ranges = 2 * window(limit) / workers;
        let memory = objects_memory(limit) + window(limit);
        let name = url.to_string();
        match remote::open(url, 0).map_err(|error| Error::read(&name, error))? {
            Opened::Object { object, begin } => Ok(Self { name, object, begin, memory, of_ranges }),
            Opened::Stream(_) => {
                let problem = "its server sends no parts of a file, or no version of it";
                Err(Error::input(&name, problem).advise("download the filter first"))
            }
        }
    }

    /// Returns the memory that reading it takes of the job's limit.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns how many ranges a thread may ask for at a time.
    fn ranges_at_once(&self) -> usize {
        // All together are at most the file.
        let beside_file = self.of_ranges.saturating_sub(self.object.length()) / RANGE;
        beside_file.max(self.of_ranges / (RANGE + GAP)) as usize
    }
}

impl RangeSource for RemoteFile {
    fn length(&self) -> u64 {
        self.object.length()
    }

    fn read(&self, ranges: &[Range<u64>]) -> petal::Result<Vec<u8>> {
        let known = |range: &Range<u64>| self.begin.get(range.start as usize..range.end as usize);
        match ranges.iter().map(known).collect::<Option<Vec<_>>>() {
            Some(pieces) => Ok(pieces.concat()),
            None => Ok(self.object.read_ranges(ranges)?),
        }
    }
}
