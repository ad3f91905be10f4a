//! Counters of a counting filter that are stuck: what `remove` cannot lower any more.
//!
//! Cost: reads all counters once.

use petal::{AnyFilter, CountingFilter, Geometry, Store};

use crate::progress::Teller;
use crate::text;

/// Says so when more counters are stuck than lines that come once each would account for.
pub(super) fn note_if_stuck(filter: &AnyFilter, teller: &Teller) {
    let stuck = match filter {
        AnyFilter::Counting(filter) => Stuck::of(filter),
        AnyFilter::CountingClassic(filter) => Stuck::of(filter),
        _ => return,
    };
    if stuck.counters as f64 > stuck.by_chance * CHANCE + FEW {
        teller.say(&format!(
            "note: {} counters are stuck at {} and never lowered: lines that came so often stay \
             when they are removed; count further with build {}",
            text::count(stuck.counters),
            stuck.at,
            if stuck.at < WIDEST { "--width 8, or --type quotient" } else { "--type quotient" },
        ));
    }
}

/// How far counters of eight bits count.
const WIDEST: u64 = 128;

/// Blocks are not filled alike, so that more counters get stuck than the mean of all tells.
const CHANCE: f64 = 4.0;

/// A line that comes too often makes more than these.
const FEW: f64 = 2.0;

struct Stuck {
    counters: u64,
    at: u64,
    /// How many would be if all lines that are held had come once.
    by_chance: f64,
}

impl Stuck {
    fn of<G: Geometry, S: Store>(filter: &CountingFilter<G, S>) -> Self {
        let keys = filter.estimated_len().min(1e18) as u64;
        Self {
            counters: filter.saturated(),
            at: filter.most(),
            by_chance: filter.expected_saturated(keys),
        }
    }
}
