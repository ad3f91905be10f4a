//! What the verbs mean, decided on fingerprints: the one place that knows.
//!
//! A judge is shown fingerprints in a fixed order of *rounds* and then says of each line of the
//! first input, in its order, whether it belongs in the answer. It does not care where the
//! fingerprints come from: lines as they are read, or records of one partition.
//!
//! | verb | seeded with | then marked by | verdict on a line of the first input |
//! |---|---|---|---|
//! | common | the smaller of first input and smallest other | the remaining others, in turn | in every round, not seen before |
//! | diff | all others | nobody | not there, not seen before |
//! | diff, when only the first input fits | first input | all others | never marked, not seen before |
//! | dedup | nothing | nobody | not seen before |
//!
//! Invariant: verdicts depend on the sequence of fingerprints alone, so they are the same for
//! any partitioning (all records of a fingerprint go to one partition, in order).
//!
//! Cost: [`Table::BYTES_PER_ENTRY`] for each distinct fingerprint of the seed (of `diff` and
//! `dedup` seeded with the others: of others and first input together).

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::table::{Full, Table};

/// Which set operation on lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The distinct lines of the first input that occur in every other.
    Common,
    /// The distinct lines of the first input that occur in no other.
    Diff,
    /// The distinct lines of all inputs.
    Dedup,
}

impl Verb {
    /// The verb when there are so many other inputs: compared with nothing, all are `Dedup`.
    pub(crate) fn with_others(self, others: usize) -> Self {
        if others == 0 { Self::Dedup } else { self }
    }
}

/// Whose fingerprints fill the table first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seed {
    /// The others: for `common` the one with this index, for `diff` all of them.
    Others(usize),
    /// The first input, which is then gone through twice.
    First,
}

/// How many fingerprints a judge is told to expect at a time.
pub(crate) const EXPECTED: usize = 32;

/// In the answer unless already given: seen in every round so far. Rounds count 0, 1, 0, 1, …;
/// what missed a round is struck out before the next, so two values suffice.
const ALIVE: [u8; 2] = [0, 1];
/// Already given, or, of `diff` and `dedup`, in the others.
const DONE: u8 = 2;
/// Missed a round.
const OUT: u8 = 3;

/// What is said of a line of the first input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// In the answer.
    Kept,
    /// In the answer already; of `diff` and `dedup`, or in the others.
    Repeated,
    /// Of `common`: not in all of the others.
    Refused,
}

/// Says which lines of the first input are in the answer.
pub(crate) struct Judge {
    verb: Verb,
    seed: Seed,
    table: Table,
    round: usize,
}

impl Judge {
    pub(crate) fn new(verb: Verb, seed: Seed, table: Table) -> Self {
        Self { verb, seed, table, round: 0 }
    }

    /// Which others seed, in order.
    pub(crate) fn seeders(&self, others: usize) -> Vec<usize> {
        match (self.seed, self.verb) {
            (Seed::First, _) => vec![],
            (Seed::Others(one), Verb::Common) => vec![one],
            (Seed::Others(_), _) => (0..others).collect(),
        }
    }

    /// Which others mark after that, in order.
    pub(crate) fn markers(&self, others: usize) -> Vec<usize> {
        let seeders = self.seeders(others);
        (0..others).filter(|j| !seeders.contains(j)).collect()
    }

    /// Says that these fingerprints come next; only to be quicker. A few dozen at a time.
    #[inline]
    pub(crate) fn expect(&self, prints: &[Fingerprint]) {
        self.table.touch(prints);
    }

    /// Shows a fingerprint of the seed.
    #[inline]
    pub(crate) fn seed(&mut self, print: Fingerprint) -> Result<Result<(), Full>> {
        let fresh = match (self.seed, self.verb) {
            (Seed::Others(_), Verb::Diff | Verb::Dedup) => DONE,
            _ => ALIVE[0],
        };
        Ok(self.table.entry(print, fresh)?.map(|_| ()))
    }

    /// Shows a fingerprint of the input whose round it is; whether the seed has it.
    #[inline]
    pub(crate) fn mark(&mut self, print: Fingerprint) -> bool {
        let state = self.table.get_mut(print);
        let there = state.is_some();
        if let Some(state) = state {
            match self.verb {
                Verb::Common if *state == ALIVE[self.round] => *state = ALIVE[1 - self.round],
                Verb::Common => {}
                Verb::Diff | Verb::Dedup => *state = DONE,
            }
        }
        there
    }

    /// Ends the round of one marking input.
    pub(crate) fn end_round(&mut self) {
        if self.verb == Verb::Common {
            let missed = ALIVE[self.round];
            self.round = 1 - self.round;
            self.table.for_each_state(|state| {
                if *state == missed {
                    *state = OUT;
                }
            });
        }
    }

    /// Says whether the next line of the first input is in the answer.
    #[inline]
    pub(crate) fn verdict(&mut self, print: Fingerprint) -> Result<Result<Verdict, Full>> {
        let alive = ALIVE[self.round];
        if self.verb == Verb::Common || self.seed == Seed::First {
            let state = self.table.get_mut(print);
            return Ok(Ok(match state.map(|state| (*state, state)) {
                Some((before, state)) if before == alive => {
                    *state = DONE;
                    Verdict::Kept
                }
                Some((DONE, _)) => Verdict::Repeated,
                _ => Verdict::Refused,
            }));
        }
        let new = self.table.entry(print, DONE)?;
        Ok(new.map(|(new, _)| if new { Verdict::Kept } else { Verdict::Repeated }))
    }

    /// After the last verdict on a `common` seeded with an other: how many of its fingerprints
    /// the first input does not have.
    pub(crate) fn unclaimed(&self) -> u64 {
        self.table.iter().filter(|(_, state)| *state != DONE).count() as u64
    }

    /// The fingerprints shown or given so far. Once verdicts have begun on a `diff` or `dedup`
    /// seeded with the others, these are the lines that no later line may repeat.
    pub(crate) fn into_table(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(i: u8) -> Fingerprint {
        Fingerprint { high: u64::from(i), low: u64::from(i) << 56 | 1 }
    }

    /// Runs a judge over small inputs; the answer as positions in the first input.
    fn judge(verb: Verb, seed: Seed, first: &[u8], others: &[&[u8]]) -> Vec<usize> {
        let mut judge = Judge::new(verb, seed, Table::new(1 << 20, 0).unwrap());
        let show = |judge: &mut Judge, lines: &[u8]| {
            lines.iter().for_each(|&i| judge.seed(print(i)).unwrap().unwrap());
        };
        if seed == Seed::First {
            show(&mut judge, first);
        }
        for j in judge.seeders(others.len()) {
            show(&mut judge, others[j]);
        }
        for j in judge.markers(others.len()) {
            others[j].iter().for_each(|&i| {
                judge.mark(print(i));
            });
            judge.end_round();
        }
        let verdicts = first.iter().map(|&i| judge.verdict(print(i)).unwrap().unwrap());
        verdicts
            .enumerate()
            .filter(|(_, verdict)| *verdict == Verdict::Kept)
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn common_takes_first_appearances_that_are_in_every_other() {
        let first = [5, 1, 2, 1, 3, 5, 4];
        let others: [&[u8]; 4] = [&[1, 2, 3, 4, 4], &[4, 3, 1, 9], &[1, 4, 7, 3], &[4, 1, 1]];
        for seed in [Seed::First, Seed::Others(0), Seed::Others(1), Seed::Others(3)] {
            assert_eq!(judge(Verb::Common, seed, &first, &others), [1, 6], "{seed:?}");
        }
        assert_eq!(judge(Verb::Common, Seed::First, &first, &[]), [0, 1, 2, 4, 6]);
    }

    #[test]
    fn diff_takes_first_appearances_that_are_in_no_other() {
        let first = [5, 1, 2, 1, 3, 5, 4];
        let others: [&[u8]; 3] = [&[1, 2], &[9, 2], &[4]];
        for seed in [Seed::First, Seed::Others(0)] {
            assert_eq!(judge(Verb::Diff, seed, &first, &others), [0, 4], "{seed:?}");
        }
    }

    #[test]
    fn dedup_takes_first_appearances() {
        assert_eq!(judge(Verb::Dedup, Seed::Others(0), &[3, 3, 1, 3, 2, 1], &[]), [0, 2, 4]);
    }
}
