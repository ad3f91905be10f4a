//! The page of a filter file.

use super::axis::{Axis, count};
use super::chart::Histogram;
use super::page::{Cell, Fact, Figure, Page};
use super::rate_curve::{self, Mark, RateCurve};
use crate::error::Result;
use crate::text;

/// What the page of a filter file shows.
pub(crate) struct FilterPage<'a> {
    /// The name of the file.
    pub(crate) name: String,
    pub(crate) rows: Vec<(&'static str, String)>,
    /// The number of blocks in equal steps of fill; empty for types without blocks.
    pub(crate) blocks: &'a [u64],
    /// Its rate by the number of keys; `None` for types that take no more keys.
    pub(crate) curve: Option<RateCurve<'a>>,
    pub(crate) capacity: Option<u64>,
    /// The estimated number of keys; `None` if unknown.
    pub(crate) keys: Option<u64>,
}

/// Returns the page of a filter file.
pub(crate) fn page(filter: FilterPage<'_>) -> Result<Page> {
    let mut page = Page::new(filter.name, "Filter file");
    for (_, warning) in filter.rows.iter().filter(|row| row.0 == "warning") {
        page.warning(warning);
    }
    let rows = filter.rows.iter().filter(|row| row.0 != "warning");
    let fact = |(label, value): &(&str, String)| -> Fact {
        ("", (*label).to_owned(), value.as_str().into())
    };
    page.facts(&rows.map(fact).collect::<Vec<_>>());
    match filter.curve {
        Some(curve) => {
            let marks = [("now", filter.keys), ("planned", filter.capacity)];
            let marks = marks.into_iter().filter_map(|(label, keys)| {
                Some(Mark { keys: keys.filter(|keys| *keys > 0)?, label })
            });
            let mut marks: Vec<_> = marks.collect();
            if marks.is_empty() {
                marks.push(Mark { keys: NO_PLAN, label: "example" });
            }
            rate_curve::add(&mut page, &[curve], &marks)?;
        }
        None => page.paragraph("This filter takes no more keys, so its rate does not change."),
    }
    add_blocks(&mut page, filter.blocks)?;
    Ok(page)
}

/// The number of keys to mark in an empty filter without a plan.
const NO_PLAN: u64 = 1000;

/// Adds the histogram of block fills.
fn add_blocks(page: &mut Page, blocks: &[u64]) -> Result<()> {
    let (Some(first), Some(last)) =
        (blocks.iter().position(|count| *count > 0), blocks.iter().rposition(|count| *count > 0))
    else {
        return Ok(());
    };
    let step = 100.0 / blocks.len() as f64;
    let max = blocks.iter().copied().max().unwrap_or(1) as f64;
    let unit = count(max);
    let bars = (first..=last)
        .map(|at| (at as f64 * step..(at + 1) as f64 * step, blocks[at] as f64 / unit.size));
    let mut x =
        Axis::linear(((last + 3) as f64 * step).min(100.0), "bits set in a block, %".into());
    x.min = (first as f64 - 2.0).max(0.0) * step;
    let y = Axis::linear(max / unit.size * 1.08, unit.label("blocks"));
    let label = y.label.clone();
    let chart = Histogram { x, y, bars: bars.collect() };
    let sum: u64 = blocks.iter().sum();
    let figure = Figure {
        heading: "Blocks by fill",
        text: &format!(
            "{} blocks by the share of their bits that are set; vertical axis: {label}. One narrow \
             peak is normal. Two peaks or a long tail mean that the keys were chosen to collide.",
            text::count(sum),
        ),
        legend: &[],
    };
    page.figure(&figure, |width| chart.svg(width))?;
    let row = |at: usize| {
        let range = format!("{:.0} to {:.0} %", at as f64 * step, (at + 1) as f64 * step);
        vec![range.into(), Cell::number(blocks[at], text::count(blocks[at]))]
    };
    page.table("", &["fill", "blocks"], &(first..=last).map(row).collect::<Vec<_>>());
    Ok(())
}
