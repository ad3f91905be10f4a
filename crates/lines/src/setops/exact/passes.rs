//! The passes of exact jobs: filling a filter with lines, and writing records of the lines that
//! filters cannot rule out.
//!
//! Jobs on one machine run them one after the other, with streams in memory and one spill file
//! between them. [`distributed`](crate::distributed) jobs run them in tasks with files between them.
//! The processing of a line is the same.
//!
//! Invariant: the result for a line depends only on the line and the keys of the job, never on its
//! neighbours or on where the inputs are divided.
//!
//! Cost: one pass each, one hash per line, and one fingerprint per line that becomes a record.

use std::ops::ControlFlow;

use petal::{BatchResults, BloomFilter, Membership};

use super::records::{Partitioning, Side, encode_first_record};
use crate::error::Result;
use crate::fingerprint::{Fingerprint, LineHasher};
use crate::input::Input;
use crate::scan::{Batch, Pass, PassStats, Scratch};
use crate::setops::set_semantics::SetMatcher;
use crate::temp::{RecordStream, SpillWriter};

/// Memory for hashes before they are spilled.
pub(crate) const HASH_LOG_MEMORY: u64 = 256 << 10;

/// The destination of hashes for the next filter.
pub(crate) enum HashSink<'a> {
    /// The filter itself.
    Filter(BloomFilter),
    /// A spilled log, until there is memory for the filter.
    Log(SpillWriter<'a>),
}

impl HashSink<'_> {
    fn take(&mut self, keys: &[u64], answers: &mut BatchResults) -> Result<()> {
        match self {
            Self::Filter(filter) => {
                filter.insert_mixed_hashes(keys, answers);
                Ok(())
            }
            Self::Log(log) => keys.iter().try_for_each(|key| log.push(0, &key.to_le_bytes())),
        }
    }

    /// Returns the logged hashes.
    pub(crate) fn into_log(self) -> RecordStream {
        match self {
            Self::Filter(_) => RecordStream::default(),
            Self::Log(log) => log.finish().swap_remove(0),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Filter(filter) => filter.size_bytes(),
            Self::Log(_) => 0,
        }
    }
}

/// The destination of the selected lines: the table that decides about the first input, until it is
/// full, or records.
pub(crate) struct RecordSink<'a> {
    partitioning: &'a Partitioning,
    spill: SpillWriter<'a>,
    matcher: Option<SetMatcher>,
    lines: u64,
}

impl<'a> RecordSink<'a> {
    pub(crate) fn new(partitioning: &'a Partitioning, spill: SpillWriter<'a>) -> Self {
        Self { partitioning, spill, matcher: None, lines: 0 }
    }

    /// Sets the table for lines of other inputs. Its entries become records when it is full, so they
    /// must fit in the memory of the records.
    pub(super) fn with_table(self, matcher: Option<SetMatcher>) -> Self {
        Self { matcher, ..self }
    }

    /// Adds the lines of a batch that are selected and fingerprinted, those of the first input with
    /// their positions, counted from `start`.
    fn add(&mut self, batch: &Batch<'_>, scratch: &Scratch, start: Option<u64>) -> Result<()> {
        self.lines += scratch.fingerprints.len() as u64;
        let Some(start) = start else { return self.add_others(&scratch.fingerprints) };
        for (&line, &fingerprint) in scratch.selected.iter().zip(&scratch.fingerprints) {
            self.add_first(fingerprint, start + batch.offset(line))?;
        }
        Ok(())
    }

    /// Writes the record of a position of the first input.
    #[inline]
    pub(crate) fn add_first(&mut self, fingerprint: Fingerprint, position: u64) -> Result<()> {
        let record = encode_first_record(fingerprint, position);
        self.spill.push(self.partitioning.of(fingerprint), &record)
    }

    fn add_others(&mut self, fingerprints: &[Fingerprint]) -> Result<()> {
        let mut added = 0;
        if let Some(mut matcher) = self.matcher.take() {
            added = matcher.build_others(fingerprints)?;
            if added == fingerprints.len() {
                self.matcher = Some(matcher);
                return Ok(());
            }
            self.add_table(matcher)?;
        }
        fingerprints[added..].iter().try_for_each(|fingerprint| self.add_other(*fingerprint))
    }

    #[inline]
    fn add_other(&mut self, fingerprint: Fingerprint) -> Result<()> {
        self.spill.push(self.partitioning.of(fingerprint), &fingerprint.to_bytes())
    }

    /// Writes records of the entries of a table.
    pub(super) fn add_table(&mut self, matcher: SetMatcher) -> Result<()> {
        matcher.into_table().iter().try_for_each(|(fingerprint, _)| self.add_other(fingerprint))
    }

    /// Returns the number of lines.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the table, or the records.
    pub(super) fn finish(self) -> (Option<SetMatcher>, Vec<RecordStream>) {
        (self.matcher, self.spill.finish())
    }

    /// Returns the records of a sink without a table.
    pub(crate) fn into_records(self) -> Vec<RecordStream> {
        self.spill.finish()
    }
}

/// The passes of one job.
#[derive(Clone, Copy)]
pub(crate) struct JobPasses<'a> {
    pub(crate) pass: Pass<'a>,
    pub(crate) hasher: &'a LineHasher,
}

/// Selects the lines that become records.
pub(crate) enum LineSelector<'a> {
    /// All lines.
    All,
    /// Lines that any of these filters may contain.
    Filters(&'a [&'a dyn Membership]),
    /// Lines whose hash this function accepts; called for each line in order.
    PerHash(&'a mut (dyn FnMut(u64) -> Result<bool> + Send)),
}

/// Looks up hashes in several filters: a result is true if any filter may contain the hash.
pub(crate) fn contains_any(filters: &[&dyn Membership], hashes: &[u64], found: &mut BatchResults) {
    let Some((first, rest)) = filters.split_first() else {
        return found.fill_with(hashes.len(), |_| false);
    };
    first.contains_mixed_hashes(hashes, found);
    for filter in rest {
        let mut more = BatchResults::new();
        filter.contains_mixed_hashes(hashes, &mut more);
        let before = std::mem::take(found);
        found.fill_with(hashes.len(), |at| before.get(at) || more.get(at));
    }
}

/// Keeps the hashes of the selected lines.
fn keep_selected(scratch: &mut Scratch) {
    // Selected indices ascend, so each hash moves to the front or stays.
    for (at, &line) in scratch.selected.iter().enumerate() {
        scratch.hashes[at] = scratch.hashes[line];
    }
    scratch.hashes.truncate(scratch.selected.len());
}

impl JobPasses<'_> {
    /// Inserts every line into a filter. The hashes of lines that the filter already reports as
    /// present go to `known`, and their records to `records`.
    pub(crate) fn fill(
        &self,
        inputs: &[&Input],
        filter: &mut BloomFilter,
        mut known: Option<&mut HashSink<'_>>,
        mut records: Option<&mut RecordSink<'_>>,
    ) -> Result<PassStats> {
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.hash_lines(batch, self.hasher.spec());
        };
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_mixed_hashes(&scratch.hashes, &mut scratch.results);
            let Some(known) = &mut known else { return Ok(ControlFlow::Continue(())) };
            scratch.selected.clear();
            let present = (0..batch.len()).filter(|&line| !scratch.results.get(line));
            scratch.selected.extend(present);
            keep_selected(scratch);
            if let Some(records) = &mut records {
                self.fingerprint_selected(batch, scratch);
                records.add(batch, scratch, None)?;
            }
            known.take(&scratch.hashes, &mut scratch.results)?;
            Ok(ControlFlow::Continue(()))
        };
        self.pass.run("filtering", inputs, map, fold)
    }

    /// Selects the lines that any of the filters may contain; without filters all lines.
    #[inline]
    pub(super) fn select(
        &self,
        filters: Option<&[&dyn Membership]>,
        batch: &Batch<'_>,
        scratch: &mut Scratch,
    ) {
        scratch.selected.clear();
        let Some(filters) = filters else { return scratch.selected.extend(0..batch.len()) };
        scratch.hash_lines(batch, self.hasher.spec());
        contains_any(filters, &scratch.hashes, &mut scratch.results);
        scratch.selected.extend(scratch.results.iter());
    }

    /// Fingerprints the selected lines.
    #[inline]
    pub(super) fn fingerprint_selected(&self, batch: &Batch<'_>, scratch: &mut Scratch) {
        scratch.fingerprints.clear();
        let selected = scratch.selected.iter().map(|&line| batch.key(line));
        self.hasher.fingerprints(selected, &mut scratch.fingerprints);
    }

    /// Adds the selected lines to `records`; those of the first input with their positions, counted
    /// from the `start` of their input. The hashes of these lines go to `keys`.
    #[expect(clippy::too_many_arguments, reason = "each has a different type")]
    pub(crate) fn write_records(
        &self,
        what: &'static str,
        inputs: &[&Input],
        side: Side,
        selector: LineSelector<'_>,
        mut start: impl FnMut(usize) -> Result<u64> + Send,
        records: &mut RecordSink<'_>,
        mut keys: Option<&mut HashSink<'_>>,
    ) -> Result<PassStats> {
        let wants_keys = keys.is_some();
        let (filters, mut is_selected) = match selector {
            LineSelector::All => (None, None),
            LineSelector::Filters(filters) => (Some(filters), None),
            LineSelector::PerHash(is_selected) => (None, Some(is_selected)),
        };
        let waits = is_selected.is_some();
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.selected.clear();
            if waits || filters.is_none() && wants_keys {
                scratch.hash_lines(batch, self.hasher.spec());
            }
            if waits {
                return;
            }
            self.select(filters, batch, scratch);
            if wants_keys {
                keep_selected(scratch);
            }
            self.fingerprint_selected(batch, scratch);
        };
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            if let Some(is_selected) = &mut is_selected {
                for (line, &key) in scratch.hashes.iter().enumerate() {
                    if is_selected(key)? {
                        scratch.selected.push(line);
                    }
                }
                keep_selected(scratch);
                self.fingerprint_selected(batch, scratch);
            }
            let start = (side == Side::First).then(|| start(batch.input)).transpose()?;
            records.add(batch, scratch, start)?;
            if let Some(keys) = &mut keys {
                keys.take(&scratch.hashes, &mut scratch.results)?;
            }
            Ok(ControlFlow::Continue(()))
        };
        self.pass.run(what, inputs, map, fold)
    }
}
