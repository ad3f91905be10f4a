//! `cargo x bench family`: every filter type of petal and the rivals of its type, for `docs/performance/filters.md`.
//!
//! 64-bit keys, hashed by each filter, on one thread. See `petal_bench::harness` for how it is measured. At 1 % there are
//! many rounds, for times; at the lower rates a few, for space and the measured rate.
//!
//! `cargo x bench deletion` measures only the filters that delete keys, and keeps their rows in a file of their own.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use clap::Parser;
use peak_alloc::PeakAlloc;
use petal_bench::args;
use petal_bench::harness::program::{FilterArgs, save};
use petal_bench::harness::rows::table;
use petal_bench::harness::{CHUNK, Case, Operation, RunPlan, family, rounds};
use petal_bench_vs::family as rivals;

/// Times every type of filter and its rivals. Default: 1000000 keys at three rates, 50000000 keys at 1 %
#[derive(Parser)]
#[command(name = "cargo x bench family", bin_name = "cargo x bench family")]
struct Args {
    #[command(flatten)]
    args: FilterArgs,
    /// Only filters that delete keys, without counting filters, which take four times the space
    #[arg(long)]
    deletion: bool,
}

/// The suite of the rows and the suffix of their file; the command.
const FAMILY: (&str, &str, &str) = ("family", "-family", "cargo x bench family");
const DELETION: (&str, &str, &str) = ("deletion", "-deletion", "cargo x bench deletion");
const NUMBERS: [u64; 2] = [1_000_000, 50_000_000];
/// The rate at which times are compared, then two more at which space is compared.
const RATES: [f64; 3] = [0.01, 0.001, 0.0001];
/// The largest number of keys for which every rate is measured.
const ALL_RATES_UP_TO: u64 = 10_000_000;

/// Measures the memory of the rivals.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    args::main(|Args { args, deletion }| {
        print!("{}", run(&args, deletion)?);
        Ok(())
    })
}

fn run(args: &FilterArgs, deletion: bool) -> Result<String, String> {
    let (suite, suffix, command) = if deletion { DELETION } else { FAMILY };
    let (mut all, mut tables) = (Vec::new(), String::new());
    for keys in args.numbers(&NUMBERS)? {
        let rates = if keys <= ALL_RATES_UP_TO { &RATES[..] } else { &RATES[..1] };
        for &rate in rates {
            let mut cases = family::all(keys, rate)?;
            cases.extend(rivals::all(keys, rate, || MEMORY.current_usage())?);
            if deletion {
                cases.retain(deletes);
            }
            let plan = plan(keys, rate, args.quick);
            let progress = |line: &str| eprintln!("{} %: {line}", rate * 100.0);
            let rows = rounds::run(suite, plan, &mut cases, &progress)?;
            tables += &format!("\n{keys} keys, {} %\n{}", rate * 100.0, table(&rows));
            all.extend(rows);
        }
    }
    let rows = save(args, (suffix, command), command, &all, &|line| eprintln!("{line}"))?;
    Ok(rows + &tables)
}

/// Returns whether a case is measured with `--deletion`.
fn deletes(case: &Case) -> bool {
    case.operations.contains(&Operation::Remove) && !case.filter.starts_with("petal counting")
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
