//! Queries of a file that is not in the page cache.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

use super::sets::{KnownSet, Opened};
use super::{Key, Kind, key};
use crate::process::page_faults;

/// Queries of a mapped file. Few, because each page that is read brings its neighbours into the cache, as many as
/// `/sys/block/*/queue/read_ahead_kb` has.
const QUERIES: u64 = 20;

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Cold {
    /// The time to open the file and query one key.
    pub first: Duration,
    /// Further queries; `None` if the file was read whole.
    pub further: Option<Further>,
}

/// The mean of further queries of a mapped file.
#[derive(Clone, Copy, Debug)]
pub struct Further {
    /// The time of a query.
    pub time: Duration,
    /// Its page faults.
    pub faults: f64,
    /// Those of them that read the disk.
    pub reads: f64,
}

/// Saves a set, takes its file out of the page cache, and queries members. `None` if the set has no file format.
///
/// # Errors
/// If the file cannot be written or opened, or a member is not found.
pub fn measure<S: KnownSet>(set: &S, file: &Path, members: u64) -> Result<Option<Cold>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    if !set.save(file)? {
        return Ok(None);
    }
    let opened = File::open(file).map_err(failed)?;
    // Pages that are not written yet stay.
    opened.sync_all().map_err(failed)?;
    fadvise(&opened, 0, None, Advice::DontNeed).map_err(|e| failed(e.into()))?;
    let member = |at: u64| key(Kind::Member, at * members / (QUERIES + 1));
    let start = Instant::now();
    let Some(contains) = S::open(file)? else { return Ok(None) };
    let first = query(&contains, &member(0)).map(|()| start.elapsed())?;
    let before = page_faults();
    let start = Instant::now();
    (1..=QUERIES).try_for_each(|at| query(&contains, &member(at)))?;
    let (time, after) = (start.elapsed(), page_faults());
    std::fs::remove_file(file).map_err(failed)?;
    let each = |all: u64| all as f64 / QUERIES as f64;
    let further = Further {
        time: time / QUERIES as u32,
        faults: each(after.0 - before.0),
        reads: each(after.1 - before.1),
    };
    Ok(Some(Cold { first, further: S::MAPS.then_some(further) }))
}

fn query(contains: &Opened, key: &Key) -> Result<(), String> {
    if contains(key) { Ok(()) } else { Err("a member is not in the file".into()) }
}
