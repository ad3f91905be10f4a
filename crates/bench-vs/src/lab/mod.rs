//! `cargo x lab`: ways to remember which URLs were seen, measured side by side, for docs/uses/lab.md.
//!
//! A way is a [`SeenSet`]. [`ways`] lists them; [`measure`] fills one with half of the generated URLs and queries it for
//! seen and new ones, in a process of its own ([`program`]). [`claims`] measures what articles say about filters, with
//! the textbook filter of [`bits`] and the well-known Java sample of [`java_sample`].

pub mod bits;
pub mod claims;
pub mod databases;
pub mod filters;
pub mod java_sample;
pub mod measure;
pub mod program;
pub mod sets;
pub mod ways;

/// The largest number of URLs in one call.
pub const BATCH: usize = 1_024;

/// A way to remember which URLs were seen.
pub trait SeenSet {
    /// Adds URLs, at most [`BATCH`].
    ///
    /// # Errors
    /// If a database refuses them.
    fn insert(&mut self, urls: &[&str]) -> Result<(), String>;

    /// Adds URLs whose time is not measured. A database that is measured row by row adds them in batches.
    ///
    /// # Errors
    /// Those of [`insert`](Self::insert).
    fn prefill(&mut self, urls: &[&str]) -> Result<(), String> {
        self.insert(urls)
    }

    /// Completes the set after the last URL was added.
    ///
    /// # Errors
    /// If it cannot be built.
    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Appends to `found`, for each URL, whether it was seen.
    ///
    /// # Errors
    /// If a database fails.
    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String>;

    /// Deletes URLs. False if the set has no deletion.
    ///
    /// # Errors
    /// If a database fails.
    fn remove(&mut self, _urls: &[&str]) -> Result<bool, String> {
        Ok(false)
    }

    /// Stops and starts again, as after the end of the process. False if the set is lost then.
    ///
    /// # Errors
    /// If it cannot be opened again.
    fn restart(&mut self) -> Result<bool, String> {
        Ok(false)
    }

    /// Returns the bytes on disk; 0 for a set in memory.
    ///
    /// # Errors
    /// If they cannot be read.
    fn disk_bytes(&mut self) -> Result<u64, String> {
        Ok(0)
    }
}
