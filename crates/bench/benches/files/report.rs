//! What the runs say: raw rows, a table, and the targets.

use petal_bench::machine::Machine;

use crate::contest::{Contest, Lane, Run};
use crate::plan::{DUCKDB_TIGHT, Work};

/// What the promise of the memory cap allows above the cap.
const CAP_SLACK_MIB: u64 = 16;
const MIB: f64 = 1_048_576.0;
pub(crate) const HEADER: [&str; 21] = [
    "date",
    "lines_per_file",
    "lines_common",
    "line_bytes",
    "work",
    "tool",
    "version",
    "config",
    "round",
    "wall_s",
    "user_s",
    "sys_s",
    "peak_rss_bytes",
    "lines_out",
    "right",
    "in_order_of_a",
    "trouble",
    "command",
    "machine",
    "rustc",
    "commit",
];

/// Names a lane: work, tool, and config; an empty config is the fastest of the tool that was right.
type Pick = (Work, &'static str, &'static str);

/// How many times as long the first lane may, or must, take as the second.
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

use Bound::{AtLeast, AtMost};
use Work::{Build, Check, Common, Dedup, Jobs};

const TARGETS: [(&str, Pick, Pick, Bound); 14] = [
    ("petal build / wc -l", (Build, "petal", "-n"), (Build, "wc", ""), AtMost(2.5)),
    ("bloom create / petal build", (Build, "bloom", ""), (Build, "petal", "-n"), AtLeast(15.0)),
    ("petal check -c / wc -l", (Check, "petal", "-c"), (Check, "wc", ""), AtMost(2.5)),
    ("bloom check / petal check", (Check, "bloom", ""), (Check, "petal", "prints"), AtLeast(15.0)),
    ("petal common -m 128M / wc -l", (Common, "petal", "-m 128M"), (Common, "wc", ""), AtMost(7.0)),
    ("the same, to reach for", (Common, "petal", "-m 128M"), (Common, "wc", ""), AtMost(5.0)),
    (
        "duckdb at its best / petal common -m 128M",
        (Common, "duckdb", ""),
        (Common, "petal", "-m 128M"),
        AtLeast(3.0),
    ),
    (
        "duckdb in 256 MB / petal common -m 128M",
        (Common, "duckdb", DUCKDB_TIGHT),
        (Common, "petal", "-m 128M"),
        AtLeast(6.0),
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

impl Contest<'_> {
    pub(crate) fn rows(&self, machine: &Machine) -> Vec<[String; HEADER.len()]> {
        let runs = self.lanes.iter().flat_map(|lane| lane.runs.iter().map(move |run| (lane, run)));
        runs.map(|(lane, run)| self.row(machine, lane, run)).collect()
    }

    fn row(&self, machine: &Machine, lane: &Lane, run: &Run) -> [String; HEADER.len()] {
        let entry = &lane.entry;
        [
            machine.date.clone(),
            self.size.lines.to_string(),
            self.size.common.to_string(),
            self.corpus.line_bytes().to_string(),
            entry.work.name().to_owned(),
            entry.tool.to_owned(),
            self.tools.version(entry).to_owned(),
            entry.config.clone(),
            run.round.to_string(),
            format!("{:.4}", run.wall),
            format!("{:.3}", run.user),
            format!("{:.3}", run.system),
            run.peak.to_string(),
            run.verdict.lines.to_string(),
            run.verdict.right.to_string(),
            run.verdict.in_order.map_or_else(String::new, |it| it.to_string()),
            run.trouble.clone(),
            entry.command.clone(),
            machine.description.clone(),
            machine.rustc.clone(),
            machine.commit.clone(),
        ]
    }

    /// Medians of every lane, beside `wc -l` and beside petal's first lane of the same work.
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
        for lane in &self.lanes {
            let work = lane.entry.work;
            // Jobs are compared with each other only: the works are different ones.
            let first = |tool| self.first(work, tool).filter(|_| work != Jobs);
            let times =
                |tool| first(tool).map_or("-".into(), |other| format!("{:.2}", lane.times(other)));
            let in_order = lane.runs.iter().filter_map(|run| run.verdict.in_order).min();
            println!(
                "{:<7} {:<10} {:<14} {:>4} {:>9.3} {:>8.2} {:>8.2} {:>8} {:>9} {:>9.1}  {:<5} {:<8}",
                work.name(),
                lane.entry.tool,
                lane.entry.config,
                lane.runs.len(),
                lane.median(|run| run.wall),
                lane.median(|run| run.user),
                lane.median(|run| run.system),
                times("wc"),
                times("petal"),
                lane.peak() as f64 / MIB,
                yes(lane.good()),
                in_order.map_or("-", yes),
            );
        }
    }

    /// Each target whose work was done, with what was measured.
    pub(crate) fn print_targets(&self) {
        println!("\n{:<44} {:>9} {:>9}  met", "target (times as long)", "wanted", "measured");
        for (name, over, under, bound) in &TARGETS {
            if self.first(over.0, "petal").is_none() {
                continue;
            }
            let measured =
                self.pick(over).zip(self.pick(under)).map(|(over, under)| over.times(under));
            let (wanted, met) = match *bound {
                AtMost(most) => (format!("<= {most}"), measured.map(|it| it <= most)),
                AtLeast(least) => (format!(">= {least}"), measured.map(|it| it >= least)),
            };
            let measured = measured.map_or("-".into(), |it| format!("{it:.2}"));
            println!(
                "{name:<44} {wanted:>9} {measured:>9}  {}",
                met.map_or("no right answer", yes)
            );
        }
    }

    fn first(&self, work: Work, tool: &str) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.entry.work == work && lane.entry.tool == tool)
    }

    /// The lane of a pick, if its answers were right.
    fn pick(&self, &(work, tool, config): &Pick) -> Option<&Lane> {
        let lanes = self.lanes.iter().filter(|lane| {
            let entry = &lane.entry;
            entry.work == work
                && entry.tool == tool
                && (config.is_empty() || entry.config == config)
        });
        let wall = |lane: &&Lane| lane.median(|run| run.wall);
        lanes.filter(|lane| lane.good()).min_by(|a, b| wall(a).total_cmp(&wall(b)))
    }

    /// An error unless every run of petal was right, in order, and within its cap.
    pub(crate) fn judge_petal(&self) -> Result<(), String> {
        for lane in self.lanes.iter().filter(|lane| lane.entry.tool == "petal") {
            let command = &lane.entry.command;
            if !lane.good() || lane.runs.iter().any(|run| run.verdict.in_order == Some(false)) {
                return Err(format!("petal was wrong: {command}"));
            }
            let peak = lane.peak();
            if lane.entry.cap_mib.is_some_and(|cap| peak > (cap + CAP_SLACK_MIB) << 20) {
                return Err(format!("petal took {:.1} MiB: {command}", peak as f64 / MIB));
            }
        }
        println!(
            "\npetal: right, in A's order, within its caps + {CAP_SLACK_MIB} MiB in every run"
        );
        Ok(())
    }
}

fn yes(fact: bool) -> &'static str {
    if fact { "yes" } else { "no" }
}
