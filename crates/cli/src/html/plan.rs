//! The page of a planned filter.

use super::page::{Fact, Page};
use super::rate_curve::{self, Mark, RateCurve};
use crate::error::Result;

/// Returns the page of filters for the same number of keys. `rows`: a label and a value for each filter.
pub(crate) fn page(
    rows: &[(&str, Vec<String>)],
    curves: &[RateCurve<'_>],
    capacity: u64,
) -> Result<Page> {
    let mut page = Page::new("Planned filter", "Size and false-positive rate by calculation");
    match rows.first() {
        Some((name, values)) if values.len() > 1 => {
            let cells = |row: &(&str, Vec<String>)| {
                let values = row.1.iter().cloned();
                [row.0.to_owned()].into_iter().chain(values).map(Into::into).collect()
            };
            let head: Vec<_> =
                [*name].into_iter().chain(values.iter().map(String::as_str)).collect();
            page.table("", &head, &rows[1..].iter().map(cells).collect::<Vec<_>>());
        }
        _ => {
            let fact = |(label, values): &(&str, Vec<String>)| -> Fact {
                ("", (*label).to_owned(), values.concat().into())
            };
            page.facts(&rows.iter().map(fact).collect::<Vec<_>>());
        }
    }
    if curves.is_empty() {
        page.paragraph("A filter of this type is built from all its keys and takes no more.");
    } else {
        rate_curve::add(&mut page, curves, &[Mark { keys: capacity, label: "planned" }])?;
    }
    Ok(page)
}
