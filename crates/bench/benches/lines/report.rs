//! The report: rows, a table, and performance targets.

use petal_bench::machine::Fields;

use crate::runs::{Comparison, Run, Runs};
use crate::works::{DUCKDB_SMALL, Work};
use crate::yes;

/// Memory that petal may use above its limit.
const MEMORY_OVERHEAD_MIB: u64 = 16;
const MIB: f64 = 1_048_576.0;
/// Selects a command: work, tool and config. An empty config selects the fastest correct command of the tool.
type Selector = (Work, &'static str, &'static str);

/// Bound of the time of the first command divided by that of the second.
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

use Bound::{AtLeast, AtMost};
use Work::{Build, Check, Columns, Common, Dedup, Jobs};

const TARGETS: [(&str, Selector, Selector, Bound); 18] = [
    ("petal build / wc -l", (Build, "petal", "-n"), (Build, "wc", ""), AtMost(2.5)),
    ("bloom create / petal build", (Build, "bloom", ""), (Build, "petal", "-n"), AtLeast(15.0)),
    ("petal check -c / wc -l", (Check, "petal", "-c"), (Check, "wc", ""), AtMost(2.5)),
    ("bloom check / petal check", (Check, "bloom", ""), (Check, "petal", "prints"), AtLeast(15.0)),
    ("petal common -m 128M / wc -l", (Common, "petal", "-m 128M"), (Common, "wc", ""), AtMost(7.0)),
    ("the same, as a goal", (Common, "petal", "-m 128M"), (Common, "wc", ""), AtMost(5.0)),
    (
        "duckdb at its best / petal common -m 128M",
        (Common, "duckdb", ""),
        (Common, "petal", "-m 128M"),
        AtLeast(3.0),
    ),
    (
        "duckdb in 256 MB / petal common -m 128M",
        (Common, "duckdb", DUCKDB_SMALL),
        (Common, "petal", "-m 128M"),
        AtLeast(6.0),
    ),
    (
        "common --column / lines, -m 128M",
        (Columns, "petal", "column -m 128M"),
        (Columns, "petal", "lines -m 128M"),
        AtMost(2.0),
    ),
    (
        "common --column / lines, -m 1G",
        (Columns, "petal", "column -m 1024M"),
        (Columns, "petal", "lines -m 1024M"),
        AtMost(2.0),
    ),
    (
        "duckdb at its best / common --column -m 1G",
        (Columns, "duckdb", ""),
        (Columns, "petal", "column -m 1024M"),
        AtLeast(1.0),
    ),
    (
        "duckdb in 256 MB / common --column -m 128M",
        (Columns, "duckdb", DUCKDB_SMALL),
        (Columns, "petal", "column -m 128M"),
        AtLeast(1.0),
    ),
    (
        "duckdb at its best / petal dedup -m 1G",
        (Dedup, "duckdb", ""),
        (Dedup, "petal", "-m 1024M"),
        AtLeast(3.0),
    ),
    (
        "duckdb at its best / petal dedup -m 128M",
        (Dedup, "duckdb", ""),
        (Dedup, "petal", "-m 128M"),
        AtLeast(1.5),
    ),
    (
        "build -j 1 / -j 2",
        (Jobs, "petal", "build -j 1"),
        (Jobs, "petal", "build -j 2"),
        AtLeast(1.8),
    ),
    (
        "check -c -j 1 / -j 2",
        (Jobs, "petal", "check -j 1"),
        (Jobs, "petal", "check -j 2"),
        AtLeast(1.8),
    ),
    (
        "common -c -j 1 / -j 2",
        (Jobs, "petal", "common -j 1"),
        (Jobs, "petal", "common -j 2"),
        AtLeast(1.8),
    ),
    (
        "dedup -c -j 1 / -j 2",
        (Jobs, "petal", "dedup -j 1"),
        (Jobs, "petal", "dedup -j 2"),
        AtLeast(1.8),
    ),
];

impl Comparison<'_> {
    pub(crate) fn rows(&self) -> Vec<Fields> {
        let runs = self.runs.iter().flat_map(|runs| runs.runs.iter().map(move |run| (runs, run)));
        runs.map(|(runs, run)| self.row(runs, run)).collect()
    }

    fn row(&self, runs: &Runs, run: &Run) -> Fields {
        let entry = &runs.entry;
        vec![
            ("lines_per_file", self.corpus.count().to_string()),
            ("lines_common", self.corpus.common().to_string()),
            ("line_bytes", self.corpus.line_bytes().to_string()),
            ("work", entry.work.name().to_owned()),
            ("tool", entry.tool.to_owned()),
            ("version", self.tools.version(entry).to_owned()),
            ("config", entry.config.clone()),
            ("round", run.round.to_string()),
            ("wall_s", format!("{:.4}", run.wall)),
            ("user_s", format!("{:.3}", run.user)),
            ("sys_s", format!("{:.3}", run.system)),
            ("peak_rss_bytes", run.peak.to_string()),
            ("lines_out", run.checked.lines.to_string()),
            ("right", run.checked.correct.to_string()),
            ("in_order_of_a", run.checked.in_order.map_or_else(String::new, |it| it.to_string())),
            ("trouble", run.error.clone()),
            ("command", entry.command.clone()),
        ]
    }

    /// Medians of every command, and ratios to `wc -l` and to petal's first command of the same work.
    pub(crate) fn print_table(&self) {
        println!(
            "\n{:<7} {:<10} {:<14} {:>4} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9}  {:<5} {:<8}",
            "work",
            "tool",
            "config",
            "runs",
            "wall s",
            "user s",
            "sys s",
            "x wc",
            "x petal",
            "peak MiB",
            "right",
            "in order"
        );
        for it in &self.runs {
            let work = it.entry.work;
            // The commands of `jobs` do different work.
            let first = |tool| self.first(work, tool).filter(|_| work != Jobs);
            let times =
                |tool| first(tool).map_or("-".into(), |other| format!("{:.2}", it.ratio_to(other)));
            let in_order = it.runs.iter().filter_map(|run| run.checked.in_order).min();
            println!(
                "{:<7} {:<10} {:<14} {:>4} {:>9.3} {:>8.2} {:>8.2} {:>8} {:>9} {:>9.1}  {:<5} {:<8}",
                work.name(),
                it.entry.tool,
                it.entry.config,
                it.runs.len(),
                it.median(|run| run.wall),
                it.median(|run| run.user),
                it.median(|run| run.system),
                times("wc"),
                times("petal"),
                it.peak() as f64 / MIB,
                yes(it.correct()),
                in_order.map_or("-", yes),
            );
        }
    }

    /// Prints the targets of the works that were measured.
    pub(crate) fn print_targets(&self) {
        println!("\n{:<44} {:>9} {:>9}  met", "target (ratio of times)", "target", "measured");
        for (name, over, under, bound) in &TARGETS {
            if self.first(over.0, "petal").is_none() {
                continue;
            }
            let measured =
                self.select(over).zip(self.select(under)).map(|(over, under)| over.ratio_to(under));
            let (wanted, met) = match *bound {
                AtMost(most) => (format!("<= {most}"), measured.map(|it| it <= most)),
                AtLeast(least) => (format!(">= {least}"), measured.map(|it| it >= least)),
            };
            let measured = measured.map_or("-".into(), |it| format!("{it:.2}"));
            println!(
                "{name:<44} {wanted:>9} {measured:>9}  {}",
                met.map_or("no correct answer", yes)
            );
        }
    }

    fn first(&self, work: Work, tool: &str) -> Option<&Runs> {
        self.runs.iter().find(|it| it.entry.work == work && it.entry.tool == tool)
    }

    /// Returns the selected command, if its answers were correct.
    fn select(&self, &(work, tool, config): &Selector) -> Option<&Runs> {
        let found = self.runs.iter().filter(|it| {
            let entry = &it.entry;
            entry.work == work
                && entry.tool == tool
                && (config.is_empty() || entry.config == config)
        });
        let wall = |it: &&Runs| it.median(|run| run.wall);
        found.filter(|it| it.correct()).min_by(|a, b| wall(a).total_cmp(&wall(b)))
    }

    /// An error unless every run of petal was correct, in order, and within its memory limit.
    pub(crate) fn check_petal(&self) -> Result<(), String> {
        for it in self.runs.iter().filter(|it| it.entry.tool == "petal") {
            let command = &it.entry.command;
            if !it.correct() || it.runs.iter().any(|run| run.checked.in_order == Some(false)) {
                return Err(format!("wrong answer: {command}"));
            }
            let peak = it.peak();
            if it.entry.memory_mib.is_some_and(|limit| peak > (limit + MEMORY_OVERHEAD_MIB) << 20) {
                return Err(format!("{:.1} MiB used: {command}", peak as f64 / MIB));
            }
        }
        println!(
            "\npetal: correct, in A's order, within its memory limits + {MEMORY_OVERHEAD_MIB} MiB in every run"
        );
        Ok(())
    }
}
