//! The ways that are compared, and what each of them needs.

use std::path::{Path, PathBuf};

use super::SeenSet;
use super::bits::Textbook;
use super::databases::{CACHE_MIB, Postgres, Rows, Sqlite};
use super::filters::{PetalDefault, PetalStatic};
use super::java_sample::JavaSample;
use super::sets::{Digests, Fingerprints, Strings};

/// The false-positive rate of the filters that have one.
pub const RATE: f64 = 0.01;
/// The bits per URL of the bitmap, as the articles say.
pub const BITMAP_BITS: f64 = 100.0;
/// The bits per URL and the hash functions of the textbook filter for [`RATE`]: log2(1/ε) / ln 2 and ln 2 · m/n.
pub const CLASSIC: (f64, u32) = (9.585, 7);
/// Larger tables may not fit in memory, and every insert would wait for the disk.
const MOST_ROWS: u64 = 10_000_000;
/// Rows that are inserted and looked up one by one.
const ONE_BY_ONE: u64 = 20_000;
const MIB: u64 = 1 << 20;

/// Where the databases are.
#[derive(Clone, Debug)]
pub struct Places {
    /// A folder for their files.
    pub temp: PathBuf,
    /// The folder with PostgreSQL's programs, if there is one.
    pub postgres: Option<PathBuf>,
}

/// One of the ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The name in rows and on the page.
    pub name: &'static str,
    kind: Kind,
    /// Whether answers are exact.
    pub exact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Postgres(Rows),
    Sqlite(Rows),
    Strings,
    Sha1,
    Md5,
    Fingerprints,
    Bitmap,
    Classic,
    Default { in_batches: bool },
    Static,
    JavaSample,
}

/// All ways.
pub const WAYS: [Way; 14] = [
    Way::new("PostgreSQL, 1 row a statement", Kind::Postgres(Rows::One), true),
    Way::new("PostgreSQL, 1,024 rows a statement", Kind::Postgres(Rows::Many), true),
    Way::new("SQLite, 1 row a transaction", Kind::Sqlite(Rows::One), true),
    Way::new("SQLite, 1,024 rows a transaction", Kind::Sqlite(Rows::Many), true),
    Way::new("`HashSet<String>`", Kind::Strings, true),
    Way::new("set of SHA-1 digests", Kind::Sha1, true),
    Way::new("set of MD5 digests", Kind::Md5, true),
    Way::new("hash table of 8-byte fingerprints", Kind::Fingerprints, true),
    Way::new("bitmap, one hash", Kind::Bitmap, false),
    Way::new("classic Bloom filter, k = 7", Kind::Classic, false),
    Way::new("petal's default", Kind::Default { in_batches: false }, false),
    Way::new("petal's default, in batches", Kind::Default { in_batches: true }, false),
    Way::new("petal's static filter", Kind::Static, false),
    Way::new("the Java sample", Kind::JavaSample, false),
];

impl Way {
    const fn new(name: &'static str, kind: Kind, exact: bool) -> Self {
        Self { name, kind, exact }
    }

    /// Returns the way of a name.
    pub fn named(name: &str) -> Option<Self> {
        WAYS.into_iter().find(|way| way.name == name)
    }

    /// Returns whether the URLs are rows in a database.
    pub fn is_database(&self) -> bool {
        matches!(self.kind, Kind::Postgres(_) | Kind::Sqlite(_))
    }

    /// Returns how many URLs are inserted with a measured time, and queried.
    pub fn timed(&self, keys: u64) -> u64 {
        match self.kind {
            Kind::Postgres(Rows::One) | Kind::Sqlite(Rows::One) => keys.min(ONE_BY_ONE),
            _ => keys,
        }
    }

    /// Returns the number of runs whose times are compared.
    pub fn rounds(&self, keys: u64) -> usize {
        if self.is_database() || keys > 10_000_000 { 1 } else { 3 }
    }

    /// Returns the rate of false positives that the set must not exceed by much. `None` for the Java sample.
    pub fn target(&self) -> Option<f64> {
        match self.kind {
            Kind::JavaSample => None,
            _ if self.exact => Some(0.0),
            _ => Some(RATE),
        }
    }

    /// Makes an empty set for a number of URLs.
    ///
    /// # Errors
    /// If it cannot be made, or its server does not start.
    pub fn make(&self, keys: u64, places: &Places) -> Result<Box<dyn SeenSet>, String> {
        Ok(match self.kind {
            Kind::Postgres(rows) => {
                let programs = places.postgres.as_deref().ok_or("PostgreSQL is not installed")?;
                Box::new(Postgres::new(programs, &places.temp, rows)?)
            }
            Kind::Sqlite(rows) => Box::new(Sqlite::new(&places.temp, rows)?),
            Kind::Strings => Box::new(Strings::default()),
            Kind::Sha1 => Box::new(Digests::sha1()),
            Kind::Md5 => Box::new(Digests::md5()),
            Kind::Fingerprints => Box::new(Fingerprints::new(keys)),
            Kind::Bitmap => Box::new(Textbook::with_bits_per_key(keys, BITMAP_BITS, 1)),
            Kind::Classic => Box::new(Textbook::with_bits_per_key(keys, CLASSIC.0, CLASSIC.1)),
            Kind::Default { in_batches } => Box::new(PetalDefault::new(keys, RATE, in_batches)?),
            Kind::Static => Box::new(PetalStatic::new(keys, RATE)),
            Kind::JavaSample => Box::new(JavaSample::default()),
        })
    }

    /// Returns why the way is left out for a number of URLs: the memory, the disk or the time that it needs.
    pub fn skip_reason(&self, keys: u64, places: &Places) -> Option<String> {
        if self.is_database() && keys > MOST_ROWS {
            return Some(format!("databases are measured with at most {MOST_ROWS} rows"));
        }
        if matches!(self.kind, Kind::Postgres(_)) && places.postgres.is_none() {
            return Some("PostgreSQL is not installed: see examples/database/install.sh".into());
        }
        let needed = self.memory(keys);
        let free = available_memory()?;
        (needed > free).then(|| {
            format!("it needs about {} MiB of memory; {} MiB are free", needed / MIB, free / MIB)
        })
    }

    /// Estimates the largest amount of memory that the way needs.
    fn memory(&self, keys: u64) -> u64 {
        // A standard hash table has a power of two of slots, at most 7/8 of them full; while it grows it has both.
        let slots = (keys * 8 / 7).next_power_of_two();
        let table = |entry: u64| slots * (entry + 1) * 3 / 2;
        let bits = |per_key: f64| (keys as f64 * per_key / 8.0) as u64;
        let set = match self.kind {
            Kind::Postgres(_) | Kind::Sqlite(_) => 2 * CACHE_MIB * MIB,
            Kind::Strings => table(24) + keys * 80,
            Kind::Sha1 => table(20),
            Kind::Md5 => table(16),
            Kind::Fingerprints => keys * 16,
            Kind::Bitmap => bits(BITMAP_BITS),
            Kind::Classic | Kind::Default { .. } => bits(11.0),
            Kind::Static => keys * 40,
            Kind::JavaSample => 4 * MIB,
        };
        set + 64 * MIB
    }
}

/// Returns the memory that can be used without swapping. `None` if the system does not tell.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string(Path::new("/proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}
