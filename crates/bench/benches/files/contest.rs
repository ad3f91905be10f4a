//! Runs, one after the other, each judged.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use petal_bench::corpus::Corpus;
use petal_bench::rivals::complaint;
use petal_bench::summary::median;
use petal_testkit::measure::run_measured_redirected;

use crate::plan::{Entry, Size, Work};
use crate::tools::Tools;
use crate::verdict::{Verdict, judge};

/// What commands leave behind beside their answer.
const LEFT_BEHIND: [&str; 4] = ["a.sorted", "b.sorted", "counted.petal", "jobs.petal"];

/// One run of one entry.
pub(crate) struct Run {
    pub(crate) round: usize,
    pub(crate) wall: f64,
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) peak: u64,
    pub(crate) verdict: Verdict,
    /// Empty, or what the tool said when it failed.
    pub(crate) trouble: String,
}

impl Run {
    /// Whether the tool did what it was asked for.
    pub(crate) fn good(&self) -> bool {
        self.trouble.is_empty() && self.verdict.right
    }
}

/// An entry with its runs.
pub(crate) struct Lane {
    pub(crate) entry: Entry,
    pub(crate) runs: Vec<Run>,
}

impl Lane {
    /// The median of a figure over all runs.
    pub(crate) fn median(&self, figure: fn(&Run) -> f64) -> f64 {
        median(&self.runs.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.runs.iter().map(|run| run.peak).max().unwrap_or(0)
    }

    pub(crate) fn good(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(Run::good)
    }

    /// How many times as long this took as another did: by rounds, if both ran in the same, since what disturbs a
    /// round disturbs both; else by medians.
    pub(crate) fn times(&self, other: &Lane) -> f64 {
        let paired = self.runs.len() == other.runs.len();
        if paired {
            let ratios =
                self.runs.iter().zip(&other.runs).map(|(ours, theirs)| ours.wall / theirs.wall);
            median(&ratios.collect::<Vec<_>>()).unwrap_or(f64::NAN)
        } else {
            self.median(|run| run.wall) / other.median(|run| run.wall)
        }
    }
}

/// Tools over the same two files.
pub(crate) struct Contest<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) size: Size,
    pub(crate) folder: &'a Path,
    pub(crate) tools: &'a Tools,
    pub(crate) lanes: Vec<Lane>,
}

impl Contest<'_> {
    /// So many rounds over all entries of a work, slow rivals in fewer. Every second round goes backwards, so that no
    /// tool always follows another.
    pub(crate) fn run(&mut self, work: Work, runs: usize, rival_runs: usize) -> Result<(), String> {
        println!("\n{}", work.name());
        self.prepare(work)?;
        let entries = self.size.entries(work).into_iter().filter(|entry| self.tools.has(entry));
        let mut lanes: Vec<Lane> = entries.map(|entry| Lane { entry, runs: Vec::new() }).collect();
        for round in 1..=runs.max(rival_runs) {
            let mut order: Vec<usize> = (0..lanes.len()).collect();
            if round % 2 == 0 {
                order.reverse();
            }
            for number in order {
                let Lane { entry, runs: done } = &mut lanes[number];
                if round > if entry.slow { rival_runs } else { runs } {
                    continue;
                }
                let run = self.run_once(entry, round)?;
                let wrong = if run.verdict.right { "" } else { "WRONG" };
                println!(
                    "  round {round}: {:<10} {:<14} {:>8.3} s  {wrong}{}",
                    entry.tool, entry.config, run.wall, run.trouble
                );
                done.push(run);
            }
        }
        self.lanes.append(&mut lanes);
        Ok(())
    }

    /// The filters that the work asks, and both files in the page cache.
    fn prepare(&self, work: Work) -> Result<(), String> {
        if matches!(work, Work::Check | Work::Jobs) {
            for (tool, file) in [("petal", "a.petal"), ("bloom", "a.bloom")] {
                let builds = self.size.entries(Work::Build);
                let build = builds.iter().find(|entry| entry.tool == tool && self.tools.has(entry));
                if let Some(build) = build.filter(|_| !self.folder.join(file).exists()) {
                    self.run_once(build, 0)?;
                }
            }
        }
        for name in ["a.txt", "b.txt"] {
            File::open(self.folder.join(name))
                .and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()))
                .map_err(|e| format!("{name}: {e}"))?;
        }
        Ok(())
    }

    fn run_once(&self, entry: &Entry, round: usize) -> Result<Run, String> {
        let problem = |e| format!("cannot run {}: {e}", entry.command);
        let (mut command, input) =
            self.tools.command(entry).ok_or_else(|| format!("no program for {}", entry.tool))?;
        let out = self.folder.join("out.txt");
        self.tidy();
        // No other tool's dirty pages to wait for.
        let _ = Command::new("sync").arg("-f").arg(self.folder).status();
        let input = match input {
            None => Stdio::null(),
            Some(name) => File::open(self.folder.join(name)).map_err(problem)?.into(),
        };
        let output = File::create(&out).map_err(problem)?;
        command.current_dir(self.folder);
        let measured = run_measured_redirected(command, input, output).map_err(problem)?;
        let trouble = match measured.output.status {
            status if status.success() => String::new(),
            status => format!("{status}: {}", complaint(&measured.output.stderr)),
        };
        let verdict = judge(self.corpus, &entry.answer, &out)?;
        self.tidy();
        Ok(Run {
            round,
            wall: measured.wall.as_secs_f64(),
            user: measured.user.as_secs_f64(),
            system: measured.system.as_secs_f64(),
            peak: measured.peak_rss,
            verdict,
            trouble,
        })
    }

    /// Nothing that another run could take for its own.
    fn tidy(&self) {
        for name in LEFT_BEHIND.iter().chain(&["out.txt"]) {
            let _ = fs::remove_file(self.folder.join(name));
        }
    }
}
