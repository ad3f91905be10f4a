//! Lines that no earlier run has printed.

mod fingerprint_log;
mod new_lines;
mod pages;

pub use fingerprint_log::FingerprintLog;
pub use new_lines::{SeenCounts, SeenFilter, max_seen_filter, seen};
