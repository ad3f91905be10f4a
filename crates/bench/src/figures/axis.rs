//! Axes: from a value to a place, and where the ticks are.

/// One axis: values from `low` to `high` lie between two places on the canvas.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    /// Equal ratios are equally far apart. Without a value it reaches from 1 to 10.
    pub(super) fn log(low: f64, high: f64, (from, to): (f64, f64)) -> Self {
        let good = low > 0.0 && high.is_finite() && low < high;
        let (low, high) = if good { (low, high) } else { (1.0, 10.0) };
        Self { low, high, log: true, from, to }
    }

    /// Equal differences are equally far apart. Without a value it reaches from 0 to 1.
    pub(super) fn linear(low: f64, high: f64, (from, to): (f64, f64)) -> Self {
        let good = low.is_finite() && high.is_finite() && low < high;
        let (low, high) = if good { (low, high) } else { (0.0, 1.0) };
        Self { low, high, log: false, from, to }
    }

    /// Where a value lies.
    pub(super) fn at(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.log { value.ln() } else { value };
        let share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low));
        self.from + share * (self.to - self.from)
    }

    /// Round values within the axis: 1, 2 and 5 times powers of ten on a log axis of less than three decades, else
    /// the powers; steps of the same kind on a linear one.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let within =
            |value: &f64| (self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9)).contains(value);
        if self.log {
            let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            let fine = (self.high / self.low).log10() < 3.0;
            let steps: &[f64] = if fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let all = decades.flat_map(|decade| steps.iter().map(move |step| step * ten(decade)));
            return all.filter(within).collect();
        }
        let rough = (self.high - self.low) / 8.0;
        let power = ten(rough.log10().floor() as i32);
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// A power of ten; dividing keeps 0.001 what it is written as.
fn ten(exponent: i32) -> f64 {
    if exponent < 0 { 1.0 / 10_f64.powi(-exponent) } else { 10_f64.powi(exponent) }
}

/// A tick in as few digits as it has.
pub(super) fn short(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (-value.abs().log10().floor()).max(0.0) as usize };
    format!("{value:.digits$}")
}

/// The least and the greatest of some values.
pub(super) fn reach(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let place = (0.0, 100.0);
        assert_eq!(Axis::log(1.5, 60.0, place).ticks(), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(Axis::log(1e5, 4e8, place).ticks(), [1e5, 1e6, 1e7, 1e8]);
        assert_eq!(Axis::linear(3.5, 12.0, place).ticks(), [4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!([0.002, 0.5, 5.0, 20.0].map(short), ["0.002", "0.5", "5", "20"]);
    }

    #[test]
    fn an_axis_without_values_stands() {
        let (low, high) = reach(std::iter::empty());
        assert!(Axis::log(low, high, (0.0, 1.0)).at(5.0).is_finite());
        assert!(Axis::linear(low, high, (0.0, 1.0)).at(5.0).is_finite());
    }
}
