//! Units and ticks of axes.

use crate::text;

/// An axis from `min` to `max`.
pub(super) struct Axis {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) log: bool,
    /// What is shown, with its unit; empty for none.
    pub(super) label: String,
    pub(super) tick: fn(f64) -> String,
}

impl Axis {
    /// A linear axis from 0. `max` is raised to a positive number.
    pub(super) fn linear(max: f64, label: String) -> Self {
        let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
        Self { min: 0.0, max, log: false, label, tick: text::significant }
    }

    /// A logarithmic axis between two positive numbers.
    pub(super) fn log(min: f64, max: f64, label: String, tick: fn(f64) -> String) -> Self {
        let min = min.max(f64::MIN_POSITIVE);
        Self { min, max: max.max(min * 10.0), log: true, label, tick }
    }
}

/// A unit: its size and its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) size: f64,
    pub(super) name: &'static str,
}

/// Returns the largest unit that is at most `value`, or the first one.
fn fitting(units: &[(f64, &'static str)], value: f64) -> Unit {
    let (size, name) = units.iter().rev().find(|unit| unit.0 <= value).unwrap_or(&units[0]);
    Unit { size: *size, name }
}

/// Returns the unit for bytes up to `max`.
pub(super) fn bytes(max: f64) -> Unit {
    const KIB: f64 = 1024.0;
    let sizes = [1.0, KIB, KIB * KIB, KIB * KIB * KIB, KIB * KIB * KIB * KIB];
    let names = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let units: Vec<_> = sizes.into_iter().zip(names).collect();
    fitting(&units, max)
}

/// Returns the unit for a time up to `max` seconds.
pub(super) fn seconds(max: f64) -> Unit {
    fitting(&[(1.0, "seconds"), (120.0, "minutes"), (7200.0, "hours")], max).of_time()
}

/// Returns the unit for a number of things up to `max`; its name is empty or a word like "million".
pub(super) fn count(max: f64) -> Unit {
    let units =
        [(1.0, ""), (1e4, "thousand"), (1e6, "million"), (1e9, "billion"), (1e12, "trillion")];
    let unit = fitting(&units, max);
    if unit.name == "thousand" { Unit { size: 1e3, ..unit } } else { unit }
}

impl Unit {
    /// Returns the unit whose name was chosen by a larger number.
    fn of_time(self) -> Self {
        let size = match self.name {
            "minutes" => 60.0,
            "hours" => 3600.0,
            _ => 1.0,
        };
        Self { size, ..self }
    }

    /// Returns `what` with the unit, for an axis: "keys, million".
    pub(super) fn label(self, what: &str) -> String {
        match self.name {
            "" => what.to_owned(),
            name => format!("{what}, {name}"),
        }
    }
}

/// Formats a power of ten on an axis of numbers: "100", "1K", "10M".
pub(super) fn count_tick(value: f64) -> String {
    let units = [(1.0, ""), (1e3, "K"), (1e6, "M"), (1e9, "B"), (1e12, "T"), (1e15, "e15")];
    let unit = fitting(&units, value * 1.000_001);
    format!("{}{}", text::significant(value / unit.size), unit.name)
}

/// Formats a rate on an axis: "0.1 %", "1e-7".
pub(super) fn rate_tick(rate: f64) -> String {
    if rate >= 1e-5 { text::rate(rate) } else { format!("{rate:.0e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_largest_value() {
        assert_eq!(bytes(0.0).name, "bytes");
        assert_eq!(bytes(1.5e9).name, "GiB");
        assert_eq!(seconds(119.0), Unit { size: 1.0, name: "seconds" });
        assert_eq!(seconds(7199.0), Unit { size: 60.0, name: "minutes" });
        assert_eq!(seconds(1e9), Unit { size: 3600.0, name: "hours" });
        assert_eq!(count(9999.0), Unit { size: 1.0, name: "" });
        assert_eq!(count(10_000.0), Unit { size: 1e3, name: "thousand" });
        assert_eq!(count(5e9).label("keys"), "keys, billion");
        assert_eq!(count(5.0).label("keys"), "keys");
    }

    #[test]
    fn ticks_are_short() {
        let ticks = [1.0, 100.0, 1000.0, 1e7, 1e11, 1e16].map(count_tick);
        assert_eq!(ticks, ["1", "100", "1K", "10M", "100B", "10e15"]);
        assert_eq!([1.0, 0.001, 1e-7].map(rate_tick), ["100 %", "0.1 %", "1e-7"]);
    }
}
