//! The fixed header of a `.petal` file.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::fmt;

use xxhash_rust::xxh3::Xxh3;

use super::kind::FilterType;
use crate::error::{Error, Grouped, Result};
use crate::hash::{HashSpec, Secret};
use crate::store::CacheLine;

/// The first bytes of a file: a non-ASCII byte, the name, and CR LF, which text-mode transfers
/// change.
pub const MAGIC: [u8; 8] = [0x89, b'P', b'E', b'T', b'A', b'L', 0x0d, 0x0a];
/// The version of the format.
pub(crate) const VERSION: u16 = 1;
/// The alignment of the data in the file: a page.
pub(crate) const PAGE: u64 = 4096;
/// The largest length of the metadata.
pub(crate) const MAX_METADATA: u64 = 1 << 20;
/// The largest number of inserts in a header. Larger numbers are written as this one, so that
/// adding to it cannot overflow.
pub(crate) const MAX_INSERTED: u64 = u64::MAX >> 1;

// Each field begins where the one before it ends.
const AT_VERSION: usize = MAGIC.len();
const AT_KIND: usize = AT_VERSION + 2;
const AT_FLAGS: usize = AT_KIND + 2;
const AT_DATA: usize = AT_FLAGS + 4;
const AT_DATA_LENGTH: usize = AT_DATA + 8;
const AT_METADATA_LENGTH: usize = AT_DATA_LENGTH + 8;
const AT_HASH: usize = AT_METADATA_LENGTH + 4;
const AT_PROBES: usize = AT_HASH + 2;
const AT_LANES: usize = AT_PROBES + 2;
const AT_RESERVED: usize = AT_LANES + 2;
const AT_SEED: usize = AT_RESERVED + 6;
const AT_EXTENT: usize = AT_SEED + 16;
const AT_PLANNED: usize = AT_EXTENT + 8;
const AT_TARGET: usize = AT_PLANNED + 8;
const AT_INSERTED: usize = AT_TARGET + 8;
const AT_PARAMETERS: usize = AT_INSERTED + 8;
/// The number of words whose meaning depends on the type of filter.
pub(crate) const PARAMETERS: usize = 18;
const AT_DATA_SUM: usize = 240;
const AT_HEADER_SUM: usize = AT_DATA_SUM + 8;
/// The length of the fixed header; metadata follows.
pub(crate) const HEADER: usize = AT_HEADER_SUM + 8;

const _: () = assert!(AT_PARAMETERS + 8 * PARAMETERS == AT_DATA_SUM && HEADER == 256);

/// The values of a filter in its file, besides layout, hash and data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FilterInfo {
    /// The number of keys planned for; 0 without a plan.
    pub(crate) capacity: u64,
    /// The false-positive rate planned for; 0 without a plan.
    pub(crate) target_fpr: f64,
    /// The number of inserts that were new.
    pub(crate) inserted: u64,
}

/// The rate from which a filter is refused whose rate follows from its size: it is 100 % when rounded,
/// and the filter contains nearly everything.
const USELESS_FPR: f64 = 0.9995;

impl FilterInfo {
    /// Returns the values of an empty filter with this plan.
    pub(crate) fn planned(capacity: u64, target_fpr: f64) -> Self {
        Self { capacity, target_fpr, inserted: 0 }
    }

    /// Returns the values of an empty filter whose rate at the capacity follows from its size; without
    /// a capacity there is no plan.
    pub(crate) fn of_size(capacity: Option<u64>, fpr: impl Fn(u64) -> f64) -> Result<Self> {
        let Some(capacity) = capacity else { return Ok(Self::default()) };
        let fpr = fpr(capacity);
        if fpr < USELESS_FPR {
            return Ok(Self::planned(capacity, fpr));
        }
        let found = format!("{}, at which the filter contains nearly every key", Grouped(capacity));
        Err(Error::invalid("capacity", "fewer keys, or more memory or bits", found))
    }
}

/// A header that passed all checks that do not need the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    pub(crate) kind: FilterType,
    pub(crate) probes: u16,
    pub(crate) lanes: u16,
    /// The number of blocks of a blocked filter, of bits of a classic one; for others see
    /// docs/reference/format.md.
    pub(crate) extent: u64,
    pub(crate) hash: HashSpec,
    pub(crate) info: FilterInfo,
    /// Parameters of the type of filter; unused ones are 0.
    pub(crate) parameters: [u64; PARAMETERS],
    pub(crate) metadata_length: u64,
    pub(crate) data_length: u64,
    pub(crate) data_sum: u64,
}

impl Header {
    /// Returns the offset of the data: the first page after the metadata.
    pub(crate) fn data_at(&self) -> u64 {
        (HEADER as u64 + self.metadata_length).next_multiple_of(PAGE)
    }

    /// Returns the length of the whole file by the header, which may be wrong.
    pub(crate) fn file_length(&self) -> u64 {
        self.data_at().saturating_add(self.data_length)
    }

    /// Creates a header without lengths and checksums.
    pub(crate) fn new(kind: FilterType, extent: u64, hash: HashSpec, info: FilterInfo) -> Self {
        let info = FilterInfo { inserted: info.inserted.min(MAX_INSERTED), ..info };
        Self {
            kind,
            probes: 0,
            lanes: 0,
            extent,
            hash,
            info,
            parameters: [0; PARAMETERS],
            metadata_length: 0,
            data_length: 0,
            data_sum: 0,
        }
    }

    /// Returns the bytes of the header, with the checksum of header and metadata.
    pub(crate) fn to_bytes(self, metadata: &[u8]) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(AT_VERSION, &VERSION.to_le_bytes());
        put(AT_KIND, &self.kind.number().to_le_bytes());
        put(AT_DATA, &self.data_at().to_le_bytes());
        put(AT_DATA_LENGTH, &self.data_length.to_le_bytes());
        put(AT_METADATA_LENGTH, &(self.metadata_length as u32).to_le_bytes());
        put(AT_HASH, &self.hash.id().to_le_bytes());
        put(AT_PROBES, &self.probes.to_le_bytes());
        put(AT_LANES, &self.lanes.to_le_bytes());
        put(AT_SEED, &self.hash.seed());
        put(AT_EXTENT, &self.extent.to_le_bytes());
        put(AT_PLANNED, &self.info.capacity.to_le_bytes());
        put(AT_TARGET, &self.info.target_fpr.to_bits().to_le_bytes());
        put(AT_INSERTED, &self.info.inserted.to_le_bytes());
        for (at, parameter) in self.parameters.into_iter().enumerate() {
            put(AT_PARAMETERS + 8 * at, &parameter.to_le_bytes());
        }
        put(AT_DATA_SUM, &self.data_sum.to_le_bytes());
        let sum = header_sum(&bytes, metadata);
        bytes[AT_HEADER_SUM..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses the fields. [`check_sum`] checks the checksum, which needs the metadata.
    pub(crate) fn from_bytes(bytes: &[u8; HEADER]) -> Result<Self> {
        if bytes[..MAGIC.len()] != MAGIC {
            return Err(Error::foreign(bytes));
        }
        let version = word(bytes, AT_VERSION);
        if u16::from_le_bytes(version) != VERSION {
            return Err(Error::version(u16::from_le_bytes(version)));
        }
        zeros(&bytes[AT_FLAGS..AT_DATA], "flags", AT_FLAGS)?;
        zeros(&bytes[AT_RESERVED..AT_SEED], "reserved", AT_RESERVED)?;
        let long = |at| u64::from_le_bytes(word(bytes, at));
        let short = |at| u16::from_le_bytes(word(bytes, at));
        let header = Self {
            kind: FilterType::from_number(short(AT_KIND))?,
            probes: short(AT_PROBES),
            lanes: short(AT_LANES),
            extent: long(AT_EXTENT),
            hash: HashSpec::from_file(short(AT_HASH), word(bytes, AT_SEED))?,
            info: FilterInfo {
                capacity: long(AT_PLANNED),
                target_fpr: f64::from_bits(long(AT_TARGET)),
                inserted: long(AT_INSERTED),
            },
            parameters: core::array::from_fn(|i| long(AT_PARAMETERS + 8 * i)),
            metadata_length: u32::from_le_bytes(word(bytes, AT_METADATA_LENGTH)).into(),
            data_length: long(AT_DATA_LENGTH),
            data_sum: long(AT_DATA_SUM),
        };
        let longer = header.metadata_length > MAX_METADATA;
        if longer {
            let (max, found) = (MAX_METADATA, header.metadata_length);
            return Err(Error::corrupt("metadata length", AT_METADATA_LENGTH, max, found));
        }
        if long(AT_DATA) != header.data_at() {
            return Err(Error::corrupt("data offset", AT_DATA, header.data_at(), long(AT_DATA)));
        }
        if header.info.inserted > MAX_INSERTED {
            let found = header.info.inserted;
            return Err(Error::corrupt("keys inserted", AT_INSERTED, MAX_INSERTED, found));
        }
        if !(0.0..1.0).contains(&header.info.target_fpr)
            || header.info.target_fpr.is_sign_negative()
        {
            // `{:?}`, because `{}` may print 300 digits.
            let found = format!("{:?}", header.info.target_fpr);
            return Err(Error::corrupt("target rate", AT_TARGET, "0 to 1", found));
        }
        Ok(header)
    }

    /// Returns the header with the secret of its hash, if that is apart.
    pub(crate) fn unlocked(self, secret: Option<&Secret>) -> Result<Self> {
        Ok(Self { hash: self.hash.unlocked(secret)?, ..self })
    }

    /// Checks the type of filter.
    pub(crate) fn check_kind(&self, expected: FilterType) -> Result<()> {
        if self.kind != expected {
            return Err(Error::invalid("type of filter", expected.name(), self.kind));
        }
        Ok(())
    }

    /// Checks that probes and lanes are 0, for types of filters without them.
    pub(crate) fn check_no_probes(&self) -> Result<()> {
        if (self.probes, self.lanes) != (0, 0) {
            let found = format!("{} and {}", self.probes, self.lanes);
            return Err(Error::invalid("probes and lanes", "0 for this type of filter", found));
        }
        Ok(())
    }

    /// Checks that the header states the length that the layout needs.
    pub(crate) fn check_lines(&self, lines: u64) -> Result<()> {
        self.check_length(lines.saturating_mul(CacheLine::BYTES as u64))
    }

    /// As [`check_lines`](Self::check_lines), in bytes.
    pub(crate) fn check_length(&self, expected: u64) -> Result<()> {
        if self.data_length == expected {
            return Ok(());
        }
        Err(Self::wrong_data_length(expected, self.data_length))
    }

    /// Checks that all parameters after the first `used` are 0.
    pub(crate) fn check_parameters(&self, used: usize) -> Result<()> {
        match self.parameters[used..].iter().position(|parameter| *parameter != 0) {
            None => Ok(()),
            Some(at) => Err(self.bad_parameter(used + at, 0)),
        }
    }

    /// The error for more keys than the `max` that the layout has slots for.
    pub(crate) fn bad_inserted(&self, max: u64) -> Error {
        Error::corrupt("keys inserted", AT_INSERTED, format!("up to {max}"), self.info.inserted)
    }

    /// The error for parameter `at`.
    pub(crate) fn bad_parameter(&self, at: usize, expected: impl fmt::Display) -> Error {
        Error::corrupt("parameter", AT_PARAMETERS + 8 * at, expected, self.parameters[at])
    }

    /// The error for a wrong length of the data.
    pub(crate) fn wrong_data_length(expected: u64, found: u64) -> Error {
        Error::corrupt("data length", AT_DATA_LENGTH, expected, found)
    }
}

/// Checks the header's checksum.
pub(crate) fn check_sum(bytes: &[u8; HEADER], metadata: &[u8]) -> Result<()> {
    let (expected, found) =
        (header_sum(bytes, metadata), u64::from_le_bytes(word(bytes, AT_HEADER_SUM)));
    if expected != found {
        let (expected, found) = (format!("{expected:016x}"), format!("{found:016x}"));
        return Err(Error::corrupt("header checksum", AT_HEADER_SUM, expected, found));
    }
    Ok(())
}

/// XXH3-64 of the header up to this sum, and of the metadata.
fn header_sum(bytes: &[u8; HEADER], metadata: &[u8]) -> u64 {
    let mut sum = Xxh3::new();
    sum.update(&bytes[..AT_HEADER_SUM]);
    sum.update(metadata);
    sum.digest()
}

fn word<const N: usize>(bytes: &[u8; HEADER], at: usize) -> [u8; N] {
    core::array::from_fn(|i| bytes[at + i])
}

fn zeros(bytes: &[u8], what: &'static str, at: usize) -> Result<()> {
    match bytes.iter().find(|byte| **byte != 0) {
        None => Ok(()),
        Some(byte) => Err(Error::corrupt(what, at, 0, byte)),
    }
}
