//! Fills a set with generated URLs and queries it for seen and new ones.
//!
//! The URLs are those of two files of [`Corpus`]: all of the first are inserted, and the second has half of them and as
//! many new ones, in another order. Making the URLs is not part of the times. A wrong answer of an exact set, and a
//! seen URL that a filter denies, end the run.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use petal_bench::corpus::{Corpus, Order, Side};
use petal_bench::stats::median;

use super::ways::{Places, Way};
use super::{BATCH, SeenSet};
use crate::process::{anonymous_memory, peak_memory, reset_peak_memory};
use crate::rows::Row;

/// The seed of the URLs.
const SEED: u64 = 21;
/// Queries answered wrongly by a filter may exceed its rate by this factor, and by [`SLACK`] standard deviations.
const FACTOR: f64 = 1.05;
const SLACK: f64 = 6.0;

/// What was measured of one way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// ns to insert a URL.
    pub insert_ns: f64,
    /// ns to query a URL.
    pub query_ns: f64,
    /// Bytes of memory that the process has grown by.
    pub memory_bytes: u64,
    /// The largest number of bytes that it had grown by while the set was filled.
    pub peak_bytes: u64,
    /// Bytes on disk; 0 for a set in memory.
    pub disk_bytes: u64,
    /// New URLs that were reported as seen, and all new ones.
    pub false_positives: (u64, u64),
    /// Seen URLs that were reported as new, and all seen ones.
    pub false_negatives: (u64, u64),
    /// Whether the set had its URLs after a restart.
    pub survives_restart: bool,
    /// Whether deleted URLs were gone, and only they.
    pub deletes: bool,
}

impl Measured {
    /// Returns the figures as rows.
    pub fn rows(&self, way: Way, size: u64) -> Vec<Row> {
        let per_url = |bytes: u64| bytes as f64 / size as f64;
        let flag = |is_true: bool| f64::from(u8::from(is_true));
        let figures = [
            ("insert", self.insert_ns, "ns"),
            ("query", self.query_ns, "ns"),
            ("memory", per_url(self.memory_bytes), "bytes per URL"),
            ("peak memory", per_url(self.peak_bytes), "bytes per URL"),
            ("disk", per_url(self.disk_bytes), "bytes per URL"),
            ("false positives", self.false_positives.0 as f64, "URLs"),
            ("new URLs", self.false_positives.1 as f64, "URLs"),
            ("false negatives", self.false_negatives.0 as f64, "URLs"),
            ("seen URLs", self.false_negatives.1 as f64, "URLs"),
            ("survives a restart", flag(self.survives_restart), "0 or 1"),
            ("deletes", flag(self.deletes), "0 or 1"),
        ];
        figures.map(|(figure, value, unit)| Row::new(way.name, size, figure, value, unit)).into()
    }
}

/// Measures a way with a number of URLs.
///
/// # Errors
/// If the set cannot be made, a database fails, or an answer is wrong that must be right.
pub fn measure(way: Way, keys: u64, places: &Places) -> Result<Measured, String> {
    let corpus = Corpus::new(SEED, keys, keys / 2, Order::Shuffled).ok_or("too many URLs")?;
    if !way.is_database() {
        // The code, and the buffers that stay allocated.
        let small = Corpus::new(SEED, 4_096, 2_048, Order::Shuffled).ok_or("too many URLs")?;
        round(way, &small, places, None)?;
    }
    let mut measured = Measured::default();
    let (mut inserts, mut queries) = (Vec::new(), Vec::new());
    for number in 0..way.rounds(keys) {
        let times = round(way, &corpus, places, (number == 0).then_some(&mut measured))?;
        inserts.push(times.0);
        queries.push(times.1);
    }
    measured.insert_ns = median(&inserts).unwrap_or(f64::NAN);
    measured.query_ns = median(&queries).unwrap_or(f64::NAN);
    Ok(measured)
}

/// Fills and queries a new set; returns ns per insert and per query. The first round fills `measured`.
fn round(
    way: Way,
    corpus: &Corpus,
    places: &Places,
    measured: Option<&mut Measured>,
) -> Result<(f64, f64), String> {
    let (keys, timed) = (corpus.count(), way.timed(corpus.count()));
    let mut first: Vec<String> = Vec::with_capacity(BATCH);
    batches(corpus, Side::A, BATCH as u64, &mut |_, urls| {
        first.extend(urls.iter().map(|&url| url.to_owned()));
        Ok(())
    })?;
    let mut time = Duration::ZERO;
    let before = anonymous_memory();
    let peak_before = reset_peak_memory();
    let mut set = way.make(keys, places)?;
    batches(corpus, Side::A, keys, &mut |position, urls| {
        let prefilled = (keys - timed).saturating_sub(position).min(urls.len() as u64);
        let (untimed, timed) = urls.split_at(prefilled as usize);
        if !untimed.is_empty() {
            set.prefill(untimed)?;
        }
        if !timed.is_empty() {
            let start = Instant::now();
            set.insert(timed)?;
            time += start.elapsed();
        }
        Ok(())
    })?;
    let start = Instant::now();
    set.finish()?;
    time += start.elapsed();
    let insert_ns = time.as_nanos() as f64 / timed as f64;
    let memory_bytes = anonymous_memory().saturating_sub(before);
    let peak_bytes = peak_memory().saturating_sub(peak_before).max(memory_bytes);

    let (mut time, mut found) = (Duration::ZERO, Vec::with_capacity(BATCH));
    // False positives and new URLs; false negatives and seen URLs.
    let (mut positives, mut negatives) = ((0, 0), (0, 0));
    batches(corpus, Side::B, timed, &mut |position, urls| {
        found.clear();
        let start = Instant::now();
        set.contains(urls, &mut found)?;
        time += start.elapsed();
        for (position, &found) in (position..).zip(&found) {
            let is_seen = corpus.index_at(Side::B, position) < corpus.common();
            let (wrong, all) = if is_seen { &mut negatives } else { &mut positives };
            *wrong += u64::from(found != is_seen);
            *all += 1;
        }
        Ok(())
    })?;
    let query_ns = time.as_nanos() as f64 / timed as f64;
    check(way, positives, negatives)?;

    if let Some(measured) = measured {
        *measured = Measured {
            memory_bytes,
            peak_bytes,
            disk_bytes: set.disk_bytes()?,
            false_positives: positives,
            false_negatives: negatives,
            ..Measured::default()
        };
        let first: Vec<&str> = first.iter().map(String::as_str).collect();
        measured.survives_restart =
            restart(set.as_mut(), &first).map_err(|e| format!("{}: {e}", way.name))?;
        measured.deletes =
            remove(set.as_mut(), &first).map_err(|e| format!("{}: {e}", way.name))?;
    }
    Ok((insert_ns, query_ns))
}

/// Checks the numbers of wrong answers.
fn check(way: Way, positives: (u64, u64), negatives: (u64, u64)) -> Result<(), String> {
    if negatives.0 > 0 {
        return Err(format!(
            "{}: {} seen URLs of {} are denied",
            way.name, negatives.0, negatives.1
        ));
    }
    let Some(rate) = way.target() else { return Ok(()) };
    let expected = positives.1 as f64 * rate;
    let most = expected * FACTOR + SLACK * expected.sqrt();
    if positives.0 as f64 > most {
        let (wrong, all) = positives;
        return Err(format!("{}: {wrong} new URLs of {all} are reported as seen", way.name));
    }
    Ok(())
}

/// Restarts a set. True if it still has these URLs, false if it has no restart.
fn restart(set: &mut dyn SeenSet, urls: &[&str]) -> Result<bool, String> {
    if !set.restart()? {
        return Ok(false);
    }
    let mut found = Vec::new();
    set.contains(urls, &mut found)?;
    if found.iter().all(|&found| found) {
        Ok(true)
    } else {
        Err("URLs are lost after a restart".into())
    }
}

/// Deletes every second of some URLs. True if exactly these are gone, false if the set has no deletion.
fn remove(set: &mut dyn SeenSet, urls: &[&str]) -> Result<bool, String> {
    let gone: Vec<&str> = urls.iter().step_by(2).copied().collect();
    if !set.remove(&gone)? {
        return Ok(false);
    }
    let mut found = Vec::new();
    set.contains(urls, &mut found)?;
    let is_right = |(at, &found): (usize, &bool)| found == (at % 2 == 1);
    if found.iter().enumerate().all(is_right) {
        Ok(true)
    } else {
        Err("a deletion is wrong".into())
    }
}

/// Receives the position of the first URL of a batch, and the batch.
pub type EachBatch<'a> = &'a mut dyn FnMut(u64, &[&str]) -> Result<(), String>;

/// Passes the first `count` URLs of a file to `each`, at most [`BATCH`] at a time, with the position of the first.
///
/// # Errors
/// Those of `each`.
pub fn batches(corpus: &Corpus, side: Side, count: u64, each: EachBatch<'_>) -> Result<(), String> {
    let mut batches = Batches { each, count, position: 0, failure: None };
    match corpus.write(side, &mut batches) {
        _ if batches.failure.is_some() => Err(batches.failure.unwrap_or_default()),
        // Enough of them.
        Err(_) if batches.position >= count => Ok(()),
        written => written.map_err(|e| e.to_string()),
    }
}

/// Receives blocks of whole lines, as [`Corpus::write`] writes them.
struct Batches<'a> {
    each: EachBatch<'a>,
    count: u64,
    position: u64,
    failure: Option<String>,
}

impl Write for Batches<'_> {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(block).map_err(io::Error::other)?;
        let mut lines = text.lines();
        while self.position < self.count {
            let most = (self.count - self.position).min(BATCH as u64) as usize;
            let urls: Vec<&str> = lines.by_ref().take(most).collect();
            if urls.is_empty() {
                return Ok(block.len());
            }
            if let Err(failure) = (self.each)(self.position, &urls) {
                self.failure = Some(failure.clone());
                return Err(io::Error::other(failure));
            }
            self.position += urls.len() as u64;
        }
        Err(io::Error::other("enough"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
