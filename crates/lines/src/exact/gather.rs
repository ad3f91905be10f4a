//! The strategies `Narrow` and `Partition`: which lines become records.

use std::time::Instant;

use petal::{BloomFilter, Membership};

use super::{Exact, Journal, State};
use crate::budget::least_records;
use crate::error::Result;
use crate::input::Input;
use crate::judge::Verb;
use crate::marks::{Listed, Spans};
use crate::plan::{Plan, Sizes, filter_bytes, given, keys_for};
use crate::resolve::{Part, Resolver};
use crate::spill::{self, Scratchpad, Spill, Stream, write_out};
use crate::steps::{Asked, KEY_LOG, Keys, Role};
use crate::table::Table;

/// Collects the records of all inputs, phase by phase.
pub(super) struct Gather<'a> {
    pub(super) job: &'a Exact<'a>,
    pub(super) journal: Option<&'a Journal>,
    pub(super) plan: Plan,
    pub(super) first: &'a [&'a Input],
    pub(super) pad: &'a Scratchpad,
    pub(super) state: State,
    /// Phases gone through, in this run or an earlier one.
    pub(super) step: usize,
}

impl<'a> Gather<'a> {
    fn work(&self) -> u64 {
        self.job.budget.work
    }

    /// Does a phase, unless an earlier run of this job has done it. What it brings is in the
    /// state, and nowhere else.
    fn phase(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
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
        journal.save(&self.job.hashes, self.plan, self.first, &mut self.state, self.pad)
    }

    /// All lines of all inputs.
    /// `prior` are lines of the first input that were printed already.
    pub(super) fn everything(&mut self, others: &[Input], prior: Option<Table>) -> Result<()> {
        if let Some(table) = prior {
            // The table still fills the memory: go to disk through a small window.
            let digits = &self.state.digits;
            let mut spill = Spill::new(self.pad, digits.parts(), 0);
            for (print, _) in table.iter() {
                spill.push(digits.of(print), &print.to_bytes())?;
            }
            let mut streams = spill.finish();
            write_out(&mut streams, self.pad)?;
            self.state.others.push(streams);
        }
        self.gather_others(others, false)?;
        self.phase(|work| {
            work.state.first = work.gather("reading", work.first, Role::First, None, None)?;
            Ok(())
        })
    }

    /// Records of the others: of each its own for `common`, which must be in every one; together
    /// for the other verbs, which only ask whether it is in any. Of all lines, or to `confirm`.
    fn gather_others(&mut self, others: &[Input], confirm: bool) -> Result<()> {
        let others: Vec<_> = others.iter().collect();
        let roles = if self.job.verb == Verb::Common { 1 } else { others.len().max(1) };
        for inputs in others.chunks(roles) {
            self.phase(|work| {
                let streams = if confirm {
                    work.confirm(inputs, Role::Other)?
                } else {
                    work.gather("reading", inputs, Role::Other, None, None)?
                };
                work.put(Role::Other, streams);
                Ok(())
            })?;
        }
        Ok(())
    }

    pub(super) fn narrow_common(&mut self, others: &[Input], sizes: &Sizes) -> Result<()> {
        let small = self.plan.smallest;
        let (first, smallest) = (self.first, &[&others[small]][..]);
        let (begin, next, lines) = if self.plan.first_begins {
            (first, smallest, sizes.first.lines)
        } else {
            (smallest, first, sizes.others[small].lines)
        };
        let (back, there) = if self.plan.first_begins {
            (Role::First, Role::Other)
        } else {
            (Role::Other, Role::First)
        };
        self.state.listed = Listed::Kept;

        // There: whatever of `next` the filter of `begin` cannot rule out.
        self.phase(|work| {
            let memory = work.work() - least_records(work.work());
            let mut filter = BloomFilter::with_memory(filter_bytes(lines, memory), lines.max(1))?;
            work.fill(begin, &mut filter)?;
            work.state.filter = Some(filter);
            if back == Role::First {
                let report = &mut work.state.report;
                report.first_lines = report.phases.last().map_or(0, |phase| phase.lines);
            }
            Ok(())
        })?;
        self.phase(|work| {
            let filter = work.take_filter();
            let keys = match work.plan.beside {
                0 => Keys::Log(work.key_log()),
                // It holds as many keys as pays in so much memory.
                bytes => Keys::Filter(BloomFilter::with_memory(bytes, keys_for(bytes))?),
            };
            let hits = work.gather("matching", next, there, filter.as_ref(), Some(keys))?;
            let bytes = hits.iter().map(Stream::bytes).sum::<u64>();
            work.state.report.candidates = bytes / there.record() as u64;
            let asked = work.state.report.phases.last().map_or(0, |phase| phase.lines);
            let misses = (asked - work.state.report.candidates) as f64;
            // Of lines that are not in the filter, a share of 1 - rate misses it.
            let rate = filter.map_or(0.0, |filter| {
                filter.expected_rate(given(&filter, 0.0, filter.inserted()) as u64)
            });
            let promised = misses * rate / (1.0 - rate).max(f64::MIN_POSITIVE);
            work.state.report.false_promised = Some(promised);
            work.put(there, hits);
            Ok(())
        })?;
        if self.state.report.candidates == 0 {
            // Nothing hit: nothing is common.
            return Ok(());
        }
        // And back: whatever of `begin`, and of the others, the filter of those hits cannot.
        self.phase(|work| {
            let streams = work.confirm(begin, back)?;
            work.put(back, streams);
            Ok(())
        })?;
        for (j, other) in others.iter().enumerate() {
            if j != small {
                self.phase(|work| {
                    let streams = work.confirm(&[other], Role::Other)?;
                    work.put(Role::Other, streams);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn put(&mut self, role: Role, streams: Vec<Stream>) {
        match role {
            Role::First => self.state.first = streams,
            Role::Other => self.state.others.push(streams),
        }
    }

    pub(super) fn narrow_diff(&mut self, others: &[Input], sizes: &Sizes) -> Result<()> {
        self.state.listed = Listed::Dropped;
        if !others.is_empty() {
            self.phase(|work| {
                let mut filter = work.filter_all(sizes)?;
                work.fill(&others.iter().collect::<Vec<_>>(), &mut filter)?;
                work.state.filter = Some(filter);
                Ok(())
            })?;
        }
        // A line the filter has not seen is new; the others are in question.
        self.phase(|work| {
            let mut filter = match work.take_filter() {
                Some(filter) => filter,
                None => work.filter_all(sizes)?,
            };
            let before = filter.inserted();
            let mut known = Keys::Log(work.key_log());
            let seen = work.job.steps().fill(work.first, &mut filter, Some(&mut known))?;
            let report = &mut work.state.report;
            report.saw(seen);
            report.first_lines = seen.lines;
            let keys = known.into_log();
            report.candidates = keys.bytes() / 8;
            let held = given(&filter, 0.0, before);
            let new = filter.inserted() - before;
            report.false_promised = Some(given(&filter, held, new) - held - new as f64);
            work.state.keys = keys;
            Ok(())
        })?;
        let questions = self.state.keys.bytes() / 8;
        let report = &mut self.state.report;
        if questions > report.first_lines / 2 {
            // Most lines are in question: filters cannot narrow this.
            self.state.listed = Listed::Kept;
            report.strategy = "narrow, then partition".into();
            (report.candidates, report.false_promised) = (0, None);
            return self.everything(others, None);
        }
        if questions > 0 {
            self.gather_others(others, true)?;
            self.phase(|work| {
                work.state.first = work.confirm(work.first, Role::First)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Decides which lines are listed, and marks them in `spans` unless lines are only counted.
    pub(super) fn decide(&mut self, spans: Option<Spans>) -> Result<()> {
        self.phase(|work| {
            let begun = Instant::now();
            work.state.filter = None;
            work.job.progress.phase("deciding", None);
            let inputs = work.state.others.len();
            // Tables and marks need room as well.
            work.keep(work.work() / 2)?;
            let (parts, held) = work.take_parts();
            let resolver = Resolver {
                verb: work.job.verb,
                listed: work.state.listed,
                spans,
                pad: work.pad,
                memory: work.work() - held,
                workers: work.job.budget.workers,
                progress: work.job.progress,
            };
            let resolved = resolver.resolve(parts, &work.state.digits)?;
            (work.state.marks, work.state.count) = (resolved.marks, resolved.count);
            work.state.spans = spans;
            let report = &mut work.state.report;
            report.false_found = match (report.candidates, work.job.verb) {
                (0, _) => None,
                (_, Verb::Common) if inputs > 1 => None,
                (_, Verb::Common) if work.plan.first_begins => Some(resolved.unclaimed),
                (_, Verb::Common) => Some(resolved.refused),
                (candidates, _) => Some(candidates.saturating_sub(resolved.count)),
            };
            report.did("deciding", begun.elapsed().as_secs_f64());
            Ok(())
        })
    }

    /// An empty filter for all lines of all inputs.
    fn filter_all(&self, sizes: &Sizes) -> Result<BloomFilter> {
        let memory = self.work() - least_records(self.work());
        let lines = sizes.lines();
        Ok(BloomFilter::with_memory(filter_bytes(lines, memory), lines.max(1))?)
    }

    fn fill(&mut self, inputs: &[&Input], filter: &mut BloomFilter) -> Result<()> {
        self.state.report.saw(self.job.steps().fill(inputs, filter, None)?);
        Ok(())
    }

    /// The filter that an earlier phase has filled; it will not be asked again.
    fn take_filter(&mut self) -> Option<BloomFilter> {
        self.state.filled = 0;
        self.state.filter.take()
    }

    /// Where the keys of hits go, to make the next filter from.
    fn key_log(&self) -> Spill<'a> {
        Spill::new(self.pad, 1, KEY_LOG)
    }

    /// The filter of the hits' keys, made now if it was not filled at once; `None` of no keys.
    /// To be put back when it has been asked.
    fn back_filter(&mut self) -> Result<Option<BloomFilter>> {
        let count = self.state.keys.bytes() / 8;
        if self.state.filter.is_some() || count == 0 {
            return Ok(self.state.filter.take());
        }
        let memory = self.work() - least_records(self.work());
        let memory = memory.saturating_sub(self.held()).max(self.work() / 4);
        let mut filter = BloomFilter::with_memory(filter_bytes(count, memory), count)?;
        let (mut hashes, mut answers) = (Vec::new(), petal::Answers::default());
        self.state.keys.for_each_block(self.pad, |block| {
            hashes.clear();
            hashes.extend(block.as_chunks().0.iter().map(|key| u64::from_le_bytes(*key)));
            filter.insert_mixed_hashes(&hashes, &mut answers);
            Ok(())
        })?;
        Ok(Some(filter))
    }

    /// Records of the lines that the filter of the hits' keys cannot rule out.
    fn confirm(&mut self, inputs: &[&Input], role: Role) -> Result<Vec<Stream>> {
        let filter = self.back_filter()?;
        let streams = self.gather("confirming", inputs, role, filter.as_ref(), None)?;
        self.state.filter = filter;
        Ok(streams)
    }

    /// Memory that records hold.
    fn held(&self) -> u64 {
        let others = self.state.others.iter().map(|other| spill::held(other));
        spill::held(&self.state.first) + others.sum::<u64>()
    }

    /// Records of the lines that the filter cannot rule out, or of all lines. Their filter keys
    /// go to `keys`.
    fn gather(
        &mut self,
        what: &'static str,
        inputs: &[&Input],
        role: Role,
        filter: Option<&BloomFilter>,
        mut keys: Option<Keys<'a>>,
    ) -> Result<Vec<Stream>> {
        let filters = filter.map_or(0, BloomFilter::size_bytes);
        let allowance = self.make_room(filters + keys.as_ref().map_or(0, Keys::bytes))?;
        let mut spill = Spill::new(self.pad, self.state.digits.parts(), allowance);
        let filters = filter.map(|filter| filter as &dyn Membership);
        let asked =
            filters.as_ref().map_or(Asked::All, |filter| Asked::Any(std::slice::from_ref(filter)));
        // Where the input begins when all are taken as one; of a packed one that is known only
        // when those before it have been read.
        let (mut at, mut begin) = (0, 0);
        let start = |input: usize| {
            while at < input {
                begin += inputs[at].known_length()?;
                at += 1;
            }
            Ok(begin)
        };
        let digits = &self.state.digits;
        let steps = self.job.steps();
        let seen =
            steps.gather(what, inputs, role, asked, digits, start, &mut spill, keys.as_mut())?;
        let report = &mut self.state.report;
        report.saw(seen);
        if role == Role::First {
            report.first_lines = seen.lines;
        }
        report.records += spill.bytes() / role.record() as u64;
        match keys {
            Some(Keys::Filter(filter)) => self.state.filter = Some(filter),
            Some(log) => self.state.keys = log.into_log(),
            None => {}
        }
        Ok(spill.finish())
    }

    /// Writes out records until they hold no more than so many bytes.
    fn keep(&mut self, most: u64) -> Result<()> {
        let mut held = self.held();
        let streams = self.state.others.iter_mut().flatten().chain(&mut self.state.first);
        for stream in streams.map(std::slice::from_mut) {
            if held <= most {
                break;
            }
            held -= spill::held(stream);
            write_out(stream, self.pad)?;
        }
        Ok(())
    }

    /// How much memory the next records may take beside a filter of so many bytes. Earlier
    /// records that are still in memory go to disk if that leaves too little.
    fn make_room(&mut self, filter: u64) -> Result<u64> {
        let free = self.work().saturating_sub(filter);
        let least = least_records(self.work()).min(free);
        let taken = self.held();
        if free.saturating_sub(taken) >= least.max(free / 2) {
            return Ok(free - taken);
        }
        self.keep(0)?;
        Ok(free)
    }

    /// The records by partition, and the memory they hold.
    fn take_parts(&mut self) -> (Vec<Part>, u64) {
        let count = self.state.digits.parts();
        let taken = self.held();
        let first = std::mem::take(&mut self.state.first);
        let others = std::mem::take(&mut self.state.others);
        let mut parts: Vec<_> = first
            .into_iter()
            .chain(std::iter::repeat_with(Stream::default))
            .take(count)
            .map(|first| Part { first, others: Vec::new() })
            .collect();
        for streams in others {
            let streams = streams.into_iter().chain(std::iter::repeat_with(Stream::default));
            parts.iter_mut().zip(streams).for_each(|(part, other)| part.others.push(other));
        }
        (parts, taken)
    }
}
