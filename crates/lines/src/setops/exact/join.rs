//! From records to positions: the exact decision, one partition at a time.
//!
//! All records of a fingerprint are in one partition, in input order. A partition is joined in
//! memory. If its distinct fingerprints do not fit, it is divided by further digits of the
//! fingerprint and the parts are joined. Keyed fingerprints spread evenly and copies of a line take
//! no additional memory, so this ends for any input.
//!
//! Cost: records are read once or twice, and written and read once more for each division.

use std::sync::Mutex;

use super::records::{FIRST_RECORD, OTHER_RECORD, Partitioning};
use crate::error::{Error, Result};
use crate::fingerprint::{Fingerprint, FingerprintMap, Full, Table};
use crate::progress::Progress;
use crate::setops::positions::{Polarity, PositionWriter, Spans};
use crate::setops::set_semantics::{BuildSide, Decision, SetMatcher, SetOp};
use crate::temp::{RecordStream, SpillFile, SpillWriter, write_out};
use crate::workers;

/// The records of one partition.
pub(crate) struct Partition {
    pub(crate) first: RecordStream,
    pub(crate) others: Vec<RecordStream>,
}

impl Partition {
    pub(crate) fn bytes(&self) -> u64 {
        self.first.bytes() + self.others.iter().map(RecordStream::bytes).sum::<u64>()
    }
}

/// The result of the exact decision.
#[derive(Default)]
pub(crate) struct JoinResult {
    /// The listed positions, from each worker.
    pub(crate) positions: Vec<Vec<RecordStream>>,
    /// Number of listed lines.
    pub(crate) count: u64,
    /// For `common`: records of the first input, and of another, that are not in both.
    pub(crate) refused: u64,
    pub(crate) unclaimed: u64,
}

impl JoinResult {
    fn and(mut self, other: Self) -> Self {
        self.positions.extend(other.positions);
        self.add(other.count, other.refused, other.unclaimed);
        self
    }

    fn add(&mut self, count: u64, refused: u64, unclaimed: u64) {
        self.count += count;
        self.refused += refused;
        self.unclaimed += unclaimed;
    }
}

/// Joins the records of partitions.
pub(crate) struct PartitionJoin<'a> {
    pub(crate) op: SetOp,
    pub(crate) polarity: Polarity,
    /// For a symmetric difference: position at which its second side begins.
    pub(crate) boundary: u64,
    /// Spans of the first input's positions; `None` if lines are only counted.
    pub(crate) spans: Option<Spans>,
    pub(crate) spill_file: &'a SpillFile,
    /// Memory for all workers together.
    pub(crate) memory: u64,
    pub(crate) workers: usize,
    pub(crate) progress: &'a dyn Progress,
}

impl PartitionJoin<'_> {
    /// Joins all partitions.
    pub(crate) fn join(
        &self,
        parts: Vec<Partition>,
        partitioning: &Partitioning,
    ) -> Result<JoinResult> {
        let workers = self.workers.min(parts.len()).max(1);
        let memory = self.memory / workers as u64;
        let parts = Mutex::new(parts.into_iter());
        let work = || {
            // An eighth for positions, an eighth for the block being read.
            let writer =
                self.spans.map(|spans| PositionWriter::new(spans, self.spill_file, memory / 8));
            let mut found = Found {
                writer,
                result: JoinResult::default(),
                table: None,
                last: None,
                ahead: Ahead { bytes: 0, progress: self.progress },
            };
            loop {
                let part = parts.lock().unwrap_or_else(|e| e.into_inner()).next();
                let Some(part) = part else { break };
                found.ahead.bytes = part.bytes();
                self.part(part, partitioning, memory / 4 * 3, &mut found)?;
                found.ahead.advance(u64::MAX);
            }
            let positions = found.writer.map(PositionWriter::finish);
            Ok(JoinResult { positions: positions.into_iter().collect(), ..found.result })
        };
        let results: Vec<Result<_>> = workers::run(workers, work);
        results.into_iter().try_fold(JoinResult::default(), |all, one| Ok(all.and(one?)))
    }

    fn part(
        &self,
        part: Partition,
        partitioning: &Partitioning,
        memory: u64,
        found: &mut Found<'_>,
    ) -> Result<()> {
        if part.first.bytes() == 0 {
            let others = part.others.iter().map(|other| other.bytes() / OTHER_RECORD as u64);
            found.result.unclaimed += others.sum::<u64>();
            return Ok(());
        }
        let joined = match self.op {
            SetOp::DedupLast => self.last_in_memory(&part, memory, found)?,
            _ => self.join_in_memory(&part, memory, found)?,
        };
        match joined {
            Ok(()) => Ok(()),
            Err(Full) => {
                let (parts, partitioning) = self.divide(part, partitioning, memory)?;
                parts.into_iter().try_for_each(|part| self.part(part, &partitioning, memory, found))
            }
        }
    }

    /// Joins a partition. If it does not fit, the caller divides it and joins the parts. Positions
    /// written before are right and will be written again; the counts are added only at the end.
    fn join_in_memory(
        &self,
        part: &Partition,
        memory: u64,
        found: &mut Found<'_>,
    ) -> Result<Result<(), Full>> {
        let first = part.first.bytes() / FIRST_RECORD as u64;
        let others = part.others.iter().map(|other| other.bytes() / OTHER_RECORD as u64);
        let others: Vec<_> = others.collect();
        let (build_side, expected) =
            choose_build_side(self.op, first, &others, Table::capacity(memory));
        let mut table = found.table.take().map_or_else(|| Table::new(0, 0), Ok)?;
        table.renew(memory, expected)?;
        let mut matcher = SetMatcher::new(self.op, build_side, table);
        let (mut count, mut refused, mut unclaimed) = (0, 0, 0);
        let build = |matcher: &mut SetMatcher, fingerprint, rest: &[u8]| match self.op {
            SetOp::SymDiff => matcher.build_of_side(fingerprint, self.is_second(rest)),
            _ => matcher.build(fingerprint),
        };
        let Found { writer, ahead, .. } = found;
        let file = self.spill_file;
        if build_side == BuildSide::First {
            let first = &part.first;
            if for_each_record::<FIRST_RECORD, _>(first, file, &mut matcher, ahead, build)?.is_err()
            {
                return Ok(Err(Full));
            }
        }
        for j in matcher.build_inputs(others.len()) {
            let other = &part.others[j];
            if for_each_record::<OTHER_RECORD, _>(other, file, &mut matcher, ahead, build)?.is_err()
            {
                return Ok(Err(Full));
            }
        }
        for j in matcher.probe_inputs(others.len()) {
            let probe = |matcher: &mut SetMatcher, fingerprint, _: &[u8]| {
                unclaimed += u64::from(!matcher.probe(fingerprint));
                Ok(Ok(()))
            };
            // Probing needs no memory.
            let other = &part.others[j];
            let _ = for_each_record::<OTHER_RECORD, _>(other, file, &mut matcher, ahead, probe)?;
            matcher.end_round();
        }
        let decide = |matcher: &mut SetMatcher, fingerprint, rest: &[u8]| {
            let second = self.op == SetOp::SymDiff && self.is_second(rest);
            let Ok(decision) = matcher.decide(fingerprint, second)? else { return Ok(Err(Full)) };
            refused += u64::from(decision == Decision::Refused);
            if (decision == Decision::Kept) == (self.polarity == Polarity::Kept) {
                count += 1;
                add_position(writer.as_mut(), rest)?;
            }
            Ok(Ok(()))
        };
        let judged =
            for_each_record::<FIRST_RECORD, _>(&part.first, file, &mut matcher, ahead, decide)?;
        if judged.is_ok() {
            if build_side != BuildSide::First && self.op != SetOp::Dedup {
                unclaimed = matcher.unclaimed();
            }
            found.result.add(count, refused, unclaimed);
        }
        found.table = Some(matcher.into_table());
        Ok(judged)
    }

    /// [`join_in_memory`](Self::join_in_memory) for [`SetOp::DedupLast`].
    fn last_in_memory(
        &self,
        part: &Partition,
        memory: u64,
        found: &mut Found<'_>,
    ) -> Result<Result<(), Full>> {
        let Found { writer, last, ahead, result, .. } = found;
        let (first, file) = (&part.first, self.spill_file);
        let mut table = last.take().map_or_else(|| LastPositions::new(0, 0), Ok)?;
        table.renew(memory, first.bytes() / FIRST_RECORD as u64)?;
        let position = |rest: &[u8]| rest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let build = |table: &mut LastPositions, fingerprint, rest: &[u8]| {
            let position = position(rest).unwrap_or_default();
            Ok(table.entry(fingerprint, position)?.map(|(_, last)| *last = position))
        };
        let mut joined = for_each_record::<FIRST_RECORD, _>(first, file, &mut table, ahead, build)?;
        if joined.is_ok() {
            let decide = |table: &mut LastPositions, fingerprint, rest: &[u8]| {
                let is_last = table.get_mut(fingerprint).copied() == position(rest);
                if is_last == (self.polarity == Polarity::Kept) {
                    result.count += 1;
                    add_position(writer.as_mut(), rest)?;
                }
                Ok(Ok(()))
            };
            joined = for_each_record::<FIRST_RECORD, _>(first, file, &mut table, ahead, decide)?;
        }
        *last = Some(table);
        Ok(joined)
    }

    /// Returns whether the position of a record belongs to the second side of a symmetric difference.
    fn is_second(&self, position: &[u8]) -> bool {
        position.first_chunk().is_some_and(|bytes| u64::from_le_bytes(*bytes) >= self.boundary)
    }

    /// Divides a partition.
    fn divide(
        &self,
        part: Partition,
        partitioning: &Partitioning,
        memory: u64,
    ) -> Result<(Vec<Partition>, Partitioning)> {
        let partitioning = partitioning.deeper(SpillWriter::max_streams(memory).min(64));
        let first = self.divide_stream::<FIRST_RECORD>(part.first, &partitioning, memory)?;
        let mut parts: Vec<_> =
            first.into_iter().map(|first| Partition { first, others: Vec::new() }).collect();
        for other in part.others {
            let dealt = self.divide_stream::<OTHER_RECORD>(other, &partitioning, memory)?;
            parts.iter_mut().zip(dealt).for_each(|(part, other)| part.others.push(other));
        }
        Ok((parts, partitioning))
    }

    /// Divides the records of a stream among streams of the next level, all on disk.
    fn divide_stream<const SIZE: usize>(
        &self,
        stream: RecordStream,
        partitioning: &Partitioning,
        memory: u64,
    ) -> Result<Vec<RecordStream>> {
        let mut spill = SpillWriter::new(self.spill_file, partitioning.partitions(), memory / 2);
        stream.for_each_block(self.spill_file, |block| {
            block.as_chunks::<SIZE>().0.iter().try_for_each(|record| {
                let Some(fingerprint) = record.first_chunk() else { return Ok(()) };
                spill.push(partitioning.of(Fingerprint::from_bytes(fingerprint)), record)
            })
        })?;
        let mut streams = spill.finish();
        write_out(&mut streams, self.spill_file)?;
        Ok(streams)
    }
}

/// The results of a worker.
struct Found<'a> {
    writer: Option<PositionWriter<'a>>,
    result: JoinResult,
    /// The table of the partition before, for reuse.
    table: Option<Table>,
    last: Option<LastPositions>,
    ahead: Ahead<'a>,
}

/// The last position of each line.
type LastPositions = FingerprintMap<u64>;

/// What has an entry for each fingerprint.
pub(super) trait Entries {
    fn prefetch(&self, fingerprints: &[Fingerprint]);
}

impl Entries for SetMatcher {
    fn prefetch(&self, fingerprints: &[Fingerprint]) {
        self.prefetch(fingerprints);
    }
}

impl Entries for LastPositions {
    fn prefetch(&self, fingerprints: &[Fingerprint]) {
        self.prefetch(fingerprints);
    }
}

/// Number of fingerprints to prefetch at a time.
const PREFETCH_BATCH: usize = 32;

/// Calls `each` with the entries and each record of a stream until they are full.
pub(super) fn for_each_record<const SIZE: usize, E: Entries>(
    stream: &RecordStream,
    spill_file: &SpillFile,
    entries: &mut E,
    ahead: &mut Ahead<'_>,
    mut each: impl FnMut(&mut E, Fingerprint, &[u8]) -> Result<Result<(), Full>>,
) -> Result<Result<(), Full>> {
    let mut full = Ok(());
    stream.for_each_block(spill_file, |block| {
        if ahead.progress.cancelled() {
            return Err(Error::cancelled());
        }
        for records in block.as_chunks::<SIZE>().0.chunks(PREFETCH_BATCH) {
            let mut fingerprints = [Fingerprint::default(); PREFETCH_BATCH];
            for (fingerprint, record) in fingerprints.iter_mut().zip(records) {
                *fingerprint =
                    record.first_chunk().map(Fingerprint::from_bytes).unwrap_or_default();
            }
            let fingerprints = &fingerprints[..records.len()];
            entries.prefetch(fingerprints);
            for (&fingerprint, record) in fingerprints.iter().zip(records) {
                if full.is_ok() {
                    full = each(entries, fingerprint, &record[Fingerprint::BYTES..])?;
                }
            }
        }
        ahead.advance(block.len() as u64);
        Ok(())
    })?;
    Ok(full)
}

/// The bytes of records that have not been reported as done. Records that are read twice, because
/// their partition is divided, are reported once.
pub(super) struct Ahead<'a> {
    pub(super) bytes: u64,
    pub(super) progress: &'a dyn Progress,
}

impl Ahead<'_> {
    fn advance(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        if bytes > 0 {
            self.progress.advance(bytes);
        }
    }
}

/// Adds the position of a record of the first input.
#[inline]
fn add_position(writer: Option<&mut PositionWriter<'_>>, position: &[u8]) -> Result<()> {
    match (writer, position.first_chunk()) {
        (Some(writer), Some(bytes)) => writer.push(u64::from_le_bytes(*bytes)),
        _ => Ok(()),
    }
}

/// Chooses the build side and estimates the entries of the table, from the number of lines of the
/// first input and of each other input, and the capacity of the table.
pub(super) fn choose_build_side(
    op: SetOp,
    first: u64,
    others: &[u64],
    capacity: u64,
) -> (BuildSide, u64) {
    let all = others.iter().sum::<u64>();
    match op {
        SetOp::Common => match others.iter().enumerate().min_by_key(|(_, lines)| **lines) {
            Some((smallest, &lines)) if lines <= first => (BuildSide::Others(smallest), lines),
            _ => (BuildSide::First, first),
        },
        SetOp::Diff | SetOp::Dedup if all == 0 || all + first <= capacity => {
            (BuildSide::Others(0), all + first)
        }
        _ => (BuildSide::First, first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setops::exact::records::encode_first_record;
    use crate::setops::positions::PositionSet;
    use crate::temp::TempDir;

    fn fingerprint(line: u64) -> Fingerprint {
        // Evenly spread high halves, as in keyed fingerprints.
        let mix = |x: u64| {
            let x = (x ^ x >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x ^ x >> 29
        };
        Fingerprint { high: mix(line + 1), low: mix(line + 1_000_003) }
    }

    /// Dividing partitions must not change the listed positions.
    #[test]
    fn positions_are_the_same_for_any_memory_and_partitioning() {
        let dir = tempfile::tempdir().unwrap();
        let lines = |seed: u64, count: u64, of: u64| {
            (0..count).map(move |i| fingerprint((i * 7 + seed).wrapping_mul(i + seed) % of))
        };
        let first: Vec<_> = lines(1, 9000, 5000).collect();
        let others = [lines(2, 7000, 4000).collect::<Vec<_>>(), lines(3, 6000, 4500).collect()];
        for op in [SetOp::Common, SetOp::Diff, SetOp::Dedup] {
            for polarity in [Polarity::Kept, Polarity::Dropped] {
                let mut answers = Vec::new();
                for (memory, partitions, workers) in
                    [(1 << 24, 1, 1), (1 << 24, 5, 2), (60_000, 3, 1), (9000, 1, 3), (20_000, 7, 2)]
                {
                    let spill_file = SpillFile::new(&TempDir::new(dir.path())).unwrap();
                    let partitioning = Partitioning::new(partitions);
                    let count = partitioning.partitions();
                    let mut spill = SpillWriter::new(&spill_file, count, memory / 4);
                    for (at, &fingerprint) in first.iter().enumerate() {
                        let record = encode_first_record(fingerprint, at as u64);
                        spill.push(partitioning.of(fingerprint), &record).unwrap();
                    }
                    let streams = spill.finish();
                    let mut parts: Vec<_> = streams
                        .into_iter()
                        .map(|first| Partition { first, others: vec![] })
                        .collect();
                    for other in others.iter().filter(|_| op != SetOp::Dedup) {
                        let mut spill = SpillWriter::new(&spill_file, count, memory / 4);
                        for &fingerprint in other {
                            spill
                                .push(partitioning.of(fingerprint), &fingerprint.to_bytes())
                                .unwrap();
                        }
                        let streams = spill.finish();
                        parts.iter_mut().zip(streams).for_each(|(p, s)| p.others.push(s));
                    }
                    let spans = Spans::new(first.len() as u64, 3);
                    let join = PartitionJoin {
                        op,
                        polarity,
                        boundary: 0,
                        spans: Some(spans),
                        spill_file: &spill_file,
                        memory,
                        workers,
                        progress: &(),
                    };
                    let result = join.join(parts, &partitioning).unwrap();
                    let found = result.count;
                    let set =
                        PositionSet::new(spans, result.positions, &spill_file, memory, workers);
                    let positions: Vec<_> = set.within(0, first.len() as u64).unwrap().collect();
                    assert_eq!(positions.len() as u64, found);
                    answers.push(positions);
                }
                assert!(!answers[0].is_empty());
                assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{op:?} {polarity:?}");
            }
        }
    }
}
