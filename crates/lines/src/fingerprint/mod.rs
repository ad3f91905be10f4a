//! Hashes and fingerprints of lines, and the fingerprint table.

mod hash;
mod siphash;
#[cfg(target_arch = "x86_64")]
mod siphash_avx2;
#[cfg(target_arch = "x86_64")]
mod siphash_avx512;
mod table;

pub use hash::fingerprints;
pub(crate) use hash::{Fingerprint, LineHasher};
pub(crate) use table::{FingerprintMap, Full, State, Table};
