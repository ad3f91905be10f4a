//! `cargo x bench full`: the approximate headline at full size. 5 billion generated URLs go through a pipe to
//! `petal build` with 4 GiB, and 5 billion others through a pipe to `petal check -c`, so every hit is a false positive.
//!
//! There is no file of lines. The speed of the generator alone (`urls | cat`) is measured, too: of two cores it takes
//! one. A job of a hundredth of the size, with a hundredth of the memory, shows the cost of the size itself.

mod pipeline;

use std::fs;

use petal_bench::machine::{Fields, Machine};
use petal_bench::rivals;
use petal_bench::stats::median;
use petal_testkit::bounds::binomial_range;
use pipeline::{Job, Step, Trial};

use crate::{Common, yes};

/// A filter of 5 billion lines through pipes, with its false positives counted
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Divide 5 billion lines and 4 GiB by this; scale 1 takes minutes and 4 GiB of disk
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
    /// Scale of a smaller job to compare with, in at least 3 rounds; none if it is not above --scale
    #[arg(long, default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    beside: u64,
    /// Rounds
    #[arg(long, default_value = "1")]
    runs: usize,
    #[command(flatten)]
    common: Common,
}

/// The number of false positives must be within the bounds of the predicted rate with this probability.
const CONFIDENCE: f64 = 0.999;
/// The minimum speed of the full job relative to the smaller one.
const SPEED_KEPT: f64 = 0.7;
/// Memory that petal may use above the filter.
const MEMORY_OVERHEAD: u64 = 16 << 20;
const SMALL_ROUNDS: usize = 3;
const MIB: f64 = 1_048_576.0;
/// A job with its trials.
struct Done {
    job: Job,
    trials: Vec<Trial>,
}

impl Done {
    fn run(args: &Args, scale: u64, rounds: usize) -> Result<Self, String> {
        let folder = args.common.dir().join(format!("full-{scale}"));
        fs::create_dir_all(&folder)
            .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let job = Job::new(scale, args.common.petal(), folder)?;
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

    /// Returns the median of lines per second.
    fn speed(&self, step: Step) -> f64 {
        let speeds: Vec<f64> = self.of(step).map(|trial| self.job.speed(trial)).collect();
        median(&speeds).unwrap_or(f64::NAN)
    }

    fn peak(&self) -> u64 {
        let ours = self.trials.iter().filter(|trial| trial.step != Step::Generator);
        ours.map(|trial| trial.peak).max().unwrap_or(0)
    }
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let version = rivals::version(&args.common.petal(), &["--version".as_ref()])?;
    let mut jobs = Vec::new();
    if args.beside > args.scale {
        jobs.push(Done::run(args, args.beside, args.runs.max(SMALL_ROUNDS))?);
    }
    jobs.push(Done::run(args, args.scale, args.runs)?);

    let machine = Machine::read();
    let row = |done: &Done, trial: &Trial| row(&version, &done.job, trial);
    let rows: Vec<_> =
        jobs.iter().flat_map(|done| done.trials.iter().map(|trial| row(done, trial))).collect();
    let file = machine.save("full", &rows)?;
    println!("\n{}", machine.line());
    let met: Vec<bool> = jobs.iter().map(print_job).collect();
    if let [small, large] = &jobs[..] {
        println!();
        for step in [Step::Build, Step::Check] {
            let kept = large.speed(step) / small.speed(step);
            let met = yes(kept >= SPEED_KEPT);
            println!(
                "{}: speed at {} lines / speed at {}: {kept:.2}, target >= {SPEED_KEPT}: {met}",
                step.name(),
                large.job.lines,
                small.job.lines
            );
        }
    }
    println!("\nrows are in {}", file.display());
    if met.contains(&false) { Err("petal missed a target, see above".into()) } else { Ok(()) }
}

/// Prints the figures of a job, and returns whether it kept its memory limit and its rate.
fn print_job(done: &Done) -> bool {
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
    let most = job.memory + MEMORY_OVERHEAD;
    let fits = done.peak() <= most;
    println!(
        "peak memory {:.1} MiB, limit {:.1}: {}",
        done.peak() as f64 / MIB,
        most as f64 / MIB,
        yes(fits)
    );
    let mut correct = true;
    for trial in done.of(Step::Check) {
        let (low, high) = binomial_range(job.lines, trial.rate, CONFIDENCE);
        let within = (low..=high).contains(&trial.count);
        correct &= within;
        println!(
            "predicted rate {:.6}, counted {} = {:.6}, expected {low} to {high}: {}",
            trial.rate,
            trial.count,
            trial.count as f64 / job.lines as f64,
            yes(within)
        );
    }
    fits && correct
}

fn row(version: &str, job: &Job, trial: &Trial) -> Fields {
    vec![
        ("scale", job.scale.to_string()),
        ("lines", job.lines.to_string()),
        ("line_bytes", job.line_bytes().to_string()),
        ("memory_bytes", job.memory.to_string()),
        ("step", trial.step.name().to_owned()),
        ("version", version.to_owned()),
        ("round", trial.round.to_string()),
        ("wall_s", format!("{:.3}", trial.wall)),
        ("user_s", format!("{:.3}", trial.user)),
        ("sys_s", format!("{:.3}", trial.system)),
        ("lines_per_s", format!("{:.0}", job.speed(trial))),
        ("peak_rss_bytes", trial.peak.to_string()),
        ("count", trial.count.to_string()),
        ("predicted_rate", trial.rate.to_string()),
        ("command", trial.command.clone()),
    ]
}
