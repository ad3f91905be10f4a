//! A plot of points on two logarithmic axes, for pages of other crates.

use super::chart::{Axis, Head, Series, lines};

/// Texts of a plot.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// The title.
    pub title: &'a str,
    /// A line below the title.
    pub subtitle: &'a str,
    /// The label of the x axis.
    pub x_label: &'a str,
}

/// Draws points `(name, x, y)` with positive coordinates, as SVG text. The legend has the largest y first.
///
/// # Errors
/// A sentence: there are no points, or they cannot be drawn.
pub fn scatter(texts: &Texts<'_>, points: &[(String, f64, f64)]) -> Result<String, String> {
    let Texts { title, subtitle, x_label } = *texts;
    let head = Head { title, subtitle, x_label, height: 480 };
    let axis = |values: &mut dyn Iterator<Item = f64>| {
        let positive = values.filter(|&value| value > 0.0);
        let (low, high) = positive
            .fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let range = low / 1.5..high * 1.5;
        (low <= high)
            .then_some(Axis { range, ticks: number })
            .ok_or_else(|| format!("{title}: no points"))
    };
    let x = axis(&mut points.iter().map(|point| point.1))?;
    let y = axis(&mut points.iter().map(|point| point.2))?;
    let series = |(name, x, y): &(String, f64, f64)| Series {
        name: name.clone(),
        points: vec![(*x, *y)],
        is_curve: false,
    };
    lines(&head, &x, &y, true, &points.iter().map(series).collect::<Vec<_>>())
}

/// A tick: at most two digits after the point, and k for thousands.
fn number(value: f64) -> String {
    match value {
        1_000.0.. => format!("{:.0}k", value / 1_000.0),
        10.0.. => format!("{value:.0}"),
        _ => format!("{}", (value * 100.0).round() / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_markers_and_names_and_none_is_an_error() {
        let texts = Texts { title: "Title", subtitle: "below", x_label: "bytes" };
        let points = [("petal".to_owned(), 1.25, 10.0), ("set".to_owned(), 130.0, 600.0)];
        let svg = scatter(&texts, &points).expect("valid points");
        assert!(
            svg.starts_with("<svg")
                && svg.contains("petal")
                && svg.contains("set")
                && svg.contains("<circle")
        );
        assert!(scatter(&texts, &[]).is_err_and(|e| e.contains("no points")));
        assert_eq!([0.254, 12.0, 4_000.0].map(number), ["0.25", "12", "4k"]);
    }
}
