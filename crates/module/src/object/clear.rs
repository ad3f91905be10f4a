//! Removal of all items from an object that keeps its parameters.

use petal::AnyFilter;

use super::{Object, Refusal};

impl Object {
    /// Removes all items. Type, capacity, rate, growth and seed stay, as does a window's clock;
    /// layers after the first are freed.
    ///
    /// # Errors
    /// If the filter was built once from all its items.
    pub(crate) fn clear(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Window(filter) => filter.clear(),
            Self::Chain(chain) => chain.clear(),
            Self::RedisBloom(filter) => filter.clear(),
            Self::RedisCuckoo(filter) => filter.clear(),
            Self::Incoming(_) => return Err(Refusal::Type),
            Self::Filter(filter) => match &mut **filter {
                AnyFilter::Bloom(filter) => filter.clear(),
                AnyFilter::Classic(filter) => filter.clear(),
                AnyFilter::Counting(filter) => filter.clear(),
                AnyFilter::CountingClassic(filter) => filter.clear(),
                AnyFilter::Quotient(filter) => filter.clear(),
                AnyFilter::Scalable(filter) => filter.clear(),
                AnyFilter::Windowed(filter) => filter.clear(),
                AnyFilter::Wide(filter) => filter.clear(),
                _ => return Err(Refusal::Type),
            },
        }
        Ok(())
    }
}
