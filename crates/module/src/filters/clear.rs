//! Removes all keys from a filter.

use super::StoredFilter;
use crate::error::FilterError;

impl StoredFilter {
    /// Removes all keys. Type, capacity, false-positive rate, growth, seed and the clock of a
    /// window are unchanged; layers after the first are freed.
    ///
    /// # Errors
    /// If the filter was built once from all its keys, or is incomplete.
    pub(crate) fn clear(&mut self) -> Result<(), FilterError> {
        match self {
            Self::Window(filter) => filter.clear(),
            Self::QuotientChain(chain) => chain.clear(),
            Self::RedisBloom(filter) => filter.clear(),
            Self::RedisCuckoo(filter) => filter.clear(),
            Self::Partial(_) => return Err(FilterError::Unsupported),
            Self::Filter(filter) => filter.clear().map_err(|_| FilterError::Unsupported)?,
        }
        Ok(())
    }
}
