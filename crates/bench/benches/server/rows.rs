//! The results: rows for the file, medians for the table.

use std::fmt::Write;

use petal_bench::machine::Fields;
use petal_bench::stats::median;

/// What is measured.
#[derive(Clone)]
pub(crate) struct Figure {
    /// Unique; the same for every module and round.
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    /// Maximum of petal's median: of its ratio to GET, if there is one.
    pub(crate) target: Option<f64>,
    pub(crate) command: String,
}

struct Row {
    figure: Figure,
    module: &'static str,
    version: String,
    server: String,
    round: usize,
    value: f64,
    get: Option<f64>,
}

/// The measured module and server.
pub(crate) struct Source<'a> {
    pub(crate) module: &'static str,
    pub(crate) version: &'a str,
    pub(crate) server: &'a str,
}

/// All rows, in the order of their measurement.
#[derive(Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    /// Adds a value; `get` is that of the GET before it.
    pub(crate) fn add(
        &mut self,
        figure: &Figure,
        source: &Source<'_>,
        round: usize,
        value: f64,
        get: Option<f64>,
    ) {
        self.rows.push(Row {
            figure: figure.clone(),
            module: source.module,
            version: source.version.to_owned(),
            server: source.server.to_owned(),
            round,
            value,
            get,
        });
    }

    /// For [`Machine::save`](petal_bench::machine::Machine::save).
    pub(crate) fn raw(&self) -> Vec<Fields> {
        let raw = self.rows.iter().map(|row| {
            vec![
                ("row", row.figure.name.clone()),
                ("module", row.module.to_owned()),
                ("version", row.version.clone()),
                ("server", row.server.clone()),
                ("round", row.round.to_string()),
                ("value", shown(row.value)),
                ("unit", row.figure.unit.to_owned()),
                ("get_ns", row.get.map(shown).unwrap_or_default()),
                ("command", row.figure.command.clone()),
            ]
        });
        raw.collect()
    }

    /// Returns a line for each figure: medians, and ratios to GET (paired by round), with petal's target.
    pub(crate) fn table(&self) -> String {
        let mut names: Vec<&Figure> = Vec::new();
        for row in &self.rows {
            if !names.iter().any(|figure| figure.name == row.figure.name) {
                names.push(&row.figure);
            }
        }
        let mut modules: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !modules.contains(&row.module) {
                modules.push(row.module);
            }
        }
        let mut table = format!("{:<58}", "median (ratio to GET)");
        for module in &modules {
            // Writing to a string cannot fail.
            let _ = write!(table, " {module:>18}");
        }
        table.push_str("  at most\n");
        for figure in names {
            let (ours, _) = self.cell(figure, "petal");
            let target = figure.target.map(shown).unwrap_or_default();
            let met = match (figure.target, ours) {
                (Some(target), Some(ours)) if ours <= target => " met",
                (Some(_), Some(_)) => " MISSED",
                _ => "",
            };
            let name = format!("{}, {}", figure.name, figure.unit);
            let _ = write!(table, "{name:<58}");
            for module in &modules {
                let _ = write!(table, " {:>18}", self.cell(figure, module).1);
            }
            let _ = writeln!(table, " {target:>8}{met}");
        }
        table
    }

    /// The value to compare with the target, and the text.
    fn cell(&self, figure: &Figure, module: &str) -> (Option<f64>, String) {
        let rows = || {
            self.rows
                .iter()
                .filter(move |row| row.figure.name == figure.name && row.module == module)
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

/// At least four digits.
fn shown(value: f64) -> String {
    match value.abs() {
        small if small > 0.0 && small < 0.1 => format!("{value:.6}"),
        middle if middle < 100.0 => format!("{value:.3}"),
        _ => format!("{value:.0}"),
    }
}
