//! Counting the records of partitions.
//!
//! All records of a fingerprint are in one partition, in input order, so the first one has the
//! position at which the line occurs first. A partition whose distinct fingerprints do not fit in
//! memory is divided by further digits of the fingerprint.

use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::fingerprint::{Fingerprint, FingerprintMap};
use crate::progress::Progress;
use crate::setops::{FIRST_RECORD, Partitioning, Spans};
use crate::temp::{RecordStream, SpillFile, SpillWriter, write_out};
use crate::workers;

use super::positions::{COUNTED_RECORD, encode};
use super::top::TopCounts;

/// Number of appearances of a line, and the position of the first.
#[derive(Clone, Copy, Default)]
pub(super) struct Counted {
    position: u64,
    count: u64,
}

/// Counts the records of partitions.
pub(super) struct PartitionCounter<'a> {
    pub(super) spill_file: &'a SpillFile,
    /// Spans of the positions.
    pub(super) spans: Spans,
    /// Memory for all workers together.
    pub(super) memory: u64,
    pub(super) workers: usize,
    /// Leave out lines that occur less often.
    pub(super) min_count: u64,
    /// The counts of the most frequent lines so far.
    pub(super) top: Mutex<TopCounts>,
    pub(super) progress: &'a dyn Progress,
}

impl<'a> PartitionCounter<'a> {
    /// Counts all partitions. Returns a stream for each span from each worker.
    pub(super) fn count(
        &self,
        parts: Vec<RecordStream>,
        partitioning: &Partitioning,
    ) -> Result<Vec<Vec<RecordStream>>> {
        let bytes = parts.iter().map(RecordStream::bytes).sum();
        self.progress.phase("counting", Some(bytes));
        let workers = self.workers.min(parts.len()).max(1);
        let memory = self.memory / workers as u64;
        let parts = Mutex::new(parts.into_iter());
        let work = || {
            let mut spill = SpillWriter::new(self.spill_file, self.spans.count(), memory / 4);
            loop {
                let part = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(part) = part else { break };
                let bytes = part.bytes();
                self.part(part, partitioning, memory / 4 * 3, &mut spill)?;
                self.progress.advance(bytes);
            }
            Ok(spill.finish())
        };
        workers::run(workers, work).into_iter().collect()
    }

    fn part(
        &self,
        part: RecordStream,
        partitioning: &Partitioning,
        memory: u64,
        spill: &mut SpillWriter<'a>,
    ) -> Result<()> {
        let mut table = FingerprintMap::<Counted>::new(memory, 0)?;
        let mut fits = true;
        part.for_each_block(self.spill_file, |block| {
            if self.progress.cancelled() {
                return Err(Error::cancelled());
            }
            for record in block.as_chunks::<FIRST_RECORD>().0 {
                if !fits {
                    break;
                }
                let (fingerprint, position) = decode(record);
                match table.entry(fingerprint, Counted { position, count: 0 })? {
                    Ok((_, counted)) => counted.count += 1,
                    Err(_) => fits = false,
                }
            }
            Ok(())
        })?;
        if fits {
            let mut top = self.top.lock().unwrap_or_else(PoisonError::into_inner);
            top.extend(table.iter().map(|(_, counted)| counted.count));
            let min_count = self.min_count.max(top.least());
            drop(top);
            let counted = table.iter().filter(|(_, counted)| counted.count >= min_count);
            return counted.into_iter().try_for_each(|(_, Counted { position, count })| {
                spill.push(self.spans.span_of(position), &encode(position, count))
            });
        }
        drop(table);
        let (parts, partitioning) = self.divide(part, partitioning, memory)?;
        parts.into_iter().try_for_each(|part| self.part(part, &partitioning, memory, spill))
    }

    /// Divides a partition into parts on disk.
    fn divide(
        &self,
        part: RecordStream,
        partitioning: &Partitioning,
        memory: u64,
    ) -> Result<(Vec<RecordStream>, Partitioning)> {
        let partitioning = partitioning.deeper(SpillWriter::max_streams(memory).min(64));
        let mut spill = SpillWriter::new(self.spill_file, partitioning.partitions(), memory / 2);
        part.for_each_block(self.spill_file, |block| {
            block
                .as_chunks::<FIRST_RECORD>()
                .0
                .iter()
                .try_for_each(|record| spill.push(partitioning.of(decode(record).0), record))
        })?;
        let mut parts = spill.finish();
        write_out(&mut parts, self.spill_file)?;
        Ok((parts, partitioning))
    }
}

/// Returns the fingerprint and the position of a record.
fn decode(record: &[u8; FIRST_RECORD]) -> (Fingerprint, u64) {
    let fingerprint = record.first_chunk().map(Fingerprint::from_bytes).unwrap_or_default();
    let position = record.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    (fingerprint, position)
}

const _: () = assert!(COUNTED_RECORD == 2 * size_of::<u64>());
