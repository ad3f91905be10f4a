//! `cargo x bench family`: every filter type of petal and the rivals of its type, for `results/filters.md`.
//!
//! 64-bit keys, hashed by each filter, on one thread. See `petal_bench::harness` for how it is measured. At 1 % there are
//! many rounds, for times; at the lower rates a few, for space and the measured rate.
//!
//! `--only WORD,...` measures the filters whose names contain one of the words, and `--kernel NAME` petal's with another
//! kernel than the fastest; both print their rows.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use clap::Parser;
use peak_alloc::PeakAlloc;
use petal::Kernel;
use petal_bench::args;
use petal_bench::harness::program::{FilterArgs, save};
use petal_bench::harness::rows::table;
use petal_bench::harness::{CHUNK, RunPlan, family, rounds};
use petal_bench_vs::family as rivals;

/// Times every type of filter and its rivals. Default: 1000000 keys at three rates, 50000000 keys at 1 %
#[derive(Parser)]
#[command(name = "cargo x bench family", bin_name = "cargo x bench family")]
struct Args {
    #[command(flatten)]
    args: FilterArgs,
    /// Only filters whose names contain one of these words; rows are printed
    #[arg(long, value_name = "WORD", value_delimiter = ',', conflicts_with = "keep")]
    only: Vec<String>,
    /// The kernel of petal's filters, such as avx2; the default is the fastest of this machine
    #[arg(long, value_name = "NAME", value_parser = kernel, conflicts_with = "keep")]
    kernel: Option<Kernel>,
}

fn kernel(name: &str) -> Result<Kernel, String> {
    let known = Kernel::from_name(name).filter(|kernel| kernel.is_available());
    let all = || Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).map(Kernel::name);
    known.ok_or_else(|| format!("this machine has {}", all().collect::<Vec<_>>().join(", ")))
}

const SUITE: &str = "family";
const COMMAND: &str = "cargo x bench family";
const NUMBERS: [u64; 2] = [1_000_000, 50_000_000];
/// The rate at which times are compared, then two more at which space is compared.
const RATES: [f64; 3] = [0.01, 0.001, 0.0001];
/// The largest number of keys for which every rate is measured.
const ALL_RATES_UP_TO: u64 = 10_000_000;

/// Measures the memory of the rivals.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    args::main(|Args { args, only, kernel }| {
        print!("{}", run(&args, &only, kernel)?);
        Ok(())
    })
}

fn run(args: &FilterArgs, only: &[String], kernel: Option<Kernel>) -> Result<String, String> {
    // A filter takes its kernel when it is made.
    kernel.map(Kernel::force);
    let (mut all, mut tables) = (Vec::new(), String::new());
    for keys in args.numbers(&NUMBERS)? {
        let rates = if keys <= ALL_RATES_UP_TO { &RATES[..] } else { &RATES[..1] };
        for &rate in rates {
            let mut cases = family::all(keys, rate)?;
            cases.extend(rivals::all(keys, rate, || MEMORY.current_usage())?);
            if !only.is_empty() {
                cases.retain(|case| only.iter().any(|word| case.filter.contains(word.as_str())));
            }
            let plan = plan(keys, rate, args.quick);
            let progress = |line: &str| eprintln!("{} %: {line}", rate * 100.0);
            let rows = rounds::run(SUITE, plan, &mut cases, &progress)?;
            tables += &format!("\n{keys} keys, {} %\n{}", rate * 100.0, table(&rows));
            all.extend(rows);
        }
    }
    let mut command = COMMAND.to_owned();
    if !only.is_empty() {
        command += &format!(" --only {}", only.join(","));
    }
    if let Some(kernel) = kernel {
        command += &format!(" --kernel {}", kernel.name());
    }
    eprint!("{tables}");
    save(args, ("-family", COMMAND), &command, &all, &|line| eprintln!("{line}"))
}

fn plan(keys: u64, rate: f64, quick: bool) -> RunPlan {
    let rounds = match keys {
        _ if quick => 3,
        0..=ALL_RATES_UP_TO if rate == RATES[0] => 15,
        _ => 5,
    };
    let plan = RunPlan::new(keys, quick);
    // The measured rates of larger filters are not published.
    let absent_keys = if keys <= ALL_RATES_UP_TO { plan.absent_keys } else { CHUNK };
    RunPlan { rounds, absent_keys, time_whole_fill: true, ..plan }
}
