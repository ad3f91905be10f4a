//! The strategies `Narrow` and `Partition`: which lines become records.

use petal::BloomFilter;

use super::{Exact, Others, least_records};
use crate::error::Result;
use crate::input::Input;
use crate::judge::Verb;
use crate::pass::{Batch, Flow, Scratch, Seen};
use crate::plan::{Sizes, filter_bytes};
use crate::report::Report;
use crate::print::Listed;
use crate::resolve::{Digits, FIRST_RECORD, OTHER_RECORD, Part, first_record};
use crate::spill::{Scratchpad, Spill, Stream, held, write_out};

/// Collects the records of all inputs.
pub(super) struct Gather<'a, 'r> {
    pub(super) job: &'a Exact<'a>,
    pub(super) pad: &'a Scratchpad,
    pub(super) digits: Digits,
    pub(super) first: Vec<Stream>,
    pub(super) others: Vec<Vec<Stream>>,
    pub(super) report: &'r mut Report,
}

impl<'a> Gather<'a, '_> {
    fn work(&self) -> u64 {
        self.job.budget.work
    }

    /// All lines of all inputs.
    pub(super) fn everything(&mut self, first: &[&Input], others: Others) -> Result<()> {
        if let Some(table) = others.prior {
            // The table still fills the memory: go to disk through a small window.
            let mut spill = Spill::new(self.pad, self.digits.parts(), 0);
            for (print, _) in table.iter() {
                spill.push(self.digits.of(print), &print.to_bytes())?;
            }
            let mut streams = spill.finish()?;
            write_out(&mut streams, self.pad)?;
            self.others.push(streams);
        }
        self.gather_others("reading", &others.lines, None)?;
        self.first = self.gather("reading", first, Role::First, None, None)?;
        Ok(())
    }

    /// Records of the others: of each its own for `common`, which must be in every one; together
    /// for the other verbs, which only ask whether it is in any.
    fn gather_others(
        &mut self,
        what: &'static str,
        others: &[Input],
        filter: Option<&BloomFilter>,
    ) -> Result<()> {
        let others: Vec<_> = others.iter().collect();
        let roles = if self.job.verb == Verb::Common { 1 } else { others.len().max(1) };
        for inputs in others.chunks(roles) {
            let streams = self.gather(what, inputs, Role::Other, filter, None)?;
            self.others.push(streams);
        }
        Ok(())
    }

    pub(super) fn narrow_common(
        &mut self,
        first: &[&Input],
        others: &[Input],
        sizes: &Sizes,
        first_begins: bool,
    ) -> Result<()> {
        let small = sizes.smallest_other();
        let smallest = &[&others[small]][..];
        let (begin, next, lines) = if first_begins {
            (first, smallest, sizes.first.lines)
        } else {
            (smallest, first, sizes.others[small].lines)
        };
        let (role, back) =
            if first_begins { (Role::Other, Role::First) } else { (Role::First, Role::Other) };

        // There: whatever of `next` the filter of `begin` cannot rule out.
        let filter = self.filter_lines("filtering", begin, lines)?;
        let mut keys = self.key_log();
        let hits = self.gather("matching", next, role, Some(&filter), Some(&mut keys))?;
        drop(filter);
        // And back: whatever of `begin`, and of the others, the filter of those hits cannot.
        let filter = self.filter_keys(keys.finish()?.swap_remove(0), held(&hits))?;
        self.report.candidates = filter.as_ref().map_or(0, BloomFilter::inserted);
        match role {
            Role::First => self.first = hits,
            Role::Other => self.others.push(hits),
        }
        let Some(filter) = filter else {
            // Nothing hit: nothing is common.
            return Ok(());
        };
        let streams = self.gather("confirming", begin, back, Some(&filter), None)?;
        match back {
            Role::First => self.first = streams,
            Role::Other => self.others.push(streams),
        }
        for (j, other) in others.iter().enumerate() {
            if j != small {
                let streams =
                    self.gather("confirming", &[other], Role::Other, Some(&filter), None)?;
                self.others.push(streams);
            }
        }
        Ok(())
    }

    pub(super) fn narrow_diff(
        &mut self,
        first: &[&Input],
        others: &[Input],
        sizes: &Sizes,
    ) -> Result<Listed> {
        let job = self.job;
        let memory = self.work() - least_records(self.work());
        let mut filter =
            BloomFilter::with_memory(filter_bytes(sizes.lines(), memory), sizes.lines().max(1))?;
        self.fill("filtering", &others.iter().collect::<Vec<_>>(), &mut filter)?;
        // A line the filter has not seen is new; the others are in question.
        let mut keys = self.key_log();
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.take_keys(batch, |line| job.hashes.key(line));
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_hashes(&scratch.keys, &mut scratch.answers);
            for (at, key) in scratch.keys.iter().enumerate() {
                if !scratch.answers.get(at) {
                    keys.push(0, &key.to_le_bytes())?;
                }
            }
            Ok(Flow::Go)
        };
        let seen = job.pass().run("filtering", first, map, fold)?;
        self.report.saw(seen);
        self.report.first_lines = seen.lines;
        drop(filter);
        self.report.candidates = keys.bytes() / 8;
        let questions = keys.finish()?.swap_remove(0);
        if questions.bytes() / 8 > seen.lines / 2 {
            // Most lines are in question: filters cannot narrow this.
            drop(questions);
            self.report.strategy = "narrow, then partition";
            self.gather_others("reading", others, None)?;
            self.first = self.gather("reading", first, Role::First, None, None)?;
            return Ok(Listed::Kept);
        }
        if let Some(filter) = self.filter_keys(questions, 0)? {
            self.gather_others("confirming", others, Some(&filter))?;
            self.first = self.gather("confirming", first, Role::First, Some(&filter), None)?;
        }
        Ok(Listed::Dropped)
    }

    /// A filter of all lines of the inputs, as large as the memory allows.
    fn filter_lines(
        &mut self,
        what: &'static str,
        inputs: &[&Input],
        lines: u64,
    ) -> Result<BloomFilter> {
        let memory = self.work() - least_records(self.work());
        let mut filter = BloomFilter::with_memory(filter_bytes(lines, memory), lines.max(1))?;
        self.fill(what, inputs, &mut filter)?;
        Ok(filter)
    }

    fn fill(
        &mut self,
        what: &'static str,
        inputs: &[&Input],
        filter: &mut BloomFilter,
    ) -> Result<()> {
        let job = self.job;
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.take_keys(batch, |line| job.hashes.key(line));
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_hashes(&scratch.keys, &mut scratch.answers);
            Ok(Flow::Go)
        };
        self.report.saw(job.pass().run(what, inputs, map, fold)?);
        Ok(())
    }

    /// Where the keys of hits go, to make the next filter from.
    fn key_log(&self) -> Spill<'a> {
        Spill::new(self.pad, 1, 256 << 10)
    }

    /// A filter of logged keys, beside records that take `held` bytes; `None` of no keys.
    fn filter_keys(&self, keys: Stream, held: u64) -> Result<Option<BloomFilter>> {
        let count = keys.bytes() / 8;
        if count == 0 {
            return Ok(None);
        }
        let memory = self.work() - least_records(self.work());
        let memory = memory.saturating_sub(held).max(self.work() / 4);
        let mut filter = BloomFilter::with_memory(filter_bytes(count, memory), count)?;
        let (mut hashes, mut new) = (Vec::new(), petal::Answers::default());
        keys.for_each_block(self.pad, |block| {
            hashes.clear();
            hashes.extend(block.as_chunks().0.iter().map(|key| u64::from_le_bytes(*key)));
            filter.insert_hashes(&hashes, &mut new);
            Ok(())
        })?;
        Ok(Some(filter))
    }

    /// Records of the lines that the filter cannot rule out, or of all lines.
    fn gather(
        &mut self,
        what: &'static str,
        inputs: &[&Input],
        role: Role,
        filter: Option<&BloomFilter>,
        mut keys: Option<&mut Spill<'a>>,
    ) -> Result<Vec<Stream>> {
        let job = self.job;
        let allowance = self.make_room(filter.map_or(0, BloomFilter::size_bytes))?;
        let mut spill = Spill::new(self.pad, self.digits.parts(), allowance);
        let digits = &self.digits;
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.picks.clear();
            match filter {
                None => scratch.picks.extend(0..batch.len()),
                Some(filter) => {
                    scratch.take_keys(batch, |line| job.hashes.key(line));
                    filter.contains_hashes(&scratch.keys, &mut scratch.answers);
                    scratch.picks.extend(scratch.answers.iter());
                }
            }
            scratch.prints.clear();
            let picked = scratch.picks.iter().map(|&line| batch.line(line));
            job.hashes.fingerprints(picked, &mut scratch.prints);
        };
        // Where the input begins when all are taken as one; of a packed one that is known only
        // when those before it have been read.
        let (mut input, mut start) = (0, 0);
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            while input < batch.input {
                start += inputs[input].length().unwrap_or(0);
                input += 1;
            }
            for (&line, &print) in scratch.picks.iter().zip(&scratch.prints) {
                let part = digits.of(print);
                match role {
                    Role::Other => spill.push(part, &print.to_bytes())?,
                    Role::First => {
                        let position = start + batch.offset(line);
                        spill.push(part, &first_record(print, position))?;
                    }
                }
                if let Some(keys) = &mut keys {
                    keys.push(0, &scratch.keys[line].to_le_bytes())?;
                }
            }
            Ok(Flow::Go)
        };
        let seen: Seen = job.pass().run(what, inputs, map, fold)?;
        self.report.saw(seen);
        if role == Role::First {
            self.report.first_lines = seen.lines;
        }
        self.report.records += spill.bytes() / role.record() as u64;
        spill.finish()
    }

    /// How much memory the next records may take beside a filter of so many bytes. Earlier
    /// records that are still in memory go to disk if that leaves too little.
    fn make_room(&mut self, filter: u64) -> Result<u64> {
        let free = self.work().saturating_sub(filter);
        let least = least_records(self.work()).min(free);
        let all = || self.others.iter().flatten().chain(&self.first);
        let taken: u64 = all().map(|stream| held(std::slice::from_ref(stream))).sum();
        if free.saturating_sub(taken) >= least.max(free / 2) {
            return Ok(free - taken);
        }
        for streams in self.others.iter_mut().chain([&mut self.first]) {
            write_out(streams, self.pad)?;
        }
        Ok(free)
    }

    /// The records by partition, and the memory they hold.
    pub(super) fn take_parts(&mut self) -> (Vec<Part>, u64) {
        let count = self.digits.parts();
        let all = self.others.iter().flatten().chain(&self.first);
        let taken = all.map(|stream| held(std::slice::from_ref(stream))).sum();
        let first = std::mem::take(&mut self.first);
        let others = std::mem::take(&mut self.others);
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

/// Whose records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    First,
    Other,
}

impl Role {
    fn record(self) -> usize {
        match self {
            Self::First => FIRST_RECORD,
            Self::Other => OTHER_RECORD,
        }
    }
}
