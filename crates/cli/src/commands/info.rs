//! `info`: what a filter file says of itself, and what its bits say.

use petal::{FilterType, Membership};
use serde_json::{Value, json};

use super::{foreign_info, print};
use crate::args::InfoArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::foreign_file::{self, AnyFile};
use crate::{plot, text};

pub(super) fn run(args: &InfoArgs) -> Result<Outcome> {
    let limit = args.memory.bytes();
    let filter = match foreign_file::open(&args.filter, args.written, limit)? {
        AnyFile::Native(filter) => filter,
        AnyFile::Foreign(filter) => return foreign_info::tell(&filter.0, args),
    };
    // Its bits are about to be counted: a damaged file must not be described as if it were whole.
    filter.verify().map_err(Failure::of_file(&args.filter))?;
    let facts = Facts::of(filter.face(), filter.metadata());
    print(&if args.json { facts.json() } else { facts.table(plot::width()) })?;
    Ok(Outcome::Done)
}

/// Steps from empty to full in which blocks are counted.
const STEPS: usize = 20;

/// All that is told, each found once: most of it takes a look at all bits.
struct Facts<'a> {
    filter: &'a dyn Membership,
    metadata: &'a str,
    numbers: Vec<(&'static str, u64)>,
    /// An estimate of the distinct keys; `None` if it is full.
    held: Option<u64>,
    fill: f64,
    rate: f64,
    left: Option<u64>,
    overfull: bool,
    blocks: Vec<u64>,
}

impl<'a> Facts<'a> {
    fn of(filter: &'a dyn Membership, metadata: &'a str) -> Self {
        let held = filter.estimated_len();
        Self {
            filter,
            metadata,
            numbers: filter.geometry(),
            held: held.is_finite().then(|| held.round() as u64),
            fill: filter.fill_ratio(),
            rate: filter.estimated_rate(),
            left: filter.capacity_left(),
            overfull: filter.is_overfull(),
            blocks: filter.block_fills(STEPS),
        }
    }

    /// Bytes it takes when it is read into memory. What is asked is mapped: its bits are not its
    /// own.
    fn memory(&self) -> u64 {
        self.filter.size_bytes() + self.filter.memory_usage()
    }

    fn table(&self, columns: usize) -> String {
        let filter = self.filter;
        let (planned, target) = (filter.planned_keys(), filter.target_rate());
        let plan = match planned {
            0 => "none".to_owned(),
            _ => format!("{} at {}", text::keys(planned), text::rate(target)),
        };
        let about = |keys| format!("about {} distinct", text::count(keys));
        let keys = self.held.map_or_else(|| "more than its bits can tell".to_owned(), about);
        let left = match self.left {
            Some(0) => "no room for more keys at the planned rate".to_owned(),
            Some(left) => format!("room for {} more at the planned rate", text::keys(left)),
            None => match filter.filter_type() {
                FilterType::Static | FilterType::Cascade => "it takes no more keys".to_owned(),
                FilterType::Windowed => "it forgets as it takes more".to_owned(),
                _ => "no limit planned".to_owned(),
            },
        };
        let hash = filter.hash_spec();
        let secret = if hash.is_keyed() { ", keyed: keep this file private" } else { "" };
        let metadata = if self.metadata.is_empty() { "none" } else { self.metadata };
        let size =
            format!("{}, {} in memory", text::size(filter.size_bytes()), text::size(self.memory()));
        let inserted = text::count(filter.inserted());
        let mut rows = vec![
            ("type", format!("{}, {}", filter.filter_type(), filter.describe())),
            ("size", size),
            ("plan", plan),
            ("keys", format!("{keys}; {inserted} inserts were new")),
            ("left", left),
            ("fill", format!("{} %", text::significant(self.fill * 100.0))),
            ("rate now", text::rate(self.rate)),
            ("hash", format!("{}{secret}", hash.name())),
            ("metadata", metadata.to_owned()),
        ];
        if let Some(window) = self.window() {
            rows.insert(2, ("window", window));
        }
        if let Some((stuck, at)) = self.stuck() {
            let stuck =
                format!("{} stuck at {at}, which removing does not lower", text::count(stuck));
            rows.push(("counters", stuck));
        }
        if self.overfull {
            let times = text::significant(self.rate / target);
            let warning =
                format!("overfull: errs {times} times as often as planned; build a larger one");
            let at = rows.iter().position(|(name, _)| *name == "hash").unwrap_or(rows.len());
            rows.insert(at, ("warning", warning));
        }
        let rows: String =
            rows.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect();
        rows + &self.plot(columns)
    }

    /// A number of its geometry.
    fn number(&self, name: &str) -> Option<u64> {
        self.numbers.iter().find(|number| number.0 == name).map(|number| number.1)
    }

    /// How many counters are stuck and at what; `None` of types that do not count.
    fn stuck(&self) -> Option<(u64, u64)> {
        Some((self.number("saturated")?, 1 << (self.number("width")? - 1)))
    }

    /// What it is a window of; `None` of types that forget nothing.
    fn window(&self) -> Option<String> {
        let parts = self.number("generations")?;
        let window = match (self.number("window_ticks"), self.number("now")) {
            // Who builds it tells it seconds.
            (Some(seconds), Some(0)) => format!("{}, no time told yet", text::span(seconds)),
            (Some(seconds), now) => {
                format!("{}, told last at {} (Unix time)", text::span(seconds), now.unwrap_or(0))
            }
            _ => format!("the last {}", text::keys(self.filter.planned_keys())),
        };
        Some(format!("{window}; it moves on by 1/{} of that at a time", parts - 1))
    }

    /// How full blocks are: all alike if the hash does its work.
    fn plot(&self, columns: usize) -> String {
        let count: u64 = self.blocks.iter().sum();
        if count == 0 {
            return String::new();
        }
        let step = 100 / STEPS;
        let name = |at: usize| format!("{} to {} %", at * step, (at + 1) * step);
        let rows = self.blocks.iter().enumerate().map(|(at, blocks)| (name(at), *blocks));
        let bars = plot::bars(&rows.collect::<Vec<_>>(), columns);
        format!("blocks    {}, by their fill:\n{bars}", text::count(count))
    }

    fn json(&self) -> String {
        let filter = self.filter;
        let numbers =
            self.numbers.iter().map(|(name, number)| ((*name).to_owned(), (*number).into()));
        let numbers: serde_json::Map<String, Value> = numbers.collect();
        let metadata: Value =
            serde_json::from_str(self.metadata).unwrap_or_else(|_| self.metadata.into());
        let facts = json!({
            "type": filter.filter_type().name(),
            "shape": numbers,
            "size_bytes": filter.size_bytes(),
            "memory_bytes": self.memory(),
            "planned_keys": filter.planned_keys(),
            "target_rate": filter.target_rate(),
            "inserted": filter.inserted(),
            "estimated_keys": self.held,
            "capacity_left": self.left,
            "fill_ratio": self.fill,
            "rate_now": self.rate,
            "overfull": self.overfull,
            "block_fills": self.blocks,
            "hash": filter.hash_spec().name(),
            "metadata": metadata,
        });
        format!("{facts:#}\n")
    }
}
