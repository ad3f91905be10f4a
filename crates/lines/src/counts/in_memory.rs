//! Counting in memory.
//!
//! The first pass inserts every line into a Bloom filter. A line that is new to the filter occurs for
//! the first time. A table counts all others: repeated lines, and false positives. The pass notes at
//! which lines a line was new to the filter, or to the table.
//!
//! The second pass prints each line where it occurs first, which is at one of the noted lines:
//!
//! * New to the filter: it occurs once more than was counted, which is once if it is not in the table.
//! * New to the table: nothing is printed if it was printed before. Otherwise it was a false positive,
//!   and all its appearances were counted.
//!
//! Another filter contains what the table has, so that lines that occur once are not looked up. The
//! pass ends after the last line to print.
//!
//! Cost: a line that occurs once takes the bits of a filter and a byte; no table has it.

use std::ops::ControlFlow;

use petal::{BatchResults, BloomFilter, ByteSize, Membership};

use super::Counter;
use super::events::{Event, Events};
use super::output::CountOutput;
use crate::error::Result;
use crate::fingerprint::{Fingerprint, FingerprintMap};
use crate::input::Input;
use crate::scan::{Batch, Scratch};
use crate::setops::{Sample, filter_bytes, filter_fpr};

/// Fingerprints that are inserted into a filter at a time.
const BATCH: usize = 1024;

/// A filter of all lines, and the counts of those that it contained already.
pub(super) struct RepeatCounter {
    filter: BloomFilter,
    counts: FingerprintMap<u64>,
    /// Maximum bytes of events.
    max_events: u64,
}

impl RepeatCounter {
    /// Counts within `memory` bytes. `None` if the repeated lines would not fit.
    pub(super) fn new(sample: &Sample, memory: u64) -> Result<Option<Self>> {
        let Sample { lines, distinct, sampled, sampled_distinct, .. } = *sample;
        // If lines are not equally frequent, `distinct` is too low or too high. At most, each line that
        // was sampled once is the only one of its value.
        let once = sample.keys.chunk_by(u64::eq).filter(|equal| equal.len() == 1).count() as u64;
        let scale = lines as f64 / sampled.max(1) as f64;
        let most = (once as f64 * scale) as u64 + sampled_distinct.saturating_sub(once);
        let keys = if sample.keys.is_empty() { distinct } else { most }.max(1);
        // A repeated line occurs at least twice.
        let distinct = distinct.min(keys);
        let repeated = distinct.min(lines.saturating_sub(distinct));
        // A larger share for the filter leaves fewer false positives.
        for quarters in 1..4 {
            let bytes = filter_bytes(keys, memory / 4 * quarters);
            let entries = repeated + (keys as f64 * filter_fpr(keys, bytes)) as u64;
            let rest = memory.saturating_sub(bytes);
            // The buffer of the events may be twice as long.
            let (table, max_events) = (rest / 4 * 3, rest / 8);
            if entries <= FingerprintMap::<u64>::capacity(table) / 10 * 9
                && keys + entries <= max_events
            {
                let filter = BloomFilter::with_memory(keys, ByteSize::bytes(bytes))?;
                let counts = FingerprintMap::new(table, entries)?;
                return Ok(Some(Self { filter, counts, max_events }));
            }
        }
        Ok(None)
    }
}

impl Counter<'_> {
    /// Counts and prints. `None`, with nothing printed, if the repeated lines do not fit.
    pub(super) fn in_memory(
        &mut self,
        inputs: &[&Input],
        counter: RepeatCounter,
        out: &mut CountOutput<'_>,
    ) -> Result<Option<u64>> {
        let RepeatCounter { mut filter, mut counts, max_events } = counter;
        let pass = self.context.pass();
        let fingerprint =
            |batch: &Batch<'_>, scratch: &mut Scratch| scratch.fingerprint(batch, &self.hasher);
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            fingerprint(batch, scratch);
            scratch.hashes.clear();
            scratch.hashes.extend(scratch.fingerprints.iter().map(|fingerprint| fingerprint.high));
        };
        let (mut lines, mut events, mut fits) = (0, Events::default(), true);
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            let Scratch { hashes, fingerprints, results: new, .. } = scratch;
            filter.insert_mixed_hashes(hashes, new);
            keep(fingerprints, (0..batch.len()).filter(|&line| !new.get(line)));
            let mut known = 0;
            for line in 0..batch.len() {
                let number = lines + line as u64;
                if new.get(line) {
                    events.push(number, Event::New)?;
                    continue;
                }
                counts.prefetch_ahead(fingerprints, known);
                let Ok((is_new, count)) = counts.entry(fingerprints[known], 0)? else {
                    fits = false;
                    return Ok(ControlFlow::Break(line));
                };
                known += 1;
                *count += 1;
                if is_new {
                    events.push(number, Event::Known)?;
                }
            }
            lines += batch.len() as u64;
            fits = events.size() <= max_events;
            Ok(if fits { ControlFlow::Continue(()) } else { ControlFlow::Break(batch.len()) })
        };
        pass.run("counting", inputs, map, fold)?;
        if !fits {
            return Ok(None);
        }
        let max_filter = filter.size_bytes();
        drop(filter);
        let repeated = filter_of(&counts, max_filter)?;
        // What was counted is one too low unless the line was a false positive.
        self.top.extend(counts.iter().map(|(_, count)| count));
        out.min_count = out.min_count.max(self.top.least());
        let min_count = out.min_count;
        let may_print = |count: u64| count + 1 >= min_count;
        // Entries of lines that may be printed.
        let mut left = counts.iter().filter(|(_, count)| may_print(*count)).count();
        if left == 0 && min_count > 1 {
            return Ok(Some(lines));
        }
        let (mut events, mut begin) = (events.iter().peekable(), 0);
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            let Scratch { fingerprints, hashes, selected, results, .. } = scratch;
            let end = begin + batch.len() as u64;
            // The index of a line, and whether the filter contained it.
            selected.clear();
            let next = std::iter::from_fn(|| events.next_if(|(line, _)| *line < end));
            selected.extend(next.map(|(line, event)| {
                (line - begin) as usize * 2 + usize::from(event == Event::Known)
            }));
            keep(fingerprints, selected.iter().map(|noted| noted / 2));
            hashes.clear();
            hashes.extend(fingerprints.iter().map(|fingerprint| fingerprint.high));
            repeated.contains_mixed_hashes(hashes, results);
            keep(fingerprints, results.iter());
            let mut looked_up = 0;
            for (at, noted) in selected.iter().enumerate() {
                let (line, known) = (noted / 2, noted % 2 == 1);
                let mut counted = 0;
                if results.get(at) {
                    counts.prefetch_ahead(fingerprints, looked_up);
                    // Zero after the line has been printed.
                    counted = counts.get_mut(fingerprints[looked_up]).map_or(0, std::mem::take);
                    looked_up += 1;
                }
                left -= usize::from(counted > 0 && may_print(counted));
                let count = counted + u64::from(!known);
                if count > 0 {
                    out.add(count, batch.line(line))?;
                }
            }
            begin = end;
            let is_over = events.peek().is_none() || left == 0 && min_count > 1;
            Ok(if is_over { ControlFlow::Break(batch.len()) } else { ControlFlow::Continue(()) })
        };
        pass.run("printing", inputs, fingerprint, fold)?;
        Ok(Some(lines))
    }
}

/// Returns a filter of the fingerprints in a table, of about at most `max` bytes.
fn filter_of(counts: &FingerprintMap<u64>, max: u64) -> Result<BloomFilter> {
    let keys = counts.len().max(1);
    let bytes = ByteSize::bytes(filter_bytes(keys, max));
    let (mut filter, mut hashes) = (BloomFilter::with_memory(keys, bytes)?, Vec::new());
    let (mut entries, mut new) = (counts.iter(), BatchResults::new());
    loop {
        hashes.clear();
        hashes.extend(entries.by_ref().take(BATCH).map(|(fingerprint, _)| fingerprint.high));
        if hashes.is_empty() {
            return Ok(filter);
        }
        filter.insert_mixed_hashes(&hashes, &mut new);
    }
}

/// Keeps the fingerprints of these lines, which ascend.
fn keep(fingerprints: &mut Vec<Fingerprint>, lines: impl Iterator<Item = usize>) {
    let mut kept = 0;
    for line in lines {
        fingerprints[kept] = fingerprints[line];
        kept += 1;
    }
    fingerprints.truncate(kept);
}
