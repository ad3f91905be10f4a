//! Targets, and whether rows meet them.
//!
//! Every ratio is the median of paired ones. Where several rows fit a description, as those of several kernels or of
//! several distances of the limit, the one with the least median stands for them.

use super::rows::{Row, paired};
use super::{Form, Kind, Operation};
use crate::summary::median;

/// Which rows.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    /// The filter's name, or the beginning of it with `*`.
    pub filter: &'static str,
    /// The rate that it was made for.
    pub target: Option<f64>,
    /// What a key is.
    pub kind: Kind,
    /// How keys are given.
    pub form: Form,
}

impl Pick {
    /// A filter made for a rate.
    pub const fn new(filter: &'static str, target: f64, kind: Kind, form: Form) -> Self {
        Self { filter, target: Some(target), kind, form }
    }

    fn fits(&self, row: &Row) -> bool {
        let named = match self.filter.strip_suffix('*') {
            Some(beginning) => row.filter.starts_with(beginning),
            None => row.filter == self.filter,
        };
        named
            && row.target == self.target
            && (row.keys, row.form) == (self.kind.name(), self.form.name())
    }

    /// The row that stands for all that fit.
    fn of<'a>(&self, rows: &'a [Row], n: u64, operation: Operation) -> Option<&'a Row> {
        let fitting = rows.iter().filter(|row| row.n == n && row.operation == operation);
        let fitting = fitting.filter(|row| self.fits(row));
        let ns = |row: &Row| median(&row.ns).unwrap_or(f64::INFINITY);
        fitting.min_by(|one, other| ns(one).total_cmp(&ns(other)))
    }
}

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub enum Wants {
    /// Our time, as a part of theirs, is no more than this.
    AtMost(f64),
    /// Their time is so many times ours, or more.
    TimesFaster(f64),
}

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Whose time it is about.
    pub ours: Pick,
    /// What it is compared with.
    pub theirs: Pick,
    /// Numbers of keys for which it was set.
    pub numbers: &'static [u64],
    /// Operations for which it was set.
    pub operations: &'static [Operation],
    /// The bound.
    pub wants: Wants,
    /// The most bits a key that ours may take.
    pub bits: Option<f64>,
}

/// A line for each target that the rows speak of.
pub fn verdicts(rows: &[Row], targets: &[Target]) -> String {
    let mut text = String::new();
    for target in targets {
        for &n in target.numbers {
            for &operation in target.operations {
                let pair =
                    target.ours.of(rows, n, operation).zip(target.theirs.of(rows, n, operation));
                let ratio = pair.and_then(|(ours, theirs)| paired(&theirs.ns, &ours.ns));
                if let (Some((ours, theirs)), Some(ratio)) = (pair, ratio) {
                    text += &verdict(target, ours, theirs, ratio);
                }
            }
        }
    }
    text
}

fn verdict(target: &Target, ours: &Row, theirs: &Row, ratio: f64) -> String {
    let (met, said) = match target.wants {
        Wants::AtMost(most) => (ratio <= most, format!("{ratio:.2} x its time, at most {most}")),
        Wants::TimesFaster(least) => {
            let times = 1.0 / ratio;
            (times >= least, format!("{times:.2} x faster, at least {least}"))
        }
    };
    let slim = target.bits.is_none_or(|bits| ours.bits_per_key <= bits);
    let bits = target.bits.map_or(String::new(), |most| {
        format!("; {:.2} bits a key, at most {most}", ours.bits_per_key)
    });
    let name = |row: &Row| {
        let rate = row.target.map_or(String::new(), |rate| format!(" {} %", rate * 100.0));
        format!("{}{rate} {} {}", row.filter, row.keys, row.form)
    };
    format!(
        "{}: {} keys, {}: {} beside {}: {said}{bits}\n",
        if met && slim { "met    " } else { "NOT MET" },
        ours.n,
        ours.operation.name(),
        name(ours),
        name(theirs),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(filter: &str, kernel: &str, ns: &[f64]) -> Row {
        Row {
            suite: "own".into(),
            n: 100_000,
            filter: filter.into(),
            target: Some(0.01),
            bits_per_key: 9.93,
            measured: None,
            keys: "hash",
            form: "batch",
            kernel: kernel.into(),
            operation: Operation::Absent,
            threads: 1,
            ns: ns.into(),
        }
    }

    #[test]
    fn the_best_of_a_family_is_compared_round_by_round() {
        let rows = [
            row("petal", "Portable", &[9.0, 9.0, 9.0]),
            row("petal", "Avx512", &[2.0, 6.0, 2.0]),
            row("other 16", "", &[8.0, 24.0, 9.0]),
            row("other 32", "", &[7.9, 90.0, 90.0]),
        ];
        let target = Target {
            ours: Pick::new("petal", 0.01, Kind::Hash, Form::Batch),
            theirs: Pick::new("other*", 0.01, Kind::Hash, Form::Batch),
            numbers: &[100_000, 1_000_000],
            operations: &[Operation::Absent, Operation::Insert],
            wants: Wants::TimesFaster(4.0),
            bits: Some(10.1),
        };
        let said = verdicts(&rows, &[target]);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("met ") && said.contains("4.00 x faster"), "{said}");
        let wants = Wants::AtMost(0.2);
        assert!(verdicts(&rows, &[Target { wants, ..target }]).starts_with("NOT MET"));
        let bits = Some(9.0);
        assert!(verdicts(&rows, &[Target { bits, ..target }]).starts_with("NOT MET"));
    }
}
