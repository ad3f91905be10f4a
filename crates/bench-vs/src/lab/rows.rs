//! Measured figures as rows of CSV.

use petal_bench::machine::Fields;

/// A measured figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The way, or the part of a claim.
    pub case: String,
    /// The number of URLs.
    pub size: u64,
    /// The name of the figure.
    pub figure: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

impl Row {
    /// A figure.
    pub fn new(case: &str, size: u64, figure: &str, value: f64, unit: &str) -> Self {
        Self { case: case.into(), size, figure: figure.into(), value, unit: unit.into() }
    }

    /// Returns the columns of the row.
    pub fn fields(&self, command: &str) -> Fields {
        vec![
            ("case", self.case.clone()),
            ("size", self.size.to_string()),
            ("figure", self.figure.clone()),
            ("value", significant(self.value)),
            ("unit", self.unit.clone()),
            ("command", command.to_owned()),
        ]
    }
}

/// Six significant digits; whole numbers in full.
fn significant(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let digits = (5.0 - value.abs().log10().floor()).clamp(0.0, 15.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn values_have_six_digits_and_whole_numbers_all_of_theirs() {
        assert_eq!(
            [0.0, 12_345_678.0, 1.234_567_8, 0.000_123_456_78].map(significant),
            ["0", "12345678", "1.23457", "0.000123457"]
        );
    }
}
