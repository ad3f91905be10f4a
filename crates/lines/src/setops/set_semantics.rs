//! The set operations, defined on fingerprints.
//!
//! A [`SetMatcher`] gets the fingerprints of all inputs in a fixed order of *rounds* and then decides
//! for each line of the first input, in order, whether it belongs to the result. The fingerprints may
//! come from lines as they are read or from the records of a partition. The positions of lines, which
//! [`SetOp::DedupLast`] compares, are in records only: there it has no matcher.
//!
//! | operation | build side | then probed with | a line of the first input is kept if |
//! |---|---|---|---|
//! | common | the smaller of the first input and the smallest other | the remaining others, one after the other | it was in every round and is not repeated |
//! | diff | all others | nothing | it is absent and not repeated |
//! | diff, if only the first input fits | the first input | all others | it was never probed and is not repeated |
//! | dedup | nothing | nothing | it is not repeated |
//! | at least K | the first input | all others, one after the other | it was in at least K rounds and is not repeated |
//! | symdiff | both inputs, taken as one first input | nothing | it is in one of both only and is not repeated |
//! | symdiff | lines of the second side: all that the first one has, and all repeated ones | nothing | it is in one of both only and is not repeated |
//! | duplicates, unique | the first input | nothing | it occurs at least twice and is not repeated; exactly once |
//!
//! Invariant: decisions depend only on the sequence of fingerprints. They are the same for any
//! partitioning, because all records of a fingerprint are in one partition, in order.
//!
//! Cost: [`Table::BYTES_PER_ENTRY`] for each distinct fingerprint of the build side; for `diff` and
//! `dedup` built from the others, of the others and the first input together.

use crate::error::Result;
use crate::fingerprint::{Fingerprint, Full, Table};

/// A set operation on lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// The distinct lines of the first input that occur in every other.
    Common,
    /// The distinct lines of the first input that occur in at least this number of the others, at most
    /// [`SetOp::MAX_AT_LEAST`] unless it is the number of the others.
    AtLeast(u8),
    /// The distinct lines of the first input that occur in no other.
    Diff,
    /// The distinct lines that occur in exactly one of the first input and the others, which are taken
    /// as one input: those of the first input in its order, then those of the others.
    SymDiff,
    /// The distinct lines of all inputs.
    Dedup,
    /// The distinct lines of all inputs, each where it occurs last.
    DedupLast,
    /// The distinct lines that occur at least twice in all inputs together.
    Duplicates,
    /// The lines that occur exactly once in all inputs together.
    Unique,
}

impl SetOp {
    /// The largest number of [`SetOp::AtLeast`], so that the rounds of a line fit a byte.
    pub const MAX_AT_LEAST: u8 = 126;

    /// Returns the operation for this number of other inputs: without any, `Common` and `Diff` are
    /// `Dedup`; at least all of them is `Common`.
    pub(crate) fn with_others(self, others: usize) -> Self {
        match self {
            Self::Common | Self::Diff if others == 0 => Self::Dedup,
            Self::AtLeast(0) => Self::Dedup,
            Self::AtLeast(number) if usize::from(number) == others => Self::Common,
            op => op,
        }
    }

    /// Returns whether the operation compares the first input with others.
    pub(crate) fn takes_others(self) -> bool {
        matches!(self, Self::Common | Self::Diff | Self::AtLeast(_) | Self::SymDiff)
    }

    /// Returns whether the lines of all inputs are printed.
    pub(crate) fn prints_others(self) -> bool {
        self == Self::SymDiff
    }

    /// Returns whether it matters which of the others has a line.
    pub(crate) fn separates_others(self) -> bool {
        matches!(self, Self::Common | Self::AtLeast(_))
    }

    /// Returns whether the candidates of the first input cannot be decided while it is read once.
    pub(crate) fn needs_records(self) -> bool {
        matches!(self, Self::DedupLast | Self::Duplicates | Self::Unique)
    }

    /// Returns whether the first input is always the build side, and so read twice.
    pub(crate) fn needs_whole_first(self) -> bool {
        matches!(
            self,
            Self::DedupLast | Self::Duplicates | Self::Unique | Self::AtLeast(_) | Self::SymDiff
        )
    }
}

/// The input that is inserted into the table first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuildSide {
    /// For `common` the other input with this index, for `diff` all others.
    Others(usize),
    /// The first input, which is then read twice.
    First,
}

/// Present in every round so far. Rounds are numbered 0, 1, 0, 1, …; entries that missed a round are
/// marked `OUT` before the next, so two values suffice.
const ALIVE: [u8; 2] = [0, 1];
/// Already decided: kept, or for `diff` in the others.
const DONE: u8 = 2;
/// Absent in a round; for `diff`: in the others.
const OUT: u8 = 3;
/// For `AtLeast`: present in this round, and one earlier or present round. A state is at most
/// `MAX_AT_LEAST * ROUND + IN_ROUND`.
const IN_ROUND: u8 = 1;
const ROUND: u8 = 2;
/// For `AtLeast`: already kept.
const COUNTED: u8 = u8::MAX;
/// For `SymDiff`: bits of the first and the second side; already kept.
const SIDES: [u8; 2] = [1, 2];
const PRINTED: u8 = 4;
/// For `Duplicates` and `Unique`: number of lines of the first input with the fingerprint.
const ONCE: u8 = ALIVE[0];
const TWICE: u8 = ALIVE[1];

/// The decision about a line of the first input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The line belongs to the result.
    Kept,
    /// An equal line has been decided before.
    Repeated,
    /// The line is not in the other inputs of `common`, in one of `diff`, or not as frequent as the
    /// operation requires.
    Refused,
}

/// Decides which lines of the first input belong to the result.
pub(super) struct SetMatcher {
    op: SetOp,
    build_side: BuildSide,
    table: Table,
    round: usize,
}

impl SetMatcher {
    pub(super) fn new(op: SetOp, build_side: BuildSide, table: Table) -> Self {
        Self { op, build_side, table, round: 0 }
    }

    /// Returns whether the first input is the build side.
    pub(super) fn builds_first(&self) -> bool {
        self.build_side == BuildSide::First
    }

    /// Returns the indices of the other inputs on the build side, in order.
    pub(super) fn build_inputs(&self, others: usize) -> Vec<usize> {
        match (self.build_side, self.op) {
            (BuildSide::First, _) => vec![],
            (BuildSide::Others(one), SetOp::Common) => vec![one],
            (BuildSide::Others(_), _) => (0..others).collect(),
        }
    }

    /// Returns the indices of the other inputs to probe with afterwards, in order.
    pub(super) fn probe_inputs(&self, others: usize) -> Vec<usize> {
        let build_inputs = self.build_inputs(others);
        (0..others).filter(|j| build_inputs.binary_search(j).is_err()).collect()
    }

    /// Prefetches the entries of fingerprints, a few dozen at a time.
    #[inline]
    pub(super) fn prefetch(&self, fingerprints: &[Fingerprint]) {
        self.table.prefetch(fingerprints);
    }

    /// In a loop over fingerprints, at index `at`: prefetches the entry of a later one.
    #[inline]
    pub(super) fn prefetch_ahead(&self, fingerprints: &[Fingerprint], at: usize) {
        self.table.prefetch_ahead(fingerprints, at);
    }

    /// Inserts a fingerprint of both inputs of a symmetric difference; `second`: of the second.
    #[inline]
    pub(super) fn build_of_side(
        &mut self,
        fingerprint: Fingerprint,
        second: bool,
    ) -> Result<Result<(), Full>> {
        let entry = self.table.entry(fingerprint, 0)?;
        Ok(entry.map(|(_, state)| *state |= SIDES[usize::from(second)]))
    }

    /// Inserts a fingerprint of the build side.
    #[inline]
    pub(super) fn build(&mut self, fingerprint: Fingerprint) -> Result<Result<(), Full>> {
        let fresh = match (self.build_side, self.op) {
            (BuildSide::Others(_), SetOp::Diff | SetOp::Dedup) => OUT,
            _ => ALIVE[0],
        };
        let repeats = matches!(self.op, SetOp::Duplicates | SetOp::Unique);
        Ok(self.table.entry(fingerprint, fresh)?.map(|(new, state)| {
            if repeats && !new {
                *state = TWICE;
            }
        }))
    }

    /// Inserts fingerprints of other inputs on the build side until the table is full; for a symmetric
    /// difference, of its second side. Returns the number of those inserted.
    pub(super) fn build_others(&mut self, fingerprints: &[Fingerprint]) -> Result<usize> {
        for (at, &fingerprint) in fingerprints.iter().enumerate() {
            self.prefetch_ahead(fingerprints, at);
            if self.build_other(fingerprint)?.is_err() {
                return Ok(at);
            }
        }
        Ok(fingerprints.len())
    }

    /// [`build_others`](Self::build_others) for one.
    #[inline]
    pub(super) fn build_other(&mut self, fingerprint: Fingerprint) -> Result<Result<(), Full>> {
        match self.op {
            SetOp::SymDiff => self.build_of_side(fingerprint, true),
            _ => self.build(fingerprint),
        }
    }

    /// Changes the memory limit of the table.
    pub(super) fn set_allowance(&mut self, allowance: u64) {
        self.table.set_allowance(allowance);
    }

    /// Returns the number of entries that the table can have when it has grown.
    pub(super) fn capacity(&self) -> u64 {
        self.table.final_capacity()
    }

    /// Returns the memory of the table.
    pub(super) fn memory_usage(&self) -> u64 {
        self.table.memory_usage()
    }

    /// Probes with a fingerprint of the current round. Returns whether the build side has it.
    #[inline]
    pub(super) fn probe(&mut self, fingerprint: Fingerprint) -> bool {
        let state = self.table.get_mut(fingerprint);
        let there = state.is_some();
        if let Some(state) = state {
            match self.op {
                SetOp::Common if *state == ALIVE[self.round] => *state = ALIVE[1 - self.round],
                SetOp::Common => {}
                SetOp::AtLeast(number) => {
                    if *state & IN_ROUND == 0 && *state / ROUND < number {
                        *state += ROUND | IN_ROUND;
                    }
                }
                _ => *state = OUT,
            }
        }
        there
    }

    /// Ends the round of one probing input.
    pub(super) fn end_round(&mut self) {
        if let SetOp::AtLeast(_) = self.op {
            self.table.for_each_state(|state| *state &= !IN_ROUND);
        }
        if self.op == SetOp::Common {
            let missed = ALIVE[self.round];
            self.round = 1 - self.round;
            self.table.for_each_state(|state| {
                if *state == missed {
                    *state = OUT;
                }
            });
        }
    }

    /// Decides about the next line of the first input. `second`: of the second side of a symmetric
    /// difference. If its candidates are on the build side, the first side need not be, and a line that
    /// is not in the table is in one of both only.
    #[inline]
    pub(super) fn decide(
        &mut self,
        fingerprint: Fingerprint,
        second: bool,
    ) -> Result<Result<Decision, Full>> {
        if let SetOp::AtLeast(number) = self.op {
            return Ok(Ok(match self.table.get_mut(fingerprint) {
                Some(&mut COUNTED) => Decision::Repeated,
                Some(state) if *state / ROUND >= number => {
                    *state = COUNTED;
                    Decision::Kept
                }
                _ => Decision::Refused,
            }));
        }
        if self.op == SetOp::SymDiff {
            let only = SIDES[usize::from(second)];
            let state = if second || self.build_side == BuildSide::First {
                self.table.get_mut(fingerprint)
            } else {
                match self.table.entry(fingerprint, 0)? {
                    Ok((_, state)) => {
                        *state |= only;
                        Some(state)
                    }
                    Err(full) => return Ok(Err(full)),
                }
            };
            return Ok(Ok(match state {
                None if self.build_side != BuildSide::First => Decision::Kept,
                Some(state) if *state == only => {
                    *state = PRINTED;
                    Decision::Kept
                }
                _ => Decision::Repeated,
            }));
        }
        let alive = match self.op {
            SetOp::Duplicates => TWICE,
            SetOp::Unique => ONCE,
            _ => ALIVE[self.round],
        };
        let grows = self.op != SetOp::Common && self.build_side != BuildSide::First;
        let state = match grows {
            true => match self.table.entry(fingerprint, alive)? {
                Ok((_, state)) => Some(state),
                Err(full) => return Ok(Err(full)),
            },
            false => self.table.get_mut(fingerprint),
        };
        Ok(Ok(match state {
            Some(state) if *state == alive => {
                *state = DONE;
                Decision::Kept
            }
            Some(&mut DONE) => Decision::Repeated,
            Some(state) if self.op == SetOp::Diff => {
                *state = DONE;
                Decision::Refused
            }
            _ => Decision::Refused,
        }))
    }

    /// Returns the number of fingerprints of the build side that the first input does not have. For
    /// `common` and `diff` built from others, after the last decision.
    pub(super) fn unclaimed(&self) -> u64 {
        self.table.iter().filter(|(_, state)| *state != DONE).count() as u64
    }

    /// Returns the table. After the first decision of a `diff` or `dedup` built from the others, it
    /// contains the lines that no later line may repeat.
    pub(super) fn into_table(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(i: u8) -> Fingerprint {
        Fingerprint { high: u64::from(i), low: u64::from(i) << 56 | 1 }
    }

    /// Runs a matcher over small inputs; returns the answer as positions in the first input.
    fn matcher(op: SetOp, build_side: BuildSide, first: &[u8], others: &[&[u8]]) -> Vec<usize> {
        let mut matcher = SetMatcher::new(op, build_side, Table::new(1 << 20, 0).unwrap());
        let show = |matcher: &mut SetMatcher, lines: &[u8]| {
            lines.iter().for_each(|&i| matcher.build(fingerprint(i)).unwrap().unwrap());
        };
        if build_side == BuildSide::First {
            show(&mut matcher, first);
        }
        for j in matcher.build_inputs(others.len()) {
            show(&mut matcher, others[j]);
        }
        for j in matcher.probe_inputs(others.len()) {
            others[j].iter().for_each(|&i| {
                matcher.probe(fingerprint(i));
            });
            matcher.end_round();
        }
        let verdicts =
            first.iter().map(|&i| matcher.decide(fingerprint(i), false).unwrap().unwrap());
        verdicts
            .enumerate()
            .filter(|(_, verdict)| *verdict == Decision::Kept)
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn common_keeps_first_occurrences_that_are_in_every_other() {
        let first = [5, 1, 2, 1, 3, 5, 4];
        let others: [&[u8]; 4] = [&[1, 2, 3, 4, 4], &[4, 3, 1, 9], &[1, 4, 7, 3], &[4, 1, 1]];
        for build_side in
            [BuildSide::First, BuildSide::Others(0), BuildSide::Others(1), BuildSide::Others(3)]
        {
            assert_eq!(
                matcher(SetOp::Common, build_side, &first, &others),
                [1, 6],
                "{build_side:?}"
            );
        }
        assert_eq!(matcher(SetOp::Common, BuildSide::First, &first, &[]), [0, 1, 2, 4, 6]);
    }

    #[test]
    fn at_least_counts_each_other_once() {
        let first = [5, 1, 2, 1, 3, 5, 4];
        let others: [&[u8]; 3] = [&[1, 2, 2, 2, 4], &[4, 3, 1, 9], &[1, 4, 7, 3, 1]];
        let kept = |number| matcher(SetOp::AtLeast(number), BuildSide::First, &first, &others);
        assert_eq!([kept(1), kept(2), kept(3)], [vec![1, 2, 4, 6], vec![1, 4, 6], vec![1, 6]]);
        assert_eq!(kept(4), [0; 0]);
        // The largest number fits a state.
        let many = [&[1u8, 1][..]; 200];
        let max = SetOp::AtLeast(SetOp::MAX_AT_LEAST);
        assert_eq!(matcher(max, BuildSide::First, &first, &many), [1]);
        assert_eq!(matcher(max, BuildSide::First, &first, &many[..125]), [0; 0]);
    }

    #[test]
    fn diff_keeps_first_occurrences_that_are_in_no_other() {
        let first = [5, 1, 2, 1, 3, 5, 4];
        let others: [&[u8]; 3] = [&[1, 2], &[9, 2], &[4]];
        for build_side in [BuildSide::First, BuildSide::Others(0)] {
            assert_eq!(matcher(SetOp::Diff, build_side, &first, &others), [0, 4], "{build_side:?}");
        }
    }

    #[test]
    fn duplicates_and_unique_divide_the_distinct_lines_by_their_counts() {
        let first = [3, 4, 1, 3, 2, 1, 3];
        assert_eq!(matcher(SetOp::Duplicates, BuildSide::First, &first, &[]), [0, 2]);
        assert_eq!(matcher(SetOp::Unique, BuildSide::First, &first, &[]), [1, 4]);
    }

    #[test]
    fn dedup_keeps_first_occurrences() {
        assert_eq!(
            matcher(SetOp::Dedup, BuildSide::Others(0), &[3, 3, 1, 3, 2, 1], &[]),
            [0, 2, 4]
        );
    }
}
