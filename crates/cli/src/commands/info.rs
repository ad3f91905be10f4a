//! `info`: describes a filter file, from its header and its bits.

use std::path::Path;

use petal::{FilterType, Inspection, Stats};
use petal_lines::{KeyChanges, Source, transforms_text};
use serde_json::{Value, json};

use super::{foreign_info, print, write_page};
use crate::args::InfoArgs;
use crate::error::{Failure, Outcome, Result};
use crate::files::filter_file;
use crate::files::foreign_file::{self, AnyFile};
use crate::html::RateCurve;
use crate::html::info::{FilterPage, page};
use crate::terminal::histogram;
use crate::text;

pub(super) fn run(args: &InfoArgs) -> Result<Outcome> {
    let limit = args.memory.bytes();
    let filter =
        match foreign_file::open_as(&args.filter, args.format, limit, filter_file::inspect)? {
            AnyFile::Native(filter) => filter,
            AnyFile::Foreign(filter) => return foreign_info::run(&filter.0, args),
        };
    // The estimates of a damaged file would be wrong.
    filter.verify().map_err(Failure::of_file(&args.filter))?;
    let info = FilterInfo::of(&filter);
    if let Some(path) = &args.html {
        write_page(path, &[Source::from_arg(&args.filter)], &page(info.page(&args.filter))?)?;
        return Ok(Outcome::Done);
    }
    print(&if args.json { info.json() } else { info.table(histogram::width()) })?;
    Ok(Outcome::Done)
}

/// The number of bars in the histogram of block fills.
const STEPS: usize = 20;

/// The values to print, each computed once: most of them need all bits.
struct FilterInfo<'a> {
    filter: &'a Inspection,
    stats: Stats,
    /// The estimated number of distinct keys; `None` if all bits are set.
    estimated_len: Option<u64>,
    blocks: Vec<u64>,
}

impl<'a> FilterInfo<'a> {
    fn of(filter: &'a Inspection) -> Self {
        let stats = filter.stats();
        let keys = stats.estimated_len;
        let estimated_len = keys.is_finite().then(|| keys.round() as u64);
        Self { filter, stats, estimated_len, blocks: filter.block_fills(STEPS) }
    }

    /// Returns the memory of the filter after reading it; here it is mapped.
    fn memory(&self) -> u64 {
        self.stats.size_bytes + self.stats.memory_usage
    }

    fn table(&self, columns: usize) -> String {
        let rows = self.rows().into_iter().map(|(name, value)| format!("{name:<10}{value}\n"));
        rows.collect::<String>() + &self.histogram(columns)
    }

    fn page(&self, file: &Path) -> FilterPage<'_> {
        let (filter, filter_type) = (self.filter, self.stats.filter_type);
        let curve = RateCurve {
            name: filter_type.to_string(),
            rate: Box::new(|keys| filter.expected_fpr(keys)),
        };
        FilterPage {
            name: file.display().to_string(),
            rows: self.rows(),
            blocks: &self.blocks,
            curve: (!filter_type.is_fixed()).then_some(curve),
            capacity: Some(self.stats.capacity),
            // A windowed filter keeps some keys longer than planned, so the curve does not hold for them.
            keys: self.estimated_len.filter(|_| filter_type != FilterType::Windowed),
        }
    }

    /// Returns a name and a text for each value.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let (filter, stats) = (self.filter, &self.stats);
        let (planned, target) = (stats.capacity, stats.target_fpr);
        let plan = match planned {
            0 => "none".to_owned(),
            _ => format!("{} at {}", text::keys(planned), text::rate(target)),
        };
        let about = |keys| format!("about {} distinct", text::count(keys));
        let distinct =
            self.estimated_len.map_or_else(|| "unknown: all bits are set".to_owned(), about);
        let inserted = text::count(stats.inserted);
        let keys = match stats.filter_type {
            FilterType::VectorQuotient => format!("{inserted} with copies"),
            FilterType::Quotient => format!("{distinct}; {inserted} with copies"),
            FilterType::Static | FilterType::StaticFuse | FilterType::Cascade => {
                format!("{inserted} distinct")
            }
            _ if stats.inserted == 1 => format!("{distinct}; 1 insert was new"),
            _ => format!("{distinct}; {inserted} inserts were new"),
        };
        let left = match stats.capacity_left {
            Some(0) => "none at the target rate".to_owned(),
            Some(left) => format!("{} at the target rate", text::keys(left)),
            None => match stats.filter_type {
                FilterType::Static | FilterType::StaticFuse | FilterType::Cascade => {
                    "none: the filter is immutable".to_owned()
                }
                FilterType::Windowed => "unlimited: the filter forgets old keys".to_owned(),
                _ if planned == 0 => "unknown: the filter has no target rate".to_owned(),
                _ => "unlimited".to_owned(),
            },
        };
        let secret = match filter.is_keyed() {
            _ if filter.is_secret_apart() => ", keyed: the secret is apart",
            true => ", keyed: keep this file private",
            false => "",
        };
        let metadata = if filter.metadata().is_empty() { "none" } else { filter.metadata() };
        let size =
            format!("{}, {} in memory", text::size(stats.size_bytes), text::size(self.memory()));
        let mut rows = vec![
            ("type", format!("{}, {}", stats.filter_type, text::grouped(&stats.layout))),
            ("size", size),
            ("planned", plan),
            ("keys", keys),
            ("left", left),
            ("fill", format!("{} %", text::significant(stats.fill_ratio * 100.0))),
            ("est. fpr", text::rate(stats.estimated_fpr)),
            ("hash", format!("{}{secret}", filter.hash_name())),
            ("metadata", text::escaped(metadata).into_owned()),
        ];
        let changes = KeyChanges::recorded(filter.metadata()).unwrap_or_default();
        if let Some(transforms) = changes.of_keys().filter(|list| !list.is_empty()) {
            rows.insert(rows.len() - 1, ("changes", transforms_text(transforms)));
        }
        if let Some(transforms) = changes.of_queries_only() {
            rows.insert(rows.len() - 1, ("queries", transforms_text(transforms)));
        }
        if let Some(window) = self.window() {
            rows.insert(2, ("window", window));
        }
        if let Some((saturated, maximum)) = self.saturated() {
            let counters =
                format!("{} saturated at {maximum}, never decremented", text::count(saturated));
            rows.push(("counters", counters));
        }
        if stats.is_overfull {
            let times = text::significant(stats.estimated_fpr / target);
            let warning = format!("overfull: {times} times the target rate; build a larger filter");
            let at = rows.iter().position(|(name, _)| *name == "hash").unwrap_or(rows.len());
            rows.insert(at, ("warning", warning));
        }
        rows
    }

    /// Returns a number of the layout by its name.
    fn number(&self, name: &str) -> Option<u64> {
        self.stats.parameters.iter().find(|number| number.0 == name).map(|number| number.1)
    }

    /// Returns the number of saturated counters and their maximum; `None` for types without counters.
    fn saturated(&self) -> Option<(u64, u64)> {
        Some((self.number("saturated")?, 1 << (self.number("width")? - 1)))
    }

    /// Describes the window of a windowed filter; `None` for other types.
    fn window(&self) -> Option<String> {
        let parts = self.number("generations")?;
        // A window consists of all parts but the newest, which is not full.
        let step = |window: u64| window.div_ceil((parts - 1).max(1));
        let (window, step) = match (self.number("window_ticks"), self.number("now")) {
            // The ticks are seconds in filters that this program builds.
            (Some(seconds), now) => {
                let window = text::duration(seconds);
                let window = match now.unwrap_or(0) {
                    0 => format!("{window}, clock not set yet"),
                    now => format!("{window}, clock at {now} (Unix time)"),
                };
                (window, text::duration(step(seconds)))
            }
            _ => {
                let keys = self.stats.capacity;
                (format!("the last {}", text::keys(keys)), text::keys(step(keys)))
            }
        };
        Some(format!("{window}; it advances in steps of {step}"))
    }

    /// Returns the histogram of block fills, which are similar if the hash is good.
    fn histogram(&self, columns: usize) -> String {
        let count: u64 = self.blocks.iter().sum();
        if count == 0 {
            return String::new();
        }
        let step = 100 / STEPS;
        let name = |at: usize| format!("{} to {} %", at * step, (at + 1) * step);
        let rows = self.blocks.iter().enumerate().map(|(at, blocks)| (name(at), *blocks));
        let bars = histogram::bars(&rows.collect::<Vec<_>>(), columns);
        format!("blocks    {}, by their fill:\n{bars}", text::count(count))
    }

    fn json(&self) -> String {
        let (filter, stats) = (self.filter, &self.stats);
        let numbers =
            stats.parameters.iter().map(|(name, number)| ((*name).to_owned(), (*number).into()));
        let numbers: serde_json::Map<String, Value> = numbers.collect();
        let metadata: Value =
            serde_json::from_str(filter.metadata()).unwrap_or_else(|_| filter.metadata().into());
        let info = json!({
            "type": stats.filter_type.name(),
            "layout": numbers,
            "size_bytes": stats.size_bytes,
            "memory_bytes": self.memory(),
            "capacity": stats.capacity,
            "target_fpr": stats.target_fpr,
            "inserted": stats.inserted,
            "estimated_len": self.estimated_len,
            "capacity_left": stats.capacity_left,
            "fill_ratio": stats.fill_ratio,
            "estimated_fpr": stats.estimated_fpr,
            "is_overfull": stats.is_overfull,
            "block_fills": self.blocks,
            "hash": filter.hash_name(),
            "secret_apart": filter.is_secret_apart(),
            "metadata": metadata,
        });
        format!("{info:#}\n")
    }
}
