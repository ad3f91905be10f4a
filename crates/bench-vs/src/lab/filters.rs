//! petal's filters: the default one, URL by URL and in batches, and the static one.

use std::fs::File;
use std::io::Seek;

use petal::{BatchResults, BloomFilter, HashSpec, Membership, StaticFilter};

use super::{BATCH, SeenSet};

fn text(error: petal::Error) -> String {
    error.to_string()
}

/// petal's default filter.
pub struct PetalDefault {
    filter: BloomFilter,
    results: BatchResults,
    in_batches: bool,
}

impl PetalDefault {
    /// A filter for a number of keys and a rate, used URL by URL or in batches.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(keys: u64, rate: f64, in_batches: bool) -> Result<Self, String> {
        let filter = BloomFilter::with_fpr(keys, rate).map_err(text)?;
        Ok(Self { filter, results: BatchResults::new(), in_batches })
    }
}

impl SeenSet for PetalDefault {
    fn insert(&mut self, urls: &[&str]) -> Result<(), String> {
        if self.in_batches {
            self.filter.insert_batch(urls, &mut self.results);
        } else {
            for &url in urls {
                self.filter.insert(url);
            }
        }
        Ok(())
    }

    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        if self.in_batches {
            self.filter.contains_batch(urls, &mut self.results);
            found.extend((0..urls.len()).map(|at| self.results.get(at)));
        } else {
            found.extend(urls.iter().map(|&url| self.filter.contains(url)));
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<bool, String> {
        self.filter = written_and_read(&self.filter, BloomFilter::read_from)?;
        Ok(true)
    }
}

/// petal's static filter. It is built at the end from the hashes of all URLs, which it keeps until then.
pub struct PetalStatic {
    rate: f64,
    hashes: Vec<u64>,
    filter: Option<StaticFilter>,
}

impl PetalStatic {
    /// A filter for a number of keys and a rate.
    pub fn new(keys: u64, rate: f64) -> Self {
        Self { rate, hashes: Vec::with_capacity(keys as usize), filter: None }
    }

    fn filter(&self) -> Result<&StaticFilter, String> {
        self.filter.as_ref().ok_or_else(|| "the static filter is not built yet".into())
    }
}

impl SeenSet for PetalStatic {
    fn insert(&mut self, urls: &[&str]) -> Result<(), String> {
        let hash = HashSpec::default();
        let mut hashes = Vec::with_capacity(BATCH);
        hash.hash_all(urls.iter(), &mut hashes);
        self.hashes.extend(hashes);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        let hashes = std::mem::take(&mut self.hashes);
        self.filter = Some(StaticFilter::from_mixed_hashes(hashes, self.rate).map_err(text)?);
        Ok(())
    }

    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        let filter = self.filter()?;
        found.extend(urls.iter().map(|&url| filter.contains(url)));
        Ok(())
    }

    fn restart(&mut self) -> Result<bool, String> {
        self.filter = Some(written_and_read(self.filter()?, StaticFilter::read_from)?);
        Ok(true)
    }
}

/// Writes a filter to a `.petal` file and reads it.
fn written_and_read<F: Membership>(
    filter: &F,
    read: impl FnOnce(File) -> petal::Result<(F, String)>,
) -> Result<F, String> {
    let io = |e: std::io::Error| format!("cannot write the filter: {e}");
    let mut file = tempfile::tempfile().map_err(io)?;
    filter.write_to(&mut file, "").map_err(text)?;
    file.rewind().map_err(io)?;
    read(file).map(|(filter, _)| filter).map_err(text)
}
