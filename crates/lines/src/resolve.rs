//! From records to positions: the exact decision, one partition at a time.
//!
//! All records of a fingerprint lie in one partition, each role's in input order. A partition is
//! judged in memory; if its distinct fingerprints do not fit, it is split by the next digits of
//! the fingerprint and each part judged. Since keyed fingerprints spread evenly, and copies of a
//! line take no more room than one, this ends for any input.
//!
//! Cost: records are read once or twice, and written and read once more for each split.

use std::num::NonZeroU64;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::judge::{EXPECTED, Judge, Seed, Verb, Verdict};
use crate::marks::{Listed, Marker, Spans};
use crate::progress::Progress;
use crate::spill::{Scratchpad, Spill, Stream, write_out};
use crate::table::{Full, Table};

/// A line of the first input: its fingerprint and its position.
pub(crate) const FIRST_RECORD: usize = Fingerprint::BYTES + 8;
/// A line of another input: its fingerprint.
pub(crate) const OTHER_RECORD: usize = Fingerprint::BYTES;

pub(crate) fn first_record(print: Fingerprint, position: u64) -> [u8; FIRST_RECORD] {
    let mut record = [0; FIRST_RECORD];
    record[..OTHER_RECORD].copy_from_slice(&print.to_bytes());
    record[OTHER_RECORD..].copy_from_slice(&position.to_le_bytes());
    record
}

/// How fingerprints are dealt to partitions, level by level.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Digits(Vec<NonZeroU64>);

impl Digits {
    pub(crate) fn new(partitions: u64) -> Self {
        Self(vec![NonZeroU64::new(partitions).unwrap_or(NonZeroU64::MIN)])
    }

    /// Into how many parts the lowest level divides.
    pub(crate) fn parts(&self) -> usize {
        self.0.last().map_or(1, |parts| parts.get() as usize)
    }

    fn deeper(&self, parts: u64) -> Self {
        let mut digits = self.0.clone();
        digits.extend(NonZeroU64::new(parts));
        Self(digits)
    }

    /// The partition of a fingerprint at the lowest level: the high half read as a fraction,
    /// its digits taken off from the top.
    #[inline]
    pub(crate) fn of(&self, print: Fingerprint) -> usize {
        let mut rest = print.high;
        let mut digit = 0;
        for parts in &self.0 {
            let product = u128::from(rest) * u128::from(parts.get());
            (digit, rest) = ((product >> 64) as usize, product as u64);
        }
        digit
    }
}

/// The records of one partition.
pub(crate) struct Part {
    pub(crate) first: Stream,
    pub(crate) others: Vec<Stream>,
}

/// What the exact decision came to.
#[derive(Default)]
pub(crate) struct Resolved {
    /// The marks for the positions listed, from each worker.
    pub(crate) marks: Vec<Vec<Stream>>,
    /// Lines listed.
    pub(crate) count: u64,
    /// Of `common`: records of the first input, and of another, that are not in both.
    pub(crate) refused: u64,
    pub(crate) unclaimed: u64,
}

impl Resolved {
    fn and(mut self, other: Self) -> Self {
        self.marks.extend(other.marks);
        self.add(other.count, other.refused, other.unclaimed);
        self
    }

    fn add(&mut self, count: u64, refused: u64, unclaimed: u64) {
        self.count += count;
        self.refused += refused;
        self.unclaimed += unclaimed;
    }
}

/// Judges partitions.
pub(crate) struct Resolver<'a> {
    pub(crate) verb: Verb,
    pub(crate) listed: Listed,
    /// The positions of the first input; `None` if lines are only counted.
    pub(crate) spans: Option<Spans>,
    pub(crate) pad: &'a Scratchpad,
    /// Bytes of memory for all workers together.
    pub(crate) memory: u64,
    pub(crate) workers: usize,
    pub(crate) progress: &'a dyn Progress,
}

impl Resolver<'_> {
    /// Decides everything.
    pub(crate) fn resolve(&self, parts: Vec<Part>, digits: &Digits) -> Result<Resolved> {
        let workers = self.workers.min(parts.len()).max(1);
        let memory = self.memory / workers as u64;
        let parts = Mutex::new(parts.into_iter());
        let work = || {
            // An eighth is for the marks, as much for the block being read.
            let marker = self.spans.map(|spans| Marker::new(spans, self.pad, memory / 8));
            let mut found = Found { marker, resolved: Resolved::default(), table: None };
            loop {
                let part = parts.lock().unwrap_or_else(|e| e.into_inner()).next();
                let Some(part) = part else { break };
                self.part(part, digits, memory / 4 * 3, &mut found)?;
            }
            let marks = found.marker.map(Marker::finish);
            Ok(Resolved { marks: marks.into_iter().collect(), ..found.resolved })
        };
        let results: Vec<Result<_>> = if workers == 1 {
            vec![work()]
        } else {
            std::thread::scope(|scope| {
                let work = &work;
                let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
                workers.into_iter().map(|w| w.join().expect("a worker panicked")).collect()
            })
        };
        results.into_iter().try_fold(Resolved::default(), |all, one| Ok(all.and(one?)))
    }

    fn part(&self, part: Part, digits: &Digits, memory: u64, found: &mut Found<'_>) -> Result<()> {
        if part.first.bytes() == 0 {
            let others = part.others.iter().map(|other| other.bytes() / OTHER_RECORD as u64);
            found.resolved.unclaimed += others.sum::<u64>();
            return Ok(());
        }
        match self.judge(&part, memory, found)? {
            Ok(()) => Ok(()),
            Err(Full) => {
                let (parts, digits) = self.split(part, digits, memory)?;
                parts.into_iter().try_for_each(|part| self.part(part, &digits, memory, found))
            }
        }
    }

    /// Judges a partition. If it does not fit, it must be judged again in parts: what was marked
    /// by then is right, and will be marked again; only the count waits for the end.
    fn judge(&self, part: &Part, memory: u64, found: &mut Found<'_>) -> Result<Result<(), Full>> {
        let first = part.first.bytes() / FIRST_RECORD as u64;
        let others = part.others.iter().map(|other| other.bytes() / OTHER_RECORD as u64);
        let others: Vec<_> = others.collect();
        let (seed, expected) = choose_seed(self.verb, first, &others, Table::capacity(memory));
        let mut table = found.table.take().map_or_else(|| Table::new(0, 0), Ok)?;
        table.renew(memory, expected)?;
        let mut judge = Judge::new(self.verb, seed, table);
        let (mut count, mut refused, mut unclaimed) = (0, 0, 0);
        let seeding = |judge: &mut Judge, print, _: &[u8]| judge.seed(print);
        if seed == Seed::First
            && self.show::<FIRST_RECORD>(&part.first, &mut judge, seeding)?.is_err()
        {
            return Ok(Err(Full));
        }
        for j in judge.seeders(others.len()) {
            if self.show::<OTHER_RECORD>(&part.others[j], &mut judge, seeding)?.is_err() {
                return Ok(Err(Full));
            }
        }
        for j in judge.markers(others.len()) {
            let marking = |judge: &mut Judge, print, _: &[u8]| {
                unclaimed += u64::from(!judge.mark(print));
                Ok(Ok(()))
            };
            // Marking needs no room.
            let _ = self.show::<OTHER_RECORD>(&part.others[j], &mut judge, marking)?;
            judge.end_round();
        }
        let deciding = |judge: &mut Judge, print, rest: &[u8]| {
            let Ok(verdict) = judge.verdict(print)? else { return Ok(Err(Full)) };
            refused += u64::from(verdict == Verdict::Refused);
            if (verdict == Verdict::Kept) == (self.listed == Listed::Kept) {
                count += 1;
                found.mark(rest)?;
            }
            Ok(Ok(()))
        };
        let judged = self.show::<FIRST_RECORD>(&part.first, &mut judge, deciding)?;
        if judged.is_ok() {
            if self.verb == Verb::Common && seed != Seed::First {
                unclaimed = judge.unclaimed();
            }
            found.resolved.add(count, refused, unclaimed);
        }
        found.table = Some(judge.into_table());
        Ok(judged)
    }

    /// Shows a judge each record of a stream until it has no more room.
    fn show<const SIZE: usize>(
        &self,
        stream: &Stream,
        judge: &mut Judge,
        mut each: impl FnMut(&mut Judge, Fingerprint, &[u8]) -> Result<Result<(), Full>>,
    ) -> Result<Result<(), Full>> {
        let mut full = Ok(());
        stream.for_each_block(self.pad, |block| {
            if self.progress.cancelled() {
                return Err(Error::cancelled());
            }
            for records in block.as_chunks::<SIZE>().0.chunks(EXPECTED) {
                let mut prints = [Fingerprint::default(); EXPECTED];
                for (print, record) in prints.iter_mut().zip(records) {
                    *print = record.first_chunk().map(Fingerprint::from_bytes).unwrap_or_default();
                }
                let prints = &prints[..records.len()];
                judge.expect(prints);
                for (&print, record) in prints.iter().zip(records) {
                    if full.is_ok() {
                        full = each(judge, print, &record[Fingerprint::BYTES..])?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(full)
    }

    fn split(&self, part: Part, digits: &Digits, memory: u64) -> Result<(Vec<Part>, Digits)> {
        let digits = digits.deeper(Spill::most_streams(memory).min(64));
        let first = self.deal::<FIRST_RECORD>(part.first, &digits, memory)?;
        let mut parts: Vec<_> =
            first.into_iter().map(|first| Part { first, others: Vec::new() }).collect();
        for other in part.others {
            let dealt = self.deal::<OTHER_RECORD>(other, &digits, memory)?;
            parts.iter_mut().zip(dealt).for_each(|(part, other)| part.others.push(other));
        }
        Ok((parts, digits))
    }

    /// Deals the records of a stream to streams of the next level, all of it on disk.
    fn deal<const SIZE: usize>(
        &self,
        stream: Stream,
        digits: &Digits,
        memory: u64,
    ) -> Result<Vec<Stream>> {
        let mut spill = Spill::new(self.pad, digits.parts(), memory / 2);
        stream.for_each_block(self.pad, |block| {
            block.as_chunks::<SIZE>().0.iter().try_for_each(|record| {
                let Some(print) = record.first_chunk() else { return Ok(()) };
                spill.push(digits.of(Fingerprint::from_bytes(print)), record)
            })
        })?;
        let mut streams = spill.finish();
        write_out(&mut streams, self.pad)?;
        Ok(streams)
    }
}

/// What a worker has found.
struct Found<'a> {
    marker: Option<Marker<'a>>,
    resolved: Resolved,
    /// The table of the partition before, for the next.
    table: Option<Table>,
}

impl Found<'_> {
    /// Marks the position of a first record.
    #[inline]
    fn mark(&mut self, position: &[u8]) -> Result<()> {
        match (&mut self.marker, position.first_chunk()) {
            (Some(marker), Some(bytes)) => marker.mark(u64::from_le_bytes(*bytes)),
            _ => Ok(()),
        }
    }
}

/// What to seed a judge with, and about how many entries its table will have, given the number
/// of lines of the first input and of each other and the capacity of the table.
pub(crate) fn choose_seed(verb: Verb, first: u64, others: &[u64], capacity: u64) -> (Seed, u64) {
    let all = others.iter().sum::<u64>();
    match verb {
        Verb::Common => match others.iter().enumerate().min_by_key(|(_, lines)| **lines) {
            Some((smallest, &lines)) if lines <= first => (Seed::Others(smallest), lines),
            _ => (Seed::First, first),
        },
        Verb::Diff | Verb::Dedup if all == 0 || all + first <= capacity => {
            (Seed::Others(0), all + first)
        }
        Verb::Diff | Verb::Dedup => (Seed::First, first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Temp;
    use crate::marks::Marks;

    fn print(line: u64) -> Fingerprint {
        // Even high halves, as keyed fingerprints have.
        let mix = |x: u64| {
            let x = (x ^ x >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x ^ x >> 29
        };
        Fingerprint { high: mix(line + 1), low: mix(line + 1_000_003) }
    }

    /// Splitting must not change what is listed, whatever the memory.
    #[test]
    fn the_same_positions_for_any_memory_and_partitioning() {
        let dir = tempfile::tempdir().unwrap();
        let lines = |seed: u64, count: u64, of: u64| {
            (0..count).map(move |i| print((i * 7 + seed).wrapping_mul(i + seed) % of))
        };
        let first: Vec<_> = lines(1, 9000, 5000).collect();
        let others = [lines(2, 7000, 4000).collect::<Vec<_>>(), lines(3, 6000, 4500).collect()];
        for verb in [Verb::Common, Verb::Diff, Verb::Dedup] {
            for listed in [Listed::Kept, Listed::Dropped] {
                let mut answers = Vec::new();
                for (memory, partitions, workers) in
                    [(1 << 24, 1, 1), (1 << 24, 5, 2), (60_000, 3, 1), (9000, 1, 3), (20_000, 7, 2)]
                {
                    let pad = Scratchpad::new(&Temp::new(dir.path())).unwrap();
                    let digits = Digits::new(partitions);
                    let count = digits.parts();
                    let mut spill = Spill::new(&pad, count, memory / 4);
                    for (at, &print) in first.iter().enumerate() {
                        let record = first_record(print, at as u64);
                        spill.push(digits.of(print), &record).unwrap();
                    }
                    let streams = spill.finish();
                    let mut parts: Vec<_> =
                        streams.into_iter().map(|first| Part { first, others: vec![] }).collect();
                    for other in others.iter().filter(|_| verb != Verb::Dedup) {
                        let mut spill = Spill::new(&pad, count, memory / 4);
                        for &print in other {
                            spill.push(digits.of(print), &print.to_bytes()).unwrap();
                        }
                        let streams = spill.finish();
                        parts.iter_mut().zip(streams).for_each(|(p, s)| p.others.push(s));
                    }
                    let spans = Spans::new(first.len() as u64, 3);
                    let resolver = Resolver {
                        verb,
                        listed,
                        spans: Some(spans),
                        pad: &pad,
                        memory,
                        workers,
                        progress: &(),
                    };
                    let resolved = resolver.resolve(parts, &digits).unwrap();
                    let found = resolved.count;
                    let marks = Marks::new(spans, resolved.marks, &pad, memory, workers);
                    let positions: Vec<_> = marks.within(0, first.len() as u64).unwrap().collect();
                    assert_eq!(positions.len() as u64, found);
                    answers.push(positions);
                }
                assert!(!answers[0].is_empty());
                assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{verb:?} {listed:?}");
            }
        }
    }
}
