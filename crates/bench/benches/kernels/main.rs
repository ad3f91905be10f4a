//! `cargo bench -p petal-bench --bench kernels`: the kernels of the blocked layout, through the library's batches.
//!
//! ns per 64-bit hash that is given, one thread. The kernels take turns on one filter, sample by sample, each with keys of
//! its own, lest one find in cache what another fetched; the table has the median and the least of the samples. Read
//! ratios. No inserted key may be missing, and kernels must agree on the absent ones.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;
use std::time::Instant;

use petal::{Answers, BloomFilter, Kernel};
use petal_bench::machine::Machine;
use petal_bench::permutation::mix;
use petal_bench::summary::{csv_row, median};

const USAGE: &str = "\
usage: cargo bench -p petal-bench --bench kernels -- [N ...]

  N   numbers of keys (default: 100000 1000000 20000000 100000000; the last takes 200 MB)
";

/// A sample is this many keys: shorter than a time slice, so that most samples see no other process.
const CHUNK: u64 = 20_000;
/// Keys that are inserted at least: a small filter is filled again and again.
const WORK: u64 = 6_000_000;
/// Rounds of questions, each kernel asking once for absent, present and mixed keys.
const QUESTIONS: u64 = 200;
/// Bits per key, and probes. Some 1 % with 6 to 8 probes; 0.1 % with all lanes of a line; a pair of lines.
const SIZES: [(u64, u32); 5] = [(10, 6), (10, 7), (10, 8), (16, 8), (16, 10)];
const HEADER: [&str; 8] =
    ["keys", "bits_per_key", "probes", "operation", "kernel", "ns_median", "ns_min", "samples"];
const OPERATIONS: [&str; 4] = ["insert", "query absent", "query present", "query mixed"];

/// Which keys of a chunk: even ones are inserted, odd ones never.
#[derive(Clone, Copy, PartialEq)]
enum Keys {
    Odd,
    Even,
    /// Either, by chance: a branch on the answer cannot be foreseen.
    Mixed,
}

fn main() -> ExitCode {
    // `cargo bench` adds `--bench` to what it is given.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let numbers: Result<Vec<u64>, _> = args.iter().map(|arg| arg.parse()).collect();
    let numbers = match numbers {
        Ok(numbers) if numbers.is_empty() => vec![100_000, 1_000_000, 20_000_000, 100_000_000],
        Ok(numbers) if numbers.iter().all(|&keys| keys >= 5 * CHUNK) => numbers,
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match kernels(&numbers, &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("kernels: {problem}");
            ExitCode::from(1)
        }
    }
}

/// Prints the rows as they come; those of a whole run are also kept in `results/`.
fn kernels(numbers: &[u64], args: &[String]) -> Result<(), String> {
    let Machine { slug, description, rustc, commit, date } = Machine::read();
    let mut text = format!("# {description}; rustc {rustc}; commit {commit}; {date}\n");
    text += &format!("# cargo bench -p petal-bench --bench kernels -- {}\n", args.join(" "));
    text += &csv_row(&HEADER);
    print!("{text}");
    for &keys in numbers {
        for (bits_per_key, probes) in SIZES {
            let rows = measure(keys, bits_per_key, probes)?;
            print!("{rows}");
            text += &rows;
        }
    }
    if args.is_empty() {
        // Cargo runs a bench in its crate's folder.
        let file = format!("../../results/{slug}/{date}-kernels.csv");
        std::fs::write(&file, text).map_err(|e| format!("cannot write {file}: {e}"))?;
        eprintln!("rows are in {file}");
    }
    Ok(())
}

/// One kernel: its samples, ns per key, for each of [`OPERATIONS`], and how many absent keys it found.
struct Clock {
    kernel: Kernel,
    samples: [Vec<f64>; 4],
    found: u64,
}

/// Fills a filter and asks it, the kernels by turns.
fn measure(keys: u64, bits_per_key: u64, probes: u32) -> Result<String, String> {
    let filter = BloomFilter::with_bits(keys * bits_per_key, probes);
    let mut filter = filter.map_err(|problem| problem.to_string())?;
    let there = Kernel::ALL.into_iter().filter(|kernel| kernel.is_there());
    let mut clocks: Vec<Clock> =
        there.map(|kernel| Clock { kernel, samples: Default::default(), found: 0 }).collect();
    let (chunks, kernels) = (keys / CHUNK, clocks.len() as u64);
    let mut answers = Answers::new();
    for turn in 0..WORK.div_ceil(keys) * chunks {
        if turn % chunks == 0 {
            filter.clear();
        }
        let hashes = hashes(turn % chunks, Keys::Even);
        let clock = &mut clocks[((turn + turn / chunks) % kernels) as usize];
        let insert = || filter.insert_hashes(&hashes, &mut answers);
        clock.samples[0].push(timed(clock.kernel, insert));
    }
    for turn in 0..QUESTIONS {
        for (at, clock) in (turn * kernels..).zip(&mut clocks) {
            for (operation, which) in [(1, Keys::Odd), (2, Keys::Even), (3, Keys::Mixed)] {
                // Keys of their own, lest one find in cache what another fetched.
                let hashes = hashes(mix(4 * at + operation as u64) % chunks, which);
                let ask = || filter.contains_hashes(&hashes, &mut answers);
                clock.samples[operation].push(timed(clock.kernel, ask));
                if which == Keys::Even && answers.count_ones() != CHUNK {
                    return Err(format!("{:?} lost a key", clock.kernel));
                }
            }
        }
    }
    // All kernels, and the same absent keys.
    let hashes = hashes(0, Keys::Odd);
    for clock in &mut clocks {
        timed(clock.kernel, || filter.contains_hashes(&hashes, &mut answers));
        clock.found = answers.count_ones();
    }
    if clocks.iter().any(|clock| clock.found != clocks[0].found) {
        return Err("kernels differ".into());
    }
    let mut rows = String::new();
    for clock in &clocks {
        for (operation, samples) in OPERATIONS.iter().zip(&clock.samples) {
            let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
            rows += &csv_row(&[
                keys.to_string(),
                bits_per_key.to_string(),
                probes.to_string(),
                (*operation).to_owned(),
                format!("{:?}", clock.kernel),
                format!("{:.2}", median(samples).unwrap_or(f64::NAN)),
                format!("{least:.2}"),
                samples.len().to_string(),
            ]);
        }
    }
    Ok(rows)
}

/// The hashes of a chunk of keys.
fn hashes(chunk: u64, which: Keys) -> Vec<u64> {
    let odd = |key: u64| match which {
        Keys::Odd => 1,
        Keys::Even => 0,
        Keys::Mixed => mix(!key) & 1,
    };
    (chunk * CHUNK..(chunk + 1) * CHUNK).map(|key| mix(2 * key + odd(key))).collect()
}

/// ns per key.
fn timed(kernel: Kernel, act: impl FnOnce()) -> f64 {
    kernel.force();
    let start = Instant::now();
    act();
    start.elapsed().as_nanos() as f64 / CHUNK as f64
}
