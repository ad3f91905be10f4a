//! The lowest count of the most frequent lines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The lowest count of more lines is not kept: it takes 8 bytes for each.
const MAX_LINES: u64 = 1 << 16;

/// The counts of the most frequent lines so far.
#[derive(Default)]
pub(super) struct TopCounts {
    /// Number of lines to print; `None`: any number.
    lines: Option<usize>,
    counts: BinaryHeap<Reverse<u64>>,
}

impl TopCounts {
    /// The counts of the `lines` most frequent lines.
    pub(super) fn new(lines: Option<u64>) -> Self {
        let lines = lines.filter(|lines| (1..=MAX_LINES).contains(lines));
        Self { lines: lines.map(|lines| lines as usize), counts: BinaryHeap::new() }
    }

    /// Adds the counts of other lines, or lower bounds.
    pub(super) fn extend(&mut self, counts: impl Iterator<Item = u64>) {
        let Some(lines) = self.lines else { return };
        for count in counts {
            if self.counts.len() < lines {
                self.counts.push(Reverse(count));
            } else if let Some(mut least) = self.counts.peek_mut()
                && least.0 < count
            {
                *least = Reverse(count);
            }
        }
    }

    /// Returns a count that each of the most frequent lines has at least; 0 before there are enough
    /// lines.
    pub(super) fn least(&self) -> u64 {
        match self.counts.peek() {
            Some(Reverse(least)) if Some(self.counts.len()) == self.lines => *least,
            _ => 0,
        }
    }
}
