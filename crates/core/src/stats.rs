//! The numbers of a filter as it is now.

use crate::format::kind::FilterType;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// The numbers of a filter as it is now: what it was planned for, and what its data say.
///
/// ```
/// use petal::BloomFilter;
///
/// let mut seen = BloomFilter::with_fpr(1000, 0.01)?;
/// seen.extend(0..500u32);
/// let stats = seen.stats();
/// assert_eq!((stats.capacity, stats.target_fpr), (1000, 0.01));
/// assert!((480.0..520.0).contains(&stats.estimated_len));
/// assert!(stats.estimated_fpr < 0.001 && !stats.is_overfull);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The type of the filter.
    pub filter_type: FilterType,
    /// The layout in words: "16 blocks of 512 bits, 8 probes".
    pub layout: String,
    /// The parameters of the layout, by name.
    pub parameters: Vec<(&'static str, u64)>,
    /// The size of the data in bytes, in memory or in a file.
    pub size_bytes: u64,
    /// The total memory in bytes. Pages of a mapped file do not count.
    pub memory_usage: u64,
    /// The number of distinct keys that the filter was planned for; 0 if it was made without a plan,
    /// from bits and probes.
    pub capacity: u64,
    /// The false-positive rate that the filter was planned for; 0 if it was made without a plan.
    pub target_fpr: f64,
    /// The number of inserts that were new: see
    /// [`Membership::inserted`](crate::Membership::inserted).
    pub inserted: u64,
    /// The number of distinct keys, estimated from the data; infinite if the filter is full. A
    /// [`VectorQuotientFilter`](crate::VectorQuotientFilter) counts every copy of a key; a
    /// [`StaticFilter`](crate::StaticFilter) and a [`FilterCascade`](crate::FilterCascade) know the
    /// number.
    ///
    /// After an intersection it is an upper bound: bits that different keys of the two filters
    /// set by chance stay set and count. `inserted` is then the better estimate.
    pub estimated_len: f64,
    /// The false-positive rate, from the data.
    pub estimated_fpr: f64,
    /// The share of bits, counters or slots in use.
    pub fill_ratio: f64,
    /// How many more keys fit at the target rate; `None` if the filter was made without a plan,
    /// grows, forgets old keys, or takes no keys at all ([`FilterType::is_fixed`]).
    pub capacity_left: Option<u64>,
    /// Whether the false-positive rate is above the target by more than chance explains: see
    /// [`math::is_overfull`](crate::math::is_overfull).
    pub is_overfull: bool,
}
