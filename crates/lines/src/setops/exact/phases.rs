//! The phases of an exact job that writes records: common parts.

use std::time::Instant;

use petal::{BatchResults, BloomFilter, ByteSize, Membership};

use super::ExactJob;
use super::at_once::Decider;
use super::join::{Ahead, JoinResult, Partition, PartitionJoin, for_each_record};
use super::journal::Journal;
use super::passes::{HASH_LOG_MEMORY, HashSink, LineSelector, RecordSink};
use super::records::{OTHER_RECORD, Partitioning, Side};
use super::state::State;
use crate::error::Result;
use crate::fingerprint::Table;
use crate::input::Input;
use crate::memory::least_records;
use crate::setops::planning::{Plan, estimated_insertions, filter_bytes};
use crate::setops::positions::{Polarity, Spans};
use crate::setops::set_semantics::{BuildSide, SetMatcher, SetOp};
use crate::temp::{RecordStream, SpillFile, SpillWriter, memory_usage, write_out};

/// Runs the phases of a job.
pub(super) struct Phases<'a> {
    pub(super) job: &'a ExactJob<'a>,
    pub(super) journal: Option<&'a Journal>,
    pub(super) plan: Plan,
    pub(super) first: &'a [&'a Input],
    pub(super) spill_file: &'a SpillFile,
    pub(super) state: State,
    /// Number of the current phase.
    pub(super) step: usize,
}

impl<'a> Phases<'a> {
    pub(super) fn work(&self) -> u64 {
        self.job.budget.work
    }

    /// Runs a phase unless an earlier run of this job has finished it. Its result is in `state` only.
    pub(super) fn phase(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.step += 1;
        if self.step <= self.state.done {
            return Ok(());
        }
        work(self)?;
        self.state.done = self.step;
        if self.state.filter.is_some() && self.state.filled == 0 {
            self.state.filled = self.step;
        }
        let Some(journal) = self.journal else { return Ok(()) };
        journal.save(&self.job.hasher, self.plan, self.first, &mut self.state, self.spill_file)
    }

    /// Writes records of the others: separately if it matters which of them has a line, otherwise
    /// together. Of all lines, or with `confirm` of those that the filter
    /// may contain.
    pub(super) fn write_records_of_others(
        &mut self,
        others: &[Input],
        confirm: bool,
    ) -> Result<()> {
        let others: Vec<_> = others.iter().collect();
        let together = if self.job.op.separates_others() { 1 } else { others.len().max(1) };
        for inputs in others.chunks(together) {
            self.phase(|work| {
                let streams = if confirm {
                    work.confirm(inputs, Side::Other)?
                } else {
                    work.write_records("reading", inputs, Side::Other, None, None, false)?
                };
                work.put(Side::Other, streams);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Writes records of all lines. `prior`: fingerprints of lines of the first input that have been
    /// printed.
    pub(super) fn write_all_records(
        &mut self,
        others: &[Input],
        prior: Option<Table>,
    ) -> Result<()> {
        if let Some(table) = prior {
            let streams = write_table(&table, &self.state.partitioning, self.spill_file)?;
            self.state.others.push(streams);
        }
        self.write_records_of_others(others, false)?;
        self.phase(|work| {
            work.state.first =
                work.write_records("reading", work.first, Side::First, None, None, false)?;
            Ok(())
        })
    }

    pub(super) fn put(&mut self, side: Side, streams: Vec<RecordStream>) {
        match side {
            Side::First => self.state.first = streams,
            Side::Other => self.state.others.push(streams),
        }
    }

    /// Joins the records and writes the listed positions to `spans`; `None`: only counts them.
    pub(super) fn decide(&mut self, spans: Option<Spans>) -> Result<()> {
        self.phase(|work| {
            let begun = Instant::now();
            (work.state.filter, work.state.matcher) = (None, None);
            let inputs = work.state.others.len();
            // Tables and positions need memory too.
            work.keep_in_memory(work.work() / 2)?;
            let (parts, records) = work.take_parts();
            let bytes = parts.iter().map(Partition::bytes).sum();
            work.job.progress.phase("deciding", Some(bytes));
            let sides = work.first.iter().take(work.job.boundary);
            let boundary = match work.job.op {
                SetOp::SymDiff => sides.map(|input| input.known_length()).sum::<Result<u64>>()?,
                _ => 0,
            };
            let join = PartitionJoin {
                boundary,
                op: work.job.op,
                polarity: work.state.polarity,
                spans,
                spill_file: work.spill_file,
                memory: work.work() - records,
                workers: work.job.budget.workers,
                progress: work.job.progress,
            };
            let result = join.join(parts, &work.state.partitioning)?;
            let JoinResult { positions, count, refused, unclaimed } = result;
            (work.state.positions, work.state.count) = (positions, count);
            work.state.spans = spans;
            work.state.set_false_found(work.plan, work.job.op, inputs, count, refused, unclaimed);
            let report = &mut work.state.report;
            report.add_phase("deciding", begun.elapsed().as_secs_f64());
            report.set_survivors(match work.state.polarity {
                Polarity::Kept => work.state.count,
                Polarity::Dropped => report.first_lines - work.state.count,
            });
            Ok(())
        })
    }

    pub(super) fn fill(&mut self, inputs: &[&Input], filter: &mut BloomFilter) -> Result<()> {
        self.state.report.add_pass(self.job.passes().fill(inputs, filter, None, None)?);
        Ok(())
    }

    /// Inserts lines of the first input into a filter. Those that it may contain already are candidates,
    /// with records if `writes`. `keeps`: the next phase needs the filter.
    pub(super) fn fill_first(
        &mut self,
        inputs: &[&Input],
        mut filter: BloomFilter,
        writes: bool,
        keeps: bool,
    ) -> Result<()> {
        let allowance = if writes { self.reserve_memory(filter.size_bytes())? } else { 0 };
        let mut known = HashSink::Log(self.key_log());
        let mut sink = writes.then(|| self.record_sink(allowance, true)).transpose()?;
        let stats = self.job.passes().fill(inputs, &mut filter, Some(&mut known), sink.as_mut())?;
        let records = sink.as_ref().map_or(0, RecordSink::lines);
        let collected = sink.map(RecordSink::finish);
        if let Some((matcher, streams)) = collected {
            self.keep_table(matcher, records);
            self.state.others.push(streams);
        }
        let keys = known.into_log();
        let report = &mut self.state.report;
        report.add_pass(stats);
        report.first_lines += stats.lines;
        report.candidates += keys.bytes() / 8;
        report.records += records;
        report.set_survivors(keys.bytes() / 8);
        let new = filter.inserted();
        report.false_promised = Some(estimated_insertions(&filter, 0.0, new) - new as f64);
        self.state.keys.push(keys);
        self.state.filter = keeps.then_some(filter);
        Ok(())
    }

    /// Returns an empty log for the hashes of candidates.
    pub(super) fn key_log(&self) -> SpillWriter<'a> {
        SpillWriter::new(self.spill_file, 1, HASH_LOG_MEMORY)
    }

    /// Takes the filter that an earlier phase has filled.
    pub(super) fn take_filter(&mut self) -> Option<BloomFilter> {
        self.state.filled = 0;
        self.state.filter.take()
    }

    /// Takes the filter of the candidates, built now from the log if necessary. The caller puts it
    /// back.
    pub(super) fn candidate_filter(&mut self) -> Result<BloomFilter> {
        if let Some(filter) = self.state.filter.take() {
            return Ok(filter);
        }
        let count = self.state.keys.iter().map(RecordStream::bytes).sum::<u64>() / 8;
        let memory = self.work() - least_records(self.work());
        let memory = memory.saturating_sub(self.records_memory()).max(self.work() / 4);
        let mut filter =
            BloomFilter::with_memory(count.max(1), ByteSize::bytes(filter_bytes(count, memory)))?;
        let (mut hashes, mut new) = (Vec::new(), BatchResults::new());
        for keys in &self.state.keys {
            keys.for_each_block(self.spill_file, |block| {
                hashes.clear();
                hashes.extend(block.as_chunks().0.iter().map(|key| u64::from_le_bytes(*key)));
                filter.insert_mixed_hashes(&hashes, &mut new);
                Ok(())
            })?;
        }
        Ok(filter)
    }

    /// Writes records of the lines that the filter of another side may contain. Their hashes go to
    /// `keys`. `last`: the lines of others that the first input is compared with are complete.
    pub(super) fn match_lines(
        &mut self,
        inputs: &[&Input],
        side: Side,
        filter: Option<&BloomFilter>,
        keys: HashSink<'a>,
        last: bool,
    ) -> Result<Vec<RecordStream>> {
        let before = self.state.report.records;
        let hits = self.write_records("matching", inputs, side, filter, Some(keys), last)?;
        let report = &mut self.state.report;
        let candidates = report.records - before;
        let queried = report.phases.last().map_or(0, |phase| phase.lines);
        let misses = (queried - candidates) as f64;
        // A share of 1 - rate of the absent lines misses the filter.
        let rate = filter.map_or(0.0, |filter| {
            filter.expected_fpr(estimated_insertions(filter, 0.0, filter.inserted()) as u64)
        });
        let promised = misses * rate / (1.0 - rate).max(f64::MIN_POSITIVE);
        report.candidates += candidates;
        report.false_promised = Some(report.false_promised.unwrap_or(0.0) + promised);
        Ok(hits)
    }

    /// Writes records of the lines that the filter of the candidates may contain.
    pub(super) fn confirm(&mut self, inputs: &[&Input], side: Side) -> Result<Vec<RecordStream>> {
        let filter = self.candidate_filter()?;
        let streams = self.write_records("confirming", inputs, side, Some(&filter), None, false)?;
        self.state.filter = Some(filter);
        Ok(streams)
    }

    /// Returns what decides about the first input while it is read, if it fits in memory: a table of
    /// the records of the others and the filter of the candidates.
    pub(super) fn decider(&mut self) -> Result<Option<Decider>> {
        let (work, op) = (self.work(), self.job.op);
        let filter = self.candidate_filter()?;
        let memory = work.saturating_sub(filter.size_bytes());
        let distinct = estimated_insertions(&filter, 0.0, filter.inserted());
        let lines = self.state.report.first_lines as f64;
        let entries = decided_entries(op, distinct, lines, filter.expected_fpr(distinct as u64));
        let fits = |memory| entries <= Table::capacity(memory) / 10 * 9;
        if let Some(mut matcher) = self.state.matcher.take() {
            matcher.set_allowance(memory);
            if entries <= matcher.capacity() / 10 * 9 {
                return Ok(Some(Decider { matcher, candidates: Some(filter) }));
            }
            self.write_table(matcher, filter.size_bytes())?;
        }
        if !fits(memory) {
            self.state.filter = Some(filter);
            return Ok(None);
        }
        if !fits(memory.saturating_sub(self.records_memory())) {
            self.keep_in_memory(0)?;
        }
        let memory = memory.saturating_sub(self.records_memory());
        let mut matcher =
            SetMatcher::new(op, BuildSide::Others(0), Table::in_partition_order(memory, entries)?);
        let inputs = self.state.others.len();
        let build_inputs = matcher.build_inputs(inputs);
        for j in build_inputs.iter().copied().chain(matcher.probe_inputs(inputs)) {
            let builds = build_inputs.contains(&j);
            let each = |matcher: &mut SetMatcher, fingerprint, _: &[u8]| {
                if builds {
                    return matcher.build_other(fingerprint);
                }
                matcher.probe(fingerprint);
                Ok(Ok(()))
            };
            for stream in &self.state.others[j] {
                let mut ahead = Ahead { bytes: stream.bytes(), progress: self.job.progress };
                let file = self.spill_file;
                let built = for_each_record::<OTHER_RECORD, _>(
                    stream,
                    file,
                    &mut matcher,
                    &mut ahead,
                    each,
                )?;
                if built.is_err() {
                    self.state.filter = Some(filter);
                    return Ok(None);
                }
            }
            if !builds {
                matcher.end_round();
            }
        }
        self.state.others.clear();
        Ok(Some(Decider { matcher, candidates: Some(filter) }))
    }

    /// Prepares to decide about the first input while it is read. Writes records of its candidates if
    /// that does not fit in memory; then the result is `None`.
    pub(super) fn decide_or_confirm_first(&mut self) -> Result<Option<Decider>> {
        // An earlier run of this job has confirmed.
        if self.step >= self.state.done
            && let Some(decider) = self.decider()?
        {
            return Ok(Some(decider));
        }
        self.confirm_first()?;
        Ok(None)
    }

    /// Writes records of the candidates of the first input.
    pub(super) fn confirm_first(&mut self) -> Result<()> {
        self.phase(|work| {
            if work.job.op == SetOp::SymDiff {
                // Both sides are in the first input.
                work.state.others.clear();
            }
            work.state.first = work.confirm(work.first, Side::First)?;
            Ok(())
        })
    }

    /// Returns the memory of all records.
    pub(super) fn records_memory(&self) -> u64 {
        let others = self.state.others.iter().map(|other| memory_usage(other));
        let table = self.state.matcher.as_ref().map_or(0, SetMatcher::memory_usage);
        memory_usage(&self.state.first) + others.sum::<u64>() + table
    }

    /// Returns an empty sink with `allowance` bytes of memory. With `last`, it has a table if twice the
    /// planned entries fit in half of the memory. When the table is full, its entries become records in
    /// the other half.
    fn record_sink(&self, allowance: u64, last: bool) -> Result<RecordSink<'_>> {
        let partitioning = &self.state.partitioning;
        let spill = SpillWriter::new(self.spill_file, partitioning.partitions(), allowance);
        let sink = RecordSink::new(partitioning, spill);
        // A journal saves records. Others that are compared one after the other have records.
        let builds = last && self.journal.is_none() && self.state.others.is_empty();
        let (entries, memory) = (self.plan.entries, allowance / 2);
        if !builds || entries.saturating_mul(2) > Table::capacity(memory) {
            return Ok(sink);
        }
        let table = Table::in_partition_order(memory, entries)?;
        Ok(sink.with_table(Some(SetMatcher::new(self.job.op, BuildSide::Others(0), table))))
    }

    /// Keeps the table of `lines` lines of the others, if there is one.
    fn keep_table(&mut self, matcher: Option<SetMatcher>, lines: u64) {
        if matcher.is_some() {
            // Reading their records would be progress.
            self.job.progress.advance(lines * OTHER_RECORD as u64);
        }
        self.state.matcher = matcher;
    }

    /// Writes records of the entries of the others' table, which is too small for the first input.
    fn write_table(&mut self, matcher: SetMatcher, filter: u64) -> Result<()> {
        let allowance = self.reserve_memory(filter)?;
        let mut sink = self.record_sink(allowance, false)?;
        sink.add_table(matcher)?;
        self.state.others = vec![sink.into_records()];
        Ok(())
    }

    /// Writes records of the lines that the filter may contain, or of all lines; with `last` a table may
    /// take their place. Their hashes go to `keys`.
    pub(super) fn write_records(
        &mut self,
        what: &'static str,
        inputs: &[&Input],
        side: Side,
        filter: Option<&BloomFilter>,
        mut keys: Option<HashSink<'a>>,
        last: bool,
    ) -> Result<Vec<RecordStream>> {
        let filters = filter.map_or(0, BloomFilter::size_bytes);
        let allowance = self.reserve_memory(filters + keys.as_ref().map_or(0, HashSink::bytes))?;
        let mut records = self.record_sink(allowance, last)?;
        let filters = filter.map(|filter| filter as &dyn Membership);
        let selector = filters.as_ref().map_or(LineSelector::All, |filter| {
            LineSelector::Filters(std::slice::from_ref(filter))
        });
        // Position of the input if all are taken as one. The lengths of compressed inputs are known
        // only after they have been read.
        let (mut at, mut begin) = (0, 0);
        let start = |input: usize| {
            while at < input {
                begin += inputs[at].known_length()?;
                at += 1;
            }
            Ok(begin)
        };
        let passes = self.job.passes();
        let stats = passes.write_records(
            what,
            inputs,
            side,
            selector,
            start,
            &mut records,
            keys.as_mut(),
        )?;
        let lines = records.lines();
        let (matcher, streams) = records.finish();
        self.keep_table(matcher, lines);
        let report = &mut self.state.report;
        report.add_pass(stats);
        if side == Side::First {
            report.first_lines = stats.lines;
        }
        report.set_survivors(lines);
        report.records += lines;
        match keys {
            Some(HashSink::Filter(filter)) => self.state.filter = Some(filter),
            Some(log) => self.state.keys.push(log.into_log()),
            None => {}
        }
        Ok(streams)
    }

    /// Writes records to disk until those in memory take at most `max` bytes.
    pub(super) fn keep_in_memory(&mut self, max: u64) -> Result<()> {
        let mut in_memory = self.records_memory();
        let streams = self.state.others.iter_mut().flatten().chain(&mut self.state.first);
        for stream in streams.map(std::slice::from_mut) {
            if in_memory <= max {
                break;
            }
            in_memory -= memory_usage(stream);
            write_out(stream, self.spill_file)?;
        }
        Ok(())
    }

    /// Returns the memory for the next records besides a filter of `filter` bytes. Writes earlier
    /// records to disk if too little is left.
    pub(super) fn reserve_memory(&mut self, filter: u64) -> Result<u64> {
        let free = self.work().saturating_sub(filter);
        let min = least_records(self.work()).min(free);
        let taken = self.records_memory();
        if free.saturating_sub(taken) >= min.max(free / 2) {
            return Ok(free - taken);
        }
        self.keep_in_memory(0)?;
        Ok(free)
    }

    /// Takes the records by partition, and returns their memory.
    pub(super) fn take_parts(&mut self) -> (Vec<Partition>, u64) {
        let count = self.state.partitioning.partitions();
        let taken = self.records_memory();
        let first = std::mem::take(&mut self.state.first);
        let others = std::mem::take(&mut self.state.others);
        let mut parts: Vec<_> = first
            .into_iter()
            .chain(std::iter::repeat_with(RecordStream::default))
            .take(count)
            .map(|first| Partition { first, others: Vec::new() })
            .collect();
        for streams in others {
            let streams = streams.into_iter().chain(std::iter::repeat_with(RecordStream::default));
            parts.iter_mut().zip(streams).for_each(|(part, other)| part.others.push(other));
        }
        (parts, taken)
    }
}

/// Writes records of the fingerprints in a table, which uses all memory, through a small buffer.
pub(crate) fn write_table(
    table: &Table,
    partitioning: &Partitioning,
    spill_file: &SpillFile,
) -> Result<Vec<RecordStream>> {
    let mut spill = SpillWriter::new(spill_file, partitioning.partitions(), 0);
    for (fingerprint, _) in table.iter() {
        spill.push(partitioning.of(fingerprint), &fingerprint.to_bytes())?;
    }
    let mut streams = spill.finish();
    write_out(&mut streams, spill_file)?;
    Ok(streams)
}

/// Returns the number of entries of the table that decides about the first input of `lines` lines:
/// `distinct` lines have a hash of a candidate, and the filter of the candidates has a rate.
pub(super) fn decided_entries(op: SetOp, distinct: f64, lines: f64, rate: f64) -> u64 {
    // The table of `common` does not grow.
    let wrong = if op == SetOp::Common { 0.0 } else { lines * rate };
    (distinct + wrong).ceil() as u64
}
