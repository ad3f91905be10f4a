//! Charts as SVG text, by plotters.

use std::error::Error;
use std::ops::Range;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::element::{EmptyElement, Rectangle, Text};
use plotters::prelude::{
    AreaSeries, Cartesian2d, Color as _, DashedLineSeries, DrawingArea, IntoDrawingArea as _,
    IntoFont as _, IntoLogRange as _, LineSeries, SVGBackend, TRANSPARENT, TextStyle,
};

use super::axis::Axis;
use super::escape::visible;
use super::palette::Color;
use crate::error::{Failure, Result};

type Drawn<T = ()> = std::result::Result<T, Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

/// The width of a chart: for wide screens and paper, or for phones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Wide,
    Narrow,
}

impl Width {
    fn pixels(self) -> u32 {
        if self == Self::Wide { 852 } else { 340 }
    }

    /// Returns about how many labels fit the horizontal axis.
    fn labels(self) -> usize {
        if self == Self::Wide { 9 } else { 4 }
    }
}

/// A line of a line chart.
pub(super) struct Line {
    pub(super) color: Color,
    pub(super) points: Vec<(f64, f64)>,
    /// Fill the area below the line.
    pub(super) area: bool,
}

/// A dashed line across the chart, with a short label.
pub(super) enum Guide {
    /// At this value of the horizontal axis.
    Vertical(f64, String),
    /// At this value of the vertical axis.
    Horizontal(f64, String),
}

impl Guide {
    fn vertical(&self) -> Option<f64> {
        match self {
            Self::Vertical(at, _) => Some(*at),
            Self::Horizontal(..) => None,
        }
    }
}

/// A line chart.
pub(super) struct LineChart {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) height: u32,
    pub(super) lines: Vec<Line>,
    pub(super) guides: Vec<Guide>,
}

/// A chart of rows, each with a text above its bars.
pub(super) struct RowChart {
    pub(super) x: Axis,
    pub(super) rows: Vec<Row>,
}

/// A row of bars.
pub(super) struct Row {
    pub(super) text: String,
    /// From, to, and the color.
    pub(super) bars: Vec<(f64, f64, Color)>,
}

/// A histogram: adjacent bars of equal width.
pub(super) struct Histogram {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) bars: Vec<(Range<f64>, f64)>,
}

impl LineChart {
    pub(super) fn svg(&self, width: Width) -> Result<String> {
        let (x, y) = (self.x.min..self.x.max, self.y.min..self.y.max);
        draw(width, self.height, |area| match self.y.log {
            true => self.draw(area, width, x.clone(), y.clone().log_scale()),
            false => self.draw(area, width, x.clone(), y.clone()),
        })
    }

    fn draw<Y>(&self, area: &Area<'_>, width: Width, x: Range<f64>, y: Y) -> Drawn
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64> + Ranged<ValueType = f64>,
    {
        let mut chart = frame(area, width, (&self.x, &self.y), x, y)?;
        for line in &self.lines {
            self.draw_line(&mut chart, line)?;
        }
        for (number, guide) in self.guides.iter().enumerate() {
            self.draw_guide(&mut chart, number as i32, guide)?;
        }
        Ok(())
    }

    fn draw_line<X, Y>(&self, chart: &mut Chart<'_, '_, X, Y>, line: &Line) -> Drawn
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        let points = || line.points.iter().copied();
        let color = line.color.rgb();
        if line.area {
            let below = color.mix(0.16).filled();
            chart.draw_series(AreaSeries::new(points(), self.y.min, below))?;
        }
        chart.draw_series(LineSeries::new(points(), color.stroke_width(2 * SCALE)))?;
        Ok(())
    }

    fn draw_guide<X, Y>(&self, chart: &mut Chart<'_, '_, X, Y>, number: i32, guide: &Guide) -> Drawn
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        let (from, to, label, offset) = match guide {
            Guide::Vertical(at, label) => {
                // The label of the last line is on its right, that of others on the side with space.
                let share = (*at - self.x.min) / (self.x.max - self.x.min);
                let others = self.guides.iter().filter_map(Guide::vertical);
                let is_last = others.fold(f64::MIN, f64::max) <= *at;
                let right = share < 0.2 || is_last && share < 0.6;
                let offset = if right { 5 } else { -5 - text_width(label) };
                // Labels of neighboring lines are below each other.
                ((*at, self.y.min), (*at, self.y.max), label, (offset, 2 + 15 * number))
            }
            Guide::Horizontal(at, label) => ((self.x.min, *at), (self.x.max, *at), label, (6, -17)),
        };
        let style = Color::Limit.rgb().stroke_width(2 * SCALE);
        chart.draw_series(DashedLineSeries::new([from, to], 5 * SCALE, 4 * SCALE, style))?;
        let start = match guide {
            Guide::Vertical(..) => to,
            Guide::Horizontal(..) => from,
        };
        let text = Text::new(printable(label), scaled(offset), font(Color::Limit));
        chart.draw_series([EmptyElement::at(start) + text])?;
        Ok(())
    }
}

impl RowChart {
    pub(super) fn svg(&self, width: Width) -> Result<String> {
        let height = ROW * self.rows.len().max(1) as u32 + AXIS_HEIGHT + 2 * MARGIN;
        let x = self.x.min..self.x.max;
        draw(width, height, |area| match self.x.log {
            true => self.draw(area, width, x.clone().log_scale()),
            false => self.draw(area, width, x.clone()),
        })
    }

    fn draw<X>(&self, area: &Area<'_>, width: Width, x: X) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64> + Ranged<ValueType = f64>,
    {
        // The rows are units of the vertical axis, from the top.
        let rows = Axis::linear(self.rows.len().max(1) as f64, String::new());
        let mut chart = frame(area, width, (&self.x, &rows), x, rows.max..0.0)?;
        for (number, row) in self.rows.iter().enumerate() {
            let top = number as f64;
            let text = Text::new(printable(&row.text), scaled((2, 5)), font(Color::Ink));
            chart.draw_series([EmptyElement::at((self.x.min, top)) + text])?;
            let thick = 0.46 / row.bars.len().max(1) as f64;
            for (at, &(from, to, color)) in row.bars.iter().enumerate() {
                let top = top + 0.5 + thick * at as f64;
                let bar = [(from.max(self.x.min), top), (to, top + thick)];
                chart.draw_series([Rectangle::new(bar, color.rgb().filled())])?;
            }
        }
        Ok(())
    }
}

impl Histogram {
    pub(super) fn svg(&self, width: Width) -> Result<String> {
        draw(width, 260, |area| {
            let (x, y) = (self.x.min..self.x.max, self.y.min..self.y.max);
            let mut chart = frame(area, width, (&self.x, &self.y), x, y)?;
            let space = (self.x.max - self.x.min) * 0.002;
            for (range, value) in &self.bars {
                let bar = [(range.start + space, 0.0), (range.end - space, *value)];
                chart.draw_series([Rectangle::new(bar, Color::Main.rgb().filled())])?;
            }
            Ok(())
        })
    }
}

/// The height of a row of bars.
const ROW: u32 = 42;
/// The height of the horizontal axis with its labels.
const AXIS_HEIGHT: u32 = 42;
const MARGIN: u32 = 8;
/// plotters draws at whole units. A chart has this many in each of its pixels, so that curves are smooth.
const SCALE: u32 = 4;
const FONT_SIZE: f64 = 12.0;

/// Draws on a new area of this size and returns it as SVG.
fn draw(width: Width, height: u32, draw: impl Fn(&Area<'_>) -> Drawn) -> Result<String> {
    let mut svg = String::new();
    let drawn = {
        let size = (width.pixels() * SCALE, height * SCALE);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&area).and_then(|()| Ok(area.present()?))
    };
    drawn.map_err(|error| Failure::Message(format!("cannot draw a chart: {error}")))?;
    Ok(svg)
}

/// Draws the axes and the grid. The vertical axis has no labels if its own label is empty.
fn frame<'a, 'b, X, Y>(
    area: &Area<'b>,
    width: Width,
    axes: (&Axis, &Axis),
    x: X,
    y: Y,
) -> Drawn<Chart<'a, 'b, X::CoordDescType, Y::CoordDescType>>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64> + Ranged<ValueType = f64>,
    Y::CoordDescType: ValueFormatter<f64> + Ranged<ValueType = f64>,
{
    let labeled = !axes.1.label.is_empty();
    let mut chart = ChartBuilder::on(area)
        .margin_top(MARGIN * SCALE)
        .margin_bottom(MARGIN * SCALE)
        .margin_right(SCALE * if width == Width::Wide { 24 } else { 14 })
        .x_label_area_size(AXIS_HEIGHT * SCALE)
        .y_label_area_size(SCALE * if labeled { 62 } else { 6 })
        .build_cartesian_2d(x, y)?;
    let (x_tick, y_tick) = (axes.0.tick, axes.1.tick);
    let (x_format, y_format) = (|value: &f64| x_tick(*value), |value: &f64| y_tick(*value));
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(Color::Grid.rgb().stroke_width(SCALE))
        .axis_style(Color::Grid.rgb().stroke_width(SCALE))
        .set_all_tick_mark_size(5 * SCALE)
        .label_style(font(Color::Muted))
        .axis_desc_style(font(Color::Muted))
        .x_labels(width.labels())
        .x_desc(axes.0.label.clone())
        .x_label_formatter(&x_format)
        .y_label_formatter(&y_format)
        .y_labels(if labeled { 6 } else { 0 });
    if !labeled {
        mesh.disable_y_mesh().disable_y_axis();
    }
    mesh.draw()?;
    Ok(chart)
}

fn font<'a>(color: Color) -> TextStyle<'a> {
    // plotters divides the size by this factor.
    ("sans-serif", FONT_SIZE * 1.24 * f64::from(SCALE)).into_font().color(&color.rgb())
}

/// Converts an offset from pixels to units.
fn scaled((x, y): (i32, i32)) -> (i32, i32) {
    (x * SCALE as i32, y * SCALE as i32)
}

/// Returns about how wide a text is, in pixels.
fn text_width(text: &str) -> i32 {
    (text.chars().count() as f64 * FONT_SIZE * 0.58) as i32
}

/// plotters escapes the characters that have a meaning in XML, but not control characters.
fn printable(text: &str) -> String {
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_labels_are_escaped() {
        let row =
            Row { text: "</text><script>\0&".to_owned(), bars: vec![(0.0, 1.0, Color::Main)] };
        let chart = RowChart { x: Axis::linear(1.0, "a<b".to_owned()), rows: vec![row] };
        let svg = chart.svg(Width::Wide).unwrap();
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;\u{fffd}&amp;"), "{svg}");
        assert!(svg.contains("a&lt;b") && !svg.contains("<script"), "{svg}");
    }

    #[test]
    fn extreme_values_are_drawn() {
        for (min, max) in [(1e-300, 1e-299), (1.0, 1e18), (1e-18, 1.0), (1.0, 10.0)] {
            let line =
                Line { color: Color::Main, points: vec![(0.0, min), (1e18, max)], area: false };
            let chart = LineChart {
                x: Axis::linear(1e18, "x".to_owned()),
                y: Axis::log(min, max, "y".to_owned(), |value| value.to_string()),
                height: 200,
                lines: vec![line],
                guides: vec![Guide::Vertical(1e18, "end".to_owned())],
            };
            assert!(chart.svg(Width::Narrow).unwrap().ends_with("</svg>\n"), "{min} {max}");
        }
        for max in [0.0, 1e-12, 1e12] {
            let bars = vec![(0.0, max, Color::Main)];
            let chart = RowChart {
                x: Axis::linear(max, "x".to_owned()),
                rows: vec![Row { text: String::new(), bars }],
            };
            assert!(chart.svg(Width::Wide).is_ok(), "{max}");
        }
    }
}
