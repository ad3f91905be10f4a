//! `cargo x bench family`: every type of filter that petal has, beside the rivals of its type: `docs/filters.md`.
//!
//! 64-bit keys that each filter hashes, one thread, contests of one number of keys and one rate. What turns and rounds are,
//! and how answers are judged: `petal_bench::contest`. At 1 % a whole run takes many rounds, for times; at the finer rates
//! a few, for space and the measured rate.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;

use peak_alloc::PeakAlloc;
use petal_bench::contest::family;
use petal_bench::contest::program::{Options, command, put};
use petal_bench::contest::rounds::{CHUNK, Plan, run};
use petal_bench::contest::rows::table;
use petal_bench_vs::family as rivals;

const USAGE: &str = "\
usage: cargo x bench family [--quick] [N ...]

  N         numbers of keys (default: 1000000 50000000; all filters of one number and rate are in memory at once)
  --quick   few rounds, and 100000 keys unless numbers are given (seconds)

Up to 10000000 keys every rate has its contest, above that 1 % alone.
";
const SUITE: &str = "family";
const COMMAND: &str = "cargo x bench family";
const NUMBERS: [u64; 2] = [1_000_000, 50_000_000];
/// The rate at which times are compared, then those for space.
const RATES: [f64; 3] = [0.01, 0.001, 0.0001];
/// Up to so many keys there is a contest for each rate.
const RATES_TO: u64 = 10_000_000;

/// Weighs the rivals.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match contests(&args) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("family: {problem}");
            ExitCode::from(1)
        }
    }
}

fn contests(args: &[String]) -> Result<String, String> {
    let options = Options::read(args, &NUMBERS)?;
    let (mut all, mut tables) = (Vec::new(), String::new());
    for &keys in &options.numbers {
        let rates = if keys <= RATES_TO { &RATES[..] } else { &RATES[..1] };
        for &rate in rates {
            let mut contestants = family::all(keys, rate)?;
            contestants.extend(rivals::all(keys, rate, || MEMORY.current_usage())?);
            let plan = plan(keys, rate, options.quick);
            let tell = |what: &str| eprintln!("{} %: {what}", rate * 100.0);
            let rows = run(SUITE, plan, &mut contestants, &tell)?;
            tables += &format!("\n{keys} keys, {} %\n{}", rate * 100.0, table(&rows));
            all.extend(rows);
        }
    }
    let to = ("-family", COMMAND);
    let rows = put(options.keep, to, &command(COMMAND, args), &all, &|what| eprintln!("{what}"))?;
    Ok(rows + &tables)
}

fn plan(keys: u64, rate: f64, quick: bool) -> Plan {
    let rounds = match keys {
        _ if quick => 3,
        0..=RATES_TO if rate == RATES[0] => 15,
        _ => 5,
    };
    let plan = Plan::new(keys, quick);
    // Rates are compared where each has a contest.
    let judged = if keys <= RATES_TO { plan.judged } else { CHUNK };
    Plan { rounds, judged, whole_fill: true, ..plan }
}
