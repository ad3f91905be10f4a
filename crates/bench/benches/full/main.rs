//! `cargo x bench full`: the approximate headline at full size. 5 billion generated URLs go through a pipe into
//! `petal build` with 4 GiB, and 5 billion others through a pipe into `petal check -c`, so that every hit is a false
//! positive.
//!
//! No file of lines exists. What the generator gives when nobody holds it back (`urls | cat`) is measured beside
//! petal: on two cores the generator takes one of them. A job of a hundredth of the size, with a hundredth of the
//! memory, shows what the size itself costs. The raw rows go to `results/<arch>-<cpu>/<date>-full.csv`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod pipeline;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use petal_bench::machine::Machine;
use petal_bench::place::{self, root};
use petal_bench::rivals;
use petal_bench::summary::median;
use petal_testkit::bounds::binomial_range;
use pipeline::{Job, Step, Trial};

const USAGE: &str = "\
usage: cargo x bench full [--scale S] [--beside T] [--runs N] [--dir DIR] [--petal FILE]

  --scale S     divide 5 billion lines and 4 GiB by S (default 1: some minutes, and 4 GiB of disk)
  --beside T    the smaller job that it is compared with, in 3 rounds or more (default 100; none if T is not above S)
  --runs N      rounds (default 1)
  --dir DIR     where the filter is made (default bench-data)
  --petal FILE  the program to measure (default: target/release/petal)
";

/// The count of false positives must be where the predicted rate puts it with this probability.
const CONFIDENCE: f64 = 0.999;
/// Full size may cost this much of the speed of the smaller job.
const SPEED_KEPT: f64 = 0.7;
/// What the promise of the memory cap allows above the filter.
const CAP_SLACK: u64 = 16 << 20;
const SMALL_ROUNDS: usize = 3;
const MIB: f64 = 1_048_576.0;
const HEADER: [&str; 19] = [
    "date",
    "scale",
    "lines",
    "line_bytes",
    "memory_bytes",
    "step",
    "version",
    "round",
    "wall_s",
    "user_s",
    "sys_s",
    "lines_per_s",
    "peak_rss_bytes",
    "count",
    "predicted_rate",
    "command",
    "machine",
    "rustc",
    "commit",
];

struct Options {
    scale: u64,
    beside: u64,
    runs: usize,
    folder: PathBuf,
    petal: PathBuf,
}

fn main() -> ExitCode {
    // `cargo bench` adds `--bench` to what it is given.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if args.iter().any(|arg| arg == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match options(&args).and_then(|options| full(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("full: {problem}");
            ExitCode::from(1)
        }
    }
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        scale: 1,
        beside: 100,
        runs: 1,
        folder: root().join("bench-data"),
        petal: place::petal(),
    };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} wants a value (see --help)"))?;
        let number = || {
            let number = value.parse().ok().filter(|&n: &u64| n > 0);
            number.ok_or_else(|| format!("not a number: {value}"))
        };
        match name.as_str() {
            "--scale" => options.scale = number()?,
            "--beside" => options.beside = number()?,
            "--runs" => options.runs = number()? as usize,
            "--dir" => options.folder = root().join(value),
            "--petal" => options.petal = root().join(value),
            _ => return Err(format!("not understood: {name} (see --help)")),
        }
    }
    Ok(options)
}

/// A job with its trials.
struct Done {
    job: Job,
    trials: Vec<Trial>,
}

impl Done {
    fn run(options: &Options, scale: u64, rounds: usize) -> Result<Self, String> {
        let folder = options.folder.join(format!("full-{scale}"));
        fs::create_dir_all(&folder)
            .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let job = Job::new(scale, options.petal.clone(), folder)?;
        let mut trials = Vec::new();
        for round in 1..=rounds {
            for step in Step::ALL {
                let trial = job.run(step, round)?;
                println!(
                    "{} lines, round {round}: {:<9} {:>9.2} s  {:>6.1} M lines/s  {:>8.1} MiB",
                    job.lines,
                    step.name(),
                    trial.wall,
                    job.speed(&trial) / 1e6,
                    trial.peak as f64 / MIB
                );
                trials.push(trial);
            }
        }
        job.tidy();
        Ok(Self { job, trials })
    }

    fn of(&self, step: Step) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| trial.step == step)
    }

    /// The median of lines per second.
    fn speed(&self, step: Step) -> f64 {
        let speeds: Vec<f64> = self.of(step).map(|trial| self.job.speed(trial)).collect();
        median(&speeds).unwrap_or(f64::NAN)
    }

    fn peak(&self) -> u64 {
        let ours = self.trials.iter().filter(|trial| trial.step != Step::Generator);
        ours.map(|trial| trial.peak).max().unwrap_or(0)
    }
}

fn full(options: &Options) -> Result<(), String> {
    let version = rivals::version(&options.petal, &["--version".as_ref()])?;
    let mut jobs = Vec::new();
    if options.beside > options.scale {
        jobs.push(Done::run(options, options.beside, options.runs.max(SMALL_ROUNDS))?);
    }
    jobs.push(Done::run(options, options.scale, options.runs)?);

    let machine = Machine::read();
    let row = |done: &Done, trial: &Trial| row(&machine, &version, &done.job, trial);
    let rows: Vec<_> =
        jobs.iter().flat_map(|done| done.trials.iter().map(|trial| row(done, trial))).collect();
    let file = machine.save("full", &HEADER, &rows)?;
    println!("\n{}", machine.line());
    let met: Vec<bool> = jobs.iter().map(judge).collect();
    if let [small, large] = &jobs[..] {
        println!();
        for step in [Step::Build, Step::Check] {
            let kept = large.speed(step) / small.speed(step);
            let says = yes(kept >= SPEED_KEPT);
            println!(
                "{}: speed at {} lines / speed at {}: {kept:.2}, wanted >= {SPEED_KEPT}: {says}",
                step.name(),
                large.job.lines,
                small.job.lines
            );
        }
    }
    println!("\nraw rows: {}", file.display());
    let sound = met.iter().all(|&met| met);
    if sound { Ok(()) } else { Err("petal broke a promise, see above".into()) }
}

/// Prints a job's figures, and whether it kept its memory and its rate.
fn judge(done: &Done) -> bool {
    let Done { job, .. } = done;
    println!(
        "\n{} lines of {} bytes, filter within {:.1} MiB: {:.2} bits a key",
        job.lines,
        job.line_bytes(),
        job.memory as f64 / MIB,
        8.0 * job.memory as f64 / job.lines as f64
    );
    for step in Step::ALL {
        println!("{:<9} {:>6.1} M lines/s", step.name(), done.speed(step) / 1e6);
    }
    let most = job.memory + CAP_SLACK;
    let fits = done.peak() <= most;
    println!(
        "peak memory {:.1} MiB, wanted <= {:.1}: {}",
        done.peak() as f64 / MIB,
        most as f64 / MIB,
        yes(fits)
    );
    let mut right = true;
    for trial in done.of(Step::Check) {
        let (low, high) = binomial_range(job.lines, trial.rate, CONFIDENCE);
        let within = (low..=high).contains(&trial.count);
        right &= within;
        println!(
            "predicted rate {:.6}, counted {} = {:.6}, wanted {low} to {high}: {}",
            trial.rate,
            trial.count,
            trial.count as f64 / job.lines as f64,
            yes(within)
        );
    }
    fits && right
}

fn row(machine: &Machine, version: &str, job: &Job, trial: &Trial) -> [String; HEADER.len()] {
    [
        machine.date.clone(),
        job.scale.to_string(),
        job.lines.to_string(),
        job.line_bytes().to_string(),
        job.memory.to_string(),
        trial.step.name().to_owned(),
        version.to_owned(),
        trial.round.to_string(),
        format!("{:.3}", trial.wall),
        format!("{:.3}", trial.user),
        format!("{:.3}", trial.system),
        format!("{:.0}", job.speed(trial)),
        trial.peak.to_string(),
        trial.count.to_string(),
        trial.rate.to_string(),
        trial.command.clone(),
        machine.description.clone(),
        machine.rustc.clone(),
        machine.commit.clone(),
    ]
}

fn yes(fact: bool) -> &'static str {
    if fact { "yes" } else { "no" }
}
