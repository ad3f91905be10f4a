//! The numbers of a job: lines and distinct lines of its inputs, the lines that they share, and the
//! lines of its result, all with bounds.

use super::interval::Interval;
use crate::setops::set_semantics::SetOp;

/// The lines of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InputCounts {
    pub(crate) bytes: Interval,
    pub(crate) lines: Interval,
    pub(crate) distinct: Interval,
}

impl InputCounts {
    /// Returns the lines that `distinct` of the distinct lines occupy, about `value`: each of them at
    /// least one, and each of the others at least one.
    pub(crate) fn rows_of(&self, distinct: Interval, value: f64) -> Interval {
        let upper = self.lines.upper - (self.distinct.lower - distinct.upper).max(0.0);
        Interval::new(value, distinct.lower, if distinct.upper > 0.0 { upper } else { 0.0 })
    }
}

/// The numbers from which those of a job are derived.
#[derive(Clone, Debug)]
pub(crate) struct BaseCounts {
    /// The first input, then the others.
    pub(crate) inputs: Vec<InputCounts>,
    /// For each other input, the distinct lines that it shares with the first one.
    pub(crate) shared: Vec<Interval>,
}

impl BaseCounts {
    /// The numbers of this number of inputs about which nothing is known.
    pub(crate) fn unknown(inputs: usize) -> Self {
        let unknown = Interval::new(0.0, 0.0, f64::INFINITY);
        let input = InputCounts { bytes: unknown, lines: unknown, distinct: unknown };
        Self { inputs: vec![input; inputs], shared: vec![unknown; inputs.saturating_sub(1)] }
    }

    /// Derives the numbers of a symmetric difference whose sides are one input. Every line beyond the
    /// distinct ones may be the other side's copy of a line.
    pub(crate) fn derive_joined_sides(self) -> JobCounts {
        let counts = self.derive(SetOp::Dedup);
        let InputCounts { lines, distinct, .. } = counts.first;
        let value = 2.0 * distinct.value - lines.value;
        JobCounts { result: Interval::new(value, 0.0, f64::INFINITY), ..counts }
    }

    /// Derives the numbers of a job. The inputs of a symmetric difference are its sides.
    pub(crate) fn derive(self, op: SetOp) -> JobCounts {
        let mut inputs = self.inputs.into_iter();
        let first = inputs.next().unwrap_or_default();
        JobCounts::new(op, first, inputs.collect(), self.shared)
    }
}

/// The numbers of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobCounts {
    pub(crate) first: InputCounts,
    pub(crate) others: Vec<InputCounts>,
    /// For each other input, the distinct lines that it shares with the first one.
    pub(crate) shared: Vec<Interval>,
    /// For each other input, the lines of the first one that it has, repeats included, and its own
    /// lines that the first one has.
    pub(crate) rows: Vec<[Interval; 2]>,
    /// The lines of the result.
    pub(crate) result: Interval,
}

impl JobCounts {
    /// Returns whether the numbers of all inputs have upper bounds.
    pub(crate) fn are_bounded(&self) -> bool {
        let mut inputs = [&self.first].into_iter().chain(&self.others);
        inputs.all(|input| input.distinct.upper.is_finite())
    }

    /// Derives the lines of the result from those of the inputs. Of a symmetric difference, `first` is
    /// the first side, and the second one is the only one of `others`; in the value they are one first
    /// input, as in the job.
    fn new(op: SetOp, first: InputCounts, others: Vec<InputCounts>, shared: Vec<Interval>) -> Self {
        let result = result(op, &first, &others, &shared);
        let rows = |(other, shared): (&InputCounts, &Interval)| {
            [first, *other].map(|input| {
                let repeats = input.lines.value / input.distinct.value.max(1.0);
                input.rows_of(*shared, shared.value * repeats)
            })
        };
        let rows = others.iter().zip(&shared).map(rows).collect();
        Self { first, others, shared, rows, result }.with_joined_sides(op)
    }

    /// Joins the sides of a symmetric difference.
    fn with_joined_sides(self, op: SetOp) -> Self {
        match (op, &self.others[..], &self.shared[..]) {
            (SetOp::SymDiff, [second], [shared]) => {
                let first = InputCounts {
                    bytes: self.first.bytes + second.bytes,
                    lines: self.first.lines + second.lines,
                    distinct: self.first.distinct + second.distinct - *shared,
                };
                Self { first, result: self.result, ..Self::default() }
            }
            _ => self,
        }
    }
}

/// Returns the lines of the result.
fn result(op: SetOp, first: &InputCounts, others: &[InputCounts], shared: &[Interval]) -> Interval {
    let InputCounts { lines, distinct, .. } = *first;
    let sum = shared.iter().copied().sum::<Interval>();
    let largest = |end: fn(&Interval) -> f64| shared.iter().map(end).fold(0.0, f64::max);
    let smallest = |end: fn(&Interval) -> f64| shared.iter().map(end).fold(f64::INFINITY, f64::min);
    // Every line that occurs at least twice takes two lines.
    let repeated = Interval::new(
        (lines.value - distinct.value).min(distinct.value),
        0.0,
        (lines.upper - distinct.lower).min(lines.upper / 2.0).min(distinct.upper),
    );
    match op {
        SetOp::Dedup | SetOp::DedupLast => distinct,
        SetOp::Duplicates => repeated,
        SetOp::Unique => Interval::new(
            distinct.value - repeated.value,
            2.0 * distinct.lower - lines.upper,
            distinct.upper,
        ),
        SetOp::SymDiff => {
            let second = others.first().copied().unwrap_or_default();
            distinct + second.distinct - sum.scaled(2.0)
        }
        SetOp::Diff => Interval::new(
            distinct.value - sum.value,
            distinct.lower - sum.upper,
            distinct.upper - largest(|shared| shared.lower),
        ),
        SetOp::Common => at_least(shared.len() as f64, distinct, sum, shared.len() as f64)
            .at_most(smallest(|shared| shared.upper))
            .with_value(smallest(|shared| shared.value)),
        SetOp::AtLeast(number) => {
            let mut values: Vec<_> = shared.iter().map(|shared| shared.value).collect();
            values.sort_by(|a, b| b.total_cmp(a));
            let value = values.get(usize::from(number).saturating_sub(1)).copied().unwrap_or(0.0);
            let range = at_least(number.into(), distinct, sum, shared.len() as f64);
            let range = if number == 1 { range.at_least(largest(|s| s.lower)) } else { range };
            range.with_value(value)
        }
    }
}

/// Returns the bounds of the lines that are in at least `number` of `inputs`, which share `sum` lines
/// with the first one: sum ≤ inputs · r + (number - 1) · (distinct - r), and sum ≥ number · r.
fn at_least(number: f64, distinct: Interval, sum: Interval, inputs: f64) -> Interval {
    // Zero times an unknown number is zero.
    let in_fewer = if number > 1.0 { (number - 1.0) * distinct.upper } else { 0.0 };
    let lower = (sum.lower - in_fewer) / (inputs - number + 1.0).max(1.0);
    let upper = (sum.upper / number.max(1.0)).min(distinct.upper);
    Interval::new(upper, lower, upper)
}

impl Interval {
    fn with_value(self, value: f64) -> Self {
        Self::new(value, self.lower, self.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(lines: f64, distinct: f64) -> InputCounts {
        let [lines, distinct] = [lines, distinct].map(Interval::exact);
        InputCounts { bytes: lines, lines, distinct }
    }

    /// The bounds contain all results that sets of these sizes can have.
    #[test]
    fn results_of_exact_counts() {
        let first = input(100.0, 60.0);
        let others = || vec![input(50.0, 40.0), input(30.0, 30.0)];
        let shared = || [35.0, 30.0].map(Interval::exact).to_vec();
        let range = |op, others, shared| {
            let Interval { lower, upper, .. } = JobCounts::new(op, first, others, shared).result;
            (lower, upper)
        };
        // 35 and 30 of 60 lines overlap in at least 5 and at most 30.
        assert_eq!(range(SetOp::Common, others(), shared()), (5.0, 30.0));
        assert_eq!(range(SetOp::AtLeast(1), others(), shared()), (35.0, 60.0));
        assert_eq!(range(SetOp::AtLeast(2), others(), shared()), (5.0, 32.5));
        assert_eq!(range(SetOp::Diff, others(), shared()), (0.0, 25.0));
        assert_eq!(range(SetOp::Dedup, vec![], vec![]), (60.0, 60.0));
        // 40 lines are copies: of at least one line and of at most 40.
        assert_eq!(range(SetOp::Duplicates, vec![], vec![]), (0.0, 40.0));
        assert_eq!(range(SetOp::Unique, vec![], vec![]), (20.0, 60.0));
        let unknown = BaseCounts::unknown(2);
        assert_eq!(unknown.derive(SetOp::Common).result, Interval::new(0.0, 0.0, f64::INFINITY));
        let second = vec![input(50.0, 40.0)];
        let counts = JobCounts::new(SetOp::SymDiff, first, second, vec![Interval::exact(35.0)]);
        assert_eq!(counts.result, Interval::exact(30.0));
        assert_eq!(counts.first.distinct, Interval::exact(65.0));
        assert!(counts.others.is_empty());
    }
}
