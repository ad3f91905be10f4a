//! Line charts and bar charts as SVG text, by plotters. The legend is on the right, in the order of the lines.

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use std::ops::Range;

use plotters::coord::CoordTranslate;
use plotters::element::{Circle, EmptyElement, TriangleMarker};
use plotters::prelude::*;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;
type Svg<'a> = SVGBackend<'a>;

const WIDTH: u32 = 960;
const LEGEND: u32 = 260;
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GRAY: RGBColor = RGBColor(0x5f, 0x5f, 0x5f);
const GRID: RGBColor = RGBColor(0xe3, 0xe3, 0xe3);
const FONT: &str = "sans-serif";

/// Shades of blue for petal; the other colors of Okabe & Ito, which differ in all kinds of color vision, for others.
const PETAL: [RGBColor; 4] = [
    RGBColor(0x00, 0x3b, 0x73),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x7d, 0x8f, 0xc9),
];
const OTHERS: [RGBColor; 5] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x77, 0x77, 0x77),
];

/// Titles and size of a chart.
pub(super) struct Head<'a> {
    pub(super) title: &'a str,
    pub(super) subtitle: &'a str,
    pub(super) x_label: &'a str,
    pub(super) height: u32,
}

/// A line with a marker at each point; or a curve without markers, for formulas.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) is_curve: bool,
}

/// An axis: its range and how its ticks are written.
pub(super) struct Axis {
    pub(super) range: Range<f64>,
    pub(super) ticks: fn(f64) -> String,
}

/// Draws a line chart with a logarithmic x axis; `y_log` selects a logarithmic y axis.
pub(super) fn lines(
    head: &Head,
    x: &Axis,
    y: &Axis,
    y_log: bool,
    series: &[Series],
) -> std::result::Result<String, String> {
    let mut svg = String::new();
    let range = y.range.clone();
    let drawn = if y_log {
        draw_lines(&mut svg, head, x, y, range.log_scale(), series)
    } else {
        draw_lines(&mut svg, head, x, y, range, series)
    };
    drawn.map_err(|e| format!("{}: {e}", head.title))?;
    Ok(svg)
}

/// Draws a bar chart: groups of bars, one bar for each name.
pub(super) fn bars(
    head: &Head,
    names: &[String],
    groups: &[(&str, Vec<Option<f64>>)],
) -> std::result::Result<String, String> {
    let mut svg = String::new();
    draw_bars(&mut svg, head, names, groups).map_err(|e| format!("{}: {e}", head.title))?;
    Ok(svg)
}

fn draw_lines<Y>(
    svg: &mut String,
    head: &Head,
    x: &Axis,
    y: &Axis,
    y_range: Y,
    series: &[Series],
) -> Result
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let area = Svg::with_string(svg, (WIDTH, head.height)).into_drawing_area();
    let (plot, legend) = frame(&area, head)?;
    let mut chart = ChartBuilder::on(&plot)
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(44)
        .build_cartesian_2d(x.range.clone().log_scale(), y_range)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(GRID)
        .axis_style(GRAY)
        .label_style((FONT, 12).into_font().color(&GRAY))
        .x_desc(head.x_label)
        .x_label_formatter(&|value| (x.ticks)(*value))
        .y_label_formatter(&|value| (y.ticks)(*value))
        .draw()?;
    let styles = styles(series);
    // Petal's lines come first and are drawn last, above the others.
    for (series, style) in series.iter().zip(&styles).rev() {
        let points = series.points.iter().copied();
        chart
            .draw_series(LineSeries::new(points.clone(), style.color.stroke_width(style.width)))?;
        if !series.is_curve {
            points.clone().try_for_each(|at| style.draw_marker(chart.plotting_area(), at))?;
        }
    }
    let mut order: Vec<usize> = (0..series.len()).collect();
    let last = |at: usize| series[at].points.last().map_or(0.0, |point| point.1);
    order.sort_by(|&a, &b| last(b).total_cmp(&last(a)));
    for (line, at) in order.into_iter().enumerate() {
        let y = 14 + 18 * line as i32;
        let style = &styles[at];
        legend.draw(&PathElement::new([(0, y), (22, y)], style.color.stroke_width(style.width)))?;
        if !series[at].is_curve {
            style.draw_marker(&legend, (11, y))?;
        }
        let font = (FONT, 12).into_font().color(&INK);
        legend.draw(&Text::new(series[at].name.clone(), (28, y - 6), font))?;
    }
    area.present()?;
    Ok(())
}

fn draw_bars(
    svg: &mut String,
    head: &Head,
    names: &[String],
    groups: &[(&str, Vec<Option<f64>>)],
) -> Result {
    let area = Svg::with_string(svg, (WIDTH, head.height)).into_drawing_area();
    let (plot, legend) = frame(&area, head)?;
    let most = groups.iter().flat_map(|group| &group.1).flatten().fold(0.0_f64, |a, &b| a.max(b));
    let most = if most > 0.0 { most * 1.1 } else { 1.0 };
    let mut chart = ChartBuilder::on(&plot)
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(44)
        .build_cartesian_2d(0.0..groups.len() as f64, 0.0..most)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(GRID)
        .axis_style(GRAY)
        .label_style((FONT, 12).into_font().color(&GRAY))
        .x_labels(0)
        .x_desc(head.x_label)
        .draw()?;
    let font = || (FONT, 12).into_font().color(&INK);
    let step = 0.9 / names.len().max(1) as f64;
    for (at, (group, values)) in groups.iter().enumerate() {
        for (number, value) in values.iter().enumerate() {
            let Some(value) = *value else { continue };
            let left = at as f64 + 0.05 + step * number as f64;
            let color = PETAL[(names.len() - 1 - number) % PETAL.len()];
            let bar = [(left, 0.0), (left + step * 0.9, value)];
            chart.draw_series([Rectangle::new(bar, color.filled())])?;
            let label = EmptyElement::at((left, value))
                + Text::new(format!("{value:.2}"), (0, -14), font());
            chart.draw_series([label])?;
        }
        let below = EmptyElement::at((at as f64 + 0.05, 0.0))
            + Text::new((*group).to_owned(), (0, 6), font());
        chart.draw_series([below])?;
    }
    for (line, name) in names.iter().enumerate() {
        let y = 14 + 18 * line as i32;
        let color = PETAL[(names.len() - 1 - line) % PETAL.len()];
        legend.draw(&Rectangle::new([(4, y - 6), (18, y + 6)], color.filled()))?;
        legend.draw(&Text::new(name.clone(), (28, y - 6), font()))?;
    }
    area.present()?;
    Ok(())
}

/// A row of [`bar_pairs`].
pub(super) struct Bar {
    pub(super) name: String,
    /// A value and its label for each column.
    pub(super) values: [Option<(f64, String)>; 2],
    /// Shown instead of the values.
    pub(super) failure: Option<String>,
    pub(super) is_ours: bool,
}

/// Draws two columns of horizontal bars that share the names of their rows.
pub(super) fn bar_pairs(
    head: &Head,
    columns: [&str; 2],
    bars: &[Bar],
) -> std::result::Result<String, String> {
    let mut svg = String::new();
    draw_bar_pairs(&mut svg, head, columns, bars).map_err(|e| format!("{}: {e}", head.title))?;
    Ok(svg)
}

fn draw_bar_pairs(svg: &mut String, head: &Head, columns: [&str; 2], bars: &[Bar]) -> Result {
    // Left ends of the columns, and the length of their longest bar.
    const LEFT: [i32; 2] = [270, 620];
    const LENGTH: f64 = 230.0;
    const TOP: i32 = 90;
    let area = Svg::with_string(svg, (WIDTH, head.height)).into_drawing_area();
    titles(&area, head)?;
    let font = |size: i32, color: &RGBColor| (FONT, size).into_font().color(color);
    for (column, left) in LEFT.into_iter().enumerate() {
        let title = (FONT, 13).into_font().style(FontStyle::Bold).color(&GRAY);
        area.draw(&Text::new(columns[column].to_owned(), (left, TOP - 24), title))?;
        let shown = bars.iter().filter(|bar| bar.failure.is_none());
        let values = shown.filter_map(|bar| Some(bar.values[column].as_ref()?.0));
        let most = values.fold(f64::MIN_POSITIVE, f64::max);
        for (number, bar) in bars.iter().enumerate() {
            let y = TOP + 34 * number as i32;
            let color = if bar.is_ours { PETAL[1] } else { OTHERS[4] };
            if column == 0 {
                let mut name = font(14, &INK);
                if bar.is_ours {
                    name = (FONT, 14).into_font().style(FontStyle::Bold).color(&PETAL[0]);
                }
                area.draw(&Text::new(bar.name.clone(), (20, y + 4), name))?;
            }
            if let Some(failure) = &bar.failure {
                if column == 0 {
                    area.draw(&Text::new(failure.clone(), (left, y + 4), font(14, &OTHERS[0])))?;
                }
                continue;
            }
            let Some((value, label)) = &bar.values[column] else { continue };
            let right = left + (value / most * LENGTH).round().max(1.0) as i32;
            area.draw(&Rectangle::new([(left, y), (right, y + 22)], color.filled()))?;
            area.draw(&Text::new(label.clone(), (right + 6, y + 4), font(14, &INK)))?;
        }
    }
    area.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<Svg<'a>, plotters::coord::Shift>;

/// Draws background and titles; returns the areas for plot and legend.
fn frame<'a>(area: &Area<'a>, head: &Head) -> Result<(Area<'a>, Area<'a>)> {
    titles(area, head)?;
    let (_, body) = area.split_vertically(56);
    Ok(body.split_horizontally(WIDTH - LEGEND))
}

fn titles(area: &Area, head: &Head) -> Result {
    area.fill(&WHITE)?;
    let title = (FONT, 16).into_font().style(FontStyle::Bold).color(&INK);
    area.draw(&Text::new(head.title.to_owned(), (20, 14), title))?;
    area.draw(&Text::new(head.subtitle.to_owned(), (20, 36), (FONT, 12).into_font().color(&GRAY)))?;
    Ok(())
}

struct Style {
    color: RGBColor,
    width: u32,
    shape: usize,
}

impl Style {
    fn draw_marker<C: CoordTranslate>(&self, area: &DrawingArea<Svg, C>, at: C::From) -> Result
    where
        C::From: Clone + 'static,
    {
        match self.shape {
            0 => area.draw(&Circle::new(at, 4, self.color.filled()))?,
            1 => area.draw(&TriangleMarker::new(at, 5, self.color.filled()))?,
            _ => area.draw(&Cross::new(at, 4, self.color.stroke_width(2)))?,
        }
        Ok(())
    }
}

/// Colors and markers in the order of the series, so that each pair of both is used once.
fn styles(series: &[Series]) -> Vec<Style> {
    let (mut petal, mut others) = (0, 0);
    let mut style = |series: &Series| {
        if series.is_curve {
            return Style { color: GRAY, width: 1, shape: 0 };
        }
        let ours = series.name.starts_with("petal");
        let (count, colors) =
            if ours { (&mut petal, &PETAL[..]) } else { (&mut others, &OTHERS[..]) };
        let at = *count;
        *count += 1;
        let color = colors[at % colors.len()];
        Style { color, width: if ours { 3 } else { 2 }, shape: at / colors.len() }
    };
    series.iter().map(&mut style).collect()
}
