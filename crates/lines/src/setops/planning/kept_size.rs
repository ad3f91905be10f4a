//! Sizes of the records that an exact job keeps in memory instead of reading an input again.

/// Returns the size of a block, of which at least 16 fit into a limit.
pub(crate) fn block_bytes(limit: u64) -> u64 {
    (limit / 16).min(32 << 20)
}

/// Returns the limit for about `bytes` bytes; 0 if that is not free.
pub(super) fn limit(bytes: f64, free: u64) -> u64 {
    // One block in 16 may be almost empty.
    let limit = (bytes * margin() * 16.0 / 15.0) as u64 + 16 * 128;
    if limit <= free { limit } else { 0 }
}

/// Returns whether `records` records of `size` bytes are within a limit.
pub(crate) fn is_within(limit: u64, records: f64, size: usize) -> bool {
    let block = block_bytes(limit);
    let in_block = block / size as u64;
    in_block > 0 && (records / in_block as f64).ceil() * block as f64 <= limit as f64
}

/// Samples estimate the lines of files within a few percent.
const MARGIN: f64 = 1.125;

#[cfg(not(test))]
fn margin() -> f64 {
    MARGIN
}

#[cfg(test)]
thread_local! {
    /// The margin that a test wants.
    pub(crate) static TEST_MARGIN: std::cell::Cell<f64> = const { std::cell::Cell::new(MARGIN) };
}

#[cfg(test)]
fn margin() -> f64 {
    TEST_MARGIN.get()
}
