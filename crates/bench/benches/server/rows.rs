//! What was measured: raw rows for the file, medians for the table.

use std::fmt::Write;

use petal_bench::machine::Machine;
use petal_bench::summary::median;

pub(crate) const HEADER: [&str; 13] = [
    "date", "row", "module", "version", "server", "round", "value", "unit", "get_ns", "command",
    "machine", "rustc", "commit",
];

/// What a row is about.
#[derive(Clone)]
pub(crate) struct Subject {
    /// The same for every module and round; no two subjects have the same.
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    /// Most that petal's median may be: as a ratio to GET, where there is one.
    pub(crate) target: Option<f64>,
    pub(crate) command: String,
}

struct Row {
    subject: Subject,
    module: &'static str,
    version: String,
    server: String,
    round: usize,
    value: f64,
    get: Option<f64>,
}

/// Who was measured.
pub(crate) struct Who<'a> {
    pub(crate) module: &'static str,
    pub(crate) version: &'a str,
    pub(crate) server: &'a str,
}

/// All rows, in the order in which they were measured.
#[derive(Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    /// Adds a figure; `get` is that of GET beside it.
    pub(crate) fn add(
        &mut self,
        subject: &Subject,
        who: &Who<'_>,
        round: usize,
        value: f64,
        get: Option<f64>,
    ) {
        self.rows.push(Row {
            subject: subject.clone(),
            module: who.module,
            version: who.version.to_owned(),
            server: who.server.to_owned(),
            round,
            value,
            get,
        });
    }

    /// For [`Machine::save`].
    pub(crate) fn raw(&self, machine: &Machine) -> Vec<[String; 13]> {
        let raw = self.rows.iter().map(|row| {
            [
                machine.date.clone(),
                row.subject.name.clone(),
                row.module.to_owned(),
                row.version.clone(),
                row.server.clone(),
                row.round.to_string(),
                shown(row.value),
                row.subject.unit.to_owned(),
                row.get.map(shown).unwrap_or_default(),
                row.subject.command.clone(),
                machine.description.clone(),
                machine.rustc.clone(),
                machine.commit.clone(),
            ]
        });
        raw.collect()
    }

    /// A line for each subject: medians, and ratios to GET (medians of those of the rounds), with petal's target.
    pub(crate) fn table(&self) -> String {
        let mut names: Vec<&Subject> = Vec::new();
        for row in &self.rows {
            if !names.iter().any(|subject| subject.name == row.subject.name) {
                names.push(&row.subject);
            }
        }
        let mut table = format!(
            "{:<58} {:>20} {:>20} {:>8}\n",
            "median (ratio to GET)", "petal", "RedisBloom", "at most"
        );
        for subject in names {
            let (ours, cell) = self.cell(subject, "petal");
            let (_, theirs) = self.cell(subject, "RedisBloom");
            let target = subject.target.map(shown).unwrap_or_default();
            let met = match (subject.target, ours) {
                (Some(target), Some(ours)) if ours <= target => " met",
                (Some(_), Some(_)) => " MISSED",
                _ => "",
            };
            let name = format!("{}, {}", subject.name, subject.unit);
            // Writing to a string cannot fail.
            let _ = writeln!(table, "{name:<58} {cell:>20} {theirs:>20} {target:>8}{met}");
        }
        table
    }

    /// What is compared with the target, and what is shown.
    fn cell(&self, subject: &Subject, module: &str) -> (Option<f64>, String) {
        let rows = || {
            self.rows
                .iter()
                .filter(move |row| row.subject.name == subject.name && row.module == module)
        };
        let Some(value) = median(&rows().map(|row| row.value).collect::<Vec<_>>()) else {
            return (None, String::new());
        };
        let ratios: Vec<f64> = rows().filter_map(|row| Some(row.value / row.get?)).collect();
        match median(&ratios) {
            Some(ratio) => (Some(ratio), format!("{} ({ratio:.2})", shown(value))),
            None => (Some(value), shown(value)),
        }
    }
}

/// Four digits or more.
fn shown(value: f64) -> String {
    match value.abs() {
        small if small > 0.0 && small < 0.1 => format!("{value:.6}"),
        middle if middle < 100.0 => format!("{value:.3}"),
        _ => format!("{value:.0}"),
    }
}
