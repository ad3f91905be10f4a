//! The tools, their runs, and what comes out of them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use petal_bench::corpus::{Corpus, Judge, Verdict};
use petal_bench::machine::Machine;
use petal_bench::rivals::{complaint, duckdb_script, version};
use petal_bench::summary::median;
use petal_testkit::measure::run_measured;

/// What the promise of the memory cap allows above the cap.
const CAP_SLACK_MIB: u64 = 16;
const MIB: f64 = 1_048_576.0;
const HEADER: [&str; 21] = [
    "date",
    "scale",
    "lines_per_file",
    "lines_common",
    "line_bytes",
    "tool",
    "version",
    "config",
    "round",
    "wall_s",
    "user_s",
    "sys_s",
    "peak_rss_bytes",
    "lines_out",
    "exact",
    "in_order_of_a",
    "trouble",
    "command",
    "machine",
    "rustc",
    "commit",
];

/// One way to do the job. It runs in the folder of the files, so that its command names no other folder.
pub(crate) struct Tool {
    name: &'static str,
    version: String,
    config: String,
    program: PathBuf,
    args: Vec<String>,
    shown: String,
}

impl Tool {
    /// The program under test, with its memory cap.
    pub(crate) fn petal(program: &Path, cap_mib: u64) -> Result<Self, String> {
        let cap = format!("{cap_mib}M");
        let args = ["common", "a.txt", "b.txt", "-m", &cap, "-T", "tmp", "-o", "out.txt"]
            .map(str::to_owned);
        Ok(Self {
            name: "petal",
            version: version(program, &["--version".as_ref()])?,
            config: format!("-m {cap}"),
            program: program.to_owned(),
            shown: format!("petal {}", args.join(" ")),
            args: args.into(),
        })
    }

    /// The rival, with its memory limit, on both cores of the machine the figures are from.
    pub(crate) fn duckdb(python: &Path, limit: &str) -> Result<Self, String> {
        let script = duckdb_script();
        let rest = [limit, "2", "tmp", "out.txt", "a.txt", "b.txt"].map(str::to_owned);
        let shown = format!("python duckdb_lines.py {}", rest.join(" "));
        let mut args = vec![script.to_string_lossy().into_owned()];
        args.extend(rest);
        Ok(Self {
            name: "duckdb",
            version: version(python, &[&script, "--version".as_ref()])?,
            config: format!("memory_limit {limit}, 2 threads"),
            program: python.to_owned(),
            args,
            shown,
        })
    }
}

/// One run of one tool.
struct Run {
    tool: usize,
    round: usize,
    wall: f64,
    user: f64,
    system: f64,
    peak: u64,
    verdict: Verdict,
    /// Empty, or what the tool said when it failed.
    trouble: String,
}

/// Tools over the same two files.
pub(crate) struct Contest<'a> {
    corpus: &'a Corpus,
    folder: &'a Path,
    scale: u64,
    tools: Vec<Tool>,
    runs: Vec<Run>,
    machine: Machine,
}

impl<'a> Contest<'a> {
    pub(crate) fn new(corpus: &'a Corpus, folder: &'a Path, scale: u64, tools: Vec<Tool>) -> Self {
        Self { corpus, folder, scale, tools, runs: Vec::new(), machine: Machine::read() }
    }

    /// So many rounds over all tools. Every second round goes backwards, so that no tool always follows another.
    pub(crate) fn run(&mut self, rounds: usize) -> Result<(), String> {
        println!("reading both files once, so that every tool starts from the same page cache");
        for name in ["a.txt", "b.txt"] {
            let mut file =
                File::open(self.folder.join(name)).map_err(|e| format!("{name}: {e}"))?;
            std::io::copy(&mut file, &mut std::io::sink()).map_err(|e| format!("{name}: {e}"))?;
        }
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..self.tools.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for tool in order {
                let run = self.run_once(tool, round + 1)?;
                let Tool { name, config, .. } = &self.tools[tool];
                let Run { wall, trouble, .. } = &run;
                println!("round {}: {name} {config}: {wall:.2} s {trouble}", round + 1);
                self.runs.push(run);
            }
        }
        Ok(())
    }

    fn run_once(&self, number: usize, round: usize) -> Result<Run, String> {
        let tool = &self.tools[number];
        let out = self.folder.join("out.txt");
        // No old answer to be judged by mistake, and no other tool's dirty pages to wait for.
        let _ = fs::remove_file(&out);
        let _ = Command::new("sync").status();
        let mut command = Command::new(&tool.program);
        command.args(&tool.args).current_dir(self.folder);
        let measured =
            run_measured(command).map_err(|e| format!("cannot run {}: {e}", tool.name))?;
        let trouble = match measured.output.status {
            status if status.success() => String::new(),
            status => format!("{status}: {}", complaint(&measured.output.stderr)),
        };
        let verdict = judge(self.corpus, &out)?;
        let _ = fs::remove_file(&out);
        Ok(Run {
            tool: number,
            round,
            wall: measured.wall.as_secs_f64(),
            user: measured.user.as_secs_f64(),
            system: measured.system.as_secs_f64(),
            peak: measured.peak_rss,
            verdict,
            trouble,
        })
    }

    /// Keeps the raw rows.
    pub(crate) fn save(&self) -> Result<PathBuf, String> {
        let rows: Vec<_> = self.runs.iter().map(|run| self.row(run)).collect();
        self.machine.save("headline", &HEADER, &rows)
    }

    fn row(&self, run: &Run) -> [String; HEADER.len()] {
        let tool = &self.tools[run.tool];
        [
            self.machine.date.clone(),
            self.scale.to_string(),
            self.corpus.count().to_string(),
            self.corpus.common().to_string(),
            self.corpus.line_bytes().to_string(),
            tool.name.to_owned(),
            tool.version.clone(),
            tool.config.clone(),
            run.round.to_string(),
            format!("{:.3}", run.wall),
            format!("{:.3}", run.user),
            format!("{:.3}", run.system),
            run.peak.to_string(),
            run.verdict.lines.to_string(),
            run.verdict.exact.to_string(),
            run.verdict.in_order.to_string(),
            run.trouble.clone(),
            tool.shown.clone(),
            self.machine.description.clone(),
            self.machine.rustc.clone(),
            self.machine.commit.clone(),
        ]
    }

    /// Medians of each tool, and how far the rival's best is from the first tool.
    pub(crate) fn print(&self) {
        println!("\n{}", self.machine.line());
        println!(
            "two files of {} lines, {} in common, {} bytes a line, page cache warm as far as it reaches\n",
            self.corpus.count(),
            self.corpus.common(),
            self.corpus.line_bytes()
        );
        println!(
            "{:<8} {:<32} {:>5} {:>9} {:>9} {:>8} {:>10}  {:<6} {:<8}",
            "tool", "config", "runs", "wall s", "user s", "sys s", "peak MiB", "exact", "in order"
        );
        for (number, tool) in self.tools.iter().enumerate() {
            let runs: Vec<&Run> = self.runs.iter().filter(|run| run.tool == number).collect();
            let middle = |field: fn(&Run) -> f64| {
                let values: Vec<f64> = runs.iter().map(|run| field(run)).collect();
                median(&values).unwrap_or(f64::NAN)
            };
            println!(
                "{:<8} {:<32} {:>5} {:>9.2} {:>9.2} {:>8.2} {:>10.1}  {:<6} {:<8}",
                tool.name,
                tool.config,
                runs.len(),
                middle(|run| run.wall),
                middle(|run| run.user),
                middle(|run| run.system),
                runs.iter().map(|run| run.peak).max().unwrap_or(0) as f64 / MIB,
                all(&runs, |run| run.verdict.exact),
                all(&runs, |run| run.verdict.in_order),
            );
        }
        if let (Some(ours), Some(rival)) = (self.best("petal"), self.best("duckdb")) {
            println!("\nwall time of duckdb at its best limit / petal: {:.2}", rival / ours);
        }
    }

    /// The best median wall time among the configurations of a tool whose every run was right.
    fn best(&self, name: &str) -> Option<f64> {
        let medians =
            self.tools.iter().enumerate().filter(|(_, tool)| tool.name == name).filter_map(
                |(number, _)| {
                    let runs: Vec<&Run> =
                        self.runs.iter().filter(|run| run.tool == number).collect();
                    let right = runs.iter().all(|run| run.verdict.exact && run.trouble.is_empty());
                    right
                        .then(|| median(&runs.iter().map(|run| run.wall).collect::<Vec<_>>()))
                        .flatten()
                },
            );
        medians.min_by(f64::total_cmp)
    }

    /// An error unless every run of ours was exact, in order, and within its cap.
    pub(crate) fn judge_petal(&self, cap_mib: u64) -> Result<(), String> {
        let limit = (cap_mib + CAP_SLACK_MIB) << 20;
        for run in self.runs.iter().filter(|run| self.tools[run.tool].name == "petal") {
            let Verdict { exact, in_order, lines, wrong } = run.verdict;
            if !run.trouble.is_empty() {
                return Err(format!("petal failed in round {}: {}", run.round, run.trouble));
            }
            if !exact || !in_order {
                return Err(format!(
                    "petal was wrong in round {}: {lines} lines, {wrong} of them wrong, in order: {in_order}",
                    run.round
                ));
            }
            if run.peak > limit {
                return Err(format!(
                    "petal took {:.1} MiB in round {}, its cap is {cap_mib} MiB + {CAP_SLACK_MIB} MiB",
                    run.peak as f64 / MIB,
                    run.round
                ));
            }
        }
        println!(
            "petal: exact, in A's order, within {cap_mib} MiB + {CAP_SLACK_MIB} MiB in every run"
        );
        Ok(())
    }
}

fn all(runs: &[&Run], fact: fn(&Run) -> bool) -> &'static str {
    if runs.iter().all(|run| fact(run)) { "yes" } else { "no" }
}

/// Judges the answer in a file; a file that is not there is an empty answer.
fn judge(corpus: &Corpus, file: &Path) -> Result<Verdict, String> {
    let mut judge = Judge::of_common(corpus);
    if let Ok(file) = File::open(file) {
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        while reader
            .read_until(b'\n', &mut line)
            .map_err(|e| format!("cannot read the answer: {e}"))?
            > 0
        {
            judge.see(line.strip_suffix(b"\n").unwrap_or(&line));
            line.clear();
        }
    }
    Ok(judge.verdict())
}
