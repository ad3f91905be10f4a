//! An object that was opened.

use std::io;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::store::{Begin, Location, Version};
use super::{ObjectUrl, Opened};

/// First bytes that are requested when an object is opened.
const BEGIN: u64 = 64 << 10;

/// An object of which one version is read.
#[derive(Debug)]
pub(crate) struct ObjectInput {
    pub(super) location: Location,
    pub(super) version: Version,
    /// Memory for blocks, in bytes.
    pub(super) window: u64,
}

/// Opens an object, of which `window` bytes may be in memory.
pub(crate) fn open(url: &ObjectUrl, window: u64) -> io::Result<Opened> {
    let location = Location::of(url, false)?;
    Ok(match location.begin(BEGIN)? {
        Begin::Bytes(version, begin) => {
            Opened::Object { object: ObjectInput { location, version, window }, begin }
        }
        Begin::Stream(stream) => Opened::Stream(Box::new(stream)),
    })
}

impl ObjectInput {
    /// Returns the length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.version.length
    }

    /// Returns the hash of the ETag, and the time of modification in seconds.
    pub(crate) fn version(&self) -> (u64, i64) {
        let Version { etag, modified, .. } = &self.version;
        (xxh3_64(format!("{etag:?}").as_bytes()), *modified)
    }

    /// Reads ranges with a request for each; returns their bytes, one range after the other.
    pub(crate) fn read_ranges(&self, ranges: &[Range<u64>]) -> io::Result<Vec<u8>> {
        self.location.read_all(ranges, &self.version)
    }

    /// Reads from a position with one request. Returns 0 at the end.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let end = self.length().min(at + buffer.len() as u64);
        if at >= end {
            return Ok(0);
        }
        let bytes = self.location.read(at..end, &self.version)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}
