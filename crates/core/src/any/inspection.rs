//! The numbers of a filter file, without its secret.

use super::AnyFilter;
use crate::error::Result;
use crate::format::persist::{self, Purpose};
use crate::membership::Membership as _;
use crate::stats::Stats;
use crate::store::Mapped;

/// A mapped filter file that is described, not queried: no secret is needed.
#[derive(Debug)]
pub struct Inspection(AnyFilter<Mapped>);

impl Inspection {
    /// Opens a filter file of any type. Reads only the header and the lengths of the parts.
    ///
    /// # Errors
    /// If the file is not a petal file, is truncated, or its header is damaged.
    pub fn open_mapped(file: Mapped) -> Result<Self> {
        persist::open_mapped(file, Purpose::Numbers).map(Self)
    }

    /// Checks every byte of the file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        self.0.verify()
    }

    /// Returns the metadata of the file.
    #[must_use]
    pub fn metadata(&self) -> &str {
        self.0.metadata()
    }

    /// Returns the numbers of the filter.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// As [`Membership::block_fills`](crate::Membership::block_fills).
    #[must_use]
    pub fn block_fills(&self, steps: usize) -> Vec<u64> {
        self.0.block_fills(steps)
    }

    /// As [`Membership::expected_fpr`](crate::Membership::expected_fpr).
    #[must_use]
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        self.0.expected_fpr(keys)
    }

    /// Returns the name of the hash: see [`HashSpec::name`](crate::HashSpec::name).
    #[must_use]
    pub fn hash_name(&self) -> &'static str {
        self.0.hash_spec().name()
    }

    /// Whether the hash is keyed.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.0.hash_spec().is_keyed()
    }

    /// Whether the secret of the hash is not in the file.
    #[must_use]
    pub fn is_secret_apart(&self) -> bool {
        self.0.hash_spec().is_secret_apart()
    }
}
