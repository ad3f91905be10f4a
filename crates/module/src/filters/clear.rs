//! Removes all keys from a filter.

use petal::Membership as _;

use super::{CuckooOps, StoredFilter};
use crate::error::FilterError;

impl StoredFilter {
    /// Removes all keys. Type, capacity, false-positive rate, growth, seed and the clock of a
    /// window are unchanged; layers after the first are freed. Returns whether the filter changed.
    ///
    /// # Errors
    /// If the filter was built once from all its keys, or is incomplete.
    pub(crate) fn clear(&mut self) -> Result<bool, FilterError> {
        if let Self::Filter(filter) = self {
            filter.as_dyn_mut().map_err(|_| FilterError::Unsupported)?;
        }
        if self.is_clear() {
            return Ok(false);
        }
        match self {
            Self::Window(filter) => filter.clear(),
            Self::Scalable(filter) => filter.clear(),
            Self::QuotientChain(chain) => chain.clear(),
            Self::RedisBloom(filter) => filter.clear(),
            Self::RedisCuckoo(filter) => filter.clear(),
            Self::Partial(_) => return Err(FilterError::Unsupported),
            Self::Filter(filter) => filter.clear()?,
        }
        Ok(true)
    }

    /// Returns whether the filter is as after [`clear`](Self::clear).
    fn is_clear(&self) -> bool {
        match self {
            // The clock of a window by count is the number of its full generations.
            Self::Window(filter) => {
                filter.inserted() == 0 && (filter.window_ticks().is_some() || filter.now() == 0)
            }
            Self::QuotientChain(chain) => {
                (chain.len(), chain.layers(), chain.info().deleted) == (0, 1, 0)
            }
            Self::RedisBloom(filter) => filter.is_clear(),
            Self::RedisCuckoo(filter) => filter.is_clear(),
            Self::Partial(_) => false,
            Self::Scalable(filter) => {
                (filter.layers(), filter.inserted()) == (1, 0) && filter.stats().fill_ratio == 0.0
            }
            Self::Filter(filter) => filter.as_dyn().inserted() == 0 && filter.is_zero(),
        }
    }
}
