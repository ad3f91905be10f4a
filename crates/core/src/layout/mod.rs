//! Layouts: the validated dimensions of a filter, and the calculation of its size.
//!
//! A layout is valid by construction: its numbers are consistent, and every block or position
//! derived from them is inside the filter. It is created from a target (capacity and fpr), from
//! given numbers (bits and probes, or memory), or from untrusted numbers, which are checked. Two
//! filters with equal layouts have the same dimensions.
//!
//! No size is rounded to a power of two. Sizes for a target fpr are rounded up to numbers with many
//! divisors if that takes at most 0.1 % more space.

mod blocked;
mod classic;
mod search;
#[cfg(test)]
mod tests;

pub use blocked::BlockedLayout;
pub use classic::ClassicLayout;
pub(crate) use search::{LINE_BYTES, check_target, largest_fitting, smallest_for_fpr};
