//! Runs commands over the same two files, one after the other.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use petal_bench::corpus::Corpus;
use petal_bench::machine::Machine;
use petal_bench::rivals::error_line;
use petal_bench::stats::median;
use petal_testkit::measure::run_measured_redirected;

use crate::check::{Checked, check};
use crate::tools::Tools;
use crate::works::{Entry, Work};

/// Files that commands leave in the folder.
const OUTPUTS: [&str; 5] = ["out.txt", "a.sorted", "b.sorted", "counted.petal", "jobs.petal"];

/// One run of a command.
pub(crate) struct Run {
    pub(crate) round: usize,
    pub(crate) wall: f64,
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) peak: u64,
    pub(crate) checked: Checked,
    /// The error of the command; empty if it succeeded.
    pub(crate) error: String,
}

impl Run {
    pub(crate) fn correct(&self) -> bool {
        self.error.is_empty() && self.checked.correct
    }
}

/// A command with its runs.
pub(crate) struct Runs {
    pub(crate) entry: Entry,
    pub(crate) runs: Vec<Run>,
}

impl Runs {
    pub(crate) fn median(&self, figure: fn(&Run) -> f64) -> f64 {
        median(&self.runs.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.runs.iter().map(|run| run.peak).max().unwrap_or(0)
    }

    pub(crate) fn correct(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(Run::correct)
    }

    /// Returns the wall time divided by that of `other`: paired by round if both have the same rounds, otherwise the
    /// ratio of the medians.
    pub(crate) fn ratio_to(&self, other: &Runs) -> f64 {
        if self.runs.len() != other.runs.len() {
            return self.median(|run| run.wall) / other.median(|run| run.wall);
        }
        let pairs = self.runs.iter().zip(&other.runs);
        let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours.wall / theirs.wall).collect();
        median(&ratios).unwrap_or(f64::NAN)
    }
}

/// Commands over the same two files.
pub(crate) struct Comparison<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) folder: &'a Path,
    pub(crate) tools: &'a Tools,
    pub(crate) runs: Vec<Runs>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(corpus: &'a Corpus, folder: &'a Path, tools: &'a Tools) -> Self {
        Self { corpus, folder, tools, runs: Vec::new() }
    }

    /// Runs all commands whose tool is installed, in rounds; slow rivals have their own number of rounds. Even rounds
    /// are in reverse order, so that no tool always follows another one.
    pub(crate) fn run(
        &mut self,
        work: Work,
        entries: Vec<Entry>,
        rounds: usize,
        rival_rounds: usize,
    ) -> Result<(), String> {
        println!("\n{}", work.name());
        // Reads both files into the page cache.
        let csv = work == Work::Columns;
        for name in if csv { ["a.csv", "b.csv"] } else { ["a.txt", "b.txt"] } {
            File::open(self.folder.join(name))
                .and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()))
                .map_err(|e| format!("{name}: {e}"))?;
        }
        let entries = entries.into_iter().filter(|entry| self.tools.has(entry));
        let mut all: Vec<Runs> = entries.map(|entry| Runs { entry, runs: Vec::new() }).collect();
        for round in 1..=rounds.max(rival_rounds) {
            let mut order: Vec<usize> = (0..all.len()).collect();
            if round % 2 == 0 {
                order.reverse();
            }
            for number in order {
                let Runs { entry, runs } = &mut all[number];
                if round > if entry.slow { rival_rounds } else { rounds } {
                    continue;
                }
                let run = self.run_once(entry, round)?;
                let wrong = if run.checked.correct { "" } else { "WRONG" };
                println!(
                    "  round {round}: {:<10} {:<14} {:>8.3} s  {wrong}{}",
                    entry.tool, entry.config, run.wall, run.error
                );
                runs.push(run);
            }
        }
        self.runs.append(&mut all);
        Ok(())
    }

    /// Runs the first command of each tool whose file does not exist.
    pub(crate) fn make_missing(
        &self,
        entries: &[Entry],
        files: [(&str, &str); 2],
    ) -> Result<(), String> {
        for (tool, file) in files {
            let entry = entries.iter().find(|entry| entry.tool == tool && self.tools.has(entry));
            if let Some(entry) = entry.filter(|_| !self.folder.join(file).exists()) {
                self.run_once(entry, 0)?;
            }
        }
        Ok(())
    }

    fn run_once(&self, entry: &Entry, round: usize) -> Result<Run, String> {
        let problem = |e| format!("cannot run {}: {e}", entry.command);
        let (mut command, input) =
            self.tools.command(entry).ok_or_else(|| format!("no program for {}", entry.tool))?;
        let out = self.folder.join("out.txt");
        self.remove_outputs();
        // Otherwise the next command would wait for the dirty pages of the last one.
        let _ = Command::new("sync").arg("-f").arg(self.folder).status();
        let input = match input {
            None => Stdio::null(),
            Some(name) => File::open(self.folder.join(name)).map_err(problem)?.into(),
        };
        let output = File::create(&out).map_err(problem)?;
        command.current_dir(self.folder);
        let measured = run_measured_redirected(command, input, output).map_err(problem)?;
        let error = match measured.output.status {
            status if status.success() => String::new(),
            status => format!("{status}: {}", error_line(&measured.output.stderr)),
        };
        let checked = check(self.corpus, &entry.answer, &out)?;
        self.remove_outputs();
        Ok(Run {
            round,
            wall: measured.wall.as_secs_f64(),
            user: measured.user.as_secs_f64(),
            system: measured.system.as_secs_f64(),
            peak: measured.peak_rss,
            checked,
            error,
        })
    }

    fn remove_outputs(&self) {
        for name in OUTPUTS {
            let _ = fs::remove_file(self.folder.join(name));
        }
    }

    /// Saves the rows and prints the report. An error if petal was wrong.
    pub(crate) fn finish(&self, benchmark: &str) -> Result<(), String> {
        let machine = Machine::read();
        let file = machine.save(benchmark, &self.rows())?;
        println!("\n{}", machine.line());
        println!(
            "two files of {} lines, {} in common, {} bytes a line, page cache warm; medians",
            self.corpus.count(),
            self.corpus.common(),
            self.corpus.line_bytes()
        );
        self.print_table();
        if benchmark == "files" {
            self.print_targets();
        }
        println!("\nrows are in {}", file.display());
        self.check_petal()
    }
}
