//! Records of lines, and the partitions that they belong to.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;

/// The side of a set operation that an input is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The input whose lines are printed.
    First,
    /// An input that the first one is compared with.
    Other,
}

impl Side {
    /// Returns the length of its records in bytes.
    pub(crate) fn record_bytes(self) -> usize {
        match self {
            Self::First => FIRST_RECORD,
            Self::Other => OTHER_RECORD,
        }
    }
}

/// Length of a record of the first input: fingerprint and position.
pub(crate) const FIRST_RECORD: usize = Fingerprint::BYTES + 8;
/// Length of a record of another input: fingerprint.
pub(super) const OTHER_RECORD: usize = Fingerprint::BYTES;

pub(super) fn encode_first_record(fingerprint: Fingerprint, position: u64) -> [u8; FIRST_RECORD] {
    let mut record = [0; FIRST_RECORD];
    record[..OTHER_RECORD].copy_from_slice(&fingerprint.to_bytes());
    record[OTHER_RECORD..].copy_from_slice(&position.to_le_bytes());
    record
}

/// The division of fingerprints into partitions, level by level.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Partitioning(Vec<NonZeroU64>);

impl Partitioning {
    pub(crate) fn new(partitions: u64) -> Self {
        Self(vec![NonZeroU64::new(partitions).unwrap_or(NonZeroU64::MIN)])
    }

    /// Returns the number of partitions of the lowest level.
    pub(crate) fn partitions(&self) -> usize {
        self.0.last().map_or(1, |parts| parts.get() as usize)
    }

    pub(crate) fn deeper(&self, parts: u64) -> Self {
        let mut partitioning = self.0.clone();
        partitioning.extend(NonZeroU64::new(parts));
        Self(partitioning)
    }

    /// Returns the partition of a fingerprint at the lowest level. The high half is a fraction whose
    /// digits, from the top, are the partitions of the levels.
    #[inline]
    pub(crate) fn of(&self, fingerprint: Fingerprint) -> usize {
        let mut rest = fingerprint.high;
        let mut digit = 0;
        for parts in &self.0 {
            let product = u128::from(rest) * u128::from(parts.get());
            (digit, rest) = ((product >> 64) as usize, product as u64);
        }
        digit
    }
}
