//! Hashes and fingerprints of lines, and the fingerprint table.

mod aes;
mod hash;
mod table;

pub use hash::fingerprints;
pub(crate) use hash::{Fingerprint, LineHasher};
pub(crate) use table::{FingerprintMap, FingerprintSet, Full, Table, ahead};
