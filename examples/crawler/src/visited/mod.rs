//! The visited set: which URLs were found before. petal's filter, and two sets to compare it with.

#[cfg(feature = "sqlite")]
mod sqlite;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use petal::{HashSpec, Membership as _, ScalableBloomFilter};

#[cfg(feature = "sqlite")]
use sqlite::Table;

/// A type of visited set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A growing Bloom filter in memory, saved with each snapshot.
    Petal,
    /// A `HashSet<String>` in memory, never saved.
    Hashset,
    /// A table of SQLite on disk.
    #[cfg(feature = "sqlite")]
    Sqlite,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Petal => "petal",
            Self::Hashset => "HashSet",
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "SQLite",
        }
    }
}

/// A set of URLs that only grows.
pub(crate) trait Visited: Send {
    /// Inserts a URL and returns true if it was new.
    fn insert(&mut self, url: &str) -> Result<bool, String>;

    /// Ends the insertions of one page. Called after the new URLs are in their queues.
    fn commit(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Saves the set, so that [`open`] finds it.
    fn save(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the size in bytes: in memory, of SQLite on disk.
    fn bytes(&self) -> u64;
}

/// Opens the set of a folder. The second value is true if it was empty, so that it must be filled from the queues.
pub(crate) fn open(
    kind: Kind,
    folder: &Path,
    capacity: u64,
    fpr: f64,
) -> Result<(Box<dyn Visited>, bool), String> {
    match kind {
        Kind::Petal => {
            PetalSet::open(folder, capacity, fpr).map(|(set, new)| (set as Box<dyn Visited>, new))
        }
        Kind::Hashset => Ok((Box::<HashedUrls>::default(), true)),
        #[cfg(feature = "sqlite")]
        Kind::Sqlite => Table::open(folder).map(|(set, new)| (set as Box<dyn Visited>, new)),
    }
}

struct PetalSet {
    filter: ScalableBloomFilter,
    file: PathBuf,
}

impl PetalSet {
    fn open(folder: &Path, capacity: u64, fpr: f64) -> Result<(Box<Self>, bool), String> {
        let file = folder.join("visited.petal");
        if file.exists() {
            let problem = |e: &dyn std::fmt::Display| {
                format!(
                    "{}: {e}; delete this file, and the next run makes it from the queues",
                    file.display()
                )
            };
            let stream = BufReader::new(File::open(&file).map_err(|e| problem(&e))?);
            let (filter, _) = ScalableBloomFilter::read_from(stream).map_err(|e| problem(&e))?;
            return Ok((Box::new(Self { filter, file }), false));
        }
        // Strangers choose the URLs: without a secret key they could make some that collide.
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|e| format!("no random numbers: {e}"))?;
        let builder = ScalableBloomFilter::builder().capacity(capacity).fpr(fpr);
        let filter = builder
            .growth_share(16)
            .hash(HashSpec::keyed(key))
            .build()
            .map_err(|e| e.to_string())?;
        Ok((Box::new(Self { filter, file }), true))
    }
}

impl Visited for PetalSet {
    fn insert(&mut self, url: &str) -> Result<bool, String> {
        self.filter.insert(url).map_err(|e| format!("visited set: {e}"))
    }

    fn save(&mut self) -> Result<(), String> {
        let new = self.file.with_extension("new");
        let write = || -> Result<(), Box<dyn std::error::Error>> {
            let mut out = BufWriter::new(File::create(&new)?);
            self.filter.write_to(&mut out, "visited URLs of a crawl")?;
            out.into_inner()?.sync_all()?;
            fs::rename(&new, &self.file)?;
            Ok(())
        };
        write().map_err(|e| format!("cannot write {}: {e}", new.display()))
    }

    fn bytes(&self) -> u64 {
        self.filter.memory_usage()
    }
}

#[derive(Default)]
struct HashedUrls(HashSet<String>);

impl Visited for HashedUrls {
    fn insert(&mut self, url: &str) -> Result<bool, String> {
        // Without the look-up, a string would be allocated for each known URL.
        Ok(!self.0.contains(url) && self.0.insert(url.to_owned()))
    }

    fn bytes(&self) -> u64 {
        // A table of hashbrown: 7/8 full at most, one control byte for each slot. The allocator's part is not known.
        let slots = (self.0.capacity() as u64 * 8 / 7).next_power_of_two();
        let text: usize = self.0.iter().map(String::capacity).sum();
        slots * (size_of::<String>() as u64 + 1) + text as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sets_return_true_once_for_each_url() {
        let folder = tempfile::tempdir().unwrap();
        for &kind in Kind::value_variants() {
            let (mut set, new) = open(kind, folder.path(), 100, 1e-9).unwrap();
            assert!(new);
            for n in 0..1000 {
                let url = format!("http://a.example/{n}");
                assert!(set.insert(&url).unwrap() && !set.insert(&url).unwrap(), "{kind:?} {url}");
            }
            set.commit().unwrap();
            assert!(set.bytes() > 1000, "{kind:?}");
        }
    }

    #[test]
    fn saved_sets_are_found_again() {
        let folder = tempfile::tempdir().unwrap();
        for &kind in Kind::value_variants().iter().filter(|&&kind| kind != Kind::Hashset) {
            let (mut set, _) = open(kind, folder.path(), 100, 1e-9).unwrap();
            set.insert("http://a.example/").unwrap();
            set.commit().unwrap();
            set.save().unwrap();
            drop(set);
            let (mut set, new) = open(kind, folder.path(), 100, 1e-9).unwrap();
            assert!(!new && !set.insert("http://a.example/").unwrap(), "{kind:?}");
        }
    }

    #[test]
    fn damaged_filter_is_an_error_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("visited.petal"), "damaged").unwrap();
        let error = open(Kind::Petal, folder.path(), 100, 0.01).err().unwrap();
        assert!(
            error.contains("visited.petal: not a petal file") && error.contains("delete"),
            "{error}"
        );
    }
}
