//! Filters at an address, of which only the parts that the lines need are read.

use std::ops::Range;

use petal::embed::RangeSource;
use petal::{BatchResults, FilterType, HashSpec};

use super::line_filter::LineFilter;
use crate::error::{Error, Result};
use crate::remote::{self, ObjectInput, ObjectUrl, Opened};

/// A filter at an address that is queried in parts: a Bloom filter, a static filter in the ribbon
/// layout, or a cascade.
///
/// Cost: one request of 64 KiB when it is opened, which are kept; then for the lines of a batch one or two requests for each that
/// is far from the others in the filter, of 4 to 256 bytes. The server can tell which lines with these
/// bytes are asked for, but not the lines.
pub struct RemoteFilter {
    name: String,
    filter: petal::embed::RemoteFilter,
    file: RemoteFile,
}

impl RemoteFilter {
    /// Opens the filter at an address.
    ///
    /// # Errors
    /// If the server does not answer, sends no ranges of bytes or no versions, or the file is no filter
    /// that is queried in parts.
    pub fn open(url: &ObjectUrl) -> Result<Self> {
        let name = url.to_string();
        let file = match remote::open(url, 0).map_err(|error| Error::read(&name, error))? {
            Opened::Object { object, begin } => RemoteFile { object, begin },
            Opened::Stream(_) => {
                let problem = "its server sends no parts of a file, or no version of it";
                return Err(Error::input(&name, problem).advise("download the filter first"));
            }
        };
        let filter = petal::embed::RemoteFilter::open(&file);
        let filter = filter.map_err(|error| failure(&name, error))?;
        Ok(Self { name, filter, file })
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
        let looked = self.filter.contains_mixed_hashes(&self.file, words, found);
        looked.map_err(|error| failure(&self.name, error))
    }
}

fn failure(name: &str, error: petal::Error) -> Error {
    match error.is_io() {
        true => Error::read(name, error.into()),
        false => Error::input(name, error.to_string()),
    }
}

/// The file at the address, of one version.
struct RemoteFile {
    object: ObjectInput,
    begin: Vec<u8>,
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
