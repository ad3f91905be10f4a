//! `info`: what a filter file says of itself, and what its bits say.

use petal::{FilterType, Membership};
use serde_json::{Value, json};

use super::print;
use crate::args::InfoArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::{filter_file, plot, text};

pub(super) fn run(args: &InfoArgs) -> Result<Outcome> {
    let filter = filter_file::open(&args.filter)?;
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
            _ => format!("{} keys at {}", text::count(planned), text::rate(target)),
        };
        let keys = self.held.map_or_else(|| "full".to_owned(), text::count);
        let left = match self.left {
            Some(0) => "no room for more keys at the planned rate".to_owned(),
            Some(left) => format!("room for {} keys more at the planned rate", text::count(left)),
            None => match filter.filter_type() {
                FilterType::Static | FilterType::Cascade => "it takes no more keys".to_owned(),
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
            ("keys", format!("about {keys} distinct; {inserted} inserts were new")),
            ("left", left),
            ("fill", format!("{} %", text::significant(self.fill * 100.0))),
            ("rate now", text::rate(self.rate)),
            ("hash", format!("{}{secret}", hash.name())),
            ("metadata", metadata.to_owned()),
        ];
        if self.overfull {
            let times = text::significant(self.rate / target);
            let warning =
                format!("overfull: errs {times} times as often as planned; build a larger one");
            rows.insert(7, ("warning", warning));
        }
        let rows: String =
            rows.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect();
        rows + &self.plot(columns)
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
            filter.geometry().into_iter().map(|(name, number)| (name.to_owned(), number.into()));
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
