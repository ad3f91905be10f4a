//! Saturated counters of a counting filter, which `remove` cannot decrement.
//!
//! Cost: reads all counters once.

use petal::embed::Layout;
use petal::{AnyFilter, CountingFilter, Store};

use crate::terminal::progress::ProgressReporter;
use crate::text;

/// Prints a note if more counters are saturated than distinct lines explain.
pub(super) fn note_if_saturated(filter: &AnyFilter, progress: &ProgressReporter) {
    let saturation = match filter {
        AnyFilter::Counting(filter) => Saturation::of(filter),
        AnyFilter::CountingClassic(filter) => Saturation::of(filter),
        _ => return,
    };
    if saturation.counters as f64 > saturation.expected * MARGIN + FEW {
        progress.print(&format!(
            "note: {} counters are saturated at {} and never decremented: lines that were added \
             more often cannot be removed; to count further, build with {}",
            text::count(saturation.counters),
            saturation.maximum,
            if saturation.maximum < MAXIMUM_OF_8_BITS {
                "--width 8, or --type quotient"
            } else {
                "--type quotient"
            },
        ));
    }
}

/// The maximum of counters with 8 bits.
const MAXIMUM_OF_8_BITS: u64 = 128;

/// Tolerance for blocks that are fuller than the mean.
const MARGIN: f64 = 4.0;

/// One line that is added too often saturates more counters than this.
const FEW: f64 = 2.0;

struct Saturation {
    counters: u64,
    maximum: u64,
    /// The number of saturated counters if each line had been added once.
    expected: f64,
}

impl Saturation {
    fn of<L: Layout, S: Store>(filter: &CountingFilter<L, S>) -> Self {
        let keys = filter.stats().estimated_len.min(1e18) as u64;
        Self {
            counters: filter.saturated(),
            maximum: filter.max_count(),
            expected: filter.expected_saturated(keys, 0.0),
        }
    }
}
